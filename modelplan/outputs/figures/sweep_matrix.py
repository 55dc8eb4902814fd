"""Which model fits which device: a row for each model, a column for each target, the bytes in the cell.

           small     middle    large
           64 KiB    256 KiB   1 MiB       The colour is the verdict; the darker part of a cell is the share of
person   |  80 KiB |##80 KiB |# 80 KiB |   the device's memory that the model takes.
"""

from pathlib import Path

from modelplan.answers.sweep_summary import Fit, SweepFindings, Verdict
from modelplan.outputs.figures import canvas, lettering
from modelplan.outputs.figures.axes import Entry, draw_legend, legend_rows
from modelplan.outputs.figures.canvas import BODY, FREE, MUTED, SMALL, TITLE, Margins, Sheet
from modelplan.primitives.lazy_records import dataclass
from modelplan.primitives.units import brief
from modelplan.primitives.version import __version__

_EDGE, _LINE, _ROW, _COLUMN, _NAME = 12.0, 14.0, 19.0, 84.0, 240.0
#: How many models and targets are drawn.
_MOST_ROWS, _MOST_COLUMNS = 40, 16
#: For each verdict what the legend says, the fill, and the fill of the share that is taken.
_LOOKS: dict[Verdict, tuple[str, str, str]] = {
    "fits": ("fits; darker: the share taken", "#d7efe4", "#7fcaa9"),
    "with a plan": ("fits with a plan of modelplan's", "#f7dfae", "#f7dfae"),
    "no": ("does not fit", "#efb9a8", "#efb9a8"),
    "unknown": ("not known", FREE, FREE),
    "refused": ("refused by the runtime", "#c9c9c9", "#c9c9c9"),
}


@dataclass(frozen=True, slots=True)
class SweepMatrix:
    """What a sweep found out of models and targets."""

    findings: SweepFindings

    @property
    def title(self) -> str:
        """The name of the file of results."""
        return Path(self.findings.title).name

    @property
    def made_by(self) -> str:
        """The program and its version."""
        return f"modelplan {__version__}"

    @property
    def models(self) -> list[str]:
        """The models that are drawn: all, or those that need most."""
        need = {fit.model: fit.arena or 0 for fit in self.findings.fits}
        return sorted(self.findings.models, key=lambda name: (-need.get(name, 0), name))[:_MOST_ROWS]


def draw(matrix: SweepMatrix) -> Sheet:
    """The matrix; must run inside `canvas.style()`."""
    findings, models = matrix.findings, matrix.models
    targets = findings.targets[:_MOST_COLUMNS]
    present = {fit.verdict for fit in findings.fits}
    entries = [
        Entry(words, {"facecolor": taken, "edgecolor": MUTED, "linewidth": 0.4})
        for verdict, (words, _, taken) in _LOOKS.items()
        if verdict in present
    ]
    names = [lettering.folded(lettering.drawable(Path(model).stem), _NAME, BODY) for model in models]
    left = 2 * _EDGE + max([lettering.width(name, BODY) for name in names], default=0)
    width = max(_COLUMN * len(targets), lettering.width(_facts(findings), BODY) + 2 * _EDGE - left)
    legend = legend_rows(entries, width + left - _EDGE)
    above = 3 * _EDGE + TITLE + _LINE * (len(legend) + 3)
    rows = max(len(names), 1)
    sheet = canvas.sheet(Margins(left, _EDGE, above, _EDGE), width, _ROW * rows, width, rows)
    sheet.axes.axis("off")
    by_place = {(fit.model, fit.target): fit for fit in findings.fits}
    for column, (target, size) in enumerate(targets):
        middle = sheet.x((column + 0.5) * _COLUMN)
        name = lettering.folded(lettering.drawable(target), _COLUMN - 6, BODY)
        sheet.write(middle, sheet.ceiling + 6 + _LINE, name, BODY, ha="center", va="baseline", weight="bold")
        sheet.write(middle, sheet.ceiling + 6, brief(size), SMALL, ha="center", va="baseline", color=MUTED)
        for row, model in enumerate(models):
            _draw_cell(sheet, column, len(models) - row, by_place.get((model, target)), size)
    for row, name in enumerate(names):
        sheet.write(_EDGE, sheet.y(len(models) - row - 0.5), name, BODY)
    _head(sheet, matrix, legend)
    return sheet


def _draw_cell(sheet: Sheet, column: int, top: int, fit: Fit | None, size: int) -> None:
    """The verdict as a colour, the share of the memory as a darker part, the bytes of the arena as words."""
    _, fill, taken = _LOOKS[fit.verdict if fit else "unknown"]
    left, right = column * _COLUMN + 1, (column + 1) * _COLUMN - 1
    low, high = top - 1 + 1 / _ROW, top - 1 / _ROW
    share = min((fit.arena or 0) / max(size, 1), 1.0) if fit else 0.0
    sheet.boxes([(left, low, right, high)], facecolor=fill, linewidth=0)
    sheet.boxes([(left, low, left + share * (right - left), high)], facecolor=taken, linewidth=0)
    words = brief(fit.arena) if fit and fit.arena else "?"
    sheet.write(sheet.x((left + right) / 2), sheet.y(top - 0.5), words, SMALL, ha="center")


def _head(sheet: Sheet, matrix: SweepMatrix, legend: list[list[tuple[float, Entry]]]) -> None:
    """Title, what was left out, legend."""
    findings = matrix.findings
    y = sheet.ceiling + sheet.margins.top - _EDGE - TITLE
    room = sheet.right
    title = lettering.folded(lettering.drawable(matrix.title), room / 1.15, TITLE)
    sheet.write(_EDGE, y, title, TITLE, weight="bold", va="baseline")
    sheet.write(_EDGE, y - _LINE, lettering.folded(_facts(findings), room, BODY), BODY, va="baseline")
    draw_legend(sheet, y - (_LINE + 4), legend)


def _facts(findings: SweepFindings) -> str:
    """What the rows are, or why there is nothing to show."""
    models, targets = len(findings.models), len(findings.targets)
    if not targets:
        return "no target was asked for, so nothing can fit: modelplan sweep ... --targets NAME"
    some = f"the {_MOST_ROWS} that need most of " if models > _MOST_ROWS else ""
    few = f"the {_MOST_COLUMNS} smallest of " if targets > _MOST_COLUMNS else ""
    more = "  ·  --matrix FILE has all" if some or few else ""
    return f"arena of {some}{models:,} models as they stand, on {few}{targets:,} targets{more}"

r"""The chart of a difference: the memory curves of both sides over one axis, the same operator at the same place.

 old peak: ...            Each column is an operator. Where one side alone runs it there, the column is tinted and the
      v   new peak: ...   other side's curve has a gap. Operators that differ by themselves have a mark and their name
bytes ^ __   v            below the axis, as far as names do not touch; both peaks are pointed at from above.
      |_||__/ \_
      +-----------> operators
"""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt

from modelplan.answers.model_difference import Change, Column, Difference
from modelplan.outputs.figures import canvas, lettering
from modelplan.outputs.figures.axes import Level, byte_ticks, draw_levels, draw_live_bytes
from modelplan.outputs.figures.canvas import BODY, INK, LINE, MUTED, SMALL, TITLE, WARNING, Margins, Sheet
from modelplan.outputs.reports.difference_report import basis_words, figure_lines, parts_kept
from modelplan.primitives.lazy_records import dataclass
from modelplan.primitives.units import brief, human
from modelplan.primitives.version import __version__

_OLD, _NEW = "#d98b2b", "#2b6fb3"
_OLD_TINT, _NEW_TINT = "#fbeedd", "#e1edf8"
_NARROWEST, _WIDEST = 640.0, 1060.0
_POINTS_PER_COLUMN = 16.0
_PLOT_HEIGHT, _EDGE, _ROW, _RIGHT = 240.0, 12.0, 14.0, 112.0
_NOTES = 2 * _ROW + 10
_LONGEST = 118.0
#: Curves with more columns show the highest of each of so many even spans, which are narrower than a pixel.
_MOST_POINTS = 1000

Values = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class DifferenceChart:
    """What the chart shows: the difference, and lines under its title."""

    title: str
    facts: tuple[str, ...]
    difference: Difference
    made_by: str

    @property
    def columns(self) -> tuple[Column, ...]:
        """The operators of both sides in one order."""
        return self.difference.columns

    @property
    def top(self) -> int:
        """The highest that either curve gets."""
        return max(*self.difference.live[0], *self.difference.live[1], 1)


def chart_of(difference: Difference) -> DifferenceChart:
    """The chart of a difference."""
    title = _title(difference.old, difference.new)
    lines = [line.replace("->", "→") for line in figure_lines(difference)]
    facts = lines or ["one side would not run: the curves show what it plans"]
    facts += [", ".join(basis_words(difference)).replace("->", "→")]
    facts += ["  ·  ".join(f"{setting.name} {setting.before} → {setting.after}" for setting in difference.settings)]
    facts += [
        f"{side}: whole tensors are shown; the plan in the file keeps parts of them and needs {human(head)}"
        for side, head in parts_kept(difference)
    ]
    if difference.live[0] and list(difference.live[0]) == list(difference.live[1]):
        facts += ["the curves are one: the same tensors are alive at each step; what differs is where they lie"]
    return DifferenceChart(title, tuple(filter(None, facts)), difference, f"modelplan {__version__}")


def _title(old: str, new: str) -> str:
    """Both sides by the names of their files, with folders where only these differ."""
    if old == new:
        return Path(old).name
    if Path(old).name != Path(new).name:
        old, new = Path(old).name, Path(new).name
    return f"{old}  →  {new}"


def draw(chart: DifferenceChart) -> Sheet:
    """The chart; must run inside `canvas.style()`. Cost: O(operators)."""
    count = max(len(chart.columns), 1)
    width = min(max(count * _POINTS_PER_COLUMN, _NARROWEST), _WIDEST)
    top = 1.06 * chart.top
    labels = _labels(chart, width / count)
    left = _EDGE + _ROW + 8 + max(lettering.width(text, SMALL) for _, text in byte_ticks(top)[0])
    above = _EDGE + TITLE + (len(chart.facts) + 1) * _ROW + 10 + _NOTES
    foot = _EDGE + 2 * _ROW + lettering.widest((text for _, text, _ in labels), SMALL)
    sheet = canvas.sheet(Margins(left, _RIGHT, above, foot), width, _PLOT_HEIGHT, count, top)
    _draw_tints(sheet, chart)
    _draw_curves(sheet, chart)
    draw_live_bytes(sheet)
    _draw_levels(sheet, chart)
    _draw_head(sheet, chart)
    _draw_peaks(sheet, chart)
    _draw_labels(sheet, chart, labels)
    return sheet


# The plot -------------------------------------------------------------------------------------------------------------


def _draw_tints(sheet: Sheet, chart: DifferenceChart) -> None:
    """A light column where one side alone runs an operator; it stays visible where columns are narrow."""
    least = 1.2 / sheet.per_step
    for tint, missing in ((_NEW_TINT, "old"), (_OLD_TINT, "new")):
        places = [at for at, column in enumerate(chart.columns) if getattr(column, missing) < 0]
        boxes = [(at, 0, at + max(1.0, least), sheet.top) for at in places]
        sheet.boxes(boxes, facecolor=tint, linewidth=0, zorder=0.5)


def curve(columns: Sequence[Column], live: Sequence[int], *, old: bool) -> Values:
    """The bytes alive in each column on one side, NaN where the side runs nothing there."""
    steps = [column.old if old else column.new for column in columns]
    return np.array([live[step] if step >= 0 else np.nan for step in steps], dtype=np.float64)


def spanned(values: Values, most: int) -> Values:
    """The values, or the highest of each of at most `most` even spans."""
    size = -(-len(values) // most)
    if size <= 1:
        return values
    filled = np.append(values, np.full(-len(values) % size, np.nan)).reshape(-1, size)
    highest = np.where(np.isnan(filled), -1.0, filled).max(axis=1)
    return np.where(highest < 0, np.nan, highest)


def _draw_curves(sheet: Sheet, chart: DifferenceChart) -> None:
    """The new curve is filled; the old one lies over it, dashed, so that both are seen where they are equal."""
    count = len(chart.columns)
    for old, colour, style in ((False, _NEW, "-"), (True, _OLD, (0, (4, 1.6)))):
        values = spanned(curve(chart.columns, chart.difference.live[not old], old=old), _MOST_POINTS)
        edges = np.linspace(0, count, len(values) + 1)
        if not old:
            sheet.axes.stairs(values, edges, fill=True, color=colour, alpha=0.16, linewidth=0, zorder=1)
        width = 1.5 if old else 1.2
        sheet.axes.stairs(values, edges, baseline=None, color=colour, linewidth=width, linestyle=style, zorder=3 + old)


def _draw_levels(sheet: Sheet, chart: DifferenceChart) -> None:
    """The two peaks, named at the right; equal ones share a line."""
    names: dict[int, list[str]] = {}
    for name, peak in zip(("old peak", "new peak"), chart.difference.peaks, strict=True):
        names.setdefault(peak.nbytes, []).append(name)
    levels = []
    for at, named in sorted(names.items()):
        colour = INK if len(named) > 1 else _shade(old=named[0].startswith("old"))
        style = {"color": colour, "linewidth": 0.6, "linestyle": (0, (1, 2))}
        levels.append(Level(at, f"{' = '.join(named)}\n{brief(at)}", style))
    draw_levels(sheet, levels, zorder=2, apart=2)


def _shade(*, old: bool) -> str:
    """The colour of a side, dark enough for text."""
    return "#9a5b0d" if old else "#1d5590"


# Above the plot -------------------------------------------------------------------------------------------------------


def _draw_head(sheet: Sheet, chart: DifferenceChart) -> None:
    y, room = sheet.head(chart.title, otherwise="models")
    for fact in chart.facts:
        y -= _ROW
        sheet.write(_EDGE, y, lettering.folded(lettering.drawable(fact), room, BODY), BODY, va="baseline")
    _draw_legend(sheet, chart, y - _ROW - 3)


def _draw_legend(sheet: Sheet, chart: DifferenceChart, y: float) -> None:
    """What is drawn, each with its own sign; nothing that is not there."""
    x = _EDGE
    lines = (("old", _OLD, (0, (4, 1.6))), ("new", _NEW, "-"))
    for text, colour, style in lines:
        sheet.line((x, x + 16), (y + 2.5, y + 2.5), color=colour, linewidth=1.5, linestyle=style)
        sheet.write(x + 20, y, text, SMALL, va="baseline")
        x += 20 + lettering.width(text, SMALL) + 14
    tints = (("runs here on the old side only", _OLD_TINT, "new"), ("runs here on the new side only", _NEW_TINT, "old"))
    for text, colour, missing in tints:
        if any(getattr(column, missing) < 0 for column in chart.columns):
            sheet.swatch(x, y - 1, facecolor=colour, edgecolor=MUTED, linewidth=0.4)
            sheet.write(x + 14, y, text, SMALL, va="baseline")
            x += 14 + lettering.width(text, SMALL) + 14
    if any(_differs(column) for column in chart.columns):
        sheet.line((x + 4,), (y + 2.5,), marker="D", markersize=3.6, color=WARNING, markeredgewidth=0)
        sheet.write(x + 12, y, "differs by itself", SMALL, va="baseline")


def _draw_peaks(sheet: Sheet, chart: DifferenceChart) -> None:
    """A row for each side above the plot, with a pointer down to where its curve is highest."""
    room = sheet.right + sheet.margins.right - 2 * _EDGE
    before, after = chart.difference.peaks
    places = _column_of(chart.columns, before.step, old=True), _column_of(chart.columns, after.step, old=False)
    for old, name, peak, at in ((True, "old", before, places[0]), (False, "new", after, places[1])):
        text = f"{name} peak: {peak.operator}, {human(peak.nbytes)}"
        text = lettering.folded(lettering.drawable(text), room, SMALL)
        x, y = sheet.x(at + 0.5), sheet.ceiling + 6 + (_ROW if old else 0)
        half = lettering.width(text, SMALL, bold=True) / 2
        centre = min(max(x, _EDGE + half), _EDGE + room - half)
        sheet.write(centre, y + 3, text, SMALL, ha="center", va="baseline", color=_shade(old=old), weight="bold")
        colour = _OLD if old else _NEW
        shift = (-2.5 if old else 2.5) if places[0] == places[1] else 0.0
        sheet.line((x + shift, x + shift), (sheet.y(peak.nbytes), sheet.ceiling + 3), color=colour, linewidth=0.9)
        sheet.line(
            (x + shift,), (sheet.y(peak.nbytes) + 3,), marker="v", markersize=4.5, color=colour, markeredgewidth=0
        )


def _column_of(columns: Sequence[Column], step: int, *, old: bool) -> int:
    places = (at for at, column in enumerate(columns) if (column.old if old else column.new) == step)
    return next(places, 0)


# Below the plot -------------------------------------------------------------------------------------------------------


def _differs(column: Column) -> bool:
    return column.change is Change.CHANGED


def _labels(chart: DifferenceChart, pitch: float) -> list[tuple[int, str, str]]:
    """Columns with words and their colour, none nearer to another than a line: what differs first, then peaks."""
    columns = chart.columns
    peaks = {_column_of(columns, chart.difference.peaks[not old].step, old=old) for old in (True, False)}
    ranked = sorted(range(len(columns)), key=lambda at: (min(_rank(columns[at]), 1 + (at not in peaks)), at))
    taken: set[int] = set()
    labels = []
    reach = int(LINE / pitch) if pitch < LINE else 0
    for at in ranked:
        if not any(near in taken for near in range(at - reach, at + reach + 1)):
            taken.add(at)
            text = lettering.folded(lettering.drawable(_words(columns[at])), _LONGEST, SMALL)
            labels.append((at, text, _colour(columns[at])))
    return sorted(labels)


def _rank(column: Column) -> int:
    """Added, gone and moved operators and those that differ come before the others."""
    return 0 if column.moved or column.change in (Change.ADDED, Change.GONE, Change.CHANGED) else 2


def _words(column: Column) -> str:
    sign = {Change.ADDED: "+ ", Change.GONE: "- "}.get(column.change, "") if column.change else ""
    if column.moved:
        sign = "moved: "
    return f"{sign}{column.label}"


def _colour(column: Column) -> str:
    if column.new < 0 or column.old < 0:
        return _shade(old=column.new < 0)
    return WARNING if _differs(column) else MUTED


def _draw_labels(sheet: Sheet, chart: DifferenceChart, labels: Sequence[tuple[int, str, str]]) -> None:
    y = sheet.margins.bottom
    marked = [sheet.x(at + 0.5) for at, column in enumerate(chart.columns) if _differs(column)]
    if marked:
        style = {"marker": "D", "markersize": 3.6, "color": WARNING, "markeredgewidth": 0, "linestyle": "none"}
        sheet.line(marked, [y - 5] * len(marked), **style)
    for at, text, colour in labels:
        sheet.write(sheet.x(at + 0.5), y - 11, text, SMALL, ha="center", va="top", rotation=90, color=colour)
    sheet.write_below(
        "operators in the order in which they run, numbered as on the new side, or on the old one where only that runs"
    )

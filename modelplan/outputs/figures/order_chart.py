r"""The order chart: the memory curve in file order and in the plan's order on one plot, and which operators moved.

bytes ^   ___      file order        Below the plot each operator is a line from its step in the
      |__/ _ \___                   file to its step in the plan. Ops that kept their place among
      |_/ \______  this order       the others are faint; the fewest that had to move are bold.
      +-----------> step
      | |\ /| |     file
      | | X | |
      | |/ \| |     plan
"""

import numpy as np

from modelplan.model import Aliases, IntArray, Plan, bounds
from modelplan.outputs.figures import canvas, lettering
from modelplan.outputs.figures.axes import Entry, Level, draw_legend, draw_levels, draw_live_bytes, legend_rows, stride
from modelplan.outputs.figures.canvas import BODY, INK, LINE, MUTED, SMALL, WARNING, Margins, Sheet
from modelplan.planning import lifetimes
from modelplan.primitives.lazy_records import dataclass
from modelplan.primitives.units import brief, human
from modelplan.rewriting.reordering import moved

_BEFORE, _AFTER = "#d98b2b", "#2b6fb3"
_NARROWEST, _WIDEST = 640.0, 1060.0
_POINTS_PER_STEP = 14.0
_PLOT_HEIGHT, _BAND, _EDGE, _ROW = 220.0, 120.0, 12.0, 14.0
_LEFT, _RIGHT, _TOP = 62.0, 112.0, 74.0
_WORDS = 96.0


@dataclass(frozen=True, eq=False)
class OrderDrawing:
    """Live bytes by step in file order and in the plan's, the plan's order, and what had to move for it."""

    title: str
    before: IntArray
    after: IntArray
    order: tuple[int, ...]
    moved: frozenset[int]
    kinds: tuple[str, ...]
    lower_bound: int
    proof: str
    made_by: str

    @property
    def peak_before(self) -> int:
        """The most bytes alive in file order."""
        return int(self.before.max(initial=0))

    @property
    def peak_after(self) -> int:
        """The most bytes alive in the plan's order."""
        return int(self.after.max(initial=0))


def of_plan(plan: Plan) -> OrderDrawing:
    """The two orders of a plan under its own sharing of memory."""
    graph, order, steps = plan.graph, plan.schedule.order, max(len(plan.schedule.order), 1)
    aliases = Aliases(tuple(buffer.members for buffer in plan.problem if buffer.members))
    in_file = lifetimes.buffers(graph, graph.producers_first, aliases, plan.runtime)
    return OrderDrawing(
        graph.name,
        bounds.live_bytes(in_file, steps),
        bounds.live_bytes(plan.problem, steps),
        order,
        frozenset(moved(order)),
        tuple(op.kind for op in graph.ops),
        plan.schedule.lower_bound,
        plan.schedule.proof,
        plan.made_by,
    )


def draw(drawing: OrderDrawing) -> Sheet:
    """The order chart; must run inside `canvas.style()`. Cost: O(operators)."""
    steps = max(len(drawing.order), 1)
    width = min(max(steps * _POINTS_PER_STEP, _NARROWEST), _WIDEST)
    top = 1.05 * max(drawing.peak_before, drawing.peak_after, drawing.lower_bound, 1)
    foot = _EDGE + 2.5 * _ROW + (_BAND + _words_height(drawing) if drawing.moved else 0)
    sheet = canvas.sheet(Margins(_LEFT, _RIGHT, _TOP, foot), width, _PLOT_HEIGHT, steps, top)
    _draw_curves(sheet, drawing)
    draw_live_bytes(sheet)
    _draw_steps(sheet, steps)
    _draw_levels(sheet, drawing)
    _draw_head(sheet, drawing)
    if drawing.moved:
        _draw_moves(sheet, drawing)
    _draw_foot(sheet, drawing)
    return sheet


def _draw_curves(sheet: Sheet, drawing: OrderDrawing) -> None:
    """Steps, not slopes; what this order saves is filled."""
    edges = np.arange(len(drawing.before) + 1)
    lines = [(drawing.before, _BEFORE, 1.0), (drawing.after, _AFTER, 1.4)]
    for live, colour, width in lines:
        sheet.axes.stairs(live, edges, color=colour, linewidth=width, zorder=3)
    sheet.axes.stairs(drawing.after, edges, fill=True, color=_AFTER, alpha=0.16, linewidth=0, zorder=1)


def _draw_steps(sheet: Sheet, steps: int) -> None:
    """Round steps below the curves, and what they are."""
    apart = lettering.width(f"{steps:,}", SMALL) + 12
    for step in range(0, steps, stride(sheet.per_step, apart)):
        x, y = sheet.x(step + 0.5), sheet.margins.bottom
        sheet.line((x, x), (y - 3, y), color=MUTED, linewidth=0.5)
        sheet.write(x, y - 4, f"{step:,}", SMALL, ha="center", va="top")
    sheet.write(sheet.right + 8, sheet.margins.bottom - 8, "step", SMALL, color=MUTED)


def _draw_levels(sheet: Sheet, drawing: OrderDrawing) -> None:
    """The two peaks and the bound, named at the right; equal ones share a line."""
    names: dict[int, list[str]] = {}
    for at, name in [
        (drawing.lower_bound, "bound of every order"),
        (drawing.peak_after, "this order"),
        (drawing.peak_before, "file order"),
    ]:
        names.setdefault(at, []).append(name)
    style = {"color": INK, "linewidth": 0.6, "linestyle": (0, (4, 3))}
    levels = [Level(at, "\n".join([*named, brief(at)]), style) for at, named in sorted(names.items())]
    draw_levels(sheet, levels, zorder=2, apart=2)


def _draw_head(sheet: Sheet, drawing: OrderDrawing) -> None:
    y, room = sheet.head(drawing.title)
    saved = drawing.peak_before - drawing.peak_after
    share = saved / drawing.peak_before if drawing.peak_before else 0.0
    proof = f"optimal ({drawing.proof})" if drawing.peak_after == drawing.lower_bound else "not proved least"
    facts = f"order saves {human(saved)} = {share:.1%} of the peak  ·  {proof}"
    sheet.write(_EDGE, y - _ROW, lettering.folded(facts, room, BODY), BODY, va="baseline")
    colours = {"file order": _BEFORE, "this order": _AFTER, "operator that moved": WARNING}
    shown = colours if drawing.moved else ("this order",)
    entries = [Entry(text, {"facecolor": colours[text], "edgecolor": MUTED, "linewidth": 0.4}) for text in shown]
    draw_legend(sheet, y - _ROW - 4, legend_rows(entries, room))


def _draw_moves(sheet: Sheet, drawing: OrderDrawing) -> None:
    """From the step in the file, above, to the step in the plan, below."""
    upper = sheet.margins.bottom - 1.5 * _ROW
    lower = upper - _BAND
    sheet.write(sheet.right + 8, upper, "step in the file", SMALL, color=MUTED)
    sheet.write(sheet.right + 8, lower, "step in this order", SMALL, color=MUTED)
    for step, op in enumerate(drawing.order):
        bold = op in drawing.moved
        style = {"color": WARNING, "linewidth": 1.0} if bold else {"color": "#b9b9b9", "linewidth": 0.5}
        ends = (sheet.x(op + 0.5), sheet.x(step + 0.5))
        sheet.line(ends, (upper, lower), zorder=3 if bold else 2, **style)
    for step, text in _words(drawing, sheet.per_step):
        x = sheet.x(step + 0.5)
        sheet.write(x, lower - 6, text, SMALL, ha="center", va="top", rotation=90, color=WARNING)


def _draw_foot(sheet: Sheet, drawing: OrderDrawing) -> None:
    words = f"{len(drawing.moved):,} of {len(drawing.order):,} operators moved"
    if not drawing.moved:
        least = drawing.peak_after == drawing.lower_bound
        words = (
            f"no operator moved: {'no order needs less than' if least else 'no better order was found than'} the file's"
        )
    sheet.write_below(words)


def _words(drawing: OrderDrawing, per_step: float) -> list[tuple[int, str]]:
    """The moved operators whose names fit under the plan's steps without touching each other."""
    apart = stride(per_step, LINE)
    labels: list[tuple[int, str]] = []
    for step, op in enumerate(drawing.order):
        if op in drawing.moved and (not labels or step - labels[-1][0] >= apart):
            words = lettering.drawable(f"{drawing.kinds[op]}  {op}")
            labels.append((step, lettering.folded(words, _WORDS, SMALL)))
    return labels


def _words_height(drawing: OrderDrawing) -> float:
    steps = max(len(drawing.order), 1)
    per_step = min(max(steps * _POINTS_PER_STEP, _NARROWEST), _WIDEST) / steps
    return 8 + lettering.widest((text for _, text in _words(drawing, per_step)), SMALL)

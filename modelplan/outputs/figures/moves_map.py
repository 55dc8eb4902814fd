r"""Regions stacked on one time axis: where each content is in each step, and arrows where a copy carries it.

sram  | [a   ][c  ]  [a ]        A box is a stay, in the colour of its kind; that of a content that is copied has a dark
      |     \       ^            edge. An arrow leads from the source to the target of a copy; it is slanted where the
psram |      [a     ]            copy takes place while operators run. Contents that stand in a home from which they
flash | ////// weights //////    are only copied, such as weights in flash, are one hatched box.
"""

from collections.abc import Iterator, Sequence
from typing import Any

from modelplan.answers.moving_layout import MovingPlan
from modelplan.answers.region_layout import Copy, Stay, region_heights
from modelplan.outputs.figures import axes, canvas, lettering
from modelplan.outputs.figures.canvas import BODY, FAINT, FREE, INK, MUTED, SMALL, TITLE, Margins, Sheet
from modelplan.outputs.figures.region_map import COLOURS, STORED, step_ticks
from modelplan.primitives.units import brief, counted, human, milliseconds

_EDGE, _ROW, _BAND, _GAP = 12.0, 14.0, 190.0, 26.0
#: Points of a step, and of the least and the largest plot.
_PER_STEP, _NARROWEST, _WIDEST = 36.0, 720.0, 1400.0
#: A copy of less than this share of the fullest region in use is a thin arrow.
_LARGE = 0.02
#: Of more copies than these the small ones have no line: they would hide the map.
_FEW = 24
#: Points between arrows that start at the same step, and from the left of a box, where arrows end, to its name.
_APART, _CLEAR = 1.8, 12.0
#: Points of a region from which nothing is copied and in which little lies.
_THIN = 60.0
#: Points of height from which a stay has an outline: that of a thinner one would hide it.
_OUTLINED = 1.5
#: Points of the box of contents that are only copied from a region.
_STORED = 22.0


class _Bands:
    """Where each region is on the sheet: the first one on top.

    `stored` are the regions whose contents are copied out of a home without a stay: they have a box above the others.
    """

    def __init__(self, moving_plan: MovingPlan) -> None:
        self.tops = [max(top, 1) for top in region_heights(moving_plan.problem, moving_plan.layout)]
        layout, homes = moving_plan.layout, moving_plan.problem.home
        ends = [(c.source, c.target) for c in layout.copies if min(c.source, c.target) < 0]
        self.stored = {homes[layout.stays[max(pair)].buffer] for pair in ends}
        used = [any(stay.region == r for stay in moving_plan.layout.stays) for r in range(len(self.tops))]
        self.heights = [_BAND if there else _THIN for there in used]
        self.total = sum(self.heights) + _GAP * (len(self.heights) - 1)
        self.floors, above = [], self.total
        for height in self.heights:
            above -= height
            self.floors.append(above)
            above -= _GAP

    def y(self, region: int, offset: float) -> float:
        """The height of an address, in points above the plot's bottom."""
        room = self.heights[region] - (_STORED + 4 if region in self.stored else 0)
        return self.floors[region] + offset / self.tops[region] * room

    def home(self, region: int) -> tuple[float, float]:
        """The floor and the ceiling of the box of stored contents."""
        ceiling = self.floors[region] + self.heights[region] - 2
        return ceiling - _STORED, ceiling


def draw(moving_plan: MovingPlan) -> Sheet:
    """The map; must run inside `canvas.style()`. Cost: O(stays + copies)."""
    bands, steps = _Bands(moving_plan), max(len(moving_plan.ops), 1)
    texts = [text for number in range(len(moving_plan.problem.regions)) for text in _facts(moving_plan, number)]
    label = max(lettering.width(text, SMALL, bold=True) for text in texts)
    width = min(max(steps * _PER_STEP, _NARROWEST), _WIDEST)
    ticks = step_ticks(moving_plan.ops, width / steps)
    foot = _EDGE + _ROW + 8 + lettering.widest((text for _, text in ticks), SMALL)
    marks = lettering.widest((brief(top) for top in bands.tops), SMALL) + 8
    margins = Margins(_EDGE + label + 10, _EDGE + marks, 2 * _EDGE + TITLE + 4 * _ROW + 8, foot)
    sheet = canvas.sheet(margins, width, bands.total, steps, bands.total)
    _head(sheet, moving_plan)
    for number in range(len(moving_plan.problem.regions)):
        _region(sheet, moving_plan, bands, number)
        _draw_stored(sheet, moving_plan, bands, number)
    layout = moving_plan.layout
    moved = set(map(layout.copied, layout.copies))
    forms = lettering.forms(moving_plan.problem.problem.names)
    for stay in sorted(layout.stays, key=lambda stay: stay.buffer in moved):  # dark edges above the others
        _stay(sheet, moving_plan, bands, stay, forms[stay.buffer], moved=stay.buffer in moved)
    few = len(layout.copies) <= _FEW
    for number, copy in enumerate(layout.copies):
        _arrow(sheet, moving_plan, bands, copy, number, line=few or _is_large(moving_plan, copy))
    for step, text in ticks:
        axes.draw_tick(sheet, step, text, rotation=90)
    sheet.write_below("step and operator", va="baseline")
    return sheet


def _head(sheet: Sheet, moving_plan: MovingPlan) -> None:
    y = sheet.ceiling + sheet.margins.top - _EDGE - TITLE
    sheet.write(_EDGE, y, moving_plan.title, TITLE, weight="bold", va="baseline")
    run = moving_plan.simulated
    times = f"{milliseconds(run.seconds)} a run, {milliseconds(run.waiting)} of it waiting"
    copies = counted(len(moving_plan.layout.copies), "copy")
    facts = f"{times}  ·  {copies}, {human(run.copied)}"
    sheet.write(_EDGE, y - _ROW, facts, BODY, va="baseline")
    thin = brief(int(max(region_heights(moving_plan.problem, moving_plan.layout)) * _LARGE))
    small = "thin" if len(moving_plan.layout.copies) <= _FEW else "its ends alone"
    legend = (
        "box: a content in a memory; dark edge: it is copied; hatched: contents that are only copied from there",
        f"arrow: a copy, from its issue to the step that needs it; upright: between two steps; {small}: below {thin}",
    )
    for line, text in enumerate(legend, 2):
        sheet.write(_EDGE, y - line * _ROW, text, SMALL, color=MUTED, va="baseline")
    present = {kind for _, kind in moving_plan.owners}
    entries = [axes.Entry(kind, {"facecolor": COLOURS[kind], "edgecolor": MUTED, "linewidth": 0.4}) for kind in COLOURS]
    rows = axes.legend_rows([entry for entry in entries if entry.text in present], sheet.right)
    axes.draw_legend(sheet, y - 3 * _ROW, rows[:1])


def _region(sheet: Sheet, moving_plan: MovingPlan, bands: _Bands, number: int) -> None:
    floor = bands.floors[number]
    box = (0, floor, sheet.steps, floor + bands.heights[number])
    sheet.boxes([box], facecolor=FREE, edgecolor=FAINT, linewidth=0.5, zorder=0)
    if region_heights(moving_plan.problem, moving_plan.layout)[number]:
        for offset in (0, bands.tops[number]):
            y = sheet.margins.bottom + bands.y(number, offset)
            sheet.line((sheet.right, sheet.right + 3), (y, y), color=MUTED, linewidth=0.5)
            sheet.write(sheet.right + 5, y, brief(offset) if offset else "0", SMALL)
    x, y = sheet.margins.left - 6, sheet.margins.bottom + floor + bands.heights[number]
    name, used, size = _facts(moving_plan, number)
    sheet.write(x, y - 5, name, SMALL, weight="bold", ha="right")
    sheet.write(x, y - 16, used, SMALL, ha="right", color=MUTED)
    sheet.write(x, y - 26, size, SMALL, ha="right", color=MUTED)


def _facts(plan: MovingPlan, number: int) -> tuple[str, str, str]:
    """What stands beside a region."""
    region, used = plan.problem.regions[number], region_heights(plan.problem, plan.layout)[number]
    home = plan.problem.stored[number]
    kept = f"home of {brief(home)}" if home else "no stays"
    return region.name, f"{brief(used)} used" if used else kept, f"of {brief(region.size)}"


def _draw_stored(sheet: Sheet, plan: MovingPlan, bands: _Bands, number: int) -> None:
    """The box of contents that stand in a region and are only copied from there."""
    if number not in bands.stored:
        return
    low, high = bands.home(number)
    sheet.boxes([(0, low, sheet.steps, high)], zorder=2, **STORED)
    background = {"facecolor": STORED["facecolor"], "edgecolor": "none", "pad": 2.0}
    x, y = sheet.x(sheet.steps / 2), sheet.margins.bottom + (low + high) / 2
    sheet.write(
        x, y, f"stored here   {brief(plan.problem.stored[number])}", SMALL, ha="center", va="center", bbox=background
    )


def _stay(
    sheet: Sheet, moving_plan: MovingPlan, bands: _Bands, stay: Stay, forms: Sequence[str], *, moved: bool
) -> None:
    size = int(moving_plan.problem.problem.size[stay.buffer])
    low, high = bands.y(stay.region, stay.offset), bands.y(stay.region, stay.offset + size)
    colour = COLOURS[moving_plan.owners[stay.buffer][1]]
    edge: dict[str, Any] = {"edgecolor": INK, "linewidth": 1.0} if moved else {"edgecolor": MUTED, "linewidth": 0.4}
    if high - low < _OUTLINED:
        edge = {"linewidth": 0}
    sheet.boxes([(stay.start, low, stay.end, high)], facecolor=colour, zorder=2, **edge)
    if high - low < SMALL + 2:
        return
    room, nbytes = (stay.end - stay.start) * sheet.per_step - 4, brief(size).replace(".00", "")
    name = lettering.fitting((*(f"{form}   {nbytes}" for form in forms), *forms), room, SMALL)
    lines = [name] if nbytes in name or high - low < 2 * SMALL + 4 else [name, nbytes]
    lines = [text for text in lines if lettering.width(text, SMALL) <= room]
    left = sheet.x(stay.start) + min(_CLEAR, 2 + (room - lettering.widest(lines, SMALL)) / 2)
    middle = sheet.margins.bottom + (low + high) / 2 + (len(lines) - 1) * (SMALL + 1) / 2
    for line, text in enumerate(lines):
        sheet.write(left, middle - line * (SMALL + 1), text, SMALL)


def _is_large(plan: MovingPlan, copy: Copy) -> bool:
    """Whether a copy moves a large share of the fullest region."""
    size = int(plan.problem.problem.size[plan.layout.copied(copy)])
    return size >= max(*region_heights(plan.problem, plan.layout), 1) * _LARGE


def _arrow(sheet: Sheet, plan: MovingPlan, bands: _Bands, copy: Copy, number: int, *, line: bool) -> None:
    """From the middle of the source to that of the target, spread a little where several copies start at once.

    Without a `line` only its ends are drawn, below what is written in the boxes.
    """
    (x0, y0), (x1, y1) = _ends(plan, bands, copy)
    shift = number % 5 * _APART / sheet.per_step
    layout, buffer = plan.layout, plan.layout.copied(copy)
    ink, width = (INK, 0.8) if _is_large(plan, copy) else (MUTED, 0.35)
    style = {"arrowstyle": "-|>", "color": ink, "linewidth": width, "mutation_scale": 6, "shrinkA": 0, "shrinkB": 0}
    start, end = (x0 + shift, y0), (x1 + shift, y1)
    if line:
        sheet.axes.annotate("", xy=end, xytext=start, arrowprops=style, zorder=2.5, annotation_clip=False)
    else:
        floor = bands.y(layout.stays[copy.target].region, layout.stays[copy.target].offset) if copy.target >= 0 else y1
        x, y = sheet.x(end[0]), sheet.margins.bottom + floor + 1.5
        sheet.line((x,), (y,), marker="v" if y1 < y0 else "^", markersize=2.5, color=MUTED, markeredgewidth=0)
    x, y = sheet.x(x0 + shift), sheet.margins.bottom + y0
    dot = {"color": COLOURS[plan.owners[buffer][1]], "markeredgecolor": ink, "markeredgewidth": 0.5}
    sheet.line((x,), (y,), marker="o", markersize=3, **dot)


def _ends(moving_plan: MovingPlan, bands: _Bands, copy: Copy) -> Iterator[tuple[float, float]]:
    """Where an arrow starts and ends: in the middle of a stay, or of the box of what is stored in a region."""
    stays = moving_plan.layout.stays
    buffer = moving_plan.layout.copied(copy)
    for end, step in ((copy.source, copy.issued), (copy.target, copy.due)):
        if end < 0:
            yield step, sum(bands.home(moving_plan.problem.home[buffer])) / 2
        else:
            size = int(moving_plan.problem.problem.size[buffer])
            yield step, bands.y(stays[end].region, stays[end].offset + size / 2)

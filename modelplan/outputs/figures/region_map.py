"""The stacked map: one panel of addresses for each memory, all on one time axis.

psram  +---------------------------+   A buffer in a region is a rectangle: steps to the right, addresses
       |        weights            |   upwards. What nothing uses is drawn as a narrow band with its bytes
       /~~~~~~ 7.9 MiB free ~~~~~~~/   and marks of a broken scale, so that both ends can be seen.
       +---------------------------+
sram   |  A  |   B   |      C      |
       +---------------------------+--> step
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from modelplan.answers.region_layout import Stay
from modelplan.answers.region_plan import RegionPlan, RegionUse
from modelplan.outputs.figures import axes, canvas, lettering
from modelplan.outputs.figures.canvas import BODY, FREE, INK, LINE, MUTED, SMALL, TITLE, Boxes, Margins, Sheet
from modelplan.outputs.reports.region_report import duration
from modelplan.primitives.lazy_records import dataclass
from modelplan.primitives.units import brief, counted

#: Fills of what buffers are for, in the order of the legend.
COLOURS = {**{kind: axes.COLOURS[kind] for kind in ("input", "output", "activation", "state", "scratch")},
           "weights": "#d9bfa5"}  # fmt: skip
#: Weights that are stored in a region and used in another one.
STORED: dict[str, Any] = {"facecolor": "#f3eae0", "edgecolor": MUTED, "linewidth": 0.4, "hatch": "////"}
_STORED_WORDS = "weights copied from here"
_EDGE, _ROW, _LEFT, _RIGHT = 12.0, 14.0, 84.0, 20.0
_PLOT, _LEAST, _HEAD, _BAND = 420.0, 34.0, 18.0, 18.0
_NARROWEST, _WIDEST, _PER_STEP = 640.0, 1060.0, 20.0
_LONGEST_OP = 110.0
#: Rectangles that are thinner, in points, have no outline: it would hide them. Two shades take turns instead.
_SLIM = 2.0


@dataclass(frozen=True, slots=True)
class Panel:
    """Where one region stands in the plot, in points from its bottom: its offsets in up to two runs, a band between.

    `low` and `high` are the ends of the used runs as in `RegionUse`; `scale` points stand for a byte.
    """

    use: RegionUse
    bottom: float
    top: float
    scale: float
    band: float

    def y(self, offset: int) -> float:
        """The height of an offset, in points from the bottom of the plot."""
        first = min(self.use.low, offset)
        if offset <= self.use.low:
            return self.bottom + first * self.scale
        if offset < self.use.high:
            return self.bottom + self.use.low * self.scale + self.band / 2
        return self.bottom + self.use.low * self.scale + self.band + (offset - self.use.high) * self.scale


def panels(region_plan: RegionPlan) -> tuple[Panel, ...]:
    """The regions from the bottom up, the first lowest, each as high as its used bytes ask for."""
    used = [use.low + use.region.size - use.high for use in region_plan.uses]
    whole = max(sum(used), 1)
    stack, at = [], 0.0
    for use, size in zip(region_plan.uses, used, strict=True):
        band = _BAND if use.high > use.low else 0.0
        room = max(_PLOT * size / whole, _LEAST if size else 0.0)
        stack.append(Panel(use, at, at + room + band, room / size if size else 0.0, band))
        at += room + band + _HEAD
    return tuple(stack)


def rectangle(region_plan: RegionPlan, panel: Panel, stay: Stay) -> tuple[float, float, float, float]:
    """The rectangle of a stay: steps, and points from the bottom of the plot."""
    size = int(region_plan.problem.problem.size[stay.buffer])
    low = panel.y(stay.offset)
    return stay.start, low, stay.end, low + size * panel.scale


def stored_runs(region_plan: RegionPlan, number: int) -> list[tuple[int, int]]:
    """Offsets [low, high) of a region that hold weights which are copied to other regions before the first run.

    Only where all that lies in the region has its home there (flash); what operators read in place is left out.
    """
    use, homes, sizes = region_plan.uses[number], region_plan.problem.home, region_plan.problem.problem.size
    stays = [stay for stay in region_plan.layout.stays if stay.region == number]
    if not use.stored or any(homes[stay.buffer] != number for stay in stays):
        return []
    at = use.region.reserved if use.region.reserved_at == "start" else 0
    runs = []
    for low, high in sorted((stay.offset, stay.offset + int(sizes[stay.buffer])) for stay in stays):
        runs.append((at, low))
        at = max(at, high)
    return [(low, high) for low, high in (*runs, (at, use.low)) if low < high]


def draw(plan: RegionPlan) -> Sheet:
    """The stacked map of a plan for several memories; must run inside `canvas.style()`.

    Cost: O(stays).
    """
    stacked, steps = panels(plan), max(len(plan.ops), 1)
    width = min(max(steps * _PER_STEP, _NARROWEST), _WIDEST)
    ticks = step_ticks(plan.ops, width / steps)
    foot = _EDGE + _ROW + 8 + lettering.widest((text for _, text in ticks), SMALL)
    entries = [axes.Entry(kind, {"facecolor": COLOURS[kind], "edgecolor": MUTED, "linewidth": 0.4})
               for kind in COLOURS if any(kind == own for _, own in plan.owners)]  # fmt: skip
    stored = [stored_runs(plan, number) for number in range(len(stacked))]
    if any(stored):
        entries.append(axes.Entry(_STORED_WORDS, STORED))
    above = _EDGE + TITLE + 2 * _ROW + 10
    sheet = canvas.sheet(
        Margins(_LEFT, _RIGHT, above, foot), width, stacked[-1].top + _HEAD, steps, stacked[-1].top + _HEAD
    )
    sheet.axes.spines["left"].set_visible(False)
    forms = lettering.forms(plan.problem.problem.names)
    for number, panel in enumerate(stacked):
        _draw_stored(sheet, panel, stored[number])
        _draw_panel(sheet, plan, panel, [stay for stay in plan.layout.stays if stay.region == number], forms)
    _draw_head(sheet, plan, entries)
    for step, text in ticks:
        axes.draw_tick(sheet, step, text, rotation=90)
    sheet.write_below("step and operator" if any(plan.ops) else "step")
    return sheet


def _draw_head(sheet: Sheet, plan: RegionPlan, entries: Sequence[axes.Entry]) -> None:
    count = f"   {counted(len(plan.layout.stays), 'buffer')} in {counted(len(plan.problem.regions), 'memory')}"
    y, room = sheet.head(plan.title, count, "", 0.6)
    optimal = "proven optimal" if plan.layout.ended == "optimal" else f"lower bound {duration(plan.layout.bound)}"
    y -= _ROW
    sheet.write(_EDGE, y, f"memory time {duration(plan.seconds)} for each run  ·  {optimal}", BODY, va="baseline")
    axes.draw_legend(sheet, y - 4, axes.legend_rows(entries, room)[:1])


def _draw_panel(
    sheet: Sheet, region_plan: RegionPlan, panel: Panel, stays: Sequence[Stay], forms: Sequence[tuple[str, ...]]
) -> None:
    """One memory: its ground, its buffers, the band of what is free, addresses, and a line of figures above."""
    use, region = panel.use, panel.use.region
    sheet.boxes([(0, panel.bottom, sheet.steps, panel.top)], facecolor=FREE, edgecolor=MUTED, linewidth=0.4)
    for kind, colour in COLOURS.items():
        boxes = [rectangle(region_plan, panel, stay) for stay in stays if region_plan.owners[stay.buffer][1] == kind]
        corners: Boxes = np.array(sorted(boxes, key=lambda box: (box[1], box[0])), dtype=np.float64).reshape(-1, 4)
        corners = corners[corners[:, 3] > corners[:, 1]]
        slim = np.minimum((corners[:, 2] - corners[:, 0]) * sheet.per_step, corners[:, 3] - corners[:, 1]) < _SLIM
        for turn, shade in enumerate((colour, axes.darker(colour))):
            thin = corners[slim & (np.arange(len(corners)) % 2 == turn)]
            sheet.boxes(thin, facecolor=shade, edgecolor=shade, linewidth=0.1, zorder=2)
        sheet.boxes(corners[~slim], facecolor=colour, edgecolor=MUTED, linewidth=0.4, zorder=2)
    for stay in stays:
        _name(sheet, region_plan, panel, stay, forms[stay.buffer])
    if panel.band:
        middle = panel.bottom + use.low * panel.scale + panel.band / 2
        for x in (sheet.x(0), sheet.x(sheet.steps)):  # the band is lower than its bytes
            axes.draw_break(sheet, x, sheet.y(middle))
        text = f"{brief(use.free)} free"
        sheet.write(sheet.x(sheet.steps / 2), sheet.y(middle), text, SMALL, ha="center", va="center", color=MUTED)
    named: list[float] = []
    for offset in (0, use.high, use.low, region.size):
        y = sheet.y(panel.y(offset) if offset < region.size else panel.top)
        if all(abs(y - other) >= LINE for other in named):
            named.append(y)
            text = brief(offset).replace(".00", "") if region.base is None else f"{region.base + offset:#x}"
            sheet.line((_LEFT - 3, _LEFT), (y, y), color=MUTED, linewidth=0.5)
            sheet.write(_LEFT - 5, y, text, SMALL, ha="right")
    y = sheet.y(panel.top) + 4
    facts = f"  {region.kind}, {brief(region.size)}  ·  {duration(use.seconds)} of memory time"
    name = lettering.drawable(region.name)
    sheet.write(_LEFT, y, name, BODY, weight="bold", va="baseline")
    sheet.write(_LEFT + lettering.width(name, BODY, bold=True), y, facts, SMALL, color=INK, va="baseline")


def _draw_stored(sheet: Sheet, panel: Panel, runs: Sequence[tuple[int, int]]) -> None:
    """The weights that are copied from a region, with the bytes of the largest block where it has room."""
    if not runs:
        return
    boxes = [(0, panel.y(low), sheet.steps, panel.bottom + high * panel.scale) for low, high in runs]
    sheet.boxes(boxes, zorder=2, **STORED)
    low, high = max(runs, key=lambda run: run[1] - run[0])
    if (high - low) * panel.scale >= LINE:
        x, y = sheet.x(sheet.steps / 2), sheet.y(panel.y(low) + (high - low) * panel.scale / 2)
        background = {"facecolor": STORED["facecolor"], "edgecolor": "none", "pad": 2.0}
        sheet.write(x, y, f"{_STORED_WORDS}   {brief(high - low)}", SMALL, ha="center", va="center", bbox=background)


def _name(sheet: Sheet, region_plan: RegionPlan, panel: Panel, stay: Stay, forms: Sequence[str]) -> None:
    """The buffer's name with its bytes, or either, where its rectangle has the room."""
    x0, y0, x1, y1 = rectangle(region_plan, panel, stay)
    room, high = (x1 - x0) * sheet.per_step - 6, y1 - y0
    if high < LINE:
        return
    rows = region_plan.problem.problem
    size = brief(int(rows.size[stay.buffer])).replace(".00", "")
    text = lettering.fitting((*(f"{form}   {size}" for form in forms), *forms, size, forms[-1]), room, SMALL)
    if text:
        sheet.write(sheet.x((x0 + x1) / 2), sheet.y((y0 + y1) / 2), text, SMALL, ha="center", va="center")


def step_ticks(ops: Sequence[str], per_step: float) -> list[tuple[int, str]]:
    """Steps so far apart that upright words fit, with the words: the operator, where there is one, and the step."""
    steps = range(0, len(ops), axes.stride(per_step, LINE))
    words = ((s, lettering.drawable(f"{ops[s]}  {s}" if ops[s] else f"{s:,}")) for s in steps)
    return [(s, lettering.folded(text, _LONGEST_OP, SMALL)) for s, text in words]

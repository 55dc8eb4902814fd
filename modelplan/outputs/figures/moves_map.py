r"""Regions stacked on one time axis: where each content is in each step, and arrows where a copy carries it.

sram  | [a   ][c  ]  [a ]        A box is a stay; what moves has the colour of its buffer everywhere. An arrow leads
      |     \       ^            from the source to the target of a copy; it is slanted where the copy takes place
psram |      [a     ]            while operators run.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from modelplan.answers.moving_layout import MovingPlan
from modelplan.answers.region_layout import Copy, Stay
from modelplan.outputs.figures import canvas, lettering
from modelplan.outputs.figures.canvas import BODY, FAINT, FREE, INK, MUTED, SMALL, TITLE, WARNING, Margins, Sheet
from modelplan.outputs.figures.region_map import step_ticks
from modelplan.outputs.reports.moves_report import region_heights
from modelplan.primitives.units import brief, human, milliseconds

_EDGE, _ROW, _BAND, _GAP = 12.0, 14.0, 190.0, 26.0
#: Points of a step, and of the least and the largest plot.
_PER_STEP, _NARROWEST, _WIDEST = 36.0, 720.0, 1400.0
#: A copy of less than this share of the fullest region in use is a thin arrow.
_LARGE = 0.02
#: Points between arrows that start at the same step.
_APART = 1.8
#: Points of a region from which nothing is copied and in which little lies.
_THIN = 60.0
#: Points of height from which a stay has an outline: that of a thinner one would hide it.
_OUTLINED = 1.5
_STILL = "#c9d3da"
#: Colours of what moves, in turn.
_MOVING = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#8c6bb1", "#7f6000")


class _Bands:
    """Where each region is on the sheet: the first one on top."""

    def __init__(self, moving_plan: MovingPlan) -> None:
        self.tops = [max(top, 1) for top in region_heights(moving_plan)]
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
        return self.floors[region] + offset / self.tops[region] * self.heights[region]


def draw(moving_plan: MovingPlan) -> Sheet:
    """The map; must run inside `canvas.style()`. Cost: O(stays + copies)."""
    bands, steps = _Bands(moving_plan), max(len(moving_plan.ops), 1)
    texts = [text for number in range(len(moving_plan.problem.regions)) for text in _facts(moving_plan, number)]
    label = max(lettering.width(text, SMALL, bold=True) for text in texts)
    width = min(max(steps * _PER_STEP, _NARROWEST), _WIDEST)
    ticks = step_ticks(moving_plan.ops, width / steps)
    foot = _EDGE + _ROW + 8 + lettering.widest((text for _, text in ticks), SMALL)
    margins = Margins(_EDGE + label + 10, 2 * _EDGE, 2 * _EDGE + TITLE + 3 * _ROW + 8, foot)
    sheet = canvas.sheet(margins, width, bands.total, steps, bands.total)
    _head(sheet, moving_plan)
    for number in range(len(moving_plan.problem.regions)):
        _region(sheet, moving_plan, bands, number)
    colours = _colours(moving_plan)
    forms = lettering.forms(moving_plan.problem.problem.names)
    for stay in moving_plan.layout.stays:
        _stay(sheet, moving_plan, bands, stay, colours.get(stay.buffer, _STILL), forms[stay.buffer])
    for number, copy in enumerate(moving_plan.layout.copies):
        _arrow(sheet, moving_plan, bands, copy, colours, number)
    for step, text in ticks:
        x, y = sheet.x(step + 0.5), sheet.margins.bottom
        sheet.line((x, x), (y - 3, y), color=MUTED, linewidth=0.5)
        sheet.write(x, y - 6, text, SMALL, ha="center", va="top", rotation=90)
    middle = sheet.margins.left + width / 2
    sheet.write(middle, _EDGE, "step and operator", BODY, ha="center", va="baseline", color=MUTED)
    return sheet


def _head(sheet: Sheet, moving_plan: MovingPlan) -> None:
    y = sheet.ceiling + sheet.margins.top - _EDGE - TITLE
    sheet.write(_EDGE, y, moving_plan.title, TITLE, weight="bold", va="baseline")
    run = moving_plan.simulated
    times = f"{milliseconds(run.seconds)} a run, {milliseconds(run.waiting)} of it waiting"
    facts = f"{times}  ·  {len(moving_plan.layout.copies)} copies, {human(run.copied)}"
    sheet.write(_EDGE, y - _ROW, facts, BODY, va="baseline")
    thin = brief(int(max(region_heights(moving_plan)) * _LARGE))
    legend = (
        "box: a content in a memory; one colour: a content that is copied, in all memories; grey: one that stays",
        f"arrow: a copy, from its issue to the step that needs it; upright: between two steps; thin: below {thin}",
    )
    for line, text in enumerate(legend, 2):
        sheet.write(_EDGE, y - line * _ROW, text, SMALL, color=MUTED, va="baseline")


def _region(sheet: Sheet, moving_plan: MovingPlan, bands: _Bands, number: int) -> None:
    floor = bands.floors[number]
    box = np.array([[0, floor, sheet.steps, floor + bands.heights[number]]])
    sheet.boxes(box, facecolor=FREE, edgecolor=FAINT, linewidth=0.5, zorder=0)
    x, y = sheet.margins.left - 6, sheet.margins.bottom + floor + bands.heights[number]
    name, used, size = _facts(moving_plan, number)
    sheet.write(x, y - 5, name, SMALL, weight="bold", ha="right")
    sheet.write(x, y - 16, used, SMALL, ha="right", color=MUTED)
    sheet.write(x, y - 26, size, SMALL, ha="right", color=MUTED)


def _facts(plan: MovingPlan, number: int) -> tuple[str, str, str]:
    """What stands beside a region."""
    region, used = plan.problem.regions[number], region_heights(plan)[number]
    home = sum(int(size) for size, at in zip(plan.problem.problem.size, plan.problem.home, strict=True) if at == number)
    kept = f"home of {brief(home)}" if home else "no stays"
    return region.name, f"{brief(used)} used" if used else kept, f"of {brief(region.size)}"


def _colours(moving_plan: MovingPlan) -> dict[int, str]:
    """A colour for each buffer that is copied, in the order of the first copy."""
    stays = moving_plan.layout.stays
    moved = dict.fromkeys(stays[c.source if c.source >= 0 else c.target].buffer for c in moving_plan.layout.copies)
    return {buffer: _MOVING[i % len(_MOVING)] for i, buffer in enumerate(moved)}


def _stay(sheet: Sheet, moving_plan: MovingPlan, bands: _Bands, stay: Stay, colour: str, forms: Sequence[str]) -> None:
    size = int(moving_plan.problem.problem.size[stay.buffer])
    low, high = bands.y(stay.region, stay.offset), bands.y(stay.region, stay.offset + size)
    edge: dict[str, Any] = {"edgecolor": "white", "linewidth": 0.5} if high - low >= _OUTLINED else {"linewidth": 0}
    sheet.boxes(np.array([[stay.start, low, stay.end, high]]), facecolor=colour, zorder=2, **edge)
    if high - low < SMALL + 2:
        return
    room, nbytes = (stay.end - stay.start) * sheet.per_step - 4, brief(size).replace(".00", "")
    name = lettering.fitting((*(f"{form}   {nbytes}" for form in forms), *forms), room, SMALL)
    lines = [name] if nbytes in name or high - low < 2 * SMALL + 4 else [name, nbytes]
    ink = INK if colour in (_STILL, "#e69f00", "#56b4e9") else "white"
    middle = sheet.margins.bottom + (low + high) / 2 + (len(lines) - 1) * (SMALL + 1) / 2
    for line, text in enumerate(lines):
        if lettering.width(text, SMALL) <= room:
            sheet.write(sheet.x(stay.start) + 2, middle - line * (SMALL + 1), text, SMALL, color=ink)


def _arrow(sheet: Sheet, plan: MovingPlan, bands: _Bands, copy: Copy, colours: dict[int, str], number: int) -> None:
    """From the middle of the source to that of the target, spread a little where several copies start at once."""
    (x0, y0), (x1, y1) = _ends(plan, bands, copy)
    shift = number % 5 * _APART / sheet.per_step
    buffer = plan.layout.stays[copy.source if copy.source >= 0 else copy.target].buffer
    large = int(plan.problem.problem.size[buffer]) >= max(bands.tops) * _LARGE
    ink, width = (INK, 0.8) if large else (MUTED, 0.35)
    style = {"arrowstyle": "-|>", "color": ink, "linewidth": width, "mutation_scale": 6, "shrinkA": 0, "shrinkB": 0}
    start, end = (x0 + shift, y0), (x1 + shift, y1)
    sheet.axes.annotate("", xy=end, xytext=start, arrowprops=style, zorder=4, annotation_clip=False)
    x, y = sheet.x(x0 + shift), sheet.margins.bottom + y0
    dot = {"color": colours.get(buffer, WARNING), "markeredgecolor": ink, "markeredgewidth": 0.5}
    sheet.line((x,), (y,), marker="o", markersize=3, **dot)


def _ends(moving_plan: MovingPlan, bands: _Bands, copy: Copy) -> Iterator[tuple[float, float]]:
    """Where an arrow starts and ends: a home that is no stay is the middle of its region."""
    stays = moving_plan.layout.stays
    buffer = stays[copy.source if copy.source >= 0 else copy.target].buffer
    for end, step in ((copy.source, copy.issued), (copy.target, copy.due)):
        if end < 0:
            home = moving_plan.problem.home[buffer]
            yield step, bands.floors[home] + bands.heights[home] / 2
        else:
            size = int(moving_plan.problem.problem.size[buffer])
            yield step, bands.y(stays[end].region, stays[end].offset + size / 2)

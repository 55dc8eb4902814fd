"""The memory map: steps to the right, addresses upwards, one rectangle for each buffer, nothing drawn twice.

address ^   +-------+        A buffer alive in [start, end) at [offset, offset + size) is the rectangle
        |   |   B   |        between these lines; two of them that touch an area are a broken plan.
        |+--+---+---+--+     What lies above the capacity is hatched: it does not fit the memory.
        ||  A   |   C  |
        ++------+------+--> step
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from modelplan.outputs import axes, canvas, lettering
from modelplan.outputs.canvas import FREE, INK, MUTED, SMALL, WARNING, Boxes, Margins, Sheet
from modelplan.outputs.drawing import KINDS, Drawing, of_plan
from modelplan.outputs.units import brief
from modelplan.types import Plan

Column = npt.NDArray[np.float64]

_NARROWEST, _WIDEST = 620.0, 1060.0
_POINTS_PER_STEP = 17.0
_PLOT_HEIGHT = 400.0
_MOST_LABELS = 400
_PADDING = 2.5
_SLIM = 2.0


@dataclass(frozen=True, slots=True)
class Label:
    """Lines of text centred at (x, y) points, upright or turned by 90 degrees."""

    x: float
    y: float
    lines: tuple[str, ...]
    turned: bool


def svg(plan: Plan) -> bytes:
    """The memory map of `plan` as SVG."""
    return draw_svg(of_plan(plan))


def png(plan: Plan) -> bytes:
    """The memory map of `plan` as PNG."""
    return draw_png(of_plan(plan))


def draw_svg(drawing: Drawing) -> bytes:
    """The memory map of a drawing as SVG."""
    return canvas.svg(lambda: draw(drawing), drawing.made_by)


def draw_png(drawing: Drawing) -> bytes:
    """The memory map of a drawing as PNG."""
    return canvas.png(lambda: draw(drawing), drawing.made_by)


def draw(drawing: Drawing) -> Sheet:
    """The memory map of a drawing; must run inside `canvas.style()`.

    Cost: O(n log n), with at most 400 labels however many buffers there are.
    """
    entries = _legend(drawing)
    sheet = _sheet(drawing, entries)
    _draw_free(sheet, drawing)
    _draw_buffers(sheet, drawing)
    _draw_overflow(sheet, drawing)
    for label in labels(sheet, drawing):
        _write(sheet, label)
    axes.head(sheet, drawing, "memory map", entries)
    axes.byte_axis(sheet, drawing, "address")
    axes.step_axis(sheet, drawing)
    axes.draw_levels(sheet, axes.levels(drawing))
    axes.draw_peak(sheet, drawing)
    return sheet


def rectangles(drawing: Drawing) -> Boxes:
    """Rows (start, offset, end, offset + size), one for each buffer; buffers of no bytes have no area."""
    problem, low = drawing.problem, drawing.placement.offsets
    return np.stack([problem.start, low, problem.end, low + problem.size], axis=1).astype(np.float64)


def overflow(drawing: Drawing) -> Boxes:
    """The parts of the rectangles above the capacity."""
    boxes = rectangles(drawing)
    if drawing.problem.capacity is None:
        return boxes[:0]
    boxes = boxes[boxes[:, 3] > drawing.problem.capacity]
    boxes[:, 1] = np.maximum(boxes[:, 1], drawing.problem.capacity)
    return boxes[boxes[:, 3] > boxes[:, 1]]


def _sheet(drawing: Drawing, entries: list[axes.Entry]) -> Sheet:
    width = min(max(drawing.steps * _POINTS_PER_STEP, _NARROWEST), _WIDEST)
    left, right = axes.bytes_width(drawing), axes.levels_width(drawing)
    above = axes.head_height(drawing, entries, width + left + right - 24)
    margins = Margins(left, right, above, axes.foot_height(drawing, width / drawing.steps))
    return canvas.sheet(margins, width, _PLOT_HEIGHT, drawing.steps, axes.top(drawing))


def _legend(drawing: Drawing) -> list[axes.Entry]:
    present = np.unique(drawing.kinds)
    entries = [axes.kind_entry(KINDS[k]) for k in present]
    entries.append(axes.Entry("free", {"facecolor": FREE, "edgecolor": MUTED, "linewidth": 0.4}))
    if len(overflow(drawing)):
        style = {"facecolor": "none", "edgecolor": WARNING, "linewidth": 0.8, "hatch": "//////"}
        entries.append(axes.Entry("beyond the capacity", style))
    return entries


def _draw_free(sheet: Sheet, drawing: Drawing) -> None:
    sheet.boxes(np.array([[0, 0, drawing.steps, drawing.arena]], dtype=np.float64), facecolor=FREE, linewidth=0)


def _draw_buffers(sheet: Sheet, drawing: Drawing) -> None:
    """Outlined where the outline leaves something to see, else in a darker shade of their kind."""
    boxes = rectangles(drawing)
    shorter = np.minimum((boxes[:, 2] - boxes[:, 0]) * sheet.per_step, (boxes[:, 3] - boxes[:, 1]) * sheet.per_unit)
    dense = len(boxes) > canvas.DENSE
    for kind in np.unique(drawing.kinds):
        colour = axes.COLOURS[KINDS[kind]]
        chosen = (drawing.kinds == kind) & (drawing.problem.size > 0)
        slim, wide = boxes[chosen & (shorter < _SLIM)], boxes[chosen & (shorter >= _SLIM)]
        shade = axes.darker(colour)
        sheet.boxes(slim, facecolor=shade, edgecolor=axes.darker(shade), linewidth=0.1, rasterized=dense, zorder=2)
        sheet.boxes(wide, facecolor=colour, edgecolor=MUTED, linewidth=0.5, zorder=2)


def _draw_overflow(sheet: Sheet, drawing: Drawing) -> None:
    style = {"edgecolor": WARNING, "linewidth": 0.6, "zorder": 3}
    sheet.boxes(overflow(drawing), facecolor="#f7d9d3", hatch="//////", **style)


# Labels --------------------------------------------------------------------------------------------------------------


def labels(sheet: Sheet, drawing: Drawing) -> list[Label]:
    """Names, and sizes where there is room, for the largest rectangles that can hold them.

    A label keeps clear of the horizontal lines that cross its rectangle.
    """
    boxes = _writable(sheet, drawing)
    width, height = boxes[:, 2] - boxes[:, 0], boxes[:, 3] - boxes[:, 1]
    line = lettering.line_height(SMALL)
    holds = (np.minimum(width, height) >= line) & (np.maximum(width, height) >= 3 * line)
    largest = np.argsort(-(width * height), kind="stable")
    chosen = [int(i) for i in largest[holds[largest]][:_MOST_LABELS]]
    forms = lettering.forms(drawing.problem.names)
    return [label for i in chosen for label in _label(forms[i], int(drawing.problem.size[i]), *boxes[i].tolist())]


def _writable(sheet: Sheet, drawing: Drawing) -> Boxes:
    """For each buffer the largest part of its rectangle that no line of the figure crosses, in points."""
    boxes = rectangles(drawing)
    limit = np.inf if drawing.problem.capacity is None else drawing.problem.capacity
    top = np.maximum(np.minimum(boxes[:, 3], limit), boxes[:, 1])
    low, high = _clear(boxes[:, 1], top, drawing.lower_bound, drawing.lower_bound)
    start, end = _clear(boxes[:, 0], boxes[:, 2], drawing.peak_step, drawing.peak_step + 1)
    x, y = sheet.margins.left, sheet.margins.bottom
    per_step, per_unit = sheet.per_step, sheet.per_unit
    return np.stack([x + start * per_step, y + low * per_unit, x + end * per_step, y + high * per_unit], axis=1)


def _clear(low: Column, high: Column, cut_low: float, cut_high: float) -> tuple[Column, Column]:
    """The intervals, each cut down to its longer part outside [cut_low, cut_high] where it meets that."""
    crosses = (low < cut_high) & (cut_low < high) | (low < cut_low) & (cut_low < high)
    keep_low = crosses & (cut_low - low >= high - cut_high)
    return np.where(crosses & ~keep_low, cut_high, low), np.where(keep_low, cut_low, high)


def _label(forms: Sequence[str], bytes_: int, x0: float, y0: float, x1: float, y1: float) -> Iterator[Label]:
    """The label of a buffer in a box of points: level or turned, whichever keeps more of the name; or none."""
    width, height = x1 - x0 - 2 * _PADDING, y1 - y0 - 2 * _PADDING
    line = lettering.line_height(SMALL) - 2 * _PADDING
    level = lettering.fitting(forms, width, SMALL) if height >= line else ""
    turned = lettering.fitting(forms, height, SMALL) if width >= line else ""
    upright = len(level) >= len(turned) or level in forms
    text, along, across = (level, width, height) if upright else (turned, height, width)
    if text:
        size = brief(bytes_).replace(".00", "")
        both = across >= line + lettering.line_height(SMALL) and lettering.width(size, SMALL) <= along
        yield Label((x0 + x1) / 2, (y0 + y1) / 2, (text, size) if both else (text,), turned=not upright)


def _write(sheet: Sheet, label: Label) -> None:
    """Draws a label; the second line, a size, is quieter."""
    apart = lettering.line_height(SMALL)
    for row, text in enumerate(label.lines):
        shift = ((len(label.lines) - 1) / 2 - row) * apart
        x, y = (label.x - shift, label.y) if label.turned else (label.x, label.y + shift)
        colour = MUTED if row else INK
        angle = 90 if label.turned else 0
        sheet.write(x, y, text, SMALL, ha="center", va="center", rotation=angle, color=colour, zorder=4)

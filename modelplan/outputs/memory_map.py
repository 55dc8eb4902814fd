"""The memory map: steps to the right, addresses upwards, one rectangle for each buffer, nothing drawn twice.

address ^   +-------+        A buffer alive in [start, end) at [offset, offset + size) is the rectangle
        |   |   B   |        between these lines; two of them that touch an area are a broken plan.
        |+--+---+---+--+     What lies above the capacity is hatched: it does not fit the memory.
        ||  A   |   C  |        Where an allowed overlap lets two share bytes, their common area is striped.
        ++------+------+--> step
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from modelplan.outputs import axes, canvas, lettering
from modelplan.outputs.canvas import FREE, MUTED, SMALL, WARNING, Boxes, Sheet
from modelplan.outputs.drawing import Drawing, of_plan
from modelplan.outputs.units import brief
from modelplan.types import IntArray, Plan

Column = npt.NDArray[np.float64]

_PLOT_HEIGHT = 400.0
_MOST_LABELS = 400
_PADDING = 2.5
_SLIM = 2.0
_LINE = lettering.line_height(SMALL)
_MOST_LINES = 3
_LEAST_TELLING = 10
_STRIPED = {"facecolor": "none", "edgecolor": MUTED, "linewidth": 0.4, "hatch": "\\\\\\\\\\\\"}


@dataclass(frozen=True, slots=True)
class Label:
    """The lines of a name and a size, either may be missing, centred at (x, y) points, level or turned upright."""

    x: float
    y: float
    name: tuple[str, ...]
    size: str
    turned: bool


def svg(plan: Plan) -> bytes:
    """The memory map of `plan` as SVG."""
    return canvas.svg(draw, of_plan(plan))


def png(plan: Plan) -> bytes:
    """The memory map of `plan` as PNG."""
    return canvas.png(draw, of_plan(plan))


def draw(drawing: Drawing) -> Sheet:
    """The memory map of a drawing; must run inside `canvas.style()`.

    Cost: O(n log n), with at most 400 labels however many buffers there are.
    """
    entries = _legend(drawing)
    levels = [*axes.levels(drawing), *axes.bank_levels(drawing, _PLOT_HEIGHT)]
    sheet = axes.bytes_sheet(drawing, entries, _PLOT_HEIGHT, levels)
    _draw_free(sheet, drawing)
    _draw_buffers(sheet, drawing)
    sheet.boxes(common_areas(drawing)[1], zorder=3, **_STRIPED)
    _draw_overflow(sheet, drawing)
    for label in labels(sheet, drawing):
        _write(sheet, label)
    axes.head(sheet, drawing, "memory map", entries)
    axes.byte_axis(sheet, drawing, "address")
    axes.step_axis(sheet, drawing)
    axes.draw_levels(sheet, levels)
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


def common_areas(drawing: Drawing) -> tuple[IntArray, Boxes]:
    """Pairs of buffers that an allowed overlap lets share bytes, and for each pair the area that they share."""
    pairs, boxes = drawing.problem.overlaps[:, :2], rectangles(drawing)
    a, b = boxes[pairs[:, 0]], boxes[pairs[:, 1]]
    common = np.concatenate([np.maximum(a[:, :2], b[:, :2]), np.minimum(a[:, 2:], b[:, 2:])], axis=1)
    met = (common[:, 0] < common[:, 2]) & (common[:, 1] < common[:, 3])
    return pairs[met], common[met]


def _legend(drawing: Drawing) -> list[axes.Entry]:
    present = np.unique(drawing.kinds)
    entries = [axes.kind_entry(drawing, int(k)) for k in present]
    entries.append(axes.Entry("free", {"facecolor": FREE, "edgecolor": MUTED, "linewidth": 0.4}))
    if len(common_areas(drawing)[1]):
        entries.append(axes.Entry("written over what is still read", _STRIPED))
    if len(overflow(drawing)):
        style = {"facecolor": "none", "edgecolor": WARNING, "linewidth": 0.8, "hatch": "//////"}
        entries.append(axes.Entry("beyond the capacity", style))
    return entries


def _draw_free(sheet: Sheet, drawing: Drawing) -> None:
    sheet.boxes(np.array([[0, 0, drawing.steps, drawing.arena]], dtype=np.float64), facecolor=FREE, linewidth=0)


def _draw_buffers(sheet: Sheet, drawing: Drawing) -> None:
    """Outlined where the outline leaves something to see, else in two darker shades that take turns upwards."""
    boxes = rectangles(drawing)
    dense = len(boxes) > canvas.DENSE
    shorter = np.minimum((boxes[:, 2] - boxes[:, 0]) * sheet.per_step, (boxes[:, 3] - boxes[:, 1]) * sheet.per_unit)
    turn = _ranks(boxes) % 2
    for kind in np.unique(drawing.kinds):
        colour = axes.fill(drawing, int(kind))
        chosen = (drawing.kinds == kind) & (drawing.problem.size > 0)
        slim = chosen & (shorter < _SLIM)
        shade = axes.darker(colour)
        for parity, tint in enumerate((shade, axes.darker(shade))):
            found = boxes[slim & (turn == parity)]
            sheet.boxes(found, facecolor=tint, edgecolor=tint, linewidth=0.1, rasterized=dense, zorder=2)
        sheet.boxes(boxes[chosen & ~slim], facecolor=colour, edgecolor=MUTED, linewidth=0.5, zorder=2)


def _ranks(boxes: Boxes) -> IntArray:
    """For each box its place in the order of addresses, then of starts."""
    ranks = np.empty(len(boxes), dtype=np.int64)
    ranks[np.lexsort((boxes[:, 0], boxes[:, 1]))] = np.arange(len(boxes))
    return ranks


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
    holds = (np.minimum(width, height) >= _LINE) & (np.maximum(width, height) >= 2 * _LINE)
    largest = np.argsort(-(width * height), kind="stable")
    chosen = [int(i) for i in largest[holds[largest]][:_MOST_LABELS]]
    forms, sizes = lettering.forms(drawing.problem.names), drawing.problem.size
    found = (_label(forms[i], brief(int(sizes[i])).replace(".00", ""), *boxes[i].tolist()) for i in chosen)
    return [label for label in found if label]


def _writable(sheet: Sheet, drawing: Drawing) -> Boxes:
    """For each buffer the largest part of its rectangle that no line of the figure crosses, in points."""
    boxes = _alone(drawing)
    limit = np.inf if drawing.problem.capacity is None else drawing.problem.capacity
    top = np.maximum(np.minimum(boxes[:, 3], limit), boxes[:, 1])
    low, high = _clear(boxes[:, 1], top, drawing.lower_bound, drawing.lower_bound)
    peak, half = drawing.peak_step + 0.5, 1 / sheet.per_step
    start, end = _clear(boxes[:, 0], boxes[:, 2], peak - half, peak + half)
    x, y = sheet.margins.left, sheet.margins.bottom
    per_step, per_unit = sheet.per_step, sheet.per_unit
    return np.stack([x + start * per_step, y + low * per_unit, x + end * per_step, y + high * per_unit], axis=1)


def _alone(drawing: Drawing) -> Boxes:
    """For each buffer the largest part of its rectangle found that it shares with no other."""
    boxes = rectangles(drawing)
    for pair, (x0, y0, x1, y1) in zip(*common_areas(drawing), strict=True):
        for i in pair:
            a0, b0, a1, b1 = boxes[i]
            if a0 < x1 and x0 < a1 and b0 < y1 and y0 < b1:
                beside = [(a0, b0, x0, b1), (x1, b0, a1, b1), (a0, b0, a1, y0), (a0, y1, a1, b1)]
                boxes[i] = max(beside, key=lambda box: max(box[2] - box[0], 0) * max(box[3] - box[1], 0))
    boxes[:, 2:] = np.maximum(boxes[:, 2:], boxes[:, :2])
    return boxes


def _clear(low: Column, high: Column, cut_low: float, cut_high: float) -> tuple[Column, Column]:
    """The intervals, each cut down to its longer part outside [cut_low, cut_high] where it meets that."""
    crosses = (low < cut_high) & (cut_low < high) | (low < cut_low) & (cut_low < high)
    keep_low = crosses & (cut_low - low >= high - cut_high)
    return np.where(crosses & ~keep_low, cut_high, low), np.where(keep_low, cut_low, high)


def _label(forms: Sequence[str], size: str, x0: float, y0: float, x1: float, y1: float) -> Label | None:
    """The most telling label that a box of points can hold, level before turned; None when not even a size fits."""
    width, height = x1 - x0, y1 - y0
    for way in (_whole, _wrapped, _shortened, _nameless):
        for turned, (along, across) in ((False, (width, height)), (True, (height, width))):
            room, rows = along - 2 * _PADDING, int(across / _LINE)
            name = way(forms, room) if rows else None
            if name is not None and (words := _with_size(name, size, room, rows)):
                return Label((x0 + x1) / 2, (y0 + y1) / 2, *words, turned)
    return None


def _with_size(name: tuple[str, ...], size: str, room: float, rows: int) -> tuple[tuple[str, ...], str] | None:
    """The name with the size below it, else beside it, else alone; None when the name needs more rows."""
    if len(name) < rows and lettering.width(size, SMALL) <= room:
        return name, size
    beside = f"{name[0]}   {size}" if name else size
    if len(name) == rows == 1 and lettering.width(beside, SMALL) <= room:
        return (beside,), ""
    return (name, "") if 0 < len(name) <= rows else None


def _whole(forms: Sequence[str], room: float) -> tuple[str, ...] | None:
    return next(((form,) for form in forms if lettering.width(form, SMALL) <= room), None)


def _wrapped(forms: Sequence[str], room: float) -> tuple[str, ...] | None:
    lines = lettering.wrapped(forms[-1], room, SMALL)
    return lines if 0 < len(lines) <= _MOST_LINES else None


def _shortened(forms: Sequence[str], room: float) -> tuple[str, ...] | None:
    cut = lettering.folded(forms[-1], room, SMALL)
    return (cut,) if len(cut) >= _LEAST_TELLING else None


def _nameless(_forms: Sequence[str], _room: float) -> tuple[str, ...]:
    """No name: the caller adds the size."""
    return ()


def _write(sheet: Sheet, label: Label) -> None:
    lines = [*label.name, label.size] if label.size else label.name
    for row, text in enumerate(lines):
        shift = ((len(lines) - 1) / 2 - row) * _LINE
        x, y = (label.x - shift, label.y) if label.turned else (label.x, label.y + shift)
        angle = 90 if label.turned else 0
        sheet.write(x, y, text, SMALL, ha="center", va="center", rotation=angle, zorder=4)

"""The memory map: steps to the right, addresses upwards, one rectangle for each buffer, nothing drawn twice.

address ^   +-------+        A buffer alive in [start, end) at [offset, offset + size) is the rectangle
        |   |   B   |        between these lines; two of them that touch an area are a broken plan.
        |+--+---+---+--+     What lies above the capacity is hatched: it does not fit the memory.
        ||  A   |   C  |        Where an allowed overlap lets two share bytes, their common area is striped;
        ||      |      |        where a part lies in the whole that it is joined into, it is dotted.
        ++------+------+--> step
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import accumulate, pairwise

import numpy as np
import numpy.typing as npt

from modelplan.answers.drawing import Drawing, lost_areas
from modelplan.model import IntArray
from modelplan.outputs.figures import axes, canvas, lettering
from modelplan.outputs.figures.canvas import FREE, LINE, MUTED, SMALL, WARNING, Area, Boxes, Sheet
from modelplan.primitives.lazy_records import dataclass
from modelplan.primitives.units import brief

Column = npt.NDArray[np.float64]

_PLOT_HEIGHT = 400.0
_MOST_LABELS = 400
_PADDING = 2.5
_SLIM = 2.0
_MOST_LINES = 3
_LEAST_TELLING = 10
#: What is alive at the peak is named from this share of it up, at a distance of so many points where it must be.
_LEAST_SHARE = 0.2
_MOST_LEADERS, _LEADER_ROOM, _AWAY = 6, 150.0, 9.0
_BACKGROUND = {"facecolor": "white", "alpha": 0.9, "linewidth": 0, "pad": 1.0}
_STRIPED = {"facecolor": "none", "edgecolor": MUTED, "linewidth": 0.4, "hatch": "\\\\\\\\\\\\"}
#: Free bytes below the lower bound while a buffer lies above it.
_LOST = {"facecolor": "none", "edgecolor": WARNING, "linewidth": 0.0, "hatch": "xxxx", "alpha": 0.45}
#: What the runtime keeps beside what is planned.
_KEPT = {"facecolor": "#e4e4e0", "linewidth": 0}
#: Bytes that another model may use at any time.
_CLAIMED = {"facecolor": FREE, "edgecolor": "#c4c4bf", "linewidth": 0.0, "hatch": "////"}
#: A part of a join or split in the bytes of the whole.
_JOINED = {"facecolor": "none", "edgecolor": MUTED, "linewidth": 0.4, "hatch": "...."}


@dataclass(frozen=True, slots=True)
class Label:
    """The lines of a name and a size, either may be missing, centred at (x, y) points, level or turned upright."""

    x: float
    y: float
    name: tuple[str, ...]
    size: str
    turned: bool


def draw(drawing: Drawing) -> Sheet:
    """The memory map of a drawing; must run inside `canvas.style()`.

    Cost: O(n log n), with at most 400 labels however many buffers there are.
    """
    entries = _legend(drawing)
    levels = [*axes.levels(drawing), *axes.bank_levels(drawing, _PLOT_HEIGHT)]
    sheet = axes.bytes_sheet(drawing, entries, _PLOT_HEIGHT, levels)
    sheet.boxes([(0, 0, drawing.steps, drawing.planned)], facecolor=FREE, linewidth=0)
    sheet.boxes(kept_area(drawing), **_KEPT)
    sheet.boxes([(a, low, b, high) for a, b, low, high in drawing.claimed], zorder=1, **_CLAIMED)
    sheet.boxes([(a, low, b, high) for a, b, low, high in lost_areas(drawing)], zorder=1.5, **_LOST)
    _draw_buffers(sheet, drawing)
    sheet.boxes(common_areas(drawing)[1], zorder=3, **_STRIPED)
    sheet.boxes(joined_areas(drawing)[1], zorder=3, **_JOINED)
    style = {"edgecolor": WARNING, "linewidth": 0.6, "zorder": 3}
    sheet.boxes(overflow(drawing), facecolor="#f7d9d3", hatch="//////", **style)
    written, capacity = labels(sheet, drawing), drawing.problem.capacity
    led = leaders(sheet, drawing, written)
    written = [label for label in written if label.name or not any(_names(leader, label) for leader in led)]
    for label in written:
        _write(sheet, label, beyond=capacity is not None and label.y > sheet.y(capacity))
    for leader in led:
        x, y = leader.to
        sheet.line((leader.x, x), (leader.y, y), color=WARNING, linewidth=0.8, zorder=4)
        sheet.line((x,), (y,), marker="o", markersize=2.5, color=WARNING, markeredgewidth=0, zorder=4)
        sheet.write(leader.x, leader.y, leader.text, SMALL, ha="center", va="center", zorder=5, bbox=_BACKGROUND)
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
    """The parts of the rectangles above the capacity, and what the runtime keeps above it."""
    boxes, capacity = np.concatenate([rectangles(drawing), kept_area(drawing)]), drawing.problem.capacity
    if capacity is None:
        return boxes[:0]
    boxes = boxes[boxes[:, 3] > capacity]
    boxes[:, 1] = np.maximum(boxes[:, 1], capacity)
    return boxes[boxes[:, 3] > boxes[:, 1]]


def kept_area(drawing: Drawing) -> Boxes:
    """The rectangle of what the runtime keeps of the same memory, above all that is planned; none where it is 0."""
    whole = [[0, drawing.planned, drawing.steps, drawing.planned + drawing.kept]]
    return np.array(whole if drawing.kept else [], dtype=np.float64).reshape(-1, 4)


def common_areas(drawing: Drawing) -> tuple[IntArray, Boxes]:
    """Pairs of buffers that an allowed overlap lets share bytes, and for each pair the area that they share."""
    return _areas(drawing, drawing.problem.overlaps[:, :2])


def joined_areas(drawing: Drawing) -> tuple[IntArray, Boxes]:
    """Pairs of a part and the whole that it is joined into, and for each pair the area that they share."""
    return _areas(drawing, drawing.problem.meetings[:, :2])


def _areas(drawing: Drawing, pairs: IntArray) -> tuple[IntArray, Boxes]:
    """Of pairs of buffers those that share bytes while both are alive, and the area that each pair shares."""
    boxes = rectangles(drawing)
    a, b = boxes[pairs[:, 0]], boxes[pairs[:, 1]]
    common = np.concatenate([np.maximum(a[:, :2], b[:, :2]), np.minimum(a[:, 2:], b[:, 2:])], axis=1)
    met = (common[:, 0] < common[:, 2]) & (common[:, 1] < common[:, 3])
    return pairs[met], common[met]


def _legend(drawing: Drawing) -> list[axes.Entry]:
    present = np.unique(drawing.kinds)
    entries = [axes.kind_entry(drawing, int(k)) for k in present]
    if drawing.at_peak.any():
        entries.append(axes.Entry("alive at the peak", {"facecolor": "none", **canvas.AT_PEAK}))
    entries.append(axes.Entry("free", {"facecolor": FREE, "edgecolor": MUTED, "linewidth": 0.4}))
    if drawing.height > drawing.lower_bound and (step := _most_lost(drawing)) is not None:
        words = f"lost to fragmentation: {brief(drawing.height - drawing.lower_bound)}, most at step {step:,}"
        entries.append(axes.Entry(words, _LOST | {"linewidth": 0.4}))
    if drawing.kept:
        entries.append(axes.Entry("kept by the runtime", _KEPT | {"edgecolor": MUTED, "linewidth": 0.4}))
    if drawing.claimed:
        entries.append(axes.Entry("another model may use it at any time", _CLAIMED | {"linewidth": 0.4}))
    if len(common_areas(drawing)[1]):
        entries.append(axes.Entry("written over what is still read", _STRIPED))
    if len(joined_areas(drawing)[1]):
        entries.append(axes.Entry("a part in the bytes of the whole", _JOINED))
    if len(overflow(drawing)):
        style = {"facecolor": "none", "edgecolor": WARNING, "linewidth": 0.8, "hatch": "//////"}
        entries.append(axes.Entry("beyond the capacity", style))
    return entries


def _most_lost(drawing: Drawing) -> int | None:
    """The first step at which most bytes are free for want of a whole gap; None where none are."""
    change = Counter[int]()
    for start, end, low, high in lost_areas(drawing):
        change[start] += high - low
        change[end] -= high - low
    lost = accumulate(change[step] for step in sorted(change))
    _, step = max(zip(lost, sorted(change), strict=True), key=lambda row: (row[0], -row[1]), default=(0, None))
    return step


def _draw_buffers(sheet: Sheet, drawing: Drawing) -> None:
    """Outlined where the outline leaves something to see, else in two darker shades that take turns upwards."""
    boxes = rectangles(drawing)
    dense = len(boxes) > canvas.DENSE
    shorter = np.minimum((boxes[:, 2] - boxes[:, 0]) * sheet.per_step, (boxes[:, 3] - boxes[:, 1]) * sheet.per_unit)
    turn = np.argsort(np.lexsort((boxes[:, 0], boxes[:, 1]))) % 2  # of the places by address, then by start
    for kind in np.unique(drawing.kinds):
        colour = axes.fill(drawing, int(kind))
        chosen = (drawing.kinds == kind) & (drawing.problem.size > 0)
        slim = chosen & (shorter < _SLIM)
        shade = axes.darker(colour)
        for parity, tint in enumerate((shade, axes.darker(shade))):
            thin_boxes = boxes[slim & (turn == parity)]
            sheet.boxes(thin_boxes, facecolor=tint, edgecolor=tint, linewidth=0.1, rasterized=dense, zorder=2)
        sheet.boxes(boxes[chosen & ~slim], facecolor=colour, edgecolor=MUTED, linewidth=0.5, zorder=2)
    wide = drawing.at_peak & (drawing.problem.size > 0) & (shorter >= _SLIM)
    sheet.boxes(boxes[wide], facecolor="none", rasterized=dense, zorder=3.2, **canvas.AT_PEAK)


# Labels --------------------------------------------------------------------------------------------------------------


def labels(sheet: Sheet, drawing: Drawing) -> list[Label]:
    """Names, and sizes where there is room, for the largest rectangles that can hold them.

    A label keeps clear of the horizontal lines that cross its rectangle.
    """
    boxes = _writable(sheet, drawing)
    width, height = boxes[:, 2] - boxes[:, 0], boxes[:, 3] - boxes[:, 1]
    holds = (np.minimum(width, height) >= LINE) & (np.maximum(width, height) >= 2 * LINE)
    largest = np.argsort(-(width * height), kind="stable")
    chosen = [int(i) for i in largest[holds[largest]][:_MOST_LABELS]]
    forms, sizes = lettering.forms(drawing.problem.names), drawing.problem.size
    said, written = set[str](), list[Label]()
    for i in chosen:
        name = drawing.problem.names[i]
        label = _label(forms[i], brief(int(sizes[i])).replace(".00", ""), *boxes[i].tolist())
        if label and name not in said:  # of a value in many runs of rows the largest bears the name
            said.add(name)
            written.append(label)
    return written


def _writable(sheet: Sheet, drawing: Drawing) -> Boxes:
    """For each buffer the largest part of its rectangle that no line of the figure crosses, in points."""
    boxes = _alone(drawing)
    low, high = _clear(boxes[:, 1], boxes[:, 3], drawing.lower_bound)
    if drawing.problem.capacity is not None:
        low, high = _clear(low, high, drawing.problem.capacity)
    start, end = _between(boxes[:, 0], boxes[:, 2], axes.peak_marks(drawing), 1 / sheet.per_step)
    return _in_points(sheet, np.stack([start, low, end, high], axis=1))


def _in_points(sheet: Sheet, boxes: Boxes) -> Boxes:
    """Rectangles of steps and bytes in points of the sheet."""
    scale = np.array([sheet.per_step, sheet.per_unit] * 2)
    moved: Boxes = boxes * scale + np.array([sheet.margins.left, sheet.margins.bottom] * 2)
    return moved


def _alone(drawing: Drawing) -> Boxes:
    """For each buffer the largest part of its rectangle found that it shares with no other."""
    boxes = rectangles(drawing)
    shared = (*zip(*common_areas(drawing), strict=True), *zip(*joined_areas(drawing), strict=True))
    for pair, (x0, y0, x1, y1) in shared:
        for i in pair:
            a0, b0, a1, b1 = boxes[i]
            if a0 < x1 and x0 < a1 and b0 < y1 and y0 < b1:
                sides = [(a0, b0, x0, b1), (x1, b0, a1, b1), (a0, b0, a1, y0), (a0, y1, a1, b1)]
                boxes[i] = max(sides, key=lambda box: max(box[2] - box[0], 0) * max(box[3] - box[1], 0))
    boxes[:, 2:] = np.maximum(boxes[:, 2:], boxes[:, :2])
    return boxes


def _clear(low: Column, high: Column, cut: float) -> tuple[Column, Column]:
    """The intervals, each cut down to its longer part below or above `cut` where it holds that."""
    crosses = (low < cut) & (cut < high)
    keep_low = crosses & (cut - low >= high - cut)
    return np.where(crosses & ~keep_low, cut, low), np.where(keep_low, cut, high)


def _between(low: Column, high: Column, lines: Sequence[int], half: float) -> tuple[Column, Column]:
    """The intervals, each cut down to its longest part between the lines in the middle of these steps."""
    borders = [-np.inf, *(line + 0.5 for line in lines), np.inf]
    best_low, best_high = low, low
    for left, right in pairwise(borders):
        start, end = np.maximum(low, left + half), np.minimum(high, right - half)
        longer = end - start > best_high - best_low
        best_low, best_high = np.where(longer, start, best_low), np.where(longer, end, best_high)
    return best_low, best_high


def _label(forms: Sequence[str], size: str, x0: float, y0: float, x1: float, y1: float) -> Label | None:
    """The most telling label that a box of points can hold, level before turned; None when not even a size fits."""
    width, height = x1 - x0, y1 - y0
    for way in (_whole, _wrapped, _shortened, _nameless):
        for turned, (along, across) in ((False, (width, height)), (True, (height, width))):
            room, rows = along - 2 * _PADDING, int(across / LINE)
            name = way(forms, room) if rows else None
            if name is not None and (words := _with_size(name, size, room, rows)):
                return Label((x0 + x1) / 2, (y0 + y1) / 2, *words, turned)
    return None


def _with_size(name: tuple[str, ...], size: str, room: float, rows: int) -> tuple[tuple[str, ...], str] | None:
    """The name with the size below it, else beside it, else alone; None when the name needs more rows."""
    if len(name) < rows and lettering.width(size, SMALL) <= room:
        return name, size
    one_line = f"{name[0]}   {size}" if name else size
    if len(name) == rows == 1 and lettering.width(one_line, SMALL) <= room:
        return (one_line,), ""
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
    """Gives no name, so that the caller writes the size alone."""
    return ()


def _write(sheet: Sheet, label: Label, *, beyond: bool) -> None:
    """Writes a label; on a light ground where it stands `beyond` the capacity, which is hatched."""
    lines = [*label.name, label.size] if label.size else label.name
    background = {"bbox": _BACKGROUND} if beyond else {}
    for row, text in enumerate(lines):
        shift = ((len(lines) - 1) / 2 - row) * LINE
        x, y = (label.x - shift, label.y) if label.turned else (label.x, label.y + shift)
        angle = 90 if label.turned else 0
        sheet.write(x, y, text, SMALL, ha="center", va="center", rotation=angle, zorder=4, **background)


# Leaders -------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Leader:
    """A text on a ground of its own, its centre at (x, y) points, with a line to the rectangle that it names."""

    x: float
    y: float
    text: str
    to: tuple[float, float]


def leaders(sheet: Sheet, drawing: Drawing, written: Sequence[Label]) -> list[Leader]:
    """Names for the large buffers of the peak whose rectangles are too narrow for one.

    Each stands beside its rectangle where it touches no other text and no other rectangle; one that finds no such place
    is left out.
    """
    size, boxes = drawing.problem.size, rectangles(drawing)
    large = np.flatnonzero(drawing.at_peak & (size >= max(_LEAST_SHARE * drawing.peak, 1)))
    homes = _in_points(sheet, boxes)
    named = [label for label in written if label.name]
    bare = [i for i in large.tolist() if not any(_holds(homes[i], label.x, label.y) for label in named)]
    taken = [box for label in written for box in _extents(label)]
    placed_leaders: list[Leader] = []
    forms = lettering.forms(drawing.problem.names)
    for i in sorted(bare, key=lambda i: (-size[i], i))[:_MOST_LEADERS]:
        text = lettering.fitting(forms[i], _LEADER_ROOM, SMALL)
        text = f"{text}  {brief(int(size[i]))}" if text else brief(int(size[i]))
        spots = _spots(sheet, homes[i], lettering.width(text, SMALL) + 4)
        others = np.delete(homes, i, axis=0)
        free = next(
            (box for box in spots if not any(canvas.touch(box, other) for other in taken) and not _covers(box, others)),
            None,
        )
        if free is not None:
            taken.append(free)
            x, y = (free[0] + free[2]) / 2, (free[1] + free[3]) / 2
            placed_leaders.append(Leader(x, y, text, ((homes[i][0] + homes[i][2]) / 2, y)))
    return placed_leaders


def _covers(box: Area, homes: Boxes) -> bool:
    """Whether a text would lie over a rectangle."""
    x0, y0, x1, y1 = box
    return bool(((homes[:, 0] < x1) & (homes[:, 2] > x0) & (homes[:, 1] < y1) & (homes[:, 3] > y0)).any())


def _names(leader: Leader, label: Label) -> bool:
    """Whether a leader ends where a label stands, which says no more than it."""
    return abs(leader.to[0] - label.x) < _LEADER_ROOM / 2 and abs(leader.to[1] - label.y) < LINE


def _holds(home: Column, x: float, y: float) -> bool:
    return bool(home[0] <= x <= home[2] and home[1] <= y <= home[3])


def _extents(label: Label) -> Iterator[Area]:
    """The areas of a label's lines in points."""
    lines = [*label.name, label.size] if label.size else [*label.name]
    along = max(lettering.width(text, SMALL) for text in lines) / 2
    across = len(lines) * LINE / 2
    width, height = (across, along) if label.turned else (along, across)
    yield label.x - width, label.y - height, label.x + width, label.y + height


def _spots(sheet: Sheet, home: Column, width: float) -> Iterator[Area]:
    """Where a text of this width may stand beside a rectangle: right and left of its middle, then above and below."""
    x0, y0, x1, y1 = home.tolist()
    inside = sheet.margins.left + 2, sheet.right - 2
    for part in (0.5, 0.7, 0.3, 0.85, 0.15, 0.6, 0.4, 0.95, 0.05):
        y = y0 + part * (y1 - y0)
        for left in (x1 + _AWAY, x0 - _AWAY - width):
            if inside[0] <= left and left + width <= inside[1] and y0 + LINE <= y <= y1 - LINE:
                yield left, y - LINE / 2, left + width, y + LINE / 2

"""Which box of an operand a box of a result needs, by its access map: what the formulas for rows are compared with.

Interval and box are half-open. What is carried covers what was there; where an axis is alone in its group, or where all
axes before it have one place, it is no more than that.
"""

from __future__ import annotations

from modelplan.ops.access import Reads, Span
from modelplan.ops.access.other_extents import groups, strides
from modelplan.ops.access.spans import Shape

Interval = tuple[int, int]
Box = tuple[Interval, ...]


def needed(reads: Reads, result: Shape, shape: Shape, box: Box) -> Box:
    """The box of an operand of some shape that a box of the result reads; an empty one reads nothing.

    Nothing outside of it is read. Cost: O(extents of the box).
    """
    whole = tuple((0, extent) for extent in result)
    inside = carried(box if box != whole else whole, result, reads.result)
    reached = [_reached(span, extent, inside) for span, extent in zip(reads.spans, reads.source, strict=True)]
    if any(first >= behind for first, behind in reached):
        return tuple((0, 0) for _ in shape)
    return carried(tuple(reached), reads.source, shape)


def _reached(span: Span, extent: int, result: Box) -> Interval:
    start, end = result[span.axis] if span.axis >= 0 else (0, 1)
    if start >= end:
        return 0, 0
    places = span.places(extent, start, end)
    read = places.counts > 0
    return (int(places.first[read].min()), int(places.last[read].max()) + 1) if read.any() else (0, 0)


def rows(reads: Reads, result: Shape, shape: Shape, axis: int, start: int, end: int) -> Box:
    """The box of an operand that indices [start, end) along `axis` of the result read."""
    box = tuple((start, end) if place == axis else (0, extent) for place, extent in enumerate(result))
    return needed(reads, result, shape, box)


def carried(box: Box, shape: Shape, view: Shape) -> Box:
    """A box of `shape` as the least box of `view` that is known to hold it.

    Cost: O(axes).
    """
    intervals: list[Interval] = []
    for a, b, c, d in groups(shape, view):
        intervals += _within(box[a:b], shape[a:b], view[c:d])
    return tuple(intervals)


def _within(box: Box, shape: Shape, view: Shape) -> list[Interval]:
    """A box of one group of axes, as a box of the other's."""
    if shape == view:
        return list(box)
    if any(lo >= hi for lo, hi in box):
        return [(0, 0) for _ in view]
    steps = strides(shape)
    lo = sum(interval[0] * step for interval, step in zip(box, steps, strict=True))
    hi = sum((interval[1] - 1) * step for interval, step in zip(box, steps, strict=True)) + 1
    intervals: list[Interval] = []
    for rest in strides(view):
        first, behind = lo // rest, -(-hi // rest)
        intervals.append((first, behind))
        lo, hi = (lo - first * rest, hi - first * rest) if behind - first == 1 else (0, rest)
    return intervals

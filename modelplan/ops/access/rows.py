"""Which rows, columns and other places of the operands a range of places of a result needs."""

from __future__ import annotations

from modelplan.ops.access.spans import Reads, Shape, Span
from modelplan.ops.access.views import Box, Interval, carried


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


def row_axis(reads: Reads, result: Shape, shape: Shape, axis: int) -> int | None:
    """The axis of the operand along which other places are read for other indices along `axis` of the result.

    None where all indices read alike, or where they move along several axes.
    """
    extent = result[axis]
    ends = [rows(reads, result, shape, axis, 0, 1), rows(reads, result, shape, axis, extent - 1, extent)]
    moved = [place for place, (first, last) in enumerate(zip(*ends, strict=True)) if first != last]
    return moved[0] if len(moved) == 1 else None

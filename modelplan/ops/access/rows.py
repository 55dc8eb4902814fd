"""Which rows, columns and other places of an operand a row of a result reads."""

from math import prod
from typing import NamedTuple

from modelplan.ops.access.other_extents import groups
from modelplan.ops.access.spans import Reads, Shape, Span


class RowSpan(NamedTuple):
    """Which places along `axis` of an operand a row of a result reads: those that `span` says of the number of the row.

    Without an axis (-1) all rows read the same.
    """

    axis: int
    span: Span


#: All rows read alike.
ALIKE = RowSpan(-1, Span())


def row_span(reads: Reads, result: Shape, shape: Shape, axis: int) -> RowSpan | None:
    """How rows along `axis` of a result read an operand of some shape; other places of it may be read as a whole.

    None where rows read along several axes, or places that are not run after run.
    """
    seen = next(group for group in groups(result, reads.result) if group.a <= axis < group.b)
    alone = (seen.b - seen.a, seen.d - seen.c) == (1, 1)
    moved = {place for place in range(seen.c, seen.d) if alone or reads.result[place] > 1}
    spots = [spot for spot, span in enumerate(reads.spans) if span.axis in moved]
    if not spots or (result[axis] == 1 and not alone):
        return ALIKE
    outer = [spot for spot in spots if reads.spans[spot].axis == min(moved)]
    if len(outer) != 1:
        return None
    read = next(group for group in groups(reads.source, shape) if group.a <= outer[0] < group.b)
    if read.c == read.d:
        return ALIKE
    place = next((place for place in range(read.c, read.d) if shape[place] > 1), read.c)
    if prod(result[seen.a : axis]) != 1 or prod(reads.source[read.a : outer[0]]) != 1:
        return None
    through = _widened(Span(0), prod(result[axis + 1 : seen.b]), prod(reads.result[min(moved) + 1 : seen.d]))
    span = _composed(through, reads.spans[outer[0]]) if through else None
    inner = prod(reads.source[outer[0] + 1 : read.b]), prod(shape[place + 1 : read.d])
    widened = _widened(span, *inner) if span else None
    return RowSpan(place, widened) if widened else None


def _composed(first: Span, then: Span) -> Span | None:
    """The places that `then` reads of the places that `first` reads of the indices."""
    if first == Span(0):
        return then._replace(axis=0)
    if then.table or then.mul < 1 or (first.div > 1 and (then.mul, then.div) != (1, 1)):
        return None
    if first.div > 1:
        return first._replace(lo=first.lo + then.lo * first.div, hi=first.hi + then.hi * first.div)
    lo, hi = then.mul * first.lo + then.lo, then.mul * first.hi + then.hi
    return Span(0, lo, hi, mul=then.mul * first.mul, div=then.div, clamp=then.clamp)


def _widened(span: Span, inner: int, rest: int) -> Span | None:
    """A span over places of `inner` elements each as one over places of `rest` elements, which hold those."""
    if inner == rest:
        return span
    if inner % rest == 0 and span.div == 1 and not span.table and span.mul > 0:
        times = inner // rest
        return Span(0, span.lo * times, span.hi * times + times - 1, mul=span.mul * times, clamp=span.clamp)
    if rest % inner == 0 and not span.table and span.mul > 0:
        return span._replace(div=span.div * (rest // inner), step=1)
    return None

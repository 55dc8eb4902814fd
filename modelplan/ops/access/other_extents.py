"""Views: the elements of a tensor under other extents, in the same order; and where one stands in another.

Two shapes of as many elements fall into least *groups* of axes with equal products: what happens inside of one group
says nothing of the others.

    (1, 12, 5) and (3, 4, 5):  (1, 12) with (3, 4), (5) with (5)
"""

from collections.abc import Iterator, Sequence
from itertools import pairwise
from math import prod
from typing import NamedTuple

from modelplan.ops.access.spans import AccessMap, Shape


class Group(NamedTuple):
    """Axes [a, b) of one shape that have the elements of axes [c, d) of the other."""

    a: int
    b: int
    c: int
    d: int


def groups(first: Shape, second: Shape) -> Iterator[Group]:
    """The least groups of axes of two shapes, none of whose extents is 0, from the first axes to the last.

    Raises:
        ValueError: the shapes do not have as many elements.
    """
    if prod(first) != prod(second):
        raise ValueError(f"{first} and {second} are no views of each other")
    a = c = 0
    while a < len(first) or c < len(second):
        b, d = min(a + 1, len(first)), min(c + 1, len(second))
        here, there = prod(first[a:b]), prod(second[c:d])
        while here != there:
            if here < there:
                here, b = here * first[b], b + 1
            else:
                there, d = there * second[d], d + 1
        yield Group(a, b, c, d)
        a, c = b, d


def refined(first: Shape, second: Shape) -> Shape:
    """The view of both shapes with the most axes: a group that cannot be cut alike is one axis."""
    extents: list[int] = []
    for a, b, c, d in groups(first, second):
        cuts = sorted({prod(first[a:k]) for k in range(a, b + 1)} | {prod(second[c:k]) for k in range(c, d + 1)})
        alike = all(later % earlier == 0 for earlier, later in pairwise(cuts))
        parts = [later // earlier for earlier, later in pairwise(cuts)]
        extents += parts if alike and parts else [cuts[-1]]
    return tuple(extents)


def strides(shape: Sequence[int]) -> Shape:
    """How many elements further the next place of each axis is."""
    return tuple(prod(shape[axis + 1 :]) for axis in range(len(shape)))


def view_start(access: AccessMap, operand: int) -> int | None:
    """The element of an operand at which the result stands in it, unchanged and in one piece; None: it does not.

    Each element of the result is then one of the operand, as much further as in the result.
    """
    reads = access.of(operand)
    if not access.moves or reads is None or not all(span.single for span in reads.spans):
        return None
    steps, start = [0] * len(reads.result), 0
    for span, stride, extent in zip(reads.spans, strides(reads.source), reads.source, strict=True):
        last = span.lo + span.mul * (reads.result[span.axis] - 1 if span.axis >= 0 else 0)
        if not 0 <= min(span.lo, last) <= max(span.lo, last) < extent:
            return None
        start += span.lo * stride
        if span.axis >= 0:
            steps[span.axis] += span.mul * stride
    wanted = zip(steps, strides(reads.result), reads.result, strict=True)
    return start if all(step == stride for step, stride, extent in wanted if extent > 1) else None


def part_start(access: AccessMap, operand: int) -> int | None:
    """The element of the result from which an operand stands in it, unchanged and in one piece; None: it does not."""
    reads = access.of(operand)
    if not access.moves or reads is None or not all(span.single and span.mul == 1 for span in reads.spans):
        return None
    start, result = 0, strides(reads.result)
    for span, stride, extent in zip(reads.spans, strides(reads.source), reads.source, strict=True):
        first = -span.lo
        if extent > 1 and (span.axis < 0 or stride != result[span.axis]):
            return None
        if span.axis >= 0 and not 0 <= first <= reads.result[span.axis] - extent:
            return None
        start += first * result[span.axis] if span.axis >= 0 else 0
    return start

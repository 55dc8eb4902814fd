"""The access map of an operator: which elements of its operands each element of a result is made of.

An operand and the result are seen through *views*, other extents over the same elements in the same order. For each
axis of the operand's view a *span* says which places an index of the result's view reads along it; what is read is the
product of these places, a box. Windows, broadcasts, slices, joins and transpositions are spans; blocks, groups and
reshapes are spans between views.

Source: the indexing maps of MLIR's linalg and of xDSL, and the bounds inference of Halide (Ragan-Kelley et al., PLDI
2013, doi 10.1145/2491956.2462176), which have no windows with padding, or no views.
"""

from itertools import pairwise
from math import prod
from typing import NamedTuple

import numpy as np

from modelplan.model import IntArray
from modelplan.primitives.lazy_records import dataclass

Shape = tuple[int, ...]


class PlacesRead(NamedTuple):
    """For each index of a range: the first and last place that it reads inside of the operand, and how many."""

    first: IntArray
    last: IntArray
    counts: IntArray


class Span(NamedTuple):
    """Which places along one axis of an operand's view an index y of the result's view reads.

    They go from (mul * y + lo) // div to (mul * y + hi) // div, both read, every `step`-th. y counts along `axis` of
    the result's view; without one (-1) it is 0. Places outside of the operand are not read, with `clamp` its border is
    read in their stead. A `table` has first and last place of each index instead of the formula.
    """

    axis: int = -1
    lo: int = 0
    hi: int = 0
    mul: int = 1
    div: int = 1
    step: int = 1
    clamp: bool = False
    table: tuple[tuple[int, int], ...] = ()

    def places(self, extent: int, start: int, end: int) -> PlacesRead:
        """What indices [start, end) read of an axis of so many places. Cost: O(end - start)."""
        y = np.arange(start, end, dtype=np.int64) if self.axis >= 0 else np.zeros(1, np.int64)
        if self.table:
            first, last = np.array(self.table, np.int64).reshape(-1, 2)[y].T
        else:
            first, last = (self.mul * y + self.lo) // self.div, (self.mul * y + self.hi) // self.div
        if self.clamp:
            first, last = np.clip(first, 0, extent - 1), np.clip(last, 0, extent - 1)
        else:
            first = first + -(-np.maximum(-first, 0) // self.step) * self.step
            last = last - -(-np.maximum(last - extent + 1, 0) // self.step) * self.step
        return PlacesRead(first, last, np.maximum((last - first) // self.step + 1, 0))

    @property
    def single(self) -> bool:
        """Whether each index reads one place, in steps of whole places."""
        return not self.table and self.lo == self.hi and self.div == 1 and not self.clamp


@dataclass(frozen=True, slots=True)
class Reads:
    """What a result reads of one operand: a span for each axis of the operand's view.

    `source` and `result` are the views of operand and result, each with as many elements as the tensor. `exact`: what
    the spans say is read; else it may be less.
    """

    operand: int
    source: Shape
    result: Shape
    spans: tuple[Span, ...]
    exact: bool = True

    @property
    def elements(self) -> int:
        """How often elements of the operand are read for the whole result: once for each that a result is made of."""
        total = 1
        for axis, extent in enumerate(self.result):
            pairs = zip(self.spans, self.source, strict=True)  # each index that reads its own place alone reads one
            moved = [(s, places) for s, places in pairs if s.axis == axis and (s != Span(axis) or places < extent)]
            counts = [span.places(places, 0, extent).counts for span, places in moved]
            total *= int(np.prod(counts, axis=0).sum()) if counts else extent
        return total * self.fixed

    @property
    def fixed(self) -> int:
        """How many elements are read along the axes that no index of the result moves."""
        counts = (
            int(span.places(places, 0, 1).counts[0])
            for span, places in zip(self.spans, self.source, strict=True)
            if span.axis < 0
        )
        return prod(counts)


@dataclass(frozen=True, slots=True)
class AccessMap:
    """How one result of an operator reads the operands; one that is not named may be read whole for each element.

    `moves`: each element of the result is an element of one operand, or padding. `products` is the operand, weights or
    a second matrix, whose reads are the multiply-accumulates.
    """

    reads: tuple[Reads, ...]
    moves: bool = False
    products: int = -1

    def of(self, operand: int) -> Reads | None:
        """What is read of an operand, None where the map does not name it."""
        if 0 <= operand < len(self.reads) and self.reads[operand].operand == operand:
            return self.reads[operand]  # of thousands of operands each is asked for
        return next((reads for reads in self.reads if reads.operand == operand), None)


def same_padding(extent: int, results: int, reach: int, stride: int) -> int:
    """Places that the padding SAME adds on both sides together, so that windows over `reach` give so many results."""
    return max((results - 1) * stride + reach - extent, 0)


def whole(extent: int) -> Span:
    """All places for every index."""
    return Span(-1, 0, extent - 1)


def fixed(place: int) -> Span:
    """One place for every index."""
    return Span(-1, place, place)


def same(axis: int) -> Span:
    """The place of the index."""
    return Span(axis)


def shifted(axis: int, first: int, step: int = 1) -> Span:
    """The places from `first` on, `step` further for each index: slices, reversals, and what is padded or joined."""
    return Span(axis, first, first, mul=step)


def window(axis: int, reach: int, stride: int, before: int, dilation: int = 1) -> Span:
    """`reach` places, `dilation` apart, of a window that begins `before` places before the operand."""
    return Span(axis, -before, (reach - 1) * dilation - before, mul=stride, step=dilation)


def spread(axis: int, reach: int, stride: int, before: int) -> Span:
    """The places x with a tap in [0, reach) for which x * stride + tap - before is the index."""
    return Span(axis, before - reach + stride, before, div=stride)


def listed(axis: int, places: tuple[tuple[int, int], ...]) -> Span:
    """The first and the last place of each index; as a step where they are single places equally far apart."""
    firsts = [first for first, _ in places]
    steps = {b - a for a, b in pairwise(firsts)} or {1}
    if places and len(steps) == 1 and all(first == last for first, last in places):
        return shifted(axis, firsts[0], steps.pop())
    return Span(axis, table=places)

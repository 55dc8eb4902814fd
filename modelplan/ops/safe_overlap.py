"""The lead: by how many bytes an output must start before an operand so that no byte is overwritten before its read.

A kernel that finishes its output element by element, front to back, has written elements 0 to j - 1 when it reads for
element j. Let F(j) be the first element of the operand that is read for element j or any later one. Output elements
of w bytes and operand elements of v bytes then never collide if the output starts `lead` bytes before the operand
with

    j * w <= lead + F(j) * v    for every j,    so    lead = max over j of j * w - F(j) * v.

The functions below derive F from what an operator reads; each holds for kernels of that order only. Operators that
copy whole runs with memcpy count a run as one step, since memcpy must not overlap itself.
Source: the idea of Blacker et al., Efficient memory layout for DNN inference, arXiv 2010.01668.
"""

from itertools import product
from math import prod

import numpy as np

from modelplan.model import Graph, IntArray, Op, Tensor
from modelplan.ops.access.builders import Builder, ShapedOp
from modelplan.ops.access.other_extents import strides
from modelplan.ops.access.spans import AccessMap, Reads
from modelplan.ops.conditions import disjoint_windows, forward_slice, number, result, source, without_leading_ones
from modelplan.ops.op_facts import Lead
from modelplan.primitives.number_types import BITS

#: Pixels of an output beyond which nothing is derived: the arrays would take more than some hundred megabytes.
_MOST = 1 << 22

#: Axes of a map.
_MAP = 4


def widths(x: Tensor, y: Tensor) -> tuple[int, int] | None:
    """Bytes of an element of operand and output; None where one of them is no whole number of bytes."""
    a, b = BITS.get(x.dtype, 0), BITS.get(y.dtype, 0)
    return (a // 8, b // 8) if a and b and a % 8 == 0 == b % 8 else None


def pointwise(graph: Graph, op: Op, operand: int) -> int | None:
    """Element i of the output from element i of the operand, so F(j) = j: the lead is the growth of all but one."""
    x, y = source(graph, op, operand), result(graph, op)
    wide = widths(x, y) if x and y else None
    if not x or not y or not wide or without_leading_ones(x.shape) != without_leading_ones(y.shape):
        return None
    return max(0, (prod(y.shape) - 1) * (wide[1] - wide[0]))


def padded(graph: Graph, op: Op, operand: int) -> int | None:
    """The operand's elements in their order with padding between: at worst all padding comes first."""
    x, y = source(graph, op, operand), result(graph, op)
    fits = operand == 0 and x and y and x.dtype == y.dtype and BITS.get(x.dtype, 0) % 8 == 0
    return y.nbytes - x.nbytes if fits and x and y and 0 < x.nbytes <= y.nbytes else None


def sliced(graph: Graph, op: Op, operand: int) -> int | None:
    """Ascending elements of the operand, copied in runs: F(j) >= j, and a run more for memcpy."""
    x, y = source(graph, op), result(graph, op)
    if operand or not x or not y or len(x.shape) != len(y.shape) or not forward_slice(graph, op):
        return None
    wide = widths(x, y)
    whole = [axis for axis, (a, b) in enumerate(zip(x.shape, y.shape, strict=True)) if a != b]
    return wide[1] * prod(y.shape[whole[-1] if whole else 0 :]) if wide else None


def copied(graph: Graph, op: Op, operand: int) -> int | None:
    """Some of the operand's elements in their order, one at a time or in runs."""
    x, y = source(graph, op), result(graph, op)
    return None if operand or not x or not y or x.dtype != y.dtype or len(x.shape) != 1 else 0


def joined(graph: Graph, op: Op, operand: int) -> int | None:
    """A concatenation that copies one run of every operand in turn.

    Run r of the operand, n bytes long, ends at byte r * N + before + n of the output, whose rows have N bytes, and is
    read at byte r * n: with N >= n the last run asks for most.
    """
    x, y = source(graph, op, operand), result(graph, op)
    if not x or not y or x.dtype != y.dtype or BITS.get(x.dtype, 0) % 8 or len(x.shape) != len(y.shape):
        return None
    axis = number(op, "axis", 0) % max(len(y.shape), 1)
    rows = prod(y.shape[:axis])
    parts = [graph.tensors[t].nbytes if t >= 0 else 0 for t in op.inputs]
    if not rows or not x.nbytes or x.shape[:axis] != y.shape[:axis] or sum(parts) != y.nbytes:
        return None
    before = sum(parts[:operand]) // rows
    row, run = y.nbytes // rows, x.nbytes // rows
    return (rows - 1) * (row - run) + before + run


def apart(graph: Graph, op: Op, operand: int) -> int | None:
    """Windows that lie apart, whatever the order of the maps' axes."""
    return 0 if operand == 0 and disjoint_windows(graph, op) else None


def read_first(graph: Graph, op: Op, operand: int) -> int | None:
    """A transposed convolution of integers sums up in working memory and writes nothing before it has read it all."""
    x, y = source(graph, op, operand), result(graph, op)
    whole = operand == 2 and x and y and x.dtype == y.dtype and x.dtype in ("int8", "int16")
    return 0 if whole else None


def in_order(build: Builder) -> Lead:
    """The lead over operand 0, read as an access map says, of kernels that are plain nests of loops over a result."""

    def lead(graph: Graph, op: Op, operand: int) -> int | None:
        x, y = source(graph, op), result(graph, op)
        wide = widths(x, y) if x and y and not operand else None
        access = build(ShapedOp.of(graph, op)) if wide else None
        reads = access.of(0) if access else None
        return _front_to_back(reads, wide) if reads and wide else None

    return lead


def _front_to_back(reads: Reads, wide: tuple[int, int]) -> int | None:
    """The lead where an operand is read so for each element of a result in turn.

    Innermost axes of the result are *even* where its elements read alike or each a place farther on: within them the
    first or the last element asks for most. Cost: O(elements along the other axes).
    """
    rises = _even_rises(reads)
    outer = len(reads.result) - len(rises)
    first, inner = _first_elements(reads, outer), reads.result[outer:]
    if first is None or 0 in inner or 0 in reads.source:
        return None
    begin = np.arange(len(first), dtype=np.int64) * prod(inner)
    later = np.minimum.accumulate(first[::-1])[::-1][1:]
    worst = int(((begin[1:] - 1) * wide[1] - later * wide[0]).max(initial=0))
    for corner in product(*((0, extent - 1) for extent in inner)):
        element = sum(at * step for at, step in zip(corner, strides(inner), strict=True))
        farther = sum(at * rise for at, rise in zip(corner, rises, strict=True))
        worst = max(worst, int(((begin + element) * wide[1] - (first + farther) * wide[0]).max()))
    return max(worst, 0)


def _even_rises(reads: Reads) -> list[int]:
    """For each even axis, innermost of the result, how many elements farther on the next index reads."""
    rises: list[int] = []
    steps = strides(reads.source)
    for axis in reversed(range(1, len(reads.result))):
        moved = [
            (span, extent, step)
            for span, extent, step in zip(reads.spans, reads.source, steps, strict=True)
            if span.axis == axis
        ]
        last = reads.result[axis] - 1
        if not all(s.single and s.mul >= 0 <= s.lo and s.lo + s.mul * last < extent for s, extent, _ in moved):
            break
        rises.insert(0, sum(step * span.mul for span, _, step in moved))
    return rises


def _first_elements(reads: Reads, axes: int) -> IntArray | None:
    """The first element of the operand that each index along the first axes of the result may read, front to back.

    None where there are too many. Cost: O(indices).
    """
    outer = reads.result[:axes]
    if not 0 < prod(outer) <= _MOST:
        return None
    total = np.zeros(outer, np.int64)
    for span, extent, step in zip(reads.spans, reads.source, strides(reads.source), strict=True):
        places = span.places(extent, 0, reads.result[span.axis] if 0 <= span.axis < axes else 1)
        first = np.where(places.counts > 0, places.first, extent) * step
        total += first.reshape([-1 if axis == span.axis else 1 for axis in range(axes)]) if first.size > 1 else first[0]
    elements: IntArray = total.reshape(-1)
    return elements


def window_starts(access: AccessMap | None) -> IntArray | None:
    """The first element of operand 0, a map, that each pixel of the result may read; None where that is unknown."""
    reads = access.of(0) if access else None
    if reads is None or len(reads.result) < _MAP or 0 in reads.source:
        return None
    return _first_elements(reads, 3)


def window_padding(access: AccessMap | None, axis: int) -> int:
    """The rows (1) or columns (2) of padding before the first of operand 0, a map."""
    reads = access.of(0) if access else None
    return -reads.spans[axis].lo if reads is not None else 0

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

from __future__ import annotations

from math import prod

import numpy as np

from modelplan.model import Graph, IntArray, Op, Tensor
from modelplan.ops.conditions import disjoint_windows, forward_slice, number, result, source, without_leading_ones
from modelplan.primitives.dtypes import BITS

#: Pixels of an output beyond which nothing is derived: the arrays would take more than some hundred megabytes.
_MOST = 1 << 22

_STEPS = (("stride", ""), ("dilation", "_factor"))


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


def pooled(graph: Graph, op: Op, operand: int) -> int | None:
    """A window of each channel for itself, channels innermost (NHWC); elsewhere only windows that lie apart."""
    if graph.format == "onnx":
        return 0 if operand == 0 and disjoint_windows(graph, op) else None
    kernel = number(op, "filter_height", 0), number(op, "filter_width", 0)
    return _windows(graph, op, operand, kernel, by_channel=True)


def convolved(graph: Graph, op: Op, operand: int) -> int | None:
    """A window of all channels for each output channel (NHWC, as TFLite has it)."""
    weights = source(graph, op, 1)
    kernel = weights.shape[1:3] if weights and len(weights.shape) == 4 else ()
    return _windows(graph, op, operand, kernel, by_channel=False)


def convolved_by_channel(graph: Graph, op: Op, operand: int) -> int | None:
    """A window of one channel for some output channels each (NHWC, as TFLite has it)."""
    weights = source(graph, op, 1)
    kernel = weights.shape[1:3] if weights and len(weights.shape) == 4 else ()
    return _windows(graph, op, operand, kernel, by_channel=True)


def connected(graph: Graph, op: Op, operand: int) -> int | None:
    """Rows of one matrix against all of another: output row r from operand row r alone."""
    x, y, weights = source(graph, op), result(graph, op), source(graph, op, 1)
    wide = widths(x, y) if x and y else None
    if operand or not x or not y or not wide or not weights or len(weights.shape) != 2 or not all(weights.shape):
        return None
    outputs, inputs = weights.shape
    rows = prod(y.shape) // outputs
    if prod(x.shape) != rows * inputs or prod(y.shape) != rows * outputs or not 0 < rows <= _MOST:
        return None
    return _of_pixels(np.arange(rows, dtype=np.int64) * inputs, outputs, wide)


def read_first(graph: Graph, op: Op, operand: int) -> int | None:
    """A transposed convolution of integers sums up in working memory and writes nothing before it has read it all."""
    x, y = source(graph, op, operand), result(graph, op)
    whole = operand == 2 and x and y and x.dtype == y.dtype and x.dtype in ("int8", "int16")
    return 0 if whole else None


def _windows(graph: Graph, op: Op, operand: int, kernel: tuple[int, ...], *, by_channel: bool) -> int | None:
    """The lead over an NHWC operand of which each output pixel reads a window."""
    x, y = source(graph, op), result(graph, op)
    wide = widths(x, y) if x and y else None
    first = window_starts(graph, op, operand, kernel)
    if first is None or not x or not y or not wide:
        return None
    channels = x.shape[3]
    if by_channel and y.shape[3] % channels:
        return None
    if by_channel:
        return _of_channels(first, channels, y.shape[3] // channels, wide)
    return _of_pixels(first, y.shape[3], wide)


def window_starts(graph: Graph, op: Op, operand: int, kernel: tuple[int, ...]) -> IntArray | None:
    """The first element of NHWC operand 0 that each output pixel may read, front to back; None where that is unknown.

    Cost: O(pixels of the output).
    """
    x, y = source(graph, op), result(graph, op)
    if operand or not x or not y or len(x.shape) != 4 or len(y.shape) != 4 or len(kernel) != 2:
        return None
    batches, height, width, channels = x.shape
    if y.shape[0] != batches or not prod(x.shape) or not 0 < prod(y.shape[:3]) <= _MOST:
        return None
    steps = [number(op, f"{name}_{axis}{tail}", 1) for name, tail in _STEPS for axis in "hw"]
    if min(*kernel, *steps) < 1:
        return None
    rows = _first(op, "h", height, y.shape[1], kernel[0])
    columns = _first(op, "w", width, y.shape[2], kernel[1])
    images = np.arange(batches, dtype=np.int64) * height
    starts: IntArray = ((images[:, None, None] + rows[:, None]) * width + columns).reshape(-1) * channels
    return starts


def _first(op: Op, axis: str, extent: int, outputs: int, kernel: int) -> IntArray:
    """The first row or column that each output row or column may read, padding cut off."""
    stride = number(op, f"stride_{axis}", 1)
    pad = window_padding(op, axis, extent, outputs, kernel)
    starts: IntArray = np.maximum(np.arange(outputs, dtype=np.int64) * stride - pad, 0)
    return starts


def window_padding(op: Op, axis: str, extent: int, outputs: int, kernel: int) -> int:
    """The rows ("h") or columns ("w") of padding before the operand's first, for a window of `kernel` of them."""
    stride = number(op, f"stride_{axis}", 1)
    reach = (kernel - 1) * number(op, f"dilation_{axis}_factor", 1) + 1
    return max((outputs - 1) * stride + reach - extent, 0) // 2 if op.attribute("padding") == "SAME" else 0


def _of_pixels(first: IntArray, outputs: int, wide: tuple[int, int]) -> int:
    """The lead where pixel p has `outputs` elements that all read from element `first[p]` on."""
    pixels = np.arange(1, len(first) + 1, dtype=np.int64)
    later = np.minimum.accumulate(first[::-1])[::-1]
    return max(0, int(((pixels * outputs - 1) * wide[1] - later * wide[0]).max()))


def _of_channels(first: IntArray, channels: int, each: int, wide: tuple[int, int]) -> int:
    """The lead where element c of pixel p reads channel c // each from element `first[p]` on.

    F is the lesser of what this pixel still reads and what later pixels do; within a pixel both sides are linear
    from channel to channel, so the first and the last channel ask for most.
    """
    begin = np.arange(len(first), dtype=np.int64) * channels * each
    later = np.minimum.accumulate(first[::-1])[::-1][1:]
    worst = (begin[:-1] + channels * each - 1) * wide[1] - later * wide[0]
    ends = [(begin + (c + 1) * each - 1) * wide[1] - (first + c) * wide[0] for c in (0, channels - 1)]
    return max(0, int(worst.max(initial=0)), *(int(end.max()) for end in ends))

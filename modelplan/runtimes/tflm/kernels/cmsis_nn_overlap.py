"""The leads of CMSIS-NN's kernels: by how many bytes an output must start before an operand that it overlaps.

What a lead is stands in `ops/safe_overlap.py`. These kernels finish blocks of pixels: all of a block is read before it
is written (a *held* block, gathered in scratch first), or its last elements are written after its last read. The
kernel that CMSIS-NN takes, and so its blocks, depends on path, types and shapes. Operands of 32-bit floats go to TFLM's
own kernels. No lead is known for 4-bit weights, grouped convolutions and 8-bit TRANSPOSE_CONV, and with Helium for
depthwise convolutions that go over the whole map once for each 124 channels, nor for those of a single channel: their
scratch is as large as a stride says that TFLM has not set yet, so they may write beyond it.
Source: CMSIS-NN of June 2026, ConvolutionFunctions, PoolingFunctions, FullyConnectedFunctions, PadFunctions,
arm_nn_mat_mult_nt_t_s8.c; tflite-micro of August 2026, micro/kernels/cmsis_nn/*.cc.
"""

from collections.abc import Mapping
from functools import partial
from math import prod

import numpy as np

from modelplan.model import Graph, IntArray, Op, Tensor
from modelplan.ops import access_of, plain_lead, safe_overlap
from modelplan.ops.conditions import number, result, source
from modelplan.ops.op_facts import Lead
from modelplan.primitives.lazy_records import dataclass
from modelplan.runtimes.tflm.kernels.cmsis_nn import MVE_BLOCK, Path

_NARROW = frozenset({"int8", "int16"})


@dataclass(frozen=True, slots=True)
class _Blocks:
    """Blocks of pixels in their order: where each ends, and how many elements it writes after its last read.

    A count of -1 stands for all that the block writes: it is held.
    """

    ends: IntArray
    after: IntArray


def cmsis_nn_leads(path: Path) -> Mapping[str, Lead]:
    """The leads of operators that CMSIS-NN has kernels for, on one of its paths."""
    return {
        "CONV_2D": partial(_convolved, path),
        "DEPTHWISE_CONV_2D": partial(_convolved_by_channel, path),
        "FULLY_CONNECTED": partial(_connected, path),
        "AVERAGE_POOL_2D": partial(_averaged, path),
        "MAX_POOL_2D": _largest,
        "PAD": _padded,
        "PADV2": _padded,
        "TRANSPOSE_CONV": _transposed,
    }


def _convolved(path: Path, graph: Graph, op: Op, operand: int) -> int | None:
    x, y, weights = source(graph, op), result(graph, op), source(graph, op, 1)
    if not x or x.dtype not in _NARROW:
        return plain_lead(graph, op, operand)
    if not y or not weights or weights.dtype != "int8" or len(weights.shape) != 4 or weights.shape[3] != x.shape[-1]:
        return None
    return _of_windows(path, graph, op, operand, (weights.shape[1], weights.shape[2]))


def _of_windows(path: Path, graph: Graph, op: Op, operand: int, kernel: tuple[int, int]) -> int | None:
    """The lead of a convolution with `kernel` rows and columns of weights."""
    x, y = source(graph, op), result(graph, op)
    first = _starts(graph, op, operand)
    if first is None or not x or not y:
        return None
    if x.dtype == "int16":
        return _lead(first, _images(y, 4 if path.mve else 2), x, y)
    pads, strides, dilations = _steps(graph, op)
    if kernel == (1, 1) == dilations and pads == (0, 0):
        return _lead(first, _products(path, y, len(first) if strides == (1, 1) else y.shape[2]), x, y)
    row = x.shape[1] == 1 == kernel[0] and dilations[1] == 1 and strides[1] * x.shape[3] % 4 == 0
    if path.mve and row:
        return _lead(first, _row_blocks(x, y, kernel[1], pads[1], strides[1]), x, y)
    return _lead(first, _images(y, 4 if path.mve else 2), x, y)


def _starts(graph: Graph, op: Op, operand: int) -> IntArray | None:
    """The first element of operand 0 that each pixel of the result may read; of no other operand this is known."""
    return safe_overlap.window_starts(access_of(graph, op)) if not operand else None


def _steps(graph: Graph, op: Op) -> tuple[tuple[int, int], ...]:
    """Padding before the operand, strides and dilations, each along height and width."""
    pads = [safe_overlap.window_padding(access_of(graph, op), axis) for axis in (1, 2)]
    strides = [number(op, f"stride_{axis}", 1) for axis in "hw"]
    dilations = [number(op, f"dilation_{axis}_factor", 1) for axis in "hw"]
    return (pads[0], pads[1]), (strides[0], strides[1]), (dilations[0], dilations[1])


def _convolved_by_channel(path: Path, graph: Graph, op: Op, operand: int) -> int | None:
    x, y, weights = source(graph, op), result(graph, op), source(graph, op, 1)
    if not x or x.dtype not in _NARROW:
        return plain_lead(graph, op, operand)
    if not y or not weights or weights.dtype != "int8" or len(x.shape) != 4 or len(weights.shape) != 4:
        return None
    each, kernel = number(op, "depth_multiplier", 0), (weights.shape[1], weights.shape[2])
    if each * x.shape[3] != y.shape[3] or len(y.shape) != 4:
        return None
    if x.dtype == "int16":
        return plain_lead(graph, op, operand)
    if path.mve and x.shape[3] == 1 < y.shape[3]:
        return None
    pads, _, dilations = _steps(graph, op)
    if each == 1 == x.shape[0] and dilations == (1, 1):
        return _one_each(path, graph, op, operand, small=kernel == (3, 3) and max(pads) <= 1)
    return plain_lead(graph, op, operand)


def _one_each(path: Path, graph: Graph, op: Op, operand: int, *, small: bool) -> int | None:
    """The lead of a depthwise convolution of one image with channel multiplier 1."""
    x, y, weights = source(graph, op), result(graph, op), source(graph, op, 1)
    if not x or not y or not weights or (path.mve and x.shape[3] > MVE_BLOCK):
        return None
    if not path.dsp or (small and not path.mve):
        return plain_lead(graph, op, operand)
    first = _starts(graph, op, operand)
    return None if first is None else _lead(first, _images(y, 4 if path.mve else 1), x, y)


def _connected(path: Path, graph: Graph, op: Op, operand: int) -> int | None:
    x, y, weights = source(graph, op), result(graph, op), source(graph, op, 1)
    plain = plain_lead(graph, op, operand)
    if plain is None or not x or not y or not weights or x.dtype not in _NARROW:
        return plain
    if weights.dtype != "int8":
        return None
    outputs, inputs = weights.shape
    if x.dtype == "int16" or len(y.shape) <= 2 or inputs % 4:
        return plain
    rows = prod(y.shape) // outputs  # computed as a pointwise convolution of so many pixels
    flat = Tensor(y.name, (1, 1, rows, outputs), y.dtype)
    return _lead(np.arange(rows, dtype=np.int64) * inputs, _products(path, flat, rows), x, flat)


def _averaged(path: Path, graph: Graph, op: Op, operand: int) -> int | None:
    x, y = source(graph, op), result(graph, op)
    plain = plain_lead(graph, op, operand)
    if plain is None or not x or not y or x.dtype not in _NARROW or not path.dsp or path.mve:
        return plain
    first = _starts(graph, op, operand)
    return None if first is None else _lead(first, _images(y, 1), x, y)


def _largest(graph: Graph, op: Op, operand: int) -> int | None:
    """A pixel's output is begun as a copy of the window's first pixel, by memcpy, and then raised."""
    x, y = source(graph, op), result(graph, op)
    plain = plain_lead(graph, op, operand)
    if plain is None or not x or not y or x.dtype not in _NARROW:
        return plain
    first = _starts(graph, op, operand)
    return None if first is None else _lead(first, _repeated(y, prod(y.shape[:3]), 1, after=0), x, y)


def _padded(graph: Graph, op: Op, operand: int) -> int | None:
    """8-bit elements are copied in runs by memcpy: a row of pixels, or where channels are padded a pixel."""
    x, y = source(graph, op), result(graph, op)
    plain = safe_overlap.padded(graph, op, operand)
    if plain is None or not x or not y or x.dtype != "int8":
        return plain
    if len(x.shape) != len(y.shape) or not 1 <= len(x.shape) <= 4:
        return None
    return plain + prod(x.shape[-2:] if x.shape[-1] == y.shape[-1] else x.shape[-1:])


def _transposed(graph: Graph, op: Op, operand: int) -> int | None:
    x = source(graph, op, operand)
    return None if not x or x.dtype == "int8" else safe_overlap.read_first(graph, op, operand)


def _images(y: Tensor, block: int) -> _Blocks:
    """Held blocks of so many pixels, over the rows of each image."""
    return _repeated(y, y.shape[1] * y.shape[2], block, after=-1)


def _products(path: Path, y: Tensor, pixels: int) -> _Blocks:
    """Matrix products over `pixels` pixels each, which are read where they lie.

    With Helium four pixels are finished at a time and those left over one by one. Elsewhere all pixels are finished
    for two channels, then for the next two, and for a channel left over.
    """
    outputs = y.shape[3]
    if not path.mve:
        if outputs <= 2:
            return _repeated(y, pixels, outputs, after=-1)
        return _repeated(y, pixels, pixels, after=2 - outputs % 2)
    fours = np.arange(4, pixels + 1, 4, dtype=np.int64)
    ends = np.concatenate([fours, np.arange(len(fours) * 4 + 1, pixels + 1, dtype=np.int64)])
    return _tiled(y, pixels, ends, np.ones(len(ends), dtype=np.int64))


def _row_blocks(x: Tensor, y: Tensor, kernel: int, pad: int, stride: int) -> _Blocks:
    """Convolutions of images of one row with Helium: the ends, where padding is read, are held."""
    columns = y.shape[2]
    odd = ((columns - 1) * stride + kernel - x.shape[2]) % 2
    right = max(1, (pad + odd + stride - 1) // stride) if pad + odd else 0
    left = max(1, (pad + stride - 1) // stride) if pad else 0
    middle = max(columns - right - left, 0)
    if left + middle + right != columns:
        return _images(y, 4)
    sizes = np.array([left, *[4] * (middle // 4), *[1] * (middle % 4), right], dtype=np.int64)
    after = np.array([-1, *[1] * (middle // 4 + middle % 4), -1], dtype=np.int64)
    return _tiled(y, columns, np.cumsum(sizes)[sizes > 0], after[sizes > 0])


def _repeated(y: Tensor, pixels: int, block: int, *, after: int) -> _Blocks:
    """Blocks of `block` pixels and what is left over, the same in every `pixels` pixels."""
    ends = np.append(np.arange(block, pixels, block, dtype=np.int64), pixels)
    return _tiled(y, pixels, ends, np.full(len(ends), after, dtype=np.int64))


def _tiled(y: Tensor, pixels: int, ends: IntArray, after: IntArray) -> _Blocks:
    """The blocks of `pixels` pixels, repeated over the whole output."""
    times = prod(y.shape[:3]) // pixels
    begin = np.arange(times, dtype=np.int64)[:, None] * pixels
    return _Blocks((begin + ends).reshape(-1), np.tile(after, times))


def _lead(first: IntArray, blocks: _Blocks, x: Tensor, y: Tensor) -> int | None:
    """The lead where pixel p reads from element `first[p]` on, and later pixels from theirs."""
    wide = safe_overlap.widths(x, y)
    if not wide:
        return None
    begins = np.concatenate([[0], blocks.ends[:-1]])
    lowest = np.minimum.reduceat(first, begins)
    needed = np.minimum.accumulate(lowest[::-1])[::-1]
    held = blocks.after < 0
    written = np.where(held, begins, blocks.ends) * y.shape[3] - np.where(held, 0, blocks.after)
    return max(0, int((written * wide[1] - needed * wide[0]).max()))

"""How many bytes of each operand a kernel reads and writes, counted from its loops, as data for each file format.

A reference kernel reads an operand once for each turn of its innermost loop: a convolution reads an element of its
input for each window and output channel that need it, and a weight for each output pixel. Caches are not counted.
Where no rule stands here, an operator reads each operand once and writes each output once; of ONNX operators that is
all that is known, since the kernels of ONNX Runtime pack and block their operands in ways of their own.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import ceil, prod
from typing import NamedTuple

from modelplan.model import Graph, Op, Tensor
from modelplan.ops.conditions import number
from modelplan.ops.safe_overlap import window_padding
from modelplan.primitives.dtypes import BITS


class Amount(NamedTuple):
    """Bytes read and written."""

    read: int
    written: int


@dataclass(frozen=True, slots=True)
class Traffic:
    """What one run of an operator reads and writes: an amount for each input, each output and each scratch buffer."""

    inputs: tuple[Amount, ...]
    outputs: tuple[Amount, ...]
    scratch: tuple[Amount, ...]


#: Elements read of each input, in the order of operands; those beyond are read once. None: the rule does not apply.
Reads = Callable[[Graph, Op], tuple[int, ...] | None]


@dataclass(frozen=True, slots=True)
class Rule:
    """How a kernel reads; `source` is where its loops stand, in TFLM below lite/kernels/internal/reference."""

    reads: Reads
    source: str


def _shapes(graph: Graph, op: Op, *operands: int) -> list[tuple[int, ...]]:
    """The shapes of some operands and of output 0 behind them; an absent operand has none."""
    tensors = [op.inputs[i] if i < len(op.inputs) else -1 for i in operands] + [*op.outputs[:1]]
    return [graph.tensors[t].shape if t >= 0 else () for t in tensors]


def _taps(op: Op, rows: int, made: int, reach: int, axis: str) -> int:
    """Positions of all windows along an axis that lie inside of the operand: what is outside is skipped."""
    stride, dilation = number(op, f"stride_{axis}", 1), number(op, f"dilation_{axis}_factor", 1)
    before = window_padding(op, axis, rows, made, reach)
    first = [ceil((before - at * stride) / dilation) for at in range(made)]
    behind = [ceil((rows + before - at * stride) / dilation) for at in range(made)]
    return sum(max(min(reach, b) - max(0, a), 0) for a, b in zip(first, behind, strict=True))


def _windows(graph: Graph, op: Op, kernel: tuple[int, int]) -> int | None:
    """Positions inside of the image of all windows of an NHWC operator."""
    x, y = _shapes(graph, op, 0)
    if len(x) != 4 or len(y) != 4:
        return None
    taps = [_taps(op, x[i], y[i], kernel[i - 1], "hw"[i - 1]) for i in (1, 2)]
    return y[0] * taps[0] * taps[1]


def _convolved(graph: Graph, op: Op) -> tuple[int, ...] | None:
    """For each output pixel, output channel, position of the window and input channel: one of each."""
    w, y = _shapes(graph, op, 1)
    found = _windows(graph, op, (w[1], w[2])) if len(w) == 4 else None
    return None if found is None else (found * w[3] * y[3], found * w[3] * y[3], prod(y))


def _convolved_by_channel(graph: Graph, op: Op) -> tuple[int, ...] | None:
    w, y = _shapes(graph, op, 1)
    found = _windows(graph, op, (w[1], w[2])) if len(w) == 4 else None
    return None if found is None else (found * y[3], found * y[3], prod(y))


def _transposed(graph: Graph, op: Op) -> tuple[int, ...] | None:
    """For each input element, position of the window and output channel: one of each; operand 0 is a shape."""
    w, x, y = _shapes(graph, op, 1, 2)
    if len(w) != 4 or len(x) != 4:
        return None
    work = prod(x) * prod(w[:3])
    return prod(_shapes(graph, op, 0)[0]), work, work, prod(y)


def _connected(graph: Graph, op: Op) -> tuple[int, ...] | None:
    w, y = _shapes(graph, op, 1)
    return (prod(y) * w[-1], prod(y) * w[-1], prod(y)) if w else None


def _batched(graph: Graph, op: Op) -> tuple[int, ...] | None:
    x, y = _shapes(graph, op, 0)
    return (prod(y) * x[-2 if op.attribute("adj_x") else -1],) * 2 if len(x) > 1 else None


def _pooled(graph: Graph, op: Op) -> tuple[int, ...] | None:
    found = _windows(graph, op, (number(op, "filter_height", 1), number(op, "filter_width", 1)))
    return None if found is None else (found * _shapes(graph, op)[0][3],)


def _times(count: int) -> Reads:
    """A rule that reads each element of operand 0 this many times."""
    return lambda graph, op: (count * prod(_shapes(graph, op, 0)[0]),)


def _outputs(count: int = 1) -> Reads:
    """A rule that reads this many elements of operand 0 for each output element."""
    return lambda graph, op: (count * prod(_shapes(graph, op)[0]),)


def _each_output(graph: Graph, op: Op) -> tuple[int, ...]:
    """An element of each operand for each output element: what is broadcast is read again."""
    return (prod(_shapes(graph, op)[0]),) * len(op.inputs)


def _filtered(graph: Graph, op: Op) -> tuple[int, ...] | None:
    """SVDF: the input for each filter, features once, times once, state moved by one column and then multiplied."""
    x, features = _shapes(graph, op, 0, 1)[:2]
    if len(features) != 2 or len(x) != 2:
        return None
    state = prod(graph.tensors[op.inputs[4]].shape) if len(op.inputs) > 4 and op.inputs[4] >= 0 else 0
    times = prod(_shapes(graph, op, 2)[0])
    return x[0] * prod(features), x[0] * prod(features), x[0] * times, x[0] * features[0], 2 * state


_BROADCAST = ("ADD", "SUB", "MUL", "DIV", "MAXIMUM", "MINIMUM", "SQUARED_DIFFERENCE", "FLOOR_DIV", "FLOOR_MOD",
              "LESS", "LESS_EQUAL", "GREATER", "GREATER_EQUAL", "EQUAL", "NOT_EQUAL", "LOGICAL_AND", "LOGICAL_OR",
              "SELECT_V2", "PRELU")  # fmt: skip
_PICKED = ("SLICE", "STRIDED_SLICE", "GATHER", "GATHER_ND", "EMBEDDING_LOOKUP", "RESIZE_NEAREST_NEIGHBOR",
           "BROADCAST_TO")  # fmt: skip

#: How TFLM's reference kernels read.
TFLITE: dict[str, Rule] = {
    "CONV_2D": Rule(_convolved, "integer_ops/conv.h, conv.h"),
    "DEPTHWISE_CONV_2D": Rule(_convolved_by_channel, "integer_ops/depthwise_conv.h, depthwiseconv_float.h"),
    "TRANSPOSE_CONV": Rule(_transposed, "integer_ops/transpose_conv.h, transpose_conv.h"),
    "FULLY_CONNECTED": Rule(_connected, "integer_ops/fully_connected.h, fully_connected.h"),
    "BATCH_MATMUL": Rule(_batched, "batch_matmul.h"),
    "AVERAGE_POOL_2D": Rule(_pooled, "integer_ops/pooling.h, pooling.h"),
    "MAX_POOL_2D": Rule(_pooled, "integer_ops/pooling.h, pooling.h"),
    "SOFTMAX": Rule(_times(3), "softmax.h: the maximum, the sum, the quotient"),
    "LOG_SOFTMAX": Rule(_times(3), "log_softmax.h: the maximum, the sum, the difference"),
    "L2_NORMALIZATION": Rule(_times(2), "l2normalization.h: the norm, the quotient"),
    "RESIZE_BILINEAR": Rule(_outputs(4), "resize_bilinear.h: four neighbours"),
    "SVDF": Rule(_filtered, "micro/kernels/svdf_common.cc"),
    **{kind: Rule(_each_output, "broadcast_loop.h and the operator's own header") for kind in _BROADCAST},
    **{kind: Rule(_outputs(), "the operator's own header: what is taken, once") for kind in _PICKED},
}
TABLES: dict[str, dict[str, Rule]] = {"tflite": TFLITE, "onnx": {}}


def traffic_of(graph: Graph, op: Op) -> Traffic:
    """What a run of `op` reads and writes, in bytes of each operand; scratch is written and read once.

    A variable that an operator reads is written once too.
    """
    rule = TABLES[graph.format].get(op.kind)
    elements = (rule.reads(graph, op) if rule else None) or ()
    inputs = []
    for place, t in enumerate(op.inputs):
        if t < 0:
            inputs.append(Amount(0, 0))
            continue
        tensor = graph.tensors[t]
        read = _bytes(tensor, elements[place]) if place < len(elements) else _whole(tensor)
        inputs.append(Amount(read, tensor.nbytes if tensor.kind == "state" else 0))
    outputs = [graph.tensors[t].nbytes if t >= 0 else 0 for t in op.outputs]
    return Traffic(
        tuple(inputs),
        tuple(Amount(0, size) for size in outputs),
        tuple(Amount(size, size) for size in op.scratch),
    )


def _bytes(tensor: Tensor, elements: int) -> int:
    """The bytes of so many elements; of types without a width the whole tensor."""
    bits = BITS.get(tensor.dtype, 0)
    return -(-elements * bits // 8) if bits else _whole(tensor)


def _whole(tensor: Tensor) -> int:
    return tensor.nbytes if tensor.stored is None else tensor.stored

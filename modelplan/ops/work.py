"""How often operators multiply and read, counted from the loops of their kernels: rules of the rows in the tables.

A reference kernel reads an operand once for each turn of its innermost loop: a convolution reads an element of its
input for each window and output channel that need it, and a weight for each output pixel. Caches are not counted.
"""

from __future__ import annotations

from math import ceil, prod

from modelplan.model import Graph, Op
from modelplan.ops.conditions import number
from modelplan.ops.op_facts import Count, KernelReads, Reads
from modelplan.ops.safe_overlap import window_padding


def filter_macs(weights: int) -> Count:
    """Weights [out, ...]: all that one output channel reads."""
    return lambda graph, op: prod(graph.tensors[op.inputs[weights]].shape[1:])


def depthwise_macs(graph: Graph, op: Op) -> int:
    """The window of one channel."""
    return prod(graph.tensors[op.inputs[1]].shape[1:3])


def product_macs(operand: int) -> Count:
    """The extent of an operand along its last axis, over which a matrix product sums."""
    return lambda graph, op: graph.tensors[op.inputs[operand]].shape[-1]


def batched_macs(graph: Graph, op: Op) -> int:
    """The extent over which a BATCH_MATMUL sums."""
    return graph.tensors[op.inputs[0]].shape[-2 if op.attribute("adj_x") else -1]


def gemm_macs(graph: Graph, op: Op) -> int:
    """The extent over which a Gemm sums."""
    return graph.tensors[op.inputs[0]].shape[0 if number(op, "transA", 0) else 1]


def transposed_macs(graph: Graph, op: Op) -> int:
    """Weights [in, out / group, ...] meet every input element; as a share of one output element, rounded up."""
    work = prod(graph.tensors[op.inputs[0]].shape) * prod(graph.tensors[op.inputs[1]].shape[1:])
    return -(-work // max(prod(graph.tensors[op.outputs[0]].shape), 1))


def _shapes(graph: Graph, op: Op, *operands: int) -> list[tuple[int, ...]]:
    """The shapes of some operands and of output 0 behind them; an absent operand has none."""
    tensors = [op.inputs[i] if i < len(op.inputs) else -1 for i in operands] + [*op.outputs[:1]]
    return [graph.tensors[t].shape if t >= 0 else () for t in tensors]


def _taps(op: Op, rows: int, outputs: int, reach: int, axis: str) -> int:
    """Positions of all windows along an axis that lie inside of the operand: what is outside is skipped."""
    stride, dilation = number(op, f"stride_{axis}", 1), number(op, f"dilation_{axis}_factor", 1)
    before = window_padding(op, axis, rows, outputs, reach)
    first = [ceil((before - at * stride) / dilation) for at in range(outputs)]
    behind = [ceil((rows + before - at * stride) / dilation) for at in range(outputs)]
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
    positions = _windows(graph, op, (w[1], w[2])) if len(w) == 4 else None
    return None if positions is None else (positions * w[3] * y[3], positions * w[3] * y[3], prod(y))


def _convolved_by_channel(graph: Graph, op: Op) -> tuple[int, ...] | None:
    w, y = _shapes(graph, op, 1)
    positions = _windows(graph, op, (w[1], w[2])) if len(w) == 4 else None
    return None if positions is None else (positions * y[3], positions * y[3], prod(y))


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
    return (prod(y) * batched_macs(graph, op),) * 2 if len(x) > 1 else None


def _pooled(graph: Graph, op: Op) -> tuple[int, ...] | None:
    positions = _windows(graph, op, (number(op, "filter_height", 1), number(op, "filter_width", 1)))
    return None if positions is None else (positions * _shapes(graph, op)[0][3],)


def _times(count: int) -> Reads:
    """Each element of operand 0 so often."""
    return lambda graph, op: (count * prod(_shapes(graph, op, 0)[0]),)


def _outputs(count: int = 1) -> Reads:
    """So many elements of operand 0 for each output element."""
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


CONVOLVED = KernelReads(_convolved, "integer_ops/conv.h, conv.h")
CONVOLVED_BY_CHANNEL = KernelReads(_convolved_by_channel, "integer_ops/depthwise_conv.h, depthwiseconv_float.h")
TRANSPOSED = KernelReads(_transposed, "integer_ops/transpose_conv.h, transpose_conv.h")
CONNECTED = KernelReads(_connected, "integer_ops/fully_connected.h, fully_connected.h")
BATCHED = KernelReads(_batched, "batch_matmul.h")
POOLED = KernelReads(_pooled, "integer_ops/pooling.h, pooling.h")
SOFTMAX = KernelReads(_times(3), "softmax.h: the maximum, the sum, the quotient")
LOG_SOFTMAX = KernelReads(_times(3), "log_softmax.h: the maximum, the sum, the difference")
NORMALISED = KernelReads(_times(2), "l2normalization.h: the norm, the quotient")
INTERPOLATED = KernelReads(_outputs(4), "resize_bilinear.h: four neighbours")
FILTERED = KernelReads(_filtered, "micro/kernels/svdf_common.cc")
BROADCAST = KernelReads(_each_output, "broadcast_loop.h and the operator's own header")
PICKED = KernelReads(_outputs(), "the operator's own header: what is taken, once")

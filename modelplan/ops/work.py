"""How often operators multiply and read, counted from the loops of their kernels: rules of the rows in the tables.

A reference kernel reads an operand once for each turn of its innermost loop: a convolution reads an element of its
input for each window and output channel that need it, and a weight for each output pixel. Caches are not counted.
"""

from math import prod

from modelplan.model import Graph, Op
from modelplan.ops.op_facts import KernelReads, Reads


def transposed_macs(graph: Graph, op: Op) -> int:
    """Weights [in, out / group, ...] meet every input element; as a share of one output element, rounded up."""
    work = prod(graph.tensors[op.inputs[0]].shape) * prod(graph.tensors[op.inputs[1]].shape[1:])
    return -(-work // max(prod(graph.tensors[op.outputs[0]].shape), 1))


def _shapes(graph: Graph, op: Op, *operands: int) -> list[tuple[int, ...]]:
    """The shapes of some operands and of output 0 behind them; an absent operand has none."""
    tensors = [op.inputs[i] if i < len(op.inputs) else -1 for i in operands] + [*op.outputs[:1]]
    return [graph.tensors[t].shape if t >= 0 else () for t in tensors]


def _times(count: int) -> Reads:
    """Each element of operand 0 so often."""
    return lambda graph, op: (count * prod(_shapes(graph, op, 0)[0]),)


def _outputs(count: int = 1) -> Reads:
    """So many elements of operand 0 for each output element."""
    return lambda graph, op: (count * prod(_shapes(graph, op)[0]),)


def _filtered(graph: Graph, op: Op) -> tuple[int, ...] | None:
    """SVDF: the input for each filter, features once, times once, state moved by one column and then multiplied."""
    x, features = _shapes(graph, op, 0, 1)[:2]
    if len(features) != 2 or len(x) != 2:
        return None
    state = prod(graph.tensors[op.inputs[4]].shape) if len(op.inputs) > 4 and op.inputs[4] >= 0 else 0
    times = prod(_shapes(graph, op, 2)[0])
    return x[0] * prod(features), x[0] * prod(features), x[0] * times, x[0] * features[0], 2 * state


SOFTMAX = KernelReads(_times(3), "softmax.h: the maximum, the sum, the quotient")
LOG_SOFTMAX = KernelReads(_times(3), "log_softmax.h: the maximum, the sum, the difference")
NORMALISED = KernelReads(_times(2), "l2normalization.h: the norm, the quotient")
INTERPOLATED = KernelReads(_outputs(4), "resize_bilinear.h: four neighbours")
FILTERED = KernelReads(_filtered, "micro/kernels/svdf_common.cc")
ANEW = KernelReads(None, "the operator's own header: for each element of the result one of each that it is made of")
PICKED = KernelReads(_outputs(), "the operator's own header: what is taken, once")

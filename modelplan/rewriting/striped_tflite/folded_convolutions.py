"""Convolutions that say the same in another way: with the padding in front of them, or with a dilation of one pixel."""

from collections.abc import Callable
from dataclasses import replace

from modelplan.model import Graph, Op, Runtime
from modelplan.ops.access.spans import same_padding
from modelplan.primitives.lazy_records import dataclass
from modelplan.rewriting.striped_tflite.layers import window_along

#: What a dilation is set to where it makes no difference, since the kernel has one row and one column.
_DILATED = (("dilation_h_factor", 2), ("dilation_w_factor", 2))


@dataclass(frozen=True)
class Folded:
    """A graph with folded operators, and each operator's number in the file."""

    graph: Graph
    file_ops: tuple[int, ...]


def folded(graph: Graph, same_scale: Callable[[int, int], bool]) -> Folded:
    """The graph with PADs folded into convolutions that give equal results.

    Args:
        graph: of a .tflite file.
        same_scale: whether two tensors have the same scale and zero point.
    """
    ops, gone = list(graph.ops), set()
    for index, op in enumerate(graph.ops):
        pad = _padding_before(graph, op)
        if pad is None or not same_scale(graph.ops[pad].inputs[0], graph.ops[pad].outputs[0]):
            continue
        joined = replace(
            op,
            inputs=(graph.ops[pad].inputs[0], *op.inputs[1:]),
            attributes=tuple((k, "SAME" if k == "padding" else v) for k, v in op.attributes),
        )
        if _pads_alike(graph, joined, graph.ops[pad]):
            ops[index] = joined
            gone.add(pad)
    kept = tuple(i for i in range(len(ops)) if i not in gone)
    return Folded(replace(graph, ops=tuple(ops[i] for i in kept)), kept)


def with_dilations(whole: Folded, runtime: Runtime) -> Folded:
    """The graph in which pointwise convolutions say a dilation of 2 where their outputs may then start later.

    The dilation of a single pixel changes no result, but CMSIS-NN takes another kernel: one that gathers a few pixels
    and writes them, instead of one that goes over the whole operand again for every two channels.
    """
    lead = runtime.library.leads.get("CONV_2D")
    if lead is None or not runtime.library.name.startswith("cmsis"):
        return whole
    ops = list(whole.graph.ops)
    for index, op in enumerate(ops):
        dilated = replace(op, attributes=tuple((dict(op.attributes) | dict(_DILATED)).items()))
        if _pointwise(whole.graph, op):
            before, after = lead(whole.graph, op, 0), lead(whole.graph, dilated, 0)
            ops[index] = dilated if after is not None and (before is None or after < before) else op
    return replace(whole, graph=replace(whole.graph, ops=tuple(ops))) if ops != list(whole.graph.ops) else whole


def _pointwise(graph: Graph, op: Op) -> bool:
    """Whether a convolution reads one pixel for each of its own, undilated."""
    if op.kind != "CONV_2D" or len(op.inputs) < 2 or graph.tensors[op.inputs[1]].shape[1:3] != (1, 1):
        return False
    return all(op.attribute(name) in (None, 1) for name, _ in _DILATED)


def _padding_before(graph: Graph, op: Op) -> int | None:
    """The PAD whose result only this convolution reads."""
    if op.kind not in ("CONV_2D", "DEPTHWISE_CONV_2D") or op.attribute("padding") != "VALID":
        return None
    x = op.inputs[0]
    pad = graph.producers[x]
    if pad < 0 or graph.ops[pad].kind != "PAD" or len(graph.readers[x]) != 1 or x in graph.outputs:
        return None
    return pad if op.inputs.count(x) == 1 else None


def _pads_alike(graph: Graph, op: Op, pad: Op) -> bool:
    """Whether SAME pads as many rows and columns in front, and makes as many, as the PAD."""
    pads = pad.attribute("operand 1")
    x, y = graph.tensors[op.inputs[0]], graph.tensors[op.outputs[0]]
    if not isinstance(pads, tuple) or len(pads) != 8 or any((*pads[:2], *pads[6:])) or len(x.shape) != 4:
        return False
    for axis in (1, 2):
        window = window_along(graph, op, axis)
        computed = -(-x.shape[axis] // window.mul)
        above = same_padding(x.shape[axis], computed, window.hi - window.lo + 1, window.mul) // 2
        if computed != y.shape[axis] or above != pads[2 * axis]:
            return False
    return True

"""Which operators can be computed by rows, and how their rows depend on each other: facts of TFLite's operators."""

from __future__ import annotations

from collections.abc import Callable
from math import prod

from modelplan.model import Graph, Kind, Op
from modelplan.ops.conditions import number
from modelplan.ops.macs import element_macs, op_macs
from modelplan.rewriting.stripes.windows import Layer

#: Element i of the output from element i of each operand alone.
_POINTWISE = frozenset(
    [
        "RELU",
        "RELU6",
        "RELU_N1_TO_1",
        "HARD_SWISH",
        "LEAKY_RELU",
        "LOGISTIC",
        "TANH",
        "ELU",
        "ABS",
        "NEG",
        "EXP",
        "SQRT",
        "RSQRT",
        "SQUARE",
        "LOG",
        "SIN",
        "COS",
        "FLOOR",
        "CEIL",
        "ROUND",
        "ADD",
        "SUB",
        "MUL",
        "DIV",
        "MAXIMUM",
        "MINIMUM",
        "SQUARED_DIFFERENCE",
        "PRELU",
        "QUANTIZE",
        "DEQUANTIZE",
        "CAST",
    ]
)
_WINDOWS = {"CONV_2D": "weights", "DEPTHWISE_CONV_2D": "weights", "AVERAGE_POOL_2D": "filter", "MAX_POOL_2D": "filter"}
_NAMES = {1: ("h", "height", 1), 2: ("w", "width", 2)}
#: Types of whole bytes, so that rows begin at bytes.
_TYPES = frozenset({"int8", "uint8", "int16", "int32", "int64", "float32", "bool"})
#: Types that TFLM's SLICE copies.
SLICED = frozenset({"int8", "int16", "int32", "float32", "bool"})


#: Operators whose kernels run alike whatever the rows hold: none of them divides, takes a root or rounds a float.
_UNMOVED = frozenset(
    [
        *_WINDOWS,
        "RESIZE_NEAREST_NEIGHBOR",
        "RESIZE_BILINEAR",
        "TRANSPOSE_CONV",
        "TRANSPOSE",
        "CONCATENATION",
        "RELU",
        "RELU6",
        "RELU_N1_TO_1",
        "LEAKY_RELU",
        "PRELU",
        "HARD_SWISH",
        "LOGISTIC",
        "TANH",
        "ABS",
        "NEG",
        "ADD",
        "SUB",
        "MUL",
        "MAXIMUM",
        "MINIMUM",
        "SQUARED_DIFFERENCE",
    ]
)
_UNMOVED_TYPES = frozenset({"int8", "uint8", "int16", "float32"})


def takes_anything(graph: Graph, index: int) -> bool:
    """Whether rows of an operator's operands that are cut off behind it may hold anything."""
    op = graph.ops[index]
    maps = (graph.tensors[t] for t in (*op.reads, *op.writes))
    return op.kind in _UNMOVED and all(x.dtype in _UNMOVED_TYPES for x in maps if x.kind is not Kind.CONSTANT)


def layer_of(graph: Graph, index: int, axis: int, *, tiled: bool = False) -> Layer | str:
    """How the rows of operator `index` along `axis` depend on those of its operands, or why it cannot be split.

    With `tiled` rows may be no runs of bytes, since another axis is cut too.
    """
    op = graph.ops[index]
    if len(op.writes) != 1 or op.outputs[0] < 0:
        return "it has not exactly one output"
    reason = _unfit(graph, op, axis, tiled=tiled)
    if reason:
        return reason
    if op.kind in _WINDOWS:
        return _window(graph, op, axis)
    if op.kind in ("PAD", "PADV2"):
        return _pad(graph, op, axis)
    if op.kind in _POINTWISE:
        return _pointwise(graph, op, axis)
    if op.kind in _ROWS:
        return _ROWS[op.kind](graph, op, axis)
    return _REASONS.get(op.kind, f"{op.kind} is not computed row by row")


def _unfit(graph: Graph, op: Op, axis: int, *, tiled: bool) -> str:
    for t in (*op.reads, *op.writes):
        tensor = graph.tensors[t]
        if tensor.kind is Kind.CONSTANT:
            continue
        if tensor.kind is not Kind.ACTIVATION:
            return f"{tensor.name!r} is state"
        if len(tensor.shape) <= axis or not prod(tensor.shape):
            return f"{tensor.name!r} of shape {list(tensor.shape)} has no axis {axis}"
        if prod(tensor.shape[: 1 if tiled else axis]) != 1:
            return f"rows of {tensor.name!r} of shape {list(tensor.shape)} along axis {axis} are not contiguous"
        if tensor.dtype not in SLICED:
            return f"TFLM's SLICE does not take {tensor.dtype} ({tensor.name!r})"
    return ""


def _pointwise(graph: Graph, op: Op, axis: int) -> Layer | str:
    shape = graph.tensors[op.outputs[0]].shape
    operands = []
    for position, t in enumerate(op.inputs):
        if t < 0:
            continue
        tensor = graph.tensors[t]
        if tensor.kind is not Kind.CONSTANT and tensor.shape == shape:
            operands.append(position)
        elif tensor.kind is not Kind.CONSTANT or (
            len(tensor.shape) >= len(shape) - axis and tensor.shape[axis - len(shape)] != 1
        ):
            return f"operand {tensor.name!r} of shape {list(tensor.shape)} does not go row by row with {list(shape)}"
    return Layer("pointwise", tuple(operands), shape[axis], shape[axis])


def _joined(graph: Graph, op: Op, axis: int) -> Layer | str:
    """A CONCATENATION of maps along an axis behind that of the rows."""
    y = graph.tensors[op.outputs[0]]
    along = number(op, "axis", 0) % len(y.shape)
    if along <= axis:
        return f"it joins its operands along axis {along}, in which the rows stand one after the other"
    if any(graph.tensors[t].kind is Kind.CONSTANT for t in op.reads):
        return "it joins constants"
    return Layer("pointwise", tuple(range(len(op.inputs))), y.shape[axis], y.shape[axis])


def _along_channels(graph: Graph, op: Op, axis: int) -> Layer | str:
    """An operator that takes all values along the last axis together, for each other place by itself."""
    y = graph.tensors[op.outputs[0]]
    if axis == len(y.shape) - 1:
        return f"{op.kind} takes all values along the axis of the rows together"
    return Layer("pointwise", (0,), y.shape[axis], y.shape[axis])


def _resized(graph: Graph, op: Op, axis: int) -> Layer | str:
    """A map enlarged by a power of two: positions between rows are exact numbers, so those of a stripe are the same."""
    x, y = graph.tensors[op.inputs[0]].shape, graph.tensors[op.outputs[0]].shape
    if len(x) != 4 or number(op, "align_corners", 0):
        return "it aligns the corners of the map, so that positions depend on the height"
    factor, rest = divmod(y[axis], x[axis])
    if rest or factor & (factor - 1) or not factor:
        return f"{y[axis]} rows are not {x[axis]} times a power of two"
    if op.kind == "RESIZE_NEAREST_NEIGHBOR":
        return Layer("grow", (0,), x[axis], y[axis], reach=factor, stride=factor, own=True)
    return Layer("grow", (0,), x[axis], y[axis], reach=3 * factor, stride=factor, above=factor, own=True)


def _spread(graph: Graph, op: Op, axis: int) -> Layer | str:
    """A TRANSPOSE_CONV: each row of the operand has a part in some rows of the output."""
    if len(op.inputs) < 3 or any(graph.tensors[t].kind is not Kind.CONSTANT for t in op.reads if t != op.inputs[2]):
        return "its weights or its shape are not constant"
    x, y = graph.tensors[op.inputs[2]].shape, graph.tensors[op.outputs[0]].shape
    reach, stride = graph.tensors[op.inputs[1]].shape[axis], number(op, ("", "stride_h", "stride_w")[axis], 1)
    own = op.attribute("padding") == "SAME"
    if len(x) != 4 or stride < 1 or reach < stride:
        return "its window has gaps"
    if y[axis] != (x[axis] * stride if own else (x[axis] - 1) * stride + reach):
        return f"its height {y[axis]} is not that of {x[axis]} rows"
    above = (reach - stride) // 2 if own else 0
    macs = op_macs(graph, op) // y[axis]
    return Layer("grow", (2,), x[axis], y[axis], macs, reach, stride, above, own=own)


def _permuted(graph: Graph, op: Op, axis: int) -> Layer | str:
    """A TRANSPOSE: its rows lie along another axis of the operand."""
    order = op.attribute("operand 1")
    x, y = graph.tensors[op.inputs[0]].shape, graph.tensors[op.outputs[0]].shape
    if not isinstance(order, tuple) or len(x) != 4 or order[:1] != (0,):
        return "TRANSPOSE moves the batch, or its order is not constant"
    places = tuple(int(str(place)) for place in order)
    return Layer("pointwise", (0,), y[axis], y[axis], places=places)


def sized(graph: Graph, op: Op, axis: int, rows: int) -> tuple[int, tuple[int, ...]]:
    """Which operand of an operator that enlarges maps holds the size of its output, and the size for so many rows."""
    shape = graph.tensors[op.outputs[0]].shape
    shape = (*shape[:axis], rows, *shape[axis + 1 :])
    return (0, shape) if op.kind == "TRANSPOSE_CONV" else (1, shape[1:3])


def _pad(graph: Graph, op: Op, axis: int) -> Layer | str:
    x, y = graph.tensors[op.inputs[0]], graph.tensors[op.outputs[0]]
    pads = op.attribute("operand 1")
    if not isinstance(pads, tuple) or len(pads) != 2 * len(x.shape) or not all(isinstance(v, int) for v in pads):
        return "its paddings are not constant"
    if any(pads[: 2 * axis]):
        return "it pads an axis before that of the rows"
    above = int(str(pads[2 * axis]))
    return Layer("pad", (0,), x.shape[axis], y.shape[axis], above=above)


def _window(graph: Graph, op: Op, axis: int) -> Layer | str:
    x, y = graph.tensors[op.inputs[0]], graph.tensors[op.outputs[0]]
    if len(x.shape) != 4 or len(y.shape) != 4:
        return "it is no map of four axes"
    if any(t >= 0 and graph.tensors[t].kind is not Kind.CONSTANT for t in op.inputs[1:]):
        return "its weights are not constant"
    reach, stride = extent(graph, op, axis)
    own = op.attribute("padding") == "SAME"
    if stride < 1 or reach < 1:
        return "its window has no extent"
    before = _margins(graph, op, axis)[0] if own else 0
    across = _margins(graph, op, 3 - axis) if own else (0, 0)
    macs = prod(y.shape[axis + 1 :]) * element_macs(graph, op)
    paddable = not op.kind.endswith("POOL_2D")  # padding would be counted by a pool
    return Layer("window", (0,), x.shape[axis], y.shape[axis], macs, reach, stride, before, own, across, paddable)


def extent(graph: Graph, op: Op, axis: int) -> tuple[int, int]:
    """Rows that one output row of a window reads along `axis`, dilated, and how many rows further the next one does."""
    letter, word, place = _NAMES[axis]
    if _WINDOWS[op.kind] == "weights":
        size = graph.tensors[op.inputs[1]].shape[place]
    else:
        size = number(op, f"filter_{word}", 0)
    return (size - 1) * number(op, f"dilation_{letter}_factor", 1) + 1, number(op, f"stride_{letter}", 1)


def _margins(graph: Graph, op: Op, axis: int) -> tuple[int, int]:
    """What SAME pads before and behind along `axis`."""
    reach, stride = extent(graph, op, axis)
    x, y = graph.tensors[op.inputs[0]].shape[axis], graph.tensors[op.outputs[0]].shape[axis]
    total = max((y - 1) * stride + reach - x, 0)
    return total // 2, total - total // 2


_ROWS: dict[str, Callable[[Graph, Op, int], Layer | str]] = {
    "CONCATENATION": _joined,
    "RESIZE_NEAREST_NEIGHBOR": _resized,
    "RESIZE_BILINEAR": _resized,
    "L2_NORMALIZATION": _along_channels,
    "LOG_SOFTMAX": _along_channels,
    "SOFTMAX": _along_channels,
    "TRANSPOSE": _permuted,
    "TRANSPOSE_CONV": _spread,
}
#: Why operators are not split, where there is more to say than that they are not computed row by row.
_REASONS = {
    "MEAN": "MEAN adds all rows up inside its kernel, integers in 32 bits, and no operator hands such a sum on",
    "SUM": "SUM adds all rows up inside its kernel, integers in 32 bits, and no operator hands such a sum on",
    "FULLY_CONNECTED": "FULLY_CONNECTED makes each value of all rows",
    "RESHAPE": "RESHAPE does not keep the rows",
}

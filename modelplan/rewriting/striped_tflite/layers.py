"""Which TFLite operators can be computed by rows, and how their rows depend on each other."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from math import prod

from modelplan.model import Graph, Kind, Op
from modelplan.ops import facts
from modelplan.ops.conditions import number, numbers
from modelplan.ops.macs import element_macs, op_macs
from modelplan.ops.op_facts import RowRule
from modelplan.rewriting.striped_tflite.early_padding import padded_early
from modelplan.rewriting.stripes.layers import enlarged, layer_by_facts, pointwise, same_padding
from modelplan.rewriting.stripes.regions import (
    LoopedStripes,
    RegionLayers,
    Strategy,
    UnrolledStripes,
    with_ends,
)
from modelplan.rewriting.stripes.windows import IllegalStripeError, Layer

#: Names of a window's options along height and width, and the axis of its weights.
_WINDOW_OPTIONS = {1: ("h", "height", 1), 2: ("w", "width", 2)}
#: Types that TFLM's SLICE copies.
SLICED = frozenset({"int8", "int16", "int32", "float32", "bool"})
#: Operators that take a block of an operand by constants.
SLICES = frozenset({"SLICE", "STRIDED_SLICE"})
#: Operators without windows whose constants say how many rows they make.
STEERED = SLICES | {"RESHAPE"}
#: Beyond the end of any axis.
_TO_THE_END = 2**31 - 1
_UNMOVED_TYPES = frozenset({"int8", "uint8", "int16", "float32"})


def takes_anything(graph: Graph, index: int) -> bool:
    """Whether an operator may read arbitrary bytes in operand rows whose results are cut off."""
    op = graph.ops[index]
    maps = (graph.tensors[t] for t in (*op.reads, *op.writes))
    moved = (x.dtype not in _UNMOVED_TYPES for x in maps if x.kind is not Kind.CONSTANT)
    return facts("tflite", op.kind).any_values and not any(moved)


def layer_of(graph: Graph, index: int, axis: int, *, tiled: bool = False) -> Layer | str:
    """How the rows of operator `index` along `axis` depend on those of its operands, or why it cannot be split.

    With `tiled` rows may be no runs of bytes, since another axis is cut too.
    """
    op = graph.ops[index]
    if len(op.writes) != 1 or op.outputs[0] < 0:
        return "it has not exactly one output"
    return _unfit(graph, op, axis, tiled=tiled) or layer_by_facts(RULES, facts("tflite", op.kind), graph, op, axis)


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
    return pointwise(shape[axis], tuple(operands))


def _joined(graph: Graph, op: Op, axis: int) -> Layer | str:
    """A CONCATENATION or PACK of maps along an axis behind that of the rows."""
    y = graph.tensors[op.outputs[0]]
    along = number(op, "axis", 0) % len(y.shape)
    if along <= axis:
        return f"it joins its operands along axis {along}, in which the rows stand one after the other"
    if any(graph.tensors[t].kind is Kind.CONSTANT for t in op.reads):
        return "it joins constants"
    return pointwise(y.shape[axis], tuple(range(len(op.inputs))))


def _along_channels(graph: Graph, op: Op, axis: int) -> Layer | str:
    """An operator over the last axis that treats all other indices independently."""
    y = graph.tensors[op.outputs[0]]
    if axis == len(y.shape) - 1:
        return f"{op.kind} takes all values along the axis of the rows together"
    return pointwise(y.shape[axis], (0,))


def _resized(graph: Graph, op: Op, axis: int) -> Layer | str:
    x, y = graph.tensors[op.inputs[0]].shape, graph.tensors[op.outputs[0]].shape
    if len(x) != 4 or number(op, "align_corners", 0):
        return "it aligns the corners of the map, so that positions depend on the height"
    return enlarged(x[axis], y[axis], linear=op.kind == "RESIZE_BILINEAR")


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
    return replace(pointwise(y[axis], (0,), (places[axis],)), places=places)


def _reshaped(graph: Graph, op: Op, axis: int) -> Layer | str:
    """A RESHAPE that leaves the axis of the rows alone: the same extents before it, and as many rows."""
    x, y = graph.tensors[op.inputs[0]].shape, graph.tensors[op.outputs[0]].shape
    if x[: axis + 1] != y[: axis + 1]:
        return f"{op.kind} does not keep the rows"
    return pointwise(y[axis], (0,))


def _multiplied(graph: Graph, op: Op, axis: int) -> Layer | str:
    """A BATCH_MATMUL: a matrix, such as a head of an attention, is made of those at the same place."""
    y = graph.tensors[op.outputs[0]]
    operands = [graph.tensors[t] for t in op.inputs[:2]]
    whole = any(x.kind is Kind.CONSTANT or x.shape[: axis + 1] != y.shape[: axis + 1] for x in operands)
    if axis >= len(y.shape) - 2 or whole or any(len(x.shape) != len(y.shape) for x in operands):
        return f"the rows of {op.kind} are those of a matrix, made of a matrix as a whole, or repeated"
    return _exact(graph, op) or pointwise(y.shape[axis], (0, 1), macs=op_macs(graph, op) // y.shape[axis])


def _connected(graph: Graph, op: Op, axis: int) -> Layer | str:
    """A FULLY_CONNECTED that keeps the axes of its operand: a row is made of a row."""
    x, y = (graph.tensors[t].shape for t in (op.inputs[0], op.outputs[0]))
    if axis >= len(y) - 1 or x[:-1] != y[:-1]:
        return f"{op.kind} makes each value of all rows"
    if len(op.inputs) < 2 or any(t >= 0 and graph.tensors[t].kind is not Kind.CONSTANT for t in op.inputs[1:]):
        return "its weights are not constant"
    return _exact(graph, op) or pointwise(y[axis], (0,), macs=op_macs(graph, op) // y[axis])


def _exact(graph: Graph, op: Op) -> str:
    """Why sums over many products may be other ones beside other rows; empty for whole numbers."""
    dtype = graph.tensors[op.outputs[0]].dtype
    return "" if dtype in ("int8", "int16") else f"it sums {dtype} up, in an order that may depend on the rows"


def steering_operands(graph: Graph, op: Op, computed: Mapping[int, int]) -> dict[int, tuple[int, ...]]:
    """The constants, by position, that an operator needs to make so many rows along each axis that is cut.

    Those of operators that enlarge or reshape maps hold the size of the output, those of slices what they take. Where
    the operator has them already they are left out.
    """
    wanted: dict[int, tuple[int, ...]] = {}
    shape = [computed.get(axis, extent) for axis, extent in enumerate(graph.tensors[op.outputs[0]].shape)]
    if op.kind in SLICES:
        wanted = _slicing_operands(graph, op, computed)
    elif op.kind == "TRANSPOSE_CONV":
        wanted = {0: tuple(shape)}
    elif op.kind.startswith("RESIZE"):
        wanted = {1: tuple(shape[1:3])}
    elif op.kind == "RESHAPE":
        wanted = {1: tuple(shape)}
    return {at: numbers for at, numbers in wanted.items() if numbers != op.attribute(f"operand {at}")}


def _sliced(graph: Graph, op: Op, axis: int) -> Layer | str:
    """A SLICE or STRIDED_SLICE: some of the operand's rows, each one or every so many."""
    taken = taken_places(graph, op)
    if isinstance(taken, str):
        return taken
    first, step = taken[axis]
    x, y = graph.tensors[op.inputs[0]].shape[axis], graph.tensors[op.outputs[0]].shape[axis]
    if (first, step, y) == (0, 1, x):
        return pointwise(y, (0,))
    return Layer("window", (0,), x, y, stride=step, above=-first)


def taken_places(graph: Graph, op: Op) -> list[tuple[int, int]] | str:
    """For each axis the first place that a SLICE or STRIDED_SLICE takes, and how far the next one is."""
    shape, begin = graph.tensors[op.inputs[0]].shape, numbers(op, "operand 1")
    step = numbers(op, "operand 3") if op.kind == "STRIDED_SLICE" else (1,) * len(shape)
    if begin is None or step is None or numbers(op, "operand 2") is None:
        return "its places are not constant"
    if any(number(op, name, 0) for name in ("ellipsis_mask", "new_axis_mask", "shrink_axis_mask", "offset")):
        return "it adds or drops axes"
    if not len(begin) == len(step) == len(shape) or min(step, default=1) < 1:
        return "it does not go forwards along all axes"
    mask = number(op, "begin_mask", 0) if op.kind == "STRIDED_SLICE" else 0
    firsts = (0 if mask >> axis & 1 else at + (at < 0) * shape[axis] for axis, at in enumerate(begin))
    return [(min(max(at, 0), n), s) for at, n, s in zip(firsts, shape, step, strict=True)]


def _slicing_operands(graph: Graph, op: Op, computed: Mapping[int, int]) -> dict[int, tuple[int, ...]]:
    """The operands that a SLICE or STRIDED_SLICE has for windows that begin where it does, by position.

    `computed` are the rows that it makes along each axis that is cut. To the end of its window is what a
    STRIDED_SLICE reads there.
    """
    begin, ends = list(numbers(op, "operand 1") or ()), list(numbers(op, "operand 2") or ())
    strided = op.kind == "STRIDED_SLICE"
    masks, shape = [number(op, name, 0) for name in ("begin_mask", "end_mask")], graph.tensors[op.inputs[0]].shape
    for axis, rows in computed.items():
        if not strided:
            begin[axis], ends[axis] = 0, rows
        elif begin[axis] * (~masks[0] >> axis & 1) or (ends[axis] < shape[axis] and not masks[1] >> axis & 1):
            begin[axis], ends[axis] = 0, _TO_THE_END
    return {1: tuple(begin), 2: tuple(ends)}


def _blocks(graph: Graph, op: Op, axis: int) -> Layer | str:
    """A SPACE_TO_DEPTH or DEPTH_TO_SPACE: a row of blocks from some rows, or some rows from a row."""
    x, y = graph.tensors[op.inputs[0]].shape, graph.tensors[op.outputs[0]].shape
    if len(x) != 4 or len(y) != 4:
        return "it is no map of four axes"
    size = number(op, "block_size", 1)
    if op.kind == "SPACE_TO_DEPTH":
        return Layer("window", (0,), x[axis], y[axis], 0, size, size, blocks=True)
    return Layer("grow", (0,), x[axis], y[axis], 0, size, size, own=True)


def _pad(graph: Graph, op: Op, axis: int) -> Layer | str:
    x, y = graph.tensors[op.inputs[0]], graph.tensors[op.outputs[0]]
    pads = op.attribute("operand 1")
    if not isinstance(pads, tuple) or len(pads) != 2 * len(x.shape) or not all(isinstance(v, int) for v in pads):
        return "its paddings are not constant"
    above = int(str(pads[2 * axis]))
    if x.shape[axis] == y.shape[axis]:
        return pointwise(y.shape[axis], (0,))
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
    letter, word, place = _WINDOW_OPTIONS[axis]
    pool = op.kind.endswith("POOL_2D")
    size = number(op, f"filter_{word}", 0) if pool else graph.tensors[op.inputs[1]].shape[place]
    return (size - 1) * number(op, f"dilation_{letter}_factor", 1) + 1, number(op, f"stride_{letter}", 1)


def _margins(graph: Graph, op: Op, axis: int) -> tuple[int, int]:
    """What SAME pads before and behind along `axis`."""
    reach, stride = extent(graph, op, axis)
    x, y = graph.tensors[op.inputs[0]].shape, graph.tensors[op.outputs[0]].shape
    total = same_padding(x[axis], y[axis], reach, stride)
    return total // 2, total - total // 2


#: How each rule of the rows in `ops/tflite.py` takes the rows of an operator.
RULES: dict[RowRule, Callable[[Graph, Op, int], Layer | str]] = {
    "pointwise": _pointwise,
    "window": _window,
    "resize": _resized,
    "along channels": _along_channels,
    "pad": _pad,
    "slice": _sliced,
    "blocks": _blocks,
    "reshape": _reshaped,
    "product": _multiplied,
    "gemm": _connected,
    "join": _joined,
    "permute": _permuted,
    "spread": _spread,
}


def region_layers(graph: Graph, order: Sequence[int], region: Strategy) -> RegionLayers[Strategy]:
    """How the rows of each operator of a region depend on its operands, and which maps it makes and reads.

    Raises:
        IllegalStripeError: an operator cannot be computed by rows; names it.
    """
    ops = tuple(order[region.first : region.last + 1])
    layers = _layers(graph, ops, region.axis)
    for index in ops:
        if layers[index].places and graph.producers[graph.ops[index].inputs[0]] in layers:
            raise IllegalStripeError(f"{graph.label(index)}: its rows lie all over a map that the region makes")
    if isinstance(region, UnrolledStripes) and region.pad_early:
        return padded_early(graph, region, layers).as_region(region)
    tiles = isinstance(region, LoopedStripes) and region.columns
    across = _layers(graph, ops, 3 - region.axis, tiled=True) if tiles else None
    return with_ends(graph, region, layers, across=across)


def _layers(graph: Graph, ops: Sequence[int], axis: int, *, tiled: bool = False) -> dict[int, Layer]:
    known: dict[int, Layer | str] = graph.memoised(("layers", axis, tiled), dict)  # by operator, filled here
    layers = {}
    for index in ops:
        if index not in known:
            known[index] = layer_of(graph, index, axis, tiled=tiled)
        layer = known[index]
        if isinstance(layer, str):
            raise IllegalStripeError(f"{graph.label(index)}: {layer}")
        layers[index] = layer
    return layers

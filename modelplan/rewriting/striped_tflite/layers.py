"""Which TFLite operators can be computed by rows, and how their rows depend on each other."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from math import prod

from modelplan.model import Graph, Kind, Op
from modelplan.ops import access_of, facts
from modelplan.ops.access.rows import ALIKE
from modelplan.ops.access.spans import Span
from modelplan.ops.conditions import number, numbers
from modelplan.ops.op_facts import RowRule
from modelplan.ops.run_costs import element_macs, op_macs
from modelplan.rewriting.striped_tflite.early_padding import padded_early
from modelplan.rewriting.stripes.layers import enlarged, layer_by_facts, layer_by_map, row_spans, window_margins
from modelplan.rewriting.stripes.row_windows import IllegalStripeError, Layer
from modelplan.rewriting.stripes.stretches import (
    LoopedStripes,
    Strategy,
    StretchLayers,
    UnrolledStripes,
    with_ends,
)

#: Types that TFLM's SLICE copies.
SLICED = frozenset({"int8", "int16", "int32", "float32", "bool"})
#: Operators that take a block of an operand by constants.
SLICES = frozenset({"SLICE", "STRIDED_SLICE"})
#: Operators without windows whose constants say how many rows they make.
STEERED = SLICES | {"RESHAPE"}
#: Beyond the end of any axis.
_TO_THE_END = 2**31 - 1
_UNMOVED_TYPES = frozenset({"int8", "uint8", "int16", "float32"})
_UNKNOWN = "what its rows read is not constant, or not alike for all operands"


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
    row = facts("tflite", op.kind)
    if row.rows != "reshape":
        unfit = _unfit(graph, (*op.reads, *op.writes), axis, tiled=tiled)
        return unfit or layer_by_facts(RULES, row, graph, op, axis)
    layer = _unfit(graph, op.writes, axis, tiled=tiled) or layer_by_facts(RULES, row, graph, op, axis)
    if isinstance(layer, str):
        return layer
    return _unfit(graph, op.reads, layer.axes[0] if layer.axes else axis, tiled=tiled) or layer


def _unfit(graph: Graph, tensors: Sequence[int], axis: int, *, tiled: bool) -> str:
    for t in tensors:
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


def _by_map(graph: Graph, op: Op, axis: int) -> Layer | str:
    """Rows of all operands that are computed, along the same axis; of constants all rows read the same."""
    layer, y = layer_by_map(graph, op, axis), graph.tensors[op.outputs[0]]
    if layer is None:
        return _UNKNOWN
    rowed = dict(zip(layer.operands, layer.axes, strict=True))
    for position, t in enumerate(op.inputs):
        wanted = None if t < 0 or graph.tensors[t].kind is Kind.CONSTANT else axis
        if rowed.get(position) != wanted:
            x = graph.tensors[t]
            return f"operand {x.name!r} of shape {list(x.shape)} does not go row by row with {list(y.shape)}"
    return replace(layer, row_macs=prod(y.shape[axis + 1 :]) * element_macs(graph, op), axes=())


def _reshaped(graph: Graph, op: Op, axis: int) -> Layer | str:
    """A RESHAPE, EXPAND_DIMS or SQUEEZE that keeps the rows, along whichever axis of the operand they stand."""
    layer = layer_by_map(graph, op, axis)
    if layer is None or layer.kind != "pointwise" or layer.operands != (0,):
        return f"{op.kind} does not keep the rows"
    return replace(layer, row_macs=0, axes=() if layer.axes == (axis,) else layer.axes)


def _joined(graph: Graph, op: Op, axis: int) -> Layer | str:
    """A join of maps along an axis behind that of the rows."""
    along = number(op, "axis", 0) % len(graph.tensors[op.outputs[0]].shape)
    if along <= axis:
        return f"it joins its operands along axis {along}, in which the rows stand one after the other"
    if any(graph.tensors[t].kind is Kind.CONSTANT for t in op.reads):
        return "it joins constants"
    return _by_map(graph, op, axis)


def _resized(graph: Graph, op: Op, axis: int) -> Layer | str:
    x, y = graph.tensors[op.inputs[0]].shape, graph.tensors[op.outputs[0]].shape
    if len(x) != 4 or number(op, "align_corners", 0):
        return "it aligns the corners of the map, so that positions depend on the height"
    return enlarged(x[axis], y[axis], linear=op.kind == "RESIZE_BILINEAR")


def _spread(graph: Graph, op: Op, axis: int) -> Layer | str:
    """A transposed convolution: each row of the operand has a part in some rows of the output."""
    layer = layer_by_map(graph, op, axis)
    if len(op.inputs) < 3 or any(graph.tensors[t].kind is not Kind.CONSTANT for t in op.reads if t != op.inputs[2]):
        return "its weights or its shape are not constant"
    if layer is None or layer.reach < layer.stride:
        return "its window has gaps"
    if layer.kind != "grow":
        layer = replace(layer, kind="grow", above=layer.reach - 1 - layer.above)
    own = op.attribute("padding") == "SAME"
    if layer.rows_out != (layer.rows_in * layer.stride if own else (layer.rows_in - 1) * layer.stride + layer.reach):
        return f"its height {layer.rows_out} is not that of {layer.rows_in} rows"
    return replace(layer, own=own, row_macs=op_macs(graph, op) // layer.rows_out, axes=())


def _permuted(graph: Graph, op: Op, axis: int) -> Layer | str:
    """A TRANSPOSE: its rows lie along another axis of the operand."""
    places, layer = numbers(op, "operand 1"), layer_by_map(graph, op, axis)
    if layer is None or places is None or len(places) != 4 or places[0]:
        return "TRANSPOSE moves the batch, or its order is not constant"
    return replace(layer, places=tuple(places))


def _summed(graph: Graph, op: Op, axis: int) -> Layer | str:
    """A product, whose sums over many products may be other ones beside other rows if they are no whole numbers."""
    dtype, layer = graph.tensors[op.outputs[0]].dtype, _by_map(graph, op, axis)
    if isinstance(layer, str):
        return layer
    exact = replace(layer, row_macs=op_macs(graph, op) // layer.rows_out)
    return exact if dtype in ("int8", "int16") else f"it sums {dtype} up, in an order that may depend on the rows"


def steering_operands(graph: Graph, op: Op, computed: Mapping[int, int]) -> dict[int, tuple[int, ...]]:
    """The constants, by position, that an operator needs to make so many rows along each axis that is cut.

    Those of operators that enlarge or reshape maps hold the size of the output, those of slices what they take. Where
    the operator has them already they are left out.
    """
    wanted: dict[int, tuple[int, ...]] = {}
    shape = [computed.get(axis, extent) for axis, extent in enumerate(graph.tensors[op.outputs[0]].shape)]
    if op.kind in SLICES:
        wanted = _slicing_operands(graph, op, computed)
    elif facts("tflite", op.kind).rows == "spread":
        wanted = {0: tuple(shape)}
    elif op.kind.startswith("RESIZE"):
        wanted = {1: tuple(shape[1:3])}
    elif op.kind == "RESHAPE":
        wanted = {1: tuple(shape)}
    return {at: numbers for at, numbers in wanted.items() if numbers != op.attribute(f"operand {at}")}


def _sliced(graph: Graph, op: Op, axis: int) -> Layer | str:
    """A SLICE or STRIDED_SLICE: some of the operand's rows, each one or every so many."""
    if taken_places(graph, op) is None or numbers(op, "operand 2") is None:
        return "its places are not constant, or it does not go forwards along all axes that it has"
    return _by_map(graph, op, axis)


def taken_places(graph: Graph, op: Op) -> list[tuple[int, int]] | None:
    """For each axis the first place that a SLICE or STRIDED_SLICE takes, and how far the next one is.

    None where these are not constant, or it goes backwards, or adds or drops axes.
    """
    access = access_of(graph, op)
    spans = access.reads[0].spans if access else ()
    if not spans or any(span.axis != axis or span.mul < 1 for axis, span in enumerate(spans)):
        return None
    return [(span.lo, span.mul) for span in spans]


def window_along(graph: Graph, op: Op, axis: int) -> Span:
    """The window of a convolution or pool along height or width, padded as the operator says; one place if unknown."""
    return (row_spans(graph, op, axis) or {}).get(0, ALIKE).span


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
    layer = _by_map(graph, op, axis)
    return layer if isinstance(layer, str) else replace(layer, blocks=layer.kind == "window")


def _pad(graph: Graph, op: Op, axis: int) -> Layer | str:
    layer = _by_map(graph, op, axis)
    return layer if isinstance(layer, str) or layer.kind == "pointwise" else replace(layer, kind="pad")


def _window(graph: Graph, op: Op, axis: int) -> Layer | str:
    """A convolution or a pool, which pads by itself where it says SAME."""
    layer = _by_map(graph, op, axis)
    if isinstance(layer, str):
        return layer
    paddable = not op.kind.endswith("POOL_2D")  # padding would be counted by a pool
    layer = replace(layer, kind="window", paddable=paddable)
    if op.attribute("padding") != "SAME":
        return layer
    return replace(layer, own=True, across=window_margins(graph, op, 3 - axis))


#: How each rule of the rows in `ops/tflite.py` takes the rows of an operator.
RULES: dict[RowRule, Callable[[Graph, Op, int], Layer | str]] = {
    "pointwise": _by_map,
    "window": _window,
    "resize": _resized,
    "along channels": _by_map,
    "pad": _pad,
    "slice": _sliced,
    "blocks": _blocks,
    "reshape": _reshaped,
    "product": _summed,
    "gemm": _summed,
    "join": _joined,
    "permute": _permuted,
    "spread": _spread,
}


def stretch_layers(graph: Graph, order: Sequence[int], stretch: Strategy) -> StretchLayers[Strategy]:
    """How the rows of each operator of a stretch depend on its operands, and which maps it makes and reads.

    Raises:
        IllegalStripeError: an operator cannot be computed by rows, or a map would be cut along two axes; names it.
    """
    ops = tuple(order[stretch.first : stretch.last + 1])
    axes = dict[int, int]()
    layers = _layers(graph, ops, stretch.axis, axes)
    for index in ops:
        if layers[index].places and graph.producers[graph.ops[index].inputs[0]] in layers:
            raise IllegalStripeError(f"{graph.label(index)}: its rows lie all over a map that the stretch makes")
    others = {t: axis for t, axis in axes.items() if axis != stretch.axis}
    if isinstance(stretch, UnrolledStripes) and stretch.pad_early:
        if others:
            raise IllegalStripeError("maps with rows along different axes are not padded early")
        return padded_early(graph, stretch, layers).as_stretch(stretch)
    tiles, column_axes = isinstance(stretch, LoopedStripes) and stretch.columns, dict[int, int]()
    across = _layers(graph, ops, 3 - stretch.axis, column_axes, tiled=True) if tiles else None
    if any(axis != 3 - stretch.axis for axis in column_axes.values()):
        raise IllegalStripeError("tiles need columns along the same axis of all maps")
    return with_ends(graph, stretch, layers, across=across, axes=others)


def _layers(
    graph: Graph, ops: Sequence[int], axis: int, axes: dict[int, int], *, tiled: bool = False
) -> dict[int, Layer]:
    """The layers of operators, the last of which makes rows along an axis; adds that of each map to `axes`."""
    layers = {}
    for index in reversed(ops):
        op = graph.ops[index]
        along = axes.setdefault(op.outputs[0], axis)
        known: dict[int, Layer | str] = graph.memoised(("layers", along, tiled), dict)  # by operator, filled here
        if index not in known:
            known[index] = layer_of(graph, index, along, tiled=tiled)
        layer = known[index]
        if isinstance(layer, str):
            raise IllegalStripeError(f"{graph.label(index)}: {layer}")
        layers[index] = layer
        read = () if layer.places else layer.axes or (along,) * len(layer.operands)
        for position, place in zip(layer.operands, read, strict=False):
            if axes.setdefault(op.inputs[position], place) != place:
                raise IllegalStripeError(f"{graph.label(index)}: its rows lie along another axis of a map than others")
    return {index: layers[index] for index in ops}

"""Which ONNX operators can be computed by rows, and how their rows depend on each other.

A value has its rows along one axis: maps along their height, sequences along their length. Reshape and Transpose take
that axis to another place, so each operand has an axis of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import field, replace
from functools import cached_property
from math import prod
from typing import Any

import numpy.typing as npt

from modelplan.model import Graph, Kind, Op
from modelplan.ops import facts
from modelplan.ops.conditions import number, numbers
from modelplan.ops.op_facts import RowRule
from modelplan.primitives.lazy_records import dataclass
from modelplan.rewriting.stripes.layers import enlarged, layer_by_facts, layer_by_map, pointwise, window_margins
from modelplan.rewriting.stripes.row_windows import IllegalStripeError, Layer
from modelplan.rewriting.stripes.stretches import Strategy, StretchLayers, with_ends

#: Pools into whose padding ONNX Runtime puts the Pad before them, where nothing else reads it.
_TAKING_PADS = frozenset({"MaxPool", "AveragePool"})
#: The first opset in which a Pad takes its numbers as operands.
PAD_OPERANDS = 11


def margins(graph: Graph, op: Op, places: int) -> list[tuple[int, int]]:
    """What a convolution or a pool pads before and behind each of its axes behind the channels."""
    word = op.attribute("auto_pad", "NOTSET")
    if word in ("NOTSET", ""):
        pads = numbers(op, "pads") or (0,) * (2 * places)
        return [(pads[k], pads[places + k]) for k in range(places)]
    return [(0, 0) if word == "VALID" else window_margins(graph, op, 2 + k) for k in range(places)]


def pool_behind(graph: Graph, op: Op) -> int | None:
    """A pool that reads what a Pad makes, or a Cast of it, and may take the Pad into its own padding.

    A session leaves pools alone that say VALID, and so do their stripes.
    """
    if op.attribute("mode", "constant") != "constant":
        return None
    readers = list(graph.readers[op.outputs[0]])
    for index in readers:
        reader = graph.ops[index]
        if reader.kind == "Cast":
            readers += graph.readers[reader.outputs[0]]
        elif reader.kind in _TAKING_PADS and not is_valid(reader):
            return index
    return None


def is_valid(op: Op) -> bool:
    """Whether a pool says that it pads nothing by the word VALID, and has no windows beyond its map."""
    pool = facts("onnx", op.kind).rows == "window" and not facts("onnx", op.kind).weights
    return pool and op.attribute("auto_pad") == "VALID" and not number(op, "ceil_mode", 0)


def same_inside(graph: Graph, op: Op, pool: int, value: float | None) -> bool:
    """Whether a Pad with this value, None where it is not known, has the same effect inside of a pool.

    A session leaves other values than 0 outside. The padding of a MaxPool is less than every number, which is the same
    as zeros behind a Relu; that of an AveragePool may not be counted.
    """
    if value:
        return True
    maker = graph.producers[op.inputs[0]]
    return value is not None and graph.ops[pool].kind == "MaxPool" and maker >= 0 and graph.ops[maker].kind == "Relu"


#: The small constant called by a name, None where it is none or large.
Constants = Callable[[str], npt.NDArray[Any] | None]

#: The first opset in which a Slice takes its numbers as operands, and in which a sum repeats the smaller operand.
SLICE_OPERANDS, REPEATING = 10, 7


@dataclass(frozen=True)
class Reading:
    """A graph with the file's small constants, its opset, and all its names.

    `apart` are operators that are no nodes of the file's graph, such as those inside of functions. `gone` are values
    that a session does not have, since it fuses the operators around them. `blocks` has for some values those that
    have to be in blocks of channels for the same kernel to compute it in stripes.
    """

    graph: Graph
    constants: Constants
    opset: int
    names: frozenset[str] = frozenset()
    apart: frozenset[int] = frozenset()
    gone: frozenset[int] = frozenset()
    blocks: Mapping[int, frozenset[int]] = field(default_factory=dict)
    known: dict[tuple[int, int], Layer | str] = field(default_factory=dict, repr=False, compare=False)

    def in_order(self, order: Sequence[int]) -> Reading:
        """The same file with the operators of its graph in another order."""
        graph = replace(self.graph, ops=tuple(self.graph.ops[index] for index in order))
        apart = frozenset(place for place, index in enumerate(order) if index in self.apart)
        return replace(self, graph=graph, apart=apart, known={})

    def layer_of(self, index: int, axis: int) -> Layer | str:
        """How the rows of operator `index` along `axis` depend on those of its operands, or why it is not split."""
        key = index, axis
        if key not in self.known:
            self.known[key] = self._layer(index, axis)
        return self.known[key]

    def _layer(self, index: int, axis: int) -> Layer | str:
        graph, op = self.graph, self.graph.ops[index]
        if len(op.writes) != 1 or op.outputs[0] < 0 or op.subgraphs:
            return "it has not exactly one output, or runs a body"
        if index in self.apart:
            return "it is no node of the main graph"
        shape = graph.tensors[op.outputs[0]].shape
        if any(graph.tensors[t].kind in (Kind.STATE, Kind.CAPTURED) for t in (*op.reads, *op.writes)):
            return "it reads or writes state"
        if not 0 <= axis < len(shape) or not prod(shape):
            return f"its output of shape {list(shape)} has no rows along axis {axis}"
        return layer_by_facts(RULES, facts("onnx", op.kind), self, op, axis)

    @cached_property
    def weightless(self) -> frozenset[int]:
        """The values that take no memory, since element-wise operators compute them inside of their kernels."""
        graph = self.graph
        fused = {index for index, op in enumerate(graph.ops) if facts("onnx", op.kind).fused}
        return frozenset(t for t in self.gone if fused.issuperset(graph.readers[t]))

    def goes_by_rows(self, index: int) -> bool:
        """Whether operator `index` can be computed by rows along some axis."""
        op = self.graph.ops[index]
        axes = likely_axes(self.graph.tensors[op.outputs[0]].shape) if op.writes else []
        return any(not isinstance(self.layer_of(index, axis), str) for axis in axes)

    def own_weights(self, index: int) -> int:
        """The bytes of the copy of its weights that a session keeps for each such node: packed, or scaled by a norm."""
        graph, op = self.graph, self.graph.ops[index]
        weights = facts("onnx", op.kind).weights
        if not weights or op.outputs[0] < 0:
            return 0
        readers = graph.readers[op.outputs[0]]
        scaled = op.outputs[0] in self.gone and any(graph.ops[i].kind == "BatchNormalization" for i in readers)
        return graph.tensors[op.inputs[weights]].nbytes if op.kind == "QLinearConv" or scaled else 0

    def constant(self, op: Op, position: int) -> tuple[float, ...] | None:
        """The numbers of a constant operand; empty where it is absent, None where they are not known."""
        if position >= len(op.inputs) or op.inputs[position] < 0:
            return ()
        array = self.constants(self.graph.tensors[op.inputs[position]].name)
        return None if array is None else tuple(array.reshape(-1).tolist())


def likely_axes(shape: Sequence[int]) -> list[int]:
    """The axes along which a value may be cut, the likeliest first."""
    if len(shape) >= 4:
        return [axis for axis in (2, 3, 1) if shape[axis] > 1]
    return [axis for axis in (1, 2, 0) if axis < len(shape) and shape[axis] > 1] if len(shape) > 1 else []


def _shape(graph: Graph, op: Op, position: int = 0) -> tuple[int, ...]:
    return graph.tensors[op.inputs[position]].shape


def _by_map(reading: Reading, op: Op, axis: int) -> Layer | str:
    """Rows of the operands by the access map; an operand that is repeated is read whole for all rows."""
    layer = layer_by_map(reading.graph, op, axis)
    if layer is None or not layer.operands:
        return f"{op.kind} takes all rows together, or not in turn"
    return layer


def _pointwise(reading: Reading, op: Op, axis: int) -> Layer | str:
    """Operands of a single row are read whole."""
    layer = layer_by_map(reading.graph, op, axis)
    if layer is not None and layer.rows_out == 1:
        return replace(layer, operands=(), axes=())
    return _by_map(reading, op, axis)


def _quantised(reading: Reading, op: Op, axis: int) -> Layer | str:
    if number(op, "block_size", 0):
        return "it quantises in blocks"
    scale = _shape(reading.graph, op, 1)
    if prod(scale) > 1 and number(op, "axis", 1) % len(_shape(reading.graph, op)) == axis:
        return "its scales differ from row to row"
    return _by_map(reading, op, axis)


def _channelwise(reading: Reading, op: Op, axis: int) -> Layer | str:
    return _by_map(reading, op, axis) if axis >= 2 else "its rows are channels"


def _batch_normalised(reading: Reading, op: Op, axis: int) -> Layer | str:
    if number(op, "training_mode", 0):
        return "it is in training mode"
    return _channelwise(reading, op, axis)


def _joined(reading: Reading, op: Op, axis: int) -> Layer | str:
    layer = layer_by_map(reading.graph, op, axis)
    if layer is None or layer.kind != "pointwise":
        return "it joins its operands along the axis of the rows"
    return layer


def _window(reading: Reading, op: Op, axis: int) -> Layer | str:
    graph, layer = reading.graph, layer_by_map(reading.graph, op, axis)
    x = _shape(graph, op)
    if number(op, "channels_last", 0):
        return "its channels stand behind its rows"
    if axis < 2 or layer is None:
        return "its rows are channels"
    if any(t >= 0 and graph.tensors[t].kind is not Kind.CONSTANT for t in op.inputs[1:]):
        return "its weights are not constant"
    above, below = margins(graph, op, len(x) - 2)[axis - 2]
    beyond = layer.reached(0, layer.rows_out)[1] - layer.rows_in  # what the last window reads below the map
    if min(above, below) < 0 or (beyond > below and op.kind.endswith("AveragePool")):
        return "its last window reaches beyond its padding"
    products = prod(_shape(graph, op, 1)[1:]) if op.kind == "Conv" else 0
    columns = prod(graph.tensors[op.outputs[0]].shape[2:]) // layer.rows_out
    return replace(layer, kind="window", own=True, products=products, columns=columns)


def _blocks(reading: Reading, op: Op, axis: int) -> Layer | str:
    """A SpaceToDepth or DepthToSpace: a row of blocks from some rows, or some rows from a row."""
    layer = _by_map(reading, op, axis)
    return layer if isinstance(layer, str) else replace(layer, blocks=layer.kind == "window")


def _padded(reading: Reading, op: Op, axis: int) -> Layer | str:
    layer = layer_by_map(reading.graph, op, axis)
    old = reading.opset < PAD_OPERANDS
    if len(op.inputs) > 3 and op.inputs[3] >= 0:
        return "it names its axes"
    if layer is None:
        return "its paddings are not constant, or it does not pad with one constant"
    given = (float(str(op.attribute("value", 0))),) if old else reading.constant(op, 2)
    value = None if given is None else sum(given)
    pool = pool_behind(reading.graph, op)
    if pool is not None and not same_inside(reading.graph, op, pool, value):
        return f"ONNX Runtime may put it into {reading.graph.label(pool)}, whose padding is no zeros"
    below = layer.rows_out - layer.rows_in - layer.above
    if layer.kind != "pointwise" and min(layer.above, below) < 0:
        return "it does not pad with one constant"
    return layer if layer.kind == "pointwise" else replace(layer, kind="pad")


def _resized(reading: Reading, op: Op, axis: int) -> Layer | str:
    x, y = _shape(reading.graph, op), reading.graph.tensors[op.outputs[0]].shape
    mode = op.attribute("mode", "nearest")
    layer = enlarged(x[axis], y[axis], linear=mode == "linear", axes=(axis,))
    if axis < 2 or isinstance(layer, str):
        return f"{y[axis]} rows are not {x[axis]} times a power of two"
    if (op.kind == "Resize" and reading.opset < 11) or numbers(op, "axes") or number(op, "antialias", 0):
        return "it is resized in a way that is not split"
    where = op.attribute("coordinate_transformation_mode", "half_pixel") if op.kind == "Resize" else "asymmetric"
    if mode == "nearest":
        nearest = op.attribute("nearest_mode", "round_prefer_floor") if op.kind == "Resize" else "floor"
        return layer if (where, nearest) in _NEAREST else f"rows are chosen by {where}, {nearest}"
    if mode == "linear" and where in ("half_pixel", "pytorch_half_pixel", "asymmetric") and x[axis] > 1:
        return layer
    return f"it interpolates by {mode}, {where}"


#: Ways to choose the nearest row that give row i // factor.
_NEAREST = frozenset(
    {("asymmetric", "floor"), ("half_pixel", "round_prefer_floor"), ("half_pixel", "round_prefer_ceil"),
     ("pytorch_half_pixel", "round_prefer_floor"), ("pytorch_half_pixel", "round_prefer_ceil")}
)  # fmt: skip


def _spread(reading: Reading, op: Op, axis: int) -> Layer | str:
    """A ConvTranspose: each row of the operand has a part in some rows of the output."""
    graph, layer = reading.graph, layer_by_map(reading.graph, op, axis)
    if axis < 2 or any(t >= 0 and graph.tensors[t].kind is not Kind.CONSTANT for t in op.inputs[1:]):
        return "its weights are not constant"
    if layer is None:
        return "its padding depends on the shape of its output"
    if layer.rows_out != layer.rows_in * layer.stride or layer.reach < layer.stride:
        return f"its height {layer.rows_out} is not {layer.stride} times that of its operand"
    above = layer.above if layer.kind == "grow" else layer.reach - 1 - layer.above
    return replace(layer, kind="grow", above=above, own=True)


def _product(reading: Reading, op: Op, axis: int) -> Layer | str:
    """A matrix product by rows of its left operand, or by batches."""
    if axis == len(reading.graph.tensors[op.outputs[0]].shape) - 1:
        return "its rows are columns of a matrix"
    return _by_map(reading, op, axis)


def _gemm(reading: Reading, op: Op, axis: int) -> Layer | str:
    if axis != 0 or number(op, "transA", 0):
        return "its rows are columns of a matrix"
    return _by_map(reading, op, axis)


def _reshaped(reading: Reading, op: Op, axis: int) -> Layer | str:
    """A Reshape that leaves the axis of the rows alone: as much stands before it as behind it on both sides."""
    layer = _by_map(reading, op, axis)
    return layer if isinstance(layer, str) or layer.kind == "pointwise" else f"{op.kind} does not keep the rows"


def _reduced(reading: Reading, op: Op, axis: int) -> Layer | str:
    given = numbers(op, "axes") if op.attribute("axes") is not None else reading.constant(op, 1)
    if not given or not number(op, "keepdims", 1):
        return "it drops axes, or these are not constant"
    return _by_map(reading, op, axis)


def _sliced(reading: Reading, op: Op, axis: int) -> Layer | str:
    """A Slice along other axes, or one that takes every so many rows from one of them on."""
    layer, old = layer_by_map(reading.graph, op, axis), reading.opset < SLICE_OPERANDS
    if layer is None or (not old and any(reading.constant(op, place) is None for place in (1, 3, 4))):
        return "its numbers are not constant, or it takes the rows backwards"
    if layer.kind == "pointwise" or old or reading.graph.tensors[op.inputs[1]].dtype == "int64":
        return layer
    return "its numbers have 32 bits"


def _rows_of_gather(reading: Reading, op: Op, axis: int) -> Layer:
    """A Gather along another axis than that of the rows, or of rows that the indices name."""
    graph = reading.graph
    x, indices = _shape(graph, op), _shape(graph, op, 1)
    place = number(op, "axis", 0) % len(x)
    if place <= axis < place + len(indices):
        return pointwise(indices[axis - place], (1,), (axis - place,))
    along = axis if axis < place else axis - len(indices) + 1
    return pointwise(x[along], (0,), (along,))


#: How each rule of the rows in `ops/onnx.py` takes the rows of an operator.
RULES: dict[RowRule, Callable[[Reading, Op, int], Layer | str]] = {
    "pointwise": _pointwise,
    "quantise": _quantised,
    "window": _window,
    "softmax": _by_map,
    "normalise": _by_map,
    "reduce": _reduced,
    "product": _product,
    "reshape": _reshaped,
    "resize": _resized,
    "blocks": _blocks,
    "normalise batch": _batch_normalised,
    "by channel": _channelwise,
    "join": _joined,
    "pad": _padded,
    "spread": _spread,
    "gemm": _gemm,
    "permute": _by_map,
    "slice": _sliced,
    "gather": _rows_of_gather,
}


def stretch_layers(reading: Reading, stretch: Strategy) -> StretchLayers[Strategy]:
    """How the rows of each operator of a stretch depend on its operands, and which values it makes and reads."""
    graph, ops = reading.graph, range(stretch.first, stretch.last + 1)
    layers, axes = dict[int, Layer](), {graph.ops[stretch.last].outputs[0]: stretch.axis}
    computed = {graph.ops[i].outputs[0] for i in ops if graph.ops[i].outputs}
    for t, chain in reading.blocks.items():
        if not computed.isdisjoint(chain) and not computed >= chain:
            raise IllegalStripeError(f"{graph.label(graph.producers[t])}: another kernel would compute it")
    for index in reversed(ops):
        op = graph.ops[index]
        along = axes.setdefault(op.outputs[0], min(2, len(graph.tensors[op.outputs[0]].shape) - 1))
        layer = reading.layer_of(index, along)
        if isinstance(layer, str):
            raise IllegalStripeError(f"{graph.label(index)}: {layer}")
        layers[index] = layer
        rowed = dict(zip(layer.operands, layer.axes, strict=True))
        for position, t in enumerate(op.inputs):
            if t not in computed:
                continue
            if position not in rowed or axes.setdefault(t, rowed[position]) != rowed[position]:
                raise IllegalStripeError(f"{graph.label(index)}: it reads all rows of {graph.tensors[t].name!r}")
    return with_ends(graph, stretch, {index: layers[index] for index in ops}, axes=axes)


def summed_block(columns: int, products: int, threads: int) -> int:
    """How many products ONNX Runtime's kernels for floats sum up before they add the sum to what they have.

    Two convolutions with the same block give the same numbers. It depends on how many columns a thread works on.
    """
    share = -(-columns // threads)
    width, depth = 128, 128
    if share >= products:
        return min(products, depth)
    while width > 16 and width // 2 >= share:
        width, depth = width // 2, depth * 2
    return min(products, depth)

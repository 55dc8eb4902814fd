"""An .onnx model as a network of plain C: a rule for each kind of node, its ends in the layout that is asked for."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import asdict, replace
from typing import TYPE_CHECKING

from modelplan.formats import load_model
from modelplan.plain_c import LAYOUTS, ROUNDINGS
from modelplan.plain_c.onnx_networks import map_nodes as maps
from modelplan.plain_c.onnx_networks import value_nodes as nodes
from modelplan.plain_c.onnx_networks.emitting import (
    UNSIGNED,
    Emitter,
    Held,
    RefusedNodeError,
    UnknownValueError,
    nodes_to_emit,
    placed_last,
    refusals,
    require,
)
from modelplan.plain_c.onnx_networks.onnx_nodes import OnnxNode, read_onnx
from modelplan.primitives.errors import ModelError, RequestError
from modelplan.primitives.lazy_records import dataclass
from modelplan.rewriting.striped_tflite.interface import INTERFACES
from modelplan.runtimes.tflm.stated_network import CodeScales

if TYPE_CHECKING:
    from modelplan.model import Graph
    from modelplan.runtimes.tflm.stated_network import StatedNetwork

#: Nodes that read maps whose channels stand last, and those behind which such a node may stand.
_ON_MAPS = {
    "Conv", "QLinearConv", "ConvTranspose", "MaxPool", "AveragePool", "QLinearAveragePool", "GlobalAveragePool",
    "QLinearGlobalAveragePool", "GlobalMaxPool", "Resize", "Upsample", "BatchNormalization", "DepthToSpace",
    "SpaceToDepth", "InstanceNormalization",
}  # fmt: skip
_BETWEEN = {
    "QuantizeLinear", "DequantizeLinear", "Add", "Sub", "Mul", "Div", "Clip", "Relu", "Sigmoid", "Pad", "Concat",
    "Slice", "Cast", "QLinearAdd", "QLinearConcat",
}  # fmt: skip
#: Operators that keep floats as they are, or choose among them.
_EXACT = {
    "DEQUANTIZE", "MAX_POOL_2D", "REDUCE_MAX", "REDUCE_MIN", "MAXIMUM", "MINIMUM", "RESHAPE", "TRANSPOSE",
    "CONCATENATION", "SLICE", "STRIDED_SLICE", "PAD", "PADV2", "MIRROR_PAD", "GATHER", "DEPTH_TO_SPACE",
    "SPACE_TO_DEPTH", "RESIZE_NEAREST_NEIGHBOR",
}  # fmt: skip
#: Nodes that read codes as such, in whose names no QLinear or QGemm says so.
_ON_CODES = {
    "DequantizeLinear", "MaxPool", "Resize", "Upsample", "DepthToSpace", "SpaceToDepth", "Reshape", "Flatten",
    "Squeeze", "Unsqueeze", "Transpose", "Concat", "Slice", "Split", "Gather", "Pad",
}  # fmt: skip
#: Types of codes.
_CODES = ("int8", "uint8")
Rule = Callable[[Emitter, OnnxNode], None]


def _by_kind(rules: Mapping[Rule, str]) -> dict[str, Rule]:
    return {kind: rule for rule, kinds in rules.items() for kind in kinds.split()}


#: The rule of each kind of node.
NODE_RULES = _by_kind({
    maps.convolution: "Conv",
    maps.coded_convolution: "QLinearConv",
    maps.transposed_convolution: "ConvTranspose",
    maps.greatest_of_windows: "MaxPool",
    maps.mean_of_windows: "AveragePool",
    maps.coded_pool: "QLinearAveragePool",
    maps.coded_mean: "QLinearGlobalAveragePool",
    maps.global_pool: "GlobalAveragePool GlobalMaxPool",
    maps.reduction: "ReduceMean ReduceSum ReduceMax ReduceMin ReduceL1 ReduceL2 ReduceSumSquare",
    maps.resized: "Resize Upsample",
    maps.normalised_by_channel: "BatchNormalization",
    maps.blocks_to_space: "DepthToSpace",
    maps.space_to_blocks: "SpaceToDepth",
    nodes.binary: "Add Sub Mul Div Max Min",
    nodes.coded_binary: "QLinearAdd QLinearMul",
    nodes.unary: "Sigmoid Tanh Relu HardSwish Abs Exp Log Sqrt Neg Floor Ceil Sin Cos LeakyRelu Elu Round",
    nodes.coded_unary: "QLinearSigmoid QLinearLeakyRelu",
    nodes.clipped: "Clip",
    nodes.composed: "HardSigmoid Reciprocal Pow Gelu Erf Softplus Mish Swish Selu Softsign",
    nodes.sloped: "PRelu",
    nodes.compared: "Equal Greater GreaterOrEqual Less LessOrEqual",
    nodes.chosen: "Where",
    nodes.summed: "Sum Mean",
    nodes.repeated: "Expand",
    nodes.quantised: "QuantizeLinear",
    nodes.dequantised: "DequantizeLinear",
    nodes.general_product: "Gemm",
    nodes.coded_product: "QGemm QLinearMatMul",
    nodes.matrix_product: "MatMul",
    nodes.softmax: "Softmax",
    nodes.coded_softmax: "QLinearSoftmax",
    nodes.normalised_along: "LayerNormalization",
    nodes.normalised_by_instance: "InstanceNormalization",
    nodes.reshaped: "Reshape Flatten Squeeze Unsqueeze",
    nodes.transposed: "Transpose",
    nodes.joined: "Concat",
    nodes.coded_join: "QLinearConcat",
    nodes.sliced: "Slice",
    nodes.split: "Split",
    nodes.picked: "Gather",
    nodes.padded: "Pad",
    nodes.cast: "Cast",
    nodes.refused_dynamic: "MatMulInteger ConvInteger DynamicQuantizeLinear",
})  # fmt: skip


@dataclass(frozen=True, slots=True)
class NetworkRequest:
    """How an .onnx model becomes a network.

    Args:
        layout: the order of the axes of inputs and outputs that are maps: "nchw" as the model says, or "nhwc", channels
            last, as cameras deliver and rows need.
        interface: the type of inputs and outputs, "int8" or "uint8" where the outer QuantizeLinear and DequantizeLinear
            go.
        dims: extents that the file leaves open, each SYMBOL=N.
        shapes: shapes of inputs with open extents, each INPUT=N,N,...
        rounding: "onnx", or "library" where convolutions and products of codes round as CMSIS-NN and ESP-NN do.
    """

    layout: str = LAYOUTS[0]
    interface: str = INTERFACES[0]
    dims: tuple[str, ...] = ()
    shapes: tuple[str, ...] = ()
    rounding: str = ROUNDINGS[0]


def network_of(
    path: str,
    request: NetworkRequest = NetworkRequest(),  # noqa: B008 - frozen
    graph: Graph | None = None,
) -> StatedNetwork:
    """An .onnx file as a network.

    Args:
        path: the file.
        request: its layout, its ends, and what it leaves open.
        graph: what `load_model` makes of it, where that is known.

    Raises:
        ModelError: the file cannot be read, extents stay open, or ends of it are constants.
        MissingKernelError: nodes have no plain C; names all of them.
        RequestError: there are no such ends.
    """
    graph = graph or load_model(path, request.dims, request.shapes)
    emitter = Emitter(read_onnx(path, graph))
    inputs = [_fed(emitter, name, request.layout) for name in emitter.model.inputs]
    if refused := _refused(emitter):
        raise refusals(emitter.model, refused)
    outputs = [_given(emitter, name, request.layout) for name in emitter.model.outputs]
    _with_interface(emitter, inputs, outputs, request.interface)
    ends = [*inputs, *outputs]
    turned = _turned(emitter, ends) if request.layout == LAYOUTS[0] else frozenset()
    network = emitter.built.network(emitter.model.name, inputs, outputs)
    names = [*emitter.model.inputs, *emitter.model.output_names]
    last = tuple(
        n for n, tensor in zip(names, ends, strict=True) if emitter.stands_last(tensor) and tensor not in turned
    )
    mixed = _floats_between(emitter, inputs)
    return replace(network, turned=turned, asked={**asdict(request), "last": last, "mixed": mixed})


def _refused(e: Emitter) -> list[tuple[OnnxNode, str]]:
    """Emits all nodes and gives those without plain C; behind one its floats are read as if they were there."""
    refused: list[tuple[OnnxNode, str]] = []
    for node in nodes_to_emit(e):
        try:
            _rule(e, node)(e, node)
            continue
        except RefusedNodeError as problem:
            if not refused or not isinstance(problem, UnknownValueError):
                refused.append((node, str(problem)))
        for name in {*node.outputs, *e.absorbed} - {*e.values, *e.codes, ""}:
            shape, dtype = e.model.types.get(name, ((), ""))
            if dtype == "float32":
                e.values[name] = Held(e.built.tensor(name, shape, dtype), last=False, shape=shape)
    return refused


def _rule(e: Emitter, node: OnnxNode) -> Rule:
    if node.kind not in NODE_RULES:
        raise RefusedNodeError("no plain C for this kind of node")
    held = [e.built.dtype(e.values[name].tensor) for name in node.inputs if name in e.values]
    on_codes = node.kind in _ON_CODES or node.kind.startswith(("QLinear", "QGemm"))
    require(on_codes or not {*held} & {*_CODES}, "codes of 8 bits as whole numbers")
    return NODE_RULES[node.kind]


def _floats_between(e: Emitter, inputs: list[int]) -> tuple[str, ...]:
    """The operators of whose floats codes are made, whose last bits ONNX Runtime may have otherwise."""
    makers = {t: op for op in e.built.ops for t in op.outputs}
    read = [op.inputs[0] for op in e.built.ops if op.kind == "QUANTIZE"]
    floats, seen = set[str](), {*inputs, *e.built.scales}
    while read:
        tensor = read.pop()
        if tensor in seen or tensor not in makers:
            continue
        seen.add(tensor)
        if makers[tensor].kind in _EXACT:
            read += makers[tensor].inputs
        else:
            floats.add(makers[tensor].kind)
    spread = {op.kind for op in e.built.ops if op.kind == "TRANSPOSE_CONV" and op.outputs[0] in e.built.scales}
    return tuple(sorted(floats | spread))


def _fed(e: Emitter, name: str, layout: str) -> int:
    """An input, with its channels last where operators on maps read it or the caller has them there."""
    shape, dtype = e.model.types[name]
    last = len(shape) in (3, 4) and ((layout == LAYOUTS[1] and len(shape) == 4) or _is_map(e, name))
    scales, code = _scales_read(e, name) if dtype in _CODES else (None, 0)
    tensor = e.built.tensor(name, placed_last(shape) if last else shape, "int8" if scales else dtype, scales)
    e.values[name] = Held(tensor, last, shape, scales, code)
    return tensor


def _scales_read(e: Emitter, name: str) -> tuple[CodeScales, int]:
    """The scales by which codes are first read, behind nodes that move them, and by how much the file's are larger.

    Where nothing reads them they stand for themselves.
    """
    names = [name]
    for moved in names:
        for node in e.readers.get(moved, ()):
            if node.kind == "DequantizeLinear" or node.kind.startswith("Q"):
                with suppress(RefusedNodeError):
                    return e.scales(node, node.inputs.index(moved) + 1)
            else:
                names += [n for n in node.outputs if n not in names and e.dtype(n) in _CODES]
    code = UNSIGNED if e.dtype(name) == "uint8" else 0
    return CodeScales((1.0,), -code), code


def _is_map(e: Emitter, name: str) -> bool:
    """Whether operators on maps read a value, behind operators that take each element by itself."""
    for reader in e.readers.get(name, ()):
        if reader.kind in _ON_MAPS or (reader.kind in _BETWEEN and _is_map(e, reader.outputs[0])):
            return True
    return False


def _given(e: Emitter, name: str, layout: str) -> int:
    """The tensor of an output; a map stays with its channels last, and has them there in a layout that says so."""
    if name in e.model.constants:
        raise ModelError(f"{e.model.name}: output {name!r} is known before the model runs")
    held = e.floats(name)
    last = (held.last and not held.flat) or (layout == LAYOUTS[1] and len(held.shape) == 4)
    return e.in_order(held, last=last)


def _turned(e: Emitter, ends: list[int]) -> frozenset[int]:
    """The ends whose channels stand last where the model has them first, and the bytes are not the same."""
    shapes = {t: e.built.tensors[t].shape for t in ends if e.stands_last(t)}
    return frozenset(t for t, (_, h, w, c) in shapes.items() if h * w > 1 and c > 1)


def _with_interface(e: Emitter, inputs: list[int], outputs: list[int], interface: str) -> None:
    """Gives the ends the type that is asked for; codes where the outer conversions go."""
    for side, names, fed in ((inputs, e.model.inputs, True), (outputs, e.model.outputs, False)):
        for position, name in enumerate(names):
            dtype = e.model.types[name][1] if interface == INTERFACES[0] else interface
            if interface != INTERFACES[0] and side[position] not in e.built.scales:
                side[position] = _converted(e, side[position], interface, fed=fed)
            if dtype == "uint8" and side[position] in e.built.scales:
                side[position] = e.without_sign(side[position], fed=fed)


def _converted(e: Emitter, tensor: int, interface: str, *, fed: bool) -> int:
    """The codes behind an input of floats or before such an output, whose conversion goes."""
    outer = [op for op in e.built.ops if tensor in (op.inputs if fed else op.outputs)]
    if len(outer) != 1 or outer[0].kind != ("QUANTIZE" if fed else "DEQUANTIZE"):
        name = e.built.tensors[tensor].name
        raise RequestError(f"--interface {interface}: no conversion of {name!r} stands at the model's end")
    e.built.ops.remove(outer[0])
    return (outer[0].outputs if fed else outer[0].inputs)[0]

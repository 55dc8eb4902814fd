"""Nodes that compute element by element, products of matrices, and those that only move elements."""

import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from math import prod

import numpy as np

from modelplan.plain_c.onnx_networks.emitting import (
    Emitter,
    Held,
    NodeResult,
    RefusedNodeError,
    last_axis,
    placed_last,
    require,
    require_axis,
)
from modelplan.plain_c.onnx_networks.map_nodes import (
    bias_codes,
    coded_operand,
    moved_operand,
    pass_codes_on,
    signed,
    stated_constant,
    weights_of,
)
from modelplan.plain_c.onnx_networks.onnx_nodes import Array, OnnxNode, Shape
from modelplan.plain_c.operator_calls.function_tables import UNARY
from modelplan.runtimes.tflm.stated_network import CodeScales

#: A value, or a constant.
_Operand = tuple[Held | None, Array | None]
_BINARY = {"Add": "ADD", "Sub": "SUB", "Mul": "MUL", "Div": "DIV", "Max": "MAXIMUM", "Min": "MINIMUM"}
_CODED_BINARY = {"Add": "ADD", "Mul": "MUL"}

# Element by element


def binary(e: Emitter, node: OnnxNode) -> None:
    """Add, Sub, Mul, Div, Max and Min of two values."""
    require(len(node.inputs) == 2, f"{len(node.inputs)} operands, there are kernels for 2")
    coded = [e.codes_of(name) for name in node.inputs]
    kind = _BINARY[node.kind]
    target = e.target(
        node, coded=None not in coded and node.kind in _CODED_BINARY, limited=kind not in ("MAXIMUM", "MINIMUM")
    )
    if target.scales:
        operands: list[_Operand] = [(held, None) for held in coded if held]
    else:
        operands = [_operand(e, name) for name in node.inputs]
    _emit_binary(e, kind, operands, target)


def coded_binary(e: Emitter, node: OnnxNode) -> None:
    """QLinearAdd and QLinearMul."""
    operands: list[_Operand] = []
    for position in (0, 3):
        known = e.known(node, position)
        if known is None:
            operands.append((coded_operand(e, node, position), None))
            continue
        scales, code = e.scales(node, position + 1)
        tensor = e.built.constant(node.inputs[position], signed(known), scales)
        operands.append((Held(tensor, last=False, shape=known.shape, scales=scales, code=code), None))
    out, code = e.scales(node, 6)
    kind = {"QLinearAdd": "ADD", "QLinearMul": "MUL"}[node.kind]
    _emit_binary(e, kind, operands, NodeResult(node.outputs[0], scales=out, code=code))


def _is_repeated(first: Sequence[int], second: Sequence[int]) -> bool:
    """Whether each element of the first operand stands beside several of the second, one after the other."""
    longest = max(len(first), len(second))
    sizes = [(1,) * (longest - len(shape)) + tuple(shape) for shape in (first, second)]
    pairs = [(a, b) for a, b in zip(*map(reversed, sizes), strict=True) if (a, b) != (1, 1)]
    return bool(pairs) and pairs[0][0] == 1


def _emit_binary(e: Emitter, kind: str, operands: list[_Operand], target: NodeResult, dtype: str = "float32") -> None:
    rank = len(e.shape(target.name))
    held = [h for h, _ in operands if h]
    require(bool(held), "constants alone")
    if kind == "ADD" and target.scales and len(held) == 2 and _is_repeated(*(h.shape for h in held)):
        operands = operands[::-1]  # ONNX Runtime's kernels take what is repeated as the second operand
    alike = rank in (3, 4) and all(len(h.shape) == rank or prod(h.shape) == 1 for h in held)
    last = alike and any(h.last for h in held)
    tensors = []
    for value, constant in operands:
        if constant is not None:
            require(constant.ndim <= rank, "a constant of more dimensions than the result")
            numbers = e.spread_constant(constant, rank, last=last)
            numbers = numbers if numbers.dtype == np.bool_ else np.asarray(numbers, np.float32)
            tensors.append(e.built.constant(f"{target.name} operand", numbers))
        elif value is not None:
            whole = prod(value.shape) == 1 and len(value.shape) != rank
            tensors.append(value.tensor if whole else e.in_order(value, last=last))
    e.built.op(kind, tensors, [e.result(target, last=last, dtype=dtype)], **e.options(target))


def unary(e: Emitter, node: OnnxNode) -> None:
    """A function of each element, of floats, or of codes between a DequantizeLinear and a QuantizeLinear."""
    if node.kind == "Elu" and node.number("alpha", 1.0) != 1.0:
        composed(e, node)
        return
    source = e.codes_of(node.inputs[0])
    reader = e.only_reader(node.outputs[0])
    kind = _function(node.kind)
    if source and UNARY[kind].exact and reader is not None and reader.kind == "QuantizeLinear":
        _emit_unary(e, kind, source, e.target(node, coded=True, limited=False), node)
        return
    _emit_unary(e, kind, e.floats(node.inputs[0]), NodeResult(node.outputs[0]), node)


def coded_unary(e: Emitter, node: OnnxNode) -> None:
    """QLinearSigmoid and QLinearLeakyRelu."""
    scales, code = e.scales(node, 3)
    kind = _function(node.kind.removeprefix("QLinear"))
    _emit_unary(e, kind, coded_operand(e, node), NodeResult(node.outputs[0], scales=scales, code=code), node)


def _function(kind: str) -> str:
    """The function of one number that has another name in TFLite only by its capitals, but for Sigmoid."""
    return "LOGISTIC" if kind == "Sigmoid" else re.sub(r"(?<=[a-z])(?=[A-Z])", "_", kind).upper()


def _emit_unary(e: Emitter, kind: str, held: Held, target: NodeResult, node: OnnxNode) -> None:
    alpha = {"Alpha": float(node.number("alpha", 0.01))} if kind == "LEAKY_RELU" else {}
    held = _unflat(e, held)
    e.built.op(kind, [held.tensor], [e.result(target, last=held.last)], **alpha, **e.options(target))


def clipped(e: Emitter, node: OnnxNode) -> None:
    """Clip where no operator before it does it, or by bounds that are computed."""
    limits = e.limits_of(node)
    if limits is None:
        _clipped_by_values(e, node)
        return
    held = _unflat(e, e.floats(node.inputs[0]))
    require(len(held.shape) > 0, "a scalar")
    neutral = e.built.constant(f"{node.outputs[0]} one", np.ones((1,) * len(held.shape), np.float32))
    target = NodeResult(node.outputs[0], limits=limits)
    e.built.op("MUL", [held.tensor, neutral], [e.result(target, last=held.last)], **e.options(target))


def _clipped_by_values(e: Emitter, node: OnnxNode) -> None:
    operand, target = _operand(e, node.inputs[0]), NodeResult(node.outputs[0])
    for position, kind in ((1, "MAXIMUM"), (2, "MINIMUM")):
        if node.has(position):
            _emit_binary(e, kind, [operand, _operand(e, node.inputs[position])], target)
            operand = (e.values[target.name], None)


def _operand(e: Emitter, name: str) -> _Operand:
    known = e.constant(name)
    return (None, known) if known is not None else (e.floats(name), None)


def compared(e: Emitter, node: OnnxNode) -> None:
    """Equal, Greater and their like of two floats."""
    types = {e.model.types[name][1] for name in node.inputs}
    require(types == {"float32"}, f"types {', '.join(sorted(types))}")
    kind = {"GreaterOrEqual": "GREATER_EQUAL", "LessOrEqual": "LESS_EQUAL"}.get(node.kind, node.kind.upper())
    _emit_binary(e, kind, [_operand(e, n) for n in node.inputs], NodeResult(node.outputs[0]), "bool")


def chosen(e: Emitter, node: OnnxNode) -> None:
    """Where: floats of one of two values, as a third one says."""
    types = [e.model.types[name][1] for name in node.inputs]
    require(types == ["bool", "float32", "float32"], f"types {', '.join(types)}")
    _emit_binary(e, "SELECT_V2", [_operand(e, n) for n in node.inputs], NodeResult(node.outputs[0]))


def summed(e: Emitter, node: OnnxNode) -> None:
    """Sum and Mean of values: one after the other."""
    operand, target = _operand(e, node.inputs[0]), NodeResult(node.outputs[0])
    for name in node.inputs[1:]:
        _emit_binary(e, "ADD", [operand, _operand(e, name)], target)
        operand = (e.values[target.name], None)
    if node.kind == "Mean" or len(node.inputs) == 1:
        share = np.full((1,) * max(len(e.shape(target.name)), 1), 1 / len(node.inputs), np.float32)
        _emit_binary(e, "MUL", [operand, (None, share)], target)


def repeated(e: Emitter, node: OnnxNode) -> None:
    """Expand: a value that is repeated along some axes."""
    held, shape = e.floats(node.inputs[0]), e.shape(node.outputs[0])
    require(e.built.tensors[held.tensor].type == 0, "a type other than float32")
    _emit_binary(e, "MUL", [(held, None), (None, np.ones(shape, np.float32))], NodeResult(node.outputs[0]))


def _unflat(e: Emitter, held: Held) -> Held:
    return _native(e, held) if held.flat else held


def composed(e: Emitter, node: OnnxNode) -> None:
    """Functions that no operator of TFLM has: HardSigmoid, Reciprocal, Selu, Softsign, Pow, Gelu, Mish and others."""
    held = _unflat(e, e.floats(node.inputs[0]))
    steps = _Steps(e, held, node.outputs[0])
    _COMPOSED[node.kind](steps, node)
    steps.end()


class _Steps:
    """Operators one after the other on values of one shape; the last one makes the node's result."""

    def __init__(self, e: Emitter, held: Held, name: str) -> None:
        self.e, self.held, self.name = e, held, name
        self.x = held.tensor

    def op(self, kind: str, *operands: float, shape: Shape | None = None, **options: object) -> int:
        """One more operator, of tensors and of numbers; its result."""
        inputs = [o if isinstance(o, int) else self._number(o) for o in operands]
        extents = self.e.built.tensors[self.x].shape if shape is None else shape
        tensor = self.e.built.tensor(f"{self.name} step", extents, "float32")
        self.e.built.op(kind, inputs, [tensor], FusedActivationFunction=0, **options)
        return tensor

    def function(self, name: str) -> int:
        """A function of each element for which TFLM has no kernel."""
        return self.op("GELU", self.x, Function=name)

    def _number(self, value: float) -> int:
        rank = len(self.e.built.tensors[self.x].shape)
        return self.e.built.constant(f"{self.name} number", np.full((1,) * max(rank, 1), value, np.float32))

    def end(self) -> None:
        """The result of the last operator is that of the node."""
        target = self.e.result(NodeResult(self.name), last=self.held.last)
        ops = self.e.built.ops
        ops[-1] = type(ops[-1])(ops[-1].kind, ops[-1].inputs, (target,), options=ops[-1].options)


def _hard_sigmoid(s: _Steps, node: OnnxNode) -> None:
    moved = s.op("MUL", s.x, float(node.number("alpha", 0.2)))
    s.op("ADD", moved, float(node.number("beta", 0.5)), Limits=(0.0, 1.0))


def _power(s: _Steps, node: OnnxNode) -> None:
    exponent = s.e.needed(node, 1, "exponent")
    require(exponent.size == 1, "several exponents")
    value = float(exponent.ravel()[0])
    require(value in (2.0, 0.5, 3.0, -1.0, 1.0), f"exponent {value}")
    if value == 0.5:
        s.op("SQRT", s.x)
    elif value == -1.0:
        s.op("DIV", 1.0, s.x)
    else:
        product = s.op("MUL", s.x, s.x if value != 1.0 else 1.0)
        if value == 3.0:
            s.op("MUL", product, s.x)


def _gelu(s: _Steps, node: OnnxNode) -> None:
    if node.text("approximate", "none") != "tanh":
        s.function("gelu")
        return
    cube = s.op("MUL", s.op("MUL", s.x, s.x), s.x)
    inner = s.op("MUL", s.op("ADD", s.op("MUL", cube, 0.044715), s.x), float(np.sqrt(2 / np.pi)))
    s.op("MUL", s.op("MUL", s.x, 0.5), s.op("ADD", s.op("TANH", inner), 1.0))


def _elu(s: _Steps, node: OnnxNode) -> None:
    slope, scale = (1.67326319217681884765625, 1.05070102214813232421875) if node.kind == "Selu" else (1.0, 1.0)
    s.op("LEAKY_RELU", s.op("ELU", s.x), Alpha=float(node.number("alpha", slope)))
    if node.kind == "Selu":
        s.op("MUL", s.e.built.ops[-1].outputs[0], float(node.number("gamma", scale)))


_COMPOSED: dict[str, Callable[[_Steps, OnnxNode], object]] = {
    "HardSigmoid": _hard_sigmoid,
    "Elu": _elu,
    "Selu": _elu,
    "Softsign": lambda s, _: s.op("DIV", s.x, s.op("ADD", s.op("ABS", s.x), 1.0)),
    "Reciprocal": lambda s, _: s.op("DIV", 1.0, s.x),
    "Pow": _power,
    "Gelu": _gelu,
    "Erf": lambda s, _: s.function("erf"),
    "Softplus": lambda s, _: s.function("softplus"),
    "Mish": lambda s, _: s.function("mish"),
    "Swish": lambda s, _: s.function("swish"),
}


def sloped(e: Emitter, node: OnnxNode) -> None:
    """PRelu with constant slopes."""
    slopes = e.needed(node, 1, "slopes")
    held = _unflat(e, e.floats(node.inputs[0]))
    rank = len(held.shape)
    require(slopes.ndim <= rank, "slopes of more dimensions")
    numbers = e.spread_constant(slopes, rank, last=held.last)
    table = e.built.constant(f"{node.outputs[0]} slopes", np.asarray(numbers, np.float32))
    e.built.op("PRELU", [held.tensor, table], [e.result(NodeResult(node.outputs[0]), last=held.last)])


# Codes


def quantised(e: Emitter, node: OnnxNode) -> None:
    """QuantizeLinear, of floats or of numbers that codes of another scale stand for."""
    scales, code = e.scales(node, 1)
    source = e.codes_of(node.inputs[0])
    target = NodeResult(node.outputs[0], scales=scales, code=code)
    if source and source.scales == scales and not source.flat:
        e.values[node.outputs[0]] = source
        return
    held = source or e.floats(node.inputs[0])
    if held.flat:
        tensor = e.built.tensor(target.name, held.shape, "int8", scales)
        e.values[target.name] = Held(tensor, False, held.shape, scales, code, held.flat)
    else:
        tensor = e.result(target, last=held.last)
    e.built.op("QUANTIZE", [held.tensor], [tensor], **e.options(target))


def dequantised(e: Emitter, node: OnnxNode) -> None:
    """DequantizeLinear, which makes no map: its readers take the codes, or what they need of them."""
    constant = stated_constant(e, node)
    if constant:
        e.constant_codes[node.outputs[0]] = constant
        return
    coded_operand(e, node)
    e.codes[node.outputs[0]] = node.inputs[0]


# Products with a matrix


def general_product(e: Emitter, node: OnnxNode) -> None:
    """Gemm with constant weights."""
    alpha, beta = node.number("alpha", 1.0), node.number("beta", 1.0)
    require(not int(node.number("transA")), "a first operand that is transposed")
    matrix, scales = weights_of(e, node.inputs[1])
    weights = matrix if int(node.number("transB")) else matrix.T
    source = e.codes_of(node.inputs[0])
    plain = alpha == 1.0 and (beta == 1.0 or not node.has(2))
    target = e.target(node, coded=source is not None and scales is not None and plain)
    if target.scales and source and scales and source.scales:
        require_axis(scales, 0 if int(node.number("transB")) else 1)
        bias = bias_codes(e, node.inputs[2], source.scales, scales).ravel() if node.has(2) else None
        _emit_product(e, source, weights, scales, bias, target)
        return
    numbers = e.needed(node, 1, "matrix")
    weights = (numbers if int(node.number("transB")) else numbers.T) * np.float32(alpha)
    added = e.known(node, 2)
    require(added is not None or not node.has(2), "a bias that is computed")
    bias = None
    if added is not None:
        require(added.size in (1, len(weights)), "a bias for each element")
        bias = np.broadcast_to(added.ravel() * np.float32(beta), len(weights))
    _emit_product(e, e.floats(node.inputs[0]), weights, None, bias, target)


def coded_product(e: Emitter, node: OnnxNode) -> None:
    """QGemm and QLinearMatMul."""
    general = node.kind == "QGemm"
    require(not int(node.number("transA")), "a first operand that is transposed")
    stated, _ = e.scales(node, 4, weights=True)
    factor = np.float32(node.number("alpha", 1.0))
    scales = CodeScales(tuple(float(np.float32(s) * factor) for s in stated.scales), stated.zero, stated.axis)
    matrix = signed(e.needed(node, 3, "matrix"))
    out, code = e.scales(node, 7 if general else 6)
    weights = matrix if general and int(node.number("transB")) else matrix.T
    bias = e.known(node, 6) if general else None
    _emit_product(e, coded_operand(e, node), weights, scales, bias, NodeResult(node.outputs[0], scales=out, code=code))


def _emit_product(
    e: Emitter, held: Held, weights: Array, scales: CodeScales | None, bias: Array | None, target: NodeResult
) -> None:
    """Lines of the operand with the rows of a matrix; of a flattened map the columns are in its order."""
    require(weights.ndim == 2, "a matrix of more than 2 dimensions")
    require(scales is None or scales.zero == 0, "weights whose zero point is not 0")
    source = held.tensor
    if held.flat:
        channels, places = held.flat
        weights = weights.reshape(len(weights), channels, places).transpose(0, 2, 1).reshape(len(weights), -1)
    else:
        source = e.in_order(held, last=False)
    stated = scales and CodeScales(scales.scales, 0, 0)
    tables = [e.built.constant(f"{target.name} weights", weights, stated)]
    if bias is not None:
        tables.append(e.built.constant(f"{target.name} bias", np.ascontiguousarray(bias.ravel())))
    e.built.op(
        "FULLY_CONNECTED", [source, *tables], [e.result(target, last=False)], WeightsFormat=0, **e.options(target)
    )


def matrix_product(e: Emitter, node: OnnxNode) -> None:
    """MatMul with constant weights, and a sum with a constant behind it; or of two values."""
    matrix, scales = (None, None)
    if e.constant(node.inputs[1]) is not None:
        matrix, scales = weights_of(e, node.inputs[1])
    if matrix is None:
        _product_of_values(e, node)
        return
    require(matrix.ndim == 2, f"weights of {matrix.ndim} dimensions")
    source = e.codes_of(node.inputs[0])
    name, added = _added_bias(e, node, matrix.shape[1])
    seen = OnnxNode(node.name, node.kind, node.inputs, (name,), node.attributes)
    target = e.target(seen, coded=source is not None and scales is not None)
    if target.scales and source and scales and source.scales:
        require_axis(scales, 1)
        bias = None
        if added:
            bias = bias_codes(e, added, source.scales, scales)
        _emit_product(e, source, matrix.T, scales, bias, target)
        return
    weights = e.needed(node, 1, "matrix")
    bias = e.constant(added) if added else None
    _emit_product(e, e.floats(node.inputs[0]), weights.T, None, bias, target)


def _added_bias(e: Emitter, node: OnnxNode, channels: int) -> tuple[str, str]:
    """The name of a product behind a sum with a constant for each channel, and that of the constant."""
    reader = e.only_reader(node.outputs[0])
    if reader and reader.kind == "Add":
        other = next((n for n in reader.inputs if n != node.outputs[0]), "")
        values = e.constant(other) if other else None
        if values is not None and values.size == channels == (values.shape[-1] if values.ndim else 0):
            e.absorbed.add(reader.outputs[0])
            return reader.outputs[0], other
    return node.outputs[0], ""


def _product_of_values(e: Emitter, node: OnnxNode) -> None:
    a, b = e.native(node.inputs[0]), e.native(node.inputs[1])
    ranks = len(e.shape(node.inputs[0])), len(e.shape(node.inputs[1]))
    require(min(ranks) > 1, "a product with a vector")
    e.built.op("BATCH_MATMUL", [a, b], [e.result(NodeResult(node.outputs[0]), last=False)], AdjX=0, AdjY=0)


# Along an axis


def softmax(e: Emitter, node: OnnxNode) -> None:
    """Softmax along the last axis, or along the channels of a map."""
    shape = e.shape(node.inputs[0])
    axis = int(node.number("axis", 1 if e.model.opset < 13 else -1)) % max(len(shape), 1)
    if e.model.opset < 13:
        require(prod(shape[axis + 1 :]) == 1 or axis == len(shape) - 1, "several axes as one")
    source, reader = e.codes_of(node.inputs[0]), e.only_reader(node.outputs[0])
    coded = source is not None and reader is not None and reader.kind == "QuantizeLinear"
    target = e.target(node, coded=coded, limited=False) if coded else NodeResult(node.outputs[0])
    _emit_softmax(e, source if target.scales and source else e.floats(node.inputs[0]), axis, target)


def coded_softmax(e: Emitter, node: OnnxNode) -> None:
    """QLinearSoftmax."""
    scales, code = e.scales(node, 3)
    shape = e.shape(node.outputs[0])
    axis = int(node.number("axis", -1)) % len(shape)
    _emit_softmax(e, coded_operand(e, node), axis, NodeResult(node.outputs[0], scales=scales, code=code))


def _emit_softmax(e: Emitter, held: Held, axis: int, target: NodeResult) -> None:
    rank = len(held.shape)
    if axis == 1 and rank in (3, 4) and (held.last or rank == 4):
        e.built.op("SOFTMAX", [e.in_order(held, last=True)], [e.result(target, last=True)], Beta=1.0)
        return
    if axis == rank - 1:
        e.built.op("SOFTMAX", [e.in_order(held, last=False)], [e.result(target, last=False)], Beta=1.0)
        return
    require(prod(held.shape[axis + 1 :]) == 1, f"axis {axis} of {list(held.shape)}")
    stored = (*held.shape[:axis], held.shape[axis])
    flat = e.viewed(_native(e, held), target.name, stored, stored=stored, last=False)
    middle = e.built.tensor(target.name, stored, "int8" if target.scales else "float32", target.scales)
    e.built.op("SOFTMAX", [flat.tensor], [middle], Beta=1.0)
    spread = e.viewed(
        Held(middle, False, stored, target.scales, target.code), target.name, held.shape, stored=held.shape, last=False
    )
    e.values[target.name] = spread


def _native(e: Emitter, held: Held) -> Held:
    tensor = e.in_order(held, last=False)
    return Held(tensor, last=False, shape=held.shape, scales=held.scales, code=held.code)


def normalised_along(e: Emitter, node: OnnxNode) -> None:
    """LayerNormalization along the last axis, as the operators of which it is made."""
    shape = e.shape(node.inputs[0])
    require(int(node.number("axis", -1)) % len(shape) == len(shape) - 1, "several axes")
    require(len([o for o in node.outputs if o]) == 1, "mean and deviation as results")
    steps = _Steps(e, _native(e, e.floats(node.inputs[0])), node.outputs[0])
    _, centred, root = _mean_and_deviation(steps, (len(shape) - 1,), node.number("epsilon", 1e-5))
    result = steps.op("DIV", centred, root)
    for position, kind in ((1, "MUL"), (2, "ADD")):
        values = e.known(node, position)
        require(values is not None or not node.has(position), "scales that are computed")
        if values is not None:
            result = steps.op(kind, result, e.built.constant(f"{steps.name} {kind}", values.astype(np.float32)))
    steps.end()


def normalised_by_instance(e: Emitter, node: OnnxNode) -> None:
    """InstanceNormalization: a factor and an offset for each channel, as ONNX Runtime computes it."""
    held, rank = e.floats(node.inputs[0]), len(e.shape(node.inputs[0]))
    last = rank == 4
    held = replace(held, tensor=e.in_order(held, last=last), last=last, flat=None)
    steps, axes = _Steps(e, held, node.outputs[0]), (1, 2) if last else tuple(range(2, rank))
    mean, _, root = _mean_and_deviation(steps, axes, node.number("epsilon", 1e-5))
    lines = e.built.tensors[mean].shape
    scale, shift = (
        e.built.constant(f"{steps.name} {what}", e.needed(node, i, what).astype(np.float32).reshape(lines[1:]))
        for i, what in ((1, "scale"), (2, "shift"))
    )
    factor = steps.op("DIV", scale, root, shape=lines)
    offset = steps.op("SUB", shift, steps.op("MUL", mean, factor, shape=lines), shape=lines)
    steps.op("ADD", steps.op("MUL", steps.x, factor), offset)
    steps.end()


def _mean_and_deviation(s: _Steps, axes: tuple[int, ...], epsilon: float) -> tuple[int, int, int]:
    """The mean along axes, what is beside it, and the root of the mean square of that."""
    whole = s.e.built.tensors[s.x].shape
    lines = tuple(1 if axis in axes else extent for axis, extent in enumerate(whole))
    table = s.e.integers("axes", axes)
    mean = s.op("MEAN", s.x, table, shape=lines, KeepDims=1)
    centred = s.op("SUB", s.x, mean)
    spread = s.op("MEAN", s.op("MUL", centred, centred), table, shape=lines, KeepDims=1)
    return mean, centred, s.op("SQRT", s.op("ADD", spread, epsilon, shape=lines), shape=lines)


# Moves


def reshaped(e: Emitter, node: OnnxNode) -> None:
    """Reshape and its like, which move nothing where channels may stay last."""
    held, result = moved_operand(e, node), e.shape(node.outputs[0])
    e.values[node.outputs[0]] = _reshaped(e, held, node.outputs[0], result)
    pass_codes_on(e, node)


def _reshaped(e: Emitter, held: Held, name: str, result: Shape) -> Held:
    shape = held.shape
    if held.last and not held.flat:
        n, c, places = shape[0], shape[1], prod(shape[2:])
        if c == 1 or places == 1:
            return e.viewed(held, name, result, stored=result, last=False)
        if result == (n, c * places):
            stored = e.viewed(held, name, result, stored=result, last=False)
            return Held(stored.tensor, False, result, held.scales, held.code, flat=(c, places))
        if len(result) in (3, 4) and result[:2] == (n, c):
            return e.viewed(held, name, result, stored=placed_last(result), last=True)
    return e.viewed(_native(e, held), name, result, stored=result, last=False)


def transposed(e: Emitter, node: OnnxNode) -> None:
    """Transpose, which moves nothing where it undoes an order."""
    held, result = moved_operand(e, node), e.shape(node.outputs[0])
    rank = len(held.shape)
    order = node.numbers("perm", tuple(range(rank))[::-1])
    name = node.outputs[0]
    if held.last and not held.flat and order == ((0, 2, 3, 1) if rank == 4 else (0, 2, 1)):
        e.values[name] = e.viewed(held, name, result, stored=result, last=False)
    elif not held.last and not held.flat and rank in (3, 4) and order == ((0, 3, 1, 2) if rank == 4 else (0, 2, 1)):
        e.values[name] = e.viewed(held, name, result, stored=placed_last(result), last=True)
    else:
        e.values[name] = e.transposed(_native(e, held), name, result, order)
    pass_codes_on(e, node)


def joined(e: Emitter, node: OnnxNode) -> None:
    """Concat of floats, or of codes, which are brought to one scale where a QuantizeLinear follows."""
    stored = [e.values[name] for name in node.inputs if name in e.values and e.values[name].scales]
    if stored:
        require({h.scales for h in stored} == {stored[0].scales} and len(stored) == len(node.inputs), "several scales")
        target = NodeResult(node.outputs[0], scales=stored[0].scales, code=stored[0].code)
        _emit_join(e, stored, int(node.number("axis")), target)
        return
    coded = [e.codes_of(name) for name in node.inputs]
    target = e.target(node, coded=True, limited=False) if None not in coded else NodeResult(node.outputs[0])
    if target.scales is None:
        _emit_join(e, [e.floats(name) for name in node.inputs], int(node.number("axis")), target)
        return
    _emit_join(e, [held for held in coded if held], int(node.number("axis")), target)


def coded_join(e: Emitter, node: OnnxNode) -> None:
    """QLinearConcat."""
    scales, code = e.scales(node, 0)
    operands = [coded_operand(e, node, position) for position in range(2, len(node.inputs), 3)]
    _emit_join(e, operands, int(node.number("axis")), NodeResult(node.outputs[0], scales=scales, code=code))


def _emit_join(e: Emitter, operands: list[Held], axis: int, target: NodeResult) -> None:
    rank = len(operands[0].shape)
    last = rank in (3, 4) and any(held.last for held in operands)
    tensors = []
    for held in operands:
        tensor = e.in_order(held, last=last)
        if target.scales and held.scales != target.scales:
            moved = e.built.tensor(f"{target.name} part", e.built.tensors[tensor].shape, "int8", target.scales)
            e.built.op("QUANTIZE", [tensor], [moved])
            tensor = moved
        tensors.append(tensor)
    place = last_axis(axis, rank) if last else axis % rank
    e.built.op("CONCATENATION", tensors, [e.result(target, last=last)], Axis=place, FusedActivationFunction=0)


def sliced(e: Emitter, node: OnnxNode) -> None:
    """Slice with constant ends and steps of 1."""
    shape = e.shape(node.inputs[0])
    if node.has(1):
        starts, axes, steps = (e.known(node, i) for i in (1, 3, 4))
        require(starts is not None, "ends that are computed")
        assert starts is not None
        begin = [int(v) for v in starts.ravel()]
    else:
        begin, axes, steps = list(node.numbers("starts")), None, None
    stated = node.numbers("axes", tuple(range(len(begin)))) if axes is None else tuple(int(a) for a in axes.ravel())
    strides = [int(s) for s in steps.ravel()] if steps is not None else [1] * len(begin)
    places, apart = [0] * len(shape), [1] * len(shape)
    for at, axis, step in zip(begin, stated, strides, strict=True):
        extent = shape[axis % len(shape)]
        low, high = (0, extent) if step > 0 else (-1, extent - 1)
        places[axis % len(shape)] = min(max(at + extent * (at < 0), low), high)
        apart[axis % len(shape)] = step
    require(min(apart) > 0, "steps below 0")
    _emit_slice(e, moved_operand(e, node), node.outputs[0], places, apart)
    pass_codes_on(e, node)


def _emit_slice(e: Emitter, held: Held, name: str, begin: list[int], steps: list[int]) -> None:
    """Places of all axes from a first one on."""
    rank = len(held.shape)
    last = held.last and not held.flat
    if last:
        placed, apart = [0] * 4, [1] * 4
        for axis in range(rank):
            placed[last_axis(axis, rank)], apart[last_axis(axis, rank)] = begin[axis], steps[axis]
        begin, steps = placed, apart
    source = e.in_order(held, last=last)
    tensor = e.result(NodeResult(name, scales=held.scales, code=held.code), last=last)
    size = e.built.tensors[tensor].shape
    if max(steps) == 1:
        e.built.op("SLICE", [source, e.integers("begin", begin), e.integers("size", size)], [tensor])
        return
    ends = [b + (n - 1) * s + 1 for b, n, s in zip(begin, size, steps, strict=True)]
    tables = [e.integers(w, v) for w, v in (("begin", begin), ("end", ends), ("strides", steps))]
    masks = dict.fromkeys(("BeginMask", "EndMask", "EllipsisMask", "NewAxisMask", "ShrinkAxisMask"), 0)
    e.built.op("STRIDED_SLICE", [source, *tables], [tensor], **masks)


def split(e: Emitter, node: OnnxNode) -> None:
    """Split: a slice for each result that is read."""
    held = moved_operand(e, node)
    axis, at = int(node.number("axis")) % len(held.shape), 0
    for name in node.outputs:
        extent = e.shape(name)[axis] if name else 0
        if name and (name in e.readers or name in e.model.outputs):
            begin = [at if k == axis else 0 for k in range(len(held.shape))]
            _emit_slice(e, held, name, begin, [1] * len(begin))
            pass_codes_on(e, OnnxNode(node.name, node.kind, node.inputs, (name,), node.attributes))
        require(bool(name), "results that are absent")
        at += extent


def picked(e: Emitter, node: OnnxNode) -> None:
    """Gather at constant places of an axis."""
    places = e.needed(node, 1, "places")
    held = _native(e, moved_operand(e, node))
    axis = int(node.number("axis")) % len(held.shape)
    extent = held.shape[axis]
    numbers = np.where(places < 0, places + extent, places).astype(np.int32)
    target = NodeResult(node.outputs[0], scales=held.scales, code=held.code)
    table = e.built.constant("places", numbers)
    e.built.op("GATHER", [held.tensor, table], [e.result(target, last=False)], Axis=axis, BatchDims=0)
    pass_codes_on(e, node)


def padded(e: Emitter, node: OnnxNode) -> None:
    """Pad with a constant, or by reflection."""
    held, mode = moved_operand(e, node), node.text("mode", "constant")
    rank = len(held.shape)
    pads = e.known(node, 1)
    stated = list(node.numbers("pads")) if pads is None else [int(p) for p in pads.ravel()]
    axes = e.known(node, 3)
    named = [int(a) % rank for a in axes.ravel()] if axes is not None else list(range(rank))
    amounts = [(0, 0)] * rank
    for k, axis in enumerate(named):
        amounts[axis] = stated[k], stated[len(named) + k]
    require(min(min(pair) for pair in amounts) >= 0, "paddings below 0")
    require(mode in ("constant", "reflect"), f"mode {mode}")
    value = e.known(node, 2)
    number = float(value.ravel()[0]) if value is not None and value.size else float(node.number("value", 0.0))
    if held.scales and node.inputs[0] not in e.codes:  # a code, of which the number is asked below
        require(value is not None or mode != "constant", "codes that are padded by a code which it does not say")
        number -= held.scales.zero + held.code
    last = held.last and not held.flat
    if last:
        placed = [(0, 0)] * 4
        for axis in range(rank):
            placed[last_axis(axis, rank)] = amounts[axis]
        amounts = placed
    source = e.in_order(held, last=last)
    table = e.built.constant("paddings", np.array(amounts, np.int32))
    tensor = e.result(NodeResult(node.outputs[0], scales=held.scales, code=held.code), last=last)
    if mode == "reflect":
        e.built.op("MIRROR_PAD", [source, table], [tensor], Mode=0)
    elif held.scales:
        require(number == 0.0, "codes that are padded by another number than 0")
        e.built.op("PAD", [source, table], [tensor])
    else:
        filled = e.built.constant("padding", np.array([number], np.float32))
        e.built.op("PADV2", [source, table, filled], [tensor])
    pass_codes_on(e, node)


def cast(e: Emitter, node: OnnxNode) -> None:
    """Cast between floats, which stays what it is, and of truth values to floats."""
    source, target = e.model.types[node.inputs[0]][1], e.model.types[node.outputs[0]][1]
    if (source, target) == ("bool", "float32"):
        held = e.floats(node.inputs[0])
        e.built.op("CAST", [held.tensor], [e.result(NodeResult(node.outputs[0]), last=held.last)])
        return
    require(source == target == "float32", f"types {source} and {target}")
    e.values[node.outputs[0]] = e.floats(node.inputs[0])


def refused_dynamic(e: Emitter, node: OnnxNode) -> None:
    """Products of integers whose scales are computed while the model runs."""
    del e, node
    raise RefusedNodeError("scales that are computed while it runs: quantise the model statically")

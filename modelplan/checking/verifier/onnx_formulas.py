"""What an .onnx file computes, as formulas: its nodes on random numbers, read here without the reader that plans.

Moves are carried out by the reference of the package onnx, on these numbers. Codes are those of QLinear operators: what
stands between DequantizeLinear and QuantizeLinear is a sum of products of codes.
"""

import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from modelplan.checking.verifier import formula_numbers as f
from modelplan.checking.verifier.formula_numbers import Numbers, Windows
from modelplan.checking.verifier.verdicts import Skipped
from modelplan.primitives.lazy_records import dataclass

#: Functions of one number by the names that plain C has for them: those of ONNX in capitals, but for some.
_FUNCTIONS = {
    **{name: re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name).upper() for name in (
        "Tanh", "HardSwish", "Abs", "Exp", "Log", "Sqrt", "Neg", "Floor", "Ceil", "Sin", "Cos", "Round", "Cast",
    )},
    "Sigmoid": "LOGISTIC", "QLinearSigmoid": "LOGISTIC", "Erf": "erf", "Softplus": "softplus", "Mish": "mish",
    "Swish": "swish",
}  # fmt: skip
_COMPARED = {
    "Equal": "EQUAL", "Greater": "GREATER", "GreaterOrEqual": "GREATER_EQUAL", "Less": "LESS",
    "LessOrEqual": "LESS_EQUAL", "Where": "SELECT_V2", "PRelu": "PRELU",
}  # fmt: skip
_MOVES = {
    "Reshape", "Flatten", "Squeeze", "Unsqueeze", "Transpose", "Concat", "Slice", "Split", "Gather", "Expand",
    "DepthToSpace", "SpaceToDepth",
}  # fmt: skip
#: Those that keep codes, where they read what was dequantised.
_KEEPING = _MOVES - {"Concat", "Expand"} | {"Pad", "Resize", "Upsample"}
_NOTHING = np.zeros(1, np.uint64)
#: The share by which a bias of the unit of its sums may state another one, rounded as float32 is.
_UNIT_ERROR = np.float32(1e-6)


@dataclass(frozen=True, slots=True, eq=False)
class Formula:
    """Values of a node: their numbers before `limits`.

    `codes` are scale and zero point where they were dequantised, `truth` says that they are truth values. `products`
    are the same values as sums of products of codes, and the unit of these, for a QuantizeLinear behind.
    """

    raw: Numbers
    limits: tuple[float, float] = f.UNLIMITED
    codes: tuple[float, int] | None = None
    products: tuple[Numbers, Numbers, Any] | None = None
    truth: bool = False

    @property
    def numbers(self) -> Numbers:
        """The numbers within their limits."""
        return f.limited(self.raw, self.limits)


Value = Formula | np.ndarray[Any, Any]


@dataclass(frozen=True, slots=True, eq=False)
class _Call:
    """A node with its operands, and what is known of those that were dequantised from constants."""

    proto: Any
    operands: list[Value | None]
    constants: list[tuple[Any, Any, int] | None]
    opset: int
    alone: bool

    def option(self, name: str, default: Any = None) -> Any:
        from onnx import helper

        attribute = next((a for a in self.proto.attribute if a.name == name), None)
        value = helper.get_attribute_value(attribute) if attribute is not None else default
        return value.decode() if isinstance(value, bytes) else value

    def has(self, position: int) -> bool:
        return position < len(self.operands) and self.operands[position] is not None

    def known(self, position: int) -> Any:
        value = self.operands[position]
        if not isinstance(value, np.ndarray):
            raise Skipped(f"no formula of {self.proto.op_type} whose operand {position} is computed")
        return value

    def numbers(self, position: int = 0) -> Numbers:
        value = self.operands[position]
        if value is None:
            raise Skipped(f"no formula of {self.proto.op_type} without operand {position}")
        return value.numbers if isinstance(value, Formula) else f.number(value)

    def formula(self, position: int = 0) -> Formula:
        value = self.operands[position]
        return value if isinstance(value, Formula) else Formula(self.numbers(position))

    def scales(self, position: int) -> tuple[float, int]:
        """Scale and zero point that stand at a position; codes without a sign are moved."""
        zero = self.known(position + 1) if self.has(position + 1) else np.uint8(0)
        moved = 128 if zero.dtype == np.uint8 else 0
        return float(np.float32(self.known(position).ravel()[0])), int(np.ravel(zero)[0]) - moved

    def decoded(self, position: int) -> Numbers:
        """Codes at a position with the scale behind them, as numbers."""
        value = self.operands[position]
        codes = f.number(_signed(value)) if isinstance(value, np.ndarray) else self.numbers(position)
        return f.dequantised(codes, *self.scales(position + 1))


def _signed(codes: Any) -> Any:
    return codes.astype(np.int16) - 128 if codes.dtype == np.uint8 else codes


@dataclass(frozen=True, slots=True, eq=False)
class OnnxFormulas:
    """The numbers that are drawn for inputs and those of outputs, by name; all `values`, and the `nodes` of results.

    Outputs that are codes of 8 bits are compared as they are.
    """

    inputs: Mapping[str, Numbers]
    outputs: Mapping[str, Numbers]
    values: Mapping[str, Value]
    nodes: Mapping[str, str]
    codes: frozenset[str]

    def numbers(self, name: str) -> Numbers | None:
        """Those of a result; None where there is none of that name, or it is a constant."""
        value = self.values.get(name)
        return value.numbers if isinstance(value, Formula) else None


def onnx_formulas(path: str, asked: Mapping[str, Any]) -> OnnxFormulas:
    """What a file computes.

    Raises:
        Skipped: a node is not known here, or extents stay open.
    """
    import onnx
    from onnx import numpy_helper

    model = onnx.load(path)
    if model.functions:
        from onnx.inliner import inline_local_functions

        model = inline_local_functions(model)
    opset = next(o.version for o in model.opset_import if o.domain in ("", "ai.onnx"))
    values: dict[str, Value] = {t.name: numpy_helper.to_array(t) for t in model.graph.initializer}
    feeds: dict[str, Numbers] = {}
    codes = (onnx.TensorProto.INT8, onnx.TensorProto.UINT8)
    for position, end in enumerate(i for i in model.graph.input if i.name not in values):
        feeds[end.name] = f.drawn(_extents(end, asked), position, codes=end.type.tensor_type.elem_type in codes)
        values[end.name] = Formula(feeds[end.name])
    replay = _Replay(values, opset)
    readers = [name for node in model.graph.node for name in {*node.input}] + [o.name for o in model.graph.output]
    for node in model.graph.node:
        replay.run(node, alone=readers.count(node.input[0]) == 1 if node.input else False)
    outputs = {o.name: replay.formula(o.name).numbers for o in model.graph.output}
    nodes = {name: f"{node.op_type} {node.name!r}" for node in model.graph.node for name in node.output}
    coded = frozenset(o.name for o in model.graph.output if o.type.tensor_type.elem_type in codes)
    return OnnxFormulas(feeds, outputs, replay.values, nodes, coded)


def _extents(end: Any, asked: Mapping[str, Any]) -> tuple[int, ...]:
    stated = dict(pair.rsplit("=", 1) for pair in asked.get("shapes", ()))
    if end.name in stated:
        return tuple(int(n) for n in stated[end.name].split(","))
    bound = dict(pair.split("=", 1) for pair in asked.get("dims", ()))
    extents = [d.dim_value or int(bound.get(d.dim_param, 0)) for d in end.type.tensor_type.shape.dim]
    if 0 in extents:
        raise Skipped(f"extents of {end.name!r} stay open")
    return tuple(extents)


class _Replay:
    def __init__(self, values: dict[str, Value], opset: int) -> None:
        self.values, self.opset = values, opset
        #: Of values that are dequantised constants: codes, scales and their axis.
        self.constants: dict[str, tuple[Any, Any, int]] = {}

    def formula(self, name: str) -> Formula:
        value = self.values[name]
        return value if isinstance(value, Formula) else Formula(f.number(value))

    def run(self, node: Any, *, alone: bool) -> None:
        """Computes the results of a node, of which `alone` says whether nothing else reads its first operand."""
        operands = [self.values[name] if name else None for name in node.input]
        call = _Call(node, operands, [self.constants.get(name) for name in node.input], self.opset, alone)
        if node.op_type == "Constant" or (node.op_type not in ("QuantizeLinear", "DequantizeLinear") and all(
            not isinstance(v, Formula) for v in operands
        )):  # fmt: skip
            results: Sequence[Value] = _by_reference(call, [v for v in operands if v is not None])
        elif node.op_type in ("Shape", "Size"):
            shape = np.array(self.formula(node.input[0]).raw.shape, np.int64)
            results = [shape[call.option("start", 0) : call.option("end")] if node.op_type == "Shape" else shape.prod()]
        elif node.op_type in ("Identity", "Dropout"):
            results = [operands[0]] if operands[0] is not None else []
            if call.constants[0]:
                self.constants[node.output[0]] = call.constants[0]
        elif node.op_type == "DequantizeLinear":
            results = [self._dequantised(call)]
        else:
            results = _computed(call)
        for name, value in zip(node.output, results, strict=False):
            self.values[name] = value

    def _dequantised(self, call: _Call) -> Value:
        source, name = call.operands[0], call.proto.output[0]
        if isinstance(source, Formula):
            stated = call.scales(1)
            return Formula(f.dequantised(source.numbers, *stated), codes=stated)
        codes, scale = call.known(0), call.known(1).astype(np.float32)
        zero: Any = np.asarray(call.known(2) if call.has(2) else 0)
        axis = call.option("axis", 1) % max(codes.ndim, 1) if scale.size > 1 else 0
        shape = [scale.size if a == axis else 1 for a in range(codes.ndim)]
        if not zero.any() or codes.dtype == np.uint8:
            self.constants[name] = codes.astype(np.int64) - zero.astype(np.int64).ravel()[0], scale.ravel(), axis
        less = zero.astype(np.float32).reshape(shape if zero.size > 1 else [1] * codes.ndim)
        numbers: Any = (codes.astype(np.float32) - less) * scale.reshape(shape)
        return np.asarray(numbers)


def _by_reference(call: _Call, operands: Sequence[Any]) -> list[Any]:
    """What the reference of the package onnx makes of a node."""
    from onnx.reference import ReferenceEvaluator

    given = [name for name in call.proto.input if name]
    return list(_evaluator(call, ReferenceEvaluator).run(None, dict(zip(given, operands, strict=True))))


def _evaluator(call: _Call, make: Any) -> Any:
    from onnx import helper

    inputs, outputs = (
        [helper.make_tensor_value_info(n, 0, None) for n in dict.fromkeys(names) if n]
        for names in (call.proto.input, call.proto.output)
    )
    graph = helper.make_graph([call.proto], "node", inputs, outputs)
    return make(helper.make_model(graph, opset_imports=[helper.make_opsetid("", call.opset)], ir_version=9))


def _computed(call: _Call) -> list[Value]:
    """The results of a node one of whose operands is computed."""
    kind, first = call.proto.op_type, call.operands[0]
    codes = first.codes if isinstance(first, Formula) and kind in _KEEPING else None
    if kind in _MOVES:
        given = [v.numbers if isinstance(v, Formula) else v for v in call.operands if v is not None]
        if kind == "Concat":
            given = [call.numbers(i) for i in range(len(call.operands))]
        return [Formula(y, codes=codes) for y in _by_reference(call, given)]
    if kind in _COMPARED:
        compared = f.function(_COMPARED[kind], *(call.numbers(i) for i in range(len(call.operands))))
        return [Formula(compared, truth=kind not in ("Where", "PRelu"))]
    if kind == "Cast" and isinstance(first, Formula) and not first.truth:
        return [first]
    if kind in _FUNCTIONS:
        return [Formula(f.function(_FUNCTIONS[kind], call.numbers()))] if kind[0] != "Q" else [_coded(call, _FUNCTIONS)]
    if kind not in RULES:
        raise Skipped(f"no formula of {kind}")
    computed = RULES[kind](call)
    return [replace(computed, codes=codes) if codes else computed]


def _coded(call: _Call, functions: Mapping[str, str]) -> Formula:
    computed = f.function(functions[call.proto.op_type], call.decoded(0))
    return Formula(f.quantised(computed, *call.scales(3)))


def _merged(source: Formula, least: float, most: float, *, alone: bool) -> Formula:
    """Values within further limits; sums of products stay such where nothing else reads them."""
    low, high = source.limits
    limits = max(min(low, most), least), max(min(high, most), least)
    return Formula(source.raw, limits, None, source.products if alone else None)


def _clip(call: _Call) -> Formula:
    ends = [call.option("min", -math.inf), call.option("max", math.inf)]
    for position in (1, 2):
        if call.has(position):
            bound = call.operands[position]
            ends[position - 1] = float(bound.ravel()[0]) if isinstance(bound, np.ndarray) else None
    if None not in ends:
        return _merged(call.formula(), ends[0], ends[1], alone=call.alone)
    x = call.numbers()
    for position, kind in ((1, "max"), (2, "min")):
        if call.has(position):
            x = f.function(kind, f.mixed(x) + f.mixed(call.numbers(position)))
    return Formula(x)


def _windows(call: _Call, extents: Sequence[int], taps: Sequence[int], ceil: int = 0) -> Windows:
    """Windows over two axes; a sequence has a second axis of one place."""
    axes = len(extents)
    strides, apart = (list(call.option(n) or [1] * axes) for n in ("strides", "dilations"))
    pads, auto = list(call.option("pads") or [0] * 2 * axes), call.option("auto_pad", "NOTSET")
    counts = []
    for a in range(axes):
        reach = (taps[a] - 1) * apart[a] + 1
        if auto in ("SAME_UPPER", "SAME_LOWER"):
            counts.append(-(-extents[a] // strides[a]))
            missing = max((counts[a] - 1) * strides[a] + reach - extents[a], 0)
            pads[a] = missing // 2 if auto == "SAME_UPPER" else -(-missing // 2)
            continue
        if auto == "VALID":
            pads[a] = pads[axes + a] = 0
        room = extents[a] + pads[a] + pads[axes + a] - reach
        counts.append((-(-room // strides[a]) if ceil else room // strides[a]) + 1)
        if ceil and (counts[a] - 1) * strides[a] >= extents[a] + pads[a]:
            counts[a] -= 1  # it would begin behind the map
    return _two_axes((taps, strides, apart, pads[:axes], counts))


def _two_axes(stated: Sequence[Sequence[int]]) -> Windows:
    taps, strides, apart, before, count = (
        (values[0], values[1] if len(values) > 1 else int(position != 3)) for position, values in enumerate(stated)
    )
    return Windows(taps, strides, apart, before, count)


def _square(x: Numbers) -> Numbers:
    return x[..., None] if x.ndim == 3 else x


def _convolution(call: _Call) -> Formula:
    x, weights = call.numbers(), call.numbers(1)
    windows, groups = _windows(call, x.shape[2:], weights.shape[2:]), call.option("group", 1)

    def products(x: Numbers, by: Numbers) -> Numbers:
        computed = windows.products(_square(x), _square(by), groups)
        return computed if x.ndim == 4 else computed[..., 0]

    bias = _along(call.numbers(2), 1, x.ndim) if call.has(2) else _NOTHING
    return _with_products(call, 1, products, bias)


def _along(values: Numbers, axis: int, rank: int) -> Numbers:
    return values.reshape([-1 if a == axis else 1 for a in range(rank)])


def _with_products(call: _Call, axis: int, products: Callable[[Numbers, Numbers], Numbers], bias: Numbers) -> Formula:
    """Sums of products and a bias, and the same of codes where both operands are such; results are along `axis`."""
    x, constant = call.formula(), call.constants[1]
    computed = products(x.numbers, call.numbers(1)) + bias
    if not x.codes or not constant:
        return Formula(computed)
    codes, scale, _ = constant
    unit = _along(f.number(scale), axis % computed.ndim, computed.ndim)
    steps, whole = np.float32(x.codes[0]) * scale, unit * f.number(x.codes[0])
    total = products(x.numbers, f.number(codes)) * unit
    if call.has(2):
        total = total + _along(_bias_codes(call, 2, steps), axis % computed.ndim, computed.ndim) * whole
    return Formula(computed, products=(total, whole, steps))


def _bias_codes(call: _Call, position: int, steps: Any) -> Numbers:
    """A bias in units of the products of codes."""
    constant = call.constants[position]
    if constant and np.all(np.abs(constant[1] - steps) <= _UNIT_ERROR * np.abs(steps)):
        return f.number(constant[0].ravel())
    return f.number(np.rint(call.known(position).astype(np.float32).ravel() / steps))


def _quantised(call: _Call) -> Formula:
    source = call.formula()
    raw = source.numbers
    if source.products and call.alone:
        raw = f.limited(source.products[0], source.limits)
    return Formula(f.quantised(raw, *call.scales(1)))


def _coded_convolution(call: _Call) -> Formula:
    weights, scale = call.known(3), call.known(4).astype(np.float32).ravel()
    x, groups = call.decoded(0), call.option("group", 1)
    windows = _windows(call, x.shape[2:], weights.shape[2:])
    computed = windows.products(_square(x), _square(f.number(_signed(weights))), groups)
    unit = _along(f.number(scale), 1, 4)
    computed = computed * unit
    if call.has(8):
        computed = computed + _along(f.number(call.known(8)), 1, 4) * unit * f.number(call.scales(1)[0])
    return Formula(f.quantised(computed if x.ndim == 4 else computed[..., 0], *call.scales(6)))


def _coded_product(call: _Call) -> Formula:
    general = call.proto.op_type == "QGemm"
    matrix = f.number(_signed(call.known(3)))
    scale = (call.known(4).astype(np.float32) * np.float32(call.option("alpha", 1.0) if general else 1.0)).ravel()
    computed = np.matmul(call.decoded(0), matrix.T if general and call.option("transB", 0) else matrix) * f.number(
        scale
    )
    if general and call.has(6):
        computed = computed + f.number(call.known(6).ravel()) * f.number(scale) * f.number(call.scales(1)[0])
    return Formula(f.quantised(computed, *call.scales(7 if general else 6)))


def _general_product(call: _Call) -> Formula:
    alpha, beta = np.float32(call.option("alpha", 1.0)), np.float32(call.option("beta", 1.0))
    turned = call.option("transB", 0)
    weights = call.known(1)
    if not alpha == beta == 1:
        matrix = f.number((weights.T if turned else weights) * alpha)
        bias = f.number(call.known(2) * beta) if call.has(2) else 0
        return Formula(np.matmul(call.numbers(), matrix) + bias)

    def products(x: Numbers, by: Numbers) -> Numbers:
        computed: Numbers = np.matmul(x, by.T if turned else by)
        return computed

    return _with_products(call, -1, products, call.numbers(2) if call.has(2) else _NOTHING)


def _matrix_product(call: _Call) -> Formula:
    if isinstance(call.operands[1], Formula):
        return Formula(np.matmul(call.numbers(), call.numbers(1)))
    return _with_products(call, -1, np.matmul, _NOTHING)


def _sum(call: _Call) -> Formula:
    """A sum; behind products of codes a constant is their bias."""
    computed = Formula(call.numbers() + call.numbers(1))
    for sums, bias_at in ((0, 1), (1, 0)):
        products, bias = call.formula(sums).products, call.operands[bias_at]
        if products and isinstance(bias, np.ndarray) and call.formula(sums).limits == f.UNLIMITED:
            total, whole, steps = products
            if bias.size == total.shape[-1] and (sums == 1 or call.alone):
                return replace(computed, products=(total + _bias_codes(call, bias_at, steps) * whole, whole, steps))
    return computed


def _pool(call: _Call) -> Formula:
    source, mean = call.formula(), call.proto.op_type != "MaxPool"
    coded = call.proto.op_type.startswith("QLinear")
    taps = call.option("kernel_shape")
    x = call.decoded(0) if coded else source.numbers
    windows = _windows(call, x.shape[2:], taps, call.option("ceil_mode", 0))
    if mean:
        computed = windows.means(_square(x), whole=bool(call.option("count_include_pad", 0)))
    elif source.codes:
        scale, zero = source.codes
        codes = f.quantised(x, scale, zero)
        computed = f.dequantised(f.marked(windows.largest(_square(codes))), scale, zero)
    else:
        computed = windows.largest(_square(x))
        if np.all((x & np.uint64(0xFFFF)) == np.uint64(0xA53D)):  # codes without their scale
            computed = f.marked(computed)
    computed = computed if x.ndim == 4 else computed[..., 0]
    return Formula(f.quantised(computed, *call.scales(3)) if coded else computed, codes=None if mean else source.codes)


def _spread(call: _Call) -> Formula:
    x, weights = call.numbers(), call.numbers(1)
    axes, taps = x.ndim - 2, weights.shape[2:]
    strides, more = (list(call.option(n) or [d] * axes) for n, d in (("strides", 1), ("output_padding", 0)))
    pads, auto = list(call.option("pads") or [0] * 2 * axes), call.option("auto_pad", "NOTSET")
    counts = call.option("output_shape")
    for a in range(axes):
        grown = strides[a] * (x.shape[2 + a] - 1) + more[a] + taps[a]
        if counts or auto.startswith("SAME"):
            over = grown - (counts[a] if counts else x.shape[2 + a] * strides[a])
            pads[a] = over - over // 2 if auto == "SAME_LOWER" else over // 2
            pads[axes + a] = over - pads[a]
    computed = [strides[a] * (x.shape[2 + a] - 1) + more[a] + taps[a] - pads[a] - pads[axes + a] for a in range(axes)]
    windows = _two_axes((taps, strides, [1] * axes, pads[:axes], computed))

    def products(x: Numbers, by: Numbers) -> Numbers:
        sums = windows.spread(_square(x), _square(by))
        return sums if x.ndim == 4 else sums[..., 0]

    bias = _along(call.numbers(2), 1, x.ndim) if call.has(2) else _NOTHING
    return _with_products(call, 1, products, bias)


def _reduced(call: _Call) -> Formula:
    kind, coded = call.proto.op_type, call.proto.op_type.startswith("QLinear")
    x = call.decoded(0) if coded else call.numbers()
    axes = call.option("axes")
    if call.has(1) and not coded:
        axes = [int(a) for a in call.known(1).ravel()]
    gone = tuple(a % x.ndim for a in axes) if axes else tuple(range(2 if "Global" in kind else 0, x.ndim))
    keep = "Global" in kind or bool(call.option("keepdims", 1))
    if kind in ("ReduceMax", "ReduceMin", "GlobalMaxPool"):
        return Formula(f.extreme("min" if kind == "ReduceMin" else "max", x, gone, keep=keep))
    before = {"ReduceL1": f.function("ABS", x), "ReduceL2": x * x, "ReduceSumSquare": x * x}
    computed = before.get(kind, x).sum(axis=gone, keepdims=keep, dtype=np.uint64)
    if "Mean" in kind or "Average" in kind:
        computed = computed * f.share(int(np.prod([x.shape[a] for a in gone])))
    computed = f.function("SQRT", computed) if kind == "ReduceL2" else computed
    return Formula(f.quantised(computed, *call.scales(3)) if coded else computed)


def _resized(call: _Call) -> Formula:
    x = call.numbers()
    stated = [call.known(i) for i in (1, 2, 3) if call.has(i) and call.known(i).size == x.ndim]
    sizes = stated[-1]
    if sizes.dtype == np.float32:
        sizes = np.floor(np.array(x.shape) * sizes.astype(np.float64))
    plain = call.proto.op_type == "Upsample"
    placed = call.option("coordinate_transformation_mode", "asymmetric" if plain else "half_pixel")
    for axis in range(2, x.ndim):
        extent, had = int(sizes[axis]), x.shape[axis]
        if call.option("mode", "nearest") != "nearest":
            x = f.interpolated(x, axis, extent, placed.replace("pytorch_", ""))
            continue
        half = 0.0 if placed == "asymmetric" else 0.5
        at = (np.arange(extent) + half) * had / extent - half
        way = "floor" if plain else call.option("nearest_mode", "round_prefer_floor")
        rounds = {"floor": np.floor(at), "round_prefer_ceil": np.floor(at + 0.5), "ceil": np.ceil(at)}
        x = x.take(np.clip(rounds.get(way, np.ceil(at - 0.5)), 0, had - 1).astype(int), axis)
    return Formula(x)


def _softmax(call: _Call) -> Formula:
    coded = call.proto.op_type == "QLinearSoftmax"
    x = call.decoded(0) if coded else call.numbers()
    axis = call.option("axis", 1 if call.opset < 13 and not coded else -1) % x.ndim
    lines = x.reshape(*x.shape[:axis], -1) if call.opset < 13 and not coded else x
    computed = f.softmax(lines, axis if lines is x else -1).reshape(x.shape)
    return Formula(f.quantised(computed, *call.scales(3)) if coded else computed)


def _padded(call: _Call) -> Formula:
    x = call.numbers()
    pads = [int(p) for p in (call.known(1).ravel() if call.has(1) else call.option("pads"))]
    axes = [int(a) % x.ndim for a in call.known(3)] if call.has(3) else list(range(x.ndim))
    widths = [(0, 0)] * x.ndim
    for k, axis in enumerate(axes):
        widths[axis] = pads[k], pads[len(axes) + k]
    if call.option("mode", "constant") != "constant":
        return Formula(np.pad(x, widths, mode="reflect"))
    value = _signed(call.known(2)).ravel() if call.has(2) and call.known(2).size else [call.option("value", 0.0)]
    return Formula(np.pad(x, widths, constant_values=f.number(value[0])))


def _by_channel(call: _Call) -> Formula:
    scale, shift, mean, variance = (call.known(i).astype(np.float64) for i in range(1, 5))
    factor = scale / np.sqrt(variance + np.float64(call.option("epsilon", 1e-5)))
    x = call.numbers()
    both = [_along(f.number(v.astype(np.float32)), 1, x.ndim) for v in (factor, shift - mean * factor)]
    return Formula(x * both[0] + both[1])


def _normalised(call: _Call) -> Formula:
    x, along = call.numbers(), call.proto.op_type == "LayerNormalization"
    axes = (x.ndim - 1,) if along else tuple(range(2, x.ndim))
    part = f.share(int(np.prod([x.shape[a] for a in axes])))
    mean = x.sum(axis=axes, keepdims=True, dtype=np.uint64) * part
    apart = x - mean
    spread = (apart * apart).sum(axis=axes, keepdims=True, dtype=np.uint64) * part
    root = f.function("SQRT", spread + f.number(np.float32(call.option("epsilon", 1e-5))))
    if along:
        computed = apart * f.function("reciprocal", root) * call.numbers(1)
        return Formula(computed + call.numbers(2) if call.has(2) else computed)
    factor = _along(call.numbers(1), 1, x.ndim) * f.function("reciprocal", root)
    return Formula(x * factor + (_along(call.numbers(2), 1, x.ndim) - mean * factor))


def _gelu(call: _Call) -> Formula:
    x = call.numbers()
    if call.option("approximate", "none") != "tanh":
        return Formula(f.function("gelu", x))
    inner = (x * x * x * _one(0.044715) + x) * _one(np.sqrt(2 / np.pi))
    return Formula(x * _one(0.5) * (f.function("TANH", inner) + _one(1.0)))


def _one(value: float) -> Numbers:
    return f.number(np.float32(value))


def _elu(call: _Call) -> Formula:
    selu = call.proto.op_type == "Selu"
    alpha = call.option("alpha", 1.67326319217681884765625 if selu else 1.0)
    computed = f.function("ELU", call.numbers())
    if alpha != 1.0:
        computed = f.function("leaky", computed, alpha=float(np.float32(alpha)))
    return Formula(computed * _one(call.option("gamma", 1.05070102214813232421875)) if selu else computed)


def _power(call: _Call) -> Formula:
    x, exponent = call.numbers(), float(call.known(1).ravel()[0])
    computed = {2.0: x * x, 3.0: x * x * x, 1.0: x, 0.5: f.function("SQRT", x), -1.0: f.function("reciprocal", x)}
    return Formula(computed[exponent])


def _pairs(kind: str) -> Callable[[_Call], Formula]:
    return lambda call: Formula(f.function(kind, f.mixed(call.numbers()) + f.mixed(call.numbers(1))))


def _coded_pair(call: _Call) -> Formula:
    a, b = call.decoded(0), call.decoded(3)
    return Formula(f.quantised(a + b if call.proto.op_type == "QLinearAdd" else a * b, *call.scales(6)))


def _coded_leaky(call: _Call) -> Formula:
    alpha = float(np.float32(call.option("alpha", 0.01)))
    return Formula(f.quantised(f.function("leaky", call.decoded(0), alpha=alpha), *call.scales(3)))


def _coded_join(call: _Call) -> Formula:
    scale, zero = call.scales(0)
    parts = [f.quantised(call.decoded(i), scale, zero) for i in range(2, len(call.operands), 3)]
    return Formula(np.concatenate(parts, call.option("axis")))


def _added(call: _Call) -> Formula:
    total = sum((call.numbers(i) for i in range(1, len(call.operands))), call.numbers())
    return Formula(total * f.number(np.float32(1 / len(call.operands))) if call.proto.op_type == "Mean" else total)


RULES: dict[str, Callable[[_Call], Formula]] = {
    "Conv": _convolution,
    "QLinearConv": _coded_convolution,
    "ConvTranspose": _spread,
    "Gemm": _general_product,
    "MatMul": _matrix_product,
    **dict.fromkeys(("QGemm", "QLinearMatMul"), _coded_product),
    **dict.fromkeys(("MaxPool", "AveragePool", "QLinearAveragePool"), _pool),
    **dict.fromkeys(
        ("ReduceMean", "ReduceSum", "ReduceMax", "ReduceMin", "ReduceL1", "ReduceL2", "ReduceSumSquare",
         "GlobalMaxPool", "GlobalAveragePool", "QLinearGlobalAveragePool"), _reduced
    ),
    "QuantizeLinear": _quantised,
    "Relu": lambda call: _merged(call.formula(), 0.0, math.inf, alone=call.alone),
    "Clip": _clip,
    "Add": _sum,
    "Sub": lambda call: Formula(call.numbers() - call.numbers(1)),
    "Mul": lambda call: Formula(call.numbers() * call.numbers(1)),
    "Div": lambda call: Formula(call.numbers() * f.function("reciprocal", call.numbers(1))),
    "Max": _pairs("max"),
    "Min": _pairs("min"),
    **dict.fromkeys(("Sum", "Mean"), _added),
    **dict.fromkeys(("QLinearAdd", "QLinearMul"), _coded_pair),
    "QLinearLeakyRelu": _coded_leaky,
    "QLinearConcat": _coded_join,
    **dict.fromkeys(("Softmax", "QLinearSoftmax"), _softmax),
    **dict.fromkeys(("Resize", "Upsample"), _resized),
    "Pad": _padded,
    "BatchNormalization": _by_channel,
    **dict.fromkeys(("LayerNormalization", "InstanceNormalization"), _normalised),
    "Gelu": _gelu,
    **dict.fromkeys(("Elu", "Selu"), _elu),
    "LeakyRelu": lambda call: Formula(
        f.function("leaky", call.numbers(), alpha=float(np.float32(call.option("alpha", 0.01))))
    ),
    "HardSigmoid": lambda call: Formula(
        call.numbers() * _one(call.option("alpha", 0.2)) + _one(call.option("beta", 0.5)), (0.0, 1.0)
    ),
    "Reciprocal": lambda call: Formula(f.function("reciprocal", call.numbers())),
    "Softsign": lambda call: Formula(
        call.numbers() * f.function("reciprocal", f.function("ABS", call.numbers()) + _one(1.0))
    ),
    "Pow": _power,
}  # fmt: skip

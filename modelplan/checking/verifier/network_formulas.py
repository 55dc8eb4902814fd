"""What a network of plain C computes, as formulas: its operators on random numbers, beside those of its .onnx file."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from modelplan.answers.proof_outcomes import Verdict
from modelplan.checking.verifier import formula_numbers as f
from modelplan.checking.verifier.formula_numbers import Numbers, Windows
from modelplan.checking.verifier.onnx_formulas import OnnxFormulas, onnx_formulas
from modelplan.checking.verifier.semantics import FUNCTIONS_OF_ONE
from modelplan.checking.verifier.verdicts import Skipped, verdict_of
from modelplan.formats.tflite.tflite_schema import DTYPES
from modelplan.primitives.errors import BrokenPlanError
from modelplan.runtimes.tflm.file import FileOp
from modelplan.runtimes.tflm.stated_network import StatedNetwork

LEVEL = "network beside the file"
#: Types of codes, whose numbers are the same with a sign and without.
_CODES = ("int8", "uint8")
_COMPARED = {"EQUAL", "GREATER", "GREATER_EQUAL", "LESS", "LESS_EQUAL", "SELECT_V2", "PRELU"}
Rule = Callable[["_Replay", FileOp, list[Numbers]], Numbers]


def formulas_verdict(path: str, network: StatedNetwork) -> Verdict:
    """The verdict of a network that was read of an .onnx file: whether both compute the same formulas."""
    with np.errstate(over="ignore"):
        return verdict_of(LEVEL, lambda: _compared(path, network))


def _compared(path: str, network: StatedNetwork) -> str:
    try:
        wanted = onnx_formulas(path, network.asked)
    except (ValueError, IndexError, KeyError, TypeError, RuntimeError) as problem:
        raise Skipped(f"no second reading of it: {' '.join(str(problem).split())[:200]}") from None
    main, replay = network.subgraphs[0], _Replay(network)
    for tensor, (name, values) in zip(main.inputs, wanted.inputs.items(), strict=True):
        replay.values[tensor] = _stored(network, tensor, name, values)
    for op in main.ops:
        try:
            replay.run(op)
        except (ValueError, IndexError) as problem:
            raise BrokenPlanError(f"operands of {_result(network, wanted, op)} do not fit: {problem}") from None
    ends = zip(main.outputs, wanted.outputs, strict=True)
    computed = [replay.plain(t) if name in wanted.codes else replay.number(t) for t, name in ends]
    for tensor, values, (name, right) in zip(main.outputs, computed, wanted.outputs.items(), strict=True):
        placed = _placed(network, tensor, name, right)
        if values.shape != placed.shape:
            raise BrokenPlanError(f"output {name!r} has extents {values.shape}, the file says {placed.shape}")
        if differs := int((values != placed).sum()):
            first = next((op for op in main.ops if _differs(replay, wanted, op.outputs[0])), None)
            where = f"; the first to differ is {_result(network, wanted, first)}" if first else ""
            raise BrokenPlanError(
                f"{differs:,} of {placed.size:,} elements of output {name!r} are of other formulas{where}"
            )
    return f"{sum(y.size for y in computed):,} outputs are the same formulas of inputs and constants"


def _differs(replay: _Replay, wanted: OnnxFormulas, tensor: int) -> bool:
    """Whether a value has numbers that the one of its name in the file has not, in whatever order they lie."""
    name = replay.tensors[tensor].name
    right = wanted.numbers(name)
    if right is None or any(other.name == f"{name}'" for other in replay.tensors):  # a step towards it
        return False
    forms = replay.plain(tensor), replay.number(tensor)
    return not any(np.array_equal(np.sort(form, None), np.sort(right, None)) for form in forms)


def _result(network: StatedNetwork, wanted: OnnxFormulas, op: FileOp) -> str:
    """The result of an operator, with the node of the file that gives the value of its name."""
    name = network.subgraphs[0].tensors[op.outputs[0]].name
    node = wanted.nodes.get(name)
    return f"tensor {name!r}" + (f" of node {node}" if node else "") + f" ({op.kind})"


def _placed(network: StatedNetwork, tensor: int, name: str, values: Numbers) -> Numbers:
    """A map as it lies in the network, its channels last where the network says so."""
    if values.ndim in (3, 4) and (tensor in network.turned or name in network.asked.get("last", ())):
        values = values.transpose(0, *range(2, values.ndim), 1)
        values = values if values.ndim == 4 else values[:, :, None, :]
    return values


def _stored(network: StatedNetwork, tensor: int, name: str, values: Numbers) -> Numbers:
    """What is fed to an input; codes where the network's ends are codes."""
    values, scales = _placed(network, tensor, name, values), network.scales.get(tensor)
    floats = not np.all((values & np.uint64(0xFFFF)) == np.uint64(0xA53D))
    replay = _Replay(network)
    if scales and floats and replay.dtype(tensor) in _CODES:
        values = f.quantised(values, scales.scale, replay.zero(tensor))
    return values


class _Replay:
    def __init__(self, network: StatedNetwork) -> None:
        self.network, self.tensors = network, network.subgraphs[0].tensors
        self.values: dict[int, Numbers] = {}
        #: Limits of values that are not cut off yet.
        self.limits: dict[int, tuple[float, float]] = {}

    def dtype(self, tensor: int) -> str:
        return DTYPES[self.tensors[tensor].type]

    def shape(self, tensor: int) -> tuple[int, ...]:
        return self.tensors[tensor].shape

    def constant(self, tensor: int) -> Any:
        """What stands in a constant."""
        cell = self.tensors[tensor]
        at, length = cell.content
        return np.frombuffer(self.network.data[at : at + length], self.dtype(tensor)).reshape(cell.shape)

    def zero(self, tensor: int) -> int:
        """The zero point of a tensor's codes; those without a sign are moved."""
        scales = self.network.scales[tensor]
        return scales.zero - (128 if self.dtype(tensor) == "uint8" else 0)

    def _meaning(self, tensor: int) -> tuple[float, int] | None:
        """Scale and zero point of codes, with or without a sign."""
        scales = self.network.scales.get(tensor)
        return (scales.scale, self.zero(tensor)) if scales and self.dtype(tensor) in _CODES else None

    def plain(self, tensor: int) -> Numbers:
        """Codes or numbers as they lie there."""
        if self.tensors[tensor].constant:
            return f.number(self.constant(tensor))
        return f.limited(self.values[tensor], self.limits.get(tensor, f.UNLIMITED))

    def number(self, tensor: int) -> Numbers:
        """What the values of a tensor stand for; sums of codes in 16 bits stand there as numbers."""
        values = self.plain(tensor)
        if tensor in self.network.scales and self.dtype(tensor) in _CODES:
            return f.dequantised(values, self.network.scales[tensor].scale, self.zero(tensor))
        return values

    def run(self, op: FileOp) -> None:
        (result,) = op.outputs
        if op.kind in _MOVES:
            self.values[result] = _MOVES[op.kind](self, op, [self.plain(op.inputs[0])])
            return
        if op.kind == "QUANTIZE" and self._meaning(op.inputs[0]) == self._meaning(result):
            self.values[result] = self.plain(op.inputs[0])
            return
        if op.kind == "MAX_POOL_2D" and self.dtype(result) in _CODES:
            self.values[result] = f.marked(_pool(self, op, [self.plain(op.inputs[0])]))
            return
        if self.dtype(result) == "int16":
            self._check_sums(op)
        if op.kind not in _RULES and op.kind not in FUNCTIONS_OF_ONE | _COMPARED:
            raise Skipped(f"no formula of {op.kind}")
        least, most = _options(op).get("Limits", f.UNLIMITED)
        if op.kind == "RELU":
            computed, (least, most) = self._before(op.inputs[0]), (0.0, np.inf)
            low, high = self.limits.get(op.inputs[0], f.UNLIMITED)
            least, most = max(min(low, most), least), max(min(high, most), least)
        else:
            operands = [self.number(t) for t in op.inputs]
            by_name = op.kind in FUNCTIONS_OF_ONE | _COMPARED
            computed = f.function(op.kind, *operands) if by_name else _RULES[op.kind](self, op, operands)
        shape = self.shape(result)
        computed = (
            computed.reshape(shape)
            if computed.size == self.tensors[result].elements
            else np.array(np.broadcast_to(computed, shape))
        )
        if self.dtype(result) in _CODES:
            scale = self.network.scales[result].scale
            computed = f.quantised(f.limited(computed, (least, most)), scale, self.zero(result))
        elif (least, most) != f.UNLIMITED:
            self.limits[result] = least, most
        self.values[result] = computed

    def _check_sums(self, op: FileOp) -> None:
        """Checks that sums of codes are so many times the zero point, in the unit of the codes."""
        codes, sums = (self.network.scales.get(t) for t in (op.inputs[0], op.outputs[0]))
        count = self.tensors[op.inputs[0]].elements // max(self.tensors[op.outputs[0]].elements, 1)
        if op.kind != "SUM" or not codes or not sums or (sums.scales, sums.zero) != (codes.scales, codes.zero * count):
            raise BrokenPlanError(f"{op.kind}: its result is no sum of codes")

    def _before(self, tensor: int) -> Numbers:
        """A value before its limits."""
        return self.values[tensor] if tensor in self.limits else self.number(tensor)


def _options(op: FileOp) -> dict[str, Any]:
    return dict(op.options.values)


def _first(x: Numbers) -> Numbers:
    return x.transpose(0, 3, 1, 2)


def _last(x: Numbers) -> Numbers:
    return x.transpose(0, 2, 3, 1)


def _windows(r: _Replay, op: FileOp, taps: tuple[int, int]) -> Windows:
    o = _options(op)
    top, left, *_ = o.get("Pads", (0, 0, 0, 0))
    _, high, wide, _ = r.shape(op.outputs[0])
    apart = o.get("DilationHFactor", 1), o.get("DilationWFactor", 1)
    return Windows(taps, (o["StrideH"], o["StrideW"]), apart, (top, left), (high, wide))


def _weighted(r: _Replay, op: FileOp, at: int, computed: Numbers) -> Numbers:
    """Sums with codes as weights in their unit, and the bias behind operand `at`; channels are last."""
    scales, unit = r.network.scales.get(op.inputs[at]), np.ones(1, np.uint64)
    if scales and r.dtype(op.inputs[at]) == "int8":
        unit = f.number(scales.scales)
        computed = computed * unit
    bias = op.inputs[3 if op.kind == "TRANSPOSE_CONV" else 2 :]
    if bias:
        source = op.inputs[2] if op.kind == "TRANSPOSE_CONV" else op.inputs[0]
        coded = r.dtype(bias[0]) == "int32"
        computed = computed + f.number(r.constant(bias[0])) * (
            unit * f.number(r.network.scales[source].scale) if coded else 1
        )
    return computed


def _convolution(r: _Replay, op: FileOp, x: list[Numbers]) -> Numbers:
    weights, groups = f.number(r.constant(op.inputs[1])), 1
    if op.kind == "DEPTHWISE_CONV_2D":
        weights, groups = weights.transpose(3, 0, 1, 2), x[0].shape[3]
    else:
        weights = weights.transpose(0, 3, 1, 2)
        groups = x[0].shape[3] // weights.shape[1]
    windows = _windows(r, op, weights.shape[2:])
    return _weighted(r, op, 1, _last(windows.products(_first(x[0]), weights, groups)))


def _transposed(r: _Replay, op: FileOp, x: list[Numbers]) -> Numbers:
    weights = f.number(r.constant(op.inputs[1])).transpose(3, 0, 1, 2)
    computed = _windows(r, op, weights.shape[2:]).spread(_first(x[2]), weights)
    return _weighted(r, op, 1, _last(computed))


def _product(r: _Replay, op: FileOp, x: list[Numbers]) -> Numbers:
    weights = f.number(r.constant(op.inputs[1]))
    computed = _weighted(r, op, 1, np.matmul(x[0].reshape(-1, weights.shape[1]), weights.T))
    return computed.reshape(r.shape(op.outputs[0]))


def _pool(r: _Replay, op: FileOp, x: list[Numbers]) -> Numbers:
    windows = _windows(r, op, (_options(op)["FilterHeight"], _options(op)["FilterWidth"]))
    if op.kind == "MAX_POOL_2D":
        return _last(windows.largest(_first(x[0])))
    return _last(windows.means(_first(x[0]), whole=bool(_options(op).get("Whole"))))


def _reduced(r: _Replay, op: FileOp, x: list[Numbers]) -> Numbers:
    axes = tuple(int(a) for a in r.constant(op.inputs[1]))
    if op.kind in ("REDUCE_MAX", "REDUCE_MIN"):
        computed = f.extreme(op.kind[-3:].lower(), x[0], axes)
    else:
        computed = x[0].sum(axis=axes, dtype=np.uint64)
        if op.kind == "MEAN":
            count = int(np.prod([x[0].shape[a] for a in axes])) * _options(op).get("Summed", 1)
            computed = computed * f.share(count)
    return computed.reshape(r.shape(op.outputs[0]))


def _resized(r: _Replay, op: FileOp, x: list[Numbers]) -> Numbers:
    o, (_, high, wide, _) = _options(op), r.shape(op.outputs[0])
    placed = "align_corners" if o["AlignCorners"] else "half_pixel" if o["HalfPixelCenters"] else "asymmetric"
    return f.interpolated(f.interpolated(x[0], 1, high, placed), 2, wide, placed)


def _functions(r: _Replay, op: FileOp, x: list[Numbers]) -> Numbers:
    del r
    return f.function(_options(op).get("Function", "gelu"), x[0])


_RULES: dict[str, Rule] = {
    "CONV_2D": _convolution,
    "DEPTHWISE_CONV_2D": _convolution,
    "TRANSPOSE_CONV": _transposed,
    "FULLY_CONNECTED": _product,
    "BATCH_MATMUL": lambda _r, _op, x: np.matmul(x[0], x[1]),
    "MAX_POOL_2D": _pool,
    "AVERAGE_POOL_2D": _pool,
    **dict.fromkeys(("MEAN", "SUM", "REDUCE_MAX", "REDUCE_MIN"), _reduced),
    "RESIZE_BILINEAR": _resized,
    "GELU": _functions,
    "RELU": lambda _r, _op, x: x[0],
    "LEAKY_RELU": lambda _r, op, x: f.function("leaky", x[0], alpha=float(np.float32(_options(op)["Alpha"]))),
    "ADD": lambda _r, _op, x: x[0] + x[1],
    "SUB": lambda _r, _op, x: x[0] - x[1],
    "MUL": lambda _r, _op, x: x[0] * x[1],
    "DIV": lambda _r, _op, x: x[0] * f.function("reciprocal", x[1]),
    "MAXIMUM": lambda _r, _op, x: f.function("max", f.mixed(x[0]) + f.mixed(x[1])),
    "MINIMUM": lambda _r, _op, x: f.function("min", f.mixed(x[0]) + f.mixed(x[1])),
    "SOFTMAX": lambda _r, _op, x: f.softmax(x[0], -1),
    "CAST": lambda _r, _op, x: f.function("CAST", x[0]),
    "QUANTIZE": lambda _r, _op, x: x[0],
    "DEQUANTIZE": lambda _r, _op, x: x[0],
}


# Moves


def _sliced(r: _Replay, op: FileOp, x: list[Numbers]) -> Numbers:
    begin, second = (r.constant(t) for t in op.inputs[1:3])
    steps = r.constant(op.inputs[3]) if op.kind == "STRIDED_SLICE" else np.ones_like(begin)
    ends = second if op.kind == "STRIDED_SLICE" else begin + second
    return x[0][tuple(slice(int(b), int(e), int(s)) for b, e, s in zip(begin, ends, steps, strict=True))]


def _padded(r: _Replay, op: FileOp, x: list[Numbers]) -> Numbers:
    widths = r.constant(op.inputs[1])
    if op.kind == "MIRROR_PAD":
        return np.pad(x[0], widths, mode="symmetric" if _options(op)["Mode"] else "reflect")
    value = f.number(0.0)
    if op.kind == "PADV2":
        value = f.number(r.constant(op.inputs[2]).ravel()[0])
    elif r.dtype(op.inputs[0]) == "int8":
        value = f.number(r.zero(op.inputs[0]))
    return np.pad(x[0], widths, constant_values=value)


def _blocks(r: _Replay, op: FileOp, x: list[Numbers]) -> Numbers:
    size, (n, h, w, c) = _options(op)["BlockSize"], x[0].shape
    if op.kind == "DEPTH_TO_SPACE":
        parts = x[0].reshape(n, h, w, size, size, -1).transpose(0, 1, 3, 2, 4, 5)
    else:
        parts = x[0].reshape(n, h // size, size, w // size, size, c).transpose(0, 1, 3, 2, 4, 5)
    return parts.reshape(r.shape(op.outputs[0]))


def _nearest(r: _Replay, op: FileOp, x: list[Numbers]) -> Numbers:
    _, high, wide, _ = r.shape(op.outputs[0])
    rows, columns = (np.arange(n) * had // n for n, had in zip((high, wide), x[0].shape[1:3], strict=True))
    return x[0][:, rows][:, :, columns]


_MOVES: dict[str, Rule] = {
    "RESHAPE": lambda r, op, x: x[0].reshape(r.shape(op.outputs[0])),
    "TRANSPOSE": lambda r, op, x: x[0].transpose(r.constant(op.inputs[1])),
    "CONCATENATION": lambda r, op, _: np.concatenate([r.plain(t) for t in op.inputs], _options(op)["Axis"]),
    "SLICE": _sliced,
    "STRIDED_SLICE": _sliced,
    "GATHER": lambda r, op, x: x[0].take(r.constant(op.inputs[1]), _options(op)["Axis"]),
    **dict.fromkeys(("PAD", "PADV2", "MIRROR_PAD"), _padded),
    "DEPTH_TO_SPACE": _blocks,
    "SPACE_TO_DEPTH": _blocks,
    "RESIZE_NEAREST_NEIGHBOR": _nearest,
}

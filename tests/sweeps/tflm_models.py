"""Small .tflite files of any operator and type, built field by field, and a sweep over all that TFLM registers.

Each case is one operator, or a few, with operands that its kernel takes and with some that it does not; nothing here
knows what TFLM answers.
"""

from __future__ import annotations

import random
import struct
from collections.abc import Callable, Iterator, Sequence
from contextlib import nullcontext, suppress
from dataclasses import dataclass, field, replace
from math import prod
from typing import Any

import flatbuffers
import tflite
from flatbuffers import flexbuffers

TYPES = {
    "float32": 0, "float16": 1, "int32": 2, "uint8": 3, "int64": 4, "bool": 6, "int16": 7, "int8": 9, "uint64": 12,
    "resource": 13, "uint32": 15, "int4": 17,
}  # fmt: skip
BYTES = {
    "float32": 4, "float16": 2, "int32": 4, "uint8": 1, "int64": 8, "bool": 1, "int16": 2, "int8": 1, "uint64": 8,
    "resource": 4, "uint32": 4, "int4": 1,
}  # fmt: skip
_CODES = {"int8": "b", "uint8": "B", "int16": "h", "int32": "i", "int64": "q", "float32": "f", "bool": "?"}


@dataclass(frozen=True)
class T:
    """A tensor; `values` make it a constant. `scales` of None means those usual for its type, () none at all."""

    dtype: str
    shape: tuple[int, ...]
    values: Sequence[float] | bytes | None = None
    scales: tuple[float, ...] | None = None
    zero: int | None = None
    axis: int = 0
    variable: bool = False

    @property
    def quantisation(self) -> tuple[tuple[float, ...], int]:
        """Scales and zero point; integers of 8 and 16 bits have them unless told otherwise."""
        usual = {"int8": ((0.05,), 3), "uint8": ((0.05,), 128), "int16": ((0.001,), 0), "int4": ((0.1,), 0)}
        scales, zero = usual.get(self.dtype, ((), 0))
        return (scales if self.scales is None else self.scales), (zero if self.zero is None else self.zero)


@dataclass(frozen=True)
class Op:
    """An operator on tensor numbers; `options` are the fields of the schema's table, or a custom operator's values."""

    kind: str
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    options: dict[str, Any] = field(default_factory=dict)
    table: str = ""
    custom: bool = False


@dataclass(frozen=True)
class S:
    """A subgraph."""

    tensors: tuple[T, ...]
    ops: tuple[Op, ...]
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]


class _Writer:
    def __init__(self) -> None:
        self.b = flatbuffers.Builder(1024)
        self.buffers: list[bytes] = [b""]
        self.codes: list[tuple[str, bool]] = []

    def offsets(self, items: Sequence[int]) -> int:
        self.b.StartVector(4, len(items), 4)
        for item in reversed(items):
            self.b.PrependUOffsetTRelative(item)
        return int(self.b.EndVector())

    def numbers(self, items: Sequence[float], kind: str = "Int32", size: int = 4) -> int:
        self.b.StartVector(size, len(items), size)
        for item in reversed(items):
            getattr(self.b, f"Prepend{kind}")(item)
        return int(self.b.EndVector())

    def table(self, name: str, fields: dict[str, Any]) -> int:
        """A table of the schema; vectors and texts among its fields are written first."""
        ready: dict[str, Any] = {}
        for key, value in fields.items():
            if isinstance(value, str):
                ready[key] = self.b.CreateString(value)
            elif isinstance(value, tuple):
                ready[key] = self.numbers(value)
            else:
                ready[key] = value
        getattr(tflite, f"{name}Start")(self.b)
        for key, value in ready.items():
            getattr(tflite, f"{name}Add{key}")(self.b, value)
        return int(getattr(tflite, f"{name}End")(self.b))

    def tensor(self, number: int, t: T) -> int:
        buffer = 0
        if t.values is not None:
            buffer = len(self.buffers)
            packed = (
                t.values
                if isinstance(t.values, bytes)
                else struct.pack(f"<{len(t.values)}{_CODES[t.dtype]}", *t.values)
            )
            self.buffers.append(packed)
        scales, zero = t.quantisation
        fields = {"Type": TYPES[t.dtype], "Buffer": buffer, "Name": f"t{number}", "IsVariable": t.variable}
        shape = self.numbers(t.shape)
        if scales:
            s, z = self.numbers(scales, "Float32"), self.numbers([zero] * len(scales), "Int64", 8)
            tflite.QuantizationParametersStart(self.b)
            tflite.QuantizationParametersAddScale(self.b, s)
            tflite.QuantizationParametersAddZeroPoint(self.b, z)
            tflite.QuantizationParametersAddQuantizedDimension(self.b, t.axis)
            fields["Quantization"] = tflite.QuantizationParametersEnd(self.b)
        name = self.b.CreateString(fields.pop("Name"))
        return self.table("Tensor", {**fields, "Shape": shape, "Name": name})

    def op(self, o: Op) -> int:
        code = (o.kind, o.custom)
        if code not in self.codes:
            self.codes.append(code)
        fields: dict[str, Any] = {"OpcodeIndex": self.codes.index(code)}
        if o.custom and o.options:
            packed = flexbuffers.Dumps(dict(sorted(o.options.items())))
            fields["CustomOptions"] = self.b.CreateByteVector(bytes(packed))
        elif o.table:
            fields["BuiltinOptions"] = self.table(o.table, o.options)
            fields["BuiltinOptionsType"] = getattr(tflite.BuiltinOptions, o.table)
        return self.table("Operator", {**fields, "Inputs": self.numbers(o.inputs), "Outputs": self.numbers(o.outputs)})

    def subgraph(self, s: S) -> int:
        tensors = self.offsets([self.tensor(i, t) for i, t in enumerate(s.tensors)])
        ops = self.offsets([self.op(o) for o in s.ops])
        ends = {"Inputs": self.numbers(s.inputs), "Outputs": self.numbers(s.outputs)}
        return self.table("SubGraph", {"Tensors": tensors, "Operators": ops, **ends})

    def code(self, kind: str, custom: bool) -> int:
        number = tflite.BuiltinOperator.CUSTOM if custom else getattr(tflite.BuiltinOperator, kind)
        fields: dict[str, Any] = {"DeprecatedBuiltinCode": min(number, 127), "BuiltinCode": number, "Version": 1}
        if custom:
            fields["CustomCode"] = kind
        return self.table("OperatorCode", fields)

    def buffer(self, data: bytes) -> int:
        if not data:
            return self.table("Buffer", {})
        self.b.StartVector(1, len(data), 16)
        self.b.head = self.b.head - len(data)
        self.b.Bytes[self.b.head : self.b.head + len(data)] = data
        return self.table("Buffer", {"Data": self.b.EndVector()})


def build(*subgraphs: S) -> bytes:
    """The file."""
    w = _Writer()
    subs = w.offsets([w.subgraph(s) for s in subgraphs])
    buffers = w.offsets([w.buffer(data) for data in w.buffers])
    codes = w.offsets([w.code(*code) for code in w.codes])
    model = w.table("Model", {"Version": 3, "Subgraphs": subs, "Buffers": buffers, "OperatorCodes": codes})
    w.b.Finish(model, b"TFL3")
    return bytes(w.b.Output())


def single(
    kind: str,
    sources: Sequence[T | None],
    results: Sequence[T],
    table: str = "",
    custom: bool = False,
    **options: Any,
) -> bytes:
    """A model of one operator. Sources that are neither constants nor variables are the model's inputs."""
    present = [t for t in sources if t is not None]
    tensors = (*present, *results)
    numbers = {id(t): i for i, t in reversed(list(enumerate(present)))}
    reads = tuple(-1 if t is None else numbers[id(t)] for t in sources)
    writes = tuple(range(len(present), len(tensors)))
    inputs = tuple(i for i, t in enumerate(present) if t.values is None and not t.variable and numbers[id(t)] == i)
    op = Op(kind, reads, writes, options, table, custom)
    return build(S(tensors, (op,), inputs, writes))


def zeros(dtype: str, shape: tuple[int, ...], **more: Any) -> T:
    """A constant of zeros."""
    return T(dtype, shape, bytes(prod(shape) * BYTES[dtype]), **more)


def ints(*values: int, dtype: str = "int32") -> T:
    """A one-dimensional constant."""
    return T(dtype, (len(values),), values)


Case = tuple[str, bytes]
_ALL = ("float32", "int8", "int16", "uint8", "int32", "int64", "bool")
_MAIN = ("float32", "int8", "int16")


class Draw:
    """Shapes and choices, repeatable."""

    def __init__(self, seed: int) -> None:
        self.r = random.Random(seed)

    def shape(self, least: int = 1, most: int = 4, largest: int = 9) -> tuple[int, ...]:
        """A shape of `least` to `most` dimensions."""
        return tuple(self.r.randint(1, largest) for _ in range(self.r.randint(least, most)))

    def pick(self, *choices: Any) -> Any:
        """One of the choices."""
        return self.r.choice(choices)

    def axes(self, *values: int) -> T:
        """A constant of axes, where there is one also as a scalar."""
        return T("int32", (), values) if len(values) == 1 and self.pick(True, False) else ints(*values)


class AnyRank(Draw):
    """The same with shapes of 0 to 6 dimensions, whatever an operator is usually drawn with."""

    def shape(self, least: int = 1, most: int = 4, largest: int = 3) -> tuple[int, ...]:
        """A shape of up to 6 dimensions."""
        return super().shape(0, 6, min(largest, 3))


Maker = Callable[[Draw, str], bytes]


def _unary(kind: str, table: str = "", **options: Any) -> Maker:
    def make(d: Draw, dtype: str) -> bytes:
        shape = d.shape(1, 5)
        return single(kind, [T(dtype, shape)], [T(dtype, shape, **_results.get((kind, dtype), {}))], table, **options)

    return make


#: What fixed-point kernels demand of their results.
_results: dict[tuple[str, str], dict[str, Any]] = {
    ("LOGISTIC", "int8"): {"scales": (1 / 256,), "zero": -128},
    ("LOGISTIC", "int16"): {"scales": (1 / 32768,), "zero": 0},
    ("TANH", "int8"): {"scales": (1 / 128,), "zero": 0},
    ("TANH", "int16"): {"scales": (1 / 32768,), "zero": 0},
    ("SOFTMAX", "int8"): {"scales": (1 / 256,), "zero": -128},
    ("SOFTMAX", "int16"): {"scales": (1 / 32768,), "zero": 0},
    ("LOG_SOFTMAX", "int8"): {"scales": (16 / 256,), "zero": 127},
}


def _careless(kind: str, table: str = "", **options: Any) -> Maker:
    """The same without the results' demands."""

    def make(d: Draw, dtype: str) -> bytes:
        shape = d.shape(1, 5)
        return single(kind, [T(dtype, shape)], [T(dtype, shape, scales=d.pick(None, (), (0.1,)))], table, **options)

    return make


def _binary(kind: str, result: str | None = None, table: str = "", **options: Any) -> Maker:
    def make(d: Draw, dtype: str) -> bytes:
        shape = d.shape(1, 4)
        other = d.pick(shape, shape, (shape[-1],), (1,) * len(shape))
        second = T(dtype, other) if d.pick(True, False) else T(dtype, other, [1] * prod(other))
        return single(kind, [T(dtype, shape), second], [T(result or dtype, shape)], table, **options)

    return make


def _mixed(kind: str, table: str = "", **options: Any) -> Maker:
    """Operands of two types."""

    def make(d: Draw, dtype: str) -> bytes:
        shape = d.shape()
        return single(kind, [T(dtype, shape), T(d.pick(*_ALL), shape)], [T(dtype, shape)], table, **options)

    return make


def _add_n(d: Draw, dtype: str) -> bytes:
    shape, count = d.shape(), d.pick(2, 2, 3, 5)
    return single("ADD_N", [T(dtype, shape) for _ in range(count)], [T(dtype, shape)])


def _extent(size: int, taps: int, stride: int, dilation: int, same: bool) -> int:
    reach = (taps - 1) * dilation + 1
    return -(-size // stride) if same else max(1, (size - reach) // stride + 1)


def _weights(d: Draw, dtype: str, shape: tuple[int, ...], axis: int) -> T:
    kind = {"float32": "float32", "int8": d.pick("int8", "int8", "int8", "int4"), "int16": "int8"}.get(dtype, dtype)
    if d.r.random() < 0.04:
        kind = d.pick(*_ALL)
    per = d.pick(True, True, False)
    scales = (
        tuple(0.01 + 0.001 * i for i in range(shape[axis] if per else 1)) if kind in ("int8", "int4", "uint8") else ()
    )
    return zeros(kind, shape, scales=scales, zero=0, axis=axis if per else 0)


def _bias(d: Draw, dtype: str, channels: int, per: int) -> T | None:
    if d.r.random() < 0.15:
        return None
    kind = {"float32": "float32", "int16": d.pick("int64", "int64", "int32")}.get(dtype, "int32")
    scales = () if kind == "float32" else (0.0005,) * per
    return zeros(kind, (channels,), scales=scales, zero=0)


def _conv(d: Draw, dtype: str) -> bytes:
    n, h, w, c = d.pick(1, 1, 1, 2), d.pick(1, 4, 7, 10), d.pick(4, 7, 10, 13), d.pick(1, 2, 3, 4, 8, 12, 16, 17, 24)
    taps, out = d.pick((1, 1), (1, 1), (3, 3), (1, 3), (2, 5), (5, 5)), d.pick(1, 2, 4, 8, 9, 16)
    taps = (min(taps[0], h), min(taps[1], w))
    stride, dilation, same = (
        d.pick((1, 1), (1, 1), (2, 2), (1, 2)),
        d.pick((1, 1), (1, 1), (1, 1), (2, 2)),
        d.pick(True, False),
    )
    groups = d.pick(1, 1, 1, 2) if c % 2 == 0 and out % 2 == 0 else 1
    weights = _weights(d, dtype, (out, *taps, c // groups), 0)
    result = (
        n,
        _extent(h, taps[0], stride[0], dilation[0], same),
        _extent(w, taps[1], stride[1], dilation[1], same),
        out,
    )
    sources: list[T | None] = [T(dtype, (n, h, w, c)), weights]
    bias = _bias(d, dtype, out, len(weights.quantisation[0]) or 1)
    if bias is not None or d.pick(True, False):
        sources.append(bias)
    return single(
        "CONV_2D", sources, [T(dtype, result)], "Conv2DOptions", Padding=0 if same else 1, StrideH=stride[0],
        StrideW=stride[1], DilationHFactor=dilation[0], DilationWFactor=dilation[1],
        FusedActivationFunction=d.pick(0, 1, 3),
    )  # fmt: skip


def _depthwise(d: Draw, dtype: str) -> bytes:
    n, h, w, c = (
        d.pick(1, 1, 1, 2),
        d.pick(1, 5, 8, 11, 30),
        d.pick(5, 8, 11, 40),
        d.pick(1, 1, 2, 3, 4, 5, 8, 12, 16, 24, 32),
    )
    multiplier = d.pick(1, 1, 1, 2, 4, 8) if c < 9 else 1
    taps = d.pick((3, 3), (3, 3), (1, 1), (5, 5), (1, 4), (3, 2))
    taps = (min(taps[0], h), min(taps[1], w))
    stride, dilation, same = d.pick((1, 1), (2, 2)), d.pick((1, 1), (1, 1), (1, 1), (2, 2)), d.pick(True, False)
    out = c * multiplier
    weights = _weights(d, dtype, (1, *taps, out), 3)
    result = (
        n,
        _extent(h, taps[0], stride[0], dilation[0], same),
        _extent(w, taps[1], stride[1], dilation[1], same),
        out,
    )
    sources: list[T | None] = [T(dtype, (n, h, w, c)), weights]
    bias = _bias(d, dtype, out, len(weights.quantisation[0]) or 1)
    if bias is not None and dtype == "int16":
        bias = zeros("int64", (out,), scales=(0.0005,), zero=0)
    if bias is not None or d.pick(True, False):
        sources.append(bias)
    return single(
        "DEPTHWISE_CONV_2D", sources, [T(dtype, result)], "DepthwiseConv2DOptions", Padding=0 if same else 1,
        StrideH=stride[0], StrideW=stride[1], DilationHFactor=dilation[0], DilationWFactor=dilation[1],
        DepthMultiplier=multiplier, FusedActivationFunction=d.pick(0, 1, 3),
    )  # fmt: skip


def _transpose_conv(d: Draw, dtype: str) -> bytes:
    h, w, c, out = d.pick(1, 3, 5), d.pick(2, 4, 7), d.pick(1, 4, 16, 17, 20), d.pick(1, 3, 8)
    taps, stride, same = d.pick((1, 1), (2, 2), (3, 3)), d.pick((1, 1), (2, 2), (3, 3), (2, 1)), d.pick(True, False)
    result = tuple(s * e if same else (e - 1) * s + t for e, s, t in zip((h, w), stride, taps, strict=True))
    weights = _weights(d, dtype, (out, *taps, c), 0)
    if weights.dtype == "int4":
        weights = replace(weights, dtype="int8")
    sources: list[T | None] = [ints(1, *result, out), weights, T(dtype, (1, h, w, c))]
    bias = _bias(d, dtype, out, len(weights.quantisation[0]) or 1)
    if bias is not None:
        if dtype == "int16":
            bias = zeros(d.pick("int64", "int16"), (out,), scales=(0.0005,), zero=0)
        sources.append(bias)
    return single(
        "TRANSPOSE_CONV", sources, [T(dtype, (1, *result, out))], "TransposeConvOptions", Padding=0 if same else 1,
        StrideH=stride[0], StrideW=stride[1],
    )  # fmt: skip


def _fully_connected(d: Draw, dtype: str) -> bytes:
    lead, depth, out = d.pick((1,), (1,), (3,), (1, 4), (2, 1, 3)), d.pick(1, 4, 7, 8, 16, 33), d.pick(1, 2, 5, 8, 16)
    weights = _weights(d, dtype, (out, depth), 0)
    bias = _bias(d, dtype, out, 1)
    if bias is not None and bias.dtype != "float32":
        scale = weights.quantisation[0][0] if weights.quantisation[0] else 1.0
        bias = replace(bias, scales=(T(dtype, ()).quantisation[0][0] * scale if T(dtype, ()).quantisation[0] else 1.0,))
    if d.r.random() < 0.15 and weights.dtype != "int4":
        weights = replace(weights, values=None)
    return single(
        "FULLY_CONNECTED", [T(dtype, (*lead, depth)), weights, bias], [T(dtype, (*lead, out))],
        "FullyConnectedOptions", FusedActivationFunction=d.pick(0, 1), KeepNumDims=len(lead) > 1,
    )  # fmt: skip


def _batch_matmul(d: Draw, dtype: str) -> bytes:
    lead, m, k, n = d.pick((), (2,), (2, 3)), d.pick(1, 3, 8), d.pick(2, 5, 16), d.pick(1, 4, 9)
    x, y = d.pick(False, False, True), d.pick(False, True)
    left, right = (*lead, *((k, m) if x else (m, k))), (*lead, *((n, k) if y else (k, n)))
    second = T(dtype, right) if d.pick(True, False) else zeros(dtype, right)
    return single(
        "BATCH_MATMUL", [T(dtype, left), second], [T(dtype, (*lead, m, n))], "BatchMatMulOptions", AdjX=x, AdjY=y
    )


def _pool(kind: str) -> Maker:
    def make(d: Draw, dtype: str) -> bytes:
        n, h, w, c, same = 1, d.pick(2, 5, 8), d.pick(3, 6, 9), d.pick(1, 3, 8, 20), d.pick(True, False)
        taps, stride = d.pick((1, 1), (2, 2), (3, 3)), d.pick((1, 1), (2, 2))
        taps = (min(taps[0], h), min(taps[1], w))
        result = (n, *(_extent(e, t, s, 1, same) for e, t, s in zip((h, w), taps, stride, strict=True)), c)
        odd: dict[str, Any] = {"scales": (0.2,)} if d.r.random() < 0.05 else {}
        return single(
            kind, [T(dtype, (n, h, w, c))], [T(dtype, result, **odd)], "Pool2DOptions", Padding=0 if same else 1,
            StrideH=stride[0], StrideW=stride[1], FilterHeight=taps[0], FilterWidth=taps[1],
        )  # fmt: skip

    return make


def _svdf(d: Draw, dtype: str) -> bytes:
    batch, size, rank, units, memory = d.pick(1, 2), d.pick(3, 10), d.pick(1, 2), d.pick(1, 4, 7), d.pick(2, 8)
    filters, quantised = units * rank, dtype == "int8"
    state = d.pick("int16", "int8") if quantised else dtype
    weights = "int8" if quantised else dtype
    sources: list[T | None] = [
        T(dtype, (batch, size)),
        zeros(weights, (filters, size), scales=(0.1,) if quantised else (), zero=0),
        zeros(state, (filters, memory), scales=(0.1,) if quantised else (), zero=0),
        zeros("int32" if quantised else dtype, (units,), scales=(0.01,) if quantised else (), zero=0),
        T(state, (batch, filters * memory), scales=(0.1,) if quantised else (), zero=0, variable=True),
    ]
    if d.r.random() < 0.1:
        sources[3] = None
    return single(
        "SVDF", sources, [T(dtype, (batch, units))], "SVDFOptions", Rank=rank, FusedActivationFunction=d.pick(0, 1)
    )


def _lstm(d: Draw, dtype: str) -> bytes:
    batch, steps, size, units, major = d.pick(1, 2), d.pick(1, 3), d.pick(2, 5), d.pick(1, 4, 6), d.pick(True, False)
    quantised = dtype != "float32"
    bias = {"float32": "float32", "int8": "int32", "int16": "int64"}.get(dtype, dtype)
    per = d.r.random() < 0.2

    def w(columns: int) -> T:
        scales = (0.01,) * (units if per else 1) if quantised else ()
        return zeros("int8" if quantised else dtype, (units, columns), scales=scales, zero=0)

    lead = (steps, batch) if major else (batch, steps)
    sources: list[T | None] = [T(dtype, (*lead, size)), *(w(size) for _ in range(4)), *(w(units) for _ in range(4))]
    sources += [None] * 3 + [zeros(bias, (units,), scales=(0.001,) if quantised else (), zero=0) for _ in range(4)]
    sources += [None] * 2
    sources.append(T(dtype, (batch, units), variable=True))
    sources.append(
        T(
            "int16" if quantised else dtype,
            (batch, units),
            scales=(2.0**-11,) if quantised else (),
            zero=0,
            variable=True,
        )
    )
    sources += [None] * 4
    return single(
        "UNIDIRECTIONAL_SEQUENCE_LSTM", sources, [T(dtype, (*lead, units))],
        "UnidirectionalSequenceLSTMOptions", TimeMajor=major, FusedActivationFunction=4,
    )  # fmt: skip


def _reshape(d: Draw, dtype: str) -> bytes:
    shape = d.shape(1, 5)
    new = d.pick((prod(shape),), (1, prod(shape)), shape[::-1])
    sources = [T(dtype, shape)] + ([ints(*new)] if d.pick(True, False) else [])
    return single("RESHAPE", sources, [T(dtype, new)], "ReshapeOptions", NewShape=new)


def _squeeze(d: Draw, dtype: str) -> bytes:
    shape = d.shape(1, 3)
    return single("SQUEEZE", [T(dtype, (1, *shape))], [T(dtype, shape)], "SqueezeOptions", SqueezeDims=(0,))


def _expand(d: Draw, dtype: str) -> bytes:
    shape = d.shape(1, 3)
    axis = d.pick(0, 1, -1)
    at = axis if axis >= 0 else len(shape) + 1 + axis
    new = (*shape[:at], 1, *shape[at:]) if d.r.random() < 0.9 else (1, 1, *shape)
    place = d.axes(axis) if d.pick(True, True, False) else T("int32", (1,))
    return single("EXPAND_DIMS", [T(dtype, shape), place], [T(dtype, new)], "ExpandDimsOptions")


def _transpose(d: Draw, dtype: str) -> bytes:
    shape = d.shape(1, 6)
    order = list(range(len(shape)))
    d.r.shuffle(order)
    return single(
        "TRANSPOSE", [T(dtype, shape), ints(*order)], [T(dtype, tuple(shape[i] for i in order))], "TransposeOptions"
    )


def _pad(kind: str) -> Maker:
    def make(d: Draw, dtype: str) -> bytes:
        shape = d.shape(1, 5)
        amounts = [(d.r.randint(0, 2), d.r.randint(0, 2)) for _ in shape]
        new = tuple(e + a + b for e, (a, b) in zip(shape, amounts, strict=True))
        if d.r.random() < 0.05:
            new = (*new[:-1], new[-1] + 1)
        padding = T("int32", (len(shape), 2), [v for pair in amounts for v in pair])
        sources = [T(dtype, shape), padding]
        if kind == "PADV2":
            sources.append(zeros(dtype, (1,)))
        return single(kind, sources, [T(dtype, new)], "PadOptions" if kind == "PAD" else "PadV2Options")

    return make


def _mirror_pad(d: Draw, dtype: str) -> bytes:
    shape = d.shape(1, 4, 6)
    new = tuple(e + 2 if e > 1 else e for e in shape)
    padding = T("int32", (len(shape), 2), [1 if e > 1 else 0 for e in shape for _ in range(2)])
    return single("MIRROR_PAD", [T(dtype, shape), padding], [T(dtype, new)], "MirrorPadOptions", Mode=d.pick(0, 1))


def _slice(d: Draw, dtype: str) -> bytes:
    shape = d.shape(1, 5)
    size = tuple(d.r.randint(1, e) for e in shape)
    return single("SLICE", [T(dtype, shape), ints(*(0 for _ in shape)), ints(*size)], [T(dtype, size)], "SliceOptions")


def _strided_slice(d: Draw, dtype: str) -> bytes:
    shape = d.shape(1, 5)
    begin = [d.r.randint(0, e - 1) for e in shape]
    end = [d.r.randint(b + 1, e) for b, e in zip(begin, shape, strict=True)]
    stride = [d.pick(1, 1, 2) for _ in shape]
    new = tuple(-(-(e - b) // s) for b, e, s in zip(begin, end, stride, strict=True))
    shrink = d.pick(0, 0, 1)
    if shrink:
        new = new[1:]
    if d.r.random() < 0.05:
        new = (*new, 1)
    return single(
        "STRIDED_SLICE", [T(dtype, shape), ints(*begin), ints(*end), ints(*stride)], [T(dtype, new)],
        "StridedSliceOptions", ShrinkAxisMask=shrink,
    )  # fmt: skip


def _concatenation(d: Draw, dtype: str) -> bytes:
    shape, count = d.shape(1, 4), d.pick(1, 2, 3, 10, 11)
    axis = d.pick(0, -1)
    new = list(shape)
    new[axis] *= count
    odd: dict[str, Any] = {"scales": (0.5,)} if d.r.random() < 0.1 else {}
    sources = [T(dtype, shape) if i or d.pick(True, False) else T(dtype, shape, **odd) for i in range(count)]
    return single(
        "CONCATENATION", sources, [T(dtype, tuple(new))], "ConcatenationOptions", Axis=axis,
        FusedActivationFunction=d.pick(0, 0, 0, 0, 0, 1),
    )  # fmt: skip


def _split(d: Draw, dtype: str) -> bytes:
    count, rest = d.pick(1, 2, 3), d.shape(0, 3)
    axis = T("int32", (), [0]) if d.r.random() < 0.9 else T("int32", ())
    parts = [T(dtype, (2, *rest)) for _ in range(count)]
    return single("SPLIT", [axis, T(dtype, (2 * count, *rest))], parts, "SplitOptions", NumSplits=count)


def _split_v(d: Draw, dtype: str) -> bytes:
    sizes, rest = d.pick((1,), (1, 2), (3, 1, 2)), d.shape(0, 3)
    parts = [T(dtype, (s, *rest)) for s in sizes]
    return single(
        "SPLIT_V", [T(dtype, (sum(sizes), *rest)), ints(*sizes), d.axes(0)], parts, "SplitVOptions",
        NumSplits=len(sizes),
    )  # fmt: skip


def _pack(d: Draw, dtype: str) -> bytes:
    shape, count = d.shape(0, 3), d.pick(1, 2, 4)
    return single(
        "PACK", [T(dtype, shape) for _ in range(count)], [T(dtype, (count, *shape))], "PackOptions", ValuesCount=count
    )


def _unpack(d: Draw, dtype: str) -> bytes:
    shape, count = d.shape(0, 3), d.pick(1, 2, 4)
    return single(
        "UNPACK", [T(dtype, (count, *shape))], [T(dtype, shape) for _ in range(count)], "UnpackOptions", Num=count
    )


def _gather(d: Draw, dtype: str) -> bytes:
    shape = d.shape(1, 3)
    axis = d.r.randint(0, len(shape) - 1)
    places = T("int32", (3,), [0, 0, 0]) if d.r.random() < 0.9 else T("int64", (3,), [0, 0, 0])
    return single(
        "GATHER",
        [T(dtype, shape), places],
        [T(dtype, (*shape[:axis], 3, *shape[axis + 1 :]))],
        "GatherOptions",
        Axis=axis,
    )


def _gather_nd(d: Draw, dtype: str) -> bytes:
    shape = d.shape(2, 4)
    depth = d.pick(1, 2)
    places = T("int32", (2, depth), [0] * (2 * depth))
    return single("GATHER_ND", [T(dtype, shape), places], [T(dtype, (2, *shape[depth:]))], "GatherNdOptions")


def _embedding(d: Draw, dtype: str) -> bytes:
    shape = d.shape(2, 3)
    table = zeros(dtype, shape, zero=0)
    result = dtype if dtype != "int8" or d.pick(True, False) else "float32"
    return single("EMBEDDING_LOOKUP", [ints(0, 0), table], [T(result, (2, *shape[1:]), zero=0)])


def _depth_to_space(d: Draw, dtype: str) -> bytes:
    h, w, c, block = d.pick(1, 3), d.pick(2, 4), d.pick(1, 3), d.pick(2, 2, 3)
    return single(
        "DEPTH_TO_SPACE", [T(dtype, (1, h, w, c * block * block))], [T(dtype, (1, h * block, w * block, c))],
        "DepthToSpaceOptions", BlockSize=block,
    )  # fmt: skip


def _space_to_depth(d: Draw, dtype: str) -> bytes:
    h, w, c, block = d.pick(1, 3), d.pick(2, 4), d.pick(1, 3), d.pick(2, 2, 3)
    return single(
        "SPACE_TO_DEPTH", [T(dtype, (1, h * block, w * block, c))], [T(dtype, (1, h, w, c * block * block))],
        "SpaceToDepthOptions", BlockSize=block,
    )  # fmt: skip


def _batches(kind: str) -> Maker:
    def make(d: Draw, dtype: str) -> bytes:
        h, w, c = d.pick(2, 4), d.pick(2, 6), d.pick(1, 3)
        spread, joined = (1, h, w, c), (4, h // 2, w // 2, c)
        source, result = (spread, joined) if kind == "SPACE_TO_BATCH_ND" else (joined, spread)
        name = "SpaceToBatchNDOptions" if kind == "SPACE_TO_BATCH_ND" else "BatchToSpaceNDOptions"
        return single(kind, [T(dtype, source), ints(2, 2), T("int32", (2, 2), [0] * 4)], [T(dtype, result)], name)

    return make


def _resize(kind: str) -> Maker:
    def make(d: Draw, dtype: str) -> bytes:
        h, w, c = d.pick(2, 4), d.pick(3, 5), d.pick(1, 3)
        name = "ResizeBilinearOptions" if kind == "RESIZE_BILINEAR" else "ResizeNearestNeighborOptions"
        return single(
            kind, [T(dtype, (1, h, w, c)), ints(2 * h, 2 * w)], [T(dtype, (1, 2 * h, 2 * w, c))], name,
            AlignCorners=d.pick(True, False), HalfPixelCenters=d.pick(True, False, False),
        )  # fmt: skip

    return make


def _reverse(d: Draw, dtype: str) -> bytes:
    shape = d.shape(1, 4)
    return single("REVERSE_V2", [T(dtype, shape), d.axes(0)], [T(dtype, shape)], "ReverseV2Options")


def _broadcast_args(d: Draw, dtype: str) -> bytes:
    n = d.pick(1, 3)
    return single("BROADCAST_ARGS", [T(dtype, (n,)), T(dtype, (n,))], [T(dtype, (n,))])


def _broadcast_to(d: Draw, dtype: str) -> bytes:
    shape = d.shape(1, 4)
    source = d.pick(shape, (1,) * len(shape), shape[1:] or (1,))
    return single("BROADCAST_TO", [T(dtype, source), ints(*shape)], [T(dtype, shape)], "BroadcastToOptions")


def _fill(d: Draw, dtype: str) -> bytes:
    shape = d.shape(1, 4)
    return single("FILL", [ints(*shape), T(dtype, ())], [T(dtype, shape)], "FillOptions")


def _update(d: Draw, dtype: str) -> bytes:
    shape = d.shape(1, 4)
    part = tuple(d.r.randint(1, e) for e in shape)
    return single(
        "DYNAMIC_UPDATE_SLICE", [T(dtype, shape), T(dtype, part), ints(*(0 for _ in shape))], [T(dtype, shape)],
        "DynamicUpdateSliceOptions",
    )  # fmt: skip


def _select(d: Draw, dtype: str) -> bytes:
    shape = d.shape(1, 4)
    choice = d.pick(shape, (1,), (shape[-1],))
    return single(
        "SELECT_V2",
        [T("bool", choice), T(dtype, shape), T(dtype, d.pick(shape, (1,)))],
        [T(dtype, shape)],
        "SelectV2Options",
    )


def _shape(d: Draw, dtype: str) -> bytes:
    shape = d.shape(1, 4)
    return single(
        "SHAPE", [T(dtype, shape)], [T(d.pick("int32", "int32", "int64"), (len(shape),))], "ShapeOptions", OutType=2
    )


def _arg(kind: str) -> Maker:
    def make(d: Draw, dtype: str) -> bytes:
        shape = d.shape(1, 4)
        name = "ArgMaxOptions" if kind == "ARG_MAX" else "ArgMinOptions"
        return single(kind, [T(dtype, shape), d.axes(len(shape) - 1)], [T("int32", shape[:-1])], name, OutputType=2)

    return make


def _cumsum(d: Draw, dtype: str) -> bytes:
    shape = d.shape(1, 4)
    return single("CUMSUM", [T(dtype, shape), T("int32", (), [0])], [T(dtype, shape)], "CumsumOptions")


def _reduce(kind: str) -> Maker:
    def make(d: Draw, dtype: str) -> bytes:
        shape, keep = d.shape(2, 4), d.pick(True, False)
        axes = d.pick((0,), (len(shape) - 1,), (0, len(shape) - 1))
        new = tuple(1 if i in axes else e for i, e in enumerate(shape) if keep or i not in axes)
        return single(kind, [T(dtype, shape), d.axes(*axes)], [T(dtype, new)], "ReducerOptions", KeepDims=keep)

    return make


def _quantize(d: Draw, dtype: str) -> bytes:
    shape = d.shape()
    return single(
        "QUANTIZE",
        [T(dtype, shape)],
        [T(d.pick("int8", "int16", "int32", "uint8", "float32"), shape, scales=d.pick(None, (0.1,), (0.1,)))],
        "QuantizeOptions",
    )


def _dequantize(d: Draw, dtype: str) -> bytes:
    shape = d.shape()
    return single("DEQUANTIZE", [T(dtype, shape)], [T("float32", shape)], "DequantizeOptions")


def _cast(d: Draw, dtype: str) -> bytes:
    shape = d.shape()
    result = d.pick(*_ALL)
    return single(
        "CAST", [T(dtype, shape)], [T(result, shape)], "CastOptions", InDataType=TYPES[dtype], OutDataType=TYPES[result]
    )


def _softmax_wide(d: Draw, _: str) -> bytes:
    shape = d.shape(1, 3)
    return single(
        "SOFTMAX", [T("int8", shape)], [T("int16", shape, scales=(1 / 65536,), zero=-32768)], "SoftmaxOptions", Beta=1.0
    )


def _prelu(d: Draw, dtype: str) -> bytes:
    shape = (1, *d.shape(2, 3))
    slope = zeros(
        "int8" if dtype == "int16" else dtype,
        (1,) * (len(shape) - 2) + (shape[-1],),
        scales=(0.1,) if dtype in ("int8", "int16") else None,
    )
    return single("PRELU", [T(dtype, shape), slope], [T(dtype, shape)])


def _custom(kind: str, make: Callable[[Draw], tuple[list[T], list[T], dict[str, Any]]]) -> Maker:
    def build_one(d: Draw, _: str) -> bytes:
        sources, results, options = make(d)
        return single(kind, sources, results, "", True, **options)

    return build_one


def _signal(kind: str, sources: Sequence[str], results: Sequence[str], **options: Any) -> Maker:
    """Signal operators over vectors of one length; "type:" is a scalar."""

    def make(d: Draw) -> tuple[list[T], list[T], dict[str, Any]]:
        n = d.pick(4, 8, 40)

        def t(name: str) -> T:
            return T(name[:-1], (), scales=()) if name.endswith(":") else T(name, (n,), scales=())

        drawn = {k: (n if v == "n" else v) for k, v in options.items()}
        return [t(s) for s in sources], [t(r) for r in results], drawn

    return _custom(kind, make)


def _filter_bank(d: Draw) -> tuple[list[T], list[T], dict[str, Any]]:
    n = d.pick(2, 10)
    tables = [zeros("int16", (n + 1,), scales=()) for _ in range(5)]
    return [T("uint32", (16,)), *tables], [T("uint64", (n,))], {"num_channels": n}


def _transform(kind: str) -> Maker:
    def make(d: Draw) -> tuple[list[T], list[T], dict[str, Any]]:
        dtype, length = d.pick("int16", "int32", "float32"), d.pick(16, 64, 128)
        wide = T(dtype, (length + 2,), scales=())
        real = T(dtype, (length,), scales=())
        source, result = (real, wide) if kind == "SignalRfft" else (wide, real)
        return [source], [result], {"T": TYPES[dtype], "fft_length": length}

    return _custom(kind, make)


def _delay(d: Draw) -> tuple[list[T], list[T], dict[str, Any]]:
    shape = (*d.shape(0, 2, 3), d.pick(4, 10))
    t = T("int16", shape, scales=())
    return [t], [replace(t)], {"delay_length": d.pick(1, 5)}


def _framer(d: Draw) -> tuple[list[T], list[T], dict[str, Any]]:
    step, frames, frame, lead = d.pick(2, 4), d.pick(1, 3), d.pick(4, 7), d.shape(0, 1, 2)
    results = [T("int16", (*lead, frames, frame), scales=()), T("bool", ())]
    return (
        [T("int16", (*lead, step * frames), scales=())],
        results,
        {"frame_size": frame, "frame_step": step, "prefill": True},
    )


def _stacker(d: Draw) -> tuple[list[T], list[T], dict[str, Any]]:
    n, left, right = d.pick(3, 8), d.pick(0, 2), d.pick(0, 1)
    results = [T("int16", (n * (left + right + 1),), scales=()), T("bool", ())]
    options = {"num_channels": n, "stacker_left_context": left, "stacker_right_context": right, "stacker_step": 1}
    return [T("int16", (n,), scales=())], results, options


def _overlap_add(d: Draw) -> tuple[list[T], list[T], dict[str, Any]]:
    dtype, frames, frame, step, lead = (
        d.pick("int16", "float32"),
        d.pick(1, 2),
        d.pick(6, 8),
        d.pick(2, 4),
        d.shape(0, 1, 2),
    )
    sources = [T(dtype, (*lead, frames, frame), scales=())]
    return sources, [T(dtype, (*lead, frames * step), scales=())], {"T": TYPES[dtype], "frame_step": step}


def _detection(d: Draw) -> tuple[list[T], list[T], dict[str, Any]]:
    boxes, classes, most = d.pick(3, 6), d.pick(1, 3), d.pick(2, 3)
    sources = [
        T("float32", (1, boxes, 4)),
        T("float32", (1, boxes, classes + 1)),
        T("float32", (boxes, 4), [1.0] * (4 * boxes)),
    ]
    results = [T("float32", (1, most, 4)), T("float32", (1, most)), T("float32", (1, most)), T("float32", (1,))]
    options = {
        "max_detections": most, "max_classes_per_detection": 1, "num_classes": classes, "nms_score_threshold": 0.5,
        "nms_iou_threshold": 0.5, "y_scale": 1.0, "x_scale": 1.0, "h_scale": 1.0, "w_scale": 1.0,
    }  # fmt: skip
    return sources, results, options


def _window(d: Draw) -> tuple[list[T], list[T], dict[str, Any]]:
    n = d.pick(4, 16)
    return [T("int16", (n,), scales=()), zeros("int16", (n,), scales=())], [T("int16", (n,), scales=())], {"shift": 3}


def _unregistered(kind: str) -> Maker:
    def make(d: Draw, dtype: str) -> bytes:
        shape = d.shape()
        return single(kind, [T(dtype, shape)], [T(dtype, shape)])

    return make


def _several(d: Draw, dtype: str) -> bytes:
    """A chain of a few operators with a branch."""
    n, h, w, c = 1, d.pick(4, 8), d.pick(4, 8), d.pick(2, 4, 8)
    t = T(dtype, (n, h, w, c))
    weights, bias = _weights(d, dtype, (c, 3, 3, c), 0), _bias(d, dtype, c, 1)
    low = T(dtype, (n, h // 2, w // 2, c))
    tensors = (
        t,
        weights,
        bias or zeros("int32", (c,)),
        replace(t),
        replace(t),
        low,
        T(dtype, (n, prod(low.shape))),
        ints(n, prod(low.shape)),
    )
    conv = {"Padding": 0, "StrideH": 1, "StrideW": 1, "DilationHFactor": 1, "DilationWFactor": 1}
    pool = {"Padding": 1, "StrideH": 2, "StrideW": 2, "FilterHeight": 2, "FilterWidth": 2}
    ops = (
        Op("CONV_2D", (0, 1, 2) if bias else (0, 1), (3,), conv, "Conv2DOptions"),
        Op("ADD", (3, 0), (4,), {}, "AddOptions"),
        Op("MAX_POOL_2D", (4,), (5,), pool, "Pool2DOptions"),
        Op("RESHAPE", (5, 7), (6,), {}, "ReshapeOptions"),
    )
    return build(S(tensors, ops, (0,), (6,)))


def _branches(d: Draw, dtype: str) -> bytes:
    shape = d.shape(1, 3)
    t = T(dtype, shape)
    body = S((t, replace(t)), (Op("ADD", (0, 0), (1,), {}, "AddOptions"),), (0,), (1,))
    other = S((t, replace(t)), (Op("MUL", (0, 0), (1,), {}, "MulOptions"),), (0,), (1,))
    call = Op("IF", (0, 1), (2,), {"ThenSubgraphIndex": 1, "ElseSubgraphIndex": d.pick(1, 2)}, "IfOptions")
    main = S((T("bool", (1,)), t, replace(t)), (call,), (0, 1), (2,))
    return build(main, body, other)


def _variables(d: Draw, dtype: str) -> bytes:
    """A variable that CALL_ONCE assigns, and that the main subgraph reads and assigns."""
    shape = d.shape(1, 3)
    handle, value, start = T("resource", ()), T(dtype, shape), zeros(dtype, shape)
    name = {"Container": "", "SharedName": "state"}
    setup = S(
        (handle, start),
        (
            Op("VAR_HANDLE", (), (0,), name, "VarHandleOptions"),
            Op("ASSIGN_VARIABLE", (0, 1), (), {}, "AssignVariableOptions"),
        ),
        (),
        (),
    )
    ops = (
        Op("CALL_ONCE", (), (), {"InitSubgraphIndex": 1}, "CallOnceOptions"),
        Op("VAR_HANDLE", (), (0,), name, "VarHandleOptions"),
        Op("READ_VARIABLE", (0,), (2,), {}, "ReadVariableOptions"),
        Op("ADD", (1, 2), (3,), {}, "AddOptions"),
        Op("ASSIGN_VARIABLE", (0, 3), (), {}, "AssignVariableOptions"),
    )
    return build(S((handle, value, replace(value), replace(value)), ops, (1,), (3,)), setup)


def _loop(d: Draw, _: str) -> bytes:
    """Counts to a limit."""
    t = T("float32", (1,))
    limit = T("float32", (1,), [5.0])
    one = T("float32", (1,), [1.0])
    test = S((t, limit, T("bool", (1,))), (Op("LESS", (0, 1), (2,), {}, "LessOptions"),), (0,), (2,))
    body = S((t, one, replace(t)), (Op("ADD", (0, 1), (2,), {}, "AddOptions"),), (0,), (2,))
    call = Op("WHILE", (0,), (1,), {"CondSubgraphIndex": 1, "BodySubgraphIndex": 2}, "WhileOptions")
    return build(S((t, replace(t)), (call,), (0,), (1,)), test, body)


#: Operator, a maker of models, and the types that it is drawn with.
MAKERS: tuple[tuple[str, Maker, tuple[str, ...]], ...] = (
    *((k, _unary(k), _ALL) for k in ("ABS", "RSQRT", "SIN", "COS", "LOG", "SQRT", "SQUARE", "LOGICAL_NOT", "CEIL",
      "EXP", "ROUND", "FLOOR", "NEG", "RELU", "RELU6", "ELU", "HARD_SWISH", "LOGISTIC", "TANH", "LOG_SOFTMAX",
      "ZEROS_LIKE")),
    *((k, _careless(k), _MAIN) for k in ("ABS", "RSQRT", "RELU", "LOGISTIC", "TANH", "LOG_SOFTMAX")),
    ("SOFTMAX", _unary("SOFTMAX", "SoftmaxOptions", Beta=1.0), _ALL),
    ("SOFTMAX", _careless("SOFTMAX", "SoftmaxOptions", Beta=1.0), _MAIN),
    ("SOFTMAX", _softmax_wide, ("int8",)),
    ("LEAKY_RELU", _unary("LEAKY_RELU", "LeakyReluOptions", Alpha=0.1), _ALL),
    ("L2_NORMALIZATION", _unary("L2_NORMALIZATION", "L2NormOptions"), _ALL),
    ("ADD", _binary("ADD", None, "AddOptions"), _ALL),
    ("SUB", _binary("SUB", None, "SubOptions"), _ALL),
    ("MUL", _binary("MUL", None, "MulOptions"), _ALL),
    ("DIV", _binary("DIV", None, "DivOptions"), _ALL),
    *((k, _binary(k), _ALL) for k in ("FLOOR_DIV", "FLOOR_MOD", "SQUARED_DIFFERENCE", "MAXIMUM", "MINIMUM")),
    *((k, _binary(k, "bool"), _ALL) for k in ("EQUAL", "NOT_EQUAL", "GREATER", "GREATER_EQUAL", "LESS", "LESS_EQUAL")),
    *((k, _binary(k), ("bool",)) for k in ("LOGICAL_AND", "LOGICAL_OR")),
    ("ADD", _mixed("ADD", "AddOptions"), _MAIN), ("MUL", _mixed("MUL", "MulOptions"), _MAIN),
    ("SUB", _mixed("SUB", "SubOptions"), _MAIN),
    ("ADD_N", _add_n, _ALL), ("PRELU", _prelu, _ALL), ("QUANTIZE", _quantize, _ALL), ("DEQUANTIZE", _dequantize, _ALL),
    ("CAST", _cast, _ALL), ("CONV_2D", _conv, _MAIN * 3 + ("uint8",)),
    ("DEPTHWISE_CONV_2D", _depthwise, _MAIN * 3 + ("uint8",)),
    ("TRANSPOSE_CONV", _transpose_conv, (*_MAIN, *_MAIN, "uint8")),
    ("FULLY_CONNECTED", _fully_connected, _MAIN * 2 + ("uint8",)),
    ("BATCH_MATMUL", _batch_matmul, _ALL), ("AVERAGE_POOL_2D", _pool("AVERAGE_POOL_2D"), _ALL),
    ("MAX_POOL_2D", _pool("MAX_POOL_2D"), _ALL), ("L2_POOL_2D", _pool("L2_POOL_2D"), _MAIN), ("SVDF", _svdf, _MAIN),
    ("UNIDIRECTIONAL_SEQUENCE_LSTM", _lstm, _MAIN), ("RESHAPE", _reshape, _ALL), ("SQUEEZE", _squeeze, _ALL),
    ("EXPAND_DIMS", _expand, _ALL), ("TRANSPOSE", _transpose, _ALL), ("PAD", _pad("PAD"), _ALL),
    ("PADV2", _pad("PADV2"), _ALL), ("MIRROR_PAD", _mirror_pad, _ALL), ("SLICE", _slice, _ALL),
    ("STRIDED_SLICE", _strided_slice, _ALL), ("CONCATENATION", _concatenation, _ALL), ("SPLIT", _split, _ALL),
    ("SPLIT_V", _split_v, _ALL), ("PACK", _pack, _ALL), ("UNPACK", _unpack, _ALL), ("GATHER", _gather, _ALL),
    ("GATHER_ND", _gather_nd, _ALL), ("EMBEDDING_LOOKUP", _embedding, _MAIN),
    ("DEPTH_TO_SPACE", _depth_to_space, _MAIN),
    ("SPACE_TO_DEPTH", _space_to_depth, _MAIN), ("BATCH_TO_SPACE_ND", _batches("BATCH_TO_SPACE_ND"), _MAIN),
    ("SPACE_TO_BATCH_ND", _batches("SPACE_TO_BATCH_ND"), _MAIN), ("RESIZE_BILINEAR", _resize("RESIZE_BILINEAR"), _MAIN),
    ("RESIZE_NEAREST_NEIGHBOR", _resize("RESIZE_NEAREST_NEIGHBOR"), _MAIN), ("REVERSE_V2", _reverse, _ALL),
    ("BROADCAST_ARGS", _broadcast_args, _ALL), ("BROADCAST_TO", _broadcast_to, _ALL), ("FILL", _fill, _ALL),
    ("DYNAMIC_UPDATE_SLICE", _update, _ALL), ("SELECT_V2", _select, _ALL), ("SHAPE", _shape, _ALL),
    ("ARG_MAX", _arg("ARG_MAX"), _ALL), ("ARG_MIN", _arg("ARG_MIN"), _ALL), ("CUMSUM", _cumsum, _ALL),
    *((k, _reduce(k), _ALL) for k in ("MEAN", "SUM", "REDUCE_MAX", "REDUCE_MIN", "REDUCE_ALL")),
    ("SignalEnergy", _signal("SignalEnergy", ["int16"], ["uint32"], end_index="n", start_index=0), ("int16",)),
    ("SignalFftAutoScale", _signal("SignalFftAutoScale", ["int16"], ["int16", "int32:"]), ("int16",)),
    ("SignalFilterBank", _custom("SignalFilterBank", _filter_bank), ("uint32",)),
    ("SignalFilterBankLog", _signal("SignalFilterBankLog", ["uint32"], ["int16"], input_correction_bits=3,
     output_scale=1600), ("uint32",)),
    ("SignalFilterBankSquareRoot", _signal("SignalFilterBankSquareRoot", ["uint64", "int32:"], ["uint32"]),
    ("uint64",)),
    ("SignalFilterBankSpectralSubtraction", _signal(
        "SignalFilterBankSpectralSubtraction", ["uint32"], ["uint32", "uint32"], alternate_one_minus_smoothing=1,
        alternate_smoothing=1, clamping=False, min_signal_remaining=1, num_channels="n", one_minus_smoothing=1,
        smoothing=1, smoothing_bits=10, spectral_subtraction_bits=14), ("uint32",)),
    ("SignalPCAN", _signal("SignalPCAN", ["uint32", "uint32", "int16"], ["uint32"], snr_shift=6), ("uint32",)),
    ("SignalWindow", _custom("SignalWindow", _window), ("int16",)), ("SignalDelay", _custom("SignalDelay", _delay),
    ("int16",)),
    ("SignalFramer", _custom("SignalFramer", _framer), ("int16",)),
    ("SignalStacker", _custom("SignalStacker", _stacker), ("int16",)),
    ("SignalOverlapAdd", _custom("SignalOverlapAdd", _overlap_add), ("int16",)),
    ("SignalRfft", _transform("SignalRfft"), ("int16",)), ("SignalIrfft", _transform("SignalIrfft"), ("int16",)),
    ("TFLite_Detection_PostProcess", _custom("TFLite_Detection_PostProcess", _detection), ("float32",)),
    *((k, _unregistered(k),
    ("float32",)) for k in ("POW", "RANK", "GELU", "TOPK_V2", "TILE", "ONE_HOT", "RELU_N1_TO_1")),
    ("several", _several, _MAIN), ("branches", _branches, _MAIN), ("variables", _variables, ("float32", "int8")),
    ("loop", _loop, ("float32",)),
)  # fmt: skip


def sweep(count: int = 12, seed: int = 1, draw: type[Draw] = Draw) -> Iterator[Case]:
    """`count` models of every operator with every type that it is drawn with, by name.

    Without those that cannot be made of the shapes that `draw` gives.
    """
    for number, (kind, maker, dtypes) in enumerate(MAKERS):
        for place, dtype in enumerate(dtypes):
            for index in range(count):
                name = f"{kind}-{dtype}-{number}.{place}.{index}"
                with suppress(IndexError, ValueError) if draw is AnyRank else nullcontext():
                    yield name, maker(draw(hash((seed, number, place, index)) & 0xFFFFFFFF), dtype)

"""Small .tflite files with control flow, built field by field."""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import flatbuffers
import tflite

BUILTIN = tflite.BuiltinOperator
FLOAT32, BOOL = tflite.TensorType.FLOAT32, tflite.TensorType.BOOL

#: Name, type, shape, and constant values in a form that the writer knows, or None.
TensorRow = tuple[str, int, tuple[int, ...], Any]
#: Kind, inputs, outputs, called subgraphs.
OpRow = tuple[str, tuple[int, ...], tuple[int, ...], tuple[int, ...]]
#: A function of the flatbuffers package that begins a vector of so many items.
Start = Callable[[flatbuffers.Builder, int], object]


#: Kinds whose options are called otherwise than they are.
_NAMED_OTHERWISE = {"MAXIMUM": "MaximumMinimum", "MINIMUM": "MaximumMinimum"}


@dataclass
class Sub:
    """A subgraph: tensors as (name, type, shape, constant values or None), operators as (kind, ins, outs, calls)."""

    tensors: Sequence[TensorRow]
    ops: Sequence[OpRow]
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]


@dataclass
class _Writer:
    b: flatbuffers.Builder = field(default_factory=lambda: flatbuffers.Builder(1024))
    buffers: list[bytes] = field(default_factory=lambda: [b""])
    codes: list[str] = field(default_factory=list)

    def vector(self, start: Start, items: Sequence[int]) -> int:
        start(self.b, len(items))
        for item in reversed(items):
            self.b.PrependUOffsetTRelative(item)
        return int(self.b.EndVector())

    def integers(self, start: Start, items: Sequence[int]) -> int:
        start(self.b, len(items))
        for item in reversed(items):
            self.b.PrependInt32(item)
        return int(self.b.EndVector())

    def tensor(self, name: str, kind: int, shape: Sequence[int], values: Any) -> int:
        index = 0
        if values is not None:
            index = len(self.buffers)
            self.buffers.append(struct.pack(f"<{len(values)}f", *values))
        text = self.b.CreateString(name)
        extents = self.integers(tflite.TensorStartShapeVector, shape)
        tflite.TensorStart(self.b)
        tflite.TensorAddName(self.b, text)
        tflite.TensorAddShape(self.b, extents)
        tflite.TensorAddType(self.b, kind)
        tflite.TensorAddBuffer(self.b, index)
        return int(tflite.TensorEnd(self.b))

    def options(self, kind: str, calls: Sequence[int]) -> tuple[int, int]:
        if kind == "IF":
            tflite.IfOptionsStart(self.b)
            tflite.IfOptionsAddThenSubgraphIndex(self.b, calls[0])
            tflite.IfOptionsAddElseSubgraphIndex(self.b, calls[1])
            return tflite.BuiltinOptions.IfOptions, tflite.IfOptionsEnd(self.b)
        if kind == "WHILE":
            tflite.WhileOptionsStart(self.b)
            tflite.WhileOptionsAddCondSubgraphIndex(self.b, calls[0])
            tflite.WhileOptionsAddBodySubgraphIndex(self.b, calls[1])
            return tflite.BuiltinOptions.WhileOptions, tflite.WhileOptionsEnd(self.b)
        if kind == "CALL":
            tflite.CallOptionsStart(self.b)
            tflite.CallOptionsAddSubgraph(self.b, calls[0])
            return tflite.BuiltinOptions.CallOptions, tflite.CallOptionsEnd(self.b)
        name = _NAMED_OTHERWISE.get(kind, kind.title().replace("_", ""))
        getattr(tflite, f"{name}OptionsStart")(self.b)
        return getattr(tflite.BuiltinOptions, f"{name}Options"), getattr(tflite, f"{name}OptionsEnd")(self.b)

    def op(self, kind: str, inputs: Sequence[int], outputs: Sequence[int], calls: Sequence[int]) -> int:
        if kind not in self.codes:
            self.codes.append(kind)
        which, options = self.options(kind, calls)
        reads = self.integers(tflite.OperatorStartInputsVector, inputs)
        writes = self.integers(tflite.OperatorStartOutputsVector, outputs)
        tflite.OperatorStart(self.b)
        tflite.OperatorAddOpcodeIndex(self.b, self.codes.index(kind))
        tflite.OperatorAddInputs(self.b, reads)
        tflite.OperatorAddOutputs(self.b, writes)
        tflite.OperatorAddBuiltinOptionsType(self.b, which)
        tflite.OperatorAddBuiltinOptions(self.b, options)
        return int(tflite.OperatorEnd(self.b))

    def subgraph(self, sub: Sub) -> int:
        tensors = self.vector(tflite.SubGraphStartTensorsVector, [self.tensor(*row) for row in sub.tensors])
        ops = self.vector(tflite.SubGraphStartOperatorsVector, [self.op(*row) for row in sub.ops])
        inputs = self.integers(tflite.SubGraphStartInputsVector, sub.inputs)
        outputs = self.integers(tflite.SubGraphStartOutputsVector, sub.outputs)
        tflite.SubGraphStart(self.b)
        tflite.SubGraphAddTensors(self.b, tensors)
        tflite.SubGraphAddOperators(self.b, ops)
        tflite.SubGraphAddInputs(self.b, inputs)
        tflite.SubGraphAddOutputs(self.b, outputs)
        return int(tflite.SubGraphEnd(self.b))

    def buffer(self, data: bytes) -> int:
        vector = self.b.CreateByteVector(data) if data else None
        tflite.BufferStart(self.b)
        if vector is not None:
            tflite.BufferAddData(self.b, vector)
        return int(tflite.BufferEnd(self.b))

    def code(self, kind: str) -> int:
        number = getattr(BUILTIN, kind)
        tflite.OperatorCodeStart(self.b)
        tflite.OperatorCodeAddDeprecatedBuiltinCode(self.b, min(number, 127))
        tflite.OperatorCodeAddBuiltinCode(self.b, number)
        tflite.OperatorCodeAddVersion(self.b, 1)
        return int(tflite.OperatorCodeEnd(self.b))


#: TensorType numbers and bytes of an element.
TYPES = {"float32": 0, "int32": 2, "uint8": 3, "int16": 7, "int8": 9, "bool": 6}
BYTES = {"float32": 4, "int32": 4, "uint8": 1, "int16": 2, "int8": 1, "bool": 1}


class Writer(_Writer):
    """Adds scales to tensors and constants of any type: a tensor's last item may be ((scale, zero point), bytes).

    The scale may be a list, one for each index of the first axis.
    """

    def tensor(self, name: str, kind: int, shape: Sequence[int], values: Any) -> int:
        scale, values = values if isinstance(values, tuple) else (None, values)
        quantisation = self.quantisation(*scale) if scale else None
        index = 0
        if values is not None:
            index = len(self.buffers)
            self.buffers.append(values)
        text = self.b.CreateString(name)
        extents = self.integers(tflite.TensorStartShapeVector, shape)
        tflite.TensorStart(self.b)
        tflite.TensorAddName(self.b, text)
        tflite.TensorAddShape(self.b, extents)
        tflite.TensorAddType(self.b, kind)
        tflite.TensorAddBuffer(self.b, index)
        if quantisation:
            tflite.TensorAddQuantization(self.b, quantisation)
        return int(tflite.TensorEnd(self.b))

    def quantisation(self, scale: float | Sequence[float], zero: int) -> int:
        each = [scale] if isinstance(scale, float) else scale
        tflite.QuantizationParametersStartScaleVector(self.b, len(each))
        for number in reversed(each):
            self.b.PrependFloat32(number)
        scales = self.b.EndVector()
        tflite.QuantizationParametersStartZeroPointVector(self.b, len(each))
        for _ in each:
            self.b.PrependInt64(zero)
        zeros = self.b.EndVector()
        tflite.QuantizationParametersStart(self.b)
        tflite.QuantizationParametersAddScale(self.b, scales)
        tflite.QuantizationParametersAddZeroPoint(self.b, zeros)
        return int(tflite.QuantizationParametersEnd(self.b))


def model(*subgraphs: Sub, writer: _Writer | None = None) -> bytes:
    """The file."""
    w = writer or _Writer()
    subs = w.vector(tflite.ModelStartSubgraphsVector, [w.subgraph(sub) for sub in subgraphs])
    buffers = w.vector(tflite.ModelStartBuffersVector, [w.buffer(data) for data in w.buffers])
    codes = w.vector(tflite.ModelStartOperatorCodesVector, [w.code(kind) for kind in w.codes])
    tflite.ModelStart(w.b)
    tflite.ModelAddVersion(w.b, 3)
    tflite.ModelAddSubgraphs(w.b, subs)
    tflite.ModelAddBuffers(w.b, buffers)
    tflite.ModelAddOperatorCodes(w.b, codes)
    w.b.Finish(tflite.ModelEnd(w.b), b"TFL3")
    return bytes(w.b.Output())


def branching(extent: int = 12) -> bytes:
    """y = x + x; z = y * y or y + y + y by a flag; out = z + y."""

    def t(name: str) -> TensorRow:
        return name, FLOAT32, (extent,), None

    main = Sub(
        [("flag", BOOL, (1,), None), t("x"), t("y"), t("z"), t("out")],
        [("ADD", (1, 1), (2,), ()), ("IF", (0, 2), (3,), (1, 2)), ("ADD", (3, 2), (4,), ())],
        (0, 1),
        (4,),
    )
    then = Sub([t("i"), t("o")], [("MUL", (0, 0), (1,), ())], (0,), (1,))
    other = Sub([t("i"), t("s"), t("o")], [("ADD", (0, 0), (1,), ()), ("ADD", (1, 0), (2,), ())], (0,), (2,))
    return model(main, then, other)


def looping() -> bytes:
    """Adds 1 to x until it is 5, then adds the x of the start."""

    def t(name: str, values: list[float] | None = None) -> TensorRow:
        return name, FLOAT32, (1,), values

    main = Sub([t("x"), t("y"), t("out")], [("WHILE", (0,), (1,), (1, 2)), ("ADD", (0, 1), (2,), ())], (0,), (2,))
    condition = Sub([t("i"), t("five", [5.0]), ("go", BOOL, (1,), None)], [("LESS", (0, 1), (2,), ())], (0,), (2,))
    body = Sub([t("i"), t("one", [1.0]), t("o")], [("ADD", (0, 1), (2,), ())], (0,), (2,))
    return model(main, condition, body)


def calling() -> bytes:
    """y = x + x; z = (y * y) * y by a call; out = z + y."""

    def t(name: str) -> TensorRow:
        return name, FLOAT32, (16,), None

    main = Sub(
        [t("x"), t("y"), t("z"), t("out")],
        [("ADD", (0, 0), (1,), ()), ("CALL", (1,), (2,), (1,)), ("ADD", (2, 1), (3,), ())],
        (0,),
        (3,),
    )
    called = Sub([t("i"), t("s"), t("o")], [("MUL", (0, 0), (1,), ()), ("MUL", (1, 0), (2,), ())], (0,), (2,))
    return model(main, called)


def nested(depth: int, kind: str = "IF") -> bytes:
    """`depth` operators IF, each inside both branches of the one before; or as many WHILE, each in the body of one."""
    subs = []
    vectors = [("flag", BOOL, (1,), None), *((name, FLOAT32, (64,), None) for name in "xyz")]
    leaf, condition = depth, depth + 1
    for level in range(depth):
        inner = level + 1 if level + 1 < depth else leaf
        calls = (inner, inner) if kind == "IF" else (condition, inner)
        add = ("ADD", (1, 1), (2,), ())
        if kind == "IF":  # hands on all but its condition
            subs.append(Sub(vectors, [add, (kind, (0, 0, 2), (3,), calls)], (0, 1), (3,)))
        else:
            with_flag = [*vectors, ("after", BOOL, (1,), None)]
            subs.append(Sub(with_flag, [add, (kind, (0, 2), (4, 3), calls)], (0, 1), (4, 3)))
    outputs = (2,) if kind == "IF" else (0, 2)
    subs.append(Sub(vectors[:3], [("ADD", (1, 1), (2,), ())], (0, 1), outputs))
    subs.append(Sub(vectors[:2], [], (0, 1), (0,)))
    return model(*subs)

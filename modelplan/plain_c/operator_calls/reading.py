"""An operator of a .tflite file with all that its kernel is prepared from: types, shapes, scales and constants."""

import math
from collections.abc import Mapping
from dataclasses import replace
from functools import cached_property, lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

from modelplan.formats.tflite import tflite_schema as schema
from modelplan.formats.tflite.tflite_file import QuantisationScales, TfliteFile
from modelplan.formats.tflite.tflite_options import attributes
from modelplan.formats.tflite.tflite_schema import DTYPES
from modelplan.model import Op, Value
from modelplan.ops import facts
from modelplan.ops.access import AccessMap
from modelplan.ops.access.builders import ShapedOp
from modelplan.ops.access.rows import RowSpan, row_span
from modelplan.plain_c import ROUNDINGS
from modelplan.plain_c.kernel_records import (
    AxisWindow,
    MissingKernelError,
    RowOperand,
    RowResult,
    row_axis,
    rows_of,
)
from modelplan.plain_c.operator_calls.fixed_point import (
    ACTIVATIONS,
    LARGEST_FLOAT,
    LIMITS,
    activation_range,
    quantized_multiplier,
    single_multiplier,
)
from modelplan.primitives.lazy_records import dataclass
from modelplan.primitives.number_types import nbytes
from modelplan.runtimes.tflm.file import FileModel, FileOp, FileTensor, SameBytes, SameFile
from modelplan.runtimes.tflm.stated_network import StatedNetwork, StatedOptions

#: What those kernels compute of the operators that sum products.
_IN_LIBRARIES = {"CONV_2D", "DEPTHWISE_CONV_2D", "FULLY_CONNECTED"}


@dataclass(frozen=True)
class OperatorReader:
    """Operator `index` of a subgraph."""

    model: FileModel
    index: int
    subgraph: int = 0

    @cached_property
    def op(self) -> FileOp:
        """The operator's row in the file."""
        return self.model.subgraphs[self.subgraph].ops[self.index]

    @property
    def function(self) -> str:
        """What is computed of each element."""
        return self.op.kind

    def refuse(self, why: str) -> MissingKernelError:
        """An error that names the operator, its result and the reason."""
        names = ", ".join(repr(self.tensor(t).name) for t in self.op.writes)
        where = f"op {self.index}" + (f" of subgraph {self.subgraph}" if self.subgraph else "")
        return MissingKernelError(self.model.name, [(self.op.kind, why, f"{where} ({names})" if names else where)])

    def require(self, *, holds: bool, why: str) -> None:
        """Refuses the operator where a condition does not hold."""
        if not holds:
            raise self.refuse(why)

    def option(self, name: str) -> Any:
        """A field of the schema's table of options."""
        if self.op.options is None or not hasattr(self.op.options, name):
            raise self.refuse(f"the file says nothing about {name}")
        return getattr(self.op.options, name)()

    def tensor(self, number: int) -> FileTensor:
        """Tensor `number` of the subgraph; what is unpacked of constants of 16-bit floats is a constant."""
        tensor = self.model.subgraphs[self.subgraph].tensors[number]
        return replace(tensor, constant=True) if number in self._halves else tensor

    @property
    def _halves(self) -> Mapping[int, int]:
        """By tensor the constant of 16-bit floats that a DEQUANTIZE makes it of."""
        return half_constants(SameFile(self.model), self.subgraph)

    @property
    def unpacks_half(self) -> bool:
        """Whether the operator only unpacks a constant of 16-bit floats, for which its readers take the constant."""
        return bool(self.op.outputs) and self.op.outputs[0] in self._halves

    def half(self, position: int) -> npt.NDArray[np.float16] | None:
        """The 16-bit floats of which operand `position` is unpacked, if it is."""
        number = self._halves.get(self.op.inputs[position]) if self.has(position) else None
        if number is None:
            return None
        tensor = self.model.subgraphs[self.subgraph].tensors[number]
        start, length = tensor.content
        self.require(holds=length >= 2 * tensor.elements, why=f"constant {tensor.name!r} is cut short")
        return np.frombuffer(self.model.data, "<f2", tensor.elements, start).reshape(tensor.shape)

    def input(self, position: int) -> FileTensor:
        """The tensor of operand `position`."""
        if not self.has(position):
            raise self.refuse(f"operand {position} is absent")
        return self.tensor(self.op.inputs[position])

    def has(self, position: int) -> bool:
        """Whether operand `position` is there."""
        return position < len(self.op.inputs) and self.op.inputs[position] >= 0

    def output(self, position: int = 0) -> FileTensor:
        """The tensor of result `position`."""
        return self.tensor(self.op.outputs[position])

    def dtype(self, tensor: FileTensor) -> str:
        """The element type of a tensor in words."""
        return DTYPES[tensor.type]

    def access(self, output: int = 0) -> AccessMap | None:
        """Which elements of its operands each element of a result is made of, None where that is not known."""
        row, op = facts("tflite", self.op.kind), self.op
        named = [at for at in row.operands if self.is_constant(at) and self.dtype(self.input(at)) in ("int32", "int64")]
        numbers = tuple((f"operand {at}", tuple(int(n) for n in self.constant(at).ravel())) for at in named)
        as_stated = Op("", op.kind, op.inputs, op.outputs, (*self.attributes(), *numbers))
        shapes = tuple(self.tensor(t).shape if t >= 0 else None for t in op.inputs)
        results = tuple(self.tensor(t).shape if t >= 0 else () for t in op.outputs)
        return row.access(ShapedOp(as_stated, shapes, results, output)) if row.access else None

    def attributes(self) -> tuple[tuple[str, Value], ...]:
        """The options that an access map asks for."""
        return attributes(self.op.options)

    def constant(self, position: int) -> npt.NDArray[Any]:
        """The values of operand `position`.

        Raises:
            MissingKernelError: it is no constant.
        """
        tensor, half = self.input(position), self.half(position)
        values = numbers_of(self.model, tensor) if half is None else half.astype(np.float32)
        if values is None and tensor.constant and self.dtype(tensor) in _NUMBERS:
            raise self.refuse(f"operand {position} {tensor.name!r} has its numbers outside of the flatbuffer")
        if values is None:
            raise self.refuse(f"operand {position} {tensor.name!r} is no constant of a type that C has")
        return values

    def is_constant(self, position: int) -> bool:
        """Whether operand `position` is there and a constant."""
        return self.has(position) and self.input(position).constant

    def scales(self, number: int) -> npt.NDArray[np.float32]:
        """All scales of tensor `number`."""
        return np.frombuffer(_scales_of(SameBytes(self.model.data), self.subgraph).of(number)[0], "<f4")

    def variant(self, *allowed: str) -> str:
        """The variant of a kernel whose operand 0 and result 0 have the same type, one of those allowed if any."""
        source, result = self.dtype(self.input(0)), self.dtype(self.output())
        names = allowed or ("int8", "uint8", "int16", "int32", "float32")
        if source != result or source not in names:
            raise self.refuse(f"types {source} and {result}; there are kernels for {', '.join(names)}")
        return source.removesuffix("32") if source == "float32" else source

    def quantised(self, tensor: FileTensor) -> tuple[float, int]:
        """Scale and zero point of a tensor."""
        if tensor.quantization.scales < 1:
            raise self.refuse(f"{tensor.name!r} has no scale and zero point")
        return tensor.quantization.scale, tensor.quantization.zero_point

    def activation(self) -> int:
        """The number of the fused activation.

        Raises:
            MissingKernelError: one that TFLM's kernels do not have.
        """
        if self.op.kind == "TRANSPOSE_CONV" and not hasattr(self.op.options, "FusedActivationFunction"):
            return 0  # which older files do not state
        number = int(self.option("FusedActivationFunction"))
        self.require(holds=number in ACTIVATIONS, why=f"fused activation {number} is none of TFLM's kernels")
        return number

    def float_range(self) -> tuple[float, float]:
        """The least and the largest float of result 0; without an activation the finite ones, as TFLM has it."""
        low, high = ACTIVATIONS[self.activation()]
        return -LARGEST_FLOAT if low is None else float(low), LARGEST_FLOAT if high is None else float(high)

    def output_range(self) -> tuple[int, int]:
        """The least and the largest number of result 0."""
        return activation_range(self.activation(), self.dtype(self.output()), *self.quantised(self.output()))

    def rounded(self, variant: str) -> str:
        """The variant of a kernel by how it rounds."""
        return variant

    @property
    def counted_places(self) -> int:
        """1 where a mean counts the places of its window beside the map, else 0."""
        return 0

    def product_multiplier(self, operand: float, weights: float, result: float) -> tuple[int, int]:
        """By what sums of products of codes become codes of the result: a multiplier and a shift, from their scales."""
        return quantized_multiplier(float(operand) * float(weights) / float(result))

    def row_span(self, position: int, output: int = 0, rows: int = 0) -> RowSpan | None:
        """Which places of operand `position` a row of a result reads; None where these do not follow run after run.

        With `rows` the result is seen as so many.
        """
        access, tensor = self.access(output), self.output(output)
        result = (rows, tensor.elements // rows) if rows else tensor.shape
        reads, axis = access.of(position) if access else None, 0 if rows else row_axis(result)
        return row_span(reads, result, self.input(position).shape, axis) if reads and axis >= 0 else None

    def row_window(self, position: int, output: int = 0, rows: int = 0) -> AxisWindow | None:
        """Which rows of operand `position` a row of a result reads; None where it may read all of the operand."""
        span, shape = self.row_span(position, output, rows), self.input(position).shape
        if span is None or span.axis < 0:
            return None
        by_rows = span.axis == row_axis(shape) or shape[span.axis] == rows_of(shape) == 1
        return AxisWindow.of(span.span) if by_rows else None

    def row_operand(
        self, position: int, window: AxisWindow | None = None, columns: AxisWindow | None = None
    ) -> RowOperand:
        """Operand `position` with its rows."""
        tensor = self.input(position)
        return RowOperand(self.op.inputs[position], *_rows(tensor), window, columns)

    def row_results(self, rows: int = 0) -> tuple[RowResult, ...]:
        """All results with their rows, or as so many `rows`."""
        tensors = [(t, self.tensor(t)) for t in self.op.writes]
        return tuple(RowResult(t, *((rows, x.nbytes // rows) if rows else _rows(x))) for t, x in tensors)


@dataclass(frozen=True)
class NetworkReader(OperatorReader):
    """An operator of a network that no .tflite file holds, whose codes round as float32 does, halves to even."""

    model: StatedNetwork

    def attributes(self) -> tuple[tuple[str, Value], ...]:
        """The options that an access map asks for."""
        options: StatedOptions = self.op.options
        return options.attributes

    def option(self, name: str) -> Any:
        """An option by name."""
        if name not in self.op.options.values:
            raise self.refuse(f"nothing is said about {name}")
        return self.op.options.values[name]

    def stated(self, name: str, default: Any) -> Any:
        """An option by name, or what it is where nothing is said."""
        return self.op.options.values.get(name, default)

    def scales(self, number: int) -> npt.NDArray[np.float32]:
        """All scales of tensor `number`."""
        return np.array(self.model.scales[number].scales if number in self.model.scales else (), np.float32)

    def activation(self) -> int:
        """The number of the fused activation: none, as limits say more."""
        return 0

    @property
    def function(self) -> str:
        """What is computed of each element: a function that is stated, or that of the operator's kind."""
        return str(self.stated("Function", self.op.kind))

    @property
    def computes_codes(self) -> bool:
        """Whether an end of the operator is codes, or sums of codes."""
        return any(self.dtype(t) in ("int8", "uint8", "int16") for t in (self.input(0), self.output()))

    @property
    def counted_places(self) -> int:
        """1 where a mean counts the places of its window beside the map, else 0."""
        return int(self.stated("Whole", 0))

    def float_range(self) -> tuple[float, float]:
        """The least and the largest float of result 0."""
        least, most = self.stated("Limits", (-math.inf, math.inf))
        return float(least), float(most)

    def output_range(self) -> tuple[int, int]:
        """The least and the largest code of result 0."""
        (least, most), (scale, zero) = LIMITS[self.dtype(self.output())], self.quantised(self.output())
        ends = (float(np.rint(np.float32(end) / np.float32(scale))) + zero for end in self.float_range())
        low, high = ends
        return int(min(max(low, least), most)), int(max(min(high, most), least))

    @property
    def _rounds_as_libraries(self) -> bool:
        return self.model.asked.get("rounding") == ROUNDINGS[1] and self.op.kind in _IN_LIBRARIES

    def rounded(self, variant: str) -> str:
        """The variant of a kernel by how it rounds."""
        if self._rounds_as_libraries and variant == "int8":
            return variant
        return {"int8": "int8_even", "float": "float_parts"}.get(variant, variant)

    def product_multiplier(self, operand: float, weights: float, result: float) -> tuple[int, int]:
        """By what sums of products become codes of the result: the product of scales in float32, as 24 bits.

        Where it rounds as libraries do it is that of .tflite files.
        """
        if self._rounds_as_libraries:
            return super().product_multiplier(operand, weights, result)
        f32 = np.float32
        return single_multiplier(float(f32(f32(operand) * f32(weights)) / f32(result)))


def reader_of(model: FileModel, index: int, subgraph: int = 0) -> OperatorReader:
    """An operator of a file, or of a network that no file holds."""
    return NetworkReader(model, index) if isinstance(model, StatedNetwork) else OperatorReader(model, index, subgraph)


def _rows(tensor: FileTensor) -> tuple[int, int]:
    """How many rows a tensor has, and the bytes of each."""
    rows = rows_of(tensor.shape)
    return rows, tensor.nbytes // max(rows, 1)


@lru_cache(maxsize=16)
def half_constants(file: SameFile, subgraph: int) -> Mapping[int, int]:
    """By tensor the constant of 16-bit floats that a DEQUANTIZE of a file makes it of."""
    part = file.model.subgraphs[subgraph]
    unpacking = [op for op in part.ops if op.kind == "DEQUANTIZE" and len(op.reads) == len(op.writes) == 1]
    pairs = ((op.writes[0], op.reads[0]) for op in unpacking)
    tensors = part.tensors
    return {
        target: source
        for target, source in pairs
        if tensors[source].constant and DTYPES[tensors[source].type] == "float16" and target not in part.outputs
    }


def numbers_of(model: FileModel, tensor: FileTensor) -> npt.NDArray[Any] | None:
    """The values of a constant; None of another tensor, and of a type that C has not."""
    dtype, (start, length) = DTYPES[tensor.type], tensor.content
    if not tensor.constant or length < nbytes(dtype, tensor.shape) or dtype not in _NUMBERS:
        return None
    if dtype == "int4":
        return _unpacked(model.data, start, tensor.elements).reshape(tensor.shape)
    return np.frombuffer(model.data, _NUMBERS[dtype], tensor.elements, start).reshape(tensor.shape)


def _unpacked(data: bytes, start: int, count: int) -> npt.NDArray[np.int8]:
    """Numbers of 4 bits, the first in the low half of a byte."""
    pairs = np.frombuffer(data, np.int8, (count + 1) // 2, start)
    return np.column_stack((pairs << 4 >> 4, pairs >> 4)).ravel()[:count]


@lru_cache(maxsize=8)
def _scales_of(data: SameBytes, subgraph: int) -> QuantisationScales:
    file = TfliteFile(data.data)
    return QuantisationScales(file, file.slots(file.subgraph(subgraph), schema.SUBGRAPH_TENSORS))


_NUMBERS = {
    "int4": "i1", "int8": "<i1", "uint8": "<u1", "int16": "<i2", "int32": "<i4", "uint32": "<u4", "int64": "<i8",
    "float32": "<f4", "bool": "<u1",
}  # fmt: skip

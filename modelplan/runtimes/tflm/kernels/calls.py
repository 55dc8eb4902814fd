"""One operator as a TFLM kernel sees it: its operands with types, shapes and quantisation, and its options."""

from __future__ import annotations

import struct
from collections.abc import Mapping
from dataclasses import field
from math import prod
from typing import TypeAlias

from modelplan.formats.tflite.tflite_file import TensorScales
from modelplan.primitives.lazy_records import dataclass


class Refusal(Exception):  # noqa: N818 - an answer that travels, caught where an operator is prepared
    """TFLM's kernel would not prepare or run; the text says why, without the operator's name."""


#: Bytes of an element of each type that TFLM has, as `TfLiteTypeSizeOf` counts them: a 4-bit value takes a byte.
ELEMENT_BYTES = {
    "float32": 4, "float16": 2, "int32": 4, "uint8": 1, "int64": 8, "bool": 1, "int16": 2, "complex64": 8, "int8": 1,
    "float64": 8, "complex128": 16, "uint64": 8, "resource": 4, "uint32": 4, "uint16": 2, "int4": 1,
}  # fmt: skip

#: Operators whose constants are weights: no kernel looks at their values before it runs, no shape follows from them.
WEIGHTED = frozenset((
    "ADD", "BATCH_MATMUL", "CONV_2D", "DEPTHWISE_CONV_2D", "DIV", "FULLY_CONNECTED", "MAXIMUM", "MINIMUM", "MUL",
    "PRELU", "SUB", "SVDF", "UNIDIRECTIONAL_SEQUENCE_LSTM",
))  # fmt: skip

#: The value of an option of the schema.
Option: TypeAlias = bool | int | float | str | tuple[int, ...]

_INTEGERS = {"int8": "b", "uint8": "B", "int16": "h", "int32": "i", "int64": "q"}


@dataclass(frozen=True, slots=True)
class Operand:
    """What a kernel looks at in a tensor.

    `quantization` is None where it is not known; checks of it then pass. TFLM takes a tensor without zero points as one
    without scales. `content` holds the bytes of a constant. `compressed`: they are indices into a table of values.
    """

    dtype: str
    shape: tuple[int, ...]
    constant: bool = False
    quantization: TensorScales | None = None
    variable: bool = False
    content: bytes | memoryview | None = field(default=None, repr=False, compare=False)
    compressed: bool = False

    @property
    def elements(self) -> int:
        """Number of elements; a scalar has one."""
        return prod(self.shape)

    @property
    def rank(self) -> int:
        """Number of dimensions."""
        return len(self.shape)

    @property
    def nbytes(self) -> int:
        """Bytes that TFLM gives to the values; 0 for a type that it cannot hold."""
        return self.elements * ELEMENT_BYTES.get(self.dtype, 0)

    @property
    def scales(self) -> int:
        """Number of scales; one where it is not known."""
        return 1 if self.quantization is None else self.quantization.scales

    @property
    def per_channel(self) -> bool:
        """Whether there is more than one scale."""
        return self.scales > 1

    def dim(self, index: int) -> int:
        """Extent `index`.

        Raises:
            Refusal: the tensor has fewer; TFLM would read beyond its shape.
        """
        if not -self.rank <= index < self.rank:
            raise Refusal(f"a tensor of {self.rank} dimensions where its kernel reads extent {index}")
        return self.shape[index]

    def integers(self) -> tuple[int, ...] | None:
        """The values of an integer constant, None where they are not known."""
        code = _INTEGERS.get(self.dtype)
        if code is None or self.content is None or len(self.content) < self.nbytes:
            return None
        return struct.unpack_from(f"<{self.elements}{code}", self.content)


@dataclass(frozen=True, slots=True)
class Call:
    """One operator. `options` are the schema's fields under their names; `calls` are the subgraphs it runs.

    `custom`: it is none of the schema's.
    """

    kind: str
    inputs: tuple[Operand | None, ...]
    outputs: tuple[Operand | None, ...]
    options: Mapping[str, Option] = field(default_factory=dict)
    calls: tuple[Subgraph, ...] = ()
    custom: bool = False

    def input(self, index: int) -> Operand:
        """Operand `index`.

        Raises:
            Refusal: it is absent.
        """
        return _present(self.inputs, index, "input")

    def output(self, index: int = 0) -> Operand:
        """Result `index`.

        Raises:
            Refusal: it is absent.
        """
        return _present(self.outputs, index, "output")

    def number(self, name: str, default: int = 0) -> int:
        """An integer option."""
        value = self.options.get(name, default)
        assert not isinstance(value, tuple)
        return int(value)

    def numbers(self, name: str) -> tuple[int, ...]:
        """An option of several integers, none where it is absent."""
        values = self.options.get(name, ())
        return values if isinstance(values, tuple) else ()

    def text(self, name: str) -> str:
        """An option in words, empty where it is absent."""
        return str(self.options.get(name, ""))


@dataclass(frozen=True, slots=True)
class Subgraph:
    """How many inputs and outputs a called subgraph has; None for both if there is no such subgraph."""

    inputs: int | None
    outputs: int | None


def _present(operands: tuple[Operand | None, ...], index: int, what: str) -> Operand:
    operand = operands[index] if index < len(operands) else None
    if operand is None:
        raise Refusal(f"no {what} {index}, which its kernel needs")
    return operand

"""The tables of a .tflite file that matter to memory, as rows of plain values, read column by column.

Rows come in the order of the file. Where a table is damaged, the rows before it come first, then the error.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from functools import cache, cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from modelplan.formats.tflite import tflite_schema as schema
from modelplan.formats.tflite.flatbuffer_columns import DAMAGE, FlatBuffer, TableColumns, in_order
from modelplan.formats.tflite.tflite_tables import vtable
from modelplan.model import IntArray

if TYPE_CHECKING:
    from mmap import mmap

#: The longest table of options that is compared with others by its bytes.
_MOST_COMPARED = 256


class CodeRow(NamedTuple):
    """An operator code: the name of the builtin operator, of the custom one as bytes, and the version."""

    builtin: str
    custom: bytes
    version: int

    @property
    def kind(self) -> str:
        """What the operators are called in a graph."""
        return f"CUSTOM:{self.custom.decode('utf-8', 'replace')}" if self.builtin == "CUSTOM" else self.builtin


class TensorRow(NamedTuple):
    """A tensor and its buffer. `start` and `length` are the place of its data in the flatbuffer.

    `offset` and `size` are that of data behind the flatbuffer. They are 0 where the file has no buffer `buffer`.
    """

    type: int
    shape: tuple[int, ...]
    signature: tuple[int, ...]
    buffer: int
    external_buffer: int
    variable: bool
    sparsity: int
    start: int
    length: int
    offset: int
    size: int


class TensorScales(NamedTuple):
    """How many scales and zero points a tensor has, the first ones or 0, and the axis that they run along."""

    scales: int = 0
    scale: float = 0.0
    zero_points: int = 0
    zero_point: int = 0
    axis: int = 0


#: Of a tensor without any.
UNQUANTISED = TensorScales()


class OperatorRow(NamedTuple):
    """An operator. `options` are the two pairs of type and position of a table of options.

    `custom_start` and `custom_length` are the place of the options of a custom operator.
    """

    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    intermediates: tuple[int, ...]
    options: tuple[int, int, int, int]
    custom_start: int
    custom_length: int


class TfliteFile:
    """Reads a .tflite file whose first bytes were checked.

    Its methods raise `flatbuffer_columns.DAMAGE` where a part of the file is damaged.
    """

    def __init__(self, data: bytes | mmap) -> None:
        self.flatbuffer = FlatBuffer(data)
        self.root = self.flatbuffer.root()
        self.options = OptionTables(data)

    @cached_property
    def buffers(self) -> int:
        """How many buffers the file lists."""
        return int(self.root.vectors(schema.MODEL_BUFFERS)[1][0])

    def content(self, start: int, length: int) -> bytes:
        """The bytes at a place in the file.

        Raises:
            ValueError: they end outside the file.
        """
        if start + length > self.flatbuffer.size:
            raise ValueError(f"found a vector of {length} bytes, which ends outside the file")
        return bytes(self.flatbuffer.data[start : start + length])

    def count(self, table: TableColumns, field: int) -> int:
        """How many elements the vector of one table has.

        Raises:
            ValueError: more elements of four bytes than fit in the file.
        """
        length = int(table.vectors(field)[1][0])
        if 4 * length > self.flatbuffer.size:
            most = self.flatbuffer.size // 4
            raise ValueError(f"found a vector of {length} elements, expected at most {most} in this file")
        return length

    def slots(self, table: TableColumns, field: int) -> IntArray:
        """The positions of the elements in the vector of one table; each holds the offset of a table."""
        start = int(table.vectors(field)[0][0])
        return start + 4 * np.arange(self.count(table, field))

    def columns(self, slots: IntArray) -> TableColumns:
        """The tables to which the offsets at `slots` lead."""
        return TableColumns(self.flatbuffer, self.flatbuffer.follow(slots))

    def codes(self) -> Iterator[CodeRow]:
        """The operator codes."""

        def read(slots: IntArray) -> list[CodeRow]:
            codes = self.columns(slots)
            builtin = codes.scalars(schema.CODE_BUILTIN, "<i4")
            deprecated = codes.scalars(schema.CODE_DEPRECATED_BUILTIN, "<i1")
            names = map(schema.builtin_name, builtin, deprecated)
            versions = codes.scalars(schema.CODE_VERSION, "<i4", 1)
            return list(map(CodeRow, names, codes.texts(schema.CODE_CUSTOM), versions))

        return in_order(self.slots(self.root, schema.MODEL_OPERATOR_CODES), read)

    def subgraph(self, number: int) -> TableColumns:
        """The table of subgraph `number`, one that there is."""
        return self.columns(self._subgraphs[number : number + 1])

    def subgraph_places(self) -> list[int]:
        """Where the table of each subgraph begins; a file may list one table several times."""
        places: list[int] = self.flatbuffer.follow(self._subgraphs).tolist()
        return places

    @cached_property
    def _subgraphs(self) -> IntArray:
        return self.slots(self.root, schema.MODEL_SUBGRAPHS)

    def names(self, tensors: IntArray) -> Iterator[bytes]:
        return in_order(tensors, lambda slots: self.columns(slots).texts(schema.TENSOR_NAME))

    def tensors(self, tensors: IntArray) -> Iterator[TensorRow]:
        return in_order(tensors, self._tensors)

    def _tensors(self, slots: IntArray) -> list[TensorRow]:
        tensors = self.columns(slots)
        buffer = tensors.scalars(schema.TENSOR_BUFFER, "<u4")
        buffers = self._buffers(np.array(buffer, np.int64))
        starts, lengths = buffers.vectors(schema.BUFFER_DATA)
        return list(
            map(
                TensorRow,
                tensors.scalars(schema.TENSOR_TYPE, "<i1"),
                tensors.integers(schema.TENSOR_SHAPE),
                tensors.integers(schema.TENSOR_SIGNATURE),
                buffer,
                tensors.scalars(schema.TENSOR_EXTERNAL_BUFFER, "<u4"),
                map(bool, tensors.scalars(schema.TENSOR_VARIABLE, "<u1")),
                tensors.references(schema.TENSOR_SPARSITY).tolist(),
                starts.tolist(),
                lengths.tolist(),
                buffers.scalars(schema.BUFFER_OFFSET, "<u8"),
                buffers.scalars(schema.BUFFER_SIZE, "<u8"),
            )
        )

    def _buffers(self, numbers: IntArray) -> TableColumns:
        """The buffers with these numbers; no table for numbers beyond the last."""
        starts, counts = self.root.vectors(schema.MODEL_BUFFERS)
        at = np.zeros_like(numbers)
        there = np.flatnonzero(numbers < counts[0])
        at[there] = self.flatbuffer.follow(starts[0] + 4 * numbers[there])
        return TableColumns(self.flatbuffer, at)

    def scales(self, tensors: IntArray) -> Iterator[TensorScales]:
        def read(slots: IntArray) -> list[TensorScales]:
            table = self.columns(slots).tables(schema.TENSOR_QUANTISATION)
            scales, scale_counts = table.vectors(schema.SCALE)
            zeros, zero_counts = table.vectors(schema.ZERO_POINT)
            return list(
                map(
                    TensorScales,
                    scale_counts.tolist(),
                    self._firsts(scales, scale_counts, "<f4"),
                    zero_counts.tolist(),
                    self._firsts(zeros, zero_counts, "<i8"),
                    table.scalars(schema.QUANTISED_AXIS, "<i4"),
                )
            )

        return in_order(tensors, read)

    def _firsts(self, starts: IntArray, counts: IntArray, kind: str) -> list[Any]:
        """The first element of each vector, 0 of an empty one."""
        firsts = np.zeros(len(starts), kind)
        there = np.flatnonzero(counts)
        firsts[there] = self.flatbuffer.numbers(starts[there], kind)
        values: list[Any] = firsts.tolist()
        return values

    def code_numbers(self, operators: IntArray) -> Iterator[int]:
        return in_order(operators, lambda slots: self.columns(slots).scalars(schema.OPERATOR_CODE, "<u4"))

    def operators(self, operators: IntArray) -> Iterator[OperatorRow]:
        return in_order(operators, self._operators)

    def _operators(self, slots: IntArray) -> list[OperatorRow]:
        operators = self.columns(slots)
        starts, lengths = operators.vectors(schema.OPERATOR_CUSTOM_OPTIONS)
        options = zip(
            operators.scalars(schema.OPERATOR_OPTIONS_TYPE, "<u1"),
            operators.references(schema.OPERATOR_OPTIONS).tolist(),
            operators.scalars(schema.OPERATOR_OPTIONS_2_TYPE, "<u1"),
            operators.references(schema.OPERATOR_OPTIONS_2).tolist(),
            strict=True,
        )
        return list(
            map(
                OperatorRow,
                operators.integers(schema.OPERATOR_INPUTS),
                operators.integers(schema.OPERATOR_OUTPUTS),
                operators.integers(schema.OPERATOR_INTERMEDIATES),
                options,
                starts.tolist(),
                lengths.tolist(),
            )
        )


class QuantisationScales:
    """The bytes of the scales and zero points of the tensors at some slots, empty where there are none."""

    def __init__(self, file: TfliteFile, tensors: IntArray) -> None:
        self.file = file
        self.tensors = tensors
        self.known: dict[int, tuple[bytes, bytes]] | None = None

    def of(self, tensor: int) -> tuple[bytes, bytes]:
        """The bytes of one tensor's scales. The first call reads all, in damaged files each call its own."""
        if self.known is None:
            try:
                self.known = dict(enumerate(self._read(self.tensors)))
            except DAMAGE:
                self.known = {}
        if tensor not in self.known:
            self.known[tensor] = self._read(self.tensors[tensor : tensor + 1])[0]
        return self.known[tensor]

    def _read(self, slots: IntArray) -> list[tuple[bytes, bytes]]:
        table = self.file.columns(slots).tables(schema.TENSOR_QUANTISATION)
        return list(zip(table.blobs(schema.SCALE, 4), table.blobs(schema.ZERO_POINT, 8), strict=True))


class OptionTables:
    """Makes one object for all tables of options of a file that hold the same numbers."""

    def __init__(self, data: bytes | mmap) -> None:
        self.data = data
        self._tables: dict[tuple[str, int, bytes], Any] = {}
        self._lengths: dict[int, int] = {}

    def of(self, row: OperatorRow) -> Any:
        """The table of options of an operator as the schema's class for it, None where the schema knows none."""
        first, at, second, second_at = row.options
        for field, number, position in (("BuiltinOptions", first, at), ("BuiltinOptions2", second, second_at)):
            name = schema.enumeration_names(field).get(number)
            if name and name != "NONE" and position:
                return self._table(name, position)
        return None

    def _table(self, name: str, position: int) -> Any:
        """The table at a position; where all fields are numbers, the first one with the same bytes."""
        kind = schema.table_class(name)
        key = name, position, b""
        if width := widest_number(kind):
            fields = position - struct.unpack_from("<i", self.data, position)[0]
            if fields not in self._lengths:
                self._lengths[fields] = max((place + width for place in vtable(self.data, position)), default=4)
            if self._lengths[fields] <= _MOST_COMPARED:
                key = name, fields, self.data[position + 4 : position + self._lengths[fields]]
        if key not in self._tables:
            self._tables[key] = table = kind()
            table.Init(self.data, position)
        return self._tables[key]


@cache
def widest_number(kind: type) -> int:
    """The bytes of the widest field of a table of options, 0 where some fields are texts, vectors or tables."""
    from flatbuffers import number_types

    named = {name for field in plain_accessors(kind) for name in getattr(kind, field).__code__.co_names}
    if named & {"String", "Vector", "VectorLen", "Indirect", "Union"}:
        return 0
    flags = {name for name in named if name.endswith("Flags")} - {"UOffsetTFlags"}
    return max((int(getattr(number_types, name).bytewidth) for name in flags), default=1)


@cache
def plain_accessors(kind: type) -> tuple[str, ...]:
    """The names of a table's accessors that take no argument."""
    named = [name for name in vars(kind) if name[0].isupper() and not name.startswith(("GetRootAs", "Init"))]
    accessors = [(name, getattr(kind, name)) for name in named]
    return tuple(name for name, accessor in accessors if accessor.__code__.co_argcount == 1)

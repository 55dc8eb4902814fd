"""A .tflite file as TFLM's allocator reads it: every subgraph, every tensor with the bytes that TFLM gives it."""

import struct
from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property, lru_cache
from math import prod
from pathlib import Path
from typing import Any

from modelplan.formats.tflite import tflite_schema as schema
from modelplan.formats.tflite.flatbuffer_columns import DAMAGE, TableColumns
from modelplan.formats.tflite.lut_metadata import LutMetadata, LutTensor, lut_metadata
from modelplan.formats.tflite.tflite_file import (
    UNQUANTISED,
    CodeRow,
    OperatorRow,
    TensorRow,
    TensorScales,
    TfliteFile,
    plain_accessors,
    widest_number,
)
from modelplan.formats.tflite.tflite_schema import BODIES, DTYPES
from modelplan.formats.whole_files import read_model
from modelplan.primitives.errors import ModelError
from modelplan.primitives.lazy_records import dataclass
from modelplan.runtimes.tflm.kernels.calls import ELEMENT_BYTES

#: The operators whose subgraphs TFLM plans.
_CALLING = {"IF", "WHILE", "CALL_ONCE"}

#: TFLM counts bytes and offsets in 32 bits with a sign.
_LARGEST = 2**31 - 1

#: How many files are remembered: a command asks several questions about one file, or about two versions of it.
_REMEMBERED = 4

#: The custom operator that unpacks weights.
DECODE = "TFLM_DECODE"


@dataclass(frozen=True, slots=True)
class FileTensor:
    """One tensor: its bytes in TFLM's memory, and whether the file carries its values (`constant`).

    `quantization` counts no scales where there are no zero points, as TFLM does.
    `content` is where the values of a constant lie in the file: first byte and length. `assumed`: the tensor is to
    have scales and zero points that nobody knows yet; conditions on them pass. `compressed`: its values are indices
    into a table, which the kernels that read it unpack. `misread` says why TFLM cannot hold it, or takes it for
    something else than the file states.
    """

    name: str
    type: int
    shape: tuple[int, ...]
    nbytes: int
    constant: bool
    variable: bool
    quantization: TensorScales = UNQUANTISED
    content: tuple[int, int] = (0, 0)
    assumed: bool = False
    compressed: bool = False
    misread: str = ""

    @property
    def elements(self) -> int:
        """Number of elements; a scalar has one."""
        return prod(self.shape)


@dataclass(frozen=True, slots=True)
class FileOp:
    """One operator; `calls` are the subgraphs it runs, in TFLM's order.

    `options` is the schema's own table, for a custom operator the mapping in its flexbuffer, or None.
    """

    kind: str
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    calls: tuple[int, ...] = ()
    options: Any = None
    custom: bool = False
    intermediates: tuple[int, ...] = ()

    @property
    def reads(self) -> tuple[int, ...]:
        """Distinct tensors read, absent ones left out."""
        return tuple(dict.fromkeys(t for t in self.inputs if t >= 0))

    @property
    def writes(self) -> tuple[int, ...]:
        """Tensors written, absent ones left out."""
        return tuple(t for t in self.outputs if t >= 0)


@dataclass(frozen=True, slots=True)
class FileSubgraph:
    """Tensors and operators of one subgraph, in file order; indices are local to it."""

    tensors: tuple[FileTensor, ...]
    ops: tuple[FileOp, ...]
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]


@dataclass(frozen=True)
class FileModel:
    """A whole .tflite file. Tensors are numbered over all subgraphs, as the offline plan numbers them.

    `luts` are the metadata of compressed weights, which builds with USE_TFLM_COMPRESSION read; None without them.
    `plan` takes the place of the offline plan in `data`; empty: no plan, None: what `data` carries.
    """

    name: str
    data: bytes
    subgraphs: tuple[FileSubgraph, ...]
    luts: LutMetadata | None = None
    plan: tuple[int, ...] | None = None

    @property
    def compressed(self) -> bool:
        """Whether kernels unpack weights as metadata say."""
        return self.luts is not None

    @cached_property
    def decodes(self) -> bool:
        """Whether operators unpack weights at run time."""
        return any(op.kind == DECODE for subgraph in self.subgraphs for op in subgraph.ops)

    @cached_property
    def firsts(self) -> tuple[int, ...]:
        """For each subgraph the number of its first tensor."""
        firsts, count = [], 0
        for subgraph in self.subgraphs:
            firsts.append(count)
            count += len(subgraph.tensors)
        return tuple(firsts)

    @cached_property
    def handles(self) -> frozenset[int]:
        """Handles of resource variables: kernels point them at data of their own before memory is planned."""
        handles = (
            base + t
            for base, subgraph in zip(self.firsts, self.subgraphs, strict=True)
            for op in subgraph.ops
            if op.kind == "VAR_HANDLE"
            for t in op.writes
        )
        return frozenset(handles)

    @cached_property
    def tensors(self) -> tuple[FileTensor, ...]:
        """All tensors, subgraph by subgraph."""
        return tuple(t for subgraph in self.subgraphs for t in subgraph.tensors)

    @cached_property
    def misread(self) -> tuple[tuple[int, FileTensor], ...]:
        """The tensors that TFLM cannot hold or takes for something else, with their numbers over all subgraphs."""
        return tuple((number, tensor) for number, tensor in enumerate(self.tensors) if tensor.misread)


@dataclass(frozen=True, slots=True, eq=False)
class SameFile:
    """A model as a key of what follows from its tables alone: equal where tables and bytes are the same objects.

    The plan does not count: models that differ in `FileModel.plan` alone are the same file.
    """

    model: FileModel

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, SameFile):
            return NotImplemented
        return self.model.subgraphs is other.model.subgraphs and self.model.data is other.model.data

    def __hash__(self) -> int:
        return hash((id(self.model.subgraphs), id(self.model.data)))


@dataclass(frozen=True, slots=True, eq=False)
class SameBytes:
    """The content of a file as a key of what was read of it: equal where it is the same object."""

    data: bytes

    def __eq__(self, other: object) -> bool:
        return self.data is other.data if isinstance(other, SameBytes) else NotImplemented

    def __hash__(self) -> int:
        return id(self.data)


def load_tflite(path: str | Path) -> FileModel:
    """The file `path`.

    Raises:
        ModelError: it cannot be read, or see `read_tflite`.
    """
    return read_tflite(read_model(path), str(path))


def read_tflite(data: bytes, name: str) -> FileModel:
    """The file `name` with content `data`; the files that were asked for last are remembered.

    Raises:
        ModelError: not a TFLite flatbuffer, or one whose tensors and operators contradict each other.
    """
    try:
        model = _read(bytes(data))
    except ModelError as error:
        raise ModelError(f"{name}: {error}") from None
    return _named(SameFile(model), name)


@lru_cache(maxsize=_REMEMBERED)
def _named(file: SameFile, name: str) -> FileModel:
    """The model under a name: the same object each time, since it remembers what follows from its tables."""
    return replace(file.model, name=name)


@lru_cache(maxsize=_REMEMBERED)
def _read(data: bytes) -> FileModel:
    """The file without its name, which the same content may have several of."""
    luts = lut_metadata(data)  # refuses what is no flatbuffer
    try:
        subgraphs = _Reader(data).subgraphs()
    except DAMAGE as error:
        raise ModelError(f"not a TFLite model that can be read: {error}") from None
    lists = luts.subgraphs if luts else ()
    marked = (_marked(subgraph, lists[i]) if i < len(lists) else subgraph for i, subgraph in enumerate(subgraphs))
    return FileModel("", data, tuple(marked), luts)


def _marked(subgraph: FileSubgraph, luts: Sequence[LutTensor]) -> FileSubgraph:
    """The subgraph with the tensors marked that metadata name."""
    named = {lut.tensor for lut in luts}
    return replace(subgraph, tensors=tuple(replace(t, compressed=i in named) for i, t in enumerate(subgraph.tensors)))


class _Reader:
    """Makes the records; equal tables of options and equal custom options become one object."""

    def __init__(self, data: bytes) -> None:
        self.file = TfliteFile(data)
        self.checked: dict[object, Any] = {}  # by table of options the first one with the same values
        self.alike: dict[tuple[object, ...], Any] = {}  # the first table of options by its values
        self.custom: dict[bytes, dict[str, Any] | None] = {}

    def subgraphs(self) -> tuple[FileSubgraph, ...]:
        kinds = [_kind(row) for row in self.file.codes()]
        known, places = dict[int, FileSubgraph](), self.file.subgraph_places()
        for number, place in enumerate(places):
            if place not in known:
                known[place] = self._subgraph(self.file.subgraph(number), kinds, f"subgraph {number}")
        return tuple(known[place] for place in places)

    def _subgraph(self, table: TableColumns, kinds: list[tuple[str, bool]], where: str) -> FileSubgraph:
        file = self.file
        slots = file.slots(table, schema.SUBGRAPH_TENSORS)
        rows = zip(file.names(slots), file.tensors(slots), file.scales(slots), strict=True)
        tensors = tuple(self._tensor(*row, f"{where} tensor {i}") for i, row in enumerate(rows))
        slots = file.slots(table, schema.SUBGRAPH_OPERATORS)
        operators = zip(file.code_numbers(slots), file.operators(slots), strict=True)
        ops = tuple(self._op(kinds[number], row) for number, row in operators)
        (inputs,), (outputs,) = table.integers(schema.SUBGRAPH_INPUTS), table.integers(schema.SUBGRAPH_OUTPUTS)
        _check_indices(len(tensors), 0, (("input", inputs), ("output", outputs)), where)
        if not {t for op in ops for t in (*op.inputs, *op.outputs)} <= set(range(-1, len(tensors))):
            for number, op in enumerate(ops):
                named = (("input", op.inputs), ("output", op.outputs))
                _check_indices(len(tensors), -1, named, f"{where} op {number} {op.kind}")
        return FileSubgraph(tensors, ops, inputs, outputs)

    def _tensor(self, content: bytes, row: TensorRow, scales: TensorScales, where: str) -> FileTensor:
        name, shape = content.decode(errors="replace"), row.shape
        dtype = DTYPES.get(row.type)
        if dtype is None:
            raise ModelError(f"{where} {name!r} has type {row.type}, expected one of 0 to {max(DTYPES)}")
        if min((*shape, 0)) < 0:
            raise ModelError(f"{where} {name!r} has shape {list(shape)}, expected extents of at least 0")
        nbytes = prod(shape) * ELEMENT_BYTES.get(dtype, 0)
        if nbytes > _LARGEST:
            raise ModelError(f"{where} {name!r} has shape {list(shape)}, expected at most {_LARGEST} bytes")
        if row.buffer >= self.file.buffers:
            raise ModelError(f"{where} {name!r} uses buffer {row.buffer} of {self.file.buffers}")
        constant = row.length > 0 or row.offset > 1
        place = (row.start, row.length) if row.length else (0, 0)
        known = scales if scales.scales and scales.zero_points else UNQUANTISED
        return FileTensor(
            name, row.type, shape, nbytes, constant, row.variable, known, place, misread=_misread(row, dtype)
        )

    def _op(self, code: tuple[str, bool], row: OperatorRow) -> FileOp:
        kind, custom = code
        options = self._custom_options(row) if custom else self._options(self.file.options.of(row))
        return FileOp(kind, row.inputs, row.outputs, _calls(kind, options), options, custom, row.intermediates)

    def _options(self, options: object) -> Any:
        """The table of options, or the first one of the file with the same values where numbers are all that it holds.

        Each field is read once: a damaged one is refused here and not where it is used.
        """
        if options is not None and options not in self.checked:
            kind: Any = type(options)
            values = tuple([getattr(options, field)() for field in plain_accessors(kind)])
            alike = self.alike.setdefault((kind, *values), options) if widest_number(kind) else options
            self.checked[options] = alike
        return self.checked.get(options)

    def _custom_options(self, row: OperatorRow) -> dict[str, Any] | None:
        """The mapping in the operator's flexbuffer, or None where there is no mapping."""
        try:
            content = self.file.content(row.custom_start, row.custom_length)
        except ValueError:
            return None
        if content not in self.custom:
            self.custom[content] = _mapping(content)
        return self.custom[content]


def _misread(row: TensorRow, dtype: str) -> str:
    """Why TFLM does not hold what the file states: it looks in the flatbuffer alone, for one value after the other."""
    if dtype not in ELEMENT_BYTES:
        return f"of type {dtype.upper()}, which TFLM cannot hold"
    if row.offset > 1:
        return "its values lie behind the flatbuffer, where TFLM does not look: it takes the tensor for an activation"
    if row.external_buffer:
        return "its values lie in another file, which TFLM does not open: it takes the tensor for an activation"
    if row.sparsity:
        return "its values are stored without their zeros, and TFLM reads them as if none were left out"
    return ""


def _kind(row: CodeRow) -> tuple[str, bool]:
    """The operator's name, and whether it is a custom one."""
    return ((row.custom or b"CUSTOM").decode(), True) if row.builtin == "CUSTOM" else (row.builtin, False)


def _check_indices(count: int, least: int, named: Sequence[tuple[str, tuple[int, ...]]], where: str) -> None:
    for what, indices in named:
        for t in indices:
            if not least <= t < count:
                raise ModelError(f"{where}: {what} is tensor {t}, expected {least} to {count - 1}")


def _mapping(content: bytes) -> dict[str, Any] | None:
    """The mapping in a flexbuffer; None where there is none or where the bytes are no flexbuffer."""
    from flatbuffers import flexbuffers

    if not content:
        return None
    try:
        options = flexbuffers.Loads(content)
    except (ArithmeticError, AttributeError, LookupError, RuntimeError, TypeError, ValueError, struct.error):
        return None  # custom operators may carry bytes in a form of their own (Ethos-U does)
    return options if isinstance(options, dict) else None


def _calls(kind: str, options: object) -> tuple[int, ...]:
    """The subgraphs that TFLM plans at this operator."""
    if options is None or kind not in _CALLING:
        return ()
    return tuple(getattr(options, field)() for field in BODIES[kind])

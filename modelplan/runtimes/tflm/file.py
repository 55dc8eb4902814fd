"""A .tflite file as TFLM's allocator reads it: every subgraph, every tensor with the bytes that TFLM gives it."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache, cached_property, lru_cache
from math import prod
from pathlib import Path
from typing import Any

from modelplan.errors import ModelError
from modelplan.loaders import tflite_schema as schema
from modelplan.loaders.files import read_bytes
from modelplan.loaders.tflite_schema import BODIES, DTYPES, builtin_name, options_of
from modelplan.loaders.tflite_tables import get_metadata
from modelplan.runtimes.tflm.kernels.calls import ELEMENT_BYTES

#: The operators whose subgraphs TFLM plans.
_CALLING = {"IF", "WHILE", "CALL_ONCE"}

#: TFLM counts bytes and offsets in 32 bits with a sign.
_LARGEST = 2**31 - 1

#: How many files are remembered: a command asks several questions about one file, or about two versions of it.
_REMEMBERED = 4

#: Metadata and custom operators of models whose weights TFLM unpacks at run time.
_COMPRESSION = "COMPRESSION_METADATA"
_DECODE = "TFLM_DECODE"


@dataclass(frozen=True, slots=True)
class FileTensor:
    """One tensor: its bytes in TFLM's memory, and whether the file carries its values (`constant`).

    `scales` counts them, 0 without zero points; `scale` and `zero_point` are the first ones, `axis` is theirs.
    `content` is where the values of a constant lie in the file: first byte and length. `assumed`: the tensor is to
    have scales and zero points that nobody knows yet; conditions on them pass.
    """

    name: str
    type: int
    shape: tuple[int, ...]
    nbytes: int
    constant: bool
    variable: bool
    scales: int
    scale: float = 0.0
    zero_point: int = 0
    zero_points: int = 0
    axis: int = 0
    content: tuple[int, int] = (0, 0)
    assumed: bool = False

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

    `compressed`: weights are compressed as the metadata say, which builds with USE_TFLM_COMPRESSION read.
    `plan` takes the place of the offline plan in `data`; empty: no plan, None: what `data` carries.
    """

    name: str
    data: bytes
    subgraphs: tuple[FileSubgraph, ...]
    compressed: bool = False
    plan: tuple[int, ...] | None = None

    @cached_property
    def decodes(self) -> bool:
        """Whether operators unpack weights into memory that no plan names."""
        return any(op.kind == _DECODE for subgraph in self.subgraphs for op in subgraph.ops)

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
        found = (
            base + t
            for base, subgraph in zip(self.firsts, self.subgraphs, strict=True)
            for op in subgraph.ops
            if op.kind == "VAR_HANDLE"
            for t in op.writes
        )
        return frozenset(found)

    @cached_property
    def tensors(self) -> tuple[FileTensor, ...]:
        """All tensors, subgraph by subgraph."""
        return tuple(t for subgraph in self.subgraphs for t in subgraph.tensors)


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
    return read_tflite(read_bytes(path), str(path))


def read_tflite(data: bytes, name: str) -> FileModel:
    """The file `name` with content `data`; the files that were asked for last are remembered.

    Raises:
        ModelError: not a TFLite flatbuffer, or a tensor of a type that TFLM does not have.
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
    import tflite

    compression = get_metadata(data, _COMPRESSION)  # refuses what is no flatbuffer
    try:
        model = tflite.Model.GetRootAs(data, 0)
        kinds = [_kind(model.OperatorCodes(i)) for i in _each(model.OperatorCodesLength(), data)]
        subgraphs = tuple(
            _subgraph(data, model, model.Subgraphs(i), kinds, f"subgraph {i}")
            for i in _each(model.SubgraphsLength(), data)
        )
    except (struct.error, IndexError, AttributeError, TypeError, ValueError, UnicodeDecodeError) as error:
        raise ModelError(f"not a TFLite model that can be read: {error}") from None
    return FileModel("", data, subgraphs, compression is not None)


def _each(count: int, data: bytes) -> range:
    """The indices of a vector of four-byte elements, which cannot be longer than its file."""
    if 4 * count > len(data):
        raise ValueError(f"found a vector of {count} elements in a file of {len(data)} bytes")
    return range(count)


def _integers(data: bytes, table: Any, number: int) -> tuple[int, ...]:
    """The elements of the field `number` of a table, a vector of 32-bit integers; none where it is absent."""
    reader = table._tab  # noqa: SLF001 - the generated class reads them one by one
    at = reader.Offset(4 + 2 * number)
    if not at:
        return ()
    count = len(_each(reader.VectorLen(at), data))
    return struct.unpack_from(f"<{count}i", data, reader.Vector(at))


def _kind(code: Any) -> tuple[str, bool]:
    """The operator's name, and whether it is a custom one."""
    name = builtin_name(code)
    return ((code.CustomCode() or b"CUSTOM").decode(), True) if name == "CUSTOM" else (name, False)


def _subgraph(data: bytes, model: Any, subgraph: Any, kinds: list[tuple[str, bool]], where: str) -> FileSubgraph:
    tensors = tuple(
        _tensor(data, model, subgraph.Tensors(i), f"{where} tensor {i}") for i in _each(subgraph.TensorsLength(), data)
    )
    seen: dict[tuple[object, ...], Any] = {}
    ops = tuple(_op(data, subgraph.Operators(i), kinds, seen) for i in _each(subgraph.OperatorsLength(), data))
    inputs = _integers(data, subgraph, schema.SUBGRAPH_INPUTS)
    outputs = _integers(data, subgraph, schema.SUBGRAPH_OUTPUTS)
    _check_indices(len(tensors), 0, (("input", inputs), ("output", outputs)), where)
    for number, op in enumerate(ops):
        named = (("input", op.inputs), ("output", op.outputs))
        _check_indices(len(tensors), -1, named, f"{where} op {number} {op.kind}")
    return FileSubgraph(tensors, ops, inputs, outputs)


def _check_indices(count: int, least: int, named: Sequence[tuple[str, tuple[int, ...]]], where: str) -> None:
    for what, indices in named:
        for t in indices:
            if not least <= t < count:
                raise ModelError(f"{where}: {what} is tensor {t}, expected {least} to {count - 1}")


def _tensor(data: bytes, model: Any, tensor: Any, where: str) -> FileTensor:
    name = (tensor.Name() or b"").decode(errors="replace")
    shape, kind, index = _integers(data, tensor, schema.TENSOR_SHAPE), tensor.Type(), tensor.Buffer()
    width = ELEMENT_BYTES.get(DTYPES.get(kind, ""))
    if width is None:
        raise ModelError(f"{where} {name!r} has type {kind}, which TFLM cannot hold")
    if any(extent < 0 for extent in shape):
        raise ModelError(f"{where} {name!r} has shape {list(shape)}, expected extents of at least 0")
    if prod(shape) * width > _LARGEST:
        raise ModelError(f"{where} {name!r} has shape {list(shape)}, expected at most {_LARGEST} bytes")
    if index >= model.BuffersLength():
        raise ModelError(f"{where} {name!r} uses buffer {index} of {model.BuffersLength()}")
    buffer = model.Buffers(index)
    start, length = _content(buffer)
    quantization = tensor.Quantization()
    scaled = quantization is not None and quantization.ScaleLength() and quantization.ZeroPointLength()
    return FileTensor(
        name,
        kind,
        shape,
        prod(shape) * width,
        length > 0 or buffer.Offset() > 1,
        bool(tensor.IsVariable()),
        *(_scales(quantization) if scaled else (0, 0.0, 0, 0, 0)),
        (start, length),
    )


def _scales(quantization: Any) -> tuple[int, float, int, int, int]:
    """Scales, the first of them, the first zero point, zero points, and the axis that they run along."""
    return (
        quantization.ScaleLength(),
        quantization.Scale(0),
        quantization.ZeroPoint(0),
        quantization.ZeroPointLength(),
        quantization.QuantizedDimension(),
    )


def _content(buffer: Any) -> tuple[int, int]:
    """First byte and length of the data of a buffer in the file."""
    length = buffer.DataLength()
    if not length:
        return (0, 0)
    table = buffer._tab  # noqa: SLF001 - the generated class has no accessor for a place
    return (table.Vector(table.Offset(4)), length)


def _op(data: bytes, op: Any, kinds: list[tuple[str, bool]], seen: dict[tuple[object, ...], Any]) -> FileOp:
    """An operator; `seen` has the tables of options so far by their values."""
    kind, custom = kinds[op.OpcodeIndex()]
    options = _custom_options(op) if custom else _one_of(seen, options_of(op))
    return FileOp(
        kind,
        _integers(data, op, schema.OPERATOR_INPUTS),
        _integers(data, op, schema.OPERATOR_OUTPUTS),
        _calls(kind, options),
        options,
        custom,
        _integers(data, op, schema.OPERATOR_INTERMEDIATES),
    )


def _one_of(seen: dict[tuple[object, ...], Any], options: Any) -> Any:
    """The table of options, or the first one of the file with the same values where numbers are all that it holds.

    Each field is read once: a damaged one is refused here and not where it is used.
    """
    kind: Any = type(options)
    values = tuple([getattr(options, field)() for field in _fields_of(kind)])
    return seen.setdefault((kind, *values), options) if _holds_itself(kind) else options


@cache
def _holds_itself(kind: type) -> bool:
    """Whether a table of options holds numbers only: no texts, vectors or tables."""
    named = (getattr(kind, name) for name in _fields_of(kind))
    outside = {"String", "Vector", "VectorLen", "Indirect", "Union"}
    return kind is not type(None) and not any(outside & set(accessor.__code__.co_names) for accessor in named)


@cache
def _fields_of(kind: type) -> tuple[str, ...]:
    """The names of a table's accessors that take no argument."""
    named = [name for name in vars(kind) if name[0].isupper() and not name.startswith(("GetRootAs", "Init"))]
    accessors = [(name, getattr(kind, name)) for name in named]
    return tuple(name for name, accessor in accessors if accessor.__code__.co_argcount == 1)


def _custom_options(op: Any) -> dict[str, Any] | None:
    """The mapping in the operator's flexbuffer, or None where there is no mapping."""
    from flatbuffers import flexbuffers

    if not op.CustomOptionsLength():
        return None
    try:
        options = flexbuffers.Loads(op.CustomOptionsAsNumpy().tobytes())
    except (ArithmeticError, AttributeError, LookupError, RuntimeError, TypeError, ValueError, struct.error):
        return None  # custom operators may carry bytes in a form of their own (Ethos-U does)
    return options if isinstance(options, dict) else None


def _calls(kind: str, options: Any) -> tuple[int, ...]:
    """The subgraphs that TFLM plans at this operator."""
    if options is None or kind not in _CALLING:
        return ()
    return tuple(getattr(options, field)() for field in BODIES[kind])

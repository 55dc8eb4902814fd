"""A .tflite file as the proof sees it: operators with all options, tensors with their whole coding, constants."""

import hashlib
import struct
from collections.abc import Callable, Hashable, Iterator, Sequence
from typing import Any

import numpy as np

from modelplan.checking.verifier.places import Use
from modelplan.formats.tflite import tflite_schema as schema
from modelplan.formats.tflite.tflite_schema import DTYPES, PADDINGS
from modelplan.primitives.errors import ModelError
from modelplan.primitives.lazy_records import dataclass
from modelplan.runtimes.tflm.file import FileModel, FileOp, FileTensor
from modelplan.runtimes.tflm.metadata import MADE_FOR
from modelplan.runtimes.tflm.planner import METADATA
from modelplan.runtimes.tflm.stated_network import StatedNetwork

#: The longest axis and the largest tensor that are followed.
_MOST_EXTENT, _MOST_BYTES = 1 << 20, 1 << 28
#: Element types whose constants are numbers that steer operators: offsets, sizes, counters, conditions.
NUMBERS: dict[str, np.dtype[Any]] = {
    "int32": np.dtype(np.int32), "int64": np.dtype(np.int64), "bool": np.dtype(np.bool_)
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Coding:
    """What the bytes of a tensor mean: element type and quantisation."""

    dtype: str
    scales: tuple[float, ...] = ()
    zero_points: tuple[int, ...] = ()
    axis: int = 0
    details: int = 0

    @property
    def zero(self) -> int:
        """The code that stands for 0 in all channels; 0 where nothing is quantised."""
        return self.zero_points[0] if self.zero_points else 0


@dataclass(frozen=True, slots=True, eq=False)
class Cell:
    """A tensor, equal to itself alone; `number` counts over all subgraphs, `data` is the content of a constant."""

    name: str
    shape: tuple[int, ...]
    coding: Coding
    number: int
    variable: bool
    data: bytes | None

    @property
    def label(self) -> str:
        """The tensor in messages."""
        return f"tensor {self.number} {self.name!r}"


@dataclass(frozen=True, slots=True)
class Operation:
    """An operator with its options by name; `place` is the byte of the file at which its table starts."""

    subgraph: int
    number: int
    kind: str
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    options: tuple[tuple[str, Hashable], ...]
    calls: tuple[int, ...]
    place: int
    custom: bool

    def option(self, name: str, default: int = 0) -> int:
        """An option that is a whole number."""
        value = dict(self.options).get(name, default)
        return int(value) if isinstance(value, (int, np.integer)) else default

    @property
    def label(self) -> str:
        """The operator in messages."""
        where = f" of subgraph {self.subgraph}" if self.subgraph else ""
        place = f" (byte {self.place} of the file)" if self.place >= 0 else ""
        return f"op {self.number} {self.kind}{where}{place}"


@dataclass(frozen=True, slots=True)
class SubgraphPart:
    """A subgraph; operators name its tensors by their place in `cells`."""

    cells: tuple[Cell, ...]
    ops: tuple[Operation, ...]
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]


@dataclass(frozen=True)
class Source:
    """A whole file."""

    name: str
    parts: tuple[SubgraphPart, ...]
    model: FileModel


def use_of_operation(
    op: Operation,
    operands: Sequence[Cell | None],
    outputs: Sequence[Cell],
    output: int = 0,
    numbers: Callable[[int], Sequence[int] | None] | None = None,
) -> Use:
    """An operator as the table of places is asked for it; `numbers` where those of constants are not all."""
    options = dict(op.options)

    def option(name: str) -> object:
        value = options.get("".join(part.capitalize() for part in name.split("_")))
        return PADDINGS.get(op.option("Padding")) if name == "padding" else value

    def constant(operand: int) -> Sequence[int] | None:
        return integers_of(operands[operand]) if operand < len(operands) else None

    shapes, first = tuple(x.shape if x else None for x in operands), operands[0] if operands else None
    results = tuple(y.shape for y in outputs)
    return Use(op.kind, shapes, results, option, numbers or constant, output, first.coding.dtype if first else "")


def integers_of(cell: Cell | None) -> list[int] | None:
    """The whole numbers of a constant, None where it holds others or is none."""
    if cell is None or cell.data is None or cell.coding.dtype not in ("int32", "int64"):
        return None
    return [int(n) for n in np.frombuffer(cell.data, NUMBERS[cell.coding.dtype])]


def read_source(model: FileModel) -> Source:
    """The file with everything that decides what it computes.

    Raises:
        ModelError: it has no subgraph or operator, a tensor is too large, or data lie where they cannot be compared.
    """
    if isinstance(model, StatedNetwork):
        return Source(model.name, (_network_part(model),), model)
    if model.compressed:
        raise ModelError(f"{model.name}: its weights are compressed, so they cannot be compared")
    if not model.subgraphs or not model.subgraphs[0].ops:
        raise ModelError(f"{model.name}: holds no operator")
    try:
        return Source(model.name, tuple(_parts(model)), model)
    except (ValueError, IndexError, struct.error) as error:
        raise ModelError(f"{model.name}: not a TFLite model that can be read: {error}") from None


def _parts(model: FileModel) -> Iterator[SubgraphPart]:
    tables = schema.tables_in(schema.model_table(model.data), schema.MODEL_SUBGRAPHS, "SubGraph")
    for number, (subgraph, base, raw) in enumerate(zip(model.subgraphs, model.firsts, tables, strict=True)):
        tensors = schema.tables_in(raw, schema.SUBGRAPH_TENSORS, "Tensor")
        operators = schema.tables_in(raw, schema.SUBGRAPH_OPERATORS, "Operator")
        both = zip(subgraph.tensors, tensors, strict=True), zip(subgraph.ops, operators, strict=True)
        cells = tuple(_cell(model, t, base + i, table) for i, (t, table) in enumerate(both[0]))
        ops = tuple(_operation(number, i, op, table) for i, (op, table) in enumerate(both[1]))
        yield SubgraphPart(cells, ops, subgraph.inputs, subgraph.outputs)


def _network_part(network: StatedNetwork) -> SubgraphPart:
    """What a network that no .tflite file holds states of itself."""
    main, cells = network.subgraphs[0], []
    for number, tensor in enumerate(main.tensors):
        start, length = tensor.content
        coded = network.scales.get(number)
        dtype = DTYPES[tensor.type]
        coding = Coding(dtype, coded.scales, (coded.zero,), coded.axis) if coded else Coding(dtype)
        data = network.data[start : start + length] if tensor.constant else None
        cells.append(Cell(tensor.name, tensor.shape, coding, number, variable=False, data=data))
    ops = (
        Operation(0, i, op.kind, op.inputs, op.outputs, tuple(op.options.values.items()), (), -1, custom=False)
        for i, op in enumerate(main.ops)
    )
    return SubgraphPart(tuple(cells), tuple(ops), main.inputs, main.outputs)


def digest_of(data: bytes) -> str:
    """A constant's content in 32 bytes that no two contents share."""
    return hashlib.sha256(data).hexdigest()


def surroundings_of(source: Source) -> dict[str, Hashable]:
    """What a file says beside its operators, by where it says it: description, signatures, metadata but for the plan.

    Tensors of signatures are given by their names.
    """
    model = schema.model_table(source.model.data)
    surroundings: dict[str, Hashable] = {"a description": model.Description(), "a version": model.Version()}
    for i, signature in enumerate(schema.tables_in(model, schema.MODEL_SIGNATURES, "SignatureDef")):
        part = source.parts[signature.SubgraphIndex()]
        named = tuple(
            tuple(
                (row.Name(), part.cells[row.TensorIndex()].name)
                for row in schema.tables_in(signature, side, "TensorMap")
            )
            for side in (schema.SIGNATURE_INPUTS, schema.SIGNATURE_OUTPUTS)
        )
        surroundings[f"signature {i} {_text(signature.SignatureKey())!r}"] = (signature.SubgraphIndex(), *named)
    buffers = schema.tables_in(model, schema.MODEL_BUFFERS, "Buffer")
    for entry in schema.tables_in(model, schema.MODEL_METADATA, "Metadata"):
        if entry.Name() not in (METADATA.encode(), MADE_FOR.encode()):  # what the plan was made for goes with it
            buffer = buffers[entry.Buffer()]
            payload = buffer.DataAsNumpy().tobytes() if buffer.DataLength() else b""
            surroundings[f"metadata {_text(entry.Name())!r}"] = payload
    return surroundings


def _text(name: bytes | None) -> str:
    return (name or b"").decode(errors="replace")


def _cell(model: FileModel, tensor: FileTensor, number: int, raw: Any) -> Cell:
    start, length = tensor.content
    if max(tensor.shape, default=0) > _MOST_EXTENT or tensor.nbytes > _MOST_BYTES:
        raise ModelError(
            f"{model.name}: tensor {number} {tensor.name!r} of {list(tensor.shape)} is too large to follow"
        )
    if tensor.constant and not length:
        raise ModelError(f"{model.name}: tensor {number} {tensor.name!r} keeps its data outside of the flatbuffer")
    data = model.data[start : start + length] if tensor.constant else None
    return Cell(tensor.name, tensor.shape, _coding(tensor, raw), number, tensor.variable, data)


def _coding(tensor: FileTensor, raw: Any) -> Coding:
    dtype = DTYPES[tensor.type]
    tables = schema.tables_in(raw, schema.TENSOR_QUANTISATION, "QuantizationParameters")
    if not tables or not tables[0].ScaleLength():
        return Coding(dtype)
    (table,) = tables
    scales = tuple(float(v) for v in table.ScaleAsNumpy())
    zeros = tuple(int(v) for v in table.ZeroPointAsNumpy()) if table.ZeroPointLength() else ()
    axis = table.QuantizedDimension() if len(scales) > 1 else 0
    return Coding(dtype, scales, zeros, axis, table.DetailsType())


def _operation(subgraph: int, number: int, op: FileOp, raw: Any) -> Operation:
    options = (("CustomOptions", _custom_options(raw)),) if op.custom else _options(op)
    return Operation(
        subgraph, number, op.kind, op.inputs, op.outputs, options, op.calls, raw._tab.Pos, op.custom  # noqa: SLF001
    )  # fmt: skip


def _custom_options(raw: Any) -> bytes:
    return bytes(raw.CustomOptionsAsNumpy().tobytes()) if raw.CustomOptionsLength() else b""


def _options(op: FileOp) -> tuple[tuple[str, Hashable], ...]:
    """All fields of the options, those at their default values too."""
    if op.options is None:
        return ()
    kind: Any = type(op.options)
    names = [n for n in vars(kind) if n[0].isupper() and not n.startswith(("GetRootAs", "Init"))]
    plain = [n for n in names if getattr(kind, n).__code__.co_argcount == 1]
    return tuple((name, _hashable(getattr(op.options, name)())) for name in sorted(plain))


def _hashable(value: Any) -> Hashable:
    return tuple(value.tolist()) if isinstance(value, np.ndarray) else value

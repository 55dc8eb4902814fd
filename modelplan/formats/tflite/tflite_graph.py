"""TFLite flatbuffers as a Graph: tensor `i` of the graph is tensor `i` of subgraph 0; bodies become subgraphs.

The operators of a subgraph that CALL runs take its place; their tensors come after those of subgraph 0.

Counts and offsets are checked against the length of the file before they are used, and the work is bounded by that
length however often the parts of the file overlap.
"""

import mmap
import struct
from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

from modelplan.formats.dims import Dims
from modelplan.formats.limits import MOST_AXES, FileLimits, Tally, check_sizes
from modelplan.formats.tflite import tflite_schema as schema
from modelplan.formats.tflite.flatbuffer_columns import TableColumns
from modelplan.formats.tflite.lut_metadata import LutMetadata, lut_metadata
from modelplan.formats.tflite.tflite_file import OperatorRow, QuantisationScales, TensorRow, TfliteFile
from modelplan.formats.tflite.tflite_options import SIZED_BY_OPTIONS, attributes, body_indices, custom_attributes
from modelplan.formats.tflite.tflite_schema import BODIES, DTYPES
from modelplan.formats.unpacking import is_wrapped
from modelplan.formats.whole_files import fingerprint, read_model
from modelplan.model import Graph, IntArray, Kind, Op, Tensor, Value
from modelplan.ops import OpFacts, facts
from modelplan.primitives.errors import ModelError
from modelplan.primitives.number_types import UNPLANNED

_MOST_OPERAND_ELEMENTS = 64
_DEEPEST = 32
_INTEGERS = {"int32": "<i", "int64": "<q"}


def read(path: Path, dims: Dims) -> Graph:
    """The model: its first subgraph, with the others where operators run them.

    Raises:
        ModelError: damaged, open or not supported.
        RequestError: a binding of `dims` that nothing asks for.
    """
    reader = _Reader(_content(path), dims)
    try:
        graph = reader.graph(path.stem)
    except ModelError as problem:  # of tables whose reader does not know the file
        raise ModelError(f"{path}: {str(problem).removeprefix(f'{path}: ')}") from None
    except (struct.error, IndexError, TypeError, AttributeError) as problem:
        raise ModelError(f"{path}: {reader.place}: an offset leads outside the file ({problem})") from None
    except (ValueError, OverflowError) as problem:
        raise ModelError(f"{path}: {reader.place}: {problem}") from None
    dims.check_used(reader.symbols)
    return graph


def _content(path: Path) -> bytes | mmap.mmap:
    """The bytes of the file, as pages of it where they need not be unpacked."""
    if is_wrapped(path):
        return read_model(path)
    with path.open("rb") as file:
        return mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)


class _Code(NamedTuple):
    """What an operator code says: kind, version, and what is known about operators of this kind."""

    kind: str
    version: int
    facts: OpFacts


class _Reader:
    """Makes the Graph; `place` is what it reads, for messages; `budget` bounds the work by the file's size."""

    def __init__(self, data: bytes | mmap.mmap, dims: Dims) -> None:
        self.data = data
        self.dims = dims
        self.place = "subgraphs"
        self.budget = 64 * len(data) + 4096
        self.tally = Tally(FileLimits.of(len(data)))
        self.codes: list[_Code] = []
        self.graphs: dict[int, Graph] = {}
        self.path: list[int] = []
        self.attributes: dict[object, tuple[tuple[str, Value], ...]] = {}  # by table of options
        self.symbols: set[str] = set()
        self.bound = False  # whether the caller's word was taken for any extent
        self.dynamic: list[str] = []
        self.unplanned: list[str] = []
        self.remarks: list[str] = []

    @cached_property
    def file(self) -> TfliteFile:
        return TfliteFile(self.data)

    @cached_property
    def metadata(self) -> LutMetadata | None:
        return lut_metadata(self.data)

    def graph(self, name: str) -> Graph:
        root = self.file.root
        self.subgraphs = self.count(root, schema.MODEL_SUBGRAPHS)
        if self.subgraphs == 0:
            raise ValueError("found no subgraph, expected at least 1")
        self.check_subgraphs()
        self.place = "operator codes"
        codes, most = self.count(root, schema.MODEL_OPERATOR_CODES), self.tally.limits.operators
        if codes > most:
            raise ValueError(f"found {codes:,}, expected at most {most:,}")
        rows = self.file.codes()
        for i in range(codes):
            self.place = f"operator code {i}"
            row = next(rows)
            self.spend(len(row.custom))
            self.codes.append(_Code(row.kind, max(row.version, 1), facts("tflite", row.kind)))
        graph = self.subgraph(0, name)
        self.place = "sizes"
        check_sizes(list(graph.tensors))
        return graph

    def all_remarks(self) -> tuple[str, ...]:
        remarks = [*self.remarks, *self.dims.remarks()]
        if self.dynamic:
            first, count = self.dynamic[0], len(self.dynamic)
            remarks.append(f"{count} tensors have a dynamic extent, first {first}; planned for the file's shape")
        if self.unplanned:
            more = f" and {len(self.unplanned) - 8} more" if len(self.unplanned) > 8 else ""
            remarks.append(f"memory from the heap, not planned: {', '.join(self.unplanned[:8])}{more}")
        return tuple(remarks)

    # -- guards ----------------------------------------------------------------------------------------------

    def count(self, table: TableColumns, field: int) -> int:
        """How many elements a vector of a table has; as many elements of at least four bytes fit in the file."""
        length = self.file.count(table, field)
        self.spend(4 * length)
        return length

    def check_subgraphs(self) -> None:
        """Refuses more in all subgraphs than a model may hold: runtimes read those too that nothing runs."""
        everything = Tally(self.tally.limits)
        for number in range(self.subgraphs):
            table = self.file.subgraph(number)
            everything.add("bodies", number > 0)
            everything.add("tensors", self.file.count(table, schema.SUBGRAPH_TENSORS))
            everything.add("operators", self.file.count(table, schema.SUBGRAPH_OPERATORS))

    def spend(self, work: int) -> None:
        """Counts the bytes read and refuses too many: overlapping parts could make a small file take for ever."""
        self.budget -= work + 64
        if self.budget < 0:
            raise ValueError("the parts of the file overlap too often: it would take too long to read")

    def text(self, value: bytes) -> str:
        self.spend(len(value))
        return value.decode("utf-8", "replace")

    def ends(self, table: TableColumns) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """The inputs and the outputs of a subgraph."""
        inputs, outputs = table.integers(schema.SUBGRAPH_INPUTS)[0], table.integers(schema.SUBGRAPH_OUTPUTS)[0]
        self.spend(4 * (len(inputs) + len(outputs)))
        return inputs, outputs

    # -- subgraphs -------------------------------------------------------------------------------------------

    def subgraph(self, number: int, name: str = "") -> Graph:
        """Subgraph `number`, read once however many operators run it; the first has the model's name."""
        if number in self.graphs:
            return self.graphs[number]
        if not 0 <= number < self.subgraphs:
            raise ValueError(f"found subgraph {number}, expected one of {self.subgraphs}")
        if number in self.path or len(self.path) >= _DEEPEST:
            raise ValueError(f"subgraph {number} runs itself or bodies lie more than {_DEEPEST} deep")
        self.tally.add("bodies", number > 0)
        self.path.append(number)
        self.graphs[number] = graph = self.read_subgraph(number, name)
        self.path.pop()
        return graph

    def read_subgraph(self, number: int, name: str) -> Graph:
        table, where = self.file.subgraph(number), f"subgraph {number}: " if number else ""
        self.place = f"subgraph {number}"
        self.tally.add("tensors", self.count(table, schema.SUBGRAPH_TENSORS))
        self.tally.add("operators", self.count(table, schema.SUBGRAPH_OPERATORS))
        slots = self.file.slots(table, schema.SUBGRAPH_TENSORS)
        if not number and self.dims.shapes:
            self.imply_batch(slots, self.ends(table)[0])
        rows, tensors = self.tensors(slots, where, self.compressed(number))
        ops = self.ops(self.file.slots(table, schema.SUBGRAPH_OPERATORS), where, slots, rows)
        self.place = f"subgraph {number}"
        inputs, outputs = self.ends(table)
        self.check_indices([*inputs, *outputs], len(tensors))
        complete = _with_resources(_with_empty_constants(tensors, ops, inputs), ops)
        if self.bound:
            self.check_all_bound()
            _check_followed(complete, ops, {i for i, row in enumerate(rows) if min(row.signature, default=0) < 0})
        complete, ops = inlined(complete, ops, self.tally.limits)
        name = name or self.text(table.texts(schema.SUBGRAPH_NAME)[0]) or "body"
        remarks = () if number else self.all_remarks()
        of_file = "" if number else fingerprint(self.data)
        return Graph(name, "tflite", tuple(complete), tuple(ops), inputs, outputs, remarks, of_file)

    def check_indices(self, indices: Sequence[int], count: int) -> None:
        for t in indices:
            if not -1 <= t < count:
                raise ValueError(f"found tensor {t}, but there are {count} tensors")

    # -- tensors ---------------------------------------------------------------------------------------------

    def compressed(self, subgraph: int) -> set[int]:
        """The tensors of a subgraph that the metadata of compressed weights name."""
        lists = self.metadata.subgraphs if self.metadata else ()
        return {row.tensor for row in lists[subgraph]} if subgraph < len(lists) else set()

    def tensors(self, slots: IntArray, where: str, compressed: set[int]) -> tuple[list[TensorRow], list[Tensor]]:
        """The tensors at the slots of a vector: what it says of them, and what they are in the graph."""
        names, table_rows = self.file.names(slots), self.file.tensors(slots)
        rows, tensors = list[TensorRow](), list[Tensor]()
        for i in range(len(slots)):
            self.place = f"{where}tensor {i}"
            name = self.text(next(names))
            self.place = f"{where}tensor {i} {name[:200]!r}"
            rows.append(next(table_rows))
            tensors.append(self.tensor(name, rows[-1], where, compressed=i in compressed))
        return rows, tensors

    def tensor(self, name: str, row: TensorRow, where: str, *, compressed: bool) -> Tensor:
        self.spend(4 * (len(row.shape) + len(row.signature)) + 64)
        dtype = DTYPES.get(row.type)
        if dtype is None:
            raise ValueError(f"found type {row.type}, expected one of 0 to {max(DTYPES)}")
        stored = self.stored(row)
        kind = Kind.CONSTANT if stored is not None else Kind.STATE if row.variable else Kind.ACTIVATION
        shape = self.shape(name, row, kind)
        if kind is not Kind.CONSTANT and not where:
            self.dims.shape(name, shape)
        if dtype in UNPLANNED and kind is not Kind.CONSTANT:
            self.unplanned.append(f"{name!r} ({dtype})")
        tensor = Tensor(name, shape, dtype, kind)
        return replace(tensor, stored=stored, compressed=True) if compressed else self.with_stored(tensor, row, stored)

    def shape(self, name: str, row: TensorRow, kind: Kind) -> tuple[int, ...]:
        """The extents: where the signature leaves one open the caller's, else the file's, with which runtimes start."""
        declared, signature = row.shape, row.signature
        if len(declared) > MOST_AXES:
            raise ValueError(f"found {len(declared)} axes, expected at most {MOST_AXES}")
        if signature and len(signature) != len(declared):
            raise ValueError(f"found signature {list(signature)} for shape {list(declared)}")
        if min((*declared, *signature, 0)) == 0:  # none is open
            return declared
        shape = list(declared)
        open_axes = [axis for axis, extent in enumerate(signature or shape) if extent < 0]
        if kind is Kind.CONSTANT:
            open_axes = [axis for axis in open_axes if shape[axis] < 0]
        for axis in open_axes:
            symbols = [f"{name}:{axis}"] + ["batch"] * (axis == 0)
            self.symbols.update(symbols)
            given_extent = self.dims.extent(*symbols)
            self.bound |= given_extent is not None
            shape[axis] = shape[axis] if given_extent is None else given_extent
            if given_extent is None and (not self.dynamic or not self.dynamic[-1].startswith(repr(name))):
                self.dynamic.append(f"{name!r} {list(signature)}")
        if min(shape, default=0) < 0:
            wanted = ",".join("N" if extent < 0 else str(extent) for extent in shape)
            raise ValueError(f"found shape {shape}, expected known extents; give them by --shape '{name}={wanted}'")
        return tuple(shape)

    def imply_batch(self, slots: IntArray, inputs: tuple[int, ...]) -> None:
        """Takes the first extent of a caller's shape as the batch of every tensor, where the file leaves it open."""
        of_inputs = slots[[t for t in inputs if 0 <= t < len(slots)]]
        for name, row in zip(self.file.names(of_inputs), self.file.tensors(of_inputs), strict=True):
            declared: list[int | str] = list(row.shape)
            for axis, extent in enumerate(row.shape):
                if (row.signature[axis] if axis < len(row.signature) else extent) < 0:
                    declared[axis] = "?" if axis else "batch"
            self.spend(4 * len(declared))
            self.dims.imply(self.text(name), declared)

    def check_all_bound(self) -> None:
        """Refuses a size for some of the dynamic tensors: what follows from one has no size that the file tells."""
        if self.dynamic:
            more = f" and {len(self.dynamic) - 8} more" if len(self.dynamic) > 8 else ""
            raise ValueError(
                f"with {self.dims.options()}: {', '.join(self.dynamic[:8])}{more} stay open;"
                " bind them too by --dim or --shape"
            )

    def stored(self, row: TensorRow) -> int | None:
        """Bytes of data that the file holds for the tensor, None where it is computed or fed at run time.

        -1 stands for data in another file, which is not read.
        """
        if row.buffer >= self.file.buffers:
            raise ValueError(f"found buffer {row.buffer}, expected one of {self.file.buffers}")
        if row.external_buffer:
            return -1
        if row.length > len(self.data):
            raise ValueError(f"found a buffer of {row.length} bytes, expected at most {len(self.data)}")
        if row.offset > 1 and row.offset + row.size > len(self.data):
            raise ValueError(f"found a buffer at {row.offset} of {row.size} bytes, expected it inside the file")
        return row.size if row.offset > 1 else row.length or None

    def with_stored(self, tensor: Tensor, row: TensorRow, stored: int | None) -> Tensor:
        """The tensor with its data's length checked; sparse weights and texts are as large as the data."""
        if stored is None or stored < 0 or stored == tensor.nbytes:
            return tensor
        if tensor.dtype in UNPLANNED or row.sparsity:
            return replace(tensor, stored=stored)
        raise ValueError(
            f"found {stored} bytes of data, expected {tensor.nbytes} for {tensor.dtype} {list(tensor.shape)}"
        )

    # -- operators -------------------------------------------------------------------------------------------

    def ops(self, slots: IntArray, where: str, tensors: IntArray, rows: list[TensorRow]) -> list[Op]:
        """The operators at the slots of a vector; `tensors` and `rows` are the slots and rows of all tensors."""
        numbers, operators, ops = self.file.code_numbers(slots), self.file.operators(slots), list[Op]()
        scales = QuantisationScales(self.file, tensors)
        for i in range(len(slots)):
            self.place = f"{where}operator {i}"
            number = next(numbers)
            if number >= len(self.codes):
                raise ValueError(f"found operator code {number}, expected one of {len(self.codes)}")
            code = self.codes[number]
            self.place = f"{where}operator {i} {code.kind[:200]}"
            ops.append(self.op(code, next(operators), rows, scales))
        return ops

    def op(self, code: _Code, row: OperatorRow, tensors: list[TensorRow], scales: QuantisationScales) -> Op:
        place, operands = self.place, (*row.inputs, *row.outputs)
        self.spend(4 * len(operands) + 1024)
        self.check_indices(operands, len(tensors))
        options = self.file.options.of(row)
        values = (
            *self.settings(code.kind, row, options),
            *self.values(code.facts.operands, tensors, row.inputs),
            *(self.requantises(scales, operands) if code.facts.same_quantisation else ()),
        )
        bodies = tuple(self.subgraph(number) for number in self.bodies(code.kind, options))
        self.place = place
        return Op("", code.kind, row.inputs, row.outputs, values, code.version, bodies)

    def settings(self, kind: str, row: OperatorRow, options: object) -> tuple[tuple[str, Value], ...]:
        if kind in SIZED_BY_OPTIONS:
            return custom_attributes(self.file.content(row.custom_start, row.custom_length))
        if options not in self.attributes:
            self.attributes[options] = attributes(options)
        return self.attributes[options]

    def bodies(self, kind: str, options: object) -> tuple[int, ...]:
        """The subgraphs that the operator runs each time. What runs once before all else is planned apart."""
        indices = body_indices(kind, options) if kind in BODIES else ()
        if kind == "CALL_ONCE":
            self.remarks.append(f"{self.place}: subgraph {indices[0]} runs once before the rest and is not planned")
            return ()
        return indices

    def values(
        self, operands: tuple[int, ...], tensors: list[TensorRow], inputs: tuple[int, ...]
    ) -> tuple[tuple[str, Value], ...]:
        """The values of the constant operands that decide what the operator does to memory."""
        values = []
        for operand in operands:
            if operand < len(inputs) and inputs[operand] >= 0:
                value = self.integers(tensors[inputs[operand]])
                if value is not None:
                    values.append((f"operand {operand}", value))
        return tuple(values)

    def integers(self, row: TensorRow) -> tuple[int, ...] | None:
        """The value of a small constant of int32 or int64."""
        letter = _INTEGERS.get(DTYPES[row.type])
        if letter is None or not 0 < row.length <= 8 * _MOST_OPERAND_ELEMENTS or row.length % struct.calcsize(letter):
            return None
        count = row.length // struct.calcsize(letter)
        return struct.unpack(f"<{count}{letter[-1]}", self.file.content(row.start, row.length))

    def requantises(self, scales: QuantisationScales, operands: Sequence[int]) -> tuple[tuple[str, Value], ...]:
        """Whether operands and outputs differ in scale or zero point: sharing memory may depend on it."""
        pairs = {scales.of(t) for t in operands if t >= 0}
        self.spend(sum(len(scale) + len(zero) for scale, zero in pairs))
        return (("requantises", len({pair for pair in pairs if pair[0]}) > 1),)


def _with_empty_constants(tensors: list[Tensor], ops: list[Op], inputs: tuple[int, ...]) -> list[Tensor]:
    """The tensors, where those that are read but never written are constants if they are empty, else refused.

    The inputs of custom operators are exempt: Ethos-U takes its working memory as an input that nothing writes.
    """
    given = {*inputs, *(t for op in ops for t in op.writes)}
    read = {t for op in ops if not op.kind.startswith("CUSTOM:") for t in op.reads}
    changed = list(tensors)
    for t in sorted(read - given):
        if tensors[t].kind is Kind.ACTIVATION and tensors[t].nbytes:
            raise ValueError(
                f"tensor {t} {tensors[t].name[:200]!r} is read, but nothing writes it and it holds no data"
            )
        if tensors[t].kind is Kind.ACTIVATION:
            changed[t] = replace(tensors[t], kind=Kind.CONSTANT)
    return changed


def _with_resources(tensors: list[Tensor], ops: list[Op]) -> list[Tensor]:
    """The tensors, where the handle of each resource variable is a state tensor of the size of its value."""
    values: dict[int, int] = {}
    for op in ops:
        if op.kind == "ASSIGN_VARIABLE" and len(op.reads) > 1:
            values.setdefault(op.inputs[0], op.inputs[1])
        elif op.kind == "READ_VARIABLE" and op.reads and op.writes:
            values.setdefault(op.inputs[0], op.outputs[0])
    changed, seen = list(tensors), set()
    for op in ops:
        if op.kind != "VAR_HANDLE" or not op.writes:
            continue
        handle, variable = op.outputs[0], (op.attribute("container"), op.attribute("shared_name"))
        if handle in values and variable not in seen:
            seen.add(variable)
            value = tensors[values[handle]]
            changed[handle] = Tensor(tensors[handle].name, value.shape, value.dtype, Kind.STATE)
    return changed


def _check_followed(tensors: list[Tensor], ops: list[Op], dynamic: set[int]) -> None:
    """Refuses bound extents where the result of a dynamic tensor is marked static: its size could not be known."""
    reached = set(dynamic)
    for op in ops:
        if not reached & set(op.reads):
            continue
        for t in op.writes:
            if t not in dynamic and tensors[t].nbytes and tensors[t].dtype not in UNPLANNED:
                raise ValueError(
                    f"tensor {t} {tensors[t].name[:200]!r} follows from a dynamic one but is marked static:"
                    " its extents cannot be bound"
                )


#: Tensors of which a subgraph has one, however often it is called.
_HELD = frozenset({Kind.CONSTANT, Kind.STATE})


def inlined(tensors: list[Tensor], ops: list[Op], limits: FileLimits) -> tuple[list[Tensor], list[Op]]:
    """The tensors and operators with each CALL replaced by the operators that it runs.

    Tensors of the subgraph come after all others, its constants and state once for all calls. The call stays, with the
    subgraph as its body, where their inputs or outputs differ in number, type or shape, or where the subgraph returns
    a value that it did not compute, or one twice.

    Raises:
        ValueError: more operators or tensors come out than a model may have.
    """
    grown, flat_ops = list(tensors), list[Op]()
    held: dict[tuple[int, int], int] = {}  # (subgraph, its tensor): its number now
    for op in ops:
        if not _fits(tensors, op):
            flat_ops.append(op)
            continue
        body = op.subgraphs[0]
        if len(flat_ops) + len(body.ops) > limits.operators or len(grown) + len(body.tensors) > limits.tensors:
            most = f"{limits.operators:,} operators or {limits.tensors:,} tensors"
            raise ValueError(f"called subgraphs grow to more than {most}")
        place = dict(zip((*body.inputs, *body.outputs), (*op.inputs, *op.outputs), strict=True))
        for t, tensor in enumerate(body.tensors):
            key = (id(body), t)
            if t in place:
                continue
            if tensor.kind in _HELD and key in held:
                place[t] = held[key]
                continue
            place[t] = held[key] = len(grown)
            grown.append(tensor)
        flat_ops += (_renumber(inner, place) for inner in body.ops)
    return grown, flat_ops


def _renumber(op: Op, place: dict[int, int]) -> Op:
    inputs, outputs = (tuple(place[t] if t >= 0 else -1 for t in side) for side in (op.inputs, op.outputs))
    return replace(op, inputs=inputs, outputs=outputs)


def _fits(tensors: list[Tensor], op: Op) -> bool:
    if op.kind != "CALL" or len(op.subgraphs) != 1:
        return False
    body = op.subgraphs[0]
    given, taken = (*op.inputs, *op.outputs), (*body.inputs, *body.outputs)
    return (
        (len(op.inputs), len(op.outputs)) == (len(body.inputs), len(body.outputs))
        and len(set(taken)) == len(taken)
        and all(t >= 0 and _alike(tensors[t], body.tensors[u]) for t, u in zip(given, taken, strict=True))
        and all(body.producers[t] >= 0 for t in body.outputs)
    )


def _alike(a: Tensor, b: Tensor) -> bool:
    return (a.dtype, a.shape) == (b.dtype, b.shape)

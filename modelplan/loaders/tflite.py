"""TFLite flatbuffers as a Graph: tensor `i` of the graph is tensor `i` of subgraph 0; bodies become subgraphs.

The operators of a subgraph that CALL runs take its place; their tensors come after those of subgraph 0.

Counts and offsets are checked against the length of the file before they are used, and the work is bounded by that
length however often the parts of the file overlap.
"""

from __future__ import annotations

import mmap
import struct
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from modelplan.dtypes import UNPLANNED
from modelplan.errors import ModelError
from modelplan.loaders.dims import Dims
from modelplan.loaders.files import fingerprint
from modelplan.loaders.limits import MOST_AXES, Limits, Tally, check_sizes
from modelplan.loaders.tflite_calls import inlined
from modelplan.loaders.tflite_options import attributes, body_indices
from modelplan.loaders.tflite_schema import BODIES, DTYPES, TENSOR_EXTERNAL_BUFFER, builtin_name
from modelplan.ops import facts
from modelplan.types import Graph, Kind, Op, Tensor, Value

_MOST_OPERAND_ELEMENTS = 64
_DEEPEST = 32
_INTEGERS = {"int32": "i", "int64": "q"}


def read(path: Path, dims: Dims) -> Graph:
    """The model: its first subgraph, with the others where operators run them.

    Raises:
        ModelError: damaged, open or not supported.
        RequestError: a binding of `dims` that nothing asks for.
    """
    with path.open("rb") as file:
        data = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    reader = _Reader(data, dims)
    try:
        graph = reader.graph(path.stem)
    except (struct.error, IndexError, TypeError, AttributeError) as problem:
        raise ModelError(f"{path}: {reader.place}: an offset leads outside the file ({problem})") from None
    except (ValueError, OverflowError) as problem:
        raise ModelError(f"{path}: {reader.place}: {problem}") from None
    dims.check_used(reader.symbols)
    return graph


class _Reader:
    """Reads the flatbuffer; `place` is what it reads, for messages; `budget` bounds the work by the file's size."""

    def __init__(self, data: Any, dims: Dims) -> None:
        self.data = data
        self.dims = dims
        self.place = "header"
        self.budget = 64 * len(data) + 4096
        self.tally = Tally(Limits.of(len(data)))
        self.model: Any = None
        self.codes: list[tuple[str, int]] = []  # kind and version of each operator code
        self.buffers: dict[int, tuple[int, int, int]] = {}  # length, offset and size of those seen
        self.graphs: dict[int, Graph] = {}
        self.path: list[int] = []
        self.symbols: set[str] = set()
        self.bound = False  # whether the caller's word was taken for any extent
        self.dynamic: list[str] = []
        self.unplanned: list[str] = []
        self.remarks: list[str] = []

    def graph(self, name: str) -> Graph:
        from tflite.Model import Model

        self.model = Model.GetRootAs(self.data, 0)
        self.place = "subgraphs"
        if self.count(self.model.SubgraphsLength()) == 0:
            raise ValueError("found no subgraph, expected at least 1")
        self.place = "operator codes"
        codes, most = self.count(self.model.OperatorCodesLength()), self.tally.limits.operators
        if codes > most:
            raise ValueError(f"found {codes:,}, expected at most {most:,}")
        self.codes = [self.code(i) for i in range(codes)]
        graph = self.subgraph(0, name)
        self.place = "sizes"
        check_sizes(list(graph.tensors))
        return graph

    def all_remarks(self) -> tuple[str, ...]:
        found = [*self.remarks, *self.dims.remarks()]
        if self.dynamic:
            first, count = self.dynamic[0], len(self.dynamic)
            found.append(f"{count} tensors have a dynamic extent, first {first}; planned for the file's shape")
        if self.unplanned:
            more = f" and {len(self.unplanned) - 8} more" if len(self.unplanned) > 8 else ""
            found.append(f"memory from the heap, not planned: {', '.join(self.unplanned[:8])}{more}")
        return tuple(found)

    # -- guards ----------------------------------------------------------------------------------------------

    def count(self, length: int) -> int:
        """`length`, checked: as many elements of at least four bytes fit in the file."""
        if 4 * length > len(self.data):
            raise ValueError(
                f"found a vector of {length} elements, expected at most {len(self.data) // 4} in this file"
            )
        self.spend(4 * length)
        return length

    def spend(self, work: int) -> None:
        """Counts the bytes read: a small file whose parts overlap could otherwise take for ever."""
        self.budget -= work + 64
        if self.budget < 0:
            raise ValueError("the parts of the file overlap too often: it would take too long to read")

    def text(self, value: bytes | None) -> str:
        self.spend(len(value or b""))
        return (value or b"").decode("utf-8", "replace")

    def vector(self, table: Any, field: str) -> tuple[int, ...]:
        """A vector of int32, empty where it is absent; numpy checks that it ends inside the file."""
        try:
            found = getattr(table, f"{field}AsNumpy")()
        except ValueError:
            length = getattr(table, f"{field}Length")()
            raise ValueError(f"found a vector of {length} elements, which ends outside the file") from None
        if isinstance(found, int):
            return ()
        self.spend(4 * len(found))
        return tuple(found.tolist())

    # -- subgraphs -------------------------------------------------------------------------------------------

    def subgraph(self, number: int, name: str = "") -> Graph:
        """Subgraph `number`, read once however many operators run it; the first has the model's name."""
        if number in self.graphs:
            return self.graphs[number]
        if not 0 <= number < self.model.SubgraphsLength():
            raise ValueError(f"found subgraph {number}, expected one of {self.model.SubgraphsLength()}")
        if number in self.path or len(self.path) >= _DEEPEST:
            raise ValueError(f"subgraph {number} runs itself or bodies lie more than {_DEEPEST} deep")
        self.tally.add("bodies", number > 0)
        self.path.append(number)
        self.graphs[number] = graph = self.read_subgraph(number, name)
        self.path.pop()
        return graph

    def read_subgraph(self, number: int, name: str) -> Graph:
        table, where = self.model.Subgraphs(number), f"subgraph {number}: " if number else ""
        self.place = f"subgraph {number}"
        self.tally.add("tensors", self.count(table.TensorsLength()))
        self.tally.add("operators", self.count(table.OperatorsLength()))
        tables = [table.Tensors(i) for i in range(table.TensorsLength())]
        if not number and self.dims.shapes:
            self.imply_batch([tables[t] for t in self.vector(table, "Inputs") if 0 <= t < len(tables)])
        tensors = [self.tensor(entry, i, where) for i, entry in enumerate(tables)]
        ops = [self.op(table.Operators(i), i, where, tables) for i in range(table.OperatorsLength())]
        self.place = f"subgraph {number}"
        inputs, outputs = self.vector(table, "Inputs"), self.vector(table, "Outputs")
        self.check_indices([*inputs, *outputs], len(tensors))
        complete = _with_resources(_with_empty_constants(tensors, ops, inputs), ops)
        if self.bound:
            self.check_all_bound()
            _check_followed(complete, ops, self.dynamic_tensors(tables))
        complete, ops = inlined(complete, ops, self.tally.limits)
        name = name or self.text(table.Name()) or "body"
        remarks = () if number else self.all_remarks()
        of_file = "" if number else fingerprint(self.data)
        return Graph(name, "tflite", tuple(complete), tuple(ops), inputs, outputs, remarks, of_file)

    def check_indices(self, indices: Sequence[int], count: int) -> None:
        for t in indices:
            if not -1 <= t < count:
                raise ValueError(f"found tensor {t}, but there are {count} tensors")

    # -- tensors ---------------------------------------------------------------------------------------------

    def tensor(self, table: Any, i: int, where: str) -> Tensor:
        self.place = f"{where}tensor {i}"
        name = self.text(table.Name())
        self.place = f"{where}tensor {i} {name[:200]!r}"
        number = table.Type()
        if number not in DTYPES:
            raise ValueError(f"found type {number}, expected one of 0 to {max(DTYPES)}")
        stored = self.stored(table)
        kind = Kind.CONSTANT if stored is not None else Kind.STATE if table.IsVariable() else Kind.ACTIVATION
        shape = self.shape(name, table, kind)
        if kind is not Kind.CONSTANT and not where:
            self.dims.shape(name, shape)
        if DTYPES[number] in UNPLANNED and kind is not Kind.CONSTANT:
            self.unplanned.append(f"{name!r} ({DTYPES[number]})")
        tensor = Tensor(name, shape, DTYPES[number], kind)
        return self.with_stored(tensor, table, stored)

    def shape(self, name: str, table: Any, kind: Kind) -> tuple[int, ...]:
        """The extents: where the signature leaves one open the caller's, else the file's, with which runtimes start."""
        shape, signature = list(self.vector(table, "Shape")), self.vector(table, "ShapeSignature")
        if len(shape) > MOST_AXES:
            raise ValueError(f"found {len(shape)} axes, expected at most {MOST_AXES}")
        if signature and len(signature) != len(shape):
            raise ValueError(f"found signature {list(signature)} for shape {shape}")
        open_axes = [axis for axis, extent in enumerate(signature or shape) if extent < 0]
        if kind is Kind.CONSTANT:
            open_axes = [axis for axis in open_axes if shape[axis] < 0]
        for axis in open_axes:
            symbols = [f"{name}:{axis}"] + ["batch"] * (axis == 0)
            self.symbols.update(symbols)
            found = self.dims.extent(*symbols)
            self.bound |= found is not None
            shape[axis] = shape[axis] if found is None else found
            if found is None and (not self.dynamic or not self.dynamic[-1].startswith(repr(name))):
                self.dynamic.append(f"{name!r} {list(signature)}")
        if min(shape, default=0) < 0:
            wanted = ",".join("N" if extent < 0 else str(extent) for extent in shape)
            raise ValueError(f"found shape {shape}, expected known extents; give them by --shape '{name}={wanted}'")
        return tuple(shape)

    def imply_batch(self, inputs: list[Any]) -> None:
        """Takes the first extent of a caller's shape as the batch of every tensor, where the file leaves it open."""
        for table in inputs:
            declared: list[int | str] = list(self.vector(table, "Shape"))
            signature = self.vector(table, "ShapeSignature")
            for axis, extent in enumerate(declared):
                if (signature[axis] if axis < len(signature) else int(extent)) < 0:
                    declared[axis] = "?" if axis else "batch"
            self.dims.imply(self.text(table.Name()), declared)

    def check_all_bound(self) -> None:
        """Refuses a size for some of the dynamic tensors: what follows from one has no size that the file tells."""
        if self.dynamic:
            more = f" and {len(self.dynamic) - 8} more" if len(self.dynamic) > 8 else ""
            raise ValueError(
                f"with {self.dims.options()}: {', '.join(self.dynamic[:8])}{more} stay open;"
                " bind them too by --dim or --shape"
            )

    def dynamic_tensors(self, tables: list[Any]) -> set[int]:
        return {i for i, table in enumerate(tables) if min(self.vector(table, "ShapeSignature"), default=0) < 0}

    def stored(self, table: Any) -> int | None:
        """Bytes of data that the file holds for the tensor, None where it is computed or fed at run time."""
        index = table.Buffer()
        if index not in self.buffers:
            if index >= self.model.BuffersLength():
                raise ValueError(f"found buffer {index}, expected one of {self.model.BuffersLength()}")
            buffer = self.model.Buffers(index)
            self.buffers[index] = buffer.DataLength(), buffer.Offset(), buffer.Size()
        if self.is_external(table):
            return -1
        length, offset, size = self.buffers[index]
        if length > len(self.data):
            raise ValueError(f"found a buffer of {length} bytes, expected at most {len(self.data)}")
        if offset > 1 and offset + size > len(self.data):
            raise ValueError(f"found a buffer at {offset} of {size} bytes, expected it inside the file")
        self.spend(0)
        return size if offset > 1 else length or None

    def is_external(self, table: Any) -> bool:
        """Whether the data lies in another file, which is not read; not every schema package has this field."""
        position = table._tab.Offset(4 + 2 * TENSOR_EXTERNAL_BUFFER)  # noqa: SLF001
        return bool(position) and struct.unpack_from("<I", self.data, table._tab.Pos + position)[0] > 0  # noqa: SLF001

    def with_stored(self, tensor: Tensor, table: Any, stored: int | None) -> Tensor:
        """The tensor with its data's length checked; sparse weights and texts are as large as the data."""
        if stored is None or stored < 0 or stored == tensor.nbytes:
            return tensor
        if tensor.dtype in UNPLANNED or table.Sparsity() is not None:
            return replace(tensor, stored=stored)
        raise ValueError(
            f"found {stored} bytes of data, expected {tensor.nbytes} for {tensor.dtype} {list(tensor.shape)}"
        )

    # -- operators -------------------------------------------------------------------------------------------

    def code(self, i: int) -> tuple[str, int]:
        """Kind and version of operator code `i`."""
        self.place = f"operator code {i}"
        code = self.model.OperatorCodes(i)
        name = builtin_name(code)
        return f"CUSTOM:{self.text(code.CustomCode())}" if name == "CUSTOM" else name, max(code.Version(), 1)

    def op(self, table: Any, i: int, where: str, tensors: list[Any]) -> Op:
        """Operator `i`; `tensors` are the file's tables."""
        self.place = f"{where}operator {i}"
        code = table.OpcodeIndex()
        if code >= len(self.codes):
            raise ValueError(f"found operator code {code}, expected one of {len(self.codes)}")
        kind, version = self.codes[code]
        self.place = place = f"{where}operator {i} {kind[:200]}"
        inputs, outputs = self.vector(table, "Inputs"), self.vector(table, "Outputs")
        self.check_indices((*inputs, *outputs), len(tensors))
        self.spend(1024)
        values = (
            *attributes(kind, table),
            *self.operands(kind, tensors, inputs),
            *self.requantises(kind, tensors, inputs, outputs),
        )
        bodies = tuple(self.subgraph(number) for number in self.bodies(kind, table))
        self.place = place
        return Op("", kind, inputs, outputs, values, version, bodies)

    def bodies(self, kind: str, table: Any) -> tuple[int, ...]:
        """The subgraphs that the operator runs each time. What runs once before all else is planned apart."""
        found = body_indices(kind, table) if kind in BODIES else ()
        if kind == "CALL_ONCE":
            self.remarks.append(f"{self.place}: subgraph {found[0]} runs once before the rest and is not planned")
            return ()
        return found

    def operands(self, kind: str, tensors: list[Any], inputs: tuple[int, ...]) -> tuple[tuple[str, Value], ...]:
        """The values of the constant operands that decide what the operator does to memory."""
        found = []
        for operand in facts("tflite", kind).operands:
            if operand < len(inputs) and inputs[operand] >= 0:
                value = self.integers(tensors[inputs[operand]])
                if value is not None:
                    found.append((f"operand {operand}", value))
        return tuple(found)

    def integers(self, table: Any) -> tuple[int, ...] | None:
        """The value of a small constant of int32 or int64."""
        buffer = self.model.Buffers(table.Buffer())
        letter = _INTEGERS.get(DTYPES.get(table.Type(), ""))
        length = buffer.DataLength()
        if letter is None or not 0 < length <= 8 * _MOST_OPERAND_ELEMENTS or length % struct.calcsize(f"<{letter}"):
            return None
        data = buffer.DataAsNumpy().tobytes()
        return struct.unpack(f"<{length // struct.calcsize(f'<{letter}')}{letter}", data)

    def requantises(self, kind: str, tensors: list[Any], *sides: tuple[int, ...]) -> tuple[tuple[str, Value], ...]:
        """Whether operands and outputs differ in scale or zero point, where sharing memory depends on it."""
        if not facts("tflite", kind).same_quantisation:
            return ()
        found = {self.quantisation(tensors[t]) for side in sides for t in side if t >= 0}
        return (("requantises", len(found - {None}) > 1),)

    def quantisation(self, table: Any) -> tuple[bytes, bytes] | None:
        parameters = table.Quantization()
        if parameters is None or not parameters.ScaleLength():
            return None
        self.count(parameters.ScaleLength() + 2 * parameters.ZeroPointLength())
        zero = parameters.ZeroPointAsNumpy().tobytes() if parameters.ZeroPointLength() else b""
        return parameters.ScaleAsNumpy().tobytes(), zero


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
        handle = op.outputs[0] if op.kind == "VAR_HANDLE" and op.writes else -1
        variable = (op.attribute("container"), op.attribute("shared_name"))
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

"""Another type at the inputs and outputs of a .tflite model: its outer conversions go, and the program converts.

float32 x -> QUANTIZE -> int8 -> ... -> int8 -> DEQUANTIZE -> float32 y        as it is
                         int8 x -> ... -> int8 y                               --interface int8
uint8 x -> QUANTIZE -> int8 -> ... -> int8 -> QUANTIZE -> uint8 y              --interface uint8
"""

import struct
from dataclasses import field, replace
from pathlib import Path

from modelplan.formats import load_model
from modelplan.formats.tflite.flatbuffer_tables import (
    CODE,
    MODEL,
    OPERATOR,
    QUANTISATION,
    SUBGRAPH,
    TENSOR,
    FrontTables,
)
from modelplan.formats.tflite.tflite_tables import child, root_table, slots, tables
from modelplan.model import Graph
from modelplan.primitives.errors import RequestError
from modelplan.primitives.lazy_records import dataclass
from modelplan.rewriting.striped_tflite.steps import JOIN
from modelplan.runtimes.tflm.file import read_tflite
from modelplan.runtimes.tflm.metadata import ConvertedTensor, read_interface, write_interface

#: What an interface may be, with what it says.
INTERFACES = ("as-is", "int8", "uint8")
#: Type numbers of the schema.
_TYPE_NUMBERS = {"int8": 9, "uint8": 3}
#: Types of ends that a program converts, as the verifier knows it; of 16 bits it has none.
_CONVERTED = frozenset({"float32", *_TYPE_NUMBERS})
#: What a code of uint8 is above that of int8 for the same value.
_BETWEEN = 128
_QUANTIZE = 114
#: Operators that put elements elsewhere and change none.
_MOVING = frozenset({"SLICE", "STRIDED_SLICE", "SPLIT", "SPLIT_V", JOIN, "PAD", "RESHAPE", "TRANSPOSE"})
_CODES, _SUBGRAPHS = 1, 2
_TENSORS, _OPERATORS = 0, 3
_OPCODE, _OP_INPUTS, _OP_OUTPUTS = 0, 1, 2
_TYPE, _NAME, _QUANTISATION, _ZERO_POINTS = 1, 3, 4, 3


@dataclass(frozen=True)
class OuterConversions:
    """The conversions at the ends of a graph that may go, and why others stay.

    `inner` has for each tensor of the interface the quantised one behind its conversion, `operators` are those
    conversions, and `equal` other tensors that hold what a tensor of `inner` does. `reasons` say what cannot change.
    """

    inner: dict[int, int] = field(default_factory=dict)
    operators: set[int] = field(default_factory=set)
    equal: dict[int, int] = field(default_factory=dict)
    reasons: list[str] = field(default_factory=list)


def outer_conversions(graph: Graph) -> OuterConversions:
    """The QUANTIZEs behind inputs and the QUANTIZEs and DEQUANTIZEs before outputs of a .tflite graph."""
    conversions = OuterConversions()
    for t in graph.inputs:
        _note_input(graph, t, conversions)
    for t in graph.outputs:
        _note_output(graph, t, conversions)
    return conversions


def _note_input(graph: Graph, t: int, conversions: OuterConversions) -> None:
    readers = graph.readers[t]
    behind = [graph.ops[r].outputs[0] for r in readers if graph.ops[r].kind == "QUANTIZE"]
    if graph.tensors[t].dtype in _TYPE_NUMBERS and not behind:
        return
    name = graph.tensors[t].name
    if not behind or len(behind) < len(readers) or t in graph.outputs or graph.inputs.count(t) > 1:
        others = sorted({graph.ops[r].kind for r in readers} - {"QUANTIZE"})
        reason = f"input {name!r} is read by {', '.join(others) or 'nothing'} as it is"
        conversions.reasons.append(reason + _computed_on(graph, t))
    elif graph.tensors[t].dtype not in _CONVERTED:
        conversions.reasons.append(f"input {name!r} is {graph.tensors[t].dtype}, which no program converts here")
    elif any(graph.tensors[y].dtype not in _TYPE_NUMBERS or y in graph.outputs for y in behind):
        conversions.reasons.append(f"input {name!r} is quantised to {graph.tensors[behind[0]].dtype}")
    else:
        conversions.inner[t] = behind[0]
        conversions.operators.update(readers)
        conversions.equal.update(dict.fromkeys(behind[1:], behind[0]))


def _computed_on(graph: Graph, t: int) -> str:
    """Which operator computes with what is moved out of an input without quantising it, as words; empty where none."""
    moved, dtype = {t}, graph.tensors[t].dtype
    for index, op in enumerate(graph.ops):
        if moved.isdisjoint(op.reads) or op.kind == "QUANTIZE":
            continue
        if op.kind not in _MOVING:
            behind = f": {graph.label(index)} behind that computes in {dtype}, so the file has no scale for it"
            return "" if t in op.reads else behind
        moved.update(op.writes)
    return ""


def _note_output(graph: Graph, t: int, conversions: OuterConversions) -> None:
    maker = graph.producers[t]
    op = graph.ops[maker] if maker >= 0 else None
    name, taken = graph.tensors[t].name, conversions.inner.values()
    if op is None or op.kind not in ("QUANTIZE", "DEQUANTIZE"):
        if graph.tensors[t].dtype not in _TYPE_NUMBERS:
            conversions.reasons.append(f"output {name!r} is made as {graph.tensors[t].dtype} by {op and op.kind}")
        return
    x = op.inputs[0]
    if graph.tensors[t].dtype not in _CONVERTED:
        conversions.reasons.append(f"output {name!r} is {graph.tensors[t].dtype}, which no program converts here")
        return
    if graph.tensors[x].dtype not in _TYPE_NUMBERS:
        return
    if graph.readers[t] or x in graph.inputs or x in taken or x in graph.outputs or graph.outputs.count(t) > 1:
        conversions.reasons.append(f"output {name!r} or what it is made of is used elsewhere too")
    else:
        conversions.inner[t] = x
        conversions.operators.add(maker)


@dataclass(frozen=True)
class ChangedInterface:
    """A file with other types at its ends, and its graph.

    `gone` are the operators of the old file that it has no more, `fewer` the bytes that its ends have less, `reasons`
    say what stays as it was.
    """

    content: bytes
    graph: Graph
    gone: frozenset[int]
    fewer: int
    reasons: tuple[str, ...]


def with_interface(model: bytes, graph: Graph, dtype: str) -> ChangedInterface:
    """The file, whose graph is `graph`, with inputs and outputs of type `dtype` where they can have it.

    The new tensors have the names of the old ones.

    Raises:
        RequestError: an end has another type and none can change, or the model has several subgraphs.
        ModelError: it holds what cannot be carried over.
    """
    return graph.memoised(("interface", dtype), lambda: _with_interface(model, graph, dtype))


def _with_interface(model: bytes, graph: Graph, dtype: str) -> ChangedInterface:
    if len(tables(model, root_table(model), _SUBGRAPHS)) != 1:
        raise RequestError("--interface needs a model of one subgraph")
    conversions = outer_conversions(graph)
    written = _Interface(model, graph, conversions, dtype)
    if not written.converted:
        if conversions.reasons:
            reason = "; ".join(conversions.reasons)
            raise RequestError(f"{graph.source or graph.name}: --interface {dtype} changes nothing: {reason}")
        return ChangedInterface(model, graph, frozenset(), 0, (f"its inputs and outputs are {dtype} already",))
    changing = {(row.side, row.position) for row in written.converted}
    before = [row for row in read_interface(model) if (row.side, row.position) not in changing]
    content = write_interface(written.file(), [*before, *written.converted])
    whole = reloaded(content, graph)
    from modelplan.rewriting.striped_tflite.building import striped_program  # here, since most ask for another file
    from modelplan.rewriting.striped_tflite.writing import write_striped

    content, _ = write_striped(content, striped_program(whole, range(len(whole.ops)), ()))
    changed = reloaded(content, graph)
    gone = frozenset(op for op in conversions.operators if written.goes(op))
    fewer = _end_bytes(graph) - _end_bytes(changed)
    return ChangedInterface(content, changed, gone, fewer, tuple(conversions.reasons))


def reloaded(content: bytes, graph: Graph) -> Graph:
    """The graph of a file that was made of that of `graph`, with its name."""
    from tempfile import TemporaryDirectory  # here, since few files are rewritten

    with TemporaryDirectory() as folder:
        path = Path(folder) / "model.tflite"
        path.write_bytes(content)
        loaded = replace(load_model(path), name=graph.name)
    object.__setattr__(loaded, "source", graph.source)
    return loaded


def _end_bytes(graph: Graph) -> int:
    return sum(graph.tensors[t].nbytes for t in (*graph.inputs, *graph.outputs))


class _Interface:
    """One file with another interface: inputs, outputs and signatures keep their numbers, which get other tensors.

    `taken` has for each number of the interface that changes the quantised tensor behind its conversion; `renumbered`
    says which number operators read and write instead of those, and of others that hold the same. The numbers in
    `behind` get a new tensor of another type than the one behind it, whose number it says; `moved` are those whose own
    tensors are behind now.
    """

    def __init__(self, model: bytes, graph: Graph, conversions: OuterConversions, dtype: str) -> None:
        self.model, self.graph, self.conversions, self.dtype = model, graph, conversions, dtype
        self.root = root_table(model)
        self.subgraph = tables(model, self.root, _SUBGRAPHS)[0]
        self.file_tensors = read_tflite(model, graph.name).subgraphs[0].tensors
        self.converted: list[ConvertedTensor] = []
        self.taken: dict[int, int] = {}
        self.renumbered: dict[int, int] = {}
        self.behind: dict[int, int] = {}
        self.moved: list[int] = []
        for side, listed in (("input", graph.inputs), ("output", graph.outputs)):
            for position, t in enumerate(listed):
                self._plan(side, position, t)

    def _plan(self, side: str, position: int, t: int) -> None:
        tensor = self.graph.tensors[t]
        inner = self.conversions.inner.get(t, t)
        own, quantisation = self.graph.tensors[inner].dtype, self.file_tensors[inner].quantization
        if tensor.dtype == self.dtype or own not in _TYPE_NUMBERS:
            return
        if reason := self._odd_scale(t, inner):
            self.conversions.reasons.append(f"{side} {tensor.name!r} {reason}")
            return
        zero = quantisation.zero_point
        if own == self.dtype:
            equal = [y for y, first in self.conversions.equal.items() if first == inner]
            self.renumbered |= dict.fromkeys((inner, *equal), t)
        else:
            zero += _BETWEEN if self.dtype == "uint8" else -_BETWEEN
            self.behind[t] = inner
            if inner == t:  # what stood here stands at the end, where operators find it
                self.behind[t] = self.renumbered[t] = len(self.file_tensors) + len(self.moved)
                self.moved.append(t)
        self.taken[t] = inner
        row = (side, position, tensor.name, tensor.dtype, self.dtype, quantisation.scale, zero)
        self.converted.append(ConvertedTensor(*row))

    def _odd_scale(self, t: int, inner: int) -> str:
        """Why a program cannot convert one for the other by one scale and zero point; empty where it can."""
        same = [t for t, first in self.conversions.equal.items() if first == inner]
        codings = {self.file_tensors[x].quantization for x in (inner, *same)}
        known = self.file_tensors[inner].quantization
        if len(codings) > 1:
            return "is quantised in several ways"
        if (known.scales, known.zero_points) != (1, 1):
            return "has no one scale and zero point"
        outer = self.file_tensors[t].quantization
        between = {"int8": -_BETWEEN, "uint8": _BETWEEN}[self.graph.tensors[inner].dtype]
        if t == inner or self.graph.tensors[t].dtype not in _TYPE_NUMBERS:
            return ""
        equal = outer.scale == known.scale and outer.zero_point + between == known.zero_point
        return "" if equal else "is quantised to another scale"

    def file(self) -> bytes:
        """The new file."""
        front = self.front = FrontTables(self._renumbered_file())
        codes = [front.at(at) for at in tables(self.model, self.root, _CODES)]
        if self.behind:
            codes.append(front.table(CODE, {0: _QUANTIZE, 2: 1, 3: _QUANTIZE}))
        main = {
            _TENSORS: front.references(self._tensors()),
            _OPERATORS: front.references(self._operators(len(codes) - 1)),
        }
        subgraph = front.table(SUBGRAPH, main, self.subgraph, "subgraph")
        fields = {_CODES: front.references(codes), _SUBGRAPHS: front.references([subgraph])}
        return front.file(front.table(MODEL, fields, self.root, "model"))

    def _renumbered_file(self) -> bytes:
        """The old file whose operators name the tensors of the interface in place of those behind it."""
        changed = bytearray(self.model)
        for table in tables(self.model, self.subgraph, _OPERATORS):
            for at in (*slots(self.model, table, _OP_INPUTS), *slots(self.model, table, _OP_OUTPUTS)):
                old = int(struct.unpack_from("<i", self.model, at)[0])
                struct.pack_into("<i", changed, at, self.renumbered.get(old, old))
        return bytes(changed)

    def _tensors(self) -> list[int]:
        """All tensors: those of the interface have their names and what the tensors behind them have else."""
        old = tables(self.model, self.subgraph, _TENSORS)
        listed = [self.front.at(old[t]) for t in (*range(len(old)), *self.moved)]
        for t, inner in self.taken.items():
            fields = {_NAME: self.front.text(self.graph.tensors[t].name)}
            if t in self.behind:
                zeros = {_ZERO_POINTS: self.front.long_numbers([self._zero_point(t)])}
                like = child(self.model, old[inner], _QUANTISATION)
                fields[_QUANTISATION] = self.front.table(QUANTISATION, zeros, like)
                fields[_TYPE] = _TYPE_NUMBERS[self.dtype]
            listed[t] = self.front.table(TENSOR, fields, old[inner])
        return listed

    def _zero_point(self, t: int) -> int:
        sides = {"input": self.graph.inputs, "output": self.graph.outputs}
        return next(row.zero_point for row in self.converted if sides[row.side][row.position] == t)

    def _operators(self, code: int) -> list[int]:
        """The operators that stay, between conversions of the added tensors, which have the operator code `code`."""
        operators = tables(self.model, self.subgraph, _OPERATORS)
        stay = [self.front.at(at) for op, at in enumerate(operators) if not self.goes(op)]
        first, last = list[int](), list[int]()
        for t, behind in self.behind.items():
            is_input = t in self.graph.inputs
            ends = (t, behind) if is_input else (behind, t)
            lists = {_OP_INPUTS: self.front.numbers(ends[:1]), _OP_OUTPUTS: self.front.numbers(ends[1:])}
            (first if is_input else last).append(self.front.table(OPERATOR, {_OPCODE: code, **lists}))
        return [*first, *stay, *last]

    def goes(self, index: int) -> bool:
        """Whether an operator is a conversion between an end that changes and what is behind it."""
        op = self.graph.ops[index]
        return index in self.conversions.operators and not self.taken.keys().isdisjoint((op.inputs[0], op.outputs[0]))

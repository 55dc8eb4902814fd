"""Labels by which operators of two graphs are recognised: what an operator is, and what lies before and behind it.

Names play no part. Equal labels are equal numbers, so that a label of labels stays as small as one.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Hashable, Sequence
from dataclasses import field
from functools import cached_property
from hashlib import sha256

from modelplan.formats.model_contents import Contents, Settings
from modelplan.model import Graph, Kind, Op
from modelplan.primitives.lazy_records import dataclass

#: What of an operator counts, the strictest first: all of it; no shapes of activations; no values; options; its kind.
LEVELS = ("all", "values", "shapes", "options", "kind")
#: Options that are names.
_NAMES = {"container", "shared_name"}


@dataclass(frozen=True, eq=False)
class Structure:
    """A graph with the contents of its file, as far as matching looks at it.

    `digests` remembers those of bodies by graph and level, since many operators may run one body.
    """

    graph: Graph
    contents: Contents
    digests: dict[tuple[int, str], str] = field(default_factory=dict)
    options: tuple[Settings, ...] = field(init=False)

    def __post_init__(self) -> None:
        named = (tuple(row for row in options if row[0] not in _NAMES) for options in self.contents.options)
        object.__setattr__(self, "options", tuple(named))

    def body(self, op: int, number: int) -> Structure:
        """A body that an operator runs."""
        return Structure(self.graph.ops[op].subgraphs[number], self.contents.bodies[op][number], self.digests)

    @cached_property
    def order(self) -> tuple[int, ...]:
        """The operators in an order in which each stands behind those whose results it reads, near the file's."""
        graph = self.graph
        waiting = [sum(graph.producers[t] >= 0 for t in op.reads) for op in graph.ops]
        ready = deque(i for i, count in enumerate(waiting) if not count)
        order = []
        while ready:
            order.append(ready.popleft())
            for t in graph.ops[order[-1]].writes:
                for reader in graph.readers[t]:
                    waiting[reader] -= 1
                    if not waiting[reader]:
                        ready.append(reader)
        return tuple(order)

    @cached_property
    def uses(self) -> tuple[tuple[tuple[int, int], ...], ...]:
        """For each tensor who reads it: pairs of operator and operand."""
        uses: list[list[tuple[int, int]]] = [[] for _ in self.graph.tensors]
        for index, op in enumerate(self.graph.ops):
            for position, t in enumerate(op.inputs):
                if t >= 0:
                    uses[t].append((index, position))
        return tuple(map(tuple, uses))

    @cached_property
    def ends(self) -> dict[int, tuple[int, ...]]:
        """For each output of the graph at which places it stands among the outputs."""
        places: dict[int, tuple[int, ...]] = {}
        for place, t in enumerate(self.graph.outputs):
            places[t] = (*places.get(t, ()), place)
        return places

    @cached_property
    def identity(self) -> tuple[Hashable, ...]:
        """A key of all that matching looks at, equal for renamed models."""
        rows = [(op.inputs, op.outputs, repr(own_label(self, i, "all"))) for i, op in enumerate(self.graph.ops)]
        return (len(rows), len(self.graph.tensors), tuple(rows), self.graph.inputs, self.graph.outputs)


def own_label(side: Structure, index: int, level: str) -> Hashable:
    """The label of operator `index` by itself, at the detail of the level."""
    op = side.graph.ops[index]
    if level == "kind":
        return op.kind
    if level == "options":
        return op.kind, side.options[index]
    operands = tuple(_operand(side, t, level) for t in op.inputs)
    results = tuple(_activation(side, t, level) for t in op.outputs)
    bodies = tuple(_body_digest(side.body(index, number), level) for number in range(len(op.subgraphs)))
    return op.kind, side.options[index], operands, results, bodies


def _operand(side: Structure, t: int, level: str) -> Hashable:
    if t < 0:
        return None
    tensor = side.graph.tensors[t]
    if tensor.kind is not Kind.CONSTANT:
        return _activation(side, t, level)
    if level == "shapes":
        return tensor.dtype, tensor.shape
    return tensor.dtype, tensor.shape, side.contents.values[t], side.contents.quantisation[t]


def _activation(side: Structure, t: int, level: str) -> Hashable:
    if t < 0 or level == "values":
        return None
    tensor = side.graph.tensors[t]
    known = tensor.kind, tensor.dtype, tensor.shape
    return known if level == "shapes" else (*known, side.contents.quantisation[t])


def _body_digest(side: Structure, level: str) -> str:
    """A digest of a body with all its wires."""
    graph, key = side.graph, (id(side.graph), level)
    if key not in side.digests:
        ops = [(op.inputs, op.outputs, own_label(side, i, level)) for i, op in enumerate(graph.ops)]
        side.digests[key] = sha256(repr((ops, graph.inputs, graph.outputs)).encode()).hexdigest()
    return side.digests[key]


@dataclass(frozen=True, eq=False)
class Labels:
    """The labels of one structure at one level; `numbers` gives equal labels equal numbers, on both sides."""

    side: Structure
    level: str
    numbers: defaultdict[Hashable, int]

    @cached_property
    def own(self) -> list[int]:
        """The label of each operator by itself."""
        return [self.numbers["own", own_label(self.side, i, self.level)] for i in range(len(self.side.graph.ops))]

    @cached_property
    def before(self) -> list[int]:
        """The label of each operator with everything that its result is computed from."""
        graph = self.side.graph
        labels = [-1] * len(graph.ops)
        for i in self.side.order:
            op = graph.ops[i]
            labels[i] = self.numbers["before", self.own[i], tuple(self._source(t, labels) for t in op.inputs)]
        return labels

    @cached_property
    def behind(self) -> list[int]:
        """The label of each operator with everything that is computed from its result."""
        labels = [-1] * len(self.side.graph.ops)
        for i in reversed(self.side.order):
            op = self.side.graph.ops[i]
            labels[i] = self.numbers["behind", self.own[i], tuple(self._users(t, labels) for t in op.outputs)]
        return labels

    def around(self, radius: int) -> list[int]:
        """The label of each operator with its neighbours at most `radius` operators away."""
        labels = self.own
        for _ in range(radius):
            labels = [self.numbers["around", *self._neighbourhood(i, labels)] for i in range(len(labels))]
        return labels

    def _neighbourhood(self, i: int, labels: Sequence[int]) -> tuple[Hashable, ...]:
        op: Op = self.side.graph.ops[i]
        sources = tuple(self._source(t, labels) for t in op.inputs)
        return labels[i], sources, tuple(self._users(t, labels) for t in op.outputs)

    def _source(self, t: int, labels: Sequence[int]) -> Hashable:
        """Where an operand comes from: an operator by its label, or what it is instead."""
        if t < 0:
            return None
        maker = self.side.graph.producers[t]
        if maker < 0:
            return self.side.graph.tensors[t].kind
        return labels[maker], self.side.graph.ops[maker].outputs.index(t)

    def _users(self, t: int, labels: Sequence[int]) -> Hashable:
        """Who reads a result, and whether it is an output of the graph."""
        if t < 0:
            return None
        return tuple(sorted((labels[i], operand) for i, operand in self.side.uses[t])), self.side.ends.get(t, ())

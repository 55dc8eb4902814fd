"""A model as a graph: tensors, operators, and the DAG that they make; neighbours by index."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import field, fields
from enum import StrEnum
from functools import cached_property
from heapq import heappop, heappush
from typing import TYPE_CHECKING, Literal, TypeVar, cast

import numpy as np

from modelplan.primitives.lazy_records import dataclass
from modelplan.primitives.number_types import IntArray, column, nbytes

if TYPE_CHECKING:
    import networkx as nx

#: The answers that a graph keeps, see `Graph.memoised`.
_ANSWERS = 12
Answer = TypeVar("Answer")
Value = bool | int | float | str | tuple["Value", ...]


class Kind(StrEnum):
    """What a tensor is to the planner."""

    ACTIVATION = "activation"
    """Computed or fed at run time: needs an address for its lifetime."""
    CONSTANT = "constant"
    """Known before run time: lives in flash, never planned."""
    CAPTURED = "captured"
    """Read by a body from the graph around it: has its address there."""
    STATE = "state"
    """Survives from one run to the next (variables, caches): alive all the time."""


@dataclass(frozen=True, slots=True)
class Tensor:
    """One value of the model. `shape` holds non-negative extents, `()` is a scalar.

    `stored` is how many bytes the file holds for a constant where that is not `nbytes` (sparse weights, texts).
    `compressed`: these are indices into a table of values, which kernels unpack while they run.
    """

    name: str
    shape: tuple[int, ...]
    dtype: str
    kind: Kind = Kind.ACTIVATION
    stored: int | None = None
    compressed: bool = False

    def __post_init__(self) -> None:
        if any(extent < 0 for extent in self.shape):
            raise ValueError(f"tensor {self.name!r} has a negative extent in shape {list(self.shape)}")
        nbytes(self.dtype, ())

    @property
    def nbytes(self) -> int:
        """Bytes in memory, packed, before any padding."""
        return nbytes(self.dtype, self.shape)

    @property
    def file_bytes(self) -> int:
        """Bytes in the file, where a constant may be compressed."""
        return self.nbytes if self.stored is None else self.stored


def present(tensors: tuple[int, ...]) -> tuple[int, ...]:
    """The indices of an operator's tensors without the -1 that stand for absent ones."""
    return tuple(t for t in tensors if t >= 0) if -1 in tensors else tensors


@dataclass(frozen=True, slots=True)
class Op:
    """One operator: `inputs` and `outputs` are tensor indices, -1 stands for an absent optional one.

    `subgraphs` are the bodies that a control operator runs; what they read from outside stands behind the
    operator's own inputs. `scratch` is working memory in bytes, alive only while the operator runs.
    """

    name: str
    kind: str
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    attributes: tuple[tuple[str, Value], ...] = ()
    version: int = 1
    subgraphs: tuple[Graph, ...] = ()
    scratch: tuple[int, ...] = ()

    def attribute(self, name: str, default: Value | None = None) -> Value | None:
        """The attribute called `name`, or `default` where the file does not carry it."""
        for key, value in self.attributes:
            if key == name:
                return value
        return default

    @property
    def reads(self) -> tuple[int, ...]:
        """Distinct tensors read, in operand order, absent ones left out."""
        return present(self.inputs) if len(self.inputs) < 2 else tuple(dict.fromkeys(present(self.inputs)))

    @property
    def writes(self) -> tuple[int, ...]:
        """Tensors written, absent ones left out."""
        return present(self.outputs)


@dataclass(frozen=True, repr=False)
class Graph:
    """A model as a DAG of operators over tensors. `ops` stand in file order, which carries no promise.

    `fingerprint` is the SHA-256 of the file that the model was read from, in hexadecimal; empty for a body and where
    there was no file; `source` is the path of that file, which no plan remembers. Graphs are equal whatever files they
    come from. `stated` are the names of computed tensors, also in bodies, some extents of which no operator tells: the
    caller or the file states them, and a run may have others. `folded` is how many operators of the file are none here,
    since only constants feed them.

    Raises:
        ValueError: an index out of range, a tensor with two producers, a constant that is written,
            or a cycle.
    """

    name: str
    format: Literal["tflite", "onnx"]
    tensors: tuple[Tensor, ...]
    ops: tuple[Op, ...]
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    remarks: tuple[str, ...] = ()
    fingerprint: str = field(default="", compare=False)
    source: str = field(default="", compare=False)
    stated: tuple[tuple[str, tuple[int, ...]], ...] = field(default=(), compare=False)
    folded: int = field(default=0, compare=False)

    def __post_init__(self) -> None:
        self._check_indices()
        self._check_acyclic()

    def _check_indices(self) -> None:
        count = len(self.tensors)
        for where, indices in [("input", self.inputs), ("output", self.outputs)]:
            for t in indices:
                if not 0 <= t < count:
                    raise ValueError(f"graph {where} is tensor {t}, but there are {count} tensors")
        for index, op in enumerate(self.ops):
            for t in (*op.inputs, *op.outputs):
                if not -1 <= t < count:
                    raise ValueError(
                        f"op {index} {op.kind} {op.name!r} names tensor {t}, but there are {count} tensors"
                    )

    def _check_acyclic(self) -> None:
        if len(self.producers_first) < len(self.ops):
            import networkx as nx

            cycle = [f"op {edge[0]}" for edge in nx.find_cycle(self.dag)]
            more = f" -> {len(cycle) - 12} more" if len(cycle) > 12 else ""
            raise ValueError(f"operators form a cycle: {' -> '.join(cycle[:12])}{more}")

    def memoised(self, question: object, answer: Callable[[], Answer]) -> Answer:
        """The result of `answer`, from a cache of the last questions; equal questions must have equal answers."""
        for known, given in self._answers:
            if known == question:
                return cast(Answer, given)
        self._answers.append((question, answer()))
        return cast(Answer, self._answers[-1][1])

    def memoised_of(self, op: Op, question: object, answer: Callable[[], Answer]) -> Answer:
        """The result of `answer` about an operator of this graph, which is kept; that of another's is found anew."""
        known = self._known_of.get(id(op))
        if known is None:
            return answer()
        if question not in known:
            known[question] = answer()
        return cast(Answer, known[question])

    @cached_property
    def _known_of(self) -> dict[int, dict[object, object]]:
        return {id(op): {} for op in self.ops}

    @cached_property
    def _answers(self) -> deque[tuple[object, object]]:
        return deque(maxlen=_ANSWERS)

    def __getstate__(self) -> dict[str, object]:
        return {f.name: getattr(self, f.name) for f in fields(self)}

    @cached_property
    def first_alike(self) -> tuple[int, ...]:
        """For each op the first op with equal kind, attributes and operand types.

        Ops are alike that differ in nothing but name, version, bodies and scratch, and in which tensors of the same
        shape, data type and kind they read and write.
        """
        numbers: dict[tuple[tuple[int, ...], str, Kind], int] = {}
        forms = [numbers.setdefault((t.shape, t.dtype, t.kind), len(numbers)) for t in self.tensors]
        forms.append(-1)  # of an absent tensor, which has index -1
        first: dict[object, int] = {}
        return tuple(
            first.setdefault(
                (op.kind, op.attributes, tuple([forms[t] for t in op.inputs]), tuple([forms[t] for t in op.outputs])),
                index,
            )
            for index, op in enumerate(self.ops)
        )

    @cached_property
    def sizes(self) -> tuple[int, ...]:
        """The bytes of each tensor in memory: its `nbytes`."""
        return tuple(tensor.nbytes for tensor in self.tensors)

    @cached_property
    def kinds(self) -> frozenset[str]:
        """The kinds of operators that there are."""
        return frozenset(op.kind for op in self.ops)

    @cached_property
    def state(self) -> tuple[int, ...]:
        """The state tensors, ascending."""
        return tuple(t for t, tensor in enumerate(self.tensors) if tensor.kind is Kind.STATE)

    @cached_property
    def uses(self) -> tuple[IntArray, IntArray]:
        """Every operand and every result: the ops, and beside them the tensors; a tensor may be named twice."""
        sides = [side for op in self.ops for side in (op.inputs, op.outputs)]
        tensors = column(t for side in sides for t in side)
        ops = np.repeat(np.arange(len(sides)) // 2, [len(side) for side in sides])
        return ops[tensors >= 0], tensors[tensors >= 0]

    @cached_property
    def producers(self) -> tuple[int, ...]:
        """For each tensor the op that writes it, or -1 (inputs, constants, state)."""
        producers = [-1] * len(self.tensors)
        inputs = set(self.inputs)
        for index, op in enumerate(self.ops):
            for t in op.writes:
                if producers[t] >= 0 or t in inputs or self.tensors[t].kind is Kind.CONSTANT:
                    raise ValueError(
                        f"op {index} {op.kind} {op.name!r} writes tensor {t} {self.tensors[t].name!r},"
                        " which already has a value"
                    )
                producers[t] = index
        return tuple(producers)

    @cached_property
    def readers(self) -> tuple[tuple[int, ...], ...]:
        """For each tensor the ops that read it, ascending."""
        readers: list[list[int]] = [[] for _ in self.tensors]
        for index, op in enumerate(self.ops):
            for t in op.reads:
                readers[t].append(index)
        return tuple(map(tuple, readers))

    @cached_property
    def flows(self) -> dict[tuple[int, int], tuple[int, ...]]:
        """The edges of the DAG: for each pair (op, op that reads its results) the tensors that are handed on."""
        flows: dict[tuple[int, int], list[int]] = {}
        producers = self.producers
        for index, op in enumerate(self.ops):
            for t in op.reads:
                if producers[t] >= 0:
                    flows.setdefault((producers[t], index), []).append(t)
        return {edge: tuple(flow) for edge, flow in flows.items()}

    @cached_property
    def producers_first(self) -> Sequence[int]:
        """The ops so that producers precede readers: the file's order where it does, else the lowest index first."""
        if all(producer < reader for producer, reader in self.flows):
            return range(len(self.ops))
        waiting = [0] * len(self.ops)
        followers: list[list[int]] = [[] for _ in self.ops]
        for producer, reader in self.flows:
            waiting[reader] += 1
            followers[producer].append(reader)
        ready, order = [index for index, count in enumerate(waiting) if not count], []
        while ready:
            order.append(heappop(ready))
            for reader in followers[order[-1]]:
                waiting[reader] -= 1
                if not waiting[reader]:
                    heappush(ready, reader)
        return tuple(order)

    @cached_property
    def dag(self) -> nx.DiGraph[int]:
        """Frozen `networkx.DiGraph` over op indices; edge attribute `tensors` lists what flows along it.

        Made when it is first asked for: networkx takes longer to import than most models to plan.
        """
        import networkx as nx

        dag: nx.DiGraph[int] = nx.DiGraph()
        dag.add_nodes_from((i, {"kind": op.kind, "name": op.name}) for i, op in enumerate(self.ops))
        dag.add_edges_from((first, then, {"tensors": flow}) for (first, then), flow in self.flows.items())
        return nx.freeze(dag)

    @cached_property
    def bodies(self) -> tuple[Graph, ...]:
        """Every body that an operator runs, at any depth, once each and after the bodies that run it."""
        graphs: dict[int, Graph] = {}
        done: dict[int, Graph] = {}
        pending = [self]
        while pending:
            top = pending[-1]
            graphs[id(top)] = top
            inner = [body for op in top.ops for body in op.subgraphs if id(body) not in graphs]
            pending += inner
            if not inner:
                done.setdefault(id(pending.pop()), top)
        return tuple(reversed(done.values()))[1:]

    def __repr__(self) -> str:
        return f"<Graph {self.name!r} ({self.format}): {len(self.ops)} ops, {len(self.tensors)} tensors>"

    def label(self, op: int) -> str:
        """How messages and charts call an op: index, kind, and the name where it has one."""
        name = self.ops[op].name
        return f"op {op} {self.ops[op].kind}" + (f" {name!r}" if name else "")

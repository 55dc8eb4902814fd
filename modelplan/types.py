"""Every noun of modelplan on one page: frozen, in bytes and half-open steps, neighbours by index, nothing derived.

Graph --order--> Schedule --buffers--> Problem --place--> Placement;  a Plan remembers all four.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from enum import StrEnum
from functools import cached_property
from heapq import heappop, heappush
from typing import TYPE_CHECKING, Any, Literal, TypeVar, cast, get_args

import numpy as np
import numpy.typing as npt

from modelplan import _core
from modelplan.dtypes import nbytes

if TYPE_CHECKING:
    import networkx as nx

IntArray = npt.NDArray[np.int64]
BoolArray = npt.NDArray[np.bool_]
Padding = Literal["tensor", "arena"]
#: Why a search came back; `Placement` says what each word means.
Ended = Literal["complete", "optimal", "fits", "infeasible", "budget", "deadline", "cancelled", "memory"]
#: The answers that a graph keeps, see `Graph.once`.
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
    """

    name: str
    shape: tuple[int, ...]
    dtype: str
    kind: Kind = Kind.ACTIVATION
    stored: int | None = None

    def __post_init__(self) -> None:
        if any(extent < 0 for extent in self.shape):
            raise ValueError(f"tensor {self.name!r} has a negative extent in shape {list(self.shape)}")
        nbytes(self.dtype, ())

    @property
    def nbytes(self) -> int:
        """Bytes in memory, packed, before any padding."""
        return nbytes(self.dtype, self.shape)


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
    come from.

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

    def once(self, question: object, answer: Callable[[], Answer]) -> Answer:
        """What `answer` gives, kept for the questions that were asked last: equal ones must have equal answers."""
        for known, given in self._answers:
            if known == question:
                return cast(Answer, given)
        self._answers.append((question, answer()))
        return cast(Answer, self._answers[-1][1])

    @cached_property
    def _answers(self) -> deque[tuple[object, object]]:
        return deque(maxlen=_ANSWERS)

    def __getstate__(self) -> dict[str, Any]:
        return {f.name: getattr(self, f.name) for f in fields(self)}

    @cached_property
    def alike(self) -> tuple[int, ...]:
        """For each op the first op that it is like.

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
        found: dict[int, Graph] = {}
        done: dict[int, Graph] = {}
        pending = [self]
        while pending:
            top = pending[-1]
            found[id(top)] = top
            inner = [body for op in top.ops for body in op.subgraphs if id(body) not in found]
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


@dataclass(frozen=True, slots=True)
class Storage:
    """Bytes that an order keeps alive from the first of `writers` to the last of `readers` (ops).

    `from_start`: alive before any op runs; `to_end`: alive after the last.
    """

    size: int
    writers: tuple[int, ...]
    readers: tuple[int, ...]
    from_start: bool = False
    to_end: bool = False


@dataclass(frozen=True, slots=True)
class Overwrite:
    """Op `op` may write storage `to` over storage `over` when that dies there, which saves `saved` bytes."""

    op: int
    over: int
    to: int
    saved: int


@dataclass(frozen=True, slots=True)
class OrderProblem:
    """All that decides the peak of an order: storages, bytes of scratch by op, and the overwrites that are allowed.

    `edges` are pairs (before, after) of ops that an order has to keep.
    """

    ops: int
    storages: tuple[Storage, ...]
    scratch: tuple[int, ...]
    edges: tuple[tuple[int, int], ...]
    overwrites: tuple[Overwrite, ...] = ()


@dataclass(frozen=True, slots=True)
class Transfer:
    """`amount` bytes of flow from op `source` to op `sink` through storage `storage`.

    Storage -1 is a precedence: any amount may pass from an op back to its predecessor. Source -1 is the graph's
    input, sink -1 its output.
    """

    source: int
    sink: int
    storage: int
    amount: int


@dataclass(frozen=True, slots=True)
class FlowCase:
    """One way for the critical op to run: the storages `dying` are overwritten there, which saves `saved` bytes."""

    dying: tuple[int, ...]
    saved: int
    flow: tuple[Transfer, ...]


@dataclass(frozen=True, slots=True)
class Witness:
    """Every order has at least `bytes` in use while `op` runs, whichever case applies.

    Op -1 stands for the time before the first op or after the last, whichever holds more; it needs no flow.
    """

    op: int = -1
    bytes: int = 0
    cases: tuple[FlowCase, ...] = ()


@dataclass(frozen=True, slots=True)
class Schedule:
    """An execution order: `order[step]` is an op index.

    `peak` is the most bytes alive at once in this order; `lower_bound` holds for every order of the graph;
    `method` names who found the order and `proof` what the bound rests on. `witness` proves its part of the
    bound to a checker that knows nothing of the search.
    """

    order: tuple[int, ...]
    peak: int
    lower_bound: int
    method: str
    proof: str = ""
    witness: Witness = Witness()

    @property
    def optimal(self) -> bool:
        """Whether no order has a lower peak."""
        return self.peak == self.lower_bound

    @property
    def gap(self) -> float:
        """How far the peak is above the bound, as a share of the bound."""
        return (self.peak - self.lower_bound) / self.lower_bound if self.lower_bound else 0.0


@dataclass(frozen=True, slots=True)
class Member:
    """A tensor inside a buffer, `delta` bytes after the buffer's start."""

    tensor: int
    delta: int = 0


@dataclass(frozen=True, slots=True)
class Merge:
    """Tensor `tensor` shares the memory of tensor `into` at op `op`, by `rule`, which saves `saved` bytes."""

    tensor: int
    into: int
    op: int
    rule: str
    saved: int


@dataclass(frozen=True, slots=True)
class Offer:
    """Op `op` may write tensor `tensor` over tensor `over`, `rule` says why, if nothing reads `over`'s class later."""

    op: int
    tensor: int
    over: int
    rule: str


@dataclass(frozen=True, slots=True)
class Overlap:
    """While op `op` runs, tensor `tensor` may reach into the bytes of tensor `over` if it starts `lead` bytes before.

    At least `lead` bytes: the more, the fewer are shared. `rule` says why; `declared`: no table
    knows it, the caller answers for it.
    """

    op: int
    tensor: int
    over: int
    lead: int
    rule: str
    declared: bool = False


@dataclass(frozen=True, slots=True)
class Aliases:
    """Which tensors share memory: each class becomes one buffer, each merge is the reason for one shared tensor.

    `offers` are the merges that depend on the order; they are taken or left once it is known.
    """

    classes: tuple[tuple[Member, ...], ...]
    merges: tuple[Merge, ...] = ()
    offers: tuple[Offer, ...] = ()

    @property
    def class_of(self) -> dict[int, int]:
        """The class of each tensor that has memory."""
        return {m.tensor: number for number, members in enumerate(self.classes) for m in members}


class BufferKind(StrEnum):
    """What a buffer is for."""

    TENSOR = "tensor"
    """Holds tensors, or whatever a row of a table without a graph stands for."""
    SCRATCH = "scratch"
    """Working memory of an operator: holds no tensor."""


@dataclass(frozen=True, slots=True)
class Buffer:
    """One block of memory, alive in steps [start, end). `pin` is the offset it must have, if any."""

    name: str
    size: int
    start: int
    end: int
    alignment: int = 1
    pin: int | None = None
    members: tuple[Member, ...] = ()
    kind: BufferKind = BufferKind.TENSOR

    def __post_init__(self) -> None:
        if self.size < 0 or self.start < 0 or self.end <= self.start:
            raise ValueError(
                f"buffer {self.name!r} needs size >= 0 and 0 <= start < end,"
                f" found size {self.size}, lifetime [{self.start}, {self.end})"
            )
        if self.alignment < 1:
            raise ValueError(f"buffer {self.name!r} needs an alignment of at least 1, found {self.alignment}")
        if self.pin is not None and (self.pin < 0 or self.pin % self.alignment):
            raise ValueError(
                f"buffer {self.name!r} is pinned at {self.pin}, expected a non-negative"
                f" multiple of its alignment {self.alignment}"
            )


def column(values: Iterable[int]) -> IntArray:
    """A read-only int64 column.

    Raises:
        ValueError: a number that does not fit.
    """
    try:
        found = np.array(values if isinstance(values, np.ndarray) else list(values), dtype=np.int64)
    except OverflowError:
        raise ValueError("a number does not fit in 63 bits") from None
    found.flags.writeable = False
    return found


def _rows(values: Iterable[Sequence[int]], width: int) -> IntArray:
    """A read-only table of `width` columns, possibly without rows."""
    table = np.array(values if isinstance(values, np.ndarray) else list(values), dtype=np.int64)
    table = table.reshape(-1, width)
    table.flags.writeable = False
    return table


def _same(a: object, b: object) -> bool:
    """Field-wise equality of two dataclasses that hold arrays."""
    pairs = [(getattr(a, f.name), getattr(b, f.name)) for f in fields(a)]  # type: ignore[arg-type]
    return all(np.array_equal(x, y) if isinstance(x, np.ndarray) else x == y for x, y in pairs)


@dataclass(frozen=True, eq=False, repr=False)
class Problem:
    """Which buffers need an address: one column per property, so that a million of them cost little.

    Args:
        names: one for each buffer.
        size: bytes.
        start: the first step at which it is alive.
        end: the step from which it is not.
        alignment: each offset is a multiple of its own; all 1 when left out.
        pin: the offset a buffer must have, -1 where it is free; all free when left out.
        capacity: bytes there are, or None to ask for the least.
        overlaps: rows (below, above, bytes): buffer `below` may reach up to `bytes` into the start of
            buffer `above` although both are alive; of several rows for a pair the largest counts.
        conflicts: rows (a, b) of buffers that must not share bytes although their lifetimes are apart.
        groups: rows (buffer, group, delta) of rigid groups: buffer `buffer` stands `delta` bytes above the base of its
            group, wherever that is; buffers without a row stand alone.
        meetings: rows (a, b, least, most) of buffers that may share bytes although both are alive, where the offset of
            `a` less that of `b` is at least `least` and at most `most`.
        contiguous: lists of buffers that stand side by side in this order: each begins where the one before ends,
            rounded up to their alignment, which all of a list have in common. Each keeps its own lifetime.
        members: the tensors inside each buffer; empty when the problem came without a graph.
        kinds: what each buffer is for; empty when all hold tensors.

    Raises:
        ValueError: columns of different length, a buffer that `Buffer` would refuse, a pair that may overlap and
            conflicts, a buffer in two groups or contiguous lists, or a contiguous list with an empty buffer or
            with different alignments.
    """

    names: tuple[str, ...]
    size: IntArray
    start: IntArray
    end: IntArray
    alignment: IntArray = field(default_factory=lambda: column(()))
    pin: IntArray = field(default_factory=lambda: column(()))
    capacity: int | None = None
    overlaps: IntArray = field(default_factory=lambda: _rows((), 3))
    conflicts: IntArray = field(default_factory=lambda: _rows((), 2))
    groups: IntArray = field(default_factory=lambda: _rows((), 3))
    meetings: IntArray = field(default_factory=lambda: _rows((), 4))
    members: tuple[tuple[Member, ...], ...] = ()
    kinds: tuple[BufferKind, ...] = ()
    contiguous: tuple[tuple[int, ...], ...] = ()

    def __post_init__(self) -> None:
        n = len(self.names)
        defaults = {"alignment": 1, "pin": -1}
        for name in ("size", "start", "end", "alignment", "pin"):
            given = getattr(self, name)
            if name in defaults and not len(given) and n:
                given = np.full(n, defaults[name], dtype=np.int64)
            object.__setattr__(self, name, column(given))
            if getattr(self, name).shape != (n,):
                raise ValueError(f"column {name} has {len(given)} rows, expected {n}")
        object.__setattr__(self, "overlaps", _rows(self.overlaps, 3))
        object.__setattr__(self, "conflicts", _rows(self.conflicts, 2))
        object.__setattr__(self, "groups", _rows(self.groups, 3))
        object.__setattr__(self, "meetings", _rows(self.meetings, 4))
        for name in ("members", "kinds"):
            if len(getattr(self, name)) not in (0, n):
                raise ValueError(f"{name} of {len(getattr(self, name))} buffers given, expected {n}")
        if set(self.kinds) == {BufferKind.TENSOR}:
            object.__setattr__(self, "kinds", ())
        if self.capacity is not None and self.capacity < 0:
            raise ValueError(f"capacity is {self.capacity}, expected at least 0")
        self._check_rows()

    def _check_rows(self) -> None:
        """Raises what `Buffer` raises for the first bad row; checks what only the columns show."""
        bad = (self.size < 0) | (self.start < 0) | (self.end <= self.start) | (self.alignment < 1)
        bad |= (self.pin < -1) | ((self.pin >= 0) & (self.pin % np.maximum(self.alignment, 1) != 0))
        if bad.any():
            _ = self[int(np.argmax(bad))]
            raise ValueError(f"buffer {self.names[int(np.argmax(bad))]!r} is malformed")
        total = self.size.sum(dtype=np.float64) + self.alignment.sum(dtype=np.float64) + self.pin.max(initial=0)
        if float(total) > 2**62:
            raise ValueError("the sizes and the highest pin add up to more than 2^62 bytes")
        n = len(self)
        pairs = ("overlap", self.overlaps[:, :2]), ("conflict", self.conflicts), ("meeting", self.meetings[:, :2])
        for what, table in (*pairs, ("group", self.groups[:, :1])):
            if table.size and (table.min() < 0 or table.max() >= n):
                raise ValueError(f"a row of {what}s names a buffer outside 0..{n - 1}")
        below, above, shared = self.overlaps.T
        if self.overlaps.size and (shared.min() < 0 or (shared > self.size[below]).any()):
            raise ValueError("an overlap of negative bytes, or of more bytes than its lower buffer has")
        self._check_groups()
        self._check_contiguous()
        if len(self.overlaps) and len(self.conflicts):
            apart = {frozenset(row) for row in self.conflicts.tolist()}
            for a, b, count in zip(below.tolist(), above.tolist(), shared.tolist(), strict=True):
                if count and frozenset((a, b)) in apart:
                    raise ValueError(
                        f"buffers {self.names[a]!r} and {self.names[b]!r} may overlap and must not share bytes"
                    )

    def _check_groups(self) -> None:
        """Raises where a buffer is in two groups, or a distance makes no sense."""
        buffers, numbers, deltas = self.groups.T
        if self.groups.size and (numbers.min() < 0 or deltas.min() < 0 or deltas.max() > 2**60):
            raise ValueError("a row of groups needs a group and a delta of at least 0, of at most 2^60")
        if len(buffers) and len(np.unique(buffers)) != len(buffers):
            found, counts = np.unique(buffers, return_counts=True)
            raise ValueError(f"buffer {self.names[int(found[np.argmax(counts)])]!r} is in two groups")
        first, second, least, most = self.meetings.T
        if self.meetings.size and ((first == second).any() or (least > most).any() or np.abs(least).max() > 2**60):
            raise ValueError("a meeting needs two buffers and distances with least <= most")

    def _check_contiguous(self) -> None:
        """Raises where a contiguous list cannot be one."""
        taken = set(self.groups[:, 0].tolist()) if self.contiguous else set()
        for members in self.contiguous:
            if len(members) < 2:
                raise ValueError("a contiguous list needs at least two buffers")
            for b in members:
                if not 0 <= b < len(self):
                    raise ValueError(f"a contiguous list names a buffer outside 0..{len(self) - 1}")
                if b in taken:
                    raise ValueError(f"buffer {self.names[b]!r} is in two contiguous lists, or in one and in a group")
                if not self.size[b]:
                    raise ValueError(f"buffer {self.names[b]!r} of a contiguous list is empty")
                if self.alignment[b] != self.alignment[members[0]]:
                    first = members[0]
                    raise ValueError(
                        f"buffers {self.names[first]!r} and {self.names[b]!r} of one contiguous list have alignments"
                        f" {self.alignment[first]} and {self.alignment[b]}, expected one for the list"
                    )
                taken.add(b)

    @classmethod
    def of(cls, buffers: Iterable[Buffer], capacity: int | None = None, **facts: Any) -> Problem:
        """The problem of placing these buffers; `facts` are columns of facts, such as `overlaps`."""
        rows = tuple(buffers)
        return cls(
            names=tuple(b.name for b in rows),
            size=column(b.size for b in rows),
            start=column(b.start for b in rows),
            end=column(b.end for b in rows),
            alignment=column(b.alignment for b in rows),
            pin=column(-1 if b.pin is None else b.pin for b in rows),
            capacity=capacity,
            members=tuple(b.members for b in rows) if any(b.members for b in rows) else (),
            kinds=tuple(b.kind for b in rows),
            **facts,
        )

    @cached_property
    def core(self) -> _core.Problem:
        """The columns as the core reads them, without a copy."""
        facts = self.overlaps, self.conflicts, self.rigid, self.meetings
        return _core.Problem(self.size, self.start, self.end, self.alignment, self.pin, *facts)

    @cached_property
    def rigid(self) -> IntArray:
        """The rows of `groups`, and those of contiguous lists: a list is a group whose distances are known."""
        rows = self.groups.tolist()
        number = int(self.groups[:, 1].max(initial=-1)) + 1
        for members in self.contiguous:
            at, step = 0, int(self.alignment[members[0]])
            for b in members:
                rows.append([b, number, at])
                at += -(-int(self.size[b]) // step) * step
            number += 1
        return _rows(rows, 3)

    def __getstate__(self) -> dict[str, Any]:
        return {f.name: getattr(self, f.name) for f in fields(self)}

    def __repr__(self) -> str:
        capacity = "" if self.capacity is None else f", capacity {self.capacity}"
        return f"<Problem: {len(self)} buffers, {int(self.size.sum())} bytes together{capacity}>"

    def __len__(self) -> int:
        return len(self.names)

    def __getitem__(self, i: int) -> Buffer:
        pin = int(self.pin[i])
        return Buffer(
            self.names[i],
            int(self.size[i]),
            int(self.start[i]),
            int(self.end[i]),
            int(self.alignment[i]),
            None if pin == -1 else pin,
            self.members[i] if self.members else (),
            self.kinds[i] if self.kinds else BufferKind.TENSOR,
        )

    def __iter__(self) -> Iterator[Buffer]:
        return map(self.__getitem__, range(len(self)))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Problem) and _same(self, other)

    __hash__ = None  # type: ignore[assignment]

    @property
    def is_scratch(self) -> BoolArray:
        """For each buffer whether it is working memory of an operator."""
        kinds = self.kinds or (BufferKind.TENSOR,) * len(self)
        return np.array([kind is BufferKind.SCRATCH for kind in kinds], dtype=np.bool_)


@dataclass(frozen=True, eq=False)
class Placement:
    """An offset for each buffer of a problem, in the problem's order.

    `lower_bound` is a claim with a proof behind it: no placement is lower. `steps` is the work done, in a unit of the
    allocator's own. `ended` says why the allocator came back:

    - "complete": the method ran through; it claims no more than its bound.
    - "optimal": the height meets the bound, so no placement is lower.
    - "fits": the height meets what was asked for (the budget's `enough`), and lower ones were not looked for.
    - "infeasible": it is proved that nothing fits in what was asked for; the offsets are those of a higher placement.
    - "budget": out of steps.
    - "deadline": out of seconds.
    - "cancelled": Ctrl-C; the offsets are the best found until then.
    - "memory": out of memory for what it has to remember (the search for orders alone ends so).

    `found_by` names another allocator whose offsets these are, because a search had no lower ones of its own;
    `own_height` is then the height of its own best placement, None when it had none.
    """

    offsets: IntArray
    lower_bound: int = 0
    ended: Ended = "complete"
    steps: int = 0
    found_by: str = ""
    own_height: int | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "offsets", column(self.offsets))
        if self.ended not in get_args(Ended):
            raise ValueError(f"a placement that ended {self.ended!r}, expected one of {', '.join(get_args(Ended))}")

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Placement) and _same(self, other)

    __hash__ = None  # type: ignore[assignment]


@dataclass(frozen=True, slots=True)
class Progress:
    """What a running search reports: best height and bound so far, in bytes, and the steps it took."""

    height: int
    lower_bound: int
    steps: int


@dataclass(frozen=True, slots=True)
class Budget:
    """How long a search may run. Steps make it repeatable; seconds are an extra stop.

    `enough` is a height in bytes that ends the search: who asks whether a capacity suffices need not wait for the
    least. `progress`, when given, is called now and then with the best so far.
    """

    steps: int | None = None
    seconds: float | None = None
    seed: int = 0
    threads: int = 1
    enough: int | None = None
    progress: Callable[[Progress], None] | None = None

    def __post_init__(self) -> None:
        if (self.steps is not None and self.steps < 0) or (self.seconds is not None and not self.seconds >= 0):
            raise ValueError("a budget cannot be negative, nor NaN")
        if self.threads < 1:
            raise ValueError(f"{self.threads} threads, expected at least 1")


#: Bytes of each working buffer that the kernel of an operator asks for: graph, operator, kernel library.
ScratchSizes = Callable[[Graph, Op, str], tuple[int, ...]]


@dataclass(frozen=True, slots=True)
class InPlace:
    """Kernels that may write output 0 over one of `operands`, by number, for `dtypes` (none listed: every type)."""

    operands: tuple[int, ...]
    dtypes: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Sharing:
    """Which tensors a runtime lets share memory, by operator kind.

    What the runtime does by itself, mode `runtime`: `views` (the output keeps the bytes of the input) and `overwrites`
    (the output takes the bytes of one of these operands). With `at_graph_ends` graph inputs and outputs take part, with
    `sole_reader` only operands that one operator reads, with `same_shape` only tensors of equal shape, and from
    `least_bytes` up. A runtime with `overwrites` is planned in mode `safe` unless the caller names a mode, one without
    in mode `views`.

    What a plan may ask of it in mode `safe`, because its kernels were executed so with equal results: `proved` is the
    output over an operand; `front_to_back`, by data types of the operand, is the output running into operand 0, or
    into any operand of a join. Neither table is a part of the other.
    """

    views: frozenset[str] = frozenset()
    overwrites: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    at_graph_ends: bool = False
    sole_reader: bool = False
    same_shape: bool = False
    least_bytes: int = 0
    proved: Mapping[str, InPlace] = field(default_factory=dict)
    front_to_back: Mapping[str, frozenset[str]] = field(default_factory=dict)
    source: str = ""


@dataclass(frozen=True, slots=True)
class Part:
    """One part of the memory that a model needs: bytes, allocations (0: not counted), how far to trust the figure."""

    name: str
    nbytes: int
    count: int = 0
    trust: str = "exact"


@dataclass(frozen=True, slots=True)
class Requirement:
    """What a model file needs on a runtime as it stands, in bytes.

    `arena` is the memory that there must be, the sum of `parts`; `head` is the planned part of it: tensors and scratch.
    `basis` says in one line for which target and by which sources. `macro` names the constant that declares the arena
    in firmware; it is empty where the runtime takes its memory by itself. `refusals` name the operators that the
    runtime would not run, with the reasons; the figures of a refused model count for nothing.
    """

    arena: int
    head: int
    parts: tuple[Part, ...]
    basis: str
    macro: str = ""
    refusals: tuple[str, ...] = ()

    @property
    def kept(self) -> int:
        """Bytes that the runtime takes of the same memory beside the planned part; 0 of a model that it refuses."""
        return self.arena - self.head if self.macro and not self.refusals else 0

    def fits(self, budget: int) -> bool:
        """Whether the runtime runs the model in `budget` bytes; one that it refuses fits nowhere."""
        return not self.refusals and self.arena <= budget


@dataclass(frozen=True, slots=True)
class Alternative:
    """A file that modelplan makes of a model: what changes, the commands that write it, what it needs, its bytes.

    Without a requirement there is no such file, and `refusal` says why; or, with an empty `refusal`, nothing was made
    because it can need no less than the model as it stands.
    """

    change: str
    commands: tuple[str, ...]
    requirement: Requirement | None
    refusal: str = ""
    file_bytes: int = 0


#: What a model file needs on a runtime: content of the file, its name, the ABI and the kernel library by name.
Requires = Callable[[bytes, str, str, str], Requirement]
#: What a runtime keeps for each operator of a model file besides what it plans, in bytes; the same arguments.
Keeps = Callable[[bytes, str, str, str], tuple[int, ...]]


@dataclass(frozen=True, slots=True)
class KernelLibrary:
    """One library of kernels that a runtime can be built with; `explains` says in a line which kernels these are.

    `sequential`: a kernel finishes one element of its output after the other, front to back, so that the output may
    run into an operand; with `plain_loops` convolutions and matrix products do so too. `leads` are the operators whose
    kernels have an order of their own: by how many bytes output 0 must start before an operand that it overlaps, given
    graph, operator and operand; None where it must not. `packable`: modelplan may write plans for it into a model
    file.
    """

    name: str
    explains: str
    sequential: bool = False
    plain_loops: bool = False
    leads: Mapping[str, Callable[[Graph, Op, int], int | None]] = field(default_factory=dict, repr=False)
    packable: bool = True


@dataclass(frozen=True, slots=True)
class Runtime:
    """What a runtime does with memory: facts, each with its source.

    Args:
        name: what `--runtime` calls it.
        alignment: bytes that each offset is a multiple of.
        pad: what is rounded up to `alignment`: the size of every tensor, or only the arena.
        state: whether state tensors live in the planned arena or apart from it.
        allocator: the row of the table of allocators that is its own planner.
        source: where these facts stand.
        inputs: whether graph inputs die with their last reader or live to the end.
        outputs: whether graph inputs and outputs lie in the arena or apart from it.
        scratch: returns the bytes of each working buffer that the kernel of an operator asks for, given the graph,
            the operator and the name of the kernel library; None where working memory is not planned.
        kernels: the name of the kernel library in use.
        unpacked: the 4-bit data types that take a byte each in its memory.
        sharing: which tensors may share memory.
        libraries: the kernel libraries that there are; the first is the usual one.
        default_for: the file format that is planned for this runtime unless the caller names another.
        requires: returns what a model file needs in all, given its content, its name, the name of the ABI and that of
            the kernel library; None where only the planned part is known.
        keeps: returns what of that is each operator's own, the same way; None where that is not known.
        offline_plans: whether it obeys a plan in the metadata of the file.
        sorts: whether it sorts the operators by itself, whatever their order in the file.
        runs: the file formats that it takes as they are; none for a runtime that a compiler feeds.

    Raises:
        ValueError: `kernels` is none of `libraries`.
    """

    name: str
    alignment: int
    pad: Padding
    state: Literal["arena", "separate"]
    allocator: str
    source: str
    inputs: Literal["dying", "live"] = "dying"
    outputs: Literal["arena", "apart"] = "arena"
    scratch: ScratchSizes | None = None
    kernels: str = "reference"
    unpacked: tuple[str, ...] = ()
    sharing: Sharing = Sharing()
    libraries: tuple[KernelLibrary, ...] = (KernelLibrary("reference", "the runtime's own"),)
    default_for: str = ""
    requires: Requires | None = None
    keeps: Keeps | None = None
    offline_plans: bool = False
    sorts: bool = False
    runs: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if self.kernels not in self.library_names:
            raise ValueError(f"no kernels {self.kernels!r}; there are: {', '.join(self.library_names)}")

    @property
    def library(self) -> KernelLibrary:
        """The kernel library in use."""
        return self.libraries[self.library_names.index(self.kernels)]

    @property
    def library_names(self) -> tuple[str, ...]:
        """The names of the kernel libraries that there are."""
        return tuple(library.name for library in self.libraries)


@dataclass(frozen=True, repr=False)
class Plan:
    """The whole answer: what was asked, what was decided, what came out. Nothing in it follows from the rest.

    `overlaps` are the partial overlaps that the problem allows, whether the placement uses them or not.
    `runtime_height` is what the runtime by itself needs for the same graph, in bytes: in the file's order, with the
    sharing that it does of its own accord, placed by its own allocator. None: not known.
    `banks` are the banks of the memory that the plan is for, with the bytes from the start of the arena to theirs.
    `requirement` is what the model's file needs on the runtime as it stands, which tells what the runtime keeps beside
    the planned part; None: not known, and only the planned part counts.
    `streams` is the stream of each operator of the graph; empty where they run one after the other.
    """

    graph: Graph
    schedule: Schedule
    merges: tuple[Merge, ...]
    problem: Problem
    placement: Placement
    runtime: Runtime
    allocator: str
    alias: str
    made_by: str
    overlaps: tuple[Overlap, ...] = ()
    runtime_height: int | None = None
    banks: tuple[tuple[str, int], ...] = ()
    requirement: Requirement | None = None
    streams: tuple[int, ...] = ()

    def __repr__(self) -> str:
        ops, buffers = len(self.graph.ops), len(self.problem)
        return (
            f"<Plan of {self.graph.name!r}: {ops} ops, {buffers} buffers; runtime {self.runtime.name},"
            f" aliases {self.alias}, allocator {self.allocator}>"
        )

    def _repr_html_(self) -> str:
        """The plan in a notebook: figures and memory map."""
        from importlib import import_module  # by name: nothing here knows a later stage, and only notebooks ask

        html: str = import_module("modelplan.outputs.notebook").html_of(self)
        return html

"""What every figure shows, as plain data: a placed problem with a kind for each buffer and a name for each step.

A plan yields one, and so does a problem that came without a graph. Nothing here knows how it will be drawn.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from modelplan.answers.summary import summary
from modelplan.model import BoolArray, Buffer, BufferKind, Graph, IntArray, Kind, Placement, Plan, Problem, bounds
from modelplan.primitives.lazy_records import dataclass

if TYPE_CHECKING:
    from modelplan.answers.shared_plan import SharedPlan

#: Kinds of buffers in the order in which figures stack and list them.
KINDS = ("input", "output", "activation", "shared", "state", "scratch", "buffer")
#: Of how many buffers at most it is traced what is lost to fragmentation.
_MOST_TRACED = 10_000


@dataclass(frozen=True, eq=False)
class Drawing:
    """A placed problem with the words that a figure needs.

    `planned` are the bytes that the buffers need. `kinds` holds an index into `labels` for each buffer; `ops` the
    operator at each step, empty without a graph; `banks` the banks of the memory with the addresses at which they
    begin; `models` the names of several models, each with the first of its steps; `kept` the bytes that the runtime
    takes of the same memory beside what is drawn, and `declared` the whole arena of the unmodified file, both 0 where
    they are not known; `claimed` rows (first step, end, low address, end) of bytes that a model which may be active at
    the same time may use; `streams` the stream of the operator at each step, empty where they run one after the other.
    `basis` says in a line for which build of the runtime and which board the bytes hold; empty where nothing is known.
    """

    title: str
    problem: Problem
    placement: Placement
    planned: int
    kinds: IntArray
    ops: tuple[str, ...]
    made_by: str
    banks: tuple[tuple[str, int], ...] = ()
    labels: tuple[str, ...] = KINDS
    models: tuple[tuple[int, str], ...] = ()
    kept: int = 0
    declared: int = 0
    claimed: tuple[tuple[int, int, int, int], ...] = ()
    streams: tuple[int, ...] = ()
    basis: str = ""

    @property
    def room(self) -> int | None:
        """What of the capacity is left for what is drawn; None where there is no capacity."""
        capacity = self.problem.capacity
        return None if capacity is None else max(capacity - self.kept, 0)

    @property
    def steps(self) -> int:
        """How many steps the time axis has: at least 1."""
        return max(len(self.ops), int(self.problem.end.max(initial=1)))

    @property
    def height(self) -> int:
        """The end of the highest buffer."""
        return bounds.height(self.problem, self.placement)

    @property
    def lower_bound(self) -> int:
        """What no placement can beat."""
        return self.placement.lower_bound

    @property
    def peak_step(self) -> int:
        """The first step at which most bytes hold buffers; without buffers 0."""
        return self.peak_spans[0][0] if self.peak_spans else 0

    @property
    def peak(self) -> int:
        """The bytes that hold buffers at the peak step, without alignment; each counts once."""
        return int(live_by_kind(self)[1].sum(axis=0).max(initial=0))

    @property
    def at_peak(self) -> BoolArray:
        """For each buffer whether it is alive at a step at which as much is alive as at the peak step."""
        spans = np.array(self.peak_spans, dtype=np.int64).reshape(-1, 2)
        following = np.searchsorted(spans[:, 1], self.problem.start, side="right")
        begins = np.append(spans[:, 0], np.iinfo(np.int64).max)
        return begins[following] < self.problem.end

    @cached_property
    def peak_spans(self) -> tuple[tuple[int, int], ...]:
        """The half-open runs of steps at which as much is alive as at the peak step."""
        if not len(self.problem):
            return ()
        times, live = live_by_kind(self)
        even = live.sum(axis=0)[:-1] == self.peak
        spans: list[tuple[int, int]] = []
        for first, last in zip(times[:-1][even].tolist(), times[1:][even].tolist(), strict=True):
            if spans and spans[-1][1] == first:
                first = spans.pop()[0]
            spans.append((first, last))
        return tuple(spans)

    @property
    def excess(self) -> int:
        """Planned bytes beyond the room there is; 0 when it fits or there is no capacity."""
        return 0 if self.room is None else max(self.planned - self.room, 0)


def of_plan(plan: Plan) -> Drawing:
    """The drawing of a plan: kinds from the graph, operators from the schedule."""
    graph, problem = plan.graph, plan.problem
    kinds = [KINDS.index(kind_of(graph, buffer)) for buffer in problem]
    return Drawing(
        title=graph.name,
        problem=problem,
        placement=plan.placement,
        planned=summary(plan).planned,
        kinds=np.array(kinds, dtype=np.int64),
        ops=tuple(graph.ops[index].kind for index in plan.schedule.order),
        made_by=plan.made_by,
        banks=plan.banks,
        kept=plan.requirement.kept if plan.requirement else 0,
        declared=plan.requirement.arena if plan.requirement and plan.requirement.kept else 0,
        streams=tuple(plan.streams[index] for index in plan.schedule.order) if plan.streams else (),
        basis=plan.requirement.basis if plan.requirement and plan.requirement.macro else f"for {plan.runtime.name}",
    )


def of_shared(plan: SharedPlan) -> Drawing:
    """The drawing of several models in one memory: a kind for each model, for what is handed on, and for what stays."""
    names = tuple(part.name for part in plan.parts)
    end = int(plan.problem.end.max(initial=1))
    handed, always = len(names), len(names) + 1
    kinds = [handed if len({owned.model for owned in owners}) > 1 else owners[0].model for owners in plan.owners]
    kinds = [always if b.start == 0 and b.end == end else kind for b, kind in zip(plan.problem, kinds, strict=True)]
    labels = [plan.parts[group[0].model].problem.names[group[0].buffer] for group in plan.owners]
    return Drawing(
        title=", ".join(names),
        problem=replace(plan.problem, names=tuple(labels)),
        placement=plan.placement,
        planned=plan.memory,
        kinds=np.array(kinds, dtype=np.int64),
        ops=(),
        made_by=plan.made_by,
        labels=(*names, "handed from model to model", "kept all the time"),
        models=tuple((plan.starts[m], names[m]) for m in plan.relation.order),
        claimed=tuple(_claims(plan)),
        basis="; ".join(dict.fromkeys(f"for {p.runtime.name}, {p.runtime.library.name} kernels" for p in plan.parts)),
    )


def _claims(plan: SharedPlan) -> Iterator[tuple[int, int, int, int]]:
    """For each model the bytes of each other model that may be active while it is, for the steps of the one."""
    ranges = []
    for m, part in enumerate(plan.parts):
        used = [
            (at, at + size) for at, size in zip(plan.offsets_of(m), part.problem.size.tolist(), strict=True) if size
        ]
        ranges.append((min((low for low, _ in used), default=0), max((high for _, high in used), default=0)))
    order = plan.relation.order
    ends = [*(plan.starts[m] for m in order[1:]), max(int(plan.problem.end.max(initial=1)), 1)]
    for m, end in zip(order, ends, strict=True):
        for other, (low, high) in enumerate(ranges):
            if low < high and not plan.relation.take_turns(m, other):
                yield plan.starts[m], end, low, high


def of_problem(title: str, problem: Problem, placement: Placement, made_by: str = "modelplan") -> Drawing:
    """The drawing of a problem that came without a graph: one kind, steps without names."""
    kinds = np.full(len(problem), KINDS.index("buffer"), dtype=np.int64)
    return Drawing(title, problem, placement, bounds.height(problem, placement), kinds, (), made_by)


def live_by_kind(drawing: Drawing) -> tuple[IntArray, IntArray]:
    """When the live bytes change, and how many of each kind there are from then on.

    Bytes that two buffers hold, where an operator writes over what it reads or joins parts in place, count for the one
    that was there first.

    Returns:
        `times`, ascending, from 0 to the end; `live` with a row for each kind and a column for each time.

    Cost: O(n log n) whatever the number of steps.
    """
    problem = drawing.problem
    times = np.unique(np.concatenate([[0, drawing.steps], problem.start, problem.end]))
    change = np.zeros((len(drawing.labels), len(times)), dtype=np.int64)
    np.add.at(change, (drawing.kinds, np.searchsorted(times, problem.start)), problem.size)
    np.add.at(change, (drawing.kinds, np.searchsorted(times, problem.end)), -problem.size)
    later, start, end, size = _bytes_of_two(drawing)
    np.add.at(change, (drawing.kinds[later], np.searchsorted(times, start)), -size)
    np.add.at(change, (drawing.kinds[later], np.searchsorted(times, end)), size)
    return times, np.cumsum(change, axis=1)


def _bytes_of_two(drawing: Drawing) -> tuple[IntArray, IntArray, IntArray, IntArray]:
    """Pairs of buffers that hold the same bytes while both are alive: the later one, both ends of that time, bytes."""
    problem, low = drawing.problem, drawing.placement.offsets
    pairs = np.concatenate([problem.overlaps[:, :2], problem.meetings[:, :2]])
    a, b = np.unique(np.sort(pairs, axis=1), axis=0).T
    high = low + problem.size
    size = np.minimum(high[a], high[b]) - np.maximum(low[a], low[b])
    start, end = np.maximum(problem.start[a], problem.start[b]), np.minimum(problem.end[a], problem.end[b])
    both = (size > 0) & (start < end)
    later = np.where(problem.start[a] > problem.start[b], a, b)
    return later[both], start[both], end[both], size[both]


def lost_areas(drawing: Drawing) -> list[tuple[int, int, int, int]]:
    """What is lost to fragmentation: free bytes below the lower bound while a buffer that fits into no gap lies above.

    With these bytes in one piece that buffer could lie lower. None is listed of more than 10,000 buffers, since each
    would be too small to see, and none that is smaller than the alignment.

    Returns:
        Rows of first step, end, low address, end.
    """
    problem, low = drawing.problem, drawing.placement.offsets
    bound = drawing.lower_bound
    rows = np.stack([problem.start, problem.end, low, low + problem.size], axis=1)[problem.size > 0]
    if not bound or len(problem) > _MOST_TRACED:
        return []
    rows = np.concatenate([rows, np.array(drawing.claimed, dtype=np.int64).reshape(-1, 4)])
    least = max(int(problem.alignment.max(initial=1)), 1)
    stuck = rows[[i for i in np.flatnonzero(rows[:, 3] > bound).tolist() if _is_stuck(rows, i, bound)]]
    areas: list[tuple[int, int, int, int]] = []
    since: dict[tuple[int, int], int] = {}
    for step in np.unique(rows[:, :2]).tolist():
        gaps: set[tuple[int, int]] = set()
        if ((stuck[:, 0] <= step) & (step < stuck[:, 1])).any():
            gaps = {gap for gap in _gaps(_alive(rows, step, step + 1), bound) if gap[1] - gap[0] >= least}
        areas += [(since.pop(gap), step, *gap) for gap in sorted(since.keys() - gaps)]
        since |= dict.fromkeys(gaps - since.keys(), step)
    return areas


def _is_stuck(rows: IntArray, i: int, bound: int) -> bool:
    """Whether no gap below the bound would hold a rectangle for as long as it lives."""
    start, end, low, high = rows[i].tolist()
    others = _alive(np.delete(rows, i, axis=0), start, end)
    return not any(top - bottom >= high - low for bottom, top in _gaps(others, bound))


def _alive(rows: IntArray, start: int, end: int) -> IntArray:
    """The rectangles that live in some of the steps."""
    chosen: IntArray = rows[(rows[:, 0] < end) & (start < rows[:, 1])]
    return chosen


def _gaps(alive: IntArray, bound: int) -> list[tuple[int, int]]:
    """The ranges of addresses below the bound that no rectangle takes."""
    alive = alive[np.argsort(alive[:, 2])]
    begins = np.concatenate([[0], np.maximum.accumulate(alive[:, 3])])
    ends = np.minimum(np.concatenate([alive[:, 2], [bound]]), bound)
    wide = ends > begins
    return list(zip(begins[wide].tolist(), ends[wide].tolist(), strict=True))


def kind_of(graph: Graph, buffer: Buffer) -> str:
    """What a buffer is called in a legend; the strongest claim on its memory decides."""
    tensors = [m.tensor for m in buffer.members]
    if buffer.kind is BufferKind.SCRATCH:
        return buffer.kind
    if any(graph.tensors[t].kind is Kind.STATE for t in tensors):
        return "state"
    if any(t in graph.inputs for t in tensors):
        return "input"
    if any(t in graph.outputs for t in tensors):
        return "output"
    return "shared" if len(tensors) > 1 else "activation"

"""The table of schedulers, and `order`, the only door to them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from modelplan import bounds, lifetimes
from modelplan.errors import RequestError
from modelplan.schedulers import simple
from modelplan.types import Aliases, Graph, Runtime, Schedule

Run = Callable[[Graph, Aliases, Runtime], tuple[int, ...]]


@dataclass(frozen=True, slots=True)
class Scheduler:
    """One row of the table: `run` returns op indices in execution order."""

    name: str
    run: Run
    notes: str


SCHEDULERS: dict[str, Scheduler] = {
    s.name: s
    for s in (
        Scheduler("file", simple.file_order, "the order of the file, where it is topological"),
        Scheduler("list", simple.list_order, "always the ready op that frees most and allocates least"),
    )
}

BEST = "best"


def order(graph: Graph, aliases: Aliases, runtime: Runtime, name: str = BEST) -> Schedule:
    """An execution order of `graph` by the scheduler `name`; `best` takes the one with the least peak.

    Raises:
        RequestError: unknown name; the message lists the names.
    """
    if name != BEST and name not in SCHEDULERS:
        raise RequestError(f"no schedule {name!r}; there are: {', '.join([BEST, *SCHEDULERS])}")
    rows = SCHEDULERS.values() if name == BEST else [SCHEDULERS[name]]
    candidates = [_schedule(graph, aliases, runtime, row) for row in rows]
    return min(candidates, key=lambda schedule: schedule.peak)


def peak(graph: Graph, sequence: Sequence[int], aliases: Aliases, runtime: Runtime) -> int:
    """The most bytes alive at once when the ops run in `sequence`."""
    problem = lifetimes.buffers(graph, sequence, aliases, runtime)
    return int(bounds.live_bytes(problem, max(len(sequence), 1)).max())


def op_bound(graph: Graph, aliases: Aliases, runtime: Runtime) -> int:
    """A bound for every order: the largest op, with all it reads and writes alive together."""
    size_of = {}
    for index, members in enumerate(aliases.classes):
        size = lifetimes.padded(lifetimes.class_bytes(graph, members), runtime)
        size_of.update({m.tensor: (index, size) for m in members})
    needs = [{size_of[t] for t in (*op.reads, *op.writes) if t in size_of} for op in graph.ops]
    return max((sum(size for _, size in need) for need in needs), default=0)


def _schedule(graph: Graph, aliases: Aliases, runtime: Runtime, row: Scheduler) -> Schedule:
    sequence = row.run(graph, aliases, runtime)
    return Schedule(
        sequence,
        peak(graph, sequence, aliases, runtime),
        min(op_bound(graph, aliases, runtime), peak(graph, sequence, aliases, runtime)),
        row.name,
        "the largest op",
    )

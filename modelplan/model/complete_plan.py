"""The whole answer for one model: graph, order, sharing, problem and placement, and how they were made."""

from __future__ import annotations

from modelplan.model.alias_classes import Merge, Overlap
from modelplan.model.graph import Graph
from modelplan.model.placement import Placement
from modelplan.model.problem import Problem
from modelplan.model.runtime_facts import Requirement, Runtime
from modelplan.model.schedule import Schedule
from modelplan.primitives.lazy_records import dataclass


@dataclass(frozen=True, repr=False)
class Plan:
    """The whole answer: what was asked, what was decided, what came out. Nothing in it follows from the rest.

    `overlaps` are the partial overlaps that the problem allows, whether the placement uses them or not.
    `runtime_height` is what the runtime by itself needs for the same graph, in bytes: in the file's order, with the
    sharing that it does by itself, placed by its own allocator. None: not known.
    `banks` are the banks of the memory that the plan is for, with the bytes from the start of the arena to theirs.
    `requirement` is what the unmodified file needs on the runtime, which tells what the runtime keeps beside
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

    @property
    def steps(self) -> int:
        """How many steps a run has: the operators, or all steps in which a buffer is alive."""
        return max(len(self.schedule.order), int(self.problem.end.max(initial=1)))

    def __repr__(self) -> str:
        ops, buffers = len(self.graph.ops), len(self.problem)
        return (
            f"<Plan of {self.graph.name!r}: {ops} ops, {buffers} buffers; runtime {self.runtime.name},"
            f" aliases {self.alias}, allocator {self.allocator}>"
        )

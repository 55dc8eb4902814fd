"""`solve`: where the buffers of a table, of an ExecuTorch program, or of a dump of XLA go."""

from __future__ import annotations

import math
from dataclasses import field, replace

import numpy as np

from modelplan.answers.placement_answers import Solution
from modelplan.checking import referee
from modelplan.formats import load_table
from modelplan.formats.buffer_table import BufferTable
from modelplan.model import Budget, Placement, Problem, bounds
from modelplan.planning.allocators import DEFAULT, place
from modelplan.planning.allocators.tied_buffers import colliding_pins
from modelplan.planning.keeping import keep_offsets
from modelplan.primitives.errors import BrokenPlanError, RequestError
from modelplan.primitives.lazy_records import dataclass
from modelplan.primitives.settled_requests import SettledRequest, answers_paths
from modelplan.questions.option_files import FROM_FILE, lists_of


@dataclass(frozen=True, slots=True)
class SolveRequest(SettledRequest):
    """Asks where the buffers of a file go.

    Args:
        path: a table of buffers as .csv, an ExecuTorch program as .pte, or XLA's NAME-buffer-assignment.txt.
        part: which memory of the program, or which allocation of the dump, where there are several.
        capacity: the bytes there are; None asks for the least.
        fixed: whether the offsets that the file states stay.
        contiguous: the file with lists of buffers that stand side by side.
        allocator: a name of `modelplan allocators`; `file` takes the offsets that the file states, checked.
        budget: how long the search may run, how it reports, and what cancels it.
        fragmentation: a search ends at so many times the load bound; None: as low as it can.
    """

    path: str
    part: str = ""
    capacity: int | None = None
    fixed: bool = False
    contiguous: str | None = None
    allocator: str = DEFAULT
    budget: Budget = field(default_factory=Budget)
    fragmentation: float | None = None


@answers_paths(SolveRequest)
def solve(request: SolveRequest) -> Solution:
    """The placement of the buffers in a file, refereed, beside the file's own.

    Args:
        request: the file, what has to be kept, and how long the search may run.

    Returns:
        The problem, its placement with a lower bound, and the plan that the file states.

    Raises:
        ModelError: the file cannot be read.
        RequestError: a part, list or offset that the file does not have, or that it does not go with.
        BrokenPlanError: the file's offsets are asked for and do not solve the problem.
    """
    return solution_of(load_table(request.path, request.part), request)


def solution_of(table: BufferTable, request: SolveRequest) -> Solution:
    """What `solve` answers, of a table that is read already.

    Raises:
        ModelError: the file of contiguous lists cannot be read.
        RequestError: as `solve`.
        BrokenPlanError: as `solve`.
    """
    problem = replace(table.problem, capacity=request.capacity)
    if request.fixed:
        problem = _with_fixed(problem, table)
    if request.contiguous:
        problem = _listed(problem, request.contiguous)
    if collision := colliding_pins(problem):
        raise RequestError(f"{table.path}: {collision}")
    planned, flaw = stated(problem, table)
    hints = table.offsets("hint")
    if request.allocator == FROM_FILE:
        if planned is None:
            if flaw:
                raise BrokenPlanError(f"{table.path}: {flaw}")
            raise RequestError(f"--allocator {FROM_FILE}: {table.path} has no column 'offset'")
        placement = planned
    else:
        budget = replace(request.budget, enough=_enough(problem, request.fragmentation))
        placement = place(problem, request.allocator, budget)
        if placement.ended == "infeasible":
            placement = _least(problem, request.allocator, budget, placement.lower_bound)
        if hints is not None:
            placement = keep_offsets(problem, hints, placement)
    return Solution(problem, placement, request.path, table.planner, planned, flaw, hints)


def _least(problem: Problem, allocator: str, budget: Budget, bound: int) -> Placement:
    """The lowest placement of a problem whose capacity is too small, which stays "infeasible"; `bound` is proved."""
    least = place(replace(problem, capacity=None), allocator, replace(budget, enough=None))
    return replace(least, ended="infeasible", lower_bound=max(least.lower_bound, bound))


def stated(problem: Problem, table: BufferTable) -> tuple[Placement | None, str]:
    """The offsets that the table states, with the load bound; or None and why they are no placement."""
    offsets = table.offsets("offset")
    if offsets is None:
        return None, ""
    placement = Placement(offsets)
    try:
        referee.check(replace(problem, capacity=None), placement)
    except BrokenPlanError as broken:
        return None, str(broken)
    return replace(placement, lower_bound=bounds.load_bound(problem)), ""


def _with_fixed(problem: Problem, table: BufferTable) -> Problem:
    """The problem in which the offsets of the table are pins."""
    offsets = table.offsets("offset")
    if offsets is None:
        raise RequestError(f"--fixed: {table.path} has no column 'offset'")
    try:
        return replace(problem, pin=np.where(offsets >= 0, offsets, problem.pin))
    except ValueError as reason:
        raise RequestError(f"--fixed: {reason}") from None


def _listed(problem: Problem, path: str) -> Problem:
    if problem.contiguous:
        raise RequestError(f"--contiguous {path}: the table states lists itself, in its column 'list'")
    try:
        return replace(problem, contiguous=lists_of(path, problem.names))
    except ValueError as reason:
        raise RequestError(f"--contiguous {path}: {reason}") from None


def _enough(problem: Problem, fragmentation: float | None) -> int | None:
    """The height that ends a search: the capacity, or so many times the load bound."""
    if fragmentation is None:
        return problem.capacity
    if not 1 <= fragmentation < math.inf:
        raise RequestError(f"--fragmentation is {fragmentation:g}, expected a number from 1")
    return int(bounds.load_bound(problem) * fragmentation)

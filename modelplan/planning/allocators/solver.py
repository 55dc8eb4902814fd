"""Our own allocator: a complete search, local search and first-fit orders, with a bound that is never wrong."""

import math
from collections.abc import Callable

import numpy as np

from modelplan.model import Budget, Placement, Problem, Progress
from modelplan.planning.allocators import tied_buffers
from modelplan.planning.allocators.allocator_rows import EVERY_DEMAND, Allocator
from modelplan.planning.allocators.tied_buffers import colliding_pins
from modelplan.primitives import _core
from modelplan.primitives.errors import RequestError

#: Thousands of buffers looked at: what a search may use when nothing else limits it, a few seconds of one core.
STEPS = 500_000
STEPS_PER_BUFFER = 40


def run(problem: Problem, budget: Budget) -> Placement:
    """The lowest placement that the budget allows, and the bound proved on the way.

    Without steps and seconds in the budget a default number of steps applies; Ctrl-C ends the search early and
    keeps the best so far. Extra conflicts are met by longer lifetimes. Problems with groups, meetings or
    contiguous lists are packed by `tied_buffers`.

    Raises:
        RequestError: two pinned buffers alive together share bytes, so there is no placement at all (it names them);
            or pins and extra conflicts come together and the longer lifetimes leave none; or groups exclude every
            placement.

    Cost: memory linear in the buffers plus the sum of their lifetimes in distinct steps.
    Source: docs/solver.md.
    """
    if len(problem.rigid) or len(problem.meetings):
        return tied_buffers.pack(problem, budget)
    offsets, bound, ended, steps, _ = _core.solve(
        _without_conflicts(problem),
        capacity=-1 if budget.enough is None else budget.enough,
        minimize=budget.enough is None,
        steps=_steps(problem, budget),
        seconds=budget.seconds or 0.0,
        seed=budget.seed,
        threads=budget.threads,
        progress=_listener(budget),
        cancelled=budget.cancelled,
    )
    if len(offsets) < len(problem) and len(problem.conflicts):
        raise RequestError("'modelplan' meets extra conflicts by longer lifetimes, which these pins exclude")
    if len(offsets) < len(problem):
        raise RequestError(colliding_pins(problem) or "pins exclude every placement")
    if len(problem.conflicts):
        bound = 0  # of a problem with longer lifetimes: it says nothing about this one
    return Placement(offsets, bound, "complete" if len(problem.conflicts) and ended == "optimal" else ended, steps)


def _steps(problem: Problem, budget: Budget) -> int:
    if budget.steps is not None:
        return max(budget.steps, 1)
    return 0 if budget.seconds is not None else STEPS + STEPS_PER_BUFFER * len(problem)


def _listener(budget: Budget) -> Callable[[int, int, int], None] | None:
    report = budget.progress
    if report is None:
        return None
    return lambda height, bound, steps: report(Progress(height, bound, steps))


def _without_conflicts(problem: Problem) -> _core.Problem:
    """The problem, the earlier buffer of each extra conflict kept alive until the later one starts."""
    if not len(problem.conflicts):
        return problem.core
    p, end = problem, problem.end.copy()
    a, b = p.conflicts[:, 0], p.conflicts[:, 1]
    earlier, later = np.where(end[a] <= p.start[b], a, b), np.where(end[a] <= p.start[b], b, a)
    np.maximum.at(end, earlier, p.start[later] + 1)
    return _core.Problem(p.size, p.start, end, p.alignment, p.pin, p.overlaps)


ROWS: tuple[Allocator, ...] = (
    Allocator(
        "modelplan",
        run,
        "modelplan: complete search by sections, local search over orders, first fits, plateau dive",
        "exact",
        "never wrong bound; optimal when height and bound meet",
        "a budget of steps; O(n log n) to the first answer",
        honours=EVERY_DEMAND,
        most_pairs=math.inf,
        invariants=frozenset({"load"}),
    ),
)

"""Minimises by decisions: asks "does it fit in C?" for ever fewer C, and never takes silence for a no."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from modelplan import _core, bounds
from modelplan.allocators import greedy
from modelplan.types import Budget, IntArray, Placement, Problem, Progress

#: Buffers up to which a default budget holds in full; beyond, steps shrink with the square.
FULL_BUDGET = 500

#: What the core's searches say when they end, by their number.
ENDED = ("complete", "infeasible", "budget", "deadline", "cancelled")


@dataclass(frozen=True, eq=False)
class Decision:
    """The answer to "does it fit in this capacity?".

    `ended` is "complete" (it fits: `offsets` say how), "infeasible" (a proof that it does not), or "budget",
    "deadline", "cancelled" (not known). `steps` counts what the search did.
    """

    ended: str
    offsets: IntArray
    steps: int


Decide = Callable[[Problem, int, Budget], Decision]
CoreDecide = Callable[[int, float], tuple[int, IntArray, int]]
"""Steps and seconds to a number in ENDED, offsets and the steps used."""


def fallback(problem: Problem) -> Placement:
    """What a decision method answers with when it has no packing of its own: largest first, lowest gap."""
    return greedy.in_order(problem, np.lexsort((problem.start - problem.end, -problem.size)))


def decided(problem: Problem, budget: Budget, decide: Decide, steps: int) -> Placement:
    """Asks once at the problem's capacity, or narrows down to the least height where there is none.

    Args:
        problem: pins and other demands are the method's own affair.
        budget: in steps of the method; without one, `steps`.
        decide: the method.
        steps: the budget when the caller gave none, less for more than `FULL_BUDGET` buffers.
    """
    if budget.steps is None and budget.seconds is None:
        budget = replace(budget, steps=steps * FULL_BUDGET**2 // max(len(problem), FULL_BUDGET) ** 2)
    if problem.capacity is None:
        return _narrow(problem, budget, decide)
    answer = _asked(decide, problem, problem.capacity, budget)
    if answer.ended == "complete":
        return Placement(answer.offsets, steps=answer.steps)
    bound = problem.capacity + 1 if answer.ended == "infeasible" else 0
    return replace(fallback(problem), ended=answer.ended, steps=answer.steps, lower_bound=bound)


def _asked(decide: Decide, problem: Problem, capacity: int, budget: Budget) -> Decision:
    """The answer, or that it was cancelled: Ctrl-C may come outside the part of the method that listens to it."""
    try:
        return decide(problem, capacity, budget)
    except KeyboardInterrupt:
        return Decision("cancelled", np.zeros(0, dtype=np.int64), 0)


def _narrow(problem: Problem, budget: Budget, decide: Decide) -> Placement:
    """Binary search between the load bound and a greedy answer; each question gets a quarter of what is left."""
    best, bound = fallback(problem), bounds.load_bound(problem)
    low, high, used, began, ended = bound, bounds.height(problem, best) - 1, 0, time.monotonic(), "optimal"
    while low <= high:
        part = _share(budget, used, time.monotonic() - began)
        if part is None:
            ended = "budget"
            break
        middle = (low + high) // 2
        answer = _asked(decide, problem, middle, part)
        used += answer.steps
        if answer.ended == "complete":
            best = Placement(answer.offsets)
            high = bounds.height(problem, best) - 1
        else:
            low = middle + 1
            bound = low if answer.ended == "infeasible" else bound
        if answer.ended == "cancelled":
            ended = "cancelled"
            break
        if budget.progress:
            budget.progress(Progress(bounds.height(problem, best), bound, used))
    proved = bound >= bounds.height(problem, best)
    ended = "optimal" if proved else "budget" if ended == "optimal" else ended
    return replace(best, lower_bound=bound, ended=ended, steps=used)


def _share(budget: Budget, used: int, elapsed: float) -> Budget | None:
    """The budget of the next question, or nothing when all is spent."""
    steps = None if budget.steps is None else (budget.steps - used + 3) // 4
    seconds = None if budget.seconds is None else (budget.seconds - elapsed) / 4
    if (steps is not None and steps <= 0) or (seconds is not None and seconds <= 0):
        return None
    return replace(budget, steps=steps, seconds=seconds)


def core_decision(problem: Problem, budget: Budget | None, most_pairs: int, decide: CoreDecide) -> Decision:
    """What a search of the core answers within the budget; out of budget at once for more pairs in conflict."""
    if int(_core.conflict_counts(*bounds.columns(problem)).sum()) // 2 > most_pairs:
        return Decision("budget", np.zeros(0, dtype=np.int64), 0)
    ended, offsets, used = decide(*core_limits(budget or Budget()))
    return Decision(ENDED[ended], offsets, used)


def core_limits(budget: Budget) -> tuple[int, float]:
    """Steps and seconds as the core takes them."""
    steps = np.iinfo(np.int64).max if budget.steps is None else budget.steps
    return int(steps), float("inf") if budget.seconds is None else budget.seconds

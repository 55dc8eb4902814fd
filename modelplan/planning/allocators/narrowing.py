"""Minimises by bisection: asks "does it fit in C?" for smaller and smaller C; an open answer is not a no."""

import math
import time
from collections.abc import Callable
from dataclasses import replace

import numpy as np

from modelplan.model import Budget, Ended, IntArray, Placement, Problem, Progress, bounds
from modelplan.planning.allocators import greedy
from modelplan.primitives import _core
from modelplan.primitives.lazy_records import dataclass

#: Buffers up to which a default budget holds in full; beyond, steps shrink with the square.
FULL_BUDGET = 500

#: The row whose offsets a search shows when it has none of its own.
STAND_IN = "first-fit-size"

#: After these no further question is asked; None stands for a budget that was spent before.
OVER = (None, "cancelled")


@dataclass(frozen=True, eq=False)
class Decision:
    """The answer to "does it fit in this capacity?".

    `ended` is "complete" (it fits: `offsets` say how), "infeasible" (a proof that it does not), or "budget",
    "deadline", "cancelled" (not known). `steps` counts what the search did.
    """

    ended: Ended
    offsets: IntArray
    steps: int


Decide = Callable[[Problem, int, Budget], Decision]
CoreDecide = Callable[[int, float], tuple[Ended, IntArray, int]]
"""Steps and seconds to how it ended, offsets and the steps used."""


def stand_in(problem: Problem) -> Placement:
    """The placement of `first-fit-size`, named as such, which a search returns until it has a lower one."""
    placed = greedy.in_order(problem, np.lexsort((problem.start - problem.end, -problem.size)))
    return replace(placed, found_by=STAND_IN)


def decided(problem: Problem, budget: Budget, decide: Decide, steps: int, first_share: float = 1 / 4) -> Placement:
    """Asks once at the problem's capacity, or narrows down to the least height where there is none.

    Args:
        problem: pins and other demands are left to the method.
        budget: in steps of the method; without one, `steps`.
        decide: the method.
        steps: the budget when the caller gave none, less for more than `FULL_BUDGET` buffers.
        first_share: of the budget, for the first question of a minimisation: the load bound.
    """
    if budget.steps is None and budget.seconds is None:
        budget = replace(budget, steps=steps * FULL_BUDGET**2 // max(len(problem), FULL_BUDGET) ** 2)
    if problem.capacity is None:
        return _Narrowing(problem, budget, decide).run(first_share)
    answer = _asked(decide, problem, problem.capacity, budget)
    if answer.ended == "complete":
        return Placement(answer.offsets, steps=answer.steps)
    bound = problem.capacity + 1 if answer.ended == "infeasible" else 0
    return replace(stand_in(problem), ended=answer.ended, steps=answer.steps, lower_bound=bound)


def _asked(decide: Decide, problem: Problem, capacity: int, budget: Budget) -> Decision:
    """The answer, or that it was cancelled: Ctrl-C may come outside the part of the method that listens to it."""
    try:
        return decide(problem, capacity, budget)
    except KeyboardInterrupt:
        return Decision("cancelled", np.zeros(0, dtype=np.int64), 0)


class _Narrowing:
    """A minimisation by questions: the best answer so far, the proved bound, and what is left of the budget."""

    def __init__(self, problem: Problem, budget: Budget, decide: Decide) -> None:
        self.problem, self.budget, self.decide = problem, budget, decide
        self.best, self.bound = stand_in(problem), bounds.load_bound(problem)
        self.goal = max(self.bound, budget.enough or 0)  # a height with which the caller is content
        self.top = bounds.height(problem, self.best)  # the greatest capacity that is still a question
        self.used, self.began = 0, time.monotonic()

    def run(self, first_share: float) -> Placement:
        """Asks for the goal with its share of the budget, then bisects above it, then goes down from the best answer.

        Each question of the bisection gets a quarter of what is left, the last ones all of it: of the seconds
        that a caller gave none is kept back.
        """
        ended, low = self._ask(self.goal, first_share), self.goal + 1
        while low <= self.top and ended not in OVER:
            middle = (low + self.top) // 2
            ended = self._ask(middle, 1 / 4)
            low = low if ended == "complete" else middle + 1
        while max(self.bound, self.goal) <= self.top and ended not in OVER:
            ended = self._ask(self.top, 1)
            if ended in ("budget", "deadline"):
                break
        return self._answer(ended)

    def _ask(self, capacity: int, share: float) -> Ended | None:
        """How the question ended with this share of what is left; None when nothing is left."""
        part = self._part(share)
        if part is None:
            return None
        answer = _asked(self.decide, self.problem, capacity, part)
        self.used += answer.steps
        if answer.ended == "complete":
            self.best = Placement(answer.offsets)
            self.top = bounds.height(self.problem, self.best) - 1
        elif answer.ended == "infeasible":
            self.bound = max(self.bound, capacity + 1)
        if self.budget.progress:
            self.budget.progress(Progress(bounds.height(self.problem, self.best), self.bound, self.used))
        return answer.ended

    def _part(self, share: float) -> Budget | None:
        """The share of the steps and seconds that are left, or nothing when all is spent."""
        budget, elapsed = self.budget, time.monotonic() - self.began
        steps = None if budget.steps is None else math.ceil((budget.steps - self.used) * share)
        seconds = None if budget.seconds is None else (budget.seconds - elapsed) * share
        if (steps is not None and steps <= 0) or (seconds is not None and seconds <= 0):
            return None
        return replace(budget, steps=steps, seconds=seconds)

    def _answer(self, last: Ended | None) -> Placement:
        """The best answer; `last` says how the last question ended."""
        proved = self.bound >= bounds.height(self.problem, self.best)
        stopped: Ended = last if last in ("deadline", "cancelled") else "budget"
        ended: Ended = "optimal" if proved else stopped
        return replace(self.best, lower_bound=self.bound, ended=ended, steps=self.used)


def core_decision(problem: Problem, budget: Budget | None, most_pairs: int, decide: CoreDecide) -> Decision:
    """What a search of the core answers within the budget; out of budget at once for more pairs in conflict."""
    if conflicting_pairs(problem) > most_pairs:
        return Decision("budget", np.zeros(0, dtype=np.int64), 0)
    ended, offsets, used = decide(*core_limits(budget or Budget()))
    return Decision(ended, offsets, used)


def conflicting_pairs(problem: Problem) -> int:
    """How many pairs of buffers must not share bytes. Cost: O(n log n)."""
    return int(_core.conflict_counts(problem.core).sum()) // 2


def core_limits(budget: Budget) -> tuple[int, float]:
    """Steps and seconds as the core takes them."""
    steps = np.iinfo(np.int64).max if budget.steps is None else budget.steps
    return int(steps), float("inf") if budget.seconds is None else budget.seconds

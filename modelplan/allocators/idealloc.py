"""idealloc's boxing: jobs into boxes of few sizes until colouring does the rest, then first fit in that order."""

from __future__ import annotations

from dataclasses import dataclass, replace

from modelplan import _core, bounds
from modelplan.allocators import narrowing
from modelplan.allocators.table import Allocator
from modelplan.bounds import columns
from modelplan.types import Budget, Placement, Problem

#: Boxings when the caller sets no budget: the original's "lives".
TRIES = 1


@dataclass(frozen=True, eq=False)
class Boxed:
    """A placement, the boxings it took (0: the bootstrap or colouring had the answer) and the epsilon found."""

    placement: Placement
    tries: int
    epsilon: float


def box(problem: Problem, budget: Budget | None = None, *, fragmentation: float = 1.0) -> Boxed:
    """The lowest of a first fit by size and duration and of one boxing for each step of the budget.

    Stops early at `fragmentation` times the load. The original draws unseeded; here `budget.seed` fixes every draw,
    and classes of sizes stack from the largest down where the original follows a hash map.

    Raises:
        ValueError: `fragmentation` below 1.

    Cost: O(n log n) time for each boxing, O(n log n + n k log k) for each placement; O(n) memory.

    Source: Lamprakos et al., Futureproof Static Memory Planning, 2025, arXiv 2504.04874; the boxing is that of
    Buchsbaum et al., OPT versus LOAD in dynamic storage allocation, STOC 2003: Theorem 2, Lemma 1, Corollaries 15 and
    17, Theorem 16.
    """
    if fragmentation < 1:
        raise ValueError(f"fragmentation is {fragmentation}, expected at least 1")
    budget = budget or Budget()
    if budget.steps is None:
        budget = replace(budget, steps=TRIES)
    steps, seconds = narrowing.core_limits(budget)
    target = int(bounds.load_bound(problem) * fragmentation)
    ended, offsets, tries, epsilon, boxed = _core.idealloc_place(*columns(problem), target, budget.seed, steps, seconds)
    return Boxed(Placement(offsets, ended=narrowing.ENDED[ended], steps=tries), tries, epsilon)


def _run(problem: Problem, budget: Budget) -> Placement:
    """Boxes jobs by size and time until a colouring orders them, then places that order by first fit."""
    answer = box(problem, budget).placement
    return answer if answer.ended in ("deadline", "cancelled") else replace(answer, ended="complete")


ROWS = (
    Allocator(
        "idealloc",
        _run,
        "Lamprakos et al. 2025, arXiv 2504.04874; Buchsbaum et al., STOC 2003",
        "search",
        "optimal when all sizes are equal; the paper's (2 + o(1)) x load is not proved for the order that is placed",
        "O(n log n) for each boxing, O(n log n + n k log k) for each placement; one boxing by default",
        invariants=frozenset({"load"}),
    ),
)

"""idealloc's boxing: jobs into boxes of few sizes until colouring does the rest, then first fit in that order."""

import math
from dataclasses import replace

import numpy as np

from modelplan.model import Budget, IntArray, Placement, Problem, bounds
from modelplan.planning.allocators import narrowing
from modelplan.planning.allocators.allocator_rows import Allocator
from modelplan.primitives import _core
from modelplan.primitives.lazy_records import dataclass

#: Boxings when the caller sets no budget: the original's "lives".
TRIES = 1


@dataclass(frozen=True, slots=True)
class Hardness:
    """The original's figures for how hard a problem is: spread of sizes and of ends, share of pairs alive together.

    A spread is the standard deviation over the mean.
    """

    sizes: float = 0.0
    conflicts: float = 0.0
    ends: float = 0.0

    @property
    def compound(self) -> float:
        """The product of one plus each; 1 for the easiest."""
        return (1 + self.sizes) * (1 + self.conflicts) * (1 + self.ends)


@dataclass(frozen=True, eq=False)
class Boxed:
    """A placement, the boxings it took (0: the bootstrap or colouring had the answer) and the epsilon found."""

    placement: Placement
    tries: int
    epsilon: float


def hardness(problem: Problem) -> Hardness:
    """The hardness of `problem`; buffers without bytes do not count. Cost: O(n log n)."""
    held = problem.size > 0
    count = int(held.sum())
    if count < 2:
        return Hardness()
    pairs = int(_core.conflict_counts(problem.core)[held].sum()) / 2
    return Hardness(_spread(problem.size[held]), pairs / math.comb(count, 2), _spread(problem.end[held]))


def _spread(values: IntArray) -> float:
    return float(np.std(values) / np.mean(values))


def box(problem: Problem, budget: Budget | None = None, *, fragmentation: float = 1.0, start_address: int = 0) -> Boxed:
    """The lowest of a first fit by size and duration (the bootstrap) and of one boxing for each step of the budget.

    Stops early at `fragmentation` times the load, or at `budget.enough`. With seconds and no steps it boxes until the
    time is up. The original draws unseeded and leaves ties to hash maps and threads; here `budget.seed` fixes them all.

    Args:
        problem: pinned buffers are not boxed, the others are placed around them.
        budget: a step is a boxing; without one there is one boxing, the original's default.
        fragmentation: at least 1; 1.05 stops at 5 % above the load.
        start_address: where the arena begins. Addresses are aligned, offsets are addresses less `start_address`.

    Raises:
        ValueError: `fragmentation` below 1, a negative address, or one together with overlaps, pins or conflicts.

    Cost: O(n log n) time for each boxing, O(n log n + n k log k) for each placement; O(n) memory.

    Source: Lamprakos et al., Futureproof Static Memory Planning, 2025, arXiv 2504.04874, and its program,
    cappadokes/idealloc at a21f84d; the boxing is that of Buchsbaum et al., OPT versus LOAD in dynamic storage
    allocation, STOC 2003: Theorem 2, Lemma 1, Corollaries 15 and 17, Theorem 16.
    """
    if fragmentation < 1:
        raise ValueError(f"fragmentation is {fragmentation}, expected at least 1")
    target = max(int(bounds.load_bound(problem) * fragmentation), (budget or Budget()).enough or 0)
    if not start_address:
        return _boxed(problem, budget or Budget(), target)
    moved = _boxed(_below(problem, start_address), budget or Budget(), target + start_address)
    own = moved.placement.own_height
    placement = replace(
        moved.placement,
        offsets=moved.placement.offsets[:-1] - start_address,
        own_height=None if own is None else own - start_address,
    )
    return replace(moved, placement=placement)


def _below(problem: Problem, start_address: int) -> Problem:
    """The problem with everything below `start_address` taken, by one more buffer at the end."""
    if start_address < 0 or len(problem.overlaps) or len(problem.conflicts) or (problem.pin >= 0).any():
        raise ValueError("a start address has to be positive, and goes with sizes, lifetimes and alignments only")
    last = int(problem.end.max(initial=1))
    return Problem(
        (*problem.names, "below the start"),
        size=np.append(problem.size, start_address),
        start=np.append(problem.start, 0),
        end=np.append(problem.end, last),
        alignment=np.append(problem.alignment, 1),
        pin=np.append(problem.pin, 0),
    )


def _boxed(problem: Problem, budget: Budget, target: int) -> Boxed:
    if budget.steps is None and budget.seconds is None:
        budget = replace(budget, steps=TRIES)
    steps, seconds = narrowing.core_limits(budget)
    limits = target, budget.seed, steps, seconds
    ended, offsets, tries, epsilon, boxed = _core.idealloc_place(problem.core, *limits)
    placement = Placement(offsets, ended=ended, steps=tries)
    if boxed > bounds.height(problem, placement):
        placement = replace(placement, found_by=narrowing.STAND_IN, own_height=boxed)
    return Boxed(placement, tries, epsilon)


def _run(problem: Problem, budget: Budget) -> Placement:
    """Boxes jobs by size and time until a colouring orders them, then places that order by first fit."""
    answer = box(problem, budget).placement
    return answer if answer.ended in ("deadline", "cancelled") else replace(answer, ended="complete")


ROWS = (
    Allocator(
        "idealloc",
        _run,
        "Lamprakos et al. 2025, arXiv 2504.04874; cappadokes/idealloc; Buchsbaum et al., STOC 2003",
        "search",
        "optimal when all sizes are equal; the paper's (2 + o(1)) x load is not proved for the order that is placed",
        "O(n log n) for each boxing, O(n log n + n k log k) for each placement; one boxing by default, with seconds as"
        " many as they allow",
        invariants=frozenset({"load"}),
    ),
)

"""Apache TVM's unified static memory planner: two greedy stackings and a hill climb that replays bit for bit."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial

import numpy as np

from modelplan.checking import referee
from modelplan.model import Budget, Ended, IntArray, Placement, Problem
from modelplan.planning.allocators import narrowing
from modelplan.planning.allocators.allocator_rows import EACH_PAIR, PAIRS_OF_SEARCH, Allocator, Kind
from modelplan.primitives import _core
from modelplan.primitives.lazy_records import dataclass

#: Placements that the original tries.
ATTEMPTS = 500

#: Conflicts that all placements together look at, unless the caller sets a budget; beyond it there are fewer attempts.
MOST_VISITS = 50_000_000

NO_LIMIT = -1


@dataclass(frozen=True, slots=True)
class Pools:
    """Memories in order of preference: bytes of each (-1: no limit), and for each buffer those it may use.

    `of` is empty when every buffer may use all of them.
    """

    limits: tuple[int, ...] = (NO_LIMIT,)
    of: tuple[tuple[int, ...], ...] = ()


ONE_POOL = Pools()


@dataclass(frozen=True, eq=False)
class Assignment:
    """A pool (-1: none had room) and an offset inside it for each buffer."""

    pool: IntArray
    offset: IntArray


@dataclass(frozen=True, eq=False)
class Climb:
    """The plan that a climb returns, the placements it tried, and how it ended.

    The plan is empty when the climb was cancelled in its first placement.
    """

    plan: Assignment
    attempts: int
    ended: Ended


Lists = Sequence[Sequence[int]]
"""For each buffer those it conflicts with, as the original takes them: in this order, symmetric or not."""


def by_size(problem: Problem, lists: Lists = ()) -> IntArray:
    """Size, then number of conflicts, then name, all descending."""
    return _order(problem, problem.size, _conflicts(problem, lists))


def by_conflicts(problem: Problem, lists: Lists = ()) -> IntArray:
    """Number of conflicts, then size, then name, all descending."""
    return _order(problem, _conflicts(problem, lists), problem.size)


def _conflicts(problem: Problem, lists: Lists = ()) -> IntArray:
    if lists:
        return np.array([len(others) for others in lists], dtype=np.int64)
    return _core.conflict_counts(problem.core)


def _order(problem: Problem, first: IntArray, second: IntArray) -> IntArray:
    by_name = sorted(range(len(problem)), key=lambda i: problem.names[i].encode(), reverse=True)
    return np.lexsort((np.argsort(by_name), -second, -first)).astype(np.int64)


def stack(
    problem: Problem, order: IntArray, pools: Pools = ONE_POOL, *, lists: Lists = (), fixed: bool = False
) -> Assignment:
    """Puts each buffer of `order` above all conflicts placed before it, in the first pool with room.

    Conflicts are those of the problem, unless `lists` gives them.

    `fixed` rounds starts to the buffer's own alignment instead of its neighbours', and keeps a pool that was ruled out
    from coming back with a later neighbour.

    Raises:
        BrokenPlanError: a pool that came back put two buffers in conflict on the same bytes.

    Cost: O(n log n + n k) time for k conflicts placed before, O(n) memory.

    Source: apache/tvm fb43fc85774b, src/tir/usmp/algo/greedy.cc.
    """
    pool, offset = _core.usmp_greedy(problem.core, _listed(lists), order, list(pools.limits), _listed(pools.of), fixed)
    if pools.limits != ONE_POOL.limits:
        for p in np.unique(pool[pool >= 0]):  # everything outside one pool is empty to the referee
            inside = replace(problem, size=np.where(pool == p, problem.size, 0), capacity=None)
            referee.check(inside, Placement(offset))
    return Assignment(pool, offset)


def _listed(rows: Lists) -> list[list[int]]:
    return [list(row) for row in rows]


def climb(
    problem: Problem,
    pools: Pools = ONE_POOL,
    *,
    lists: Lists = (),
    fixed: bool = False,
    attempts: int = ATTEMPTS,
    seconds: float = float("inf"),
    seed: int = 0,
) -> Climb:
    """First fit in an order that changes by one swap at a time.

    Swaps and the acceptance of worse plans draw from glibc's `rand_r`, so the original replays. It stops at the most
    bytes alive at once, and returns the plan accepted last, even after a better one; `fixed` returns the best.

    Cost: O(attempts n k log k) time, memory O(n + conflicts).

    Source: apache/tvm fb43fc85774b, src/tir/usmp/algo/hill_climb.cc.
    """
    pressure = _core.load_bound(_core.Problem(problem.size, problem.start, problem.end))[0]  # without padding
    pool, offset, used, ended = _core.usmp_hill_climb(
        problem.core,
        _listed(lists),
        by_size(problem, lists),
        pressure,
        list(pools.limits),
        _listed(pools.of),
        fixed,
        attempts,
        seconds,
        seed,
    )
    return Climb(Assignment(pool, offset), used, ended)


def _greedy_by_size(problem: Problem, _budget: Budget, *, fixed: bool) -> Placement:
    """Largest first, each stacked on its conflicts; gaps stay empty."""
    return Placement(stack(problem, by_size(problem), fixed=fixed).offset)


def _greedy_by_conflicts(problem: Problem, _budget: Budget, *, fixed: bool) -> Placement:
    """Most conflicts first, each stacked on its conflicts; gaps stay empty."""
    return Placement(stack(problem, by_conflicts(problem), fixed=fixed).offset)


def _hill_climb(problem: Problem, budget: Budget, *, fixed: bool) -> Placement:
    """First fit in an order that changes swap by swap below the highest buffer."""
    visits = max(int(_conflicts(problem).sum()), 1)
    most = MOST_VISITS // visits if budget.steps is None else budget.steps
    attempts = min(ATTEMPTS, max(most, 1))
    seconds = narrowing.core_limits(budget)[1]
    outcome = climb(problem, fixed=fixed, attempts=attempts, seconds=seconds, seed=budget.seed)
    if len(outcome.plan.offset) < len(problem):
        return replace(narrowing.stand_in(problem), ended=outcome.ended)
    return Placement(outcome.plan.offset, ended=outcome.ended, steps=outcome.attempts)


_SOURCE = "apache/tvm at fb43fc85774b, src/tir/usmp/algo/"
_ALIGNMENT = "starts are rounded to the neighbours' alignment, so all buffers need the same one"


def _row(
    name: str,
    run: Callable[..., Placement],
    source: str,
    kind: Kind,
    cost: str,
    quirks: str,
    most_pairs: float = EACH_PAIR,
) -> Allocator:
    return Allocator(
        name,
        partial(run, fixed=False),
        _SOURCE + source,
        kind,
        "none",
        cost,
        honours=frozenset({"alignment", "overlaps", "conflicts"}),
        one_alignment=True,
        alignment=16,
        quirks=quirks,
        fixed=partial(run, fixed=True),
        most_pairs=most_pairs,
        invariants=frozenset({"scaling"}),
        omits="several pools, which a problem does not have; `modelplan.planning.allocators.systems.usmp` has them",
    )


ROWS = (
    _row("tvm-greedy-by-size", _greedy_by_size, "greedy.cc", "offsets", "O(n log n + n k)", _ALIGNMENT),
    _row("tvm-greedy-by-conflicts", _greedy_by_conflicts, "greedy.cc", "offsets", "O(n log n + n k)", _ALIGNMENT),
    _row(
        "tvm-hill-climb",
        _hill_climb,
        "hill_climb.cc, with glibc's rand_r",
        "search",
        "O(attempts n k log k), memory O(n + conflicts); 500 attempts, fewer where conflicts are many",
        _ALIGNMENT + "; returns the plan accepted last, not the best one",
        PAIRS_OF_SEARCH,
    ),
)

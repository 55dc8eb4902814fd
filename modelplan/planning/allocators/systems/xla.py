"""XLA's heap simulator and repacker: decreasing best fit over colocations, and its constrained and fast variants."""

from functools import partial

import numpy as np

from modelplan.model import Budget, IntArray, Placement, Problem, bounds
from modelplan.planning.allocators.allocator_rows import GAP_FIT, Allocator
from modelplan.primitives import _core
from modelplan.primitives.errors import RequestError

#: How many of the largest buffers the fast split leaves to the best fit.
LARGEST = 500

NO_LIMIT = -1


def apart(problem: Problem) -> IntArray:
    """Colocations of one buffer each."""
    return np.arange(len(problem), dtype=np.int64)


def ticks(problem: Problem) -> tuple[IntArray, IntArray]:
    """The allocation and the free tick of each buffer: every event has one of its own, allocations first in a step."""
    n = len(problem)
    step = np.concatenate([problem.start, problem.end - 1])
    order = np.lexsort((np.tile(np.arange(n), 2), np.repeat([0, 1], n), step))
    tick = np.argsort(order)
    return tick[:n], tick[n:]


def spatial(problem: Problem, group: IntArray) -> IntArray:
    """Groups by size, then by their first member's duration in ticks, both descending, then by that member's number."""
    start, end = ticks(problem)
    head = _heads(group)
    return np.lexsort((head, (start - end)[head], -_most(problem.size, group))).astype(np.int64)


def temporal(problem: Problem, group: IntArray) -> IntArray:
    """Groups by their whole duration in ticks, then by size, both descending, then by their first member's number."""
    start, end = ticks(problem)
    duration = _most(end, group) + _most(-start, group)
    return np.lexsort((_heads(group), -_most(problem.size, group), -duration)).astype(np.int64)


def by_lifetime(problem: Problem, group: IntArray) -> IntArray:
    """The repacker's order: own start less the group's last end, ascending, then size descending, then number."""
    head = _heads(group)
    span = problem.start[head] - _most(problem.end, group)
    return np.lexsort((head, -_most(problem.size, group), span)).astype(np.int64)


def _heads(group: IntArray) -> IntArray:
    """The first member of each group."""
    heads = np.full(int(group.max(initial=-1)) + 1, len(group), dtype=np.int64)
    np.minimum.at(heads, group, np.arange(len(group)))
    return heads


def _most(values: IntArray, group: IntArray) -> IntArray:
    most = np.full(int(group.max(initial=-1)) + 1, np.iinfo(np.int64).min // 2, dtype=np.int64)
    np.maximum.at(most, group, values)
    return most


def best_fit(
    problem: Problem, order: IntArray, group: IntArray | None = None, *, own_sizes: bool = False, limit: int = NO_LIMIT
) -> Placement:
    """Places colocations in `order`, each in the smallest free chunk that takes its largest member.

    Args:
        problem: lifetimes and sizes.
        order: of the groups, see `spatial` and its like.
        group: the colocation of each buffer, numbered from 0 without holes; members share one offset.
        own_sizes: whether a member keeps only its own bytes from others, not its group's.
        limit: bytes of one heap; what ends above it goes to the next heap, unless its heap is still empty.

    Cost: O(n log n + n k log k) time for each heap, O(n) memory.

    Source: openxla/xla, heap_simulator.cc, GlobalDecreasingSizeBestFitHeap and its constrained form.
    """
    group = apart(problem) if group is None else group
    return Placement(_core.xla_best_fit(problem.core, group, order, own_sizes, limit))


def _part(problem: Problem, chosen: np.ndarray[tuple[int], np.dtype[np.bool_]]) -> Problem:
    rows = np.flatnonzero(chosen)
    names = tuple(problem.names[i] for i in rows)
    return Problem(names, problem.size[rows], problem.start[rows], problem.end[rows], problem.alignment[rows])


def _spatial(problem: Problem, _budget: Budget) -> Placement:
    """Largest first into the smallest chunk that holds it."""
    return best_fit(problem, spatial(problem, apart(problem)))


def _temporal(problem: Problem, _budget: Budget) -> Placement:
    """Longest-lived first into the smallest chunk that holds it."""
    return best_fit(problem, temporal(problem, apart(problem)))


def _choose_best(problem: Problem, budget: Budget) -> Placement:
    """Spatial, then temporal; the first that is strictly smallest."""
    answers = [_spatial(problem, budget), _temporal(problem, budget)]
    return min(answers, key=lambda answer: bounds.height(problem, answer))


def _constrained(problem: Problem, _budget: Budget) -> Placement:
    """Largest first into heaps of the capacity each, or of the load where there is none, end to end."""
    limit = bounds.load_bound(problem) if problem.capacity is None else problem.capacity
    return best_fit(problem, spatial(problem, apart(problem)), limit=limit)


def _repack(problem: Problem, _budget: Budget) -> Placement:
    """Longest-lived first, every buffer keeping only its own bytes: the repacker of memory space assignment."""
    return best_fit(problem, by_lifetime(problem, apart(problem)), own_sizes=True)


def _fast_merge(problem: Problem, _budget: Budget) -> Placement:
    """By start: frees what has ended, merges free neighbours, takes the smallest usable chunk."""
    alignment = int(np.lcm.reduce(problem.alignment, initial=1))
    if alignment < 1 or alignment > 2**40:
        raise RequestError("the alignments have no common multiple below 2^40 bytes, which the fast merge needs")
    return Placement(_core.xla_fast_merge(problem.core, alignment))


def _fast_split(problem: Problem, budget: Budget) -> Placement:
    """The 500 largest by the spatial best fit, the rest by the fast merge above them."""
    chosen = np.zeros(len(problem), dtype=np.bool_)
    chosen[np.argsort(-problem.size, kind="stable")[:LARGEST]] = True
    offsets = np.zeros(len(problem), dtype=np.int64)
    offsets[chosen] = _spatial(_part(problem, chosen), budget).offsets
    top = bounds.height(problem, Placement(np.where(chosen, offsets, -problem.size)))
    step = int(np.lcm.reduce(problem.alignment, initial=1))
    offsets[~chosen] = _fast_merge(_part(problem, ~chosen), budget).offsets + -(-top // step) * step
    return Placement(np.where(problem.size > 0, offsets, 0))


_HEAP = "openxla/xla, xla/service/heap_simulator/heap_simulator.cc"
_BEST_FIT = partial(GAP_FIT, honours=frozenset({"alignment", "overlaps", "conflicts"}))
_FAST = partial(
    Allocator, kind="online", guarantees="none", cost="O(n log n)", honours=frozenset({"alignment", "overlaps"})
)

ROWS = (
    _BEST_FIT("xla-spatial", _spatial, _HEAP, fast=True),
    _BEST_FIT("xla-temporal", _temporal, _HEAP, fast=True),
    _BEST_FIT("xla-choose-best", _choose_best, _HEAP),
    _BEST_FIT("xla-constrained", _constrained, _HEAP),
    _BEST_FIT(
        "xla-repack",
        _repack,
        "openxla/xla, memory_space_assignment/best_fit_repacker.cc",
        omits="slices (parts with starts of their own) and preferred offsets: a buffer of a problem has neither",
    ),
    _FAST("xla-fast-merge", _fast_merge, _HEAP, invariants=frozenset({"scaling"})),
    _FAST("xla-fast-split", _fast_split, _HEAP),
)

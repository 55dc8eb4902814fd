"""Arm Vela's tensor allocators: linear, greedy, and the hill climb that replays its random numbers.

Source: ethos-u-vela, ethosu/vela/greedy_allocation.py, hillclimb_allocation.py and tensor_allocation.py.
"""

from dataclasses import replace
from random import Random

import numpy as np

from modelplan.model import Budget, IntArray, Placement, Problem
from modelplan.planning.allocators import narrowing
from modelplan.planning.allocators.allocator_rows import GAP_FIT_TO_LOAD, PAIRS_OF_SEARCH, Allocator, baseline
from modelplan.planning.allocators.greedy import GapRule, end_to_end, in_order, sizes_rounded
from modelplan.primitives import _core

#: Pairs of buffers that one run of the hill climb may look at: about two seconds. Models stay far below it.
MOST_PAIRS = 50_000_000

#: The state of Python's generator with which the hill climb begins, after random.seed(1).
RANDOMNESS: IntArray = np.array(Random(1).getstate()[1][:-1], dtype=np.int64)  # noqa: S311 - to replay the original


def place_linear(problem: Problem, _budget: Budget) -> Placement:
    """End to end, sizes rounded up to their alignment."""
    return end_to_end(replace(problem, size=sizes_rounded(problem)))


def place_greedy(problem: Problem, _budget: Budget) -> Placement:
    """By start, of equal starts the longer life first; the gap with the fewest bytes, padding counted.

    Sizes are rounded up to their alignment.
    """
    order = np.lexsort((-problem.end, problem.start))
    return in_order(replace(problem, size=sizes_rounded(problem)), order, GapRule.RAW)


def climb(problem: Problem, budget: Budget) -> Placement:
    """Swaps what the highest buffer rests on, keeps what is no worse, stops at the load or after 500 idle steps.

    A capacity keeps it going beyond that, for up to 99,999 steps. The budget counts steps.
    """
    return _climb(problem, budget, restore=False)


def climb_fixed(problem: Problem, budget: Budget) -> Placement:
    """Like the original, but after a rejected step it goes on from the best placement."""
    return _climb(problem, budget, restore=True)


def _climb(problem: Problem, budget: Budget, *, restore: bool) -> Placement:
    held = np.flatnonzero(problem.size > 0)
    size, start, end, step = (c[held] for c in (problem.size, problem.start, problem.end, problem.alignment))
    load, order = first_order(size, start, end)
    limit = np.iinfo(np.int64).max if problem.capacity is None else problem.capacity
    steps, seconds = narrowing.core_limits(budget)
    limits = load, limit, steps, MOST_PAIRS, seconds
    held_offsets, done, ended = _core.climb(size, start, end, step, order, *limits, restore, RANDOMNESS)
    if len(held_offsets) < len(held):
        return replace(narrowing.stand_in(problem), ended=ended)
    offsets = np.zeros(len(problem), dtype=np.int64)
    offsets[held] = held_offsets
    return Placement(offsets, ended=ended, steps=done)


def first_order(size: IntArray, start: IntArray, end: IntArray) -> tuple[int, IntArray]:
    """The load, and the buffers by urgency (most bytes alive in their life), duration, start, size and number."""
    urgency = _core.peak_loads(size, start, end)
    return int(urgency.max(initial=0)), np.lexsort((-size, start, start - end, -urgency))


SOURCE = "ethos-u-vela, ethosu/vela"

ROWS: tuple[Allocator, ...] = (
    baseline("vela-linear", place_linear, f"{SOURCE}/tensor_allocation.py", alignment=16),
    GAP_FIT_TO_LOAD("vela-greedy", place_greedy, f"{SOURCE}/greedy_allocation.py", alignment=16),
    Allocator(
        "vela-hill-climb",
        climb,
        f"{SOURCE}/hillclimb_allocation.py",
        "search",
        "load where it ends early",
        "O(steps n k)",
        honours=frozenset({"alignment", "overlaps"}),
        alignment=16,
        quirks="goes on from where a rejected pass broke off",
        fixed=climb_fixed,
        most_pairs=PAIRS_OF_SEARCH,
        invariants=frozenset({"scaling"}),
    ),
)

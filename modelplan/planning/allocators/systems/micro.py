"""The planners of TFLite on the CPU and of TFLite Micro.

Source: LiteRT, tflite/simple_memory_arena.cc and arena_planner.cc; tflite-micro, memory_planner/.
"""

from __future__ import annotations

import numpy as np

from modelplan.model import Budget, IntArray, Placement, Problem
from modelplan.planning.allocators.greedy import GapRule, end_to_end, in_order
from modelplan.planning.allocators.table import GAP_FIT, Allocator, baseline


def place_arena(problem: Problem, _budget: Budget) -> Placement:
    """What lives all the time first, then the largest; the tightest gap by a lopsided comparison.

    The bytes that a gap leaves are counted from the aligned start, but what the next gap has to beat counts the
    padding too: a later gap that is no tighter can win.
    """
    return in_order(problem, arena_order(problem), GapRule.MIXED)


def place_arena_fixed(problem: Problem, _budget: Budget) -> Placement:
    """Like the original, the tightest gap by usable bytes."""
    return in_order(problem, arena_order(problem), GapRule.TIGHTEST)


def arena_order(problem: Problem) -> IntArray:
    """Alive from step 0 to the end by number; then size, start. The original leaves further ties open: by number."""
    whole = (problem.start == 0) & (problem.end == problem.end.max(initial=0))
    return np.lexsort((np.where(whole, 0, problem.start), np.where(whole, 0, -problem.size), ~whole))


def place_micro(problem: Problem, _budget: Budget) -> Placement:
    """Fixed offsets, then the largest first, of equal sizes the later-added first; the lowest gap."""
    return in_order(problem, np.lexsort((-np.arange(len(problem)), -problem.size)))


def place_linear(problem: Problem, _budget: Budget) -> Placement:
    """A running sum that ignores lifetimes."""
    return end_to_end(problem)


ROWS: tuple[Allocator, ...] = (
    GAP_FIT(
        "tflite-arena",
        place_arena,
        "LiteRT, simple_memory_arena.cc and arena_planner.cc",
        alignment=64,
        quirks="gaps are compared lopsidedly when alignment leaves padding",
        fixed=place_arena_fixed,
    ),
    GAP_FIT(
        "tflm-greedy",
        place_micro,
        "tflite-micro, memory_planner/greedy_memory_planner.cc",
        fast=True,
        alignment=16,
    ),
    baseline("tflm-linear", place_linear, "tflite-micro, memory_planner/linear_memory_planner.cc", alignment=16),
)

"""Greedy planners: an order, a gap rule, one kernel."""

from __future__ import annotations

import numpy as np

from modelplan import _core
from modelplan.allocators.table import Allocator
from modelplan.bounds import columns
from modelplan.types import Budget, IntArray, Placement, Problem


def in_order(problem: Problem, order: IntArray, *, tightest: bool = False) -> Placement:
    """Places pinned buffers, then the others in `order`, each in its lowest (or tightest) gap.

    Cost: O(n log n + n k log k) time for k conflicts placed before, O(n) memory.
    """
    return Placement(_core.place_in_order(*columns(problem), order.astype(np.int64), tightest))


def naive(problem: Problem, budget: Budget) -> Placement:  # noqa: ARG001
    """Every buffer at its own address, end to end: what no reuse costs."""
    offsets = np.zeros(len(problem), dtype=np.int64)
    top = 0
    for i in np.flatnonzero(problem.size > 0):
        alignment = int(problem.alignment[i])
        offsets[i] = -(-top // alignment) * alignment
        top = int(offsets[i]) + int(problem.size[i])
    return Placement(offsets)


def tflite_greedy_by_size(problem: Problem, budget: Budget) -> Placement:  # noqa: ARG001
    """Largest first, stable; the tightest gap, the lowest of equal ones; on top when there is none.

    Source: Pisarchyk and Lee, Efficient Memory Management for Deep Neural Net Inference, 2020,
    arXiv 2001.03288, "greedy by size" for offsets, as the LiteRT GPU delegate runs it.
    """
    return in_order(problem, np.argsort(-problem.size, kind="stable"), tightest=True)


def tflm_greedy(problem: Problem, budget: Budget) -> Placement:  # noqa: ARG001
    """Largest first, of equal sizes the later-added first; the lowest gap.

    Source: tflite-micro, memory_planner/greedy_memory_planner.cc.
    """
    return in_order(problem, np.lexsort((-np.arange(len(problem)), -problem.size)))


def first_fit(problem: Problem, budget: Budget) -> Placement:  # noqa: ARG001
    """In order of start, ties by index; the lowest gap."""
    return in_order(problem, np.argsort(problem.start, kind="stable"))


ROWS: tuple[Allocator, ...] = (
    Allocator(
        "naive",
        naive,
        "the baseline: no reuse",
        "baseline",
        "none",
        "O(n)",
        honours=frozenset({"alignment", "overlaps", "conflicts"}),
    ),
    Allocator(
        "tflite-greedy-by-size",
        tflite_greedy_by_size,
        "Pisarchyk and Lee 2020, arXiv 2001.03288; LiteRT GPU delegate, offsets",
        "offsets",
        "none",
        "O(n log n + n k log k)",
        fast=True,
        invariants=frozenset({"scaling"}),
    ),
    Allocator(
        "tflm-greedy",
        tflm_greedy,
        "tflite-micro, GreedyMemoryPlanner",
        "offsets",
        "none",
        "O(n log n + n k log k)",
        fast=True,
        invariants=frozenset({"scaling"}),
    ),
    Allocator(
        "first-fit",
        first_fit,
        "first fit by start",
        "offsets",
        "none",
        "O(n log n + n k log k)",
        fast=True,
        invariants=frozenset({"scaling"}),
    ),
)

"""Glow's planner: three orders by what is still to be placed, first fit, the best of them.

Source: pytorch/glow, lib/CodeGen/MemoryAllocator.cpp, allocateAll. Its buffers live from their allocation to their
free, counted in such events; sizes are rounded up to the alignment.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from modelplan.model import Budget, IntArray, Placement, Problem, bounds
from modelplan.planning.allocators.greedy import by_start, in_order, sizes_rounded
from modelplan.planning.allocators.table import GAP_FIT_TO_LOAD, Allocator, Records
from modelplan.primitives import _core


def place_best(problem: Problem, _budget: Budget) -> Placement:
    """From the fullest step the largest buffer, or the longest-lived; or as listed. The first lowest of the three.

    Stops at the first order that reaches the load.
    """
    rounded = replace(problem, size=sizes_rounded(problem))
    load, best = bounds.load_bound(rounded), None
    for order in orders(rounded):
        placement = in_order(rounded, order)
        if best is None or bounds.height(rounded, placement) < bounds.height(rounded, best):
            best = placement
        if bounds.height(rounded, best) <= load:
            break
    assert best is not None
    return best


def orders(problem: Problem) -> Iterator[IntArray]:
    """The three orders of the buffers, empty ones last."""
    records = Records.of(problem)
    empty = (problem.size == 0).nonzero()[0]
    for by_duration in (False, True):
        ranked = _core.most_live_first(records.size, records.start, records.end, by_duration)
        yield np.concatenate((records.buffers[ranked], empty))
    yield by_start(problem)


ROWS: tuple[Allocator, ...] = (
    GAP_FIT_TO_LOAD(
        "glow",
        place_best,
        "pytorch/glow, lib/CodeGen/MemoryAllocator.cpp",
        cost="O(n log n + n k log k), three times",
        fast=True,
        alignment=64,
    ),
)

"""ONNX Runtime: which value reuses whose buffer, then a memory pattern from the trace of the first run.

Source: onnxruntime, core/framework/allocation_planner.cc (reuse) and mem_pattern_planner.h (pattern).
A problem has no shapes: buffers of equal size count as equal in shape. With that, taking the most recently freed
buffer of the same shape is what the GPU delegate calls equality.
"""

from __future__ import annotations

import numpy as np

from modelplan.model import Budget, Placement, Problem
from modelplan.planning.allocators.greedy import GapRule, by_start, in_order
from modelplan.planning.allocators.systems.gpu_delegate import share_equal
from modelplan.planning.allocators.table import EQUAL_SIZES, GAP_FIT_TO_LOAD, Allocator, Objects, sharing


def place_pattern(problem: Problem, budget: Budget) -> Placement:
    """Reuse first, which lengthens lives; then the trace of allocations, each in the gap that wastes least."""
    objects = share_equal(problem, budget)
    pattern = blocks(problem, objects)
    offsets = in_order(pattern, by_start(pattern), GapRule.TIGHTEST).offsets
    held = objects.holder >= 0
    return Placement(np.where(held, offsets[objects.holder], 0) if len(offsets) else np.zeros(len(problem), np.int64))


def blocks(problem: Problem, objects: Objects) -> Problem:
    """The problem of the objects themselves: alive from the first start to the last end of what they hold."""
    count = len(objects.sizes)
    held = np.flatnonzero(objects.holder >= 0)
    holder = objects.holder[held]
    start, end, step = (np.full(count, value, dtype=np.int64) for value in (2**62, 0, 1))
    np.minimum.at(start, holder, problem.start[held])
    np.maximum.at(end, holder, problem.end[held])
    np.lcm.at(step, holder, problem.alignment[held])
    return Problem(tuple(map(str, range(count))), np.array(objects.sizes, dtype=np.int64), start, end, step)


SOURCE = "onnxruntime, core/framework"
STREAMS = "the plan for several streams, which asks for devices and kernels: extra conflicts are refused"

ROWS: tuple[Allocator, ...] = (
    sharing(
        "onnxruntime-reuse",
        share_equal,
        f"{SOURCE}/allocation_planner.cc, one stream",
        "O(n log n)",
        EQUAL_SIZES,
        STREAMS,
    ),
    GAP_FIT_TO_LOAD(
        "onnxruntime",
        place_pattern,
        f"{SOURCE}/allocation_planner.cc, then mem_pattern_planner.h",
        kind="online",
        honours=frozenset({"alignment", "overlaps"}),
        alignment=256,
        omits=STREAMS,
    ),
)

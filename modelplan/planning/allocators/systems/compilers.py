"""The planners of compilers: Glow, IREE, Triton and onnx2c.

Glow tries three orders by what is still to be placed, first fit. Its buffers live from their allocation to their free,
counted in such events; sizes are rounded up to the alignment. Source: pytorch/glow, lib/CodeGen/MemoryAllocator.cpp,
allocateAll.

IREE lays transient slices out in the order of their lifetimes, by the arena's gap rule. Only slices of known size:
those of dynamic size go to bins of their own there, and a problem has none. Source: iree,
compiler/src/iree/compiler/Dialect/Stream/Transforms/LayoutSlices.cpp.

Triton gives first offsets by splitting slots, then colours and bumps what interferes. onnx2c's C unions take a free
slot whatever its size. Source: onnx2c, src/optimization_passes/unionize_tensors.cpp.
"""

import heapq
from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from modelplan.model import Budget, IntArray, Placement, Problem, bounds
from modelplan.planning.allocators.allocator_rows import (
    EQUAL_SIZES,
    GAP_FIT_TO_LOAD,
    Allocator,
    Objects,
    Records,
    sharing,
)
from modelplan.planning.allocators.greedy import GapRule, by_start, in_order, sizes_rounded
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


_GLOW: tuple[Allocator, ...] = (
    GAP_FIT_TO_LOAD(
        "glow",
        place_best,
        "pytorch/glow, lib/CodeGen/MemoryAllocator.cpp",
        cost="O(n log n + n k log k), three times",
        fast=True,
        alignment=64,
    ),
)


def place_slices(problem: Problem, _budget: Budget) -> Placement:
    """By start, then end; sizes rounded up; the tightest gap by the arena's lopsided comparison."""
    return _place(problem, GapRule.MIXED)


def place_slices_fixed(problem: Problem, _budget: Budget) -> Placement:
    """Like the original, the tightest gap by usable bytes."""
    return _place(problem, GapRule.TIGHTEST)


def _place(problem: Problem, fit: GapRule) -> Placement:
    order = np.lexsort((problem.end, problem.start))
    return in_order(replace(problem, size=sizes_rounded(problem)), order, fit)


_IREE: tuple[Allocator, ...] = (
    GAP_FIT_TO_LOAD(
        "iree",
        place_slices,
        "IREE, Dialect/Stream/Transforms/LayoutSlices.cpp",
        alignment=64,
        quirks="gaps are compared lopsidedly when alignment leaves padding",
        fixed=place_slices_fixed,
        omits="bins for slices of dynamic size: a problem has none",
    ),
)


def slots_then_colours(problem: Problem) -> tuple[Placement, int]:
    """The placement, and how many rounds of colouring and bumping it took.

    Size descending, ties in the problem's order. Extra conflicts count as interference, so the rounds repair them.

    Cost: O(log n) for each slot looked at, then as many passes as repairs need, each over what interferes; memory
    O(n + interfering pairs).

    Source: triton-lang/triton, lib/Analysis/Allocation.cpp.
    """
    order = np.argsort(-problem.size, kind="stable")
    offsets, passes = _core.triton_place(problem.core, order.astype(np.int64))
    return Placement(offsets), passes


def _run(problem: Problem, _budget: Budget) -> Placement:
    """Largest first into slots that split, then colours what interferes and bumps it until nothing does."""
    return slots_then_colours(problem)[0]


_TRITON = (
    Allocator(
        "triton",
        _run,
        "triton-lang/triton, lib/Analysis/Allocation.cpp",
        "offsets",
        "none",
        "O(n log n) and as many passes over what interferes as repairs need; memory O(n + interfering pairs)",
        honours=frozenset({"alignment", "overlaps", "conflicts"}),
        invariants=frozenset({"scaling"}),
    ),
)


def share_unions(problem: Problem, _budget: Budget) -> Objects:
    """The free slot of the lowest number, or a new one; a slot is as large as its largest member."""
    records = Records.of(problem)
    busy: list[tuple[int, int]] = []
    idle: list[int] = []
    holder: list[int] = []
    count = 0
    for start, end in zip(records.start.tolist(), records.end.tolist(), strict=True):
        while busy and busy[0][0] <= start:
            heapq.heappush(idle, heapq.heappop(busy)[1])
        if not idle:
            idle.append(count)
            count += 1
        holder.append(heapq.heappop(idle))
        heapq.heappush(busy, (end, holder[-1]))
    return records.objects(problem, np.array(holder, dtype=np.int64))


_ONNX2C: tuple[Allocator, ...] = (
    sharing("onnx2c", share_unions, "onnx2c, src/optimization_passes/unionize_tensors.cpp", "O(n log n)", EQUAL_SIZES),
)


ROWS: tuple[Allocator, ...] = (*_GLOW, *_IREE, *_TRITON, *_ONNX2C)

"""The memory planners of TFLite's GPU delegate: shared objects, and offsets.

Buffers are its usage records: in order of their first task, ties by number. Its inclusive test last < first is
end <= start here: touching half-open lifetimes do not conflict.
Source: LiteRT, tflite/delegates/gpu/common/memory_management; Pisarchyk and Lee, Efficient Memory Management for
Deep Neural Net Inference, 2020, arXiv 2001.03288.
"""

import heapq
from bisect import bisect_left, insort
from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from modelplan.model import Budget, Placement, Problem
from modelplan.planning.allocators.allocator_rows import (
    EQUAL_SIZES,
    GAP_FIT,
    PAIRS_OF_SEARCH,
    Allocator,
    Objects,
    Records,
    baseline,
    sharing,
)
from modelplan.planning.allocators.greedy import GapRule, by_size, end_to_end, in_order
from modelplan.primitives import _core
from modelplan.primitives.errors import RequestError

#: The flow network has an arc for each pair of buffers that follow each other.
MOST_FLOW_BUFFERS = 4096
MOST_FLOW_STEPS = 500_000_000


def share_naive(problem: Problem, _budget: Budget) -> Objects:
    """Each buffer has an object of its own: what no reuse costs."""
    records = Records.of(problem)
    return records.objects(problem, np.arange(len(records.buffers), dtype=np.int64))


def place_naive(problem: Problem, _budget: Budget) -> Placement:
    """Every buffer at its own address, end to end: what no reuse costs."""
    return end_to_end(problem)


def share_equal(problem: Problem, _budget: Budget) -> Objects:
    """An object is reused only by buffers of exactly its size, the most recently freed one first."""
    records = Records.of(problem)
    idle: dict[int, list[int]] = {}
    sizes: list[int] = []
    busy: list[tuple[int, int]] = []
    holder = []
    for size, start, end in _rows(records):
        for freed in _released(busy, start):
            idle.setdefault(sizes[freed], []).append(freed)
        if not idle.get(size):
            sizes.append(size)
            idle[size] = [len(sizes) - 1]
        holder.append(idle[size].pop())
        heapq.heappush(busy, (end, holder[-1]))
    return records.objects(problem, np.array(holder, dtype=np.int64))


def share_in_order(problem: Problem, _budget: Budget) -> Objects:
    """The free object whose size is nearest, the larger one of two equally near; it grows where it is too small."""
    records = Records.of(problem)
    idle: list[tuple[int, int]] = []
    sizes: list[int] = []
    busy: list[tuple[int, int]] = []
    holder = []
    for size, start, end in _rows(records):
        for freed in _released(busy, start):
            insort(idle, (sizes[freed], freed))
        if not idle:
            sizes.append(size)
            idle.append((size, len(sizes) - 1))
        taken = idle.pop(_nearest(idle, size))[1]
        sizes[taken] = max(sizes[taken], size)
        holder.append(taken)
        heapq.heappush(busy, (end, taken))
    return records.objects(problem, np.array(holder, dtype=np.int64))


def _rows(records: Records) -> Iterator[tuple[int, int, int]]:
    return zip(records.size.tolist(), records.start.tolist(), records.end.tolist(), strict=True)


def _released(busy: list[tuple[int, int]], start: int) -> Iterator[int]:
    """Takes the objects out of the heap whose buffer has ended, by end, then by number."""
    while busy and busy[0][0] <= start:
        yield heapq.heappop(busy)[1]


def _nearest(idle: list[tuple[int, int]], size: int) -> int:
    """Place of the smallest object that covers `size`, or of the largest that does not when that is nearer."""
    covering = bisect_left(idle, (size, 0))
    if covering == len(idle):
        return covering - 1
    if covering and size - idle[covering - 1][0] < idle[covering][0] - size:
        return covering - 1
    return covering


def share_by_breadth(problem: Problem, _budget: Budget) -> Objects:
    """Steps with the most live bytes first; each buffer into the clear object that fits it best."""
    records = Records.of(problem)
    return records.objects(problem, _core.share_by_breadth(records.size, records.start, records.end))


def share_by_size(problem: Problem, _budget: Budget) -> Objects:
    """Buffers that decide the bound first, each into the clear object that is nearest in time."""
    records = Records.of(problem)
    return records.objects(problem, _core.share_by_distance(records.size, records.start, records.end))


def share_min_cost(problem: Problem, budget: Budget) -> Objects:
    """Chains of buffers by a minimum-cost flow in which taking over an object costs what it has to grow.

    A budget counts arcs; buffers that it leaves unserved have objects of their own.

    Raises:
        RequestError: more than MOST_FLOW_BUFFERS buffers.
    """
    records = Records.of(problem)
    if len(records.buffers) > MOST_FLOW_BUFFERS:
        raise RequestError(
            f"min-cost flow looks at every pair of buffers: found {len(records.buffers)} of them,"
            f" expected at most {MOST_FLOW_BUFFERS}"
        )
    most = MOST_FLOW_STEPS if budget.steps is None else budget.steps
    seconds = float("inf") if budget.seconds is None else budget.seconds
    holder, _, ended = _core.share_min_cost(records.size, records.start, records.end, most, seconds)
    return replace(records.objects(problem, holder), ended=ended)


def share_best(problem: Problem, budget: Budget) -> Objects:
    """By size, or by breadth where that is strictly smaller."""
    return min(share_by_size(problem, budget), share_by_breadth(problem, budget), key=lambda objects: objects.total)


def shared_bound(problem: Problem) -> int:
    """The sum of positional maxima: no set of shared objects is smaller.

    Source: Pisarchyk and Lee 2020, section on the lower bound of shared objects.
    """
    records = Records.of(problem)
    return int(_core.positional_maxima(records.size, records.start, records.end).sum())


def place_by_size(problem: Problem, _budget: Budget) -> Placement:
    """Buffers largest first, each into the tightest gap that holds it.

    Of equal sizes the earlier start goes first. Of equal gaps the lowest is taken; without a gap, the buffer goes
    above all that it conflicts with.
    """
    return in_order(problem, by_size(problem), GapRule.TIGHTEST)


def place_by_breadth(problem: Problem, _budget: Budget) -> Placement:
    """In the order of the objects by breadth, by the gap rule of the offsets by size.

    That order is by the rank of the broadest step that a buffer lives in, then by size, then by start.
    """
    records = Records.of(problem)
    rank = records.spread(_core.breadth_ranks(records.size, records.start, records.end), len(problem), 0)
    return in_order(problem, np.lexsort((problem.start, -problem.size, rank)), GapRule.TIGHTEST)


SOURCE = "LiteRT, GPU delegate, memory_management"
PAPER = "Pisarchyk and Lee 2020, arXiv 2001.03288"
BOTH = f"{SOURCE}; {PAPER}"
ANY_ORDER = "the reallocation graph for tasks in any order: here the order is fixed"

ROWS: tuple[Allocator, ...] = (
    replace(baseline("naive", place_naive, f"{SOURCE}, naive_assignment"), share=share_naive),
    sharing("tflite-equality", share_equal, BOTH, "O(n log n)", EQUAL_SIZES, ANY_ORDER),
    sharing("tflite-greedy-in-order", share_in_order, BOTH, "O(n log n + n objects)", EQUAL_SIZES, ANY_ORDER),
    sharing("tflite-greedy-by-breadth", share_by_breadth, BOTH, "O(n objects log n)"),
    sharing("tflite-greedy-by-size-objects", share_by_size, BOTH, "O(n^2 + n objects log n)"),
    sharing("tflite-min-cost-flow", share_min_cost, BOTH, "O(n^3) and worse", EQUAL_SIZES, most_pairs=PAIRS_OF_SEARCH),
    sharing("tflite-greedy-best", share_best, BOTH, "their sum", "the better of by-size-objects and by-breadth"),
    GAP_FIT(
        "tflite-greedy-by-size",
        place_by_size,
        f"{SOURCE}, greedy_by_size_assignment (offsets); {PAPER}",
        also_called="strip packing: lifetimes are widths that stay where they are, sizes heights, the arena the strip",
    ),
    GAP_FIT("tflite-greedy-by-breadth-offsets", place_by_breadth, f"{PAPER}, greedy by breadth for offsets"),
)

"""What most planners are made of: an order, a rule for gaps, and one kernel that places; and the classic ones of it.

Classic are first, best and worst fit in five orders, and the colouring that is optimal for equal sizes.
"""

from enum import StrEnum
from functools import partial

import numpy as np

from modelplan.model import Budget, IntArray, Placement, Problem
from modelplan.planning.allocators.allocator_rows import GAP_FIT, GAP_FIT_TO_LOAD, Allocator, Records, laid_out
from modelplan.primitives import _core
from modelplan.primitives.errors import RequestError


class GapRule(StrEnum):
    """Which gap a buffer takes; without one that is large enough it goes on top of what it conflicts with."""

    LOWEST = "lowest"
    TIGHTEST = "tightest"
    WIDEST = "widest"
    RAW = "raw"
    """The tightest, counting padding that cannot be used."""
    MIXED = "mixed"
    """Usable bytes are compared with the bytes, padding included, of the best gap so far."""


def in_order(problem: Problem, order: IntArray, fit: GapRule = GapRule.LOWEST) -> Placement:
    """Places pinned buffers, then the others in `order`, each by `fit`.

    Cost: O(n log n + n k log k) time for k conflicts placed before, O(n) memory.
    """
    return Placement(_core.place_in_order(problem.core, order.astype(np.int64), fit))


def end_to_end(problem: Problem) -> Placement:
    """Every buffer at its own address in the given order: what no reuse costs."""
    step, size = problem.alignment.tolist(), problem.size.tolist()
    offsets, top = [], 0
    for i in range(len(problem)):
        offsets.append(-(-top // step[i]) * step[i] if size[i] else 0)
        top = max(top, offsets[-1] + size[i])
    return Placement(np.array(offsets, dtype=np.int64))


def sizes_rounded(problem: Problem) -> IntArray:
    """Each size rounded up to the buffer's own alignment."""
    return -(-problem.size // problem.alignment) * problem.alignment


def by_start(problem: Problem) -> IntArray:
    """Buffers by rising start, ties by number: the order in which a program asks for them."""
    return np.argsort(problem.start, kind="stable")


def by_size(problem: Problem) -> IntArray:
    """Largest first, ties by rising start, then by number."""
    return np.lexsort((problem.start, -problem.size))


def by_area(problem: Problem) -> IntArray:
    """Bytes times steps, greatest first, ties by number."""
    area = problem.size.astype(np.float64) * (problem.end - problem.start)
    return np.argsort(-area, kind="stable")


def by_duration(problem: Problem) -> IntArray:
    """Longest first, then largest, ties by number."""
    return np.lexsort((-problem.size, problem.start - problem.end))


def by_conflicts(problem: Problem) -> IntArray:
    """Alive together with the most others first, then largest, ties by number."""
    return np.lexsort((-problem.size, -conflict_counts(problem)))


def by_bytes(problem: Problem) -> IntArray:
    """Largest first, then longest, ties by number."""
    return np.lexsort((problem.start - problem.end, -problem.size))


def conflict_counts(problem: Problem) -> IntArray:
    """For each buffer how many others are alive at one of its steps, extra conflicts included. Cost: O(n log n)."""
    begun = np.searchsorted(np.sort(problem.start), problem.end, side="left")
    ended = np.searchsorted(np.sort(problem.end), problem.start, side="right")
    extra = np.bincount(problem.conflicts.ravel(), minlength=len(problem))
    return begun - ended - 1 + extra


ORDERS = {"start": by_start, "size": by_bytes, "area": by_area, "duration": by_duration, "conflicts": by_conflicts}
#: Those that the portfolio runs: with glow and tflm-greedy they are on the mean as low as all the greedy rows.
FAST = {"first-size", "best-start"}
FITS = {"first": GapRule.LOWEST, "best": GapRule.TIGHTEST, "worst": GapRule.WIDEST}


def _place(order: str, fit: GapRule, problem: Problem, _budget: Budget) -> Placement:
    """In the order that the name ends with, start rising, the rest falling; by the fit that it begins with."""
    return in_order(problem, ORDERS[order](problem), fit)


def colour(problem: Problem, _budget: Budget) -> Placement:
    """Equal blocks, each the lowest that is free: with equal sizes and alignments no placement is lower.

    Raises:
        RequestError: sizes or alignments differ.

    Cost: O(n) after sorting by start and by end.
    Source: Gupta, Lee and Leung, An optimal solution for the channel-assignment problem, IEEE Transactions on
    Computers C-28(11), 1979.
    """
    records = Records.of(problem)
    if len(np.unique(records.size)) > 1 or len(np.unique(problem.alignment[records.buffers])) > 1:
        raise RequestError("interval colouring needs buffers of one size and one alignment")
    return Placement(laid_out(problem, records.objects(problem, _colours(records))))


def _colours(records: Records) -> IntArray:
    """For each record a block that is free in its lifetime, the last freed one first."""
    colours = np.zeros(len(records.buffers), dtype=np.int64)
    ending = np.argsort(records.end, kind="stable").tolist()
    idle: list[int] = []
    ended = blocks = 0
    for i, start in enumerate(records.start.tolist()):
        while records.end[ending[ended]] <= start:
            idle.append(int(colours[ending[ended]]))
            ended += 1
        if not idle:
            idle.append(blocks)
            blocks += 1
        colours[i] = idle.pop()
    return colours


def _row(fit: str, order: str) -> Allocator:
    row = GAP_FIT_TO_LOAD if order == "start" else GAP_FIT
    run = partial(_place, order, FITS[fit])
    return row(f"{fit}-fit-{order}", run, f"{fit} fit", fast=f"{fit}-{order}" in FAST)


ROWS: tuple[Allocator, ...] = (
    *(_row(fit, order) for order in ORDERS for fit in FITS),
    Allocator(
        "interval-colouring",
        colour,
        "Gupta, Lee and Leung 1979, IEEE Transactions on Computers C-28(11)",
        "colouring",
        "optimal, for one size and one alignment; refuses others",
        "O(n log n)",
        honours=frozenset({"alignment"}),
        invariants=frozenset({"scaling", "reversal", "load"}),
    ),
)

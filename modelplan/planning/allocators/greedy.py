"""What most planners are made of: an order, a rule for gaps, and one kernel that places."""

from __future__ import annotations

from enum import StrEnum

import numpy as np

from modelplan.model import IntArray, Placement, Problem
from modelplan.primitives import _core


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

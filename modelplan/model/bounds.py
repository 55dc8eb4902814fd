"""The load bound and the height of placements, and the bytes alive at each step."""

from __future__ import annotations

import numpy as np

from modelplan.model import IntArray, Placement, Problem
from modelplan.primitives import _core


def load_bound(problem: Problem) -> int:
    """The most bytes alive at once: a lower bound for every placement of `problem`.

    All live buffers but the topmost count rounded up to the greatest common divisor of the alignments.

    Cost: O(n log n) time, O(n) memory.
    """
    return _core.load_bound(problem.core)[0]


def peak_step(problem: Problem) -> int:
    """The first step at which the load bound is reached."""
    return _core.load_bound(problem.core)[1]


def height(problem: Problem, placement: Placement) -> int:
    """The end of the highest buffer: the bytes the placement needs."""
    occupied = problem.size > 0
    return int((placement.offsets + problem.size)[occupied].max(initial=0))


def live_bytes(problem: Problem, steps: int) -> IntArray:
    """For each of `steps` steps the bytes alive, without alignment."""
    change = np.zeros(steps + 1, dtype=np.int64)
    np.add.at(change, np.minimum(problem.start, steps), problem.size)
    np.add.at(change, np.minimum(problem.end, steps), -problem.size)
    return np.cumsum(change)[:steps]


def alive_at(problem: Problem, step: int) -> IntArray:
    """The buffers alive at `step`, largest first."""
    alive = np.flatnonzero((problem.start <= step) & (step < problem.end))
    return alive[np.argsort(-problem.size[alive], kind="stable")]

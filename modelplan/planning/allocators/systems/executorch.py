"""ExecuTorch's memory planning: end to end, and shared objects in which buffers may be stacked.

Source: executorch, exir/memory_planning.py (naive, greedy).
Not followed: buffers written in place join their base's object without asking whether their longer life is clear
there. That is unsound; here aliases are merged, with the union of their lives, before any allocator runs.
"""

from __future__ import annotations

import numpy as np

from modelplan.model import Budget, Placement, Problem
from modelplan.planning.allocators.greedy import end_to_end
from modelplan.planning.allocators.table import Allocator, Records, baseline
from modelplan.primitives import _core


def place_naive(problem: Problem, _budget: Budget) -> Placement:
    """End to end, sizes rounded up to their alignment."""
    return end_to_end(problem)


def place_greedy(problem: Problem, _budget: Budget) -> Placement:
    """Largest first, of equal sizes the later; the first object that is clear, else the first with room on top.

    Objects never grow and lie end to end.
    """
    records = Records.of(problem)
    step = int(np.lcm.reduce(problem.alignment, initial=1))
    rounded = -(-records.size // step) * step
    order = np.lexsort((-np.arange(len(rounded)), -records.size))
    holder, inside, sizes = _core.stack_in_objects(rounded, records.start, records.end, order, True)
    starts = np.cumsum(sizes) - sizes
    return Placement(records.spread(starts[holder] + inside, len(problem), 0))


SOURCE = "ExecuTorch, exir/memory_planning.py"

ROWS: tuple[Allocator, ...] = (
    baseline("executorch-naive", place_naive, SOURCE, alignment=16),
    Allocator(
        "executorch-greedy",
        place_greedy,
        SOURCE,
        "objects",
        "none",
        "O(n log n + n k)",
        honours=frozenset({"alignment", "overlaps"}),
        alignment=16,
        invariants=frozenset({"scaling"}),
        omits="mem_id pools and devices: a problem has one memory",
    ),
)

"""OpenVINO's memory solver: the largest box first, at the lowest place.

Source: openvino, src/inference/dev_api/openvino/runtime/memory_solver.hpp.
"""

from __future__ import annotations

import numpy as np

from modelplan.model import Budget, Placement, Problem
from modelplan.planning.allocators.greedy import in_order
from modelplan.planning.allocators.table import GAP_FIT, Allocator


def place_boxes(problem: Problem, _budget: Budget) -> Placement:
    """Largest first, lowest feasible place. The original leaves ties open; here by start, end and number."""
    return in_order(problem, np.lexsort((problem.end, problem.start, -problem.size)))


ROWS: tuple[Allocator, ...] = (
    GAP_FIT(
        "openvino",
        place_boxes,
        "OpenVINO, inference/dev_api/openvino/runtime/memory_solver.hpp",
        invariants=frozenset({"scaling", "load"}),
    ),
)

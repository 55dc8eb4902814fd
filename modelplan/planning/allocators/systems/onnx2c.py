"""onnx2c's C unions: a free slot is taken whatever its size.

Source: onnx2c, src/optimization_passes/unionize_tensors.cpp.
"""

from __future__ import annotations

import heapq

import numpy as np

from modelplan.model import Budget, Problem
from modelplan.planning.allocators.table import EQUAL_SIZES, Allocator, Objects, Records, sharing


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


ROWS: tuple[Allocator, ...] = (
    sharing("onnx2c", share_unions, "onnx2c, src/optimization_passes/unionize_tensors.cpp", "O(n log n)", EQUAL_SIZES),
)

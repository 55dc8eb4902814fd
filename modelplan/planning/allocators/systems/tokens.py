"""Apache TVM's token reuse (Relax and Relay): whole storages change hands within a window of sixteen times the size."""

from bisect import bisect_left, insort

import numpy as np

from modelplan.model import Budget, Problem
from modelplan.planning.allocators.allocator_rows import Objects, sharing

#: A free token serves sizes from a sixteenth of its own to sixteen times that.
WINDOW = 16


class _Free:
    """Free tokens by size; of equal ones the one freed first comes first."""

    def __init__(self) -> None:
        self._keys: list[tuple[int, int]] = []
        self._tokens: dict[tuple[int, int], int] = {}
        self._released = 0

    def release(self, token: int, size: int) -> None:
        self._released += 1
        insort(self._keys, (size, self._released))
        self._tokens[size, self._released] = token

    def take(self, size: int) -> int | None:
        """The smallest token that holds `size` within the window, else the largest that need not grow too much."""
        at = bisect_left(self._keys, (size, 0))
        if at < len(self._keys) and self._keys[at][0] <= WINDOW * size:
            return self._tokens.pop(self._keys.pop(at))
        if at > 0 and WINDOW * self._keys[at - 1][0] >= size:
            largest = bisect_left(self._keys, (self._keys[at - 1][0], 0))
            return self._tokens.pop(self._keys.pop(largest))
        return None


def share_tokens(problem: Problem, _budget: Budget) -> Objects:
    """Tokens in program order: a buffer takes a free one of like size, which grows where needed, or a new one.

    A token is free again once its buffer has ended: an op's outputs never take its inputs' storage.

    Cost: O(n log n) time, O(n) memory.

    Source: apache/tvm, src/relax/transform/static_plan_block_memory.cc; Relay's graph_plan_memory.cc and
    token_allocator.cc used the same window.
    """
    holder = np.full(len(problem), -1, dtype=np.int64)
    sizes: list[int] = []
    free = _Free()
    deaths = np.argsort(problem.end, kind="stable").tolist()
    dead = 0
    for b in np.argsort(problem.start, kind="stable").tolist():
        while problem.end[deaths[dead]] <= problem.start[b]:
            token = int(holder[deaths[dead]])
            dead += 1
            if token >= 0:
                free.release(token, sizes[token])
        if problem.size[b] > 0:
            holder[b] = _hold(int(problem.size[b]), free, sizes)
    return Objects(holder, tuple(sizes))


def _hold(size: int, free: _Free, sizes: list[int]) -> int:
    token = free.take(size)
    if token is None:
        sizes.append(size)
        return len(sizes) - 1
    sizes[token] = max(sizes[token], size)
    return token


ROWS = (
    sharing(
        "tvm-token-reuse",
        share_tokens,
        "apache/tvm, StaticPlanBlockMemory (Relax) and GraphPlanMemory (Relay)",
        "O(n log n)",
    ),
)

"""Both ends of TFLM's arena while it allocates: what it keeps at the end, what it holds for a while in front.

Source: tflite-micro, arena_allocator/single_arena_buffer_allocator.cc, memory_planner/greedy_memory_planner.h.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TypeAlias

import numpy as np

from modelplan.model import IntArray
from modelplan.primitives.units import rounded_up
from modelplan.runtimes.tflm import planner
from modelplan.runtimes.tflm.abi import Abi, Struct, StructLayout, layout

#: What operators do, each once: they allocate at both ends.
Acts: TypeAlias = "Sequence[Callable[[ArenaMemory], None]]"
#: Bytes that the greedy planner works with for each buffer.
PLANNED_BUFFER = 40


class ArenaMemory:
    """Both ends of the arena: `need` is the most that lay at both at one moment, `highest` the most in front."""

    def __init__(self, abi: Abi) -> None:
        self.abi = abi
        self.front = self.depth = self.need = self.highest = 0
        self.used: dict[str, int] = {}
        self.asked: dict[str, int] = {}
        self.counts: dict[str, int] = {}

    def keep(self, row: str, size: int, alignment: int = planner.ALIGNMENT) -> None:
        """One allocation at the end, which grows down: its start is rounded down to the alignment."""
        self.keep_all(row, (StructLayout(size, alignment),))

    def keep_struct(self, row: str, struct: Struct, count: int = 1) -> None:
        """`count` structures in one allocation."""
        size, alignment = layout(struct, self.abi)
        self.keep(row, size * count, alignment)

    def keep_all(self, row: str, each: Iterable[StructLayout]) -> None:
        """Many allocations at the end, while nothing changes in front."""
        depth, asked, count = self.depth, 0, 0
        for size, alignment in each:
            depth = -(-(depth + size) // alignment) * alignment  # in place: some ten thousand come here
            asked += size
            count += 1
        if count:
            self.used[row] = self.used.get(row, 0) + depth - self.depth
            self.asked[row] = self.asked.get(row, 0) + asked
            self.counts[row] = self.counts.get(row, 0) + count
            self.depth = depth
            self._note()

    def hold(self, size: int, alignment: int) -> None:
        """One allocation at the front, until `resize` or `plan`."""
        self.front = rounded_up(self.front, alignment) + size
        self._note()

    def resize(self, size: int) -> None:
        """Gives the front another size; what was held there is gone."""
        self.front = size
        self._note()

    def perform(self, acts: Acts, alone: Sequence[ArenaMemory], numbers: IntArray, fronts: IntArray) -> None:
        """Performs the act of each of `numbers`, and gives the front the size that follows it in `fronts`.

        An act allocates at both ends, with addresses that are multiples of what the fronts are multiples of.
        Where the end is aligned, it takes the same each time, so that it is counted as it is `alone`: see `each_alone`.
        """
        begun = 0
        while begun < len(numbers) and self.depth % planner.ALIGNMENT:
            acts[numbers[begun]](self)
            self.resize(int(fronts[begun]))
            begun += 1
        if begun == len(numbers):
            return
        rest = numbers[begun:]
        deeper, need, highest = np.array(
            [(memory.depth, memory.need, memory.highest) for memory in alone], dtype=np.int64
        ).T
        before = self.depth + np.cumsum(deeper[rest]) - deeper[rest]
        front = np.append(self.front, fronts[begun:-1])
        self.highest = max(self.highest, int(np.max(front + highest[rest])))
        self.need = max(self.need, int(np.max(before + front + need[rest])))
        for memory, times in zip(alone, np.bincount(rest, minlength=len(alone)).tolist(), strict=True):
            self.depth += memory.depth * times
            for row, used in memory.used.items():
                self.used[row] = self.used.get(row, 0) + used * times
                self.asked[row] = self.asked.get(row, 0) + memory.asked[row] * times
                self.counts[row] = self.counts.get(row, 0) + memory.counts[row] * times
        self.resize(int(fronts[-1]))

    def plan(self, buffers: int) -> None:
        """What the planner works with for so many buffers, between both ends as far as they are aligned."""
        front = rounded_up(self.front, planner.ALIGNMENT) + PLANNED_BUFFER * buffers
        self.highest = max(self.highest, front)
        self.need = max(self.need, front + rounded_up(self.depth, planner.ALIGNMENT))

    def _note(self) -> None:
        front = self.front  # compared by hand: some ten events of each operator come here
        if front > self.highest:
            self.highest = front
        if front + self.depth > self.need:
            self.need = front + self.depth


def each_alone(acts: Acts, abi: Abi) -> list[ArenaMemory]:
    """What each act leaves of an empty arena."""
    each = [ArenaMemory(abi) for _ in acts]
    for act, memory in zip(acts, each, strict=True):
        act(memory)
    return each

"""Both ends of TFLM's arena while it allocates: what it keeps at the end, what it holds for a while in front.

Source: tflite-micro, arena_allocator/single_arena_buffer_allocator.cc, memory_planner/greedy_memory_planner.h.
"""

from __future__ import annotations

from modelplan.runtimes.tflm import planner
from modelplan.runtimes.tflm.abi import Abi, Struct, layout

#: Bytes that the greedy planner works with for each buffer.
PLANNED_BUFFER = 40


class ArenaMemory:
    """Both ends of the arena: `need` is the most that lay at both at one moment, `highest` the most in front.

    What is kept while `owner` is an operator's number counts as its own too, without alignment.
    """

    def __init__(self, abi: Abi) -> None:
        self.abi = abi
        self.front = self.depth = self.need = self.highest = 0
        self.used: dict[str, int] = {}
        self.counts: dict[str, int] = {}
        self.owner = -1
        self.owned: dict[int, int] = {}

    def keep(self, row: str, size: int, alignment: int = planner.ALIGNMENT) -> None:
        """One allocation at the end, which grows down: its start is rounded down to the alignment."""
        deeper = _up(self.depth + size, alignment)
        self.used[row] = self.used.get(row, 0) + deeper - self.depth
        self.owned[self.owner] = self.owned.get(self.owner, 0) + size
        self.counts[row] = self.counts.get(row, 0) + 1
        self.depth = deeper
        self._note()

    def keep_struct(self, row: str, struct: Struct, count: int = 1) -> None:
        """`count` structures in one allocation."""
        size, alignment = layout(struct, self.abi)
        self.keep(row, size * count, alignment)

    def hold(self, size: int, alignment: int) -> None:
        """One allocation at the front, until `resize` or `plan`."""
        self.front = _up(self.front, alignment) + size
        self._note()

    def resize(self, size: int) -> None:
        """Gives the front another size; what was held there is gone."""
        self.front = size
        self._note()

    def plan(self, buffers: int) -> None:
        """What the planner works with for so many buffers, between both ends as far as they are aligned."""
        front = _up(self.front, planner.ALIGNMENT) + PLANNED_BUFFER * buffers
        self.highest = max(self.highest, front)
        self.need = max(self.need, front + _up(self.depth, planner.ALIGNMENT))

    def _note(self) -> None:
        front = self.front  # compared by hand: some ten events of each operator come here
        if front > self.highest:
            self.highest = front
        if front + self.depth > self.need:
            self.need = front + self.depth


def _up(value: int, unit: int) -> int:
    return -(-value // unit) * unit

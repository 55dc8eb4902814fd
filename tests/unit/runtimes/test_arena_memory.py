"""Both ends of TFLM's arena: many acts at once leave it as one after the other does."""

from __future__ import annotations

import random
from collections.abc import Callable
from functools import partial

import numpy as np
import pytest

from modelplan.runtimes.tflm.abi import ABIS, StructLayout
from modelplan.runtimes.tflm.arena_memory import ArenaMemory, each_alone

Act = Callable[[ArenaMemory], None]


def allocate(events: list[tuple[str, int]], memory: ArenaMemory) -> None:
    """Keeps what names a row, and holds the rest."""
    for row, size in events:
        if row:
            memory.keep(row, size)
        else:
            memory.hold(size, memory.abi.pointer)


def state(memory: ArenaMemory) -> tuple[object, ...]:
    return memory.front, memory.depth, memory.need, memory.highest, memory.used, memory.counts


def begun(abi: str, kept: int) -> ArenaMemory:
    """An arena with an allocation at each end."""
    memory = ArenaMemory(ABIS[abi])
    memory.keep("own", kept, 1)
    memory.resize(memory.abi.pointer * 36)
    return memory


@pytest.mark.parametrize("abi", ["cortex-m", "x86-64"])
@pytest.mark.parametrize("seed", range(8))
def test_acts_that_are_counted_leave_what_acts_one_by_one_leave(abi: str, seed: int) -> None:
    draw = random.Random(seed)
    rows = ("", "", "a", "b")
    acts: list[Act] = [
        partial(allocate, [(draw.choice(rows), draw.randrange(60)) for _ in range(draw.randrange(5))]) for _ in range(6)
    ]
    numbers = np.array([draw.randrange(6) for _ in range(40)], dtype=np.int64)
    pointer = ABIS[abi].pointer
    fronts = pointer * np.cumsum([draw.randrange(9) for _ in numbers], dtype=np.int64)
    together, apart = begun(abi, seed), begun(abi, seed)
    together.perform(acts, each_alone(acts, ABIS[abi]), numbers, fronts)
    for number, front in zip(numbers.tolist(), fronts.tolist(), strict=True):
        acts[number](apart)
        apart.resize(front)
    assert state(together) == state(apart)


def test_many_allocations_at_once_are_those_one_by_one() -> None:
    together, apart = begun("x86-64", 3), begun("x86-64", 3)
    sizes = [StructLayout(1, 1), StructLayout(8, 4), StructLayout(24, 8), StructLayout(5, 16)]
    together.keep_all("a", sizes)
    for size, alignment in sizes:
        apart.keep("a", size, alignment)
    assert state(together) == state(apart)
    together.keep_all("b", ())
    assert "b" not in together.used

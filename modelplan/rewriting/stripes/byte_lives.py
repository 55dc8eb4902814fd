"""Which bytes of a program are alive when: accesses to groups of values become lives of runs of bytes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from modelplan.primitives import _core


class MemoryAccess(NamedTuple):
    """Bytes [lo, hi) of a group, read or written at a step through a value."""

    group: int
    lo: int
    hi: int
    step: int
    writes: bool
    value: int


class LiveBytes(NamedTuple):
    """Bytes [lo, hi) of a group that hold a value from step `start` to before step `end`."""

    group: int
    lo: int
    hi: int
    start: int
    end: int


def byte_lives(accesses: Sequence[MemoryAccess]) -> list[LiveBytes]:
    """The lifetimes of all bytes, one segment for each longest run of a lifetime. Step -1: the caller writes inputs.

    A byte lives from a write until its last read before the next one, or for its writer's step alone.
    """
    touched = [(group, lo, hi, step, writes) for group, lo, hi, step, writes, _ in accesses]
    lives = _core.byte_lives(np.array(touched, dtype=np.int64).reshape(-1, 5))
    return list(map(LiveBytes._make, lives.reshape(-1, 5).tolist()))

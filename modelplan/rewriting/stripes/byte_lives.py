"""Which bytes of a program are alive when: accesses to groups of values become lives of runs of bytes."""

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np

from modelplan.model import IntArray
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


def byte_lives(accesses: IntArray | Iterable[MemoryAccess]) -> IntArray:
    """The lifetimes of all bytes, a row as `LiveBytes` for each longest run of one. Step -1: the caller writes inputs.

    A byte lives from a write until its last read before the next one, or for its writer's step alone. An array has the
    accesses without their values.
    """
    if not isinstance(accesses, np.ndarray):
        accesses = np.array([access[:5] for access in accesses], dtype=np.int64).reshape(-1, 5)
    return _core.byte_lives(accesses).reshape(-1, 5)

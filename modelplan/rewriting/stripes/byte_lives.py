"""Which bytes of a program are alive when: accesses to groups of values become lives of runs of bytes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple


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


def byte_lives(found: Sequence[MemoryAccess]) -> list[LiveBytes]:
    """The lifetimes of all bytes, one segment for each run of equal lifetimes. Step -1: the caller writes inputs.

    A byte lives from a write until its last read before the next one, or for its writer's step alone.
    """
    by_group: dict[int, list[MemoryAccess]] = {}
    for access in found:
        by_group.setdefault(access.group, []).append(access)
    return [segment for group in sorted(by_group) for segment in _lives(group, by_group[group])]


def _lives(group: int, found: Sequence[MemoryAccess]) -> Iterator[LiveBytes]:
    cuts = sorted({at for access in found for at in (access.lo, access.hi)})
    index = {at: i for i, at in enumerate(cuts)}
    lives: list[list[tuple[int, int]]] = [[] for _ in cuts[1:]]
    for access in found:
        for i in range(index[access.lo], index[access.hi]):
            if access.writes:
                lives[i].append((access.step, access.step + 1))
            else:
                start = lives[i][-1][0] if lives[i] else -1
                lives[i][-1:] = [(start, access.step + 1)]
    run = 0
    for i, life in enumerate(lives):
        if i + 1 == len(lives) or lives[i + 1] != life:
            for start, end in life:
                yield LiveBytes(group, cuts[run], cuts[i + 1], start, end)
            run = i + 1

"""Which bytes of a program are alive when: accesses to groups of values become lives of runs of bytes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple, TypeAlias

#: From a step to before another.
Life: TypeAlias = tuple[int, int]


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
    by_group: dict[int, list[MemoryAccess]] = {}
    for access in accesses:
        by_group.setdefault(access.group, []).append(access)
    return [segment for group in sorted(by_group) for segment in _lives(group, by_group[group])]


def _lives(group: int, accesses: Sequence[MemoryAccess]) -> Iterator[LiveBytes]:
    cuts = sorted({at for access in accesses for at in (access.lo, access.hi)})
    index = {at: i for i, at in enumerate(cuts)}
    lives: list[list[Life]] = [[] for _ in cuts[1:]]
    for access in accesses:
        for i in range(index[access.lo], index[access.hi]):
            if access.writes:
                lives[i].append((access.step, access.step + 1))
            elif lives[i]:
                lives[i][-1] = lives[i][-1][0], access.step + 1
            else:
                lives[i].append((-1, access.step + 1))
    yield from sorted(LiveBytes(group, lo, hi, *life) for lo, hi, life in _runs(cuts, lives))


def _runs(cuts: Sequence[int], lives: Sequence[Sequence[Life]]) -> Iterator[tuple[int, int, Life]]:
    """The longest runs of bytes of each life; `lives` are those of the bytes between two cuts."""
    begun: dict[Life, int] = {}
    for at, now in zip(cuts, [*lives, ()], strict=True):
        for life in begun.keys() - set(now):
            yield begun.pop(life), at, life
        for life in now:
            begun.setdefault(life, at)

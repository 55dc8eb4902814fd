"""Rows of a table of buffers that are not there all the time: the column `gaps` of MiniMalloc.

A cell is a list of intervals, `3-5 8-9@16:48`: in steps 3 to 5 (half-open) nothing of the buffer is alive, in steps 8
to 9 its bytes 16 to 48 alone. Such a row becomes pieces at fixed distances, a rigid group: one for each stretch of
time.
Source: google/minimalloc, src/converter.cc and src/minimalloc.h.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

_GAP = re.compile(r"(-?\d+)-(-?\d+)(?:@(\d+):(\d+))?")


@dataclass(frozen=True, slots=True)
class Gap:
    """Steps [start, end) in which only the bytes [low, high) of a buffer are alive; none where both are 0."""

    start: int
    end: int
    low: int = 0
    high: int = 0


@dataclass(frozen=True, slots=True)
class Piece:
    """Bytes of a buffer, `delta` above its start, in steps [start, end)."""

    start: int
    end: int
    delta: int
    size: int


def gaps_of(cell: str, more: int) -> tuple[Gap, ...]:
    """The gaps in a cell; `more` is 1 where ends are the last step itself.

    Raises:
        ValueError: the cell is no list of gaps.
    """
    gaps = []
    for word in cell.split():
        match = _GAP.fullmatch(word)
        if match is None:
            raise ValueError(f"{word[:40]!r} is no gap such as 3-5 or 3-5@16:48")
        start, end, low, high = (int(part or 0) for part in match.groups())
        if match[3] is not None and low >= high:
            raise ValueError(f"{word!r} leaves no bytes alive: write it without @")
        gaps.append(Gap(start, end + more, low, high))
    return tuple(gaps)


def pieces(start: int, end: int, size: int, gaps: tuple[Gap, ...]) -> Iterator[Piece]:
    """What is alive of a buffer, by time.

    Raises:
        ValueError: a gap is empty, leaves the buffer, or overlaps another one.
    """
    now = start
    for gap in sorted(gaps, key=lambda gap: gap.start):
        if not now <= gap.start < gap.end <= end or gap.high > size:
            raise ValueError(
                f"the gap {gap.start}-{gap.end} does not lie in steps {now} to {end}, or its bytes not in {size}"
            )
        if gap.start > now:
            yield Piece(now, gap.start, 0, size)
        if gap.high:
            yield Piece(gap.start, gap.end, gap.low, gap.high - gap.low)
        now = gap.end
    if now < end:
        yield Piece(now, end, 0, size)

"""Where groups of values lie in memory: packing of rigid groups whose bytes live and die one row at a time.

A group keeps the distances between its values, but the rows of a map that has been read make room for the rows of the
next one. The packing is a `Problem` with groups, placed and refereed like any other.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

import numpy as np

from modelplan.model import Budget, IntArray, Problem, bounds
from modelplan.planning.allocators import place
from modelplan.primitives import _core
from modelplan.primitives.lazy_records import dataclass


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


#: Pairs of groups that all tries of a packing look at, at most.
_MOST_LOOKS = 500_000_000


class AllowedOverlap(NamedTuple):
    """In `step`, group `by` may be written over group `over` while that is read.

    base(by) - base(over) must be at most `bound`, or equal to it where it is exact.
    """

    over: int
    by: int
    step: int
    bound: int
    exact: bool


@dataclass(frozen=True)
class GroupPacking:
    """A base for each group, the height in bytes, and what no packing of the same groups goes below."""

    bases: tuple[int, ...]
    height: int
    load: int


def group_problem(
    lives: IntArray | Sequence[LiveBytes],
    groups: int,
    alignment: int | Sequence[int],
    overlaps: Iterable[Sequence[int]],
    scratch: IntArray | Sequence[tuple[int, int]] = (),
    values: Callable[[], IntArray | Sequence[LiveBytes]] = tuple,
    worth: Callable[[int], bool] = lambda _: True,
) -> Problem:
    """The packing problem of so many groups: a buffer for each run of bytes with one life.

    `overlaps` are rows as `AllowedOverlap`, `scratch` working buffers of kernels, (step, bytes); each is a group behind
    the others. The first buffers are empty, one at the base of each group, with its alignment: that of all, or a list.
    A step of the program is the next of the problem, since the caller writes the inputs at step 0.

    Working buffers lie apart from each of `values` that is alive as a whole: the runtime places them by itself and
    knows of whole values only, also of bytes that are dead while their value has been made and will be read.

    Where the bytes that last from a step to the next are not `worth` it, what may share bytes and what lies apart is
    left out.
    """
    count = groups + len(scratch)
    bases = [(g, 0, 0, -1, 0) for g in range(count)]
    own = [(groups + i, 0, size, step, step + 1) for i, (step, size) in enumerate(scratch)]
    rows = np.concatenate([_rows(part) for part in (bases, lives, own)])
    group, lo, hi, start, end = rows.T
    aligned = np.ones(len(rows), dtype=np.int64)
    aligned[:count] = alignment
    names = [f"group {g}" for g in range(count)]
    meetings, apart = np.zeros((0, 4), dtype=np.int64), np.zeros((0, 2), dtype=np.int64)
    if worth(_lasting_bytes(hi - lo, start, end)):
        others = len(rows) - len(scratch)
        meetings = _core.meetings(rows[count:], count, _rows(list(overlaps))).reshape(-1, 4)
        dead = _core.dead_runs_apart(rows[:others], count, start[others:].copy(), _rows(values()))
        apart = np.add(dead.reshape(-1, 2), (others, 0))
    return Problem(
        tuple(map(names.__getitem__, group.tolist())),
        hi - lo,
        start + 1,
        end + 1,
        aligned,
        conflicts=apart,
        groups=np.column_stack((np.arange(len(rows)), group, lo)),
        meetings=meetings,
    )


def _rows(rows: IntArray | Sequence[Sequence[int]]) -> IntArray:
    return np.array(rows, dtype=np.int64).reshape(-1, 5)


def _lasting_bytes(size: IntArray, start: IntArray, end: IntArray) -> int:
    """The most bytes that are alive in a step and in the next one: of those no two meet, so no packing needs less."""
    last = int(end.max(initial=0)) + 2
    born, gone = (np.bincount(at, size, last) for at in (start + 1, end))
    return int((born - gone).cumsum().max())


def pack(problem: Problem, tries: int = 2000, seed: int = 0, enough: int | None = None) -> GroupPacking:
    """The lowest packing found in so many tries, of many groups in fewer; `enough` is a height that ends the search.

    Raises:
        KeyboardInterrupt: Ctrl-C during the search.
    """
    groups = int(problem.groups[:, 1].max(initial=-1)) + 1
    tries = min(tries, max(2 * _MOST_LOOKS // max(groups * groups, 1), 1))
    placement = place(problem, "modelplan", Budget(steps=tries, seed=seed, enough=enough))
    if placement.ended == "cancelled":
        raise KeyboardInterrupt
    return GroupPacking(
        tuple(placement.offsets[:groups].tolist()), bounds.height(problem, placement), placement.lower_bound
    )

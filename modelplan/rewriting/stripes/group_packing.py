"""Where groups of values lie in memory: packing of rigid groups whose bytes live and die one row at a time.

A group keeps the distances between its values, but the rows of a map that has been read make room for the rows of the
next one. The packing is a `Problem` with groups, placed and refereed like any other.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

import numpy as np

from modelplan.checking import referee
from modelplan.model import Budget, IntArray, Placement, Problem, bounds
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
    alignment: int,
    overlaps: Callable[[], IntArray | Sequence[AllowedOverlap]],
    scratch: IntArray | Sequence[tuple[int, int]] = (),
    values: Callable[[], IntArray | Sequence[LiveBytes]] = tuple,
    worth: Callable[[int], bool] = lambda _: True,
) -> _core.GroupProblem:
    """The packing problem of so many groups: a buffer for each run of bytes with one life.

    `overlaps` are rows as `AllowedOverlap`, `scratch` working buffers of kernels, (step, bytes); each is a group behind
    the others. The first buffers are empty, one at the base of each group, with the alignment. A step of the program is
    the next of the problem, since the caller writes the inputs at step 0.

    Working buffers lie apart from each of `values` that is alive as a whole: the runtime places them by itself and
    knows of whole values only, also of bytes that are dead while their value has been made and will be read.

    Where the bytes that last from a step to the next are not `worth` it, how groups may lie to each other is left out,
    and they are the load.
    """
    problem = _core.GroupProblem(_rows(lives, 5), groups, alignment, _rows(scratch, 2))
    if worth(problem.load):
        problem.relate(_rows(overlaps(), 5), _rows(values() if len(scratch) else (), 5))
    return problem


def as_problem(packed: _core.GroupProblem) -> Problem:
    """The same for any allocator."""
    size, start, end, alignment, group, delta, meetings, apart = packed.columns()
    return Problem(
        tuple(map("group {}".format, group.tolist())),
        size,
        start,
        end,
        alignment,
        conflicts=apart.reshape(-1, 2),
        groups=np.column_stack((np.arange(len(size)), group, delta)),
        meetings=meetings.reshape(-1, 4),
    )


def _rows(rows: IntArray | Sequence[Sequence[int]], width: int) -> IntArray:
    return np.asarray(rows, dtype=np.int64).reshape(-1, width)


def glance(problem: _core.GroupProblem, tries: int, seed: int, known: GroupPacking | None = None) -> GroupPacking:
    """The lowest packing found in so many tries, of many groups in fewer; `check_packing` has not judged it.

    The search goes on from a `known` one of the same groups and never ends above it.

    Raises:
        KeyboardInterrupt: Ctrl-C during the search.
    """
    before, least = (list(known.bases), known.load) if known else ([], 0)
    bases, height, bound, ended = problem.pack(_fewer(tries, problem.groups), seed, before, least)
    if ended == "cancelled":
        raise KeyboardInterrupt
    return GroupPacking(tuple(bases), height, bound)


def check_packing(problem: _core.GroupProblem, packing: GroupPacking) -> None:
    """Has the referee judge a packing.

    Raises:
        BrokenPlanError: groups share bytes that they must not share.
    """
    judged = as_problem(problem)
    _, groups, delta = judged.groups.T
    referee.check(judged, Placement(np.array(packing.bases, dtype=np.int64)[groups] + delta, packing.load))


def _fewer(tries: int, groups: int) -> int:
    return min(tries, max(2 * _MOST_LOOKS // max(groups * groups, 1), 1))


def pack(problem: Problem, tries: int = 2000, seed: int = 0, enough: int | None = None) -> GroupPacking:
    """The lowest packing found in so many tries, of many groups in fewer; `enough` is a height that ends the search.

    Raises:
        KeyboardInterrupt: Ctrl-C during the search.
    """
    groups = int(problem.groups[:, 1].max(initial=-1)) + 1
    placement = place(problem, "modelplan", Budget(steps=_fewer(tries, groups), seed=seed, enough=enough))
    if placement.ended == "cancelled":
        raise KeyboardInterrupt
    return GroupPacking(
        tuple(placement.offsets[:groups].tolist()), bounds.height(problem, placement), placement.lower_bound
    )

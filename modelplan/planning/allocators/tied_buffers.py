"""Buffers that are tied, to an address or to each other: pins, rigid groups, and lists for allocators that know none.

The buffers of a rigid group move as one, and may slide into what others leave. To an allocator that knows no contiguous
lists each list is one buffer, from its first birth to its last death. Pins may exclude every placement.
"""

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from modelplan.model import Budget, IntArray, Placement, Problem
from modelplan.primitives import _core
from modelplan.primitives.errors import RequestError

#: Steps when nothing else limits the search.
TRIES = 15_000


def pack(problem: Problem, budget: Budget) -> Placement:
    """The lowest placement found by first fit of groups in orders that a local search improves, then completely.

    A step is an order, or as much work of another search. The bound is the load, what the intervals leave in which the
    distance of each two groups lies, or what a complete search has excluded; a placement at the bound is optimal.

    Raises:
        RequestError: pins, alignments or distances inside of a group exclude every placement.

    Cost: for each order the pairs of buffers that live together; their distances are kept, O(pairs) memory.
    """
    tries = budget.steps if budget.steps is not None else TRIES
    offsets, bound, ended, steps = _core.pack_groups(
        problem.core, max(tries, 1), budget.seconds or 0.0, budget.enough or 0, budget.seed
    )
    if len(offsets) < len(problem):
        raise RequestError(_excluded(problem))
    return Placement(offsets, bound, ended, steps)


def _excluded(problem: Problem) -> str:
    """Why there is no placement at all."""
    buffers, groups, delta = problem.rigid.T
    far = 2 * int(problem.size.sum() + delta.max(initial=0) + 1)
    if len(buffers) and len(np.unique(groups)) < 2**62 // far:
        apart: IntArray = np.unique(groups, return_inverse=True)[1] * far + delta
        offsets = np.arange(len(problem), dtype=np.int64) * 0
        offsets[buffers] = apart
        size = np.zeros(len(problem), dtype=np.int64)
        size[buffers] = problem.size[buffers]
        facts = problem.overlaps, problem.meetings
        a, b = _core.find_clash(size, problem.start, problem.end, offsets, *facts)
        if a >= 0:
            return (
                f"buffers {problem.names[a]!r} and {problem.names[b]!r} of one group share bytes while both are alive"
            )
    return "pins, alignments and the distances inside of groups exclude every placement"


def refusal(problem: Problem) -> str:
    """Why the lists of `problem` cannot become buffers, or nothing."""
    members = [b for row in problem.contiguous for b in row]
    if len(problem.groups) or len(problem.meetings) or np.isin(problem.overlaps[:, :2], members).any():
        return "takes a contiguous list as one buffer, which may not take part in overlaps, groups or meetings"
    if (problem.pin[members] >= 0).any():
        return "takes a contiguous list as one buffer, of which no part may be pinned"
    return ""


def run_joined(run: Callable[[Problem, Budget], Placement], problem: Problem, budget: Budget) -> Placement:
    """What `run` answers when each list is one buffer, alive from its first birth to its last death.

    The answer claims no bound: the longer lifetimes may need more than the problem does.
    """
    joined, holder, delta = _joined(problem)
    answer = run(joined, budget)
    ended = "complete" if answer.ended in ("optimal", "infeasible") else answer.ended
    return replace(answer, offsets=answer.offsets[holder] + delta, lower_bound=0, ended=ended)


def _joined(problem: Problem) -> tuple[Problem, IntArray, IntArray]:
    """The problem with joined lists, and for each buffer the one that holds it and where inside."""
    first = np.arange(len(problem), dtype=np.int64)
    delta = np.zeros(len(problem), dtype=np.int64)
    size, start, end = problem.size.copy(), problem.start.copy(), problem.end.copy()
    at = {b: distance for b, _, distance in problem.rigid.tolist()}
    for row in problem.contiguous:
        members, head = np.array(row, dtype=np.int64), row[0]
        first[members] = head
        delta[members] = [at[b] for b in row]
        size[head] = at[row[-1]] + problem.size[row[-1]]
        start[head], end[head] = problem.start[members].min(), problem.end[members].max()
    kept, holder = np.unique(first, return_inverse=True)
    number = holder.astype(np.int64)
    conflicts = number[problem.conflicts]
    overlaps = problem.overlaps.copy()
    overlaps[:, :2] = number[overlaps[:, :2]]
    joined = Problem(
        tuple(problem.names[i] for i in kept),
        size[kept],
        start[kept],
        end[kept],
        problem.alignment[kept],
        problem.pin[kept],
        problem.capacity,
        overlaps,
        conflicts[conflicts[:, 0] != conflicts[:, 1]],
        members=tuple(problem.members[i] for i in kept) if problem.members else (),
        kinds=tuple(problem.kinds[i] for i in kept) if problem.kinds else (),
    )
    return joined, number, delta


def colliding_pins(problem: Problem) -> str:
    """Which two pinned buffers share bytes while both are alive, in words; empty where none do, or where some may.

    Cost: O(n log n).
    """
    if len(problem.meetings):
        return ""
    rows = np.flatnonzero(problem.pin >= 0)
    pinned, offsets = problem.part(rows), problem.pin[rows]
    i, j = _core.find_clash(pinned.size, pinned.start, pinned.end, offsets, pinned.overlaps, problem.meetings)
    if i < 0:
        return ""
    names = " and ".join(repr(pinned.names[b]) for b in sorted((i, j)))
    return f"pinned buffers {names} are alive together and share bytes: there is no placement"

"""Contiguous lists for allocators that know none: each list as one buffer, from its first birth to its last death."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from modelplan.model import Budget, IntArray, Placement, Problem


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

"""Packing of rigid groups: buffers at fixed distances move as one, and may slide into what others leave."""

from __future__ import annotations

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

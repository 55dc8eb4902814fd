"""Placements that keep offsets which somebody would like to see again: of an earlier plan, or the hints of a table."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from modelplan.model import Budget, IntArray, Placement, Problem, bounds
from modelplan.planning.allocators import DEFAULT, place
from modelplan.primitives.errors import ModelPlanError

#: Work of each try, how often the number of pins is halved, and how many pins there are at most.
_STEPS, _TRIES, _MOST = 20_000, 6, 20_000


def keep_offsets(problem: Problem, wanted: IntArray, placement: Placement, price: int = 0) -> Placement:
    """A placement like `placement` in which more buffers stand where they are wanted, refereed.

    Wanted offsets that fit together become pins, the largest buffers first; where no placement is found around them,
    the smaller half of the buffers is let go, and so on.

    Args:
        problem: the buffers.
        wanted: an offset for each buffer, such as that of an earlier plan; negative where it may stand anywhere.
        placement: an answer to the problem.
        price: how many bytes of height a buffer that stays is worth; 0: the answer is no higher than `placement`.

    Cost: a short search for each try, and the square of the number of wanted offsets, of which 20,000 count.
    """
    low = bounds.height(problem, placement)
    best, least = placement, -price * _kept(placement, wanted)
    pins = _compatible(problem, wanted, low + price * int((wanted >= 0).sum()))
    for _ in range(_TRIES):
        if len(pins) <= _kept(best, wanted):
            break
        answer = _around(problem, wanted, pins, low + price * len(pins))
        if answer is not None:
            kept, cost = _kept(answer, wanted), bounds.height(problem, answer) - low - price * _kept(answer, wanted)
            if (cost, -kept) < (least, -_kept(best, wanted)):
                best, least = replace(answer, lower_bound=placement.lower_bound), cost
        pins = pins[: len(pins) // 2]
    if best is placement:
        return placement
    proved = bounds.height(problem, best) == placement.lower_bound
    return replace(best, ended="optimal" if proved else "complete")


def _kept(placement: Placement, wanted: IntArray) -> int:
    """How many wanted offsets a placement has."""
    return int(((placement.offsets == wanted) & (wanted >= 0)).sum())


def _compatible(problem: Problem, wanted: IntArray, limit: int) -> list[int]:
    """Buffers that can stand where they are wanted together, below `limit`, the largest first."""
    ends, free = wanted + problem.size, (problem.pin < 0) & (wanted >= 0) & (wanted + problem.size <= limit)
    ready = np.flatnonzero(free & (wanted % np.maximum(problem.alignment, 1) == 0))
    chosen: list[int] = []
    for b in ready[np.argsort(-problem.size[ready], kind="stable")][:_MOST].tolist():
        others = np.array(chosen, dtype=np.int64)
        at_once = (problem.start[others] < problem.end[b]) & (problem.start[b] < problem.end[others])
        if not (at_once & (wanted[others] < ends[b]) & (wanted[b] < ends[others])).any():
            chosen.append(b)
    return chosen


def _around(problem: Problem, wanted: IntArray, pins: list[int], limit: int) -> Placement | None:
    """A placement of height `limit` at most with these buffers where they are wanted, where a short search has one."""
    pin = problem.pin.copy()
    pin[pins] = wanted[pins]
    try:
        answer = place(replace(problem, pin=pin), DEFAULT, Budget(steps=_STEPS, enough=limit))
    except (
        ModelPlanError
    ):  # the pins contradict an overlap, a conflict or a group, of which `_compatible` knows nothing
        return None
    return answer if bounds.height(problem, answer) <= limit else None

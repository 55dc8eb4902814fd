"""The independent checker: every placement passes it, and it shares no code with what it checks."""

from __future__ import annotations

import numpy as np

from modelplan import _core
from modelplan.errors import BrokenPlanError
from modelplan.types import Placement, Problem


def check(problem: Problem, placement: Placement) -> None:
    """Returns only if `placement` answers `problem`.

    Looks at completeness, signs, alignment, pins, capacity, overlap in time and space (less what `overlaps`
    allows) and the extra conflicts.

    Raises:
        BrokenPlanError: names the buffers, their byte ranges and the step.

    Cost: O(n log n) time, O(n) memory.
    """
    offsets = placement.offsets
    if offsets.shape != (len(problem),):
        raise BrokenPlanError(f"placement has {len(offsets)} offsets for {len(problem)} buffers")
    _check_each(problem, placement)
    earlier, later = _core.find_clash(problem.size, problem.start, problem.end, offsets, problem.overlaps)
    if earlier >= 0:
        raise BrokenPlanError(_clash(problem, placement, earlier, later))
    for a, b in problem.conflicts:
        if _share_bytes(problem, placement, a, b):
            raise BrokenPlanError(_clash(problem, placement, int(a), int(b)))


def _check_each(problem: Problem, placement: Placement) -> None:
    offsets = placement.offsets
    end = offsets + problem.size
    top = problem.capacity if problem.capacity is not None else np.iinfo(np.int64).max
    rules = [
        (offsets < 0, "a non-negative offset"),
        (offsets % problem.alignment != 0, "a multiple of its alignment"),
        ((problem.pin >= 0) & (offsets != problem.pin), "its pin"),
        ((problem.size > 0) & (end > top), f"an end within the capacity of {top} bytes"),
    ]
    for broken, expected in rules:
        if broken.any():
            i = int(np.argmax(broken))
            detail = f"alignment {problem.alignment[i]}, pin {problem.pin[i]}"
            raise BrokenPlanError(f"{_place(problem, placement, i)} ({detail}): expected {expected}")


def _share_bytes(problem: Problem, placement: Placement, a: int, b: int) -> bool:
    low, high = placement.offsets, placement.offsets + problem.size
    return bool(min(high[a], high[b]) > max(low[a], low[b]))


def _place(problem: Problem, placement: Placement, i: int) -> str:
    low = int(placement.offsets[i])
    return f"buffer {i} {problem.names[i]!r} at bytes {low}..{low + int(problem.size[i])}"


def _clash(problem: Problem, placement: Placement, a: int, b: int) -> str:
    step = max(int(problem.start[a]), int(problem.start[b]))
    lives = [f"[{problem.start[i]}, {problem.end[i]})" for i in (a, b)]
    return (
        f"{_place(problem, placement, a)}, alive {lives[0]}, and {_place(problem, placement, b)},"
        f" alive {lives[1]}, share bytes at step {step}"
    )

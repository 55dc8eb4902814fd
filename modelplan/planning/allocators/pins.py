"""Pins that exclude every placement."""

from __future__ import annotations

import numpy as np

from modelplan.model import Problem


def colliding_pins(problem: Problem) -> str:
    """Which two pinned buffers share bytes while both are alive, in words; empty where none do.

    Cost: O(p) numpy passes over the p pinned buffers.
    """
    pinned = np.flatnonzero((problem.pin >= 0) & (problem.size > 0))
    pin, size, start, end = (column[pinned] for column in (problem.pin, problem.size, problem.start, problem.end))
    excused = {frozenset((int(row[0]), int(row[1]))) for row in problem.overlaps}
    for place, i in enumerate(pinned.tolist()):
        bytes_shared = (pin < pin[place] + size[place]) & (pin[place] < pin + size)
        steps_shared = (start < end[place]) & (start[place] < end)
        for j in pinned[bytes_shared & steps_shared].tolist():
            if j > i and frozenset((i, j)) not in excused:
                names = " and ".join(repr(problem.names[b]) for b in (i, j))
                return f"pinned buffers {names} are alive together and share bytes: there is no placement"
    return ""

"""Pins that exclude every placement."""

from __future__ import annotations

import numpy as np

from modelplan.model import Problem
from modelplan.primitives import _core


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

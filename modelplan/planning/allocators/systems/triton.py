"""Triton's shared-memory allocation: first offsets by splitting slots, then colouring and bumping what interferes."""

from __future__ import annotations

import numpy as np

from modelplan.model import Budget, Placement, Problem
from modelplan.planning.allocators.table import Allocator
from modelplan.primitives import _core


def slots_then_colours(problem: Problem) -> tuple[Placement, int]:
    """The placement, and how many rounds of colouring and bumping it took.

    Size descending, ties in the problem's order. Extra conflicts count as interference, so the rounds repair them.

    Cost: O(log n) for each slot looked at, then as many passes as repairs need, each over what interferes; memory
    O(n + interfering pairs).

    Source: triton-lang/triton, lib/Analysis/Allocation.cpp.
    """
    order = np.argsort(-problem.size, kind="stable")
    offsets, passes = _core.triton_place(problem.core, order.astype(np.int64))
    return Placement(offsets), passes


def _run(problem: Problem, _budget: Budget) -> Placement:
    """Largest first into slots that split, then colours what interferes and bumps it until nothing does."""
    return slots_then_colours(problem)[0]


ROWS = (
    Allocator(
        "triton",
        _run,
        "triton-lang/triton, lib/Analysis/Allocation.cpp",
        "offsets",
        "none",
        "O(n log n) and as many passes over what interferes as repairs need; memory O(n + interfering pairs)",
        honours=frozenset({"alignment", "overlaps", "conflicts"}),
        invariants=frozenset({"scaling"}),
    ),
)

"""Offsets inside of each region for a choice of regions, from one end or from both."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from modelplan.answers.region_layout import RegionProblem, Stay, free_range
from modelplan.model import Budget, IntArray, Problem, bounds
from modelplan.planning import allocators
from modelplan.questions.memories.choice_tables import alignments

#: Steps of the allocator's search for each region, unless the caller says otherwise.
_STEPS = 20_000


@dataclass(frozen=True, eq=False)
class Placed:
    """Stays of the buffers in one region, and by how many bytes they are too much: 0 where they fit.

    `proved`: no placement of these buffers fits.
    """

    stays: tuple[Stay, ...]
    excess: int
    proved: bool = False


def place_region(
    problem: RegionProblem, choice: IntArray, region: int, *, both_ends: bool = False, budget: Budget | None = None
) -> Placed:
    """The buffers chosen for a region with their offsets; weights at home take their bytes there wherever they lie.

    `both_ends`: what lives at all steps lies at the upper end of the region, the rest at the lower.
    """
    homes = np.array(problem.home, dtype=np.int64)
    inside = np.flatnonzero((choice == region) | (homes == region))
    if not len(inside):
        return Placed((), 0)
    every = alignments(problem, region)
    low, high = free_range(problem.regions[region], int(every[inside].max()))
    stacked, floor = _stacked(problem, inside, every, region, high) if both_ends else ({}, high)
    rest = np.array([b for b in inside.tolist() if b not in stacked], dtype=np.int64)
    asked = _part(problem.problem, rest, every, floor - low)
    limit = budget or Budget()
    steps = _STEPS if limit.steps is None else limit.steps
    placement = allocators.place(asked, budget=Budget(steps, limit.seconds, limit.seed, enough=max(floor - low, 0)))
    excess = max(bounds.height(asked, placement) - (floor - low), 0)
    offsets = stacked | {b: low + int(at) for b, at in zip(rest.tolist(), placement.offsets, strict=True)}
    stays = tuple(
        Stay(b, region, offsets[b], int(problem.problem.start[b]), int(problem.problem.end[b]))
        for b in inside.tolist()
        if choice[b] == region
    )
    impossible = placement.ended == "infeasible" or placement.lower_bound > floor - low
    return Placed(stays, excess, bool(excess) and impossible and not both_ends)


def _stacked(
    problem: RegionProblem, inside: IntArray, every: IntArray, region: int, high: int
) -> tuple[dict[int, int], int]:
    """Buffers that live at all steps from the upper end down, and the offset of the lowest."""
    asked, base = problem.problem, problem.regions[region].base or 0
    last = int(asked.end.max(initial=0))
    offsets, floor = dict[int, int](), high
    for b in inside.tolist():
        if asked.start[b] == 0 and asked.end[b] == last:
            floor = floor - int(asked.size[b])
            floor -= (base + floor) % int(every[b])
            offsets[b] = floor
    return offsets, floor


def _part(problem: Problem, inside: IntArray, every: IntArray, capacity: int) -> Problem:
    """The problem of some of the buffers."""
    place = {int(b): i for i, b in enumerate(inside)}
    overlaps = [(place[a], place[b], n) for a, b, n in problem.overlaps.tolist() if a in place and b in place]
    conflicts = [(place[a], place[b]) for a, b in problem.conflicts.tolist() if a in place and b in place]
    return Problem(
        tuple(problem.names[b] for b in inside.tolist()), problem.size[inside], problem.start[inside],
        problem.end[inside], every[inside], capacity=max(capacity, 0),
        overlaps=np.array(overlaps, dtype=np.int64).reshape(-1, 3),
        conflicts=np.array(conflicts, dtype=np.int64).reshape(-1, 2),
    )  # fmt: skip

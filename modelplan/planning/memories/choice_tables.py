"""What the choice of regions is decided by, as arrays: costs, weights, room, and the steps that count."""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property
from math import gcd, lcm

import numpy as np
import numpy.typing as npt

from modelplan.answers.region_layout import RegionProblem, free_range
from modelplan.model import IntArray
from modelplan.primitives.lazy_records import dataclass

FloatArray = npt.NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Tables:
    """The arrays by which regions are chosen: a row for each buffer, a column for each region.

    `cost` are the seconds that operators wait for a buffer in a region, infinite where it may not lie; `weight` are
    the units of the region that it takes, `room` the units that there are, less those taken for good. `start` and `end`
    are lifetimes counted in those steps at which the set of live buffers is largest: what fits there fits always.
    """

    cost: FloatArray
    weight: IntArray
    room: IntArray
    start: IntArray
    end: IntArray
    units: tuple[int, ...]

    @property
    def steps(self) -> int:
        """How many steps count."""
        return int(self.end.max(initial=0))

    @cached_property
    def scale(self) -> float:
        """What costs are divided by, so that they are about 1: the largest."""
        return float(self.cost[np.isfinite(self.cost)].max(initial=0.0)) or 1.0

    def cost_of(self, choice: IntArray) -> float:
        """The seconds of a choice: a region for each buffer."""
        return float(self.cost[np.arange(len(choice)), choice].sum())

    def use_of(self, choice: IntArray) -> IntArray:
        """The units in use: a row for each region, a column for each step."""
        change = np.zeros((len(self.room), self.steps + 1), dtype=np.int64)
        weight = self.weight[np.arange(len(choice)), choice]
        np.add.at(change, (choice, self.start), weight)
        np.subtract.at(change, (choice, self.end), weight)
        return np.cumsum(change, axis=1)[:, :-1]

    def fits(self, choice: IntArray) -> bool:
        """Whether no region holds more than its room at any step."""
        return bool((self.use_of(choice) <= self.room[:, None]).all())

    def with_less(self, region: int, units: int) -> Tables:
        """The tables with less room in a region."""
        room = self.room.copy()
        room[region] = max(0, room[region] - units)
        return replace(self, room=room)


def alignments(problem: RegionProblem, region: int) -> IntArray:
    """For each buffer the bytes that its address is a multiple of in a region."""
    own = problem.regions[region].alignment
    return np.array([lcm(int(a), own) for a in problem.problem.alignment], dtype=np.int64)


def tables_of(problem: RegionProblem) -> Tables:
    """The tables of a problem.

    Cost: O(buffers * regions + accesses * regions + n log n).
    """
    count, regions = len(problem.problem), len(problem.regions)
    cost = np.full((count, regions), np.inf)
    for buffer, allowed in enumerate(problem.allowed):
        cost[buffer, list(allowed)] = 0.0
    for access in problem.accesses:
        for r, region in enumerate(problem.regions):
            cost[access.buffer, r] += region.seconds(access.read, access.written)
    weight = np.zeros((count, regions), dtype=np.int64)
    room, units = np.zeros(regions, dtype=np.int64), []
    homes = np.array(problem.home, dtype=np.int64)
    for r, region in enumerate(problem.regions):
        inside = [int(a) for b, a in enumerate(alignments(problem, r)) if r in problem.allowed[b]]
        unit = gcd(*inside) if inside else 1
        low, high = free_range(region, unit)
        weight[:, r] = -(-problem.problem.size // unit)
        room[r] = -(-(high - low) // unit) - int(weight[homes == r, r].sum())
        weight[homes == r, r] = 0  # what has its home here takes its bytes here, wherever it is used
        cost[(problem.problem.size > high - low) & (homes != r), r] = np.inf
        units.append(unit)
    start, end = _dense_steps(problem.problem.start, problem.problem.end)
    return Tables(cost, weight, room, start, end, tuple(units))


def _dense_steps(start: IntArray, end: IntArray) -> tuple[IntArray, IntArray]:
    """Lifetimes in those steps only at which a buffer begins and before the next beginning one ends."""
    begins, ends = np.unique(start), np.unique(end)
    behind = np.searchsorted(ends, begins, side="right")
    kept = begins[np.append(behind[1:] != behind[:-1], True)] if len(begins) else begins
    return np.searchsorted(kept, start), np.searchsorted(kept, end)

"""Which buffer lies in which memory, so that operators wait for memory as little as possible, and where in it."""

from dataclasses import replace
from typing import Literal

import numpy as np

from modelplan.answers.region_layout import Layout, RegionProblem, Stay, free_range
from modelplan.checking.moves_simulator import simulate
from modelplan.model import Budget, IntArray, bounds
from modelplan.planning import allocators
from modelplan.planning.memories import exact_choice
from modelplan.planning.memories.choice_tables import Tables, alignments, tables_of
from modelplan.planning.memories.pricing import priced_choice
from modelplan.primitives import highs
from modelplan.primitives.errors import RequestError
from modelplan.primitives.lazy_records import dataclass

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
    pinned = problem.problem.pin[rest]
    pinned = np.where(pinned < 0, pinned, pinned - low)
    asked = replace(problem.problem.part(rest), alignment=every[rest], pin=pinned, capacity=max(floor - low, 0))
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


Method = Literal["auto", "exact", "fast"]
#: Nodes of the search tree of HiGHS, the same answer everywhere; how often a choice that cannot be placed is made anew.
_NODES, _ROUNDS = 2_000, 12


@dataclass(frozen=True, slots=True)
class Choosing:
    """How regions are chosen.

    `method`: "exact" by a mixed-integer program, "fast" by prices, "auto" the first where the program is
    small. `both_ends`: what lives at all steps lies at the upper end of its region. `budget` limits HiGHS
    (steps: nodes of its tree; seconds) and each placement.
    """

    method: Method = "auto"
    both_ends: bool = False
    budget: Budget | None = None


class ShortageError(RequestError):
    """The regions are too small for the buffers. Exit 1: the question was right, the memory is not enough."""

    exit_code = 1


def chosen_layout(problem: RegionProblem, choosing: Choosing | None = None) -> Layout:
    """The layout with one stay for each buffer whose accesses take least time, run by the simulator.

    `ended` is "optimal" where the time meets the bound. Where the buffers of a region cannot be placed without gaps
    that take them beyond it, the choice is made again: without that set where it is proved that it does not fit, else
    with less room.

    Raises:
        ShortageError: no choice was found that fits; says whether none exists.
        RequestError: the exact method is asked for, and SciPy is missing or too old; says what to install.
    """
    how = choosing or Choosing()
    tables = tables_of(problem)
    for region, room, held in zip(problem.regions, tables.room, problem.stored, strict=True):
        if room < 0:
            raise ShortageError(f"{held:,} bytes of weights do not fit in {region.name} of {region.size:,} bytes")
    small = exact_choice.entries(tables) <= exact_choice.MOST_ENTRIES
    exact = how.method == "exact" or (how.method == "auto" and small and highs.is_there())
    state = _Search(problem, tables, how, exact=exact)
    for _ in range(_ROUNDS):
        choice = state.next_choice()
        placed = [place_region(problem, choice, r, both_ends=how.both_ends, budget=how.budget)
                  for r in range(len(problem.regions))]  # fmt: skip
        if not any(placement.excess for placement in placed):
            return _layout(state, choice, placed)
        state.exclude(choice, placed)
    raise ShortageError(f"{_ROUNDS} choices of regions were tried, and in none the buffers of each region fit in it")


class _Search:
    """The tables as they are lowered, the cuts, and the best bound."""

    def __init__(self, problem: RegionProblem, tables: Tables, how: Choosing, *, exact: bool) -> None:
        self.problem, self.tables, self.exact = problem, tables, exact
        self._whole, self._how = tables, how
        self._cuts: tuple[exact_choice.Cut, ...] = ()
        self.bound = 0.0

    def next_choice(self) -> IntArray:
        """The best choice under what was excluded so far."""
        original = self.tables is self._whole
        choice, bound = priced_choice(self.tables)
        if original:
            self.bound = max(self.bound, bound)
        if self.exact:
            budget = self._how.budget or Budget()
            nodes = _NODES if budget.steps is None and budget.seconds is None else budget.steps
            cheapest = exact_choice.exact_choice(self.tables, self._cuts, seconds=budget.seconds, nodes=nodes)
            if cheapest.infeasible:
                raise ShortageError(_shortage(self.problem, self._whole, proved=original and not self._cuts))
            if original:
                self.bound = max(self.bound, cheapest.bound)
            if cheapest.choice is not None and (
                choice is None or self._cuts or self.tables.cost_of(cheapest.choice) < self.tables.cost_of(choice)
            ):
                choice = cheapest.choice
        if choice is None:
            raise ShortageError(_shortage(self.problem, self._whole, proved=False))
        return choice

    def exclude(self, choice: IntArray, placed: list[Placed]) -> None:
        """Excludes a choice that could not be placed: by a cut where that is proved, else by less room."""
        for r, placement in enumerate(placed):
            if not placement.excess:
                continue
            if placement.proved and self.exact and self.tables is self._whole:
                self._cuts += (tuple((int(b), r) for b in np.flatnonzero(choice == r)),)
            else:
                used = self.tables.use_of(choice)[r].max(initial=0)
                spare = int(self.tables.room[r] - used)
                less = placement.excess // self.tables.units[r]
                if (self.problem.problem.pin >= 0).any():  # behind a pin the excess says little of how much is too much
                    less = min(less, int(self.tables.room[r]) // 8)
                self.tables = self.tables.with_less(r, spare + max(less, 1))


def _layout(state: _Search, choice: IntArray, placed: list[Placed]) -> Layout:
    cost = state.tables.cost_of(choice)
    stays = sorted((stay for placement in placed for stay in placement.stays), key=lambda stay: stay.buffer)
    bound = min(state.bound, cost)
    optimal = cost - bound <= 1e-6 * max(cost, 1e-12)
    method = "exact (HiGHS)" if state.exact else "fast (prices)"
    simulate(state.problem, Layout(tuple(stays)))
    return Layout(tuple(stays), (), bound, method, "optimal" if optimal else "complete")


def _shortage(problem: RegionProblem, tables: Tables, *, proved: bool) -> str:
    """Which step needs most, and what there is."""
    movable = np.array(problem.home) < 0
    start, end, size = problem.problem.start[movable], problem.problem.end[movable], problem.problem.size[movable]
    steps = np.unique(start)
    live = [int(size[(start <= s) & (s < end)].sum()) for s in steps.tolist()]
    peak = int(np.argmax(live)) if live else 0
    there = sum(int(room) * unit for room, unit, region in zip(tables.room, tables.units, problem.regions, strict=True)
                if region.kind != "nvm")  # fmt: skip
    word = "no choice of regions fits" if proved else "no choice of regions was found that fits"
    step = int(steps[peak]) if live else 0
    more = "" if proved or highs.is_there() else f"; a longer search needs SciPy: {highs.INSTALL}"
    return (
        f"{word}: step {step} needs {max(live, default=0):,} bytes, the regions that are written have {there:,}{more}"
    )

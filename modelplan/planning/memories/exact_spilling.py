"""The least cost of holding contents in several memories, as a mixed-integer program solved by HiGHS; extra `memories`.

For each segment of a buffer and each place a binary says whether the content is there; copies follow from what differs
between one segment and the next. Weights may stay in a region all the time, which needs no copy. Offsets are no part of
it: at each step the sizes in a region must add up to at most its capacity. Without the demand for whole numbers it is
the linear relaxation, whose value is a lower bound.
"""

from collections import defaultdict
from collections.abc import Sequence
from typing import Any

import numpy as np

from modelplan.planning.memories.tracks import HOME, Costs, Held, Track
from modelplan.primitives import highs
from modelplan.primitives.lazy_records import dataclass

#: Costs are given to the solver in microseconds, so that its tolerances are small beside them.
_SCALE = 1e-6
#: How far from the least cost an answer may be, as a share of it.
_GAP = 1e-6


@dataclass(frozen=True, eq=False)
class HoldingAnswer:
    """What HiGHS found: where contents are held (None: nothing within its time), their cost, a proved lower bound.

    `ended` is "optimal", "deadline" or "infeasible".
    """

    held: tuple[Held, ...] | None
    cost: float
    bound: float
    ended: str


class HoldingProgram:
    """The program of a problem; the capacities may be set anew for each solution.

    Without `split` each content is in one place for its whole life, as planners without copies decide.
    """

    def __init__(self, costs: Costs, *, split: bool = True) -> None:
        self._costs, self._split = costs, split
        self._whole_life: dict[tuple[int, int], int] = {}
        self._program = highs.IntegerProgram()
        self._held: dict[tuple[int, int, int], int | bool] = {}
        self._kept: dict[tuple[int, int], int] = {}
        for track in costs.tracks:
            self._add(track)
        self._loads = self._capacity_rows()

    def solve(self, capacities: Sequence[int], seconds: float = 60.0) -> HoldingAnswer:
        """The cheapest way to hold contents within these bytes for each region, or the best in so many seconds."""
        best = self._program.solve(seconds, _GAP, self._rooms(capacities))
        if best.status == highs.INFEASIBLE:
            return HoldingAnswer(None, float("inf"), float("inf"), "infeasible")
        bound = float(best.mip_dual_bound) if best.mip_dual_bound is not None else 0.0
        if best.x is None:
            return HoldingAnswer(None, float("inf"), max(bound, 0.0) * _SCALE, "deadline")
        held = tuple(self._held_by(track, best.x) for track in self._costs.tracks)
        return HoldingAnswer(held, self._costs.of(held), bound * _SCALE, "optimal" if best.status == 0 else "deadline")

    def relaxed(self, capacities: Sequence[int]) -> float:
        """The value of the linear relaxation: no way of holding contents costs less; infinite where there is none."""
        answer = self._program.solve(600.0, _GAP, self._rooms(capacities), relaxed=True)
        if answer.status == highs.INFEASIBLE:
            return float("inf")
        return float(answer.fun) * _SCALE if answer.status == 0 else 0.0

    def _rooms(self, capacities: Sequence[int]) -> list[highs.Row]:
        """The rows that hold what is in a region at a step within its capacity."""
        return [(row, -np.inf, float(capacities[region])) for region, row in self._loads]

    def _variable(self, price: float, *, whole: bool) -> int:
        return self._program.column(price / _SCALE, whole=whole)

    def _add(self, track: Track) -> None:
        if track.loadable and track.last_used >= 0:
            for place in track.places[:-1]:
                self._kept[track.buffer, place] = self._variable(0.0, whole=True)
        for q, segment in enumerate(track.segments):
            here = {place: self._place(track, q, place) for place in track.places}
            for place, variable in here.items():
                self._held[track.buffer, q, place] = variable
            if segment.used:
                self._add_access(track, q, here)
            else:
                # Content that the caller brings is in one place: a second one would cost a copy.
                most = 1.0 if q == 0 and track.home == HOME else np.inf
                self._program.row([(1.0, variable) for variable in here.values()], 1.0, most)
            before: dict[int, int | bool] = {HOME: True} if track.home != HOME else {}
            if q:
                before = {place: self._held[track.buffer, q - 1, place] for place in track.places}
            if before:
                self._add_copies(track, before, here)

    def _place(self, track: Track, q: int, place: int) -> int | bool:
        """Whether a place holds the content in a segment: a variable, or a constant where there is no choice."""
        if place == HOME and not track.written:
            return True
        if track.segments[q].start == track.segments[q].end:
            return place == HOME
        if not track.may_stay(q, place):
            return False
        if self._split:
            return self._variable(0.0, whole=True)
        if track.home != HOME:
            return False
        if (track.buffer, place) not in self._whole_life:
            self._whole_life[track.buffer, place] = self._variable(0.0, whole=True)
        return self._whole_life[track.buffer, place]

    def _add_access(self, track: Track, q: int, here: dict[int, int | bool]) -> None:
        """One place serves the operator; where it writes, no other place holds the content."""
        serving = [place for place in track.places if self._costs.serves(track, q, place)]
        chosen = {place: self._variable(self._costs.access(track, q, place), whole=False) for place in serving}
        self._program.row([(1.0, variable) for variable in chosen.values()], 1.0, 1.0)
        if q == 0 and track.home == HOME:
            self._program.row([(1.0, variable) for variable in here.values()], 1.0, 1.0)
        for place, held in here.items():
            if place in chosen:
                kept = self._kept.get((track.buffer, place), False)
                self._program.row([(1.0, chosen[place]), (-1.0, held), (-1.0, kept)], -np.inf, 0.0)
            if track.segments[q].written and held is not False:
                terms: list[tuple[float, int | bool]] = [(1.0, held)]
                self._program.row(terms + ([(-1.0, chosen[place])] if place in chosen else []), -np.inf, 0.0)

    def _add_copies(self, track: Track, before: dict[int, int | bool], here: dict[int, int | bool]) -> None:
        """What holds the content now and did not before got it by a copy from what did."""
        for target, held in here.items():
            if held is False or before.get(target, False) is True:
                continue
            copies = []
            loaded = [(p, self._kept[track.buffer, p]) for p in track.places if (track.buffer, p) in self._kept]
            for source, there in [*before.items(), *loaded]:
                if source == target or there is False:
                    continue
                copy = self._variable(self._costs.copy(track, source, target), whole=False)
                copies.append(copy)
                if there is not True:
                    self._program.row([(1.0, copy), (-1.0, there)], -np.inf, 0.0)
            terms: list[tuple[float, int | bool]] = [(1.0, held), (-1.0, before.get(target, False))]
            self._program.row(terms + [(-1.0, copy) for copy in copies], -np.inf, 0.0)

    def _capacity_rows(self) -> list[tuple[int, dict[int, float]]]:
        """The bytes in each region at each step, once for each set of buffers that nothing larger contains."""
        loads: dict[tuple[int, int], dict[int, float]] = defaultdict(dict)
        for track in self._costs.tracks:
            for q, segment in enumerate(track.segments):
                for place in track.places:
                    variable = self._held[track.buffer, q, place]
                    if place != HOME and not isinstance(variable, bool):
                        for step in range(segment.start, segment.end):
                            loads[place, step][variable] = float(track.size)
            for place in track.places:
                if (kept_there := self._kept.get((track.buffer, place))) is not None:
                    for step in range(track.segments[0].start, track.segments[-1].end):
                        loads[place, step][kept_there] = float(track.size)
        kept = {(region, tuple(sorted(row.items()))): row for (region, _), row in loads.items()}
        return [(region, row) for (region, _), row in kept.items()]

    def _held_by(self, track: Track, values: Any) -> Held:
        """The places that may hold each segment: those that an access or a copy can use."""
        always = {p for p in track.places if (z := self._kept.get((track.buffer, p))) is not None and values[z] > 0.5}
        places = []
        for q in range(len(track.segments)):
            there = {place: self._held[track.buffer, q, place] for place in track.places}
            here = {p for p, v in there.items() if v is True or (v is not False and values[v] > 0.5)}
            places.append(frozenset(here | always))
        return tuple(places)

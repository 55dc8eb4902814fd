"""The least work within a budget of bytes by Checkmate's MILP, solved by HiGHS; needs the extra `memories`.

Stage t ends with the first run of unit t; before it any earlier unit may run again, in their order. Two kinds of rows
are added, which change no answer and tighten the relaxation: what is held behind stage t fits in memory beside unit t,
and what `extra_work` proves must be done again after it, whatever the sequence, for graphs of any size. Source: Jain et
al., Checkmate: Breaking the Memory Wall with Optimal Tensor Rematerialization, MLSys 2020, section 4.
"""

from collections.abc import Iterable
from math import gcd

import numpy as np

from modelplan.planning.recomputing.op_units import Units
from modelplan.primitives import highs
from modelplan.primitives.errors import RequestError
from modelplan.primitives.lazy_records import dataclass

#: Units with the largest excess that are looked at, and points that one knapsack keeps.
_MOST_PLACES, _MOST_POINTS = 64, 1_000


def extra_work(units: Units, budget: int) -> dict[int, float]:
    """For units that run above `budget` bytes without repetitions the least work done again after their first run.

    Infinite where no repetition frees enough. Cost: O(units * values), and up to 64 knapsacks of 1,000 points.
    """
    writer = {v: u for u, unit in enumerate(units.units) for v in unit.writes}
    last = dict.fromkeys(range(len(units.sizes)), -1)
    last |= {v: u for u, unit in enumerate(units.units) for v in unit.reads}
    last |= dict.fromkeys(units.kept, len(units.units))
    lacking = {}
    for u, unit in enumerate(units.units):
        own = {*unit.reads, *unit.writes}
        idle = [v for v, end in last.items() if end > u and v not in own and writer.get(v, -1) < u]
        lacks = sum(units.sizes[v] for v in (*own, *idle)) + unit.scratch - budget
        if lacks > 0:
            lacking[u] = lacks, idle
    least = {}
    for u in sorted(lacking, key=lambda u: (-lacking[u][0], u))[:_MOST_PLACES]:
        lacks, idle = lacking[u]
        freed: dict[int, int] = {}
        for v in idle:
            if v in writer and units.units[writer[v]].repeatable:
                freed[writer[v]] = freed.get(writer[v], 0) + units.sizes[v]
        least[u] = _least_cover([(size, units.units[w].work) for w, size in freed.items()], lacks)
    return least


def _least_cover(items: list[tuple[int, int]], needed: int) -> float:
    """The least work of items whose bytes are `needed` together, or less; items are (bytes, work)."""
    points = {0: 0}
    for size, work in sorted(items, reverse=True):
        for freed, spent in list(points.items()):
            reached = min(freed + size, needed)
            points[reached] = min(points.get(reached, spent + work), spent + work)
        points = _thin(points)
    return points.get(needed, float("inf"))


def _thin(points: dict[int, int]) -> dict[int, int]:
    """The Pareto-optimal points; where there are too many, neighbours merge into one that is below both."""
    front: list[tuple[int, int]] = []
    for freed, spent in sorted(points.items(), reverse=True):
        if not front or spent < front[-1][1]:
            front.append((freed, spent))
    while len(front) > _MOST_POINTS:
        front = [(front[i][0], front[min(i + 1, len(front) - 1)][1]) for i in range(0, len(front), 2)]
    return dict(front)


#: Units up to which the model is built.
MOST_UNITS = 80


@dataclass(frozen=True, slots=True)
class SequenceAnswer:
    """A sequence within the budget, or None; `bound` is work that none of this form goes below.

    `ended` is "optimal", "infeasible" (no sequence of this form fits) or "deadline".
    """

    sequence: tuple[int, ...] | None
    bound: int
    ended: str


def least_work(units: Units, budget: int, seconds: float = 20.0) -> SequenceAnswer:
    """The sequence of least work that needs at most `budget` bytes.

    Raises:
        RequestError: SciPy is missing or too old, or there are more units than the model takes.

    Cost: O(units^2) binary variables, exponential time; `seconds` ends the search.
    """
    if len(units.units) > MOST_UNITS:
        raise RequestError(f"the exact search takes at most {MOST_UNITS} units, found {len(units.units)}")
    return _Model(units, budget).solve(seconds)


#: What a column stands for, and of which stage, unit and value.
_Key = tuple[str | int, ...]


class _Model:
    """Rows and columns: run[t, u], hold[t, v] at the start of stage t, used[t, u], freed[t, v, u] behind unit u."""

    def __init__(self, units: Units, budget: int) -> None:
        self.units, self.n = units, len(units.units)
        self.unit = gcd(*units.sizes, *(u.scratch for u in units.units)) or 1
        self.budget = budget // self.unit
        self.top = max((u.work for u in units.units), default=1) or 1
        self.extra = extra_work(units, budget)
        self.program = highs.IntegerProgram()
        self.number: dict[_Key, int] = {}
        self.writer = {v: u for u, unit in enumerate(units.units) for v in unit.writes}
        self.readers: dict[int, list[int]] = {}
        for u, unit in enumerate(units.units):
            for v in unit.reads:
                self.readers.setdefault(v, []).append(u)
        self._add_columns()
        for t in range(self.n):
            self._add_stage(t)
        for v in range(len(units.sizes)):
            self._add_origin(self.n, v)

    def _row(self, terms: Iterable[tuple[_Key, float]], least: float, most: float) -> None:
        """Adds a row; what has no column is 0."""
        there = [(factor, self.number[key]) for key, factor in terms if key in self.number]
        self.program.row(there, least, most)

    def _add_columns(self) -> None:
        column = self.program.column
        for t in range(self.n + 1):
            for v in range(len(self.units.sizes)):
                there = v in self.units.given or self.writer[v] < t
                held = v in self.units.kept and (t == self.n or v in self.units.given)
                if there:
                    self.number["hold", t, v] = column(0.0, 1 if held or (t == 0) else 0, 1, whole=True)
        for t in range(self.n):
            for u in range(t + 1):
                unit = self.units.units[u]
                again = 1 if u == t or unit.repeatable else 0
                self.number["run", t, u] = column(unit.work / self.top, 1 if u == t else 0, again, whole=True)
                room = self.budget - unit.scratch // self.unit if u == t else self.budget
                self.number["used", t, u] = column(0.0, 0, room, whole=False)
                for v in {*unit.reads, *unit.writes}:
                    self.number["freed", t, v, u] = column(0.0, whole=False)

    def _size(self, v: int) -> int:
        return self.units.sizes[v] // self.unit

    def _add_origin(self, t: int, v: int) -> None:
        """What is held at the start of stage t was held or written in the stage before."""
        if t and ("hold", t, v) in self.number:
            writer = self.writer.get(v, -1)
            self._row([(("hold", t, v), 1), (("hold", t - 1, v), -1), (("run", t - 1, writer), -1)], -np.inf, 0)

    def _add_stage(self, t: int) -> None:
        for v in range(len(self.units.sizes)):
            self._add_origin(t, v)
        for u in range(t + 1):
            for v in self.units.units[u].reads:
                writer = self.writer.get(v, -1)
                self._row([(("run", t, u), 1), (("run", t, writer), -1), (("hold", t, v), -1)], -np.inf, 0)
            self._add_memory(t, u)
            for v in {*self.units.units[u].reads, *self.units.units[u].writes}:
                self._add_freeing(t, u, v)
        self._add_frontier(t)

    def _add_frontier(self, t: int) -> None:
        """While unit t runs for the first time, what was there before and is held behind it takes bytes beside it."""
        unit = self.units.units[t]
        own = {*unit.reads, *unit.writes}
        idle = [v for v in range(len(self.units.sizes)) if v not in own and self.writer.get(v, -1) < t]
        left = self.budget - sum(map(self._size, own)) - unit.scratch // self.unit
        self._row([(("hold", t + 1, v), self._size(v)) for v in idle], -np.inf, left)
        extra = self.extra.get(t, 0)
        if extra:
            later = [(stage, u) for stage in range(t + 1, self.n) for u in range(stage)]
            terms = [(("run", stage, u), self.units.units[u].work / self.top) for stage, u in later]
            self._row(terms, extra / self.top - 1e-9, np.inf)

    def _add_memory(self, t: int, u: int) -> None:
        """used[t, u] is what was used before, less what was freed behind the unit before, and what u writes."""
        unit = self.units.units[u]
        terms: list[tuple[_Key, float]] = [(("used", t, u), 1), (("run", t, u), -sum(map(self._size, unit.writes)))]
        if u:
            before = self.units.units[u - 1]
            terms.append((("used", t, u - 1), -1))
            terms += [(("freed", t, v, u - 1), self._size(v)) for v in {*before.reads, *before.writes}]
        else:
            terms += [(("hold", t, v), -self._size(v)) for v in range(len(self.units.sizes))]
        self._row(terms, 0, 0)
        if unit.scratch and u != t:
            self._row([(("used", t, u), 1), (("run", t, u), unit.scratch // self.unit)], -np.inf, self.budget)

    def _add_freeing(self, t: int, u: int, v: int) -> None:
        """Freed behind u only if u ran, no later unit of the stage reads it, and the next stage does not hold it."""
        freed = ("freed", t, v, u)
        self._row([(freed, 1), (("run", t, u), -1)], -np.inf, 0)
        self._row([(freed, 1), (("hold", t + 1, v), 1)], -np.inf, 1)
        for reader in self.readers.get(v, ()):
            if u < reader <= t:
                self._row([(freed, 1), (("run", t, reader), 1)], -np.inf, 1)

    def solve(self, seconds: float) -> SequenceAnswer:
        short = max(self.extra.values(), default=0) == float("inf")
        crowded = any(unit.scratch // self.unit > self.budget for unit in self.units.units)
        if short or crowded or self.units.floor > self.budget * self.unit:
            return SequenceAnswer(None, 0, "infeasible")
        answer = self.program.solve(seconds, 0.0)
        if answer.status == highs.INFEASIBLE:
            return SequenceAnswer(None, 0, "infeasible")
        bound = 0 if answer.mip_dual_bound is None else int(max(answer.mip_dual_bound - 1e-6, 0.0) * self.top)
        if answer.x is None:
            return SequenceAnswer(None, bound, "deadline")
        sequence = tuple(u for t in range(self.n) for u in range(t + 1) if answer.x[self.number["run", t, u]] > 0.5)
        return SequenceAnswer(sequence, bound, "optimal" if answer.status == 0 else "deadline")

"""Work that must be done again whatever the sequence: a bound for graphs of any size, without a solver.

While a unit runs for the first time, what was written before it and is read after it is in memory, or its writer runs
again later. So at each unit enough bytes have to be dropped, and the cheapest writers that free them bound the work
from below (a covering knapsack). It holds for sequences whose first runs are in the order of the units.
"""

from __future__ import annotations

from modelplan.planning.recomputing.units import Units

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

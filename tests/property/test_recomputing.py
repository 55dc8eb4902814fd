"""Sequences with repetitions against a search of all of Checkmate's form, and against the definition of alive."""

from __future__ import annotations

import heapq
import itertools
import random

import pytest

from modelplan.planning.recomputing import exact, greedy
from modelplan.planning.recomputing.op_units import Unit, Units


def drawn(rng: random.Random, most: int = 6) -> Units:
    """Up to `most` units in order, each with one value; some values have readers far away, one unit may not repeat."""
    n = rng.randint(3, most)
    sizes = [rng.randint(1, 5) for _ in range(n + 1)]
    units = []
    for u in range(n):
        reads = sorted(rng.sample(range(u + 1), rng.randint(1, min(2, u + 1))))
        units.append(Unit((u,), tuple(reads), (u + 1,), rng.randint(1, 9), rng.choice([0, 0, 2]), rng.random() < 0.9))
    unread = set(range(1, n + 1)) - {v for unit in units for v in unit.reads}
    kept = unread | ({0} if rng.random() < 0.3 else set())
    return Units(tuple(units), tuple(sizes), frozenset({0}), frozenset(kept))


def alive_by_definition(units: Units, sequence: list[int]) -> list[int]:
    """For each position the bytes of what it reads and writes and of what is read later as it was written."""
    found = []
    for p, u in enumerate(sequence):
        alive = {*units.units[u].reads, *units.units[u].writes}
        for v in range(len(units.sizes)):
            made = v in units.given or any(v in units.units[w].writes for w in sequence[:p])
            rest = sequence[p + 1 :]
            until = next((i for i, w in enumerate(rest) if v in units.units[w].writes), len(rest))
            read = any(v in units.units[w].reads for w in rest[:until])
            rewritten = any(v in units.units[w].writes for w in rest)
            if made and (read or (v in units.kept and not rewritten)):
                alive.add(v)
        found.append(sum(units.sizes[v] for v in alive) + units.units[u].scratch)
    return found


def least_work(units: Units, budget: int) -> int | None:
    """The least work of all sequences of stages, by shortest path over (stage, unit, values in memory)."""
    n = len(units.units)
    queue, seen = [(0, 0, 0, tuple(sorted(units.given)))], set()
    while queue:
        work, t, u, there = heapq.heappop(queue)
        if t == n:
            return work
        if (t, u, there) in seen:
            continue
        seen.add((t, u, there))
        alive = set(there)
        following = (t, u + 1) if u < t else (t + 1, 0)
        if u < t:
            push_all(queue, units, work, following, alive)
        unit = units.units[u]
        if set(unit.reads) <= alive and (u == t or unit.repeatable):
            used = sum(units.sizes[v] for v in alive | set(unit.writes)) + unit.scratch
            if used <= budget:
                push_all(queue, units, work + unit.work, following, alive | set(unit.writes))
    return None


def push_all(
    queue: list[tuple[int, int, int, tuple[int, ...]]], units: Units, work: int, at: tuple[int, int], alive: set[int]
) -> None:
    """Every choice of values to keep; at the end those that live to the end have to be there."""
    must = units.kept & units.given
    if at[0] == len(units.units):
        if units.kept <= alive:
            heapq.heappush(queue, (work, *at, tuple(sorted(alive))))
        return
    free = sorted(alive - must)
    for count in range(len(free) + 1):
        for kept in itertools.combinations(free, count):
            heapq.heappush(queue, (work, *at, tuple(sorted({*kept, *must}))))


def sequences(rng: random.Random, units: Units) -> list[int]:
    """A sequence that runs, with repetitions at random."""
    found: list[int] = []
    for u in range(len(units.units)):
        found += [*sorted(rng.sample(range(u), rng.randint(0, min(u, 2)))), u]
    return found


def test_what_is_alive_is_what_the_definition_says() -> None:
    rng = random.Random(1)
    for _ in range(200):
        units = drawn(rng)
        sequence = sequences(rng, units)
        assert greedy.runs(units, sequence)
        assert units.occupancy(sequence) == alive_by_definition(units, sequence)
        assert units.floor <= units.peak(sequence)


@pytest.mark.slow
def test_the_exact_search_finds_the_least_work() -> None:
    pytest.importorskip("scipy")
    rng, proved, infeasible, repeated = random.Random(2), 0, 0, 0
    while proved < 40 or infeasible < 5:
        units = drawn(rng, 5)
        peak = units.peak(range(len(units.units)))
        budget = rng.randint(units.floor, peak)
        answer, least = exact.least_work(units, budget), least_work(units, budget)
        if least is None:
            infeasible += 1
            assert (answer.ended, answer.sequence) == ("infeasible", None)
            continue
        proved += 1
        assert answer.ended == "optimal"
        assert answer.sequence is not None
        assert greedy.runs(units, answer.sequence)
        assert units.peak(answer.sequence) <= budget
        assert units.work_of(answer.sequence) == least
        assert answer.bound <= least
        repeated += least > units.work
    assert repeated > 5


@pytest.mark.slow
def test_the_greedy_search_keeps_to_the_budget_and_is_often_the_best() -> None:
    rng, asked, found, best = random.Random(4), 0, 0, 0
    while asked < 60:
        units = drawn(rng)
        plain = tuple(range(len(units.units)))
        budget = rng.randint(units.floor, units.peak(plain))
        least = least_work(units, budget)
        sequence = greedy.lowered(units, plain, budget)
        if least is None:  # of stages; one in another order may still exist
            assert sequence is None or (greedy.runs(units, sequence) and units.peak(sequence) <= budget)
            continue
        asked += 1
        if sequence is not None:
            found += 1
            assert greedy.runs(units, sequence)
            assert units.peak(sequence) <= budget
            assert all(units.units[u].repeatable for u in plain if sequence.count(u) > 1)
            best += units.work_of(sequence) <= least
    assert found >= 45
    assert best >= 40


@pytest.mark.parametrize("seed", range(30))
def test_work_that_is_needed_again_is_never_more_than_the_least(seed: int) -> None:
    units = drawn(random.Random(seed))
    for budget in range(units.floor, units.peak(range(len(units.units)))):
        least, again = least_work(units, budget), max(exact.extra_work(units, budget).values())
        assert least is None or units.work + again <= least


def test_the_knapsack_takes_the_cheapest_writers_that_free_enough() -> None:
    """Four values wait beside the last unit; those of work 3 and 4 are the cheapest whose bytes are enough."""
    costs = ((4, 3), (4, 4), (6, 9), (1, 1))
    made = [Unit((u,), (0,), (u + 1,), work, 0, repeatable=True) for u, (_, work) in enumerate(costs)]
    units = Units((*made, Unit((4,), (0,), (5,), 1, 0, repeatable=True)), (1, 4, 4, 6, 1, 2), frozenset({0}),
                  frozenset(range(1, 6)))  # fmt: skip
    assert units.peak(range(5)) == 18
    assert exact.extra_work(units, 18) == {}
    assert exact.extra_work(units, 10)[4] == 7
    assert exact.extra_work(units, 2)[4] == float("inf")

"""What every row of the table of allocators has to show, over seeded random problems and the corpus."""

from __future__ import annotations

import functools
import importlib.util
import random
from dataclasses import replace
from pathlib import Path

import allocator_properties
import core_oracles
import networks
import numpy as np
import properties
import pytest
from allocator_properties import SHORT, answer, random_problems
from graphs import problem
from interrupting import interrupted
from shares import sample, share

from modelplan import Problem, height, load_bound, place
from modelplan.formats import load
from modelplan.model import Budget
from modelplan.planning.allocators import ALLOCATORS

SMALL = 500


#: Rows that can run here. CP-SAT starts a solver for every question: its own tests look closer.
ROWS = [name for name in ALLOCATORS if name != "cp-sat" or importlib.util.find_spec("ortools")]
SLOW = {"cp-sat"}


def seeds(kind: str) -> list[Problem]:
    return [p for i, p in enumerate(random_problems()[: share(500)]) if kind == "all" or i % 10 == 3]


@pytest.mark.slow
@pytest.mark.parametrize("name", ROWS)
def test_random_problems_are_placed_soundly_or_refused(name: str) -> None:
    placed = 0
    for i, given in enumerate(seeds("some" if name in SLOW else "all")):
        found = answer(given, name)
        placed += found is not None
        assert found is None or i % 10 != 3 or core_oracles.valid(given, found.offsets.tolist())
    assert placed >= share(50)


@pytest.mark.parametrize("name", ROWS)
def test_the_same_problem_gets_the_same_placement(name: str) -> None:
    for given in seeds("some")[:: 10 if name in SLOW else 1]:
        found = answer(given, name)
        assert found is None or allocator_properties.repeats(given, name, found)


@pytest.mark.parametrize("name", [n for n, row in ALLOCATORS.items() if "scaling" in row.invariants])
def test_scaled_sizes_scale_the_offsets(name: str) -> None:
    for given in seeds("some"):
        found = answer(given, name)
        assert found is None or allocator_properties.scales(given, name, found)


@pytest.mark.slow
@pytest.mark.parametrize("name", [n for n, row in ALLOCATORS.items() if "reversal" in row.invariants])
def test_reversed_time_keeps_the_height(name: str) -> None:
    for given in seeds("all"):
        found = answer(given, name)
        assert found is None or allocator_properties.turns(given, name, found)


def test_a_property_that_does_not_hold_is_found() -> None:
    """First fit by start is not claimed to keep its height when time is turned round: on this problem it does not."""
    given = problem([(1, 0, 2), (3, 1, 4), (2, 2, 5), (2, 3, 6)])
    found = answer(given, "first-fit-start")
    assert found is not None
    assert allocator_properties.repeats(given, "first-fit-start", found)
    assert not all(
        allocator_properties.turns(p, "first-fit-start", f)
        for p in seeds("all")
        if (f := answer(p, "first-fit-start")) is not None
    )
    tally = properties.Tally()
    tally.add("four", given)
    assert (tally.problems, tally.faults, tally.placed["first-fit-start"]) == (1, [], 1)
    assert "| first-fit-start | 1 |  | 1 | 1 |  |" in "\n".join(properties.report(tally))


@pytest.mark.parametrize("name", [n for n, row in ALLOCATORS.items() if "load" in row.invariants])
def test_equal_sizes_reach_the_load(name: str) -> None:
    for given in seeds("all"):
        equal = replace(given, size=np.full(len(given), 5), alignment=np.ones(len(given), dtype=np.int64))
        found = answer(equal, name, Budget())
        assert found is not None
        assert height(equal, found) == load_bound(equal)


EDGES = {
    "empty": problem([]),
    "one": problem([(8, 0, 1)]),
    "one, late": problem([(8, 5, 9)]),
    "nothing to hold": problem([(0, 0, 3), (0, 1, 2)]),
    "one holds nothing": problem([(0, 0, 3), (8, 1, 2), (8, 0, 4)]),
    "equal": problem([(8, 2, 5)] * 6),
    "touching": problem([(8, 0, 2), (8, 2, 4), (8, 4, 6)]),
    "one byte": problem([(1, 0, 1), (1, 0, 2), (1, 1, 2)]),
}


@pytest.mark.parametrize("name", ROWS)
def test_edges(name: str) -> None:
    for edge, asked in EDGES.items():
        found = answer(asked, name)
        if found is None:
            assert ALLOCATORS[name].kind == "colouring", edge
            continue
        assert core_oracles.valid(asked, found.offsets.tolist()), edge
        if edge in ("empty", "one", "one, late", "nothing to hold"):
            assert height(asked, found) == asked.size.sum(), edge


LINE = [(8, 0, 2), (8, 1, 4), (8, 3, 6), (8, 5, 7)]
DEMANDS = {
    "alignment": problem(LINE, alignment=[16, 4, 1, 16]),
    "pins": problem(LINE, pin=[None, 40, None, 8]),
    "overlaps": problem(LINE, overlaps=[(0, 1, 4)]),
    "conflicts": problem(LINE, conflicts=[(0, 3), (0, 2)]),
}


@pytest.mark.parametrize("name", ROWS)
def test_demands_are_honoured_or_refused(name: str) -> None:
    for demand, asked in DEMANDS.items():
        found = answer(asked, name)
        if found is not None:
            assert demand in ALLOCATORS[name].honours
            assert core_oracles.valid(asked, found.offsets.tolist()), demand
        elif demand in ALLOCATORS[name].honours:
            assert demand == "alignment"
            assert answer(problem(LINE, alignment=[16] * 4), name) is not None


@pytest.mark.parametrize("name", ROWS)
def test_a_capacity_is_a_question(name: str) -> None:
    roomy = problem([(8, 0, 2), (8, 1, 3), (8, 2, 4)], capacity=16)
    found = answer(roomy, name)
    assert found is not None
    assert answer(replace(roomy, capacity=10), name) is not None


SEARCHES = [name for name in ROWS if ALLOCATORS[name].kind in ("portfolio", "exact", "search")]


@pytest.mark.slow
@pytest.mark.parametrize("name", [*SEARCHES, "tflite-min-cost-flow"])
def test_ctrl_c_ends_a_search_and_keeps_its_best(name: str) -> None:
    draw, rows = random.Random(5), []
    for _ in range(1400):
        start = draw.randrange(300)
        rows.append((draw.randint(1, 10**6), start, start + draw.randint(1, 200)))
    given = problem(rows)
    place(problem([(8, 0, 1)]), name, SHORT)  # loads what the search needs
    assert interrupted(lambda: place(given, name, Budget(steps=10**9, seconds=100))).ended == "cancelled"


def test_a_deadline_ends_a_search_of_long_steps() -> None:
    draw = random.Random(5)
    given = problem([(draw.randint(1, 999), i % 500, i % 500 + draw.randint(1, 200)) for i in range(2000)])
    for name in ("idealloc", "tvm-hill-climb", "vela-hill-climb"):
        assert place(given, name, Budget(steps=10**9, seconds=0.1)).ended == "deadline", name


@pytest.mark.parametrize("name", ROWS)
def test_the_networks_are_placed_or_refused(name: str, corpus: Path) -> None:
    for network in networks.read(corpus / "problems" / "glow" / "traces.txt")[:: 40 if name in SLOW else 20]:
        answer(network.problem, name)


@pytest.mark.slow
@pytest.mark.parametrize("name", ROWS)
def test_the_problems_of_the_corpus_are_placed_or_refused(name: str, corpus: Path) -> None:
    for given in sample(_corpus_problems(corpus)):
        if name not in SLOW or len(given) <= 100:
            answer(given, name)


@functools.cache
def _corpus_problems(corpus: Path) -> tuple[Problem, ...]:
    """Those of up to SMALL buffers; larger ones are left to `benchmarks/field.py`."""
    loaded = [load(str(path)) for path in sorted((corpus / "problems").rglob("*.csv"))]
    return tuple(p for p in loaded if isinstance(p, Problem) and len(p) <= SMALL)

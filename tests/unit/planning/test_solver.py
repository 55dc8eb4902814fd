"""The solver on real and published problems: what it must reach is exact, whatever the machine."""

from __future__ import annotations

from pathlib import Path

import graphs
import pytest
from problem_families import rand_unif

from modelplan import Budget, Placement, Problem, RequestError, height, load, load_bound, place
from modelplan.primitives import _core

PROVED = "ABCEFGHIK"


def minimalloc(corpus: Path, name: str) -> Problem:
    problem = load(corpus / "problems" / "minimalloc" / f"{name}.1048576.csv")
    assert isinstance(problem, Problem)
    return problem


@pytest.mark.parametrize("name", PROVED)
def test_the_hard_set_is_solved_and_proved(corpus: Path, name: str) -> None:
    problem = minimalloc(corpus, name)
    placement = place(problem, "modelplan", Budget(steps=100_000))
    assert height(problem, placement) == placement.lower_bound == load_bound(problem)


@pytest.mark.parametrize("name", "ABCDEFGHIJK")
@pytest.mark.parametrize("percent", [90, 95, 99, 100, 105, 110])
def test_capacities_around_the_bound(corpus: Path, name: str, percent: int) -> None:
    """Below the load nothing fits; what is said to fit does; only D and J may stay open at the bound."""
    p = minimalloc(corpus, name)
    bound = load_bound(p)
    capacity = bound * percent // 100
    offsets, proved, ended, _, _ = _core.solve(p.core, capacity=capacity, minimize=False, steps=30_000)
    fits = height(p, Placement(offsets)) <= capacity
    assert proved <= height(p, Placement(offsets))
    assert ended in {"fits", "optimal", "infeasible", "budget"}
    assert (ended == "infeasible") == (capacity < bound)
    if name in PROVED or percent >= 110:
        assert fits == (capacity >= bound)


def networks(path: Path) -> dict[str, tuple[Problem, int]]:
    """Name to problem and the height that Glow's planner is expected to reach; sizes rounded as Glow does."""
    found: dict[str, tuple[Problem, int]] = {}
    for text in path.read_text().split("MODEL ")[1:]:
        name, *lines = (line for line in text.splitlines() if line and not line.startswith("#"))
        align, expected = 1, 0
        live: dict[str, list[int]] = {}
        rows: list[tuple[int, int, int]] = []
        for now, (word, *values) in enumerate(line.split() for line in lines):
            if word == "ALIGN":
                align = int(values[0])
            elif word == "ALLOC":
                live[values[0]] = [-(-int(values[1]) // align) * align, now]
            elif word == "FREE":
                size, start = live.pop(values[0])
                rows.append((size, start, now))
            elif word == "MEM":
                expected = int(values[0])
        found[name] = (graphs.problem(rows), expected)
    return found


def test_all_networks_of_glow_reach_their_load(corpus: Path) -> None:
    found = networks(corpus / "problems" / "glow" / "traces.txt")
    assert len(found) == 79
    for problem, expected in found.values():
        placement = place(problem, "modelplan")
        assert height(problem, placement) == load_bound(problem) <= expected


def test_a_height_that_is_enough_ends_the_search() -> None:
    problem = graphs.problem([(8, 0, 2), (4, 1, 3), (8, 2, 4)])
    assert height(problem, place(problem, "modelplan", Budget(enough=100))) <= 100
    short = place(problem, "modelplan", Budget(enough=11))
    assert short.lower_bound > 11


def test_pins_that_longer_lifetimes_exclude_are_refused_by_name() -> None:
    problem = graphs.problem([(8, 0, 1), (8, 2, 3), (8, 1, 2)], pin=[0, None, 0], conflicts=[(0, 1)])
    with pytest.raises(RequestError, match="longer lifetimes"):
        place(problem, "modelplan")


@pytest.mark.slow
def test_set_d_meets_its_load_bound(corpus: Path) -> None:
    """Harder than the nine: other solvers stop 4 % and more above the bound of this set."""
    problem = load(corpus / "problems" / "minimalloc" / "D.1048576.csv")
    assert isinstance(problem, Problem)
    placement = place(problem, "modelplan", Budget(seed=7, steps=1_600_000))
    assert height(problem, placement) == placement.lower_bound == 986_112


@pytest.mark.slow
@pytest.mark.parametrize(("count", "steps"), [(3_000, 60_000), (20_000, 400_000)])
def test_where_a_third_of_all_buffers_is_alive_the_height_is_near_the_load(count: int, steps: int) -> None:
    problem = rand_unif(count, 0)
    alone, together = (place(problem, budget=Budget(steps=steps, threads=threads)) for threads in (1, 2))
    assert 1000 * height(problem, alone) <= 1003 * load_bound(problem)
    assert list(alone.offsets) == list(together.offsets)

"""Spilling against a slow twin, the relaxation and the simulator; what cannot be helped is named."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from moving_problems import least_cost, region_problem

from modelplan.answers.region_layout import Access, RegionProblem
from modelplan.checking.moves_simulator import simulate
from modelplan.model import Problem
from modelplan.planning.memories.exact_spilling import HoldingProgram
from modelplan.planning.memories.spilling import spill
from modelplan.planning.memories.timing import timetable_of
from modelplan.planning.memories.tracks import Costs, room
from modelplan.primitives.errors import RequestError
from modelplan.targets.device import Region


def test_the_exact_program_equals_its_slow_twin() -> None:
    solved = 0
    for seed in range(40):
        asked = region_problem(seed, buffers=3, steps=4)
        least = least_cost(asked)
        program, rooms = HoldingProgram(Costs(asked)), [room(asked, r) for r in range(len(asked.regions))]
        found = program.solve(rooms)
        assert (least is None) == (found.ended == "infeasible"), seed
        if least is not None:
            assert found.cost == pytest.approx(least, rel=1e-6, abs=1e-9), seed
            assert program.relaxed(rooms) <= least * (1 + 1e-6) + 1e-9, seed
            solved += 1
    assert solved > 30


@pytest.mark.parametrize(("method", "seeds"), [("greedy", 120), pytest.param("exact", 50, marks=pytest.mark.slow)])
def test_every_layout_is_safe_and_takes_what_it_promises(method: str, seeds: int) -> None:
    made = 0
    for seed in range(seeds):
        asked = region_problem(seed)
        try:
            found = spill(asked, method)
        except RequestError:
            continue
        layout = replace(found.layout, timetable=timetable_of(asked, found.layout))
        run = simulate(asked, layout)
        assert run.seconds == pytest.approx(found.cost + sum(asked.seconds)), seed
        assert found.layout.bound <= found.cost * (1 + 1e-6), seed
        made += 1
    assert made > 0.8 * seeds


@pytest.mark.slow
def test_the_greedy_choice_is_never_below_the_optimum() -> None:
    shares = []
    for seed in range(50):
        asked = region_problem(seed)
        try:
            greedy, exact = spill(asked, "greedy"), spill(asked, "exact")
        except RequestError:
            continue
        if exact.layout.ended == "optimal":
            assert greedy.cost >= exact.cost * (1 - 1e-6), seed
            shares.append(greedy.cost / exact.cost if exact.cost else 1.0)
    assert len(shares) > 40
    assert np.mean(shares) < 1.1


def skip(sram: int) -> RegionProblem:
    """A map of 60 bytes that is needed again after two steps that need 80 bytes."""
    size, start, end = np.array([[60, 0, 5], [40, 1, 3], [40, 2, 4], [20, 3, 5]], dtype=np.int64).T
    accesses = (
        Access(0, 0, 0, 60), Access(1, 1, 0, 40), Access(2, 1, 40, 0), Access(2, 2, 0, 40),
        Access(3, 2, 40, 0), Access(3, 3, 0, 20), Access(4, 3, 20, 0), Access(4, 0, 60, 0),
    )  # fmt: skip
    regions = (
        Region("sram", sram, read_bandwidth=10_000, write_bandwidth=10_000),
        Region("psram", 1000, kind="psram", read_bandwidth=600, write_bandwidth=300),
    )
    allowed = ((0, 1), (0,), (0,), (0,))
    problem = Problem(("skip", "a", "b", "c"), size, start, end)
    return RegionProblem(problem, regions, accesses, allowed, (-1,) * 4, (0.0,) * 5)


def test_a_skip_connection_sleeps_in_the_slow_memory() -> None:
    found = spill(skip(100), "exact")
    assert found.layout.ended == "optimal"
    assert [(s.region, s.start, s.end) for s in found.layout.stays if s.buffer == 0] == [(1, 0, 5)]
    reading = skip(100)
    often = replace(reading, accesses=(*reading.accesses[:-1], Access(4, 0, 600, 0)))
    layout = spill(often, "exact").layout
    assert [(s.region, s.start, s.end) for s in layout.stays if s.buffer == 0][-1] == (0, 4, 5)
    assert spill(skip(140), "exact").layout.copies == ()


def test_what_does_not_fit_is_named() -> None:
    with pytest.raises(
        RequestError, match=r"step 2 uses 80 bytes .* sram has 70: 'b' 40, 'a' 40; moving buffers cannot"
    ):
        spill(skip(70))
    with pytest.raises(RequestError, match=r"'a' of 40 bytes fits in none of its regions: sram \(30\)"):
        spill(skip(30))
    with pytest.raises(RequestError, match="no method 'best'"):
        spill(skip(100), "best")

"""Copies that run ahead: safe, as quick as promised, never slower than copies between steps."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from moving_problems import region_problem
from shares import few_first

from modelplan.answers.region_layout import Access, RegionProblem
from modelplan.checking.moves_simulator import simulate
from modelplan.formats import load_model
from modelplan.model import Problem
from modelplan.planning import pipeline
from modelplan.planning.memories.asking import owners_of
from modelplan.planning.memories.prefetching import plan_moves
from modelplan.planning.memories.region_planning import moving_plan, moving_problem
from modelplan.primitives.errors import RequestError
from modelplan.targets.device import Dma, Region
from modelplan.targets.stated_regions import parse_region

MODELS = Path(__file__).parents[3] / "models"


@pytest.mark.parametrize("apart", few_first([(1,), (2,), (0,)]))
def test_the_processor_copies_what_the_engine_does_not_reach(apart: tuple[int, ...]) -> None:
    mixed = 0
    for seed in range(30):
        asked = region_problem(seed)
        regions = tuple(replace(r, dma=i not in apart) for i, r in enumerate(asked.regions))
        asked = replace(asked, regions=regions, dma=Dma(2, 4))
        try:
            found = plan_moves(asked)
        except RequestError:
            continue
        run = simulate(asked, found.layout)
        assert run.seconds == pytest.approx(found.seconds), seed
        channels = {channel for channel, _, _ in run.copies}
        assert (0 not in apart) or channels <= {-1}
        mixed += -1 in channels and len(channels) > 1
    assert (mixed > 0) is (0 not in apart)


@pytest.mark.slow
@pytest.mark.parametrize(("buffers", "steps", "seeds"), [(7, 8, 80), (20, 30, 25)])
def test_layouts_with_copies_ahead_are_safe_and_as_quick_as_promised(buffers: int, steps: int, seeds: int) -> None:
    quicker = 0
    for seed in range(seeds):
        asked = region_problem(seed, buffers, steps)
        try:
            found = plan_moves(asked)
        except RequestError:
            continue
        run = simulate(asked, found.layout)
        assert run.seconds == pytest.approx(found.seconds), seed
        assert found.floor * (1 - 1e-9) <= found.seconds <= found.blocking, seed
        quicker += found.seconds < found.blocking
    assert quicker > 5


def layers(sram: int, dma: Dma) -> RegionProblem:
    """Six layers of one operator, each with 100 bytes of weights in flash that only SRAM can serve."""
    names = tuple(f"w{i}" for i in range(6))
    column = np.full(6, 100, dtype=np.int64)
    problem = Problem(names, column, np.zeros(6, dtype=np.int64), np.full(6, 6, dtype=np.int64))
    regions = (
        Region("sram", sram, read_bandwidth=100_000, write_bandwidth=100_000),
        Region("flash", 1000, kind="nvm", read_bandwidth=1000),
    )
    accesses = tuple(Access(i, i, 100, 0) for i in range(6))
    return RegionProblem(problem, regions, accesses, ((0,),) * 6, (1,) * 6, (0.15,) * 6, dma)


def test_weights_are_buffered_twice_where_there_is_room_for_two() -> None:
    one, two = (plan_moves(layers(sram, Dma(1, 2)), shares=(1.0, 0.5)) for sram in (100, 200))
    assert one.seconds == one.blocking == pytest.approx(6 * (0.15 + 0.1 + 0.001))
    assert two.seconds == pytest.approx(0.1 + 6 * (0.15 + 0.001))
    assert simulate(layers(200, Dma(1, 2)), two.layout).waiting == pytest.approx(0.1)
    assert {copy.due - copy.issued for copy in two.layout.copies} == {0, 1}


def test_without_an_engine_nothing_is_copied_ahead() -> None:
    found = plan_moves(layers(200, Dma()))
    assert all(copy.issued == copy.due for copy in found.layout.copies)


def test_a_slow_engine_limits_what_can_be_hidden() -> None:
    slow = layers(300, Dma(1, 4, bandwidth=500))
    found = plan_moves(slow, shares=(1.0, 0.5, 0.3))
    assert simulate(slow, found.layout).seconds == pytest.approx(found.seconds)
    assert found.seconds >= 3 * 0.2 + 0.15
    assert found.seconds < found.blocking
    assert replace(found.layout, timetable=None).copies == found.layout.copies


def test_weights_without_flash_are_back_where_they_began_after_a_run() -> None:
    plan = pipeline.plan(load_model(str(MODELS / "unet_small.tflite")))
    regions = (parse_region("sram:96KiB,rate=400MB/s", ()), parse_region("psram:8MiB,read=80MB/s,write=40MB/s", ()))
    made = moving_plan(plan, moving_problem(plan, regions))
    weights = [b for b, (_, purpose) in enumerate(owners_of([plan])) if purpose == "weights"]
    assert weights
    assert {made.problem.home[b] for b in weights} == {1}
    assert all(made.problem.home[b] < 0 for b in range(len(made.problem.home)) if b not in set(weights))
    assert any(copy.source < 0 for copy in made.layout.copies)

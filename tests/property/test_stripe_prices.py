"""The core finds the same rows of stripes and of loops as slow twins, and prices them alike."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TypeVar

import pytest
from carrying_twins import plain_carried_rows, plain_carrying_price
from loop_twins import plain_loop_price, plain_tiling
from random_cnns import branched_cnn, exported_cnn, headed_cnn, moving_cnn, random_cnn, renamed_cnn
from random_stripes import Network, random_stretch
from shares import share
from stripe_twins import plain_price, plain_stripe_rows
from striped_files import graph_of

from modelplan.model import Graph
from modelplan.rewriting.striped_tflite import costs, durations
from modelplan.rewriting.striped_tflite.estimating import Cost, Prices, estimate, estimate_carrying, estimate_loop
from modelplan.rewriting.striped_tflite.layers import stretch_layers
from modelplan.rewriting.stripes.carried_rows import carried_rows
from modelplan.rewriting.stripes.loop_rows import tiling
from modelplan.rewriting.stripes.row_windows import IllegalStripeError
from modelplan.rewriting.stripes.stretches import (
    CarryingLoop,
    LoopedStripes,
    Strategy,
    StretchLayers,
    UnrolledStripes,
    as_strategy,
)
from modelplan.rewriting.stripes.stripe_rows import stripe_rows

Layers = TypeVar("Layers")
Rows = TypeVar("Rows")
NETWORKS = random_cnn, branched_cnn, exported_cnn, headed_cnn, moving_cnn, renamed_cnn
PRICES = Prices(
    lambda *operator: costs.kept_for(32, *operator),
    durations.op_time,
    durations.terms_of,
    durations.ITERATION,
    lambda op: 1000 * (op % 3),
)


def drawn_stretches(graph: Graph, rng: random.Random, strategy: type[Strategy]) -> list[StretchLayers[Strategy]]:
    """Legal and illegal stretches of a network in unrolled stripes, or as loops."""
    found = []
    for stretch in (random_stretch(graph, rng) for _ in range(40)):
        if isinstance(stretch, strategy):
            try:
                found.append(stretch_layers(graph, range(len(graph.ops)), stretch))
            except IllegalStripeError:
                continue
    return found


def answer(
    rows: Callable[[Layers], Rows], price: Callable[[Layers, int, Prices], Cost], base: Layers
) -> tuple[Rows, Cost] | None:
    """The rows and the price of a stretch, None where it has no stripes of this form."""
    try:
        return rows(base), price(base, 77, PRICES)
    except IllegalStripeError:
        with pytest.raises(IllegalStripeError):  # then it has no price
            price(base, 77, PRICES)
        return None


def assert_alike(core: tuple[Rows, Cost] | None, twin: tuple[Rows, Cost] | None, place: object) -> None:
    """Both have no such loop, or the same rows and cost, the time but for rounding."""
    if twin is None or core is None:
        assert core is twin is None, place
        return
    assert core[0] == twin[0], place
    assert replace(core[1], time=0) == replace(twin[1], time=0), place
    assert core[1].time == pytest.approx(twin[1].time, rel=1e-9), place


@pytest.mark.parametrize("network", NETWORKS)
def test_stripes_and_prices_are_those_of_the_twin(network: Network, tmp_path: Path) -> None:
    found = []
    for seed in range(share(16)):
        graph = graph_of(network(seed), tmp_path)
        for base in drawn_stretches(graph, random.Random(seed), UnrolledStripes):
            found.append(answer(stripe_rows, estimate, base))
            assert found[-1] == answer(plain_stripe_rows, plain_price, base), (seed, base.stretch)
    assert sum(of_core is not None for of_core in found) > len(found) // 3 > 0


@pytest.mark.parametrize("network", NETWORKS)
def test_loops_and_prices_are_those_of_the_twin(network: Network, tmp_path: Path) -> None:
    found = []
    for seed in range(share(16)):
        graph = graph_of(network(seed), tmp_path)
        for base in drawn_stretches(graph, random.Random(seed), LoopedStripes):
            found.append(answer(tiling, estimate_loop, base))
            assert_alike(found[-1], answer(plain_tiling, plain_loop_price, base), (seed, base.stretch))
    assert any(found)


@pytest.mark.parametrize("network", NETWORKS)
def test_loops_that_carry_rows_and_prices_are_those_of_the_twin(network: Network, tmp_path: Path) -> None:
    found = []
    for seed in range(share(16)):
        graph = graph_of(network(seed), tmp_path)
        rng = random.Random(seed)
        for drawn in (*drawn_stretches(graph, rng, LoopedStripes), *drawn_stretches(graph, rng, UnrolledStripes)):
            height = drawn.height(drawn.output(drawn.ops[-1]))
            for rows in (1, 2, 3, 4):
                cuts = tuple(range(0, height + 1, rows)) if rows <= height else (0, height)
                base = drawn.as_stretch(as_strategy(drawn.stretch, CarryingLoop, cuts=cuts))
                found.append(answer(carried_rows, estimate_carrying, base))
                twin = answer(plain_carried_rows, plain_carrying_price, base)
                assert_alike(found[-1], twin, (seed, base.stretch))
    assert any(found)

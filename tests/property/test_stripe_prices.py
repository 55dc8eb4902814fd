"""The core finds the same rows of stripes and of loops as slow twins, and prices them alike."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

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
from modelplan.rewriting.stripes.carried_rows import CarriedRows, carried_rows
from modelplan.rewriting.stripes.loop_rows import Tiling, tiling
from modelplan.rewriting.stripes.row_windows import IllegalStripeError
from modelplan.rewriting.stripes.stretches import (
    CarryingLayers,
    CarryingLoop,
    LoopedStripes,
    LoopLayers,
    Strategy,
    StretchLayers,
    UnrolledLayers,
    UnrolledStripes,
    as_strategy,
)
from modelplan.rewriting.stripes.stripe_rows import StripeRows, stripe_rows

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


def by_the_core(base: UnrolledLayers) -> tuple[list[StripeRows], Cost] | None:
    """The rows and the price, None where there are no stripes of this form."""
    try:
        return stripe_rows(base), estimate(base, 77, PRICES)
    except IllegalStripeError:
        with pytest.raises(IllegalStripeError):  # then neither has a price
            estimate(base, 77, PRICES)
        return None


def by_the_twin(base: UnrolledLayers) -> tuple[list[StripeRows], Cost] | None:
    """The same, one row after the other."""
    try:
        return plain_stripe_rows(base), plain_price(base, 77, PRICES)
    except IllegalStripeError:
        return None


@pytest.mark.parametrize("network", [random_cnn, branched_cnn, exported_cnn, headed_cnn, moving_cnn, renamed_cnn])
def test_stripes_and_prices_are_those_of_the_twin(network: Network, tmp_path: Path) -> None:
    found = []
    for seed in range(share(16)):
        graph = graph_of(network(seed), tmp_path)
        for base in drawn_stretches(graph, random.Random(seed), UnrolledStripes):
            found.append(by_the_core(base))
            assert found[-1] == by_the_twin(base), (seed, base.stretch)
    assert sum(answer is not None for answer in found) > len(found) // 3 > 0


def loop_by_the_core(base: LoopLayers) -> tuple[Tiling, Cost] | None:
    """The rows and the price of a loop, None where there is none of this form."""
    try:
        return tiling(base), estimate_loop(base, 77, PRICES)
    except IllegalStripeError:
        with pytest.raises(IllegalStripeError):  # then it has no price
            estimate_loop(base, 77, PRICES)
        return None


def loop_by_the_twin(base: LoopLayers) -> tuple[Tiling, Cost] | None:
    """The same, one row after the other."""
    try:
        return plain_tiling(base), plain_loop_price(base, 77, PRICES)
    except IllegalStripeError:
        return None


@pytest.mark.parametrize("network", [random_cnn, branched_cnn, exported_cnn, headed_cnn, moving_cnn, renamed_cnn])
def test_loops_and_prices_are_those_of_the_twin(network: Network, tmp_path: Path) -> None:
    found = []
    for seed in range(share(16)):
        graph = graph_of(network(seed), tmp_path)
        for base in drawn_stretches(graph, random.Random(seed), LoopedStripes):
            tiled, twin = loop_by_the_core(base), loop_by_the_twin(base)
            if twin is None or tiled is None:
                assert tiled is twin is None, (seed, base.stretch)
                continue
            assert tiled[0] == twin[0], (seed, base.stretch)
            assert replace(tiled[1], time=0) == replace(twin[1], time=0), (seed, base.stretch)
            assert tiled[1].time == pytest.approx(twin[1].time, rel=1e-9), (seed, base.stretch)
            found.append(tiled)
    assert found


def carrying_by(
    rows: Callable[[CarryingLayers], CarriedRows],
    price: Callable[[CarryingLayers, int, Prices], Cost],
    base: CarryingLayers,
) -> tuple[CarriedRows, Cost] | None:
    """The rows and the price of a loop that carries rows, None where there is none of this form."""
    try:
        return rows(base), price(base, 77, PRICES)
    except IllegalStripeError:
        with pytest.raises(IllegalStripeError):  # then it has no price
            price(base, 77, PRICES)
        return None


@pytest.mark.parametrize("network", [random_cnn, branched_cnn, exported_cnn, headed_cnn, moving_cnn, renamed_cnn])
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
                core = carrying_by(carried_rows, estimate_carrying, base)
                twin = carrying_by(plain_carried_rows, plain_carrying_price, base)
                if twin is None or core is None:
                    assert core is twin is None, (seed, base.stretch)
                    continue
                assert core[0] == twin[0], (seed, base.stretch)
                assert replace(core[1], time=0) == replace(twin[1], time=0), (seed, base.stretch)
                assert core[1].time == pytest.approx(twin[1].time, rel=1e-9), (seed, base.stretch)
                found.append(core)
    assert found

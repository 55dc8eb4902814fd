"""The planners of the core against their slow twins; run under the sanitizers too."""

from __future__ import annotations

import random

import numpy as np
import planner_twins as twins
import pytest
from hypothesis import given
from hypothesis import strategies as st
from shares import share

from modelplan.model import IntArray
from modelplan.planning.allocators.systems.vela import RANDOMNESS, first_order
from modelplan.primitives import _core
from modelplan.runtimes.tflm.planner import Request, greedy_offsets

INF = float("inf")

record = st.tuples(st.integers(1, 12), st.integers(0, 8), st.integers(1, 6)).map(lambda r: (r[0], r[1], r[1] + r[2]))
records = st.lists(record, max_size=12).map(lambda rows: sorted(rows, key=lambda r: r[1]))
few = st.lists(record, max_size=6).map(lambda rows: sorted(rows, key=lambda r: r[1]))


def columns(rows: list[twins.Record]) -> tuple[IntArray, IntArray, IntArray]:
    table = np.array(rows, dtype=np.int64).reshape(-1, 3)
    return tuple(np.ascontiguousarray(table[:, i]) for i in range(3))  # type: ignore[return-value]


@pytest.mark.slow
@given(records)
def test_shared_objects_equal_their_twins(rows: list[twins.Record]) -> None:
    assert _core.positional_maxima(*columns(rows)).tolist() == twins.positional_maxima(rows)
    assert _core.share_by_breadth(*columns(rows)).tolist() == twins.share_by_breadth(rows)
    assert _core.share_by_distance(*columns(rows)).tolist() == twins.share_by_distance(rows)


@pytest.mark.slow
@given(few)
def test_the_flow_costs_least(rows: list[twins.Record]) -> None:
    holder, steps, ended = _core.share_min_cost(*columns(rows), 10**6, INF)
    assert ended == "complete"
    assert steps <= 10**6
    assert twins.chain_cost(rows, holder.tolist()) == twins.least_cost(rows)


def test_a_flow_without_steps_gives_each_buffer_an_object() -> None:
    holder, _, ended = _core.share_min_cost(*columns([(8, 0, 1), (8, 1, 2)]), 0, INF)
    assert (holder.tolist(), ended) == ([0, 1], "budget")


@pytest.mark.slow
@given(records)
def test_stacking_and_orders_equal_their_twins(rows: list[twins.Record]) -> None:
    order = sorted(range(len(rows)), key=lambda i: (-rows[i][0], -i))
    found = _core.stack_in_objects(*columns(rows), np.array(order, dtype=np.int64), True)
    assert tuple(column.tolist() for column in found) == twins.stack_in_objects(rows, order)
    for by_duration in (False, True):
        expected = twins.most_live_first(rows, by_duration=by_duration)
        assert _core.most_live_first(*columns(rows), by_duration).tolist() == expected


@pytest.mark.parametrize("seed", range(share(30)))
def test_the_hill_climb_replays_python(seed: int) -> None:
    draw = random.Random(seed)
    rows = []
    for _ in range(draw.randint(6, 28)):
        start = draw.randrange(12)
        rows.append((draw.randint(1, 99), start, start + draw.randint(1, 7)))
    alignment = [draw.choice([1, 4, 16]) if seed % 2 else 1 for _ in rows]
    size, starts, ends = columns(rows)
    load, order = first_order(size, starts, ends)
    steps = np.array(alignment, dtype=np.int64)
    found = _core.climb(size, starts, ends, steps, order, load, 2**62, 400, 10**9, INF, False, RANDOMNESS)[0]
    assert found.tolist() == twins.Climb(rows, alignment).run(order.tolist(), load, 400)


@pytest.mark.parametrize(
    "call",
    [
        lambda c, o: _core.share_by_breadth(*c),
        lambda c, o: _core.share_by_distance(*c),
        lambda c, o: _core.positional_maxima(*c),
        lambda c, o: _core.share_min_cost(*c, 9, INF),  # type: ignore[call-arg]
        lambda c, o: _core.stack_in_objects(*c, o, True),  # type: ignore[call-arg]
    ],
)
def test_records_out_of_order_or_empty_are_refused(call: object) -> None:
    order = np.array([0, 1], dtype=np.int64)
    for rows in ([(8, 2, 3), (8, 1, 2)], [(0, 0, 1), (8, 1, 2)]):
        with pytest.raises(ValueError, match="record"):
            call(columns(rows), order)  # type: ignore[operator]


def test_an_order_that_is_no_permutation_is_refused() -> None:
    two, twice = columns([(8, 0, 1), (8, 1, 2)]), np.array([0, 0], dtype=np.int64)
    ones = np.ones(2, dtype=np.int64)
    with pytest.raises(ValueError, match="permutation"):
        _core.stack_in_objects(*two, twice, True)
    with pytest.raises(ValueError, match="permutation"):
        _core.climb(*two, ones, twice, 8, 8, 8, 8, INF, False, RANDOMNESS)


def test_a_deadline_ends_the_climb_and_the_flow_with_what_there_is() -> None:
    draw = random.Random(1)
    rows = sorted(((draw.randint(1, 99), s, s + draw.randint(1, 300)) for s in range(900)), key=lambda r: r[1])
    size, start, end = columns(rows)
    load, order = first_order(size, start, end)
    ones = np.ones(len(rows), dtype=np.int64)
    limits = load, 0, 10**9, 10**12, 0.0
    offsets, _, ended = _core.climb(size, start, end, ones, order, *limits, False, RANDOMNESS)
    assert (len(offsets), ended) == (900, "deadline")
    assert offsets.min() >= 0
    holder, _, ended = _core.share_min_cost(size, start, end, 10**12, 0.0)
    assert (len(set(holder.tolist())), ended) == (900, "deadline")


scoped = st.tuples(st.integers(1, 6), st.integers(-1, 6), st.integers(0, 3)).map(lambda r: (r[0], r[1], r[1] + r[2]))


@pytest.mark.slow
@given(st.lists(st.tuples(scoped, st.integers(-3, 8)), max_size=12))
def test_tflm_places_as_its_twin_around_what_a_file_fixes_below_the_arena_too(
    found: list[tuple[tuple[int, int, int], int]],
) -> None:
    rows, fixed = [row for row, _ in found], [offset for _, offset in found]
    requests = [Request(*row, tensor=i) for i, row in enumerate(rows)]
    assert greedy_offsets(requests, fixed) == twins.tflm_greedy(rows, fixed)
    assert greedy_offsets(requests) == twins.tflm_greedy(rows, [-1] * len(rows))

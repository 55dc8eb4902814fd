"""The core against its slow twins; run under the sanitizers too."""

from __future__ import annotations

import core_oracles
import numpy as np
import pytest
import strategies
from hypothesis import given
from hypothesis import strategies as st
from shares import examples, few_first

from modelplan import BrokenPlanError, Placement, Problem, check, load_bound
from modelplan.model.bounds import peak_step
from modelplan.planning.allocators.greedy import GapRule, in_order


@pytest.mark.slow
@given(
    strategies.problems(alignments=(1, 4, 6, 16), pins=True),
    st.sampled_from(list(GapRule)),
    st.randoms(use_true_random=False),
)
def test_placing_in_order_equals_the_twin(problem: Problem, fit: GapRule, random: object) -> None:
    order = list(range(len(problem)))
    random.shuffle(order)  # type: ignore[attr-defined]
    placement = in_order(problem, np.array(order, dtype=np.int64), fit)
    assert placement.offsets.tolist() == core_oracles.place_in_order(problem, order, fit.name)


@pytest.mark.parametrize("fit", list(GapRule))
@pytest.mark.parametrize("largest", few_first([300, 2**34]))
def test_placing_among_hundreds_of_conflicts_equals_the_twin(fit: GapRule, largest: int) -> None:
    problem = strategies.crowded(220, largest)
    order = np.argsort(-problem.size, kind="stable")
    found = in_order(problem, order, fit).offsets.tolist()
    assert found == core_oracles.place_in_order(problem, order.tolist(), fit.name)


@pytest.mark.slow
@given(strategies.overlapping(), st.sampled_from(list(GapRule)))
def test_placing_honours_overlaps_and_conflicts(problem: Problem, fit: GapRule) -> None:
    order = np.arange(len(problem), dtype=np.int64)
    placement = in_order(problem, order, fit)
    assert core_oracles.valid(problem, placement.offsets.tolist())
    check(problem, placement)


@pytest.mark.slow
@given(strategies.overlapping(most=6), st.data())
def test_the_referee_equals_pairwise_checking(problem: Problem, data: st.DataObject) -> None:
    n = len(problem)
    offsets = np.array(data.draw(st.lists(st.integers(0, 60), min_size=n, max_size=n)), dtype=np.int64)
    if core_oracles.valid(problem, offsets.tolist()):
        check(problem, Placement(offsets))
    else:
        with pytest.raises(BrokenPlanError, match="share bytes"):
            check(problem, Placement(offsets))


@pytest.mark.slow
@examples(60)
@given(strategies.problems(most=5, alignments=(1, 4, 6)))
def test_the_load_bound_never_exceeds_the_optimum(problem: Problem) -> None:
    assert core_oracles.load(problem) <= load_bound(problem) or (problem.alignment > 1).any()
    assert load_bound(problem) <= core_oracles.optimum(problem)


@pytest.mark.slow
@examples(60)
@given(strategies.overlapping(most=5))
def test_the_load_bound_is_sound_with_facts(problem: Problem) -> None:
    assert load_bound(problem) <= core_oracles.optimum(problem)


@pytest.mark.slow
@given(strategies.problems())
def test_without_alignment_the_bound_is_the_load_at_the_peak_step(problem: Problem) -> None:
    assert load_bound(problem) == core_oracles.load(problem)
    step = peak_step(problem)
    alive = (problem.start <= step) & (step < problem.end)
    assert int(problem.size[alive].sum()) == load_bound(problem)


def test_an_order_that_is_no_permutation_is_refused() -> None:
    problem = Problem.of([])
    with pytest.raises(ValueError, match="order"):
        in_order(problem, np.array([0], dtype=np.int64))

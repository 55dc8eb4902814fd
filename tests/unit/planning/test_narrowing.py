"""How a minimisation asks: the goal first, then by bisection, then down from its best; and what stands in for it."""

from __future__ import annotations

from collections.abc import Callable

import graphs
import numpy as np

from modelplan import Budget, height, place
from modelplan.model import Problem
from modelplan.planning.allocators import narrowing
from modelplan.planning.allocators.narrowing import Decision

#: Three buffers alive together and a fourth apart: the load is 12 and reached.
PROBLEM = graphs.problem([(6, 0, 2), (4, 0, 2), (2, 1, 2), (5, 2, 3)])

Decide = Callable[[Problem, int, Budget], Decision]


def asked(steps: int, fits: int | None = None) -> tuple[Decide, list[tuple[int, int | None]]]:
    """A method that knows a stack of the height `fits`, and the capacities and steps that it was asked with.

    Below that it is silent after all the steps that it got.
    """
    log: list[tuple[int, int | None]] = []

    def decide(problem: Problem, capacity: int, budget: Budget) -> Decision:
        log.append((capacity, budget.steps))
        if fits is None or capacity < fits:
            return Decision("budget", np.zeros(0, dtype=np.int64), budget.steps or steps)
        stacked = [fits - 6, 0, 4, 0]
        return Decision("complete", np.array(stacked), 1)

    return decide, log


def test_the_load_bound_is_asked_for_first_and_ends_the_search() -> None:
    decide, log = asked(10, fits=12)
    found = narrowing.decided(PROBLEM, Budget(steps=100), decide, 10, first_share=4 / 5)
    assert log == [(12, 80)]
    assert (found.ended, found.found_by, found.steps) == ("optimal", "", 1)
    assert height(PROBLEM, found) == 12


def test_a_search_without_an_answer_names_whose_offsets_stand_in() -> None:
    decide, log = asked(10)
    found = narrowing.decided(PROBLEM, Budget(steps=100), decide, 10)
    row = place(PROBLEM, "first-fit-size")
    assert found.offsets.tolist() == row.offsets.tolist()
    assert (found.found_by, found.own_height) == ("first-fit-size", None)
    assert log[0] == (12, 25)
    assert found.steps == 100


def test_what_is_left_is_spent_on_going_down_from_the_best() -> None:
    """First fit needs 17 bytes where 15 do; this method finds those 15 only when it is asked for 17."""
    hard = graphs.problem([(5, 0, 3), (3, 1, 4), (3, 2, 5), (6, 0, 2), (4, 2, 5)])
    log = []

    def decide(problem: Problem, capacity: int, budget: Budget) -> Decision:
        log.append((capacity, budget.steps))
        if capacity < 17:
            return Decision("budget", np.zeros(0, dtype=np.int64), budget.steps or 0)
        return Decision("complete", np.array([0, 5, 12, 8, 8]), 4)

    found = narrowing.decided(hard, Budget(steps=100), decide, 10, first_share=1 / 2)
    assert log == [(15, 50), (16, 13), (17, 10)]
    assert (height(hard, found), found.ended, found.found_by) == (15, "optimal", "")


def test_a_goal_above_the_bound_is_enough() -> None:
    decide, log = asked(10, fits=13)
    found = narrowing.decided(PROBLEM, Budget(steps=100, enough=14), decide, 10)
    assert [capacity for capacity, _ in log] == [14]
    assert height(PROBLEM, found) == 13


def test_a_capacity_is_one_question_with_the_whole_budget() -> None:
    decide, log = asked(10)
    limited = graphs.problem([(6, 0, 2), (4, 0, 2), (2, 1, 2), (5, 2, 3)], capacity=12)
    found = narrowing.decided(limited, Budget(steps=100), decide, 10)
    assert log == [(12, 100)]
    assert (found.ended, found.found_by) == ("budget", "first-fit-size")

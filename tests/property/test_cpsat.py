"""The exact model against brute force; needs the extra `cpsat`."""

from __future__ import annotations

import signal
from dataclasses import replace

import core_oracles
import graphs
import numpy as np
import pytest
import strategies
from hypothesis import HealthCheck, given
from shares import examples

from modelplan import Budget, Problem, RequestError, height, place
from modelplan.planning.allocators import cpsat

pytest.importorskip("ortools")
slowly = examples(25, suppress_health_check=[HealthCheck.too_slow])


@slowly
@given(strategies.problems(most=5, alignments=(1, 4, 6)))
def test_it_is_exact(problem: Problem) -> None:
    answer = place(problem, "cp-sat")
    assert answer.ended == "optimal"
    assert height(problem, answer) == answer.lower_bound == core_oracles.optimum(problem)


@slowly
@given(strategies.overlapping(most=5))
def test_it_is_exact_with_overlaps_and_conflicts(problem: Problem) -> None:
    answer = place(problem, "cp-sat")
    assert height(problem, answer) <= core_oracles.optimum(problem)
    assert answer.ended == "optimal"
    assert answer.lower_bound == height(problem, answer)


@slowly
@given(strategies.problems(most=5, pins=True))
def test_it_decides(problem: Problem) -> None:
    best = core_oracles.optimum(problem)
    fits = place(replace(problem, capacity=best), "cp-sat")
    assert (fits.ended, height(problem, fits)) == ("optimal", best)
    if best > 0:
        short = place(replace(problem, capacity=best - 1), "cp-sat")
        assert (short.ended, short.lower_bound) == ("infeasible", best)


def test_it_spreads_over_pools_by_price() -> None:
    """20 bytes are alive at once; the cheap pool has 12."""
    problem = Problem(tuple("abcd"), np.array([8, 8, 4, 8]), np.array([0, 0, 0, 1]), np.array([1, 1, 1, 2]))
    found = cpsat.spread(problem, [cpsat.Pool(12, price=1), cpsat.Pool(None, price=5)], Budget(steps=2000))
    assert found is not None
    assert (found.ended, found.cost) == ("optimal", 12 + 5 * 8)
    assert sorted(found.pool[:3].tolist()) == [0, 0, 1]


def test_it_refuses_what_cannot_be() -> None:
    with pytest.raises(RequestError, match="at least one"):
        cpsat.spread(Problem((), np.zeros(0, int), np.zeros(0, int), np.zeros(0, int)), [])
    clash = Problem(("a", "b"), np.array([4, 4]), np.zeros(2, int), np.ones(2, int), pin=np.array([0, 2]))
    with pytest.raises(RequestError, match="pinned buffers 'a' and 'b' are alive together"):
        place(clash, "cp-sat")


def test_without_or_tools_it_says_how_to_install_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "ortools.sat.python", None)
    with pytest.raises(RequestError, match=r"pip install 'modelplan\[cpsat\]'"):
        place(Problem(("a",), np.array([4]), np.zeros(1, int), np.ones(1, int)), "cp-sat")


def test_ctrl_c_works_as_before_after_a_solve() -> None:
    place(graphs.problem([(8, 0, 2), (4, 1, 3)]), "cp-sat")
    with pytest.raises(KeyboardInterrupt):
        signal.raise_signal(signal.SIGINT)

"""A small run of benchmarks/proofs.py, and whether that command would notice a wrong claim."""

from __future__ import annotations

import core_oracles
import proofs
import pytest
import strategies
from hypothesis import given
from shares import examples

from modelplan import Problem, height, load_bound, place


@pytest.mark.slow
def test_optima_above_the_load_are_confirmed_exhaustively() -> None:
    assert proofs.exhaustive(3).startswith("* 3 problems of")


def test_optima_above_the_load_are_confirmed_by_cp_sat() -> None:
    pytest.importorskip("ortools")
    assert "CP-SAT proves the same optimum on all" in proofs.exact_model(2)


@pytest.mark.parametrize("what", ["alignments of 1, 16 and 64", "pins"])
def test_placed_problems_are_confirmed_exhaustively(what: str) -> None:
    assert f"* 200 problems of at most seven buffers with {what}" in proofs.placed(200, what)


@examples(100)
@given(strategies.problems(most=6, pins=True, alignments=(1, 4, 6)))
def test_the_exhaustive_search_agrees_with_a_plainer_one(problem: Problem) -> None:
    best = height(problem, place(problem))
    for limit in (best, best + 1):
        assert proofs.Exhaustive(problem, limit).succeeds() == core_oracles.packs_below(problem, limit)


def test_a_claim_that_is_too_high_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    truth = proofs.claim
    monkeypatch.setattr(proofs, "claim", lambda problem, without=(): (truth(problem, without) or 0) + 1)
    with pytest.raises(proofs.WrongError, match="is not the optimum"):
        proofs.placed(50, "alignments of 1, 16 and 64")


def test_brimful_problems_can_need_more_than_their_load() -> None:
    problem, best = next(proofs.above_the_load(8, 10, 1, seed=1))
    assert best > load_bound(problem)

"""Another order of the operators of branches: what it saves, that it is stated and proved, and what none can be."""

from __future__ import annotations

import json
import random
import re
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from c_plans import random_order
from random_cnns import branched_cnn
from shares import share

from modelplan import FitCRequest, fit_c
from modelplan.formats import load_model
from modelplan.plain_c import ladder
from modelplan.plain_c.c_model import CModel
from modelplan.plain_c.rows.stage_search import branch_by_branch, can_run_in
from modelplan.plain_c.stated_plan import stated_program, stated_verdict
from modelplan.runtimes.tflm.file import load_tflite

MODELS = Path(__file__).resolve().parents[3] / "models"
INCEPTION = str(MODELS / "inception_like.tflite")


def model_of(path: str) -> CModel:
    return CModel(load_model(path), load_tflite(path))


@cache
def fitted() -> Any:
    return fit_c(FitCRequest(INCEPTION, output="net.c"))


def test_each_branch_runs_as_a_whole_and_the_smallest_result_waits() -> None:
    rows = model_of(INCEPTION).rows
    other = branch_by_branch(rows)
    place = {number: i for i, number in enumerate(other.order)}
    joins = [n for n in other.order if len(rows.operators[n].operands) == 4]
    assert joins
    for join in joins:
        makers = [other.values[other.value_of[t]].producer for t in rows.operators[join].operands]
        sizes = [rows.graph.tensors[rows.graph.ops[n].writes[0]].nbytes for n in sorted(makers, key=place.__getitem__)]
        assert sizes == sorted(sizes)
    assert can_run_in(rows, other.order)
    assert branch_by_branch(other).order == other.order


def test_a_network_of_branches_takes_less_and_states_its_order() -> None:
    chosen = fitted().chosen
    assert chosen.ram == 18_876  # 19,732 in the file's order
    assert [verdict.outcome for verdict in fitted().proof] == ["ok"]
    _, program = stated_program(model_of(INCEPTION), chosen.files.source)
    assert program.choices
    assert program.choices.order == chosen.program.choices.order == branch_by_branch(model_of(INCEPTION).rows).order


def reordered(order: tuple[int, ...]) -> list[tuple[int, ...]]:
    """Orders in which the operators cannot run."""
    return [order[::-1], order[:-1], (*order, order[0]), (*order[:-1], order[0]), (*order[:-1], 1000)]


def restated(source: str, order: tuple[int, ...]) -> str:
    """A source that states another order."""
    stated = re.search(r"`modelplan verify`:\n(.*?)\*/", source, re.DOTALL)
    assert stated
    data = {**json.loads(stated[1].replace("*", " ")), "order": order}
    return f"{source[: stated.start(1)]}{json.dumps(data)}*/"


@pytest.mark.parametrize("case", range(5))
def test_an_order_in_which_nothing_can_run_is_refused(case: int) -> None:
    files = fitted().chosen.files
    text = restated(files.source, reordered(fitted().chosen.program.choices.order)[case])
    verdict = stated_verdict(model_of(INCEPTION), text, files.header)
    assert (verdict.outcome, verdict.details) == ("unproved", "it states an order in which its operators cannot run")


def test_a_plan_in_another_order_than_it_states_is_not_proved() -> None:
    files = fitted().chosen.files
    order = fitted().chosen.program.choices.order
    rows, at = model_of(INCEPTION).rows, range(len(order) - 1)
    swaps = ((*order[:i], order[i + 1], order[i], *order[i + 2 :]) for i in at)
    swapped = next(swap for swap in swaps if can_run_in(rows, swap))
    text = restated(files.source, swapped)
    assert stated_verdict(model_of(INCEPTION), text, files.header).outcome in ("broken", "unproved")


@pytest.mark.slow
def test_no_network_takes_more_where_the_other_order_may_be_tried(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    paths = [MODELS / name for name in ("inception_like.onnx", "transformer_encoder.tflite", "resnet8.tflite")]
    for seed in range(share(40)):
        paths.append(tmp_path / f"net{seed}.tflite")
        paths[-1].write_bytes(branched_cnn(seed))
    lower = 0
    for path in paths:
        rams = []
        for order in (branch_by_branch, lambda rows: rows):
            monkeypatch.setattr(ladder, "branch_by_branch", order)
            rams.append(fit_c(FitCRequest(str(path), output="net.c")).chosen.ram)  # type: ignore[union-attr]
        assert rams[0] <= rams[1], path
        lower += rams[0] < rams[1]
    assert lower


def test_orders_in_which_operators_can_run_are_told_from_others(tmp_path: Path) -> None:
    for seed in range(10):
        path, draw = tmp_path / "net.tflite", random.Random(seed)
        path.write_bytes(branched_cnn(seed))
        rows = model_of(str(path)).rows
        order = random_order(rows, draw).order
        assert can_run_in(rows, order)
        assert not can_run_in(rows, order[::-1])


def test_variables_keep_the_order_of_the_file(corpus: Path) -> None:
    rows = model_of(str(corpus / "tflite" / "keyword_scrambled_8bit.tflite")).rows
    assert not can_run_in(rows, rows.order)
    assert branch_by_branch(rows) is rows
    assert replace(rows, other_order=()) == rows

"""Operators that run again for a map that is read much later."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from modelplan import FitCRequest, fit_c
from modelplan.formats import load_model
from modelplan.model.c_program import KernelCall, Repeat
from modelplan.plain_c.c_model import CModel
from modelplan.plain_c.ladder import CLadder, CRung
from modelplan.plain_c.rows.repeating import possible_repeats, with_repeats
from modelplan.plain_c.stated_plan import stated_verdict
from modelplan.questions.c_fitting import drawn_rung
from modelplan.runtimes.tflm.file import load_tflite

MODELS = Path(__file__).resolve().parents[3] / "models"
UNET = str(MODELS / "unet_small.tflite")


def asked(**more: Any) -> FitCRequest:
    return FitCRequest(UNET, output="net.c", pushed=True, **{"without": frozenset({"maps", "parts"}), **more})


@cache
def fitted() -> CLadder:
    return fit_c(asked())


def chosen() -> CRung:
    rung = fitted().chosen
    assert rung is not None
    return rung


def test_the_first_map_of_a_u_net_is_made_again() -> None:
    least = min(rung.ram for rung in fitted().rungs if rung.name != "again")
    assert chosen().name == "again"
    assert chosen().ram < 0.6 * least
    assert 0 < chosen().macs <= 0.1
    assert [verdict.outcome for verdict in fitted().proof] == ["ok"]
    calls = [step for stage in chosen().program.stages for step in stage.steps if isinstance(step, KernelCall)]
    computed = [(c.operator, w.first) for c in calls for w in c.writes if c.columns is None]
    assert len(computed) > len(set(computed))


@pytest.mark.slow
def test_nothing_runs_again_that_nobody_asked_for_or_that_saves_little() -> None:
    ladder = fit_c(asked(without=frozenset({"maps", "overlaps", "parts", "again"})))
    assert [rung.name for rung in ladder.rungs] == ["rows"]
    resnet = fit_c(FitCRequest(str(MODELS / "resnet8.tflite"), output="net.c", without=frozenset({"maps", "parts"})))
    assert "again" not in [rung.name for rung in resnet.rungs]


@pytest.mark.slow
def test_more_runs_again_where_more_work_may_be_added() -> None:
    without = frozenset({"maps", "overlaps", "rows", "parts", "tiles"})
    more = fit_c(asked(max_macs=0.2, without=without)).chosen
    assert more is not None
    assert more.ram < chosen().ram
    assert 0.1 < more.macs <= 0.2


@pytest.mark.parametrize("stated", ['"again": [[[0, 2], 20]]', '"again": [[[0, 1], 3]]', '"again": [[[], 20]]'])
def test_a_source_that_states_what_cannot_run_again_is_not_proved(stated: str) -> None:
    files, model = chosen().files, CModel(load_model(UNET), load_tflite(UNET))
    assert stated_verdict(model, files.source, files.header).outcome == "ok"
    found = files.source[files.source.index('"again"') : files.source.index("}", files.source.index('"again"'))]
    wrong = stated_verdict(model, files.source.replace(found, stated), files.header)
    assert (wrong.outcome, "run again which cannot" in wrong.details) == ("unproved", True)


def test_a_plan_that_reads_the_first_rows_too_late_is_broken() -> None:
    files, model = chosen().files, CModel(load_model(UNET), load_tflite(UNET))
    begin = files.source.index('"again"')
    first = files.source.index('"bases": [') + len('"bases": [')
    moved = files.source[:first] + "8" + files.source[files.source.index(",", first) :]
    assert begin > first
    assert stated_verdict(model, moved, files.header).outcome in ("broken", "unproved")


def test_a_value_that_is_made_again_is_drawn_under_its_name() -> None:
    drawing = drawn_rung(asked(), fitted())
    names = [name.split(" ")[0] for name in drawing.problem.names]
    assert set(names) <= {tensor.name.split(" ")[0] for tensor in load_model(UNET).tensors}


def test_operators_run_again_only_in_a_row_from_the_reader_back() -> None:
    rows = CModel(load_model(UNET), load_tflite(UNET)).rows
    possible = list(possible_repeats(rows))
    assert Repeat((0, 1), 20) in possible or any(len(repeat.operators) == 2 for repeat in possible)
    again = with_repeats(rows, possible[:1])
    assert len(again.order) == len(rows.order) + len(possible[0].operators)
    assert again.order[again.order.index(possible[0].reader) - 1] not in rows.order
    assert replace(again, repeats=()).tensor_in_model(len(rows.graph.tensors)) < len(rows.graph.tensors)

"""The library answers what the commands answer: each question is a frozen request and a function."""

from __future__ import annotations

from dataclasses import FrozenInstanceError, replace
from pathlib import Path

import pytest

import modelplan
from modelplan.answers.analysis import Analysis, ComparedFile, PlannedFile, RunFile, SizedFile
from modelplan.cli import main
from modelplan.model.bounds import height
from modelplan.outputs import render
from modelplan.outputs.report import plain
from modelplan.outputs.reports import difference_report, explanation_report
from modelplan.outputs.reports.analysis_report import stage_sections


@pytest.fixture
def kws(models: Path) -> str:
    return str(models / "ds_cnn_kws.tflite")


def shown(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    assert main(words) == 0
    return capsys.readouterr().out


def test_a_request_is_frozen_and_says_what_is_there(kws: str) -> None:
    request = modelplan.AnalyzeRequest(kws, capacity=65536)
    assert request.available == 65536
    assert not request.asks_for_plan
    assert replace(request, alias="max").asks_for_plan
    with pytest.raises(FrozenInstanceError):
        request.path = "other"  # type: ignore[misc]


def test_analyze_answers_in_stages_what_the_command_shows(kws: str, capsys: pytest.CaptureFixture[str]) -> None:
    stages = list(modelplan.analysis_stages(modelplan.AnalyzeRequest(kws, kernels="esp-nn")))
    assert [type(stage) for stage in stages] == [SizedFile, RunFile, PlannedFile, ComparedFile, Analysis]
    answer = stages[-1]
    assert isinstance(answer, Analysis)
    text = shown(capsys, "analyze", kws, "--kernels", "esp-nn")
    assert f"#define {answer.requirement.macro} {answer.requirement.arena}\n" in text
    assert plain([part for stage in stages for part in stage_sections(stage)]) == text
    assert render(answer.plan, ".json") == shown(capsys, "analyze", kws, "--kernels", "esp-nn", "--json", "-")


def test_analyze_without_advice_tries_nothing(kws: str) -> None:
    answer = modelplan.analyze(modelplan.AnalyzeRequest(kws, advice=False))
    assert (answer.alternatives, answer.suggestions, answer.session) == ((), (), None)
    assert height(answer.plan.problem, answer.plan.placement) > 0


def test_explain_answers_what_the_command_writes(kws: str, capsys: pytest.CaptureFixture[str]) -> None:
    answer = modelplan.explain(modelplan.ExplainRequest(kws, what_if=("compress=weights:int4",)))
    written = shown(capsys, "explain", kws, "--what-if", "compress=weights:int4", "--json", "-")
    assert explanation_report.as_json(answer) == written
    assert answer.explained is answer.unmodified


def test_diff_of_requests_answers_what_the_command_writes(kws: str, capsys: pytest.CaptureFixture[str]) -> None:
    old = modelplan.ModelRequest(kws)
    written = shown(capsys, "diff", kws, "--new", "kernels=esp-nn", "--json", "-")
    assert difference_report.as_json(modelplan.diff(old, replace(old, kernels="esp-nn"))) == written
    with pytest.raises(modelplan.RequestError, match="a file and a plan"):
        modelplan.diff(old, kws)


def test_compare_answers_for_every_allocator(tmp_path: Path) -> None:
    table = tmp_path / "two.csv"
    table.write_text("id,lower,upper,size\na,0,2,16\nb,1,3,16\n")
    answers = modelplan.compare(modelplan.CompareRequest(str(table)))
    assert answers.comparison.ranked[0].height == answers.comparison.lower_bound == 32
    assert answers.fitting == len(answers.comparison.ranked) == len(answers.placements)


def test_budgets_are_checked_for_named_models(kws: str) -> None:
    request = modelplan.CheckRequest((modelplan.ModelRequest(kws),), modelplan.Limits(arena=1024))
    (outcome,) = modelplan.check_budgets(request).outcomes
    assert (outcome.passed, outcome.exit_code) == (False, 1)
    assert modelplan.check_budgets(replace(request, limits=modelplan.Limits(arena=1 << 20))).failed == []


def test_a_target_gives_capacity_abi_and_kernels(kws: str) -> None:
    assert modelplan.choose_target(modelplan.TargetRequest()) is None
    with pytest.raises(modelplan.RequestError, match="--used says more about a target"):
        modelplan.choose_target(modelplan.TargetRequest(used="a.map"))
    target = modelplan.choose_target(modelplan.TargetRequest("stm32h743"))
    assert target is not None
    answer = modelplan.analyze(modelplan.AnalyzeRequest(kws, target=target, advice=False))
    assert answer.capacity == answer.plan.problem.capacity == target.budget
    assert answer.target.abi == target.device.abi


def test_rewritten_files_are_those_of_the_commands(kws: str, tmp_path: Path) -> None:
    out = str(tmp_path / "out.tflite")
    assert main(["reorder", kws, "-o", out]) == 0
    assert modelplan.reorder(modelplan.ModelRequest(kws)).content == Path(out).read_bytes()
    assert main(["pack", kws, "-o", out, "--force"]) == 0
    packed = modelplan.pack(modelplan.PackRequest(kws))
    assert packed.packed.data == Path(out).read_bytes()
    assert packed.gains == (packed.after.arena < packed.before.arena or packed.after.head < packed.before.head)


def test_recomputing_starts_from_the_plan_without_repetitions(kws: str) -> None:
    curve = modelplan.recompute(modelplan.RecomputeRequest(kws, seconds=0.0))
    assert curve.points[0].origins == tuple(range(len(curve.model.ops)))
    with pytest.raises(modelplan.RequestError, match="says nothing of repeated operators"):
        modelplan.recompute(modelplan.RecomputeRequest(kws, allocator="file"))


def test_a_region_that_is_not_there_is_refused(kws: str) -> None:
    with pytest.raises(modelplan.RequestError, match="there is no such region"):
        modelplan.spill(modelplan.SpillRequest(kws, copied_only=("dram",)))

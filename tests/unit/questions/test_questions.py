"""The library answers what the commands answer: each question is a frozen request and a function."""

from __future__ import annotations

from dataclasses import FrozenInstanceError, replace
from pathlib import Path

import pytest

import modelplan
from modelplan.answers.analysis import Analysis, ComparedFile, PlannedFile, RunFile, SizedFile
from modelplan.cli import main
from modelplan.formats import load_model
from modelplan.model.bounds import height
from modelplan.outputs import render
from modelplan.outputs.report import plain
from modelplan.outputs.reports import (
    difference_report,
    explanation_report,
    ladder_report,
    proof_report,
    region_report,
    shared_report,
)
from modelplan.outputs.reports.analysis_report import stage_sections
from modelplan.questions.together.shared_memory import tflm_arenas


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
    text = shown(capsys, "analyze", kws, "--kernels", "esp-nn", "--verbose")
    assert f"#define {answer.requirement.macro} {answer.requirement.arena}\n" in text
    assert plain([part for stage in stages for part in stage_sections(stage)]) == text
    assert render(answer.plan, ".json") == shown(capsys, "analyze", kws, "--kernels", "esp-nn", "--json", "-")


def test_analyze_without_advice_tries_nothing(kws: str) -> None:
    answer = modelplan.analyze(modelplan.AnalyzeRequest(kws, advice=False))
    assert (answer.alternatives, answer.suggestions) == ((), ())
    assert height(answer.plan.problem, answer.plan.placement) > 0


def test_explain_answers_what_the_command_writes(kws: str, capsys: pytest.CaptureFixture[str]) -> None:
    answer = modelplan.explain(modelplan.ExplainRequest(kws, what_if=("compress=weights:int4",), seconds=0))
    written = shown(capsys, "explain", kws, "--what-if", "compress=weights:int4", "--seconds", "0", "--json", "-")
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


def test_verify_answers_what_the_command_shows(kws: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    saved = str(tmp_path / "plan.json")
    assert main(["analyze", kws, "--json", saved]) == 0
    capsys.readouterr()
    proof = modelplan.verify(modelplan.VerifyRequest(saved, model=kws, quick=True))
    assert [(verdict.outcome, proof.fault) for verdict in proof.verdicts] == [("ok", "")] * 2
    assert plain(proof_report.sections_of(proof)) == shown(capsys, "verify", saved, "--model", kws, "--quick")


def test_a_rewritten_file_is_compared(kws: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    packed = str(tmp_path / "packed.tflite")
    assert main(["pack", kws, "-o", packed, "--force"]) == 0
    capsys.readouterr()
    proof = modelplan.verify(modelplan.VerifyRequest(kws, against=packed, quick=True))
    assert plain(proof_report.sections_of(proof)) == shown(capsys, "verify", kws, "--against", packed, "--quick")
    with pytest.raises(modelplan.RequestError, match="--model is for plans"):
        modelplan.verify(modelplan.VerifyRequest(kws, against=packed, model=kws))


@pytest.mark.slow
def test_models_are_checked_against_a_saved_layout(
    kws: str, models: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    layout = str(tmp_path / "layout.json")
    assert main(["memories", kws, "--region", "a:20KiB", "--region", "b:1MiB,rate=40MB/s", "--json", layout]) == 0
    capsys.readouterr()
    check = modelplan.check_layout(modelplan.LayoutRequest(layout, (kws,)))
    assert check.passed
    assert region_report.check_json(check, 1) == shown(capsys, "check", kws, "--layout", layout, "--json", "-")
    larger = modelplan.LayoutRequest(layout, (kws, str(models / "mobilenet_v2_like.tflite")), "5%")
    assert [bool(model.reasons) for model in modelplan.check_layout(larger).models] == [False, True]
    with pytest.raises(modelplan.RequestError, match="grow by a share"):
        modelplan.check_layout(replace(larger, growth="100"))


@pytest.mark.slow
def test_fit_answers_what_the_command_writes(kws: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = str(tmp_path / "out.tflite")
    request = modelplan.FitRequest(kws, without=frozenset({"split"}), seed=1)
    text = shown(capsys, "fit", kws, "--least", "--without", "split", "--seed", "1", "-o", out)
    ladder = modelplan.fit(request)
    assert ladder.model == Path(out).read_bytes()
    assert text.startswith(plain([ladder_report.rungs_section(kws, ladder, request)]))


def test_fit_reads_the_kernels_of_the_plan_in_the_file(kws: str, tmp_path: Path) -> None:
    packed = tmp_path / "packed.tflite"
    packed.write_bytes(modelplan.pack(modelplan.PackRequest(kws, kernels="cmsis-dsp")).packed.data)
    few = frozenset({"order", "views", "overlaps", "fold", "gather", "split"})
    ladder = modelplan.fit(modelplan.FitRequest(packed, without=few))
    assert ladder.kernels == "cmsis-dsp"
    assert ladder.rungs[0].arena == modelplan.analyze(modelplan.AnalyzeRequest(str(packed))).requirement.arena
    assert modelplan.fit(modelplan.FitRequest(packed, kernels="reference", without=few)).kernels == "reference"
    assert modelplan.fit(modelplan.FitRequest(load_model(kws), without=few)).kernels == "all"


def test_fit_of_an_onnx_file_refuses_a_step_that_there_is_not(models: Path) -> None:
    pytest.importorskip("onnxruntime")
    with pytest.raises(modelplan.RequestError, match="no rung 'views' to leave out"):
        modelplan.fit_onnx(modelplan.FitOnnxRequest(str(models / "resnet8.onnx"), without=frozenset({"views"})))


@pytest.mark.slow
def test_models_share_memory_as_the_command_writes(kws: str, models: Path, capsys: pytest.CaptureFixture[str]) -> None:
    files = {"a": kws, "b": str(models / "resnet8.tflite")}
    shared = modelplan.share_memory(modelplan.ShareRequest(files, in_turn=(("all",),)))
    words = [f"{name}={path}" for name, path in files.items()]
    written = shown(capsys, "together", *words, "--in-turn", "all", "--json", "-")
    assert shared_report.as_json(shared, tflm_arenas(shared), {}) == written

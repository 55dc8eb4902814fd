"""The arena that must be declared, and the activations that are planned, are the same numbers in every output."""

from __future__ import annotations

import hashlib
import json
import re
from pathlib import Path

import numpy as np
import pytest
from commands import run
from shares import few_first

from modelplan import FitRequest, fit
from modelplan.answers.drawing import of_plan
from modelplan.answers.summary import summary
from modelplan.outputs.figures import axes
from modelplan.outputs.page.columns import columns_of
from modelplan.primitives.units import human
from modelplan.questions.analyzing import AnalyzeRequest, analysis_page, analyze
from modelplan.questions.sweeps.measured_runs import Memo, measured
from modelplan.questions.sweeps.run_table import RunTable, runs_of

MODELS = few_first(["ds_cnn_kws", "autoencoder", "resnet8", "unet_small", "transformer_encoder"])


@pytest.fixture(params=MODELS)
def model(request: pytest.FixtureRequest, models: Path) -> Path:
    return models / f"{request.param}.tflite"


def declared(text: str) -> int:
    """The number behind the macro."""
    found = re.search(r"#define TENSOR_ARENA_SIZE (\d+)", text)
    assert found, text
    return int(found[1])


def test_every_command_prints_the_arena_that_must_be_declared(model: Path, tmp_path: Path) -> None:
    shown = run("analyze", model)
    arena = declared(shown.stdout)
    assert declared(run("explain", model, "--seconds", 0).stdout) == arena
    assert json.loads(run("analyze", model, "--json", "-").stdout)["requirement"]["arena"] == arena
    assert json.loads(run("explain", model, "--seconds", 0, "--json", "-").stdout)["requirement"]["arena"] == arena
    checked = json.loads(run("check", model, "--budget", arena, "--json", "-").stdout)
    assert checked["models"][0]["required"] == arena
    assert run("check", model, "--budget", arena - 1).returncode == 1
    assert json.loads(run("diff", model, model, "--json", "-").stdout)["arena"] == {
        "before": arena,
        "after": arena,
        "delta": 0,
    }
    for command in ("reorder", "pack"):
        done = run(command, model, "-o", tmp_path / f"{command}.tflite")
        assert f"arena before {human(arena)}" in " ".join(done.stdout.split())
    both = json.loads(run("together", model, f"other={model}", "--in-turn", "all", "--json", "-").stdout)
    assert both["arenas"]["separate"] == [arena, arena]
    assert fit(FitRequest(model, without=frozenset({"split", "overlaps", "fold", "gather"}))).rungs[0].arena == arena
    digest = {str(model): hashlib.sha256(model.read_bytes()).hexdigest()}
    (one,) = runs_of(RunTable((str(model),)), digest)
    assert measured(one, Memo()).arena == arena


def test_pictures_and_pages_have_the_numbers_of_the_text(model: Path) -> None:
    request = AnalyzeRequest(str(model))
    analysis = analyze(request)
    needed, figures = analysis.requirement, summary(analysis.plan)
    lines = [text for text, _ in axes.facts(of_plan(analysis.plan))]
    assert lines[0].startswith(f"planned activations {human(figures.planned)}  ·")
    assert f"arena {human(needed.arena)} for the unmodified file" in lines
    assert f"planned activations {human(figures.planned)}" in run("analyze", model, "--verbose").stdout
    views = {view["name"]: view for view in columns_of(analysis_page(request, analysis))["views"]}
    own = views["tflm by itself"]
    assert (own["planned"], own["planned"] + own["tail"]) == (needed.head, needed.arena)


def test_bytes_of_an_output_that_runs_into_its_operand_count_once(models: Path) -> None:
    for name in ("ds_cnn_kws", "resnet8", "mobilenet_v2_like"):
        request = AnalyzeRequest(str(models / f"{name}.tflite"), kernels="reference", alias="max")
        drawing = of_plan(analyze(request).plan)
        alive = (drawing.problem.start <= drawing.peak_step) & (drawing.peak_step < drawing.problem.end)
        low = drawing.placement.offsets[alive]
        held = np.zeros(drawing.planned, dtype=bool)
        for start, size in zip(low.tolist(), drawing.problem.size[alive].tolist(), strict=True):
            held[start : start + size] = True
        assert drawing.peak == held.sum() <= drawing.planned


def test_parts_in_the_bytes_of_the_whole_count_once(models: Path) -> None:
    request = AnalyzeRequest(str(models / "unet_small.onnx"), runtime="generic", contiguous="joins")
    analysis = analyze(request)
    drawing = of_plan(analysis.plan)
    assert len(drawing.problem.meetings)
    assert drawing.peak <= drawing.planned
    assert any(len(view["overlaps"]) for view in columns_of(analysis_page(request, analysis))["views"])


@pytest.fixture
def session_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


@pytest.mark.usefixtures("session_cache")
@pytest.mark.parametrize("seconds", few_first([0, 60]))
def test_every_command_prints_what_a_session_takes(models: Path, tmp_path: Path, seconds: int) -> None:
    path, how = models / "unet_small.onnx", ("--measure", seconds)
    needed = analyze(AnalyzeRequest(str(path), measure=seconds)).requirement
    session = needed.session
    assert session is not None
    if seconds:
        pytest.importorskip("onnxruntime")
        assert session.usual.measured
    own = f"ort by itself {human(session.by_itself)}"
    for command in ("analyze", "explain", "check"):
        budget = ("--budget", needed.arena) if command == "check" else ()
        shown = " ".join(run(command, path, *how, *budget).stdout.split())
        assert human(needed.arena) in shown
        assert own in shown
    document = json.loads(run("check", path, *how, "--budget", needed.arena, "--json", "-").stdout)["models"][0]
    assert (document["required"], document["session"]["by_itself"]) == (needed.arena, session.by_itself)
    chart = tmp_path / "diff.svg"
    shown = " ".join(run("diff", path, models / "resnet8.onnx", *how, "--draw", chart).stdout.split())
    word = "memory" if seconds else "memory with the margin of a prediction"
    assert f"{word} {human(needed.arena)} -> " in shown
    assert f"{own} -> " in shown
    assert f"{word} {human(needed.arena)} → " in chart.read_text()
    found = json.loads(run("diff", path, path, *how, "--json", "-").stdout)
    figure = found["arena"]["before"], found["by_itself"]["before"], sum(part["before"] for part in found["parts"])
    assert figure == (needed.arena, session.by_itself, needed.arena)


@pytest.mark.usefixtures("session_cache")
def test_planned_activations_are_one_number_in_every_command(models: Path, tmp_path: Path) -> None:
    path = models / "unet_small.onnx"
    request = AnalyzeRequest(str(path), measure=0)
    analysis = analyze(request)
    figures, own = summary(analysis.plan), analysis.requirement.session
    assert own is not None
    words = f"planned activations {human(figures.planned)}"
    shown = run("analyze", path, "--measure", 0, "--verbose").stdout
    assert set(re.findall(r"planned activations [^,]* [(][^)]*[)]", shown)) == {words}
    difference = run("diff", path, "--old", "alias=safe", "--new", "alias=safe", "--new", "schedule=file").stdout
    assert words in " ".join(difference.split())
    chart = tmp_path / "field.svg"
    compared = run("compare", path, "--seconds", "0.1", "--chart", chart, "--json", tmp_path / "all.json").stdout
    count = len(analysis.plan.problem)
    assert f"{count} buffers of planned activations, lower bound {human(figures.lower_bound)}" in compared
    assert f"{count} buffers of planned activations" in chart.read_text()
    document = json.loads((tmp_path / "all.json").read_text())
    assert document["counted"] == "planned activations"
    assert next(row["height"] for row in document["rows"] if row["allocator"] == "best") == figures.planned
    assert document["today"]["height"] == own.by_itself
    views = {view["name"]: view for view in columns_of(analysis_page(request, analysis))["views"]}
    assert views["ort by itself"]["planned"] == own.by_itself
    assert figures.planned in {view["planned"] for view in views.values()}


@pytest.mark.usefixtures("session_cache")
def test_a_session_is_not_compared_with_what_has_no_figure_of_one(models: Path, tmp_path: Path) -> None:
    from onnx import TensorProto, helper, save

    data = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [4, 4]) for name in "xy"]
    node = helper.make_node("Einsum", ["x"], ["y"], equation="ij->ji")
    save(helper.make_model(helper.make_graph([node], "odd", data[:1], data[1:])), tmp_path / "odd.onnx")
    old, new = tmp_path / "odd.onnx", models / "resnet8.onnx"
    found = run("diff", old, new, "--measure", 0).stdout
    (sized,) = [line for line in found.splitlines() if "ort by itself" in line]
    assert "memory" not in sized

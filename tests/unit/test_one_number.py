"""The arena that must be declared, and the activations that are planned, are the same numbers in every output."""

from __future__ import annotations

import hashlib
import json
import re
from pathlib import Path

import numpy as np
import pytest
from commands import run

from modelplan import FitRequest, fit
from modelplan.answers.drawing import of_plan
from modelplan.answers.summary import summary
from modelplan.outputs.figures import axes
from modelplan.outputs.page.columns import columns_of
from modelplan.primitives.units import human
from modelplan.questions.analyzing import AnalyzeRequest, analysis_page, analyze
from modelplan.questions.sweeps.run_table import RunTable, runs_of
from modelplan.questions.sweeps.running import Memo, measured

MODELS = [
    "ds_cnn_kws",
    "autoencoder",
    *(pytest.param(name, marks=pytest.mark.slow) for name in ("resnet8", "unet_small", "transformer_encoder")),
]


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

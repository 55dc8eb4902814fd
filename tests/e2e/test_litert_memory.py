"""What an interpreter of LiteRT takes, measured beside the plan of its reference kernels."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

import pytest
from commands import run

from modelplan.formats import load_model
from modelplan.model import bounds
from modelplan.planning import pipeline
from modelplan.runtimes.litert import LITERT
from modelplan.runtimes.litert.measuring import KERNELS, measure_interpreters

pytestmark = pytest.mark.skipif(find_spec("ai_edge_litert") is None, reason="ai-edge-litert is not installed")

#: LiteRT asks for an arena with so many bytes more, to begin at a multiple of them.
_ALIGNED = 64


@pytest.mark.parametrize("name", ["ds_cnn_kws", "resnet8", "unet_small"])
def test_reference_kernels_take_the_planned_arena(models: Path, name: str) -> None:
    path = models / f"{name}.tflite"
    graph = load_model(path)
    plan = pipeline.runtime_plan(graph, LITERT)
    needs = measure_interpreters(path.read_bytes(), [graph.tensors[t].shape for t in graph.inputs], 1, 60)
    by_kernels = {need.kernels: need for need in needs}
    assert list(by_kernels) == list(KERNELS)
    height = bounds.height(plan.problem, plan.placement)
    assert by_kernels["BUILTIN_REF"].aligned == -(-height // _ALIGNED) * _ALIGNED + _ALIGNED
    assert all(need.heap > need.aligned > 0 for need in needs)


def test_the_number_is_that_of_the_default_kernels(models: Path) -> None:
    done = run("analyze", str(models / "resnet8.tflite"), "--runtime", "litert")
    assert done.returncode == 0
    assert "its default kernels (XNNPACK where it has them)" in done.stdout
    assert "(OpResolverType.BUILTIN_REF)" in done.stdout
    assert "the arena of LiteRT's reference kernels alone" in done.stdout
    assert "bytes less" not in done.stdout


def test_without_a_measurement_the_number_names_its_kernels(models: Path) -> None:
    done = run("analyze", str(models / "resnet8.tflite"), "--runtime", "litert", "--measure", "0")
    assert (
        "the arena of LiteRT's reference kernels alone, by its own plan (--measure 0 asks for the plan)" in done.stdout
    )


def test_a_verdict_is_by_what_was_measured(models: Path) -> None:
    model = str(models / "resnet8.tflite")
    assert run("check", model, "--runtime", "litert", "--budget", "64KiB").returncode == 1
    assert run("check", model, "--runtime", "litert", "--budget", "4MiB").returncode == 0

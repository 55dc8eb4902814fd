"""The command `recompute`, its plans and files, on training steps that the project makes itself."""

from __future__ import annotations

import importlib.util
import json
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import commands
import numpy as np
import onnx
import pytest

from modelplan import BrokenPlanError, Graph, Placement, RequestError
from modelplan.answers.recomputation import Curve
from modelplan.checking.recomputation_replay import check_repeated
from modelplan.checking.verifier.proof import prove
from modelplan.checking.verifier.subject import plan_subject
from modelplan.formats import load_model
from modelplan.planning.pipeline import Options
from modelplan.planning.recomputing.curves import curve_of
from modelplan.planning.recomputing.op_units import repeated

ROOT = Path(__file__).resolve().parents[3]


def training() -> Any:
    """The script that makes training steps."""
    spec = importlib.util.spec_from_file_location("onnx_training", ROOT / "models" / "onnx_training.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["onnx_training"] = module
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def step(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("steps") / "mlp.onnx"
    path.write_bytes(training().mlp_step(4, 16, 64).SerializeToString())
    return path


@pytest.fixture(scope="module")
def graph(step: Path) -> Graph:
    return load_model(str(step), [], [])


@pytest.fixture(scope="module")
def curve(graph: Graph) -> Curve:
    return curve_of(graph, Options(runtime="generic"), seconds=0)


def outputs(content: bytes, *, seed: int = 1) -> list[Any]:
    """What ONNX Runtime computes, without the passes that merge equal nodes."""
    ort = pytest.importorskip("onnxruntime")
    options = ort.SessionOptions()
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = ort.InferenceSession(content, options, providers=["CPUExecutionProvider"])
    rng = np.random.default_rng(seed)
    feed = {i.name: rng.standard_normal(i.shape).astype(np.float32) for i in session.get_inputs()}
    found: list[Any] = session.run(None, feed)
    return found


@pytest.mark.parametrize("make", ["mlp_step", "cnn_step"])
def test_the_gradients_of_the_steps_are_those_of_their_losses(make: str) -> None:
    """By differences: a weight moved by a little moves the loss by its gradient."""
    model = getattr(training(), make)(2)
    first = outputs(model.SerializeToString())
    names = [output.name for output in model.graph.output][1:]
    assert len(names) == len([w for w in model.graph.initializer if w.name.startswith("w")])
    for number, gradient in enumerate(reversed(first[1:])):
        weight = next(w for w in model.graph.initializer if w.name == f"w{number}")
        array = onnx.numpy_helper.to_array(weight).astype(np.float32)
        assert gradient.shape == array.shape
        way = gradient / np.abs(gradient).max()
        moved = onnx.ModelProto()
        moved.CopyFrom(model)
        losses = []
        for sign in (1, -1):
            changed = onnx.numpy_helper.from_array((array + sign * 1e-2 * way).astype(np.float32), weight.name)
            next(w for w in moved.graph.initializer if w.name == weight.name).CopyFrom(changed)
            losses.append(float(outputs(moved.SerializeToString())[0]))
        assert (losses[0] - losses[1]) / 2e-2 == pytest.approx(float((way * gradient).sum()), rel=0.05)


def test_each_point_needs_less_for_more_work(curve: Curve) -> None:
    assert len(curve.points) >= 3
    assert [p.height for p in curve.points] == sorted({p.height for p in curve.points}, reverse=True)
    assert [p.work for p in curve.points] == sorted({p.work for p in curve.points})
    assert curve.first.again == 0
    assert all(p.again for p in curve.points[1:])
    assert curve.points[curve.chosen].work <= 1.2 * curve.first.work


def test_a_budget_chooses_the_least_work_within_it(graph: Graph, curve: Curve) -> None:
    budget = curve.points[-1].height
    asked = curve_of(graph, Options(runtime="generic"), budget=budget, seconds=0)
    assert asked.points[asked.chosen].height <= budget
    assert asked.points[asked.chosen].work <= curve.points[-1].work
    assert curve_of(graph, Options(runtime="generic"), budget=1, seconds=0).chosen == -1


def test_the_replay_rejects_what_is_wrong(graph: Graph, curve: Curve) -> None:
    point = curve.points[-1]
    plan, origins = point.plan, point.origins
    check_repeated(graph, plan, origins)
    with pytest.raises(BrokenPlanError, match="does not run every operator"):
        check_repeated(graph, plan, origins[:-1])
    with pytest.raises(BrokenPlanError, match=r"another operator|other operands|expected"):
        check_repeated(graph, plan, (origins[1], origins[0], *origins[2:]))
    low = Placement(np.zeros_like(plan.placement.offsets))
    with pytest.raises(BrokenPlanError, match=r"overwritten|alive"):
        prove(plan_subject(replace(plan, placement=low)))
    late = replace(plan.schedule, order=(*plan.schedule.order[1:], plan.schedule.order[0]))
    with pytest.raises(BrokenPlanError, match=r"before it is written|expected"):
        check_repeated(graph, replace(plan, schedule=late), origins)


def test_a_sequence_that_reads_too_early_is_refused(graph: Graph) -> None:
    with pytest.raises(ValueError, match="is not written yet"):
        repeated(graph, [1, 0])


def test_what_says_nothing_of_repetitions_is_refused(graph: Graph) -> None:
    with pytest.raises(RequestError, match="takes no streams"):
        curve_of(graph, Options(streams=2))


@pytest.mark.slow
def test_the_written_model_computes_the_same(step: Path, tmp_path: Path) -> None:
    out, curve = tmp_path / "again.onnx", tmp_path / "curve.json"
    done = commands.run("recompute", step, "--runtime", "generic", "--seconds", "1", "--out", out, "--out", curve)
    assert done.returncode == 0, done.stderr
    assert "runs again: op 0 Gemm" in done.stdout
    onnx.checker.check_model(out, full_check=True)
    found = json.loads(curve.read_text())
    chosen = found["points"][found["chosen"]]
    assert len(onnx.load(out).graph.node) == len(chosen["order"]) > len(onnx.load(step).graph.node)
    for a, b in zip(outputs(step.read_bytes()), outputs(out.read_bytes()), strict=True):
        assert np.array_equal(a, b)
    again = commands.run("analyze", out, "--runtime", "generic", "--schedule", "file", "--json", tmp_path / "p.json")
    assert again.returncode == 0
    assert json.loads((tmp_path / "p.json").read_text())["summary"]["height"] == chosen["height"]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (["--draw", "x.json"], 2, "x.json: cannot tell what to draw; the name must end in .svg, .png, .pdf"),
        (["--draw", "-"], 2, "-: cannot tell what to draw"),
        (["--out", "x.txt"], 2, "expected a name that ends in"),
        (["--max-macs", "much"], 2, "cannot read 'much' as a share"),
        (["--seconds", "-1"], 2, "expected 0 or more"),
        (["--alias", "odd"], 2, "odd"),
        (["--budget", "1B", "--seconds", "0"], 1, ""),
        (["--budget", "1B", "--seconds", "0", "--out", "x.onnx"], 2, "no model is written"),
        (["--allocator", "file"], 2, "says nothing of repeated operators"),
    ],
)
def test_wrong_input_is_named(step: Path, tmp_path: Path, words: list[str], code: int, said: str) -> None:
    done = commands.run("recompute", step, "--runtime", "generic", *words, cwd=tmp_path)
    assert done.returncode == code
    assert said in done.stderr
    assert not list(tmp_path.iterdir())


@pytest.mark.slow
def test_a_tflite_file_has_a_curve_and_no_written_model(tmp_path: Path) -> None:
    model = ROOT / "models" / "ds_cnn_kws.tflite"
    assert commands.run("recompute", model, "--seconds", "1", "--out", tmp_path / "x.svg").returncode == 0
    assert (tmp_path / "x.svg").read_bytes().startswith(b"<?xml")
    done = commands.run(
        "recompute", model, "--seconds", "1", "--draw", tmp_path / "y.svg", "--draw", tmp_path / "y.png"
    )
    assert done.returncode == 0
    assert (tmp_path / "y.svg").read_bytes() == (tmp_path / "x.svg").read_bytes()
    assert (tmp_path / "y.png").read_bytes().startswith(b"\x89PNG")
    done = commands.run("recompute", model, "--seconds", "1", "--out", tmp_path / "x.onnx")
    assert done.returncode == 2
    assert "only .onnx files" in done.stderr


@pytest.mark.parametrize(
    ("words", "basis", "fits"),
    [
        (["--target", "nano33ble"], "cmsis-dsp kernels", "keeps to the 207,"),
        (["--abi", "cortex-m"], "cmsis-mve kernels", "no repetition within the limits"),
        (["--target", "nano33ble", "--kernels", "reference"], "reference kernels", "keeps to the 207,"),
        (["--target", "nano33ble", "--budget", "100KiB"], "cmsis-dsp kernels", "keeps to the 102,400 bytes"),
    ],
)
def test_device_and_abi_decide_kernels_and_bytes(models: Path, words: list[str], basis: str, fits: str) -> None:
    done = commands.run("recompute", models / "resnet8.tflite", "--seconds", 0, "--max-macs", 0, *words)
    assert (done.returncode, basis in done.stdout, fits in done.stdout) == (0, True, True), done.stdout


def test_a_block_that_is_too_small_for_the_plan_is_said(models: Path) -> None:
    """The block of the device must hold what the runtime keeps too."""
    words = ("--seconds", 0, "--target", "nano33ble", "--reserve", "sram0=230KiB")
    done = commands.run("recompute", models / "resnet8.tflite", *words)
    assert (done.returncode, "no point keeps to the" in done.stdout) == (1, True), done.stdout

"""Sessions of models whose extents depend on values: the run that is measured has the extents that are planned."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import data_extents
import numpy as np
import onnx
import pytest
from commands import run
from onnx import TensorProto, helper, numpy_helper
from shares import share

from modelplan import AnalyzeRequest, analyze
from modelplan.formats import load_model
from modelplan.runtimes.ort.feeding import Feeds, ruled
from modelplan.runtimes.ort.measuring import SessionSettings, measure
from modelplan.runtimes.ort.planned_extents import aim_of
from modelplan.runtimes.ort.reaching import Aim, unreached

pytest.importorskip("onnxruntime")

FRAMES = ("--dim", "tokens=8", "--shape", "frames=2000")


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


def saved(path: Path, nodes: list[Any], inputs: list[Any], outs: list[str], constants: dict[str, Any]) -> Path:
    weights = [numpy_helper.from_array(np.asarray(value), name) for name, value in constants.items()]
    graph = helper.make_graph(nodes, "g", inputs, [helper.make_empty_tensor_value_info(name) for name in outs], weights)
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9), path)
    return path


def value(name: str, kind: int, shape: list[Any] | None) -> Any:
    return helper.make_tensor_value_info(name, kind, shape)


@pytest.fixture
def regulator(tmp_path: Path) -> Path:
    """Frames by durations: as many rows as these add up to."""
    nodes = [
        helper.make_node("ReduceSum", ["durations"], ["total"], keepdims=0),
        helper.make_node("Range", ["none", "total", "step"], ["frames"]),
        helper.make_node("Unsqueeze", ["frames", "last"], ["column"]),
        helper.make_node("Cast", ["column"], ["x"], to=1),
        helper.make_node("MatMul", ["x", "w"], ["h"]),
        helper.make_node("Exp", ["h"], ["e"]),
        helper.make_node("ReduceMean", ["e"], ["y"], axes=[1]),
    ]
    constants = {
        "none": np.int64(0), "step": np.int64(1), "last": np.array([1], np.int64), "w": np.zeros((1, 512), np.float32),
    }  # fmt: skip
    inputs = [value("durations", TensorProto.INT64, ["tokens"])]
    return saved(tmp_path / "regulator.onnx", nodes, inputs, ["y"], constants)


def test_values_are_chosen_so_that_the_extents_are_reached(regulator: Path, tmp_path: Path) -> None:
    np.savez(tmp_path / "real.npz", durations=np.full(8, 250, np.int64))
    feeds = Feeds(path=str(tmp_path / "real.npz"), digest="real")
    real = max(measure(regulator, {"durations": [8]}, SessionSettings(), feeds=feeds).heap)
    session = analyze(AnalyzeRequest(str(regulator), dims=("tokens=8",), shapes=("frames=2000",))).requirement.session
    assert session is not None
    assert session.usual.measured
    assert session.usual.most == pytest.approx(real, abs=8192)
    assert real > 2 * 2000 * 512 * 4
    assert "whole numbers that add up to 2000" in session.fed
    shown = run("analyze", regulator, *FRAMES).stdout
    assert "run with values that reach the planned extents: durations: whole numbers that add up to 2000" in shown
    for budget, code in (("2MiB", 1), (real - 16384, 1), (real + 16384, 0)):
        assert run("check", regulator, *FRAMES, "--budget", budget).returncode == code


def test_no_verdict_passes_on_a_run_with_smaller_extents(regulator: Path, tmp_path: Path) -> None:
    fed = ("--shape", "frames=2000", "--feeds", tmp_path / "in.npz")
    np.savez(tmp_path / "in.npz", durations=np.full(8, 3, np.int64))
    text = run("analyze", regulator, *fed).stdout.replace("\n      ", " ")
    assert "not measured: a run has frames [24] where [2000] is planned: its inputs do not reach it" in text
    assert "predicted: heap of a session" in text
    assert run("check", regulator, *fed, "--budget", "4MiB").returncode == 1
    done = run("fit", regulator, *fed, "--least", "-o", regulator.with_name("o.onnx"))
    assert (done.returncode, "a run has frames [24] where [2000] is planned" in done.stderr) == (3, True)


def test_inputs_come_from_a_file(regulator: Path, tmp_path: Path) -> None:
    arrays = tmp_path / "in.npz"
    np.savez(arrays, durations=np.full(8, 250, np.int64))
    words = ("--shape", "frames=2000", "--feeds", arrays, "--budget", "1GiB", "--json", "-")
    verdict = json.loads(run("check", regulator, *words).stdout)["models"][0]
    assert (verdict["fits"], verdict["session"]["usual"]["measured"]) == (True, True)
    done = run("check", regulator, "--shape", "frames=2001", "--feeds", arrays, "--budget", "1MiB")
    assert done.returncode == 1
    assert "its inputs do not reach it" in done.stdout
    config = tmp_path / "modelplan.toml"
    row = '[[budget]]\nmodel = "regulator.onnx"\narena = "1GiB"\nshape = "frames=2000"\nfeeds = "in.npz"\n'
    config.write_text(row)
    assert run("check", "--config", config).returncode == 0
    config.write_text(row.replace("in.npz", "none.npz"))
    assert "none.npz: No such file" in run("check", "--config", config).stderr


def test_a_file_of_all_inputs_settles_what_is_open_inside(regulator: Path, tmp_path: Path) -> None:
    np.savez(tmp_path / "in.npz", durations=np.full(8, 250, np.int64))
    fed = ("--feeds", tmp_path / "in.npz")
    assert "--shape frames=2000" in run("analyze", regulator, *fed).stdout
    for budget, code in (("4MiB", 1), ("1GiB", 0)):
        assert run("check", regulator, *fed, "--budget", budget).returncode == code
    done = run("fit", regulator, *fed, "--least", "-o", tmp_path / "out.onnx")
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        ({"durations": np.ones(8)}, "'durations' is float64, expected int64"),
        ({"durations": np.ones((8, 1), np.int64)}, "'durations' is [8, 1], expected [tokens]"),
        ({"tokens": np.ones(8, np.int64)}, "'tokens' is no input of"),
        ({"durations": np.ones(9, np.int64)}, "but --shape says [8]"),
        (None, "expected an .npz file of arrays of numbers"),
    ],
)
def test_a_file_of_other_inputs_is_refused(regulator: Path, tmp_path: Path, arrays: Any, message: str) -> None:
    path = tmp_path / "in.npz"
    if arrays is None:
        path.write_text("text")
    else:
        np.savez(path, **arrays)
    words = ("--shape", "durations=8", "--shape", "frames=9", "--feeds", path)
    done = run("analyze", regulator, *words)
    assert (done.returncode, message in done.stderr) == (2, True), done.stderr


def test_files_of_inputs_are_for_sessions(models: Path, tmp_path: Path) -> None:
    np.savez(tmp_path / "in.npz", x=np.ones(1))
    done = run("analyze", models / "resnet8.tflite", "--feeds", tmp_path / "in.npz")
    assert (done.returncode, "is no .onnx file" in done.stderr) == (2, True)


def test_the_larger_branch_runs(tmp_path: Path) -> None:
    d = data_extents.Drawn(random.Random(0))
    data_extents.branched(d, 4000)
    path = saved(tmp_path / "m.onnx", d.nodes, d.inputs, ["x"], {})
    model = onnx.load(path)
    model.graph.initializer.extend(d.constants)
    onnx.save(model, path)
    aim = aim_of(load_model(path))
    assert list(aim.truths) == ["chosen"]
    needs = {}
    for choice in (7, 3):
        session = analyze(AnalyzeRequest(str(path), values=(f"choice={choice}",))).requirement.session
        assert session is not None
        needs[choice] = session.usual.most
    session = analyze(AnalyzeRequest(str(path))).requirement.session
    assert session is not None
    assert session.usual.most == pytest.approx(max(needs.values()), abs=8192)
    assert max(needs.values()) > min(needs.values()) + (1 << 20)


def test_what_no_output_shows_is_not_reached(tmp_path: Path) -> None:
    d = data_extents.Drawn(random.Random(0))
    data_extents.branched(d, 4000)
    body = helper.make_graph(
        [*d.nodes, helper.make_node("Identity", ["go"], ["on"])],
        "body",
        [value("i", TensorProto.INT64, []), value("go", TensorProto.BOOL, [])],
        [value("on", TensorProto.BOOL, []), value("x", TensorProto.FLOAT, [4000, 4])],
        d.constants,
    )
    nodes = [helper.make_node("Loop", ["turns", "yes"], ["all"], body=body)]
    path = saved(tmp_path / "m.onnx", nodes, d.inputs, ["all"], {"turns": np.int64(2), "yes": np.bool_(True)})
    aim = aim_of(load_model(path))
    assert dict(aim.truths) == {"chosen in body": d.fed["choice"] == 7}
    done = run("check", path, "--budget", "1GiB")
    assert (done.returncode, "chosen in body, which no output shows" in done.stderr) == (
        1,
        True,
    )
    answer: dict[str, Any] = {"shapes": {}, "truths": {}, "hidden": []}
    assert unreached(Aim({"list": (2,)}, {}), answer) == ["list, which no output shows"]


def test_outputs_are_kept_by_the_usual_loop(tmp_path: Path) -> None:
    nodes = [helper.make_node("Mul", ["x", "four"], ["a"]), helper.make_node("Exp", ["a"], ["y"])]
    inputs = [value("x", TensorProto.FLOAT, [1, 100000])]
    path = saved(tmp_path / "m.onnx", nodes, inputs, ["y"], {"four": np.ones((4, 1), np.float32)})
    session = analyze(AnalyzeRequest(str(path))).requirement.session
    assert session is not None
    released = next(need for need in session.others if need.settings == "outputs given back before the next run")
    assert session.usual.later >= released.later + 1600000
    assert any("del outputs" in line for line in released.code)
    off = [need for need in session.others if need.settings.startswith("arena off, memory pattern off, outputs")]
    assert off[0].later == pytest.approx(3200000, abs=65536)
    predicted = analyze(AnalyzeRequest(str(path), measure=0)).requirement.session
    assert predicted is not None
    assert predicted.usual.later == pytest.approx(session.usual.later, rel=0.02)


def test_what_a_session_refuses_is_refused(tmp_path: Path) -> None:
    nodes = [helper.make_node("Reshape", ["x", "shape"], ["r"]), helper.make_node("Exp", ["r"], ["y"])]
    inputs = [value("x", TensorProto.FLOAT, ["batch", 64])]
    path = saved(tmp_path / "m.onnx", nodes, inputs, ["y"], {"shape": np.array([1, 64], np.int64)})
    done = run("check", path, "--dim", "batch=2", "--budget", "1GiB")
    assert (done.returncode, "does not run, and so does not fit" in done.stdout) == (1, True)
    assert "remedy: other extents by --dim or --shape" in done.stdout
    done = run("analyze", path, "--dim", "batch=1..2", "--budget", "1GiB")
    rows = [line.split() for line in done.stdout.splitlines()[-2:]]
    assert (rows[0][0], rows[0][-2:]) == ("1", ["measured", "yes"])
    assert rows[1] == ["2", "does", "not", "run", "no"]
    assert done.returncode == 0
    assert run("analyze", path, "--dim", "batch=2..3").returncode == 1
    assert run("explain", path, "--dim", "batch=2").returncode == 1


def test_a_table_has_rows_with_and_without_a_measurement(regulator: Path, tmp_path: Path) -> None:
    np.savez(tmp_path / "in.npz", durations=np.full(8, 25, np.int64))
    words = ("--dim", "frames:0=100..300:100", "--feeds", tmp_path / "in.npz", "--budget", "4MiB")
    done = run("analyze", regulator, *words)
    rows = [line.split() for line in done.stdout.splitlines()[-3:]]
    assert [row[-2] for row in rows] == ["predicted", "measured", "predicted"]
    said = done.stdout.replace("\n      ", " ")
    assert "frames:0=100: not measured: a run has frames [200] where [100] is planned" in said


def test_ranges_go_in_steps_and_other_extents_follow(models: Path) -> None:
    words = ("--dim", "batch=1", "--dim", "sequence=past_sequence+4", "--dim", "past_sequence=0..10:4")
    done = run("analyze", models / "decoder_kv.onnx", *words, "--runtime", "generic")
    assert [line.split()[0] for line in done.stdout.splitlines()[-4:]] == ["0", "4", "8", "10"]
    for bad, message in (
        ("past_sequence=0..10:0", "steps of 0 end nowhere"),
        ("past_sequence=nothing+1", "expected a number, or a sum, difference or product"),
        ("past_sequence=0..9999999999", "combinations of extents, expected 256 at most"),
    ):
        done = run("analyze", models / "decoder_kv.onnx", "--dim", "batch=1", "--dim", "sequence=4", "--dim", bad)
        assert (done.returncode, message in done.stderr) == (2, True), done.stderr


def test_a_measurement_that_takes_too_long_names_the_option(models: Path) -> None:
    text = run("analyze", models / "resnet8.onnx", "--measure", "0.000001").stdout
    assert "did not finish within 1e-06 seconds; --measure SECONDS gives it longer" in text.replace("\n      ", " ")


def test_extents_that_are_proposed_are_those_of_a_session(regulator: Path, tmp_path: Path) -> None:
    nodes = [helper.make_node("NonZero", ["x"], ["places"]), helper.make_node("Cast", ["places"], ["y"], to=1)]
    path = saved(tmp_path / "m.onnx", nodes, [value("x", TensorProto.FLOAT, [1, 50])], ["y"], {})
    for model in (path, regulator):
        message = run("analyze", model).stderr
        options = message.partition("a session runs, for example, with: ")[2].split()
        done = run("analyze", model, *options)
        assert (done.returncode, "measured: onnxruntime" in done.stdout) == (0, True), message
    assert "places=2,50" in run("analyze", path).stderr


def test_extents_are_proposed_that_follow_from_each_other(models: Path) -> None:
    message = run("analyze", models / "decoder_kv.onnx").stderr
    options = message.partition("a session runs, for example, with: ")[2].split()
    assert len(options) == 6
    assert run("analyze", models / "decoder_kv.onnx", *options).returncode == 0


def test_what_is_proposed_where_no_session_runs_has_no_numbers(tmp_path: Path) -> None:
    nodes = [helper.make_node("Reshape", ["x", "shape"], ["r"]), helper.make_node("Exp", ["r"], ["y"])]
    inputs = [value("x", TensorProto.FLOAT, ["batch", 63])]
    path = saved(tmp_path / "m.onnx", nodes, inputs, ["y"], {"shape": np.array([1, 64], np.int64)})
    message = run("analyze", path).stderr
    assert message.rstrip().endswith("give numbers: --dim batch=N")


def test_weights_with_several_names_count_once(tmp_path: Path) -> None:
    nodes = [
        helper.make_node("MatMul", ["x", "w"], ["a"]),
        helper.make_node("Identity", ["w"], ["same"]),
        helper.make_node("MatMul", ["a", "same"], ["y"]),
    ]
    inputs = [value("x", TensorProto.FLOAT, [1, 128])]
    path = saved(tmp_path / "m.onnx", nodes, inputs, ["y"], {"w": np.ones((128, 128), np.float32)})
    for seconds in (0, 60):
        session = analyze(AnalyzeRequest(str(path), measure=seconds)).requirement.session
        assert session is not None
        assert session.weights == 65536


def test_rules_fill_what_they_say() -> None:
    kinds = np.dtype(np.int64), np.dtype(np.float32), np.dtype(np.bool_), np.dtype(np.uint8)
    for kind in kinds[:2]:
        assert ruled(("sum", 10), (4,), kind).tolist() == [3, 3, 2, 2]
        assert ruled(("first", 3), (2, 2), kind).tolist() == [[1, 1], [1, 0]]
        assert ruled(("count", 3), (5,), kind).tolist() == [0, 1, 2, 0, 1]
        assert ruled(("count", 0), (3,), kind).tolist() == [0, 1, 2]
        assert ruled(("first, others negative", 1), (2,), kind).tolist() == [1, -1]
        assert ruled(("fill", 7), (), kind).tolist() == 7
    assert ruled(("first", 1), (2,), kinds[2]).tolist() == [True, False]
    assert ruled(("fill", -100), (1,), kinds[3]).tolist() == [0]


@pytest.mark.parametrize("part", range(4))
def test_random_models_beside_sessions(part: int, tmp_path: Path) -> None:
    for seed in range(1000 + part, 1000 + part + 4 * share(16), 4):
        kind, *problems = data_extents.contradictions(seed, tmp_path)
        assert kind in ("measured", "predicted", "no figure")
        assert not problems

"""`modelplan fit` on .onnx files: measured on ONNX Runtime, equal outputs, honest refusals."""

from __future__ import annotations

import os
import signal
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from commands import run
from onnx import helper, numpy_helper

from modelplan.formats import load_model
from modelplan.primitives.reporting import report_nothing
from modelplan.rewriting.striped_onnx import ladder
from modelplan.rewriting.striped_onnx.ladder import run_times
from modelplan.rewriting.striped_onnx.output_differences import compare_outputs
from modelplan.runtimes.ort.measuring import Measured, SessionSettings
from modelplan.runtimes.ort.settings_code import changed_options

pytest.importorskip("onnxruntime")


def two_convolutions(path: Path, *, external: bool = False) -> Path:
    """Two convolutions whose wide map between them is most of what they need, and a small map behind a pool."""
    random = np.random.default_rng(0)
    weights = [
        numpy_helper.from_array(random.standard_normal(shape).astype(np.float32) / 8, name)
        for name, shape in (("w1", (16, 3, 3, 3)), ("w2", (8, 16, 3, 3)))
    ]
    nodes = [
        helper.make_node("Conv", ["x", "w1"], ["a"], "first", pads=[1, 1, 1, 1]),
        helper.make_node("Relu", ["a"], ["b"], "relu"),
        helper.make_node("Conv", ["b", "w2"], ["c"], "second", pads=[1, 1, 1, 1], strides=[2, 2]),
        helper.make_node("MaxPool", ["c"], ["y"], "pool", kernel_shape=[4, 4], strides=[4, 4]),
    ]
    values = [
        helper.make_tensor_value_info("x", 1, [1, 3, 64, 64]),
        helper.make_tensor_value_info("y", 1, [1, 8, 8, 8]),
    ]
    graph = helper.make_graph(nodes, "g", values[:1], values[1:], weights)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    model.metadata_props.append(onnx.StringStringEntryProto(key="author", value="somebody"))
    if external:
        onnx.save(model, path, save_as_external_data=True, location="weights.bin", size_threshold=0)
    else:
        onnx.save(model, path)
    return path


def outputs(path: Path) -> Any:
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_BASIC
    session = onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    return session.run(None, {"x": np.random.default_rng(1).standard_normal((1, 3, 64, 64)).astype(np.float32)})


def test_stripes_need_less_and_compute_the_same(tmp_path: Path) -> None:
    model, out = two_convolutions(tmp_path / "m.onnx"), tmp_path / "out.onnx"
    words = ["--ort-level", "basic", "--without", "order"]
    done = run("fit", model, "--least", *words, "-o", out)
    assert done.returncode == 0, done.stderr
    first = " ".join(done.stdout.split())
    assert first.startswith("a new file helps only with --arena off --pattern off: ")
    assert not out.exists()
    done = run("fit", model, "--least", *words, "--arena", "off", "--pattern", "off", "-o", out)
    assert done.returncode == 0, done.stderr
    assert "split *" in done.stdout
    assert "a new file helps only" not in done.stdout
    assert "outputs equal bit by bit" in done.stdout
    assert "options.enable_cpu_mem_arena = False" in done.stdout
    assert "options.DisableCpuMemArena();" in done.stdout
    onnx.checker.check_model(str(out), full_check=True)
    assert np.array_equal(outputs(model)[0], outputs(out)[0])
    written = onnx.load(out)
    assert [(p.key, p.value) for p in written.metadata_props] == [("author", "somebody")]
    assert written.opset_import[0].version == 17
    rows = {line.split()[0]: line.split() for line in done.stdout.splitlines() if line.lstrip()[:2] in ("as", "sp")}
    best = {name: int(row[5 if name == "as" else 4].replace(",", "")) for name, row in rows.items()}
    assert best["split"] * 2 < best["as"]


def test_settings_alone_write_no_file(tmp_path: Path) -> None:
    model, out = two_convolutions(tmp_path / "m.onnx"), tmp_path / "out.onnx"
    done = run("fit", model, "--budget", "400KiB", "--ort-level", "basic", "-o", out)
    assert done.returncode == 0, done.stderr
    assert "settings *" in done.stdout
    assert f"nothing is written: {model} is the file to use" in " ".join(done.stdout.split())
    assert not out.exists()
    assert {p.name for p in tmp_path.iterdir()} == {"m.onnx"}


@pytest.mark.parametrize("level", ["basic", "all"])
def test_what_a_session_makes_of_a_model_needs_what_the_model_does(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, level: str
) -> None:
    path = str(two_convolutions(tmp_path / "m.onnx", external=True))
    goal = ladder.OnnxGoal(settings=SessionSettings(level=level), without=frozenset({"order"}))

    def climbed() -> tuple[list[object], list[str]]:
        answer = ladder.climb(path, load_model(path), goal, report_nothing)
        facts = [(rung.name, rung.settings, rung.usual.peak, rung.best.peak, rung.stretches) for rung in answer.rungs]
        return list[object](facts), answer.remarks

    rungs, remarks = climbed()
    assert len(rungs) > 1
    monkeypatch.setattr(ladder, "_MANY_NODES", 1)
    of_sessions, others = climbed()
    assert of_sessions == rungs
    assert others == ["a large model: what a session makes of it is measured, in a single order of its nodes", *remarks]


def test_what_does_not_fit_is_no_file(tmp_path: Path) -> None:
    model, out = two_convolutions(tmp_path / "m.onnx"), tmp_path / "out.onnx"
    done = run("fit", model, "--budget", "1KiB", "--ort-level", "basic", "--without", "order", "-o", out)
    assert done.returncode == 1
    assert "nothing fits in 1.00 KiB" in done.stdout
    assert not out.exists()


def test_weights_in_other_files_stay_there(tmp_path: Path) -> None:
    model = two_convolutions(tmp_path / "m.onnx", external=True)
    (tmp_path / "other").mkdir()
    out = tmp_path / "other" / "out.onnx"
    done = run("fit", model, "--least", "--ort-level", "basic", "--arena", "off", "--without", "order", "-o", out)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "other" / "weights.bin").read_bytes() == (tmp_path / "weights.bin").read_bytes()
    assert out.stat().st_size < 40_000
    assert np.array_equal(outputs(model)[0], outputs(out)[0])


def two_ways(path: Path) -> Path:
    """A wide way that ends small and a narrow one, summed: ONNX Runtime's usual order begins with the narrow one."""
    random = np.random.default_rng(0)
    shapes = {"w1": (4, 4, 1, 1), "w2": (64, 4, 1, 1), "w3": (16, 64, 8, 8), "w4": (16, 4, 1, 1)}
    weights = [numpy_helper.from_array(random.standard_normal(s).astype(np.float32) / 8, n) for n, s in shapes.items()]
    weights.append(numpy_helper.from_array(np.array([1, 1, 8, 8], np.float32), "scales"))
    how = {"mode": "nearest", "coordinate_transformation_mode": "asymmetric", "nearest_mode": "floor"}
    nodes = [
        helper.make_node("Conv", ["x", "w1"], ["a"], "first"),
        helper.make_node("Conv", ["a", "w2"], ["b"], "wide"),
        helper.make_node("Sigmoid", ["b"], ["c"], "sigmoid"),
        helper.make_node("Conv", ["c", "w3"], ["d"], "small", strides=[8, 8]),
        helper.make_node("Conv", ["a", "w4"], ["e"], "narrow"),
        helper.make_node("Resize", ["d", "", "scales"], ["f"], "enlarged", **how),
        helper.make_node("Sigmoid", ["e"], ["h"], "second"),
        helper.make_node("Add", ["h", "f"], ["g"], "sum"),
        helper.make_node("GlobalMaxPool", ["g"], ["y"], "pool"),
    ]
    values = [
        helper.make_tensor_value_info("x", 1, [1, 4, 64, 64]),
        helper.make_tensor_value_info("y", 1, [1, 16, 1, 1]),
    ]
    graph = helper.make_graph(nodes, "g", values[:1], values[1:], weights)
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path)
    return path


@pytest.mark.slow
def test_another_order_of_nodes_is_a_setting(tmp_path: Path) -> None:
    model, out = two_ways(tmp_path / "m.onnx"), tmp_path / "out.onnx"
    words = ["--least", "--ort-level", "basic", "--without", "split", "-o", out]
    done = run("fit", model, *words)
    assert done.returncode == 0, done.stderr
    assert "settings *" in done.stdout
    assert "options.execution_order = onnxruntime.ExecutionOrder.PRIORITY_BASED" in done.stdout
    assert not out.exists()
    assert "PRIORITY_BASED" not in run("fit", model, *words, "--execution-order", "default").stdout


def test_the_time_is_the_least_of_all_runs_and_the_spread_that_of_processes() -> None:
    timed = [[[2.0, 4.0], [3.0, 3.0]], [[2.5, 2.0], [2.2, 9.0]]]
    assert run_times(timed) == (2.2 / 2.0, (1.1, 1.5))
    assert Measured(0, 3, 5, 0.1).at_least(Measured(0, 4, 2, 0.2)) == Measured(0, 4, 5, 0.1)


def test_settings_are_written_as_options() -> None:
    changed = SessionSettings(arena="exact", pattern=False, shrink=True, order="priority")
    words = "--arena exact --pattern off --shrinkage on --execution-order priority"
    assert " ".join(changed_options(changed, SessionSettings())) == words
    assert changed_options(changed, changed) == []


def detector_of_two_rates(path: Path) -> Path:
    """Convolutions over a waveform, then an If on the sample rate, each branch with weights of its own."""
    random = np.random.default_rng(0)

    def weight(name: str, *shape: int) -> Any:
        return numpy_helper.from_array(random.standard_normal(shape).astype(np.float32) / 4, name)

    def branch(name: str) -> Any:
        nodes = [
            helper.make_node("Conv", ["d", f"w_{name}"], [f"e_{name}"], f"conv_{name}", pads=[1, 1]),
            helper.make_node("GlobalMaxPool", [f"e_{name}"], [f"f_{name}"], f"pool_{name}"),
        ]
        made = helper.make_tensor_value_info(f"f_{name}", 1, None)
        return helper.make_graph(nodes, name, [], [made], [weight(f"w_{name}", 2, 8, 3)])

    nodes = [
        helper.make_node("Conv", ["x", "w1"], ["a"], "first", pads=[1, 1]),
        helper.make_node("Relu", ["a"], ["b"], "relu"),
        helper.make_node("Conv", ["b", "w2"], ["c"], "second", pads=[1, 1], strides=[2]),
        helper.make_node("MaxPool", ["c"], ["d"], "pool", kernel_shape=[4], strides=[4]),
        helper.make_node("Equal", ["sr", "wide"], ["is_wide"], "rate"),
        helper.make_node("If", ["is_wide"], ["y"], "if", then_branch=branch("wide"), else_branch=branch("narrow")),
    ]
    inputs = [helper.make_tensor_value_info("x", 1, [1, 1, "samples"]), helper.make_tensor_value_info("sr", 7, [])]
    wide = numpy_helper.from_array(np.array(16000), "wide")
    weights = [weight("w1", 16, 1, 3), weight("w2", 8, 16, 3), wide]
    graph = helper.make_graph(nodes, "g", inputs, [helper.make_tensor_value_info("y", 1, [1, 2, 1])], weights)
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 16)], ir_version=8), path)
    return path


@pytest.mark.slow
@pytest.mark.parametrize(("rate", "samples"), [(16000, 16384), (8000, 8192)])
def test_a_branch_is_chosen_by_value_and_both_stay(tmp_path: Path, rate: int, samples: int) -> None:
    import onnxruntime

    model, out = detector_of_two_rates(tmp_path / "m.onnx"), tmp_path / "out.onnx"
    words = ["--ort-level", "basic", "--arena", "off", "--value", f"sr={rate}", "--shape", f"x=1,1,{samples}"]
    done = run("fit", model, "--least", *words, "-o", out)
    assert done.returncode == 0, done.stderr
    assert "split *" in done.stdout
    sessions = [onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"]) for path in (model, out)]
    waves = np.random.default_rng(1).standard_normal((1, 1, samples)).astype(np.float32)
    found = [[s.run(None, {"x": waves, "sr": np.array(sr)})[0] for sr in (16000, 8000)] for s in sessions]
    assert np.array_equal(found[0], found[1])
    assert not np.array_equal(*found[0])


def test_a_value_that_no_input_has_is_refused(tmp_path: Path) -> None:
    model = two_convolutions(tmp_path / "m.onnx")
    done = run("fit", model, "--least", "--value", "sr=16000", "-o", tmp_path / "out.onnx")
    assert done.returncode == 2
    assert "sr" in done.stderr


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["-o", "out.onnx"], "--budget BYTES or --least"),
        (["--least", "-o", "out.tflite"], "expected a name that ends in .onnx"),
        (["--least", "--abi", "32", "-o", "out.onnx"], "--abi is for .tflite files"),
        (["--least", "--threads", "0", "-o", "out.onnx"], "--threads is 0"),
        (["--least", "--tolerance", "-1", "-o", "out.onnx"], "--tolerance is -1.0"),
        (["--least", "--arena", "off", "--shrinkage", "on", "-o", "out.onnx"], "--shrinkage on needs an arena"),
        (["--least", "--without", "nothing", "-o", "out.onnx"], "no rung 'nothing'"),
        (["--least", "--max-macs", "much", "-o", "out.onnx"], "cannot read 'much'"),
    ],
)
def test_mistakes_of_the_caller(tmp_path: Path, words: list[str], message: str) -> None:
    model = two_convolutions(tmp_path / "m.onnx")
    words = [str(tmp_path / word) if word.startswith("out.") else word for word in words]
    done = run("fit", model, *words)
    assert done.returncode == 2
    assert message in done.stderr


def test_options_of_onnx_runtime_are_for_onnx_files(models: Path, tmp_path: Path) -> None:
    done = run("fit", models / "resnet8.tflite", "--least", "--threads", "2", "-o", tmp_path / "out.tflite")
    assert done.returncode == 2
    assert "--threads is for .onnx files" in done.stderr


def test_a_fit_ends_by_its_seconds_with_the_best_so_far(tmp_path: Path) -> None:
    path, out = two_convolutions(tmp_path / "m.onnx"), tmp_path / "out.onnx"
    done = run("fit", path, "--least", "--seconds", "0", "-o", out)
    assert (done.returncode, out.exists()) == (0, False)
    assert "ended early    not all was tried" in done.stdout
    assert "is the file to use, at these settings" in done.stdout.replace("\n      ", " ")
    done = run("fit", path, "--budget", "1KiB", "--seconds", "0", "-o", out)
    assert (done.returncode, "ended early" in done.stdout) == (1, True)
    assert run("fit", path, "--least", "--seconds", "-1", "-o", out).returncode == 2


@pytest.mark.parametrize(("phase", "rungs"), [("settings: ", ["as is"]), ("split: forms", ["as is", "settings"])])
def test_sigterm_keeps_what_was_measured(
    phase: str, rungs: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def terminate(line: str) -> None:
        if line.startswith(phase):
            os.kill(os.getpid(), signal.SIGTERM)

    before = signal.getsignal(signal.SIGTERM)
    monkeypatch.setattr("modelplan.cli.fit.show_line", terminate)
    try:
        done = run("fit", two_convolutions(tmp_path / "m.onnx"), "--least", "-o", tmp_path / "out.onnx")
    finally:
        signal.signal(signal.SIGTERM, before)
    assert (done.returncode, "ended early" in done.stdout) == (0, True)
    table = done.stdout.partition("----\n")[2].partition("\n\n")[0]
    assert [line[2:12].strip(" *") for line in table.splitlines()] == rungs
    assert not list(tmp_path.glob(".modelplan-*"))


def test_settings_that_were_better_count_where_the_rest_is_not_tried(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def terminate(line: str) -> None:
        if "arena grows by what is asked for" in line:  # behind two settings without an arena
            raise KeyboardInterrupt

    monkeypatch.setattr("modelplan.cli.fit.show_line", terminate)
    done = run("fit", two_convolutions(tmp_path / "m.onnx"), "--least", "-o", tmp_path / "out.onnx")
    assert "settings *" in done.stdout
    assert "options.enable_cpu_mem_arena = False" in done.stdout


def test_inputs_with_which_the_model_does_not_run_are_not_compared() -> None:
    ones, twos = (np.ones(2, np.float32),), (np.full(2, 2, np.float32),)
    assert compare_outputs((ones, None), (ones, twos)).described() == "outputs equal bit by bit on 1 inputs"
    assert compare_outputs((ones, twos), (ones, None)).ulps == float("inf")


def test_numbers_of_rows_that_are_floats_go_through(tmp_path: Path) -> None:
    random = np.random.default_rng(0)
    shapes = {"table": (43, 64), "w": (64, 512), "v": (512, 8)}
    weights = [numpy_helper.from_array(random.standard_normal(s).astype(np.float32), n) for n, s in shapes.items()]
    nodes = [
        helper.make_node("Cast", ["x"], ["ids"], to=6), helper.make_node("Gather", ["table", "ids"], ["e"]),
        helper.make_node("MatMul", ["e", "w"], ["a"]), helper.make_node("Relu", ["a"], ["b"]),
        helper.make_node("MatMul", ["b", "v"], ["y"]),
    ]  # fmt: skip
    values = [helper.make_tensor_value_info(*of) for of in (("x", 1, [1, 256]), ("y", 1, [1, 256, 8]))]
    graph = helper.make_graph(nodes, "g", values[:1], values[1:], weights)
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), tmp_path / "m.onnx")
    done = run("fit", tmp_path / "m.onnx", "--least", "--arena", "off", "-o", tmp_path / "out.onnx")
    assert done.returncode == 0
    assert "outputs equal bit by bit on 4 inputs" in done.stdout  # large and small values are no rows


def test_a_session_that_holds_less_gives_no_bytes_back() -> None:
    less = Measured(session=100, first=50, steady=60, seconds=0.0, heap=(70, 80), loaded=200)
    assert (less.above(1000).first, less.above(1000).steady, less.heap_above(1000)) == (50, 60, (70, 80))
    assert (less.above(10).first, less.heap_above(150)) == (140, (120, 130))

"""`modelplan fit` on .onnx files: measured on ONNX Runtime, equal outputs, honest refusals."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from commands import run
from onnx import helper, numpy_helper

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
    done = run("fit", model, "--least", "--ort-level", "basic", "--without", "order", "-o", out)
    assert done.returncode == 0, done.stderr
    assert "split *" in done.stdout
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


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["-o", "out.onnx"], "--budget BYTES or --least"),
        (["--least", "-o", "out.tflite"], "expected a name that ends in .onnx"),
        (["--least", "--abi", "32", "-o", "out.onnx"], "--abi is for .tflite files"),
        (["--least", "--threads", "0", "-o", "out.onnx"], "--threads is 0"),
        (["--least", "--tolerance", "-1", "-o", "out.onnx"], "--tolerance is -1.0"),
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

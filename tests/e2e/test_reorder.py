"""`modelplan fit --only order`: the same numbers from real runtimes, the memory that was promised."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest
from commands import run
from reorder_tflm import random_order

from modelplan import Graph, load
from modelplan.rewriting import reordering
from modelplan.runtimes.tflm.file import read_tflite
from modelplan.runtimes.tflm.planner import predicted_head
from modelplan.runtimes.tflm.runner import INSTALL, installed, run_tflm

tflm = pytest.mark.skipif(not installed(), reason=f"tflite-micro is not installed: {INSTALL}")
litert = pytest.mark.skipif(find_spec("ai_edge_litert") is None, reason="LiteRT is not installed: extra `verify`")
ort = pytest.mark.skipif(find_spec("onnxruntime") is None, reason="ONNX Runtime is not installed: extra `verify`")


def scrambled(path: Path, into: Path, seed: int) -> Path:
    """The model in a random order that respects data and side effects."""
    graph = load(path)
    assert isinstance(graph, Graph)
    target = into / f"scrambled{path.suffix}"
    target.write_bytes(reordering.reordered(path.read_bytes(), graph, random_order(graph, seed)))
    return target


@tflm
@pytest.mark.parametrize("name", ["models/inception_like", "models/resnet8", "tflite/pretrainedResnet_quant"])
def test_tflm_computes_the_same_in_the_head_that_was_predicted(
    corpus: Path, models: Path, tmp_path: Path, name: str
) -> None:
    folder = models.parent if name.startswith("models") else corpus
    source = folder / f"{name}.tflite"
    worse = scrambled(source, tmp_path, seed=1)
    done = run("reorder", worse, "-o", tmp_path / "better.tflite", "--alias", "none")
    assert done.returncode == 0, done.stderr
    asked = run_tflm(source.read_bytes(), rounds=1)
    for path in (worse, tmp_path / "better.tflite"):
        data = path.read_bytes()
        found = run_tflm(data, rounds=1)
        assert found.outputs == asked.outputs
        assert found.head == predicted_head(read_tflite(data, path.name))
    assert found.head <= asked.head


@litert
def test_litert_computes_the_same(models: Path, tmp_path: Path) -> None:
    from ai_edge_litert.interpreter import Interpreter, OpResolverType

    def outputs(path: Path) -> list[bytes]:
        interpreter = Interpreter(str(path), experimental_op_resolver_type=OpResolverType.BUILTIN_REF)
        interpreter.allocate_tensors()
        rng = np.random.default_rng(0)
        for info in interpreter.get_input_details():
            interpreter.set_tensor(info["index"], rng.integers(-128, 128, info["shape"]).astype(info["dtype"]))
        interpreter.invoke()
        return [interpreter.get_tensor(info["index"]).tobytes() for info in interpreter.get_output_details()]

    source = models / "inception_like.tflite"
    worse = scrambled(source, tmp_path, seed=2)
    assert run("reorder", worse, "-o", tmp_path / "better.tflite").returncode == 0
    assert outputs(source) == outputs(worse) == outputs(tmp_path / "better.tflite")


@ort
@pytest.mark.parametrize("name", ["transformer_encoder", "inception_like", "bert_like"])
def test_onnx_runtime_computes_the_same(models: Path, tmp_path: Path, name: str) -> None:
    import onnxruntime

    def outputs(path: Path) -> list[bytes]:
        session = onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
        rng = np.random.default_rng(0)
        feeds = {}
        for i in session.get_inputs():
            shape = [{"batch": 1, "sequence": 128}.get(extent, extent) for extent in i.shape]
            whole = i.type == "tensor(int64)"
            feeds[i.name] = rng.integers(0, 2, shape) if whole else rng.standard_normal(shape).astype(np.float32)
        return [value.tobytes() for value in session.run(None, feeds)]

    source, better = models / f"{name}.onnx", tmp_path / "better.onnx"
    dims = ("--dim", "batch=1", "--dim", "sequence=128") if name == "bert_like" else ()
    worse = source if dims else scrambled(source, tmp_path, seed=3)
    done = run("reorder", worse, "-o", better, *dims)
    assert done.returncode == 0, done.stderr
    assert not dims or better.read_bytes() != worse.read_bytes()
    assert outputs(source) == outputs(worse) == outputs(better)


@pytest.mark.slow
def test_says_what_it_saved_and_draws_it(light: Path, tmp_path: Path) -> None:
    out, figure = tmp_path / "s.onnx", tmp_path / "s.svg"
    done = run("reorder", light / "light_shufflenet.onnx", "--runtime", "generic", "-o", out, "--figure", figure)
    assert done.returncode == 0, done.stderr
    assert "peak before     2.97 MiB (3,110,912 B)" in done.stdout
    assert "peak after      2.75 MiB (2,885,120 B)" in done.stdout
    assert "optimal (flow certificate)" in done.stdout
    assert figure.read_text().startswith("<?xml")
    again = run("analyze", out, "--schedule", "file", "--runtime", "generic", "--verbose")
    assert "peak 2.75 MiB (2,885,120 B) by file, optimal (flow certificate)" in again.stdout


def test_analyze_tells_the_proofs_apart(light: Path, models: Path) -> None:
    plain = ("--runtime", "generic", "--alias", "views", "--verbose")
    exact = run("analyze", light / "light_inception_v2.onnx", "--schedule", "exact", *plain)
    assert "order and layout jointly optimal" in exact.stdout
    assert "peak 6.12 MiB (6,422,528 B) by exact (file order), optimal (flow certificate)" in exact.stdout
    worse = run("analyze", models / "transformer_encoder.onnx", "--schedule", "file", *plain)
    said = " ".join(worse.stdout.split())
    assert "within 20.00% of the least: no order is below 40.00 KiB (40,960 B) (flow certificate)" in said
    unknown = run("analyze", models / "resnet8.onnx", "--schedule", "magic")
    assert (unknown.returncode, "no schedule 'magic'" in unknown.stderr) == (2, True)


def test_refuses_in_one_line(models: Path, tmp_path: Path) -> None:
    for words, code, said in [
        (("reorder", models / "resnet8.onnx"), 2, "-o"),
        (("reorder", tmp_path / "no.onnx", "-o", "x.onnx"), 3, "no.onnx"),
        (
            ("reorder", models / "resnet8.onnx", "-o", tmp_path / "x.onnx", "--figure", "x.gif"),
            2,
            "no output '.order.gif'",
        ),
    ]:
        done = run(*words, cwd=tmp_path)
        assert (done.returncode, said in done.stderr) == (code, True), done.stderr

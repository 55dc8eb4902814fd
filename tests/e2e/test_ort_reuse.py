"""ONNX Runtime's own allocations by kernel: what it shares is what the tables say, block for block."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import agreement
import onnx
import ort_trace
import pytest

from modelplan import Graph, load
from modelplan.planning.session_blocks import reused

pytest.importorskip("onnxruntime")


def mixed(folder: Path) -> Path:
    """Overwrites, a value that is read twice, views, and two shapes of one size."""

    def value(name: str, shape: list[int]) -> onnx.ValueInfoProto:
        return onnx.helper.make_tensor_value_info(name, 1, shape)

    shape = onnx.helper.make_tensor("shape", 7, [2], [10, 100])
    node = onnx.helper.make_node
    nodes = [
        node("Abs", ["x"], ["a"]), node("Relu", ["a"], ["b"]), node("Add", ["b", "a"], ["c"]),
        node("Sigmoid", ["c"], ["d"]), node("Reshape", ["d", "shape"], ["e"]), node("Abs", ["e"], ["f"]),
        node("Neg", ["f"], ["g"]), node("Abs", ["g"], ["h"]), node("Softmax", ["h"], ["y"]),
    ]  # fmt: skip
    graph = onnx.helper.make_graph(nodes, "g", [value("x", [100, 10])], [value("y", [10, 100])], [shape])
    onnx.save(
        onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 17)], ir_version=9), folder / "m.onnx"
    )
    return folder / "m.onnx"


def test_every_block_is_predicted(models: Path, tmp_path: Path) -> None:
    """With shapes, and the order in which a node gives back, ONNX Runtime's plan is known exactly."""
    files = [mixed(tmp_path), models / "resnet8.onnx", models / "unet_small.onnx", models / "transformer_encoder.onnx"]
    graphs = [load(path) for path in files]
    shapes = [{g.tensors[t].name: g.tensors[t].shape for t in g.inputs} for g in graphs if isinstance(g, Graph)]
    for path, graph, run in zip(files, graphs, ort_trace.runs(zip(files, shapes, strict=True)), strict=True):
        assert isinstance(graph, Graph)
        assert isinstance(run, ort_trace.Run), run
        steps = list(range(len(run.order)))
        guess = agreement.ort_guess(graph, list(run.order), steps, reused)
        assert guess.blocks == Counter(run.blocks), path.name
        apart = agreement.ort_guess(graph, list(run.order), steps, lambda g, o, p, inner: [[i] for i in inner])
        assert apart.blocks != Counter(run.blocks)

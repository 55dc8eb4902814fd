"""A Pad in front of a pool is not split where ONNX Runtime may put it into the pool, which pads with no zeros."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper

from modelplan import Graph, load
from modelplan.rewriting.striped_onnx.output_differences import compare_outputs
from modelplan.rewriting.striped_onnx.unrolled_nodes import striped_onnx_program
from modelplan.rewriting.striped_onnx.writing import parsed, reading_of, write_striped_onnx
from modelplan.rewriting.stripes.row_windows import IllegalStripeError
from modelplan.rewriting.stripes.stretches import KeptHalo, RecomputedHalo
from modelplan.runtimes.ort.measuring import LEVELS

onnxruntime = pytest.importorskip("onnxruntime")
_PADS = {"pads": [0, 1, 1, 0]}


def write_net(path: Path, kind: str, first: str, value: float = 0, cast: int = 0, **how: Any) -> None:
    """Writes an element-wise operator, a Pad, a Cast to the type `cast` where that is given, and a pool."""
    weights = [
        numpy_helper.from_array(np.array([0, 0, 1, 0, 0, 0, 1, 1], np.int64), "pads"),
        numpy_helper.from_array(np.array(value, np.float32), "value"),
    ]
    nodes = [
        helper.make_node(first, ["x"], ["a"], "first"),
        helper.make_node("Pad", ["a", "pads", "value"], ["b"], "pad"),
        *([helper.make_node("Cast", ["b"], ["c"], "cast", to=cast)] if cast else []),
        helper.make_node(kind, ["c" if cast else "b"], ["y"], "pool", kernel_shape=[4, 3], strides=[2, 1], **how),
    ]
    x, y = helper.make_tensor_value_info("x", 1, [1, 3, 24, 18]), helper.make_empty_tensor_value_info("y")
    graph = helper.make_graph(nodes, "pads", [x], [y], weights)
    model = helper.make_model(graph, ir_version=8, opset_imports=[helper.make_opsetid("", 13)])
    onnx.save(onnx.shape_inference.infer_shapes(model), path)


def write_stripes(path: Path, out: Path, *, carry: bool) -> None:
    """Writes the whole of a model in four stripes."""
    graph = load(path)
    assert isinstance(graph, Graph)
    proto, last = parsed(path), len(graph.ops) - 1
    rows = graph.tensors[graph.outputs[0]].shape[2]
    cuts = tuple(rows * k // 4 for k in range(5))
    stretch = (KeptHalo if carry else RecomputedHalo)(0, last, 2, cuts, pad=frozenset(range(last + 1)))
    reading = reading_of(proto, graph)
    out.write_bytes(write_striped_onnx(proto, reading, striped_onnx_program(reading, [stretch], threads=1)))


def outputs(path: Path, level: str) -> list[Any]:
    """What a model makes of numbers below and above zero."""
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = getattr(
        onnxruntime.GraphOptimizationLevel, "ORT_DISABLE_ALL" if level == "disable" else f"ORT_ENABLE_{level.upper()}"
    )
    session = onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    x = np.random.default_rng(0).standard_normal((1, 3, 24, 18)).astype(np.float32)
    return [session.run(None, {"x": values}) for values in (x, -np.abs(x))]


@pytest.mark.parametrize(
    ("kind", "first", "cast", "how"),
    [
        ("MaxPool", "Tanh", 0, _PADS),
        ("MaxPool", "Tanh", 0, {}),
        ("MaxPool", "Tanh", 0, {"auto_pad": "SAME_UPPER"}),
        ("MaxPool", "Tanh", 11, _PADS),
        ("AveragePool", "Relu", 0, _PADS),
    ],
)
def test_a_pad_that_a_pool_may_take_is_refused(
    tmp_path: Path, kind: str, first: str, cast: int, how: dict[str, Any]
) -> None:
    write_net(tmp_path / "m.onnx", kind, first, cast=cast, **how)
    with pytest.raises(IllegalStripeError, match=r"'?pad'?.*ONNX Runtime may put it into .*pool"):
        write_stripes(tmp_path / "m.onnx", tmp_path / "out.onnx", carry=True)


@pytest.mark.parametrize("carry", [True, False])
@pytest.mark.parametrize(
    ("kind", "first", "value", "how"),
    [
        ("MaxPool", "Relu", 0, _PADS),
        ("MaxPool", "Tanh", 0, {"auto_pad": "VALID"}),
        ("AveragePool", "Tanh", 0, {"auto_pad": "VALID"}),
        ("MaxPool", "Tanh", 0.5, _PADS),
    ],
)
def test_other_pads_are_split(
    tmp_path: Path, kind: str, first: str, value: float, how: dict[str, Any], *, carry: bool
) -> None:
    path, out = tmp_path / "m.onnx", tmp_path / "out.onnx"
    write_net(path, kind, first, value, **how)
    write_stripes(path, out, carry=carry)
    onnx.checker.check_model(str(out), full_check=True)
    for level in LEVELS[:3]:
        assert compare_outputs(outputs(path, level), outputs(out, level)).ulps == 0, level

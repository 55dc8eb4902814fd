"""The extents of pools are those that a session computes, where onnx's inference has others too."""

from __future__ import annotations

from pathlib import Path

import drawn_pools
import onnx
import pytest

from modelplan import Graph, ModelError, load

POOLS = 300


def test_extents_are_those_of_a_session(tmp_path: Path) -> None:
    if pytest.importorskip("onnxruntime").__version__.startswith("1.20."):
        pytest.skip("before 1.21 a session has windows that begin behind the map")
    compared = others = 0
    for seed in range(POOLS):
        model = drawn_pools.drawn_pool(seed)
        expected = drawn_pools.session_shape(model)
        if expected is None:
            continue
        onnx.save(model, tmp_path / "m.onnx")
        try:
            graph = load(tmp_path / "m.onnx")
        except ModelError:
            assert 0 in expected or min(expected) < 2, seed  # a window that is larger than the padded map
            continue
        assert isinstance(graph, Graph)
        assert {t.shape for t in graph.tensors if t.name in "yz"} == {expected}, seed
        assert not graph.remarks, seed
        compared += 1
        dims = onnx.shape_inference.infer_shapes(model).graph.output[0].type.tensor_type.shape.dim
        others += tuple(dim.dim_value for dim in dims) != expected
    assert compared > POOLS * 0.8
    assert others > POOLS * 0.05  # the draws have pools of which onnx infers something else

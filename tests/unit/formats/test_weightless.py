"""A serialized .onnx file without the data of its weights reads as the file does."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from modelplan.formats import load_model
from modelplan.formats.onnx import onnx_graph
from modelplan.formats.onnx.protobuf import weightless
from modelplan.primitives.errors import ModelError

MOST = 64


def model_of(rows: int) -> bytes:
    """A product with `rows` by 8 weights, and a Reshape to four numbers that stand in the file."""
    weights = numpy_helper.from_array(np.arange(rows * 8, dtype=np.float32).reshape(rows, 8), "w")
    shape = numpy_helper.from_array(np.array([1, 2, 2, 2], np.int64), "shape")
    nodes = [helper.make_node("MatMul", ["x", "w"], ["y"]), helper.make_node("Reshape", ["y", "shape"], ["z"])]
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, rows])
    z = helper.make_tensor_value_info("z", TensorProto.FLOAT, None)
    graph = helper.make_graph(nodes, "g", [x], [z], [weights, shape])
    model: bytes = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)]).SerializeToString()
    return model


@pytest.mark.parametrize("rows", [3, 40, 4000])
def test_weights_are_left_out_and_all_else_stays(rows: int) -> None:
    data = model_of(rows)
    whole, light = onnx.load_model_from_string(data), onnx.load_model_from_string(weightless(data, MOST))
    weights = light.graph.initializer[0]
    assert [(entry.key, entry.value) for entry in weights.external_data] == [("length", str(rows * 32))]
    assert not weights.raw_data
    for tensor in (weights, whole.graph.initializer[0]):
        for field in ("raw_data", "external_data", "data_location"):
            tensor.ClearField(field)
    assert light == whole


def test_what_has_no_weights_or_is_no_model_stays_as_it_is() -> None:
    data = model_of(3)
    assert weightless(data, 1000) is data
    assert weightless(data[:-9], MOST) == data[:-9]
    assert weightless(b"no model", MOST) == b"no model"
    assert weightless(b"", MOST) == b""


def test_a_file_reads_alike_and_weights_of_another_size_are_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "m.onnx"
    path.write_bytes(model_of(40))
    graphs = []
    for most in (MOST, 1 << 40):
        monkeypatch.setattr(onnx_graph, "_LARGEST_VALUE", most)
        graphs.append(load_model(str(path)))
    assert graphs[0] == graphs[1]
    assert graphs[0].tensors[graphs[0].outputs[0]].shape == (1, 2, 2, 2)
    proto = onnx.load_model_from_string(path.read_bytes())
    proto.graph.initializer[0].raw_data += b"0000"
    path.write_bytes(proto.SerializeToString())
    monkeypatch.setattr(onnx_graph, "_LARGEST_VALUE", MOST)
    with pytest.raises(ModelError, match="found 1284 bytes of data, expected 1280"):
        load_model(str(path))

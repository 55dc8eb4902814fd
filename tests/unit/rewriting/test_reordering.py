"""Reordered files: permuted bytes and nothing else, checked against the graph they came from."""

from __future__ import annotations

from pathlib import Path

import graphs
import onnx
import pytest
from reorder_tflm import random_order

from modelplan import BrokenPlanError, Graph, ModelError, RequestError, load
from modelplan.formats.onnx import protobuf
from modelplan.formats.tflite.flatbuffer import set_metadata
from modelplan.rewriting import reordering


def loaded(path: Path) -> Graph:
    graph = load(path)
    assert isinstance(graph, Graph)
    return graph


@pytest.mark.parametrize("name", ["inception_like.tflite", "transformer_encoder.tflite", "transformer_encoder.onnx"])
def test_a_reordered_model_is_the_same_graph_in_another_order(models: Path, tmp_path: Path, name: str) -> None:
    graph, data = loaded(models / name), (models / name).read_bytes()
    for seed in range(3):
        order = random_order(graph, seed)
        made = reordering.reordered(data, graph, order)
        (tmp_path / name).write_bytes(made)
        reordering.check_same(graph, loaded(tmp_path / name), order)
        assert len(made) == len(data)
        assert sorted(made) == sorted(data) or name.endswith(".tflite")


def test_a_reordered_onnx_model_keeps_every_record(light: Path) -> None:
    path = light / "light_shufflenet.onnx"
    graph, data = loaded(path), path.read_bytes()
    made = reordering.reordered(data, graph, random_order(graph, 1))
    old, new = onnx.load_model_from_string(data), onnx.load_model_from_string(made)
    as_bytes = sorted(node.SerializeToString() for node in old.graph.node)
    assert as_bytes == sorted(node.SerializeToString() for node in new.graph.node)
    for model in (old, new):
        del model.graph.node[:]
    assert old == new


def test_unknown_fields_survive() -> None:
    node = onnx.helper.make_node
    value = onnx.helper.make_tensor_value_info("x", 1, [4])
    out = onnx.helper.make_tensor_value_info("y", 1, [4])
    graph = onnx.helper.make_graph(
        [node("Relu", ["x"], ["a"]), node("Abs", ["x"], ["b"]), node("Add", ["a", "b"], ["y"])], "g", [value], [out]
    )
    data = onnx.helper.make_model(graph).SerializeToString() + b"\xfa\x3e\x04rest"  # field 1007, a string
    made = protobuf.reorder_nodes(data, [1, 0, 2])
    assert made.endswith(b"\xfa\x3e\x04rest")
    assert sorted(made) == sorted(data)
    assert [node.writes for node in protobuf.nodes(made)] == [("b",), ("a",), ("y",)]


def test_file_order_gives_the_same_bytes(models: Path) -> None:
    path = models / "resnet8.tflite"
    graph = loaded(path)
    assert reordering.reordered(path.read_bytes(), graph, range(len(graph.ops))) == path.read_bytes()


def test_what_is_no_order_is_refused(models: Path) -> None:
    path = models / "resnet8.onnx"
    graph = loaded(path)
    with pytest.raises(ValueError, match="expected a permutation"):
        reordering.reordered(path.read_bytes(), graph, [0])
    with pytest.raises(ValueError, match="expected a permutation"):
        protobuf.reorder_nodes(path.read_bytes(), [0])


def test_an_offline_plan_is_not_carried_into_another_order(models: Path) -> None:
    path = models / "inception_like.tflite"
    graph = loaded(path)
    planned = set_metadata(path.read_bytes(), "OfflineMemoryAllocation", bytes(16))
    with pytest.raises(RequestError, match="made for its present order"):
        reordering.reordered(planned, graph, random_order(graph, 0))


@pytest.mark.parametrize("damage", [b"\x3a\x05ab", b"\x0b", b"\x80" * 12, b"\x3a\x00\x3a\x00"])
def test_a_damaged_protobuf_is_a_model_error(damage: bytes) -> None:
    with pytest.raises(ModelError, match=r"protobuf"):
        protobuf.nodes(damage)


def test_a_folded_shape_keeps_its_readers_behind_its_source(tmp_path: Path) -> None:
    node, tensor = onnx.helper.make_node, onnx.helper.make_tensor_value_info
    steps = [
        node("Relu", ["x"], ["a"]),
        node("Abs", ["x"], ["b"]),
        node("Shape", ["a"], ["s"]),
        node("Reshape", ["b", "s"], ["c"]),
        node("Add", ["a", "c"], ["y"]),
    ]
    graph = onnx.helper.make_graph(steps, "g", [tensor("x", 1, [2, 8])], [tensor("y", 1, [2, 8])])
    path = tmp_path / "g.onnx"
    onnx.save(onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 17)]), path)
    read, data = loaded(path), path.read_bytes()
    assert [op.kind for op in read.ops] == ["Relu", "Abs", "Reshape", "Add"]
    assert reordering.file_precedences(data, read) == ((0, 2),)
    made = reordering.reordered(data, read, [1, 0, 2, 3])
    assert [n.writes[0] for n in protobuf.nodes(made)] == ["b", "a", "s", "c", "y"]
    onnx.checker.check_model(onnx.load_model_from_string(made))
    with pytest.raises(ValueError, match="breaks precedences of the file"):
        reordering.reordered(data, read, [1, 2, 0, 3])


def test_the_fewest_operators_move() -> None:
    assert reordering.moved([0, 1, 2, 3]) == ()
    assert reordering.moved([3, 0, 1, 2]) == (3,)
    assert reordering.moved([0, 4, 5, 1, 2, 3, 6]) == (4, 5)
    assert len(reordering.moved([3, 2, 1, 0])) == 3
    assert reordering.moved([]) == ()


def test_any_difference_is_named() -> None:
    graph = graphs.fork()
    order = (0, 2, 1, 3, 4)
    ops = [graph.ops[i] for i in order]
    made = Graph(graph.name, graph.format, graph.tensors, tuple(ops), graph.inputs, graph.outputs)
    reordering.check_same(graph, made, order)
    for wrong in [(0, 1, 2, 3, 4), (0, 2, 3, 1, 4)]:
        with pytest.raises(BrokenPlanError, match="of the reordered model is not op"):
            reordering.check_same(graph, made, wrong)
    other = Graph(graph.name, graph.format, graph.tensors, tuple(ops), graph.inputs, graph.inputs)
    with pytest.raises(BrokenPlanError, match="outputs of the reordered model"):
        reordering.check_same(graph, other, order)

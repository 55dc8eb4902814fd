"""The types of operators that ONNX Runtime adds to the standard are those that a session gives."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import added_operators as added
import numpy as np
import onnx
import pytest
from commands import run
from onnx import helper, numpy_helper
from shares import share

from modelplan import Graph, ModelError, load
from modelplan.formats.onnx.onnx_contrib import ROWS, contributed
from modelplan.formats.onnx.onnx_shapes import TypedNode
from modelplan.formats.onnx.onnx_types import Type, UntypedModelError, read_type, refusals
from modelplan.primitives.number_types import UNPLANNED
from modelplan.questions.session_needs import load_with_types
from modelplan.rewriting.repeated_nodes import write_repeated

SEEDS = 12
Drawing = Callable[[added.Draw], added.Drawn]


def kind_of(draw: Drawing) -> str:
    return draw(added.Draw(0)).name


@pytest.mark.parametrize("draw", added.DRAWS, ids=kind_of)
def test_types_are_those_of_a_session(draw: Drawing, tmp_path: Path) -> None:
    pytest.importorskip("onnxruntime")
    if added.is_older() or kind_of(draw) not in added.registered():
        pytest.skip("another version of ONNX Runtime")
    for seed in range(share(SEEDS)):
        drawn = draw(added.Draw(seed))
        expected = added.session_types(drawn)
        onnx.save(added.model(drawn), tmp_path / "a.onnx")
        open_ones = [f"{n}={','.join(map(str, shape))}" for n, (_, shape) in expected.items() if shape]
        graph = load(tmp_path / "a.onnx", shapes=open_ones if drawn.kind in added.BY_VALUES else ())
        assert isinstance(graph, Graph)
        found = {t.name: (t.dtype, t.shape) for t in graph.tensors if t.name.startswith("y")}
        if drawn.kind == "Tokenizer":  # texts are not planned
            found = {name: (dtype, expected[name][1]) for name, (dtype, _) in found.items()}
        assert found == expected, (seed, drawn.attributes)


def typed(drawn: added.Drawn, place: int, array: Any, *, symbols: bool) -> Type | None:
    """The type of an operand, its extents by the names of their numbers where they are `symbols`."""
    if array is None:
        return None
    if drawn.sparse and not place:
        return read_type(helper.make_sparse_tensor_type_proto(1, array.shape))
    by_name = symbols and place not in drawn.fixed
    shape = [f"is {extent}" if by_name else extent for extent in np.shape(array)]
    return read_type(helper.make_tensor_type_proto(helper.np_dtype_to_tensor_dtype(np.asarray(array).dtype), shape))


def rule(drawn: added.Drawn, *, symbols: bool) -> dict[str, Type]:
    node = added.model(drawn).graph.node[0]
    types = tuple(typed(drawn, place, array, symbols=symbols) for place, array in enumerate(drawn.operands))
    values = {place: np.asarray(drawn.operands[place]) for place in drawn.fixed if place < len(drawn.operands)}
    return contributed(TypedNode(node, types, values.get, None))


@pytest.mark.parametrize("draw", added.DRAWS, ids=kind_of)
def test_open_extents_pass_through_and_none_is_guessed(draw: Drawing) -> None:
    """What a rule says where extents of operands are symbols is what it says where they are numbers, or open."""
    for seed in range(share(SEEDS)):
        drawn = draw(added.Draw(seed))
        if ("" if drawn.domain == "ai.onnx" else drawn.domain, drawn.kind) not in ROWS:
            continue
        by_number, by_name = rule(drawn, symbols=False), rule(drawn, symbols=True)
        assert by_number.keys() == by_name.keys() or drawn.sparse
        for name, known in by_name.items():
            assert known.dtype == by_number[name].dtype
            if known.shape is None or by_number[name].shape is None or known.dtype in UNPLANNED:
                continue
            for extent, number in zip(known.shape, by_number[name].shape or (), strict=True):
                assert extent in (None, number, f"is {number}") or str(extent).startswith("unk"), (name, seed)


@pytest.mark.parametrize("draw", added.DRAWS, ids=kind_of)
def test_rules_bear_operands_of_any_rank(draw: Drawing) -> None:
    """They tell types, or refuse the operands in words."""
    for seed in range(share(120)):
        drawn, rng = draw(added.Draw(seed)), np.random.default_rng(seed)
        if (drawn.domain, drawn.kind) not in ROWS:
            return
        node = added.model(drawn).graph.node[0]
        types = tuple(
            None
            if array is None or rng.random() < 0.1
            else read_type(
                helper.make_tensor_type_proto(
                    helper.np_dtype_to_tensor_dtype(np.asarray(array).dtype),
                    None if rng.random() < 0.1 else rng.integers(0, 5, rng.integers(0, 6)).tolist(),
                )
            )
            for array in drawn.operands
        )
        with suppress(*refusals()):
            known = contributed(TypedNode(node, types, lambda operand: np.full(2, operand), None))
            extents = [extent for known_type in known.values() for extent in known_type.shape or ()]
            assert all(not isinstance(extent, int) or extent >= 0 for extent in extents), seed


def test_each_operator_that_the_provider_runs_is_drawn_or_named() -> None:
    pytest.importorskip("onnxruntime")
    drawn = {kind_of(draw) for draw in added.DRAWS}
    assert not drawn & added.NOT_DRAWN.keys()
    assert added.registered() <= drawn | added.NOT_DRAWN.keys()
    rows = {f"{domain}.{kind}" for domain, kind in ROWS}
    assert rows - {".MemcpyFromHost", ".MemcpyToHost"} == drawn - {".SimplifiedLayerNormalization"}


def test_channels_in_blocks_are_as_many_as_the_weights_that_read_them_have(tmp_path: Path) -> None:
    """A map of 20 channels is filled up to 24 or 32, by the processor for which the file was written."""
    for channels in (24, 32):
        weights = numpy_helper.from_array(np.zeros((32, channels, 1, 1), np.float32), "w")
        nodes = [
            helper.make_node("ReorderInput", ["x"], ["a"], domain="com.microsoft.nchwc"),
            helper.make_node("Conv", ["a", "w"], ["y"], domain="com.microsoft.nchwc"),
        ]
        inputs = [helper.make_tensor_value_info("x", 1, ["n", 20, 6, 5])]
        graph = helper.make_graph(nodes, "g", inputs, [helper.make_empty_tensor_value_info("y")], [weights])
        opsets = [helper.make_opsetid("", 17), helper.make_opsetid("com.microsoft.nchwc", 1)]
        onnx.save(helper.make_model(graph, opset_imports=opsets), tmp_path / "a.onnx")
        found = load(tmp_path / "a.onnx", ["n=2"])
        assert isinstance(found, Graph)
        assert {t.name: t.shape for t in found.tensors if t.name in "ay"} == {
            "a": (2, channels, 6, 5), "y": (2, 32, 6, 5),
        }  # fmt: skip


#: onnx's own inference of a Conv, which that of FusedConv goes by, compares ranks only in newer releases.
_COMPARES_RANKS = pytest.mark.skipif(
    tuple(map(int, onnx.__version__.split(".")[:2])) < (1, 22), reason="onnx infers a Conv without comparing ranks"
)


@pytest.mark.parametrize(
    ("kind", "shapes", "attributes"),
    [("QLinearAdd", ([2, 3], [], [], [2, 4], [], [], [], []), {}), ("FusedMatMul", ([2, 3], [4, 5]), {}),
     pytest.param("FusedConv", ([1, 2, 3, 3], [4, 3, 1]), {}, marks=_COMPARES_RANKS),
     ("QLinearConcat", ([], [], [2, 3]), {"axis": 5}),
     ("MatMulNBits", ([2, 3], [4, 5], [2]), {"N": -4})],
)  # fmt: skip
def test_operands_that_do_not_go_together_are_refused_by_name(
    tmp_path: Path, kind: str, shapes: Any, attributes: Any
) -> None:
    dtype = 2 if kind.startswith("QLinear") else 1
    inputs = [helper.make_tensor_value_info(f"x{i}", dtype, shape) for i, shape in enumerate(shapes)]
    node = helper.make_node(kind, [v.name for v in inputs], ["y"], "one", domain="com.microsoft", **attributes)
    graph = helper.make_graph([node], "g", inputs, [helper.make_empty_tensor_value_info("y")])
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("com.microsoft", 1)]
    onnx.save(helper.make_model(graph, opset_imports=opsets), tmp_path / "a.onnx")
    with pytest.raises(ModelError, match=f"node 0 {kind} 'one'"):
        load(tmp_path / "a.onnx")


def _unknown_to_the_reader(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str) -> Path:
    """A file with an operator for which there is no row, between two that are known."""
    monkeypatch.delitem(ROWS, ("com.microsoft", kind), raising=False)
    nodes = [
        helper.make_node("Exp", ["x"], ["a"]),
        helper.make_node(kind, ["a"], ["b"], domain="com.microsoft"),
        helper.make_node("Exp", ["b"], ["y"]),
    ]
    inputs, outputs = [helper.make_tensor_value_info("x", 1, ["n", 7])], [helper.make_empty_tensor_value_info("y")]
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("com.microsoft", 1)]
    graph = helper.make_graph(nodes, "g", inputs, outputs)
    onnx.save(helper.make_model(graph, ir_version=9, opset_imports=opsets), tmp_path / "a.onnx")
    return tmp_path / "a.onnx"


def test_types_that_are_not_known_are_asked_of_a_session(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("onnxruntime")
    path = _unknown_to_the_reader(tmp_path, monkeypatch, "QuickGelu")
    with pytest.raises(UntypedModelError, match="the type of 'b' is unknown"):
        load(path, ["n=5"])
    graph = load_with_types(str(path), ["n=5"], (), ())
    assert [(t.dtype, t.shape) for t in graph.tensors] == [("float32", (5, 7))] * 4
    done = run("analyze", path, "--dim", "n=5")
    assert (done.returncode, "  memory " in done.stdout) == (0, True), done.stderr


def test_what_no_session_knows_either_is_refused_by_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = _unknown_to_the_reader(tmp_path, monkeypatch, "NoSuchOperator")
    with pytest.raises(UntypedModelError, match="node 1 NoSuchOperator: the type of 'b' is unknown"):
        load_with_types(str(path), ["n=5"], (), ())


def test_a_file_with_an_operator_that_onnx_refuses_is_written_with_repetitions(tmp_path: Path) -> None:
    drawn = next(draw for draw in added.DRAWS if kind_of(draw) == ".SimplifiedLayerNormalization")(added.Draw(0))
    onnx.save(added.model(drawn), tmp_path / "a.onnx")
    graph = load(tmp_path / "a.onnx")
    assert isinstance(graph, Graph)
    content = write_repeated((tmp_path / "a.onnx").read_bytes(), graph, graph, range(len(graph.ops)))
    assert [node.op_type for node in onnx.load_model_from_string(content).graph.node] == [drawn.kind]

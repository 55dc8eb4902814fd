"""Operators of ONNX Runtime that search for sequences: their bodies are planned as a session runs them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import added_operators as added
import numpy as np
import onnx
import pytest
import searching
from commands import run
from onnx import helper, numpy_helper
from shares import share

from modelplan import Graph, ModelError, load
from modelplan.runtimes.ort.planned_extents import aim_of
from modelplan.runtimes.ort.reaching import Aim, unreached

DRAWS = [draw for draw in added.DRAWS if draw(added.Draw(0)).attributes.get("decoder") is not None]
WORDS = 9


def read(path: Path, model: Any, *dims: str, values: tuple[str, ...] = ()) -> Graph:
    onnx.save(model, path / "a.onnx")
    graph = load(path / "a.onnx", dims, (), values)
    assert isinstance(graph, Graph)
    return graph


def shapes_of(body: Graph) -> list[tuple[str, list[list[int]]]]:
    return [(op.kind, [list(body.tensors[t].shape) for t in op.writes]) for op in body.ops]


@pytest.mark.parametrize("draw", DRAWS, ids=lambda draw: draw(added.Draw(0)).kind)
def test_bodies_are_planned_as_they_run_first_and_last(draw: Callable[[Any], added.Drawn], tmp_path: Path) -> None:
    pytest.importorskip("onnxruntime")
    if added.is_older():
        pytest.skip("another version of ONNX Runtime")
    for seed in range(share(12)):
        drawn = draw(added.Draw(seed))
        drawn.attributes["eos_token_id"] = 10**6  # so that no sequence ends early
        model = added.model(drawn)
        feeds = {value.name: drawn.operands[int(value.name[1:])] for value in model.graph.input}
        *ran, (kind, _) = searching.shapes_in_session(model, feeds, tmp_path)
        graph = read(tmp_path, model)
        assert (kind, graph.ops[0].kind) == (drawn.kind, drawn.name)
        first, last = (shapes_of(graph.ops[0].subgraphs[place]) for place in (0, -1))
        assert sorted(ran[: len(first)]) == sorted(first), seed
        assert sorted(ran[len(ran) - len(last) :]) == sorted(last), seed


def greedy(length: int | None = 12, decoder: Any = None, axes: int = 2, **attributes: Any) -> Any:
    """A search whose greatest length is a constant, or an input; `decoder` 1 is none."""
    body = decoder or searching.decoder_alone(WORDS, 2, 4, 1)
    extents: list[int | str] = ["batch", "sequence", 7]
    ids = helper.make_tensor_value_info("ids", searching.INT32, extents[:axes])
    inputs, constants = [ids], []
    if length is None:
        inputs.append(helper.make_tensor_value_info("longest", searching.INT32, [1]))
    else:
        constants.append(numpy_helper.from_array(np.array([length], np.int32), "longest"))
    own = {"eos_token_id": WORDS - 1, "pad_token_id": 0, "decoder": body, **attributes}
    node = helper.make_node("GreedySearch", ["ids", "longest"], ["y"], "one", domain="com.microsoft", **own)
    graph = helper.make_graph([node], "g", inputs, [helper.make_empty_tensor_value_info("y")], constants)
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("com.microsoft", 1)]
    return helper.make_model(graph, ir_version=9, opset_imports=opsets)


def test_a_length_that_no_constant_tells_is_asked_for(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match=r"node 0 GreedySearch 'one'.* 'longest'.* --value longest=N"):
        read(tmp_path, greedy(length=None), "batch=2", "sequence=3")
    graph = read(tmp_path, greedy(length=None), "batch=2", "sequence=3", values=("longest=30",))
    assert graph.tensors[graph.outputs[0]].shape == (2, 30)
    past = graph.ops[0].subgraphs[-1]
    assert past.tensors[past.inputs[3]].shape == (2, 2, 2, 28, 4)


def test_a_length_that_is_computed_is_asked_for_by_the_inputs_that_it_comes_from(tmp_path: Path) -> None:
    model = greedy(length=None)
    model.graph.input[1].name = "half"
    model.graph.node.insert(0, helper.make_node("Add", ["half", "half"], ["longest"]))
    with pytest.raises(ModelError, match=r"'longest', which a run decides; .* --value of the inputs that they are"):
        read(tmp_path, model, "batch=2", "sequence=3")
    graph = read(tmp_path, model, "batch=2", "sequence=3", values=("half=15",))
    assert graph.tensors[graph.outputs[0]].shape == (2, 30)


def test_open_extents_are_asked_for_once_and_not_those_of_bodies(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match=r"unknown extents: 'ids' \[batch, sequence\]; 1 more follow"):
        read(tmp_path, greedy())


def test_symbols_of_a_decoder_are_its_own(tmp_path: Path) -> None:
    """`batch` and `sequence` of the model are bound; the decoder's own extents change from run to run."""
    graph = read(tmp_path, greedy(), "batch=2", "sequence=3")
    ids = [body.tensors[body.inputs[0]].shape for body in graph.ops[0].subgraphs]
    assert ids == [(2, 3), (2, 1)]
    assert graph.remarks == ("node 0 GreedySearch 'one': planned for all 12 tokens",)


def _renamed(graph: Any, old: str, new: str) -> Any:
    for node in graph.node:
        node.output[:] = [new if name == old else name for name in node.output]
    return graph


def _forgetful() -> Any:
    """A decoder that gives back nothing of what it kept."""
    body = _renamed(searching.decoder_alone(WORDS, 2, 4, 1), "present_0", "kept")
    body.node.append(helper.make_node("Identity", ["both"], ["present_0"]))
    return body


def _of_two_inputs() -> Any:
    body = searching.decoder_alone(WORDS, 2, 4, 1)
    del body.input[1:3]
    return body


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"length": 3}, "max_length is 3, expected more than the 3 tokens"),
        ({"length": 5000}, "max_length is 5000, expected 1 to 4096"),
        ({"model_type": 1}, "model_type 1: sessions have no such search with an encoder"),
        ({"axes": 3}, "its first operand has 3 axes, expected 2"),
        ({"decoder": 1}, "found no body 'decoder'"),
        ({"decoder": _forgetful()}, "the body's output 'present_0' is .*, expected 11 along axis 3"),
        ({"decoder": _of_two_inputs()}, "the body takes 2 inputs, expected"),
    ],
)
def test_what_no_session_runs_is_refused_by_name(tmp_path: Path, changes: dict[str, Any], words: str) -> None:
    with pytest.raises(ModelError, match=f"node 0 GreedySearch 'one': {words}"):
        read(tmp_path, greedy(**changes), "batch=2", "sequence=3")


def test_a_search_without_its_first_operand_is_refused(tmp_path: Path) -> None:
    model = greedy()
    model.graph.node[0].input[0] = ""
    with pytest.raises(ModelError, match="node 0 GreedySearch 'one': found no first operand"):
        read(tmp_path, model)


def test_a_decoder_that_reads_all_tokens_each_time_is_refused(tmp_path: Path) -> None:
    drawn = next(drawn for drawn in (draw(added.Draw(0)) for draw in DRAWS) if drawn.attributes.get("model_type") == 1)
    drawn.attributes["decoder"].input[0].type.tensor_type.shape.dim[1].dim_param = "sequence"
    with pytest.raises(ModelError, match=r"reads all tokens each time; export its input 'input_ids' as \[batch, 1\]"):
        read(tmp_path, added.model(drawn))


def test_a_run_that_ends_early_is_not_taken_for_the_planned_one(tmp_path: Path) -> None:
    aim = aim_of(read(tmp_path, greedy(), "batch=2", "sequence=3"))
    assert aim == Aim({}, {}, {"y": (0, 3)})
    answer: dict[str, Any] = {"shapes": {}, "truths": {}, "hidden": [], "ends": {"y": False}}
    assert unreached(aim, answer) == ["y of fewer tokens"]
    assert unreached(aim, answer | {"ends": {"y": True}}) == []


@pytest.mark.parametrize("end", [WORDS + 7, None])
def test_a_session_is_measured_where_its_sequences_are_whole(tmp_path: Path, end: int | None) -> None:
    """A word that no table has never comes; a decoder that knows only one ends at once."""
    pytest.importorskip("onnxruntime")
    decoder = searching.decoder_alone(WORDS, 2, 4, 1)
    if end is None:
        words = next(tensor for tensor in decoder.initializer if tensor.name == "decoder_words")
        only = np.zeros((8, WORDS), np.float32)
        only[:, 5] = 1
        words.CopyFrom(numpy_helper.from_array(only, "decoder_words"))
    onnx.save(greedy(decoder=decoder, eos_token_id=end or 5), tmp_path / "a.onnx")
    done = run("analyze", tmp_path / "a.onnx", "--dim", "batch=2", "--dim", "sequence=3")
    text = " ".join(done.stdout.split())
    assert done.returncode == 0, done.stderr
    assert ("measured: onnxruntime" in text) is (end is not None)
    assert ("a run has y of fewer tokens: --feeds FILE.npz" in text) is (end is None)

"""Extents that ONNX files leave open, contradict or decide by values: what is asked for, and what a shape settles."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Any

import dense
import numpy as np
import onnx
import pytest
from onnx import numpy_helper
from onnx.helper import make_graph, make_model, make_node, make_opsetid, make_tensor, make_tensor_value_info

from modelplan import Graph, ModelError, RequestError, load
from modelplan.formats.onnx import onnx_control

FLOAT, INT64 = 1, 7
Shape = list[int | str | None]


def info(name: str, shape: Shape | None = None, kind: int = FLOAT) -> onnx.ValueInfoProto:
    return make_tensor_value_info(name, kind, shape)


def saved(path: Path, nodes: list[Any], inputs: list[Any], outputs: list[Any], opset: int = 18, **facts: Any) -> Path:
    graph = make_graph(nodes, "g", inputs, outputs, **facts)
    imports = [make_opsetid("", opset), make_opsetid("com.microsoft", 1)]
    onnx.save(make_model(graph, opset_imports=imports), path / "a.onnx")
    return path / "a.onnx"


def numbers(name: str, *values: int) -> onnx.TensorProto:
    return make_tensor(name, INT64, [len(values)], list(values))


def shapes_of(path: Path, *shapes: str, dims: tuple[str, ...] = ()) -> dict[str, tuple[int, ...]]:
    graph = load(path, dims, shapes)
    assert isinstance(graph, Graph)
    return {tensor.name: tensor.shape for tensor in graph.tensors}


def options_in(message: str) -> tuple[list[str], list[str]]:
    """The values of --dim and of --shape that a message asks to paste."""
    words = shlex.split(message[message.index("give numbers") :].split(": ", 1)[1])
    pairs = list(zip(words[::2], words[1::2], strict=True))
    return [value for key, value in pairs if key == "--dim"], [value for key, value in pairs if key == "--shape"]


def refusal(path: Path, *shapes: str, dims: tuple[str, ...] = ()) -> str:
    with pytest.raises((ModelError, RequestError)) as caught:
        load(path, dims, shapes)
    return str(caught.value)


# -- what is asked for -----------------------------------------------------------------------------------------


def test_all_that_is_missing_is_asked_for_at_once_and_can_be_pasted(tmp_path: Path) -> None:
    nodes = [
        make_node("Add", ["ids", "mask"], ["sum"]),
        make_node("NonZero", ["sum"], ["where"]),
        make_node("Cast", ["where"], ["y"], to=FLOAT),
    ]
    path = saved(tmp_path, nodes, [info("ids", ["batch", "seq"]), info("mask", ["batch", None])], [info("y")])
    message = refusal(path)
    assert "'ids' [batch, seq], 'mask' [batch, ?]" in message
    assert "'where' [2, ?]" in message
    dims, shapes = options_in(message)
    assert shapes == ["mask=1,1", "where=2,64"]
    assert shapes_of(path, *shapes, dims=tuple(dims))["y"] == (2, 64)


def test_the_sizes_that_are_offered_go_together(tmp_path: Path) -> None:
    """A convolution of 300 samples takes no input of 64."""
    weights = make_tensor("w", FLOAT, [4, 1, 300], [0.0] * 1200)
    path = saved(tmp_path, [make_node("Conv", ["x", "w"], ["y"])], [info("x", [None, 1, None])], [info("y")],
                 initializer=[weights])  # fmt: skip
    assert "--shape x=1,1,512" in refusal(path)


def test_a_large_model_is_asked_for_letters(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from modelplan.formats.onnx import onnx_graph as loader

    monkeypatch.setattr(loader, "_MOST_TRIED", 0)
    path = saved(tmp_path, [make_node("Relu", ["x"], ["y"])], [info("x", ["n", None])], [info("y")])
    assert refusal(path).endswith("give numbers: --shape x=N,N")


def test_a_model_of_many_open_values_is_asked_for_letters(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from modelplan.formats.onnx import onnx_graph as loader

    monkeypatch.setattr(loader, "_MOST_TRIED", 2)
    (tmp_path / "two.onnx").write_bytes(dense.onnx_symbols(2))
    assert "the model accepts, for example: --dim s0=1 " in refusal(tmp_path / "two.onnx")
    (tmp_path / "three.onnx").write_bytes(dense.onnx_symbols(3))
    assert refusal(tmp_path / "three.onnx").endswith("give numbers: --dim s0=N --dim s1=N --dim s2=N")


@pytest.mark.parametrize("extent", [-1, -7])
def test_an_extent_below_zero_is_open_as_in_onnx_runtime(tmp_path: Path, extent: int) -> None:
    path = saved(tmp_path, [make_node("Relu", ["x"], ["y"])], [info("x", [extent, 3])], [info("y", [extent, 3])])
    assert "'x' [?, 3]" in refusal(path)
    assert shapes_of(path, "x=5,3") == {"x": (5, 3), "y": (5, 3)}


def test_question_marks_are_not_one_symbol(tmp_path: Path) -> None:
    path = saved(tmp_path, [make_node("Transpose", ["x"], ["y"])], [info("x", ["?", "?"])], [info("y", ["?", "?"])])
    assert shapes_of(path, "x=5,3")["y"] == (3, 5)


# -- shapes ----------------------------------------------------------------------------------------------------


def test_a_shape_binds_its_symbols_everywhere(tmp_path: Path) -> None:
    path = saved(tmp_path, [make_node("Add", ["a", "b"], ["y"])],
                 [info("a", ["n", "m"]), info("b", ["n", 1])], [info("y", ["n", "m"])])  # fmt: skip
    assert shapes_of(path, "a=4,7") == {"a": (4, 7), "b": (4, 1), "y": (4, 7)}


def test_names_of_any_sort_and_scalars_have_shapes(tmp_path: Path) -> None:
    odd = "serving=default:0, $x"
    path = saved(tmp_path, [make_node("Add", [odd, "s"], ["y"])], [info(odd, [None]), info("s", [])], [info("y")])
    assert shapes_of(path, f"{odd}=6", "s=")["y"] == (6,)


@pytest.mark.parametrize(("shapes", "dims", "words"), [
    (["x=2,4"], (), r"--shape x=2,4: the model has \[n, 3\] there"),
    (["x=2,3,1"], (), r"the model has \[n, 3\] there"),
    (["x=2,3", "z=3,3"], (), "--shape z=3,3: makes n 3, but --shape x=2,3 makes it 2"),
    (["x=2,3"], ("n=5",), "--shape x=2,3: makes n 2, but --dim n makes it 5"),
    (["q=2,3"], (), "no tensor of that name"),
    (["x=2,3", "x=2,3"], (), "given twice"),
    (["x=2,b"], (), "expected TENSOR=N,N"),
    (["x"], (), "expected TENSOR=N,N"),
])  # fmt: skip
def test_shapes_that_do_not_fit_are_refused(
    tmp_path: Path, shapes: list[str], dims: tuple[str, ...], words: str
) -> None:
    path = saved(tmp_path, [make_node("Add", ["x", "z"], ["y"])], [info(n, ["n", 3]) for n in "xz"], [info("y")])
    with pytest.raises(RequestError, match=words):
        load(path, dims, shapes)


def test_extents_that_contradict_the_model_are_named_with_the_operator(tmp_path: Path) -> None:
    weights = make_tensor("w", FLOAT, [8, 4], [0.0] * 32)
    path = saved(tmp_path, [make_node("MatMul", ["x", "w"], ["y"], name="dense")], [info("x", ["n", "k"])],
                 [info("y")], initializer=[weights])  # fmt: skip
    message = refusal(path, "x=1,9")
    assert "with --shape x=1,9: node 0 MatMul 'dense': " in message
    assert "Error]" not in message
    assert "op_type" not in message


@pytest.mark.parametrize(
    ("pads", "columns", "words"),
    [
        ([0, 3, 0, 3], 4, ""),
        ([0, 4, 0, 0], 4, "mirrors 4 elements of axis 1, which has 4; runtimes mirror at most 3 there"),
        ([0, 0, 0, 9], 4, "mirrors 9 elements"),
        ([0, -2, 0, 1], 4, ""),
        ([0, -2, 0, 2], 4, "mirrors 2 elements of axis 1, which has 2"),
        ([0, 0, 0, 0], 0, ""),
    ],
)
def test_a_pad_mirrors_no_more_than_onnx_runtime_does(
    tmp_path: Path, pads: list[int], columns: int, words: str
) -> None:
    path = saved(tmp_path, [make_node("Pad", ["x", "p"], ["y"], mode="reflect")], [info("x", [1, "n"])],
                 [info("y", [1, None])], initializer=[numbers("p", *pads)], opset=18)  # fmt: skip
    feed = {"x": np.zeros((1, columns), np.float32)}
    if not words:
        assert shapes_of(path, f"x=1,{columns}")["y"] == run_onnx(path, feed).shape
        return
    assert f"with --shape x=1,{columns}: node 0 Pad: {words}" in refusal(path, f"x=1,{columns}")
    onnxruntime = pytest.importorskip("onnxruntime")
    if onnxruntime.__version__.startswith("1.20."):
        return  # it reads bytes outside of the tensor instead
    with pytest.raises(onnxruntime.capi.onnxruntime_pybind11_state.InvalidArgument, match="Pad"):
        run_onnx(path, feed)


def run_onnx(path: Path, feed: dict[str, Any]) -> Any:
    """The first output in ONNX Runtime, which may read older files only than onnx writes."""
    onnxruntime = pytest.importorskip("onnxruntime")
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    model = onnx.load(path)
    model.ir_version = 9
    session = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    return session.run(None, feed)[0]


@pytest.mark.parametrize(("axes", "refused"), [([1], True), ([-1], False)])
def test_pads_of_named_axes_are_mirrored_there_and_other_modes_further(
    tmp_path: Path, axes: list[int], refused: bool
) -> None:
    initial = [numbers("p", 3, 0), numbers("a", *axes)]
    for mode in ("reflect", "edge"):
        path = saved(tmp_path, [make_node("Pad", ["x", "p", "", "a"], ["y"], mode=mode)], [info("x", [1, 3, "n"])],
                     [info("y")], initializer=initial)  # fmt: skip
        if refused and mode == "reflect":
            assert "mirrors 3 elements of axis 1, which has 3" in refusal(path, "x=1,3,4")
        else:
            assert sum(shapes_of(path, "x=1,3,4")["y"]) == 11


def test_the_sizes_that_are_offered_are_large_enough_to_be_mirrored(tmp_path: Path) -> None:
    path = saved(tmp_path, [make_node("Pad", ["x", "p"], ["y"], mode="reflect")], [info("x", [1, "n"])],
                 [info("y")], initializer=[numbers("p", 0, 64, 0, 0)])  # fmt: skip
    assert "--dim n=512" in refusal(path)


# -- values that decide shapes ---------------------------------------------------------------------------------


def test_operators_are_computed_by_the_version_that_the_file_asks_for(tmp_path: Path) -> None:
    """Unsqueeze has its axes as an attribute before version 13; the batch of the state follows from the input's."""
    nodes = [
        make_node("Shape", ["x"], ["shape"]),
        make_node("Gather", ["shape", "one"], ["batch"]),
        make_node("Unsqueeze", ["batch"], ["row"], axes=[0]),
        make_node("Concat", ["two", "row", "width"], ["wanted"], axis=0),
        make_node("ConstantOfShape", ["wanted"], ["state"]),
        make_node("Exp", ["state"], ["y"]),
    ]
    initial = [make_tensor("one", INT64, [], [1]), numbers("two", 2), numbers("width", 8)]
    path = saved(tmp_path, nodes, [info("x", [3, "n"])], [info("y")], opset=11, initializer=initial)
    assert shapes_of(path, dims=("n=5",))["state"] == (2, 5, 8)


@pytest.mark.parametrize("claim", [[1, 7], [2, 3, 4], [26]])
def test_a_declared_output_that_the_operators_contradict_is_remarked(tmp_path: Path, claim: Shape) -> None:
    path = saved(tmp_path, [make_node("Exp", ["x"], ["h"]), make_node("Relu", ["h"], ["y"])],
                 [info("x", ["n", 3])], [info("y", claim)], value_info=[info("h", [9, 3])])  # fmt: skip
    graph = load(path, ["n=2"])
    assert isinstance(graph, Graph)
    assert {t.name: t.shape for t in graph.tensors} == {"x": (2, 3), "h": (2, 3), "y": (2, 3)}
    assert any("'h' [9, 3] for [2, 3]" in remark and "'y'" in remark for remark in graph.remarks)


def test_a_declared_shape_does_not_hide_a_computed_one(tmp_path: Path) -> None:
    """The file says [26, 12], which was so when it was exported; the values say otherwise."""
    nodes = [
        make_node("Shape", ["x"], ["shape"]),
        make_node("Slice", ["shape", "zero", "one"], ["rows"]),
        make_node("Concat", ["rows", "rest"], ["wanted"], axis=0),
        make_node("Reshape", ["x", "wanted"], ["y"]),
    ]
    initial = [numbers("zero", 0), numbers("one", 1), numbers("rest", -1)]
    path = saved(tmp_path, nodes, [info("x", ["n", 3, 4])], [info("y", [26, 12])], initializer=initial)
    assert shapes_of(path, dims=("n=5",))["y"] == (5, 12)


def test_a_wrong_element_type_is_no_remark(tmp_path: Path) -> None:
    path = saved(tmp_path, [make_node("Relu", ["x"], ["y"])], [info("x", [3])], [info("y", [3], INT64)])
    assert "contradict" in refusal(path) or "for one value" in refusal(path)


def test_a_quantized_lstm_gives_what_an_lstm_gives(tmp_path: Path) -> None:
    node = make_node("DynamicQuantizeLSTM", ["x", "w", "r"], ["all", "last", "cell"], domain="com.microsoft",
                     hidden_size=16, direction="bidirectional")  # fmt: skip
    path = saved(tmp_path, [node, make_node("Relu", ["all"], ["y"])],
                 [info("x", ["n", 1, 8]), info("w", [2, 8, 64]), info("r", [2, 16, 64])],
                 [info("y"), info("last", ["?", "?", "?"]), info("cell", ["?", "?", "?"])],
                 value_info=[info("all", ["?", 2, 1, 16])])  # fmt: skip
    found = shapes_of(path, dims=("n=5",))
    assert (found["all"], found["y"], found["cell"]) == ((5, 2, 1, 16), (5, 2, 1, 16), (2, 1, 16))


# -- branches --------------------------------------------------------------------------------------------------


def fork(tmp_path: Path, branches: list[list[Any]], after: list[Any], initial: list[Any]) -> Path:
    """`y` of an If on an input, its branches over `x`, then more operators."""
    bodies = [make_graph(nodes, f"b{i}", [], [info(nodes[-1].output[0])]) for i, nodes in enumerate(branches)]
    node = make_node("If", ["c"], ["h"], then_branch=bodies[0], else_branch=bodies[1])
    inputs = [info("c", [], 9), info("x", ["n", "k"])]
    return saved(tmp_path, [node, *after], inputs, [info("y")], initializer=initial)


def test_branches_of_different_size_are_planned_for_the_larger(tmp_path: Path) -> None:
    branches = [[make_node("Relu", ["x"], ["a"])], [make_node("Concat", ["x", "x"], ["b"], axis=1)]]
    path = fork(tmp_path, branches, [make_node("Exp", ["h"], ["y"])], [])
    assert shapes_of(path, "x=2,5")["y"] == (2, 10)


def two_widths(tmp_path: Path) -> Path:
    """One branch multiplies by a matrix for 4 columns, the other by one for 8."""
    branches = [[make_node("MatMul", ["x", "w"], ["a"])], [make_node("MatMul", ["x", "v"], ["b"])]]
    initial = [make_tensor("w", FLOAT, [4, 6], [0.0] * 24), make_tensor("v", FLOAT, [8, 2], [0.0] * 16)]
    return fork(tmp_path, branches, [make_node("Exp", ["h"], ["y"])], initial)


@pytest.mark.parametrize(("k", "columns", "left"), [(4, 6, "else_branch"), (8, 2, "then_branch")])
def test_a_branch_that_the_extents_forbid_is_left_out(tmp_path: Path, k: int, columns: int, left: str) -> None:
    graph = load(two_widths(tmp_path), shapes=[f"x=1,{k}"])
    assert isinstance(graph, Graph)
    assert [op.kind for op in graph.ops] == ["MatMul", "Exp"]
    assert graph.tensors[graph.outputs[0]].shape == (1, columns)
    assert any(f"planned without {left}, which cannot run" in remark for remark in graph.remarks)


def test_extents_that_no_branch_takes_are_refused(tmp_path: Path) -> None:
    assert "with --shape x=1,5: node 0 If: node 0 MatMul" in refusal(two_widths(tmp_path), "x=1,5")


def test_an_upper_bound_forbids_no_branch(tmp_path: Path) -> None:
    """With at most 8 columns there can be 4."""
    assert "node 0 MatMul" in refusal(two_widths(tmp_path), dims=("n=1", "k<=8"))


def test_branches_of_different_rank_are_settled_by_a_shape(tmp_path: Path) -> None:
    branches = [[make_node("Relu", ["x"], ["a"])], [make_node("Unsqueeze", ["x", "zero"], ["b"])]]
    path = fork(tmp_path, branches, [make_node("Exp", ["h"], ["y"])], [numbers("zero", 0)])
    assert "'h' of unknown rank" in refusal(path, "x=2,5")
    assert shapes_of(path, "x=2,5", "h=1,2,5")["y"] == (1, 2, 5)


@pytest.mark.slow
def test_loops_in_loops_with_a_given_shape_are_read_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What the shape pins no second reading changes; each level read twice would be 4,096 bodies."""
    path = tmp_path / "loops.onnx"
    path.write_bytes(dense.onnx_loops_in_loops(12))
    read: list[str] = []
    run = onnx_control._run

    def counted(*arguments: Any) -> Any:
        read.append(arguments[1].name)
        return run(*arguments)

    monkeypatch.setattr(onnx_control, "_run", counted)
    with pytest.raises(ModelError, match="unknown extents"):
        load(path)
    assert len(read) < 12 * 12 * 7


def test_what_the_evaluator_warns_of_is_not_printed(tmp_path: Path, recwarn: pytest.WarningsRecorder) -> None:
    constants = [numbers("extents", 2, 3, 4), numpy_helper.from_array(np.ones(1, np.complex64), "index")]
    nodes = [make_node("Gather", ["extents", "index"], ["shape"]), make_node("Reshape", ["x", "shape"], ["y"])]
    path = saved(tmp_path, nodes, [info("x", [3])], [info("y")], initializer=constants)
    assert shapes_of(path)["y"] == (3,)
    assert not [w for w in recwarn if "imaginary" in str(w.message)]

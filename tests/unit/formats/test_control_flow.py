"""Bodies of control operators: who reads what, what they need, and what is refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import onnx
import pytest
import tflite_models
from onnx.helper import (
    make_graph,
    make_model,
    make_node,
    make_opsetid,
    make_tensor,
    make_tensor_type_proto,
    make_tensor_value_info,
    make_value_info,
)

from modelplan import Graph, Kind, ModelError, Options, RequestError, height, load, plan
from modelplan.rewriting.reordering import reordered

FLOAT, INT64, BOOL = 1, 7, 9


def info(name: str, shape: list[int | str] | None = None, kind: int = FLOAT) -> onnx.ValueInfoProto:
    return make_tensor_value_info(name, kind, shape)


def loaded(path: Path, graph: onnx.GraphProto, *dims: str, opset: int = 18) -> Graph:
    onnx.save(make_model(graph, opset_imports=[make_opsetid("", opset), make_opsetid("my", 1)]), path / "a.onnx")
    found = load(path / "a.onnx", dims)
    assert isinstance(found, Graph)
    return found


def names(graph: Graph, indices: tuple[int, ...]) -> list[str]:
    return [graph.tensors[t].name if t >= 0 else "" for t in indices]


def branch(name: str, kind: str, shape: list[int | str]) -> onnx.GraphProto:
    return make_graph([make_node(kind, ["a"], [f"{name}.y"])], name, [], [info(f"{name}.y", shape)])


def conditional(condition: onnx.NodeProto | None = None) -> onnx.GraphProto:
    """y = Relu(a) or Neg(a), where a = Exp(x) is read from outside."""
    nodes = [make_node("Exp", ["x"], ["a"])]
    nodes += [condition] if condition else []
    branches = {"then_branch": branch("then", "Relu", [64]), "else_branch": branch("else", "Neg", [64])}
    nodes.append(make_node("If", ["c"], ["y"], **branches))
    inputs = [info("x", [64])] + ([] if condition else [info("c", [], BOOL)])
    return make_graph(nodes, "g", inputs, [info("y", [64])])


def test_what_a_branch_reads_from_outside_is_read_by_the_if(tmp_path: Path) -> None:
    graph = loaded(tmp_path, conditional())
    op = graph.ops[-1]
    assert names(graph, op.inputs) == ["c", "a"]
    assert [body.name for body in op.subgraphs] == ["then", "else"]
    assert {t.name: t.kind for t in op.subgraphs[0].tensors} == {"a": Kind.CAPTURED, "then.y": Kind.ACTIVATION}


def test_the_if_needs_room_for_its_larger_branch(tmp_path: Path) -> None:
    made = plan(loaded(tmp_path, conditional()), Options("generic", alias="none"))
    assert made.graph.ops[-1].scratch == (256,)
    assert height(made.problem, made.placement) == 256 * 3 + 16  # a, y and a branch's result, the flag


def test_a_known_condition_leaves_one_branch(tmp_path: Path) -> None:
    condition = make_node("Constant", [], ["c"], value=make_tensor("v", BOOL, [], [False]))
    graph = loaded(tmp_path, conditional(condition))
    assert [op.kind for op in graph.ops] == ["Exp", "Neg"]
    assert names(graph, graph.outputs) == ["else.y"]


def loop(grows: bool, trips: int | None = 5) -> onnx.GraphProto:
    """v = v + v, or v joined to itself, in each of some iterations; every v is collected."""
    step = make_node("Concat", ["v", "v"], ["w"], axis=0) if grows else make_node("Add", ["v", "v"], ["w"])
    nodes = [make_node("Identity", ["go"], ["on"]), step, make_node("Identity", ["w"], ["s"])]
    ends = [info("i", [], INT64), info("go", [], BOOL), make_value_info("v", make_tensor_type_proto(FLOAT, None))]
    out = [info("on", [], BOOL), info("w"), info("s")]
    body = make_graph(nodes, "body", ends, out)
    outer = [make_node("Loop", ["m", "", "x"], ["y", "all"], body=body)]
    inputs, initial = [info("x", [4])], []
    if trips is None:
        inputs.append(info("m", [], INT64))
    else:
        initial.append(make_tensor("m", INT64, [], [trips]))
    return make_graph(outer, "g", inputs, [info("y"), info("all")], initial)


def test_a_loop_collects_as_often_as_it_runs(tmp_path: Path) -> None:
    graph = loaded(tmp_path, loop(grows=False))
    shapes = {t.name: t.shape for t in graph.tensors}
    assert (shapes["y"], shapes["all"]) == ((4,), (5, 4))
    assert "planned for all 5 iterations" in "".join(graph.remarks)


def test_an_unknown_trip_count_can_be_bounded(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match="--shape all=1,4"):
        loaded(tmp_path, loop(grows=False, trips=None))
    graph = loaded(tmp_path, loop(grows=False, trips=None), "all:0<=7")
    assert {t.name: t.shape for t in graph.tensors}["all"] == (7, 4)
    assert "upper bound all:0 <= 7" in "".join(graph.remarks)


def test_a_value_that_grows_in_a_loop_stays_open(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match="unknown extents"):
        loaded(tmp_path, loop(grows=True))


def test_a_scan_slices_and_stacks(tmp_path: Path) -> None:
    body = make_graph(
        [make_node("Add", ["s", "e"], ["t"]), make_node("Identity", ["t"], ["o"])],
        "body", [info("s", [3]), info("e", [3])], [info("t", [3]), info("o", [3])],
    )  # fmt: skip
    node = make_node("Scan", ["z", "x"], ["last", "all"], body=body, num_scan_inputs=1)
    graph = loaded(tmp_path, make_graph([node], "g", [info("z", [3]), info("x", [9, 3])], [info("last"), info("all")]))
    assert [graph.tensors[t].shape for t in graph.outputs] == [(3,), (9, 3)]


@pytest.mark.parametrize(("content", "kind", "bodies"), [
    (tflite_models.branching(), "IF", 2), (tflite_models.looping(), "WHILE", 2),
])  # fmt: skip
def test_tflite_bodies_are_planned_inside_their_operator(
    tmp_path: Path, content: bytes, kind: str, bodies: int
) -> None:
    (tmp_path / "a.tflite").write_bytes(content)
    graph = load(tmp_path / "a.tflite")
    assert isinstance(graph, Graph)
    op = next(op for op in graph.ops if op.kind == kind)
    assert len(op.subgraphs) == bodies
    made = plan(graph)
    assert sum(next(op for op in made.graph.ops if op.kind == kind).scratch) > 0


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["IF", "WHILE"])
def test_a_body_is_planned_once_however_often_it_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    from modelplan.planning import pipeline

    (tmp_path / "a.tflite").write_bytes(tflite_models.nested(30, kind))
    graph = load(tmp_path / "a.tflite")
    assert isinstance(graph, Graph)
    placed = []
    real = pipeline._body_bytes

    def counted(*given: Any) -> int:
        placed.append(given[0])
        return real(*given)

    monkeypatch.setattr(pipeline, "_body_bytes", counted)
    made = plan(graph, Options(schedule="file"))
    assert len(placed) == 2 * (30 + (kind == "WHILE"))  # for the plan, and for what the runtime does by itself
    assert height(made.problem, made.placement) >= 30 * 2 * 256


@pytest.mark.parametrize("kind", ["IF", "WHILE"])
def test_bodies_that_lie_too_deep_are_refused(tmp_path: Path, kind: str) -> None:
    (tmp_path / "a.tflite").write_bytes(tflite_models.nested(300, kind))
    with pytest.raises(ModelError, match="more than 32 deep"):
        load(tmp_path / "a.tflite")


def test_a_run_of_too_many_steps_is_not_verified(monkeypatch: pytest.MonkeyPatch) -> None:
    from modelplan.checking.verifier import program
    from modelplan.checking.verifier.program import file_program
    from modelplan.runtimes.tflm.file import read_tflite

    monkeypatch.setattr(program, "_MOST_STEPS", 1_000)
    assert len(file_program(read_tflite(tflite_models.nested(4), "four")).steps) == 1 + 2 * (3 + 2 * (3 + 2 * (3 + 6)))
    with pytest.raises(ModelError, match="more than 1,488 steps"):
        file_program(read_tflite(tflite_models.nested(30), "thirty"))


def test_a_subgraph_that_runs_itself_is_refused(tmp_path: Path) -> None:
    t = ("x", tflite_models.FLOAT32, (4,), None)
    flag = ("c", tflite_models.BOOL, (1,), None)
    sub = tflite_models.Sub([flag, t, ("y", *t[1:])], [("IF", (0, 1), (2,), (0, 0))], (0, 1), (2,))
    (tmp_path / "a.tflite").write_bytes(tflite_models.model(sub))
    with pytest.raises(ModelError, match="runs itself"):
        load(tmp_path / "a.tflite")


def test_bindings(tmp_path: Path) -> None:
    graph = make_graph([make_node("Relu", ["x"], ["y"])], "g", [info("x", ["n", "n + k"])], [info("y", ["n", "n + k"])])
    found = loaded(tmp_path, graph, "n=2", "k=3")
    assert found.tensors[0].shape == (2, 5)
    with pytest.raises(ModelError, match=r"'x' \[n, n \+ k\]; .* --dim n=1 --dim 'n \+ k=64'"):
        loaded(tmp_path, graph)
    for dims, words in [(["q=1", "n=2", "k=3"], "no open extent"), (["n:2"], "SYMBOL=N"), (["n=1", "n=2"], "twice")]:
        with pytest.raises(RequestError, match=words):
            loaded(tmp_path, graph, *dims)
    with pytest.raises(RequestError, match=r"--dim q: .* there are: n, n \+ k$"):
        loaded(tmp_path, graph, "q=1")


def test_strings_and_sequences_are_reported(tmp_path: Path) -> None:
    nodes = [make_node("SequenceConstruct", ["x", "x"], ["s"]), make_node("SequenceLength", ["s"], ["y"])]
    graph = loaded(tmp_path, make_graph(nodes, "g", [info("x", [4])], [info("y", [], INT64)]))
    assert "memory from the heap, not planned: 's' (sequence)" in graph.remarks


def test_sub_byte_and_odd_types_have_their_packing(tmp_path: Path) -> None:
    sizes = {"INT4": 5, "UINT4": 5, "INT2": 3, "FLOAT4E2M1": 5, "FLOAT8E4M3FN": 9, "BFLOAT16": 18, "COMPLEX128": 144}
    kinds = {name: number for name, number in onnx.TensorProto.DataType.items() if name in sizes}
    assert set(kinds) == set(sizes)
    for name, number in kinds.items():
        x, y = info("x", [3, 3], number), info("y", [9], number)
        shape = make_tensor("shape", INT64, [1], [9])
        graph = loaded(tmp_path, make_graph([make_node("Reshape", ["x", "shape"], ["y"])], "g", [x], [y], [shape]),
                       opset=onnx.defs.onnx_opset_version())  # fmt: skip
        assert graph.tensors[0].nbytes == sizes[name], name


def test_external_weights_are_sized_without_being_read(tmp_path: Path) -> None:
    weight = onnx.TensorProto(name="w", data_type=FLOAT, dims=[4], data_location=onnx.TensorProto.EXTERNAL)
    weight.external_data.add(key="location", value="nowhere.bin")
    weight.external_data.add(key="length", value="16")
    model = make_graph([make_node("Add", ["x", "w"], ["y"])], "g", [info("x", [4])], [info("y", [4])], [weight])
    assert {t.name: t.nbytes for t in loaded(tmp_path, model).tensors}["w"] == 16
    model.initializer[0].external_data[1].value = "12"
    with pytest.raises(ModelError, match="found 12 bytes of data, expected 16"):
        loaded(tmp_path, model)


def test_a_custom_operator_needs_the_types_of_its_results(tmp_path: Path) -> None:
    nodes = [make_node("Thing", ["x"], ["a"], domain="my"), make_node("Relu", ["a"], ["y"])]
    model = make_graph(nodes, "g", [info("x", [4])], [info("y", [4])])
    with pytest.raises(ModelError, match="node 0 Thing: the type of 'a' is unknown"):
        loaded(tmp_path, model)
    model.value_info.append(info("a", [4]))
    assert [op.kind for op in loaded(tmp_path, model).ops] == ["my.Thing", "Relu"]


def vector(name: str, values: list[float] | None = None) -> tuple[str, int, tuple[int, ...], list[float] | None]:
    return (name, tflite_models.FLOAT32, (4,), values)


#: o = (i + one) * i
CALLED = tflite_models.Sub(
    [vector("i"), vector("one", [1.0] * 4), vector("s"), vector("o")],
    [("ADD", (0, 1), (2,), ()), ("MUL", (2, 0), (3,), ())],
    (0,),
    (3,),
)


FLAT = ("i", tflite_models.FLOAT32, (1, 4), None)


def calling(path: Path, called: tflite_models.Sub, *more: tflite_models.Sub) -> Path:
    """y = f(x), z = f(y), where f is subgraph 1."""
    main = tflite_models.Sub(
        [vector("x"), vector("y"), vector("z")], [("CALL", (0,), (1,), (1,)), ("CALL", (1,), (2,), (1,))], (0,), (2,)
    )
    (path / "calls.tflite").write_bytes(tflite_models.model(main, called, *more))
    return path / "calls.tflite"


def test_what_call_runs_stands_in_its_place(tmp_path: Path) -> None:
    graph = load(calling(tmp_path, CALLED))
    assert isinstance(graph, Graph)
    assert [op.kind for op in graph.ops] == ["ADD", "MUL", "ADD", "MUL"]
    assert names(graph, graph.ops[0].inputs) == ["x", "one"]
    assert names(graph, graph.ops[1].outputs) == ["y"]
    assert names(graph, graph.ops[3].outputs) == ["z"]
    assert [t.name for t in graph.tensors] == ["x", "y", "z", "one", "s", "s"]  # the constant once, the rest per call
    made = plan(graph, Options("tflm", alias="none", schedule="file", allocator="tflm-greedy"))
    assert height(made.problem, made.placement) == 3 * 16  # i, s and o; as a body it would stand beside i and o


def test_calls_inside_calls_are_opened_too(tmp_path: Path) -> None:
    outer = tflite_models.Sub([vector("a"), vector("b")], [("CALL", (0,), (1,), (2,))], (0,), (1,))
    graph = load(calling(tmp_path, outer, CALLED))
    assert isinstance(graph, Graph)
    assert [op.kind for op in graph.ops] == ["ADD", "MUL", "ADD", "MUL"]
    assert names(graph, graph.ops[2].inputs) == ["y", "one"]


@pytest.mark.parametrize(
    "called",
    [
        tflite_models.Sub([vector("i")], [], (0,), (0,)),  # gives what it takes
        tflite_models.Sub([vector("i"), vector("c", [1.0] * 4)], [], (0,), (1,)),  # gives a constant
        tflite_models.Sub([FLAT, vector("o")], [("ADD", (0, 0), (1,), ())], (0,), (1,)),
        tflite_models.Sub([vector("o"), vector("c", [1.0] * 4)], [("ADD", (1, 1), (0,), ())], (), (0,)),
    ],
)
def test_a_call_that_copies_or_takes_other_values_stays(tmp_path: Path, called: tflite_models.Sub) -> None:
    graph = load(calling(tmp_path, called))
    assert isinstance(graph, Graph)
    assert [op.kind for op in graph.ops] == ["CALL", "CALL"]
    assert graph.ops[0].subgraphs[0].tensors[-1].name in {"i", "c", "o"}


@pytest.mark.slow
def test_calls_that_grow_without_bound_are_refused(tmp_path: Path) -> None:
    def twice(number: int) -> tflite_models.Sub:
        calls: list[tflite_models.OpRow] = [("CALL", (0,), (1,), (number,)), ("CALL", (1,), (2,), (number,))]
        return tflite_models.Sub([vector("a"), vector("b"), vector("c")], calls, (0,), (2,))

    with pytest.raises(ModelError, match="called subgraphs grow to more than 8,000 operators"):
        load(calling(tmp_path, *(twice(number) for number in range(2, 22)), CALLED))


def test_called_operators_are_not_reordered(tmp_path: Path) -> None:
    path = calling(tmp_path, CALLED)
    graph = load(path)
    assert isinstance(graph, Graph)
    with pytest.raises(RequestError, match="stand in place of CALL"):
        reordered(path.read_bytes(), graph, [1, 0, 2, 3])

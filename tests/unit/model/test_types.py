"""One bad input per rule of each constructor."""

from __future__ import annotations

import pickle
from dataclasses import replace

import graphs
import numpy as np
import pytest

from modelplan import Budget, Buffer, Graph, Kind, Op, Problem, Tensor


def test_sub_byte_tensors_pack_over_the_whole_tensor() -> None:
    assert Tensor("a", (3, 3), "int4").nbytes == 5
    assert Tensor("b", (5,), "uint2").nbytes == 2
    assert Tensor("c", (4,), "float6e2m3").nbytes == 3
    assert Tensor("d", (), "float32").nbytes == 4
    assert Tensor("e", (0, 7), "int8").nbytes == 0


@pytest.mark.parametrize(("shape", "dtype", "word"), [((2, -1), "int8", "negative"), ((2,), "float7", "unknown")])
def test_a_tensor_without_a_size_is_refused(shape: tuple[int, ...], dtype: str, word: str) -> None:
    with pytest.raises(ValueError, match=word):
        Tensor("t", shape, dtype)


@pytest.mark.parametrize(
    ("arguments", "word"),
    [
        (("b", -1, 0, 1), "size"),
        (("b", 1, 3, 3), "lifetime"),
        (("b", 1, -1, 3), "lifetime"),
        (("b", 1, 0, 1, 0), "alignment"),
        (("b", 1, 0, 1, 16, 8), "multiple of its alignment"),
    ],
)
def test_a_malformed_buffer_is_refused_alone_and_in_a_problem(arguments: tuple[object, ...], word: str) -> None:
    with pytest.raises(ValueError, match=word):
        Buffer(*arguments)  # type: ignore[arg-type]
    _, size, start, end, *rest = arguments
    alignment, pin = [*rest, *[1, -1][len(rest) :]]  # type: ignore[misc]
    with pytest.raises(ValueError, match=word):
        Problem(("b",), *(np.array([v]) for v in (size, start, end, alignment, pin)))  # type: ignore[arg-type]


def test_a_problem_refuses_sizes_that_could_overflow() -> None:
    with pytest.raises(ValueError, match="2\\^62"):
        graphs.problem([(2**61, 0, 1), (2**61, 0, 1), (2**61, 0, 1)])
    with pytest.raises(ValueError, match="63 bits"):
        graphs.problem([(2**80, 0, 1)])


def test_a_problem_refuses_facts_about_buffers_that_it_does_not_have() -> None:
    with pytest.raises(ValueError, match="outside"):
        graphs.problem([(1, 0, 1)], conflicts=[(0, 1)])
    with pytest.raises(ValueError, match="negative bytes"):
        graphs.problem([(1, 0, 1), (1, 0, 1)], overlaps=[(0, 1, -1)])


def test_columns_are_read_only_and_rows_come_back() -> None:
    problem = graphs.problem([(8, 0, 2), (4, 1, 3)], alignment=[4, 1], pin=[16, None])
    assert list(problem) == [Buffer("b0", 8, 0, 2, 4, 16), Buffer("b1", 4, 1, 3)]
    with pytest.raises(ValueError, match="read-only"):
        problem.size[0] = 9
    assert problem == graphs.problem([(8, 0, 2), (4, 1, 3)], alignment=[4, 1], pin=[16, None])
    assert problem != graphs.problem([(8, 0, 2), (4, 1, 3)])


def test_the_dag_is_frozen_and_carries_tensors() -> None:
    dag = graphs.chain().dag
    assert [dag.edges[e]["tensors"] for e in dag.edges] == [(2,), (3,)]
    with pytest.raises(Exception, match="Frozen"):
        dag.add_edge(0, 2)


@pytest.mark.parametrize(
    ("ops", "word"),
    [
        ("a -> b : X \n b -> a : X", "cycle: op"),
        ("x -> a : X \n x -> a : X", "already has a value"),
        ("x -> x : X", "already has a value"),
        ("a -> w : X", "already has a value"),
    ],
)
def test_a_graph_that_is_no_dag_is_refused(ops: str, word: str) -> None:
    with pytest.raises(ValueError, match=word):
        graphs.graph(ops, {"x": 1, "a": 1, "b": 1, "w": 1}, inputs="x", kinds={"w": Kind.CONSTANT})


def test_dangling_indices_are_refused() -> None:
    tensor = (Tensor("t", (1,), "int8"),)
    with pytest.raises(ValueError, match="op 0 X 'n' names tensor 1"):
        Graph("g", "tflite", tensor, (Op("n", "X", (1,), (0,)),), (), ())
    with pytest.raises(ValueError, match="graph output is tensor 7"):
        Graph("g", "tflite", tensor, (), (), (7,))


def test_a_budget_cannot_be_negative() -> None:
    with pytest.raises(ValueError, match="negative"):
        Budget(steps=-1)
    with pytest.raises(ValueError, match="threads"):
        Budget(threads=0)


def test_operators_are_alike_whatever_their_tensors_are_called() -> None:
    graph = graphs.graph(
        "x w -> a : ADD \n a w -> b : ADD \n b a -> c : ADD \n c w -> y : MUL", dict.fromkeys("xwabc", 8) | {"y": 9},
        "x", "y", kinds={"w": Kind.CONSTANT},
    )  # fmt: skip
    assert graph.first_alike == (0, 0, 2, 3)  # the third adds no constant, the last gives more bytes
    absent = replace(graph, ops=(*graph.ops[:3], replace(graph.ops[3], inputs=(4, -1))))
    assert absent.first_alike == (0, 0, 2, 3)
    options = replace(graph, ops=(graph.ops[0], replace(graph.ops[1], attributes=(("x", 1),)), *graph.ops[2:]))
    assert options.first_alike == (0, 1, 2, 3)


def test_a_graph_answers_an_equal_question_once_and_takes_no_answers_along() -> None:
    graph, asked = graphs.chain(), list[int]()

    def answer() -> int:
        asked.append(1)
        return len(asked)

    assert [
        graph.memoised(("a", [1]), answer),
        graph.memoised(("a", [1]), answer),
        graph.memoised(("a", [2]), answer),
    ] == [1, 1, 2]
    copy = pickle.loads(pickle.dumps(graph))
    assert copy == graph
    assert copy.memoised(("a", [1]), answer) == 3
    for question in range(100):
        graph.memoised(question, answer)
    assert graph.memoised(("a", [1]), answer) > 100  # only the last questions are kept

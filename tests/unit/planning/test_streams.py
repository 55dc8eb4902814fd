"""Conflicts of parallel streams, against every order in which the ops may run."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations
from pathlib import Path

import graphs
import networkx as nx
import numpy as np
import pytest
import strategies
from hypothesis import given
from hypothesis import strategies as st
from shares import examples

from modelplan import BrokenPlanError, Graph, Placement, RequestError, place, render, runtimes
from modelplan.answers.drawing import of_plan
from modelplan.answers.saved_plan import read
from modelplan.checking.verifier.concurrency import check_streams
from modelplan.cli import main
from modelplan.model import Problem
from modelplan.outputs.figures import canvas
from modelplan.outputs.figures.lifetime_chart import draw
from modelplan.planning import aliasing, lifetimes, pipeline, streams

RUNTIME = runtimes.runtime("generic", "tflite")


def problem_of(graph: Graph, order: list[int]) -> Problem:
    return lifetimes.buffers(graph, order, aliasing.storages(graph, "none"), RUNTIME)


def together(problem: Problem) -> set[tuple[str, str]]:
    """Names of the buffers alive at the same step."""
    rows = list(problem)
    return {(a.name, b.name) for a in rows for b in rows if a.name < b.name and a.start < b.end and b.start < a.end}


def named(problem: Problem, pairs: object) -> set[tuple[str, str]]:
    names = [(problem.names[a], problem.names[b]) for a, b in pairs]  # type: ignore[attr-defined]
    return {(min(pair), max(pair)) for pair in names}


def test_two_branches_on_two_streams_meet() -> None:
    graph, order = graphs.fork(), [0, 2, 1, 3, 4]
    problem = problem_of(graph, order)
    assert ("p", "q") not in together(problem)
    stream = streams.spread_ops(graph, order, 2)
    assert stream == (0, 1, 0, 1, 0)
    pairs = named(problem, streams.stream_conflicts(graph, order, stream, problem))
    assert pairs == {("p", "q"), ("p", "s"), ("s", "x")}


@examples(40)
@given(strategies.dags(most=6), st.data())
def test_no_order_that_streams_allow_breaks_the_conflicts(graph: Graph, data: st.DataObject) -> None:
    n = len(graph.ops)
    order = list(range(n))
    stream = tuple(data.draw(st.lists(st.integers(0, 2), min_size=n, max_size=n)))
    problem = problem_of(graph, order)
    apart = together(problem) | named(problem, streams.stream_conflicts(graph, order, stream, problem))
    waits = nx.DiGraph(graph.dag.edges)
    waits.add_nodes_from(order)
    waits.add_edges_from((a, b) for b in order for a in order[:b] if stream[a] == stream[b])
    for other in nx.all_topological_sorts(waits):
        assert together(problem_of(graph, other)) <= apart


@examples(40)
@given(strategies.dags(most=8))
def test_one_stream_adds_nothing(graph: Graph) -> None:
    order = list(range(len(graph.ops)))
    assert not len(streams.stream_conflicts(graph, order, [0] * len(order), problem_of(graph, order)))


def test_planners_of_conflicts_take_streams_and_interval_planners_refuse() -> None:
    graph, order = graphs.fork(), [0, 2, 1, 3, 4]
    problem, _ = pipeline.placement_problem(
        graph, order, aliasing.storages(graph, "none"), RUNTIME, pipeline.Options(streams=2, alias="none")
    )
    p, q = problem.names.index("p"), problem.names.index("q")
    for name in ("somas", "tvm-hill-climb", "triton", "xla-spatial", "telamalloc", "idealloc"):
        offsets = place(problem, name).offsets
        assert offsets[p] + 160 <= offsets[q] or offsets[q] + 160 <= offsets[p]
    for name in ("minimalloc", "xla-fast-merge", "tvm-token-reuse"):
        with pytest.raises(RequestError, match="does not honour conflicts"):
            place(problem, name)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("op,stream\n0,0\n", "no stream for op 1"),
        ("0,0\n9,1\n", "line 2: op 9, but there are 5 ops"),
        ("0;1\n", "line 1: found '0;1', expected `op,stream`"),
    ],
)
def test_a_bad_file_of_streams_is_named(text: str, message: str) -> None:
    with pytest.raises(RequestError, match=message):
        streams.parse_streams(text, graphs.fork(), "s.csv")


def test_a_file_of_streams_is_read() -> None:
    text = "op,stream\n# two branches\n0,0\n1,1\n2,0\n3,1\n\n4,0\n"
    assert streams.parse_streams(text, graphs.fork(), "s.csv") == (0, 1, 0, 1, 0)


def test_streams_need_a_safe_alias_mode_and_at_least_one() -> None:
    graph = graphs.fork()
    with pytest.raises(RequestError, match="0 streams, expected at least 1"):
        pipeline.plan(graph, pipeline.Options(streams=0))
    with pytest.raises(RequestError, match="expected one for each of 5 ops"):
        pipeline.plan(graph, pipeline.Options(streams=(0, 1)))


def test_a_plan_remembers_the_conflicts_of_its_streams() -> None:
    options = pipeline.Options(runtime="generic", streams=2, alias="none", schedule="file")
    made = pipeline.plan(graphs.fork(), options)
    assert len(made.problem.conflicts)
    text = render(made, ".json")
    assert isinstance(text, str)
    assert read(text) == made
    assert made.streams == (0, 1, 0, 1, 0)
    assert of_plan(made).streams == (0, 1, 0, 1, 0)


@pytest.mark.slow
@examples(60)
@given(strategies.dags(most=7), st.data())
def test_the_verifier_rejects_exactly_what_the_conflicts_exclude(graph: Graph, data: st.DataObject) -> None:
    """Two pieces of code that share none: the conflicts of the planner and the chains of waits of the verifier."""
    n = len(graph.ops)
    stream = tuple(data.draw(st.lists(st.integers(0, 2), min_size=n, max_size=n)))
    options = pipeline.Options(runtime="generic", streams=stream, alias="none", schedule="file")
    made = pipeline.plan(graph, options)
    problem = made.problem
    offsets = np.array(data.draw(st.lists(st.integers(0, 60), min_size=len(problem), max_size=len(problem))))
    apart = {frozenset(pair) for pair in problem.conflicts.tolist()}
    wrong = any(
        max(offsets[a], offsets[b]) < min(offsets[a] + problem.size[a], offsets[b] + problem.size[b])
        and (
            frozenset((a, b)) in apart or max(problem.start[a], problem.start[b]) < min(problem.end[a], problem.end[b])
        )
        for a, b in combinations(range(len(problem)), 2)
    )
    placed = replace(made, placement=Placement(offsets))
    if wrong:
        with pytest.raises(BrokenPlanError, match="no chain of waits"):
            check_streams(placed)
    else:
        check_streams(placed)


def test_the_lifetime_chart_has_a_lane_for_each_stream() -> None:
    made = pipeline.plan(graphs.fork(), pipeline.Options(runtime="generic", streams=2, alias="none", schedule="file"))
    with canvas.style():
        words = [text.get_text() for text in draw(of_plan(made)).figure.texts]
        plain = [text.get_text() for text in draw(of_plan(replace(made, streams=()))).figure.texts]
    assert {"stream 0", "stream 1"} <= set(words)
    assert not {"stream 0", "stream 1"} & set(plain)


def test_verify_checks_the_streams_of_a_stored_plan(models: Path, tmp_path: Path) -> None:
    model, stored = str(sorted(models.glob("inception_like.onnx"))[0]), tmp_path / "plan.json"
    words = ["analyze", model, "--runtime", "generic", "--streams", "2", "--alias", "none", "--json", str(stored)]
    assert main(words) == 0
    assert main(["verify", str(stored)]) == 0
    plan = read(stored.read_text())
    one_stream = pipeline.plan(plan.graph, pipeline.Options(runtime="generic", alias="none"))
    moved = replace(
        plan, problem=replace(one_stream.problem), placement=one_stream.placement, schedule=one_stream.schedule
    )
    text = render(moved, ".json")
    assert isinstance(text, str)
    stored.write_text(text)
    assert main(["verify", str(stored)]) == 4


def test_the_command_takes_streams(models: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    model = str(sorted(models.glob("*.tflite"))[0])
    assert main(["analyze", model, "--streams", "2", "--verbose"]) == 0
    assert "operators by stream" in capsys.readouterr().out
    assert main(["analyze", model, "--streams", str(tmp_path / "none.csv")]) == 2
    assert "cannot read" in capsys.readouterr().err

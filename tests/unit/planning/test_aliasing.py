"""Sharing is decided by storage class and order: one graph for each of the seven conditions, and the models at hand."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import graphs
import pytest

from modelplan import Graph, Kind, Options, RequestError, height, load, plan, storages
from modelplan.model import Aliases, Member
from modelplan.planning.aliasing import take_offers
from modelplan.planning.aliasing.classes import Classes
from modelplan.planning.aliasing.explaining import reasons
from modelplan.planning.pipeline import runtime_plan
from modelplan.runtimes import RUNTIMES

GENERIC, LITERT = RUNTIMES["generic"], RUNTIMES["litert"]


def classes(graph: Graph, mode: str = "max", runtime: str = "generic") -> set[str]:
    """The classes of more than one tensor when the ops run in file order, as words of tensor names."""
    offered = storages(graph, mode, RUNTIMES[runtime])
    found = take_offers(graph, offered, range(len(graph.ops)), RUNTIMES[runtime])
    named = [[graph.tensors[m.tensor].name for m in members] for members in found.classes]
    return {" ".join(sorted(names)) for names in named if len(names) > 1}


def test_a_dying_operand_is_overwritten() -> None:
    drawn = graphs.graph("x -> a : CONV_2D\na -> b : RELU\nb -> y : CONV_2D", {"x": 16, "a": 32, "b": 32, "y": 16},
                         "x", "y")  # fmt: skip
    assert classes(drawn) == {"a b"}
    assert classes(drawn, "views") == classes(drawn, "none") == set()


@pytest.mark.parametrize(
    ("what", "ops", "sizes", "kinds"),
    [
        ("1: other size", "x -> a : CONV_2D\na -> b : RELU\nb -> y : CONV_2D", {"a": 32, "b": 16}, {}),
        ("3: read later", "x -> a : CONV_2D\na -> b : RELU\na b -> y : CONV_2D", {"a": 32, "b": 32}, {}),
        ("3: a row read twice", "x -> a : CONV_2D\na a -> b : SOFTMAX\nb -> y : CONV_2D", {"a": 32, "b": 32}, {}),
        ("4: a constant", "a -> b : RELU\nx b -> y : CONV_2D", {"a": 32, "b": 32}, {"a": Kind.CONSTANT}),
        ("4: state", "a -> b : RELU\nx b -> y : CONV_2D", {"a": 32, "b": 32}, {"a": Kind.STATE}),
        ("never", "x -> a : CONV_2D\na -> b : TRANSPOSE\nb -> y : CONV_2D", {"a": 32, "b": 32}, {}),
    ],
)  # fmt: skip
def test_each_condition_forbids(what: str, ops: str, sizes: dict[str, int], kinds: dict[str, Kind]) -> None:
    drawn = graphs.graph(ops, {"x": 48, **sizes, "y": 64}, "x", "y", kinds)
    assert classes(drawn) == set(), what


def test_an_output_of_the_model_is_not_overwritten() -> None:
    drawn = graphs.graph("x -> a : CONV_2D\na -> y : RELU", {"x": 16, "a": 32, "y": 32}, "x", "a y")
    assert classes(drawn) == set()


def test_an_input_is_overwritten_only_where_inputs_die() -> None:
    drawn = graphs.graph("x -> a : ADD\na -> y : CONV_2D", {"x": 32, "a": 32, "y": 16}, "x", "y")
    assert classes(drawn) == {"a x"}
    assert classes(drawn, "max", "litert") == set()


def test_element_by_element_an_operand_may_be_read_twice() -> None:
    drawn = graphs.graph("x -> a : CONV_2D\na a -> b : ADD\nb -> y : CONV_2D", {"x": 16, "a": 32, "b": 32, "y": 16},
                         "x", "y")  # fmt: skip
    assert classes(drawn) == {"a b"}


#: The graph on which LiteRT 2.3.0 gives 33 instead of 18: T must not take the bytes of X = R = S, R is read later.
ALIAS_BUG = """
x   -> X : CONV_2D
X   -> R : RESHAPE
R   -> S : RESHAPE
S   -> T : RELU
R   -> U : CONV_2D
T U -> y : CONV_2D
"""


def test_a_view_of_a_view_keeps_its_class_alive() -> None:
    sizes = {"x": 16, **dict.fromkeys("XRSTU", 64), "y": 16}
    found = classes(graphs.graph(ALIAS_BUG, sizes, "x", "y"))
    assert "R S X" in found
    assert not [words for words in found if {"R", "T"} <= set(words.split())]


@pytest.mark.parametrize("mode", ["runtime", "none", "views", "safe", "max"])
@pytest.mark.parametrize("runtime", ["litert", "tflm", "generic"])
def test_the_model_that_litert_gets_wrong(corpus: Path, mode: str, runtime: str) -> None:
    """T is computed from S while R, of the same bytes, is still to be multiplied: every plan keeps them apart."""
    graph = load(corpus / "tflite" / "litert_alias_bug.tflite")
    assert isinstance(graph, Graph)
    made = plan(graph, Options(runtime=runtime, alias=mode, schedule="file"))
    place = {
        m.tensor: int(at) + m.delta
        for at, members in zip(made.placement.offsets, made.problem.members, strict=True)
        for m in members
    }
    index = {tensor.name: t for t, tensor in enumerate(graph.tensors)}
    assert place[index["T"]] != place[index["R"]]


def test_of_two_operands_one_is_taken() -> None:
    ops = "x -> a : CONV_2D\nx -> b : CONV_2D\na b -> c : ADD\nc -> y : CONV_2D"
    drawn = graphs.graph(ops, {"x": 16, "a": 32, "b": 32, "c": 32, "y": 16}, "x", "y")
    assert classes(drawn) == {"a c"}


@pytest.mark.slow
def test_a_join_is_written_in_place_where_it_lowers_the_peak(light: Path) -> None:
    graph = load(light / "light_densenet121.onnx")
    assert isinstance(graph, Graph)
    options = {mode: Options("generic", "file", mode, "tflm-greedy") for mode in ("safe", "max")}
    made = {mode: plan(graph, row) for mode, row in options.items()}
    assert made["max"].schedule.peak < made["safe"].schedule.peak
    assert any(merge.rule.startswith("join") for merge in made["max"].merges)


@pytest.mark.parametrize("name", ["light_shufflenet", "light_inception_v2", "light_squeezenet"])
def test_more_sharing_never_costs_memory(light: Path, name: str) -> None:
    graph = load(light / f"{name}.onnx")
    assert isinstance(graph, Graph)
    heights = []
    for mode in ("none", "views", "safe", "max"):
        made = plan(graph, Options("generic", alias=mode))
        heights.append(height(made.problem, made.placement))
    assert heights == sorted(heights, reverse=True)


#: An operator, the bytes that it makes of 64 and its attributes, by which mode max needs no bytes for its output.
PASSED_ON = [
    ("SLICE", 32, {"operand 1": (32,), "operand 2": (32,)}),
    ("GATHER", 32, {"operand 1": tuple(range(32))}),
    ("TRANSPOSE", 64, {"operand 1": (0,)}),
    ("PAD", 64, {"operand 1": (0, 0)}),
    ("CONCATENATION", 64, {"axis": 0, "requantises": False}),
]


@pytest.mark.parametrize("names", ["awxy", "wxya", "xyaw"])
@pytest.mark.parametrize(("kind", "size", "attributes"), PASSED_ON, ids=[row[0] for row in PASSED_ON])
def test_bytes_that_are_passed_on_cost_nothing(kind: str, size: int, attributes: dict[str, Any], names: str) -> None:
    """Whatever the numbers of the tensors; mode views, which only looks at operators that are views, copies."""
    sizes = {"a": 64, "w": size, "x": 16, "y": 16}
    drawn = graphs.graph(
        f"x -> a : CONV_2D\na -> w : {kind}\nw -> y : CONV_2D", {name: sizes[name] for name in names}, "x", "y"
    )
    ops = (drawn.ops[0], replace(drawn.ops[1], attributes=tuple(attributes.items())), drawn.ops[2])
    found = [plan(replace(drawn, ops=ops), Options("generic", "file", mode)) for mode in ("views", "max")]
    assert [height(made.problem, made.placement) for made in found] == [64 + size, 80]
    assert [(m.tensor, m.into) for m in found[1].merges] == [(names.index("w"), names.index("a"))]


def test_an_operand_without_bytes_keeps_no_join_from_being_written_in_place() -> None:
    ops = "x -> a : CONV_2D\nx -> b : CONV_2D\nx -> e : CONV_2D\na e b -> j : CONCATENATION\nj -> y : CONV_2D"
    drawn = graphs.graph(ops, {"x": 16, "a": 64, "e": 0, "b": 64, "j": 128, "y": 16}, "x", "y")
    join = replace(drawn.ops[3], attributes=(("axis", 0), ("requantises", False)))
    made = plan(replace(drawn, ops=(*drawn.ops[:3], join, drawn.ops[4])), Options("generic", "file", "max"))
    assert height(made.problem, made.placement) == 128 + 16


def test_every_merge_names_its_rule_and_bytes(corpus: Path) -> None:
    graph = load(corpus / "tflite" / "litert_alias_bug.tflite")
    assert isinstance(graph, Graph)
    made = plan(graph, Options("generic", alias="max"))
    assert made.merges
    assert all(merge.rule.split(":")[0] in ("view", "overwrite", "join", "split") for merge in made.merges)
    assert all(merge.saved == graph.tensors[merge.tensor].nbytes for merge in made.merges)


def test_refusals_can_be_asked_for(corpus: Path) -> None:
    graph = load(corpus / "tflite" / "litert_alias_bug.tflite")
    assert isinstance(graph, Graph)
    made = plan(graph, Options("litert", "file", "safe"))
    assert "condition 3" in "".join(reasons(made, "T"))
    assert "shares 'X'" in "".join(reasons(made, "R"))
    with pytest.raises(RequestError, match="no tensor of that name"):
        reasons(made, "nothing")


def test_an_unknown_mode_is_refused_with_the_names_of_all() -> None:
    with pytest.raises(RequestError, match="runtime, none, views, safe, max"):
        storages(graphs.chain(), "some")


def test_the_order_decides() -> None:
    """b may take a's bytes only where nothing reads a after b is computed."""
    ops = "x -> a : CONV_2D\na -> b : RELU\na -> c : CONV_2D\nb c -> y : CONV_2D"
    drawn = graphs.graph(ops, {"x": 16, "a": 32, "b": 32, "c": 16, "y": 16}, "x", "y")
    offered: Aliases = storages(drawn, "max", GENERIC)
    assert not take_offers(drawn, offered, (0, 1, 2, 3), GENERIC).merges
    assert [m.tensor for m in take_offers(drawn, offered, (0, 2, 1, 3), GENERIC).merges] == [2]


@pytest.mark.parametrize("name", ["inception_like", "mobilenet_v2_like", "resnet8"])
def test_no_plan_is_worse_than_the_runtime_by_itself(models: Path, name: str) -> None:
    """Unless it was asked to be: with views alone two of these need more than ONNX Runtime, which overwrites."""
    graph = load(models / f"{name}.onnx")
    assert isinstance(graph, Graph)
    made = plan(graph)
    own = runtime_plan(made.graph, made.runtime)
    assert (made.runtime.name, made.alias) == ("ort", "safe")
    assert made.runtime_height == height(own.problem, own.placement) >= height(made.problem, made.placement)


@pytest.mark.parametrize(("runtime", "mode"), [("tflm", "views"), ("generic", "views"), ("litert", "safe")])
def test_the_usual_mode_of_a_runtime(runtime: str, mode: str) -> None:
    assert plan(graphs.chain(), Options(runtime)).alias == mode
    assert plan(graphs.chain(), Options(runtime, streams=1)).alias == "views"


def test_a_class_moves_so_that_the_joined_tensor_lies_where_it_is_asked_to() -> None:
    drawn = graphs.graph("x -> a : CONV_2D\na -> b : RELU\nb -> y : CONV_2D", {"x": 64, "a": 48, "b": 16, "y": 64},
                         "x", "y")  # fmt: skip
    number = {tensor.name: t for t, tensor in enumerate(drawn.tensors)}
    x, a, b, y = (number[name] for name in "xaby")
    found = Classes(drawn, [(Member(x),), (Member(a), Member(b, 32)), (Member(y),)])
    found.join(b, x, 40)
    assert found.delta == {x: 0, a: 8, b: 40, y: 0}
    found.join(b, y, 8)
    assert found.delta == {x: 0, a: 8, b: 40, y: 32}
    assert found.span(x) == 96
    assert list(found.rows()) == [(Member(y, 32), Member(x, 0), Member(a, 8), Member(b, 40))]

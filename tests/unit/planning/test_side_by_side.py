"""Joins and splits whose parts stand inside of the whole: what it saves, what is left out, and that it is safe."""

from __future__ import annotations

from pathlib import Path

import commands
import numpy as np
import pytest
import strategies
from graphs import graph
from hypothesis import given
from shares import examples

from modelplan import Graph, Op, Options, RequestError, Tensor, check, height, plan
from modelplan.formats import load_model

ROOT = Path(__file__).resolve().parents[3]


def joining(*, late: bool = False, size: int = 64) -> Graph:
    """x -> a, a short way to b, then the join of a and b; `late`: a is read again behind it."""
    drawn = graph(
        f"""
        x   -> a : CONV_2D
        a   -> c : CONV_2D
        c   -> b : CONV_2D
        a b -> j : CONCATENATION
        j   -> y : CONV_2D
        y {"a" if late else "y"} -> z : ADD
        """,
        {"x": 16, "a": size, "c": 16, "b": 32, "j": size + 32, "y": 16, "z": 16},
        inputs="x",
        outputs="z",
    )
    ops = tuple(Op(o.name, o.kind, o.inputs, o.outputs, (("axis", 0),)) for o in drawn.ops)
    return Graph(drawn.name, drawn.format, drawn.tensors, ops, drawn.inputs, drawn.outputs)


def planned(drawn: Graph, *, joins: bool) -> int:
    made = plan(drawn, Options(runtime="generic", alias="none", schedule="file", joins=joins))
    check(made.problem, made.placement)
    return height(made.problem, made.placement)


@pytest.mark.parametrize("late", [False, True])
def test_a_join_has_nothing_to_copy(*, late: bool) -> None:
    """Before, the parts and the whole are alive at the join; then the whole alone."""
    assert planned(joining(late=late), joins=False) == 64 + 32 + 96
    made = plan(joining(late=late), Options(runtime="generic", alias="none", schedule="file", joins=True))
    assert height(made.problem, made.placement) == 96 + 16
    offset = dict(zip(made.problem.names, made.placement.offsets.tolist(), strict=True))
    assert (offset["a"], offset["b"]) == (offset["j"], offset["j"] + 64)
    assert not made.schedule.optimal or made.schedule.lower_bound == 96


def test_a_part_with_a_view_is_joined_where_both_die_there() -> None:
    """The view takes no bytes of its own; read behind the join it could change, so it is left out then."""
    heights = []
    for last in ("y y", "y a"):
        drawn = graph(
            f"""
            x   -> a : CONV_2D
            a   -> v : RESHAPE
            v   -> c : CONV_2D
            c   -> b : CONV_2D
            v b -> j : CONCATENATION
            j   -> y : CONV_2D
            {last} -> z : ADD
            """,
            {"x": 16, "a": 64, "v": 64, "c": 16, "b": 32, "j": 96, "y": 16, "z": 16},
            inputs="x",
            outputs="z",
        )
        ops = tuple(Op(o.name, o.kind, o.inputs, o.outputs, (("axis", 0),)) for o in drawn.ops)
        options = Options(runtime="generic", alias="views", schedule="file", joins=True)
        made = plan(Graph(drawn.name, drawn.format, drawn.tensors, ops, drawn.inputs, drawn.outputs), options)
        heights.append(height(made.problem, made.placement))
    assert heights == [96 + 16, 64 + 32 + 96]


def test_a_part_that_would_stand_between_two_alignments_is_left_out() -> None:
    assert planned(joining(size=40), joins=True) == planned(joining(size=40), joins=False)


def test_a_part_takes_its_bytes_only_while_it_lives() -> None:
    """One merge for the whole would keep its bytes from the first part on; alias mode max needs more here."""
    unet = load_model(str(ROOT / "models" / "unet_small.onnx"), [], [])
    heights = [
        height(made.problem, made.placement)
        for made in (
            plan(unet, Options(runtime="generic", alias="max")),
            plan(unet, Options(runtime="generic", joins=True)),
        )
    ]
    assert heights == [491520, 393216]


@pytest.mark.slow
@examples(60)
@given(strategies.dags(most=7))
def test_joins_never_need_more_and_are_proved(drawn: Graph) -> None:
    """Every ADD becomes a join of its operands; the verifier replays each plan."""
    tensors, ops = list(drawn.tensors), list[Op]()
    for op in drawn.ops:
        distinct = tuple(dict.fromkeys(op.inputs))
        if op.kind == "ADD" and len(distinct) > 1:
            out = op.outputs[0]
            tensors[out] = Tensor(tensors[out].name, (sum(tensors[t].shape[0] for t in distinct),), "int8")
            op = Op("", "CONCATENATION", distinct, op.outputs, (("axis", 0),))
        ops.append(op)
    joined = Graph(drawn.name, drawn.format, tuple(tensors), tuple(ops), drawn.inputs, drawn.outputs)
    for alias in ("none", "views", "max"):
        with_joins, without = (
            plan(joined, Options(runtime="generic", alias=alias, alignment=1, joins=joins)) for joins in (True, False)
        )
        assert height(with_joins.problem, with_joins.placement) <= height(without.problem, without.placement)


def test_what_cannot_go_with_joins_is_refused() -> None:
    with pytest.raises(RequestError, match="joins go with no contiguous lists, streams"):
        plan(joining(), Options(runtime="generic", joins=True, streams=2))


def test_values_stay_equal_on_a_real_network(tmp_path: Path) -> None:
    model, stored = ROOT / "models" / "unet_small.onnx", tmp_path / "plan.json"
    assert (
        commands.run("analyze", model, "--runtime", "generic", "--contiguous", "joins", "--json", stored).returncode
        == 0
    )
    pytest.importorskip("onnxruntime")
    done = commands.run("verify", stored, "--model", model)
    assert done.returncode == 0
    assert "bit-exact against ONNX Runtime" in done.stdout


def test_the_rows_hold_each_buffer_once() -> None:
    made = plan(joining(), Options(runtime="generic", alias="none", joins=True))
    members = made.problem.groups[:, 0]
    assert len(members) == len(np.unique(members)) == 3

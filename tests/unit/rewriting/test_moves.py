"""Operators that only move: TRANSPOSEs that cancel, SPLITs as slices, parts of a CONCATENATION in their places."""

from __future__ import annotations

import contextlib
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from random_cnns import Network, headed_cnn
from striped_files import graph_of, striped, with_offset

from modelplan import BrokenPlanError
from modelplan.checking.verifier.rewrites.proving import prove_rewrite
from modelplan.formats.tflite.flatbuffer_tables import OPTIONS
from modelplan.rewriting.striped_tflite.building import striped_program
from modelplan.rewriting.striped_tflite.folded_convolutions import Folded
from modelplan.rewriting.striped_tflite.joining import joined_parts, with_joins
from modelplan.rewriting.striped_tflite.ladder import climb
from modelplan.rewriting.striped_tflite.placing import no_overlaps
from modelplan.rewriting.striped_tflite.rungs import Goal, ModelOnTarget
from modelplan.rewriting.striped_tflite.slicing import with_slices
from modelplan.rewriting.striped_tflite.steps import TfliteProgram
from modelplan.rewriting.striped_tflite.turning import with_fewer_transposes
from modelplan.rewriting.striped_tflite.writing import write_striped
from modelplan.rewriting.stripes.stretches import CarryingLoop, KeptHalo
from modelplan.runtimes.tflm import planner
from modelplan.runtimes.tflm.file import read_tflite

FIRST, LAST = (0, 3, 1, 2), (0, 2, 3, 1)
POOL = (1, 1, 1, 2, 2, 0)


@pytest.fixture
def net() -> Network:
    return Network(np.random.default_rng(3))


def pooled(net: Network, x: int, channels: int = 3) -> int:
    _, height, width, _ = net.shapes[x]
    return net.operator(
        "MAX_POOL_2D", [x], net.tensor((1, height - 1, width - 1, channels)), OPTIONS["MAX_POOL_2D"], POOL
    )


def turned(data: bytes, folder: Path) -> TfliteProgram | None:
    return with_fewer_transposes(data, graph_of(data, folder))


def kinds(program: TfliteProgram | None) -> list[str]:
    assert program is not None
    return [step.kind for step in program.steps]


def test_transposes_that_cancel_are_left_out(net: Network, tmp_path: Path) -> None:
    x = net.tensor((1, 9, 8, 3))
    first = net.turned(pooled(net, x), FIRST)
    a, b = net.parts(net.pad(first), "SPLIT_V", 1)
    joined = net.join(b, net.rescaled(a), 1)
    last = net.turned(net.block(joined, "STRIDED_SLICE"), LAST)
    data = net.file(x, pooled(net, last, net.shapes[last][3]))
    program = turned(data, tmp_path)
    assert kinds(program) == [
        "MAX_POOL_2D", "PAD", "SPLIT_V", "QUANTIZE", "CONCATENATION", "STRIDED_SLICE", "MAX_POOL_2D"
    ]  # fmt: skip
    assert program is not None
    assert [verdict.outcome for verdict in prove_rewrite(data, write_striped(data, program)[0])] == ["ok", "ok"]


def test_a_transpose_moves_where_it_has_fewer_bytes(net: Network, tmp_path: Path) -> None:
    x = net.tensor((1, 3, 9, 8))
    pads = net.tensor((4, 2), 2, None, np.array([0, 0, 0, 0, 1, 1, 9, 9], dtype=np.int32).tobytes())
    padded = net.operator("PAD", [x, pads], net.tensor((1, 3, 11, 26)))
    program = turned(net.file(x, pooled(net, net.turned(padded, LAST))), tmp_path)
    assert kinds(program) == ["TRANSPOSE", "PAD", "MAX_POOL_2D"]


def headed(net: Network, shape: tuple[int | str, ...], order: tuple[int, ...]) -> bytes:
    """A map, turned, in another shape, and turned again."""
    x = net.tensor((1, 6, 5, 3))
    first = net.turned(net.window(x, "CONV_2D", 4), FIRST)
    _, deep, high, wide = net.shapes[first]
    flat = net.rescaled(net.reshaped(first, tuple({"C": deep, "P": high * wide, 1: 1}[n] for n in shape)))
    return net.file(x, net.rescaled(net.turned(flat, order)))


@pytest.mark.parametrize(("shape", "order"), [((1, "C", "P"), (0, 2, 1)), ((1, "C", 1, "P"), (0, 2, 3, 1))])
def test_transposes_cancel_around_a_reshape_that_keeps_axes_apart(
    net: Network, tmp_path: Path, shape: tuple[int | str, ...], order: tuple[int, ...]
) -> None:
    data = headed(net, shape, order)
    program = turned(data, tmp_path)
    assert "TRANSPOSE" not in kinds(program)
    assert program is not None
    model, _ = write_striped(data, program)
    assert [verdict.outcome for verdict in prove_rewrite(data, model)] == ["ok", "ok"]
    at = [step.kind for step in program.steps].index("RESHAPE")
    number = program.steps[at].inputs[1] - len(program.graph.tensors)
    program.added[number] = replace(program.added[number], numbers=(1, 2, 60))
    with contextlib.suppress(BrokenPlanError):
        outcomes = [verdict.outcome for verdict in prove_rewrite(data, write_striped(data, program)[0])]
        assert outcomes != ["ok", "ok"]


def test_a_reshape_that_mixes_axes_stays_between_transposes(net: Network, tmp_path: Path) -> None:
    assert turned(headed(net, (1, "P", "C"), (0, 2, 1)), tmp_path) is None


def test_an_output_keeps_its_tensor(net: Network, tmp_path: Path) -> None:
    x = net.tensor((1, 9, 8, 3))
    y = net.turned(net.rescaled(net.turned(pooled(net, x), FIRST)), LAST)
    program = turned(net.file(x, y), tmp_path)
    assert kinds(program) == ["MAX_POOL_2D", "QUANTIZE"]
    assert program is not None
    assert program.steps[-1].outputs == (y,)


def test_an_input_that_is_an_output_too_stays(net: Network, tmp_path: Path) -> None:
    x = net.tensor((1, 9, 8, 3))
    assert turned(net.file(x, net.turned(net.turned(x, FIRST), LAST)), tmp_path) is None


def test_numbers_for_each_channel_are_turned(net: Network, tmp_path: Path) -> None:
    x = net.tensor((1, 9, 8, 3))
    first, row = net.turned(pooled(net, x), FIRST), net.tensor((3, 1, 1), data=bytes((5, 6, 7)))
    data = net.file(x, pooled(net, net.turned(net.add(first, row), LAST)))
    program = turned(data, tmp_path)
    assert kinds(program) == ["MAX_POOL_2D", "ADD", "MAX_POOL_2D"]
    assert program is not None
    assert program.shape(program.steps[1].inputs[1]) == (1, 1, 1, 3)
    assert [verdict.outcome for verdict in prove_rewrite(data, write_striped(data, program)[0])] == ["ok", "ok"]


def test_maps_beside_numbers_of_a_plane_are_not_turned(net: Network, tmp_path: Path) -> None:
    x = net.tensor((1, 9, 8, 3))
    first, plane = net.turned(pooled(net, x), FIRST), net.tensor((8, 7), data=bytes(56))
    assert turned(net.file(x, pooled(net, net.turned(net.add(first, plane), LAST))), tmp_path) is None


def test_numbers_along_another_axis_are_refused(net: Network, tmp_path: Path) -> None:
    x = net.tensor((1, 4, 4, 3))
    first, row = net.turned(pooled(net, x), FIRST), net.tensor((3, 1, 1), data=bytes((5, 6, 7)))
    data = net.file(x, pooled(net, net.turned(net.add(first, row), LAST)))
    program = turned(data, tmp_path)
    assert program is not None
    numbers = program.steps[1].inputs[1] - len(program.graph.tensors)
    program.added[numbers] = replace(program.added[numbers], shape=(1, 3, 1, 1))
    with pytest.raises(BrokenPlanError, match="differs from the model's"):
        prove_rewrite(data, write_striped(data, program)[0])


def test_parts_are_written_as_slices(net: Network, tmp_path: Path) -> None:
    x = net.tensor((1, 8, 8, 4))
    a, _ = net.parts(x, "SPLIT", 3)
    b, _ = net.parts(a, "SPLIT_V", 1)
    c = net.operator("GATHER", [b, net.numbers((1, 4, 7))], net.tensor((1, 4, 3, 2)), (4, 4), (2, 0))
    d = net.operator("GATHER", [c, net.numbers((0, 2, 1))], net.tensor((1, 3, 3, 2)), (4, 4), (1, 0))
    data = net.file(x, d)
    program = with_slices(data, graph_of(data, tmp_path))
    assert kinds(program) == ["SLICE"] * 4 + ["STRIDED_SLICE", "GATHER"]
    assert program is not None
    assert [verdict.outcome for verdict in prove_rewrite(data, write_striped(data, program)[0])] == ["ok", "ok"]


def unpacked_and_packed(net: Network, folder: Path) -> tuple[bytes, TfliteProgram]:
    """A network that takes the channels of a map apart and joins them again, and its program with slices."""
    x = net.tensor((1, 8, 6, 3))
    a, b, c = net.unpacked(pooled(net, x), 3)
    y = net.packed([net.add(a, c), b, a], 3)
    data = net.file(x, pooled(net, y))
    program = with_slices(data, graph_of(data, folder))
    assert program is not None
    return data, program


def test_indices_of_an_axis_are_slices_in_another_shape_and_go_in_stripes(net: Network, tmp_path: Path) -> None:
    data, program = unpacked_and_packed(net, tmp_path)
    assert kinds(program) == ["MAX_POOL_2D", *["SLICE", "RESHAPE"] * 3, "ADD", "PACK", "MAX_POOL_2D"]
    made = striped(write_striped(data, program)[0], tmp_path, KeptHalo, cuts=(0, 1, 4, 6))
    assert {step.kind for step in made.program.steps} >= {"RESHAPE", "PACK", "ADD"}
    assert [verdict.outcome for verdict in prove_rewrite(data, made.file())] == ["ok", "ok"]


@pytest.mark.parametrize("place", [0, 1])
def test_another_index_of_an_axis_is_refused(net: Network, tmp_path: Path, place: int) -> None:
    data, program = unpacked_and_packed(net, tmp_path)
    slices = [step for step in program.steps if step.kind == "SLICE"]
    at = program.steps.index(slices[place])
    begin = program.constant([0, 0, 0, 1 - place])
    program.steps[at] = replace(slices[place], inputs=(slices[place].inputs[0], begin, slices[place].inputs[2]))
    with pytest.raises(BrokenPlanError):
        prove_rewrite(data, write_striped(data, program)[0])


@pytest.mark.parametrize(("shape", "outcome"), [((1, 8, 9), "ok"), ((1, 9, 8), ""), ((1, -1, 9), "ok")])
def test_another_shape_is_refused(net: Network, tmp_path: Path, shape: tuple[int, ...], outcome: str) -> None:
    """The numbers say what other runtimes make of it; TFLM takes the shape of the output."""
    x = net.tensor((1, 8, 3, 3))
    data = net.file(x, net.rescaled(net.reshaped(x, (1, 8, 9))))
    program = striped_program(graph_of(data, tmp_path), range(2), ())
    program.steps[0] = replace(program.steps[0], inputs=(x, program.constant(shape)))
    try:
        found = max(verdict.outcome for verdict in prove_rewrite(data, write_striped(data, program)[0]))
    except BrokenPlanError:
        assert not outcome
    else:
        assert found == outcome


def test_a_loop_that_carries_rows_cuts_slices_for_its_rows(net: Network, tmp_path: Path) -> None:
    x, begin, size = net.tensor((1, 24, 8, 4)), net.numbers((0, 0, 0, 1)), net.numbers((1, 24, 8, 2))
    a = net.operator("SLICE", [x, begin, size], net.tensor((1, 24, 8, 2)))
    y = net.operator("MAX_POOL_2D", [a], net.tensor((1, 12, 4, 2)), OPTIONS["MAX_POOL_2D"], (1, 2, 2, 2, 2, 0))
    made = striped(net.file(x, y), tmp_path, CarryingLoop, cuts=tuple(range(0, 13, 2)))
    assert [verdict.outcome for verdict in prove_rewrite(made.data, made.file())] == ["ok", "ok"]


def test_slices_in_place_of_parts_have_to_be_registered(net: Network, tmp_path: Path) -> None:
    x = net.tensor((1, 8, 8, 4))
    data = net.file(x, net.parts(x, "SPLIT", 3)[0])
    model = ModelOnTarget(data, graph_of(data, tmp_path), "parts", Goal())
    program = with_slices(data, model.graph)
    assert program is not None
    sliced = model.rewritten(write_striped(data, program)[0])
    plain = striped_program(sliced.graph, range(len(sliced.graph.ops)), ())
    assert sliced.packed_rung("split", plain, no_overlaps, 0).added == ("SLICE",)
    assert sliced.time == model.time


@pytest.mark.parametrize(("kind", "operands"), [("SPLIT", (5, 0)), ("SPLIT", (-1, 0)), ("GATHER", (0, 9))])
def test_parts_that_contradict_the_file_stay(
    net: Network, tmp_path: Path, kind: str, operands: tuple[int, int]
) -> None:
    """An axis that is none, parts that reach beyond the map, and an index that is none of it."""
    x = net.tensor((1, 8, 8, 4))
    steering = net.numbers(operands[:1] if kind == "SPLIT" else operands)
    inputs = [steering, x] if kind == "SPLIT" else [x, steering]
    y = net.operator(kind, inputs, net.tensor((1, 2, 8, 5)), (4, 4), (1, 0))
    data = net.file(x, y)
    assert with_slices(data, graph_of(data, tmp_path)) is None


def test_parts_of_another_scale_stay(net: Network, tmp_path: Path) -> None:
    x = net.tensor((1, 8, 8, 4), scale=(0.07, 2))
    data = net.file(x, net.parts(x, "SPLIT", 3)[0])
    assert with_slices(data, graph_of(data, tmp_path)) is None


def test_parts_of_a_join_lie_in_their_places(net: Network, tmp_path: Path) -> None:
    """One of them twice, one an input of the model, and a join of a join."""
    x = net.tensor((1, 6, 4, 3))
    a, b = net.rescaled(x), net.rescaled(x)
    view = net.reshaped(b, (1, 6, 4, 3))
    inner = net.join(a, view, 1)
    y = net.operator("CONCATENATION", [x, inner, a], net.tensor((1, 24, 4, 3)), (4, 1), (1, 0))
    graph = with_joins(Folded(graph_of(net.file(x, y), tmp_path), (0, 1, 2, 3, 4))).graph
    assert {t: (part.whole, part.byte) for t, part in joined_parts(graph).items()} == {
        inner: (y, 72), a: (y, 216), b: (y, 144)
    }  # fmt: skip
    program = striped_program(graph, range(5), ())
    assert {t: place.delta for t, place in program.group_offsets.items()} == {
        x: 0, y: 0, inner: 72, a: 216, b: 144, view: 144
    }  # fmt: skip


def test_what_is_no_run_of_bytes_is_not_joined_in_place(net: Network, tmp_path: Path) -> None:
    x = net.tensor((1, 6, 4, 3))
    whole = Folded(graph_of(net.file(x, net.join(net.rescaled(x), net.rescaled(x), 3)), tmp_path), (0, 1, 2))
    assert with_joins(whole) is whole


def test_heads_take_no_bytes_beside_the_result(tmp_path: Path) -> None:
    path = tmp_path / "headed.tflite"
    path.write_bytes(headed_cnn(8))
    ladder = climb(path, Goal(objective="head", without=frozenset({"split"})))
    as_is, views = ladder.rungs[0], next(rung for rung in ladder.rungs if rung.name == "views")
    assert views.head < as_is.head
    assert ladder.chosen is not as_is
    assert [verdict.outcome for verdict in ladder.proof[:2]] == ["ok", "ok"]


def test_a_part_beside_its_place_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "headed.tflite"
    path.write_bytes(headed_cnn(8))
    ladder = climb(path, Goal(objective="head", without=frozenset({"split"})), proved=False)
    assert ladder.model is not None
    file = read_tflite(ladder.model, "headed")
    offsets = planner.read_plan(file) or ()
    reshape, join = file.subgraphs[0].ops[-2:]
    assert (reshape.kind, join.kind, join.inputs[-1]) == ("RESHAPE", "CONCATENATION", reshape.outputs[0])
    moved = ladder.model
    for t in (reshape.inputs[0], reshape.outputs[0]):
        moved = with_offset(moved, t, offsets[t] + 1)
    with pytest.raises(BrokenPlanError, match=r"CONCATENATION .* over bytes"):
        prove_rewrite(path.read_bytes(), moved)


def test_the_ladder_shows_what_is_turned(net: Network, tmp_path: Path) -> None:
    x = net.tensor((1, 9, 8, 3))
    y = pooled(net, net.turned(net.pad(net.turned(pooled(net, x), FIRST)), LAST), net.shapes[x][3])
    path = tmp_path / "exported.tflite"
    path.write_bytes(net.file(x, y))
    ladder = climb(path, Goal(objective="head", without=frozenset({"split"})), proved=False)
    turn = next(rung for rung in ladder.rungs if rung.name == "turn")
    assert turn.ops == ladder.rungs[0].ops - 2
    assert turn.time < 1
    without = climb(path, Goal(objective="head", without=frozenset({"split", "turn"})), proved=False)
    assert all(rung.name != "turn" for rung in without.rungs)

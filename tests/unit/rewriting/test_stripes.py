"""Windows, rows of stripes, lives of bytes, packing of rigid groups, and what the replay finds."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from program_replay import replay_steps
from row_windows import input_window

from modelplan.model import Graph, Kind, Op, Tensor, bounds
from modelplan.ops.tflite import OPERATORS
from modelplan.primitives.errors import BrokenPlanError
from modelplan.rewriting.striped_tflite import costs, placing
from modelplan.rewriting.striped_tflite.building import striped_program
from modelplan.rewriting.striped_tflite.layers import layer_of, stretch_layers
from modelplan.rewriting.striped_tflite.steps import TfliteProgram, block_runs
from modelplan.rewriting.stripes.carried_rows import carried_rows
from modelplan.rewriting.stripes.group_packing import (
    GroupPacking,
    LiveBytes,
    MemoryAccess,
    as_problem,
    byte_lives,
    check_packing,
    glance,
    group_problem,
    pack,
)
from modelplan.rewriting.stripes.loop_rows import loop_rows, tiling
from modelplan.rewriting.stripes.row_windows import IllegalStripeError, Layer, rows_of_window
from modelplan.rewriting.stripes.stretches import (
    CarryingLoop,
    KeptHalo,
    LoopedStripes,
    RecomputedHalo,
    RollingStripes,
    StripedStretch,
    as_strategy,
)
from modelplan.rewriting.stripes.stripe_rows import stripe_rows
from modelplan.runtimes import runtime


def same(rows: int, reach: int, stride: int) -> Layer:
    """A window that pads as SAME does."""
    made = -(-rows // stride)
    above = max((made - 1) * stride + reach - rows, 0) // 2
    return Layer("window", (0,), rows, made, 1, reach, stride, above, own=True, across=(1, 1))


def plain_rows(layer: Layer, values: list[int], above: int, made: int) -> list[tuple[int, ...]]:
    """What each output row reads: -1 stands for padding."""
    rows = []
    for row in range(made):
        first = row * layer.stride - above
        rows.append(tuple(values[i] if 0 <= i < len(values) else -1 for i in range(first, first + layer.reach)))
    return rows


@pytest.mark.slow
@given(st.integers(3, 30), st.integers(1, 7), st.integers(1, 3), st.data())
def test_trimmed_windows_read_what_the_whole_map_does(rows: int, reach: int, stride: int, data: st.DataObject) -> None:
    layer = same(rows, reach, stride)
    a = data.draw(st.integers(0, layer.rows_out - 1))
    b = data.draw(st.integers(a + 1, layer.rows_out))
    whole = plain_rows(layer, list(range(rows)), layer.above, layer.rows_out)
    try:
        window = input_window(layer, a, b, pad=False)
    except IllegalStripeError:
        return
    cut = list(range(window.lo, window.hi))
    made = -(-len(cut) // stride)
    above = max((made - 1) * stride + reach - len(cut), 0) // 2
    part = plain_rows(layer, cut, above, made) if layer.bordered else plain_rows(layer, cut, 0, window.computed)
    assert part[window.skip : window.skip + b - a] == whole[a:b]


@given(st.integers(3, 30), st.integers(1, 7), st.integers(1, 3), st.data())
def test_rows_too_many_are_passed_on_only_where_they_do_no_harm(
    rows: int, reach: int, stride: int, data: st.DataObject
) -> None:
    layer = same(rows, reach, stride)
    a = data.draw(st.integers(0, layer.rows_out - 1))
    b = data.draw(st.integers(a + 1, layer.rows_out))
    i0 = data.draw(st.integers(0, rows - 1))
    i1 = data.draw(st.integers(i0 + 1, rows))
    found = rows_of_window(layer, a, b, i0, i1)
    if found is None:
        return
    skip, made = found
    cut = list(range(i0, i1))
    above = max((made - 1) * stride + reach - len(cut), 0) // 2
    whole = plain_rows(layer, list(range(rows)), layer.above, layer.rows_out)
    assert plain_rows(layer, cut, above, made)[skip : skip + b - a] == whole[a:b]


def test_padding_comes_at_true_borders_only() -> None:
    layer = same(10, 3, 1)
    assert (input_window(layer, 0, 5, pad=True).above, input_window(layer, 0, 5, pad=True).below) == (1, 0)
    assert (input_window(layer, 5, 10, pad=True).above, input_window(layer, 5, 10, pad=True).below) == (0, 1)


@pytest.mark.parametrize("late", [True, False])
def test_every_iteration_of_a_loop_makes_rows_that_are_right(*, late: bool) -> None:
    graph = two_convolutions()
    base = stretch_layers(graph, (0, 1), LoopedStripes(0, 1, 1, (0, 3, 6, 9, 12), trim_late=late))
    found = loop_rows(base, 3)
    assert found.result.starts[-1] + 3 == 12
    taken = found.taken[0, 0]
    assert all(0 <= start <= 12 - taken.extent for start in taken.starts)
    assert found.computed[1] == (7 if late else 5)


def test_a_loop_of_tiles_makes_every_element_once_in_order() -> None:
    graph = two_convolutions()
    stretch = LoopedStripes(0, 1, 1, (0, 6, 12), columns=2)
    found = tiling(stretch_layers(graph, (0, 1), stretch))
    starts = [axis_rows.result.starts for axis_rows in found.both_axes]
    assert found.begins(starts) == tuple((0, row, column, 0) for row in (0, 6) for column in (0, 2, 4))


def test_a_block_is_made_of_runs_of_bytes() -> None:
    assert block_runs((1, 4, 6, 2), (1, 2, 6, 2), (0, 1, 0, 0), 1) == [(12, 36)]
    assert block_runs((1, 4, 6, 2), (1, 2, 3, 2), (0, 2, 3, 0), 2) == [(60, 72), (84, 96)]


def test_bytes_live_from_their_writing_to_their_last_reading() -> None:
    rows = [MemoryAccess(0, 0, 8, 0, True, 0), MemoryAccess(0, 0, 4, 1, False, 0), MemoryAccess(0, 4, 8, 3, False, 0)]
    assert byte_lives(rows).tolist() == [[0, 0, 4, 0, 2], [0, 4, 8, 0, 4]]


def test_rows_that_are_taken_along_save_an_operator_and_make_more() -> None:
    graph = two_convolutions()
    cut, along = (
        striped_program(graph, (0, 1), (replace(STRIPES, untrimmed=ops),)) for ops in (frozenset[int](), frozenset({1}))
    )
    assert len(along.steps) == len(cut.steps) - 1
    assert costs.program_macs(along) > costs.program_macs(cut)


def test_rows_of_one_map_are_made_again_beside_others_that_are_kept() -> None:
    graph = two_convolutions()
    kept, again = (
        striped_program(graph, (0, 1), (replace(STRIPES, recomputed=ops),))
        for ops in (frozenset[int](), frozenset({0}))
    )
    joins = [sum(step.kind == "CONCATENATION" for step in program.steps) for program in (kept, again)]
    assert joins == [3, 1]
    assert costs.program_macs(again) > costs.program_macs(kept)


def two_convolutions() -> Graph:
    """Two 3x3 convolutions over a map of 12 rows."""
    maps = [Tensor(f"map{i}", (1, 12, 6, 4), "int8") for i in range(3)]
    weights = [Tensor(f"weights{i}", (4, 3, 3, 4), "int8", Kind.CONSTANT) for i in range(2)]
    options = (
        ("stride_h", 1),
        ("stride_w", 1),
        ("dilation_h_factor", 1),
        ("dilation_w_factor", 1),
        ("padding", "SAME"),
    )
    ops = tuple(Op(f"conv{i}", "CONV_2D", (i, 3 + i), (i + 1,), options) for i in range(2))
    return Graph("two", "tflite", (*maps, *weights), ops, (0,), (2,))


STRIPES = KeptHalo(0, 1, 1, (0, 4, 8, 12))


AGAIN = as_strategy(STRIPES, RecomputedHalo)
ROLLING = as_strategy(STRIPES, RollingStripes)
OVERLAPS = placing.proved_overlaps(runtime("tflm", "tflite"))
WAYS = [
    STRIPES,
    AGAIN,
    replace(STRIPES, pad=frozenset({0, 1})),
    replace(AGAIN, backward=True),
    as_strategy(STRIPES, LoopedStripes),
    as_strategy(STRIPES, CarryingLoop, cuts=tuple(range(13))),
    replace(AGAIN, trim_late=True),
    replace(STRIPES, recomputed=frozenset({0})),
    replace(STRIPES, untrimmed=frozenset({1})),
    replace(STRIPES, recomputed=frozenset({0}), untrimmed=frozenset({1}), pad=frozenset({0})),
    ROLLING,
    replace(ROLLING, pad_early=True, pad=frozenset({0, 1})),
]


@pytest.mark.parametrize("stretch", WAYS)
def test_stripes_are_packed_so_that_the_replay_holds(stretch: StripedStretch) -> None:
    program = striped_program(two_convolutions(), (0, 1), [stretch])
    overlaps = placing.no_overlaps if not isinstance(stretch, CarryingLoop) else OVERLAPS
    packing = pack(placing.problem_of(program, overlaps, 16), 300)
    replay_steps(program, packing, overlaps)
    assert packing.height >= packing.load >= two_convolutions().tensors[2].nbytes


@pytest.mark.parametrize("stretch", WAYS)
def test_plans_that_are_not_worth_it_are_left_out_by_bytes_that_every_packing_needs(stretch: StripedStretch) -> None:
    program = striped_program(two_convolutions(), (0, 1), [stretch])
    asked: list[int] = []

    def worth(needed: int) -> bool:
        asked.append(needed)
        return True

    parted = placing.whole_program(program, OVERLAPS, lambda _: ())
    whole = parted.problem(16, worth)
    (lasting,) = asked
    problem = as_problem(whole)
    assert 0 < lasting <= whole.load == bounds.load_bound(problem) <= pack(problem, 300).height
    assert glance(whole, 300, 0) == pack(problem, 300)
    found = glance(whole, 300, 0)
    check_packing(whole, found)
    with pytest.raises(BrokenPlanError, match="share bytes"):
        check_packing(whole, replace(found, bases=(0,) * len(found.bases)))
    spread = replace(found, bases=tuple(4096 * at for at in range(len(found.bases))), load=lasting)
    check_packing(whole, spread)
    for known in (found, spread):
        longer = glance(whole, 300, 0, known)
        check_packing(whole, longer)
        assert (longer.height, longer.load) == (found.height, found.load)
    assert glance(whole, 1, 0, found).height == found.height
    with pytest.raises(ValueError, match="not those of all groups"):
        glance(whole, 300, 0, replace(found, bases=found.bases[:-1]))
    left_out = parted.problem(16, lambda _: False)
    assert (len(left_out), left_out.load) == (len(whole), lasting)
    with pytest.raises(ValueError, match="is not told"):
        glance(left_out, 300, 0)


def two_branches() -> Graph:
    """A 3x3 convolution, then another one of it and a 1x1 convolution, padded by channels, and their sum."""
    graph = two_convolutions()
    near, wide = (Tensor(name, (1, 12, 6, channels), "int8") for name, channels in (("near", 2), ("wide", 4)))
    constants = (
        Tensor("weights2", (2, 1, 1, 4), "int8", Kind.CONSTANT),
        Tensor("paddings", (4, 2), "int32", Kind.CONSTANT),
    )
    ops = (
        *graph.ops,
        Op("near", "CONV_2D", (1, 7), (5,), graph.ops[0].attributes),
        Op("pad", "PAD", (5, 8), (6,), (("operand 1", (0, 0, 0, 0, 0, 0, 0, 2)),)),
        Op("add", "ADD", (2, 6), (9,)),
    )
    tensors = (*graph.tensors, near, wide, *constants, Tensor("sum", (1, 12, 6, 4), "int8"))
    return Graph("branches", "tflite", tensors, ops, (0,), (9,))


def test_the_branch_of_shorter_windows_waits_for_the_sum() -> None:
    """Rows of its operand are kept for the other branch anyway; the first convolution waits for nothing."""
    rolling = RollingStripes(0, 4, 1, tuple(range(13)))
    stripes = stripe_rows(stretch_layers(two_branches(), tuple(range(5)), rolling))
    first, near, wide, total = ([rows.computed.get(t) for rows in stripes] for t in (1, 5, 6, 9))
    assert near == wide == total == [None, *((row, row + 1) for row in range(12))]
    assert first == [*((row, row + 1) for row in range(12)), None]
    assert all(rows.seen[t] == rows.computed[t] for rows in stripes[1:] for t in (5, 6))


def carried_program(rows: int) -> TfliteProgram:
    stretch = CarryingLoop(0, 1, 1, tuple(range(0, 13, rows)))
    return striped_program(two_convolutions(), (0, 1), [stretch])


def test_rows_are_carried_behind_each_other() -> None:
    graph = two_convolutions()
    base = stretch_layers(graph, (0, 1), CarryingLoop(0, 1, 1, (0, 4, 8, 12)))
    found = carried_rows(base)
    assert (found.new_rows, found.padded, found.iterations) == ({1: 4, 2: 4}, frozenset({0, 1}), 4)
    assert (found.ahead, found.held) == ({1: 4, 2: 0}, {1: 9, 2: 4})
    for k, (upto, there) in enumerate(zip(found.upto(2), found.upto(1), strict=True)):
        for row in range(max(upto - 4, 0), upto):
            read = range(max(row - 1, 0), min(row + 2, 12))
            assert there - found.held[1] <= read[0] < read[-1] + 1 <= there, (k, row)
    assert found.upto(2)[-1] == 12


def test_one_row_of_padding_serves_all_windows() -> None:
    program = carried_program(2)
    loop = program.steps[0].loop
    assert loop is not None
    padded = [program.shape(step.outputs[0])[1] for step in loop.body if step.kind == "PAD"]
    rows = carried_rows(stretch_layers(two_convolutions(), (0, 1), CarryingLoop(0, 1, 1, tuple(range(0, 13, 2)))))
    assert padded == [1 + 4 + 1, rows.held[1] + 1]  # above the map from outside of the loop there are no rows


@pytest.mark.parametrize(("cuts", "reason"), [((0, 5, 10, 12), "do not go evenly"), ((0, 12), "a loop of")])
def test_rows_that_cannot_be_carried(cuts: tuple[int, ...], reason: str) -> None:
    graph = two_convolutions()
    base = stretch_layers(graph, (0, 1), CarryingLoop(0, 1, 1, cuts))
    with pytest.raises(IllegalStripeError, match=reason):
        carried_rows(base)


def test_rows_move_over_each_other_only_in_kernels_that_copy_front_to_back() -> None:
    assert placing.moves_front_to_back(carried_program(1), OVERLAPS)
    assert not placing.moves_front_to_back(carried_program(1), placing.no_overlaps)


def test_the_replay_finds_a_row_that_is_overwritten() -> None:
    program = striped_program(two_convolutions(), (0, 1), [STRIPES])
    packing = pack(placing.problem_of(program, placing.no_overlaps, 16), 300)
    with pytest.raises(BrokenPlanError, match=r"overwritten|while it reads"):
        replay_steps(program, GroupPacking((0,) * len(packing.bases), 2000, 0), placing.no_overlaps)


def test_an_operator_that_is_no_layer_is_named() -> None:
    graph = two_convolutions()
    ops = (graph.ops[0], replace(graph.ops[1], kind="ARG_MAX"))
    with pytest.raises(IllegalStripeError, match="ARG_MAX"):
        striped_program(replace(graph, ops=ops), (0, 1), [STRIPES])


@given(st.integers(1, 9), st.integers(1, 4), st.integers(0, 3), st.booleans(), st.data())
def test_enlarged_rows_have_all_their_parts(rows: int, stride: int, more: int, own: bool, data: st.DataObject) -> None:
    reach = stride + more
    made = rows * stride if own else (rows - 1) * stride + reach
    layer = Layer("grow", (0,), rows, made, 1, reach, stride, (reach - stride) // 2 if own else 0, own)
    a = data.draw(st.integers(0, made - 1))
    b = data.draw(st.integers(a + 1, made))
    try:
        window = input_window(layer, a, b, pad=False)
    except IllegalStripeError:
        return

    def parts(row: int) -> set[int]:
        return {i for i in range(rows) if 0 <= row - i * stride + layer.above < reach}

    assert set().union(*(parts(row) for row in range(a, b))) <= set(range(window.lo, window.hi))
    assert window.lo * stride + window.skip == a
    assert window.skip + b - a <= window.computed


def test_matrices_go_one_by_one_and_connected_rows_row_by_row() -> None:
    shapes = {"a": (1, 4, 6, 5), "b": (1, 4, 5, 3), "c": (1, 4, 6, 3), "d": (1, 4, 6, 7)}
    maps = tuple(Tensor(name, shape, "int8") for name, shape in shapes.items())
    weights = Tensor("w", (7, 3), "int8", Kind.CONSTANT)
    ops = Op("m", "BATCH_MATMUL", (0, 1), (2,)), Op("f", "FULLY_CONNECTED", (2, 4, -1), (3,))
    graph = Graph("two", "tflite", (*maps, weights), ops, (0, 1), (3,))
    assert [layer.operands for index in (0, 1) if isinstance(layer := layer_of(graph, index, 1), Layer)] == [
        (0, 1),
        (0,),
    ]
    flat = replace(graph, tensors=tuple(replace(t, shape=t.shape[-3:]) for t in graph.tensors))
    one = replace(flat, tensors=tuple(replace(t, shape=(1, *t.shape[1:])) for t in flat.tensors))
    assert "operand 'b' of shape [1, 5, 3] does not go row by row" in str(layer_of(one, 0, 1))
    floats = replace(graph, tensors=tuple(replace(t, dtype="float32") for t in graph.tensors))
    assert all("an order that may depend" in str(layer_of(floats, index, 1)) for index in (0, 1))


def test_reasons_say_what_an_operator_does() -> None:
    graph = two_convolutions()
    for kind, word in [("MEAN", "32 bits"), ("TRANSPOSE", "order"), ("RESHAPE", "rows")]:
        assert word in str(layer_of(replace(graph, ops=(graph.ops[0], replace(graph.ops[1], kind=kind))), 1, 1))


@pytest.mark.parametrize("kind", sorted(OPERATORS.keys() - {"CONV_2D", "DEPTHWISE_CONV_2D", "TRANSPOSE_CONV"}))
def test_what_is_not_split_says_why(kind: str) -> None:
    maps = tuple(Tensor(f"map{i}", (1, 8, 6, 4), "int8") for i in range(2))
    found = layer_of(Graph("one", "tflite", maps, (Op("op", kind, (0,), (1,)),), (0,), (1,)), 0, 1)
    assert isinstance(found, Layer) or len(found.split()) > 3


def test_a_stretch_in_another_strategy_keeps_what_both_state() -> None:
    kept = replace(STRIPES, pad=frozenset({1}), recomputed=frozenset({0}))
    again = as_strategy(kept, RecomputedHalo)
    assert again == RecomputedHalo(0, 1, 1, STRIPES.cuts, pad=frozenset({1}))
    assert as_strategy(again, KeptHalo) == replace(kept, recomputed=frozenset())
    assert as_strategy(kept, LoopedStripes, columns=2) == LoopedStripes(0, 1, 1, STRIPES.cuts, columns=2)
    assert [kept.keeps_rows_of(op) for op in (0, 1)] == [False, True]
    assert not again.keeps_rows_of(1)


def test_working_memory_of_a_kernel_lies_apart_from_what_is_alive_at_its_step() -> None:
    """A value of 64 bytes over steps 0 to 3, 32 bytes of scratch within and 48 behind it."""
    value = LiveBytes(0, 0, 64, 0, 4)
    alone, during, behind = (
        pack(as_problem(group_problem([value], 1, 16, tuple, scratch, lambda: [value]))).height
        for scratch in ([], [(2, 32)], [(4, 48)])
    )
    assert (alone, during, behind) == (64, 96, 64)
    problem = as_problem(group_problem([value], 1, 16, tuple, [(2, 32)]))
    assert (int(problem.size[-1]), int(problem.start[-1]), int(problem.end[-1])) == (32, 3, 4)


@pytest.mark.parametrize(
    ("shape", "kind", "operands"),
    [
        ((1, 8, 6, 4), Kind.ACTIVATION, (0, 1)),
        ((1, 1, 1, 4), Kind.CONSTANT, (0,)),
        ((4,), Kind.CONSTANT, (0,)),
        ((1, 1, 1, 4), Kind.ACTIVATION, None),
        ((1, 8, 6, 4), Kind.CONSTANT, None),
    ],
)
def test_a_sum_goes_by_rows_of_its_maps_with_constants_that_are_the_same_for_each(
    shape: tuple[int, ...], kind: Kind, operands: tuple[int, ...] | None
) -> None:
    tensors = (Tensor("a", (1, 8, 6, 4), "int8"), Tensor("b", shape, "int8", kind), Tensor("y", (1, 8, 6, 4), "int8"))
    found = layer_of(Graph("sum", "tflite", tensors, (Op("op", "ADD", (0, 1), (2,)),), (0, 1), (2,)), 0, 1)
    if operands is None:
        assert str(found).startswith("operand 'b'")
        assert "does not go row by row" in str(found)
    else:
        assert isinstance(found, Layer)
        assert (found.operands, found.rows_in, found.rows_out) == (operands, 8, 8)

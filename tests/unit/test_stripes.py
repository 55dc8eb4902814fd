"""Windows, rows of stripes, lives of bytes, packing of rigid groups, and what the replay finds."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from modelplan.model import Graph, Kind, Op, Tensor
from modelplan.ops.tflite import OPERATORS
from modelplan.primitives.errors import BrokenPlanError
from modelplan.rewriting import costs
from modelplan.rewriting.stripes import placing
from modelplan.rewriting.stripes.building import built
from modelplan.rewriting.stripes.courses import course_of
from modelplan.rewriting.stripes.layers import layer_of
from modelplan.rewriting.stripes.loops import tiling
from modelplan.rewriting.stripes.placing import Packing
from modelplan.rewriting.stripes.program import Access, block_runs, segments
from modelplan.rewriting.stripes.regions import Region, ground
from modelplan.rewriting.stripes.windows import IllegalStripeError, Layer, fed, needed


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
        window = needed(layer, a, b, pad=False)
    except IllegalStripeError:
        return
    cut = list(range(window.lo, window.hi))
    made = -(-len(cut) // stride)
    above = max((made - 1) * stride + reach - len(cut), 0) // 2
    part = plain_rows(layer, cut, above, made) if layer.bordered else plain_rows(layer, cut, 0, window.made)
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
    found = fed(layer, a, b, i0, i1)
    if found is None:
        return
    skip, made = found
    cut = list(range(i0, i1))
    above = max((made - 1) * stride + reach - len(cut), 0) // 2
    whole = plain_rows(layer, list(range(rows)), layer.above, layer.rows_out)
    assert plain_rows(layer, cut, above, made)[skip : skip + b - a] == whole[a:b]


def test_padding_comes_at_true_borders_only() -> None:
    layer = same(10, 3, 1)
    assert (needed(layer, 0, 5, pad=True).above, needed(layer, 0, 5, pad=True).below) == (1, 0)
    assert (needed(layer, 5, 10, pad=True).above, needed(layer, 5, 10, pad=True).below) == (0, 1)


@pytest.mark.parametrize("lazy", [True, False])
def test_every_iteration_of_a_loop_makes_rows_that_are_right(*, lazy: bool) -> None:
    graph = two_convolutions()
    base = ground(graph, (0, 1), Region(0, 1, 1, (0, 3, 6, 9, 12), carry=False, lazy=lazy, loop=True))
    found = course_of(base, base.layers, 3)
    assert found.result.starts[-1] + 3 == 12
    taken = found.taken[0, 0]
    assert all(0 <= start <= 12 - taken.extent for start in taken.starts)
    assert found.made[1] == (7 if lazy else 5)


def test_a_loop_of_tiles_makes_every_element_once_in_order() -> None:
    graph = two_convolutions()
    region = Region(0, 1, 1, (0, 6, 12), carry=False, loop=True, columns=2)
    found = tiling(ground(graph, (0, 1), region))
    starts = [course.result.starts for course in found.courses]
    assert found.begins(starts) == tuple((0, row, column, 0) for row in (0, 6) for column in (0, 2, 4))


def test_a_block_is_made_of_runs_of_bytes() -> None:
    assert list(block_runs((1, 4, 6, 2), (1, 2, 6, 2), (0, 1, 0, 0), 1)) == [(12, 36)]
    assert list(block_runs((1, 4, 6, 2), (1, 2, 3, 2), (0, 2, 3, 0), 2)) == [(60, 72), (84, 96)]


def test_bytes_live_from_their_writing_to_their_last_reading() -> None:
    rows = [Access(0, 0, 8, 0, True, 0), Access(0, 0, 4, 1, False, 0), Access(0, 4, 8, 3, False, 0)]
    assert [(s.lo, s.hi, s.start, s.end) for s in segments(rows)] == [(0, 4, 0, 2), (4, 8, 0, 4)]


def test_rows_that_are_taken_along_save_an_operator_and_make_more() -> None:
    graph = two_convolutions()
    cut, along = (built(graph, (0, 1), (replace(STRIPES, along=ops),)) for ops in (frozenset[int](), frozenset({1})))
    assert len(along.steps) == len(cut.steps) - 1
    assert costs.program_macs(along) > costs.program_macs(cut)


def test_rows_of_one_map_are_made_again_beside_others_that_are_kept() -> None:
    graph = two_convolutions()
    kept, again = (built(graph, (0, 1), (replace(STRIPES, again=ops),)) for ops in (frozenset[int](), frozenset({0})))
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


STRIPES = Region(0, 1, 1, (0, 4, 8, 12))


WAYS = [
    STRIPES,
    replace(STRIPES, carry=False),
    replace(STRIPES, pad=frozenset({0, 1})),
    replace(STRIPES, carry=False, backward=True),
    replace(STRIPES, carry=False, loop=True),
    replace(STRIPES, carry=False, lazy=True),
    replace(STRIPES, again=frozenset({0})),
    replace(STRIPES, along=frozenset({1})),
    replace(STRIPES, again=frozenset({0}), along=frozenset({1}), pad=frozenset({0})),
    replace(STRIPES, paced=True),
    replace(STRIPES, paced=True, early=True, pad=frozenset({0, 1})),
]


@pytest.mark.parametrize("region", WAYS)
def test_stripes_are_packed_so_that_the_replay_holds(region: Region) -> None:
    program = built(two_convolutions(), (0, 1), [region])
    packing = placing.pack(placing.problem_of(program, placing.no_leads, 16), 300)
    placing.replay_steps(program, packing, placing.no_leads)
    assert packing.height >= packing.load >= two_convolutions().tensors[2].nbytes


def test_the_replay_finds_a_row_that_is_overwritten() -> None:
    program = built(two_convolutions(), (0, 1), [STRIPES])
    packing = placing.pack(placing.problem_of(program, placing.no_leads, 16), 300)
    with pytest.raises(BrokenPlanError, match=r"overwritten|while it reads"):
        placing.replay_steps(program, Packing((0,) * len(packing.bases), 2000, 0), placing.no_leads)


def test_an_operator_that_is_no_layer_is_named() -> None:
    graph = two_convolutions()
    ops = (graph.ops[0], replace(graph.ops[1], kind="FULLY_CONNECTED"))
    with pytest.raises(IllegalStripeError, match="FULLY_CONNECTED"):
        built(replace(graph, ops=ops), (0, 1), [STRIPES])


@given(st.integers(1, 9), st.integers(1, 4), st.integers(0, 3), st.booleans(), st.data())
def test_enlarged_rows_have_all_their_parts(rows: int, stride: int, more: int, own: bool, data: st.DataObject) -> None:
    reach = stride + more
    made = rows * stride if own else (rows - 1) * stride + reach
    layer = Layer("grow", (0,), rows, made, 1, reach, stride, (reach - stride) // 2 if own else 0, own)
    a = data.draw(st.integers(0, made - 1))
    b = data.draw(st.integers(a + 1, made))
    try:
        window = needed(layer, a, b, pad=False)
    except IllegalStripeError:
        return

    def parts(row: int) -> set[int]:
        return {i for i in range(rows) if 0 <= row - i * stride + layer.above < reach}

    assert set().union(*(parts(row) for row in range(a, b))) <= set(range(window.lo, window.hi))
    assert window.lo * stride + window.skip == a
    assert window.skip + b - a <= window.made


def test_reasons_say_what_an_operator_does() -> None:
    graph = two_convolutions()
    for kind, word in [("MEAN", "32 bits"), ("TRANSPOSE", "order"), ("RESHAPE", "rows")]:
        assert word in str(layer_of(replace(graph, ops=(graph.ops[0], replace(graph.ops[1], kind=kind))), 1, 1))


@pytest.mark.parametrize("kind", sorted(OPERATORS.keys() - {"CONV_2D", "DEPTHWISE_CONV_2D", "TRANSPOSE_CONV"}))
def test_what_is_not_split_says_why(kind: str) -> None:
    maps = tuple(Tensor(f"map{i}", (1, 8, 6, 4), "int8") for i in range(2))
    found = layer_of(Graph("one", "tflite", maps, (Op("op", kind, (0,), (1,)),), (0,), (1,)), 0, 1)
    assert isinstance(found, Layer) or len(found.split()) > 3

"""Access maps beside brute force: intervals through views, and values that change where an operand does."""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from needed_boxes import carried, needed, rows

from modelplan import Graph, Op, Tensor
from modelplan.checking.verifier.moves import use_of
from modelplan.checking.verifier.places import places_read
from modelplan.checking.verifier.program import graph_program
from modelplan.checking.verifier.rewrites.needs import elements_behind
from modelplan.ops import access_of
from modelplan.ops.access import AccessMap, Reads, Span
from modelplan.ops.access.other_extents import groups, refined, view_start
from modelplan.ops.access.rows import row_span

Shape = tuple[int, ...]


def views(extents: list[int], cuts: list[bool]) -> Shape:
    """The extents with some neighbours merged into one axis."""
    merged = [extents[0]]
    for extent, cut in zip(extents[1:], cuts, strict=False):
        if cut:
            merged.append(extent)
        else:
            merged[-1] *= extent
    return tuple(merged)


@given(st.lists(st.integers(1, 4), min_size=1, max_size=5), st.lists(st.booleans(), min_size=4, max_size=4),
       st.lists(st.booleans(), min_size=4, max_size=4), st.data())  # fmt: skip
def test_a_box_is_inside_of_what_it_is_carried_to(
    extents: list[int], cuts: list[bool], others: list[bool], data: st.DataObject
) -> None:
    shape, view = views(extents, cuts), views(extents, others)
    box = tuple(sorted(data.draw(st.tuples(*2 * [st.integers(0, extent)]))) for extent in shape)
    mask = np.zeros(shape, bool)
    mask[tuple(slice(a, b) for a, b in box)] = True
    seen = np.argwhere(mask.reshape(view))
    found = carried(tuple((a, b) for a, b in box), shape, view)
    for place, (a, b) in zip(seen.T, found, strict=True):
        assert not len(place) or a <= place.min() <= place.max() < b
    fine = refined(shape, view)
    assert prod(fine) == prod(shape)
    assert [g.b - g.a for g in groups(shape, fine)]


def elements(reads: Reads, shape: Shape, result: Shape) -> list[set[int]]:
    """For each element of the result the elements of the operand that it reads, one index after the other."""
    whole = np.arange(prod(shape)).reshape(reads.source)
    sets = []
    for index in np.ndindex(*reads.result):
        places = []
        for span, extent in zip(reads.spans, reads.source, strict=True):
            y = index[span.axis] if span.axis >= 0 else 0
            first, last = span.table[y] if span.table else (
                (span.mul * y + span.lo) // span.div, (span.mul * y + span.hi) // span.div)  # fmt: skip
            inside = range(first, last + 1, span.step)
            places.append([p for p in inside if 0 <= p < extent])
        sets.append(set(whole[np.ix_(*places)].ravel().tolist()) if places else {0})
    assert len(sets) == prod(result)
    return sets


def graph_of(form: Any, kind: str, shapes: list[Shape], results: list[Shape], **attributes: object) -> Graph:
    tensors = [Tensor(f"x{k}", shape, "float32") for k, shape in enumerate(shapes)]
    tensors += [Tensor(f"y{k}", shape, "float32") for k, shape in enumerate(results)]
    named = tuple((name.replace("operand_", "operand "), value) for name, value in attributes.items())
    ins, outs = tuple(range(len(shapes))), tuple(range(len(shapes), len(tensors)))
    op = Op("", kind, ins, outs, named, 18)  # type: ignore[arg-type]
    return Graph("g", form, tuple(tensors), (op,), ins, outs)


#: Operators with a value of the result for each element of operand 0: numpy says which.
MOVES: list[tuple[Graph, Any]] = [
    (graph_of("tflite", "SPACE_TO_DEPTH", [(1, 4, 6, 3)], [(1, 2, 3, 12)], block_size=2),
     lambda x: x.reshape(1, 2, 2, 3, 2, 3).transpose(0, 1, 3, 2, 4, 5).reshape(1, 2, 3, 12)),
    (graph_of("tflite", "DEPTH_TO_SPACE", [(1, 2, 3, 12)], [(1, 4, 6, 3)], block_size=2),
     lambda x: x.reshape(1, 2, 3, 2, 2, 3).transpose(0, 1, 3, 2, 4, 5).reshape(1, 4, 6, 3)),
    (graph_of("onnx", "DepthToSpace", [(1, 8, 2, 3)], [(1, 2, 4, 6)], blocksize=2),
     lambda x: x.reshape(1, 2, 2, 2, 2, 3).transpose(0, 3, 4, 1, 5, 2).reshape(1, 2, 4, 6)),
    (graph_of("onnx", "DepthToSpace", [(1, 8, 2, 3)], [(1, 2, 4, 6)], blocksize=2, mode="CRD"),
     lambda x: x.reshape(1, 2, 2, 2, 2, 3).transpose(0, 1, 4, 2, 5, 3).reshape(1, 2, 4, 6)),
    (graph_of("onnx", "SpaceToDepth", [(1, 2, 4, 6)], [(1, 8, 2, 3)], blocksize=2),
     lambda x: x.reshape(1, 2, 2, 2, 3, 2).transpose(0, 3, 5, 1, 2, 4).reshape(1, 8, 2, 3)),
    (graph_of("tflite", "TRANSPOSE", [(2, 3, 4)], [(4, 2, 3)], operand_1=(2, 0, 1)), lambda x: x.transpose(2, 0, 1)),
    (graph_of("tflite", "REVERSE_V2", [(3, 4)], [(3, 4)], operand_1=(1,)), lambda x: x[:, ::-1]),
    (graph_of("tflite", "STRIDED_SLICE", [(5, 6)], [(2, 2)], operand_1=(1, 5), operand_2=(5, 0), operand_3=(2, -3)),
     lambda x: x[1:5:2, 5:0:-3]),
    (graph_of("tflite", "STRIDED_SLICE", [(5, 6)], [(6,)], operand_1=(-1, 0), operand_2=(5, 6), operand_3=(1, 1),
              shrink_axis_mask=1), lambda x: x[-1]),
    (graph_of("onnx", "Slice", [(5, 6)], [(5, 2)], operand_1=(4,), operand_3=(-1,)), lambda x: x[:, 4:]),
    (graph_of("tflite", "TILE", [(2, 3)], [(4, 9)]), lambda x: np.tile(x, (2, 3))),
    (graph_of("onnx", "Expand", [(3, 1)], [(2, 3, 4)]), lambda x: np.broadcast_to(x, (2, 3, 4))),
    (graph_of("tflite", "GATHER", [(2, 5, 2), (3,)], [(2, 3, 2)], axis=1, operand_1=(4, 0, 0)),
     lambda x: x[:, [4, 0, 0]]),
    (graph_of("tflite", "UNPACK", [(2, 3, 4)], [(2, 4)] * 3, axis=1), lambda x: x[:, 0]),
    (graph_of("tflite", "RESHAPE", [(4, 6)], [(6, 4)]), lambda x: x.reshape(6, 4)),
]  # fmt: skip


@pytest.mark.parametrize(("graph", "values"), MOVES, ids=lambda v: v.ops[0].kind if isinstance(v, Graph) else "")
def test_what_is_moved_stands_where_numpy_puts_it(graph: Graph, values: Any) -> None:
    shape, result = graph.tensors[0].shape, graph.tensors[graph.ops[0].outputs[0]].shape
    access = access_of(graph, graph.ops[0])
    assert access is not None
    assert access.moves
    moved = values(np.arange(prod(shape)).reshape(shape))
    assert moved.shape == result
    reads = access.reads[0]
    assert elements(reads, shape, result) == [{int(v)} for v in moved.ravel()]
    start = view_start(access, 0)
    run = moved.ravel()
    assert (start is not None) == bool((np.diff(run) == 1).all())
    assert start is None or start == run[0]
    check_rows(reads, shape, result)


@pytest.mark.parametrize(("graph", "values"), MOVES)
def test_the_verifier_lists_what_is_moved_where_numpy_puts_it(graph: Graph, values: Any) -> None:
    shape, program = graph.tensors[0].shape, graph_program(graph, [0])
    reads = places_read(use_of(program, program.steps[0]))
    assert reads is not None
    wanted = values(np.arange(prod(shape)).reshape(shape))
    for index in np.ndindex(*wanted.shape):
        one = np.zeros(wanted.shape, np.bool_)
        one[index] = True
        assert np.flatnonzero(elements_behind(reads[0], one)).tolist() == [wanted[index]]


def test_an_interpolation_reads_what_the_kernel_s_ten_bits_round_to() -> None:
    """Of 5 columns in 10 with aligned corners the last one has a 1024th of the fourth."""
    graph = graph_of("tflite", "RESIZE_BILINEAR", [(1, 4, 5, 3)], [(1, 8, 10, 3)], align_corners=1)
    access = access_of(graph, graph.ops[0])
    assert access is not None
    assert rows(access.reads[0], (1, 8, 10, 3), (1, 4, 5, 3), 2, 9, 10)[2] == (3, 5)


def check_rows(reads: Reads, shape: Shape, result: Shape) -> None:
    """What rows need holds what their elements read, for each axis and range."""
    sets = np.array(elements(reads, shape, result), object).reshape(result)
    for axis, extent in enumerate(result):
        for start in range(extent):
            for end in range(start + 1, extent + 1):
                read: set[int] = set().union(*sets.take(range(start, end), axis).ravel())
                box = rows(reads, result, shape, axis, start, end)
                held = np.arange(prod(shape)).reshape(shape)[tuple(slice(a, b) for a, b in box)]
                assert read <= set(held.ravel().tolist())
        check_row_span(reads, shape, result, axis, sets)


def check_row_span(reads: Reads, shape: Shape, result: Shape, axis: int, sets: Any) -> None:
    """A row reads from the first to the last of its places."""
    found = row_span(reads, result, shape, axis)
    if found is None:
        return
    for row in range(result[axis]):
        read: set[int] = set().union(*sets.take([row], axis).ravel())
        if not read:
            continue
        if found.axis < 0:
            assert read == set().union(*sets.take([0], axis).ravel())
            continue
        first, last, _ = (int(v[0]) for v in found.span.places(shape[found.axis], row, row + 1))
        places = np.unravel_index(sorted(read), shape)[found.axis]
        assert (first, last) == (places.min(), places.max())


@given(st.integers(1, 7), st.integers(1, 3), st.integers(1, 3), st.integers(0, 3), st.integers(1, 6))
def test_windows_are_read_as_their_kernels_go(extent: int, reach: int, stride: int, before: int, outputs: int) -> None:
    for dilation in (1, 2):
        span = Span(0, -before, (reach - 1) * dilation - before, mul=stride, step=dilation)
        reads = Reads(0, (extent,), (outputs,), (span,))
        sets = [
            {p for t in range(reach) if 0 <= (p := y * stride - before + t * dilation) < extent} for y in range(outputs)
        ]
        assert elements(reads, (extent,), (outputs,)) == sets
        assert reads.elements == sum(map(len, sets))
        check_rows(reads, (extent,), (outputs,))
        assert needed(reads, (outputs,), (extent,), ((0, 0),)) == ((0, 0),)


@given(st.integers(1, 5), st.integers(1, 4), st.integers(1, 3), st.integers(0, 2))
def test_a_spread_is_read_by_those_that_it_has_a_part_in(extent: int, reach: int, stride: int, before: int) -> None:
    outputs = max((extent - 1) * stride + reach - before, 1)
    span = Span(0, before - reach + stride, before, div=stride)
    sets = [{x for x in range(extent) if 0 <= y + before - x * stride < reach} for y in range(outputs)]
    assert elements(Reads(0, (extent,), (outputs,), (span,)), (extent,), (outputs,)) == sets


def test_an_operand_that_is_not_named_has_no_reads() -> None:
    assert AccessMap(()).of(0) is None

"""Operators that pass bytes on: the verifier's account by numpy, the planner's by conditions, and real values agree."""

from __future__ import annotations

import numpy as np
import pytest

from modelplan import Graph, Op, Options, Tensor, height, plan
from modelplan.checking.verifier.moves import Move, moves_of
from modelplan.checking.verifier.program import graph_program
from modelplan.model import Kind
from modelplan.ops import facts
from modelplan.planning.aliasing.rules import part_of, view_of
from modelplan.runtimes import RUNTIMES


def case(kind: str, shape: tuple[int, ...], out: np.ndarray, **attributes: object) -> Graph:
    """A model of one operator whose result is `out` for the numbers of the operand's elements."""
    named = tuple((name.replace("operand_", "operand "), value) for name, value in attributes.items())
    numbers = attributes.get("operand_1", ())
    assert isinstance(numbers, tuple)
    tensors = (
        Tensor("x", shape, "int8"),
        Tensor("y", out.shape, "int8"),
        Tensor("numbers", (len(numbers),), "int32", Kind.CONSTANT),
    )
    op = Op("", kind, (0, 2) if numbers else (0,), (1,), named, 13)  # type: ignore[arg-type]
    return Graph("g", "onnx" if kind[1].islower() else "tflite", tensors, (op,), (0,), (1,))


def cube(*shape: int) -> np.ndarray:
    return np.arange(int(np.prod(shape)), dtype=np.int8).reshape(shape)


CASES = [
    ("Transpose", (1, 4, 3), cube(1, 4, 3).transpose(1, 0, 2), {"perm": (1, 0, 2)}),
    ("Transpose", (2, 4, 3), cube(2, 4, 3).transpose(1, 0, 2), {"perm": (1, 0, 2)}),
    ("TRANSPOSE", (4, 1, 3), cube(4, 1, 3).transpose(0, 2, 1), {"operand_1": (0, 2, 1)}),
    ("TRANSPOSE", (4, 2, 3), cube(4, 2, 3).transpose(0, 2, 1), {"operand_1": (0, 2, 1)}),
    ("SLICE", (4, 6), cube(4, 6)[1:3], {"operand_1": (1, 0)}),
    ("SLICE", (4, 6), cube(4, 6)[:, 1:3], {"operand_1": (0, 1)}),
    ("SLICE", (1, 4, 6), cube(1, 4, 6)[:, 2:], {"operand_1": (0, 2, 0)}),
    ("STRIDED_SLICE", (4, 6), cube(4, 6)[-2:], {"operand_1": (-2, 0), "operand_3": (1, 1)}),
    ("STRIDED_SLICE", (4, 6), cube(4, 6)[::2], {"operand_1": (0, 0), "operand_3": (2, 1)}),
    ("Slice", (4, 6), cube(4, 6)[2:4], {"operand_1": (2,)}),
    ("Gather", (4, 6), cube(4, 6)[1:3], {"operand_1": (1, 2)}),
    ("Gather", (4, 6), cube(4, 6)[[2, 1]], {"operand_1": (2, 1)}),
    ("GATHER", (1, 4, 6), cube(1, 4, 6)[:, 1:3], {"operand_1": (1, 2), "axis": 1}),
    ("GATHER", (2, 4, 6), cube(2, 4, 6)[:, 1:3], {"operand_1": (1, 2), "axis": 1}),
    ("Pad", (4, 6), cube(4, 6), {"operand_1": (0, 0, 0, 0)}),
    ("PAD", (4, 6), np.pad(cube(4, 6), ((1, 0), (0, 0))), {"operand_1": (1, 0, 0, 0)}),
    ("Expand", (4, 6), cube(1, 4, 6), {}),
    ("TILE", (4, 6), np.tile(cube(4, 6), (2, 1)), {}),
    ("ReduceSum", (4, 1, 6), cube(4, 6), {}),
    ("SUM", (4, 6), cube(4, 6).sum(1), {}),
    ("DepthToSpace", (1, 4, 2, 2), cube(1, 4, 2, 2), {"blocksize": 1}),
    ("DEPTH_TO_SPACE", (1, 3, 1, 8), cube(1, 3, 1, 8).reshape(1, 6, 2, 2), {"block_size": 2}),
    ("DEPTH_TO_SPACE", (1, 1, 2, 8), cube(2, 2, 2, 2).transpose(1, 0, 2, 3).reshape(1, 2, 4, 2), {"block_size": 2}),
    ("SPACE_TO_DEPTH", (1, 4, 2, 3), cube(1, 4, 2, 3).reshape(1, 2, 1, 12), {"block_size": 2}),
    ("STRIDED_SLICE", (4, 6), cube(4, 6)[2], {"operand_1": (2, 0), "operand_3": (1, 1), "shrink_axis_mask": 1}),
    ("CAST", (4, 6), cube(4, 6), {}),
]  # fmt: skip


@pytest.mark.parametrize(("kind", "shape", "out", "attributes"), CASES)
def test_both_accounts_are_what_the_values_say(
    kind: str, shape: tuple[int, ...], out: np.ndarray, attributes: dict[str, object]
) -> None:
    """Nobody claims a run of bytes that is none, and every run here is found by both."""
    graph = case(kind, shape, out, **attributes)
    flat = out.reshape(-1).astype(np.int64)
    run = int(flat[0]) if (np.diff(flat) == 1).all() and out.size <= np.prod(shape) else None
    if kind == "SUM":
        run = None
    found = moves_of(graph_program(graph, [0]), graph_program(graph, [0]).steps[0])
    assert found == ([] if run is None else [Move(0, run, 0, 0, out.size)])
    whole, part = view_of(graph, 0, "max", RUNTIMES["generic"]), part_of(graph, 0)
    assert [place.delta for place in (whole, part) if place] == ([] if run is None else [run])
    assert facts(graph.format, kind).passes_on


def test_a_slice_is_read_in_place_where_that_lowers_the_peak() -> None:
    """The lower half of x is a run of its bytes: with a copy 112 bytes are alive at the convolution, without 80."""
    tensors = (Tensor("x", (4, 16), "int8"), Tensor("y", (2, 16), "int8"), Tensor("z", (16,), "int8"))
    slices = (("operand 1", (2, 0)), ("operand 2", (2, 16)))
    ops = (Op("", "SLICE", (0,), (1,), slices), Op("", "CONV_2D", (1,), (2,)))
    graph = Graph("g", "tflite", tensors, ops, (0,), (2,))
    apart, within = (plan(graph, Options("litert", "file", mode, alignment=16)) for mode in ("views", "max"))
    assert [height(made.problem, made.placement) for made in (apart, within)] == [112, 80]
    assert [merge.rule for merge in within.merges] == ["slice: SLICE takes a run of bytes as they are"]

"""Renames that neighbours can do without: which are left out, what keeps its shape, and that the proof sees faults."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from striped_files import graph_of
from tflm_models import Op, S, T, build, ints

from modelplan.checking.verifier.rewrites.contents import matched_axes
from modelplan.checking.verifier.rewrites.executing import ExecutionEffort
from modelplan.checking.verifier.rewrites.proving import prove_rewrite
from modelplan.primitives.errors import BrokenPlanError
from modelplan.rewriting.striped_tflite.ladder import climb
from modelplan.rewriting.striped_tflite.renaming import with_fewer_renames
from modelplan.rewriting.striped_tflite.rungs import Goal
from modelplan.rewriting.striped_tflite.steps import TfliteProgram
from modelplan.rewriting.striped_tflite.writing import write_striped

POOL = {"FilterHeight": 1, "FilterWidth": 2, "StrideH": 1, "StrideW": 1, "Padding": 1}
Shape = tuple[int, ...]


class Chain:
    """Maps of one scale, each made of the ones before."""

    def __init__(self, shape: Shape) -> None:
        self.tensors, self.ops = [self.like(shape)], list[Op]()

    @staticmethod
    def like(shape: Shape, values: list[int] | None = None, scale: float = 0.1) -> T:
        return T("int8", shape, values, (scale,), 0)

    def add(self, tensor: T) -> int:
        self.tensors.append(tensor)
        return len(self.tensors) - 1

    def op(self, kind: str, reads: tuple[int, ...], shape: Shape, table: str = "", **options: object) -> int:
        y = self.add(self.like(shape))
        self.ops.append(Op(kind, reads, (y,), dict(options), table))
        return y

    def pool(self, x: int) -> int:
        *others, wide, channels = self.tensors[x].shape
        return self.op("MAX_POOL_2D", (x,), (*others, wide - 1, channels), "Pool2DOptions", **POOL)

    def reshape(self, x: int, shape: Shape) -> int:
        return self.op("RESHAPE", (x, self.add(ints(*shape))), shape, "ReshapeOptions")

    def expand(self, x: int, axis: int) -> int:
        shape = self.tensors[x].shape
        return self.op("EXPAND_DIMS", (x, self.add(ints(axis))), (*shape[:axis], 1, *shape[axis:]))

    def file(self, *outputs: int) -> bytes:
        return build(S(tuple(self.tensors), tuple(self.ops), (0,), outputs))


def fewer(data: bytes, folder: Path) -> TfliteProgram | None:
    return with_fewer_renames(data, graph_of(data, folder))


def kinds(program: TfliteProgram | None) -> list[str]:
    assert program is not None
    return [step.kind for step in program.steps]


def outcomes(data: bytes, program: TfliteProgram | None) -> list[str]:
    """The verdicts of the proof, with runs on TFLM and LiteRT."""
    pytest.importorskip("tflite_micro")
    pytest.importorskip("ai_edge_litert")
    assert program is not None
    verdicts = prove_rewrite(data, write_striped(data, program)[0], "reference", ExecutionEffort(1, 2.0))
    return [verdict.outcome for verdict in verdicts]


def exported() -> tuple[Chain, int]:
    """One-dimensional pools as they are exported: each with a pair of renames around it."""
    chain = Chain((1, 9, 4))
    first = chain.reshape(chain.pool(chain.expand(0, 1)), (1, 8, 4))
    return chain, chain.pool(chain.expand(first, 1))


def test_a_pair_that_cancels_is_left_out_and_an_input_keeps_its_shape(tmp_path: Path) -> None:
    chain, last = exported()
    data = chain.file(last)
    program = fewer(data, tmp_path)
    assert kinds(program) == ["EXPAND_DIMS", "MAX_POOL_2D", "MAX_POOL_2D"]
    assert outcomes(data, program) == ["ok"] * 4


@pytest.mark.parametrize("constant", [(), (1,), (4,), (1, 1, 4)])
def test_element_wise_operators_take_the_shape_of_their_neighbours(constant: Shape, tmp_path: Path) -> None:
    chain = Chain((1, 1, 9, 4))
    flat = chain.reshape(chain.pool(0), (1, 8, 4))
    number = chain.add(chain.like(constant, [3, -5, 9, 1][: 4 if 4 in constant else 1]))
    added = chain.op("ADD", (flat, number), (1, 8, 4), "AddOptions")
    both = chain.op("MUL", (added, flat), (1, 8, 4), "MulOptions")
    data = chain.file(chain.pool(chain.expand(both, 1)))
    program = fewer(data, tmp_path)
    assert kinds(program) == ["MAX_POOL_2D", "ADD", "MUL", "MAX_POOL_2D"]
    assert outcomes(data, program) == ["ok"] * 4


def test_an_output_keeps_its_shape(tmp_path: Path) -> None:
    chain = Chain((1, 1, 9, 4))
    data = chain.file(chain.op("RELU", (chain.reshape(chain.pool(0), (1, 8, 4)),), (1, 8, 4)))
    assert fewer(data, tmp_path) is None
    chain, last = exported()
    flat = chain.reshape(last, (1, 7, 4))
    data = chain.file(flat, chain.pool(chain.expand(flat, 1)))
    program = fewer(data, tmp_path)
    assert kinds(program) == ["EXPAND_DIMS", "MAX_POOL_2D", "MAX_POOL_2D", "MAX_POOL_2D", "RESHAPE"]
    assert outcomes(data, program) == ["ok"] * 4


def test_what_is_no_rename_stays(tmp_path: Path) -> None:
    chain = Chain((1, 1, 9, 4))
    mixed = chain.reshape(chain.pool(0), (1, 16, 2))
    assert fewer(chain.file(chain.pool(chain.expand(mixed, 1))), tmp_path) is None
    chain, last = exported()
    at = next(op.outputs[0] for op in chain.ops if op.kind == "RESHAPE")
    chain.tensors[at] = chain.like(chain.tensors[at].shape, None, 0.2)  # another scale: not the same values
    assert fewer(chain.file(last), tmp_path) is None


def test_a_constant_of_several_axes_ties_maps_to_their_shape(tmp_path: Path) -> None:
    chain = Chain((1, 1, 9, 4))
    flat = chain.reshape(chain.pool(0), (1, 8, 4))
    table = chain.add(chain.like((1, 8, 4), [n % 7 for n in range(32)]))
    both = chain.op("ADD", (flat, table), (1, 8, 4), "AddOptions")
    assert fewer(chain.file(chain.pool(chain.expand(both, 1))), tmp_path) is None


def test_the_proof_sees_another_map_of_the_same_elements(tmp_path: Path) -> None:
    """The last pool reads the map before the pool in front of it, or one more rename of it."""
    chain, last = exported()
    data = chain.file(last)
    program = fewer(data, tmp_path)
    assert program is not None
    first, second = program.steps[1:]
    program.steps[2] = replace(second, inputs=first.inputs)
    with pytest.raises(BrokenPlanError):
        prove_rewrite(data, write_striped(data, program)[0])
    other, chain = Chain((1, 8, 1, 4)), Chain((1, 8, 1, 4))
    wrong = other.op(
        "ADD", (other.reshape(0, (1, 1, 8, 4)), other.reshape(0, (8, 1, 1, 4))), (8, 1, 8, 4), "AddOptions"
    )
    right = chain.op(
        "ADD", (chain.reshape(0, (1, 1, 8, 4)), chain.reshape(0, (1, 8, 1, 4))), (1, 8, 8, 4), "AddOptions"
    )
    files = chain.file(chain.reshape(right, (8, 8, 4))), other.file(other.reshape(wrong, (8, 8, 4)))
    with pytest.raises(BrokenPlanError):
        prove_rewrite(*files[::-1])


def test_the_rung_is_lower_and_can_be_left_out(tmp_path: Path) -> None:
    chain, last = exported()
    path = tmp_path / "net.tflite"
    path.write_bytes(chain.file(last))
    rungs = {rung.name: rung for rung in climb(path, Goal(), proved=False).rungs}
    assert rungs["renames"].ops == 3
    assert rungs["renames"].arena < min(rungs[name].arena for name in ("as is", "views", "overlaps"))
    without = climb(path, Goal(without=frozenset({"renames"})), proved=False)
    assert all(rung.name != "renames" for rung in without.rungs)


@pytest.mark.parametrize(
    ("before", "behind", "axes"),
    [
        ((1, 1, 8, 4), (1, 8, 4), (0, 2, 3)),
        ((8, 1), (1, 8), (-1, 0)),
        ((1, 1), (), ()),
        ((2, 1, 3), (2, 3, 1, 1), (0, 2, -1, -1)),
    ],
)
def test_axes_of_a_rename_are_matched(before: Shape, behind: Shape, axes: Shape) -> None:
    assert matched_axes(before, behind) == axes

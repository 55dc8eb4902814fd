"""Rows that an operator keeps though it renames the axes: RESHAPE, EXPAND_DIMS and SQUEEZE in stripes, proved."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from random_cnns import Network
from random_stripes import rewritten

from modelplan import runtimes
from modelplan.checking.verifier.rewrites.proving import prove_rewrite
from modelplan.formats import load_model
from modelplan.model import Graph
from modelplan.primitives.errors import BrokenPlanError
from modelplan.rewriting.striped_tflite import placing
from modelplan.rewriting.striped_tflite.building import striped_program
from modelplan.rewriting.striped_tflite.layers import layer_of, stretch_layers
from modelplan.rewriting.striped_tflite.writing import write_striped
from modelplan.rewriting.stripes.row_windows import IllegalStripeError
from modelplan.rewriting.stripes.stretches import LoopedStripes, RecomputedHalo


def network(shapes: list[tuple[int, ...]], folder: Path) -> tuple[bytes, Graph]:
    """A map that is renamed and rescaled in one shape after the other."""
    net = Network(np.random.default_rng(0))
    x = first = net.tensor(shapes[0])
    for shape in shapes[1:]:
        x = net.rescaled(net.reshaped(x, shape))
    path = folder / "net.tflite"
    path.write_bytes(data := net.file(first, x))
    return data, load_model(str(path))


SEQUENCE = [(1, 1, 12, 3), (1, 12, 3), (1, 12, 1, 3), (1, 1, 12, 3)]


def test_rows_stand_along_another_axis_behind_a_rename(tmp_path: Path) -> None:
    _, graph = network(SEQUENCE, tmp_path)
    layers = [layer_of(graph, index, axis) for index, axis in ((0, 1), (2, 1), (4, 2))]
    assert [layer if isinstance(layer, str) else layer.axes for layer in layers] == [(2,), (), (1,)]
    stretch = RecomputedHalo(0, 5, 2, (0, 1, 5, 12))
    base = stretch_layers(graph, range(6), stretch)
    assert [base.axis_of(t) for t in base.graph.inputs] == [2]
    assert [base.axis_of(base.output(op)) for op in base.ops] == [1, 1, 1, 1, 2, 2]
    assert {base.height(base.output(op)) for op in base.ops} == {12}
    assert {base.row_bytes(base.output(op)) for op in base.ops} == {3}


def test_groups_that_mix_rows_are_not_split(tmp_path: Path) -> None:
    _, graph = network([(1, 4, 6, 2), (1, 6, 4, 2), (1, 24, 2)], tmp_path)
    assert layer_of(graph, 0, 1) == "RESHAPE does not keep the rows"
    assert layer_of(graph, 2, 1) == "RESHAPE does not keep the rows"


def test_loops_go_along_one_axis_of_all_maps(tmp_path: Path) -> None:
    _, graph = network([(1, 1, 12, 3), (1, 12, 1, 3)], tmp_path)
    with pytest.raises(IllegalStripeError, match="along the same axis of all maps"):
        striped_program(graph, range(2), [LoopedStripes(0, 1, 1, (0, 3, 6, 9, 12))])


@pytest.mark.parametrize("cuts", [(0, 1, 5, 12), tuple(range(13))])
def test_a_wrong_row_behind_a_rename_is_refused(cuts: tuple[int, ...], tmp_path: Path) -> None:
    """Also where a stripe is a single row, of which no extent says along which axis it stands."""
    data, graph = network(SEQUENCE, tmp_path)
    program = striped_program(graph, range(6), [RecomputedHalo(0, 5, 2, cuts)])
    overlaps = placing.proved_overlaps(runtimes.runtime("tflm", "tflite"))
    right = rewritten(data, "net", program, overlaps)[1]
    assert [verdict.outcome for verdict in prove_rewrite(data, right)] == ["ok", "ok"]
    slices = [i for i, step in enumerate(program.steps) if step.kind == "SLICE"]
    first, second = (program.steps[i] for i in slices[:2])
    if program.shape(first.outputs[0]) == program.shape(second.outputs[0]):
        program.steps[slices[0]] = replace(first, inputs=second.inputs)
    else:
        begin = program.numbers(first.inputs[1]) or ()
        moved = program.constant([at + (axis == 2) for axis, at in enumerate(begin)])
        program.steps[slices[0]] = replace(first, inputs=(first.inputs[0], moved, first.inputs[2]))
    with pytest.raises(BrokenPlanError):
        prove_rewrite(data, write_striped(data, program)[0])

"""Blocks of channels: their constants are cut, their pieces lie in the result, and faults in them are refused."""

from __future__ import annotations

import struct
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from random_cnns import Network
from striped_files import graph_of

from modelplan import BrokenPlanError, Graph
from modelplan.checking.verifier.rewrites.proving import prove_rewrite
from modelplan.formats.tflite.flatbuffer_tables import OPTIONS
from modelplan.rewriting.striped_tflite.building import striped_program
from modelplan.rewriting.striped_tflite.ladder import climb
from modelplan.rewriting.striped_tflite.rungs import Goal
from modelplan.rewriting.striped_tflite.steps import TfliteProgram
from modelplan.rewriting.striped_tflite.writing import write_striped
from modelplan.rewriting.stripes.row_windows import IllegalStripeError
from modelplan.rewriting.stripes.stretches import ChannelBlocks, LoopedStripes
from modelplan.runtimes.tflm.file import read_tflite

DEEP = 96


@pytest.fixture
def net() -> Network:
    return Network(np.random.default_rng(5))


def late_stage(net: Network) -> bytes:
    """A pointwise convolution to many channels, a depthwise one, and the mean of each channel."""
    x = net.tensor((1, 7, 7, 8))
    shape = (DEEP, 1, 1, 8)
    weights = net.tensor(shape, scale=(0.02, 0), data=net.rng.integers(-90, 90, shape, dtype=np.int8).tobytes())
    bias = net.tensor((DEEP,), 2, (0.001, 0), net.rng.integers(-900, 900, DEEP, dtype=np.int32).tobytes())
    deep = net.operator(
        "CONV_2D", [x, weights, bias], net.tensor((1, 7, 7, DEEP)), OPTIONS["CONV_2D"], (0, 1, 1, 1, 1, 1)
    )
    last = net.window(deep, "DEPTHWISE_CONV_2D")
    y = net.operator("MEAN", [last, net.numbers((1, 2))], net.tensor((1, DEEP)), (1,), (0,))
    return net.file(x, y)


def blocks(data: bytes, folder: Path, cuts: tuple[int, ...] = (0, 32, 64, DEEP), last: int = 2) -> TfliteProgram:
    graph = graph_of(data, folder)
    rank = len(graph.tensors[graph.ops[last].outputs[0]].shape)
    return striped_program(graph, range(3), [ChannelBlocks(0, last, rank - 1, cuts)])


def refused(data: bytes, program: TfliteProgram) -> str:
    with pytest.raises(BrokenPlanError) as refusal:
        prove_rewrite(data, write_striped(data, program)[0])
    return str(refusal.value)


def test_written_spans_of_one_run_of_bytes_lie_in_the_result(net: Network, tmp_path: Path) -> None:
    program = blocks(late_stage(net), tmp_path)
    join = program.steps[-1]
    group, start = program.group_offsets[join.outputs[0]]
    assert join.kind == "CONCATENATION"
    assert [program.group_offsets[piece] for piece in join.inputs] == [(group, start + at) for at in (0, 32, 64)]


def test_maps_with_rows_are_joined_by_copies(net: Network, tmp_path: Path) -> None:
    data = late_stage(net)
    program = blocks(data, tmp_path, last=1)
    join = program.steps[-2]
    assert len({program.group_offsets[t].group for t in (*join.inputs, *join.outputs)}) == 4
    assert [verdict.outcome for verdict in prove_rewrite(data, write_striped(data, program)[0])] == ["ok", "ok"]


def test_parts_of_constants_stand_where_the_constants_stood(net: Network, tmp_path: Path) -> None:
    """The largest parts first; small ones that do not fit stand in front."""
    data = late_stage(net)
    model, _ = write_striped(data, blocks(data, tmp_path))
    assert [verdict.outcome for verdict in prove_rewrite(data, model)] == ["ok", "ok"]
    front = len(model) - len(data)
    weights = [t for t in read_tflite(model, "blocks").tensors if t.constant and t.shape == (32, 1, 1, 8)]
    assert [t.content[0] > front for t in weights] == [True, True, True]


def test_constants_that_a_loop_reads_too_stay_where_they_are(net: Network, tmp_path: Path) -> None:
    """The first convolution is computed in a loop and reads the weights that the last one has in blocks."""
    x = net.tensor((1, 9, 8, DEEP))
    shape, data = (DEEP, 1, 1, DEEP), net.rng.integers(-90, 90, DEEP * DEEP, dtype=np.int8).tobytes()
    constants = [net.tensor(shape, scale=(0.02, 0), data=data), net.tensor((DEEP,), 2, (0.001, 0), bytes(4 * DEEP))]
    last = x
    for _ in range(2):
        y, options = net.tensor((1, 9, 8, DEEP)), (0, 1, 1, 1, 1, 1)
        last = net.operator("CONV_2D", [last, *constants], y, OPTIONS["CONV_2D"], options)
    y = net.operator("MEAN", [last, net.numbers((1, 2))], net.tensor((1, DEEP)), (1,), (0,))
    model = net.file(x, y)
    graph = graph_of(model, tmp_path)
    stretches = [LoopedStripes(0, 0, 1, (0, 3, 6, 9)), ChannelBlocks(1, 2, 1, (0, 48, DEEP))]
    written, _ = write_striped(model, striped_program(graph, range(3), stretches))
    assert [verdict.outcome for verdict in prove_rewrite(model, written)] == ["ok", "ok"]


@pytest.mark.parametrize("position", [1, 2])
def test_weights_or_biases_of_other_channels_are_refused(net: Network, tmp_path: Path, position: int) -> None:
    data = late_stage(net)
    program = blocks(data, tmp_path)
    first = program.steps[0].inputs[position] - len(program.graph.tensors)
    program.added[first] = replace(program.added[first], part=(0, 1, 33))
    assert "a bias or a scale unlike the model's" in refused(data, program)


def test_blocks_in_another_order_are_refused(net: Network, tmp_path: Path) -> None:
    data = late_stage(net)
    program = blocks(data, tmp_path)
    join = program.steps[-1]
    program.steps[-1] = replace(join, inputs=(join.inputs[1], join.inputs[0], join.inputs[2]))
    assert "CONCATENATION" in refused(data, program)


def test_another_scale_of_a_channel_is_refused(net: Network, tmp_path: Path) -> None:
    data = late_stage(net)
    model = bytearray(write_striped(data, blocks(data, tmp_path))[0])
    at = bytes(model).rindex(struct.pack("<f", 0.02))
    model[at : at + 4] = struct.pack("<f", 0.04)
    with pytest.raises(BrokenPlanError):
        prove_rewrite(data, bytes(model))


@pytest.mark.parametrize(
    ("cuts", "last", "reason"),
    [((0, DEEP), 2, "cuts"), ((0, 95, DEEP), 2, "one channel"), ((0, 32, 64), 2, "cuts"), ((0, 48, DEEP), 3, "other")],
)
def test_what_makes_no_blocks(net: Network, tmp_path: Path, cuts: tuple[int, ...], last: int, reason: str) -> None:
    x = net.tensor((1, 5, 5, 3))
    maps = [x]
    for _ in range(4):
        maps.append(net.window(maps[-1], "CONV_2D" if len(maps) in (1, 4) else "MAX_POOL_2D", DEEP))
    graph: Graph = graph_of(net.file(x, maps[-1]), tmp_path)
    with pytest.raises(IllegalStripeError, match=reason):
        striped_program(graph, range(4), [ChannelBlocks(0, last, 3, cuts)])


def test_fit_takes_blocks_of_channels_where_they_need_less(net: Network, tmp_path: Path) -> None:
    path = tmp_path / "late.tflite"
    path.write_bytes(late_stage(net))
    ladder = climb(str(path), Goal(objective="head"), proved=False)
    best = min(ladder.rungs, key=lambda rung: rung.head)
    assert any("blocks of channels" in stretch for stretch in best.stretches)
    assert best.macs == ladder.macs
    assert best.head < 2_000

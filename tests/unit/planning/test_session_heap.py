"""The arena and the memory pattern of a session against sequences that were carried out by hand."""

from __future__ import annotations

from pathlib import Path

import onnx
import pytest
from onnx import TensorProto, helper

from modelplan.formats import load_as_run
from modelplan.planning.allocators.systems.bfc import BfcArena
from modelplan.planning.session_blocks import block_events, unknown_kernels
from modelplan.planning.session_heap import PatternPlanner, PlainHeap, UnpredictableError, predicted_heap
from modelplan.runtimes.ort import ORT

MIB = 1 << 20


def test_a_first_region_of_a_mebibyte_and_growth_by_powers_of_two() -> None:
    arena = BfcArena()
    small = arena.take(100)
    assert arena.held == MIB
    large = arena.take(3 * MIB)  # 1 MiB is doubled until the request fits
    assert arena.held == MIB + 4 * MIB
    arena.give(large)
    arena.give(small)
    arena.take(4 * MIB + 1)
    assert arena.held == MIB + 4 * MIB + 8 * MIB


def test_each_region_is_twice_as_large_as_the_one_before() -> None:
    arena = BfcArena()
    held = []
    for size in (MIB, MIB, 2 * MIB):  # of the second region one half stays free
        arena.take(size)
        held.append(arena.held // MIB)
    assert held == [1, 3, 7]


def test_a_chunk_is_split_only_where_it_is_twice_as_large() -> None:
    arena = BfcArena()
    blocks = [arena.take(MIB // 4) for _ in range(4)]
    arena.give(blocks[1])
    arena.take(MIB // 4 - 256)  # the gap of 256 KiB is taken whole
    arena.take(256)
    assert arena.held == MIB + 2 * MIB


def test_free_neighbours_become_one_chunk() -> None:
    arena = BfcArena()
    blocks = [arena.take(MIB // 4) for _ in range(4)]
    for block in (blocks[0], blocks[2], blocks[1]):
        arena.give(block)
    arena.take(3 * MIB // 4)
    assert arena.held == MIB


def test_the_smallest_chunk_that_fits_is_taken() -> None:
    arena = BfcArena()
    blocks = [arena.take(size << 10) for size in (300, 100, 200, 100, 200)]
    arena.give(blocks[0])
    arena.give(blocks[2])
    assert arena.take(200 << 10) == blocks[2]
    assert arena.take(256 << 10) == blocks[0]
    assert arena.held == MIB


def test_chunks_of_two_regions_are_never_neighbours() -> None:
    arena = BfcArena()
    blocks = [arena.take(MIB), arena.take(2 * MIB)]
    for block in blocks:
        arena.give(block)
    arena.take(3 * MIB)
    assert arena.held == MIB + 2 * MIB + 4 * MIB


def test_the_tables_of_regions_are_counted() -> None:
    arena = BfcArena()
    before = arena.own
    arena.take(MIB)
    assert arena.own - before >= MIB // 256 * 8


def test_a_plain_heap_holds_what_is_asked_for() -> None:
    heap = PlainHeap()
    block = heap.take(100)
    heap.take(50)
    heap.give(block)
    assert heap.held == 50


def test_a_pattern_takes_the_tightest_gap() -> None:
    pattern = PatternPlanner()
    offsets = [pattern.take(value, size) for value, size in enumerate((512, 256, 1024, 256, 256))]
    assert offsets == [0, 512, 768, 1792, 2048]
    pattern.give(0)
    pattern.give(2)
    assert pattern.take(5, 512) == 0
    assert pattern.take(6, 768) == 768
    assert pattern.height == 2304


def test_the_room_behind_the_last_block_is_a_gap_too() -> None:
    pattern = PatternPlanner()
    for value, size in enumerate((1024, 256, 512)):
        pattern.take(value, size)
    pattern.give(0)
    pattern.give(2)
    assert pattern.take(3, 512) == 1280  # exactly what was free there, where the gap in front is twice as large
    assert pattern.height == 1792


def test_sizes_in_a_pattern_are_multiples_of_256() -> None:
    pattern = PatternPlanner()
    pattern.take(0, 1)
    assert pattern.take(1, 257) == 256
    assert pattern.height == 768


def saved(path: Path, nodes: list[onnx.NodeProto], extents: dict[str, list[int]], out: str) -> Path:
    values = [helper.make_tensor_value_info(name, TensorProto.FLOAT, shape) for name, shape in extents.items()]
    graph = helper.make_graph(nodes, "g", values, [helper.make_empty_tensor_value_info(out)])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)
    onnx.save(onnx.shape_inference.infer_shapes(model), path)
    return path


def test_what_nothing_reads_stays_until_the_run_ends(tmp_path: Path) -> None:
    nodes = [helper.make_node("Split", ["x"], ["a", "b"], axis=0), helper.make_node("Exp", ["a"], ["y"])]
    graph = load_as_run(saved(tmp_path / "m.onnx", nodes, {"x": [2, 64]}, "y"))
    events = list(block_events(graph, ORT))
    assert [event.size for event in events if event.size] == [256, 256, 256]
    assert sum(not event.size for event in events) == 1  # a; b is read by nothing, y is the caller's


def test_nodes_that_only_constants_feed_run_too(tmp_path: Path) -> None:
    value = helper.make_tensor("v", TensorProto.FLOAT, [64], [1.0] * 64)
    nodes = [
        helper.make_node("Constant", [], ["c"], value=value),
        helper.make_node("Exp", ["c"], ["e"]),
        helper.make_node("Add", ["x", "e"], ["y"]),
    ]
    graph = load_as_run(saved(tmp_path / "m.onnx", nodes, {"x": [64]}, "y"))
    assert [op.kind for op in graph.ops] == ["Exp", "Add"]
    assert predicted_heap(graph, ORT, arena=False).first_tensors == 512


def test_operators_of_unknown_kernels_are_refused(tmp_path: Path) -> None:
    nodes = [helper.make_node("HardSwish", ["x"], ["y"])]
    graph = load_as_run(saved(tmp_path / "m.onnx", nodes, {"x": [64]}, "y"))
    assert unknown_kernels(graph) == ["HardSwish"]
    with pytest.raises(UnpredictableError, match="HardSwish"):
        predicted_heap(graph, ORT)


def test_a_normalisation_of_a_vector_has_no_channels(tmp_path: Path) -> None:
    graph = load_as_run(saved(tmp_path / "m.onnx", [helper.make_node("LRN", ["x"], ["y"], size=3)], {"x": [64]}, "y"))
    assert max(event.size for event in block_events(graph, ORT)) == 64 * 4 * 3

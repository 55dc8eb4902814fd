"""Inputs from the start, outputs to the end, an op's inputs and outputs together."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import graphs
import pytest

from modelplan import Graph, Kind, buffers, load, storages
from modelplan.planning.lifetimes import Occupancy
from modelplan.planning.schedulers import peak
from modelplan.runtimes import RUNTIMES

TFLM, GENERIC = RUNTIMES["tflm"], RUNTIMES["generic"]


def spans(graph: object, mode: str = "none", runtime: object = TFLM) -> dict[str, tuple[int, int, int]]:
    problem = buffers(graph, range(len(graph.ops)), storages(graph, mode), runtime)  # type: ignore[arg-type, attr-defined]
    return {b.name: (b.size, b.start, b.end) for b in problem}


def test_half_open_steps_and_padding() -> None:
    assert spans(graphs.chain()) == {"x": (16, 0, 1), "a": (32, 0, 2), "b": (32, 1, 3), "y": (32, 2, 3)}
    bare = replace(TFLM, pad="arena")
    assert spans(graphs.chain(), runtime=bare)["x"] == (10, 0, 1)


def test_a_view_shares_the_union_of_lifetimes() -> None:
    assert spans(graphs.chain(), "views") == {"x": (16, 0, 1), "a": (32, 0, 3), "y": (32, 2, 3)}


def test_an_output_lives_to_the_end_even_when_read_on_the_way() -> None:
    graph = graphs.graph("x -> y : A \n y -> z : A \n z -> v : A", dict.fromkeys("xyzv", 16), "x", "y v")
    assert spans(graph)["y"] == (16, 0, 3)


def test_unread_results_and_inputs_still_need_room_at_their_step() -> None:
    graph = graphs.graph("x -> a : A \n x -> y : A", dict.fromkeys("xuay", 16), "x u", "y")
    assert spans(graph)["a"] == (16, 0, 1)
    assert spans(graph)["u"] == (16, 0, 1)


def test_state_lives_all_the_time_or_apart() -> None:
    graph = graphs.graph("x -> y : A \n y s -> z : A", dict.fromkeys("xysz", 16), "x", "z", kinds={"s": Kind.STATE})
    assert spans(graph, runtime=GENERIC)["s"] == (16, 0, 2)
    assert "s" not in spans(graph, runtime=TFLM)


def test_a_graph_without_ops_keeps_its_inputs() -> None:
    assert spans(graphs.graph("", {"x": 5}, "x", "x")) == {"x": (16, 0, 1)}


def test_unused_tensors_get_no_buffer() -> None:
    assert "u" not in spans(graphs.graph("x -> y : A", dict.fromkeys("xyu", 16), "x", "y"))


@pytest.mark.parametrize("runtime", ["tflm", "generic", "ort"])
@pytest.mark.parametrize("name", ["unet_small.tflite", "inception_like.onnx", "decoder_kv.onnx"])
def test_occupancy_follows_the_classes(models: Path, name: str, runtime: str) -> None:
    """As many bytes as the buffers of the same classes have at their peak, whatever was there before."""
    dims = ["batch=1", "sequence=8", "past_sequence=24"] if name.startswith("decoder") else []
    graph = load(models / name, dims)
    assert isinstance(graph, Graph)
    row, order = RUNTIMES[runtime], graph.producers_first
    apart, merged = storages(graph, "none", row), storages(graph, "views", row)
    occupancy = Occupancy(graph, order, row)
    assert occupancy.swap((), apart.classes) == peak(graph, order, apart, row)
    assert occupancy.swap(apart.classes, merged.classes) == peak(graph, order, merged, row)
    assert occupancy.swap(merged.classes, apart.classes) == peak(graph, order, apart, row)


def test_bytes_that_no_column_holds_are_refused() -> None:
    graph = graphs.graph("x -> y : A", {"x": 2**70, "y": 16}, "x", "y")
    with pytest.raises(ValueError, match="63 bits"):
        spans(graph)
    with pytest.raises(ValueError, match=r"2\^62"):
        spans(graphs.graph("x -> y : A", {"x": 2**62, "y": 2**61}, "x", "y"))

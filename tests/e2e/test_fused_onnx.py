"""Stripes of models in which ONNX Runtime fuses operators: stretches end where a session has values."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from onnx import helper
from onnx_files import graph_of, saved

from modelplan.rewriting.striped_onnx.ladder import OnnxGoal, climb
from modelplan.rewriting.striped_onnx.onnx_search import OnnxSearch
from modelplan.rewriting.striped_onnx.writing import parsed, reading_of
from modelplan.runtimes.ort.measuring import SessionSettings, kept_values, measure

pytest.importorskip("onnxruntime")


def feed_forward(path: Path, tokens: int = 1024, width: int = 32) -> Path:
    """A block of a transformer whose last sum and normalization become one kernel, and a mean over all tokens."""
    random = np.random.default_rng(0)
    nodes = [
        helper.make_node("MatMul", ["x", "w1"], ["a"]),
        helper.make_node("Relu", ["a"], ["b"]),
        helper.make_node("MatMul", ["b", "w2"], ["c"]),
        helper.make_node("Add", ["x", "c"], ["d"]),
        helper.make_node("LayerNormalization", ["d", "one", "zero"], ["e"], axis=-1),
        helper.make_node("ReduceMean", ["e"], ["y"], axes=[1], keepdims=0),
    ]
    weights = {
        "w1": random.standard_normal((width, 8 * width)).astype(np.float32),
        "w2": random.standard_normal((8 * width, width)).astype(np.float32),
        "one": np.ones(width, np.float32), "zero": np.zeros(width, np.float32),
    }  # fmt: skip
    return saved(path, nodes, {"x": [1, tokens, width], "y": [1, width]}, weights)


def test_values_inside_of_fused_kernels_are_gone(tmp_path: Path) -> None:
    path = feed_forward(tmp_path / "m.onnx")
    assert {"d", "e"} <= kept_values(path, "disable")
    assert "d" not in kept_values(path, "extended")
    assert kept_values(path, "all") == kept_values(path, "extended")


def test_stretches_do_not_part_what_is_fused(tmp_path: Path) -> None:
    path = feed_forward(tmp_path / "m.onnx")
    graph, proto = graph_of(path), parsed(path)
    search = OnnxSearch(reading_of(proto, graph, kept_values(path, "extended")), most_macs=0.1, threads=1)
    plans = search.plans()
    assert plans
    assert {stretch.last for plan in plans for stretch in plan.stretches} <= {2, 4, 5}
    assert graph.ops[3].outputs[0] in search.reading.gone


@pytest.mark.parametrize("level", ["basic", "extended"])
def test_a_block_of_a_transformer_is_split_and_equal(tmp_path: Path, level: str) -> None:
    path = feed_forward(tmp_path / "m.onnx")
    goal = OnnxGoal(settings=SessionSettings(level=level), without=frozenset({"order"}))
    ladder = climb(str(path), graph_of(path), goal, lambda text: None)
    assert ladder.chosen is not None
    assert ladder.chosen.name == "split"
    assert ladder.chosen.difference is not None
    assert not ladder.chosen.difference.ulps
    assert ladder.chosen.best.peak * 2 < ladder.rungs[1].best.peak


def quantised(path: Path, size: int = 64, channels: int = 32) -> Path:
    """Two quantised convolutions between a quantisation and its reverse, and a mean over the map."""
    random = np.random.default_rng(0)
    words = ["scale", "none"]
    nodes = [
        helper.make_node("QuantizeLinear", ["x", *words], ["a"]),
        helper.make_node("QLinearConv", ["a", *words, "w1", *words, *words], ["b"], pads=[1, 1, 1, 1]),
        helper.make_node("QLinearConv", ["b", *words, "w2", *words, *words], ["c"], pads=[1, 1, 1, 1], strides=[2, 2]),
        helper.make_node("DequantizeLinear", ["c", *words], ["d"]),
        helper.make_node("GlobalAveragePool", ["d"], ["y"]),
    ]
    weights = {
        "w1": random.integers(-9, 9, (channels, 3, 3, 3), np.int8), "scale": np.float32(0.05), "none": np.int8(0),
        "w2": random.integers(-9, 9, (channels, channels, 3, 3), np.int8),
    }  # fmt: skip
    return saved(path, nodes, {"x": [1, 3, size, size], "y": [1, channels, 1, 1]}, weights)


def test_weights_packed_for_each_stripe_count(tmp_path: Path) -> None:
    path = quantised(tmp_path / "m.onnx")
    graph = graph_of(path)
    reading = reading_of(parsed(path), graph, kept_values(path, "basic"))
    assert [reading.own_weights(index) for index in range(5)] == [0, 32 * 27, 32 * 32 * 9, 0, 0]
    goal = OnnxGoal(
        settings=SessionSettings(level="basic", arena="off", pattern=False), fixed=frozenset({"arena", "pattern"})
    )
    ladder = climb(str(path), graph, goal, lambda text: None)
    split = ladder.chosen
    assert split is not None
    assert split.model is not None
    (tmp_path / "out.onnx").write_bytes(split.model)
    alone = measure(tmp_path / "out.onnx", {"x": (1, 3, 64, 64)}, goal.settings)
    assert alone.session > ladder.rungs[0].best.session
    assert split.best.peak == alone.peak + alone.session - ladder.rungs[0].best.session


def test_a_chain_of_shrinking_maps_may_end_anywhere(tmp_path: Path) -> None:
    """No place between the operators has fewer bytes than the next; the last ones cannot be split by rows."""
    random = np.random.default_rng(0)
    weights, nodes, x = dict[str, Any](), list[Any](), "x"
    for k in range(4):
        weights[f"w{k}"] = random.standard_normal((8, 1 if k == 0 else 8, 5)).astype(np.float32)
        nodes += [
            helper.make_node("Conv", [x, f"w{k}"], [f"c{k}"], strides=[4], pads=[2, 2]),
            helper.make_node("Relu", [f"c{k}"], [f"r{k}"]),
        ]
        x = f"r{k}"
    nodes.append(helper.make_node("GlobalAveragePool", [x], ["y"]))
    path = saved(tmp_path / "m.onnx", nodes, {"x": [1, 1, 65536], "y": [1, 8, 1]}, weights)
    reading = reading_of(parsed(path), graph_of(path), kept_values(path, "extended"))
    search = OnnxSearch(reading, most_macs=3.0, threads=1)  # of nodes, which cost more than these convolutions
    assert search.plans()[0].peak * 3 < search.plain.peak

"""Skips of ONNX models that are recomputed where they are read late."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import helper
from onnx_files import graph_of, saved

from modelplan.rewriting.striped_onnx.ladder import OnnxGoal, climb
from modelplan.rewriting.striped_onnx.output_differences import compare_outputs
from modelplan.rewriting.striped_onnx.recomputed_skips import late_skips, with_copies
from modelplan.rewriting.striped_onnx.writing import parsed, reading_of
from modelplan.runtimes.ort.measuring import SessionSettings, kept_values, measure

pytest.importorskip("onnxruntime")

OFF = SessionSettings(level="extended", arena="off", pattern=False)


def with_skip(path: Path, size: int = 64) -> Path:
    """A wide map that is read at once and again at the end, behind many operators on a small one."""
    random = np.random.default_rng(0)
    weights: dict[str, Any] = {"scales": np.array([1, 1, 4, 4], np.float32)}

    def conv(x: str, y: str, made: int, read: int, **how: Any) -> Any:
        weights[f"w_{y}"] = random.standard_normal((made, read, 3, 3)).astype(np.float32) / 8
        return helper.make_node("Conv", [x, f"w_{y}"], [y], f"make_{y}", pads=[1, 1, 1, 1], **how)

    nodes = [
        conv("x", "a", 16, 3, kernel_shape=[3, 3]),
        helper.make_node("Relu", ["a"], ["skip"]),
        helper.make_node("MaxPool", ["skip"], ["s0"], kernel_shape=[4, 4], strides=[4, 4]),
    ]
    for k in range(7):
        nodes += [conv(f"s{k}", f"c{k}", 16, 16), helper.make_node("Relu", [f"c{k}"], [f"s{k + 1}"])]
    nodes += [
        helper.make_node("Resize", ["s7", "", "scales"], ["big"], mode="nearest", nearest_mode="floor",
                         coordinate_transformation_mode="asymmetric"),
        helper.make_node("Concat", ["skip", "big"], ["joined"], axis=1),
        conv("joined", "y", 2, 32, strides=[2, 2]),
    ]  # fmt: skip
    shapes = {"x": [1, 3, size, size], "y": [1, 2, size // 2, size // 2]}
    return saved(path, nodes, shapes, weights)


def test_copies_make_the_same_and_stay_apart(tmp_path: Path) -> None:
    path, out = with_skip(tmp_path / "m.onnx"), tmp_path / "out.onnx"
    graph = graph_of(path)
    reading = reading_of(parsed(path), graph)
    (skip,) = late_skips(reading, 0.1)
    assert graph.tensors[skip.t].name == "skip"
    assert [graph.ops[i].kind for i in skip.late] == ["Concat"]
    assert [graph.ops[i].kind for i in skip.ops] == ["Conv", "Relu"]
    proto, origin = with_copies(parsed(path), reading, [skip])
    onnx.checker.check_model(proto, full_check=True)
    onnx.save(proto, out)
    assert sorted(origin.values()) == ["a", "skip"]
    again = next(name for name, first in origin.items() if first == "skip")
    assert {"skip", again} <= kept_values(out, "extended")  # not made one again
    shapes = {"x": (1, 3, 64, 64)}
    before, after = (measure(p, shapes, OFF, inputs=1, keep=True) for p in (path, out))
    assert not compare_outputs(before.outputs, after.outputs).ulps


def test_a_skip_is_made_again_in_stripes(tmp_path: Path) -> None:
    path = with_skip(tmp_path / "m.onnx")
    goal = OnnxGoal(settings=OFF, fixed=frozenset({"arena", "pattern"}), max_macs=0.5, without=frozenset({"order"}))
    ladder = climb(str(path), graph_of(path), goal, lambda text: None)
    chosen = ladder.chosen
    assert chosen is not None
    assert chosen.model is not None
    assert chosen.difference is not None
    assert not chosen.difference.ulps
    assert chosen.best.peak * 2 < ladder.rungs[0].best.peak
    assert any("again" in name for node in onnx.load_model_from_string(chosen.model).graph.node for name in node.output)

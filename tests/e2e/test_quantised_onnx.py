"""Stripes of quantised models: what their kernels ask for, and the copies of weights that a session keeps."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from onnx import helper
from onnx_files import graph_of, saved
from processors import kept_for_tiles
from session_peaks import session_peak
from traced_peaks import peak_contents

from modelplan.rewriting.striped_onnx.ladder import OnnxGoal, climb
from modelplan.rewriting.striped_onnx.onnx_search import OnnxSearch
from modelplan.rewriting.striped_onnx.writing import parsed, reading_of
from modelplan.runtimes.ort import ORT
from modelplan.runtimes.ort.measuring import SessionSettings, kept_values, measure

pytest.importorskip("onnxruntime")

#: Bytes that matrix products of integers keep for each thread from their first run on.
_THREAD = 40_000
#: Layers of a network: channels, window, stride and groups.
Layers = list[tuple[int, int, int, int]]


def convolutions(path: Path, layers: Layers, *, channels: int = 3, size: int = 48, dtype: type = np.uint8) -> Path:
    """QLinearConv of each layer between a quantisation and its reverse, and a mean over the map."""
    random = np.random.default_rng(0)
    zero: Any = np.array(128 if dtype is np.uint8 else 0, dtype)
    weights: dict[str, Any] = {"s": np.float32(0.05), "z": zero, "ws": np.float32(0.01), "wz": np.int8(0)}
    nodes = [helper.make_node("QuantizeLinear", ["x", "s", "z"], ["q0"])]
    made = channels
    for number, (out, window, stride, groups) in enumerate(layers):
        weights[f"w{number}"] = random.integers(-127, 127, (out, made // groups, window, window), np.int8)
        operands = [f"q{number}", "s", "z", f"w{number}", "ws", "wz", "s", "z"]
        how: dict[str, Any] = {"pads": [window // 2] * 4, "strides": [stride] * 2, "group": groups}
        nodes.append(helper.make_node("QLinearConv", operands, [f"q{number + 1}"], **how))
        made = out
    nodes.append(helper.make_node("DequantizeLinear", [f"q{len(layers)}", "s", "z"], ["f"]))
    nodes.append(helper.make_node("GlobalAveragePool", ["f"], ["y"]))
    shapes = {"x": [1, channels, size, size], "y": [1, made, 1, 1]}
    return saved(path, nodes, shapes, weights)


@pytest.mark.parametrize(
    ("channels", "layer", "dtype"),
    [
        (3, (32, 3, 2, 1), np.uint8),  # windows are copied
        (32, (32, 3, 1, 1), np.uint8),  # pixels are read by their addresses
        (32, (64, 1, 1, 1), np.uint8),
        (32, (64, 1, 2, 1), np.uint8),
        (32, (32, 3, 1, 32), np.uint8),  # depthwise
        (24, (24, 3, 1, 24), np.uint8),
        (32, (32, 3, 1, 4), np.uint8),
        (32, (12, 3, 1, 1), np.uint8),
        (32, (32, 3, 1, 1), np.int8),
        (32, (32, 1, 1, 1), np.int8),
    ],
)
def test_what_a_quantised_convolution_asks_for(
    tmp_path: Path, channels: int, layer: tuple[int, int, int, int], dtype: type
) -> None:
    path = convolutions(tmp_path / "m.onnx", [layer], channels=channels, dtype=dtype)
    expected = session_peak(graph_of(path), ORT).bytes
    settings = SessionSettings(level="basic", arena="off", pattern=False)
    found = measure(path, {"x": [1, channels, 48, 48]}, settings, runs=1).peak
    assert 0 <= found - expected < _THREAD + kept_for_tiles()


def test_weights_kept_for_stripes_are_weighed_against_rows(tmp_path: Path) -> None:
    path = convolutions(tmp_path / "m.onnx", [(32, 3, 2, 1), (32, 3, 1, 1), (32, 3, 2, 32), (64, 3, 1, 1)], size=128)
    reading = reading_of(parsed(path), graph_of(path), kept_values(path, "extended"))
    search = OnnxSearch(reading, most_macs=0.25, threads=1)
    plan = search.plans()[0]
    assert plan.peak * 2.5 < search.plain.peak
    assert all(stretch.first > 0 for stretch in plan.stretches)  # a session quantises the input before it is cut
    goal = OnnxGoal(settings=SessionSettings(level="extended"), without=frozenset({"order"}))
    rung = climb(str(path), graph_of(path), goal, lambda text: None).chosen
    assert rung is not None
    assert rung.difference is not None
    assert rung.name == "split"
    assert not rung.difference.ulps
    assert rung.best.peak <= 1.1 * plan.peak + kept_for_tiles()


def test_what_is_allocated_at_the_peak(tmp_path: Path) -> None:
    path = convolutions(tmp_path / "m.onnx", [(32, 3, 2, 1), (32, 3, 1, 1)], size=96)
    found = peak_contents(path, {"x": [1, 3, 96, 96]}, "basic")
    pixels = 48 * 48
    assert found.running == "QLinearConv"
    assert found.own == pytest.approx(32 * pixels * (4 + 1 + 1) + 3 * 96 * 96 + 27 * pixels, rel=0.02)
    assert dict(found.others) == {"QuantizeLinear": pytest.approx(3 * 96 * 96, abs=64)}

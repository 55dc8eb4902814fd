"""Stripes of convolutions that a session multiplies with what stands behind them: all share the folded weights."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import helper
from onnx_files import graph_of, saved

from modelplan.rewriting.striped_onnx.equal_nodes import with_fused
from modelplan.rewriting.striped_onnx.ladder import OnnxGoal, climb
from modelplan.rewriting.striped_onnx.onnx_search import OnnxSearch
from modelplan.rewriting.striped_onnx.output_differences import compare_outputs
from modelplan.rewriting.striped_onnx.unrolled_nodes import peak, run_order, striped_onnx_program
from modelplan.rewriting.striped_onnx.writing import parsed, reading_of, write_striped_onnx
from modelplan.rewriting.stripes.stretches import RecomputedHalo
from modelplan.runtimes.ort.measuring import SessionSettings, kept_values, measure, write_optimized

pytest.importorskip("onnxruntime")

SHAPES = {"x": [1, 8, 64, 64]}


def normalized(path: Path, depth: int = 3) -> Path:
    """Convolutions with normalizations behind them, and a mean over a smaller map."""
    random = np.random.default_rng(0)
    nodes, weights = [], dict[str, Any]()
    x, channels = "x", 8
    for number in range(depth):
        weights[f"w{number}"] = random.standard_normal((32, channels, 3, 3)).astype(np.float32) / 9
        for word in ("scale", "shift", "mean", "variance"):
            weights[f"{word}{number}"] = random.uniform(0.5, 1.5, 32).astype(np.float32)
        operands = [f"{word}{number}" for word in ("scale", "shift", "mean", "variance")]
        nodes += [
            helper.make_node("Conv", [x, f"w{number}"], [f"c{number}"], pads=[1] * 4),
            helper.make_node("BatchNormalization", [f"c{number}", *operands], [f"n{number}"]),
            helper.make_node("Relu", [f"n{number}"], [f"r{number}"]),
        ]
        x, channels = f"r{number}", 32
    nodes.append(helper.make_node("MaxPool", [x], ["small"], kernel_shape=[4, 4], strides=[4, 4]))
    nodes.append(helper.make_node("Sigmoid", ["small"], ["soft"]))
    nodes.append(helper.make_node("GlobalAveragePool", ["soft"], ["y"]))
    return saved(path, nodes, {"x": SHAPES["x"], "y": [1, 32, 1, 1]}, weights)


def test_folded_convolutions_are_those_of_a_session(tmp_path: Path) -> None:
    path = normalized(tmp_path / "m.onnx")
    write_optimized(path, "basic", tmp_path / "optimized.onnx")
    folded = with_fused(parsed(path), parsed(tmp_path / "optimized.onnx"), tmp_path)
    assert folded is not None
    onnx.checker.check_model(folded, full_check=True)
    assert [node.op_type for node in folded.graph.node] == ["Conv", "Relu"] * 3 + [
        "MaxPool",
        "Sigmoid",
        "GlobalAveragePool",
    ]
    assert not {tensor.name for tensor in folded.graph.initializer} & {"w0", "scale0", "mean2"}
    onnx.save(folded, tmp_path / "folded.onnx")
    for level in ("basic", "extended", "all"):
        runs = [
            measure(file, SHAPES, SessionSettings(level=level), runs=1, inputs=2, keep=True)
            for file in (path, tmp_path / "folded.onnx")
        ]
        assert not compare_outputs(runs[0].outputs, runs[1].outputs).ulps
    assert with_fused(folded, parsed(tmp_path / "optimized.onnx"), tmp_path) is None


def between_quantisations(path: Path) -> Path:
    """Two convolutions with a ReLU, each between DequantizeLinear and QuantizeLinear."""
    random = np.random.default_rng(0)
    weights: dict[str, Any] = {"s": np.float32(0.05), "z": np.uint8(0), "ws": np.float32(0.01), "wz": np.int8(0)}
    nodes = [helper.make_node("QuantizeLinear", ["x", "s", "z"], ["q0"])]
    for number in range(2):
        weights[f"w{number}"] = random.integers(-127, 127, (8, 8, 3, 3), np.int8)
        nodes += [
            helper.make_node("DequantizeLinear", [f"q{number}", "s", "z"], [f"f{number}"]),
            helper.make_node("DequantizeLinear", [f"w{number}", "ws", "wz"], [f"g{number}"]),
            helper.make_node("Conv", [f"f{number}", f"g{number}"], [f"c{number}"], pads=[1] * 4),
            helper.make_node("Relu", [f"c{number}"], [f"r{number}"]),
            helper.make_node("QuantizeLinear", [f"r{number}", "s", "z"], [f"q{number + 1}"]),
        ]
    nodes.append(helper.make_node("DequantizeLinear", ["q2", "s", "z"], ["y"]))
    return saved(path, nodes, dict.fromkeys("xy", SHAPES["x"]), weights)


def test_convolutions_between_quantisations_become_quantised_ones(tmp_path: Path) -> None:
    path = between_quantisations(tmp_path / "m.onnx")
    write_optimized(path, "extended", tmp_path / "optimized.onnx")
    fused = with_fused(parsed(path), parsed(tmp_path / "optimized.onnx"), tmp_path)
    assert fused is not None
    onnx.checker.check_model(fused, full_check=True)
    kinds = [node.op_type for node in fused.graph.node]
    assert kinds == ["QuantizeLinear", "QLinearConv", "QLinearConv", "DequantizeLinear"]
    onnx.save(fused, tmp_path / "fused.onnx")
    for level in ("extended", "all"):
        runs = [
            measure(file, SHAPES, SessionSettings(level=level), runs=1, inputs=2, keep=True)
            for file in (path, tmp_path / "fused.onnx")
        ]
        assert not compare_outputs(runs[0].outputs, runs[1].outputs).ulps
    write_optimized(path, "basic", tmp_path / "basic.onnx")
    assert with_fused(parsed(path), parsed(tmp_path / "basic.onnx"), tmp_path) is None


def test_stripes_share_the_folded_weights(tmp_path: Path) -> None:
    path = normalized(tmp_path / "m.onnx")
    goal = OnnxGoal(settings=SessionSettings(level="basic"), without=frozenset({"order"}))
    rung = climb(str(path), graph_of(path), goal, lambda text: None).chosen
    assert rung is not None
    assert rung.model is not None
    assert rung.difference is not None
    assert not rung.difference.ulps
    out = tmp_path / "out.onnx"
    out.write_bytes(rung.model)
    settings = SessionSettings(level="basic", arena="off", pattern=False)
    before, after = (measure(file, SHAPES, settings, runs=1) for file in (path, out))
    assert after.session < before.session + 16_384
    assert after.above(before.session).peak * 2 < before.peak


def test_extents_are_told_again_behind_the_last_stripe(tmp_path: Path) -> None:
    path = normalized(tmp_path / "m.onnx")
    reading = reading_of(parsed(path), graph_of(path), kept_values(path, "disable"))
    search = OnnxSearch(reading, most_macs=0.25, threads=1)
    plan = next(plan for plan in search.plans() if plan.stretches[-1].last < len(reading.graph.ops) - 1)
    program = striped_onnx_program(reading, plan.stretches, 1)
    out = tmp_path / "out.onnx"
    runs = [measure(path, SHAPES, SessionSettings(level="disable"), runs=1, inputs=1, keep=True)]
    for known in (False, True):
        out.write_bytes(write_striped_onnx(parsed(path), reading, program, unnamed=True, known_tail=known))
        model = onnx.load(out)
        onnx.checker.check_model(model, full_check=True)
        told = [node for node in model.graph.node if node.op_type == "Reshape"]
        assert bool(told) == known
        runs.append(measure(out, SHAPES, SessionSettings(level="disable"), runs=1, inputs=1, keep=True))
        assert not compare_outputs(runs[0].outputs, runs[-1].outputs).ulps


def test_results_that_are_read_late_are_made_with_their_stripe(tmp_path: Path) -> None:
    random = np.random.default_rng(0)
    weights = {name: random.standard_normal(shape).astype(np.float32) for name, shape in
               (("w", (32, 8, 3, 3)), ("side", (4, 32, 1, 1)), ("main", (4, 32, 3, 3)))}  # fmt: skip
    nodes = [
        helper.make_node("Conv", ["x", "w"], ["wide"], pads=[1] * 4),
        helper.make_node("Conv", ["wide", "side"], ["lateral"]),
        helper.make_node("Conv", ["wide", "main"], ["deep"], pads=[1] * 4, strides=[2, 2]),
        helper.make_node("Sigmoid", ["deep"], ["soft"]),
        helper.make_node("GlobalAveragePool", ["soft"], ["mean"]),
        helper.make_node("Mul", ["lateral", "mean"], ["y"]),
    ]
    path = saved(tmp_path / "m.onnx", nodes, {"x": SHAPES["x"], "y": [1, 4, 64, 64]}, weights)
    reading = reading_of(parsed(path), graph_of(path), kept_values(path, "basic"))
    rows = tuple(range(0, 33, 4))
    program = striped_onnx_program(reading, [RecomputedHalo(0, 2, 2, rows, pad=frozenset(range(3)))])
    out = tmp_path / "out.onnx"
    out.write_bytes(write_striped_onnx(parsed(path), reading, program, unnamed=True))
    settings = SessionSettings(level="basic", arena="off", pattern=False)
    before, after = (measure(file, SHAPES, settings, runs=1, inputs=1, keep=True) for file in (path, out))
    assert not compare_outputs(before.outputs, after.outputs).ulps
    assert after.peak * 2 < before.peak
    expected = peak(program, run_order(program.steps), behind=reading.graph.outputs)
    assert after.peak == pytest.approx(expected, rel=0.2)

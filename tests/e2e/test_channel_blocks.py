"""At level all ONNX Runtime computes in blocks of channels: stripes leave alone what then needs other kernels."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper
from shares import sample

from modelplan.formats import load_model
from modelplan.primitives.reporting import Report, report_nothing
from modelplan.rewriting.striped_onnx import ladder
from modelplan.rewriting.striped_onnx.ladder import OnnxGoal, OnnxLadder, OnnxRung
from modelplan.rewriting.striped_onnx.output_differences import first_difference
from modelplan.rewriting.striped_onnx.unrolled_nodes import striped_onnx_program
from modelplan.rewriting.striped_onnx.writing import chains_in_blocks, parsed, reading_of, write_striped_onnx
from modelplan.rewriting.stripes.row_windows import IllegalStripeError
from modelplan.rewriting.stripes.stretches import RecomputedHalo
from modelplan.runtimes.ort.measuring import SessionSettings, blocked_values, measure

pytest.importorskip("onnxruntime")
OPSETS = (9, 11, 13, 17, 19, 21, 22)


def classifier(path: Path, opset: int, *, residual: bool = False, size: int = 48) -> Path:
    """Convolutions with SiLU, wide at first, and a mean over the last map, which kernels for blocks add up."""
    random = np.random.default_rng(0)
    nodes, weights, x, before = [], [], "x", 3
    for k, (channels, stride) in enumerate(((16, 1), (16, 1), (32, 2), (32, 1))):
        weight = random.standard_normal((channels, before, 3, 3)).astype(np.float32) / 8
        weights.append(numpy_helper.from_array(weight, f"w{k}"))
        nodes += [
            helper.make_node("Conv", [x, f"w{k}"], [f"c{k}"], f"conv{k}", pads=[1] * 4, strides=[stride] * 2),
            helper.make_node("Sigmoid", [f"c{k}"], [f"s{k}"], f"sigmoid{k}"),
            helper.make_node("Mul", [f"c{k}", f"s{k}"], [f"y{k}"], f"mul{k}"),
        ]
        x, before = f"y{k}", channels
    if residual:
        nodes[-2:] = [helper.make_node("Add", ["c3", "y2"], [x], "sum")]
    nodes.append(helper.make_node("GlobalAveragePool", [x], ["mean"], "mean"))
    values = [
        helper.make_tensor_value_info("x", 1, [1, 3, size, size]),
        helper.make_tensor_value_info("mean", 1, [1, 32, 1, 1]),
    ]
    graph = helper.make_graph(nodes, "g", values[:1], values[1:], weights)
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8), path)
    return path


def climbed(path: Path, level: str, progress: Report = report_nothing) -> OnnxLadder:
    settings = SessionSettings(level=level, arena="off", pattern=False)
    goal = OnnxGoal(settings=settings, fixed=frozenset({"arena", "pattern", "order"}), without=frozenset({"order"}))
    return ladder.climb(str(path), load_model(path), goal, progress)


def in_stripes(found: OnnxLadder) -> OnnxRung:
    assert found.chosen is not None
    assert found.chosen.name == "split", found.remarks
    assert found.chosen.difference is not None
    assert found.chosen.difference.ulps == 0
    return found.chosen


@pytest.mark.slow
@pytest.mark.parametrize(("level", "opsets"), [("extended", OPSETS[::6]), ("all", sample(OPSETS))])
def test_every_opset_is_split_alike(tmp_path: Path, level: str, opsets: Sequence[int]) -> None:
    ladders = [climbed(classifier(tmp_path / "m.onnx", opset), level) for opset in opsets]
    rungs = [in_stripes(found) for found in ladders]
    assert not any("differ" in remark for found in ladders for remark in found.remarks)
    assert len({rung.stretches for rung in rungs}) == 1
    if level == "extended":  # at level all each process orders the nodes that it adds in its own way
        peaks = [rung.best.peak for rung in rungs]
        assert max(peaks) <= 1.01 * min(peaks)


@pytest.mark.slow
def test_rows_are_made_again_where_keeping_them_differs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ladder, "blocked_values", lambda _: {})
    said: list[str] = []
    found = climbed(classifier(tmp_path / "m.onnx", 13, size=64), "all", said.append)
    assert any("searching for stripes that recompute rows" in line for line in said)
    assert "op 12 GlobalAveragePool 'mean' is the first to differ" in " ".join(found.remarks)
    in_stripes(found)


def test_another_kernel_is_named_and_such_stripes_are_refused(tmp_path: Path) -> None:
    path = classifier(tmp_path / "m.onnx", 17)
    graph, proto, blocked = load_model(path), parsed(path), blocked_values(path)
    stretch = RecomputedHalo(0, 9, 2, (0, 12, 24), pad=frozenset(range(10)))
    reading = reading_of(proto, graph)
    program = striped_onnx_program(reading, [stretch])
    striped = type(proto).FromString(write_striped_onnx(proto, reading, program))

    def outputs(file: bytes) -> Any:
        (tmp_path / "run.onnx").write_bytes(file)
        shapes = {"x": (1, 3, 48, 48)}
        return measure(tmp_path / "run.onnx", shapes, SessionSettings(), runs=1, inputs=1, keep=True).outputs[0]

    said = first_difference(reading, program, (proto, striped), outputs)
    if not blocked:
        assert said.startswith("no value")
        pytest.skip("this processor has no kernels for blocks of channels")
    assert said == "op 12 GlobalAveragePool 'mean' is the first to differ"
    with pytest.raises(IllegalStripeError, match="'mean': another kernel would compute it"):
        striped_onnx_program(reading_of(proto, graph, None, blocked), [stretch])


@pytest.mark.parametrize(("residual", "chains"), [(False, {"mean": "c3 mean s3 y3"}), (True, {
    "mean": "c2 c3 mean s2 y2 y3", "y3": "c2 c3 s2 y2 y3"})])  # fmt: skip
def test_chains_end_at_convolutions(tmp_path: Path, residual: bool, chains: dict[str, str]) -> None:
    path = classifier(tmp_path / "m.onnx", 17, residual=residual)
    graph, blocked = load_model(path), blocked_values(path)
    if not blocked:
        pytest.skip("this processor has no kernels for blocks of channels")
    names = [tensor.name for tensor in graph.tensors]
    found = chains_in_blocks(graph, blocked)
    assert {names[t]: " ".join(sorted(names[u] for u in chain)) for t, chain in found.items()} == chains
    assert chains_in_blocks(graph, {}) == {}

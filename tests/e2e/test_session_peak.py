"""What `analyze` says that a session of ONNX Runtime allocates is what it allocates, within a tenth."""

from __future__ import annotations

from pathlib import Path

import pytest
from commands import run

from modelplan import Graph, load
from modelplan.runtimes.ort import ORT
from modelplan.runtimes.ort.measuring import Settings, measure
from modelplan.session_blocks import session_peak

pytest.importorskip("onnxruntime")


@pytest.mark.parametrize("name", ["resnet8", "unet_small", "transformer_encoder", "mobilenet_v2_like"])
def test_the_peak_of_a_session(models: Path, name: str) -> None:
    path = models / f"{name}.onnx"
    graph = load(path)
    assert isinstance(graph, Graph)
    shapes = {graph.tensors[t].name: graph.tensors[t].shape for t in graph.inputs}
    expected = session_peak(graph, ORT).bytes
    for level in ("disable", "basic"):
        found = measure(path, shapes, Settings(level=level, arena="off", pattern=False), runs=1).peak
        assert expected == pytest.approx(found, rel=0.1 if level == "basic" else 0)


def test_analyze_says_so(models: Path) -> None:
    done = run("analyze", models / "unet_small.onnx")
    assert "576.00 KiB (589,824 B) at most, at op" in done.stdout
    assert "at optimization levels off and basic" in done.stdout
    assert "What a session allocates" not in run("analyze", models / "unet_small.onnx", "--runtime", "generic").stdout

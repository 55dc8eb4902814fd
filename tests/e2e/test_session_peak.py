"""What `analyze` says that a session of ONNX Runtime allocates is what it allocates, within a tenth."""

from __future__ import annotations

from pathlib import Path

import onnx
import onnx_stripes
import pytest

from modelplan import Graph, load
from modelplan.planning.session_blocks import session_peak
from modelplan.runtimes.ort import ORT
from modelplan.runtimes.ort.measuring import SessionSettings, measure
from modelplan.runtimes.ort.shapes import session_extents

pytest.importorskip("onnxruntime")


@pytest.mark.parametrize("name", ["resnet8", "unet_small", "transformer_encoder", "mobilenet_v2_like"])
def test_the_peak_of_a_session(models: Path, name: str) -> None:
    path = models / f"{name}.onnx"
    graph = load(path)
    assert isinstance(graph, Graph)
    shapes = {graph.tensors[t].name: graph.tensors[t].shape for t in graph.inputs}
    expected = session_peak(graph, ORT).bytes
    for level in ("disable", "basic"):
        found = measure(path, shapes, SessionSettings(level=level, arena="off", pattern=False), runs=1).peak
        assert expected == pytest.approx(found, rel=0.1 if level == "basic" else 0)


@pytest.mark.parametrize(("seed", "kept"), [(2, True), (4, False), (5, False), (8, False)])
def test_the_peak_of_a_session_of_a_file_in_stripes(tmp_path: Path, seed: int, kept: bool) -> None:
    path, out = tmp_path / "m.onnx", tmp_path / "out.onnx"
    onnx.save(onnx_stripes.random_net(seed), path)
    graph = load(path)
    assert isinstance(graph, Graph)
    found = next(onnx_stripes.striped(path, graph, seed))
    assert f"kept: {kept}" in found[1]
    out.write_bytes(found[0])
    shape = graph.tensors[graph.inputs[0]].shape
    again = load(out, [], [f"x={','.join(map(str, shape))}"])
    assert isinstance(again, Graph)
    expected = session_peak(again, ORT, extents=session_extents(str(out), again)).bytes
    for level in ("disable", "basic"):
        measured = measure(out, {"x": shape}, SessionSettings(level=level, arena="off", pattern=False), runs=1).peak
        assert expected == pytest.approx(measured, rel=0.1)

"""What `analyze` says that a session of ONNX Runtime allocates is what it allocates, within a tenth."""

from __future__ import annotations

from pathlib import Path

import onnx
import onnx_stripes
import ort_files
import pytest
from processors import kept_for_tiles
from session_peaks import session_peak

from modelplan import Graph, load
from modelplan.formats import load_as_run
from modelplan.planning.session_heap import predicted_heap
from modelplan.planning.session_nodes import with_own_dequantised
from modelplan.runtimes.ort import ORT
from modelplan.runtimes.ort.measuring import MeasuringLimits, SessionSettings, measure, measure_each
from modelplan.runtimes.ort.session_shapes import session_extents

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


def test_a_symbol_that_is_bound_to_a_number_is_no_number(models: Path) -> None:
    """Of [.., 16, n] and [.., n, 16] neither takes the place of the other when n is 16."""
    path = models / "decoder_kv_dynamo.onnx"
    graph = load_as_run(path, ["batch=1", "sequence=8", "past_sequence=8"])
    shapes = {graph.tensors[t].name: graph.tensors[t].shape for t in graph.inputs}
    expected = session_peak(graph, ORT, extents=session_extents(str(path), graph)).bytes
    settings = SessionSettings(level="disable", arena="off", pattern=False)
    assert expected == measure(path, shapes, settings, runs=1).peak
    assert expected != session_peak(graph, ORT).bytes


@pytest.mark.parametrize("name", ["resnet8", "inception_like", "unet_small", "transformer_encoder"])
def test_each_reader_has_a_dequantize_linear_of_its_own(tmp_path: Path, name: str) -> None:
    assert ort_files.made(ort_files.MODELS / f"{name}.onnx", "qdq-u8", tmp_path) == ""
    path = tmp_path / "m.onnx"
    graph = load_as_run(path)
    shapes = {graph.tensors[t].name: graph.tensors[t].shape for t in graph.inputs}
    run, extents = with_own_dequantised(graph, session_extents(str(path), graph))
    settings = SessionSettings(level="disable", arena="off", pattern=False)
    assert session_peak(run, ORT, extents=extents).bytes == measure(path, shapes, settings, runs=1).peak
    assert len(run.ops) > len(graph.ops) or name == "transformer_encoder"


@pytest.mark.parametrize("form", ["qoperator-u8", "qoperator-s8"])
def test_products_of_integers_keep_buffers_in_their_thread(tmp_path: Path, form: str) -> None:
    """Of each setting, whichever was measured before it."""
    if kept_for_tiles():
        pytest.skip("its buffers are those of processors that multiply tiles")
    assert ort_files.made(ort_files.MODELS / "resnet8.onnx", form, tmp_path) == ""
    path = tmp_path / "m.onnx"
    graph = load(path)
    assert isinstance(graph, Graph)
    shapes = {graph.tensors[t].name: graph.tensors[t].shape for t in graph.inputs}
    settings = [SessionSettings(level="disable", arena=arena) for arena in ("default", "off", "default")]
    for one, taken in zip(settings, measure_each(path, shapes, settings, MeasuringLimits(600, 1 << 40)), strict=True):
        need = predicted_heap(graph, ORT, arena=one.arena != "off", extents=session_extents(str(path), graph))
        assert (need.first_tensors, need.later_tensors) == (taken.first, taken.steady)
        assert need.later == pytest.approx(taken.heap[1], rel=0.01)

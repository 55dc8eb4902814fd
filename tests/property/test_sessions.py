"""What is predicted of a session of ONNX Runtime is what a real one takes from the heap, on generated models."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import added_operators as added
import onnx
import ort_files
import pytest
import session_models
from hypothesis import given, settings
from hypothesis import strategies as st
from processors import kept_for_tiles
from session_peaks import session_peak

from modelplan.formats import load_as_run
from modelplan.planning.session_blocks import unknown_kernels
from modelplan.planning.session_heap import predicted_heap
from modelplan.planning.session_nodes import with_own_dequantised
from modelplan.runtimes.ort import ORT
from modelplan.runtimes.ort.feeding import Feeds
from modelplan.runtimes.ort.measuring import MeasuringLimits, SessionSettings, measure_each
from modelplan.runtimes.ort.session_shapes import session_extents

pytest.importorskip("onnxruntime")

SETTINGS = [
    SessionSettings(level="disable", arena=arena, pattern=pattern, keep_outputs=keep)
    for arena in ("default", "off")
    for pattern in (True, False)
    for keep in (True, False)
]


def check_near(expected: int, measured: int, settings: str, left_out: int = 0) -> None:
    """Below what was measured by no more than the margin of budgets covers, above by a little more."""
    assert measured - expected <= 4096 + measured * 0.01 + left_out, settings
    assert expected - measured <= max(8192, measured * 0.01), settings


def check(path: Path, dims: tuple[str, ...] = (), left_out: int = 0) -> None:
    """Of tensors each byte is predicted, but for so many that may be `left_out`."""
    graph = load_as_run(path, dims)
    shapes = {graph.tensors[t].name: graph.tensors[t].shape for t in graph.inputs}
    graph, extents = with_own_dequantised(graph, session_extents(str(path), graph))
    for one, found in zip(SETTINGS, measure_each(path, shapes, SETTINGS, MeasuringLimits(600, 1 << 40)), strict=True):
        need = predicted_heap(
            graph, ORT, arena=one.arena != "off", pattern=one.pattern, extents=extents, keep_outputs=one.keep_outputs
        )
        tensors = zip((need.first_tensors, need.later_tensors), (found.first, found.steady), strict=True)
        assert all(0 <= measured - expected <= left_out for expected, measured in tensors), one.described()
        for expected, measured in zip((need.first, need.later), found.heap, strict=True):
            check_near(expected, measured, one.described(), left_out)


@pytest.mark.slow
@settings(max_examples=12)
@given(nodes=st.integers(1, 400), seed=st.integers(0, 1000), extent=st.sampled_from([16, 500, 4096, 30000]))
def test_dags(tmp_path_factory: pytest.TempPathFactory, nodes: int, seed: int, extent: int) -> None:
    path = tmp_path_factory.mktemp("dag") / "m.onnx"
    onnx.save(session_models.dag(nodes, seed, extent), path)
    check(path)


@pytest.mark.slow
@settings(max_examples=8)
@given(
    kind=st.sampled_from(["LSTM", "GRU", "RNN"]),
    steps=st.integers(2, 40),
    hidden=st.integers(4, 80),
    layers=st.integers(1, 3),
    both=st.booleans(),
)
def test_recurrent_networks(
    tmp_path_factory: pytest.TempPathFactory, kind: str, steps: int, hidden: int, layers: int, both: bool
) -> None:
    path = tmp_path_factory.mktemp("rnn") / "m.onnx"
    onnx.save(session_models.recurrent(kind, steps, hidden, layers, both), path)
    graph = load_as_run(path)
    shapes = {graph.tensors[t].name: graph.tensors[t].shape for t in graph.inputs}
    found = measure_each(path, shapes, SETTINGS, MeasuringLimits(600, 1 << 40))
    for one, measured in zip(SETTINGS, found, strict=True):
        need = predicted_heap(graph, ORT, arena=one.arena != "off", pattern=one.pattern, keep_outputs=one.keep_outputs)
        for expected, taken in zip((need.first, need.later), measured.heap, strict=True):
            check_near(expected, taken, one.described())


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(path.stem for path in (session_models.ROOT / "models").glob("*.onnx")))
def test_the_projects_models(models: Path, name: str) -> None:
    check(models / f"{name}.onnx", session_models.DIMS.get(name, ()))


@pytest.mark.slow
@pytest.mark.parametrize("name", session_models.MAKERS["QDQ"])
def test_quantised_networks(tmp_path: Path, name: str) -> None:
    """Convolutions of integers keep their weights in the arena, in blocks of filters, where they are symmetric."""
    onnx.save(session_models.MAKERS["QDQ"][name](), tmp_path / "m.onnx")
    check(tmp_path / "m.onnx", left_out=kept_for_tiles())


@pytest.mark.slow
@pytest.mark.parametrize("draw", added.DRAWS, ids=lambda draw: draw(added.Draw(0)).name)
def test_operators_that_are_added_to_the_standard(tmp_path: Path, draw: Callable[[added.Draw], added.Drawn]) -> None:
    """Between operators that make what each reads, so that what lies in an operand's place shows."""
    path = tmp_path / "m.onnx"
    one = SessionSettings(level="disable", arena="off", pattern=False, keep_outputs=False)
    if draw(added.Draw(0)).name not in added.registered():
        pytest.skip("another version of ONNX Runtime")
    for seed in range(2):
        drawn = draw(added.LargeDraw(seed))
        onnx.save(added.model(drawn), path)
        if drawn.kind in added.BY_VALUES or unknown_kernels(load_as_run(path)):
            return  # not predicted
        graph = load_as_run(path)
        numbers = {"float32": 1, "uint8": 2, "int8": 3}
        onnx.save(added.chained(drawn, {t.name: numbers.get(t.dtype, 0) for t in graph.tensors}), path)
        graph = load_as_run(path)
        shapes = {graph.tensors[t].name: graph.tensors[t].shape for t in graph.inputs}
        [found] = measure_each(path, shapes, [one], MeasuringLimits(600, 1 << 40), Feeds())
        assert session_peak(graph, ORT).bytes == found.first == found.steady, seed


@pytest.mark.slow
@pytest.mark.parametrize("form", ["saved-extended", "saved-all"])
@pytest.mark.parametrize("name", ["bert_like", "decoder_kv", "resnet8", "unet_small"])
def test_files_that_a_session_has_optimised(tmp_path: Path, name: str, form: str) -> None:
    """Of their operators too a session knows extents by name, where onnx's inference knows none."""
    source = ort_files.MODELS / f"{name}.onnx"
    assert ort_files.made(source, form, tmp_path) == ""
    check(tmp_path / "m.onnx", tuple(option[len("--dim=") :] for option in ort_files.dims(onnx.load(source))))

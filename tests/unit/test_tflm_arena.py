"""The whole arena by part: TFLM's own rows to the byte, public totals of 32-bit boards within one percent."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from modelplan.errors import RequestError
from modelplan.runtimes.tflm.arena import BUFFERS, EVAL_TENSORS, MARGIN, NODES, QUANTIZATION, TENSORS, arena
from modelplan.runtimes.tflm.file import FileModel, read_tflite
from modelplan.runtimes.tflm.runner import installed, run_tflm

#: Tail bytes as the wheel reports them on x86-64.
TAILS = {
    "person_detect": 29968, "vww_96_int8": 29952, "pretrainedResnet_quant": 6832, "pretrainedResnet": 6768,
    "kws_ref_model": 8272, "str_ww_ref_model": 9984, "dtln_noise_suppression": 4416, "keyword_scrambled": 14480,
    "trained_lstm_int8": 2672, "hello_world_float": 1408, "litert_alias_bug": 1888, "ops/seanet_transpose_conv3": 1216,
    "audio_preprocessor_int8": 7184,
}  # fmt: skip

#: Public arena totals of boards: model, kernels, bytes.
BOARDS = [
    ("person_detect", "reference", 82300), ("kws_ref_model", "reference", 22780),
    ("pretrainedResnet_quant", "reference", 54364), ("ad01_int8", "reference", 2380),
    ("person_detect", "cmsis-dsp", 82740), ("kws_ref_model", "cmsis-dsp", 24164),
    ("pretrainedResnet_quant", "cmsis-dsp", 55188), ("ad01_int8", "cmsis-dsp", 2596),
    ("person_detect", "cmsis-mve", 84436),
]  # fmt: skip


def model(corpus: Path, name: str) -> FileModel:
    path = corpus / "tflite" / f"{name}.tflite"
    return read_tflite(path.read_bytes(), path.name)


@pytest.mark.parametrize(("name", "tail"), TAILS.items())
def test_the_tail_is_that_of_the_wheel(corpus: Path, name: str, tail: int) -> None:
    assert arena(model(corpus, name)).tail == tail


def test_the_rows_are_those_of_the_wheel(corpus: Path) -> None:
    rows = {row.name: (row.used, row.count) for row in arena(model(corpus, "person_detect")).rows}
    assert rows[EVAL_TENSORS] == (2136, 89)
    assert rows[TENSORS] == (128, 2)
    assert rows[QUANTIZATION] == (64, 4)
    assert rows[BUFFERS] == (24304, 88)
    assert rows[NODES] == (1984, 31)


@pytest.mark.parametrize(("name", "kernels", "total"), BOARDS)
def test_boards_are_within_one_percent(corpus: Path, name: str, kernels: str, total: int) -> None:
    assert arena(model(corpus, name), 32, kernels).total == pytest.approx(total, rel=0.01)


def test_operators_without_sizes_are_called_estimated(corpus: Path) -> None:
    known = model(corpus, "kws_ref_model")
    strange = replace(known.subgraphs[0].ops[0], kind="ONE_HOT")
    other = replace(known, subgraphs=(replace(known.subgraphs[0], ops=(strange,)),))
    trust = {row.name: row.trust for row in arena(other).rows}
    assert trust[MARGIN] == "estimated: ample for ONE_HOT, for which there are no sizes"
    assert trust[NODES].startswith("modelled for tflite-micro")


def test_the_array_holds_the_total_and_the_loss_of_alignment(corpus: Path) -> None:
    whole = arena(model(corpus, "kws_ref_model"))
    assert whole.total == 24272
    assert whole.size(margin=100) == 24272 + 112 + 16


def test_small_models_need_more_while_tflm_plans(corpus: Path) -> None:
    whole = arena(model(corpus, "hello_world_int8"))
    assert (whole.total, whole.planning, whole.size()) == (1504, 1960, 1984)


def test_refuses_a_pair_without_figures(corpus: Path) -> None:
    with pytest.raises(RequestError, match="no arena sizes for 64 bits with cmsis-mve kernels; there are: 64 bits"):
        arena(model(corpus, "kws_ref_model"), 64, "cmsis-mve")


@pytest.mark.skipif(not installed(), reason="tflite-micro is not installed")
def test_the_printed_arena_loads(models: Path, corpus: Path) -> None:
    paths = [*sorted(models.glob("*.tflite")), *sorted((corpus / "tflite").rglob("*.tflite"))]
    for path in paths:
        if path.stem != "person_detect_vela":  # no Ethos-U in the wheel
            whole = read_tflite(path.read_bytes(), path.name)
            run_tflm(whole.data, rounds=0, arena=arena(whole).size())

"""`modelplan fit --only plan`: smaller where it can be, never larger, and TFLM agrees to the byte."""

from __future__ import annotations

from pathlib import Path

import pytest
from commands import run
from tflite_models import branching, looping

from modelplan.formats import load_model
from modelplan.rewriting.packing import answer, question_of
from modelplan.runtimes.tflm.arena import arena
from modelplan.runtimes.tflm.file import read_tflite
from modelplan.runtimes.tflm.metadata import write_plan
from modelplan.runtimes.tflm.planner import predicted_head
from modelplan.runtimes.tflm.runner import INSTALL, RefusalError, installed, run_tflm

runtime = pytest.mark.skipif(not installed(), reason=f"tflite-micro is not installed: {INSTALL}")

PLANNED = [
    "ad01_int8", "audio_preprocessor_int8", "dtln_noise_suppression", "hello_world_float", "hello_world_int8",
    "keyword_scrambled", "keyword_scrambled_8bit", "kws_ref_model", "litert_alias_bug", "micro_speech_lstm",
    "micro_speech_quantized", "ops/seanet_add0", "ops/seanet_conv19", "ops/seanet_conv6", "ops/seanet_leaky_relu5",
    "ops/seanet_strided_slice0", "ops/seanet_strided_slice15", "ops/seanet_transpose_conv3", "person_detect",
    "pretrainedResnet", "pretrainedResnet_quant", "simple_add_model", "str_ww_ref_model", "trained_lstm_int8",
    "vww_96_int8",
]  # fmt: skip


@pytest.mark.slow
@runtime
@pytest.mark.parametrize("name", PLANNED)
def test_tflm_agrees_to_the_byte(corpus: Path, name: str) -> None:
    path = corpus / "tflite" / f"{name}.tflite"
    model = read_tflite(path.read_bytes(), name)
    plan = answer(question_of(model, load_model(path), "none"))
    packed = write_plan(model, plan.offsets)
    own, ours = run_tflm(model.data, rounds=1), run_tflm(packed, rounds=1)
    assert own.head == predicted_head(model)
    assert ours.head == plan.head == predicted_head(read_tflite(packed, "packed"))
    assert ours.head <= own.head
    assert ours.outputs == own.outputs
    assert ours.rows == own.rows


@pytest.mark.slow
@runtime
@pytest.mark.parametrize("name", ["autoencoder", "ds_cnn_kws", "mobilenet_v2_like", "resnet8", "unet_small"])
def test_own_models_have_the_arena_that_tflm_reports(models: Path, name: str) -> None:
    model = read_tflite((models / f"{name}.tflite").read_bytes(), name)
    reported, modelled = run_tflm(model.data, rounds=0), arena(model)
    assert (reported.head, reported.tail) == (modelled.head, modelled.tail)
    run_tflm(model.data, rounds=1, arena=modelled.size())


@pytest.mark.slow
@runtime
@pytest.mark.parametrize(("name", "head"), [("litert_alias_bug", 512), ("simple_add_model", 32768)])
def test_results_over_operands(corpus: Path, tmp_path: Path, name: str, head: int) -> None:
    source, packed = corpus / "tflite" / f"{name}.tflite", tmp_path / "packed.tflite"
    assert run("pack", source, "-o", packed, "--alias", "safe").returncode == 0
    own, ours = run_tflm(source.read_bytes()), run_tflm(packed.read_bytes())
    assert ours.head == head < own.head
    assert ours.outputs == own.outputs


@pytest.mark.slow
@runtime
def test_tflm_says_why_it_refuses(corpus: Path) -> None:
    with pytest.raises(RefusalError, match="Failed to get registration from op code CUSTOM"):
        run_tflm((corpus / "tflite" / "person_detect_vela.tflite").read_bytes())


def test_prints_before_and_after(corpus: Path, tmp_path: Path) -> None:
    source = corpus / "tflite" / "vww_96_int8.tflite"
    done = run("pack", source, "-o", tmp_path / "packed.tflite", "--kernels", "reference")
    assert "head before    72.00 KiB (73,728 B)" in done.stdout
    assert "head after     54.00 KiB (55,296 B)" in done.stdout
    assert "proven optimal" in done.stdout


def test_refuses_what_it_cannot_pack(corpus: Path, tmp_path: Path, models: Path) -> None:
    for words, code, said in [
        (("pack", tmp_path / "no.tflite", "-o", "x.tflite"), 3, "No such file"),
        (("pack", corpus / "tflite" / "person_detect_vela.tflite", "-o", "x.tflite"), 3, "ethos-u"),
        (("pack", models / "ds_cnn_kws.tflite"), 2, "-o"),
        (("pack", models / "ds_cnn_kws.tflite", "-o", "x.onnx"), 2, "x.onnx: expected a name that ends in .tflite"),
        (("fit", models / "ds_cnn_kws.tflite", "--least", "-o", "x.onnx"), 2, "x.onnx: expected a name that ends in"),
    ]:
        done = run(*words, cwd=tmp_path)
        assert done.returncode == code, done.stderr
        assert said in done.stderr


@pytest.mark.slow
@runtime
@pytest.mark.parametrize("data", [branching(), looping()], ids=["if", "while"])
def test_several_subgraphs(data: bytes, tmp_path: Path) -> None:
    source, packed = tmp_path / "model.tflite", tmp_path / "packed.tflite"
    source.write_bytes(data)
    done = run("pack", source, "-o", packed, "--force")
    assert done.returncode == 0, done.stderr
    own, ours = run_tflm(data), run_tflm(packed.read_bytes())
    assert own.head == predicted_head(read_tflite(data, "own"))
    assert ours.head == predicted_head(read_tflite(packed.read_bytes(), "packed")) <= own.head
    assert ours.outputs == own.outputs
    assert run("verify", packed).returncode == 0


def test_a_board_names_kernels_and_abi(models: Path, tmp_path: Path) -> None:
    model, words = models / "ds_cnn_kws.tflite", ("--alias", "safe", "-o", "out.tflite")
    board = run("fit", "--only", "plan", model, *words, "--target", "stm32h743", cwd=tmp_path)
    packed = (tmp_path / "out.tflite").read_bytes()
    named = run("fit", "--only", "plan", model, *words, "--kernels", "cmsis-dsp", "--abi", "cortex-m", cwd=tmp_path)
    assert board.stdout == named.stdout
    assert packed == (tmp_path / "out.tflite").read_bytes()
    resnet, written = models / "resnet8.tflite", tmp_path / "ordered.tflite"
    ordered = run("fit", "--only", "order", resnet, "--target", "stm32h743", "-o", written)
    assert (ordered.returncode, ordered.stderr) == (0, "")
    assert "ABI cortex-m, cmsis-dsp kernels" in ordered.stdout


def test_it_ends_with_the_number_to_paste(tmp_path: Path) -> None:
    kws = Path(__file__).resolve().parents[2] / "models" / "ds_cnn_kws.tflite"
    out = tmp_path / "p.tflite"
    done = run("fit", "--only", "plan", kws, "-o", out, "--alias", "safe", "--kernels", "reference")
    needed = arena(read_tflite(out.read_bytes(), "p"), "32", "reference").total
    declared = -(-needed // 16) * 16
    assert done.stdout.splitlines()[-1] == f"  #define TENSOR_ARENA_SIZE {declared}  // reference kernels, ABI 32"

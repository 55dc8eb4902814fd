"""`fit --runtime c`: what is written compiles alone, needs as much memory as promised, and computes what TFLM does."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import numpy as np
import pytest
from c_plans import fault_of, faults
from commands import run
from mobilenet_v2 import mobilenet_v2
from random_cnns import deep_cnn
from shares import few_first, sample
from standalone_c import SANITIZERS
from tflm_models import T, single

from modelplan.cli import main
from modelplan.primitives.errors import ModelError, RequestError
from modelplan.questions.alternatives import load_file
from modelplan.questions.c_fitting import FitCRequest, c_requirement, fit_c
from modelplan.questions.verifying import VerifyRequest, verify
from modelplan.runtimes.tflm.file import load_tflite
from modelplan.runtimes.tflm.generated_inputs import generated_inputs
from modelplan.runtimes.tflm.runner import tflm_values

ROOT = Path(__file__).resolve().parents[2]
MODELS = ROOT / "models"
STRICT = ["-std=c99", "-Wall", "-Wextra", "-Wconversion", "-Wpedantic", "-Werror"]
MAIN = """
#include <stdio.h>
#include <string.h>
#include "net.h"
int main(void)
{
    static unsigned char in[NET_INPUT_BYTES];
    while (fread(in, 1, sizeof in, stdin) == sizeof in) {
#ifdef NET_ROW_BYTES
        int done = 0;
        net_start();
        for (unsigned at = 0; at < sizeof in; at += NET_ROW_BYTES) { done = net_push_row((const void *)(in + at)); }
        if (!done) { return 1; }
#else
        memcpy(net_input(), in, sizeof in);
        net_invoke();
#endif
        fwrite(net_output(), 1, NET_OUTPUT_BYTES, stdout);
    }
    return 0;
}
"""


def static_bytes(folder: Path) -> int:
    """The bytes of initialised and zeroed memory of net.c."""
    subprocess.run(["cc", *STRICT, "-O2", "-fno-pic", "-c", "net.c", "-o", "net.o"], cwd=folder, check=True)
    lines = subprocess.run(["nm", "-S", "net.o"], cwd=folder, check=True, capture_output=True, text=True).stdout
    return sum(int(m[1], 16) for m in re.finditer(r"^\S+ (\S+) [bBdD] ", lines, re.MULTILINE))


def outputs(folder: Path, inputs: bytes) -> bytes:
    (folder / "main.c").write_text(MAIN)
    command = ["cc", "-std=c99", *SANITIZERS, "main.c", "net.c", "-lm", "-o", "net"]
    subprocess.run(command, cwd=folder, check=True)
    done = subprocess.run(["./net"], cwd=folder, input=inputs, capture_output=True, check=False)
    assert done.returncode == 0, done.stderr.decode()[:2000]
    return done.stdout


def expected(path: Path) -> tuple[bytes, bytes]:
    """Inputs, random ones and extremes, and the outputs of TFLM."""
    pytest.importorskip("tflite_micro")
    model = load_tflite(str(path))
    feeds = [generated_inputs(model, 0, run) for run in range(3)]
    feeds += [[np.full(len(feeds[0][0]), limit, np.int8).tobytes()] for limit in (-128, 127)]
    found = tflm_values(model.data, feeds)
    return b"".join(feed[0] for feed in feeds), b"".join(run[0].tobytes() for run, _ in found)


@pytest.mark.slow
@pytest.mark.parametrize("pushed", [False, True], ids=["held", "by rows"])
@pytest.mark.parametrize(
    "without", ["overlaps,rows,parts", "rows,parts", "parts", ""], ids=["maps", "overlaps", "rows", "parts"]
)
@pytest.mark.parametrize("name", ["ds_cnn_kws.tflite", "resnet8.tflite"])
def test_every_rung_computes_what_tflm_does(tmp_path: Path, name: str, without: str, pushed: bool) -> None:
    rungs = frozenset(without.split(",")) - {""}
    ladder = fit_c(FitCRequest(str(MODELS / name), without=rungs, pushed=pushed))
    assert ladder.chosen is not None
    assert all((rung.bound or 0) <= rung.program.nbytes for rung in ladder.rungs)
    (tmp_path / "net.c").write_text(ladder.chosen.files.source)
    (tmp_path / "net.h").write_text(ladder.chosen.files.header)
    assert static_bytes(tmp_path) == ladder.chosen.ram
    inputs, wanted = expected(MODELS / name)
    assert outputs(tmp_path, inputs) == wanted


@pytest.mark.slow
def test_each_rung_needs_no_more_than_the_one_before() -> None:
    ladder = fit_c(FitCRequest(str(MODELS / "ds_cnn_kws.tflite")))
    assert [rung.name for rung in ladder.rungs] == ["maps", "overlaps", "rows", "parts"]
    needs = [rung.ram for rung in ladder.rungs]
    assert needs == sorted(needs, reverse=True)
    assert needs[-1] < 0.6 * needs[0]


@pytest.mark.slow
def test_tiles_need_less_where_work_may_be_added(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("tflite_micro")
    path, source = tmp_path / "net.tflite", tmp_path / "net.c"
    path.write_bytes(mobilenet_v2(0.35, 32))
    usual = fit_c(FitCRequest(str(path), pushed=True, without=frozenset({"maps", "overlaps", "rows"})))
    assert {rung.name for rung in usual.rungs} == {"parts"}
    words = ["fit", str(path), "--runtime", "c", "--input", "rows", "--without", "maps,overlaps,rows,parts"]
    assert main([*words, "-o", str(source), "--max-macs", "20%", "--self-test", str(tmp_path / "test.c")]) == 0
    printed = " ".join(capsys.readouterr().out.split())
    assert re.search(r"MACs [1-9]\S+% more than in the model; about \d+% more time", printed)
    found = re.search(r"RAM_BYTES (\d+)", source.with_suffix(".h").read_text())
    assert found
    assert int(found[1]) < 0.85 * min(rung.program.nbytes for rung in usual.rungs)
    assert not verify(VerifyRequest(str(path), str(source))).fault
    subprocess.run(["cc", "-std=c99", *SANITIZERS, "test.c", "-lm", "-o", "test"], cwd=tmp_path, check=True)
    assert "PASS" in subprocess.run(["./test"], cwd=tmp_path, check=True, capture_output=True, text=True).stdout
    least = fit_c(FitCRequest(str(path), pushed=True, max_time=1e-6, without=frozenset({"maps", "overlaps", "rows"})))
    assert {rung.macs for rung in least.rungs} == {0.0}


@pytest.mark.slow
def test_tiles_are_found_between_the_bound_of_parts_and_what_these_need(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("modelplan.plain_c.ladder.branch_by_branch", lambda rows: rows)  # in whose order tiles gain
    path, only_parts = str(MODELS / "inception_like.tflite"), frozenset({"maps", "overlaps", "rows", "again"})
    ladder = fit_c(FitCRequest(path, interface="int8", max_time=0.04, without=only_parts))
    *parts, tiles = ladder.rungs
    assert tiles.name == "tiles"
    assert tiles.bound is None
    assert max(rung.bound or 0 for rung in parts) < tiles.ram < min(rung.ram for rung in parts)
    assert 0 < tiles.time <= 0.04


@pytest.mark.slow
def test_a_budget_takes_the_first_rung_that_fits() -> None:
    path = str(MODELS / "ds_cnn_kws.tflite")
    all_rungs = fit_c(FitCRequest(path)).rungs
    ladder = fit_c(FitCRequest(path, budget=all_rungs[1].ram))
    assert ladder.chosen is not None
    assert ladder.chosen.name == "overlaps"
    assert fit_c(FitCRequest(path, budget=100)).chosen is None


def test_the_analysis_says_what_rows_need() -> None:
    path = str(MODELS / "ds_cnn_kws.tflite")
    rows = fit_c(FitCRequest(path, without=frozenset({"maps", "overlaps", "parts"}))).chosen
    assert rows is not None
    assert c_requirement(load_file(path), "portable").arena == rows.ram


def test_refusals_name_what_is_missing(tmp_path: Path) -> None:
    (tmp_path / "net.tflite").write_bytes(single("UNIQUE", [T("float32", (4,))], [T("float32", (4,))]))
    with pytest.raises(ModelError, match=r"no plain C: UNIQUE: no kernel for this kind of operator: op 0"):
        fit_c(FitCRequest(str(tmp_path / "net.tflite")))
    with pytest.raises(RequestError, match="no rung 'pixels'"):
        fit_c(FitCRequest(str(MODELS / "ds_cnn_kws.tflite"), without=frozenset({"pixels"})))
    with pytest.raises(RequestError, match="only portable kernels compute values again, not cmsis-dsp"):
        fit_c(FitCRequest(str(MODELS / "ds_cnn_kws.tflite"), kernels="cmsis-dsp", max_time=0.5))


@pytest.mark.parametrize("pushed", [False, True], ids=["held", "by rows"])
def test_verify_compiles_and_runs_what_was_written(tmp_path: Path, pushed: bool) -> None:
    pytest.importorskip("tflite_micro")
    model, source = str(MODELS / "ds_cnn_kws.tflite"), tmp_path / "net.c"
    chosen = fit_c(FitCRequest(model, pushed=pushed, without=frozenset({"parts"}))).chosen
    assert chosen is not None
    source.write_text(chosen.files.source)
    (tmp_path / "net.h").write_text(chosen.files.header)
    assert f" * {chosen.ram} bytes of RAM, no allocation" in chosen.files.source
    assert ("_ROWS 49\n" in chosen.files.header) == pushed
    assert not verify(VerifyRequest(model, str(source))).fault
    source.write_text(chosen.files.source.replace("(int8_t)clamp(", "(int8_t)clamp(1 + "))
    assert "outputs of run 0 differ" in verify(VerifyRequest(model, str(source))).fault
    (tmp_path / "net.h").write_text("int other(void);")
    with pytest.raises(RequestError, match="declares no network"):
        verify(VerifyRequest(model, str(source)))


@pytest.mark.parametrize("name", [
    "s_const_output.int8.0", "tconv_shape_input", "fc_int4.int8.0", "tr_float32_1x2x2x2_0132", "gesture",
])  # fmt: skip
def test_odd_structures_compute_what_tflm_computes(name: str, corpus: Path, tmp_path: Path) -> None:
    pytest.importorskip("tflite_micro")
    model, source = corpus / "wild" / f"{name}.tflite", tmp_path / "net.c"
    assert run("fit", model, "--runtime", "c", "-o", source, "--draw", tmp_path / "net.svg").returncode == 0
    assert not verify(VerifyRequest(str(model), str(source))).fault


def test_attention_is_computed_in_plain_c(tmp_path: Path) -> None:
    pytest.importorskip("tflite_micro")
    model, source = str(MODELS / "transformer_encoder.tflite"), tmp_path / "net.c"
    assert run("fit", model, "--runtime", "c", "-o", source).returncode == 0
    assert not verify(VerifyRequest(model, str(source))).fault


def test_plans_in_random_stages_are_right() -> None:
    pytest.importorskip("tflite_micro")
    wrong, refused = faults(range(12))
    assert not wrong
    assert refused < 6


@pytest.mark.parametrize("number", few_first([212, 28, 84, 92, 340]))
def test_a_single_row_is_right_by_parts(number: int, tmp_path: Path) -> None:
    pytest.importorskip("tflite_micro")
    assert not any(fault_of(deep_cnn(number), seed, tmp_path) for seed in range(4))


CORPUS = {
    ("tflite/vww_96_int8.tflite", True): 11_500, ("tflite/vww_96_int8.tflite", False): 28_100,
    ("tflite/person_detect.tflite", True): 10_500, ("tflite/person_detect.tflite", False): 13_900,
    ("tflite/pretrainedResnet_quant.tflite", False): 13_660, ("tflite/kws_ref_model.tflite", False): 9_640,
    ("tflite/mcu/mcunet_vww0.tflite", False): 21_800, ("tflite/mcu/mcunet_vww0.tflite", True): 13_500,
    ("tflite/mcu/micronet_vww2.tflite", False): 9_640, ("tflite/mcu/micronet_vww3.tflite", False): 30_000,
    ("tflite/mcu/kws_cnn_l.tflite", False): 9_100, ("tflite/mcu/kws_micronet_l.tflite", False): 40_700,
    ("tflite/mcu/ad_micronet_large.tflite", False): 77_500,
    ("tflite/wakeword/okay_nabu.tflite", False): 6_464, ("tflite/wakeword/alexa.tflite", False): 6_080,
    ("tflite/str_ww_ref_model.tflite", False): 5_536,
    ("camera/fomo_face_detection.tflite", False): 29_000, ("camera/fomo_face_detection.tflite", True): 12_500,
}  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize(("name", "pushed"), sample([*CORPUS]), ids=lambda value: str(value).rpartition("/")[2])
def test_known_networks_need_little(tmp_path: Path, corpus: Path, name: str, pushed: bool) -> None:
    path = corpus / name
    ladder = fit_c(FitCRequest(str(path), pushed=pushed, budget=CORPUS[name, pushed]))
    assert ladder.chosen is not None
    assert all((rung.bound or 0) <= rung.program.nbytes for rung in ladder.rungs)
    (tmp_path / "net.c").write_text(ladder.chosen.files.source)
    (tmp_path / "net.h").write_text(ladder.chosen.files.header)
    assert static_bytes(tmp_path) == ladder.chosen.ram <= CORPUS[name, pushed]
    inputs, wanted = expected(path)
    assert outputs(tmp_path, inputs) == wanted


def test_numbers_outside_of_the_flatbuffer_are_refused(corpus: Path, tmp_path: Path) -> None:
    model = corpus / "wild" / "external_buffers_magic_wand.tflite"
    done = run("fit", model, "--runtime", "c", "-o", tmp_path / "net.c")
    assert done.returncode == 1
    assert "has its numbers outside of the flatbuffer" in done.stderr


@pytest.mark.slow
def test_a_search_ends_with_the_best_so_far(tmp_path: Path) -> None:
    """After no time at all there are whole maps; they are proved like any other plan."""
    words = ["fit", MODELS / "ds_cnn_kws.tflite", "--runtime", "c", "-o", tmp_path / "net.c"]
    done = run(*words, "--seconds", "0")
    assert done.returncode == 0
    assert "search         interrupted: the best so far" in done.stdout
    assert next(line.split()[0] for line in done.stdout.splitlines() if "16,000" in line) == "maps"
    assert "overlaps" not in done.stdout
    short = run(*words, "--seconds", "0", "--budget", "9000")
    assert short.returncode == 1
    assert "the least RAM of any rung is 15.62 KiB (16,000 B); interrupted: the best so far" in short.stdout
    assert run(*words, "--seconds", "-1").returncode == 2
    assert "interrupted" not in run(*words, "--seconds", "1000").stdout


def test_what_is_printed_next_compiles_and_passes(tmp_path: Path) -> None:
    pytest.importorskip("tflite_micro")
    (tmp_path / "net.tflite").write_bytes((MODELS / "ds_cnn_kws.tflite").read_bytes())
    done = run("fit", "net.tflite", "--runtime", "c", "-o", "net.c", "--self-test", "test.c", cwd=tmp_path)
    steps = done.stdout.partition("\nNext\n")[2].splitlines()
    compile_it, prove_it, try_it = (step.strip() for step in steps)
    assert compile_it.startswith("cc ")
    assert prove_it.startswith("modelplan verify net.tflite --against net.c")
    for command in (compile_it, try_it):
        subprocess.run(command, shell=True, cwd=tmp_path, check=True, capture_output=True)
    assert (tmp_path / "net.o").exists()
    floats = tmp_path / "one.tflite"
    floats.write_bytes(single("EXP", [T("float32", (4,))], [T("float32", (4,))]))
    assert "link it with -lm" in run("fit", floats, "--runtime", "c", "-o", tmp_path / "one.c").stdout
    library = run("fit", floats, "--runtime", "c", "--kernels", "cmsis-nn", "-o", tmp_path / "one.c").stdout
    assert '-I "$MODELPLAN_CMSIS_NN/Include"' in library


def test_what_has_no_plain_c_is_refused_with_a_way_out(corpus: Path, tmp_path: Path) -> None:
    model = corpus / "tflite" / "audio_preprocessor_int8.tflite"
    done = run("fit", model, "--runtime", "c", "--least", "-o", tmp_path / "net.c")
    assert done.returncode == 1
    assert "SignalWindow: no kernel for this kind of operator: op 0 ('signal_window')" in done.stderr
    assert "and 4 more kinds; remedy: without --runtime c, fit writes" in done.stderr
    assert run("help", "standalone").returncode == 0
    assert run("fit", model, "--least", "-o", tmp_path / "fit.tflite").returncode == 0

"""`modelplan diff` as a user runs it: both sides, every output, exit codes, and what is refused."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from commands import run
from versions import renamed_tflite

ROOT = Path(__file__).resolve().parents[2]
RESNET = ROOT / "models" / "resnet8.tflite"


def test_new_kernels_of_one_model(tmp_path: Path) -> None:
    words = ("--old", "kernels=esp-nn@1.1.0", "--new", "kernels=esp-nn")
    outputs = ("--json", "d.json", "--markdown", "d.md", "--draw", "d.svg")
    done = run("diff", RESNET, *words, *outputs, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "kernels esp-nn@1.1.0 -> esp-nn" in done.stdout
    found = json.loads((tmp_path / "d.json").read_text())
    for side, kernels in (("before", "esp-nn@1.1.0"), ("after", "esp-nn")):
        checked = run("check", RESNET, "--budget", "1MiB", "--kernels", kernels, "--json", "-", cwd=tmp_path)
        assert found["arena"][side] == json.loads(checked.stdout)["models"][0]["required"]
    assert (tmp_path / "d.md").read_text().startswith("### ")
    assert (tmp_path / "d.svg").read_text().startswith("<?xml")


def test_what_pack_makes_of_a_file(corpus: Path, tmp_path: Path) -> None:
    shutil.copy(corpus / "tflite" / "person_detect.tflite", tmp_path)
    reference = ("--kernels", "reference")
    assert (
        run(
            "pack", "person_detect.tflite", "-o", "packed.tflite", "--alias", "safe", *reference, cwd=tmp_path
        ).returncode
        == 0
    )
    done = run("diff", "person_detect.tflite", "packed.tflite", *reference, "--json", "-", cwd=tmp_path)
    found = json.loads(done.stdout)
    assert found["changes"] == []
    assert [(s["name"], s["after"]) for s in found["settings"]] == [("plan", "carried by the file")]
    heads = [part for part in found["parts"] if part["name"].startswith("head")]
    assert [(part["before"], part["after"]) for part in heads] == [(55_296, 36_880)]


def test_networks_that_remember_are_compared_as_plain_c(corpus: Path) -> None:
    words = (corpus / "tflite" / "wakeword" / f"{name}.tflite" for name in ("vad", "alexa"))
    done = run("diff", *words, "--runtime", "c")
    assert done.returncode == 0, done.stderr
    assert "RAM 1.75 KiB (1,793 B) -> 4.33 KiB (4,433 B)" in done.stdout
    assert "kept from run to run   1,121   3,025   +1,904" in done.stdout


def test_the_exit_code_tells_where_it_is_asked_to(tmp_path: Path) -> None:
    other = tmp_path / "renamed.tflite"
    other.write_bytes(renamed_tflite(RESNET.read_bytes()))
    assert run("diff", RESNET, other, "--exit-code").returncode == 0
    assert run("diff", RESNET, ROOT / "models" / "ds_cnn_kws.tflite").returncode == 0
    assert run("diff", RESNET, ROOT / "models" / "ds_cnn_kws.tflite", "--exit-code").returncode == 1


def test_a_plan_on_one_side_counts_activations_on_both() -> None:
    done = run("diff", RESNET, "--kernels", "reference", "--new", "streams=2", "--json", "-")
    found = json.loads(done.stdout)
    assert found["whole"] is False
    assert (found["arena"]["before"], [part["name"] for part in found["parts"]]) == (49_152, ["activations"])
    assert found["old"]["basis"] == found["new"]["basis"] == "the planned activations for tflm"


@pytest.mark.slow
def test_sides_may_have_targets_extents_and_runtimes_of_their_own() -> None:
    said = run("diff", RESNET, "--old", "target=nrf52840", "--new", "target=stm32f746").stdout
    assert "old: capacity 208.00 KiB" in said
    assert "new: capacity 320.00 KiB" in said
    bert = ROOT / "models" / "bert_like.onnx"
    words = ("--dim", "batch=1", "--dim", "sequence=16")
    found = json.loads(
        run("diff", bert, *words, "--new", "dim=batch=1", "--new", "dim=sequence=32", "--json", "-").stdout
    )
    assert [(s["before"], s["after"]) for s in found["settings"]] == [("batch=1, sequence=16", "batch=1, sequence=32")]
    own = {row["label"] for row in found["changes"] if row["change"] == "changed"}
    assert {label.split()[0] for label in own} == {"input"}
    other = json.loads(run("diff", RESNET, "--new", "runtime=litert", "--json", "-").stdout)
    assert (other["whole"], other["settings"][0]["name"]) == (False, "runtime")


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        ([RESNET], 2, "nothing to compare"),
        ([RESNET, ROOT / "models" / "resnet8.onnx"], 2, "`modelplan check` judges each by itself"),
        (["missing.tflite", RESNET], 3, "missing.tflite"),
        ([RESNET, ROOT / "pyproject.toml"], 3, "suffix"),
        ([RESNET, "--old", "kernels=zzz"], 2, "old: runtime tflm: no kernels 'zzz'"),
        ([RESNET, "--new", "colour=red"], 2, "--new colour=red: expected OPTION=VALUE"),
        ([RESNET, "--new", "kernels"], 2, "--new kernels: expected OPTION=VALUE"),
        ([RESNET, "--new", "kernels="], 2, "--new kernels=: expected OPTION=VALUE"),
        ([RESNET, "--new", "alignment=x"], 2, "--new alignment=x: invalid int value: 'x'"),
        ([RESNET, "--new", "alignment=3"], 2, "new: alignment is 3"),
        ([RESNET, "--new", "json=x"], 2, "--new json=x: expected OPTION=VALUE"),
        ([RESNET, "--new", "allocator=file"], 2, "new: --allocator file"),
        ([RESNET, "--new", "dim=n=1"], 2, "new: --dim n"),
        ([RESNET, "--old", "abi=x"], 2, "old: no ABI 'x'"),
        ([RESNET, RESNET, "--draw", "x.gif"], 2, "must end in .svg, .png, .pdf, .html"),
        ([RESNET, RESNET, "--json", RESNET], 2, "is the input"),
        ([RESNET, RESNET, "--json", "-", "--markdown", "-"], 2, "standard output: two outputs go there"),
        ([RESNET, RESNET, "--json", "/nowhere/x"], 2, "no folder"),
    ],
)
def test_bad_requests_are_refused(words: list[str | Path], code: int, said: str) -> None:
    done = run("diff", *words)
    assert done.returncode == code
    assert said in done.stderr

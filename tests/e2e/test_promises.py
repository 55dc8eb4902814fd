"""What commands print below a figure delivers it: cases drawn from all models, and faults that there were."""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence
from pathlib import Path

import pytest
from commands import run
from promised import Shell, drawn, kept
from promises import Promise, arena_of, delivered, promises
from shares import share

#: Cases that are drawn, of those of benchmarks/promised.py, and the seed.
_CASES, _SEED = 8, 51
#: Bytes of a model whose commands a test carries out.
_MOST_BYTES = 200_000


def shell(words: Sequence[str], folder: Path) -> str:
    return run(*words, cwd=folder).stdout


def wide(monkeypatch: pytest.MonkeyPatch) -> None:
    """No line is folded."""
    monkeypatch.setenv("COLUMNS", "4000")


@pytest.mark.slow
def test_drawn_promises_are_kept(corpus: Path, tmp_path: Path) -> None:
    small = [case for case in drawn(corpus, 100, _SEED) if case.model.stat().st_size < _MOST_BYTES]
    made = []
    for number, case in enumerate(small[: share(_CASES)]):
        folder = tmp_path / str(number)
        folder.mkdir()
        made += list(kept(case, folder))
    assert made
    assert not [(one.case, one.by, one.promise, one.delivered) for one in made if one.short]


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("models/ds_cnn_kws", ["--target", "esp32s3"]),
        ("models/resnet8", ["--kernels", "cmsis-dsp", "--abi", "32"]),
        ("corpus/wild/weather_cnn_v3", []),
        ("corpus/tflite/wakeword/okay_nabu", ["--target", "esp32s3"]),
        ("corpus/tflite/person_detect", ["--target", "stm32h743"]),
    ],
)
def test_analyze_prints_no_figure_that_its_command_does_not_reach(
    corpus: Path, models: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, options: list[str]
) -> None:
    wide(monkeypatch)
    place, _, below = name.partition("/")
    model = (models if place == "models" else corpus) / f"{below}.tflite"
    said = run(model, *options).stdout
    before = arena_of(said)
    assert before is not None
    assert "up to" not in re.sub(r"a search of up to about \d+ (s|minutes)", "", said)
    quick = [promise for promise in promises(said, before) if "fit" in promise.commands[0]]
    assert quick
    for promise in quick:
        needed = delivered(promise, tmp_path, shell)
        assert needed is not None
        assert needed <= promise.most < before, promise
    given = shlex.join(options[:2])
    assert all(given in line for line in said.splitlines() if "modelplan fit" in line and "--runtime c" not in line)


def test_where_the_budget_is_met_the_command_asks_for_the_least(models: Path) -> None:
    model = models / "resnet8.tflite"
    wide_enough, narrow = (
        run(model, "--target", "stm32h743", "--budget", budget).stdout for budget in ("512KiB", "20KiB")
    )
    assert f"modelplan fit {model} --target stm32h743 --least -o" in wide_enough
    assert "--budget" not in wide_enough
    assert f"modelplan fit {model} --target stm32h743 --budget 20480 -o" in narrow


def test_naming_the_kernels_comes_first_where_one_library_decides(models: Path) -> None:
    model = models / "ds_cnn_kws.tflite"
    first, command = run(model).stdout.partition("What would lower it\n")[2].splitlines()[:2]
    assert first == "  34,480 bytes less: your kernels named: reference (others: the table above)"
    named = arena_of(run(*shlex.split(command)[1:]).stdout)
    assert named == 57_248 - 34_480
    assert "your kernels named" not in run(model, "--kernels", "esp-nn").stdout


def test_what_brings_nothing_is_not_named(corpus: Path) -> None:
    said = run(corpus / "tflite" / "ad01_int8.tflite", "--kernels", "reference").stdout
    assert "a rewritten file" not in said  # its operators are products of single rows
    assert "plain C" in said
    vela = run(corpus / "tflite" / "person_detect_vela.tflite").stdout
    assert "modelplan fit" not in vela


def test_explain_check_and_fit_name_plain_c_where_that_fits(
    corpus: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    wide(monkeypatch)
    model = corpus / "tflite" / "mcu" / "mcunet_vww0.tflite"
    words = [model, "--kernels", "cmsis-dsp", "--budget", "60KiB"]
    explained = run("explain", *words).stdout.partition("What fits in 60.00 KiB (61,440 B), ")[2]
    checked = run("check", *words)
    fitted = run("fit", *words, "--without", "split", "-o", tmp_path / "out.tflite")
    assert (checked.returncode, fitted.returncode) == (1, 1)
    for said in (explained, checked.stdout, fitted.stdout):
        named = [promise for promise in promises(said) if "--runtime c" in promise.commands[0]]
        assert [promise.most for promise in named] == [21_120, 14_968]
        assert "--input rows" in named[1].commands[0]
        assert all("--kernels cmsis-dsp" in promise.commands[0] for promise in named)
    needed = delivered(named[0], tmp_path, shell)
    assert needed is not None
    assert needed <= 21_120


def test_plain_c_that_does_not_fit_names_the_form_that_does(
    corpus: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    wide(monkeypatch)
    model = corpus / "tflite" / "person_detect.tflite"
    done = run("fit", model, "--runtime", "c", "--budget", "11001", "-o", tmp_path / "net.c")
    assert done.returncode == 1
    (pushed,) = promises(done.stdout)
    assert "--input rows --budget 11001" in pushed.commands[0]
    assert delivered(pushed, tmp_path, shell) == pushed.most <= 11_001
    tight = run("fit", model, "--runtime", "c", "--budget", "1KiB", "-o", tmp_path / "net.c")
    assert "no other kernels, ends or rows of plain C fit" in tight.stdout


@pytest.mark.slow
def test_explain_names_other_forms_of_plain_c(models: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    wide(monkeypatch)
    said = run("explain", models / "mobilenet_v2_like.tflite", "--runtime", "c", "--capacity", "20KiB").stdout
    (rows,) = promises(said.partition("What fits in 20.00 KiB")[2])
    assert "--input rows" in rows.commands[0]
    needed = delivered(rows, tmp_path, shell)
    assert needed is not None
    assert needed <= rows.most == 17_000


@pytest.mark.slow
def test_plain_c_of_a_float_input_names_int8(corpus: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    wide(monkeypatch)
    model, only_rows = corpus / "camera" / "blazeface_front_128.tflite", ("--without", "maps,overlaps,parts")
    words = ("fit", model, "--runtime", "c", "--budget", "100KiB", *only_rows, "-o", tmp_path / "net.c")
    found = promises(run(*words).stdout)
    assert [(promise.most, "--interface int8" in promise.commands[0]) for promise in found] == [
        (64_384, True), (60_956, False), (39_692, True)
    ]  # fmt: skip


@pytest.mark.slow
def test_stripes_that_raise_no_library_are_found_where_the_lowest_raise_one(corpus: Path, tmp_path: Path) -> None:
    """Of the releases of ESP-NN one needs more for the lowest stripes: other operators are split then."""
    model = corpus / "tflite" / "pretrainedResnet_quant.tflite"
    said = run("fit", model, "--target", "esp32s3", "--least", "-o", tmp_path / "out.tflite").stdout
    found = re.search(r"^ +split \* +([\d,]+)", said, re.MULTILINE)
    assert found
    assert int(found[1].replace(",", "")) <= 97_120


def test_no_interface_is_promised_that_the_proof_does_not_know(corpus: Path, tmp_path: Path) -> None:
    model = corpus / "tflite" / "keyword_scrambled.tflite"  # whose input of 16 bits is quantised to int8
    explained = run("explain", model, "--kernels", "reference").stdout
    assert "int8 inputs" not in explained
    refused = run("fit", model, "--least", "--interface", "int8", "-o", tmp_path / "out.tflite")
    assert (refused.returncode, "is int16, which no program converts here" in refused.stderr) == (2, True)


def test_a_file_without_operators_is_answered(corpus: Path, tmp_path: Path) -> None:
    model = corpus / "wild" / "s_only_input.int8.0.tflite"
    explained = run("explain", model, "--target", "stm32h743")
    assert explained.returncode == 0
    assert "not possible: plain C" in explained.stdout
    fitted = run("fit", model, "--least", "-o", tmp_path / "out.tflite")
    assert (fitted.returncode, fitted.stderr) == (3, "modelplan: the model: holds no operator\n")


def test_promises_are_read_from_what_is_printed() -> None:
    said = (
        "What would lower it\n  10 bytes less: a plan\n    modelplan fit a.tflite -o b.tflite && modelplan x\n"
        "  5 bytes less: by hand\n  70 bytes: memory\n    modelplan fit a\n    two arenas\n"
        "  60 bytes: c\n    modelplan c\n"
    )
    first = Promise("10 bytes less: a plan", 90, ("modelplan fit a.tflite -o b.tflite", "modelplan x"))
    assert promises(said, 100) == [first, Promise("60 bytes: c", 60, ("modelplan c",))]
    assert Shell().known == {}

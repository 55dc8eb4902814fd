"""Verdicts of several targets: which a word names, each library sized once, and what would make a model fit."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import pytest

import modelplan
from modelplan import AnalyzeRequest, RequestError
from modelplan.cli import main
from modelplan.questions.sizing_for_targets import chips_of, targets_called, with_changes
from modelplan.targets.chips import CHIPS
from modelplan.targets.table import MICROCONTROLLERS

MODELS = Path(__file__).resolve().parents[3] / "models"
KWS = str(MODELS / "ds_cnn_kws.tflite")


def names(word: str) -> list[str]:
    return [chosen.device.name for chosen in targets_called(word) or ()]


@pytest.mark.parametrize(
    ("word", "found"),
    [
        ("rp2040,teensy41", ["rp2040", "imxrt1062"]),
        ("stm32g4*", [name for name in CHIPS if name.startswith("stm32g4")]),
        ("RP2*", ["rp2040", "rp2350"]),
        ("samd5", ["samd51x18", "samd51x19", "samd51x20"]),
        ("stm32g431*,rp2040,", ["stm32g431", "rp2040"]),
        ("rp2040", []),
        ("stm32f4", []),
        ("from:a,b.ld", None),
        ("nowhere*", None),
    ],
)
def test_words_for_several_targets(word: str, found: list[str] | None) -> None:
    if found is None:
        with pytest.raises((RequestError, modelplan.ModelError)):
            targets_called(word)
        return
    assert names(word) == found


def test_all_are_the_microcontrollers_and_the_chips() -> None:
    assert {*MICROCONTROLLERS, *CHIPS, "esp32c3"} <= set(names("all"))
    assert [chosen.device.name for chosen in chips_of("stm32g4")] == names("stm32g4*")
    assert chips_of("cortex-m4") == chips_of("rp2040") == ()


def test_each_library_is_sized_once_and_what_fits_comes_first(monkeypatch: pytest.MonkeyPatch) -> None:
    sized: Counter[tuple[str | None, str | None]] = Counter()

    def counted(request: AnalyzeRequest) -> object:
        sized[request.kernels, request.abi] += 1
        return modelplan.analysis_stages(request)

    monkeypatch.setattr("modelplan.questions.sizing_for_targets.analysis_stages", counted)
    verdicts = modelplan.target_verdicts(AnalyzeRequest(KWS), "all")
    assert set(sized.values()) == {1}
    fits = [row.fits for row in verdicts.rows]
    assert fits == sorted(fits, key=[True, False, None].index)
    for row in verdicts.rows:
        alone = modelplan.analyze(AnalyzeRequest(KWS, target=row.target, advice=False)) if row.fits is None else None
        assert alone is None or alone.requirement.arena == row.requirement.arena
        assert row.fits is not True or (row.headroom is not None and row.headroom >= 0)


def test_a_file_larger_than_the_flash_fits_nowhere() -> None:
    (row,) = modelplan.target_verdicts(AnalyzeRequest(KWS), "stm32f401cc,").rows
    assert (row.fits, row.flash) == (True, 256 * 1024)
    (row,) = modelplan.target_verdicts(AnalyzeRequest(str(MODELS / "unet_small.tflite")), "stm32l412k8,").rows
    assert (row.fits, row.flash) == (False, 64 * 1024)


@pytest.mark.slow
def test_the_least_change_that_fits_is_one_that_fit_finds() -> None:
    request = AnalyzeRequest(KWS)
    verdicts = modelplan.target_verdicts(request, "samd21x17,samd21x18,samd21x16,stm32f373xb")
    found = {row.target.device.name: row for row in with_changes(request, verdicts)}
    assert set(found) == {"samd21x17", "samd21x16"}
    change = found["samd21x17"].change
    assert change is not None
    assert change.arena <= 16 * 1024
    assert found["samd21x16"].change is None
    fitted = modelplan.fit(modelplan.FitRequest(KWS, budget=16 * 1024, kernels="cmsis-c", abi="cortex-m"))
    assert fitted.chosen is not None
    assert (found["samd21x17"].plain_c or 0) > 0


def test_the_table_by_command(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["analyze", KWS, "--target", "samd21x16,rp2040,esp32s3"]) == 0
    out = capsys.readouterr().out
    assert "fits 1, does not fit 1, not known 1; the file takes 42,680 bytes of flash" in out
    assert main(["analyze", KWS, "--target", "stm32f4"]) == 0
    out = capsys.readouterr().out
    assert "#define TENSOR_ARENA_SIZE 22816" in out
    assert "stm32f427, f429, f437, f439" in out
    assert main(["analyze", KWS, "--target", "all", "--json", "-"]) == 0
    rows = json.loads(capsys.readouterr().out)["verdicts"]
    assert {row["target"]: row["arena"] for row in rows}["stm32f411"] == 22816


@pytest.mark.parametrize(
    "words",
    [
        ["--target", "all", "--draw", "x.svg"],
        ["--target", "all", "--reserve", "sram=4K"],
        ["--target", "rp2040", "--fit"],
        ["--fit"],
        ["--target", "rp2040,nowhere"],
    ],
)
def test_what_is_for_one_target_alone_is_refused(words: list[str]) -> None:
    assert main(["analyze", KWS, *words]) == 2

"""What plain C is expected to take of instructions, and what is chosen by it."""

from __future__ import annotations

import csv
from dataclasses import replace
from functools import cache, partial
from pathlib import Path
from typing import Any

import pytest
from shares import few_first

from modelplan import FitCRequest, fit_c
from modelplan.cli import main
from modelplan.plain_c.instruction_counts import expected_instructions
from modelplan.plain_c.ladder import CLadder
from modelplan.questions import c_fitting
from modelplan.rewriting.stripes.search_effort import USUAL

ROOT = Path(__file__).resolve().parents[3]
KWS = str(ROOT / "models" / "ds_cnn_kws.tflite")
#: With less that is not weighed than parts cost here.
EFFORT = replace(USUAL, c=replace(USUAL.c, little_time=0.01))


@cache
def fitted(**asked: Any) -> CLadder:
    return fit_c(FitCRequest(KWS, output="net.c", **asked))


def sources(ladder: CLadder) -> set[str]:
    assert ladder.chosen is not None
    return {kernel.source for operator in ladder.chosen.operators.values() for kernel in operator.kernels}


@pytest.mark.parametrize("model", few_first(["ds_cnn_kws.tflite", "resnet8.tflite"]))
def test_counts_are_expected_within_an_eighth(model: str) -> None:
    with (ROOT / "tests" / "golden" / "instructions.csv").open() as file:
        counted = {(row["model"], row["core"]): int(row["instructions"]) for row in csv.DictReader(file)}
    rung = fit_c(FitCRequest(str(ROOT / "models" / model), output="net.c")).chosen
    assert rung is not None
    assert rung.instructions == pytest.approx(counted[model, "cortex-m4"], rel=0.125)


def test_nothing_is_expected_of_kernels_that_were_not_counted() -> None:
    rung = fitted(kernels="esp-nn").chosen
    assert rung is not None
    assert expected_instructions(rung.program, rung.operators) is None


def test_a_library_computes_what_it_computes_faster() -> None:
    whole, parts = fitted(kernels="cmsis-dsp", budget=1 << 17), fitted(kernels="cmsis-dsp")
    assert {"cmsis_pointwise", "cmsis_depthwise"} <= sources(whole)
    assert parts.chosen is not None
    assert parts.chosen.name == "parts"
    assert {"conv_2d", "cmsis_depthwise"} <= sources(parts)
    for ladder in (whole, parts):
        assert [verdict.outcome for verdict in ladder.proof] == ["ok"]


def test_a_budget_buys_working_memory_for_faster_kernels() -> None:
    least, rich = fitted(kernels="cmsis-mve", without=frozenset({"overlaps", "rows", "parts"})), 1 << 16
    spent = fitted(kernels="cmsis-mve", budget=rich)
    assert least.chosen is not None
    assert spent.chosen is not None
    assert least.chosen.ram < spent.chosen.ram <= rich
    assert spent.chosen.instructions is not None
    assert least.chosen.instructions is not None
    assert spent.chosen.instructions < least.chosen.instructions
    variants = {k.variant for o in spent.chosen.operators.values() for k in o.kernels if k.source == "cmsis_depthwise"}
    assert variants == {"opt"}
    assert [verdict.outcome for verdict in spent.proof] == ["ok"]
    tight = fitted(kernels="cmsis-mve", budget=least.chosen.ram)
    assert tight.chosen is not None
    assert tight.chosen.ram <= least.chosen.ram


@pytest.mark.slow
def test_parts_are_not_taken_for_less_ram_than_they_are_worth() -> None:
    ladder = fitted(kernels="cmsis-mve", time_per_ram=1.0, effort=EFFORT)
    parts = next(rung for rung in ladder.rungs if rung.name == "parts")
    assert ladder.chosen is not None
    assert ladder.chosen.ram > parts.ram
    assert ladder.dear is parts
    for asked in ({"time_per_ram": 1000.0}, {"budget": parts.ram}):
        taken = fitted(kernels="cmsis-mve", effort=EFFORT, **asked)
        assert taken.chosen is not None
        assert taken.chosen.ram == parts.ram
        assert taken.dear is None


def test_the_command_names_both(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(c_fitting, "FitCRequest", partial(FitCRequest, effort=EFFORT))
    out = str(tmp_path / "net.c")
    assert main(["fit", KWS, "--runtime", "c", "--kernels", "cmsis-mve", "--time-per-ram", "1", "-o", out]) == 0
    printed = capsys.readouterr().out
    assert "instructions" in printed
    assert "on a Cortex-M55 at -O2" in printed
    assert "parts need 192 bytes less for" in printed
    assert main(["fit", KWS, "--runtime", "c", "--time-per-ram", "-1", "-o", out]) == 2
    assert "--time-per-ram is '-1', expected a number of percents" in capsys.readouterr().err
    assert main(["fit", KWS, "--time-per-ram", "5", "-o", str(tmp_path / "net.tflite")]) == 2
    assert "--time-per-ram is for --runtime c" in capsys.readouterr().err

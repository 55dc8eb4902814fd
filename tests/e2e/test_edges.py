"""Inputs that broke something once: the exit code says what is wrong, and no answer takes long."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from commands import run

from modelplan import cli
from modelplan.rewriting.striped_tflite.durations import _inside
from modelplan.rewriting.stripes.layers import same_padding

PROGRAM = (sys.executable, "-m", "modelplan")


@pytest.fixture
def edges(corpus: Path) -> Path:
    """Files that an independent sweep found."""
    return corpus / "edges"


@pytest.mark.parametrize("name", ["calls14", "maximum_overlap", "min_reshape", "slow_fit"])
def test_models_are_answered_or_refused(edges: Path, models: Path, tmp_path: Path, name: str) -> None:
    model, out = edges / f"{name}.tflite", tmp_path / "out.tflite"
    for words in (
        ("analyze", model),
        ("explain", model),
        ("check", model, "--budget", "64KiB"),
        ("fit", model, "--least", "-o", out, "--force"),
        ("fit", "--only", "plan", model, "-o", out, "--alias", "safe", "--force"),
        ("diff", model, models / "ds_cnn_kws.tflite"),
    ):
        assert run(*words).returncode <= 4


def test_a_model_that_tflm_refuses_is_not_rewritten(edges: Path, tmp_path: Path) -> None:
    done = run("fit", edges / "min_reshape.tflite", "--least", "-o", tmp_path / "out.tflite")
    assert (done.returncode, (tmp_path / "out.tflite").exists()) == (1, False)
    assert "no other rung: TFLM does not run it: op 1 RESHAPE: 128 values for an output of 8192" in done.stdout


def test_files_of_targets_are_refused_with_the_place(edges: Path, tmp_path: Path) -> None:
    symbols = ["a0 = 3;", *(f"a{i} = a{i - 1} * a{i - 1};" for i in range(1, 27))]
    memory = "MEMORY {{ RAM (rwx) : ORIGIN = 0, LENGTH = {} }}"
    (tmp_path / "squares.ld").write_text("\n".join([*symbols, memory.format("a26")]))
    (tmp_path / "doubles.ld").write_text(
        "\n".join(["b0 = 1;", *(f"b{i} = b{i - 1} + b{i - 1};" for i in range(1, 41)), memory.format("b16")])
    )
    (tmp_path / "sum.ld").write_text(memory.format("+".join(["1"] * 5000)))
    assert "a value of" in run("targets", f"from:{tmp_path / 'squares.ld'}").stderr
    assert "too many operators" in run("targets", f"from:{tmp_path / 'sum.ld'}").stderr
    assert "too many operators" in run("targets", f"from:{edges / 'minus.ld'}").stderr
    assert "65,536" in run("targets", f"from:{tmp_path / 'doubles.ld'}").stdout
    assert run("targets", f"from:{edges / 'include' / 'top.ld'}", "--include", edges / "include").returncode <= 4
    for name, reason in (("bigint", "Exceeds the limit"), ("deep", "too many brackets inside each other")):
        for words in (("targets", edges / f"{name}.toml"), ("check", "--config", edges / f"{name}.toml")):
            done = run(*words)
            assert done.returncode in (2, 3)
            assert f"{name}.toml: not TOML: {reason}" in done.stderr


@pytest.mark.parametrize("closed", ["stdout", "stderr"])
def test_a_closed_stream_is_no_verdict(models: Path, closed: str) -> None:
    words = (*PROGRAM, "analyze", models / "resnet8.tflite" if closed == "stdout" else "missing.tflite")
    done = subprocess.run(["/bin/sh", "-c", f'exec "$@" {">&-" if closed == "stdout" else "2>&-"}', "sh", *words],
                          capture_output=True, check=False)  # fmt: skip
    assert done.returncode == (0 if closed == "stdout" else 3)


def test_pipes_and_devices_are_no_models(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.tflite")
    (tmp_path / "zero.tflite").symlink_to("/dev/zero")
    for name in ("pipe.tflite", "zero.tflite"):
        done = run("analyze", tmp_path / name)
        assert (done.returncode, "found a device or pipe, expected a file" in done.stderr) == (3, True)


def test_an_internal_error_has_a_code_of_its_own(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def broken(*_: object) -> int:
        raise ValueError("no\x1bsense")

    monkeypatch.setattr(cli, "_run", broken)
    monkeypatch.setattr(sys, "argv", ["modelplan", "analyze", "x"])
    assert cli.main() == cli.INTERNAL_ERROR == 70
    said = capsys.readouterr().err
    assert said.startswith("modelplan: internal error, test_edges.py:")
    assert "ValueError: no\\x1bsense; please report it" in said
    monkeypatch.setenv("MODELPLAN_DEBUG", "1")
    assert cli.main() == 70
    assert "Traceback" in capsys.readouterr().err
    with pytest.raises(ValueError, match="sense"):
        cli.main(["analyze", "x"])


def test_windows_inside_of_an_operand_are_counted_without_walking() -> None:
    def walked(rows: int, computed: int, reach: int, stride: int, dilation: int, own: bool) -> int:
        before = same_padding(rows, computed, reach, stride) // 2 if own else 0
        taps = range(-before, reach - before, dilation)
        return sum(0 <= at * stride + tap < rows for at in range(computed) for tap in taps)

    for case in range(3000):
        rows, computed, reach, stride, dilation = (1 + case * step % most for step, most in
                                                   ((7, 20), (11, 19), (13, 23), (3, 5), (5, 4)))  # fmt: skip
        for own in (False, True):
            found = _inside(rows, computed, reach, stride, dilation, own=own)
            assert found == walked(rows, computed, reach, stride, dilation, own)
    assert _inside(1 << 20, 1 << 10, 1 << 30, 1, 1, own=False) == 1024 * (1 << 20) - 1023 * 1024 // 2

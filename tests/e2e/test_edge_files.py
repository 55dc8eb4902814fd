"""Files that broke something once: the exit code says what is wrong, and no answer takes long."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest
from commands import run

from modelplan import cli
from modelplan.rewriting.striped_tflite.durations import _inside
from modelplan.rewriting.stripes.layers import same_padding


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
    assert said.startswith("modelplan: internal error, test_edge_files.py:")
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

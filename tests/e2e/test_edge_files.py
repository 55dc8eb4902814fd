"""Files that broke something once: the exit code says what is wrong, and no answer takes long."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest
import tflite_models
from commands import run
from tflite_models import FLOAT32

from modelplan import cli
from modelplan.ops.access.spans import same_padding
from modelplan.rewriting.striped_tflite import placing
from modelplan.rewriting.striped_tflite.durations import _inside
from modelplan.rewriting.striped_tflite.ladder import climb
from modelplan.rewriting.striped_tflite.rungs import Goal


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
        assert run(*words).returncode <= 3, words


@pytest.mark.parametrize("kernels", ["reference", "cmsis", "esp-nn"])
def test_a_rung_is_chosen_that_its_proof_accepts(edges: Path, tmp_path: Path, kernels: str) -> None:
    words = ("fit", edges / "maximum_overlap.tflite", "--least", "-o", tmp_path / "a.tflite", "--kernels", kernels)
    done = run(*words)
    assert (done.returncode, "proof          memory: ok" in done.stdout, "no rung" in done.stdout) == (0, True, False)


def _broadcasting(kind: str, small: tuple[int, ...], *, first: bool) -> bytes:
    """kind(-a, -b) and the map again, of a map and an operand that is repeated along some axes."""
    shapes = (small, (1, 6, 5, 4)) if first else ((1, 6, 5, 4), small)
    tensors = [(name, FLOAT32, shape, None) for name, shape in zip("abcdef", (*shapes, *shapes, *2 * [(1, 6, 5, 4)]),
                                                                   strict=True)]  # fmt: skip
    ops = [("NEG", (0,), (2,), ()), ("NEG", (1,), (3,), ()), (kind, (2, 3), (4,), ())]
    ops.append(("ADD", (4, 3 if first else 2), (5,), ()))
    return tflite_models.model(tflite_models.Sub(tensors, ops, (0, 1), (5,)))


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["ADD", "MUL", "SUB", "DIV", "MAXIMUM", "MINIMUM", "SQUARED_DIFFERENCE"])
def test_no_output_takes_the_place_of_an_operand_that_is_repeated(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "net.tflite"
    for small in ((1, 6, 5, 1), (1, 1, 1, 4), (1, 6, 1, 4), (4,), (1, 6, 5, 4)):
        for first in (True, False):
            path.write_bytes(_broadcasting(kind, small, first=first))
            ladder = climb(path, Goal())
            assert {verdict.outcome for verdict in ladder.proof} <= {"ok"}
            assert not any(remark.startswith("no rung") for remark in ladder.remarks), (small, first, ladder.remarks)


def test_a_rung_that_its_proof_rejects_is_left_out(edges: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(placing, "unlike", lambda *_: "")
    ladder = climb(edges / "maximum_overlap.tflite", Goal())
    assert ladder.chosen is not None
    assert ladder.chosen.name in ("views", "split")
    assert ladder.proof
    assert "no rung overlaps: the rewritten model is not equal to the model: op 1 MAXIMUM" in "".join(ladder.remarks)


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

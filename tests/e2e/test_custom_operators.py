"""Custom operators from the command line: what is printed can be pasted, and carries what was stated."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest
from commands import run
from tflm_models import Op, S, T, build, zeros


@pytest.fixture
def strange(tmp_path: Path) -> Path:
    """A convolution on each side of a custom operator."""
    x, w, b = T("int8", (1, 16, 16, 8)), zeros("int8", (8, 3, 3, 8)), zeros("int32", (8,))
    conv = {"Padding": 0, "StrideW": 1, "StrideH": 1, "DilationWFactor": 1, "DilationHFactor": 1}
    ops = (
        Op("CONV_2D", (0, 1, 2), (3,), conv, "Conv2DOptions"),
        Op("Mine", (3,), (4,), custom=True),
        Op("CONV_2D", (4, 1, 2), (5,), conv, "Conv2DOptions"),
    )
    path = tmp_path / "strange.tflite"
    path.write_bytes(build(S((x, w, b, x, x, x), ops, (0,), (5,))))
    return path


def test_printed_commands_carry_what_was_stated(strange: Path, tmp_path: Path) -> None:
    said = run("analyze", strange, "--custom", "Mine=5KiB").stdout
    assert "estimate: as stated, your own kernels ask for 5,120 bytes for each Mine" in said
    commands = re.findall(r"^ +modelplan (.+?)(?:  #.*)?$", said, re.MULTILINE)
    assert commands
    for command in commands:
        assert "--custom Mine=5KiB" in command or "--runtime c" in command
        done = run(*shlex.split(command), cwd=tmp_path)
        assert done.returncode == 0, (command, done.stdout, done.stderr)


def test_names_of_no_operator_are_refused(strange: Path) -> None:
    done = run("check", strange, "--custom", "Mnie=5", "--budget", "1MiB")
    assert (done.returncode, "did you mean 'Mine'?" in done.stderr) == (2, True)
    for command in (["analyze", strange], ["check", strange, "--budget", "1MiB"]):
        refused = run(*command)
        assert (refused.returncode, "--custom Mine=BYTES" in refused.stdout) == (1, True)
    fitted = run("fit", strange, "--least", "-o", strange.parent / "out.tflite")
    assert (fitted.returncode, "--custom Mine=BYTES" in fitted.stdout) == (1, True)
    packed = run("fit", "--only", "plan", strange, "-o", strange.parent / "out.tflite")
    assert (packed.returncode, "--custom Mine=BYTES" in packed.stderr) == (1, True)


def test_a_written_file_remembers_them_and_takes_others(strange: Path) -> None:
    out = strange.parent / "out.tflite"
    words = ("--alias", "safe", "--kernels", "reference", "--force")
    assert run("fit", "--only", "plan", strange, "-o", out, "--custom", "Mine=64", *words).returncode == 0
    assert "64 bytes for each Mine" in run("analyze", out).stdout
    assert "1,000 bytes for each Mine" in run("analyze", out, "--custom", "Mine=1000").stdout


def test_they_are_for_tflm_alone(strange: Path) -> None:
    done = run("analyze", strange, "--runtime", "litert", "--custom", "Mine=5")
    assert (done.returncode, "(--custom)" in done.stderr) == (2, True)
    done = run("fit", strange, "--runtime", "c", "--custom", "Mine=5", "-o", strange.parent / "net.c")
    assert (done.returncode, "--custom is for files that TFLM runs" in done.stderr) == (2, True)


@pytest.mark.parametrize("command", ["compare", "recompute"])
def test_figures_of_a_file_that_does_not_run_say_so(strange: Path, command: str) -> None:
    assert "tflm would not run it: op 1 Mine" in run(command, strange).stdout
    assert "would not run it" not in run(command, strange, "--custom", "Mine=0").stdout

"""Custom operators from the command line: what is printed can be pasted, and carries what was stated."""

from __future__ import annotations

import re
import shlex
from pathlib import Path
from typing import Any

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


def _branched(
    path: Path, *, options: bytes = b"1", swapped: bool = False, runs: int = 1, variable: bool = False
) -> Path:
    """A wide map behind each of two convolutions, the second of which could come later; then `runs` times Mine."""
    narrow, wide = T("int8", (1, 16, 16, 4)), T("int8", (1, 16, 16, 32))
    up, down, bias = zeros("int8", (32, 1, 1, 4)), zeros("int8", (4, 1, 1, 32)), zeros("int32", (32,))
    few = zeros("int32", (4,))
    kept = T("int8", (1, 16, 16, 4), variable=True) if variable else narrow
    tensors = (narrow, up, bias, down, few, wide, wide, narrow, narrow, kept, narrow)
    conv = {"Padding": 0, "StrideW": 1, "StrideH": 1, "DilationWFactor": 1, "DilationHFactor": 1}
    mine = Op("Mine", (8, 7) if swapped else (7, 8), (9,), {"mode": options}, custom=True)
    ops = (
        Op("CONV_2D", (0, 1, 2), (5,), conv, "Conv2DOptions"),
        Op("CONV_2D", (0, 1, 2), (6,), conv | {"FusedActivationFunction": 1}, "Conv2DOptions"),
        Op("CONV_2D", (5, 3, 4), (7,), conv, "Conv2DOptions"),
        Op("CONV_2D", (6, 3, 4), (8,), conv, "Conv2DOptions"),
        *(mine,) * runs,
        Op("RELU", (9,), (10,)),
    )
    path.write_bytes(build(S(tensors, ops, (0,), (10,))))
    return path


@pytest.mark.slow
def test_what_stands_around_a_stated_one_is_rewritten(tmp_path: Path) -> None:
    """The order and the plan change; nobody knows what the operator computes, but for what it computes it of."""
    model, out = _branched(tmp_path / "net.tflite"), tmp_path / "out.tflite"
    done = run("fit", model, "--least", "--custom", "Mine=64", "-o", out)
    assert done.returncode == 0, done.stderr
    assert "proof          rows: ok" in done.stdout
    assert _arena(out) < _arena(model) - 8000
    proved = run("verify", model, "--against", out, "--quick")  # the file says which kernels it was made for
    assert (proved.returncode, proved.stderr) == (0, "")


def _arena(model: Path) -> int:
    said = run("analyze", model, "--custom", "Mine=64").stdout
    return int(re.findall(r"TENSOR_ARENA_SIZE (\d+)", said)[0])


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"options": b"2"}, "differs from the model's in CustomOptions"),
        ({"swapped": True}, "differs from the model's in operand 0"),
        ({"runs": 2}, "in another order or number"),
    ],
)
def test_another_use_of_a_stated_one_is_no_rewrite(tmp_path: Path, changed: dict[str, Any], words: str) -> None:
    model, other = _branched(tmp_path / "net.tflite"), _branched(tmp_path / "other.tflite", **changed)
    done = run("verify", model, "--against", other, "--quick", "--custom", "Mine=64")
    assert (done.returncode, words in done.stderr) == (4, True), done.stderr


@pytest.mark.parametrize("stated", [(), ("--custom", "Other=64")])
def test_one_that_nobody_stated_stays_unproved(tmp_path: Path, stated: tuple[str, ...]) -> None:
    model = _branched(tmp_path / "net.tflite")
    assert "a custom operator" in run("verify", model, "--against", model, "--quick", *stated).stderr


def test_one_with_a_variable_stays_unproved(tmp_path: Path) -> None:
    model = _branched(tmp_path / "net.tflite", variable=True)
    done = run("verify", model, "--against", model, "--quick", "--custom", "Mine=64")
    assert (done.returncode, "a custom operator that has a variable" in done.stderr) == (4, True)


def test_what_fit_prints_next_states_them_too(strange: Path, tmp_path: Path) -> None:
    said = run("fit", strange, "--least", "--custom", "Mine=5KiB", "-o", tmp_path / "out.tflite").stdout
    commands = re.findall(r"^ +modelplan (.+?)(?:  #.*)?$", said, re.MULTILINE)
    assert len(commands) == 2
    for command in commands:
        done = run(*shlex.split(command), cwd=tmp_path)
        assert done.returncode == 0, (command, done.stdout, done.stderr)
    refused = run("fit", strange, "--budget", "8KiB", "--custom", "Mine=5KiB", "-o", tmp_path / "no.tflite").stdout
    for command in re.findall(r"^ +modelplan (.+?)(?:  #.*)?$", refused, re.MULTILINE):
        assert "--custom Mine=5KiB" in command


@pytest.mark.parametrize("kernels", ["all", "cmsis-dsp"])
def test_files_are_for_the_library_whatever_is_stated(strange: Path, kernels: str) -> None:
    """The names of your own kernels stand neither in headers nor where a library is named."""
    header = strange.parent / "arena.h"
    words = ("--least", "--kernels", kernels, "--custom", "Mine=64", "-o", strange.parent / "out.tflite")
    done = run("fit", strange, *words, "--header", header)
    assert "+Mine" not in done.stdout + header.read_text()
    assert ("enough for all kernel libraries" in header.read_text()) == (kernels == "all")

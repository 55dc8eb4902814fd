"""Files that ONNX Runtime's own tools make of models/*.onnx are read; `.ci/long` asks every question about each."""

from __future__ import annotations

from pathlib import Path

import onnx
import ort_files
import pytest
from commands import run
from shares import sample

pytest.importorskip("onnxruntime")


@pytest.mark.slow
@pytest.mark.parametrize(("source", "form"), sample(list(ort_files.cells())), ids=lambda value: Path(str(value)).stem)
def test_a_file_is_read(tmp_path: Path, source: Path, form: str) -> None:
    refused = ort_files.made(source, form, tmp_path)
    assert bool(refused) == ((source.stem, form) in ort_files.NOT_MADE), refused
    if refused:
        return
    done = run("analyze", tmp_path / "m.onnx", *ort_files.dims(onnx.load(source)), "--measure", "0")
    assert done.returncode == 0, done.stderr
    assert "memory about" in done.stdout or "and not predicted (not known " in " ".join(done.stdout.split())


@pytest.mark.parametrize("form", ["qoperator-s8", "saved-all"])
def test_a_small_one_is_sized(tmp_path: Path, form: str) -> None:
    source = ort_files.MODELS / "resnet8.onnx"
    assert ort_files.made(source, form, tmp_path) == ""
    assert ort_files.asked(tmp_path / "m.onnx", [], fit=False) == {"sized": "", "predicted": ""}


def test_a_quantised_file_is_fitted_like_one_between_which_floats_are_quantised(tmp_path: Path) -> None:
    """Its adds and its convolutions go by rows."""
    source = ort_files.MODELS / "resnet8.onnx"
    assert ort_files.made(source, "qoperator-s8", tmp_path) == ""
    words = ["--least", "--arena", "off", "--pattern", "off"]
    done = run("fit", tmp_path / "m.onnx", *words, "-o", tmp_path / "less.onnx")
    assert done.returncode == 0, done.stderr
    assert "split *" in done.stdout
    assert run("analyze", tmp_path / "less.onnx", "--measure", "0").returncode == 0

"""A fixed part of what `python tests/sweeps/fuzz.py KIND` throws at the commands, for every kind of file."""

from __future__ import annotations

import math
from pathlib import Path

import fuzz
import pytest
from shares import share

CASES = {"onnx": 80, "tflite": 240}


@pytest.mark.slow
@pytest.mark.parametrize("name", fuzz.KINDS)
def test_damaged_files_end_with_an_exit_code(tmp_path: Path, name: str) -> None:
    kind = fuzz.KINDS[name]
    work, keep = tmp_path / "work", tmp_path / "keep"
    work.mkdir()
    files, cases = kind.make(work), share(CASES.get(name, 400))
    done, failures = fuzz.run(kind, files, range(cases), work, math.inf, keep)
    assert (done, failures) == (cases, 0)

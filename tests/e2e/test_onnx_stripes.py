"""A few random CNNs in stripes on ONNX Runtime; `python tests/onnx_stripes.py` runs more."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import onnx_stripes
import pytest

pytest.importorskip("onnxruntime")


@pytest.mark.parametrize("seed", range(2))
def test_stripes_compute_what_the_model_does(tmp_path: Path, seed: int) -> None:
    counts: Counter[str] = Counter()
    assert not onnx_stripes.problems(seed, tmp_path, counts)
    assert counts["files"] == 1

"""A few random CNNs in stripes on ONNX Runtime; `python benchmarks/onnx_sweep.py` runs more."""

from __future__ import annotations

from pathlib import Path

import onnx_stripes
import pytest

pytest.importorskip("onnxruntime")


@pytest.mark.parametrize("seed", range(2))
def test_stripes_compute_what_the_model_does(tmp_path: Path, seed: int) -> None:
    rows = onnx_stripes.rows_of(seed, tmp_path)
    assert [row.wrong for row in rows] == ["", "", ""]
    assert all(row.stripes for row in rows)

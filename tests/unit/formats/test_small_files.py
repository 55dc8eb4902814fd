"""What a small file may grow to, so that every command ends soon, and what a table is placed without."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
import small_files

from modelplan.formats import load_model
from modelplan.formats.limits import FileLimits
from modelplan.primitives.errors import ModelError
from modelplan.runtimes.tflm.file import read_tflite


@pytest.mark.parametrize(
    ("name", "number", "message"),
    [
        ("tflite_calls", 14, "called subgraphs grow to more than 8,000 operators"),
        ("onnx_doubled", 14, "expected at most 8,000"),
        pytest.param("tflite_bodies", 400, "found more than 512 bodies", marks=pytest.mark.slow),
        ("tflite_unused", 600, "found more than 8,000 operators"),
        ("onnx_nested_branches", 8, "found more than 512 bodies"),
    ],
)
def test_a_small_file_that_grows_large_is_refused_by_what_it_has(
    name: str, number: int, message: str, tmp_path: Path
) -> None:
    path = tmp_path / f"{name}.{name.split('_')[0]}"
    path.write_bytes(small_files.CASES[name](number))
    assert path.stat().st_size < small_files.MOST_BYTES
    with pytest.raises(ModelError, match=message):
        load_model(path)


@pytest.mark.parametrize(("name", "number", "operators"), [("tflite_calls", 12, 4096), ("onnx_doubled", 12, 2048)])
def test_calls_of_a_real_size_stand_in_place(name: str, number: int, operators: int, tmp_path: Path) -> None:
    path = tmp_path / f"{name}.{name.split('_')[0]}"
    path.write_bytes(small_files.CASES[name](number))
    assert len(load_model(path).ops) == operators


def test_a_subgraph_that_a_file_lists_again_is_read_once() -> None:
    subgraphs = read_tflite(small_files.tflite_unused(600), "listed").subgraphs
    assert len(subgraphs) == 600
    assert all(subgraph is subgraphs[0] for subgraph in subgraphs)


def test_what_a_file_may_hold_goes_by_its_size() -> None:
    limits = {size: FileLimits.of(size) for size in (1, 100_000, 1_000_000, 10_000_000, 10**9)}
    operators = [one.operators for one in limits.values()]
    assert operators == [8_000, 10_000, 100_000, 100_000, 1_000_000]
    assert [one.bodies for one in limits.values()] == [512, 512, 3_000, 3_000, 3_000]


def _printed(code: str) -> str:
    done = subprocess.run([sys.executable, "-P", "-c", code], capture_output=True, text=True, check=True)
    return done.stdout.strip()


def test_a_table_is_placed_without_the_kernels_of_any_runtime() -> None:
    code = """
import sys
import modelplan.cli.solve
print([name for name in sys.modules if name.startswith(("modelplan.runtimes.tflm", "modelplan.checking.verifier"))])
"""
    assert _printed(code) == "[]"

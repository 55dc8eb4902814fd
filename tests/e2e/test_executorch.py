"""ExecuTorch obeys the memory ids and offsets that modelplan writes: the program holds them and computes the same.

ExecuTorch is not installed beside modelplan: with PyTorch it is some gigabytes. MODELPLAN_EXECUTORCH names a Python
that has `executorch` and `onnx`.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
from commands import run

PROGRAM = Path(__file__).parents[1] / "oracles" / "executorch_memories.py"


@pytest.fixture
def python() -> str:
    """A Python with ExecuTorch."""
    named = os.environ.get("MODELPLAN_EXECUTORCH") or (sys.executable if find_spec("executorch") else "")
    if not named:
        pytest.skip("no ExecuTorch; set MODELPLAN_EXECUTORCH to a Python that has `executorch` and `onnx`")
    return named


def executed(python: str, *words: str) -> str:
    """What the program prints."""
    done = subprocess.run([python, PROGRAM, *words], capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    return done.stdout


def test_a_program_has_the_plan_s_memories_and_computes_the_same(python: str, tmp_path: Path) -> None:
    graph, ids = tmp_path / "network.onnx", tmp_path / "ids.json"
    executed(python, "graph", str(graph))
    done = run("memories", graph, "--runtime", "executorch", "--schedule", "file", "--alias", "none",
               "--region", "sram:20KiB", "--region", "psram:1MiB,rate=40MB/s", "--executorch", ids)  # fmt: skip
    assert done.returncode == 0, done.stderr
    planned: dict[str, Any] = json.loads(ids.read_text())
    found = json.loads(executed(python, "run", str(ids)).splitlines()[-1])
    assert {one["mem_id"] for one in planned["tensors"]} == {1, 2}
    assert found["non_const_buffer_sizes"] == planned["non_const_buffer_sizes"]
    asked = sorted([one["mem_id"], one["mem_offset"]] for one in planned["tensors"])
    assert sorted(place[:2] for place in found["tensors"]) == asked
    assert found["equal"]
    assert found["near"]

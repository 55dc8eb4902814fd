"""Every overwrite that mode `safe` allows for TFLM, executed: the kernel writes over its operand, bit for bit as apart.

One case for each operator, operand and data type of the table; a plan in the file puts the output where the operand is.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from single_operators import CASES, CONTROL, operand_count, planned, single

pytest.importorskip("tflite_micro")


@pytest.fixture(scope="module")
def digests(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    folder = tmp_path_factory.mktemp("cases")
    for kind, operand, dtype in [*CASES, CONTROL]:
        operands = operand_count(kind)
        content, tensors = single(kind, operands, dtype)
        (folder / f"{operands}-{kind}-{operand}-{dtype}-apart.tflite").write_bytes(content)
        together = planned(content, tensors, operand)
        (folder / f"{operands}-{kind}-{operand}-{dtype}-over.tflite").write_bytes(together)
    script = Path(__file__).parents[1] / "oracles" / "in_place_process.py"
    done = subprocess.run([sys.executable, "-P", script, folder], capture_output=True, text=True, check=True)
    found: dict[str, str] = json.loads(done.stdout.splitlines()[-1])
    return found


@pytest.mark.parametrize(("kind", "operand", "dtype"), CASES)
def test_in_place_gives_the_same_bits(digests: dict[str, str], kind: str, operand: int, dtype: str) -> None:
    operands = operand_count(kind)
    apart = digests[f"{operands}-{kind}-{operand}-{dtype}-apart"]
    assert not apart.startswith("refused"), apart
    assert digests[f"{operands}-{kind}-{operand}-{dtype}-over"] == apart


def test_the_harness_notices_a_kernel_that_cannot_work_in_place(digests: dict[str, str]) -> None:
    assert digests["1-REVERSE_V2-0-float32-over"] != digests["1-REVERSE_V2-0-float32-apart"]

"""Every overwrite that mode `safe` allows for TFLM, executed: the kernel writes over its operand, bit for bit as apart.

One case for each operator, operand and data type of the table; a plan in the file puts the output where the operand is.
"""

from __future__ import annotations

import json
import struct
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest
import tflite
import tflite_models

from modelplan.formats.tflite.flatbuffer import set_metadata
from modelplan.model import InPlace
from modelplan.runtimes.tflm import TFLM

pytest.importorskip("tflite_micro")

SHAPE = (1, 4, 8)
COMPARISONS = {"EQUAL", "NOT_EQUAL", "GREATER", "GREATER_EQUAL", "LESS", "LESS_EQUAL"}
#: Scale and zero point that quantised kernels insist on for their output.
FIXED_OUTPUT = {
    ("LOGISTIC", "int8"): (1 / 256, -128), ("SOFTMAX", "int8"): (1 / 256, -128), ("TANH", "int8"): (1 / 128, 0),
    ("L2_NORMALIZATION", "int8"): (1 / 128, 0), ("LOGISTIC", "int16"): (1 / 32768, 0),
    ("SOFTMAX", "int16"): (1 / 32768, 0), ("TANH", "int16"): (1 / 32768, 0),
}  # fmt: skip
OPTIONS = {
    "ADD": "AddOptions", "SUB": "SubOptions", "MUL": "MulOptions", "DIV": "DivOptions", "SOFTMAX": "SoftmaxOptions",
    "LEAKY_RELU": "LeakyReluOptions", "L2_NORMALIZATION": "L2NormOptions", "CUMSUM": "CumsumOptions",
}  # fmt: skip

CASES = [
    (kind, operand, dtype)
    for kind, row in TFLM.sharing.proved.items()
    for operand in row.operands
    for dtype in sorted(row.dtypes)
]
#: A kernel that does clobber its operand, so that the test is known to notice.
CONTROL = ("REVERSE_V2", 0, "float32")


class Writer(tflite_models.Writer):
    """Writes the options of single operators."""

    def options(self, kind: str, calls: Sequence[int]) -> tuple[int, int]:
        name = OPTIONS.get(kind, "AbsOptions")
        getattr(tflite, f"{name}Start")(self.b)
        if kind == "SOFTMAX":
            tflite.SoftmaxOptionsAddBeta(self.b, 1.0)
        if kind == "LEAKY_RELU":
            tflite.LeakyReluOptionsAddAlpha(self.b, 0.1)
        return getattr(tflite.BuiltinOptions, name), getattr(tflite, f"{name}End")(self.b)


def single(kind: str, operands: int, dtype: str) -> tuple[bytes, int]:
    """A model of one operator, its inputs first, then constants, then the output; and how many tensors it has."""
    number = tflite_models.TYPES[dtype]
    # RSQRT of a quantised number refuses what is not positive.
    scale = ((0.05, -128 if kind == "RSQRT" else 0), None) if dtype in ("int8", "int16") else None
    tensors: list[tflite_models.TensorRow] = [(f"x{i}", number, SHAPE, scale) for i in range(operands)]
    extra = constant(kind, dtype)
    if extra:
        tensors.append(extra)
    out = tflite_models.TYPES["bool"] if kind in COMPARISONS else number
    fixed = (FIXED_OUTPUT.get((kind, dtype), (0.05, 0)), None) if scale and out == number else None
    tensors.append(("y", out, SHAPE, fixed))
    last = len(tensors) - 1
    ops: list[tflite_models.OpRow] = [(kind, tuple(range(last)), (last,), ())]
    sub = tflite_models.Sub(tensors, ops, tuple(range(operands)), (last,))
    return tflite_models.model(sub, writer=Writer()), len(tensors)


def constant(kind: str, dtype: str) -> tflite_models.TensorRow | None:
    if kind in ("CUMSUM", "REVERSE_V2"):
        return ("axis", tflite.TensorType.INT32, (1,), struct.pack("<i", 2))
    if kind == "PRELU":
        data = struct.pack("<8f", *[0.25] * 8) if dtype == "float32" else struct.pack("<8b", *[5] * 8)
        return ("alpha", tflite_models.TYPES[dtype], (1, 1, 8), ((0.05, 0) if dtype == "int8" else None, data))
    return None


def planned(content: bytes, tensors: int, operand: int) -> bytes:
    """The file with a plan that puts the output over one operand and everything else apart."""
    offsets = [256 * (t + 1) for t in range(tensors)]
    offsets[-1] = offsets[operand]
    words = struct.pack(f"<{3 + tensors}i", 1, 1, tensors, *offsets)
    return set_metadata(content, "OfflineMemoryAllocation", words)


@pytest.fixture(scope="module")
def digests(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    folder = tmp_path_factory.mktemp("cases")
    for kind, operand, dtype in [*CASES, CONTROL]:
        operands = len(TFLM.sharing.proved.get(kind, InPlace((0,))).operands)
        content, tensors = single(kind, operands, dtype)
        (folder / f"{operands}-{kind}-{operand}-{dtype}-apart.tflite").write_bytes(content)
        together = planned(content, tensors, operand)
        (folder / f"{operands}-{kind}-{operand}-{dtype}-over.tflite").write_bytes(together)
    script = Path(__file__).with_name("in_place_process.py")
    done = subprocess.run([sys.executable, "-P", script, folder], capture_output=True, text=True, check=True)
    found: dict[str, str] = json.loads(done.stdout.splitlines()[-1])
    return found


@pytest.mark.parametrize(("kind", "operand", "dtype"), CASES)
def test_in_place_gives_the_same_bits(digests: dict[str, str], kind: str, operand: int, dtype: str) -> None:
    operands = len(TFLM.sharing.proved[kind].operands)
    apart = digests[f"{operands}-{kind}-{operand}-{dtype}-apart"]
    assert not apart.startswith("refused"), apart
    assert digests[f"{operands}-{kind}-{operand}-{dtype}-over"] == apart


def test_the_harness_notices_a_kernel_that_cannot_work_in_place(digests: dict[str, str]) -> None:
    assert digests["1-REVERSE_V2-0-float32-over"] != digests["1-REVERSE_V2-0-float32-apart"]

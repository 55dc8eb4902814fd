"""Models of a single operator that mode `safe` lets write over an operand, and plans that make it do so."""

from __future__ import annotations

import struct
from collections.abc import Sequence

import tflite
import tflite_models

from modelplan.formats.tflite.flatbuffer import set_metadata
from modelplan.model import InPlace
from modelplan.runtimes.tflm import TFLM

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


def operand_count(kind: str) -> int:
    """How many operands an operator is run with, so that it has each of those which its output may lie on."""
    return 1 + max(TFLM.sharing.proved.get(kind, InPlace((0,))).operands)


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

"""Inputs and outputs whose type a rewrite changed: what the program converts on its side, and by which rule.

The program does what the model's own QUANTIZE or DEQUANTIZE did at that end. A file that asks this of its program lists
it in its metadata.
"""

from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from modelplan.checking.verifier.rewrites.reading import Cell, Coding, Operation, Source
from modelplan.formats.tflite.tflite_tables import get_metadata
from modelplan.primitives.lazy_records import dataclass
from modelplan.runtimes.tflm.metadata import INTERFACE

Array = npt.NDArray[Any]
#: The codes that a type has, and how far that of the same value lies above the one of int8.
CODES, _ABOVE = {"int8": (-128, 127), "uint8": (0, 255)}, {"int8": 0, "uint8": 128}


@dataclass(frozen=True, slots=True)
class HostConversion:
    """One end of a model: its tensor as the model has it, `outer`, and as the rewritten file has it, `inner`."""

    outer: Cell
    inner: Cell

    def quantised(self, values: Array) -> Array:
        """What the program passes for these values of the model's input, as TFLM's QUANTIZE makes it."""
        low, high = CODES[self.inner.coding.dtype]
        if self.outer.coding.dtype != "float32":
            codes = values.astype(np.int32) + self.inner.coding.zero - self.outer.coding.zero
        else:
            scaled = (values.astype(np.float32) / np.float32(self.inner.coding.scales[0])).astype(np.float64)
            codes = np.trunc(scaled + np.copysign(0.5, scaled)) + self.inner.coding.zero
        return np.clip(codes, low, high).astype(self.inner.coding.dtype)

    def restored(self, codes: Array) -> Array:
        """What the model's output holds where the rewritten file's holds these codes, as TFLM's DEQUANTIZE makes it."""
        steps = codes.astype(np.int32) - self.inner.coding.zero
        if self.outer.coding.dtype != "float32":
            return (steps + self.outer.coding.zero).astype(self.outer.coding.dtype)
        return (steps * np.float64(np.float32(self.inner.coding.scales[0]))).astype(np.float32)

    def passed_before(self, codes: bytes) -> bytes:
        """The model's input that the program converts to these codes."""
        return self.restored(np.frombuffer(codes, self.inner.coding.dtype)).tobytes()


@dataclass(frozen=True, slots=True)
class HostSide:
    """For each input and each output of a model what its program converts, None where it passes what it did."""

    inputs: tuple[HostConversion | None, ...]
    outputs: tuple[HostConversion | None, ...]

    @property
    def converts(self) -> bool:
        """Whether any end has another type."""
        return any(self.inputs) or any(self.outputs)

    def __str__(self) -> str:
        sides = (("input", self.inputs), ("output", self.outputs))
        return ", ".join(
            f"{side} {i} {end.inner.coding.dtype} with scale {end.inner.coding.scales[0]:.9g} and zero point"
            f" {end.inner.coding.zero}"
            for side, ends in sides
            for i, end in enumerate(ends)
            if end is not None
        )


def host_side(original: Source, rewritten: Source) -> HostSide:
    """What the program of the rewritten file converts; ends that differ in any other way count as equal here."""
    declared = get_metadata(rewritten.model.data, INTERFACE) is not None
    sides = []
    for what in ("inputs", "outputs"):
        ends = [[part.cells[t] for t in getattr(part, what)] for part in (original.parts[0], rewritten.parts[0])]
        sides.append(tuple(_conversion(*pair) if declared else None for pair in zip(*ends, strict=False)))
    return HostSide(*sides)


def _conversion(outer: Cell, inner: Cell) -> HostConversion | None:
    if outer.coding == inner.coding or inner.coding.dtype not in CODES or len(inner.coding.scales) != 1:
        return None
    convertible = (outer.coding.dtype == "float32" and not outer.coding.scales) or are_twins(outer.coding, inner.coding)
    return HostConversion(outer, inner) if convertible else None


def are_twins(a: Coding, b: Coding) -> bool:
    """Whether codes of one type and of the other stand for the same values, each 128 above the other's.

    TFLM's QUANTIZE then multiplies by exactly 1, and no code is out of range.
    """
    return {a.dtype, b.dtype} == {"int8", "uint8"} and a == twin_of(b)


def twin_of(coding: Coding) -> Coding:
    """The coding in the other type of 8 bits by which the same values have codes 128 apart."""
    other = "int8" if coding.dtype == "uint8" else "uint8"
    zeros = tuple(zero + _ABOVE[other] - _ABOVE[coding.dtype] for zero in coding.zero_points)
    return replace(coding, dtype=other, zero_points=zeros)


def conversion_operation(kind: str) -> Operation:
    """An operator that the program carries out, as messages name it."""
    return Operation(0, -1, kind, (0,), (0,), (), (), 0, custom=False)

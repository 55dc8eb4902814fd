"""TFLM's fixed-point arithmetic, as its kernels are prepared: multipliers, ranges of activations, tables of functions.

Everything here must give the very numbers that TFLM gives: floats are rounded where its C++ rounds them.
"""

from __future__ import annotations

import math

import numpy as np

#: The least and the largest number of each integer type.
LIMITS = {"int8": (-128, 127), "uint8": (0, 255), "int16": (-32768, 32767), "int32": (-(2**31), 2**31 - 1)}
#: The numbers of fused activations: none, RELU, RELU_N1_TO_1, RELU6; and the bounds of each.
ACTIVATIONS: dict[int, tuple[float | None, float | None]] = {0: (None, None), 1: (0, None), 2: (-1, 1), 3: (0, 6)}


def rounded(value: float) -> int:
    """The nearest integer, halves away from zero, as C's `round`."""
    return int(math.copysign(math.floor(abs(value) + 0.5), value)) if abs(value) < 2**52 else int(value)


def quantized_multiplier(value: float) -> tuple[int, int]:
    """A positive number as multiplier * 2 ** (shift - 31).

    >>> quantized_multiplier(0.75), quantized_multiplier(0.0)
    ((1610612736, 0), (0, 0))
    """
    if value == 0:
        return 0, 0
    fraction, shift = math.frexp(value)
    fixed = rounded(fraction * 2**31)
    if fixed == 2**31:
        fixed, shift = fixed // 2, shift + 1
    return (0, 0) if shift < -31 else (fixed, shift)


def high_product(a: int, b: int) -> int:
    """The upper half of twice the product of two 32-bit numbers, rounded and saturated."""
    return 2**31 - 1 if a == b == -(2**31) else (a * b + 2**30) >> 31


def shifted_down(value: int, exponent: int) -> int:
    """A number over a power of two, rounded to nearest, halves away from zero."""
    mask = (1 << exponent) - 1
    return (value >> exponent) + int((value & mask) > (mask >> 1) + int(value < 0))


def wrapped(value: int, bits: int = 32) -> int:
    """A number as so many bits hold it."""
    return (value + (1 << bits - 1)) % (1 << bits) - (1 << bits - 1)


def scaled(value: int, multiplier: int, shift: int) -> int:
    """A number times a quantised multiplier."""
    return shifted_down(high_product(wrapped(value << max(shift, 0)), multiplier), max(-shift, 0))


def activation_range(activation: int, dtype: str, scale: float, zero: int) -> tuple[int, int]:
    """The least and the largest number that a quantised result may be."""
    low, high = LIMITS[dtype]
    least, most = ACTIVATIONS[activation]
    if least is not None:
        low = max(low, _quantised(least, scale, zero))
    if most is not None:
        high = min(high, _quantised(most, scale, zero))
    return low, high


def _quantised(value: float, scale: float, zero: int) -> int:
    return zero + rounded(float(np.float32(value) / np.float32(scale)))

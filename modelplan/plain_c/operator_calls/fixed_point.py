"""TFLM's fixed-point arithmetic, as its kernels are prepared: multipliers, ranges of activations, tables of functions.

Everything here must give the very numbers that TFLM gives: floats are rounded where its C++ rounds them.
"""

import math

import numpy as np

from modelplan.plain_c.kernel_records import Parameters

#: The least and the largest number of each integer type.
LIMITS = {"int8": (-128, 127), "uint8": (0, 255), "int16": (-32768, 32767), "int32": (-(2**31), 2**31 - 1)}
#: The largest finite float of 32 bits.
LARGEST_FLOAT = float(np.finfo(np.float32).max)
#: The numbers of fused activations: none, RELU, RELU_N1_TO_1, RELU6; and the bounds of each.
ACTIVATIONS: dict[int, tuple[float | None, float | None]] = {0: (None, None), 1: (0, None), 2: (-1, 1), 3: (0, 6)}
#: From which kernels of 16 bits interpolate 1 / (1 + exp(-x)) and tanh: 65,536 times the function at x = n / 24, about.
SIGMOID = (
    32768, 33451, 34133, 34813, 35493, 36169, 36843, 37513, 38180, 38841, 39498, 40149, 40794, 41432, 42064,
    42688, 43304, 43912, 44511, 45102, 45683, 46255, 46817, 47369, 47911, 48443, 48964, 49475, 49975, 50464,
    50942, 51409, 51865, 52311, 52745, 53169, 53581, 53983, 54374, 54755, 55125, 55485, 55834, 56174, 56503,
    56823, 57133, 57433, 57724, 58007, 58280, 58544, 58800, 59048, 59288, 59519, 59743, 59959, 60168, 60370,
    60565, 60753, 60935, 61110, 61279, 61441, 61599, 61750, 61896, 62036, 62172, 62302, 62428, 62549, 62666,
    62778, 62886, 62990, 63090, 63186, 63279, 63368, 63454, 63536, 63615, 63691, 63765, 63835, 63903, 63968,
    64030, 64090, 64148, 64204, 64257, 64308, 64357, 64405, 64450, 64494, 64536, 64576, 64614, 64652, 64687,
    64721, 64754, 64786, 64816, 64845, 64873, 64900, 64926, 64950, 64974, 64997, 65019, 65039, 65060, 65079,
    65097, 65115, 65132, 65149, 65164, 65179, 65194, 65208, 65221, 65234, 65246, 65258, 65269, 65280, 65291,
    65301, 65310, 65319, 65328, 65337, 65345, 65352, 65360, 65367, 65374, 65381, 65387, 65393, 65399, 65404,
    65410, 65415, 65420, 65425, 65429, 65433, 65438, 65442, 65445, 65449, 65453, 65456, 65459, 65462, 65465,
    65468, 65471, 65474, 65476, 65479, 65481, 65483, 65485, 65488, 65489, 65491, 65493, 65495, 65497, 65498,
    65500, 65501, 65503, 65504, 65505, 65507, 65508, 65509, 65510, 65511, 65512, 65513, 65514, 65515, 65516,
    65517, 65517, 65518, 65519, 65520, 65520, 65521, 65522, 65522, 65523, 65523, 65524, 65524, 65525, 65525,
    65526, 65526, 65526, 65527, 65527, 65528, 65528, 65528, 65529, 65529, 65529, 65529, 65530, 65530, 65530,
    65530, 65531, 65531, 65531, 65531, 65531, 65532, 65532, 65532, 65532, 65532, 65532, 65533, 65533, 65533,
    65533, 65533, 65533, 65533, 65533, 65534, 65534, 65534, 65534, 65534, 65534, 65534, 65534, 65534, 65534,
    65535,
)  # fmt: skip


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


def single_multiplier(value: float) -> tuple[int, int]:
    """A positive float of 32 bits as multiplier * 2 ** shift, the multiplier of 24 bits.

    One that makes 0 of all sums is 0.

    >>> single_multiplier(0.75), single_multiplier(0.0)
    ((12582912, -24), (0, -128))
    """
    fraction, exponent = math.frexp(value)
    return (int(fraction * 2**24), exponent - 24) if value > 2.0**-104 else (0, -128)


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


def float_limits(activation: int) -> Parameters:
    """The bounds of results that are floats; without an activation those of finite numbers, as TFLM has it."""
    most = float(np.finfo(np.float32).max)
    low, high = ACTIVATIONS[activation]
    return {"least": -most if low is None else float(low), "most": most if high is None else float(high)}

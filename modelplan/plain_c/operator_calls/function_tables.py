"""Functions of one number as tables, computed as TFLM's kernels compute them: gemmlowp's fixed-point functions."""

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from modelplan.plain_c.kernel_records import ConstTable, Parameters, Table, const_table
from modelplan.plain_c.operator_calls.fixed_point import (
    LIMITS,
    SIGMOID,
    high_product,
    quantized_multiplier,
    rounded,
    scaled,
    shifted_down,
    wrapped,
)
from modelplan.plain_c.operator_calls.reading import OperatorReader

_MOST = 2**31 - 1
#: exp(-2 ** n) for n from -2 on, with 31 bits behind the point.
_EXPONENTS = (1672461947, 1302514674, 790015084, 290630308, 39332535, 720401, 242)
#: Integer bits of the differences that SOFTMAX takes the exponents of.
_DIFFERENCE_BITS = 5


def shifted_up(value: int, exponent: int) -> int:
    """A number times a power of two, saturated."""
    threshold = (1 << (31 - exponent)) - 1
    if value > threshold:
        return _MOST
    return -(2**31) if value < -threshold else value << exponent


def exponential(value: int, integer_bits: int) -> int:
    """Exp of a number below 0 that has so many integer bits, with 31 bits behind the point.

    >>> exponential(0, 5) == 2**31 - 1, round(exponential(-(1 << 26), 5) / 2**31, 6)
    (True, 0.367879)
    """
    if value == 0:
        return _MOST
    fraction_bits = 31 - integer_bits
    quarter = 1 << (fraction_bits - 2)
    part = (value & (quarter - 1)) - quarter
    result = _exponential_of_quarter(shifted_up(part, integer_bits) if integer_bits else part)
    remainder = part - value
    for place, factor in enumerate(_EXPONENTS, -2):
        if integer_bits > place and remainder & (1 << (fraction_bits + place)):
            result = high_product(result, factor)
    return 0 if integer_bits > 5 and value < -(1 << (36 - integer_bits)) else result


def _exponential_of_quarter(a: int) -> int:
    """Exp of a number from -1/4 to 0 by its Taylor series around -1/8."""
    x = wrapped(a + (1 << 28))
    x2 = high_product(x, x)
    x3, x4 = high_product(x2, x), high_product(x2, x2)
    cubic = high_product(shifted_down(x4, 2) + x3, 715827883)
    return wrapped(1895147668 + high_product(1895147668, x + shifted_down(cubic + x2, 1)))


def softmax_parameters(r: OperatorReader) -> Parameters:
    """The exponents of all differences from a line's largest number that count."""
    multiplier, shift, radius = softmax_scale(r)
    count = min(radius, 255) + 1
    values = [exponential(high_product(wrapped(-d << shift), multiplier), _DIFFERENCE_BITS) for d in range(count)]
    (result, zero), low = r.quantised(r.output()), LIMITS[r.dtype(r.output())][0]
    off = abs(result + 1 / (2 * low))
    r.require(holds=zero == low and off <= 1e-3 / abs(low) / 2, why=f"a result of scale {result}, zero point {zero}")
    return {"exponentials": const_table("exponentials", "int32_t", values), "differences": count}


def log_softmax_parameters(r: OperatorReader) -> Parameters:
    """The exponents with 12 integer bits, and how differences become numbers with 5 and these differences again."""
    multiplier, shift, radius = softmax_scale(r)
    count = min(radius, 255) + 1
    values = [exponential(high_product(wrapped(-d << shift), multiplier), _DIFFERENCE_BITS) for d in range(count)]
    known = r.quantised(r.output()) == (1 / 16, 127)
    r.require(holds=known, why="a result whose scale is not 1/16, or whose zero point is not 127")
    back_multiplier, back_shift = quantized_multiplier((1 << (31 - shift)) / multiplier)
    return {
        "exponentials": const_table("exponentials", "int32_t", [shifted_down(value, 12) for value in values]),
        "differences": count,
        "multiplier": multiplier,
        "shift": shift,
        "back_multiplier": back_multiplier,
        "back_shift": back_shift,
    }


def softmax_scale(r: OperatorReader) -> tuple[int, int, int]:
    """By what differences are multiplied and shifted before their exponents are taken, and the largest that counts."""
    beta = float(r.option("Beta")) if r.op.kind == "SOFTMAX" else 1.0
    scale = r.quantised(r.input(0))[0]
    real = min(beta * scale * (1 << (31 - _DIFFERENCE_BITS)), float(_MOST))
    r.require(holds=real > 1, why=f"a scale of {scale} and beta {beta}, which TFLM's kernel does not take")
    multiplier, shift = quantized_multiplier(real)
    radius = math.floor(((1 << _DIFFERENCE_BITS) - 1) * 2.0 ** (31 - _DIFFERENCE_BITS) / 2.0**shift)
    return multiplier, shift, radius


def wide_softmax_parameters(r: OperatorReader) -> Parameters:
    """What SOFTMAX of 16-bit numbers needs: tables of exp and of 1 / (1 + x), and how differences become places there.

    TFLM takes a difference of -10 for the smallest that counts.
    """
    (scale, zero), (result, out_zero) = r.quantised(r.input(0)), r.quantised(r.output())
    near = abs(result * 32768 - 1) <= 1e-3
    r.require(holds=near and zero == 0 == out_zero, why=f"a result of scale {result}, zero points {zero}, {out_zero}")
    multiplier, shift = quantized_multiplier(float(r.option("Beta")) * scale / (10 / 65535))
    tables: Parameters = {
        "exponentials": const_table("exponentials", "int16_t", interpolated_table(np.exp, 10, 32767)),
        "reciprocals": const_table("reciprocals", "int16_t", interpolated_table(lambda x: 1 / (1 + x), 1, -32768)),
    }
    return {**tables, "multiplier": multiplier, "shift": shift}


def interpolated_table(function: Callable[[np.float32], np.float32], extent: int, zero: int) -> list[int]:
    """513 values of a function from 0 to 1, over 16-bit numbers that stand for `extent`; `zero` is the one of 0.

    Each is moved by half of what a line to the next one is off in the middle, all in float32 as TFLM computes it.
    """
    f32 = np.float32
    scale, out_scale = f32(extent) / f32(65535), f32(2) / f32(65535)
    least, most = (scale * f32(end - zero) for end in (-32768, 32767))
    step, inverse = (most - least) / f32(512), f32(65536) / (out_scale * f32(32767) - out_scale * f32(-32768))
    values = []
    for i in range(512):
        here, following = (function(least + f32(at) * step) for at in (i, i + 1))
        middle = function(least + f32(i) * step + step / f32(2))
        value = _away_from_zero(here * inverse)
        line = _away_from_zero((following * inverse + value) / f32(2))
        off = _away_from_zero((line - _away_from_zero(middle * inverse)) / f32(2))
        values.append(value - off)
    values.append(_away_from_zero(function(most) * inverse))
    return [min(max(int(value), -32768), 32767) for value in values]


def _away_from_zero(value: np.float32) -> np.float32:
    """The nearest whole number; of two that are as near the one farther from 0."""
    return np.float32(math.floor(float(value) + 0.5) if value >= 0 else math.ceil(float(value) - 0.5))


def _newton(value: int, finish: Callable[[int], int]) -> int:
    """Newton's division by 1 + x for x from 0 to 1; `finish` makes of the quotient what is asked for."""
    half = (value + 2**31) // 2
    x = 1515870810 + high_product(half, -1010580540)
    for _ in range(3):
        x += shifted_up(high_product(x, (1 << 29) - high_product(half, x)), 2)
    return finish(x)


def logistic_of(value: int, integer_bits: int) -> int:
    """1 / (1 + exp(-x)) of a number with so many integer bits.

    >>> logistic_of(0, 4) == 2**30
    True
    """
    if value == 0:
        return 1 << 30
    # 1 / (1 + e) of e = exp(-|x|), with 31 bits behind the point
    positive = _newton(exponential(-abs(value), integer_bits), lambda x: _MOST if x > 2**30 - 1 else x * 2)
    return positive if value > 0 else _MOST - positive


def hyperbolic_tangent(value: int, integer_bits: int) -> int:
    """Tanh of a number with so many integer bits."""
    if value == 0:
        return 0
    # (1 - e) / (1 + e) of e = exp(-2 |x|), where doubling moves the point
    result = _newton(exponential(-abs(value), integer_bits + 1), lambda x: shifted_up(x - (1 << 29), 2))
    return result if value > 0 else -result


Function = Callable[[int], int]


def _clamped(value: int, dtype: str) -> int:
    low, high = LIMITS[dtype]
    return min(max(value, low), high)


def _sigmoid(r: OperatorReader) -> Function:
    """LOGISTIC and TANH, with 4 integer bits."""
    scale, zero = r.quantised(r.input(0))
    fraction, shift = math.frexp(scale * (1 << 27))
    multiplier = rounded(fraction * 2**31)
    radius = math.floor(15 * 2.0**27 / 2.0**shift)
    tangent = r.op.kind == "TANH"
    r.require(
        holds=tangent or r.quantised(r.output())[1] == -128, why="a result whose zero point is not the least number"
    )

    def value(x: int) -> int:
        x -= zero
        if abs(x) >= radius:
            return -128 if x <= -radius else 127
        q = scaled(x, multiplier, shift)
        if tangent:
            return _clamped(shifted_down(hyperbolic_tangent(q, 4), 24), "int8")
        return _clamped(shifted_down(logistic_of(q, 4), 23) - 128, "int8")

    return value


def _rescaling(r: OperatorReader) -> Function:
    (source, zero), (result, out_zero) = r.quantised(r.input(0)), r.quantised(r.output())
    multiplier, shift = quantized_multiplier(source / result)
    dtype = r.dtype(r.output())
    return lambda x: _clamped(scaled(x - zero, multiplier, shift) + out_zero, dtype)


def _relu6(r: OperatorReader) -> Function:
    """RELU6, which keeps the numbers of its operand."""
    scale, zero = r.quantised(r.input(0))
    six = _clamped(rounded(float(np.float32(6) / np.float32(scale))) + zero, "int8")
    return lambda x: min(max(x, zero), six) if zero <= six else six


def slopes_parameters(r: OperatorReader) -> Parameters:
    """RELU and LEAKY_RELU: a slope for numbers above zero, one for those below, and what the result may be."""
    (source, zero), (result, out_zero) = r.quantised(r.input(0)), r.quantised(r.output())
    alpha = float(r.option("Alpha")) if r.op.kind == "LEAKY_RELU" else 1.0
    slope = source * alpha / result
    above, below = quantized_multiplier(source / result), quantized_multiplier(abs(slope))
    low, high = LIMITS[r.dtype(r.output())]
    return {
        "in_zero": zero,
        "out_zero": out_zero,
        "multiplier": above[0],
        "shift": above[1],
        "below_multiplier": below[0],
        "below_shift": below[1],
        "below_sign": 1 if slope >= 0 else -1,
        "least": max(low, out_zero) if r.op.kind == "RELU" else low,
        "most": high,
    }


def _slopes(r: OperatorReader) -> Function:
    parameters = {key: int(value) for key, value in slopes_parameters(r).items() if not isinstance(value, ConstTable)}

    def value(x: int) -> int:
        x -= parameters["in_zero"]
        if x >= 0:
            moved = scaled(x, parameters["multiplier"], parameters["shift"])
        else:
            moved = scaled(x, parameters["below_multiplier"], parameters["below_shift"]) * parameters["below_sign"]
        return min(max(moved + parameters["out_zero"], parameters["least"]), parameters["most"])

    return value


def sigmoid_parameters(r: OperatorReader) -> Parameters:
    """LOGISTIC and TANH of 16 bits: a factor with which the operand counts in steps of the table."""
    scale = r.quantised(r.input(0))[0]
    steps = math.log2(scale) if scale > 0 else 0.5
    shift = 12 + round(steps)
    power = abs(steps - round(steps)) < 1e-3 and shift in ((0, 1) if r.op.kind == "TANH" else (0,))
    if power:
        factor, shift = 3 << shift, 0
    else:
        real, shift = scale * 4096.0 * 3.0, 0
        while real <= 32767.0 / 2.0 and shift <= 30:
            real, shift = real * 2.0, shift + 1
        factor = int(real)
    r.require(holds=factor <= 32767, why=f"a scale of {scale}, which TFLM's kernel does not take")
    return {"values": const_table("sigmoid", "uint16_t", SIGMOID), "multiplier": factor, "shift": shift}


def _high_product_16(a: int, b: int) -> int:
    return 32767 if a == b == -32768 else (a * b + (1 << 14)) >> 15


def _saturated(value: int) -> int:
    return min(max(value, -32768), 32767)


def _hard_swish(r: OperatorReader) -> Function:
    """X * relu6(x + 3) / 6 in 16 bits, with scales in double as TFLM since autumn 2026; before it was float32."""
    (source, zero), (result, out_zero) = r.quantised(r.input(0)), r.quantised(r.output())
    out, out_shift = quantized_multiplier(float(source) / 128 / float(result))
    inner, inner_shift = quantized_multiplier(float(source) / 128 / (3 / 32768))
    r.require(holds=out_shift <= 0, why="a scale of the result that TFLM's kernel does not take")
    out, inner = (min((m + (1 << 15)) >> 16, 32767) for m in (out, inner))

    def value(x: int) -> int:
        x = (x - zero) << 7
        part = _saturated(x << (inner_shift - 1)) if inner_shift > 0 else x
        part = _high_product_16(part, inner)
        part = _saturated(part << 1) if inner_shift > 0 else shifted_down(part, -inner_shift)
        part = (part + (1 << 15)) >> 1
        product = part * _high_product_16(x, out)
        half = product // (1 << 15) if product >= 0 else -(-product // (1 << 15))
        return _clamped(shifted_down(half, -out_shift) + out_zero, "int8")

    return value


def _magnitude(r: OperatorReader) -> Function:
    (source, zero), (result, out_zero) = r.quantised(r.input(0)), r.quantised(r.output())
    multiplier, shift = quantized_multiplier(float(source) / float(result))
    if source == result:
        return lambda x: _clamped(abs(x - zero) + out_zero, "int8")
    return lambda x: _clamped(scaled(abs(x - zero), multiplier, shift) + out_zero, "int8")


def _inverse_root(r: OperatorReader) -> Function:
    """RSQRT; TFLM ends where a number stands for one below 0, whose value here is that of 0."""
    (source, zero), (result, out_zero) = r.quantised(r.input(0)), r.quantised(r.output())
    root = np.sqrt(np.float32(source)) * np.float32(result)
    multiplier, shift = quantized_multiplier(1.0 / float(root))

    def value(x: int) -> int:
        if x <= zero:
            return 127
        root, exponent = _inverse_root_of(x - zero)
        return _clamped(scaled(scaled(1, root, exponent + 20), multiplier, shift - 20) + out_zero, "int8")

    return value


def _inverse_root_of(value: int) -> tuple[int, int]:
    """1 / sqrt of a whole number as multiplier * 2 ** (shift - 31): five steps of Newton's with 3 integer bits."""
    if value <= 1:
        return _MOST, 0
    shift, pairs = 11, (32 - value.bit_length() - 1) // 2 - 1
    shift, value = shift - pairs, value << 2 * pairs
    half, x = shifted_down(value >> 1, 1), 1 << 28
    for _ in range(5):
        cube = shifted_up(high_product(high_product(x, x), x), 6)
        x = shifted_up(high_product((1 << 28) + (1 << 27), x) - high_product(half, cube), 3)
    x = high_product(x, 1518500250)
    return (x << -shift, 0) if shift < 0 else (x, -shift)


def _elu(r: OperatorReader) -> Function:
    """ELU, in float32 as TFLM computes its table."""
    (source, zero), (result, out_zero) = r.quantised(r.input(0)), r.quantised(r.output())
    f32 = np.float32

    def value(x: int) -> int:
        y = f32(source) * f32(x - zero)
        y = f32(math.exp(float(y))) - f32(1) if y < 0 else y
        return _clamped(int(_away_from_zero(y * (f32(1) / f32(result))) + f32(out_zero)), "int8")

    return value


class UnaryFunction(NamedTuple):
    """A function of one number: how TFLM makes its values of 8 bits, its text in C for a float x, its float32 values.

    None where there is none: of ONNX's codes the last one makes tables.
    """

    quantised: Callable[[OperatorReader], Function] | None
    text: str
    exact: Callable[[OperatorReader, Table], Table] | None = None


_ONE = np.float32(1)
_LOGISTIC = "x > 16.619047164916992188f ? 1.0f : x < -9.0f ? expf(x) : 1.0f / (1.0f + expf(-x))"
#: x * relu6(x + 3) / 6
_HARD_SWISH = "x * (x + 3.0f < 0.0f ? 0.0f : x + 3.0f > 6.0f ? 6.0f : x + 3.0f) / 6.0f"
#: Halves to even numbers.
_ROUNDED = (
    "x - floorf(x) < 0.5f || (x - floorf(x) == 0.5f && fmodf(floorf(x), 2.0f) == 0.0f) ? floorf(x) : floorf(x) + 1.0f"
)
#: The operators that are a function of each element.
UNARY = {
    "LOGISTIC": UnaryFunction(_sigmoid, _LOGISTIC, lambda _, x: _ONE / (_ONE + np.exp(-x))),
    "TANH": UnaryFunction(_sigmoid, "tanhf(x)", lambda _, x: np.tanh(x)),
    "HARD_SWISH": UnaryFunction(
        _hard_swish, _HARD_SWISH, lambda _, x: x * np.clip(x * np.float32(1 / 6) + np.float32(0.5), 0, 1)
    ),
    "LEAKY_RELU": UnaryFunction(
        _slopes, "x > 0.0f ? x : x * p->slope", lambda r, x: np.where(x >= 0, x, x * np.float32(r.option("Alpha")))
    ),
    "RELU": UnaryFunction(_slopes, "x < 0.0f ? 0.0f : x", lambda _, x: np.maximum(x, 0)),
    "RELU6": UnaryFunction(_relu6, "x > 6.0f ? 6.0f : x < 0.0f ? 0.0f : x"),
    "ELU": UnaryFunction(_elu, "x < 0.0f ? expm1f(x) : x", lambda _, x: np.where(x >= 0, x, np.expm1(x))),
    "ABS": UnaryFunction(_magnitude, "fabsf(x)", lambda _, x: np.abs(x)),
    "RSQRT": UnaryFunction(_inverse_root, "1.0f / sqrtf(x)"),
    "NEG": UnaryFunction(None, "-x", lambda _, x: -x),
    "EXP": UnaryFunction(None, "expf(x)", lambda _, x: np.exp(x)),
    "LOG": UnaryFunction(None, "logf(x)"),
    "SQRT": UnaryFunction(None, "sqrtf(x)", lambda _, x: np.sqrt(x)),
    "SQUARE": UnaryFunction(None, "x * x"),
    "SIN": UnaryFunction(None, "sinf(x)"),
    "COS": UnaryFunction(None, "cosf(x)"),
    "FLOOR": UnaryFunction(None, "floorf(x)"),
    "CEIL": UnaryFunction(None, "ceilf(x)"),
    "ROUND": UnaryFunction(None, _ROUNDED),
}


def function_table(r: OperatorReader) -> ConstTable:
    """The values of an operator for all 256 numbers that an element of operand 0 can be, from the least on."""
    low, high = LIMITS[r.dtype(r.input(0))]
    build = _rescaling if r.op.kind == "QUANTIZE" else UNARY[r.op.kind].quantised
    if build is None:
        raise r.refuse(f"type {r.dtype(r.input(0))}; there is a kernel for float32")
    function = build(r)
    dtype = r.dtype(r.output())
    return const_table("function", f"{dtype}_t", [function(x) for x in range(low, high + 1)])

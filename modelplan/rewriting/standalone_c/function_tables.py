"""Functions of one number as tables, computed as TFLM's kernels compute them: gemmlowp's fixed-point functions."""

from __future__ import annotations

import math

from modelplan.rewriting.standalone_c.fixed_point import (
    LIMITS,
    high_product,
    quantized_multiplier,
    shifted_down,
    wrapped,
)
from modelplan.rewriting.standalone_c.reading import OperatorReader
from modelplan.rewriting.standalone_c.records import ConstTable, table

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


def softmax_parameters(r: OperatorReader) -> dict[str, int | float | ConstTable]:
    """The exponents of all differences from a line's largest number that count."""
    beta, scale = float(r.option("Beta")), r.quantised(r.input(0))[0]
    real = min(beta * scale * (1 << (31 - _DIFFERENCE_BITS)), float(_MOST))
    r.require(holds=real > 1, why=f"a scale of {scale} and beta {beta}, which TFLM's kernel does not take")
    multiplier, shift = quantized_multiplier(real)
    radius = math.floor(((1 << _DIFFERENCE_BITS) - 1) * 2.0 ** (31 - _DIFFERENCE_BITS) / 2.0**shift)
    count = min(radius, 255) + 1
    values = [exponential(high_product(wrapped(-d << shift), multiplier), _DIFFERENCE_BITS) for d in range(count)]
    found = r.quantised(r.output())
    r.require(holds=found == (1 / 256, LIMITS["int8"][0]), why=f"a result of scale and zero point {found}")
    return {"exponentials": table("exponentials", "int32_t", values), "differences": count}

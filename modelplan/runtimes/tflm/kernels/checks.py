"""Conditions that several kernels set before they run, and the padding of windows."""

from collections.abc import Sequence
from typing import NamedTuple

from modelplan.formats.tflite.tflite_file import TensorScales
from modelplan.ops.access.spans import same_padding
from modelplan.runtimes.tflm.kernels.calls import Call, Operand
from modelplan.runtimes.tflm.kernels.preparation import Preparation

#: Types that TFLM takes as quantised.
QUANTISED = ("int8", "int16")


def same_types(p: Preparation, *operands: Operand) -> None:
    """Requires one type for all operands."""
    types = [operand.dtype for operand in operands]
    p.require(len(set(types)) == 1, f"operands of types {', '.join(types)}; its kernel takes one type for all")


def one_of(p: Preparation, operand: Operand, what: str, *types: str) -> None:
    """Requires one of `types`."""
    p.require(operand.dtype in types, f"{what} is {operand.dtype}; its kernel takes {', '.join(types)}")


def constant(p: Preparation, operand: Operand, what: str) -> None:
    """Requires a constant."""
    p.require(operand.constant, f"{what} is computed; its kernel takes a constant")


def rank_between(p: Preparation, operand: Operand, what: str, least: int, most: int) -> None:
    """Requires so many dimensions."""
    wanted = f"{least}" if least == most else f"{least} to {most}"
    p.require(least <= operand.rank <= most, f"{what} has {operand.rank} dimensions; its kernel takes {wanted}")


def same_shape(p: Preparation, operand: Operand, other: Operand) -> None:
    """Requires equal shapes."""
    p.require(
        operand.shape == other.shape,
        f"shapes {list(operand.shape)} and {list(other.shape)}; its kernel takes equal ones",
    )


def shaped(p: Preparation, result: Operand, wanted: Sequence[int] | None) -> None:
    """Requires an output of the shape that the kernel gives; any where that is not known."""
    shape, given = list(result.shape), list(wanted or ())
    p.require(wanted is None or shape == given, f"an output of shape {shape}; its kernel gives {given}")


def scaled(p: Preparation, operand: Operand, what: str) -> TensorScales | None:
    """Requires scales and zero points; None where they are not known."""
    known = operand.quantization
    p.require(known is None or known.scales > 0, f"{what} is {operand.dtype} without scales and zero points")
    return known


def unscaled(p: Preparation, operand: Operand, what: str) -> None:
    """Requires that there is no quantisation."""
    known = operand.quantization
    p.require(
        known is None or not known.scales, f"{what} is {operand.dtype} with scales; its kernel takes plain values"
    )


def zero_point(p: Preparation, operand: Operand, what: str, wanted: int = 0) -> None:
    """Requires a zero point; an operand without quantisation has 0."""
    known = operand.quantization
    point = known.zero_point if known is not None and known.scales else 0
    p.require(known is None or point == wanted, f"{what} has zero point {point}; its kernel takes {wanted}")


def zero_points(p: Preparation, *operands: Operand) -> None:
    """Requires zero points of 0 of the inputs from the first on, and of the output, which comes last."""
    for index, operand in enumerate(operands, 1):
        zero_point(p, operand, "output" if index == len(operands) else f"input {index - 1}")


def scale_near(p: Preparation, operand: Operand, what: str, wanted: float, slack: float = 0.0) -> None:
    """Requires a scale within `slack` of the one that the kernel's arithmetic assumes."""
    known = operand.quantization
    scale = known.scale if known is not None and known.scales else 0.0
    p.require(
        known is None or abs(scale - wanted) <= slack, f"{what} has scale {scale:.9g}; its kernel takes {wanted:.9g}"
    )


def same_scales(p: Preparation, operand: Operand, other: Operand, slack: float = 0.0) -> None:
    """Requires equal first scales and zero points of two operands."""
    a, b = operand.quantization, other.quantization
    if a is None or b is None:
        return
    pairs = [(q.scale, q.zero_point) if q.scales else (0.0, 0) for q in (a, b)]
    p.require(
        abs(pairs[0][0] - pairs[1][0]) <= slack and pairs[0][1] == pairs[1][1],
        f"scales and zero points {pairs[0][0]:.9g}, {pairs[0][1]} and {pairs[1][0]:.9g}, {pairs[1][1]};"
        " its kernel takes equal ones",
    )


def first_scale(operand: Operand) -> float | None:
    """The first scale, 0 without quantisation, None where it is not known."""
    known = operand.quantization
    return None if known is None else known.scale if known.scales else 0.0


def below_one(p: Preparation, what: str, *scales: float | None) -> None:
    """Requires that a product of scales is between 0 and 1; negative powers stand for divisors.

    TFLM stops in an assertion where a multiplier in fixed point is not.
    """
    if any(scale is None for scale in scales):
        return
    product = 1.0
    for scale in scales:
        product *= scale or 0.0
    p.require(0 < product < 1, f"scales that make {what} {product:.6g}; its kernel takes one above 0 and below 1")


def added_scales(p: Preparation, operands: tuple[Operand, ...], shift: int) -> None:
    """Requires scales whose quotients fixed-point sums can hold; the last operand is the result."""
    scales = [first_scale(operand) for operand in operands]
    known = [scale for scale in scales if scale is not None]
    if len(known) < len(scales):
        return
    twice = 2 * max(known[:-1])
    for scale in known[:-1]:
        below_one(p, "an input's multiplier", scale / twice if twice else 0.0)
    below_one(p, "the output's multiplier", twice / (2**shift * known[-1]) if known[-1] else 2.0)


class Padding(NamedTuple):
    """Rows and columns that a window adds on top and to the left."""

    height: int
    width: int


def window_padding(p: Preparation, size: tuple[int, int], taps: tuple[int, int]) -> Padding:
    """The padding of a window of `taps` (height, width) over an input of `size`."""
    pads = [_padding(p.call, extent, tap, axis) for extent, tap, axis in zip(size, taps, ("h", "w"), strict=True)]
    return Padding(*pads)


def _padding(call: Call, extent: int, taps: int, axis: str) -> int:
    stride, dilation = call.number(f"stride_{axis}", 1), call.number(f"dilation_{axis}_factor", 1)
    reach = (taps - 1) * dilation + 1
    if stride <= 0:
        return 0
    out = -(-extent // stride) if call.text("padding") == "SAME" else (extent + stride - reach) // stride
    return same_padding(extent, out, reach, stride) // 2

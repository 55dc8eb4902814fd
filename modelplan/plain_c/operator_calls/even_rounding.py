"""Operators on codes whose arithmetic is that of ONNX's QLinear operators: float32, halves to even numbers.

Source: ONNX's definitions, and where these leave it open the kernels of ONNX Runtime 1.32 for x86
(`mlas/lib/qladd.cpp`, `qlmul.cpp`, `qlgavgpool.cpp`; `contrib_ops/cpu/quantization/`).
"""

import math

import numpy as np

from modelplan.plain_c.kernel_records import CKernel, COperator, Parameters, const_table
from modelplan.plain_c.operator_calls.elementwise import (
    binary_operator,
    one_operand,
    row_elements,
    rows_columns,
    softmax_operator,
)
from modelplan.plain_c.operator_calls.fixed_point import LIMITS, single_multiplier
from modelplan.plain_c.operator_calls.function_tables import UNARY
from modelplan.plain_c.operator_calls.reading import NetworkReader
from modelplan.plain_c.operator_calls.resampling import reduced_block, reduced_by_rows
from modelplan.plain_c.operator_calls.windowed import (
    four_dimensional,
    windowed_geometry,
    windowed_operator,
    windows_of,
)

_F32 = np.float32
_LOW, _HIGH = LIMITS["int8"]


def even_sum(r: NetworkReader) -> COperator:
    """ADD: two products in the file's own codes and an offset, each product and sum rounded once to float32.

    So ONNX Runtime computes where the processor fuses both: rounded apart, 4 of a million sums would differ.
    """
    (a, a_zero), (b, b_zero), (out, zero) = (r.quantised(t) for t in (r.input(0), r.input(1), r.output()))
    code = int(r.stated("CodeOffset", 0))
    a_factor, b_factor = _F32(a) / _F32(out), _F32(b) / _F32(out)
    zeros = float(a_factor) * (a_zero + code) + float(b_factor * _F32(b_zero + code))
    offset = _F32(zero + code) - _F32(zeros)
    low, high = r.output_range()
    parameters: Parameters = {"code": code, "offset": float(offset), "least": low, "most": high}
    parameters |= {"a_factor": float(a_factor), "b_factor": float(b_factor)}
    return binary_operator(r, "even_add", _only_int8(r), parameters)


def even_product(r: NetworkReader) -> COperator:
    """MUL."""
    (a, a_zero), (b, b_zero), (out, zero) = (r.quantised(t) for t in (r.input(0), r.input(1), r.output()))
    code, (low, high) = int(r.stated("CodeOffset", 0)), r.output_range()
    factor = _F32(a) * _F32(b) / _F32(out)
    parameters: Parameters = {"a_zero": a_zero, "b_zero": b_zero, "code": code, "factor": float(factor)}
    return binary_operator(
        r, "even_multiply", _only_int8(r), {**parameters, "zero": float(zero + code), "least": low, "most": high}
    )


def _only_int8(r: NetworkReader) -> str:
    return r.variant("int8")


def even_quantised(r: NetworkReader) -> COperator:
    """QUANTIZE: from floats, or from codes of another scale."""
    (scale, zero), (low, high) = r.quantised(r.output()), r.output_range()
    if r.dtype(r.input(0)) == "float32":
        parameters: Parameters = {"scale": float(scale), "zero": zero, "least": low, "most": high}
        return one_operand(r, "even_quantise", "float_to_int8", {**parameters, "elements": row_elements(r)})
    return even_function(r)


def even_function(r: NetworkReader) -> COperator:
    """A function of codes as a table of all of its values, each computed in float32 from the number it stands for."""
    source = r.dtype(r.input(0))
    r.require(holds={source, r.dtype(r.output())} <= {"int8", "uint8"}, why=f"type {source}")
    (scale, zero), (out, out_zero), (low, high) = r.quantised(r.input(0)), r.quantised(r.output()), r.output_range()
    least, most = LIMITS[source]
    numbers = (np.arange(least, most + 1).astype(_F32) - _F32(zero)) * _F32(scale)
    with np.errstate(all="ignore"):
        exact = UNARY[r.op.kind].exact if r.op.kind in UNARY else None
        values = (exact(r, numbers) if exact else numbers).astype(_F32)
    codes = np.clip(np.rint(np.clip(values / _F32(out), -1e6, 1e6)) + out_zero, low, high)
    result = r.dtype(r.output())
    parameters: Parameters = {
        "values": const_table("function", f"{result}_t", codes.astype(np.int64)),
        "least": least,
        "elements": row_elements(r),
    }
    return one_operand(r, "look_up", source if source == result else f"{source}_to_{result}", parameters)


def even_mean(r: NetworkReader) -> COperator:
    """MEAN of codes over axes that are neighbours: as floats, or as codes of another scale.

    Of sums of codes each stands for as many elements as is stated.
    """
    outer, reduced, inner = reduced_block(r)
    block: Parameters = {"outer": outer, "reduced": reduced, "inner": inner}
    source, zero = r.quantised(r.input(0))
    reduced, element = reduced * int(r.stated("Summed", 1)), r.dtype(r.input(0))
    if r.dtype(r.output()) == "float32":
        more: Parameters = {"zero": zero, "scale": float(source), "count": float(reduced)}
        kernel = CKernel("mean_of_codes", f"{element}_to_float", {**block, **more})
    else:
        out, out_zero = r.quantised(r.output())
        multiplier, shift = single_multiplier(float(_F32(source) / (_F32(out) * _F32(reduced))))
        more = {"in_zero": zero, "out_zero": out_zero, "multiplier": multiplier, "shift": shift}
        variant = "int8_even" if element == "int8" else f"{element}_even_to_int8"
        kernel = CKernel("mean", variant, {**block, **more})
    return COperator(r.index, r.op.kind, (r.row_operand(0),), r.row_results(), (kernel,))


def sum_of_codes(r: NetworkReader) -> COperator:
    """SUM of codes over axes that are neighbours, as they are, of 16 bits."""
    outer, reduced, inner = reduced_block(r)
    room = reduced * -_LOW <= LIMITS["int16"][1]
    types = (r.dtype(r.input(0)), r.dtype(r.output())) == ("int8", "int16")
    r.require(holds=types and room, why="codes whose sums need more than 16 bits")
    return reduced_by_rows(r, "sum_of_codes", "int8_to_int16", {"outer": outer, "reduced": reduced, "inner": inner})


def even_pool(r: NetworkReader) -> COperator:
    """AVERAGE_POOL_2D of codes."""
    four_dimensional(r)
    axes = windows_of(r)
    (source, zero), (out, out_zero), (low, high) = r.quantised(r.input(0)), r.quantised(r.output()), r.output_range()
    code = int(r.stated("CodeOffset", 0))
    parameters = {**windowed_geometry(r, axes), "in_zero": zero, "code": code, "out_zero": out_zero + code}
    parameters |= {"least": low, "most": high}
    parameters |= {"in_scale": float(source), "out_scale": float(out)}
    parameters["whole"] = r.counted_places * axes[0].reach * axes[1].reach
    parameters["channels"] = parameters.pop("in_channels")
    return windowed_operator(r, "even_pool", "int8", axes, parameters)


def even_softmax(r: NetworkReader) -> COperator:
    """SOFTMAX along the last axis."""
    _, columns, channels = rows_columns(r.input(0).shape)
    scale, (out, zero) = r.quantised(r.input(0))[0], r.quantised(r.output())
    room = max(0.0, math.log(float(np.finfo(_F32).max) / channels) - 5) / float(_F32(scale))
    exponentials = np.exp((room - np.arange(256, dtype=np.float64)) * float(_F32(scale))).astype(_F32)
    parameters: Parameters = {
        "exponentials": const_table("exponentials", "float", exponentials),
        "steps": math.floor(float(_F32(1) / _F32(out))) * 1.0,
        "lines": columns,
        "channels": channels,
        "zero": zero,
    }
    return softmax_operator(r, "even_softmax", "int8", parameters)

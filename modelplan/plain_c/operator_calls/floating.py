"""Operators on float32 as calls of C kernels, which add up in the order of TFLM's reference kernels."""

from __future__ import annotations

from math import prod

import numpy as np

from modelplan.plain_c.kernel_records import CKernel, COperator, Parameters, const_table
from modelplan.plain_c.operator_calls.elementwise import (
    binary_operator,
    one_operand,
    row_elements,
    rows_columns,
    softmax_operator,
)
from modelplan.plain_c.operator_calls.fixed_point import ACTIVATIONS
from modelplan.plain_c.operator_calls.reading import OperatorReader
from modelplan.plain_c.operator_calls.resampling import reduced_block
from modelplan.plain_c.operator_calls.windowed import (
    four_dimensional,
    product_operator,
    windowed_geometry,
    windowed_operator,
    windows_of,
)

_MOST = float(np.finfo(np.float32).max)
_OPERATIONS = {"ADD": 0, "SUB": 1, "MUL": 2, "DIV": 3, "MAXIMUM": 4, "MINIMUM": 5, "PRELU": 6}
_FUNCTIONS = {"LOGISTIC": 0, "TANH": 1, "HARD_SWISH": 2, "LEAKY_RELU": 3, "RELU": 3, "RELU6": 3}


def _limits(activation: int) -> Parameters:
    low, high = ACTIVATIONS[activation]
    return {"least": -_MOST if low is None else float(low), "most": _MOST if high is None else float(high)}


def _constants(r: OperatorReader, channels: int) -> Parameters:
    """Weights and biases."""
    types = {r.dtype(r.input(i)) for i in (1, 2) if r.has(i)}
    r.require(holds=types == {"float32"}, why=f"constants of types {', '.join(sorted(types))}")
    bias = r.constant(2).ravel() if r.has(2) else np.zeros(channels, np.float32)
    r.require(holds=bias.size == channels, why=f"{bias.size} biases for {channels} channels")
    return {"weights": const_table("weights", "float", r.constant(1)), "bias": const_table("bias", "float", bias)}


def float_convolution(r: OperatorReader) -> COperator:
    """CONV_2D and DEPTHWISE_CONV_2D."""
    four_dimensional(r)
    depthwise = r.op.kind == "DEPTHWISE_CONV_2D"
    shape, depth = r.input(1).shape, r.input(0).shape[3]
    channels = shape[3] if depthwise else shape[0]
    groups = depth if depthwise else depth // max(shape[3], 1)
    fits = groups > 0 and channels % groups == 0 and r.output().shape[3] == channels
    r.require(holds=fits and (depthwise or groups * shape[3] == depth), why=f"weights of shape {list(shape)}")
    high, wide = windows_of(r, shape[1], shape[2], dilated=True)
    parameters: Parameters = {
        **_constants(r, channels),
        **windowed_geometry(r, high, wide),
        "depthwise": int(depthwise),
        "out_channels": channels,
        "dilation_height": high.dilation,
        "dilation_width": wide.dilation,
        "groups": groups,
        **_limits(r.activation()),
    }
    return windowed_operator(r, "float_convolution", "float", high, parameters)


def float_product(r: OperatorReader) -> COperator:
    """FULLY_CONNECTED: a row for each line of the operand, where operand and result are matrices."""
    channels, depth = r.input(1).shape
    lines, rest = divmod(r.input(0).elements, depth)
    r.require(holds=not rest and r.output().elements == lines * channels, why="weights of another shape")
    parameters: Parameters = {
        **_constants(r, channels),
        "in_channels": depth,
        "out_channels": channels,
        **_limits(r.activation()),
    }
    return product_operator(r, "float_product", "float", lines, parameters)


def float_pool(r: OperatorReader) -> COperator:
    """AVERAGE_POOL_2D and MAX_POOL_2D."""
    four_dimensional(r)
    high, wide = windows_of(r, int(r.option("FilterHeight")), int(r.option("FilterWidth")), dilated=False)
    parameters = {**windowed_geometry(r, high, wide), **_limits(r.activation())}
    parameters["channels"] = parameters.pop("in_channels")
    parameters["largest"] = int(r.op.kind == "MAX_POOL_2D")
    return windowed_operator(r, "float_pool", "float", high, parameters)


def float_binary(r: OperatorReader) -> COperator:
    """Sums, differences, products, quotients and extremes of two maps, and PRELU."""
    activation = r.activation() if r.op.kind in ("ADD", "SUB", "MUL", "DIV") else 0
    parameters: Parameters = {"operation": _OPERATIONS[r.op.kind], **_limits(activation)}
    return binary_operator(r, "float_binary", "float", parameters)


def float_unary(r: OperatorReader) -> COperator:
    """Functions of one number."""
    slope = float(r.option("Alpha")) if r.op.kind == "LEAKY_RELU" else 1.0
    limits = _limits({"RELU": 1, "RELU6": 3}.get(r.op.kind, 0))
    parameters: Parameters = {"operation": _FUNCTIONS[r.op.kind], "slope": slope, **limits}
    return one_operand(r, "float_unary", "float", parameters | {"elements": row_elements(r)})


def float_softmax(r: OperatorReader) -> COperator:
    """SOFTMAX along the last axis."""
    _, columns, channels = rows_columns(r.input(0).shape)
    parameters: Parameters = {"beta": float(r.option("Beta")), "lines": columns, "channels": channels}
    return softmax_operator(r, "float_softmax", "float", parameters)


def float_mean(r: OperatorReader) -> COperator:
    """MEAN and SUM over axes that are neighbours."""
    outer, reduced, inner = reduced_block(r)
    count = float(reduced) if r.op.kind == "MEAN" else 1.0
    parameters: Parameters = {"outer": outer, "reduced": reduced, "inner": inner, "count": count}
    r.require(holds=prod((outer, inner)) == r.output().elements, why="a result of another size")
    kernel = CKernel("float_mean", "float", parameters)
    return COperator(r.index, r.op.kind, (r.row_operand(0),), r.row_results(), (kernel,))

"""Operators on float32 as calls of C kernels, which add up in the order of TFLM's reference kernels.

Products of networks that no .tflite file holds are summed in parts, whose error is smaller.
"""

import math

import numpy as np

from modelplan.plain_c.kernel_records import CKernel, ConstTable, COperator, Parameters, const_table
from modelplan.plain_c.operator_calls.elementwise import (
    binary_operator,
    rows_columns,
    softmax_operator,
)
from modelplan.plain_c.operator_calls.reading import OperatorReader
from modelplan.plain_c.operator_calls.resampling import reduced_axes, reduced_by_rows
from modelplan.plain_c.operator_calls.windowed import (
    dilations,
    four_dimensional,
    product_operator,
    transposed_operator,
    windowed_geometry,
    windowed_operator,
    windows_of,
)

_OPERATIONS = {"ADD": 0, "SUB": 1, "MUL": 2, "DIV": 3, "PRELU": 4}


def _limits(r: OperatorReader) -> Parameters:
    """The bounds of results."""
    low, high = r.float_range()
    return {"least": low, "most": high}


def _constants(r: OperatorReader, channels: int, groups: int = 1, *, packed: bool = True) -> Parameters:
    """Weights and biases; weights `packed` for each of the groups, or as they are."""
    types = {r.dtype(r.input(i)) for i in (1, 2) if r.has(i)}
    r.require(holds=types == {"float32"}, why=f"constants of types {', '.join(sorted(types))}")
    bias = r.constant(2).ravel() if r.has(2) else np.zeros(channels, np.float32)
    r.require(holds=bias.size == channels, why=f"{bias.size} biases for {channels} channels")
    return {"weights": _weights(r, channels // groups if packed else 0), "bias": const_table("bias", "float", bias)}


def _weights(r: OperatorReader, channels: int) -> ConstTable:
    """Operand 1, in the bits that the file has: 32, or 16 that a DEQUANTIZE would unpack.

    Those of so many channels after the other are packed by fours; 0: none is.
    """
    half = r.half(1)
    numbers = half.view(np.uint16) if half is not None else r.constant(1)
    parts = numbers.reshape(-1, channels, numbers.size // numbers.shape[0]) if channels else ()
    packed = [part[c : c + 4].T.ravel() for part in parts for c in range(0, channels, 4)]
    numbers = np.concatenate(packed) if packed else numbers
    return const_table("weights", "float" if half is None else "uint16_t", numbers)


def _variant(r: OperatorReader) -> str:
    """The variant of a kernel by its weights, and by how their products are summed."""
    return r.rounded("float") if r.half(1) is None else "float_half"


def float_convolution(r: OperatorReader) -> COperator:
    """CONV_2D and DEPTHWISE_CONV_2D."""
    four_dimensional(r)
    depthwise = r.op.kind == "DEPTHWISE_CONV_2D"
    shape, depth = r.input(1).shape, r.input(0).shape[3]
    channels = shape[3] if depthwise else shape[0]
    groups = depth if depthwise else depth // max(shape[3], 1)
    fits = groups > 0 and channels % groups == 0 and r.output().shape[3] == channels
    r.require(holds=fits and (depthwise or groups * shape[3] == depth), why=f"weights of shape {list(shape)}")
    axes = windows_of(r)
    parameters: Parameters = {
        **_constants(r, channels, groups, packed=not depthwise),
        **windowed_geometry(r, axes),
        "depthwise": int(depthwise),
        "out_channels": channels,
        **dilations(axes),
        "groups": groups,
        **_limits(r),
    }
    return windowed_operator(r, "float_convolution", _variant(r), axes, parameters)


def float_product(r: OperatorReader) -> COperator:
    """FULLY_CONNECTED: a row for each line of the operand, where operand and result are matrices."""
    channels, depth = r.input(1).shape
    lines, rest = divmod(r.input(0).elements, depth)
    r.require(holds=not rest and r.output().elements == lines * channels, why="weights of another shape")
    parameters: Parameters = {
        **_constants(r, channels),
        "in_channels": depth,
        "out_channels": channels,
        **_limits(r),
    }
    return product_operator(r, "float_product", _variant(r), lines, parameters)


def float_transposed(r: OperatorReader) -> COperator:
    """A transposed convolution."""
    types = {r.dtype(r.input(i)) for i in (1, 2, 3) if r.has(i)}
    r.require(holds=types == {"float32"}, why=f"types {', '.join(sorted(types))}")
    channels = r.input(1).shape[0]
    bias = r.constant(3).ravel() if r.has(3) else np.zeros(channels, np.float32)
    r.require(holds=bias.size == channels, why=f"{bias.size} biases for {channels} channels")
    parameters: Parameters = {
        "weights": _weights(r, channels),
        "bias": const_table("bias", "float", bias),
        **_limits(r),
    }
    return transposed_operator(r, "float_transpose_conv", _variant(r), parameters)


def float_pool(r: OperatorReader) -> COperator:
    """AVERAGE_POOL_2D, MAX_POOL_2D and L2_POOL_2D."""
    four_dimensional(r)
    axes = windows_of(r)
    parameters = {**windowed_geometry(r, axes), **_limits(r)}
    parameters["channels"] = parameters.pop("in_channels")
    parameters["whole"] = r.counted_places * axes[0].reach * axes[1].reach
    parameters["takes"] = ("AVERAGE_POOL_2D", "MAX_POOL_2D", "L2_POOL_2D").index(r.op.kind)
    return windowed_operator(r, "float_pool", "float", axes, parameters)


def float_binary(r: OperatorReader) -> COperator:
    """Sums, differences, products and quotients of two maps, and PRELU."""
    unbound: Parameters = {"least": -math.inf, "most": math.inf}
    limits = unbound if r.op.kind == "PRELU" else _limits(r)
    parameters: Parameters = {"operation": _OPERATIONS[r.op.kind], **limits}
    return binary_operator(r, "float_binary", "float", parameters)


def float_softmax(r: OperatorReader) -> COperator:
    """SOFTMAX along the last axis."""
    _, columns, channels = rows_columns(r.input(0).shape)
    parameters: Parameters = {"beta": float(r.option("Beta")), "lines": columns, "channels": channels}
    return softmax_operator(r, "float_softmax", "float", parameters)


def float_mean(r: OperatorReader) -> COperator:
    """MEAN and SUM over axes."""
    source, extents, count = reduced_axes(r, "float_mean")
    parameters: Parameters = {**extents, "count": float(count) if r.op.kind == "MEAN" else 1.0}
    if source == "float_mean":
        return reduced_by_rows(r, source, r.rounded("float"), parameters)
    kernel = CKernel(source, "float", parameters)
    return COperator(r.index, r.op.kind, (r.row_operand(0),), r.row_results(), (kernel,))

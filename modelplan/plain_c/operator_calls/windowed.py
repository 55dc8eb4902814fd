"""Convolutions, products of matrices, and pools as calls of C kernels."""

from math import prod
from typing import Any

import numpy as np
import numpy.typing as npt

from modelplan.ops.access.spans import Span
from modelplan.plain_c.kernel_records import (
    C_TYPES,
    AxisWindow,
    CKernel,
    ConstTable,
    COperator,
    Parameters,
    RowOperand,
    const_table,
    in_groups,
    row_axis,
)
from modelplan.plain_c.operator_calls.elementwise import repeated_strides
from modelplan.plain_c.operator_calls.fixed_point import LIMITS, quantized_multiplier
from modelplan.plain_c.operator_calls.moving import merged_loops
from modelplan.plain_c.operator_calls.reading import OperatorReader
from modelplan.primitives.lazy_records import dataclass


@dataclass(frozen=True, slots=True)
class MapAxis:
    """Windows along one axis of so many places, `results` of them, as the access map says."""

    extent: int
    results: int
    span: Span

    @property
    def reach(self) -> int:
        """The places that a window reads."""
        return (self.span.hi - self.span.lo) // self.span.step + 1

    @property
    def before(self) -> int:
        """Elements of padding in front of the map."""
        return -self.span.lo

    @property
    def window(self) -> AxisWindow | None:
        """All places from the first that a window reads to the last."""
        return AxisWindow.of(self.span)


def windows_of(r: OperatorReader) -> tuple[MapAxis, MapAxis]:
    """The windows along rows and columns of operand 0: height and width, or for a map of one row width and height.

    Weights whose windows are one row high are the same bytes then.
    """
    high, wide = map_axes(r, 0)
    return (wide, high) if (high.extent, high.results, high.reach) == (1, 1, 1) else (high, wide)


def map_axes(r: OperatorReader, operand: int) -> tuple[MapAxis, MapAxis]:
    """How rows and columns of a map are read."""
    access, shape, result = r.access(), r.input(operand).shape, r.output().shape
    reads = access.of(operand) if access else None
    if reads is None:
        raise r.refuse("windows without extent, or that do not fit the maps")
    high, wide = (MapAxis(shape[axis], result[axis], reads.spans[axis]) for axis in (1, 2))
    return high, wide


def four_dimensional(r: OperatorReader) -> None:
    ranks = len(r.input(0).shape), len(r.output().shape)
    r.require(holds=ranks == (4, 4), why=f"maps of {ranks[0]} and {ranks[1]} dimensions, expected 4")
    r.require(holds=r.input(0).shape[0] == r.output().shape[0], why="batches of different size")


def windowed_operator(
    r: OperatorReader, source: str, variant: str, axes: tuple[MapAxis, MapAxis], parameters: Parameters
) -> COperator:
    """An operator with windows along rows and columns of operand 0; batches follow each other."""
    high, wide = axes
    batches = r.output().shape[0]
    whole = (high.extent, high.before, high.results)
    kernel = CKernel(source, variant, parameters, whole=whole, repeats=batches)
    axes_of_rows = [row_axis(shape) for shape in (r.input(0).shape, r.output().shape)]
    single = batches == high.results == 1 and axes_of_rows == [1, 2]  # a row whose columns readers take for rows
    results = r.row_results(1 if single else 0)
    by_rows = batches == 1 and (r.row_operand(0).rows, results[0].rows) == (high.extent, high.results)
    operand = r.row_operand(0, high.window if by_rows else None, wide.window)
    return COperator(r.index, r.op.kind, (operand,), results, (kernel,), by_rows=by_rows)


def windowed_geometry(r: OperatorReader, axes: tuple[MapAxis, MapAxis]) -> Parameters:
    """Widths, channels, and how a window moves over operand 0."""
    high, wide = axes
    return {
        "in_width": wide.extent,
        "in_channels": r.input(0).shape[3],
        "out_width": wide.results,
        "kernel_height": high.reach,
        "kernel_width": wide.reach,
        "stride_height": high.span.mul,
        "stride_width": wide.span.mul,
        "pad_left": wide.before,
    }


def dilations(axes: tuple[MapAxis, MapAxis]) -> Parameters:
    """How far the places of a window lie apart."""
    return {"dilation_height": axes[0].span.step, "dilation_width": axes[1].span.step}


def channel_multipliers(r: OperatorReader, axis: int, operand: int = 0) -> tuple[ConstTable, ConstTable]:
    """A multiplier and a shift for each channel of the weights, operand 1, in double as TFLM computes them."""
    weights = r.input(1)
    channels, scales = weights.shape[axis], r.scales(r.op.inputs[1])
    r.require(holds=len(scales) in (1, channels), why=f"{len(scales)} scales for {channels} channels of weights")
    if len(scales) > 1:
        named = weights.quantization.axis
        r.require(holds=weights.shape[named] == channels, why=f"scales along axis {named}")
    (source, _), (result, _) = r.quantised(r.input(operand)), r.quantised(r.output())
    pairs = [r.product_multiplier(source, float(s), result) for s in scales]
    pairs = pairs * channels if len(pairs) == 1 else pairs
    return const_table("multiplier", "int32_t", [m for m, _ in pairs]), const_table(
        "shift", "int8_t", [s for _, s in pairs]
    )


def _bias(r: OperatorReader, channels: int) -> npt.NDArray[np.int64]:
    if not r.has(2):
        return np.zeros(channels, np.int64)
    bias = r.constant(2)
    r.require(holds=bias.size == channels, why=f"{bias.size} biases for {channels} channels")
    return bias.astype(np.int64).ravel()


def folded_bias(r: OperatorReader, sums: npt.NDArray[np.int64], variant: str) -> ConstTable:
    """Biases from which what the operand's zero point adds to each channel is taken off, in 32 bits as they wrap."""
    if variant == "int16":
        return const_table("bias", "int64_t", _bias(r, sums.size))
    return wrapped_bias("bias", _bias(r, sums.size) - r.quantised(r.input(0))[1] * sums)


def wrapped_bias(name: str, values: npt.NDArray[np.int64]) -> ConstTable:
    """A table of biases, as 32 bits hold them."""
    return const_table(name, "int32_t", ((values + 2**31) % 2**32 - 2**31).astype(np.int32))


def _rescaling(r: OperatorReader) -> Parameters:
    """Zero points and the range of the result."""
    low, high = r.output_range()
    zeros = {"in_zero": r.quantised(r.input(0))[1], "out_zero": r.quantised(r.output())[1]}
    return {**zeros, "least": low, "most": high}


def _weights(r: OperatorReader, *, short: bool = True) -> tuple[npt.NDArray[np.int8], str]:
    """Operand 1 of a quantised operator, 8 bits each also where the file has 4, and the variant of its kernel."""
    types = tuple(r.dtype(t) for t in (r.input(0), r.input(1), r.output()))
    bias = r.dtype(r.input(2)) if r.has(2) else ""
    known = {("int8", ""): "int8", ("int8", "int32"): "int8", ("int16", ""): "int16", ("int16", "int64"): "int16"}
    known |= {("int16", "int32"): "int16_short"} if short else {}
    variant = known.get((types[0], bias), "") if types[1] == "int8" or types[:2] == ("int8", "int4") else ""
    named = ", ".join((*types, bias)).rstrip(", ")
    holds = variant != "" and types[0] == types[2]
    r.require(holds=holds, why=f"types {named}; there are kernels for int8 and int16 with weights of 8 bits")
    zeros = {r.quantised(t)[1] for t in (r.input(0), r.output())}
    r.require(holds=types[0] == "int8" or zeros == {0}, why="16-bit maps whose zero point is not 0")
    weights: npt.NDArray[np.int8] = r.constant(1)
    return weights, variant


def convolution(r: OperatorReader) -> COperator:
    """CONV_2D, with groups where the weights have fewer channels than the map."""
    four_dimensional(r)
    weights, variant = _weights(r)
    channels, _, _, depth = weights.shape
    groups, rest = divmod(r.input(0).shape[3], depth)
    fits = groups > 0 and not rest and not channels % groups and r.output().shape[3] == channels
    r.require(holds=fits, why=f"weights of shape {list(weights.shape)} for these maps")
    axes = windows_of(r)
    parameters = _convolved(r, weights, 0, variant, axes) | {"out_channels": channels, "groups": groups}
    return windowed_operator(r, "conv_2d", r.rounded(variant), axes, parameters)


def depthwise_convolution(r: OperatorReader) -> COperator:
    """DEPTHWISE_CONV_2D."""
    four_dimensional(r)
    weights, variant = _weights(r, short=False)
    channels = weights.shape[3]
    factor, rest = divmod(channels, r.input(0).shape[3])
    fits = not rest and factor > 0 and r.output().shape[3] == channels
    r.require(holds=fits, why=f"weights of shape {list(weights.shape)} for these maps")
    axes = windows_of(r)
    parameters = _convolved(r, weights, 3, variant, axes) | {"depth_multiplier": factor}
    parameters["weights"] = const_table("weights", "int8_t", _by_fours(weights))
    return windowed_operator(r, "depthwise_conv_2d", r.rounded(variant), axes, parameters)


def _by_fours(weights: npt.NDArray[np.int8]) -> npt.NDArray[np.int8]:
    """Weights of 4 channels with all of their taps, then those of the next 4."""
    channels = weights.shape[3]
    return np.concatenate([weights[..., c : c + 4].ravel() for c in range(0, channels, 4)])


def _convolved(
    r: OperatorReader, weights: npt.NDArray[np.int8], axis: int, variant: str, axes: tuple[MapAxis, MapAxis]
) -> Parameters:
    """What both convolutions have; the channels of the result lie along `axis` of the weights."""
    multiplier, shift = channel_multipliers(r, axis)
    others = tuple(other for other in range(4) if other != axis)
    return {
        "weights": const_table("weights", "int8_t", weights),
        "bias": folded_bias(r, weights.astype(np.int64).sum(others), variant),
        "multiplier": multiplier,
        "shift": shift,
        **windowed_geometry(r, axes),
        **dilations(axes),
        **_rescaling(r),
    }


def fully_connected(r: OperatorReader) -> COperator:
    """FULLY_CONNECTED: a row for each line of the operand, where operand and result are matrices."""
    weights, variant = _weights(r)
    channels, depth = weights.shape
    lines, rest = divmod(r.input(0).elements, depth)
    fits = not rest and r.output().elements == lines * channels and r.option("WeightsFormat") == 0
    r.require(holds=fits, why=f"weights of shape {list(weights.shape)} for these operands")
    r.require(holds=r.quantised(r.input(1))[1] == 0, why="weights whose zero point is not 0")
    multiplier, shift = _product_multipliers(r)
    parameters: Parameters = {
        "weights": const_table("weights", "int8_t", weights),
        "bias": folded_bias(r, weights.astype(np.int64).sum(1), variant),
        "multiplier": multiplier,
        "shift": shift,
        "in_channels": depth,
        "out_channels": channels,
        "by_channel": int(multiplier.numbers.size > 1),
        **{key: value for key, value in _rescaling(r).items() if key != "in_zero"},
    }
    return product_operator(r, "fully_connected", r.rounded(variant), lines, parameters)


def product_operator(r: OperatorReader, source: str, variant: str, lines: int, parameters: Parameters) -> COperator:
    """A product of so many lines with a matrix, row by row where each row of the result is of rows of its own."""
    window, results = r.row_window(0), r.row_results()
    by_rows = window is not None and window == AxisWindow(window.stride, window.stride)
    kernel = CKernel(source, variant, {**parameters, "lines": lines // results[0].rows if by_rows else lines})
    return COperator(r.index, r.op.kind, (r.row_operand(0, window),), results, (kernel,), by_rows=by_rows)


def _product_multipliers(r: OperatorReader) -> tuple[ConstTable, ConstTable]:
    """By channel as those of convolutions; of a single scale from the product in double, as TFLM since autumn 2026.

    Before it multiplied in float32, by which one of some million results of 8 bits is another one.
    """
    scales = r.scales(r.op.inputs[1])
    if len(scales) > 1:
        r.require(holds=r.dtype(r.input(1)) == "int8", why="weights of 4 bits by channel, which TFLM does not take")
        return channel_multipliers(r, 0)
    (source, _), (result, _) = r.quantised(r.input(0)), r.quantised(r.output())
    product = float(source) * float(scales[0])
    if r.has(2) and r.input(2).quantization.scales:
        bias = r.input(2).quantization.scale
        off = abs(product - bias) / float(result)
        r.require(holds=off <= 0.02, why=f"a bias of scale {bias}, which is not that of the products")
    multiplier, shift = r.product_multiplier(source, float(scales[0]), result)
    return const_table("multiplier", "int32_t", [multiplier]), const_table("shift", "int8_t", [shift])


def pool(r: OperatorReader) -> COperator:
    """AVERAGE_POOL_2D and MAX_POOL_2D."""
    four_dimensional(r)
    variant = r.variant("int8", "int16")
    r.require(
        holds=r.quantised(r.input(0)) == r.quantised(r.output()), why="a result of another scale than the operand"
    )
    axes = windows_of(r)
    low, most = r.output_range()
    parameters = {**windowed_geometry(r, axes), "least": low, "most": most}
    parameters["channels"] = parameters.pop("in_channels")
    return windowed_operator(r, r.op.kind.lower(), variant, axes, parameters)


def transposed_convolution(r: OperatorReader) -> COperator:
    """A transposed convolution, whose operand 2 is the map."""
    types = tuple(r.dtype(t) for t in (r.input(2), r.input(1), r.output()))
    known = types in (("int8", "int8", "int8"), ("int16", "int8", "int16"))
    r.require(holds=known, why=f"types {', '.join(types)}; there are kernels for int8, int16 and float32")
    tables = _transposed_tables(r, r.constant(1), wide_sums=types[0] == "int16")
    return transposed_operator(r, "transpose_conv", r.rounded(types[0]), tables | _transposed_ranges(r))


def transposed_operator(r: OperatorReader, source_name: str, variant: str, more: Parameters) -> COperator:
    """A kernel that spreads the elements of operand 2 over the result, as many rows at a time as its stride is long."""
    source, weights, result = r.input(2), r.constant(1), r.output()
    r.require(holds=len(source.shape) == len(result.shape) == 4 == weights.ndim, why="maps without 4 dimensions")
    channels, _, _, depth = weights.shape
    fits = source.shape[0] == result.shape[0] and source.shape[3] == depth and result.shape[3] == channels
    r.require(holds=fits, why=f"weights of shape {list(weights.shape)} for these maps")
    (high, top), (wide, left) = ((axis.span, axis.span.hi) for axis in map_axes(r, 2))
    group = high.div if in_groups(source.shape, result.shape, high.div) else 1
    before = -(high.lo // high.div)
    parameters: Parameters = {
        **more,
        "in_width": source.shape[2],
        "in_channels": depth,
        "out_width": result.shape[2],
        "out_channels": channels,
        "kernel_height": weights.shape[1],
        "kernel_width": weights.shape[2],
        "stride_height": high.div,
        "stride_width": wide.div,
        "pad_left": left,
        "pad_top": top,
        "before": before,
        "group": group,
    }
    whole = (source.shape[1], before, result.shape[1] // group)
    kernel = CKernel(source_name, variant, parameters, whole=whole, repeats=result.shape[0])
    if not in_groups(source.shape, result.shape, high.div):
        return COperator(r.index, r.op.kind, (r.row_operand(2),), r.row_results(), (kernel,))
    window = AxisWindow((high.hi + group - 1) // high.div + before + 1, 1, before)
    results = r.row_results(result.shape[1] // group)
    return COperator(r.index, r.op.kind, (r.row_operand(2, window),), results, (kernel,), by_rows=True)


def _transposed_tables(r: OperatorReader, weights: npt.NDArray[Any], *, wide_sums: bool) -> Parameters:
    """Weights, bias and multipliers of a transposed convolution."""
    channels = weights.shape[0]
    bias = r.constant(3).astype(np.int64).ravel() if r.has(3) else np.zeros(channels, np.int64)
    multiplier, shift = channel_multipliers(r, 0, 2)
    return {
        "weights": const_table("weights", "int8_t", weights),
        "bias": const_table("bias", "int64_t", bias) if wide_sums else wrapped_bias("bias", bias),
        "multiplier": multiplier,
        "shift": shift,
    }


def _transposed_ranges(r: OperatorReader) -> Parameters:
    """Zero points of a transposed convolution, and the codes to which its activation clamps."""
    (_, in_zero), (_, out_zero) = r.quantised(r.input(2)), r.quantised(r.output())
    low, most = r.output_range()
    return {"in_zero": in_zero, "out_zero": out_zero, "least": low, "most": most}


_NAMES = "ab"


def batch_product(r: OperatorReader) -> COperator:
    """BATCH_MATMUL: matrices whose batches are the same or repeated, each turned where the options say so."""
    variant = r.variant("int8", "int16", "float32")
    shapes, result = [r.input(0).shape, r.input(1).shape], r.output().shape
    r.require(holds=min(map(len, shapes)) >= 2 and len(result) >= 2, why="operands that are no matrices")
    types = {r.dtype(r.input(0)), r.dtype(r.input(1))}
    r.require(holds=len(types) == 1, why=f"operands of types {', '.join(sorted(types))}")
    turned = [bool(r.option("AdjX")), bool(r.option("AdjY"))]
    (rows, depth), (deep, columns) = (
        (shape[-1], shape[-2]) if turn else (shape[-2], shape[-1]) for shape, turn in zip(shapes, turned, strict=True)
    )
    r.require(holds=depth == deep and result[-2:] == (rows, columns), why=f"matrices {shapes[0]} and {shapes[1]}")
    strides = [repeated_strides(r, shape[:-2], result[:-2]) for shape in shapes]
    sizes = [prod(shape[-2:]) for shape in shapes]
    batches = merged_loops([(n, *steps) for n, *steps in zip(result[:-2], *strides, strict=True) if n != 1], 0)
    r.require(holds=len(batches) <= 2, why=f"batches that are repeated along every other axis of {list(result)}")
    parameters: Parameters = {"rows": rows, "columns": columns, "depth": depth}
    loops = [*[(1, 0, 0)] * (2 - len(batches)), *batches]
    for name, (count, *steps) in zip(("outer", "inner"), loops, strict=True):
        parameters[name] = count
        parameters |= {f"{x}_{name}": step * size for x, step, size in zip(_NAMES, steps, sizes, strict=True)}
    parameters |= {"a_row": 1 if turned[0] else depth, "a_deep": rows if turned[0] else 1}
    parameters |= {"b_column": depth if turned[1] else 1, "b_deep": 1 if turned[1] else columns}
    if variant != "float":
        parameters |= _scaled(r, variant)
    sources: list[int | ConstTable] = []
    operands: list[RowOperand] = []
    for position in (0, 1):
        if r.is_constant(position):
            ctype = C_TYPES[r.dtype(r.input(position))]
            sources.append(const_table("constant", ctype, r.constant(position)))
        else:
            sources.append(len(operands))
            operands.append(r.row_operand(position))
    kernel = CKernel("float_matrices" if variant == "float" else "matrices", variant, parameters, tuple(sources))
    return COperator(r.index, r.op.kind, tuple(operands), r.row_results(), (kernel,))


def _scaled(r: OperatorReader, variant: str) -> Parameters:
    (a, a_zero), (b, b_zero), (out, out_zero) = map(r.quantised, (r.input(0), r.input(1), r.output()))
    multiplier, shift = quantized_multiplier(float(a) * float(b) / float(out))
    low, high = LIMITS[variant]
    zeros = {"a_zero": a_zero, "b_zero": b_zero, "out_zero": out_zero}
    r.require(holds=variant == "int8" or not any(zeros.values()), why="16-bit maps whose zero point is not 0")
    return {**zeros, "multiplier": multiplier, "shift": shift, "least": low, "most": high}

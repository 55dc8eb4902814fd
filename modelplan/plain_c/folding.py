"""Operators that others do by themselves: paddings, and convolutions whose whole result need not be there."""

import math
from collections.abc import Mapping
from dataclasses import replace

from modelplan.model import Graph
from modelplan.plain_c.kernel_records import AxisWindow, CKernel, ConstTable, COperator, Parameters
from modelplan.plain_c.kernel_sources import parameter_names, table_names

_CONVOLUTIONS = {"conv_2d", "depthwise_conv_2d"}
_ONES = ("kernel_height", "kernel_width", "stride_height", "stride_width", "groups")
#: Kernels that can compute another convolution too, by what the variants begin with that do.
_FOLDED = {"conv_2d": "int8", "depthwise_conv_2d": "int8", "float_convolution": "float"}
_LIMITS = {"int8": {"pool_least": -128, "pool_most": 127}, "int16": {"pool_least": -32768, "pool_most": 32767}}
#: Numbers that are added to each other before others are, where sums of floats have parts.
_TOGETHER = 16


def without_pads(graph: Graph, operators: Mapping[int, COperator]) -> dict[int, COperator]:
    """The operators without the paddings that all of their readers can do; these read the map that was padded."""
    kept = dict(operators)
    for index, operator in operators.items():
        if not operator.kernels or operator.kernels[0].source != "pad" or operator.results[0].tensor in graph.outputs:
            continue
        readers = graph.readers[operator.results[0].tensor]
        folded = {reader: _folded(operator, kept[reader]) for reader in readers}
        if folded and all(folded.values()):
            kept |= {reader: convolution for reader, convolution in folded.items() if convolution}
            del kept[index]
    return kept


def _folded(pad: COperator, reader: COperator) -> COperator | None:
    """A convolution that does a padding too; None where it cannot."""
    if len(reader.kernels) != 1:
        return None
    kernel, padding = reader.kernels[0], pad.kernels[0]
    if kernel.source not in _CONVOLUTIONS or not (pad.by_rows and reader.by_rows):
        return None
    above, window = pad.operands[0].window, reader.operands[0].window
    if above is None or window is None:
        return None
    if padding.number("front") or padding.number("back") or padding.parameters["value"] != kernel.number("in_zero"):
        return None
    left = kernel.number("pad_left") + padding.number("left")
    parameters = {**kernel.parameters, "in_width": padding.number("width"), "pad_left": left}
    columns = reader.operands[0].columns
    operand = replace(
        pad.operands[0],
        window=replace(window, before=window.before + above.before),
        columns=columns and replace(columns, before=left),
    )
    folded: CKernel = replace(kernel, parameters=parameters)
    return replace(reader, operands=(operand,), kernels=(folded,))


def with_pooled_convolutions(graph: Graph, operators: Mapping[int, COperator]) -> dict[int, COperator]:
    """The operators without convolutions of single pixels of which only each channel's mean or sum is read.

    That is computed channel by channel from the map before, so that the map between is never there. Where all pixels
    become one, and the map before has to be there as a whole, it must be the smaller one.
    """
    kept = dict(operators)
    for index, operator in operators.items():
        readers = graph.readers[operator.results[0].tensor] if _is_by_pixel(operator) else ()
        pool = kept.get(readers[0]) if len(readers) == 1 and operator.results[0].tensor not in graph.outputs else None
        if pool and (pooled := _pooled(operator, pool)):
            kept[readers[0]] = pooled
            del kept[index]
    return kept


def _widens(operator: COperator) -> bool:
    """Whether its result is larger than its operand."""
    source, result = operator.operands[0], operator.results[0]
    return result.rows * result.row_bytes > source.rows * source.row_bytes


def _is_by_pixel(operator: COperator) -> bool:
    """Whether it is a convolution of single pixels, of all those of its map and no others."""
    kernel = _folded_kernel(operator)
    if kernel is None or _is_depthwise(kernel) or not all(kernel.parameters[key] == 1 for key in _ONES):
        return False
    source, result = operator.operands[0], operator.results[0]
    same = kernel.parameters["in_width"] == kernel.parameters["out_width"] and source.rows == result.rows
    return same and kernel.parameters["pad_left"] == 0 and source.window == AxisWindow()


def _folded_kernel(operator: COperator) -> CKernel | None:
    """The kernel of a convolution that can be a part of another operator; None where it has none."""
    kernel = operator.kernels[0] if len(operator.kernels) == 1 and operator.by_rows else None
    return kernel if kernel and kernel.variant.startswith(_FOLDED.get(kernel.source, "?")) else None


def _is_depthwise(kernel: CKernel) -> bool:
    return kernel.source == "depthwise_conv_2d" or kernel.parameters.get("depthwise") == 1


def _pooled(convolution: COperator, pool: COperator) -> COperator | None:
    """The pool that computes a convolution too; None where it is not the mean or the sum of each channel."""
    kernel, rows = convolution.kernels[0], convolution.results[0].rows
    by_rows = pool.by_rows and pool.operands[0].window == AxisWindow() and pool.results[0].rows == rows > 1
    if len(pool.kernels) != 1 or pool.kernels[0].repeats != 1 or not (by_rows or _widens(convolution)):
        return None
    pixels = kernel.number("out_width") * (1 if by_rows else rows)
    floats = kernel.source == "float_convolution"
    mean = _mean_of_floats(pool, pixels) if floats else _mean(pool, kernel.variant, pixels)
    if mean is None:
        return None
    variant = f"{kernel.variant}_to_int16" if pool.kernels[0].source == "sum_of_codes" else kernel.variant
    parameters = _parameters("pooled_conv_2d", variant, {**kernel.parameters, "pixels": pixels, **mean})
    operand = replace(convolution.operands[0], window=AxisWindow() if by_rows else None, columns=None)
    whole = rows, 0, rows if by_rows else 1
    folded: CKernel = replace(
        pool.kernels[0], source="pooled_conv_2d", variant=variant, parameters=parameters, whole=whole
    )
    return replace(pool, operands=(operand,), kernels=(folded,), by_rows=by_rows)


def _parameters(source: str, variant: str, known: Mapping[str, int | float | ConstTable]) -> Parameters:
    """Those of what is known that a kernel takes."""
    return {name: known[name] for name in (*parameter_names(source, variant), *table_names(source, variant))}


def _is_block(kernel: CKernel, pixels: int) -> bool:
    """Whether a reduction makes one element of so many that follow each other, for each channel."""
    return (kernel.number("outer"), kernel.number("reduced")) == (1, pixels)


def _is_whole(pool: COperator, pixels: int) -> bool:
    """Whether a pool has a single window, which is all of its map."""
    kernel, window = pool.kernels[0], pool.operands[0].window
    rows = pool.operands[0].rows
    sizes = tuple(kernel.number(key) for key in ("kernel_height", "kernel_width", "pad_left", "out_width"))
    whole = pool.results[0].rows == 1 and window == AxisWindow(rows, kernel.number("stride_height"), 0)
    return whole and sizes == (rows, pixels // rows, 0, 1)


def _mean(pool: COperator, variant: str, pixels: int) -> Parameters | None:
    """How a pool computes the mean, or the sum, over so many pixels of codes; None where it computes something else."""
    kernel = pool.kernels[0]
    none: Parameters = {"pool_multiplier": 0, "pool_shift": 0, "pool_zero": 0, "pool_divisor": 1}
    if kernel.source == "sum_of_codes" and _is_block(kernel, pixels):
        return {**none, **_LIMITS["int16"]}
    if kernel.source == "mean" and kernel.variant == variant and _is_block(kernel, pixels):
        scale = {f"pool_{key}": kernel.number(key) for key in ("multiplier", "shift")}
        mean: Parameters = {**none, **scale, "pool_zero": kernel.number("out_zero"), **_LIMITS["int8"]}
        return mean if scale["pool_multiplier"] else None
    if kernel.source == "average_pool_2d" and kernel.variant == variant and _is_whole(pool, pixels):
        ends = {f"pool_{key}": kernel.number(key) for key in ("least", "most")}
        return {**none, "pool_divisor": pixels, **ends}
    return None


def _mean_of_floats(pool: COperator, pixels: int) -> Parameters | None:
    """The same of floats, which are added in the order in which the pool adds them."""
    kernel = pool.kernels[0]
    if kernel.source == "float_mean" and _is_block(kernel, pixels):
        together = _TOGETHER if kernel.variant == "float_parts" else pixels
        ends: Parameters = {"pool_least": -math.inf, "pool_most": math.inf}
        return {"together": together, "count": kernel.parameters["count"], **ends}
    means = kernel.source == "float_pool" and (kernel.number("takes"), kernel.number("whole")) in ((0, 0), (0, pixels))
    if not means or not _is_whole(pool, pixels):
        return None
    limits = {f"pool_{key}": kernel.parameters[key] for key in ("least", "most")}
    return {"together": pixels, "count": float(pixels), **limits}


def expanded_depthwise(graph: Graph, operators: Mapping[int, COperator]) -> dict[int, tuple[int, COperator]]:
    """By number the depthwise convolutions that can compute the convolution before them too, with its number.

    That one is of single pixels, and nobody else reads its result.
    """
    expanded = {}
    for index, operator in operators.items():
        if not _is_by_pixel(operator) or operator.results[0].tensor in graph.outputs:
            continue
        readers = graph.readers[operator.results[0].tensor]
        reader = operators.get(readers[0]) if len(readers) == 1 else None
        if reader and _reads_by_channel(reader) and reader.kernels[0].variant == operator.kernels[0].variant:
            expanded[readers[0]] = index, _expanded(operator, reader)
    return expanded


def _reads_by_channel(operator: COperator) -> bool:
    """Whether it is a depthwise convolution each of whose windows has a column of the map."""
    kernel = _folded_kernel(operator)
    if kernel is None or not _is_depthwise(kernel):
        return False
    weights, taps = kernel.parameters["weights"], kernel.number("kernel_height") * kernel.number("kernel_width")
    plain = isinstance(weights, ConstTable) and weights.numbers.size == taps * kernel.number("in_channels")
    plain = plain and kernel.number("dilation_height") == kernel.number("dilation_width") == 1
    last = (kernel.number("out_width") - 1) * kernel.number("stride_width") - kernel.number("pad_left")
    inside = last < kernel.number("in_width") and kernel.number("pad_left") < kernel.number("kernel_width")
    return plain and inside


def _expanded(convolution: COperator, depthwise: COperator) -> COperator:
    """Both convolutions as one operator; what it needs of working memory depends on its columns."""
    wide, kernel = convolution.kernels[0].parameters, depthwise.kernels[0]
    known = {**kernel.parameters, **{f"wide_{key}": value for key, value in wide.items()}}
    known |= {"in_channels": wide["in_channels"], "channels": wide["out_channels"], "zero": wide.get("out_zero", 0)}
    windows = depthwise.operands[0]
    operand = replace(convolution.operands[0], window=windows.window, columns=windows.columns)
    parameters = _parameters("expanded_depthwise", kernel.variant, known)
    folded: CKernel = replace(kernel, source="expanded_depthwise", parameters=parameters)
    return replace(depthwise, operands=(operand,), kernels=(folded,))

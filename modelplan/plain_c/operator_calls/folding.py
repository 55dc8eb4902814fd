"""Operators that others do by themselves: paddings, and convolutions whose whole result need not be there."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from modelplan.model import Graph
from modelplan.plain_c.kernel_records import AxisWindow, CKernel, COperator

_CONVOLUTIONS = {"conv_2d", "depthwise_conv_2d"}
_ONES = ("kernel_height", "kernel_width", "stride_height", "stride_width", "groups")
#: Variants of kernels on codes that can compute another convolution too.
_CODED = ("int8", "int8_even")
_LIMITS = {"pool_least": -128, "pool_most": 127}
_SCALES = ("weights", "bias", "multiplier", "shift")


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
    """The operators without convolutions of single pixels that widen a map of which only each channel's mean is read.

    The mean is computed channel by channel from the map before, so that the wider map is never there.
    """
    kept = dict(operators)
    for index, operator in operators.items():
        readers = graph.readers[operator.results[0].tensor] if _widens(operator) else ()
        pool = kept.get(readers[0]) if len(readers) == 1 and operator.results[0].tensor not in graph.outputs else None
        if pool and (pooled := _pooled(operator, pool)):
            kept[readers[0]] = pooled
            del kept[index]
    return kept


def _widens(operator: COperator) -> bool:
    """Whether it is a convolution of single pixels whose result is larger than its operand."""
    if not _is_by_pixel(operator):
        return False
    source, result = operator.operands[0], operator.results[0]
    return result.rows * result.row_bytes > source.rows * source.row_bytes


def _is_by_pixel(operator: COperator) -> bool:
    """Whether it is a convolution of single pixels."""
    if len(operator.kernels) != 1 or operator.kernels[0].source != "conv_2d" or not operator.by_rows:
        return False
    kernel = operator.kernels[0]
    return kernel.variant in _CODED and all(kernel.parameters[key] == 1 for key in _ONES)


def _pooled(convolution: COperator, pool: COperator) -> COperator | None:
    """The pool that computes a convolution too; None where it is not the mean of each channel."""
    kernel, rows = convolution.kernels[0], convolution.results[0].rows
    if kernel.variant != "int8":
        return None
    pixels = rows * kernel.number("out_width")
    mean = _mean(pool, pixels, rows)
    if mean is None:
        return None
    shared = ("weights", "bias", "multiplier", "shift", "in_channels", "out_channels", "out_zero", "least", "most")
    parameters = {**{key: kernel.parameters[key] for key in shared}, "pixels": pixels, **mean}
    operand = replace(convolution.operands[0], window=None)
    folded = replace(pool.kernels[0], source="pooled_conv_2d", parameters=parameters, whole=(rows, 0, 1))
    return replace(pool, operands=(operand,), kernels=(folded,), by_rows=False)


def _mean(pool: COperator, pixels: int, rows: int) -> dict[str, int] | None:
    """How a pool computes the mean over so many pixels of each channel; None where it computes something else."""
    kernel = pool.kernels[0] if len(pool.kernels) == 1 else None
    if kernel is None or kernel.variant != "int8" or kernel.repeats != 1:
        return None
    if kernel.source == "mean" and (kernel.number("outer"), kernel.number("reduced")) == (1, pixels):
        scale = {f"pool_{key}": kernel.number(key) for key in ("multiplier", "shift")}
        return {**scale, "pool_zero": kernel.number("out_zero"), **_LIMITS} if scale["pool_multiplier"] else None
    if kernel.source != "average_pool_2d":
        return None
    window = tuple(kernel.number(key) for key in ("kernel_height", "kernel_width", "pad_left", "out_width"))
    whole = pool.results[0].rows == 1 and pool.operands[0].window == AxisWindow(rows, kernel.number("stride_height"), 0)
    ends = {f"pool_{key}": kernel.number(key) for key in ("least", "most")}
    none = {"pool_multiplier": 0, "pool_shift": 0, "pool_zero": 0}
    return {**none, **ends} if whole and window == (rows, pixels // rows, 0, 1) else None


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
        if reader is None or not _reads_by_channel(reader) or operator.kernels[0].parameters["pad_left"] != 0:
            continue
        if reader.kernels[0].variant == operator.kernels[0].variant:
            expanded[readers[0]] = index, _expanded(operator, reader)
    return expanded


def _reads_by_channel(operator: COperator) -> bool:
    """Whether it is a depthwise convolution each of whose windows has a column of the map."""
    if len(operator.kernels) != 1 or operator.kernels[0].source != "depthwise_conv_2d" or not operator.by_rows:
        return False
    kernel = operator.kernels[0]
    plain = all(kernel.number(key) == 1 for key in ("depth_multiplier", "dilation_height", "dilation_width"))
    last = (kernel.number("out_width") - 1) * kernel.number("stride_width") - kernel.number("pad_left")
    inside = last < kernel.number("in_width") and kernel.number("pad_left") < kernel.number("kernel_width")
    return kernel.variant in _CODED and plain and inside


def _expanded(convolution: COperator, depthwise: COperator) -> COperator:
    """Both convolutions as one operator; what it needs of working memory depends on its columns."""
    wide, kernel = convolution.kernels[0].parameters, depthwise.kernels[0]
    parameters = {key: value for key, value in kernel.parameters.items() if not key.startswith(("d", "in_"))}
    parameters |= {f"wide_{key}": wide[key] for key in (*_SCALES, "least", "most")}
    parameters |= {"in_channels": wide["in_channels"], "channels": wide["out_channels"], "zero": wide["out_zero"]}
    parameters["in_width"] = kernel.parameters["in_width"]
    windows = depthwise.operands[0]
    operand = replace(convolution.operands[0], window=windows.window, columns=windows.columns)
    folded: CKernel = replace(kernel, source="expanded_depthwise", parameters=parameters)
    return replace(depthwise, operands=(operand,), kernels=(folded,))

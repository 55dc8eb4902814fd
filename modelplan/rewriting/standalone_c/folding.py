"""Paddings that convolutions do by themselves: what a PAD puts around a map is what a convolution takes it to be."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from modelplan.model import Graph
from modelplan.rewriting.standalone_c.kernel_records import CKernel, COperator, RowWindow

_CONVOLUTIONS = {"conv_2d", "depthwise_conv_2d"}


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
    kernel, padding = reader.kernels[0], pad.kernels[0].parameters
    numbers = {key: value for key, value in kernel.parameters.items() if isinstance(value, int)}
    above, window = pad.operands[0].window, reader.operands[0].window
    if kernel.source not in _CONVOLUTIONS or not (pad.by_rows and reader.by_rows) or above is None or window is None:
        return None
    if padding["front"] or padding["back"] or padding["value"] != numbers.get("in_zero"):
        return None
    left, width = padding["left"], padding["width"]
    if not isinstance(left, int) or not isinstance(width, int):
        return None
    parameters = {**kernel.parameters, "in_width": width, "pad_left": numbers["pad_left"] + left}
    rows = RowWindow(window.reach, window.stride, window.above + above.above)
    operand = replace(pad.operands[0], window=rows)
    folded: CKernel = replace(kernel, parameters=parameters)
    return replace(reader, operands=(operand,), kernels=(folded,))

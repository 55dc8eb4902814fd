"""Operators that call ESP-NN in place of a kernel of their own: its kernels in C, for any chip, without scratch.

They are called by their own names, so that a chip with vector instructions computes by them too: its kernels copy
filters into working memory at each call. They know no dilation and no windows that are cut into parts of rows.
Source: ESP-NN 1.2.3, src/*/*_opt.c and *_ansi.c.
"""

from collections.abc import Mapping
from dataclasses import replace
from functools import partial

from modelplan.plain_c.kernel_records import COperator, const_table
from modelplan.plain_c.libraries.library_calls import (
    CallWriter,
    LibraryCall,
    called_operators,
    elementwise_call,
    softmax_call,
    with_biases,
)
from modelplan.runtimes.tflm.file import FileModel

ESP_NN = "esp-nn"
ESP_HEADER = '#include "esp_nn_ansi_headers.h"'
#: What a source begins with that calls the library: it stops where the library rounds otherwise than TFLM.
ESP_INCLUDES = f"""#ifdef ESP_PLATFORM
#include "sdkconfig.h"
#endif
#if defined(SKIP_NUDGE) || defined(CONFIG_NN_SKIP_NUDGE)
#error "this network needs ESP-NN without CONFIG_NN_SKIP_NUDGE"
#endif
#include "esp_nn_defs.h"
{ESP_HEADER}"""
_MOST = (1 << 15) - 1


def _fits(call: LibraryCall) -> bool:
    """Whether the library's 16-bit numbers hold extents and windows, and no tap is left out."""
    names = set(call.kernel.parameters)
    sizes = names & {
        "in_width",
        "out_width",
        "in_channels",
        "out_channels",
        "channels",
        "kernel_height",
        "kernel_width",
    }
    rows = (*call.kernel.whole, *(o.rows for o in call.operator.operands), *(r.rows for r in call.operator.results))
    dilated = any(call.number(f"dilation_{axis}") != 1 for axis in ("height", "width") if f"dilation_{axis}" in names)
    return not dilated and max(*rows, *map(call.number, sizes)) <= _MOST


def _convolution(call: LibraryCall) -> COperator:
    if call.number("kernel_height") == call.number("kernel_width") == 1:
        return _pointwise(call)
    return replace(with_biases(call, "esp_convolve", "int8", (1, 2, 3)), by_columns=False)


def _pointwise(call: LibraryCall) -> COperator:
    """A convolution with windows of one pixel, whose kernel looks for no edge of the map."""
    (rows, above, computed), operand = call.kernel.whole, call.operator.operands[0]
    if operand.window:
        rows, above, computed = operand.rows, operand.window.before, call.operator.results[0].rows
    inside = (call.number("out_width") - 1) * call.number("stride_width") < call.number("in_width")
    inside = inside and (computed - 1) * call.number("stride_height") < rows
    if call.number("groups") != 1 or call.number("pad_left") or above or not inside:
        return _portable(call)
    return with_biases(call, "esp_pointwise", "int8", (1, 2, 3))


def _depthwise(call: LibraryCall) -> COperator:
    return replace(with_biases(call, "esp_depthwise", "int8", (0, 1, 2)), by_columns=False)


def _portable(call: LibraryCall) -> COperator:
    return replace(call.operator, in_order=False)


def _connected(call: LibraryCall) -> COperator:
    variant = "channels" if call.number("by_channel") else "tensor"
    return call.called("esp_connected", variant, shift=const_table("shift", "int32_t", call.table("shift").numbers))


def _pool(call: LibraryCall, variant: str) -> COperator:
    return replace(call.called("esp_pool", variant), by_columns=False)


def _elementwise(call: LibraryCall) -> COperator:
    """ADD and MUL; the library's sums scale by 1 at most."""
    names = {"a_shift", "b_shift", "out_shift"} & set(call.kernel.parameters)
    if any(call.number(name) > 0 for name in names):
        return call.operator
    return elementwise_call(call, "esp")


def _where_it_fits(write: CallWriter) -> CallWriter:
    return lambda call: write(call) if _fits(call) else _portable(call)


_CALLS: Mapping[str, CallWriter] = {
    "conv_2d": _where_it_fits(_convolution),
    "depthwise_conv_2d": _where_it_fits(_depthwise),
    "fully_connected": _where_it_fits(_connected),
    "average_pool_2d": _where_it_fits(partial(_pool, variant="average_ansi")),
    "max_pool_2d": _where_it_fits(partial(_pool, variant="max_ansi")),
    "add": _elementwise,
    "multiply": _elementwise,
    "softmax": partial(softmax_call, library="esp"),
}


def esp_operators(model: FileModel, operators: Mapping[int, COperator]) -> dict[int, COperator]:
    """The operators with calls of ESP-NN where it has a kernel, and portable kernels for the rest."""
    return called_operators(model, operators, _CALLS)

"""Operators that call CMSIS-NN in place of a kernel of their own, with the working memory that its kernels ask for.

What is written has to hold on every path of the library that is named: plain C, DSP or Helium. A convolution asks for
scratch as TFLM's does; where that is much, the portable kernel computes it unless memory is free while it runs. Where
windows have several rows it is composed of the library's products, as arm_convolve_s8 is, which knows no part of a row.
A depthwise convolution has a kernel without scratch, and a faster one for where memory is free. Source: CMSIS-NN of
June 2026.
"""

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial

from modelplan.plain_c.kernel_records import COperator, const_table
from modelplan.plain_c.libraries.library_calls import (
    CallWriter,
    LibraryCall,
    called_operators,
    elementwise_call,
    library_calls,
    softmax_call,
    with_biases,
)
from modelplan.runtimes.tflm.file import FileModel
from modelplan.runtimes.tflm.kernels.cmsis_nn import (
    DSP,
    MVE,
    C,
    CmsisWindow,
    Path,
    average_bytes,
    conv_bytes,
    fast_depthwise_bytes,
)

#: The paths of each library by its name.
CMSIS_PATHS: Mapping[str, tuple[Path, ...]] = {
    "cmsis-nn": (C, DSP, MVE), "cmsis-c": (C,), "cmsis-dsp": (DSP,), "cmsis-mve": (MVE,),
}  # fmt: skip
#: What is written into a source: the header, and a stop where the library is compiled for a path with other scratch.
CMSIS_HEADER = '#include "arm_nnfunctions.h"'
CMSIS_OTHER_PATH = {
    "cmsis-c": ("defined(ARM_MATH_DSP) || defined(ARM_MATH_MVEI)", "plain C, without DSP instructions"),
    "cmsis-dsp": ("defined(ARM_MATH_MVEI)", "DSP instructions, without Helium"),
    "cmsis-mve": ("!defined(ARM_MATH_MVEI)", "Helium"),
}
_SMALL = 3
#: The scratch of a convolution for which a plan may grow.
_MOST_SCRATCH = 2560


def _convolution(call: LibraryCall) -> COperator:
    """The library's kernel, or the portable one, as the library's could take its place."""
    usual = _library_convolution(call)
    if usual.scratch <= _MOST_SCRATCH:
        return usual
    return replace(call.operator, in_order=False, by_columns=False)


def _large_convolution(call: LibraryCall) -> COperator | None:
    """The library's kernel for a convolution that asks for much."""
    usual = _library_convolution(call)
    return usual if usual.scratch > _MOST_SCRATCH else None


def _library_convolution(call: LibraryCall) -> COperator:
    kernel = call.number("kernel_height"), call.number("kernel_width")
    rows, above, _ = call.kernel.whole
    if folded := call.operator.operands[0].window:
        above = folded.before
    window = CmsisWindow(
        (rows, call.number("in_width")), kernel, (above, call.number("pad_left")),
        (call.number("stride_height"), call.number("stride_width")),
        (call.number("dilation_height"), call.number("dilation_width")),
        call.number("in_channels"), call.number("in_channels") // call.number("groups"), call.number("out_width"),
    )  # fmt: skip
    sides = ((window.columns - 1) * window.stride[1] + window.taps[1] - window.size[1], 2 * window.padding[1])
    if window.pointwise and call.number("groups") == 1:
        return with_biases(call, "cmsis_pointwise", "int8", (1, 2, 3))
    if kernel[0] == 1 and MVE in call.paths and not 0 <= sides[0] - sides[1] <= 1:
        return call.operator  # as Helium's kernel for windows of one row knows only paddings that are alike
    one_row = replace(window, size=(1, window.size[1]))
    scratch = max(conv_bytes(w, path) for w in (window, one_row) for path in call.paths)
    if kernel[0] > 1 and call.number("groups") == 1:
        return with_biases(call, "cmsis_columns", "int8", (1, 2, 3), scratch)
    whole = with_biases(call, "cmsis_convolve", "int8", (1, 2, 3), scratch)
    return replace(whole, by_columns=False)  # the width that it is told is both the end of a row and its length


def _depthwise(call: LibraryCall) -> COperator:
    """The kernel without scratch."""
    last = (call.number("out_width") - 1) * call.number("stride_width") - call.number("pad_left")
    known = call.number("pad_left") <= 1 and last + _SMALL - 1 <= call.number("in_width")
    small = call.number("kernel_height") == call.number("kernel_width") == _SMALL
    variant = "3x3" if small and known and _one_each(call) else "any"
    return with_biases(call, "cmsis_depthwise", variant, (0, 1, 2))


def _one_each(call: LibraryCall) -> bool:
    """Whether each channel gives one of the result, of neighbouring pixels."""
    names = "depth_multiplier", "dilation_height", "dilation_width"
    return all(call.number(name) == 1 for name in names)


def _fast_depthwise(call: LibraryCall) -> COperator | None:
    """The faster kernel, where there is one."""
    vectors = [path for path in call.paths if path.dsp]
    if not vectors or not _one_each(call):
        return None
    taps, channels = call.number("kernel_height") * call.number("kernel_width"), call.number("in_channels")
    scratch = max(fast_depthwise_bytes(taps, channels, path) for path in vectors)
    usual = _depthwise(call)
    if usual.kernels[0].variant == "3x3" and call.paths != (MVE,):
        return None
    return replace(usual, kernels=(replace(usual.kernels[0], variant="opt"),), scratch=scratch)


def _connected(call: LibraryCall) -> COperator:
    source = "cmsis_connected_by_channel" if call.number("by_channel") else "cmsis_connected"
    return call.called(source, shift=const_table("shift", "int32_t", call.table("shift").numbers))


def _average(call: LibraryCall) -> COperator:
    scratch = max(average_bytes(call.number("channels"), path) for path in call.paths)
    return call.called("cmsis_pool", "average", scratch)


_CALLS: Mapping[str, CallWriter] = {
    "conv_2d": _convolution,
    "depthwise_conv_2d": _depthwise,
    "fully_connected": _connected,
    "average_pool_2d": _average,
    "max_pool_2d": partial(LibraryCall.called, source="cmsis_pool", variant="max"),
    "add": partial(elementwise_call, library="cmsis"),
    "multiply": partial(elementwise_call, library="cmsis"),
    "softmax": partial(softmax_call, library="cmsis"),
}


_FASTER: Mapping[str, Callable[[LibraryCall], COperator | None]] = {
    "conv_2d": _large_convolution,
    "depthwise_conv_2d": _fast_depthwise,
}


def cmsis_includes(kernels: str) -> str:
    """What the source of a network begins with that calls the library."""
    if kernels not in CMSIS_OTHER_PATH:
        return CMSIS_HEADER
    condition, path = CMSIS_OTHER_PATH[kernels]
    return f'{CMSIS_HEADER}\n#if {condition}\n#error "this network is planned for CMSIS-NN with {path}"\n#endif'


def cmsis_operators(model: FileModel, operators: Mapping[int, COperator], kernels: str) -> dict[int, COperator]:
    """The operators with calls of CMSIS-NN where it has a kernel, and portable kernels for the rest."""
    return called_operators(model, operators, _CALLS, CMSIS_PATHS[kernels])


def faster_operators(model: FileModel, operators: Mapping[int, COperator], kernels: str) -> dict[int, COperator]:
    """Of portable operators those for which the library has a faster kernel that asks for more scratch."""
    calls = library_calls(model, operators, _CALLS, CMSIS_PATHS[kernels])
    fast = {i: _FASTER[call.kernel.source](call) for i, call in calls.items() if call.kernel.source in _FASTER}
    return {i: operator for i, operator in fast.items() if operator is not None}

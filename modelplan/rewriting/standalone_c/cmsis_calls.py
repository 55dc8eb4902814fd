"""Operators that call CMSIS-NN in place of a kernel of their own, with the working memory that its kernels ask for.

What is written has to hold on every path of the library that is named: plain C, DSP or Helium. A convolution asks for
scratch as TFLM's does; where that is much, the portable kernel computes it unless memory is free while it runs. A
depthwise convolution has a kernel without scratch, and a faster one for where memory is free. Source: CMSIS-NN of June
2026.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

import numpy as np

from modelplan.rewriting.standalone_c.function_tables import softmax_scale
from modelplan.rewriting.standalone_c.kernel_records import CKernel, ConstTable, COperator, const_table
from modelplan.rewriting.standalone_c.kernel_sources import parameter_names
from modelplan.rewriting.standalone_c.reading import OperatorReader
from modelplan.rewriting.standalone_c.windowed import wrapped_bias
from modelplan.runtimes.tflm.file import FileModel
from modelplan.runtimes.tflm.kernels.cmsis_nn import DSP, MVE, MVE_BLOCK, C, CmsisWindow, Path, conv_bytes

#: The paths of each library by its name.
CMSIS_PATHS: Mapping[str, tuple[Path, ...]] = {
    "cmsis-nn": (C, DSP, MVE), "cmsis-c": (C,), "cmsis-dsp": (DSP,), "cmsis-mve": (MVE,),
}  # fmt: skip
#: What is written into a source: the header, and a stop where the library is compiled for a path with other scratch.
_HEADER = '#include "arm_nnfunctions.h"'
_OTHER_PATH = {
    "cmsis-c": ("defined(ARM_MATH_DSP) || defined(ARM_MATH_MVEI)", "plain C, without DSP instructions"),
    "cmsis-dsp": ("defined(ARM_MATH_MVEI)", "DSP instructions, without Helium"),
    "cmsis-mve": ("!defined(ARM_MATH_MVEI)", "Helium"),
}
_SMALL = 3
#: The scratch of a convolution for which a plan may grow.
_MOST_SCRATCH = 2560


@dataclass(frozen=True, slots=True)
class _Call:
    """A kernel in its place among the operators of a model, with its numbers and tables."""

    reader: OperatorReader
    operator: COperator
    paths: tuple[Path, ...]

    @property
    def kernel(self) -> CKernel:
        """The portable kernel."""
        return self.operator.kernels[0]

    def number(self, name: str) -> int:
        """A parameter that is a whole number."""
        value = self.kernel.parameters[name]
        if not isinstance(value, int):
            raise TypeError(f"{name} of {self.kernel.source} is no whole number")
        return value

    def table(self, name: str) -> ConstTable:
        """A parameter that is a table."""
        value = self.kernel.parameters[name]
        if not isinstance(value, ConstTable):
            raise TypeError(f"{name} of {self.kernel.source} is no table")
        return value

    def called(self, source: str, variant: str = "int8", scratch: int = 0, **changed: int | ConstTable) -> COperator:
        """The operator with another kernel, which takes the same parameters but for those that are `changed`."""
        names = parameter_names(source, variant)
        known = {**self.kernel.parameters, **changed}
        kernel = replace(self.kernel, source=source, variant=variant, parameters={name: known[name] for name in names})
        return replace(self.operator, kernels=(kernel,), in_order=False, scratch=scratch)


def _with_biases(call: _Call, source: str, variant: str, sums: tuple[int, ...], scratch: int = 0) -> COperator:
    """A convolution, whose kernel takes the operand's zero point off by itself; weights are summed over axes `sums`."""
    weights = call.table("weights").numbers.astype(np.int64).sum(sums)
    bias = wrapped_bias("bias", call.table("bias").numbers.astype(np.int64) + call.number("in_zero") * weights)
    shift = const_table("shift", "int32_t", call.table("shift").numbers)
    return call.called(source, variant, scratch, bias=bias, shift=shift)


def _convolution(call: _Call) -> COperator:
    """The library's kernel, or the portable one, as the library's could take its place."""
    usual = _library_convolution(call)
    if usual.scratch <= _MOST_SCRATCH:
        return usual
    return replace(call.operator, in_order=False, by_columns=False)


def _large_convolution(call: _Call) -> COperator | None:
    """The library's kernel for a convolution that asks for much."""
    usual = _library_convolution(call)
    return usual if usual.scratch > _MOST_SCRATCH else None


def _library_convolution(call: _Call) -> COperator:
    kernel = call.number("kernel_height"), call.number("kernel_width")
    rows, above, _ = call.kernel.whole
    if folded := call.operator.operands[0].window:
        above = folded.above
    window = CmsisWindow(
        (rows, call.number("in_width")), kernel, (above, call.number("pad_left")),
        (call.number("stride_height"), call.number("stride_width")),
        (call.number("dilation_height"), call.number("dilation_width")),
        call.number("in_channels"), call.number("in_channels") // call.number("groups"), call.number("out_width"),
    )  # fmt: skip
    sides = ((window.columns - 1) * window.stride[1] + window.taps[1] - window.size[1], 2 * window.padding[1])
    if window.pointwise and call.number("groups") == 1:
        return _with_biases(call, "cmsis_pointwise", "int8", (1, 2, 3))
    if kernel[0] == 1 and MVE in call.paths and not 0 <= sides[0] - sides[1] <= 1:
        return call.operator  # as Helium's kernel for windows of one row knows only paddings that are alike
    one_row = replace(window, size=(1, window.size[1]))
    scratch = max(conv_bytes(w, path) for w in (window, one_row) for path in call.paths)
    whole = _with_biases(call, "cmsis_convolve", "int8", (1, 2, 3), scratch)
    return replace(whole, by_columns=False)  # the width that it is told is both the end of a row and its length


def _depthwise(call: _Call) -> COperator:
    """The kernel without scratch."""
    last = (call.number("out_width") - 1) * call.number("stride_width") - call.number("pad_left")
    known = call.number("pad_left") <= 1 and last + _SMALL - 1 <= call.number("in_width")
    small = call.number("kernel_height") == call.number("kernel_width") == _SMALL
    variant = "3x3" if small and known and _one_each(call) else "any"
    return _with_biases(call, "cmsis_depthwise", variant, (0, 1, 2))


def _one_each(call: _Call) -> bool:
    """Whether each channel gives one of the result, of neighbouring pixels."""
    names = "depth_multiplier", "dilation_height", "dilation_width"
    return all(call.number(name) == 1 for name in names)


def _fast_depthwise(call: _Call) -> COperator | None:
    """The faster kernel, where there is one."""
    vectors = [path for path in call.paths if path.dsp]
    if not vectors or not _one_each(call):
        return None
    taps, channels = call.number("kernel_height") * call.number("kernel_width"), call.number("in_channels")
    scratch = max(4 * MVE_BLOCK * taps if path.mve else 2 * channels * taps for path in vectors)
    usual = _depthwise(call)
    if usual.kernels[0].variant == "3x3" and call.paths != (MVE,):
        return None
    return replace(usual, kernels=(replace(usual.kernels[0], variant="opt"),), scratch=scratch)


def _connected(call: _Call) -> COperator:
    source = "cmsis_connected_by_channel" if call.number("by_channel") else "cmsis_connected"
    return call.called(source, shift=const_table("shift", "int32_t", call.table("shift").numbers))


def _average(call: _Call) -> COperator:
    scratch = 4 * call.number("channels") if DSP in call.paths else 0
    return call.called("cmsis_pool", "average", scratch)


def _largest(call: _Call) -> COperator:
    return call.called("cmsis_pool", "max")


def _elementwise(call: _Call) -> COperator:
    """ADD and MUL of maps of the same shape."""
    width, channels = call.number("width"), call.number("channels")
    for name in "ab":
        steps = tuple(call.number(f"{name}_{axis}") for axis in ("row", "column", "channel"))
        extents = (call.kernel.whole[0], width, channels)
        wanted = (width * channels, channels, 1)
        if any(step != right for step, right, n in zip(steps, wanted, extents, strict=True) if n > 1):
            return call.operator
    if call.kernel.source == "add" and call.number("b_sign") != 1:
        return call.operator
    return replace(call.called(f"cmsis_{call.kernel.source}", elements=width * channels), in_order=True)


def _softmax(call: _Call) -> COperator:
    multiplier, shift, radius = softmax_scale(call.reader)
    return call.called("cmsis_softmax", multiplier=multiplier, shift=shift, least=-radius)


_CALLS: Mapping[str, Callable[[_Call], COperator]] = {
    "conv_2d": _convolution,
    "depthwise_conv_2d": _depthwise,
    "fully_connected": _connected,
    "average_pool_2d": _average,
    "max_pool_2d": _largest,
    "add": _elementwise,
    "multiply": _elementwise,
    "softmax": _softmax,
}


_FASTER: Mapping[str, Callable[[_Call], COperator | None]] = {
    "conv_2d": _large_convolution,
    "depthwise_conv_2d": _fast_depthwise,
}


def cmsis_includes(kernels: str) -> str:
    """What the source of a network begins with that calls the library."""
    if kernels not in _OTHER_PATH:
        return _HEADER
    condition, path = _OTHER_PATH[kernels]
    return f'{_HEADER}\n#if {condition}\n#error "this network is planned for CMSIS-NN with {path}"\n#endif'


def _calls(model: FileModel, operators: Mapping[int, COperator], kernels: str) -> dict[int, _Call]:
    """The operators for which the library has a kernel."""
    paths, found = CMSIS_PATHS[kernels], dict[int, _Call]()
    for index, operator in operators.items():
        kernel = operator.kernels[0] if len(operator.kernels) == 1 else None
        if kernel and kernel.variant == "int8" and kernel.source in _CALLS:
            found[index] = _Call(OperatorReader(model, index), operator, paths)
    return found


def cmsis_operators(model: FileModel, operators: Mapping[int, COperator], kernels: str) -> dict[int, COperator]:
    """The operators with calls of CMSIS-NN where it has a kernel, and portable kernels for the rest.

    Of several rows in a call only those of element-wise operators are taken to be computed in order.
    """
    calls = _calls(model, operators, kernels)
    return {
        i: _CALLS[calls[i].kernel.source](calls[i]) if i in calls else replace(o, in_order=bool(o.in_place))
        for i, o in operators.items()
    }


def faster_operators(model: FileModel, operators: Mapping[int, COperator], kernels: str) -> dict[int, COperator]:
    """Of portable operators those for which the library has a faster kernel that asks for more scratch."""
    calls = _calls(model, operators, kernels)
    fast = {i: _FASTER[call.kernel.source](call) for i, call in calls.items() if call.kernel.source in _FASTER}
    return {i: operator for i, operator in fast.items() if operator is not None}


def stated_kernels(source: str) -> str:
    """The library that a source of a network calls, or "portable"."""
    if _HEADER not in source:
        return "portable"
    return next((name for name, (_, path) in _OTHER_PATH.items() if f"CMSIS-NN with {path}" in source), "cmsis-nn")

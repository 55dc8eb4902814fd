"""Calls of a library in place of kernels of the file: what the libraries have in common."""

from collections.abc import Callable, Collection, Mapping
from dataclasses import replace
from typing import TypeAlias

import numpy as np

from modelplan.plain_c.kernel_records import CKernel, ConstTable, COperator, const_table
from modelplan.plain_c.kernel_sources import parameter_names, table_names
from modelplan.plain_c.operator_calls.function_tables import softmax_scale
from modelplan.plain_c.operator_calls.reading import OperatorReader, reader_of
from modelplan.plain_c.operator_calls.windowed import wrapped_bias
from modelplan.primitives.lazy_records import dataclass
from modelplan.runtimes.tflm.file import FileModel
from modelplan.runtimes.tflm.kernels.cmsis_nn import Path


@dataclass(frozen=True, slots=True)
class LibraryCall:
    """A kernel in its place among the operators of a model, with its numbers and tables; `paths` are CMSIS-NN's."""

    reader: OperatorReader
    operator: COperator
    paths: tuple[Path, ...] = ()

    @property
    def kernel(self) -> CKernel:
        """The portable kernel."""
        return self.operator.kernels[0]

    def number(self, name: str) -> int:
        """A parameter of it that is a whole number."""
        return self.kernel.number(name)

    def table(self, name: str) -> ConstTable:
        """A parameter that is a table."""
        value = self.kernel.parameters[name]
        if not isinstance(value, ConstTable):
            raise TypeError(f"{name} of {self.kernel.source} is no table")
        return value

    def called(self, source: str, variant: str = "int8", scratch: int = 0, **changed: int | ConstTable) -> COperator:
        """The operator with another kernel, which takes the same parameters but for those that are `changed`."""
        names = (*parameter_names(source, variant), *table_names(source, variant))
        known = {**self.kernel.parameters, **changed}
        kernel = replace(self.kernel, source=source, variant=variant, parameters={name: known[name] for name in names})
        return replace(self.operator, kernels=(kernel,), in_order=False, scratch=scratch)


def with_biases(call: LibraryCall, source: str, variant: str, sums: tuple[int, ...], scratch: int = 0) -> COperator:
    """A convolution, whose kernel takes the operand's zero point off by itself; weights are summed over axes `sums`."""
    weights = const_table("weights", "int8_t", call.reader.constant(1))
    added = call.number("in_zero") * weights.numbers.astype(np.int64).sum(sums)
    bias = wrapped_bias("bias", call.table("bias").numbers.astype(np.int64) + added)
    shift = const_table("shift", "int32_t", call.table("shift").numbers)
    return call.called(source, variant, scratch, weights=weights, bias=bias, shift=shift)


def elementwise_call(call: LibraryCall, library: str) -> COperator:
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
    return replace(call.called(f"{library}_{call.kernel.source}", elements=width * channels), in_order=True)


def softmax_call(call: LibraryCall, library: str) -> COperator:
    """SOFTMAX, which the libraries compute from the scale of differences and not from a table."""
    multiplier, shift, radius = softmax_scale(call.reader)
    return call.called(f"{library}_softmax", multiplier=multiplier, shift=shift, least=-radius)


#: Writes an operator with a kernel of a library, or as it is.
CallWriter: TypeAlias = Callable[[LibraryCall], COperator]


def library_calls(
    model: FileModel, operators: Mapping[int, COperator], kinds: Collection[str], paths: tuple[Path, ...] = ()
) -> dict[int, LibraryCall]:
    """The operators of 8 bits whose portable kernel is one of these."""
    calls = dict[int, LibraryCall]()
    for index, operator in operators.items():
        kernel = operator.kernels[0] if len(operator.kernels) == 1 else None
        if kernel and kernel.variant == "int8" and kernel.source in kinds:
            calls[index] = LibraryCall(reader_of(model, index), operator, paths)
    return calls


def called_operators(
    model: FileModel,
    operators: Mapping[int, COperator],
    writers: Mapping[str, CallWriter],
    paths: tuple[Path, ...] = (),
) -> dict[int, COperator]:
    """The operators with calls of a library where there are any, and portable kernels for the rest.

    Of several rows in a call only those of element-wise operators are taken to be computed in order.
    """
    calls = library_calls(model, operators, writers, paths)
    return {
        i: writers[calls[i].kernel.source](calls[i]) if i in calls else replace(o, in_order=bool(o.in_place))
        for i, o in operators.items()
    }

"""The scratch requests of a whole .tflite file, in the order in which TFLM prepares its operators."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from modelplan.errors import ModelError
from modelplan.runtimes.tflm.file import FileModel, FileOp, FileSubgraph, FileTensor
from modelplan.runtimes.tflm.kernels import Call, Operand, scratch_sizes

_DTYPES = {
    0: "float32", 1: "float16", 2: "int32", 3: "uint8", 4: "int64", 6: "bool", 7: "int16", 8: "complex64",
    9: "int8", 10: "float64", 11: "complex128", 12: "uint64", 13: "resource", 15: "uint32", 16: "uint16", 17: "int4",
}  # fmt: skip

#: The fields of builtin options that the formulas read: name here, accessor of the schema's table.
_FIELDS = {
    "stride_w": "StrideW",
    "stride_h": "StrideH",
    "dilation_w_factor": "DilationWFactor",
    "dilation_h_factor": "DilationHFactor",
    "rank": "Rank",
    "time_major": "TimeMajor",
}


def scratch_requests(model: FileModel, kernels: str = "reference", pointer: int = 8) -> Iterator[tuple[int, int, int]]:
    """(subgraph, operator, bytes) of every request of every kernel, in TFLM's order.

    Raises:
        ModelError: an operator lacks an operand that its kernel needs.
    """
    for number, subgraph in enumerate(model.subgraphs):
        for index, op in enumerate(subgraph.ops):
            for size in _sizes(model, subgraph, op, f"op {index} {op.kind}", kernels, pointer):
                yield number, index, size


def _sizes(
    model: FileModel, subgraph: FileSubgraph, op: FileOp, label: str, kernels: str, pointer: int
) -> tuple[int, ...]:
    call = Call(op.kind, _operands(subgraph, op.inputs), _operands(subgraph, op.outputs), _options(op), pointer)
    try:
        return scratch_sizes(call, kernels)
    except (ValueError, TypeError, LookupError) as error:
        raise ModelError(f"{model.name}: {label}: {error}") from None


def _operands(subgraph: FileSubgraph, indices: tuple[int, ...]) -> tuple[Operand | None, ...]:
    return tuple(_operand(subgraph.tensors[i]) if i >= 0 else None for i in indices)


def _operand(tensor: FileTensor) -> Operand:
    return Operand(_DTYPES[tensor.type], tensor.shape, tensor.constant)


def _options(op: FileOp) -> Mapping[str, int | str | bool]:
    if op.options is None:
        return {}
    if isinstance(op.options, dict):
        return op.options
    found = {
        name: getattr(op.options, accessor)() for name, accessor in _FIELDS.items() if hasattr(op.options, accessor)
    }
    if hasattr(op.options, "Padding"):
        found["padding"] = "SAME" if op.options.Padding() == 0 else "VALID"
    return found

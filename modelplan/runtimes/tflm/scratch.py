"""The operators of a whole .tflite file as TFLM's kernels see them, and the scratch that they request."""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping
from functools import cache, lru_cache
from typing import Any

from modelplan.errors import ModelError
from modelplan.loaders.tflite_schema import DTYPES
from modelplan.runtimes.tflm.file import FileModel, FileOp, FileTensor, SameBytes, SameFile
from modelplan.runtimes.tflm.kernels import Call, Operand, Quantization, Subgraph, scratch_sizes

#: The fields of builtin options that kernels read: name here, accessor of the schema's table.
_FIELDS = {
    "stride_w": "StrideW",
    "stride_h": "StrideH",
    "dilation_w_factor": "DilationWFactor",
    "dilation_h_factor": "DilationHFactor",
    "filter_height": "FilterHeight",
    "filter_width": "FilterWidth",
    "depth_multiplier": "DepthMultiplier",
    "rank": "Rank",
    "time_major": "TimeMajor",
    "axis": "Axis",
    "batch_dims": "BatchDims",
    "block_size": "BlockSize",
    "adj_x": "AdjX",
    "adj_y": "AdjY",
    "align_corners": "AlignCorners",
    "half_pixel_centers": "HalfPixelCenters",
    "begin_mask": "BeginMask",
    "end_mask": "EndMask",
    "shrink_axis_mask": "ShrinkAxisMask",
    "fused_activation_function": "FusedActivationFunction",
}
_TEXTS = {"container": "Container", "shared_name": "SharedName"}

#: Constants up to so many bytes are given to kernels with their values: shapes, axes, paddings.
_SHORT = 256

#: How many models are remembered as kernels see them: a command asks several questions about one.
_REMEMBERED = 4


def scratch_requests(model: FileModel, kernels: str = "reference", pointer: int = 8) -> Iterator[tuple[int, int, int]]:
    """(subgraph, operator, bytes) of every request of every kernel, in TFLM's order.

    Raises:
        ModelError: the options of an operator cannot be read.
    """
    for number, calls in enumerate(calls_of(model, pointer)):
        for index, call in enumerate(calls):
            for size in scratch_sizes(call, kernels):
                yield number, index, size


def calls_of(model: FileModel, pointer: int) -> tuple[tuple[Call, ...], ...]:
    """The operators of each subgraph as their kernels see them, with the shapes of the file.

    Raises:
        ModelError: the options of an operator cannot be read.
    """
    return _calls_of(SameFile(model), pointer)


@lru_cache(maxsize=_REMEMBERED)
def _calls_of(file: SameFile, pointer: int) -> tuple[tuple[Call, ...], ...]:
    model = file.model
    return tuple(
        tuple(call_of(model, number, op, pointer) for op in subgraph.ops)
        for number, subgraph in enumerate(model.subgraphs)
    )


def call_of(
    model: FileModel, number: int, op: FileOp, pointer: int, shapes: Mapping[int, tuple[int, ...]] | None = None
) -> Call:
    """The operator `op` of subgraph `number` as its kernel sees it.

    `shapes` holds shapes that kernels have given to tensors, numbered over all subgraphs.

    Raises:
        ModelError: its options cannot be read.
    """
    tensors, base = model.subgraphs[number].tensors, model.firsts[number]

    def operand(index: int) -> Operand | None:
        if index < 0:
            return None
        tensor = tensors[index]
        return _operand(model, tensor, (shapes or {}).get(base + index, tensor.shape))

    return Call(
        op.kind,
        tuple(map(operand, op.inputs)),
        tuple(map(operand, op.outputs)),
        _options(model, op),
        pointer,
        tuple(_called(model, called) for called in op.calls),
    )


def _operand(model: FileModel, tensor: FileTensor, shape: tuple[int, ...]) -> Operand:
    start, length = tensor.content
    return Operand(
        DTYPES[tensor.type],
        shape,
        tensor.constant,
        None
        if tensor.assumed
        else Quantization(tensor.scales, tensor.scale, tensor.zero_point, tensor.axis, tensor.zero_points),
        tensor.variable,
        model.data[start : start + min(length, _SHORT)] if length else None,
    )


def _called(model: FileModel, number: int) -> Subgraph:
    if not 0 <= number < len(model.subgraphs):
        return Subgraph(None, None)
    return Subgraph(len(model.subgraphs[number].inputs), len(model.subgraphs[number].outputs))


def _options(model: FileModel, op: FileOp) -> Mapping[str, int | float | str | bool]:
    if op.options is None:
        return {}
    if isinstance(op.options, dict):
        return op.options
    known = _known_options(SameBytes(model.data))
    if op.options in known:
        return known[op.options]
    try:
        return known.setdefault(op.options, _fields(op.options))
    except (struct.error, IndexError, TypeError, ValueError) as error:
        raise ModelError(f"{model.name}: the options of a {op.kind} cannot be read: {error}") from None


@lru_cache(maxsize=_REMEMBERED)
def _known_options(file: SameBytes) -> dict[Any, Mapping[str, int | float | str | bool]]:  # noqa: ARG001 - the key
    """What has been read of a file's tables of options, which edits of its graph keep."""
    return {}


def _fields(options: Any) -> Mapping[str, int | float | str | bool]:
    """The fields of a table of options under our names."""
    table: type = type(options)
    found: dict[str, int | float | str | bool] = {name: int(read(options)) for name, read in _accessors(table)}
    for name, accessor in _TEXTS.items():
        if hasattr(options, accessor):
            found[name] = (getattr(options, accessor)() or b"").decode("utf-8", "replace")
    if hasattr(options, "Padding"):
        found["padding"] = "SAME" if options.Padding() == 0 else "VALID"
    return found


@cache
def _accessors(table: type) -> tuple[tuple[str, Any], ...]:
    """The accessors that a table of options has, with our names."""
    return tuple((name, getattr(table, accessor)) for name, accessor in _FIELDS.items() if hasattr(table, accessor))

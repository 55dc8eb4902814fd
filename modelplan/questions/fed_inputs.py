"""Inputs that a file gives: checked against what the model declares, whose open extents they complete."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from numpy.typing import NDArray

from modelplan.formats.dims import parsed
from modelplan.formats.unpacking import inner_suffix
from modelplan.primitives.errors import ModelError, RequestError
from modelplan.questions.model_request import Asked
from modelplan.runtimes.ort.feeding import arrays_in

if TYPE_CHECKING:
    from onnx import ValueInfoProto


def with_fed_shapes(request: Asked) -> Asked:
    """The request with the shapes of the arrays in its file of inputs, if it names one.

    Raises:
        RequestError: the file cannot be read, or an array is none of the model's inputs, or has another type or shape.
        ModelError: the model cannot be read.
    """
    if not request.feeds:
        return request
    return replace(request, shapes=fed_shapes(request.path, request.feeds, request.shapes))


def fed_shapes(path: str, feeds: str, shapes: Sequence[str]) -> tuple[str, ...]:
    """The options `--shape` with those of the arrays in `feeds`, which fit the inputs of the model `path`.

    Raises:
        RequestError, ModelError: as `with_fed_shapes`.
    """
    if inner_suffix(path) != ".onnx":
        raise RequestError(f"--feeds is for sessions of ONNX Runtime, and {path} is no .onnx file")
    arrays, inputs = arrays_in(feeds), _declared(path)
    given = parsed((), shapes).shapes
    for name, array in arrays.items():
        if name not in inputs:
            there = ", ".join(map(repr, inputs)) or "none"
            raise RequestError(f"--feeds {feeds}: {name!r} is no input of {path}; there are: {there}")
        _check(f"--feeds {feeds}: {name!r}", inputs[name], array)
        if given.get(name, array.shape) != array.shape:
            raise RequestError(
                f"--feeds {feeds}: {name!r} is {list(array.shape)}, but --shape says {list(given[name])}"
            )
    more = (f"{name}={','.join(map(str, array.shape))}" for name, array in arrays.items() if name not in given)
    return (*shapes, *more)


def _declared(path: str) -> Mapping[str, ValueInfoProto]:
    """The inputs of the model by their names, without initialisers that may be overridden."""
    import onnx
    from google.protobuf.message import DecodeError

    from modelplan.formats.files import read_model

    try:
        graph = onnx.load_model_from_string(read_model(path)).graph
    except (DecodeError, OSError) as problem:
        raise ModelError(f"{path}: {problem}") from None
    stored = {tensor.name for tensor in graph.initializer}
    return {value.name: value for value in graph.input if value.name not in stored}


def _check(place: str, value: ValueInfoProto, array: NDArray[Any]) -> None:
    """Refuses an array of another type or shape than an input has."""
    import onnx

    declared = value.type.tensor_type
    wanted = onnx.helper.tensor_dtype_to_np_dtype(declared.elem_type) if declared.elem_type else array.dtype
    if array.dtype != wanted:
        raise RequestError(f"{place} is {array.dtype}, expected {wanted}")
    if not declared.HasField("shape"):
        return
    extents = [d.dim_value if d.HasField("dim_value") and d.dim_value >= 0 else None for d in declared.shape.dim]
    names = [str(d.dim_value) if d.HasField("dim_value") else d.dim_param or "?" for d in declared.shape.dim]
    if len(extents) != array.ndim or any(n not in (None, m) for n, m in zip(extents, array.shape, strict=True)):
        raise RequestError(f"{place} is {list(array.shape)}, expected [{', '.join(names)}]")

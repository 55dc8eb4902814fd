"""Inputs that a file gives: checked against what the model declares, whose open extents they complete."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from numpy.typing import NDArray

from modelplan.formats import load_model
from modelplan.formats.dims import parsed, shape_text
from modelplan.formats.onnx.onnx_open import OpenModelError
from modelplan.formats.onnx.onnx_types import UntypedModelError
from modelplan.formats.unpacking import inner_suffix
from modelplan.primitives.errors import ModelError, RequestError
from modelplan.runtimes.ort.feeding import arrays_in

if TYPE_CHECKING:
    from onnx import ValueInfoProto

    from modelplan.questions.proposing import Given


def fed_shapes(path: str, feeds: str, given: Given) -> tuple[str, ...]:
    """The options `--shape` with those of the arrays in `feeds`, which fit the inputs of the model `path`.

    Where the file has every input, what is open inside gets the extents of a session's run with them.

    Args:
        path: the model.
        feeds: a .npz file.
        given: the options `--dim`, `--shape` and `--value`.

    Raises:
        RequestError: the file cannot be read, or an array is none of the model's inputs, or has another type or shape.
        ModelError: the model cannot be read, or a session does not run with these inputs.
    """
    if inner_suffix(path) != ".onnx":
        raise RequestError(f"--feeds is for sessions of ONNX Runtime, and {path} is no .onnx file")
    dims, shapes, values = given
    outer = (*shapes, *_input_shapes(path, feeds, shapes))
    if _declared(path).keys() - arrays_in(feeds).keys():
        return outer
    try:
        load_model(path, dims, outer, values)
    except OpenModelError as problem:
        from modelplan.questions.proposing import fed_extents  # here, since it starts processes

        inner = fed_extents(problem, path, (dims, outer, values), feeds)
        return (*outer, *(shape_text(name, shape) for name, shape in inner.items()))
    except UntypedModelError:
        return outer  # who loads the file asks a session for its types
    return outer


def _input_shapes(path: str, feeds: str, shapes: Sequence[str]) -> tuple[str, ...]:
    """The options `--shape` of the arrays in `feeds` that are not given."""
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
    return tuple(shape_text(name, array.shape) for name, array in arrays.items() if name not in given)


def _declared(path: str) -> Mapping[str, ValueInfoProto]:
    """The inputs of the model by their names, without initialisers that may be overridden."""
    import onnx
    from google.protobuf.message import DecodeError

    from modelplan.formats.whole_files import read_model

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

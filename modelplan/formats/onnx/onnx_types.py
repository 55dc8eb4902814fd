"""ONNX types with the project's names, and shapes merged from several sources."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import field
from functools import lru_cache
from typing import TYPE_CHECKING

from modelplan.primitives.errors import ModelError
from modelplan.primitives.lazy_records import dataclass
from modelplan.primitives.number_types import BITS, UNPLANNED

if TYPE_CHECKING:
    from onnx import NodeProto, TypeProto

#: An extent is a number, a symbol of the file, or None.
Extent = int | str | None


class ImpossibleError(ValueError):
    """An operator that no run can pass with the extents at hand."""


class UntypedError(ValueError):
    """A value whose type neither the file nor the operators tell."""


class UntypedModelError(ModelError):
    """A model file with such a value."""


@dataclass(frozen=True, slots=True)
class Type:
    """The type of a value: `shape` is None where even the rank is open. `proto` is onnx's own form of it.

    `extents` is the shape where all of it is known, else None; `is_open`: whether the number of bytes is unknown.
    """

    dtype: str
    shape: tuple[Extent, ...] | None
    proto: TypeProto
    extents: tuple[int, ...] | None = field(init=False)
    is_open: bool = field(init=False)

    def __post_init__(self) -> None:
        closed = self.shape is not None and all(isinstance(extent, int) for extent in self.shape)
        object.__setattr__(self, "extents", self.shape if closed else None)
        object.__setattr__(self, "is_open", not closed and self.dtype not in UNPLANNED)


def refusals() -> tuple[type[Exception], ...]:
    """The exceptions with which onnx refuses a model or a node."""
    import onnx

    return onnx.shape_inference.InferenceError, onnx.checker.ValidationError, RuntimeError, ValueError


def plain(problem: Exception) -> str:
    """The reason in onnx's exception on one line, without its own exception and source names."""
    text = re.sub(r"\[\w*Error\]|Inference error\(s\):|\S+\.(?:cc|h|cpp):\d+:?\s*\S*:", " ", str(problem))
    text = re.sub(r"\(op_type: ?(\w+)(?:, node name: ?([^)]*))?\):", r"node \1 \2:", text)
    return " ".join(text.split())[:300] or type(problem).__name__


@lru_cache(maxsize=4096)
def _has_schema(kind: str, domain: str, version: int) -> bool:
    import onnx

    return bool(onnx.defs.has(kind, max_inclusive_version=version, domain=domain))


def is_known(node: NodeProto, opsets: dict[str, int]) -> bool:
    """Whether onnx knows the operator, and so infers the types of what it gives."""
    return node.domain in opsets and _has_schema(node.op_type, node.domain, opsets[node.domain])


@lru_cache(maxsize=1)
def _names() -> dict[int, str]:
    import onnx

    names = {number: name.lower() for name, number in onnx.TensorProto.DataType.items()}
    return names | {1: "float32", 11: "float64"}


def dtype_name(number: int) -> str:
    """Our name of an ONNX data type.

    Raises:
        ValueError: there is none; the message has the number.
    """
    name = _names().get(number, "undefined")
    if name not in BITS and name not in UNPLANNED:
        raise ValueError(f"found data type {number} ({name}), expected one with a known width")
    return name


def read_type(proto: TypeProto) -> Type:
    """The type behind a TypeProto; an optional tensor is as large as the tensor.

    Raises:
        ValueError: unknown element type, or an extent below zero.
    """
    kind = proto.WhichOneof("value")
    if kind == "tensor_type":
        tensor = proto.tensor_type
        return Type(dtype_name(tensor.elem_type), _shape(tensor) if tensor.HasField("shape") else None, proto)
    if kind == "optional_type" and proto.optional_type.elem_type.WhichOneof("value") == "tensor_type":
        inner = read_type(proto.optional_type.elem_type)
        return Type(inner.dtype, inner.shape, proto)
    names = {
        "sequence_type": "sequence",
        "optional_type": "optional",
        "map_type": "map",
        "sparse_tensor_type": "sparse",
    }
    if kind not in names:
        raise ValueError(f"found {kind or 'no type'}, expected a tensor, sequence, optional or map")
    return Type(names[kind], (), proto)


def _shape(tensor_type: TypeProto.Tensor) -> tuple[Extent, ...]:
    shape: list[Extent] = []
    for dim in tensor_type.shape.dim:
        if not dim.HasField("dim_value"):
            shape.append(dim.dim_param or None)
        elif dim.dim_value < 0:  # of the file's own values there is none left; onnx infers none
            raise ValueError(f"found an extent of {dim.dim_value}, expected at least 0")
        else:
            shape.append(dim.dim_value)
    return tuple(shape)


def tensor_type(number: int, shape: tuple[Extent, ...] | None) -> Type:
    """A tensor type by onnx's number of the element type."""
    import onnx

    return Type(dtype_name(number), shape, onnx.helper.make_tensor_type_proto(number, shape))


def with_shape(known: Type, shape: tuple[Extent, ...] | None) -> Type:
    """The same type with another shape."""
    import onnx

    proto = onnx.TypeProto()
    proto.CopyFrom(known.proto)
    inner = proto.optional_type.elem_type if proto.HasField("optional_type") else proto
    inner.tensor_type.CopyFrom(onnx.helper.make_tensor_type_proto(inner.tensor_type.elem_type, shape).tensor_type)
    return Type(known.dtype, shape, proto)


def merged(a: Type | None, b: Type | None) -> Type | None:
    """The type of one value from what two sources say.

    Raises:
        ValueError: they contradict each other.
    """
    if a is None or b is None:
        return a or b
    if a.dtype != b.dtype:
        raise ValueError(f"found {a.dtype} and {b.dtype} for one value")
    if a.dtype in UNPLANNED or a.shape is None or b.shape is None:
        return a if b.shape is None else b
    if len(a.shape) != len(b.shape):
        raise ValueError(f"found shapes {written(a)} and {written(b)} for one value")
    shape = tuple(_merged_extent(x, y, a, b) for x, y in zip(a.shape, b.shape, strict=True))
    return a if shape == a.shape else with_shape(a, shape)


def _merged_extent(x: Extent, y: Extent, a: Type, b: Type) -> Extent:
    if isinstance(x, int) and isinstance(y, int) and x != y:
        raise ValueError(f"found shapes {written(a)} and {written(b)} for one value")
    return x if isinstance(x, int) or y is None else y


def replaced(known: Type, extent_of: Callable[[int, Extent], int | None]) -> Type:
    """The type with each open extent replaced where `extent_of(axis, symbol)` knows one."""
    if known.shape is None:
        return known
    shape = tuple(
        extent if isinstance(extent, int) or (replacement := extent_of(axis, extent)) is None else replacement
        for axis, extent in enumerate(known.shape)
    )
    return known if shape == known.shape else with_shape(known, shape)


def written(known: Type) -> str:
    """The shape as text for messages."""
    if known.shape is None:
        return "of unknown rank"
    return f"[{', '.join('?' if extent is None else str(extent) for extent in known.shape)}]"

"""A node as rules for its output types see it, and the kinds of rules that many operators share."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from math import prod
from typing import TYPE_CHECKING

from modelplan.formats.onnx.onnx_corrections import POOLS, attributes_of, pooled_shape
from modelplan.formats.onnx.onnx_fold import Array
from modelplan.formats.onnx.onnx_types import Extent, Type, read_type, tensor_type, with_shape
from modelplan.primitives.lazy_records import dataclass

if TYPE_CHECKING:
    from onnx import AttributeProto, NodeProto

Shape = tuple[Extent, ...]

#: Numbers that onnx has for element types.
FLOAT, UINT8, INT8, INT32, INT64, UINT32, BFLOAT16 = 1, 2, 3, 6, 7, 12, 16
#: The opset whose operators tell the shapes of ONNX Runtime's own that compute alike: from it on, pooling with
#: `ceil_mode` leaves out windows that begin in the padding, as kernels do.
_OPSET = 22


@dataclass(frozen=True, slots=True)
class TypedNode:
    """A node with the types of its operands, None where one is absent or not known.

    `value` gives the value of a small operand that is constant, else None; `blocked` is how many channels the weights
    of a convolution in blocks have which reads output 0, None where none does.
    """

    node: NodeProto
    types: tuple[Type | None, ...]
    value: Callable[[int], Array | None]
    blocked: int | None

    def has(self, operand: int) -> bool:
        """Whether the operand is there."""
        return operand < len(self.node.input) and bool(self.node.input[operand])

    def shape(self, operand: int) -> Shape | None:
        """The shape of an operand, None where it is absent or its rank is open."""
        known = self.types[operand] if operand < len(self.types) else None
        return None if known is None else known.shape

    def of_rank(self, operand: int, rank: int) -> Shape:
        """The shape of an operand; `rank` open extents where it is not known, or of another rank."""
        shape = self.shape(operand)
        return shape if shape is not None and len(shape) == rank else (None,) * rank

    def element(self, operand: int) -> int | None:
        """The number of the element type of an operand, None where that is not known."""
        known = self.types[operand] if operand < len(self.types) else None
        kind = known.proto.WhichOneof("value") if known is not None else ""
        return known.proto.tensor_type.elem_type or None if known is not None and kind == "tensor_type" else None

    def attribute(self, name: str) -> AttributeProto | None:
        """The attribute of that name, None where the node has none."""
        return next((attribute for attribute in self.node.attribute if attribute.name == name), None)

    def number(self, name: str, usual: int = 0) -> int:
        """The whole number of an attribute."""
        attribute = self.attribute(name)
        return attribute.i if attribute is not None and attribute.HasField("i") else usual

    def numbers(self, name: str) -> tuple[int, ...]:
        """The whole numbers of an attribute, none where it is absent."""
        attribute = self.attribute(name)
        return tuple(attribute.ints) if attribute is not None else ()

    def wholes(self, operand: int) -> tuple[int, ...] | None:
        """The whole numbers of a constant operand, None where they are not known."""
        array = self.value(operand) if self.has(operand) else None
        return None if array is None or array.dtype.kind not in "iu" else tuple(array.reshape(-1).tolist())


#: A rule for the shape of an output, None where the rank stays open, and one for its element type: that of an operand,
#: or what a function says.
ShapeRule = Callable[[TypedNode], Shape | None]
Element = int | Callable[[TypedNode], int | None]


def always(element: int) -> Element:
    """An element type that no operand changes."""
    return lambda _call: element


def same(operand: int) -> ShapeRule:
    """The shape of an operand."""
    return lambda typed: typed.shape(operand)


def picked(*extents: int | tuple[int, int] | None) -> ShapeRule:
    """Extents of operands, each an `(operand, axis)`, and numbers; None is one that only the values settle."""

    def shape(typed: TypedNode) -> Shape:
        return tuple(at(typed, *extent) if isinstance(extent, tuple) else extent for extent in extents)

    return shape


def at(typed: TypedNode, operand: int, axis: int) -> Extent:
    """The extent of an operand along an axis, None where that is not known."""
    shape = typed.shape(operand) or ()
    return shape[axis] if -len(shape) <= axis < len(shape) else None


def last_is(name: str) -> ShapeRule:
    """The shape of operand 0 with the last extent that an attribute says."""

    def shape(typed: TypedNode) -> Shape | None:
        first = typed.shape(0)
        return (*first[:-1], typed.number(name) or None) if first else None

    return shape


def broadcast(*operands: int) -> ShapeRule:
    """The common shape of operands of which the smaller ones are repeated."""

    def shape(typed: TypedNode) -> Shape | None:
        shapes = [typed.shape(operand) for operand in operands]
        known = [shape for shape in shapes if shape is not None]
        return joined_shape(known) if len(known) == len(shapes) else None

    return shape


def joined_shape(shapes: Sequence[Shape]) -> Shape:
    """The common shape of several, axes counted from the last.

    Raises:
        ValueError: extents that do not go together.
    """
    rank = max(map(len, shapes))
    axes = zip(*[(1,) * (rank - len(shape)) + shape for shape in shapes], strict=True)
    return tuple(_joined_extent(extents) for extents in axes)


def _joined_extent(extents: Iterable[Extent]) -> Extent:
    """One that is neither 1 nor open decides; else a symbol that all others share."""
    deciding = {extent for extent in extents if extent != 1}
    numbers = {extent for extent in deciding if isinstance(extent, int)}
    if len(numbers) > 1:
        raise ValueError(f"extents {sorted(numbers)} do not go together")
    if numbers:
        return numbers.pop()
    return deciding.pop() if len(deciding) == 1 else None if deciding else 1


def product(left: int = 0, right: int = 1) -> ShapeRule:
    """That of a matrix product, either operand turned as the attributes transA and transB say."""

    def shape(typed: TypedNode) -> Shape | None:
        a, b = typed.shape(left), typed.shape(right)
        if not a or not b:
            return None
        a = _turned(a, whole=typed.number("transBatchA"), last=typed.number("transA"))
        b = _turned(b, whole=typed.number("transBatchB"), last=typed.number("transB"))
        row, column = a[-2:-1], b[-1:] if len(b) > 1 else ()
        inner = {extent for extent in (a[-1], b[-2] if len(b) > 1 else b[-1]) if isinstance(extent, int)}
        if len(inner) > 1:
            raise ValueError(f"multiplies rows of {a[-1]} by columns of {b[-2] if len(b) > 1 else b[-1]}")
        return (*joined_shape([a[:-2], b[:-2]]), *row, *column)

    return shape


def _turned(shape: Shape, *, whole: int, last: int) -> Shape:
    """The shape of a matrix whose axes are read in another order: the batch next to the end, the last two swapped."""
    if whole and len(shape) > 2:
        shape = (*shape[1:-1], shape[0], shape[-1])
    return (*shape[:-2], shape[-1], shape[-2]) if last and len(shape) > 1 else shape


def standard(kind: str, *operands: int, channels_last: bool | None = False, least: int = 0) -> ShapeRule:
    """The shape that onnx infers for its own operator of a kind from some operands and the attributes that it has.

    `channels_last`: operand 0 and the output have their channels last; None where the attribute of that name says so.
    `least`: how many of the operands have to be there.
    """

    def shape(typed: TypedNode) -> Shape | None:
        there = [operand for operand in operands if typed.has(operand)]
        if len(there) < (least or len(operands)) or any(typed.shape(operand) is None for operand in there):
            return None
        types = {f"{place}": _of_floats(typed, operand) for place, operand in enumerate(operands) if operand in there}
        last = bool(typed.number("channels_last")) if channels_last is None else channels_last
        if last:
            types["0"] = _with_channels(types["0"], 1)
        values = {f"{place}": typed.value(operand) for place, operand in enumerate(operands) if operand in there}
        names = [f"{place}" if f"{place}" in types else "" for place in range(len(operands))]
        known = _inferred(kind, names, types, {n: v for n, v in values.items() if v is not None}, typed)
        return _moved(known, -1) if last and known else known

    return shape


def _of_floats(typed: TypedNode, operand: int) -> Type | None:
    """The type of an operand; bytes, for which onnx's own operator has another name, as floats."""
    return tensor_type(FLOAT, typed.shape(operand)) if typed.element(operand) in (UINT8, INT8) else typed.types[operand]


def _with_channels(known: Type | None, place: int) -> Type | None:
    return with_shape(known, _moved(known.shape, place)) if known is not None and known.shape else known


def _moved(shape: Shape, place: int) -> Shape:
    """The shape with its channels, which stand last, next to the batch, or the other way round."""
    if len(shape) < 2:
        return shape
    return (shape[0], shape[-1], *shape[1:-1]) if place == 1 else (shape[0], *shape[2:], shape[1])


def _inferred(
    kind: str, names: Sequence[str], types: dict[str, Type | None], values: dict[str, Array], typed: TypedNode
) -> Shape | None:
    import onnx
    from onnx import numpy_helper

    schema = onnx.defs.get_schema(kind, _OPSET, "")
    node = onnx.helper.make_node(kind, names, ["y"])
    node.attribute.extend(a for a in typed.node.attribute if a.name in schema.attributes)
    protos = {name: known.proto for name, known in types.items() if known is not None}
    data = {name: numpy_helper.from_array(value, name) for name, value in values.items()}
    opsets = [onnx.helper.make_opsetid("", _OPSET)]
    inferred = onnx.shape_inference.infer_node_outputs(schema, node, protos, data, None, opsets)
    shape = read_type(inferred["y"]).shape if "y" in inferred else None
    first = types.get("0")
    if kind in POOLS and shape and first is not None and first.shape:
        return tuple(pooled_shape(first.shape, attributes_of(typed.node), shape))
    return shape


def plus(a: Extent, b: Extent) -> Extent:
    """The sum of two extents, None where one is open and the other is not 0."""
    if isinstance(a, int) and isinstance(b, int):
        return a + b
    return a if b == 0 else b if a == 0 else None


def times(extent: Extent, factor: Extent) -> Extent:
    """The product of two extents, None where one is open and the other is not 1."""
    if isinstance(extent, int) and isinstance(factor, int):
        return extent * factor
    return extent if factor == 1 else factor if extent == 1 else None


def divided(extent: Extent, count: Extent) -> Extent:
    """The extent of each of `count` equal parts, None where there are none or they are open."""
    if isinstance(extent, int) and isinstance(count, int) and count > 0 and extent % count == 0:
        return extent // count
    return extent if count == 1 else None


def all_of(extents: Sequence[Extent]) -> Extent:
    """The product of extents, None where one is open beside others."""
    if len(extents) == 1:
        return extents[0]
    numbers = [extent for extent in extents if isinstance(extent, int)]
    return prod(numbers) if len(numbers) == len(extents) else None

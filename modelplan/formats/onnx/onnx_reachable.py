"""Extents that values decide: the largest that any values make, so that a caller's statement above it is refused.

A rule knows operands whose extents are numbers. Where one is an upper bound, the rules of equal numbers say nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction
from math import ceil, prod
from typing import TYPE_CHECKING

import numpy as np

from modelplan.formats.onnx.onnx_shapes import TypedNode, standard

if TYPE_CHECKING:
    from onnx import NodeProto

Extents = tuple[int, ...]
#: The most along each axis of each output; None is one that nothing limits, or that shape inference settles.
Most = Sequence[tuple[int | None, ...]]
#: A rule of `LIMITS` for operands of known extents, and of `EQUAL`: what is wrong with an output of so many axes.
Limit = Callable[[TypedNode], Most]
Equal = Callable[[TypedNode, Extents], str]


def has_limits(node: NodeProto) -> bool:
    """Whether values decide extents of the node's outputs, within limits that are known."""
    kind = node.domain, node.op_type
    return kind in LIMITS or kind in EQUAL


def beyond(typed: TypedNode, outputs: Sequence[Extents | None]) -> tuple[int, int, int] | None:
    """The first place of an output that is longer than any values make it: which, which axis, and the most there."""
    limit = LIMITS.get((typed.node.domain, typed.node.op_type))
    if limit is None or not _is_known(typed):
        return None
    for place, (shape, most) in enumerate(zip(outputs, limit(typed), strict=False)):
        for axis, (extent, bound) in enumerate(zip(shape or (), most, strict=False)):
            if bound is not None and extent > bound:
                return place, axis, bound
    return None


def unequal(typed: TypedNode, output: Extents) -> str:
    """Why no values make output 0 so, in words; empty where they may."""
    rule = EQUAL.get((typed.node.domain, typed.node.op_type))
    return rule(typed, output) if rule is not None and _is_known(typed) else ""


def _is_known(typed: TypedNode) -> bool:
    return bool(typed.types) and typed.types[0] is not None and typed.types[0].extents is not None


def _extents(typed: TypedNode, operand: int) -> Extents | None:
    known = typed.types[operand] if operand < len(typed.types) else None
    return None if known is None else known.extents


def _first(typed: TypedNode) -> Extents:
    return _extents(typed, 0) or ()


def _length(typed: TypedNode, operand: int) -> int | None:
    """The elements of an operand, None where it is absent or not known."""
    extents = _extents(typed, operand)
    return None if extents is None else prod(extents)


def _least(*numbers: int | None) -> int | None:
    known = [number for number in numbers if number is not None]
    return min(known) if known else None


def _places(typed: TypedNode) -> Most:
    """Of NonZero: each element may be one."""
    return [(None, prod(_first(typed)))]


def _top(typed: TypedNode) -> Most:
    """Of TopK: as many as there are along its axis."""
    shape = _first(typed)
    axis = typed.number("axis", -1)
    most = tuple(extent if place == axis % max(len(shape), 1) else None for place, extent in enumerate(shape))
    return [most, most]


def _kept(typed: TypedNode) -> Most:
    """Of Compress: as many as there are, and as the condition has elements."""
    shape, condition = _first(typed), _length(typed, 1)
    if typed.attribute("axis") is None:
        return [(_least(prod(shape), condition),)]
    axis = typed.number("axis") % max(len(shape), 1)
    return [tuple(_least(extent, condition) if place == axis else None for place, extent in enumerate(shape))]


def _distinct(typed: TypedNode) -> Most:
    """Of Unique: as many as there are, along an axis or in all."""
    shape = _first(typed)
    if typed.attribute("axis") is None:
        return [(prod(shape),)] * 4
    axis = typed.number("axis") % max(len(shape), 1)
    rows = tuple(extent if place == axis else None for place, extent in enumerate(shape))
    return [rows, *[(shape[axis],)] * 3] if shape else []


def _boxes(typed: TypedNode) -> Most:
    """Of NonMaxSuppression: of each class of each picture as many as there are boxes, or as an operand allows."""
    boxes, scores = _first(typed), _extents(typed, 1)
    if len(boxes) != 3 or scores is None or len(scores) != 3:
        return []
    allowed = typed.wholes(2) if typed.has(2) else (0,)
    each = boxes[1] if allowed is None or len(allowed) != 1 else min(max(allowed[0], 0), boxes[1])
    return [(scores[0] * scores[1] * each, None)]


def _counted(typed: TypedNode) -> Most:
    """Of Range: as many numbers as the type has between its ends."""
    known = typed.types[0]
    if known is None or known.dtype not in ("int16", "int32", "int64"):
        return []
    info = np.iinfo(known.dtype)
    start, limit, step = (numbers[0] if numbers else None for numbers in map(typed.wholes, range(3)))
    if step == 0:
        return []
    up = (info.max if limit is None else limit) - (info.min if start is None else start)
    down = (info.max if start is None else start) - (info.min if limit is None else limit)
    span = max(up, down) if step is None else up if step > 0 else down
    return [(max(ceil(Fraction(span, abs(step or 1))), 0),)]


def _cut(typed: TypedNode) -> Most:
    """Of Slice: no axis is longer than it was."""
    return [_first(typed)]


def _parts(typed: TypedNode) -> Most:
    """Of Split: no part is longer than the whole."""
    return [_first(typed)] * len(typed.node.output)


def _mirrored(typed: TypedNode) -> Most:
    """Of Pad that mirrors: an axis with all but its ends once more on both sides."""
    mode = typed.attribute("mode")
    return [tuple(3 * n - 2 if n else 0 for n in _first(typed))] if mode is not None and mode.s == b"reflect" else []


def _unpadded(typed: TypedNode) -> Most:
    """Of ConvTransposeWithDynamicPads: as much as without any."""
    whole = standard("ConvTranspose", 0, 1)(typed)
    return [tuple(extent if isinstance(extent, int) else None for extent in whole)] if whole else []


def _path(typed: TypedNode) -> Most:
    """Of DynamicTimeWarping: a path from corner to corner."""
    shape = _first(typed)
    return [(None, max(shape[-1] + shape[-2] - 1, 0))] if len(shape) > 1 else []


def _bifurcated(typed: TypedNode) -> Most:
    """Of BifurcationDetector: the tokens at hand, and those that were predicted."""
    predicted = _length(typed, 3) if typed.has(3) else 0
    current = _length(typed, 1)
    return [(None if predicted is None or current is None else current + predicted,)]


#: Operators of which values decide the extents up to some.
LIMITS: dict[tuple[str, str], Limit] = {
    ("", "NonZero"): _places,
    ("", "TopK"): _top,
    ("", "Compress"): _kept,
    ("", "Unique"): _distinct,
    ("", "NonMaxSuppression"): _boxes,
    ("", "Range"): _counted,
    ("", "Slice"): _cut,
    ("", "DynamicSlice"): _cut,
    ("", "Split"): _parts,
    ("", "Pad"): _mirrored,
    ("com.microsoft", "Unique"): _distinct,
    ("com.microsoft", "Range"): _counted,
    ("com.microsoft", "DynamicTimeWarping"): _path,
    ("com.microsoft", "ConvTransposeWithDynamicPads"): _unpadded,
    ("com.microsoft", "BifurcationDetector"): _bifurcated,
}


def _as_many(typed: TypedNode, output: Extents) -> str:
    """Of a view: as many elements as there are."""
    count = prod(_first(typed))
    return f"{prod(output):,} elements, expected {count:,} as its operand has" if prod(output) != count else ""


def _by_axes(typed: TypedNode, output: Extents, fits: Callable[[int, int], bool], words: str) -> str:
    """What is wrong along the first axis, counted from the last, where an extent does not fit the operand's."""
    shape = _first(typed)
    if len(output) < len(shape):
        return f"{len(output)} axes, expected {len(shape)} or more"
    for axis, (extent, wanted) in enumerate(zip(output[len(output) - len(shape) :], shape, strict=True)):
        if not fits(extent, wanted):
            return f"{extent} along axis {len(output) - len(shape) + axis}, expected {words.format(wanted)}"
    return ""


def _expanded(typed: TypedNode, output: Extents) -> str:
    """Of Expand: an extent other than 1 stays."""
    return _by_axes(typed, output, lambda extent, own: own in (1, extent), "{} as its operand has")


def _repeated(typed: TypedNode, output: Extents) -> str:
    """Of Tile: whole repetitions."""
    return _by_axes(typed, output, lambda extent, own: extent % own == 0 if own else not extent, "a multiple of {}")


def _reduced(typed: TypedNode, output: Extents) -> str:
    """Of a reduction that keeps its axes: each is 1 or as it was."""
    if not typed.number("keepdims", 1):
        return ""
    return _by_axes(typed, output, lambda extent, own: extent in (1, own), "1 or {} as its operand has")


_REDUCTIONS = "ReduceL1 ReduceL2 ReduceLogSum ReduceLogSumExp ReduceMax ReduceMean ReduceMin ReduceProd ReduceSum"
#: Operators of which values decide the extents in ways that operands settle in part.
EQUAL: dict[tuple[str, str], Equal] = {
    **{("", kind): _as_many for kind in ("Reshape", "Squeeze", "Unsqueeze")},
    ("com.microsoft", "ExpandDims"): _as_many,
    ("", "Expand"): _expanded,
    ("", "Tile"): _repeated,
    **{("", kind): _reduced for kind in (*_REDUCTIONS.split(), "ReduceSumSquare")},
}

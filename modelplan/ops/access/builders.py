"""Access maps that operators of all formats share, result of shapes and numbers that a format's row has read."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import accumulate
from math import prod

from modelplan.model import Graph, Op
from modelplan.ops.access.other_extents import refined
from modelplan.ops.access.spans import (
    AccessMap,
    Reads,
    Shape,
    Span,
    fixed,
    listed,
    same,
    shifted,
    spread,
    whole,
    window,
)
from modelplan.primitives.lazy_records import dataclass


@dataclass(frozen=True, slots=True)
class ShapedOp:
    """An operator with the shapes of its operands (None: absent) and results, and which of these is asked for."""

    op: Op
    shapes: tuple[Shape | None, ...]
    results: tuple[Shape, ...]
    output: int = 0

    @classmethod
    def of(cls, graph: Graph, op: Op, output: int = 0) -> ShapedOp:
        """The operator as it stands in a graph."""
        shapes = tuple(graph.tensors[t].shape if t >= 0 else None for t in op.inputs)
        results = tuple(graph.tensors[t].shape if t >= 0 else () for t in op.outputs)
        return cls(op, shapes, results, output)

    @property
    def result(self) -> Shape:
        """The shape of the result that is asked for."""
        return self.results[self.output]

    def shape(self, operand: int) -> Shape | None:
        """The shape of an operand, None where it is absent."""
        return self.shapes[operand] if operand < len(self.shapes) else None


#: The access map of an operator; None where it has none, so that each operand may be read whole.
Builder = Callable[[ShapedOp], AccessMap | None]


def identity(shape: Shape) -> tuple[Span, ...]:
    """The place of each index, along all axes."""
    return tuple(same(axis) for axis in range(len(shape)))


def broadcast(operand: int, shape: Shape, result: Shape) -> Reads | None:
    """An operand of which each element of the result reads the one at its place, repeated as numpy does."""
    view = (1,) * (len(result) - len(shape)) + shape
    if len(view) > len(result) or any(a not in (1, b) for a, b in zip(view, result, strict=True)):
        return None
    spans = (same(axis) if extent == result[axis] else fixed(0) for axis, extent in enumerate(view))
    return Reads(operand, view, result, tuple(spans))


def pointwise(node: ShapedOp) -> AccessMap | None:
    """Each element of the result from the elements of all operands at its place."""
    given = [(operand, shape) for operand, shape in enumerate(node.shapes) if shape is not None]
    reads = [broadcast(operand, shape, node.result) for operand, shape in given]
    return AccessMap(tuple(read for read in reads if read is not None)) if None not in reads else None


def first_pointwise(node: ShapedOp) -> AccessMap | None:
    """Each element of the result from that of operand 0 at its place; what else there is are parameters."""
    shape = node.shape(0)
    read = broadcast(0, shape, node.result) if shape is not None else None
    return AccessMap((read,)) if read else None


def converted(node: ShapedOp) -> AccessMap | None:
    """The elements of operand 0 as they are, where the type stays."""
    access = first_pointwise(node)
    return AccessMap(access.reads, moves=True) if access else None


def reshaped(node: ShapedOp) -> AccessMap | None:
    """Operand 0 under other extents."""
    shape = node.shape(0)
    if shape is None or prod(shape) != prod(node.result) or not prod(shape):
        return None
    view = refined(shape, node.result)
    return AccessMap((Reads(0, view, view, identity(view)),), moves=True)


def taken(node: ShapedOp, spans: Sequence[Span], operand: int = 0) -> AccessMap | None:
    """Elements of an operand at places that `spans` say, along axes that stay."""
    shape = node.shape(operand)
    if shape is None or len(spans) != len(shape):
        return None
    return AccessMap((Reads(operand, shape, node.result, tuple(spans)),), moves=True)


def mirrored(axis: int, extent: int, before: int, behind: int, edge: int) -> Span:
    """The places of an axis that is padded by its own places in reverse, its border itself (`edge` 1) or not (0)."""
    places = []
    for place in range(-before, extent + behind):
        at = -place - edge if place < 0 else 2 * extent - 2 + edge - place if place >= extent else place
        places.append((at, at))
    return listed(axis, tuple(places))


def permuted(node: ShapedOp, order: Sequence[int]) -> AccessMap | None:
    """A transposition: axis k of the result is axis `order[k]` of operand 0."""
    shape = node.shape(0)
    if shape is None or sorted(order) != list(range(len(shape))):
        return None
    return taken(node, [same(list(order).index(axis)) for axis in range(len(shape))])


def joined(node: ShapedOp, axis: int, operands: Sequence[int]) -> AccessMap | None:
    """Operands one behind the other along an axis."""
    result, shapes = node.result, [node.shape(operand) for operand in operands]
    if any(shape is None or len(shape) != len(result) for shape in shapes) or not result:
        return None
    axis %= len(result)
    known = [shape for shape in shapes if shape is not None]
    starts = accumulate((shape[axis] for shape in known), initial=0)
    reads = [
        Reads(operand, shape, result, (*identity(result[:axis]), shifted(axis, -start), *_behind(axis, result)))
        for operand, shape, start in zip(operands, known, starts, strict=False)
    ]
    return AccessMap(tuple(reads), moves=True)


def stacked(node: ShapedOp, axis: int) -> AccessMap | None:
    """Operands one behind the other along an axis that they do not have."""
    result = node.result
    axis %= max(len(result), 1)
    view = (*result[:axis], 1, *result[axis + 1 :])
    given = range(len(node.shapes))
    if not result or any(node.shapes[k] != result[:axis] + result[axis + 1 :] for k in given):
        return None
    reads = [
        Reads(k, view, result, (*identity(result[:axis]), shifted(axis, -k), *_behind(axis, result))) for k in given
    ]
    return AccessMap(tuple(reads), moves=True)


def _behind(axis: int, shape: Shape) -> list[Span]:
    return [same(place) for place in range(axis + 1, len(shape))]


def reduced(node: ShapedOp, axes: Sequence[int] | None) -> AccessMap | None:
    """All elements along some axes of operand 0 together, whether the result keeps these axes or not.

    Axes that are not known (None) have one place each where the result has as many elements as the operand.
    """
    shape = node.shape(0)
    if shape is not None and prod(shape) == prod(node.result):
        axes = ()
    if shape is None or axes is None:
        return None
    gone = {axis % max(len(shape), 1) for axis in axes}
    kept = tuple(1 if axis in gone else extent for axis, extent in enumerate(shape))
    if prod(kept) != prod(node.result):
        return None
    spans = (whole(extent) if axis in gone else same(axis) for axis, extent in enumerate(shape))
    return AccessMap((Reads(0, shape, kept, tuple(spans)),), moves=kept == shape)


def along(node: ShapedOp, axes: Sequence[int]) -> AccessMap | None:
    """Each element from all of operand 0 along some axes, at its place along the others: norms and softmax."""
    shape = node.shape(0)
    if shape is None or shape != node.result:
        return None
    gone = {axis % max(len(shape), 1) for axis in axes}
    spans = (whole(extent) if axis in gone else same(axis) for axis, extent in enumerate(shape))
    return AccessMap((Reads(0, shape, shape, tuple(spans)),))


def cumulative(node: ShapedOp, axis: int, *, reverse: bool, exclusive: bool) -> AccessMap | None:
    """Each element from all those before it along an axis, or behind it."""
    shape = node.shape(0)
    if shape is None or not shape or shape != node.result:
        return None
    axis %= len(shape)
    extent, own = shape[axis], int(exclusive)
    ends = [(y + own, extent - 1) if reverse else (0, y - own) for y in range(extent)]
    spans = (listed(axis, tuple(ends)) if place == axis else same(place) for place in range(len(shape)))
    return AccessMap((Reads(0, shape, shape, tuple(spans)),))


def space_to_depth(node: ShapedOp, size: int) -> AccessMap | None:
    """Blocks of NHWC operand 0 as channels, the rows of a block first."""
    shape, result = node.shape(0), node.result
    if shape is None or len(shape) != 4 or len(result) != 4 or size < 1 or prod(shape) != prod(result):
        return None
    n, h, w, c = result[0], result[1], result[2], shape[3]
    space, depth = (n, h, size, w, size, c), (n, h, w, size, size, c)
    return AccessMap((Reads(0, space, depth, (same(0), same(1), same(3), same(2), same(4), same(5))),), moves=True)


def depth_to_space(node: ShapedOp, size: int) -> AccessMap | None:
    """Channels of NHWC operand 0 as blocks, the rows of a block first."""
    shape, result = node.shape(0), node.result
    if shape is None or len(shape) != 4 or len(result) != 4 or size < 1 or prod(shape) != prod(result):
        return None
    n, h, w, c = shape[0], shape[1], shape[2], result[3]
    space, depth = (n, h, size, w, size, c), (n, h, w, size, size, c)
    return AccessMap((Reads(0, depth, space, (same(0), same(1), same(3), same(2), same(4), same(5))),), moves=True)


def repeated(node: ShapedOp) -> AccessMap | None:
    """Operand 0 so often along each axis as it fits into the result."""
    shape, result = node.shape(0), node.result
    if shape is None or len(shape) > len(result):
        return None
    shape = (1,) * (len(result) - len(shape)) + shape
    if any(not a or b % a for a, b in zip(shape, result, strict=True)):
        return None
    view = tuple(extent for a, b in zip(shape, result, strict=True) for extent in (b // a, a))
    return AccessMap((Reads(0, shape, view, tuple(same(2 * axis + 1) for axis in range(len(shape)))),), moves=True)


def picked(node: ShapedOp, axis: int, indices: Sequence[int] | None) -> AccessMap | None:
    """Places of operand 0 along an axis that operand 1 names; all of them where it is no constant."""
    shape, result, picks = node.shape(0), node.result, node.shape(1)
    if not shape or (picks is None and indices is None):
        return None
    axis %= len(shape)
    count = len(indices) if indices is not None else prod(picks or ())
    view = (*shape[:axis], count, *shape[axis + 1 :])
    if prod(view) != prod(result):
        return None
    extent = shape[axis]
    known = indices is not None and all(-extent <= at < extent for at in indices)
    places = listed(axis, tuple((at % extent, at % extent) for at in indices or ())) if known else whole(extent)
    spans = (*identity(shape[:axis]), places, *_behind(axis, shape))
    return AccessMap((Reads(0, shape, view, spans, exact=known),), moves=True)


def product(node: ShapedOp, left: int, right: int, *, turned: tuple[bool, bool] = (False, False)) -> AccessMap | None:
    """A matrix product along the last axes, with broadcast batches; `turned` operands have their two axes exchanged."""
    a, b, result = node.shape(left), node.shape(right), node.result
    if a is None or b is None or min(len(a), len(b), len(result)) < 2:
        return None
    rank, reads = len(result), []
    for operand, shape, own, flip in ((left, a, rank - 2, turned[0]), (right, b, rank - 1, turned[1])):
        batches = broadcast(operand, shape[:-2], result[:-2])
        if batches is None:
            return None
        is_left = own == rank - 2
        summed = whole(shape[-1] if is_left != flip else shape[-2])
        inner = (same(own), summed) if is_left != flip else (summed, same(own))
        reads.append(Reads(operand, (*batches.source, *shape[-2:]), result, (*batches.spans, *inner)))
    return AccessMap(tuple(reads), products=right)


@dataclass(frozen=True, slots=True)
class Window:
    """A window along one axis of a map: places that it reads, how far the next one is, and places before the first."""

    reach: int
    stride: int = 1
    before: int = 0
    dilation: int = 1

    def span(self, axis: int) -> Span:
        """The places that an index reads along `axis`."""
        return window(axis, self.reach, self.stride, self.before, self.dilation)


def pooled(node: ShapedOp, windows: Sequence[Window], *, first: int) -> AccessMap | None:
    """Windows of operand 0 along the axes from `first` on, each channel and image for itself."""
    shape = node.shape(0)
    if shape is None or len(shape) != len(node.result) or len(shape) < first + len(windows):
        return None
    spans = list(identity(shape))
    spans[first : first + len(windows)] = [w.span(first + k) for k, w in enumerate(windows)]
    return AccessMap((Reads(0, shape, node.result, tuple(spans)),))


@dataclass(frozen=True, slots=True)
class Filter:
    """The weights of a convolution: the operand, and which of its axes are results, channels and windows."""

    operand: int
    results: int
    channels: int
    windows: int


def convolved(
    node: ShapedOp, windows: Sequence[Window], weights: Filter, *, data: int = 0, last: bool
) -> AccessMap | None:
    """A convolution in groups of channels, which stand `last` in the maps (NHWC) or second (NCHW)."""
    shape, result, filters = node.shape(data), node.result, node.shape(weights.operand)
    rank = len(windows) + 2
    if shape is None or filters is None or not len(shape) == len(result) == len(filters) == rank:
        return None
    place = rank - 1 if last else 1
    each, outs = filters[weights.channels], filters[weights.results]
    if not each or shape[place] % each or outs != result[place] or outs % (shape[place] // each):
        return None
    count = shape[place] // each
    # the channels of both maps are seen as groups with some of each
    map_view = (*shape[:place], count, each, *shape[place + 1 :])
    made_view = (*result[:place], count, outs // count, *result[place + 1 :])
    spatial = range(1, rank - 1) if last else range(2, rank)
    spots = [k if last else k + 1 for k in spatial]  # of the axes in the views
    spans: list[Span] = [same(0)] * len(map_view)
    for window_, spot in zip(windows, spots, strict=True):
        spans[spot] = window_.span(spot)
    spans[place], spans[place + 1] = same(place), whole(each)
    view = list(filters)
    at = weights.results
    view[at : at + 1] = [count, outs // count]
    kernel = [whole(extent) for extent in view]
    kernel[at], kernel[at + 1] = same(place), same(place + 1)
    return AccessMap(
        (
            Reads(data, map_view, made_view, tuple(spans)),
            Reads(weights.operand, tuple(view), made_view, tuple(kernel)),
            *_bias(node, weights.operand + 1, made_view, place),
        ),
        products=weights.operand,
    )


def _bias(node: ShapedOp, operand: int, result: Shape, place: int) -> list[Reads]:
    shape = node.shape(operand)
    if shape is None or prod(shape) != result[place] * result[place + 1]:
        return []
    return [Reads(operand, result[place : place + 2], result, (same(place), same(place + 1)))]


def transposed_convolution(
    node: ShapedOp, windows: Sequence[Window], weights: Filter, *, data: int = 0, bias: int | None = None, last: bool
) -> AccessMap | None:
    """A transposed convolution: an index has a part of each place whose window reaches it. Groups are read whole."""
    shape, result, filters = node.shape(data), node.result, node.shape(weights.operand)
    rank = len(windows) + 2
    if shape is None or filters is None or not len(shape) == len(result) == len(filters) == rank:
        return None
    place = rank - 1 if last else 1
    spans = [whole(extent) for extent in shape]
    spans[0] = same(0)
    for axis, w in zip(range(1, rank - 1) if last else range(2, rank), windows, strict=True):
        reach = (w.reach - 1) * w.dilation + 1
        spans[axis] = spread(axis, reach, w.stride, w.before)
    kernel = [whole(extent) for extent in filters]
    if filters[weights.results] == result[place]:
        kernel[weights.results] = same(place)
    reads = [Reads(data, shape, result, tuple(spans)), Reads(weights.operand, filters, result, tuple(kernel))]
    added = node.shape(bias) if bias is not None else None
    if added is not None and prod(added) == result[place]:
        reads.append(Reads(bias or 0, (result[place],), result, (same(place),)))
    return AccessMap(tuple(reads), products=weights.operand)

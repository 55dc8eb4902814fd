"""What operators read: the verifier's own table, written from the loops of the kernels.

A kernel loops over the axes of its result. For each axis of an operand the table has the *places* along it that each
index of such a loop reads, one list for each *tap*: the taps of a window are its rows, most operators have one. A place
outside of the operand is none: there lies a border, what pads, or another part of a join. Lists are enumerated, nothing
is solved; whether several copies are one run, which elements decide a result, how far a result may run into an operand
are for those to say that ask. Planning has formulas of its own (`ops/access/`). What is proved so says docs/proof.md.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import product
from math import prod
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from modelplan.checking.verifier.semantics import CONCATENATIONS, PADS, POINTWISE, RESHAPES, SPLITS
from modelplan.primitives.lazy_records import dataclass

Shape = tuple[int, ...]
#: A place along an axis of an operand for each index along an axis of the result.
Places = Sequence[int]
#: The longest axis whose places are listed one by one, and the most taps.
_MOST_LISTED = 1 << 20


class Along(NamedTuple):
    """The places along an axis of an operand by the index along `axis` of the result, for each tap.

    Without an axis (-1) there is one index, 0.
    """

    axis: int
    taps: tuple[Places, ...]


class OperandPlaces(NamedTuple):
    """What each element of a result reads of an operand: the places along its axes, all combinations of them.

    `shape` are the operand's extents as the kernel sees them, most often the tensor's. An axis with several rows of
    places is read at their sums, one without any as a whole. `weights` are numbers that the kernel takes with what it
    reads, by the index along an axis of the result. `linear`: element i of the result is element i of the operand.
    """

    operand: int
    shape: Shape
    axes: tuple[tuple[Along, ...], ...]
    weights: tuple[tuple[int, Places], ...] = ()
    linear: bool = False


@dataclass(frozen=True, slots=True)
class Use:
    """An operator as the table is asked for it: shapes (None: no operand), options, numbers that operands hold.

    Options have the schema's names in lower case, "padding" is SAME or VALID. `output` is the result asked for.
    """

    kind: str
    shapes: tuple[Shape | None, ...]
    results: tuple[Shape, ...]
    option: Callable[[str], object]
    numbers: Callable[[int], Sequence[int] | None]
    output: int = 0
    dtype: str = ""

    @property
    def result(self) -> Shape:
        """Extents of the result that is asked for."""
        return self.results[self.output]

    def shape(self, operand: int) -> Shape:
        """Extents of an operand.

        Raises:
            LookupError: it is absent.
        """
        shape = self.shapes[operand]
        if shape is None:
            raise LookupError(operand)
        return shape

    def number(self, name: str, default: int = 0) -> int:
        """An option that is a whole number."""
        value = self.option(name)
        return int(value) if isinstance(value, (int, np.integer)) else default

    def known(self, operand: int, *names: str) -> list[int]:
        """Whole numbers that an operand holds, or an option of one of these names.

        Raises:
            LookupError: they are not known.
        """
        values = self.numbers(operand) if operand >= 0 else None
        for name in names:
            option = self.option(name) if values is None else None
            values = option if isinstance(option, tuple) else (option,) if isinstance(option, int) else values
        if values is None:
            raise LookupError(names)
        return [int(value) for value in values]


#: The rows of places along an axis of an operand; without any all of it, for each index.
_Rows = tuple[Along, ...]
WHOLE: _Rows = ()


def places_read(use: Use) -> tuple[OperandPlaces, ...] | None:
    """What a result of an operator reads, operand by operand; one that is not named may be read as a whole.

    None where the table does not know the operator, or not how it is used here.

    Cost: O(taps), and O(extents) where places do not lie equally far apart.
    """
    rule = _RULES.get(use.kind)
    if rule is None or (rule is not _joined and any(shape is not None and 0 in shape for shape in use.shapes)):
        return None
    try:
        return tuple(rule(use))
    except (LookupError, ValueError):
        return None  # an operand that it needs is missing, or the numbers in it say nothing of this shape


def is_known(kind: str) -> bool:
    """Whether the table has a row for operators of this kind."""
    return kind in _RULES


def strides(shape: Sequence[int]) -> Shape:
    """How many elements further the next place of each axis is."""
    return tuple(prod(shape[axis + 1 :]) for axis in range(len(shape)))


def _need(condition: bool) -> None:  # noqa: FBT001
    if not condition:
        raise ValueError("shapes or options are not those of the operator")


def _same(axis: int, extent: int) -> _Rows:
    return (Along(axis, (range(extent),)),)


def _fixed(place: int) -> _Rows:
    return (Along(-1, ((place,),)),)


def _identity(shape: Shape) -> tuple[_Rows, ...]:
    return tuple(_same(axis, extent) for axis, extent in enumerate(shape))


def _with(shape: Shape, others: Mapping[int, _Rows]) -> tuple[_Rows, ...]:
    """Index by index but for the axes in `others`."""
    return tuple(others.get(axis, _same(axis, extent)) for axis, extent in enumerate(shape))


def _listed(places: Sequence[int]) -> Places:
    _need(len(places) <= _MOST_LISTED)
    return tuple(places)


# Operators that go element by element


@lru_cache(maxsize=8192)
def repeated(operand: int, shape: Shape, result: Shape) -> OperandPlaces | None:
    """An operand along the last axes of a result, where its extent is 1 the same place for all indices."""
    seen = (1,) * (len(result) - len(shape)) + shape
    if len(seen) != len(result) or any(n not in (1, own) for n, own in zip(seen, result, strict=True)):
        return None
    _need(all(own <= _MOST_LISTED for n, own in zip(seen, result, strict=True) if n != own))
    pairs = enumerate(zip(seen, result, strict=True))
    axes = (_same(axis, n) if n == own else (Along(axis, ((0,) * own,)),) for axis, (n, own) in pairs)
    return OperandPlaces(operand, seen, tuple(axes))


def _pointwise(use: Use) -> Iterator[OperandPlaces]:
    given = [(k, shape) for k, shape in enumerate(use.shapes) if shape is not None]
    try:
        result = np.broadcast_shapes(*(shape for _, shape in given))
    except ValueError:  # some are parameters
        result = use.result
    yield from filter(None, (repeated(k, shape, result) for k, shape in given))


def _broadcast(use: Use) -> Iterator[OperandPlaces]:
    yield from filter(None, [repeated(0, use.shape(0), use.result)])


# Windows over maps

#: Places in front of a map and the number of windows, where a network states them.
Stated = tuple[int, int] | None


@lru_cache(maxsize=4096)
def _window(extent: int, taps: int, stride: int, apart: int, same: bool, stated: Stated = None) -> tuple[Places, ...]:  # noqa: FBT001
    """SAME has an index for each stride of the operand, VALID for each at which all taps lie inside.

    Where the places in front of a map and the number of indices are stated, these count.
    """
    reach = (taps - 1) * apart + 1
    count = len(range(0, extent if same else extent - reach + 1, stride))
    before = max((count - 1) * stride + reach - extent, 0) // 2 if same else 0
    before, count = stated or (before, count)
    firsts = range(-before, (taps - 1) * apart - before + 1, apart)
    if taps > _MOST_LISTED:  # those that lie beside the map for all indices
        firsts = firsts[max(before - count * stride, 0) // apart :][: extent + count * stride]
    return tuple(range(first, first + count * stride, stride) for first in firsts)


def _steps(use: Use, letter: str) -> tuple[int, int]:
    """How far windows, and the taps of one, lie apart."""
    stride, apart = use.number(f"stride_{letter}", 1), use.number(f"dilation_{letter}_factor", 1)
    _need(min(stride, apart) > 0)
    return stride, apart


def _stated(use: Use, axis: int) -> Stated:
    """The padding (top, left, bottom, right) that a network states, and how many results there are."""
    pads = use.option("pads")
    return (int(pads[axis - 1]), use.result[axis]) if isinstance(pads, tuple) else None


def _over_map(use: Use, kernel: Sequence[int], channels: _Rows) -> OperandPlaces:
    shape, same = use.shape(0), use.option("padding") == "SAME"
    _need(len(shape) == len(use.result) == 4 and min(kernel) > 0)
    windows = {3: channels}
    for axis, letter in ((1, "h"), (2, "w")):
        stride, apart = _steps(use, letter)
        stated = _stated(use, axis)
        taps = _window(shape[axis], kernel[axis - 1], stride, apart, same, stated)
        _need(len(taps[0]) > 0 and (same or stated is not None or (kernel[axis - 1] - 1) * apart < shape[axis]))
        windows[axis] = (Along(axis, taps),)
    return OperandPlaces(0, shape, _with(shape, windows))


def _pool(use: Use) -> Iterator[OperandPlaces]:
    kernel = use.number("filter_height"), use.number("filter_width")
    yield _over_map(use, kernel, _same(3, use.shape(0)[-1]))


def _convolution(use: Use) -> Iterator[OperandPlaces]:
    """CONV_2D: [out, height, width, in]. Groups are read as a whole."""
    weights = use.shape(1)
    _need(len(weights) == 4)
    yield _over_map(use, weights[1:3], WHOLE)


def _depthwise(use: Use) -> Iterator[OperandPlaces]:
    """DEPTHWISE_CONV_2D: [1, height, width, out], of each channel several in a row."""
    weights, deep, outs = use.shape(1), use.shape(0)[-1], use.result[-1]
    _need(len(weights) == 4 and outs % deep == 0)
    each = outs // deep
    places = range(outs) if each == 1 else _listed([channel for channel in range(deep) for _ in range(each)])
    yield _over_map(use, weights[1:3], (Along(3, (places,)),))


@lru_cache(maxsize=4096)
def _scattered(extent: int, taps: int, stride: int, count: int, same: bool, stated: Stated) -> tuple[Places, ...]:  # noqa: FBT001
    """Index x of the operand adds by tap k to index x * stride + k - before of the result.

    Source: tflite-micro's transpose_conv: the padding is that of a convolution from the result back to the operand.
    """
    outside = len(range(0, count if same else count - taps + 1, stride))
    before = stated[0] if stated else max((outside - 1) * stride + taps - count, 0) // 2
    places = [[-1] * count for _ in range(taps)]
    for x, k in product(range(extent), range(taps)):
        if 0 <= (at := x * stride + k - before) < count:
            places[k][at] = x
    return tuple(map(_listed, places))


def _transposed_convolution(use: Use) -> Iterator[OperandPlaces]:
    """TRANSPOSE_CONV, of shape, weights [out, height, width, in] and data."""
    weights, shape, result = use.shape(1), use.shape(2), use.result
    _need(len(weights) == len(shape) == len(result) == 4)
    same, windows = use.option("padding") == "SAME", {3: WHOLE}
    for axis, letter in ((1, "h"), (2, "w")):
        stride, _ = _steps(use, letter)
        windows[axis] = (
            Along(axis, _scattered(shape[axis], weights[axis], stride, result[axis], same, _stated(use, axis))),
        )
    yield OperandPlaces(2, shape, _with(shape, windows))


def _resized(use: Use) -> Iterator[OperandPlaces]:
    """RESIZE_NEAREST_NEIGHBOR, and RESIZE_BILINEAR of 8-bit codes."""
    shape, nearest = use.shape(0), use.kind == "RESIZE_NEAREST_NEIGHBOR"
    _need(len(shape) == len(use.result) == 4 and (nearest or use.dtype == "int8"))
    corners, half = bool(use.number("align_corners")), bool(use.number("half_pixel_centers"))
    axes, weights = {}, []
    for axis in (1, 2):
        rule = _nearest if nearest else _between
        *taps, shares = rule(shape[axis], use.result[axis], corners, half)
        axes[axis] = (Along(axis, tuple(taps)),)
        weights.append((axis, shares))
    yield OperandPlaces(0, shape, _with(shape, axes), () if nearest else tuple(weights))


@lru_cache(maxsize=1024)
def _nearest(extent: int, count: int, corners: bool, half: bool) -> tuple[Places, ...]:  # noqa: FBT001
    """The place of each index in the kernel's single precision; no weights."""
    single = np.float32
    scale = single(extent - 1) / single(count - 1) if corners and count > 1 else single(extent) / single(count)
    exact = ((single(i) + single(0.5 if half else 0)) * scale for i in range(count))
    places = [int(np.floor(place + single(0.5 if corners else 0))) for place in exact]
    return _listed([max(min(place, extent - 1), 0) for place in places]), ()


@lru_cache(maxsize=1024)
def _between(extent: int, count: int, corners: bool, half: bool) -> tuple[Places, ...]:  # noqa: FBT001
    """The two places of each index and the weight between them, in the kernel's arithmetic of 10 bits."""
    top, bottom = (extent - 1, count - 1) if corners and count > 1 else (extent, count)
    scale = ((top << 10) + bottom // 2) // bottom
    rows = []
    for i in range(count):
        scaled = i * scale + (scale // 2 - (1 << 9) if half else 0)
        low = max(int(scaled / (1 << 10)), 0)
        rows.append((low, min(int((scaled + (1 << 10) - 1) / (1 << 10)), extent - 1), scaled - (low << 10)))
    return tuple(map(_listed, zip(*rows, strict=True)))


# Sums along axes


def _along_last(use: Use) -> Iterator[OperandPlaces]:
    """All along the last axis, for each other index by itself."""
    shape = use.shape(0)
    _need(len(shape) > 0 and shape == use.result)
    yield OperandPlaces(0, shape, _with(shape, {len(shape) - 1: WHOLE}))


def _connected(use: Use) -> Iterator[OperandPlaces]:
    """FULLY_CONNECTED: each row of inputs with all weights [out, in]."""
    shape, (outs, inputs), result = use.shape(0), use.shape(1), use.result
    _need(len(result) > 0 and result[-1] == outs and prod(shape) == prod(result[:-1]) * inputs)
    seen = (*result[:-1], inputs)
    yield OperandPlaces(0, seen, _with(seen, {len(seen) - 1: WHOLE}))


def _multiplied(use: Use) -> Iterator[OperandPlaces]:
    """BATCH_MATMUL: rows of one matrix with columns of the other, by batches."""
    result, rank = use.result, len(use.result)
    for k, name in ((0, "adj_x"), (1, "adj_y")):
        shape = use.shape(k)
        _need(rank >= len(shape) >= 2)
        turned, own = bool(use.number(name)) != bool(k), rank - 2 + k
        batches, kept = repeated(k, shape[:-2], result[:-2]), _same(own, result[own])
        if batches is not None and shape[-1 if turned else -2] == result[own]:
            matrix = (WHOLE, kept) if turned else (kept, WHOLE)
            yield OperandPlaces(k, (*batches.shape, *shape[-2:]), (*batches.axes, *matrix))


def _reduced(use: Use) -> Iterator[OperandPlaces]:
    """All along some axes, which stay with one place or go."""
    shape, result = use.shape(0), use.result
    if prod(shape) == prod(result):
        yield from _reshaped(use)
        return
    gone = {axis % len(shape) for axis in use.known(1, "axes")}
    kept = [axis for axis in range(len(shape)) if axis not in gone]
    stays = len(result) == len(shape)
    _need([n for a, n in enumerate(result) if not (stays and a in gone)] == [shape[a] for a in kept])
    axes = {axis: _same(axis if stays else kept.index(axis), shape[axis]) for axis in kept}
    yield OperandPlaces(0, shape, tuple(axes.get(axis, WHOLE) for axis in range(len(shape))))


# Operators whose results are elements of operands


def _permuted(use: Use) -> Iterator[OperandPlaces]:
    shape, onnx = use.shape(0), use.kind == "Transpose"
    absent = onnx and use.option("perm") is None
    _need(not absent or len(shape) < 2)  # absent means reversed, and unreadable looks the same
    order = list(range(len(shape))) if absent else use.known(*(-1, "perm") if onnx else (1,))
    _need(sorted(order) == list(range(len(shape))))
    yield OperandPlaces(0, shape, tuple(_same(order.index(axis), n) for axis, n in enumerate(shape)))


def _reshaped(use: Use) -> Iterator[OperandPlaces]:
    """The same elements in other groups of axes; of a group with several axes on both sides nothing is followed."""
    shape, result = use.shape(0), use.result
    _need(prod(shape) == prod(result) and max((*shape, *result), default=0) <= _MOST_LISTED)
    axes = [_fixed(0) if n == 1 else WHOLE for n in shape]
    for before, behind in grouped_axes(shape, result):
        if min(len(before), len(behind)) > 1:  # where one side has one long axis, it is that one
            before = tuple(a for a in before if shape[a] > 1)
            behind = tuple(a for a in behind if result[a] > 1)
        if len(before) == 1:
            steps = strides([result[a] for a in behind])
            parts = zip(behind, steps, strict=True)
            axes[before[0]] = tuple(Along(y, (range(0, result[y] * step, step),)) for y, step in parts) or _fixed(0)
        elif len(behind) == 1:
            for axis, step in zip(before, strides([shape[a] for a in before]), strict=True):
                axes[axis] = (Along(behind[0], (_split_places(shape[axis], step, result[behind[0]]),)),)
    yield OperandPlaces(0, shape, tuple(axes), linear=True)


@lru_cache(maxsize=1024)
def _split_places(extent: int, step: int, count: int) -> Places:
    """The place along one of several axes of each index along the axis that they become."""
    return _listed([place for _ in range(0, count, extent * step) for place in range(extent) for _ in range(step)])


def grouped_axes(x: Shape, y: Shape) -> list[tuple[Shape, Shape]]:
    """The axes of two shapes in as many groups as hold equal numbers of elements, those left over in the last one."""
    groups, (i, j) = list[tuple[Shape, Shape]](), (0, 0)
    while i < len(x) and j < len(y):
        first, (ends, sizes) = (i, j), ([i + 1, j + 1], [x[i], y[j]])
        while sizes[0] != sizes[1] and ends[side := int(sizes[1] < sizes[0])] < len((x, y)[side]):
            sizes[side] *= (x, y)[side][ends[side]]
            ends[side] += 1
        i, j = ends
        groups.append((tuple(range(first[0], i)), tuple(range(first[1], j))))
    if i < len(x) or j < len(y):
        groups.append((tuple(range(i, len(x))), tuple(range(j, len(y)))))
    return groups


def _taken(use: Use, axes: Sequence[_Rows], operand: int = 0) -> Iterator[OperandPlaces]:
    yield OperandPlaces(operand, use.shape(operand), tuple(axes))


def _sliced(use: Use) -> Iterator[OperandPlaces]:
    """SLICE: as many places from `begin` on as the sizes say, -1 for the rest."""
    shape, begin = use.shape(0), use.known(1)
    sizes = use.numbers(2) or use.result
    rows = zip(shape, begin, sizes, strict=True)
    yield from _taken(use, [_run(a, b, n - b if s == -1 else s) for a, (n, b, s) in enumerate(rows)])


def _run(axis: int, first: int, count: int) -> _Rows:
    return (Along(axis, (range(first, first + count),)),)


def _strided(use: Use) -> Iterator[OperandPlaces]:
    """STRIDED_SLICE; the places as Python takes them of a list."""
    shape, begin, step = use.shape(0), use.known(1), use.known(3)
    end, rank = use.numbers(2), len(shape)
    _need(not any(use.number(name) for name in ("ellipsis_mask", "new_axis_mask", "offset")) and 0 not in step)
    _need(len(begin) == len(step) == rank and (end is None or len(end) == rank))
    masks = [use.number(f"{name}_mask") for name in ("begin", "end", "shrink_axis")]
    axes, y = [], 0
    for axis, (n, by) in enumerate(zip(shape, step, strict=True)):
        opens, closes, shrinks = (mask >> axis & 1 for mask in masks)
        first = None if opens else begin[axis]
        if shrinks:
            axes.append(_fixed(range(n)[first::by][0]))
            continue
        last = None if closes or end is None else end[axis]
        places = range(n)[first:last:by]
        axes.append((Along(y, (places if end else places[: use.result[y]],)),))
        y += 1
    yield from _taken(use, axes)


def _onnx_sliced(use: Use) -> Iterator[OperandPlaces]:
    shape, starts = use.shape(0), use.known(1, "starts")
    axes, step = _given(use, 3, "axes", range(len(starts))), _given(use, 4, "", [1] * len(starts))
    places = [range(n) for n in shape]
    for axis, first, by in zip(axes, starts, step, strict=True):
        axis %= len(shape)
        places[axis] = range(shape[axis])[first::by][: use.result[axis]]
    yield from _taken(use, [(Along(axis, (row,)),) for axis, row in enumerate(places)])


def _given(use: Use, operand: int, name: str, default: Sequence[int]) -> Sequence[int]:
    """The numbers of an operand or an option, which may both be absent."""
    absent = len(use.shapes) <= operand or use.shapes[operand] is None
    said = use.numbers(operand) is not None or use.option(name) is not None
    return default if absent and not said else use.known(operand, name)


def _picked(use: Use) -> Iterator[OperandPlaces]:
    """GATHER by known indices; several axes of them where the places are sums of one for each."""
    shape, onnx = use.shape(0), use.kind == "Gather"
    _need(not use.number("batch_dims") and len(shape) > 0)
    axis, given = use.number("axis") % len(shape), use.shapes[1] if len(use.shapes) > 1 else None
    indices = np.array(use.known(1), np.int64).reshape(-1 if given is None else given)
    picks = indices.shape
    if onnx:
        indices %= shape[axis]
    first, total, rows = int(indices.flat[0]), np.zeros(picks, np.int64), []
    for k in range(len(picks)):
        row = np.moveaxis(indices, k, 0).reshape(picks[k], -1)[:, 0] - first * (k > 0)
        rows.append(Along(axis + k, (_listed(row.tolist()),)))
        total += row.reshape([-1 if k == a else 1 for a in range(len(picks))])
    _need(not picks or bool((total == indices).all()))
    others = {a: _same(a if a < axis else a + len(picks) - 1, n) for a, n in enumerate(shape)}
    yield from _taken(use, [*({**others, axis: tuple(rows) or _fixed(first)}).values()])


def _padded(use: Use) -> Iterator[OperandPlaces]:
    """PAD and PADV2, pairs by axis; ONNX has all that come before the map first."""
    shape, onnx = use.shape(0), use.kind == "Pad"
    pads, rank = use.known(1, "pads", "paddings"), len(shape)
    _need(len(pads) == 2 * rank and (not onnx or use.option("mode") in (None, "constant") or not any(pads)))
    before, behind = (pads[:rank], pads[rank:]) if onnx else (pads[::2], pads[1::2])
    rows = enumerate(zip(shape, before, behind, strict=True))
    yield from _taken(use, [(Along(axis, (range(-a, n + b),)),) for axis, (n, a, b) in rows])


def _mirrored(use: Use) -> Iterator[OperandPlaces]:
    """MIRROR_PAD: beside the map what is before its border in reverse, with the border where it is symmetric (1)."""
    shape, pads, edge = use.shape(0), use.known(1), use.number("mode", -1)
    _need(len(pads) == 2 * len(shape) and edge in (0, 1))
    axes = []
    for axis, n in enumerate(shape):
        left, right = [*range(1 - edge, n)], [*range(n - 2 + edge, -1, -1)]
        before, behind = pads[2 * axis], pads[2 * axis + 1]
        _need(before <= len(left) and behind <= len(right))
        axes.append((Along(axis, (_listed([*left[:before][::-1], *range(n), *right[:behind]]),)),))
    yield from _taken(use, axes)


def _reversed(use: Use) -> Iterator[OperandPlaces]:
    """REVERSE_V2: the places of some axes from the last to the first."""
    shape = use.shape(0)
    turned = {axis % len(shape) for axis in use.known(1)}
    axes = _with(shape, {axis: (Along(axis, (range(shape[axis])[::-1],)),) for axis in turned})
    yield OperandPlaces(0, shape, axes)


def _joined(use: Use) -> Iterator[OperandPlaces]:
    """A concatenation: each operand that has elements behind the one before."""
    rank = len(use.shape(0))
    axis, start = use.number("axis") % max(rank, 1), 0
    shapes = [use.shape(k) for k in range(len(use.shapes))]
    given = [k for k, shape in enumerate(shapes) if 0 not in shape]
    if len(given) == 1 and prod(shapes[given[0]]) == prod(use.result):
        yield OperandPlaces(given[0], shapes[given[0]], _with(shapes[given[0]], {}), linear=True)
        return
    total = sum(shape[axis] for shape in shapes)
    for k, shape in enumerate(shapes):
        _need(shape[:axis] + shape[axis + 1 :] == shapes[0][:axis] + shapes[0][axis + 1 :])
        if 0 not in shape:
            yield OperandPlaces(k, shape, _with(shape, {axis: _run(axis, -start, total)}))
        start += shape[axis]


def _packed(use: Use) -> Iterator[OperandPlaces]:
    """PACK: each operand a place of a new axis."""
    result, count = use.result, len(use.shapes)
    axis = use.number("axis") % max(len(result), 1)
    for k in range(count):
        _need(use.shape(k) == result[:axis] + result[axis + 1 :])
        seen = (*result[:axis], 1, *result[axis + 1 :])
        yield OperandPlaces(k, seen, _with(seen, {axis: _run(axis, -k, count)}))


def _unpacked(use: Use) -> Iterator[OperandPlaces]:
    shape = use.shape(0)
    axis = use.number("axis") % len(shape)
    axes = [_same(a - (a > axis), n) for a, n in enumerate(shape)]
    axes[axis] = _fixed(use.output)
    yield from _taken(use, axes)


def _split(use: Use) -> Iterator[OperandPlaces]:
    """SPLIT has its axis first, SPLIT_V data, sizes, axis; ONNX has an option."""
    data, where = {"SPLIT": (1, 0), "SPLIT_V": (0, 2), "Split": (0, -1)}[use.kind]
    shape = use.shape(data)
    axis = (use.number("axis") if where < 0 else use.known(where)[0]) % len(shape)
    sizes = [result[axis] for result in use.results]
    _need(sum(sizes) == shape[axis])
    axes = _with(shape, {axis: _run(axis, sum(sizes[: use.output]), sizes[use.output])})
    yield from _taken(use, axes, data)


def _tiled(use: Use) -> Iterator[OperandPlaces]:
    shape, result = use.shape(0), use.result
    _need(len(shape) == len(result))
    copies = [len(range(0, own, n)) for n, own in zip(shape, result, strict=True)]
    _need(all(n * times == own for n, times, own in zip(shape, copies, result, strict=True)))
    _need(max(result, default=0) <= _MOST_LISTED)
    yield OperandPlaces(0, shape, tuple(
        (Along(axis, (range(n) if times == 1 else _listed([*range(n)] * times),)),)
        for axis, (n, times) in enumerate(zip(shape, copies, strict=True))
    ))  # fmt: skip


def _block_axes(use: Use) -> tuple[int, tuple[int, int, int]]:
    """The size of a block, and the axes of rows, columns and channels."""
    size = use.number("block_size") or use.number("blocksize")
    _need(size > 0 and len(use.shape(0)) == len(use.result) == 4 and max(use.shape(0)) * size <= _MOST_LISTED)
    return size, (1, 2, 3) if use.kind.isupper() else (2, 3, 1)


def _space_to_depth(use: Use) -> Iterator[OperandPlaces]:
    """Of a pixel of the result the channels are those of a block, pixel by pixel."""
    (size, (rows, columns, deep)), shape = _block_axes(use), use.shape(0)
    _need(shape[rows] % size == 0 == shape[columns] % size)
    pixels = [(i, j) for i in range(size) for j in range(size) for _ in range(shape[deep])]
    inside = {rows: [i for i, _ in pixels], columns: [j for _, j in pixels]}
    others: dict[int, _Rows] = {
        a: (Along(a, (range(0, shape[a], size),)), Along(deep, (_listed(inside[a]),))) for a in (rows, columns)
    }
    others[deep] = (Along(deep, (_listed([*range(shape[deep])] * size**2),)),)
    yield OperandPlaces(0, shape, _with(shape, others))


def _depth_to_space(use: Use) -> Iterator[OperandPlaces]:
    """A pixel of the operand is a block of the result, pixel by pixel its channels; ONNX may have them by channels."""
    (size, (rows, columns, deep)), shape = _block_axes(use), use.shape(0)
    _need(shape[deep] % size**2 == 0)
    count, by_channels = shape[deep] // size**2, use.option("mode") == "CRD"
    high, wide, step = (size, 1, size**2) if by_channels else (size * count, count, 1)
    others: dict[int, _Rows] = {
        a: (Along(a, (_listed([k for k in range(shape[a]) for _ in range(size)]),)),) for a in (rows, columns)
    }
    inside = [Along(a, (_listed([by * k for _ in range(shape[a]) for k in range(size)]),))
              for a, by in ((rows, high), (columns, wide))]  # fmt: skip
    others[deep] = (Along(deep, (range(0, count * step, step),)), *inside)
    yield OperandPlaces(0, shape, _with(shape, others))


def _to_batches(use: Use) -> Iterator[OperandPlaces]:
    """SPACE_TO_BATCH_ND without padding: a batch for each place in a block, and each of the batches there were."""
    shape, blocks = use.shape(0), use.known(1)
    _need(not any(use.known(2)) and len(use.result) == len(shape) > len(blocks) and max(use.result) <= _MOST_LISTED)
    batches = [divmod(b, shape[0]) for b in range(use.result[0])]
    axes: dict[int, _Rows] = {0: (Along(0, (_listed([n for _, n in batches]),)),)}
    for k, places in enumerate(_digits([place for place, _ in batches], blocks), 1):
        axes[k] = (Along(k, (range(0, shape[k], blocks[k - 1]),)), Along(0, (_listed(places),)))
    yield OperandPlaces(0, shape, _with(shape, axes))


def _from_batches(use: Use) -> Iterator[OperandPlaces]:
    """BATCH_TO_SPACE_ND without crops: each place of a block from the batches of its own."""
    shape, blocks, result = use.shape(0), use.known(1), use.result
    _need(not any(use.known(2)) and len(result) == len(shape) > len(blocks) and max(result) <= _MOST_LISTED)
    axes: dict[int, _Rows] = {0: (Along(0, (range(result[0]),)),)}
    for k, block in enumerate(blocks, 1):
        step = result[0] * prod(blocks[k:])
        axes[0] = (*axes[0], Along(k, (_listed([step * (y % block) for y in range(result[k])]),)))
        axes[k] = (Along(k, (_listed([y // block for y in range(result[k])]),)),)
    yield OperandPlaces(0, shape, _with(shape, axes))


def _digits(numbers: Sequence[int], bases: Sequence[int]) -> list[list[int]]:
    """The digits of numbers in bases, the first base that of the highest digit: a list for each."""
    steps = [prod(bases[k + 1 :]) for k in range(len(bases))]
    return [[number // step % base for number in numbers] for step, base in zip(steps, bases, strict=True)]


def taken_elements(reads: OperandPlaces, result: Shape) -> npt.NDArray[np.int64] | None:
    """For each element of a result the element of the operand that it is, -1 where it is none.

    None where it is made of several. Cost: O(elements).
    """
    if reads.linear:
        return np.arange(prod(result)).reshape(result)
    at, inside = np.zeros(result, np.int64), np.ones(result, np.bool_)
    for rows, extent, step in zip(reads.axes, reads.shape, strides(reads.shape), strict=True):
        if any(len(along.taps) != 1 for along in rows) or (not rows and extent > 1):
            return None
        place = np.zeros((1,) * len(result), np.int64)
        for along in rows:
            place = place + np.array(along.taps[0]).reshape([-1 if k == along.axis else 1 for k in range(len(result))])
        at += place * step
        inside &= (place >= 0) & (place < extent)
    return np.where(inside, at, -1)


_Rule = Callable[[Use], Iterator[OperandPlaces]]
#: Operators whose results are elements of operands as they are, as long as nothing is converted.
_MOVING: dict[str, _Rule] = {
    **dict.fromkeys((*RESHAPES, "STABLEHLO_RESHAPE"), _reshaped),
    **dict.fromkeys(("Transpose", "TRANSPOSE"), _permuted),
    "SLICE": _sliced,
    "STRIDED_SLICE": _strided,
    "Slice": _onnx_sliced,
    **dict.fromkeys(("Gather", "GATHER"), _picked),
    **dict.fromkeys(("Pad", *PADS), _padded),
    "MIRROR_PAD": _mirrored,
    **dict.fromkeys(("Expand", "BROADCAST_TO", "Cast", "CastLike", "CAST", "STABLEHLO_CONVERT"), _broadcast),
    **dict.fromkeys(("Tile", "TILE"), _tiled),
    **dict.fromkeys(("DepthToSpace", "DEPTH_TO_SPACE"), _depth_to_space),
    **dict.fromkeys(("SpaceToDepth", "SPACE_TO_DEPTH"), _space_to_depth),
    "SPACE_TO_BATCH_ND": _to_batches,
    "BATCH_TO_SPACE_ND": _from_batches,
    **dict.fromkeys(CONCATENATIONS, _joined),
    "PACK": _packed,
    **dict.fromkeys(SPLITS - {"UNPACK"}, _split),
    "UNPACK": _unpacked,
    "REVERSE_V2": _reversed,
}
_REDUCING = {"ReduceSum", "ReduceMean", "ReduceMax", "ReduceMin", "ReduceProd",
             "MEAN", "SUM", "REDUCE_PROD", "REDUCE_MAX", "REDUCE_MIN"}  # fmt: skip
_RULES: dict[str, _Rule] = {
    **dict.fromkeys(POINTWISE, _pointwise),
    **_MOVING,
    **dict.fromkeys((*_REDUCING, "ARG_MAX", "ARG_MIN"), _reduced),
    "CONV_2D": _convolution,
    "DEPTHWISE_CONV_2D": _depthwise,
    **dict.fromkeys(("MAX_POOL_2D", "AVERAGE_POOL_2D", "L2_POOL_2D"), _pool),
    "TRANSPOSE_CONV": _transposed_convolution,
    **dict.fromkeys(("RESIZE_NEAREST_NEIGHBOR", "RESIZE_BILINEAR"), _resized),
    **dict.fromkeys(("SOFTMAX", "LOG_SOFTMAX", "L2_NORMALIZATION"), _along_last),
    "FULLY_CONNECTED": _connected,
    "BATCH_MATMUL": _multiplied,
}
#: Operators whose results are elements of operands, one place each, where a reduction only drops axes of one place.
MOVERS = frozenset(_MOVING)
MOVING = MOVERS | _REDUCING
#: Operands that only say which places are read.
STEERING = {
    "RESHAPE": {1}, "SQUEEZE": set[int](), "EXPAND_DIMS": {1}, "TRANSPOSE": {1}, "TRANSPOSE_CONV": {0}, "SLICE": {1, 2},
    "STRIDED_SLICE": {1, 2, 3}, "GATHER": {1}, "PAD": {1}, "PADV2": {1}, "MIRROR_PAD": {1}, "SPLIT": {0},
    "SPLIT_V": {1, 2}, "BROADCAST_TO": {1}, "TILE": {1}, "RESIZE_NEAREST_NEIGHBOR": {1}, "RESIZE_BILINEAR": {1},
    "MEAN": {1}, "SUM": {1}, "REDUCE_PROD": {1}, "REDUCE_MAX": {1}, "REDUCE_MIN": {1},
    "SPACE_TO_BATCH_ND": {1, 2}, "BATCH_TO_SPACE_ND": {1, 2}, "REVERSE_V2": {1}, "ARG_MAX": {1}, "ARG_MIN": {1},
}  # fmt: skip

"""What each row of an operator's output is made of, axis by axis, from the kernel's own formulas.

A *spread* gives for each axis of the output the window behind each index; what does not depend on the index (weights,
channels that are summed over) is in `rest` and must be the same in both files.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from math import prod

import numpy as np

from modelplan.checking.verifier.rewrites.contents import (
    EDGE,
    Axis,
    Content,
    Window,
    channel_mark,
    each_row,
    padding,
    weight,
)
from modelplan.checking.verifier.rewrites.reading import Cell, Coding, Operation
from modelplan.checking.verifier.semantics import POINTWISE

_SAME = 0
#: Options that a window cannot do without.
_AT_LEAST_ONE = ("StrideH", "StrideW", "DilationHFactor", "DilationWFactor", "FilterHeight", "FilterWidth")
#: Rows that a stride or a window may reach over.
_MOST = 1 << 16
#: Options that only say which windows are read, or what the shape of the output says; a dilation says nothing of a
#: kernel of one row or column.
_WINDOW_OPTIONS = {
    "Padding", "DilationHFactor", "DilationWFactor", "NewShapeAsNumpy", "NewShapeLength", "NewShapeIsNone"
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class WindowOperand:
    """An operand as an operator reads it."""

    cell: Cell
    content: Content


@dataclass(frozen=True, slots=True)
class WindowSpread:
    """For each axis of the output the window of each index, and what all of them depend on."""

    axes: tuple[tuple[Window, ...], ...]
    rest: tuple[tuple[str, Hashable], ...]


#: Axes of an operand that become axes of an output.
AxisGroups = list[tuple[tuple[int, ...], tuple[int, ...]]]
#: Operands (None where absent), output.
Rule = Callable[[Operation, Sequence["WindowOperand | None"], Cell], "WindowSpread | None"]


def spread_of(op: Operation, operands: Sequence[WindowOperand | None], output: Cell) -> WindowSpread | None:
    """How the output depends on the operands' rows; None for an operator that the proof does not know.

    Cost: O(extents of the output x kernel).
    """
    rule = _RULES.get(op.kind)
    odd = any(not 1 <= op.option(name, 1) <= _MOST for name in _AT_LEAST_ONE) or not operands or operands[0] is None
    spread = rule(op, operands, output) if rule and not odd else None
    if spread is not None:
        return spread
    if rule is None and op.kind not in _WHOLE:
        return None
    return _whole(op, operands, output)


def places_read(
    op: Operation, operands: Sequence[Cell], data: int, output: Cell
) -> tuple[tuple[Window, ...], ...] | None:
    """For each index along batch, rows and columns of the output the places of operand `data` that it reads.

    Places that are none of the operand's stand for its borders. None where this is not known; all channels are read.
    """
    rule, x = _RULES.get(op.kind), operands[data]
    if rule is None or len(x.shape) != 4 or not all(1 <= op.option(name, 1) <= _MOST for name in _AT_LEAST_ONE):
        return None
    placed = [WindowOperand(cell, Content(0, tuple(tuple(range(n)) for n in cell.shape))) for cell in operands]
    spread = rule(op, placed, output)
    return None if spread is None or len(spread.axes) != 4 else spread.axes[:3]


def _whole(op: Operation, operands: Sequence[WindowOperand | None], output: Cell) -> WindowSpread:
    """The spread of an operator that is treated whole: equal only if all operands and options are."""
    rest = tuple((f"operand {i}", _everything(x)) for i, x in enumerate(operands))
    options = tuple((f"option {name}", value) for name, value in op.options if name in _WINDOW_OPTIONS)
    return WindowSpread(tuple(each_row(n) for n in output.shape), (*rest, *options, ("shape", output.shape)))


def _everything(x: WindowOperand | None) -> Hashable:
    return None if x is None else (x.content.base, x.cell.coding, x.content.axes)


def _without(x: WindowOperand, axes: Sequence[int]) -> Hashable:
    """An operand's content along the axes that no window describes."""
    return (x.content.base, x.cell.coding, tuple(a for i, a in enumerate(x.content.axes) if i not in axes))


def _gathered_blocks(op: Operation, operands: Sequence[WindowOperand | None], output: Cell) -> WindowSpread | None:
    """SPACE_TO_DEPTH: a row of blocks is made of all rows of these, each in its place."""
    x, size = operands[0], op.option("BlockSize")
    if x is None or len(x.content.axes) != 4 or size < 1 or any(len(axis) % size for axis in x.content.axes[1:3]):
        return None
    batch, *both = x.content.axes[:3]
    axes = (tuple(axis[i : i + size] for i in range(0, len(axis), size)) for axis in both)
    spread = (tuple((s,) for s in batch), *axes, each_row(output.shape[-1]))
    return WindowSpread(spread, (("operand 0", _without(x, (0, 1, 2))),))


def _scattered_blocks(op: Operation, operands: Sequence[WindowOperand | None], output: Cell) -> WindowSpread | None:
    """DEPTH_TO_SPACE: each row of a block is made of one row, by the channels of its place in the block."""
    x, size = operands[0], op.option("BlockSize")
    if x is None or len(x.content.axes) != 4 or size < 1:
        return None
    batch, *both = x.content.axes[:3]
    places = [(EDGE,) * k for k in range(size)]
    axes = (tuple((*places[k], s, *places[size - 1 - k]) for s in axis for k in range(size)) for axis in both)
    spread = (tuple((s,) for s in batch), *axes, each_row(output.shape[-1]))
    return WindowSpread(spread, (("operand 0", _without(x, (0, 1, 2))),))


@dataclass(frozen=True, slots=True)
class Reach:
    """The window of a kernel along one axis: `zero` is the padding that counts as beyond the border, or None."""

    stride: int
    dilation: int
    kernel: int
    same: bool
    zero: int | None


@lru_cache(maxsize=8192)
def _windows(reach: Reach, axis: Axis) -> tuple[Window, ...]:
    """The symbols that each output index reads, in the order of the kernel's taps."""
    extent = (reach.kernel - 1) * reach.dilation + 1
    rows = -(-len(axis) // reach.stride) if reach.same else (len(axis) - extent) // reach.stride + 1
    before = max((rows - 1) * reach.stride + extent - len(axis), 0) // 2 if reach.same else 0
    edge = None if reach.zero is None else padding(reach.zero)
    read = tuple(EDGE if symbol == edge else symbol for symbol in axis)
    return tuple(
        tuple(
            read[at] if 0 <= (at := row * reach.stride - before + tap * reach.dilation) < len(axis) else EDGE
            for tap in range(reach.kernel)
        )
        for row in range(rows)
    )


def _convolution(op: Operation, operands: Sequence[WindowOperand | None], output: Cell) -> WindowSpread | None:
    """CONV_2D and DEPTHWISE_CONV_2D: what is beyond the border counts as 0, like padding with the zero point."""
    x, weights = operands[0], operands[1] if len(operands) > 1 else None
    if x is None or weights is None or len(x.content.axes) != 4 or len(weights.cell.shape) != 4:
        return None
    reaches = [
        Reach(
            op.option(f"Stride{'HW'[a]}", 1), op.option(f"Dilation{'HW'[a]}Factor", 1), weights.cell.shape[1 + a],
            op.option("Padding") == _SAME, x.cell.coding.zero,
        )
        for a in (0, 1)
    ]  # fmt: skip
    channels, weighed = _weighed_channels(op, operands, output)
    steps = tuple((f"option Dilation{'HW'[a]}Factor", r.dilation if r.kernel > 1 else 1) for a, r in enumerate(reaches))
    own = bool(channels) and len(channels[0]) > 1
    rest = (("operand 0", _without(x, (0, 1, 2, 3) if own else (0, 1, 2))), *steps, *weighed)
    return _over_map(x, reaches, channels, rest)


def _weighed_channels(
    op: Operation, operands: Sequence[WindowOperand | None], output: Cell
) -> tuple[tuple[Window, ...], tuple[tuple[str, Hashable], ...]]:
    """What each output channel of a convolution is made of, and what all of them depend on beside operand 0.

    A channel is told by its weights, bias and scale; before it a depthwise convolution reads one of operand 0.
    """
    depthwise, channels = op.kind == "DEPTHWISE_CONV_2D", output.shape[-1]
    x, *constants = operands
    cells = [(y.cell, 3 * depthwise if i == 0 else 0) for i, y in enumerate(constants) if y is not None]
    parts = [_channel_bytes(cell.data, cell.shape, cell.coding, axis) for cell, axis in cells]
    if x is None or any(marks is None or len(marks) != channels for marks in parts):
        return each_row(channels), _others(operands, 1)
    rest = []
    for i, (cell, axis) in enumerate(cells, 1):
        coding = replace(cell.coding, scales=(), zero_points=()) if len(cell.coding.scales) > 1 else cell.coding
        rest.append((f"operand {i}", (coding, cell.shape[:axis], cell.shape[axis + 1 :])))
    marks = [channel_mark(b"".join(m[c] for m in parts if m)) for c in range(channels)]
    if depthwise and x.content.shape[3] == channels:
        return tuple((s, mark) for s, mark in zip(x.content.axes[3], marks, strict=True)), tuple(rest)
    return tuple((mark,) for mark in marks), tuple(rest)


@lru_cache(maxsize=256)
def _channel_bytes(data: bytes | None, shape: tuple[int, ...], coding: Coding, axis: int) -> tuple[bytes, ...] | None:
    """For each index along an axis of a constant what it holds there, with the scale there; None where not known."""
    if data is None or len(shape) <= axis or not prod(shape) or len(data) % prod(shape):
        return None
    extent = shape[axis]
    several = [tuple(part) for part in (coding.scales, coding.zero_points) if len(part) > 1]
    if any(len(part) != extent for part in several):
        return None
    elements = np.moveaxis(np.frombuffer(data, np.uint8).reshape(*shape, -1), axis, 0)
    return tuple(elements[c].tobytes() + repr([part[c] for part in several]).encode() for c in range(extent))


def _pool(op: Operation, operands: Sequence[WindowOperand | None], _output: Cell) -> WindowSpread | None:
    """Pools: what is beyond the border is not counted, unlike padding."""
    x = operands[0]
    if x is None or len(x.content.axes) != 4:
        return None
    sizes = op.option("FilterHeight"), op.option("FilterWidth")
    same = op.option("Padding") == _SAME
    reaches = [Reach(op.option(f"Stride{'HW'[a]}", 1), 1, sizes[a], same, None) for a in (0, 1)]
    channels = tuple((s,) for s in x.content.axes[3])
    return _over_map(x, reaches, channels, (("operand 0", _without(x, (0, 1, 2, 3))),))


def _over_map(
    x: WindowOperand, reaches: Sequence[Reach], channels: tuple[Window, ...], rest: tuple[tuple[str, Hashable], ...]
) -> WindowSpread:
    batch, rows, columns = x.content.axes[:3]
    axes = (tuple((s,) for s in batch), _windows(reaches[0], rows), _windows(reaches[1], columns), channels)
    return WindowSpread(axes, rest)


def _others(operands: Sequence[WindowOperand | None], first: int) -> tuple[tuple[str, Hashable], ...]:
    return tuple((f"operand {i}", _everything(x)) for i, x in enumerate(operands) if i >= first)


def _transposed_convolution(
    op: Operation, operands: Sequence[WindowOperand | None], output: Cell
) -> WindowSpread | None:
    """TRANSPOSE_CONV, of shape, weights and data: row r takes what tap k of row (r + p - k) / s adds.

    Source: tflite-micro's transpose_conv: the padding is that of a convolution from the output back to the operand.
    """
    weights, x = operands[1:3] if len(operands) > 2 else (None, None)
    if x is None or weights is None or len(x.content.axes) != 4 or len(weights.cell.shape) != 4:
        return None
    axes: list[tuple[Window, ...]] = [tuple((s,) for s in x.content.axes[0])]
    for a in (0, 1):
        stride, taps, extent = op.option(f"Stride{'HW'[a]}", 1), weights.cell.shape[1 + a], output.shape[1 + a]
        same = op.option("Padding") == _SAME
        outside = -(-extent // stride) if same else (extent - taps) // stride + 1
        before = max((outside - 1) * stride + taps - extent, 0) // 2
        axes.append(_scattered(x.content.axes[1 + a], stride, taps, extent, before))
    axes.append(each_row(output.shape[3]))
    rest = (("operand 2", _without(x, (0, 1, 2))), ("operand 1", _everything(weights)), *_others(operands, 3))
    return WindowSpread(tuple(axes), rest)


@lru_cache(maxsize=4096)
def _scattered(axis: Axis, stride: int, taps: int, rows: int, before: int) -> tuple[Window, ...]:
    def tap(row: int, k: int) -> int:
        at, rest = divmod(row + before - k, stride)
        return axis[at] if not rest and 0 <= at < len(axis) else EDGE

    return tuple(tuple(tap(row, k) for k in range(taps)) for row in range(rows))


def _pointwise(_op: Operation, operands: Sequence[WindowOperand | None], output: Cell) -> WindowSpread | None:
    """Element by element, operands of extent 1 repeated."""
    present = [x for x in operands if x is not None]
    if any(len(cell.coding.scales) > 1 for cell in (output, *(x.cell for x in present))):
        return None  # scaled by index along an axis, so rows of other indices are no equals
    rank = max(len(x.content.axes) for x in present)
    columns: list[list[Axis]] = [[] for _ in range(rank)]
    for x in present:
        missing = rank - len(x.content.axes)
        for a in range(rank):
            columns[a].append(x.content.axes[a - missing] if a >= missing else (0,))
    if any(len({len(axis) for axis in axes} - {1}) > 1 for axes in columns):
        return None
    rest = tuple((f"operand {i}", x and (x.content.base, x.cell.coding)) for i, x in enumerate(operands))
    return WindowSpread(tuple(_combined(tuple(axes)) for axes in columns), rest)


@lru_cache(maxsize=8192)
def _combined(axes: tuple[Axis, ...]) -> tuple[Window, ...]:
    extent = max(len(axis) for axis in axes)
    return tuple(tuple(axis[i if len(axis) > 1 else 0] for axis in axes) for i in range(extent))


def _along_last(_op: Operation, operands: Sequence[WindowOperand | None], output: Cell) -> WindowSpread | None:
    """Operators that look at all elements along the last axis, for each other index by itself."""
    x = operands[0]
    if x is None or len(x.content.axes) != len(output.shape) or not output.shape:
        return None
    last = len(output.shape) - 1
    axes = (*(tuple((s,) for s in axis) for axis in x.content.axes[:-1]), each_row(output.shape[-1]))
    return WindowSpread(axes, (("operand 0", _without(x, range(last))), *_others(operands, 1)))


def _joined(op: Operation, operands: Sequence[WindowOperand | None], output: Cell) -> WindowSpread | None:
    """CONCATENATION of different maps: along the joined axis all of them, along the others index by index."""
    rank = len(output.shape)
    joined = op.option("Axis") % rank if rank else 0
    present = [x for x in operands if x is not None]
    if len(present) != len(operands) or any(len(x.content.axes) != rank for x in present) or not rank:
        return None
    others = [a for a in range(rank) if a != joined]
    if any(x.content.shape[a] != present[0].content.shape[a] for x in present for a in others):
        return None
    axes = tuple(
        each_row(output.shape[a]) if a == joined else _combined(tuple(x.content.axes[a] for x in present))
        for a in range(rank)
    )
    return WindowSpread(axes, tuple((f"operand {i}", _without(x, others)) for i, x in enumerate(present)))


def _packed(op: Operation, operands: Sequence[WindowOperand | None], output: Cell) -> WindowSpread | None:
    """PACK: along the new axis all of its operands, along the others index by index."""
    rank = len(output.shape)
    new = op.option("Axis") % rank if rank else 0
    present = [x for x in operands if x is not None]
    if not rank or any(x.content.shape != (*output.shape[:new], *output.shape[new + 1 :]) for x in present):
        return None
    axes = [_combined(tuple(x.content.axes[a] for x in present)) for a in range(rank - 1)]
    axes.insert(new, each_row(output.shape[new]))
    return WindowSpread(tuple(axes), tuple((f"operand {i}", _without(x, range(rank))) for i, x in enumerate(present)))


def _multiplied(_op: Operation, operands: Sequence[WindowOperand | None], output: Cell) -> WindowSpread | None:
    """BATCH_MATMUL: matrix by matrix, each made of those at the same place as a whole."""
    rank, present = len(output.shape), [x for x in operands if x is not None]
    if len(present) != len(operands) or any(x.content.shape[:-2] != output.shape[:-2] for x in present) or rank < 2:
        return None
    batch = range(rank - 2)
    axes = [_combined(tuple(x.content.axes[a] for x in present)) for a in batch]
    rest = tuple((f"operand {i}", _without(x, batch)) for i, x in enumerate(present))
    return WindowSpread((*axes, *(each_row(n) for n in output.shape[-2:])), rest)


def _connected(op: Operation, operands: Sequence[WindowOperand | None], output: Cell) -> WindowSpread | None:
    """FULLY_CONNECTED that keeps the axes of its operand: all along the last one, for each other index by itself."""
    x = operands[0]
    if x is None or len(output.shape) < 2 or x.content.shape[:-1] != output.shape[:-1]:
        return None
    return _along_last(op, operands, output)


def _averaged(_op: Operation, operands: Sequence[WindowOperand | None], output: Cell) -> WindowSpread | None:
    """MEAN over axes but the last one: for each other index by itself."""
    x, over = operands[0], operands[1] if len(operands) > 1 else None
    if x is None or over is None or over.cell.data is None or over.cell.coding.dtype != "int32":
        return None
    rank = len(x.content.axes)
    gone = {int(a) % rank for a in np.frombuffer(over.cell.data, np.int32)} if rank else set()
    if len(x.cell.coding.scales) > 1 or rank - 1 in gone or len(output.shape) not in (rank, rank - len(gone)):
        return None
    kept = [((0,),) if a in gone else tuple((s,) for s in axis) for a, axis in enumerate(x.content.axes)
            if len(output.shape) == rank or a not in gone]  # fmt: skip
    return WindowSpread(tuple(kept), (("operand 0", _without(x, [a for a in range(rank) if a not in gone])),
                                      ("operand 1", tuple(sorted(gone)))))  # fmt: skip


def _permuted(_op: Operation, operands: Sequence[WindowOperand | None], _output: Cell) -> WindowSpread | None:
    """TRANSPOSE by a constant permutation."""
    x, order = operands[0], operands[1] if len(operands) > 1 else None
    if x is None or order is None or order.cell.data is None or order.cell.coding.dtype != "int32":
        return None
    axes = [int(a) for a in np.frombuffer(order.cell.data, np.int32)]
    if sorted(axes) != list(range(len(x.content.axes))):
        return None
    read = tuple(tuple((s,) for s in x.content.axes[a]) for a in axes)
    return WindowSpread(read, (("operand 0", _without(x, range(len(axes)))), ("permutation", tuple(axes))))


def _reshaped(op: Operation, operands: Sequence[WindowOperand | None], output: Cell) -> WindowSpread | None:
    """RESHAPE: an axis that it leaves alone goes index by index, all others must be the same."""
    x, groups, shape = operands[0], reshaped_groups(op, [y.cell if y else None for y in operands], output), output.shape
    if x is None or groups is None:
        return None
    spread, rest = [each_row(n) for n in shape], list[Hashable]()
    for before, behind in groups:
        if len(before) == len(behind) == 1:
            spread[behind[0]] = tuple((s,) for s in x.content.axes[before[0]])
            rest.append((before, behind))
        else:
            rest.append((before, behind, tuple(x.content.axes[a] for a in before), tuple(shape[a] for a in behind)))
    return WindowSpread(tuple(spread), (("operand 0", (x.content.base, x.cell.coding, tuple(rest))),))


def reshaped_groups(op: Operation, operands: Sequence[Cell | None], output: Cell) -> AxisGroups | None:
    """The axes of operand and output of a RESHAPE in groups of as many elements; None where its shape is not known."""
    x, shape = operands[0], operands[1] if len(operands) > 1 else None
    said = _stated_shape(op) if shape is None else np.frombuffer(shape.data or b"", np.int32).tolist()
    if x is None or len(said) != len(output.shape) or prod(x.shape) != prod(output.shape):
        return None
    if any(n not in (-1, own) for n, own in zip(said, output.shape, strict=True)):
        return None
    return _regrouped(x.shape, output.shape)


def _stated_shape(op: Operation) -> list[int]:
    """The shape in the options of a RESHAPE; empty where there is none."""
    shape = dict(op.options).get("NewShapeAsNumpy")
    return [int(n) for n in shape] if isinstance(shape, tuple) else []


def _regrouped(x: Sequence[int], y: Sequence[int]) -> AxisGroups:
    """The axes of two shapes in as many groups as hold equal numbers of elements, those left over in the last one."""
    groups, (i, j) = AxisGroups(), (0, 0)
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


def _resized(op: Operation, operands: Sequence[WindowOperand | None], output: Cell) -> WindowSpread | None:
    x, nearest = operands[0], op.kind == "RESIZE_NEAREST_NEIGHBOR"
    if x is None or len(x.content.axes) != 4 or len(output.shape) != 4:
        return None
    if not nearest and x.cell.coding.dtype != "int8":
        return None
    rows = _nearest_rows if nearest else _weighed_rows
    corners, half = bool(op.option("AlignCorners")), bool(op.option("HalfPixelCenters"))
    batch, high, wide, channels = x.content.axes
    spread = [rows(high, output.shape[1], corners, half), rows(wide, output.shape[2], corners, half)]
    axes = (tuple((s,) for s in batch), *spread, tuple((s,) for s in channels))
    return WindowSpread(axes, (("operand 0", _without(x, (0, 1, 2, 3))),))


@lru_cache(maxsize=1024)
def _nearest_rows(axis: Axis, rows: int, corners: bool, half: bool) -> tuple[Window, ...]:  # noqa: FBT001
    """RESIZE_NEAREST_NEIGHBOR in the kernel's single precision."""
    single, extent = np.float32, len(axis)
    between = corners and rows > 1
    scale = single(extent - 1) / single(rows - 1) if between else single(extent) / single(rows)
    places = [(single(i) + single(0.5 if half else 0)) * scale for i in range(rows)]
    rounded = [int(np.floor(p + single(0.5))) if corners else int(np.floor(p)) for p in places]
    return tuple((axis[max(min(at, extent - 1), 0)],) for at in rounded)


@lru_cache(maxsize=1024)
def _weighed_rows(axis: Axis, rows: int, corners: bool, half: bool) -> tuple[Window, ...]:  # noqa: FBT001
    """RESIZE_BILINEAR: two rows and the weight between them, in the kernel's arithmetic."""
    extent = len(axis)
    top, bottom = (extent - 1, rows - 1) if corners and rows > 1 else (extent, rows)
    scale = ((top << 10) + bottom // 2) // bottom
    windows = []
    for i in range(rows):
        scaled = i * scale + (scale // 2 - (1 << 9) if half else 0)
        low = max(int(scaled / (1 << 10)), 0)
        high = min(int((scaled + (1 << 10) - 1) / (1 << 10)), extent - 1)
        windows.append((axis[low], axis[high], weight(scaled - (low << 10))))
    return tuple(windows)


_RULES: dict[str, Rule] = {
    **dict.fromkeys(POINTWISE, _pointwise),
    **dict.fromkeys(("CONV_2D", "DEPTHWISE_CONV_2D"), _convolution),
    **dict.fromkeys(("MAX_POOL_2D", "AVERAGE_POOL_2D", "L2_POOL_2D"), _pool),
    **dict.fromkeys(("SOFTMAX", "LOG_SOFTMAX", "L2_NORMALIZATION"), _along_last),
    "TRANSPOSE_CONV": _transposed_convolution,
    "SPACE_TO_DEPTH": _gathered_blocks,
    "DEPTH_TO_SPACE": _scattered_blocks,
    "CONCATENATION": _joined,
    "PACK": _packed,
    "MEAN": _averaged,
    "BATCH_MATMUL": _multiplied,
    "FULLY_CONNECTED": _connected,
    "TRANSPOSE": _permuted,
    "RESHAPE": _reshaped,
    "RESIZE_NEAREST_NEIGHBOR": _resized,
    "RESIZE_BILINEAR": _resized,
}
#: Pure functions of their operands whose rows are not followed: they must have the same operands in both files.
_WHOLE = {
    "SQUEEZE", "EXPAND_DIMS", "SUM", "REDUCE_MAX", "REDUCE_MIN", "REDUCE_PROD",
    "REDUCE_ANY", "REDUCE_ALL", "ARG_MAX", "ARG_MIN",
    "SPACE_TO_BATCH_ND", "BATCH_TO_SPACE_ND", "UNPACK", "SPLIT", "SPLIT_V", "SLICE", "STRIDED_SLICE", "GATHER",
    "GATHER_ND", "TILE", "BROADCAST_TO", "BROADCAST_ARGS", "MIRROR_PAD", "PAD", "PADV2", "CUMSUM", "SHAPE", "RANK",
    "FILL", "CONV_3D", "CONV_3D_TRANSPOSE", "DYNAMIC_UPDATE_SLICE", "EMBEDDING_LOOKUP", "TOPK_V2", "ONE_HOT", "RANGE",
    "REVERSE_V2", "REVERSE_SEQUENCE", "SCATTER_ND", "SEGMENT_SUM", "SPARSE_TO_DENSE", "WHERE",
    "LOCAL_RESPONSE_NORMALIZATION", "MATRIX_DIAG", "MATRIX_SET_DIAG",
}  # fmt: skip


def same_in_both(op: Operation) -> tuple[tuple[str, Hashable], ...]:
    """The options of an operator that both files must agree on: all that its windows do not express."""
    windowed = op.kind in _RULES
    return tuple((name, value) for name, value in op.options if not (windowed and name in _WINDOW_OPTIONS))

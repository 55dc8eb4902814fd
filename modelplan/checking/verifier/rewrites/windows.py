"""What each row of an operator's output is made of, axis by axis, from the places that the kernel reads.

A *spread* gives for each axis of the output the window behind each index: what stands in the operands at these places.
What does not depend on the index (weights, channels that are summed over) is in `rest` and must be the same in both
files.
"""

from collections.abc import Hashable, Sequence
from dataclasses import replace
from functools import lru_cache
from itertools import chain, product
from math import prod

import numpy as np

from modelplan.checking.verifier.places import (
    STEERING,
    OperandPlaces,
    Places,
    grouped_axes,
    is_known,
    places_read,
)
from modelplan.checking.verifier.rewrites.contents import (
    EDGE,
    Axis,
    Window,
    channel_mark,
    each_row,
    offset,
    padding,
    weight,
)
from modelplan.checking.verifier.rewrites.moving import Given
from modelplan.checking.verifier.rewrites.reading import Cell, Coding, Operation, use_of_operation
from modelplan.primitives.lazy_records import dataclass

#: Options that a window cannot do without.
_AT_LEAST_ONE = ("StrideH", "StrideW", "DilationHFactor", "DilationWFactor", "FilterHeight", "FilterWidth")
#: Rows that a stride or a window may reach over.
_MOST = 1 << 16
#: Options that only say which windows are read, or what the shape of the output says; a dilation says nothing of a
#: kernel of one row or column.
_WINDOW_OPTIONS = {
    "Padding", "DilationHFactor", "DilationWFactor", "NewShapeAsNumpy", "NewShapeLength", "NewShapeIsNone"
}  # fmt: skip
_CONVOLUTIONS = {"CONV_2D", "DEPTHWISE_CONV_2D"}
#: Axes of an operand that become axes of an output.
AxisGroups = list[tuple[tuple[int, ...], tuple[int, ...]]]


@dataclass(frozen=True, slots=True)
class WindowSpread:
    """For each axis of the output the window of each index, and what all of them depend on."""

    axes: tuple[tuple[Window, ...], ...]
    rest: tuple[tuple[str, Hashable], ...]


def spread_of(
    op: Operation, operands: Sequence[Given | None], outputs: Sequence[Cell], position: int = 0
) -> WindowSpread | None:
    """How an output depends on the operands' rows; None for an operator that the proof does not know.

    Cost: O(extents of the output x kernel).
    """
    reads = _followed(op, operands, outputs, position)
    if reads is not None:
        return _spread(op, operands, reads, outputs[position])
    return _whole(op, operands, outputs[position]) if is_known(op.kind) or op.kind in _WHOLE else None


def _followed(
    op: Operation, operands: Sequence[Given | None], outputs: Sequence[Cell], position: int
) -> dict[int, OperandPlaces] | None:
    """What is read of operands whose rows are followed; None where the operator is treated whole."""
    cells = [x.cell if x else None for x in operands]
    if not cells or any(not 1 <= op.option(name, 1) <= _MOST for name in _AT_LEAST_ONE):
        return None
    if op.kind == "RESHAPE" and reshaped_groups(op, cells, outputs[position]) is None:
        return None
    known = places_read(use_of_operation(op, cells, outputs, position))
    reads = {read.operand: read for read in known or ()}
    followed = (outputs[position], *(cell for k in reads if (cell := cells[k])))
    if any(len(cell.coding.scales) > 1 for cell in followed):
        return None  # scaled by index along an axis, so rows of other indices are no equals
    rank = len(outputs[position].shape)
    fits = all(_seen(operands[k], read) is not None for k, read in reads.items())
    fits = fits and all(along.axis < rank for read in reads.values() for rows in read.axes for along in rows)
    return reads if reads and fits else None


def _spread(
    op: Operation, operands: Sequence[Given | None], known: dict[int, OperandPlaces], output: Cell
) -> WindowSpread:
    """What stands in the operands at the places that are read, by the axes of the output."""
    parts, rest = [list[tuple[Window, ...]]() for _ in output.shape], list[tuple[str, Hashable]]()
    weighs = op.kind in _CONVOLUTIONS
    for k, x in enumerate(operands):
        reads = known.get(k)
        if reads is None or x is None:
            if k not in STEERING.get(op.kind, ()) and not (weighs and k):
                rest.append((f"operand {k}", _everything(x)))
            continue
        edge = padding(x.cell.coding.zero) if weighs else None  # what is beyond the border counts as 0
        structure = _add_windows(parts, reads, _seen(x, reads) or (), edge)
        rest.append((f"operand {k}", (x.content.base, x.cell.coding, structure)))
    if weighs:
        channels, weighed = _weighed_channels(op, operands, output)
        parts[3].append(channels)
        rest += [*_dilations(op, known[0]), *weighed]
    free = tuple(n for n, windows in zip(output.shape, parts, strict=True) if not windows)
    axes = (_combined(tuple(windows)) if windows else each_row(n)
            for n, windows in zip(output.shape, parts, strict=True))  # fmt: skip
    return WindowSpread(tuple(axes), (*rest, ("shape", free)))


def _add_windows(
    parts: Sequence[list[tuple[Window, ...]]], reads: OperandPlaces, axes: Sequence[Axis], edge: int | None
) -> Hashable:
    """Adds what is read of an operand to the windows; returns how, and what they do not say.

    Of several rows of places along an axis the first is followed, together with all sums of the others.
    """
    structure = list[Hashable]()
    for symbols, alongs in zip(axes, reads.axes, strict=True):
        if not alongs or alongs[0].axis < 0:
            structure.append(symbols if not alongs else symbols[alongs[0].taps[0][0]])
            continue
        structure.append(tuple(along.axis for along in alongs))
        first, *others = alongs
        steps = tuple(sorted({sum(row) for row in product(*(set(other.taps[0]) for other in others))}))
        parts[first.axis].append(_windows(first.taps, symbols, steps, edge))
        for other in others:
            parts[other.axis].append(tuple((offset(step),) for step in other.taps[0]))
    for axis, shares in reads.weights:
        parts[axis].append(tuple((weight(share),) for share in shares))
    return tuple(structure)


@lru_cache(maxsize=8192)
def _windows(taps: tuple[Places, ...], symbols: Axis, steps: tuple[int, ...], edge: int | None) -> tuple[Window, ...]:
    """The symbols that each output index reads, in the order of the kernel's taps."""
    held = tuple(EDGE if symbol == edge else symbol for symbol in symbols)
    extent = len(held)
    if steps == (0,):
        rows = ([held[at] if 0 <= at < extent else EDGE for at in tap] for tap in taps)
    else:
        rows = ([held[at + step] for at in tap] for tap in taps for step in steps)
    return tuple(zip(*rows, strict=True))


@lru_cache(maxsize=8192)
def _combined(parts: tuple[tuple[Window, ...], ...]) -> tuple[Window, ...]:
    return parts[0] if len(parts) == 1 else tuple(tuple(chain(*row)) for row in zip(*parts, strict=True))


def _seen(x: Given | None, reads: OperandPlaces) -> tuple[Axis, ...] | None:
    """The symbols of an operand along its axes as the kernel sees them; None where that is another grouping."""
    if x is None or x.content.shape == reads.shape:
        return x.content.axes if x else None
    axes, symbols = list[Axis](), list(x.content.axes)
    for extent in reads.shape:
        fits = symbols and len(symbols[0]) == extent
        if not fits and extent != 1:
            return None
        axes.append(symbols.pop(0) if fits else (0,))
    return None if symbols else tuple(axes)


def _dilations(op: Operation, reads: OperandPlaces) -> list[tuple[str, Hashable]]:
    return [
        (name, op.option(name.removeprefix("option "), 1) if len(reads.axes[axis][0].taps) > 1 else 1)
        for axis, name in ((1, "option DilationHFactor"), (2, "option DilationWFactor"))
    ]


def _weighed_channels(
    op: Operation, operands: Sequence[Given | None], output: Cell
) -> tuple[tuple[Window, ...], tuple[tuple[str, Hashable], ...]]:
    """The mark of each output channel of a convolution, told by its weights, bias and scale, and what all depend on."""
    constants = tuple(y.cell for y in operands[1:] if y is not None)
    weighed = _channels_of(op.kind == "DEPTHWISE_CONV_2D", constants, output.shape[-1])
    everything = tuple((f"operand {i}", _everything(x)) for i, x in enumerate(operands) if i)
    return weighed or (each_row(output.shape[-1]), everything)


@lru_cache(maxsize=256)
def _channels_of(
    depthwise: bool,  # noqa: FBT001
    constants: tuple[Cell, ...],
    channels: int,
) -> tuple[tuple[Window, ...], tuple[tuple[str, Hashable], ...]] | None:
    """The same of constants; None where they do not say it channel by channel."""
    cells = [(cell, 3 * depthwise if i == 0 else 0) for i, cell in enumerate(constants)]
    parts = [_channel_bytes(cell.data, cell.shape, cell.coding, axis) for cell, axis in cells]
    if any(marks is None or len(marks) != channels for marks in parts):
        return None
    rest = []
    for i, (cell, axis) in enumerate(cells, 1):
        coding = replace(cell.coding, scales=(), zero_points=()) if len(cell.coding.scales) > 1 else cell.coding
        rest.append((f"operand {i}", (coding, cell.shape[:axis], cell.shape[axis + 1 :])))
    marks = [channel_mark(b"".join(m[c] for m in parts if m)) for c in range(channels)]
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


def _everything(x: Given | None) -> Hashable:
    return None if x is None else (x.content.base, x.cell.coding, x.content.axes)


def _whole(op: Operation, operands: Sequence[Given | None], output: Cell) -> WindowSpread:
    """The spread of an operator that is treated whole: equal only if all operands and options are."""
    rest = tuple((f"operand {i}", _everything(x)) for i, x in enumerate(operands))
    options = tuple((f"option {name}", value) for name, value in op.options if name in _WINDOW_OPTIONS)
    return WindowSpread(tuple(each_row(n) for n in output.shape), (*rest, *options, ("shape", output.shape)))


def reshaped_groups(op: Operation, operands: Sequence[Cell | None], output: Cell) -> AxisGroups | None:
    """The axes of operand and output of a RESHAPE in groups of as many elements; None where its shape is not known."""
    x, shape = operands[0], operands[1] if len(operands) > 1 else None
    said = _stated_shape(op) if shape is None else np.frombuffer(shape.data or b"", np.int32).tolist()
    if x is None or len(said) != len(output.shape) or prod(x.shape) != prod(output.shape):
        return None
    if any(n not in (-1, own) for n, own in zip(said, output.shape, strict=True)):
        return None
    return grouped_axes(x.shape, output.shape)


def _stated_shape(op: Operation) -> list[int]:
    """The shape in the options of a RESHAPE; empty where there is none."""
    shape = dict(op.options).get("NewShapeAsNumpy")
    return [int(n) for n in shape] if isinstance(shape, tuple) else []


#: Pure functions of their operands whose rows are not followed: they must have the same operands in both files.
_WHOLE = {
    "REDUCE_ANY", "REDUCE_ALL", "SPACE_TO_BATCH_ND", "BATCH_TO_SPACE_ND", "GATHER_ND",
    "BROADCAST_ARGS", "CUMSUM", "SHAPE", "RANK", "FILL", "CONV_3D", "CONV_3D_TRANSPOSE", "DYNAMIC_UPDATE_SLICE",
    "EMBEDDING_LOOKUP", "TOPK_V2", "ONE_HOT", "RANGE", "REVERSE_SEQUENCE", "SCATTER_ND", "SEGMENT_SUM",
    "SPARSE_TO_DENSE", "WHERE", "LOCAL_RESPONSE_NORMALIZATION", "MATRIX_DIAG", "MATRIX_SET_DIAG",
}  # fmt: skip


def same_in_both(op: Operation) -> tuple[tuple[str, Hashable], ...]:
    """The options of an operator that both files must agree on: all that its windows do not express."""
    windowed = is_known(op.kind)
    return tuple((name, value) for name, value in op.options if not (windowed and name in _WINDOW_OPTIONS))

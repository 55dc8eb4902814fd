"""Operators that only move elements, as calls of C kernels that copy blocks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import prod
from typing import Any

import numpy as np
import numpy.typing as npt

from modelplan.rewriting.standalone_c.kernel_records import (
    AxisWindow,
    CKernel,
    ConstTable,
    COperator,
    Parameters,
    const_table,
    row_axis,
    rows_of,
)
from modelplan.rewriting.standalone_c.reading import OperatorReader
from modelplan.runtimes.tflm.file import FileTensor
from modelplan.runtimes.tflm.kernels.calls import ELEMENT_BYTES

#: The loops of the kernel: rows, and those inside of them.
_LOOPS = ("row", "a", "b", "c")
Array = npt.NDArray[Any]


class _Extents:
    """A tensor as an array without memory of its own, of which parts are taken to learn where they lie."""

    def __init__(self, r: OperatorReader, tensor: FileTensor) -> None:
        self.shape, self.width = tensor.shape, ELEMENT_BYTES[r.dtype(tensor)]
        self.strides = tuple(self.width * prod(self.shape[i + 1 :]) for i in range(len(self.shape)))
        self.array: Array = np.lib.stride_tricks.as_strided(np.zeros(1, np.int8), self.shape, self.strides)

    def begin(self, part: Array) -> int:
        """The byte at which a part begins."""
        return part.ctypes.data - self.array.ctypes.data if part.size else 0

    @property
    def row_axis(self) -> int:
        """The axis of the rows, -1 where there is a single row."""
        return row_axis(self.shape)


@dataclass(frozen=True, slots=True, eq=False)
class _Move:
    """A part of operand `operand` becomes an equally large part of result `result`."""

    operand: int
    result: int
    source: _Extents
    source_part: Array
    target: _Extents
    target_part: Array

    def window(self) -> AxisWindow | None:
        """The window of the move, where its rows are those of the tensors on both sides; else None."""
        axis = self.target.row_axis
        ranks = {len(self.source.shape), len(self.target.shape), self.source_part.ndim, self.target_part.ndim}
        if (
            axis < 0
            or axis != self.source.row_axis
            or len(ranks) > 1
            or self.target_part.shape[axis] != self.target.shape[axis]
        ):
            return None
        step, jump = self.source.strides[axis], self.source_part.strides[axis]
        if prod(self.source.shape[:axis]) != 1 or jump <= 0 or jump % step:
            return None
        return AxisWindow(1, jump // step, -(self.source.begin(self.source_part) // step))


def merged_loops(axes: Sequence[tuple[int, int, int]], keep: int) -> list[tuple[int, int, int]]:
    """Loops over axes, as (count, steps on both sides): those that go on as one are one, but for the first `keep`."""
    loops = list(axes[:keep])
    for count, step, jump in axes[keep:]:
        if count == 1:
            continue
        if len(loops) > keep and loops[-1][1:] == (step * count, jump * count):
            loops[-1] = (loops[-1][0] * count, step, jump)
        else:
            loops.append((count, step, jump))
    return loops


def _loops(move: _Move, keep: int) -> tuple[list[tuple[int, int, int]], int]:
    """The loops as (count, bytes between sources, bytes between targets), and the bytes of a contiguous run.

    The first `keep` axes stay loops of their own.
    """
    source, target = move.source_part, move.target_part
    width = move.source.width
    loops = merged_loops(list(zip(source.shape, source.strides, target.strides, strict=True)), keep)
    if len(loops) > keep and loops[-1][1:] == (width, width):
        return loops[max(keep - 1, 0) : -1], loops[-1][0] * width
    return loops[max(keep - 1, 0) :], width


def _copy(r: OperatorReader, move: _Move, operand: int | ConstTable, window: AxisWindow | None) -> CKernel:
    """The call of the kernel for a move; with a window by rows."""
    loops, run = _loops(move, move.target.row_axis + 1 if window else 0)
    r.require(holds=len(loops) <= len(_LOOPS), why=f"a move with {len(loops)} loops, there are {len(_LOOPS)}")
    outer = loops[0] if loops else (1, 0, 0)
    inner = [*[(1, 0, 0)] * (len(_LOOPS) - 1 - len(loops[1:])), *loops[1:]]
    skip = move.source.begin(move.source_part)
    if window:
        skip += window.before * move.source.strides[move.target.row_axis]
    parameters: Parameters = {
        "run": run,
        "source_skip": skip,
        "target_skip": move.target.begin(move.target_part),
    }
    for name, (count, step, jump) in zip(_LOOPS, [outer, *inner], strict=True):
        parameters |= {f"{name}_source": step, f"{name}_target": jump}
        parameters |= {} if name == "row" else {f"{name}_count": count}
    return CKernel("copy_block", "bytes", parameters, (operand,), move.result, whole=(1, 0, outer[0]))


def _moved(r: OperatorReader, moves: Sequence[_Move]) -> COperator:
    """An operator that makes these moves, by rows where each of them goes by rows."""
    dynamic = [i for i in range(len(r.op.inputs)) if r.has(i) and not r.is_constant(i)]
    windows = [move.window() if move.operand in dynamic else None for move in moves]
    same = len({rows_of(r.output(i).shape) for i in range(len(r.op.outputs))}) == 1
    of_operand = dict(zip((move.operand for move in moves), windows, strict=True))
    alike = all(of_operand[move.operand] == window for move, window in zip(moves, windows, strict=True))
    by_rows = same and alike and all(windows)
    kernels = [
        _copy(r, move, _source(r, move.operand, dynamic), window if by_rows else None)
        for move, window in zip(moves, windows, strict=True)
    ]
    operands = tuple(r.row_operand(i, of_operand.get(i) if by_rows else None) for i in dynamic)
    return COperator(r.index, r.op.kind, operands, r.row_results(), tuple(kernels), by_rows=by_rows)


def _source(r: OperatorReader, operand: int, dynamic: Sequence[int]) -> int | ConstTable:
    """An operand by its position among those that are no constants, or the table of a constant."""
    if operand in dynamic:
        return dynamic.index(operand)
    dtype = r.dtype(r.input(operand))
    return const_table("constant", "float" if dtype == "float32" else f"{dtype}_t", r.constant(operand))


def _check_types(r: OperatorReader, operand: int = 0) -> None:
    dtypes = r.dtype(r.input(operand)), r.dtype(r.output())
    r.require(holds=dtypes[0] == dtypes[1], why=f"types {', '.join(dtypes)}, expected the same")


def concatenation(r: OperatorReader) -> COperator:
    """CONCATENATION: each operand to its place."""
    r.require(holds=r.activation() == 0, why="a fused activation")
    target = _Extents(r, r.output())
    axis, at, moves = int(r.option("Axis")) % len(target.shape), 0, []
    for position in range(len(r.op.inputs)):
        _check_types(r, position)
        source = _Extents(r, r.input(position))
        r.require(holds=len(source.shape) == len(target.shape), why="operands of different ranks")
        part = target.array[(slice(None),) * axis + (slice(at, at + source.shape[axis]),)]
        r.require(holds=part.shape == source.shape, why=f"operand {position} of shape {list(source.shape)}")
        moves.append(_Move(position, 0, source, source.array, target, part))
        at += source.shape[axis]
    joined = _moved(r, moves)
    dynamic = [position for position in range(len(moves)) if not r.is_constant(position)]
    runs = prod(target.shape[:axis]) == 1 and len(dynamic) == len(moves) == len(set(r.op.inputs))
    if joined.by_rows or not runs:
        return joined
    return replace(joined, parts=tuple((i, target.begin(move.target_part)) for i, move in enumerate(moves)))


def split(r: OperatorReader) -> COperator:
    """SPLIT and SPLIT_V: a part of the operand becomes each result."""
    value, where = (1, 0) if r.op.kind == "SPLIT" else (0, 2)
    _check_types(r, value)
    source = _Extents(r, r.input(value))
    axis, at, moves = int(r.constant(where).ravel()[0]) % len(source.shape), 0, []
    for position in range(len(r.op.outputs)):
        target = _Extents(r, r.output(position))
        part = source.array[(slice(None),) * axis + (slice(at, at + target.shape[axis]),)]
        r.require(holds=part.shape == target.shape, why=f"result {position} of shape {list(target.shape)}")
        moves.append(_Move(value, position, source, part, target, target.array))
        at += target.shape[axis]
    return _moved(r, moves)


def strided_slice(r: OperatorReader) -> COperator:
    """STRIDED_SLICE and SLICE."""
    _check_types(r)
    source, target = _Extents(r, r.input(0)), _Extents(r, r.output())
    part = source.array[sliced_axes(r)]
    r.require(holds=part.size == target.array.size, why=f"a result of shape {list(target.shape)}")
    strides = tuple(target.width * prod(part.shape[i + 1 :]) for i in range(part.ndim))
    whole = np.lib.stride_tricks.as_strided(target.array, part.shape, strides)
    return _moved(r, [_Move(0, 0, source, part, target, whole)])


def transpose(r: OperatorReader) -> COperator:
    """TRANSPOSE."""
    _check_types(r)
    source, target = _Extents(r, r.input(0)), _Extents(r, r.output())
    part = source.array.transpose([int(axis) for axis in r.constant(1).ravel()])
    r.require(holds=part.shape == target.shape, why=f"a result of shape {list(target.shape)}")
    return _moved(r, [_Move(0, 0, source, part, target, target.array)])


def pad(r: OperatorReader) -> COperator:
    """PAD and PADV2 of up to three axes, or of a map with one image."""
    _check_types(r)
    pads, shape = np.maximum(r.constant(1).reshape(-1, 2), 0), r.input(0).shape
    r.require(holds=len(pads) == len(shape) > 0, why=f"{len(pads)} pairs of paddings for {list(shape)}")
    while len(shape) > 1 and shape[0] == 1 and not pads[0].any():
        shape, pads = shape[1:], pads[1:]
    r.require(holds=len(shape) < 4, why=f"paddings of a map of shape {list(shape)}")
    (height, width, depth), sides = _three(shape, pads)
    rows, result_rows = rows_of(r.input(0).shape), rows_of(r.output().shape)
    by_rows = rows == height and result_rows == height + int(sides[0].sum()) > 1
    parameters: Parameters = {
        "value": _padding_value(r),
        "width": width,
        "channels": depth,
        "left": int(sides[1][0]),
        "right": int(sides[1][1]),
        "front": int(sides[2][0]),
        "back": int(sides[2][1]),
    }
    whole = (height, int(sides[0][0]), height + int(sides[0].sum()))
    kernel = CKernel("pad", r.variant(), parameters, whole=whole)
    operand = r.row_operand(0, AxisWindow(1, 1, int(sides[0][0])) if by_rows else None)
    return COperator(r.index, r.op.kind, (operand,), r.row_results(), (kernel,), by_rows=by_rows)


def _three(shape: tuple[int, ...], pads: Array) -> tuple[tuple[int, int, int], Array]:
    """A shape of up to three axes as height, width and channels, with its paddings."""
    missing = 3 - len(shape)
    place = 1 if len(shape) > 1 else 0  # [B, C] has B rows of one column
    full = (*shape[:place], *(1,) * missing, *shape[place:])
    return full, np.concatenate([pads[:place], np.zeros((missing, 2), pads.dtype), pads[place:]])  # type: ignore[return-value]


def _padding_value(r: OperatorReader) -> int | float:
    """What is put around a map: the zero point of the result, or what PADV2 says."""
    if r.has(2):
        value = r.constant(2).ravel()[0]
        return float(value) if r.variant() == "float" else int(value)
    if r.variant() == "float":
        return 0.0
    return r.quantised(r.output())[1] if r.variant() == "int8" else 0


def sliced_axes(r: OperatorReader) -> tuple[slice, ...]:
    """A slice for each axis of operand 0; an axis that is taken away has one of a single element."""
    begin, end = ([int(v) for v in r.constant(i).ravel()] for i in (1, 2))
    shape = r.input(0).shape
    if r.op.kind == "SLICE":
        ends = [n if size < 0 else b + size for n, b, size in zip(shape, begin, end, strict=True)]
        return tuple(slice(b, e) for b, e in zip(begin, ends, strict=True))
    steps = [int(v) for v in r.constant(3).ravel()]
    masks = {name: int(r.option(f"{name}Mask")) for name in ("Begin", "End", "Ellipsis", "NewAxis", "ShrinkAxis")}
    r.require(holds=not masks["Ellipsis"] and not masks["NewAxis"], why="an ellipsis or a new axis")
    r.require(holds=len(begin) == len(shape) and 0 not in steps, why=f"{len(begin)} steps for {len(shape)} axes")
    slices = []
    for i, n in enumerate(shape):
        first = None if masks["Begin"] >> i & 1 else begin[i]
        last = None if masks["End"] >> i & 1 else end[i]
        axis_slice = _axis(n, first, last, steps[i])
        slices.append(slice(axis_slice.start, axis_slice.start + 1) if masks["ShrinkAxis"] >> i & 1 else axis_slice)
    return tuple(slices)


def _axis(extent: int, begin: int | None, end: int | None, step: int) -> slice:
    """The slice of one axis as TFLM clamps it; without begin or end it goes as far as there are elements."""
    low, high = (0, extent) if step > 0 else (-1, extent - 1)
    places = []
    for place, missing in ((begin, low if step > 0 else high), (end, high if step > 0 else low)):
        if place is None:
            places.append(missing)
        else:
            places.append(min(max(place + extent if place < 0 else place, low), high))
    return slice(places[0], None if places[1] < 0 else places[1], step)

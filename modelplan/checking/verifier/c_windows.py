"""Which rows and columns of an operand a C kernel reads for a row of its result, from the file's options alone."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from modelplan.checking.verifier.rewrites.contents import EDGE
from modelplan.checking.verifier.rewrites.reading import Cell, Operation
from modelplan.checking.verifier.rewrites.windows import places_read
from modelplan.checking.verifier.semantics import POINTWISE

Places = tuple[tuple[int, ...], ...]
_WINDOWED = {"CONV_2D", "DEPTHWISE_CONV_2D", "AVERAGE_POOL_2D", "MAX_POOL_2D"}
_LINE_BY_LINE = {"SOFTMAX", "FULLY_CONNECTED"}
_INTEGERS: dict[str, np.dtype[Any]] = {"int32": np.dtype(np.int32), "int64": np.dtype(np.int64)}


@dataclass(frozen=True, slots=True)
class MapRows:
    """The rows of a tensor: their number, columns, and bytes of a column."""

    rows: int
    columns: int
    column_bytes: int

    @property
    def row_bytes(self) -> int:
        return self.columns * self.column_bytes


def map_rows(cell: Cell, nbytes: int) -> MapRows:
    """The rows of a map of one image are those of its height, those of a matrix its lines; all else is one row."""
    match cell.shape:
        case (1, rows, columns, _) if nbytes:
            return MapRows(rows, columns, nbytes // (rows * columns))
        case (rows, _) if nbytes:
            return MapRows(rows, 1, nbytes // rows)
    return MapRows(1, 1, nbytes)


@dataclass(frozen=True, slots=True)
class RowReads:
    """For each row of the result the rows of an operand that its taps read, EDGE where a tap lies beside the map.

    A kernel looks for tap t of its result's row j, counted from the first that it computes, j * stride + t * dilation
    rows behind the first row of the window. `columns` are the same for columns, None where all are read.
    """

    rows: Places
    stride: int = 1
    dilation: int = 1
    columns: Places | None = None


def row_reads(op: Operation, cells: tuple[Cell, ...], position: int, result: Cell) -> RowReads | None:
    """How the rows of a result depend on those of operand `position`; None where all of the operand is needed."""
    x = cells[position]
    if op.kind in _WINDOWED and not position:
        axes = places_read(op, cells, 0, result) if len(x.shape) == 4 and x.shape[0] == 1 else None
        if axes is None:
            return None
        dilation = op.option("DilationHFactor", 1) if "CONV" in op.kind else 1
        return RowReads(axes[1], op.option("StrideH", 1), dilation, axes[2])
    rule = _RULES.get(op.kind)
    if rule is not None:
        return rule(op, cells, position, result)
    if op.kind in POINTWISE:
        return _same_columns(x, result)
    return _same(x, result) if op.kind in _LINE_BY_LINE else None


def folded_reads(op: Operation, rule: RowReads | None, cells: tuple[Cell, ...]) -> RowReads | None:
    """How a convolution reads the map behind a padding; None where the padding is not what the kernel takes it to be.

    `cells` are the padding's operands and its result. Beside its map a convolution finds the zero point.
    """
    x, result, pads = cells[0], cells[-1], _numbers(cells[1])
    if "CONV_2D" not in op.kind or rule is None or rule.columns is None or pads is None or len(pads) != _MAP_PADS:
        return None
    value = np.frombuffer(cells[2].data or b"", np.int8) if len(cells) > _PAD_OPERANDS else None
    other = value is not None and (result.coding.dtype != "int8" or value.tolist() != [result.coding.zero])
    if x.coding != result.coding or min(pads) < 0 or any((*pads[:2], *pads[6:])) or other:
        return None
    rows, columns = (
        tuple(tuple(_behind(at, before, extent) for at in window) for window in windows)
        for windows, before, extent in ((rule.rows, pads[2], x.shape[1]), (rule.columns, pads[4], x.shape[2]))
    )
    return RowReads(rows, rule.stride, rule.dilation, columns)


def is_by_pixel(op: Operation, cells: tuple[Cell, ...]) -> bool:
    """Whether each pixel of a convolution's result is computed from the same one of its map."""
    x, weights, result = (cells[t] for t in (*op.inputs[:2], op.outputs[0]))
    return len(x.shape) == _MAP_DIMENSIONS and weights.shape[1:3] == (1, 1) and x.shape[:3] == result.shape[:3]


_MAP_DIMENSIONS = 4
#: Numbers that say how a map is padded, and operands of a PAD and its result.
_MAP_PADS, _PAD_OPERANDS = 8, 3


def _behind(at: int, before: int, extent: int) -> int:
    return at - before if at != EDGE and 0 <= at - before < extent else EDGE


def _extent(cell: Cell) -> int:
    return map_rows(cell, 1).rows if 0 not in cell.shape else 1


def _same(x: Cell, result: Cell) -> RowReads | None:
    """Row by row, where both have as many rows."""
    rows = _extent(result)
    alike = rows > 1 and _extent(x) == rows
    return RowReads(tuple((i,) for i in range(rows))) if alike else None


def _same_columns(x: Cell, result: Cell) -> RowReads | None:
    """Element by element, where both have the same shape; else row by row."""
    rows = _same(x, result)
    if rows is None or x.shape != result.shape or len(x.shape) != _MAP_DIMENSIONS:
        return rows
    return replace(rows, columns=tuple((i,) for i in range(x.shape[2])))


def _padded(_op: Operation, cells: tuple[Cell, ...], position: int, result: Cell) -> RowReads | None:
    pads = _numbers(cells[1])
    if position or len(cells[0].shape) not in (2, 4) or _extent(result) < 2 or pads is None:
        return None
    above = pads[2] if len(cells[0].shape) == 4 else pads[0]
    rows = _extent(cells[0])
    return RowReads(tuple((i - above if 0 <= i - above < rows else EDGE,) for i in range(_extent(result))))


def _joined(op: Operation, cells: tuple[Cell, ...], position: int, result: Cell) -> RowReads | None:
    axis = op.option("Axis") % max(len(result.shape), 1)
    rows = 1 if len(result.shape) == 4 else 0
    return _same(cells[position], result) if axis != rows else None


def _cut(op: Operation, cells: tuple[Cell, ...], position: int, result: Cell) -> RowReads | None:
    """SLICE and STRIDED_SLICE without axes that come or go."""
    begin, rank = _numbers(cells[1]), len(result.shape)
    if position or begin is None or rank != len(cells[0].shape) or rank not in (2, 4) or _extent(result) < 2:
        return None
    axis, step, first = (1 if rank == 4 else 0), 1, 0
    if not op.option("BeginMask") >> axis & 1:
        first = begin[axis] + (cells[0].shape[axis] if begin[axis] < 0 else 0)
    if op.kind == "STRIDED_SLICE":
        steps = _numbers(cells[3])
        if steps is None or steps[axis] < 1 or op.option("EllipsisMask") or op.option("NewAxisMask"):
            return None
        step = steps[axis]
    return RowReads(tuple((first + i * step,) for i in range(_extent(result))), step)


def _split(op: Operation, cells: tuple[Cell, ...], position: int, result: Cell) -> RowReads | None:
    value, where = (1, 0) if op.kind == "SPLIT" else (0, 2)
    axis = _numbers(cells[where])
    rank = len(result.shape)
    if position != value or axis is None or rank not in (2, 4) or axis[0] % rank == (1 if rank == 4 else 0):
        return None
    return _same(cells[value], result)


def _numbers(cell: Cell) -> list[int] | None:
    """The whole numbers of a constant."""
    dtype = _INTEGERS.get(cell.coding.dtype)
    if cell.data is None or dtype is None:
        return None
    return [int(n) for n in np.frombuffer(cell.data, dtype)]


_RULES: dict[str, Callable[[Operation, tuple[Cell, ...], int, Cell], RowReads | None]] = {
    "PAD": _padded,
    "PADV2": _padded,
    "CONCATENATION": _joined,
    "SLICE": _cut,
    "STRIDED_SLICE": _cut,
    "SPLIT": _split,
    "SPLIT_V": _split,
}

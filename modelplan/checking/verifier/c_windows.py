"""Which rows and columns of an operand a C kernel reads for a row of its result, from the file's options alone."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from modelplan.checking.verifier.places import OperandPlaces, Places, places_read
from modelplan.checking.verifier.rewrites.contents import EDGE
from modelplan.checking.verifier.rewrites.reading import Cell, Operation, use_of_operation
from modelplan.checking.verifier.semantics import CONCATENATIONS, PADS, POINTWISE, SLICES, SPLITS

Windows = tuple[tuple[int, ...], ...]
_WINDOWED = {"CONV_2D", "DEPTHWISE_CONV_2D", "AVERAGE_POOL_2D", "MAX_POOL_2D"}
#: Operators that call a kernel for each part: by rows where all parts have the rows of the whole.
SEVERAL_KERNELS = CONCATENATIONS | SPLITS
_BY_ROWS = {
    *POINTWISE, *_WINDOWED, *SEVERAL_KERNELS, *PADS, *SLICES, "SOFTMAX", "LOG_SOFTMAX", "L2_NORMALIZATION",
    "FULLY_CONNECTED", "TRANSPOSE", "REVERSE_V2", "BROADCAST_TO", "ARG_MAX", "ARG_MIN",
}  # fmt: skip
_MAP_DIMENSIONS, _PAD_OPERANDS = 4, 3


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
    """The rows of a map of one image: its height, or its columns where that is one; of a matrix its lines.

    All else is one row.
    """
    axis, shape = row_axis(cell.shape), cell.shape
    if axis is None or not nbytes:
        return MapRows(1, 1, nbytes)
    columns = shape[2] if axis == 1 and len(shape) == _MAP_DIMENSIONS else 1
    return MapRows(shape[axis], columns, nbytes // (shape[axis] * columns))


def row_axis(shape: tuple[int, ...]) -> int | None:
    """The axis of rows, None where a tensor is one row."""
    if len(shape) == 2 and 0 not in shape:
        return 0
    if len(shape) not in (3, 4) or shape[0] != 1 or 0 in shape:
        return None
    return next((axis for axis in range(1, len(shape) - 1) if shape[axis] > 1), 1)


@dataclass(frozen=True, slots=True)
class RowReads:
    """For each row of the result the rows of an operand that its taps read, EDGE where a tap lies beside the map.

    A kernel looks for tap t of its result's row j, counted from the first that it computes, j * stride + t * dilation
    rows behind the first row of the window. `columns` are the same for columns, None where all are read.
    """

    rows: Windows
    stride: int = 1
    dilation: int = 1
    columns: Windows | None = None


def row_reads(
    op: Operation, operands: Sequence[Cell | None], position: int, results: Sequence[Cell]
) -> RowReads | None:
    """How the rows of the results depend on those of operand `position`; None where all of the operand is needed."""
    reads, result = _reads(op, operands, position, results), results[0]
    down, own = row_axis(result.shape), row_axis(reads.shape) if reads else None
    windowed = op.kind in _WINDOWED
    if own is not None and windowed and result.shape[own] == 1 == map_rows(result, 1).rows:
        down = own  # its single row may be that of either axis
    elif reads and own is not None and down is not None and reads.shape[own] == 1 and down < len(reads.shape) - 1:
        own = down  # the same of an operand
    if op.kind not in _BY_ROWS or reads is None or down is None or own is None or (windowed and position):
        return None
    along = [a for a in reads.axes[own] if a.axis == down]
    taps, rows = along[0].taps if along else (), result.shape[down]
    first = taps[0] if taps else None
    if not isinstance(first, range) or len(first) != rows or (rows < 2 and not windowed) or first.step < 1:
        return None
    if op.kind in SEVERAL_KERNELS and first != range(reads.shape[own]):
        return None
    columns = None
    if len(reads.shape) == _MAP_DIMENSIONS and (windowed or (op.kind in POINTWISE and reads.shape == result.shape)):
        across = 3 - own
        if own == 2 and any(len(a.taps) > 1 for a in reads.axes[across]):
            return None
        columns = _inside(reads.axes[across][0].taps, reads.shape[across])
    dilation = taps[1][0] - taps[0][0] if len(taps) > 1 else 1
    return RowReads(_inside(taps, reads.shape[own]), first.step, dilation, columns)


def _reads(
    op: Operation, operands: Sequence[Cell | None], position: int, results: Sequence[Cell]
) -> OperandPlaces | None:
    known = places_read(use_of_operation(op, operands, results)) or ()
    x = operands[position]
    return next((reads for reads in known if x and reads.operand == position and reads.shape == x.shape), None)


def _inside(taps: Sequence[Places], extent: int) -> Windows:
    """The places of each index, tap by tap; EDGE beside the map."""
    return tuple(tuple(at if 0 <= at < extent else EDGE for at in window) for window in zip(*taps, strict=True))


def folded_reads(op: Operation, rule: RowReads | None, pad: Operation, cells: Sequence[Cell]) -> RowReads | None:
    """How a convolution reads the map behind a padding; None where the padding is not what the kernel takes it to be.

    `cells` are the padding's operands and its result. Beside its map a convolution finds the zero point.
    """
    x, result, reads = cells[0], cells[-1], _reads(pad, cells[:-1], 0, cells[-1:])
    if "CONV_2D" not in op.kind or rule is None or rule.columns is None or reads is None or len(x.shape) != 4:
        return None
    value = np.frombuffer(cells[2].data or b"", np.int8) if len(cells) > _PAD_OPERANDS else None
    other = value is not None and (result.coding.dtype != "int8" or value.tolist() != [result.coding.zero])
    at, own = [rows[0].taps[0] for rows in reads.axes], row_axis(result.shape) or 1
    if x.coding != result.coding or other or any(at[axis] != range(x.shape[axis]) for axis in (0, 3)):
        return None
    if any(places[0] > 0 or places[-1] < n - 1 for places, n in zip(at, x.shape, strict=True)):
        return None
    rows, columns = (
        tuple(
            tuple(EDGE if tap == EDGE or not 0 <= places[tap] < extent else places[tap] for tap in window)
            for window in windows
        )
        for windows, places, extent in (
            (rule.rows, at[own], x.shape[own]),
            (rule.columns, at[3 - own], x.shape[3 - own]),
        )
    )
    return RowReads(rows, rule.stride, rule.dilation, columns)


def is_by_pixel(op: Operation, cells: tuple[Cell, ...]) -> bool:
    """Whether each pixel of a convolution's result is computed from the same one of its map."""
    x, weights, result = (cells[t] for t in (*op.inputs[:2], op.outputs[0]))
    return len(x.shape) == _MAP_DIMENSIONS and weights.shape[1:3] == (1, 1) and x.shape[:3] == result.shape[:3]

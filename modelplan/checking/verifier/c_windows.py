"""Which rows and columns of an operand a C kernel reads for a row of its result, from the file's options alone."""

from collections.abc import Sequence
from itertools import pairwise
from math import prod

import numpy as np

from modelplan.checking.verifier.moves import Run, run_of
from modelplan.checking.verifier.places import MOVERS, OperandPlaces, Places, places_read, taken_elements
from modelplan.checking.verifier.rewrites.contents import EDGE
from modelplan.checking.verifier.rewrites.reading import Cell, Operation, integers_of, use_of_operation
from modelplan.checking.verifier.semantics import PADS, POINTWISE, RESHAPES
from modelplan.primitives.lazy_records import dataclass

Windows = tuple[tuple[int, ...], ...]
_WINDOWED = {"CONV_2D", "DEPTHWISE_CONV_2D", "AVERAGE_POOL_2D", "MAX_POOL_2D", "L2_POOL_2D"}
_BY_ROWS = {
    *POINTWISE, *_WINDOWED, *PADS, "SOFTMAX", "LOG_SOFTMAX", "L2_NORMALIZATION", "ARG_MAX", "ARG_MIN", "MEAN", "SUM",
}  # fmt: skip
#: Operators that make as many rows of their map at a time as an option says.
_BLOCKS = {"DEPTH_TO_SPACE": "BlockSize", "TRANSPOSE_CONV": "StrideH", "RESIZE_NEAREST_NEIGHBOR": ""}
#: The operand of a transposed convolution that is spread.
_SPREAD = 2
#: Operators all of whose results are elements of operands, in other places.
_MOVING = MOVERS - PADS - RESHAPES - POINTWISE
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
    rule = _moved_rows if op.kind in _MOVING else _RULES.get(op.kind)
    if rule:
        return rule(op, operands, position, results)
    reads, result = _reads(op, operands, position, results), results[0]
    down, own = row_axis(result.shape), row_axis(reads.shape) if reads else None
    windowed = op.kind in _WINDOWED
    if own is not None and windowed and result.shape[own] == 1 == made_rows(op, operands, result, 1).rows:
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
    """What an operator reads of an operand whose rows the kernel sees along the same axis, behind more of extent 1."""
    known = places_read(use_of_operation(op, operands, results)) or ()
    x, reads = operands[position], next((read for read in known if read.operand == position), None)
    if x is None or reads is None or reads.shape == x.shape:
        return reads
    more, own = len(reads.shape) - len(x.shape), row_axis(x.shape)
    same = own is not None and reads.shape == (*(1,) * more, *x.shape) and row_axis(reads.shape) == own + more
    return reads if same else None


def made_rows(op: Operation, operands: Sequence[Cell | None], cell: Cell, nbytes: int) -> MapRows:
    """The rows of a result that an operator makes at a time: those of its map, or all of a row of blocks as one.

    Of windows along the height of a map that make one row, this is one too, whose columns others may read as rows.
    """
    shape, size = map_rows(cell, nbytes), _rows_at_a_time(op, operands, cell)
    x = operands[0] if op.kind in _WINDOWED else None
    if x is not None and row_axis(x.shape) == 1 and cell.shape[:2] == (1, 1) and row_axis(cell.shape) == 2:
        return MapRows(1, shape.rows, shape.row_bytes)
    if size < 2 or shape.rows <= size or row_axis(cell.shape) != 1 or shape.rows % size:
        return shape
    return MapRows(shape.rows // size, 1, shape.row_bytes * size)


def _rows_at_a_time(op: Operation, operands: Sequence[Cell | None], result: Cell) -> int:
    """How many rows of a map an operator makes of the same rows of its operand."""
    x = operands[_SPREAD if op.kind == "TRANSPOSE_CONV" else 0] if op.kind in _BLOCKS else None
    if x is None or (op.kind != "DEPTH_TO_SPACE" and row_axis(x.shape) != 1):
        return 1
    if op.kind != "RESIZE_NEAREST_NEIGHBOR":
        return op.option(_BLOCKS[op.kind])
    return result.shape[1] // x.shape[1] if _repeated_rows(op, operands, 0, [result]) else 1


def _repeated_rows(
    op: Operation, operands: Sequence[Cell | None], position: int, results: Sequence[Cell]
) -> RowReads | None:
    """A row for each row of a map that stands in a result as often as all others; None where that is otherwise."""
    result = results[0]
    x, known = operands[position], places_read(use_of_operation(op, operands, results))
    if x is None or position or not known or row_axis(x.shape) != 1 or row_axis(result.shape) != 1:
        return None
    rows, places = x.shape[1], list(known[0].axes[1][0].taps[0])
    size = result.shape[1] // rows
    if rows < 2 or places != [y // max(size, 1) for y in range(rows * size)]:
        return None
    return RowReads(tuple((row,) for row in range(rows)))


def _moved_rows(
    op: Operation, operands: Sequence[Cell | None], position: int, results: Sequence[Cell]
) -> RowReads | None:
    """The rows in which the elements of each row of the results stand; None where these are no windows."""
    x = operands[position]
    own, windows = row_axis(x.shape) if x else None, set[Windows]()
    if x is None or own is None:
        return None
    for output, result in enumerate(results):
        known = places_read(use_of_operation(op, operands, results, output)) or ()
        reads = next((reads for reads in known if reads.operand == position), None)
        at = taken_elements(reads, result.shape) if reads else None
        rows = made_rows(op, operands, result, 1).rows
        if at is None or rows < 2:
            return None
        taken = np.where(at < 0, -1, at // prod(x.shape[own + 1 :])).reshape(rows, -1)
        ends = taken.max(axis=1)
        firsts = np.where(taken < 0, ends[:, None], taken).min(axis=1)
        windows.add(tuple(tuple(range(a, b + 1)) for a, b in zip(firsts.tolist(), ends.tolist(), strict=True)))
    window = min(windows)
    steps = {b[0] - a[0] for a, b in pairwise(window)}
    alike = len(windows) == len(steps) == len({len(taps) for taps in window}) == 1
    return RowReads(window, min(steps)) if alike and min(steps) > 0 and window[0][0] >= 0 else None


def _spread_rows(
    op: Operation, operands: Sequence[Cell | None], position: int, results: Sequence[Cell]
) -> RowReads | None:
    """The rows of a map that reach each of several runs of so many rows of a transposed convolution's result."""
    x, known = operands[position], places_read(use_of_operation(op, operands, results))
    size, groups = op.option(_BLOCKS[op.kind]), made_rows(op, operands, results[0], 1).rows
    if x is None or not known or known[0].operand != position or groups * size != results[0].shape[1] or groups < 2:
        return None
    taps = [np.asarray(taps) for taps in known[0].axes[1][0].taps]
    tap, index = next(((k, int(np.argmax(at >= 0))) for k, at in enumerate(taps) if (at >= 0).any()), (-1, 0))
    if tap < 0:
        return None
    before = int(taps[tap][index]) * size + tap - index
    first, last = -((len(taps) - 1 - before) // size), (size - 1 + before) // size
    rows = np.stack(taps).reshape(len(taps), groups, size)
    own = np.arange(groups)[None, :, None]
    if ((rows >= 0) & ((rows < own + first) | (rows > own + last))).any():
        return None
    extent = x.shape[1]
    windows = (range(group + first, group + last + 1) for group in range(groups))
    return RowReads(tuple(tuple(at if 0 <= at < extent else EDGE for at in window) for window in windows))


def _line_rows(
    op: Operation, operands: Sequence[Cell | None], position: int, results: Sequence[Cell]
) -> RowReads | None:
    """Rows of the lines from which a product makes its lines one after the other, whatever axes they stand along."""
    x, known = operands[position], places_read(use_of_operation(op, operands, results))
    if x is None or position or not known or None in (row_axis(x.shape), row_axis(results[0].shape)):
        return None
    own, rows = map_rows(x, 1).rows, map_rows(results[0], 1).rows
    if rows < 2 or own % rows:
        return None
    each = own // rows
    return RowReads(tuple(tuple(range(row * each, (row + 1) * each)) for row in range(rows)), each)


_RULES = {"FULLY_CONNECTED": _line_rows, "TRANSPOSE_CONV": _spread_rows, "RESIZE_NEAREST_NEIGHBOR": _repeated_rows}


def whole_runs(op: Operation, operands: Sequence[Cell | None], results: Sequence[Cell]) -> dict[int, Run]:
    """The operands, by position, all of whose elements are one run of the first result."""
    known = places_read(use_of_operation(op, operands, results)) if op.kind in _MOVING else None
    runs = {reads.operand: run_of(reads, results[0].shape) for reads in known or ()}
    return {at: run for at, run in runs.items() if run and (x := operands[at]) and run.length == prod(x.shape)}


def several_kernels(op: Operation, operands: Sequence[Cell | None], results: Sequence[Cell]) -> bool:
    """Whether an operator may call kernels one after the other: for each part, or for elements at uneven distances.

    Then a row is not all computed before the next one.
    """
    if op.kind not in _MOVING:
        return False
    known = places_read(use_of_operation(op, operands, results)) or ()
    if op.kind == "GATHER" and operands[1] is not None:
        listed: list[Places] = [integers_of(operands[1]) or ()]
    else:
        listed = [along.taps[0] for reads in known for rows in reads.axes for along in rows if op.kind == "MIRROR_PAD"]
    uneven = any(len({b - a for a, b in pairwise(places)}) > 1 for places in listed)
    return len(results) > 1 or len(known) != 1 or uneven


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

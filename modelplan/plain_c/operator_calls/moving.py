"""Operators that only move elements, as calls of a C kernel that copies runs of bytes, by their access maps."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import product
from math import prod
from typing import Any

import numpy as np
import numpy.typing as npt

from modelplan.ops.access.other_extents import part_start, strides, view_start
from modelplan.ops.access.spans import Reads, Span
from modelplan.plain_c.kernel_records import (
    C_TYPES,
    AxisWindow,
    CKernel,
    ConstTable,
    COperator,
    Parameters,
    const_table,
    rows_of,
)
from modelplan.plain_c.operator_calls.reading import OperatorReader
from modelplan.primitives.lazy_records import dataclass
from modelplan.runtimes.tflm.kernels.calls import ELEMENT_BYTES

#: The loops of the kernel: rows, and those inside of them.
_LOOPS = ("row", "a", "b", "c")
#: Operators whose operands stand in the result one behind the other.
_JOINS = frozenset({"CONCATENATION", "PACK"})
#: Blocks of evenly spaced elements of which an operator may consist.
_MOST_MOVES = 64
Array = npt.NDArray[Any]
#: How many elements, and the elements from one to the next on each side: in operand and result, or in all operands.
Loop = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class _Move:
    """Evenly spaced elements of operand `operand` that become elements of result `result`, from a first one each."""

    operand: int
    result: int
    source: int
    target: int
    loops: tuple[Loop, ...]


def merged_loops(axes: Sequence[Loop], keep: int) -> list[Loop]:
    """Loops over axes, as (count, steps on all sides): those that go on as one are one, but for the first `keep`."""
    loops = list(axes[:keep])
    for count, *steps in axes[keep:]:
        if count == 1:
            continue
        if len(loops) > keep and loops[-1][1:] == tuple(step * count for step in steps):
            loops[-1] = (loops[-1][0] * count, *steps)
        else:
            loops.append((count, *steps))
    return loops


def moved(r: OperatorReader) -> COperator:
    """An operator each element of whose results is an element of an operand, by rows where its kernels go so."""
    reads = [(output, read) for output in range(len(r.op.outputs)) for read in _reads(r, output)]
    if r.op.kind == "CONCATENATION":
        r.require(holds=r.activation() == 0, why="a fused activation")
    if _is_view(r, reads):
        return view(r)
    moves = [move for output, read in reads for move in _moves(read, output)]
    r.require(holds=len(moves) <= _MOST_MOVES, why=f"{len(moves)} blocks that are not evenly spaced")
    copied = sum(prod(count for count, _, _ in move.loops) for move in moves)
    elements = sum(r.output(output).elements for output in range(len(r.op.outputs)))
    r.require(holds=copied == elements, why=f"{copied} of {elements} elements of its results are elements of operands")
    dynamic = [i for i in range(len(r.op.inputs)) if r.has(i) and not r.is_constant(i)]
    rows = _outer_rows(r, reads)
    windows = _windows(r, reads, dynamic, rows) if rows > 1 else {}
    kernels = [_copy(r, move, _source(r, move.operand, dynamic), windows.get(move.operand)) for move in moves]
    operands = tuple(r.row_operand(i, windows.get(i)) for i in dynamic)
    if windows:
        return COperator(r.index, r.op.kind, operands, r.row_results(rows), tuple(kernels), by_rows=True)
    parts = _parts(r, dynamic, moves)
    return COperator(r.index, r.op.kind, operands, r.row_results(), tuple(kernels), parts=parts)


def view(r: OperatorReader) -> COperator:
    """RESHAPE and its like: the bytes stay as they are."""
    r.require(holds=r.input(0).nbytes == r.output().nbytes, why="a view of another size")
    kernel = CKernel("copy_bytes", "bytes", {"bytes": r.output().nbytes})
    return COperator(r.index, r.op.kind, (r.row_operand(0),), r.row_results(), (kernel,), in_place=(0,), view=True)


def by_batches(r: OperatorReader) -> COperator:
    """SPACE_TO_BATCH_ND and BATCH_TO_SPACE_ND; where paddings or crops are cut, by a copy for each place of a block."""
    pads = [int(n) for n in r.constant(2).ravel()]
    if not any(pads):
        return moved(r)
    _check_types(r)
    padded = r.op.kind == "SPACE_TO_BATCH_ND"
    space, parts = (r.input(0), r.output()) if padded else (r.output(), r.input(0))
    blocks = [int(n) for n in r.constant(1).ravel()]
    r.require(holds=len(pads) == 2 * len(blocks) < 2 * len(space.shape), why=f"blocks {blocks}, paddings {pads}")
    r.require(holds=prod(blocks) <= _MOST_MOVES, why=f"{prod(blocks)} places in a block, there may be {_MOST_MOVES}")
    moves = list(_block_places(space.shape, parts.shape, blocks, pads[::2]))
    if not padded:
        moves = [replace(m, source=m.target, target=m.source, loops=_turned(m.loops)) for m in moves]
        return COperator(r.index, r.op.kind, (r.row_operand(0),), r.row_results(), _copies(r, moves))
    zero = r.variant() == "float" or r.quantised(r.output())[1] == 0
    r.require(holds=zero, why="paddings of numbers whose zero point is not 0, which TFLM pads with what it never set")
    kernels = (fill(r, const_table("padding", C_TYPES[r.dtype(r.output())], [0])), *_copies(r, moves))
    return COperator(r.index, r.op.kind, (r.row_operand(0),), r.row_results(), kernels)


def _copies(r: OperatorReader, moves: Sequence[_Move]) -> tuple[CKernel, ...]:
    return tuple(_copy(r, move, 0, None) for move in moves)


def _turned(loops: Sequence[Loop]) -> tuple[Loop, ...]:
    """Loops whose operand is the result."""
    return tuple((count, target, source) for count, source, target in loops)


def _block_places(
    space: Sequence[int], parts: Sequence[int], blocks: Sequence[int], before: Sequence[int]
) -> Iterator[_Move]:
    """For each place of a block the elements of a map that are there, and the batches of parts that they become."""
    for number, places in enumerate(product(*map(range, blocks))):
        starts = [place - pad for place, pad in zip(places, before, strict=True)]
        spans = [Span(0, 0, 0), *(Span(k, s, s, mul=n) for k, (s, n) in enumerate(zip(starts, blocks, strict=True), 1))]
        spans += [Span(axis, 0, 0) for axis in range(len(spans), len(space))]
        reads = Reads(0, tuple(space), (space[0], *parts[1:]), tuple(spans))
        for move in _block(reads, [(span, 0, reads.result[span.axis]) for span in spans], 0):
            yield replace(move, target=move.target + number * prod(reads.result))


def _is_view(r: OperatorReader, reads: Sequence[tuple[int, Reads]]) -> bool:
    """Whether the only result is all of operand 0, in its order."""
    if [(output, read.operand) for output, read in reads] != [(0, 0)] or r.is_constant(0) or len(r.op.outputs) > 1:
        return False
    access = r.access()
    return access is not None and view_start(access, 0) == 0 and r.input(0).elements == r.output().elements


def _check_types(r: OperatorReader, operand: int = 0, output: int = 0) -> None:
    dtypes = r.dtype(r.input(operand)), r.dtype(r.output(output))
    r.require(holds=dtypes[0] == dtypes[1], why=f"types {', '.join(dtypes)}, expected the same")


def _reads(r: OperatorReader, output: int) -> tuple[Reads, ...]:
    """What a result takes of the operands."""
    access = r.access(output)
    if access is None or not access.moves:
        raise r.refuse("what it reads is not constant, or moves by no rule of C")
    for reads in access.reads:
        _check_types(r, reads.operand, output)
        known = all(span.single or span.table for span in reads.spans)
        r.require(holds=known and reads.exact, why="places that are not known before it runs")
    return access.reads


def _moves(reads: Reads, output: int) -> Iterator[_Move]:
    """The blocks of a result that are those of one operand."""
    for spans in product(*(_even(span, reads) for span in reads.spans)):
        yield from _block(reads, spans, output)


def _even(span: Span, reads: Reads) -> list[tuple[Span, int, int]]:
    """A span as spans of evenly spaced places, each for indices [start, end) along its axis."""
    count = reads.result[span.axis] if span.axis >= 0 else 1
    if not span.table:
        return [(span, 0, count)]
    places, parts, start = [first for first, _ in span.table], list[tuple[Span, int, int]](), 0
    while start < count:
        step, end = places[start + 1] - places[start] if start + 1 < count else 1, start + 1
        while end < count and places[end] - places[end - 1] == step:
            end += 1
        first = places[start] - step * start
        parts.append((Span(span.axis, first, first, mul=step), start, end))
        start = end
    return parts


def _inside(span: Span, extent: int, count: int) -> tuple[int, int]:
    """The indices [start, end), of so many, at which there is a place of the operand."""
    if not span.mul:
        return (0, count) if 0 <= span.lo < extent else (0, 0)
    low, high = (-span.lo, extent - 1 - span.lo) if span.mul > 0 else (span.lo - extent + 1, span.lo)
    return max(-(-low // abs(span.mul)), 0), min(high // abs(span.mul) + 1, count)


def _block(reads: Reads, spans: Sequence[tuple[Span, int, int]], output: int) -> Iterator[_Move]:
    """The elements of the result at which all spans have a place in the operand; nothing where there are none."""
    inside = [(0, extent) for extent in reads.result]
    steps, source = [0] * len(reads.result), 0
    for (span, start, end), extent, stride in zip(spans, reads.source, strides(reads.source), strict=True):
        source += span.lo * stride
        if span.axis >= 0:
            a, b = _inside(span, extent, reads.result[span.axis])
            inside[span.axis] = max(inside[span.axis][0], start, a), min(inside[span.axis][1], end, b)
            steps[span.axis] += span.mul * stride
    jumps = strides(reads.result)
    if all(a < b for a, b in inside):
        source += sum(a * step for (a, _), step in zip(inside, steps, strict=True))
        target = sum(a * jump for (a, _), jump in zip(inside, jumps, strict=True))
        loops = tuple((b - a, step, jump) for (a, b), step, jump in zip(inside, steps, jumps, strict=True))
        yield _Move(reads.operand, output, source, target, loops)


def _outer_rows(r: OperatorReader, reads: Sequence[tuple[int, Reads]]) -> int:
    """Over how many rows of the results, or of several rows each, the outermost loop of all moves goes; 1 if none."""
    rows = {rows_of(r.output(output).shape) for output in range(len(r.op.outputs))}
    outer = {next((extent for extent in read.result if extent > 1), 1) for _, read in reads}
    return min(outer) if len(rows) == len(outer) == 1 and min(rows) % min(outer) == 0 else 1


def _windows(
    r: OperatorReader, reads: Sequence[tuple[int, Reads]], dynamic: Sequence[int], rows: int
) -> dict[int, AxisWindow]:
    """Which rows of its operands each of so many of the results reads; empty where these are not computed by rows."""
    windows: dict[int, AxisWindow] = {}
    for output, read in reads:
        window = r.row_window(read.operand, output, rows)
        if window is None or windows.setdefault(read.operand, window) != window:
            return {}
        if window.before > 0 or window.read(0, rows)[1] > rows_of(r.input(read.operand).shape):
            return {}
    return windows if windows.keys() == set(dynamic) else {}


def _copy(r: OperatorReader, move: _Move, operand: int | ConstTable, window: AxisWindow | None) -> CKernel:
    """The call of the kernel for a move; with a window by rows."""
    keep, width = int(window is not None), ELEMENT_BYTES[r.dtype(r.output(move.result))]
    loops = merged_loops([loop for loop in move.loops if loop[0] > 1], keep)
    run = loops.pop()[0] if len(loops) > keep and loops[-1][1:] == (1, 1) else 1
    r.require(holds=len(loops) <= len(_LOOPS), why=f"a move with {len(loops)} loops, there are {len(_LOOPS)}")
    outer = loops[0] if loops else (1, 0, 0)
    inner = [*[(1, 0, 0)] * (len(_LOOPS) - 1 - len(loops[1:])), *loops[1:]]
    skip = move.source * width
    if window:
        row = r.row_operand(move.operand)
        skip += window.before * row.row_bytes
    parameters: Parameters = {"run": run * width, "source_skip": skip, "target_skip": move.target * width}
    for name, (count, step, jump) in zip(_LOOPS, [outer, *inner], strict=True):
        parameters |= {f"{name}_source": step * width, f"{name}_target": jump * width}
        parameters |= {} if name == "row" else {f"{name}_count": count}
    return CKernel("copy_block", "bytes", parameters, (operand,), move.result, whole=(1, 0, outer[0]))


def _source(r: OperatorReader, operand: int, dynamic: Sequence[int]) -> int | ConstTable:
    """An operand by its position among those that are no constants, or the table of a constant."""
    if operand in dynamic:
        return dynamic.index(operand)
    dtype = r.dtype(r.input(operand))
    return const_table("constant", C_TYPES[dtype], r.constant(operand))


def _parts(r: OperatorReader, dynamic: Sequence[int], moves: Sequence[_Move]) -> tuple[tuple[int, int], ...]:
    """Of a join whose operands stand in the result one behind the other: each with the byte at which it begins."""
    access, width = r.access(), ELEMENT_BYTES[r.dtype(r.output())]
    given = len(set(r.op.inputs)) == len(r.op.inputs) == len(dynamic) == len(moves)
    if access is None or r.op.kind not in _JOINS or not given:
        return ()
    starts = [part_start(access, operand) for operand in range(len(r.op.inputs))]
    parts = tuple((i, start * width) for i, start in enumerate(starts) if start is not None)
    return parts if len(parts) == len(starts) else ()


def pad(r: OperatorReader) -> COperator:
    """PAD and PADV2 of up to three axes, or of a map with one image."""
    _check_types(r)
    pads, shape = np.maximum(r.constant(1).reshape(-1, 2), 0), r.input(0).shape
    r.require(holds=len(pads) == len(shape) > 0, why=f"{len(pads)} pairs of paddings for {list(shape)}")
    while len(shape) > 1 and shape[0] == 1 and not pads[0].any():
        shape, pads = shape[1:], pads[1:]
    if len(shape) > 3:
        return _filled_around(r)
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
    operand = r.row_operand(0, r.row_window(0))
    return COperator(r.index, r.op.kind, (operand,), r.row_results(), (kernel,), by_rows=by_rows)


def _filled_around(r: OperatorReader) -> COperator:
    """A padding of any axes: the result is filled, then the operand is copied into it."""
    table = const_table("padding", C_TYPES[r.dtype(r.output())], [_padding_value(r)])
    copies = [_copy(r, move, 0, None) for reads in _reads(r, 0) for move in _moves(reads, 0)]
    return COperator(r.index, r.op.kind, (r.row_operand(0),), r.row_results(), (fill(r, table), *copies))


def fill(r: OperatorReader, source: int | ConstTable) -> CKernel:
    """The call that makes all elements of the result one number, which stands in an operand or a table."""
    element = ELEMENT_BYTES[r.dtype(r.output())]
    return CKernel("fill", "bytes", {"element": element, "count": r.output().elements}, (source,))


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

"""A slow twin of the core's loops: the rows of each iteration and the price of a loop, one by one in Python."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import product
from math import prod
from typing import TypeVar

import numpy as np
from row_windows import input_window, source_rows

from modelplan.rewriting.striped_tflite.estimating import Cost, Prices
from modelplan.rewriting.stripes.loop_rows import MOST_TILES, IterationRows, LoopRows, Tiling, undivided
from modelplan.rewriting.stripes.row_windows import IllegalStripeError, Layer, rows_of_window
from modelplan.rewriting.stripes.stretches import LoopLayers

#: How many rows more than the least a window may have, so that it is the same for all iterations.
_SLACK = 12
_UNSUITABLE = "no window height suits all iterations"
#: Numbers of a begin vector.
_RANK = 4

#: What is known of the rows that a window makes.
RowFacts = TypeVar("RowFacts")


def plain_loop_price(base: LoopLayers, across: int, prices: Prices) -> Cost:
    """`estimate_loop` of estimating.py."""
    loop_tiling = plain_tiling(base)
    inside, macs, slices, time = _body(base, loop_tiling, prices)
    ops = 4 + 2 * slices  # WHILE, next counter, begin of the result and its update, and a begin for each slice
    tail = prices.tail
    kept = tail("WHILE", 0, 3) + tail("DYNAMIC_UPDATE_SLICE", 0, 3) + (2 + 2 * slices) * tail("SLICE", 0, 2)
    time += prices.iteration + (2 + slices) * prices.added("SLICE", _RANK, _RANK)
    count, peak = len(loop_tiling.tiles), across + _around_loop(base, loop_tiling) + inside
    return Cost(peak=peak, macs=count * macs, ops=ops, tail=kept, time=count * time)


def plain_tiling(base: LoopLayers) -> Tiling:
    """`tiling` of loop_rows.py."""
    stretch = base.stretch
    entries, result = base.ends()
    along = _loop_rows(base, base.layers, stretch.cuts[1] - stretch.cuts[0])
    across = _loop_rows(base, base.across, stretch.columns) if stretch.columns else undivided(base, 3 - stretch.axis)
    both = (along, across) if stretch.axis == 1 else (across, along)
    rows, columns = (range(len(axis_rows.result.starts)) for axis_rows in both)
    tiles = tuple(product(rows, columns))
    if not 2 <= len(tiles) <= MOST_TILES:
        raise IllegalStripeError(f"a loop of {len(tiles)} iterations")
    return Tiling(entries, result, both, tiles)


def _result_runs(total: int, rows: int) -> IterationRows:
    """The rows of each iteration of `total` rows, `rows` at a time; the last run overlaps the one before."""
    return IterationRows(tuple(min(start, total - rows) for start in range(0, total, rows)), rows)


def _loop_rows(base: LoopLayers, layers: Mapping[int, Layer], rows: int) -> LoopRows:
    """The rows along an axis of which the loop makes `rows` rows of the result at a time.

    Raises:
        IllegalStripeError: no window height suits all iterations.
    """
    result = _result_runs(layers[base.ops[-1]].rows_out, rows)
    axis_rows = _uncut_chain(base, layers, result) if base.stretch.trim_late else _cut_each(base, layers, result)
    axis_rows.used = _used(base, layers, result)
    return axis_rows


def _used(
    base: LoopLayers, layers: Mapping[int, Layer], result: IterationRows
) -> dict[tuple[int, int], tuple[tuple[int, int], ...]]:
    """For each operand the rows of its map that the result's rows are made of, in each iteration."""
    ops, operand_rows = base.graph.ops, {}
    last = ops[base.ops[-1]].outputs[0]
    wanted = {last: [(start, start + result.extent) for start in result.starts]}
    for op in reversed(base.ops):
        rows = [source_rows(layers[op], a, b) for a, b in wanted[ops[op].outputs[0]]]
        for position in layers[op].operands:
            operand_rows[op, position] = tuple(rows)
            x = ops[op].inputs[position]
            others = wanted.get(x, rows)
            wanted[x] = [(min(a, c), max(b, d)) for (a, b), (c, d) in zip(rows, others, strict=True)]
    return operand_rows


def _cut_each(base: LoopLayers, layers: Mapping[int, Layer], result: IterationRows) -> LoopRows:
    """The rows of a loop in which every operator's surplus rows are cut off at once."""
    ops, axis_rows = base.graph.ops, LoopRows(result)
    wanted: dict[int, list[IterationRows]] = {ops[base.ops[-1]].outputs[0]: [result]}
    held: dict[int, IterationRows] = {}
    windows: dict[tuple[int, int], IterationRows] = {}
    for op in reversed(base.ops):
        y, layer = ops[op].outputs[0], layers[op]
        if y not in wanted:
            raise IllegalStripeError(f"{base.graph.label(op)}: nothing in the loop reads what it makes")
        held[y] = _covering_window(wanted[y], layer.rows_out)
        fitting = _fitting(layer, held[y])
        if fitting is None:
            raise IllegalStripeError(_UNSUITABLE)
        window, skipped, axis_rows.computed[op] = fitting
        axis_rows.kept[op] = IterationRows(skipped, held[y].extent)
        for position in layer.operands:
            windows[op, position] = window
            wanted.setdefault(ops[op].inputs[position], []).append(window)
    for (op, position), window in windows.items():
        x = ops[op].inputs[position]
        first = held[x].starts if x in base.inner else (0,) * len(window.starts)
        axis_rows.taken[op, position] = IterationRows(
            tuple(a - b for a, b in zip(window.starts, first, strict=True)), window.extent
        )
    return axis_rows


def _covering_window(runs: Sequence[IterationRows], height: int) -> IterationRows:
    """The smallest window of one extent that covers all of `runs` in each iteration."""
    low = [min(run.starts[k] for run in runs) for k in range(len(runs[0].starts))]
    high = [max(run.starts[k] + run.extent for run in runs) for k in range(len(runs[0].starts))]
    extent = max(b - a for a, b in zip(low, high, strict=True))
    return IterationRows(tuple(min(start, height - extent) for start in low), extent)


def _fitting(layer: Layer, run: IterationRows) -> tuple[IterationRows, tuple[int, ...], int] | None:
    """The least window that makes the rows of `run` as they are, how many wrong rows come first, how many it makes.

    None where there is none. Stretches that end with the same operators ask for the same ones.
    """
    ends = [(start, start + run.extent) for start in run.starts]
    made_of = {"grow": _enlarged, "pad": _bordered}.get(layer.kind, rows_of_window)
    try:
        least = [input_window(layer, a, b, pad=layer.paddable) for a, b in ends]
        window, row_counts = _common_window(
            ends, [(w.lo, w.hi) for w in least], layer.rows_in, lambda a, b, lo, hi: made_of(layer, a, b, lo, hi)
        )
    except IllegalStripeError:
        return None
    skipped, computed = zip(*row_counts, strict=True)
    return window, skipped, computed[0]


def _common_window(
    ends: Sequence[tuple[int, int]],
    least: Sequence[tuple[int, int]],
    rows_in: int,
    made_of: Callable[[int, int, int, int], RowFacts | None],
) -> tuple[IterationRows, list[RowFacts]]:
    """The lowest windows of one height of which each makes its rows `ends`, and what `made_of` says of each.

    A window holds the rows `least`, and is moved up from there; `made_of(a, b, lo, hi)` is None where the window
    [lo, hi) does not make rows [a, b) as they are.
    """
    shortest = max(hi - lo for lo, hi in least)
    for height in range(shortest, min(shortest + _SLACK, rows_in) + 1):
        starts: list[int] = []
        outcomes: list[RowFacts] = []
        for (a, b), (lo, hi) in zip(ends, least, strict=True):
            for start in range(min(lo, rows_in - height), max(-1, hi - height - 1), -1):
                computed = made_of(a, b, start, start + height)
                if computed is not None:
                    starts.append(start)
                    outcomes.append(computed)
                    break
            else:
                break
        else:
            return IterationRows(tuple(starts), height), outcomes
    raise IllegalStripeError(_UNSUITABLE)


def _enlarged(layer: Layer, a: int, b: int, lo: int, hi: int) -> tuple[int, int] | None:
    """`rows_of_window` of an operator that enlarges its map, where all rows that have a part are in the window."""
    computed = (hi - lo) * layer.stride if layer.own else (hi - lo - 1) * layer.stride + layer.reach
    skip = a - lo * layer.stride
    return (skip, computed) if skip >= 0 and skip + b - a <= computed else None


def _bordered(layer: Layer, a: int, b: int, lo: int, hi: int) -> tuple[int, int] | None:
    """`rows_of_window` of a PAD, which puts its borders around every window: they count where the map has them too."""
    above, below = layer.above, layer.rows_out - layer.rows_in - layer.above
    skip, computed = a - lo, above + hi - lo + below
    if skip < 0 or skip + b - a > computed or (lo > 0 and skip < above):
        return None
    return None if hi < layer.rows_in and skip + b - a > computed - below else (skip, computed)


def _uncut_chain(base: LoopLayers, layers: Mapping[int, Layer], result: IterationRows) -> LoopRows:
    """The rows of a chain of operators in which each takes all rows of the one before."""
    _check_chain(base)
    chain, axis_rows = [layers[op] for op in base.ops], LoopRows(result)
    ends = [(a, a + result.extent) for a in result.starts]
    least = [_least_window(chain, *rows) for rows in ends]
    window, cuts = _common_window(
        ends, least, chain[0].rows_in, lambda a, b, lo, hi: _cut_behind(chain, (a, b), (lo, hi))
    )
    for op in base.ops:
        axis_rows.taken[op, 0] = window
        axis_rows.computed[op] = _rows_made(layers[op], window.extent)
        window = axis_rows.kept[op] = IterationRows((0,) * len(cuts), axis_rows.computed[op])
    axis_rows.kept[base.ops[-1]] = IterationRows(tuple(cuts), result.extent)
    return axis_rows


def _check_chain(base: LoopLayers) -> None:
    graph = base.graph
    at = graph.ops[base.ops[0]].inputs[0]
    for index in base.ops:
        op = graph.ops[index]
        if base.layers[index].operands != (0,) or op.inputs[0] != at:
            raise IllegalStripeError(f"{graph.label(index)}: not a link of a chain")
        at = op.outputs[0]


def _rows_made(layer: Layer, height: int) -> int:
    """The number of rows that an operator computes from a window."""
    if layer.kind != "window":
        return height + (layer.rows_out - layer.rows_in) * (layer.kind == "pad")
    return -(-height // layer.stride) if layer.own else (height - layer.reach) // layer.stride + 1


def _least_window(layers: Sequence[Layer], a: int, b: int) -> tuple[int, int]:
    for layer in reversed(layers):
        if layer.kind not in ("window", "pointwise"):
            raise IllegalStripeError("an operator in a loop whose rows are not those of a window")
        window = input_window(layer, a, b, pad=layer.paddable)
        a, b = window.lo, window.hi
    return a, b


def _cut_behind(layers: Sequence[Layer], rows: tuple[int, int], window: tuple[int, int]) -> int | None:
    """How many of the last rows that a chain makes of a window come before `rows`; None where it makes these wrong."""
    wanted = [rows]
    for layer in reversed(layers[1:]):
        before = input_window(layer, *wanted[0], pad=layer.paddable)
        wanted.insert(0, (before.lo, before.hi))
    lo, hi = window
    skip = 0
    for layer, (first, last) in zip(layers, wanted, strict=True):
        row_counts = rows_of_window(layer, first, last, lo, hi)
        if row_counts is None:
            return None
        skip, computed = row_counts
        lo, hi = first - skip, first - skip + computed
        if lo < 0 or hi > layer.rows_out:
            return None
    return skip


def _body(base: LoopLayers, loop_tiling: Tiling, prices: Prices) -> tuple[int, int, int, float]:
    """Bytes of the worst operator of a loop's body, the work of an iteration, the slices in it, and nanoseconds.

    The bytes are those of maps inside the body: operands that are read later, windows, what is made and what is kept.
    """
    ops, tensors = base.graph.ops, base.graph.tensors
    last = {x: op for op in base.ops for x in ops[op].inputs}
    held: dict[int, int] = {}
    worst = macs = slices = 0
    time = 0.0
    for op in base.ops:
        y, layer = tensors[ops[op].outputs[0]], base.layers[op]
        pixel = y.nbytes // (y.shape[1] * y.shape[2])
        windows = 0
        for position in layer.operands:
            x = ops[op].inputs[position]
            area = prod(axis_rows.taken[op, position].extent for axis_rows in loop_tiling.both_axes)
            rows = layer.places[1:3] or (1, 2)
            size = area * (tensors[x].nbytes // prod(tensors[x].shape[axis] for axis in rows))
            if held.get(x) != size:
                windows, slices = windows + size, slices + 1
                time += prices.added("SLICE", size, tensors[x].shape[-1])
        computed = pixel * prod(axis_rows.computed[op] for axis_rows in loop_tiling.both_axes)
        kept = pixel * prod(axis_rows.kept[op].extent for axis_rows in loop_tiling.both_axes)
        scratch = prices.scratch(op) * computed // max(1, y.nbytes)
        worst = max(worst, sum(held.values()) + windows + computed + scratch)
        macs += layer.row_macs * computed // max(1, y.nbytes // y.shape[base.stretch.axis])
        time += prices.time(base.graph, op) * computed / max(1, y.nbytes)
        if kept != computed:
            slices += 1
            time += prices.added("SLICE", kept, y.shape[-1])
        held[ops[op].outputs[0]] = kept
        held = {x: size for x, size in held.items() if x in base.exits or last.get(x) not in (None, op)}
    result = tensors[loop_tiling.result]
    time += prices.added("DYNAMIC_UPDATE_SLICE", kept, result.shape[-1])
    return worst, macs, slices, time


def _around_loop(base: LoopLayers, loop_tiling: Tiling) -> int:
    """Largest bytes around the loop: inputs that are still read, and the part of the result that is computed."""
    axis, tensors = base.stretch.axis, base.graph.tensors
    axis_rows = loop_tiling.both_axes[axis - 1]
    starts = axis_rows.result.starts
    total = np.zeros(len(starts), dtype=np.int64)
    for x in loop_tiling.entries:
        places = (base.layers[op].places for op in base.graph.readers[x] if op in base.layers)
        rows_axis = next(filter(None, places), (0, 1, 2))[axis]
        row = tensors[x].nbytes // prod(tensors[x].shape[: rows_axis + 1])  # of planes the first makes room
        taken = [
            rows.starts for (op, position), rows in axis_rows.taken.items() if base.graph.ops[op].inputs[position] == x
        ]
        low = np.minimum.reduce([np.array(run) for run in taken])
        needed = np.zeros_like(low) if base.is_read_later(x) else np.minimum.accumulate(low[::-1])[::-1]
        total += tensors[x].nbytes - needed * row
    result = tensors[loop_tiling.result]
    row = result.nbytes // result.shape[axis]
    begun = axis_rows.result.extent if base.stretch.columns else 0  # a stripe of tiles is made in pieces
    return int((total + (np.array(starts) + begun) * row).max())

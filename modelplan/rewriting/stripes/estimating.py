"""What a region in stripes costs, from its rows alone: peak bytes, work, operators. Nothing is built or packed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import prod

import numpy as np

from modelplan.model import Graph, IntArray
from modelplan.rewriting.stripes.loops import Tiling, tiling
from modelplan.rewriting.stripes.program import MOST_JOINED
from modelplan.rewriting.stripes.regions import Ground, Rows

#: Numbers of a begin vector.
_RANK = 4


@dataclass(frozen=True, slots=True)
class Prices:
    """What operators cost the runtime.

    `tail` are bytes that it keeps for one more operator: (kind, channels that are scaled each for itself, new tensors).
    `time` are nanoseconds of an operator of a graph as a whole, `added` those of one that the rewrite adds: (kind,
    elements, elements in a run), `iteration` those of an iteration of a loop beside its operators.
    """

    tail: Callable[[str, int, int], int]
    time: Callable[[Graph, int], float]
    added: Callable[[str, int, int], float]
    iteration: float


@dataclass(frozen=True, slots=True)
class Estimate:
    """Bytes of the worst step, multiply-accumulates, operators, bytes that the runtime keeps for them, nanoseconds."""

    peak: int
    macs: int
    ops: int
    tail: int
    time: float


def estimate(base: Ground, rows: Sequence[Rows], across: int, prices: Prices) -> Estimate:
    """The cost of a region; `across` are live bytes that it does not touch.

    The peak supposes that rows die and are born one by one, that outputs may run into operands that die, and that
    nothing is lost between groups.
    """
    events = [(i, op) for i, stripe in enumerate(rows) for op in base.ops if op in stripe.windows]
    live = np.full(len(events), across, dtype=np.int64)
    dying = np.zeros(len(events), dtype=np.int64)
    number = {event: n for n, event in enumerate(events)}
    for t in {t for op in base.ops for t in _row_operands(base, op)} | base.inner:
        during, after = _rows_alive(base, rows, events, number, t)
        width = base.graph.tensors[t].nbytes // base.graph.tensors[t].shape[base.region.axis]
        live += during * width
        dying += (during - after) * width
    born, padded = _born(base, rows, events)
    with_copy = np.where(padded > 0, live + padded, 0)
    dying = np.where(padded > 0, padded + dying, dying)
    peak = int(max(with_copy.max(), (live + padded + born - np.minimum(dying, born)).max()))
    macs = sum(rows[i].windows[op].made * base.layers[op].row_macs for i, op in events)
    return Estimate(peak, macs, *_operators(base, rows, events, prices))


def estimate_loop(base: Ground, across: int, prices: Prices) -> Estimate:
    """The cost of a region as a loop.

    Raises:
        IllegalStripeError: the region has no windows of one extent.
    """
    found = tiling(base)
    inside, macs, slices, time = _body(base, found, prices)
    ops = 4 + 2 * slices  # WHILE, next counter, begin of the result and its update, and a begin for each slice
    tail = prices.tail
    kept = tail("WHILE", 0, 3) + tail("DYNAMIC_UPDATE_SLICE", 0, 3) + (2 + 2 * slices) * tail("SLICE", 0, 2)
    time += prices.iteration + (2 + slices) * prices.added("SLICE", _RANK, _RANK)
    count = len(found.tiles)
    return Estimate(across + _around_loop(base, found) + inside, count * macs, ops, kept, count * time)


def _body(base: Ground, found: Tiling, prices: Prices) -> tuple[int, int, int, float]:
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
            area = prod(course.taken[op, position].extent for course in found.courses)
            rows = layer.places[1:3] or (1, 2)
            size = area * (tensors[x].nbytes // prod(tensors[x].shape[axis] for axis in rows))
            if held.get(x) != size:
                windows, slices = windows + size, slices + 1
                time += prices.added("SLICE", size, tensors[x].shape[-1])
        made = pixel * prod(course.made[op] for course in found.courses)
        kept = pixel * prod(course.kept[op].extent for course in found.courses)
        worst = max(worst, sum(held.values()) + windows + made)
        macs += layer.row_macs * made // max(1, y.nbytes // y.shape[base.region.axis])
        time += prices.time(base.graph, op) * made / max(1, y.nbytes)
        if kept != made:
            slices += 1
            time += prices.added("SLICE", kept, y.shape[-1])
        held[ops[op].outputs[0]] = kept
        held = {x: size for x, size in held.items() if x in base.exits or last.get(x) not in (None, op)}
    result = tensors[found.result]
    time += prices.added("DYNAMIC_UPDATE_SLICE", kept, result.shape[-1])
    return worst, macs, slices, time


def _around_loop(base: Ground, found: Tiling) -> int:
    """Most bytes of what enters the loop and is still read, and of the result as far as it is made."""
    axis, tensors = base.region.axis, base.graph.tensors
    course = found.courses[axis - 1]
    starts = course.result.starts
    total = np.zeros(len(starts), dtype=np.int64)
    for x in found.entries:
        turned = any(base.layers[op].places for op in base.graph.readers[x] if op in base.layers)
        height = tensors[x].shape[axis]
        taken = [
            course.taken[op, position].starts
            for op in base.ops
            for position in base.layers[op].operands
            if base.graph.ops[op].inputs[position] == x
        ]
        low = np.minimum.reduce([np.array(run) for run in taken])
        needed = np.zeros_like(low) if turned or _read_later(base, x) else np.minimum.accumulate(low[::-1])[::-1]
        total += (height - needed) * (tensors[x].nbytes // height)
    result = tensors[found.result]
    row = result.nbytes // result.shape[axis]
    begun = course.result.extent if base.region.columns else 0  # a stripe of tiles is made in pieces
    return int((total + (np.array(starts) + begun) * row).max())


def _row_operands(base: Ground, op: int) -> list[int]:
    return [base.graph.ops[op].inputs[p] for p in base.layers[op].operands]


def _rows_alive(
    base: Ground, rows: Sequence[Rows], events: Sequence[tuple[int, int]], number: dict[tuple[int, int], int], t: int
) -> tuple[IntArray, IntArray]:
    """Rows of map `t` that live while each event runs (those it makes left out), and behind it."""
    count, height = len(events), base.graph.tensors[t].shape[base.region.axis]
    readers = [r for r in base.graph.readers[t] if r in base.layers]
    turned = any(base.layers[r].places for r in readers)  # rows that lie all over the map
    kept = turned or t in base.exits or (t not in base.inner and _read_later(base, t))
    carried = t not in base.inner or base.keeps(t)
    low = np.full(count + 1, 0 if kept else height, dtype=np.int64)
    made = np.full(count, height, dtype=np.int64) if t not in base.inner else np.zeros(count, dtype=np.int64)
    for i, stripe in enumerate(rows):
        for r in readers:
            if r in stripe.windows:
                n = number[i, r]
                low[n] = min(low[n], stripe.windows[r].lo)
    if t not in base.inner or carried:
        needed = np.minimum.accumulate(low[::-1])[::-1]
        if t in base.inner:
            _mark_made(base, rows, number, t, made)
            made = np.maximum.accumulate(made)
        before = np.concatenate(([0 if t in base.inner else height], made[:-1]))
        return np.maximum(before - needed[:-1], 0), np.maximum(before - needed[1:], 0)
    return _alive_in_stripe(base, rows, number, t, readers, count)


def _mark_made(base: Ground, rows: Sequence[Rows], number: dict[tuple[int, int], int], t: int, made: IntArray) -> None:
    producer = base.graph.producers[t]
    for i, stripe in enumerate(rows):
        if t in stripe.made:
            made[number[i, producer]] = stripe.made[t][1]


def _alive_in_stripe(
    base: Ground, rows: Sequence[Rows], number: dict[tuple[int, int], int], t: int, readers: Sequence[int], count: int
) -> tuple[IntArray, IntArray]:
    """Rows that are made again for each stripe live from their making to their last reader there."""
    during, after = np.zeros(count, dtype=np.int64), np.zeros(count, dtype=np.int64)
    producer = base.graph.producers[t]
    for i, stripe in enumerate(rows):
        if t not in stripe.made:
            continue
        lo, hi = stripe.made[t]
        first = number[i, producer]
        last = max((number[i, r] for r in readers if r in stripe.windows), default=first)
        during[first + 1 : last + 1] = hi - lo
        after[first + 1 : last] = hi - lo
    return during, after


def _read_later(base: Ground, t: int) -> bool:
    return t in base.graph.outputs or any(r not in base.layers and r > base.ops[-1] for r in base.graph.readers[t])


def _born(base: Ground, rows: Sequence[Rows], events: Sequence[tuple[int, int]]) -> tuple[IntArray, IntArray]:
    """Bytes that each event writes, and those of its padded window, 0 where there is none."""
    born, padded = [], []
    for i, op in events:
        window, y = rows[i].windows[op], base.graph.tensors[base.graph.ops[op].outputs[0]]
        born.append(window.made * (y.nbytes // y.shape[base.region.axis]))
        padded.append(
            _padded_bytes(base, op, window.hi - window.lo + window.above + window.below)
            if _pads(base, op, i, rows)
            else 0
        )
    return np.array(born, dtype=np.int64), np.array(padded, dtype=np.int64)


def _pads(base: Ground, op: int, i: int, rows: Sequence[Rows]) -> bool:
    window, layer = rows[i].windows[op], base.layers[op]
    return window.padded and layer.kind == "window" and any((window.above, window.below, *layer.across))


def _padded_bytes(base: Ground, op: int, height: int) -> int:
    x, axis = base.graph.tensors[base.graph.ops[op].inputs[0]], base.region.axis
    other = x.shape[3 - axis]
    row = x.nbytes // x.shape[axis]
    return height * (row // other) * (other + sum(base.layers[op].across))


def _operators(
    base: Ground, rows: Sequence[Rows], events: Sequence[tuple[int, int]], prices: Prices
) -> tuple[int, int, float]:
    """Operators added, what the runtime keeps for them beyond the unsplit operators, and nanoseconds of all."""
    ops, cost = -len(base.ops), 0
    tensors, axis = base.graph.tensors, base.region.axis
    per_row, own, moved = {}, {}, _Moved(prices)
    for op in base.ops:
        kind, y = base.graph.ops[op].kind, base.graph.ops[op].outputs[0]
        own[op] = prices.tail(kind, _channels(base, op), 1)
        cost -= own[op]
        run = prices.added(kind, 0, 1)
        per_row[op] = run, (prices.time(base.graph, op) - run) / tensors[y].shape[axis]
    time = 0.0
    for i, op in events:
        stripe, y = rows[i], base.graph.ops[op].outputs[0]
        window, (a, b), lo = stripe.windows[op], stripe.made[y], stripe.seen[y][0]
        row, deep = tensors[y].nbytes // tensors[y].shape[axis], tensors[y].shape[-1]
        run, each = per_row[op]
        time += run + each * window.made
        ops, cost = ops + 1, cost + own[op]
        if _pads(base, op, i, rows):
            moved.count("PAD", _padded_bytes(base, op, window.hi - window.lo + window.above + window.below), deep)
        if window.made != b - a:
            moved.count("SLICE", (b - a) * row, deep)
        if lo < a:
            moved.count("SLICE", (a - lo) * row, deep)
            moved.count("CONCATENATION", (b - lo) * row, deep)
        for x in _row_operands(base, op):
            seen = stripe.seen.get(x, (0, base.layers[op].rows_in))
            if (window.lo, window.hi) != seen:
                width = tensors[x].nbytes // tensors[x].shape[axis]
                moved.count("SLICE", (window.hi - window.lo) * width, tensors[x].shape[-1])
    joins = len(base.exits) * (1 + (base.region.stripes > MOST_JOINED) * -(-base.region.stripes // MOST_JOINED))
    for _ in range(joins):
        moved.count("CONCATENATION", 0, 1)
    return ops + moved.ops, cost + moved.tail, time + moved.time


@dataclass
class _Moved:
    """The operators that stripes add, with what the runtime keeps for them and the time they take."""

    prices: Prices
    ops: int = 0
    tail: int = 0
    time: float = 0.0

    def count(self, kind: str, elements: int, width: int) -> None:
        """One more operator."""
        self.ops += 1
        self.tail += self.prices.tail(kind, 0, 1 if kind == "CONCATENATION" else 2)
        self.time += self.prices.added(kind, elements, width)


def _channels(base: Ground, op: int) -> int:
    kind = base.graph.ops[op].kind
    return base.graph.tensors[base.graph.ops[op].outputs[0]].shape[-1] if kind.endswith("CONV_2D") else 0


def even_cuts(height: int, stripes: int) -> tuple[int, ...]:
    """Borders of so many stripes of about the same height."""
    return tuple(height * i // stripes for i in range(stripes + 1))

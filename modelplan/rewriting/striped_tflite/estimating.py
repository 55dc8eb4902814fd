"""What a stretch in stripes costs, from its rows alone: peak bytes, work, operators. Nothing is built or packed."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import pairwise
from math import prod

import numpy as np

from modelplan.model import Graph, IntArray, Kind
from modelplan.rewriting.striped_tflite.costs import scaled_channels
from modelplan.rewriting.striped_tflite.steps import JOIN, MOST_JOINED
from modelplan.rewriting.stripes.carried_rows import CarriedRows, carried_rows
from modelplan.rewriting.stripes.loop_rows import Tiling, tiling
from modelplan.rewriting.stripes.stretches import AnyLayers, BlockLayers, CarryingLayers, LoopLayers, UnrolledLayers
from modelplan.rewriting.stripes.stripe_rows import stripe_rows

#: Numbers of a begin vector.
_RANK = 4


@dataclass(frozen=True, slots=True)
class Prices:
    """What operators cost the runtime.

    `tail` are bytes that it keeps for one more operator: (kind, channels that are scaled each for itself, new tensors).
    `time` are nanoseconds of an operator of a graph as a whole, `added` those of one that the rewrite adds: (kind,
    elements, elements in a run), `iteration` those of an iteration of a loop beside its operators. `scratch` are bytes
    of the working buffers of an operator of the whole graph that grow with its maps.
    """

    tail: Callable[[str, int, int], int]
    time: Callable[[Graph, int], float]
    added: Callable[[str, int, int], float]
    iteration: float
    scratch: Callable[[int], int] = lambda _: 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Cost:
    """What stripes need and add.

    Bytes of the worst step, multiply-accumulates, operators, bytes that the runtime keeps for them, nanoseconds.
    """

    peak: int = 0
    macs: int = 0
    ops: int = 0
    tail: int = 0
    time: float = 0.0


def estimate(base: UnrolledLayers, across: int, prices: Prices) -> Cost:
    """The cost of a stretch in unrolled stripes; `across` are live bytes that it does not touch.

    The peak supposes that rows die and are born one by one, that outputs may run into operands that die, and that
    nothing is lost between groups.
    """
    return _Estimate(base, prices).cost(across)


def estimate_loop(base: LoopLayers, across: int, prices: Prices) -> Cost:
    """The cost of a stretch as a loop.

    Raises:
        IllegalStripeError: the stretch has no windows of one extent.
    """
    loop_tiling = tiling(base)
    inside, macs, slices, time = _body(base, loop_tiling, prices)
    ops = 4 + 2 * slices  # WHILE, next counter, begin of the result and its update, and a begin for each slice
    tail = prices.tail
    kept = tail("WHILE", 0, 3) + tail("DYNAMIC_UPDATE_SLICE", 0, 3) + (2 + 2 * slices) * tail("SLICE", 0, 2)
    time += prices.iteration + (2 + slices) * prices.added("SLICE", _RANK, _RANK)
    count, peak = len(loop_tiling.tiles), across + _around_loop(base, loop_tiling) + inside
    return Cost(peak=peak, macs=count * macs, ops=ops, tail=kept, time=count * time)


def estimate_carrying(base: CarryingLayers, across: int, prices: Prices) -> Cost:
    """The cost of a stretch as a loop that carries rows, whose windows stand by themselves all the time.

    Raises:
        IllegalStripeError: the rows of an operator cannot be carried.
    """
    return _CarryingEstimate(base, carried_rows(base), prices).cost(across)


def estimate_blocks(base: BlockLayers, constants: Mapping[int, int], across: int, prices: Prices) -> Cost:
    """The cost of a stretch in blocks of channels; `constants` are how many each operator has of them cut."""
    graph, tensors, result = base.graph, base.graph.tensors, base.output(base.ops[-1])
    count, channels = base.stretch.stripes, base.stretch.cuts[-1]
    widest = max(b - a for a, b in pairwise(base.stretch.cuts))
    entries = {t for op in base.ops for t in graph.ops[op].reads if tensors[t].kind is Kind.ACTIVATION} - base.inner
    whole, kept = (sum(tensors[t].nbytes for t in entries if keep or _read_later(base, t)) for keep in (True, False))
    last = {x: op for op in base.ops for x in base.row_operands(op)}
    cut, held, worst = entries & last.keys(), dict[int, int](), 0
    ops, tail, time = (count - 1) * len(base.ops) + 1 + count * len(cut), prices.tail(JOIN, 0, 0), 0.0
    for op in base.ops:
        y, kind = base.output(op), graph.ops[op].kind
        held |= {x: tensors[x].nbytes * widest // channels for x in base.row_operands(op) if x in cut}
        block_bytes = tensors[y].nbytes * widest // channels
        dying = sum(size for x, size in held.items() if last.get(x) == op)
        part = widest / channels if base.row_operands(op) else 1  # scratch holds what is read
        worst = max(worst, sum(held.values()) + block_bytes - min(dying, block_bytes) + int(prices.scratch(op) * part))
        held = {x: size for x, size in {**held, y: block_bytes}.items() if last.get(x) != op}
        block_tail = prices.tail(kind, scaled_channels(kind, (widest,)), 1 + constants[op])
        tail += count * block_tail - prices.tail(kind, scaled_channels(kind, (channels,)), 1)
        time += prices.time(graph, op) + (count - 1) * prices.added(kind, 0, 1)
    for t in cut:
        tail += count * prices.tail("SLICE", 0, 2)
        time += prices.added("SLICE", tensors[t].nbytes, widest)
    size = tensors[result].nbytes
    in_place = prod(tensors[result].shape[:-1]) == 1
    joined = 0 if in_place else kept + 2 * size
    time += 0.0 if in_place else prices.added("SLICE", size, widest)
    peak = max(whole + size - size * widest // channels + worst, joined)
    return Cost(peak=across + peak, ops=ops, tail=tail, time=time)


class _CarryingEstimate:
    """The operators of a body in their order, and what each needs."""

    def __init__(self, base: CarryingLayers, rows: CarriedRows, prices: Prices) -> None:
        self.base, self.rows, self.prices = base, rows, prices
        self.row = {t: base.row_bytes(t) for t in (*rows.entries, *base.inner)}
        self.last = {x: op for op in base.ops for x in base.row_operands(op)}
        self.ops, self.tail, self.time = 0, 0, 0.0

    def cost(self, across: int) -> Cost:
        base, rows, prices = self.base, self.rows, self.prices
        windows = sum(rows.held[t] * self.row[t] for t in base.inner if rows.carried(t))
        held: dict[int, int] = {}
        worst = macs = 0
        for kind, new in (("WHILE", 3), ("DYNAMIC_UPDATE_SLICE", 3), ("SLICE", 2), ("SLICE", 2), ("SLICE", 2)):
            self.count(kind, _RANK, 1, new)
        for op in base.ops:
            y = base.output(op)
            copies = sum(self.operand(op, x) for x in base.row_operands(op))
            new_bytes = rows.new_rows[y] * self.row[y]
            whole = base.graph.tensors[y].nbytes
            scratch = prices.scratch(op) * new_bytes // max(1, whole)
            worst = max(worst, sum(held.values()) + max(copies, new_bytes * (not rows.carried(y))) + scratch)
            macs += base.layers[op].row_macs * rows.new_rows[y]
            self.time += prices.time(base.graph, op) * new_bytes / max(1, whole)
            if rows.carried(y):
                self.count(JOIN, 0, 1, 1)
                self.count("SLICE", rows.carried(y) * self.row[y], base.graph.tensors[y].shape[-1], 5)
            else:
                held[y] = new_bytes
            held = {x: size for x, size in held.items() if self.last.get(x) != op}
        count, around = rows.iterations, self.around()
        return Cost(peak=across + windows + worst + around, macs=count * macs, ops=self.ops, tail=self.tail,
                    time=count * (self.time + prices.iteration))  # fmt: skip

    def around(self) -> int:
        """Bytes of the maps around the loop at its beginning or its end, whichever are more."""
        tensors, rows = self.base.graph.tensors, self.rows
        entering = sum(tensors[t].nbytes for t in rows.entries)
        kept = sum(tensors[t].nbytes for t in rows.entries if _read_later(self.base, t))
        return max(entering, kept + tensors[rows.result].nbytes)

    def operand(self, op: int, x: int) -> int:
        """Bytes of copies of rows that an operator reads."""
        base, rows, shape = self.base, self.rows, self.base.graph.tensors[x].shape
        _, extent = rows.windows(base.layers[op], base.output(op))
        there = rows.held[x] if x in base.inner else min(extent, base.height(x))
        copied = 0 if x in base.inner else there * self.row[x]
        if copied or (op not in rows.padded and there != extent):
            self.count("SLICE", copied, shape[-1], 2)
        if op not in rows.padded:
            return copied
        wide = (
            self.row[x] * (shape[3 - base.stretch.axis] + sum(base.layers[op].across)) // shape[3 - base.stretch.axis]
        )
        padded = (there + sum(rows.padding(base.layers[op], x, there, extent))) * wide
        self.count("PAD", padded, shape[-1], 1)
        self.count("SLICE", _RANK, 1, 2)
        self.count("GATHER", extent * wide, wide, 1)
        return copied + padded

    def count(self, kind: str, elements: int, width: int, new: int) -> None:
        """Counts one operator that the loop adds, with so many new tensors."""
        self.ops += 1
        self.tail += self.prices.tail(kind, 0, new)
        self.time += self.prices.added(kind, elements, width)


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
        needed = np.zeros_like(low) if _read_later(base, x) else np.minimum.accumulate(low[::-1])[::-1]
        total += tensors[x].nbytes - needed * row
    result = tensors[loop_tiling.result]
    row = result.nbytes // result.shape[axis]
    begun = axis_rows.result.extent if base.stretch.columns else 0  # a stripe of tiles is made in pieces
    return int((total + (np.array(starts) + begun) * row).max())


def _read_later(base: AnyLayers, t: int) -> bool:
    return t in base.graph.outputs or any(r not in base.layers and r > base.ops[-1] for r in base.graph.readers[t])


class _Estimate:
    """The operators of all stripes in the order in which they run, and what each needs."""

    def __init__(self, base: UnrolledLayers, prices: Prices) -> None:
        self.base, self.prices, self.rows = base, prices, stripe_rows(base)
        self.tensors = base.graph.tensors
        self.runs = [(i, op) for i, stripe in enumerate(self.rows) for op in base.ops if op in stripe.windows]
        self.number = {run: n for n, run in enumerate(self.runs)}
        self.maps = base.inner.union(*map(base.row_operands, base.ops))
        self.row_bytes = {t: base.row_bytes(t) for t in self.maps}
        self.padded = [self.padded_bytes(i, op) for i, op in self.runs]
        self.ops, self.tail, self.time = 0, 0, 0.0  # of what stripes add

    def cost(self, across: int) -> Cost:
        base, rows = self.base, self.rows
        live = np.full(len(self.runs), across, dtype=np.int64)
        dying = np.zeros(len(self.runs), dtype=np.int64)
        for t in self.maps:
            during, after = self.rows_alive(t)
            live += during * self.row_bytes[t]
            dying += (during - after) * self.row_bytes[t]
        born = np.array(
            [rows[i].windows[op].computed * self.row_bytes[base.output(op)] for i, op in self.runs], dtype=np.int64
        )
        padded = np.array(self.padded, dtype=np.int64)
        with_copy = np.where(padded > 0, live + padded, 0)
        dying = np.where(padded > 0, padded + dying, dying)
        scratch = np.array(
            [self.prices.scratch(op) * rows[i].windows[op].computed // base.layers[op].rows_out for i, op in self.runs]
        )
        peak = int(max(with_copy.max(), (live + padded + scratch + born - np.minimum(dying, born)).max()))
        macs = sum(rows[i].windows[op].computed * base.layers[op].row_macs for i, op in self.runs)
        ops, tail, time = self.operators()
        return Cost(peak=peak, macs=macs, ops=ops, tail=tail, time=time)

    def rows_alive(self, t: int) -> tuple[IntArray, IntArray]:
        """For each operator the rows of map `t` alive while it runs (its output left out), and after it."""
        base, inner, height = self.base, t in self.base.inner, self.base.height(t)
        readers = [r for r in base.graph.readers[t] if r in base.layers]
        if inner and t not in base.kept:
            return self.alive_in_stripe(t, readers)
        turned = any(base.layers[r].places for r in readers)  # rows that lie all over the map
        kept = turned or t in base.exits or (not inner and _read_later(base, t))
        first_rows = [0 if kept else height] * (len(self.runs) + 1)
        ends = [0 if inner else height] * len(self.runs)
        producer = base.graph.producers[t]
        for i, stripe in enumerate(self.rows):
            for r in readers:
                window = stripe.windows.get(r)
                if window:
                    n = self.number[i, r]
                    first_rows[n] = min(first_rows[n], window.lo)
            if inner and t in stripe.computed:
                ends[self.number[i, producer]] = stripe.computed[t][1]
        needed = np.minimum.accumulate(np.array(first_rows[::-1], dtype=np.int64))[::-1]
        before = np.maximum.accumulate(np.array([0 if inner else height, *ends[:-1]], dtype=np.int64))
        return np.maximum(before - needed[:-1], 0), np.maximum(before - needed[1:], 0)

    def alive_in_stripe(self, t: int, readers: list[int]) -> tuple[IntArray, IntArray]:
        """Rows that are recomputed for each stripe live from their making to their last reader there."""
        during, after = (np.zeros(len(self.runs), dtype=np.int64) for _ in range(2))
        for i, stripe in enumerate(self.rows):
            if t in stripe.computed:
                lo, hi = stripe.computed[t]
                first = self.number[i, self.base.graph.producers[t]]
                last = max((self.number[i, r] for r in readers if r in stripe.windows), default=first)
                during[first + 1 : last + 1] = hi - lo
                after[first + 1 : last] = hi - lo
        return during, after

    def padded_bytes(self, i: int, op: int) -> int:
        """Bytes of the padded window of an operator in stripe `i`, 0 where there is none."""
        window, layer = self.rows[i].windows[op], self.base.layers[op]
        if not (window.padded and layer.kind == "window" and any((window.above, window.below, *layer.across))):
            return 0
        x = self.base.graph.ops[op].inputs[0]
        other, height = (
            self.tensors[x].shape[3 - self.base.axis_of(x)],
            window.hi - window.lo + window.above + window.below,
        )
        return height * (self.row_bytes[x] // other) * (other + sum(layer.across))

    def operators(self) -> tuple[int, int, float]:
        """Operators added, what the runtime keeps for them beyond the unsplit operators, and nanoseconds of all."""
        base, cost, time = self.base, 0, 0.0
        own, run, each = {}, {}, {}
        for op in base.ops:
            kind, shape = base.graph.ops[op].kind, self.tensors[base.output(op)].shape
            own[op] = self.prices.tail(kind, scaled_channels(kind, shape), 1)
            cost -= own[op]
            run[op] = self.prices.added(kind, 0, 1)
            each[op] = (self.prices.time(base.graph, op) - run[op]) / base.layers[op].rows_out
        for n, (i, op) in enumerate(self.runs):
            time += run[op] + each[op] * self.rows[i].windows[op].computed
            cost += own[op]
            self.count_around(n)
        joins = len(base.exits) * (1 + (base.stretch.stripes > MOST_JOINED) * -(-base.stretch.stripes // MOST_JOINED))
        for _ in range(joins):
            self.count(JOIN, 0, 1)
        return len(self.runs) - len(base.ops) + self.ops, cost + self.tail, time + self.time

    def count_around(self, n: int) -> None:
        """Counts the operators that pad, cut and join around one that runs."""
        i, op = self.runs[n]
        base, stripe, y = self.base, self.rows[i], self.base.output(op)
        window, (a, b), lo = stripe.windows[op], stripe.computed[y], stripe.seen[y][0]
        row, deep = self.row_bytes[y], self.tensors[y].shape[-1]
        if self.padded[n]:
            self.count("PAD", self.padded[n], deep)
        if window.computed != b - a:
            self.count("SLICE", (b - a) * row, deep)
        if lo < a:
            self.count("SLICE", (a - lo) * row, deep)
            self.count(JOIN, (b - lo) * row, deep)
        for x in base.row_operands(op):
            if (window.lo, window.hi) != stripe.seen.get(x, (0, base.layers[op].rows_in)):
                self.count("SLICE", (window.hi - window.lo) * self.row_bytes[x], self.tensors[x].shape[-1])

    def count(self, kind: str, elements: int, width: int) -> None:
        """Counts one operator that stripes add."""
        self.ops += 1
        self.tail += self.prices.tail(kind, 0, 1 if kind == JOIN else 2)
        self.time += self.prices.added(kind, elements, width)

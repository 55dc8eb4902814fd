"""A slow twin of the core's stripes: the rows of each stripe and the price of a stretch, one by one in Python."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise

import numpy as np
from row_windows import input_window

from modelplan.model import IntArray
from modelplan.rewriting.striped_tflite.costs import scaled_channels
from modelplan.rewriting.striped_tflite.estimating import Cost, Prices
from modelplan.rewriting.striped_tflite.steps import JOIN, MOST_JOINED
from modelplan.rewriting.stripes.row_windows import IllegalStripeError, InputWindow, Layer
from modelplan.rewriting.stripes.stretches import HaloStripes, KeptHalo, RollingStripes, StretchLayers, UnrolledLayers
from modelplan.rewriting.stripes.stripe_rows import StripeRows


def plain_price(base: UnrolledLayers, across: int, prices: Prices) -> Cost:
    """`estimate` of estimating.py."""
    return _Estimate(base, prices).cost(across)


def plain_stripe_rows(base: UnrolledLayers) -> list[StripeRows]:
    stretch = base.stretch
    if isinstance(stretch, RollingStripes):
        return _rolling(base.as_stretch(stretch))
    if not isinstance(stretch, HaloStripes):
        raise TypeError(f"stripes of the unknown strategy {type(stretch).__name__}")
    stripes: list[StripeRows] = []
    upto = dict.fromkeys(base.inner, 0)  # how far each map has been made
    last, total = base.graph.ops[base.ops[-1]].outputs[0], stretch.cuts[-1]
    if stretch.backward and (isinstance(stretch, KeptHalo) or base.exits != {last}):
        raise IllegalStripeError("stripes from the last to the first keep no rows and have one result")
    shares = list(pairwise(stretch.cuts))
    for low, high in reversed(shares) if stretch.backward else shares:
        if stretch.backward:
            upto[last] = low
        rows = _one_stripe(base, (total, low, high), last, upto)
        for t, (_, end) in rows.computed.items():
            upto[t] = max(upto[t], end)
        stripes.append(rows)
    _check_finished(base, upto, {last} if stretch.backward else set())
    if not stretch.backward:
        _keep_for_later(base, stripes)
    return stripes


def _check_finished(base: UnrolledLayers, upto: dict[int, int], but: set[int]) -> None:
    """Refuses stripes that do not make all rows of a result, `but` some that are known to be made."""
    for t in base.exits - but:
        if upto[t] != base.height(t):
            raise IllegalStripeError(f"rows of {base.graph.tensors[t].name!r} are left out")


def _one_stripe(base: UnrolledLayers, share: tuple[int, int, int], last: int, upto: dict[int, int]) -> StripeRows:
    rows, (total, _, high) = StripeRows(), share
    wanted: dict[int, tuple[int, int]] = {}
    for index in reversed(base.ops):
        y, layer = base.graph.ops[index].outputs[0], base.layers[index]
        lo, hi = wanted.get(y, (upto[y], upto[y]))
        if y == last:
            lo, hi = share[1:]
        elif y in base.exits:
            height = layer.rows_out
            whole = height if high == total else -(-height * high // total) if y not in wanted else hi
            lo, hi = min(lo, upto[y]), max(hi, whole)
        start = max(lo, upto[y]) if y in base.kept else lo
        if start >= hi:
            rows.seen[y] = (lo, hi)
            continue
        rows.seen[y], rows.computed[y] = (lo, max(hi, start)), (start, hi)
        window = input_window(layer, start, hi, pad=index in base.stretch.pad)
        rows.windows[index] = window
        for position in layer.operands:
            x = base.graph.ops[index].inputs[position]
            a, b = wanted.get(x, (window.lo, window.hi))
            wanted[x] = (min(a, window.lo), max(b, window.hi))
    return rows


def _keep_for_later(base: UnrolledLayers, stripes: Sequence[StripeRows]) -> None:
    """Extends the rows kept of a map by those that a later stripe needs of it."""
    for now, later in reversed(list(pairwise(stripes))):
        for t in base.inner:
            if t not in now.seen or t not in later.seen or t not in base.kept:
                continue
            lo, hi = now.seen[t]
            now.seen[t] = (min(lo, later.seen[t][0]), hi)


def _rolling(base: StretchLayers[RollingStripes]) -> list[StripeRows]:
    """Rows at the pace of the first operator: all that depends on it follows, what else is read on demand."""
    cuts, height = base.stretch.cuts, base.layers[base.ops[0]].rows_out
    if cuts[-1] != height:
        raise IllegalStripeError("stripes at the pace of the first operator count its rows")
    rows_made = _as_soon_as_possible(base, (*cuts[1:], *([height] * len(base.ops))))
    _postpone(base, rows_made)
    upto = dict.fromkeys(base.inner, 0)
    ticks = [_one_tick(base, rows_made, tick, upto) for tick in range(len(rows_made[base.ops[0]]))]
    stripes = [rows for rows in ticks if rows.windows]
    _check_finished(base, upto, set())
    _keep_for_later(base, stripes)
    return stripes


def _followers(base: UnrolledLayers) -> tuple[int, ...]:
    """The first operator of a stretch and all that depend on it."""
    computed: set[int] = set()
    followers: list[int] = []
    for op in base.ops:
        reads = set(base.row_operands(op))
        if op == base.ops[0] or reads & computed:
            computed.add(base.graph.ops[op].outputs[0])
            if base.layers[op].kind != "cut":  # which is made for those that read it
                followers.append(op)
    return tuple(followers)


def _as_soon_as_possible(base: UnrolledLayers, ends: Sequence[int]) -> dict[int, list[int]]:
    """How many rows each follower has made behind each tick, in which the first operator's rows reach `ends`."""
    followers = _followers(base)
    followed = {base.output(op) for op in followers}
    step, height = max(b - a for a, b in pairwise((0, *ends))), ends[-1]
    most = {op: -(-step * base.layers[op].rows_out // height) for op in followers}
    upto = dict.fromkeys(base.inner, 0)
    rows_made: dict[int, list[int]] = {op: [] for op in followers}
    first, *others = followers
    paces = [_Pace.of(base, op, followed, most[op]) for op in others]
    for end in ends:
        upto[base.output(first)] = end
        rows_made[first].append(end)
        for pace in paces:
            have = [upto[t] for t in pace.reads]
            have += [upto[t] + above for t, above in pace.through_cuts]
            limit = _limit(pace.layer, upto[pace.output] + pace.most)
            upto[pace.output] = _ready(pace.layer, upto[pace.output], limit, min(have, default=0), pad=pace.pad)
            rows_made[pace.op].append(upto[pace.output])
    return rows_made


@dataclass(frozen=True, slots=True)
class _Pace:
    """An operator that follows the first one: the rows that it makes in a tick at most, and the maps that it waits for.

    `through_cuts` are maps that it reads without the padding `above` them, which an operator between takes off.
    """

    op: int
    output: int
    layer: Layer
    pad: bool
    most: int
    reads: tuple[int, ...]
    through_cuts: tuple[tuple[int, int], ...]

    @classmethod
    def of(cls, base: UnrolledLayers, op: int, followed: set[int], most: int) -> _Pace:
        graph, layer = base.graph, base.layers[op]
        producers = (graph.producers[t] for t in base.row_operands(op))
        cuts = (cut for cut in producers if cut in base.layers and base.layers[cut].kind == "cut")
        through = tuple((graph.ops[cut].inputs[0], base.layers[cut].above) for cut in cuts)
        reads = tuple(set(base.row_operands(op)) & followed)
        return cls(op, base.output(op), layer, op in base.stretch.pad, most, reads, through)


def _postpone(base: UnrolledLayers, rows_made: dict[int, list[int]]) -> None:
    """Lets the operators of a branch wait for the other branch, where that keeps fewer bytes.

    Where two branches are added, one of them has the longer windows. The other need not make its rows before the sum:
    the rows of its operand are kept anyway, for these windows. No more rows are made at once for it.
    """
    waiting: dict[int, list[int]] = {}  # operators that wait, with their rows as they were
    unpaid = set[int]()  # those of them whose wait pays only if an operator before them waits too
    for op in reversed(list(rows_made)):
        readers, before = base.graph.readers[base.output(op)], rows_made[op]
        if base.output(op) in base.exits or any(reader not in rows_made for reader in readers):
            continue
        if not any(reader in waiting or len(base.row_operands(reader)) > 1 for reader in readers):
            continue
        windows = zip(*(_windows(base, rows_made, reader) for reader in readers), strict=True)
        needed = list(accumulate((max((w.hi for w in tick if w), default=0) for tick in windows), max))
        gain, kept = 0, _kept_bytes(base, rows_made, op)
        for delay in range(1, len(before) if needed != before else 0):
            later = list(map(max, needed, [0] * delay + before))
            try:
                saved = kept - _kept_bytes(base, rows_made | {op: later}, op)
            except IllegalStripeError:  # rows of padding alone
                break
            if saved < gain or _made_at_once(later) > _made_at_once(before):
                break
            waiting.setdefault(op, before)
            gain, rows_made[op] = saved, later
            if later == needed:
                break
        unpaid = set() if gain > 0 else unpaid | ({op} & waiting.keys())
    rows_made.update({op: waiting[op] for op in unpaid})


def _made_at_once(ends: Sequence[int]) -> list[int]:
    """The numbers of rows that are made in each tick, the largest first."""
    return sorted((b - a for a, b in pairwise((0, *ends))), reverse=True)


def _windows(base: UnrolledLayers, rows_made: dict[int, list[int]], op: int) -> list[InputWindow | None]:
    """The window that an operator reads in each tick, None in one in which it makes nothing."""
    pad = op in base.stretch.pad
    return [input_window(base.layers[op], a, b, pad=pad) if a < b else None for a, b in pairwise((0, *rows_made[op]))]


def _kept_bytes(base: UnrolledLayers, rows_made: dict[int, list[int]], op: int) -> int:
    """Bytes of an operator's result and its operands that are kept from a tick to the next, in all ticks together."""
    total = 0
    for t in {base.output(op), *base.row_operands(op)} - base.exits:
        producer = base.graph.producers[t]
        there = rows_made[producer] if producer in rows_made else [base.height(t)] * len(rows_made[op])
        reads = [_windows(base, rows_made, reader) for reader in base.graph.readers[t] if reader in rows_made]
        first, rows = base.height(t), 0
        for upto, windows in zip(reversed(there), reversed(list(zip(*reads, strict=True))), strict=True):
            rows += max(upto - first, 0)
            first = min([first, *(w.lo for w in windows if w)])
        total += rows * (base.graph.tensors[t].nbytes // base.height(t))
    return total


def _one_tick(base: UnrolledLayers, rows_made: dict[int, list[int]], tick: int, upto: dict[int, int]) -> StripeRows:
    """The rows of all maps in a tick, behind which followers have `rows_made` rows."""
    rows = StripeRows()
    for op, ends in rows_made.items():
        y, end = base.output(op), ends[tick]
        if end > upto[y]:
            rows.windows[op] = input_window(base.layers[op], upto[y], end, pad=op in base.stretch.pad)
            rows.computed[y] = upto[y], end
            upto[y] = end
    for op in reversed(base.ops):
        if op not in rows_made:
            _on_demand(base, op, rows, upto)
    first = {t: rows.computed[t][0] if t in rows.computed else upto[t] for t in base.inner}
    for op, window in rows.windows.items():
        for t in base.graph.ops[op].inputs:
            if t in first and window.lo < first[t]:
                first[t] = window.lo
    rows.seen = {t: (lo, upto[t]) for t, lo in first.items()}
    return rows


def _limit(layer: Layer, end: int) -> int:
    """A row count near `end` such that no stripe consists of padding alone."""
    if layer.kind == "pad":
        end = max(end, layer.above + 1)
        return layer.rows_out if end >= layer.above + layer.rows_in else end
    return min(end, layer.rows_out)


def _ready(layer: Layer, first: int, limit: int, most: int, *, pad: bool) -> int:
    """The end of the rows from `first` on, up to `limit`, that an operator can compute from `most` of its operand."""
    for end in range(limit, first, -1):
        try:
            if input_window(layer, first, end, pad=pad).hi <= most:
                return end
        except IllegalStripeError:
            continue
    return first


def _on_demand(base: UnrolledLayers, op: int, rows: StripeRows, upto: dict[int, int]) -> None:
    """The rows of an operator that the windows of this tick read and that are not there yet."""
    y = base.graph.ops[op].outputs[0]
    wanted = max((w.hi for r, w in rows.windows.items() if y in base.graph.ops[r].inputs), default=0)
    if wanted > upto[y]:
        rows.windows[op] = input_window(base.layers[op], upto[y], wanted, pad=op in base.stretch.pad)
        rows.computed[y] = upto[y], wanted
        upto[y] = wanted


class _Estimate:
    """The operators of all stripes in the order in which they run, and what each needs."""

    def __init__(self, base: UnrolledLayers, prices: Prices) -> None:
        self.base, self.prices, self.rows = base, prices, plain_stripe_rows(base)
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
        kept = turned or t in base.exits or (not inner and base.is_read_later(t))
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

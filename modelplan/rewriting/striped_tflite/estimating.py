"""What a stretch in stripes costs, from its rows alone: peak bytes, work, operators. Nothing is built or packed."""

from collections.abc import Callable, Mapping
from itertools import pairwise
from math import prod

import numpy as np

from modelplan.model import Graph, Kind
from modelplan.ops.op_facts import Amounts, Terms
from modelplan.primitives import _core
from modelplan.primitives.lazy_records import dataclass
from modelplan.rewriting.striped_tflite.costs import scaled_channels
from modelplan.rewriting.striped_tflite.steps import JOIN, MOST_JOINED
from modelplan.rewriting.stripes.carried_rows import CarriedRows, carried_rows
from modelplan.rewriting.stripes.loop_rows import MOST_TILES
from modelplan.rewriting.stripes.row_windows import IllegalStripeError
from modelplan.rewriting.stripes.stretches import AnyLayers, BlockLayers, CarryingLayers, LoopLayers, UnrolledLayers
from modelplan.rewriting.stripes.stripe_rows import core_form, core_stretch, layer_table

#: Numbers of a begin vector, and the operands of most joins.
_RANK, _JOINED = 4, 2


@dataclass(frozen=True, slots=True)
class Prices:
    """What operators cost the runtime.

    `tail` are bytes that it keeps for one more operator: (kind, channels that are scaled each for itself, new tensors).
    `time` are nanoseconds of an operator of a graph as a whole, `terms` those of a kind that the rewrite adds,
    `iteration` those of an iteration of a loop beside its operators. `scratch` are bytes of the working buffers of an
    operator of the whole graph that grow with its maps.
    """

    tail: Callable[[str, int, int], int]
    time: Callable[[Graph, int], float]
    terms: Callable[[str], Terms]
    iteration: float
    scratch: Callable[[int], int] = lambda _: 0

    def added(self, kind: str, elements: int, width: int) -> float:
        """Nanoseconds of an operator that the rewrite adds, for so many elements in runs of `width`: an estimate."""
        copies = _JOINED if kind == JOIN else elements // max(width, 1)
        return self.terms(kind).time(Amounts(elements, elements, 0, copies))


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

    Raises:
        IllegalStripeError: there are no stripes of this form.
    """
    answer = core_stretch(base).price(*core_form(base.ops, base.stretch), _known_prices(base, prices), across)
    return _cost(answer)


def _cost(answer: tuple[int, int, int, int, float] | None) -> Cost:
    if answer is None:
        raise IllegalStripeError("no stripes of this form")
    peak, macs, ops, tail, time = answer
    return Cost(peak=peak, macs=macs, ops=ops, tail=tail, time=time)


def _known_prices(base: AnyLayers, prices: Prices) -> _core.StripePrices:
    if base.known.prices is None or base.known.prices[0] is not prices:
        base.known.prices = prices, _core_prices(base, prices)
    return base.known.prices[1]


def _core_prices(base: AnyLayers, prices: Prices) -> _core.StripePrices:
    """What the operators of a stretch cost, and those that stripes and loops add, as the core takes it."""
    graph, kept, times = base.graph, list[tuple[int, int]](), list[tuple[float, float]]()
    for op in base.ops:
        kind, shape = graph.ops[op].kind, graph.tensors[base.output(op)].shape
        kept.append((prices.tail(kind, scaled_channels(kind, shape), 1), prices.scratch(op)))
        run = prices.added(kind, 0, 1)
        times.append((run, (prices.time(graph, op) - run) / base.layers[op].rows_out))
    added = []
    for kind, new in (("PAD", 2), ("SLICE", 2), (JOIN, 1), ("DYNAMIC_UPDATE_SLICE", 3)):
        terms = prices.terms(kind)
        added.append((prices.tail(kind, 0, new), terms.run, terms.output, terms.tap, terms.copy))
    known = _core.StripePrices(np.array(kept, dtype=np.int64), np.array(times), np.array(added), MOST_JOINED)
    known.loop_tail, known.iteration, known.most_tiles = prices.tail("WHILE", 0, 3), prices.iteration, MOST_TILES
    return known


def estimate_loop(base: LoopLayers, across: int, prices: Prices) -> Cost:
    """The cost of a stretch as a loop.

    Raises:
        IllegalStripeError: the stretch has no windows of one extent.
    """
    base.ends()  # or there is no such loop
    stretch = base.stretch
    across_layers = layer_table(base.across, base.ops) if stretch.columns else None
    form = stretch.cuts[1] - stretch.cuts[0], stretch.trim_late, across_layers, stretch.columns
    return _cost(core_stretch(base).loop_price(*form, _known_prices(base, prices), across))


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
    whole, kept = (sum(tensors[t].nbytes for t in entries if keep or base.is_read_later(t)) for keep in (True, False))
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
        kept = sum(tensors[t].nbytes for t in rows.entries if self.base.is_read_later(t))
        return max(entering, kept + tensors[rows.result].nbytes)

    def operand(self, op: int, x: int) -> int:
        """Bytes of copies of rows that an operator reads."""
        base, rows, shape = self.base, self.rows, self.base.graph.tensors[x].shape
        extent = rows.extent(base.layers[op], base.output(op))
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

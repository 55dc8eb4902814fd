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
from modelplan.rewriting.stripes.carried_rows import checked_ends
from modelplan.rewriting.stripes.loop_rows import MOST_TILES
from modelplan.rewriting.stripes.row_windows import IllegalStripeError
from modelplan.rewriting.stripes.stretches import AnyLayers, BlockLayers, CarryingLayers, LoopLayers, UnrolledLayers
from modelplan.rewriting.stripes.stripe_rows import core_form, core_stretch, layer_table

#: The operands of most joins.
_JOINED = 2


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
    stripes = ("PAD", 2), ("SLICE", 2), (JOIN, 1), ("DYNAMIC_UPDATE_SLICE", 3)
    for kind, new in (*stripes, ("WHILE", 3), ("PAD", 1), ("GATHER", 1), ("SLICE", 5)):
        terms = prices.terms(kind)
        added.append((prices.tail(kind, 0, new), terms.run, terms.output, terms.tap, terms.copy))
    known = _core.StripePrices(np.array(kept, dtype=np.int64), np.array(times), np.array(added), MOST_JOINED)
    known.iteration, known.most_tiles = prices.iteration, MOST_TILES
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
    checked_ends(base)
    return _cost(core_stretch(base).carrying_price(base.stretch.cuts[1], _known_prices(base, prices), across))


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

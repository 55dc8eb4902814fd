"""Which stretches of a model to compute in stripes, and in how many: candidates, dynamic programming, refinement.

Candidates are priced from their rows alone (estimating.py). For a target of live bytes, the cheapest plan whose parts
all stay below it is found exactly over all cut points: each operator runs whole or inside one candidate. Targets are
swept; the most promising plans are built and packed, and the best is refined.
"""

from collections.abc import Container, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import cache
from itertools import accumulate
from sys import maxsize

import numpy as np

from modelplan.model import Graph, Kind
from modelplan.ops.op_facts import TFLITE_RESHAPES
from modelplan.ops.run_costs import op_macs
from modelplan.primitives import _core
from modelplan.primitives.lazy_records import dataclass
from modelplan.rewriting.striped_tflite.building import striped_program
from modelplan.rewriting.striped_tflite.channel_blocks import block_layers, channel_operands
from modelplan.rewriting.striped_tflite.estimating import (
    Cost,
    Prices,
    estimate,
    estimate_blocks,
    estimate_carrying,
    estimate_loop,
)
from modelplan.rewriting.striped_tflite.joining import joined_parts, source_of
from modelplan.rewriting.striped_tflite.layers import layer_of, stretch_layers
from modelplan.rewriting.striped_tflite.placing import KernelOverlaps
from modelplan.rewriting.striped_tflite.steps import MOST_JOINED
from modelplan.rewriting.stripes.row_windows import IllegalStripeError
from modelplan.rewriting.stripes.search_effort import TfliteEffort
from modelplan.rewriting.stripes.stretches import (
    AnyLayers,
    BlockLayers,
    CarryingLoop,
    ChannelBlocks,
    KeptHalo,
    LoopedStripes,
    RecomputedHalo,
    RollingStripes,
    Strategy,
    StretchLayers,
    StripedStretch,
    UnrolledStripes,
    as_strategy,
    even_cuts,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate(Cost):
    """A stretch in stripes with its worst step's bytes and the cost that it adds to the unsplit operators."""

    stretch: StripedStretch


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """Stretches to compute in stripes, apart and ascending, and what is expected of them."""

    stretches: tuple[StripedStretch, ...]
    cost: Cost


class Space:
    """A graph in an order, with cached answers to the search's questions.

    `lives` are the steps [start, end) of each tensor, `live` the live bytes of each step with its operator whole,
    `peaks` these and the working buffers that are as large as maps, `layers` how operators go by rows, or why they are
    not split.
    """

    def __init__(
        self, graph: Graph, order: tuple[int, ...], overlaps: KernelOverlaps, prices: Prices, effort: TfliteEffort
    ) -> None:
        self.graph, self.order, self.overlaps, self.prices, self.effort = graph, order, overlaps, prices, effort
        self.plain = striped_program(graph, order, ())
        position = {op: step for step, op in enumerate(order)}
        self.joined = joined_parts(graph)
        self.lives = [self._life(t, position) for t in range(len(graph.tensors))]
        self.layers = {op: layer_of(graph, op, self.axis_of(op)) for op in order}
        self._loads = self._live_bytes()
        self.live = [self._peak(step) for step in range(len(order))]
        self.peaks = [live + prices.scratch(op) for live, op in zip(self.live, order, strict=True)]
        self.stretch, self.blocks = cache(self._stretch), cache(self._blocks)
        #: The highest peak of all steps before one, and of all from one on.
        self.before = [0, *accumulate(self.peaks, max)]
        self.behind = [*accumulate(reversed(self.peaks), max, initial=0)][::-1]

    def axis_of(self, op: int) -> int:
        """The axis that an operator is cut along: the height, or the width where the height of its maps is 1."""
        shapes = [self.graph.tensors[t].shape for t in self.graph.ops[op].writes]
        return 2 if any(len(s) == 4 and s[1] == 1 and s[2] > 1 for s in shapes) else 1

    def _life(self, t: int, position: dict[int, int]) -> tuple[int, int]:
        """Steps [start, end) in which a tensor holds memory of its own; a view and its source count once."""
        tensor, producer = self.graph.tensors[t], self.graph.producers[t]
        if tensor.kind is not Kind.ACTIVATION or (producer < 0 and t not in self.graph.inputs):
            return 0, 0
        uses = [position[r] + 1 for r in self.graph.readers[t]]
        start = 0 if producer < 0 else position[producer]
        end = len(self.order) if t in self.graph.outputs else max([*uses, start + 1])
        part = self.joined.get(source_of(self.graph, t))
        return start, min(end, max(position[part.op], start + 1)) if part else end

    def _live_bytes(self) -> list[int]:
        """The bytes of all tensors that hold memory in each step."""
        changes = [0] * (len(self.order) + 1)
        for tensor, (start, end) in zip(self.graph.tensors, self.lives, strict=True):
            changes[start] += tensor.nbytes
            changes[end] -= tensor.nbytes
        return list(accumulate(changes))

    def _peak(self, step: int) -> int:
        op = self.graph.ops[self.order[step]]
        own = {t for t in (*op.reads, *op.writes) if self.lives[t][0] <= step < self.lives[t][1]}
        return self._loads[step] - sum(self.graph.tensors[t].nbytes for t in own) + self._local(step, own)

    def _local(self, step: int, own: set[int]) -> int:
        """Bytes of an operator's own tensors, less what its output may run into."""
        index = self.order[step]
        op, tensors = self.graph.ops[index], self.graph.tensors
        total = sum(tensors[t].nbytes for t in own)
        best = total
        if len(op.writes) != 1:
            return total
        y = tensors[op.writes[0]].nbytes
        if op.kind in TFLITE_RESHAPES:
            return total - y
        for position, lead, exact in self.overlaps(self.plain, self.plain.steps[step]):
            t = op.inputs[position]
            if t in own and self.lives[t][1] == step + 1 and op.inputs.count(t) == 1:
                x = tensors[t].nbytes
                best = min(best, total - x - y + (max(x, y) if exact else max(y, lead + x)))
        return best

    def _stretch(self, first: int, last: int) -> tuple[AnyLayers, int] | None:
        """Operators [first, last] as one stripe, and the bytes that live across them; None where they have no rows.

        None too where one at an end only renames a map, which whole is no copy.
        """
        if any(self.graph.ops[self.order[step]].kind in TFLITE_RESHAPES for step in (first, last)):
            return None
        axis = self.axis_of(self.order[last])
        height = self.graph.tensors[self.graph.ops[self.order[last]].outputs[0]].shape[axis]
        try:
            base = stretch_layers(self.graph, self.order, StripedStretch(first, last, axis, (0, height)))
        except IllegalStripeError:
            return None
        return base, self.across(first, last, base.inner.union(*map(base.row_operands, base.ops)))

    def _blocks(self, first: int, last: int) -> tuple[BlockLayers, dict[int, int], int] | None:
        """Operators [first, last] in blocks of channels, how many constants of each are cut, and live bytes across.

        None where there are no such blocks.
        """
        try:
            base = block_layers(self.graph, self.order, next(blocks_of(self, first, last)))
        except (IllegalStripeError, StopIteration):
            return None
        operands = {op: channel_operands(self.graph, self.graph.ops[op]) for op in base.ops}
        constants = {op: 0 if isinstance(how, str) else len(how.constants) for op, how in operands.items()}
        touched = base.inner.union(*(self.graph.ops[op].reads for op in base.ops))
        return base, constants, self.across(first, last, touched)

    def across(self, first: int, last: int, touched: frozenset[int]) -> int:
        """Bytes that live through steps [first, last] without being touched there."""
        return sum(
            self.graph.tensors[t].nbytes
            for t, (start, end) in enumerate(self.lives)
            if start < first and end > last + 1 and t not in touched
        )


def promising_ranges(space: Space, ceiling: int, floor: int) -> list[tuple[int, int]]:
    """Runs of operators, first and last, of which some stripes may stay below `ceiling`, as many as can be priced.

    Each holds at least one operator that needs more than `floor` by itself. For each such operator the runs between
    small maps come first, all operators in turn, until enough stretches are priced.
    """
    ranges: list[tuple[int, int]] = []
    priced = 0
    for base, _ in _in_turn(space, list(_ranges(space, ceiling, floor)), floor):
        if priced > space.effort.priced:
            break
        priced += sum(not isinstance(form, CarryingLoop) for form in _forms(space, base))
        ranges.append((base.stretch.first, base.stretch.last))
    return ranges


def striped_candidates(space: Space, first: int, last: int, ceiling: int) -> list[Candidate]:
    """Operators [first, last] in stripes that stay below `ceiling`, the dearer of two ways left out."""
    candidates: list[Candidate] = []
    for base, across in _of_range(space, first, last, ceiling):
        prices = (_priced(space, base, form, across) for form in _forms(space, base))
        below_ceiling = [c for c in prices if c and c.peak < ceiling]
        for carries in (False, True):  # the windows of loops that carry rows leave gaps, so their price says less
            candidates += _undominated(c for c in below_ceiling if carries_rows(c) == carries)
    return candidates


def priced(space: Space, form: StripedStretch) -> Candidate | None:
    """A stretch in stripes of this form with what it is expected to cost, None where there are no such stripes."""
    if isinstance(form, ChannelBlocks):
        return priced_blocks(space, form)
    if not isinstance(form, CarryingLoop | LoopedStripes | UnrolledStripes):
        raise TypeError(f"stripes of the unknown form {type(form).__name__}")
    candidates = (
        _priced(space, base, form, across) for base, across in _of_range(space, form.first, form.last, maxsize)
    )
    return next(candidates, None)


def channel_candidates(space: Space, ceiling: int, floor: int, barred: Container[int] = ()) -> list[Candidate]:
    """Stretches in blocks of channels that stay below `ceiling`, each with an operator that needs more than `floor`.

    Operators of `barred` are in none.
    """
    candidates, graph = list[Candidate](), space.graph
    whole = {op for op in space.order if isinstance(channel_operands(graph, graph.ops[op]), str)}
    for first in range(len(space.order)):
        for last in range(first, min(first + space.effort.longest, len(space.order))):
            op = space.order[last]
            if op in barred or op in whole:
                break
            alone = first == last and not space.prices.scratch(op)  # blocks of it save nothing
            if not alone and max(space.peaks[first : last + 1]) > floor:
                priced = (priced_blocks(space, stretch) for stretch in blocks_of(space, first, last))
                candidates += _undominated(c for c in priced if c and c.peak < ceiling)
    return candidates


def blocks_of(space: Space, first: int, last: int) -> Iterator[ChannelBlocks]:
    """Operators [first, last] in blocks of channels, in several numbers of them; borders are even where they can be."""
    shape = space.graph.tensors[space.graph.ops[space.order[last]].outputs[0]].shape
    for blocks in range(2, MOST_JOINED + 1):
        unit = space.effort.channels
        while shape[-1] % unit or (shape[-1] // unit < blocks and unit > 1):
            unit //= 2
        cuts = tuple(unit * at for at in even_cuts(shape[-1] // unit, blocks))
        if shape[-1] >= 2 * blocks:
            yield ChannelBlocks(first, last, len(shape) - 1, cuts)


def priced_blocks(space: Space, stretch: ChannelBlocks) -> Candidate | None:
    """Operators in blocks of channels with what they are expected to cost, None where there are no such blocks."""
    known = space.blocks(stretch.first, stretch.last)
    if known is None:
        return None
    base, constants, across = known
    cost = estimate_blocks(base.as_stretch(stretch), constants, across, space.prices)
    time = cost.time - sum(space.prices.time(space.graph, op) for op in base.ops)
    return Candidate(stretch=stretch, peak=cost.peak, ops=cost.ops, tail=cost.tail, time=time)


def _priced(
    space: Space, base: AnyLayers, form: CarryingLoop | LoopedStripes | UnrolledStripes, across: int
) -> Candidate | None:
    """A form of a stretch with what it is expected to cost, None where it is not legal."""
    try:
        if isinstance(form, LoopedStripes):
            cost = estimate_loop(_layers_of_form(space, base, form), across, space.prices)
        elif isinstance(form, CarryingLoop):
            cost = estimate_carrying(base.as_stretch(form), across, space.prices)
        else:
            cost = estimate(_layers_of_form(space, base, form), across, space.prices)
    except IllegalStripeError:
        return None
    if base.known.unsplit is None:
        all_macs = sum(op_macs(space.graph, space.graph.ops[op]) for op in base.ops)
        base.known.unsplit = all_macs, sum(space.prices.time(space.graph, op) for op in base.ops)
    macs, time = base.known.unsplit
    return Candidate(
        stretch=form, peak=cost.peak, macs=cost.macs - macs, ops=cost.ops, tail=cost.tail, time=cost.time - time
    )


def carries_rows(candidate: Candidate) -> bool:
    """Whether a candidate is a loop that carries rows."""
    return isinstance(candidate.stretch, CarryingLoop)


def _layers_of_form(space: Space, base: AnyLayers, form: Strategy) -> StretchLayers[Strategy]:
    """The layers of a stretch for another strategy of stripes."""
    if isinstance(form, UnrolledStripes) and form.pad_early:
        return stretch_layers(space.graph, space.order, form)
    if not (isinstance(form, LoopedStripes) and form.columns):
        return base.as_stretch(form)
    if base.known.tiled is None:
        base.known.tiled = stretch_layers(space.graph, space.order, form)
    return base.known.tiled.as_stretch(form)


def _in_turn(space: Space, ranges: list[tuple[AnyLayers, int]], floor: int) -> list[tuple[AnyLayers, int]]:
    """The stretches, best first, such that each operator above the ceiling has its best ones early."""
    ranges.sort(key=lambda pair: (pair[1] + max(_ends(pair[0])), sum(_ends(pair[0]))))
    turn: dict[int, int] = {}
    places: list[int] = []
    for number, (base, _) in enumerate(ranges):
        best = len(ranges) + number
        for step in range(base.stretch.first, base.stretch.last + 1):
            if space.peaks[step] > floor:
                turn[step] = turn.get(step, 0) + 1
                best = min(best, turn[step])
        places.append(best)
    return [ranges[i] for i in sorted(range(len(ranges)), key=lambda i: (places[i], i))]


def _ranges(space: Space, ceiling: int, floor: int) -> Iterator[tuple[AnyLayers, int]]:
    """Runs of operators that can be split, with the bytes that live across them."""
    for first in range(len(space.order)):
        for last in range(first, min(first + space.effort.longest, len(space.order))):
            if isinstance(space.layers[space.order[last]], str):
                break
            if last > first and max(space.peaks[first : last + 1]) > floor:
                yield from _of_range(space, first, last, ceiling)


def _of_range(space: Space, first: int, last: int, ceiling: int) -> Iterator[tuple[AnyLayers, int]]:
    stretch = space.stretch(first, last)
    if stretch and stretch[1] + max(_ends(stretch[0])) < ceiling:
        yield stretch


def _ends(base: AnyLayers) -> tuple[int, int]:
    """Bytes of the maps that leave a stretch, and of those that enter it."""
    tensors = base.graph.tensors
    read = {t for op in base.ops for t in base.row_operands(op)} - base.inner
    return sum(tensors[t].nbytes for t in base.exits), sum(tensors[t].nbytes for t in read)


def _forms(space: Space, base: AnyLayers) -> Iterator[CarryingLoop | LoopedStripes | UnrolledStripes]:
    """The strategies that are priced for a stretch."""
    effort, stretch, height = space.effort, base.stretch, base.stretch.cuts[-1]
    bordered = [op for op in base.ops if base.layers[op].bordered and base.layers[op].paddable]
    dense = frozenset(op for op in bordered if base.graph.ops[op].kind == "CONV_2D")
    pads = list(dict.fromkeys((frozenset[int](), dense, frozenset(bordered))))
    deep = sum(base.layers[op].reach > 1 for op in base.ops)
    if len(base.graph.ops) > effort.few_ops and len(base.ops) > 1:
        yield from loops_of(effort, stretch, height, _width_for_tiles(effort, base))
    if deep > 0 and len(base.ops) > 1:
        yield from carrying_loops_of(effort, stretch, height)
    yield from _rolling_forms(effort, base, frozenset(bordered))
    for stripes in (*(n for n in effort.stripes if n < height), *([height] if height <= effort.single_rows else [])):
        if stripes < 2 or stripes * len(base.ops) > effort.stripe_steps:
            continue
        for pad in pads:
            cuts = even_cuts(height, stripes)
            yield as_strategy(stretch, KeptHalo, cuts=cuts, pad=pad)
            if deep <= effort.recomputed_windows and stripes <= effort.recomputed_stripes and len(base.ops) > 1:
                yield as_strategy(stretch, RecomputedHalo, cuts=cuts, pad=pad)


def loops_of(effort: TfliteEffort, stretch: StripedStretch, height: int, width: int) -> Iterator[LoopedStripes]:
    """A stretch as a loop over stripes of some rows, and, where `width` is not 0, over parts of them.

    Wrong rows at the borders of windows are passed on or cut off; in tiles passing on would make too many of them.
    """
    for rows in (n for n in effort.looped_rows if 2 * n <= height):
        cuts = (*range(0, height, rows), height)
        loop = LoopedStripes(stretch.first, stretch.last, stretch.axis, cuts)
        yield replace(loop, trim_late=True)
        yield loop
        for parts in effort.tiles if width and rows in effort.tiled_rows else ():
            if -(-height // rows) * parts <= effort.most_tiles and width >= 2 * parts:
                yield replace(loop, columns=-(-width // parts))


def carrying_loops_of(effort: TfliteEffort, stretch: StripedStretch, height: int) -> Iterator[CarryingLoop]:
    """A stretch as a loop that carries rows, over stripes of some rows."""
    for rows in effort.carried_rows:
        if not height % rows and height >= 2 * rows:
            yield as_strategy(stretch, CarryingLoop, cuts=tuple(range(0, height + 1, rows)))


def _width_for_tiles(effort: TfliteEffort, base: AnyLayers) -> int:
    """The width of a stretch's result where some rows of its widest map are much beside those at its ends, else 0."""
    tensors, axis = base.graph.tensors, base.stretch.axis
    rows = max(base.row_bytes(t) for t in base.inner)
    shape = tensors[base.output(base.ops[-1])].shape
    return shape[3 - axis] if axis == 1 and len(shape) == 4 and effort.tiled_from * rows > min(_ends(base)) else 0


def _rolling_forms(effort: TfliteEffort, base: AnyLayers, pad: frozenset[int]) -> Iterator[RollingStripes]:
    """The stretch at the pace of its first operator, a row or some at a time."""
    first, last = base.layers[base.ops[0]].rows_out, base.layers[base.ops[-1]].rows_out
    computed = sum(base.layers[op].rows_out for op in base.ops)
    if len(base.ops) < 3 or last >= first:
        return
    for rows in effort.carried_rows:
        if first // rows >= 4 and computed // rows <= effort.stripe_steps:
            yield as_strategy(base.stretch, RollingStripes, cuts=even_cuts(first, -(-first // rows)), pad=pad)


def _undominated(candidates: Iterable[Candidate]) -> list[Candidate]:
    """Candidates of one range of which none is better in peak, time and kept bytes."""
    kept: list[Candidate] = []
    for c in sorted(candidates, key=lambda c: (c.peak, c.tail, c.time)):
        if not any(k.tail <= c.tail and k.time <= c.time for k in kept):
            kept.append(c)
    return kept


def cost_of(space: Space, chosen: Sequence[Candidate]) -> Cost:
    """What is expected of a plan of these stretches, which are apart and ascending."""
    at = peak = macs = ops = tail = 0
    time = 0.0
    for c in chosen:
        peak = max(peak, c.peak, *space.peaks[at : c.stretch.first])
        macs, ops, tail, time, at = macs + c.macs, ops + c.ops, tail + c.tail, time + c.time, c.stretch.last + 1
    return Cost(peak=max(peak, 0, *space.peaks[at:]), macs=macs, ops=ops, tail=tail, time=time)


def plans(space: Space, candidates: Sequence[Candidate], most_macs: float, most_time: float) -> list[Choice]:
    """The plans of a sweep over targets, from the lowest peak up; each kept once.

    Where a plan adds more than `most_macs` multiply-accumulates or `most_time` nanoseconds, time is given a price that
    rises until it does not. Prices are not exact, so in models of many operators some targets below all plans follow,
    for which the stretches at the lowest peak count as free. In smaller models the improvement of plans gets that far.
    """
    levels = sorted({c.peak for c in candidates} | set(space.peaks))
    effort = space.effort
    if len(levels) > effort.targets:
        levels = sorted({*levels[:: len(levels) // effort.targets + 1], *space.peaks, *levels[: effort.targets // 6]})
    ordered = sorted(candidates, key=lambda c: c.stretch.last)
    kept: dict[tuple[StripedStretch, ...], Choice] = {}
    whole = sum(space.prices.time(space.graph, op) for op in range(len(space.graph.ops)))

    def keep_cheapest(targets: Iterable[int], ordered: Sequence[Candidate]) -> None:
        rows = [(c.stretch.first, c.stretch.last, c.peak, c.tail) for c in ordered]
        table = np.array(rows, dtype=np.int64).reshape(-1, 4)
        sweep = _core.StretchSweep(np.array(space.peaks, dtype=np.int64), table, [c.time for c in ordered])
        for target in targets:
            for price in effort.time_prices:
                places = sweep.cheapest(target, price / max(1, whole))
                if places is None:
                    break
                chosen = [ordered[at] for at in places]
                cost, stretches = cost_of(space, chosen), tuple(c.stretch for c in chosen)
                if cost.macs <= most_macs and cost.time <= most_time:
                    kept.setdefault(stretches, Choice(stretches=stretches, cost=cost))
                    break

    keep_cheapest(levels, ordered)
    if kept and len(space.order) > effort.many_ops:
        lowest = min(kept.values(), key=lambda choice: choice.cost.peak)
        peak = lowest.cost.peak
        high = {c.stretch for c in candidates if c.stretch in lowest.stretches and c.peak > effort.high * peak}
        free = [replace(c, peak=0) if c.stretch in high else c for c in ordered]
        keep_cheapest([target for target in levels if effort.further * peak <= target < peak], free)
    return sorted(kept.values(), key=lambda choice: choice.cost.peak)

"""Which stretches of an ONNX model to compute in stripes: for each of a sweep of peaks the least extra work.

Stretches begin and end between operators where few bytes are alive. What one needs and computes comes from its own
stripes; the plans that this leads to are built as a whole and judged in the order in which ONNX Runtime will run them.

The search for TFLite (striped_tflite/candidates.py) prices all candidates ahead, from their rows alone, and packs the
plans into one arena. Here a price needs the nodes of the stripes, so only stretches that are reached get one, and there
is no arena to pack.
"""

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import cache, cached_property
from itertools import islice

from modelplan.model import Op
from modelplan.primitives.lazy_records import dataclass
from modelplan.rewriting.striped_onnx.layers import REPEATING, Reading, likely_axes, stretch_layers
from modelplan.rewriting.striped_onnx.unrolled_nodes import (
    OnnxProgram,
    append_stripes,
    append_whole,
    live_after,
    peak,
    run_order,
    striped_onnx_program,
)
from modelplan.rewriting.stripes.ladder import never_interrupt
from modelplan.rewriting.stripes.row_windows import IllegalStripeError
from modelplan.rewriting.stripes.search_effort import USUAL, OnnxEffort
from modelplan.rewriting.stripes.stretches import KeptHalo, RecomputedHalo, StripedStretch, as_strategy, even_cuts

#: Extra work so far, the stretches so far, and whether the last of them ends here, so that its results are in pieces.
_Partial = tuple[int, tuple[StripedStretch, ...], bool]


@dataclass(frozen=True, slots=True)
class StripePlan:
    """Stretches in stripes, the bytes alive at once that they are expected to need, and all multiply-accumulates."""

    stretches: tuple[StripedStretch, ...]
    peak: int
    macs: int
    steps: int


@dataclass(frozen=True, slots=True)
class _Cost:
    """The bytes alive while a stretch runs, and the work that it adds: rows recomputed, and nodes, as so many MACs.

    `copied` are bytes of weights that the session keeps for its stripes, while all of the model runs.
    """

    stretch: StripedStretch
    peak: int
    extra: int
    copied: int


class OnnxSearch:
    """The search for plans of one model with at most a share `most_macs` of extra work; `threads` as in a program.

    Without `keeping`, rows that two stripes need are recomputed in all plans. `check` is called now and then, and may
    raise an error to end the search.
    """

    def __init__(
        self,
        reading: Reading,
        *,
        most_macs: float = 0.0,
        threads: int = 0,
        keeping: bool = True,
        check: Callable[[], None] = never_interrupt,
        effort: OnnxEffort = USUAL.onnx,
    ) -> None:
        self.reading, self.graph, self.keeping, self.effort = reading, reading.graph, keeping, effort
        self.most_macs, self.threads, self.check = most_macs, threads, check
        self.live = live_after(self.graph, reading.weightless)
        weightless = reading.weightless
        self.bytes = [sum(self.graph.tensors[t].nbytes for t in values - weightless) for values in self.live]
        self._prices = cache(self._priced)
        self._legal = cache(lambda first, end: list(self._ways(first, end)))
        self._lowest = cache(self._least_probed)

    @cached_property
    def loads(self) -> list[int]:
        """The bytes alive while each operator runs unsplit."""
        return [self._load(index) for index in range(len(self.graph.ops))]

    @cached_property
    def plain(self) -> StripePlan:
        """The plan without stripes."""
        return self._judged(())

    @cached_property
    def in_file_order(self) -> int:
        """The bytes alive at once while the model runs in the order of its operators."""
        program = striped_onnx_program(self.reading, ())
        return peak(program, program.steps, behind=self.graph.outputs)

    @cached_property
    def macs(self) -> int:
        """Multiply-accumulates of the model that are known."""
        return sum(self._macs)

    def plans(self) -> list[StripePlan]:
        """Plans of which none is worse in peak and work than another, lowest peak first."""
        plans = {plan.stretches: plan for plan in self._swept()}
        if plans:
            best = self._refined(min(plans.values(), key=lambda plan: (plan.peak, plan.macs)))
            plans |= {plan.stretches: plan for plan in (best, *self._finer(best))}
        front: list[StripePlan] = []
        for plan in sorted(plans.values(), key=lambda p: (p.peak, p.macs)):
            if plan.peak < self.plain.peak and (not front or plan.macs < front[-1].macs):
                front.append(plan)
        return front

    def _swept(self) -> Iterator[StripePlan]:
        target = max(self.loads, default=0)
        copies = any(self.reading.own_weights(index) for index in range(len(self.graph.ops)))
        for _ in range(self.effort.targets):
            target = int(target * self.effort.share)
            prices = (0, self.effort.byte_macs) if copies else (0,)
            stretch_sets = [self._stretches(target, price) for price in prices]
            for stretches in dict.fromkeys(stretches for stretches in stretch_sets if stretches):
                plan = self._judged(stretches)
                if self._affordable(plan):
                    yield plan

    def _affordable(self, plan: StripePlan) -> bool:
        """Whether a plan adds at most the allowed extra work."""
        return plan.macs <= self.macs * (1 + self.most_macs)

    def _refined(self, plan: StripePlan) -> StripePlan:
        """The plan, or a lower one that is reached by more or fewer stripes in one stretch after the other."""
        left = self.effort.neighbours
        better: StripePlan | None = plan
        while better is not None:
            plan, better = better, None
            for stretches in islice(self._neighbours(plan.stretches), left):
                left -= 1
                other = self._judged(stretches)
                if other.peak < plan.peak and self._affordable(other):
                    better = other
                    break
        return plan

    def _neighbours(self, stretches: tuple[StripedStretch, ...]) -> Iterator[tuple[StripedStretch, ...]]:
        """The same stretches with the next numbers of stripes in one of them, or rows kept in place of recomputed."""
        for place, stretch in enumerate(stretches):
            at = self.effort.stripes.index(stretch.stripes)
            for stripes in self.effort.stripes[max(at - 2, 0) : at + 3]:
                for cost in self._prices(stretch.first, stretch.last + 1, stripes):
                    if cost.stretch != stretch and cost.stretch.axis == stretch.axis:
                        yield (*stretches[:place], cost.stretch, *stretches[place + 1 :])

    def _finer(self, plan: StripePlan) -> Iterator[StripePlan]:
        """A plan with twice as many stripes in each stretch; nothing where there are none or it is no better.

        An aim is met in the order of the file; in the session's own order more may be alive.
        """
        stretches = tuple(replace(r, cuts=even_cuts(r.cuts[-1], 2 * r.stripes)) for r in plan.stretches)
        if any(stretch.stripes > stretch.cuts[-1] for stretch in stretches):
            return
        try:
            stripe_plan = self._judged(stretches)
        except IllegalStripeError:
            return
        if stripe_plan.peak < plan.peak and self._affordable(stripe_plan):
            yield stripe_plan

    def _judged(self, stretches: tuple[StripedStretch, ...]) -> StripePlan:
        self.check()
        program = striped_onnx_program(self.reading, stretches, self.threads)
        split = {index for stretch in stretches for index in range(stretch.first, stretch.last + 1)}
        macs = program.macs + sum(self._macs[i] for i in range(len(self.graph.ops)) if i not in split)
        order = run_order(program.steps)
        most = peak(program, order, behind=self.graph.outputs) + program.copied
        return StripePlan(stretches, most, macs, len(program.steps))

    @cached_property
    def _macs(self) -> list[int]:
        """Multiply-accumulates of each operator, where it goes by rows."""
        return [self._macs_of(index, op) for index, op in enumerate(self.graph.ops)]

    def _macs_of(self, index: int, op: Op) -> int:
        axes = range(len(self.graph.tensors[op.outputs[0]].shape) if op.writes else 0)
        layers = (self.reading.layer_of(index, axis) for axis in axes)
        return max((0 if isinstance(layer, str) else layer.row_macs * layer.rows_out for layer in layers), default=0)

    @cached_property
    def _splits(self) -> list[bool]:
        """For each operator whether some axis allows computing it by rows."""
        return [self.reading.goes_by_rows(index) for index in range(len(self.graph.ops))]

    def _load(self, index: int) -> int:
        """The bytes alive while an operator runs unsplit."""
        self.check()
        program = OnnxProgram(self.graph, threads=self.threads, weightless=self.reading.weightless)
        self._bring(program, index)
        append_whole(program, index)
        return peak(program, program.steps, self.live[index], self.live[index + 1])

    def _bring(self, program: OnnxProgram, index: int) -> None:
        for t in self.live[index]:
            program.allocate(t)

    def _stretches(self, target: int, price: int) -> tuple[StripedStretch, ...] | None:
        """The stretches with the least extra work that keep every step at or below a peak; None where none do.

        Weights kept for stripes are not in that peak, since those of all stretches are there together: each byte
        of them has a `price` in work.
        """
        places = self._places(target)
        after: dict[int, _Partial] = {0: (0, (), False)}
        heavy = [index for index, load in enumerate(self.loads) if load > target]
        for place in range(len(self.graph.ops)):
            if place not in after:
                continue
            work, stretches, pieces = after[place]
            if self.loads[place] <= target and not (pieces and self._joining(place) > target):
                _keep(after, place + 1, (work, stretches, False))
            if place not in places:
                continue
            for end in places:
                if end <= place or not any(place <= index < end for index in heavy):
                    continue
                cost = self._cheapest(place, end, target)
                if cost:
                    _keep(after, end, (work + cost.extra + price * cost.copied, (*stretches, cost.stretch), True))
        cheapest = after.get(len(self.graph.ops))
        return cheapest[1] if cheapest and cheapest[1] else None

    def _joining(self, place: int) -> int:
        """Bytes alive while the stripes of an operator's operands are concatenated."""
        return self.bytes[place] + max((self.graph.tensors[t].nbytes for t in self.live[place]), default=0)

    def _places(self, target: int) -> list[int]:
        """Candidate borders of stretches: near operators that need too much, outside of fused kernels, and the ends.

        Those where fewer bytes are alive than beside them, or next to an operator that is not split, come first.
        """
        count = len(self.graph.ops)
        whole = [k for k in range(count + 1) if not self.live[k] & self.reading.gone]
        heavy = [index for index, load in enumerate(self.loads) if load > target]
        near = {k for index in heavy for k in range(index - self.effort.near, index + 2 * self.effort.near + 1)}
        ranks = []
        for before, k, behind in zip(whole, whole[1:], whole[2:], strict=False):
            if self.bytes[k] <= target and k in near:
                low = self.bytes[k] <= min(self.bytes[before], self.bytes[behind])
                later = not low and self._splits[k - 1] and self._splits[k]
                ranks.append((later, self.bytes[k], k))
        return sorted({0, count, *(k for *_, k in sorted(ranks)[: self.effort.places])})

    def _cheapest(self, first: int, end: int, target: int) -> _Cost | None:
        """The cheapest stripes of a stretch that stay at or below a peak: few of them, if possible."""
        if not 0 <= self._lowest(first, end) <= target:
            return None
        for stripes in self.effort.stripes:
            fit = [cost for cost in self._prices(first, end, stripes) if cost.peak <= target]
            if fit:
                return min(fit, key=lambda cost: cost.extra)
        return None

    def _least_probed(self, first: int, end: int) -> int:
        """How low a stretch may come, by the prices of two numbers of stripes or of few; -1 where there are none."""
        effort, peaks = self.effort, list[int]()
        for stripes in reversed(effort.stripes):
            if stripes * (end - first) > effort.probed_steps and stripes > effort.stripes[0]:
                continue
            peaks += [cost.peak for cost in self._prices(first, end, stripes)]
            if len(peaks) >= effort.probes:
                break
        return min(peaks, default=-1)

    def _priced(self, first: int, end: int, stripes: int) -> list[_Cost]:
        """What a stretch costs in so many stripes; nothing where there are no such stripes."""
        self.check()
        costs = [cost for stretch in self._legal(first, end) for cost in self._price(stretch, stripes)]
        return [cost for cost in costs if cost.extra <= self.most_macs * self.macs]

    def _ways(self, first: int, end: int) -> Iterator[StripedStretch]:
        """The ways to split a stretch: the axis of its last value, rows kept or recomputed."""
        if self._quantises_rows(first, end):
            return
        op = self.graph.ops[end - 1]
        shape = self.graph.tensors[op.outputs[0]].shape if op.writes else ()
        for axis in likely_axes(shape):
            stretch = RecomputedHalo(first, end - 1, axis, (0, shape[axis]), pad=frozenset(range(first, end)))
            try:
                base = stretch_layers(self.reading, stretch)
            except IllegalStripeError:
                continue
            yield stretch
            if any(layer.kind != "pointwise" for layer in base.layers.values()):
                if self.keeping and self.reading.opset >= REPEATING:
                    yield as_strategy(stretch, KeptHalo)
                return  # the rows of maps

    def _quantises_rows(self, first: int, end: int) -> bool:
        """Whether a stretch quantises rows of a value from elsewhere: a session quantises all of it, then cuts it."""
        graph = self.graph
        readers = [op for op in graph.ops[first:end] if op.kind == "QuantizeLinear"]
        return any(not first <= graph.producers[op.inputs[0]] < end for op in readers)

    def _price(self, stretch: StripedStretch, stripes: int) -> Iterator[_Cost]:
        """The price of a stretch in so many stripes, nothing where there are no such stripes."""
        rows = stretch.cuts[-1]
        if stripes > rows or stripes * (stretch.last - stretch.first + 1) > self.effort.stripe_steps:
            return
        trial = replace(stretch, cuts=even_cuts(rows, stripes))
        program = OnnxProgram(self.graph, threads=self.threads, weightless=self.reading.weightless)
        self._bring(program, stretch.first)
        try:
            append_stripes(program, self.reading, trial)
        except IllegalStripeError:
            return
        kept = [piece.value for pieces in program.pieces.values() for piece in pieces]
        most = peak(program, program.steps, self.live[stretch.first], [*self.live[stretch.last + 1], *kept])
        own = sum(self._macs[stretch.first : stretch.last + 1])
        yield _Cost(trial, most, program.macs - own + self.effort.step_macs * len(program.steps), program.copied)


def _keep(after: dict[int, _Partial], end: int, candidate: _Partial) -> None:
    if end not in after or candidate[0] < after[end][0]:
        after[end] = candidate

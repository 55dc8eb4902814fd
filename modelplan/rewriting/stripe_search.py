"""The search for stripes in one order of a model: sweep targets, build the most promising plans, improve the best."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from functools import cache, partial
from itertools import pairwise
from typing import Any

from modelplan.model import Graph, bounds
from modelplan.primitives.workers import Workers
from modelplan.rewriting import costs, durations
from modelplan.rewriting.folding import Folded
from modelplan.rewriting.rungs import ANSWER, GLANCE, LOOK, Goal, ModelOnTarget, Rung
from modelplan.rewriting.striped_tflite import newer_operators
from modelplan.rewriting.stripes import choosing, placing
from modelplan.rewriting.stripes.building import built
from modelplan.rewriting.stripes.choosing import Candidate, Choice, Space
from modelplan.rewriting.stripes.estimating import Prices, even_cuts
from modelplan.rewriting.stripes.program import Program
from modelplan.rewriting.stripes.regions import Region
from modelplan.rewriting.stripes.windows import IllegalStripeError

#: Plans of the sweep that are built and packed, answers that are packed at length, plans of one region.
_BUILT, _ANSWERS, _SINGLE = 30, 3, 40
#: First plans that are tried against the same score.
_TOGETHER = 8
#: Ranges of operators that are tried as a loop before plans are improved.
_LOOPED = 10
#: A glance's height is taken for this share of it: what a longer search of the packing may reach.
_NEAR = 0.94
#: Plans of a score so many times the best are left out before they are packed at length.
_FAR = 1.15
#: Plans within this share of what every plan needs end the search.
_DONE = 0.005
#: Improvements that are tried: fewer for models of many operators, whose plans take longer to build.
_IMPROVED, _IMPROVED_TIMES_OPS = 1200, 30000
#: Buffers of all packing problems that are made while plans are improved; time goes by them.
_MOST_BUFFERS = 90_000
#: A smaller problem counts as one of so many buffers: the program is made and checked first.
_LEAST_BUFFERS = 100


@dataclass(frozen=True, slots=True)
class Point:
    """A plan that was built and packed: estimated arena, head, extra multiply-accumulates, operators, time."""

    arena: int
    head: int
    macs: int
    ops: int
    time: float


@dataclass(frozen=True)
class Made:
    """A plan that was built and packed at a first look: bytes of the objective, arena, and what it costs."""

    regions: tuple[Region, ...]
    packing: placing.Packing = field(repr=False)
    score: int
    arena: int
    macs: int
    time: float
    ops: int


@dataclass(frozen=True)
class Trial:
    """What came of a plan: `made` is None where it is not legal or left out; `buffers` are those of its problem."""

    made: Made | None = None
    buffers: int = 0


class StripeSearch:
    """The search for stripes in one order of a model: sweep, build, improve.

    Candidates are priced and plans tried by `processes`; both depend on their arguments alone.
    """

    def __init__(self, model: ModelOnTarget, whole: Folded, order: tuple[int, ...], processes: int = 1) -> None:
        self.model, self.whole, self.order, self.leads = model, whole, order, model.leads
        self.processes = processes
        self.goal = model.goal
        self.random = random.Random(self.goal.seed)  # noqa: S311
        self.space = Space(whole.graph, order, self.leads, _prices(model.bits, whole.graph))
        newer = newer_operators(model.data)
        self.space.layers |= {op: newer[at] for op, at in enumerate(whole.file_ops) if at in newer}
        self.found: list[Candidate] = []
        self.made: dict[tuple[Region, ...], Made | None] = {}
        plain = built(model.graph, range(len(model.graph.ops)), ())
        self.tail = model.rung("as is", model.data, 0, 0).tail - costs.kept_bytes(plain, model.bits)
        self.least = least_bytes(self.space)
        self.buffers = 0
        self.interrupted = False

    def answers(self) -> list[Rung]:
        """The best plans, packed at length and written; after Ctrl-C those of the plans that were made until then."""
        workers = Workers(self.processes, _prepared, self.model.data, self.model.graph, self.model.name, self.goal,
                          self.whole, self.order)  # fmt: skip
        try:
            return self._answers(workers)
        finally:
            workers.close()

    def _answers(self, workers: Workers) -> list[Rung]:
        try:
            self._search(workers)
        except KeyboardInterrupt:
            self.interrupted = True
        return list(self._realised(workers, self._best()[: 1 if self.interrupted else _ANSWERS]))

    def tasks(self) -> dict[str, Callable[..., Any]]:
        """What other processes do for the search, by name."""
        return {"price": partial(choosing.candidates, self.space), "try": self.tried, "pack": self.packed}

    def _search(self, workers: Workers) -> None:
        ceiling = max(self.space.peaks)
        ranges = choosing.promising_ranges(self.space, ceiling, ceiling // 3)
        for found in workers.map("price", [(*run, ceiling) for run in ranges], self.tasks()["price"]):
            self.found += found
        most = self.goal.max_macs * self.model.macs, self.goal.max_time * self.model.time
        plans = choosing.plans(self.space, self.found, *most)
        self.model.report(f"{len(self.found)} candidates, {len(plans)} plans")
        sweep = [choice.regions for choice in sorted(plans, key=self._expected)[:_BUILT]]
        first = list(dict.fromkeys((*sweep, *self._one_region(), *self._one_loop())))
        for at in range(0, len(first), _TOGETHER):
            for _ in self._make(workers, first[at : at + _TOGETHER], self._worth_building()):
                pass
        self._improve(workers)

    def _worth_building(self) -> int | None:
        """The score from which on a plan is left out: one that is so far off is not improved below the best."""
        best = min((made.score for made in self.made.values() if made), default=None)
        return None if best is None or self.goal.budget is not None else int(_FAR * best)

    def loads(self) -> list[int]:
        """For each plan that was built the bytes that it needs wherever its rows are put."""
        return [plan.packing.load for plan in self.made.values() if plan]

    def _one_region(self) -> list[tuple[Region, ...]]:
        """For each range of operators its most promising stripes, the best ranges first."""
        best: dict[tuple[int, int], Candidate] = {}
        macs, time = self.goal.max_macs * self.model.macs, self.goal.max_time * self.model.time
        for c in self.found:
            key = c.region.first, c.region.last
            if c.macs <= macs and c.time <= time and (key not in best or self._promise(c) < self._promise(best[key])):
                best[key] = c
        return [(c.region,) for c in sorted(best.values(), key=self._promise)[:_SINGLE]]

    def _one_loop(self) -> list[tuple[Region, ...]]:
        """The best ranges of operators each as a loop: few operators, so that they meet caps which others break."""
        ranges = self._one_region()[:_LOOPED]
        return [(loop,) for (region,) in ranges for loop in self._loops(region)]

    def _promise(self, candidate: Candidate) -> int:
        """The bytes of the objective with this region alone, as far as its rows tell."""
        steps = range(len(self.order))
        inside = range(candidate.region.first, candidate.region.last + 1)
        peak = max([candidate.peak, *(self.space.peaks[step] for step in steps if step not in inside)])
        return peak + (candidate.tail if self.goal.objective == "arena" else 0)

    def packed(self, regions: tuple[Region, ...]) -> tuple[int, placing.Packing]:
        """A plan packed at length, and its score."""
        program = self._built(regions)
        packing = placing.pack(self.model.problem_of(program, self.leads), ANSWER, seed=self.goal.seed)
        return self._score(program, packing.height), packing

    def _realised(self, workers: Workers, plans: Sequence[Made]) -> Iterator[Rung]:
        """Plans packed at length and written, those that came out lowest first, up to one that meets the goal."""
        found = []
        results = workers.map("pack", [(made.regions,) for made in plans], self.packed)
        for made, (score, packing) in zip(plans, results, strict=True):
            found.append((min(score, made.score), made, _lowest(made.packing, packing)))
        cheap = self.goal.budget is not None
        for _, made, packing in found if cheap else sorted(found, key=lambda plan: plan[0]):
            program, total = self._built(made.regions), self.model.macs + made.macs
            rung = self.model.realised("split", program, self.leads, total, made.regions, packing)
            yield rung
            if self.model.fits(rung):
                return

    def _best(self) -> list[Made]:
        """Plans within the caps; for a budget the cheapest that seem to fit come first, else the lowest."""
        found = [made for made in self.made.values() if made]
        budget = self.goal.budget
        if budget is None:
            return sorted(found, key=lambda made: (made.score, made.macs))
        fitting = [made for made in found if made.score <= budget]
        cheap = sorted(fitting, key=lambda made: made.time)
        return [*cheap[:2], *sorted(found, key=lambda made: made.score)]

    def _allowed(self, program: Program) -> bool:
        """Whether a program meets the caps and the target's TFLM has its operators."""
        cap, macs = self.goal.max_ops, costs.program_macs(program) - self.model.macs
        work = macs <= self.goal.max_macs * self.model.macs
        work = work and self.model.slower(program) <= 1 + self.goal.max_time
        return work and (cap is None or len(program.steps) <= cap) and self.model.runs(program)

    def _expected(self, choice: Choice) -> int:
        return choice.peak if self.goal.objective == "head" else choice.peak + choice.tail

    def _make(self, workers: Workers, plans: Sequence[tuple[Region, ...]], below: int | None) -> Iterator[Made | None]:
        """Plans built and packed at a first look, in order; None where it was left out, see `tried`."""
        new = [regions for regions in plans if regions and regions not in self.made]
        results = workers.map("try", [(regions, below) for regions in new], self.tried)
        with closing(results):
            for regions, trial in zip(new, results, strict=True):
                self.model.check()
                self.made[regions] = trial.made
                self.buffers += max(trial.buffers, _LEAST_BUFFERS) if trial.buffers else 0
                yield trial.made

    def _built(self, regions: tuple[Region, ...]) -> Program:
        return built(self.whole.graph, self.order, regions, self.whole.file_ops)

    def tried(self, regions: tuple[Region, ...], below: int | None = None) -> Trial:
        """A plan built and packed at a first look, unless the caps or the stripes themselves forbid it.

        With `below`, a score to beat: plans that cannot are left out, those that hardly can are packed in few tries.
        """
        try:
            program = self._built(regions)
        except IllegalStripeError:
            return Trial()
        if not self._allowed(program) or (below is not None and self._score(program, 0) >= below):
            return Trial()
        problem = self.model.problem_of(program, self.leads)
        if below is not None and self._score(program, bounds.load_bound(problem)) >= below:
            return Trial(None, len(problem))
        packing = placing.pack(problem, GLANCE, seed=self.goal.seed)
        if below is None or self._score(program, int(_NEAR * packing.height)) < below:
            packing = _lowest(packing, placing.pack(problem, LOOK, seed=self.goal.seed))
        score, arena = self._score(program, packing.height), self._arena(program, packing.height)
        macs = costs.program_macs(program) - self.model.macs
        ops, time = len(program.steps), self.model.slower(program)
        return Trial(Made(regions, packing, score, arena, macs, time, ops), len(problem))

    def _score(self, program: Program, height: int) -> int:
        """The bytes of the objective that a program of a height is expected to need."""
        return height if self.goal.objective == "head" else self._arena(program, height)

    def _arena(self, program: Program, height: int) -> int:
        """The arena that the program's file is expected to need."""
        kept = self.tail + costs.kept_bytes(program, self.model.bits)
        return kept + max(height, costs.planning_bytes(program, self.model.bits))

    def _improve(self, workers: Workers) -> None:
        """Changes the best plans a little, again and again, and keeps what is better."""
        tried: set[tuple[Region, ...]] = set()
        left = min(_IMPROVED, _IMPROVED_TIMES_OPS // len(self.order))
        while left > 0 and self.buffers < _MOST_BUFFERS:
            best = next((made for made in self._best() if made.regions not in tried), None)
            if best is None or self._good_enough():
                return
            tried.add(best.regions)
            left -= self._improve_one(workers, best, left)

    def _good_enough(self) -> bool:
        """Whether a plan meets the budget, or none can be found that is much lower than the lowest."""
        lowest = min((made for made in self.made.values() if made), key=lambda made: made.score)
        if self.goal.budget is not None:
            return lowest.score <= self.goal.budget
        return self.goal.objective == "head" and lowest.packing.height <= (1 + _DONE) * self.least[0]

    def _improve_one(self, workers: Workers, best: Made, most: int) -> int:
        """Tries plans around one, up to the first that is better; returns how many."""
        options = [regions for regions in dict.fromkeys(self._around(best.regions)) if regions not in self.made]
        self.random.shuffle(options)
        before = len(self.made)
        for made in self._make(workers, options[:most], best.score):
            if made and made.score < best.score:
                self.model.report(f"{made.score:,} bytes with {made.ops} operators")
                break
            if self.buffers >= _MOST_BUFFERS:
                break
        return max(len(self.made) - before, 1)

    def _around(self, regions: tuple[Region, ...]) -> Iterator[tuple[Region, ...]]:
        """Plans that differ in one region, or by one more."""
        for i, region in enumerate(regions):
            for other in (*self._variants(region), None):
                changed = [*regions[:i], *([other] if other else []), *regions[i + 1 :]]
                if all(a.last < b.first for a, b in pairwise(changed)):
                    yield tuple(changed)
        for region in self._singles():
            if all(r.last < region.first or region.last < r.first for r in regions):
                yield tuple(sorted((*regions, region), key=lambda r: r.first))
        for extra in self.random.sample(self.found, min(40, len(self.found))):
            new = extra.region
            if all(r.last < new.first or new.last < r.first for r in regions):
                yield tuple(sorted((*regions, new), key=lambda r: r.first))

    def _singles(self) -> Iterator[Region]:
        """Single operators in stripes from the last to the first: what they make may then lie above what they read."""
        for step, op in enumerate(self.order):
            y = self.whole.graph.ops[op].outputs[:1]
            if isinstance(self.space.layers[op], str) or self.space.peaks[step] < max(self.space.peaks) // 2:
                continue
            axis = self.space.axis_of(op)
            height = self.whole.graph.tensors[y[0]].shape[axis]
            for stripes in (3, 5, 8, 12):
                if stripes <= height:
                    yield Region(step, step, axis, even_cuts(height, stripes), carry=False, backward=True)

    def _variants(self, region: Region) -> Iterator[Region]:
        height, n = region.cuts[-1], region.stripes
        for stripes in {n - 2, n - 1, n + 1, n + 2, n * 2}:
            if 2 <= stripes <= height:
                yield replace(region, cuts=even_cuts(height, stripes))
        yield from self._loops(region)
        if region.loop:
            return
        for cuts in _uneven(region.cuts):
            yield replace(region, cuts=cuts)
        if region.carry:
            yield replace(region, early=not region.early)
        if not region.paced:
            plain = replace(region, carry=False, early=False, again=frozenset(), along=frozenset())
            yield replace(plain, early=region.early) if region.carry else replace(region, carry=True)
            yield replace(plain, lazy=not region.lazy)
            yield replace(plain, backward=not region.backward)
        ranges = [(region.first + a, region.last + b) for a in (-1, 0, 1) for b in (-1, 0, 1)]
        for first, last in ranges:
            yield from (c.region for c in self.found if (c.region.first, c.region.last) == (first, last))
        yield from self._exceptions(region)

    def _exceptions(self, region: Region) -> Iterator[Region]:
        """The region with one operator of which the windows are padded, the rows made again or taken along, or not."""
        graph, layers = self.whole.graph, self.space.layers
        ops = self.order[region.first : region.last + 1]
        bordered = {op for op in ops if not isinstance(layer := layers[op], str) and layer.bordered}
        for op in ops:
            before = {graph.producers[t] for t in graph.ops[op].inputs if t >= 0}
            if op in bordered:
                yield replace(region, pad=region.pad ^ {op})
            if not region.carry or region.paced:
                continue
            if bordered & {reader for t in graph.ops[op].outputs for reader in graph.readers[t]}:
                yield replace(region, again=region.again ^ {op})
            if op not in region.pad and before & (bordered - region.pad):
                yield replace(region, along=region.along ^ {op})

    def _loops(self, region: Region) -> Iterator[Region]:
        """The region as a loop over stripes of some rows, and over tiles where it is one already."""
        if region.paced:
            return
        shape = self.whole.graph.tensors[self.whole.graph.ops[self.order[region.last]].outputs[0]].shape
        yield from choosing.loops_of(region, region.cuts[-1], shape[2] if region.loop and region.axis == 1 else 0)

    def points(self) -> list[Point]:
        """Every plan that was built."""
        found = (made for made in self.made.values() if made)
        return [Point(made.arena, made.packing.height, made.macs, made.ops, made.time) for made in found]

    def reasons(self) -> Iterator[str]:
        """Why the operators that need the most could not be split."""
        need = max(self.space.peaks)
        for step, peak in enumerate(self.space.peaks):
            layer = self.space.layers[self.order[step]]
            if isinstance(layer, str) and peak > need // 2:
                yield f"{self.whole.graph.label(self.order[step])} is not split: {layer}"


def _prepared(
    data: bytes, graph: Graph, name: str, goal: Goal, whole: Folded, order: tuple[int, ...]
) -> dict[str, Callable[..., Any]]:
    """The tasks of a search of the same model in another process."""
    return StripeSearch(ModelOnTarget(data, graph, name, goal), whole, order).tasks()


def _prices(bits: int, whole: Graph) -> Prices:
    """What operators cost TFLM on addresses of `bits`; those of the graph as a whole are looked up once."""
    known = cache(partial(durations.op_time, whole))

    def time(graph: Graph, index: int) -> float:
        return known(index) if graph is whole else durations.op_time(graph, index)

    return Prices(cache(partial(costs.kept_for, bits)), time, cache(durations.added_time), durations.ITERATION)


def _lowest(*packings: placing.Packing) -> placing.Packing:
    return min(packings, key=lambda packing: packing.height)


def _uneven(cuts: tuple[int, ...]) -> Iterator[tuple[int, ...]]:
    """The same stripes with one border a row further up or down."""
    for i in range(1, len(cuts) - 1):
        for shift in (-1, 1):
            moved = (*cuts[:i], cuts[i] + shift, *cuts[i + 1 :])
            if cuts[i - 1] < moved[i] < cuts[i + 1]:
                yield moved


def least_bytes(space: Space) -> tuple[int, str]:
    """Bytes that every plan of stripes needs in this order of operators, however it cuts rows, and why.

    All inputs are there before the first row is computed, all outputs behind the last. An operator that cannot be split
    has its operands and its output whole, and beside them whatever was made before and is read behind it.
    """
    graph, tensors = space.graph, space.graph.tensors
    read = sum(tensors[t].nbytes for t in graph.inputs if graph.readers[t])
    made = sum(tensors[t].nbytes for t in graph.outputs if space.lives[t] != (0, 0))
    found = [(read, "the inputs of the model"), (made, "the outputs of the model")]
    for step, peak in enumerate(space.peaks):
        op = space.order[step]
        if isinstance(space.layers[op], str):
            found.append((_whole_bytes(space, step, peak), f"{graph.label(op)}, which is not split"))
    return max(found, key=lambda pair: pair[0])


def _whole_bytes(space: Space, step: int, peak: int) -> int:
    """Live bytes of a step with its operator whole.

    The peak supposes that the output runs into one operand; where it may run into several, it may save all of them.
    """
    op, tensors = space.graph.ops[space.order[step]], space.graph.tensors
    operands = {op.inputs[position] for position, _, _ in space.leads(space.plain, space.plain.steps[step])}
    if len(operands) < 2:
        return peak
    return peak - min(tensors[op.writes[0]].nbytes, sum(tensors[t].nbytes for t in operands))

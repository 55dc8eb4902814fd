"""The search for stripes in one order of a model: sweep targets, build the most promising plans, improve the best."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import pairwise

from modelplan import bounds
from modelplan.rewriting import costs
from modelplan.rewriting.folding import Folded
from modelplan.rewriting.rungs import ANSWER, GLANCE, LOOK, ModelOnTarget, Rung
from modelplan.rewriting.striped_tflite import newer_operators
from modelplan.rewriting.stripes import choosing, placing
from modelplan.rewriting.stripes.building import built
from modelplan.rewriting.stripes.choosing import Candidate, Choice, Space
from modelplan.rewriting.stripes.estimating import even_cuts
from modelplan.rewriting.stripes.program import Program
from modelplan.rewriting.stripes.regions import Region
from modelplan.rewriting.stripes.windows import IllegalStripeError

#: Plans of the sweep that are built and packed, answers that are packed at length, plans of one region.
_BUILT, _ANSWERS, _SINGLE = 30, 3, 40
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
#: Extra work of one operator call, as a share of the whole model's: to choose the cheapest of those that fit.
_CALL = 5e-4


@dataclass(frozen=True, slots=True)
class Point:
    """A plan that was built and packed: estimated arena, head, extra multiply-accumulates, operators."""

    arena: int
    head: int
    macs: int
    ops: int


@dataclass(frozen=True)
class Made:
    """A plan that was built and packed at a first look."""

    choice: Choice
    program: Program = field(repr=False)
    packing: placing.Packing = field(repr=False)
    score: int
    macs: int

    @property
    def height(self) -> int:
        """Bytes of the packing."""
        return self.packing.height


class StripeSearch:
    """The search for stripes in one order of a model: sweep, build, improve."""

    def __init__(self, model: ModelOnTarget, whole: Folded, order: tuple[int, ...], leads: placing.Leads) -> None:
        self.model, self.whole, self.order, self.leads = model, whole, order, leads
        self.goal = model.goal
        self.random = random.Random(self.goal.seed)  # noqa: S311
        self.space = Space(whole.graph, order, leads, partial(costs.kept_for, model.bits))
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
        try:
            self._search()
        except KeyboardInterrupt:
            self.interrupted = True
        return list(self._realised(self._best()[: 1 if self.interrupted else _ANSWERS]))

    def _search(self) -> None:
        ceiling = max(self.space.peaks)
        self.found = choosing.candidates(self.space, ceiling, ceiling // 3)
        plans = choosing.plans(self.space, self.found, int(self.goal.max_macs * self.model.macs))
        self.model.report(f"{len(self.found)} candidates, {len(plans)} plans")
        sweep = [choice.regions for choice in sorted(plans, key=self._expected)[:_BUILT]]
        for regions in (*sweep, *self._one_region(), *self._one_loop()):
            self._make(regions, self._worth_building())
        self._improve()

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
        most = self.goal.max_macs * self.model.macs
        for c in self.found:
            key = c.region.first, c.region.last
            if c.macs <= most and (key not in best or self._promise(c) < self._promise(best[key])):
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

    def _realised(self, plans: Sequence[Made]) -> Iterator[Rung]:
        """Plans packed at length and written, those that came out lowest first, up to one that meets the goal."""
        packed = []
        for made in plans:
            problem = self.model.problem_of(made.program, self.leads)
            packing = _lowest(made.packing, placing.pack(problem, ANSWER, seed=self.goal.seed))
            packed.append((self._score(made.program, packing.height), made, packing))
        cheap = self.goal.budget is not None
        for _, made, packing in packed if cheap else sorted(packed, key=lambda found: found[0]):
            total = self.model.macs + made.macs
            rung = self.model.realised("split", made.program, self.leads, total, made.choice.regions, packing)
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
        cheap = sorted(fitting, key=lambda made: made.macs / max(self.model.macs, 1) + _CALL * len(made.program.steps))
        return [*cheap[:2], *sorted(found, key=lambda made: made.score)]

    def _allowed(self, program: Program) -> bool:
        """Whether a program meets the caps and the target's TFLM has its operators."""
        cap, macs = self.goal.max_ops, costs.program_macs(program) - self.model.macs
        work = macs <= self.goal.max_macs * self.model.macs
        return work and (cap is None or len(program.steps) <= cap) and self.model.runs(program)

    def _expected(self, choice: Choice) -> int:
        return choice.peak if self.goal.objective == "head" else choice.peak + choice.tail

    def _make(self, regions: tuple[Region, ...], below: int | None = None) -> Made | None:
        """A plan built and packed at a first look; None where the caps or the stripes themselves forbid it.

        With `below`, a score to beat: plans that cannot are left out, those that hardly can are packed in few tries.
        """
        if regions in self.made or not regions:
            return self.made.get(regions)
        self.model.check()
        self.made[regions] = None
        try:
            program = built(self.whole.graph, self.order, regions, self.whole.file_ops)
        except IllegalStripeError:
            return None
        if not self._allowed(program) or (below is not None and self._score(program, 0) >= below):
            return None
        problem = self.model.problem_of(program, self.leads)
        self.buffers += len(problem)
        if below is not None and self._score(program, bounds.load_bound(problem)) >= below:
            return None
        packing = placing.pack(problem, GLANCE, seed=self.goal.seed)
        if below is None or self._score(program, int(_NEAR * packing.height)) < below:
            packing = _lowest(packing, placing.pack(problem, LOOK, seed=self.goal.seed))
        score = self._score(program, packing.height)
        macs = costs.program_macs(program) - self.model.macs
        made = Made(Choice(regions), program, packing, score, macs)
        self.made[regions] = made
        return made

    def _score(self, program: Program, height: int) -> int:
        """The bytes of the objective that a program of a height is expected to need."""
        return height if self.goal.objective == "head" else self._arena(program, height)

    def _arena(self, program: Program, height: int) -> int:
        """The arena that the program's file is expected to need."""
        kept = self.tail + costs.kept_bytes(program, self.model.bits)
        return kept + max(height, costs.planning_bytes(program, self.model.bits))

    def _improve(self) -> None:
        """Changes the best plans a little, again and again, and keeps what is better."""
        tried: set[tuple[Region, ...]] = set()
        left = min(_IMPROVED, _IMPROVED_TIMES_OPS // len(self.order))
        while left > 0 and self.buffers < _MOST_BUFFERS:
            best = next((made for made in self._best() if made.choice.regions not in tried), None)
            if best is None or self._good_enough():
                return
            tried.add(best.choice.regions)
            left -= self._improve_one(best, left)

    def _good_enough(self) -> bool:
        """Whether a plan meets the budget, or none can be found that is much lower than the lowest."""
        lowest = min((made for made in self.made.values() if made), key=lambda made: made.score)
        if self.goal.budget is not None:
            return lowest.score <= self.goal.budget
        return self.goal.objective == "head" and lowest.height <= (1 + _DONE) * self.least[0]

    def _improve_one(self, best: Made, most: int) -> int:
        """Tries plans around one, up to the first that is better; returns how many."""
        options = [regions for regions in dict.fromkeys(self._around(best.choice.regions)) if regions not in self.made]
        self.random.shuffle(options)
        for count, regions in enumerate(options[:most], 1):
            if self.buffers >= _MOST_BUFFERS:
                break
            made = self._make(regions, best.score)
            if made and made.score < best.score:
                self.model.report(f"{made.score:,} bytes with {len(made.program.steps)} operators")
                return count
        return max(len(options[:most]), 1)

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
            yield replace(region, carry=not region.carry)
            yield replace(region, lazy=not region.lazy, carry=False, early=False)
            yield replace(region, backward=not region.backward, carry=False, early=False)
        ranges = [(region.first + a, region.last + b) for a in (-1, 0, 1) for b in (-1, 0, 1)]
        for first, last in ranges:
            yield from (c.region for c in self.found if (c.region.first, c.region.last) == (first, last))
        ops = self.order[region.first : region.last + 1]
        for op in ops:
            yield replace(region, pad=region.pad ^ {op})

    def _loops(self, region: Region) -> Iterator[Region]:
        """The region as a loop over stripes of some rows, and over tiles where it is one already."""
        if region.paced:
            return
        shape = self.whole.graph.tensors[self.whole.graph.ops[self.order[region.last]].outputs[0]].shape
        yield from choosing.loops_of(region, region.cuts[-1], shape[2] if region.loop and region.axis == 1 else 0)

    def points(self) -> list[Point]:
        """Every plan that was built."""
        return [
            Point(self._arena(made.program, made.height), made.height, made.macs, len(made.program.steps))
            for made in self.made.values()
            if made
        ]

    def reasons(self) -> Iterator[str]:
        """Why the operators that need the most could not be split."""
        need = max(self.space.peaks)
        for step, peak in enumerate(self.space.peaks):
            layer = self.space.layers[self.order[step]]
            if isinstance(layer, str) and peak > need // 2:
                yield f"{self.whole.graph.label(self.order[step])} is not split: {layer}"


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

"""The search for stripes in one order of a model: sweep targets, build the most promising plans, improve the best."""

import random
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import field, replace
from functools import cache, partial
from heapq import heapify, heappop, heappush
from itertools import chain, pairwise, product
from sys import maxsize

from modelplan.model import Graph
from modelplan.primitives.lazy_records import dataclass
from modelplan.rewriting.striped_tflite import candidates, costs, durations, placing
from modelplan.rewriting.striped_tflite.building import striped_program
from modelplan.rewriting.striped_tflite.candidates import Candidate, Choice, Space
from modelplan.rewriting.striped_tflite.channel_blocks import makes_blocks
from modelplan.rewriting.striped_tflite.estimating import Cost, Prices
from modelplan.rewriting.striped_tflite.folded_convolutions import Folded
from modelplan.rewriting.striped_tflite.parted_plans import PartedPlan, PlanParts
from modelplan.rewriting.striped_tflite.rungs import ModelOnTarget, Rung
from modelplan.rewriting.striped_tflite.steps import TfliteProgram
from modelplan.rewriting.striped_tflite.writing import newer_operators
from modelplan.rewriting.stripes.group_packing import GroupPacking, check_packing, glance
from modelplan.rewriting.stripes.row_windows import IllegalStripeError
from modelplan.rewriting.stripes.stretches import (
    CarryingLoop,
    ChannelBlocks,
    HaloStripes,
    KeptHalo,
    LoopedStripes,
    RecomputedHalo,
    RollingStripes,
    StripedStretch,
    UnrolledStripes,
    as_strategy,
    even_cuts,
)
from modelplan.runtimes.tflm import planner

Stretches = tuple[StripedStretch, ...]


@dataclass(frozen=True, slots=True)
class Point:
    """A plan that was built and packed: estimated arena, head, extra multiply-accumulates, operators, time."""

    arena: int
    head: int
    macs: int
    ops: int
    time: float


@dataclass(frozen=True)
class PackedPlan:
    """A plan that was built and packed at a first look: bytes of the objective, and what it costs."""

    stretches: Stretches
    packing: GroupPacking = field(repr=False)
    score: int
    point: Point


@dataclass(frozen=True)
class Trial:
    """The result of building a plan: None where it is illegal or skipped; `buffers` are those of its problem."""

    plan: PackedPlan | None = None
    buffers: int = 0


class StripeSearch:
    """The search for stripes in one order of a model: sweep, build, improve.

    `share` is that of the work of improving plans that this search may do beside those of other orders. Where one of
    the plans of `start` can be, they stand in place of the search. `unstriped` are the bytes of the objective that the
    file needs without stripes. `least`: it looks for the least, whatever the budget.
    """

    def __init__(
        self,
        model: ModelOnTarget,
        whole: Folded,
        order: tuple[int, ...],
        share: float = 1.0,
        start: Sequence[Stretches] = (),
        unstriped: int = maxsize,
        *,
        least: bool = False,
    ) -> None:
        self.start, self.unstriped = start, unstriped
        self.model, self.whole, self.order, self.overlaps = model, whole, order, model.overlaps
        self.goal = replace(model.goal, budget=None) if least else model.goal
        self.effort = self.goal.effort.tflite
        self.patience = self.effort.head if model.goal.objective == "head" else self.effort.arena
        self.random = random.Random(self.goal.seed)  # noqa: S311
        self.plain = striped_program(whole.graph, order, ())
        prices = replace(_prices(model.bits, whole.graph), scratch=cache(self._copied_scratch))
        self.space = Space(whole.graph, order, self.overlaps, prices, self.effort)
        newer = newer_operators(model.data)
        self.barred = {op: newer[at] for op, at in enumerate(whole.file_ops) if at in newer}
        self.space.layers |= self.barred
        self.candidates: list[Candidate] = []
        self._parts = PlanParts(whole, order, model)
        self._tried, self._outlook = cache(self._first_look), cache(self._expectation)
        self._prices: dict[StripedStretch, Candidate | None] = {}
        self.plans: dict[Stretches, PackedPlan | None] = {}
        self.tail = _own_tail(model)
        self.least = least_bytes(self.space, self._scratch)
        unsplit = self._parts.plan(())
        self._least_score = self._score(self._arena(unsplit), self.least[0])
        #: Bytes of the objective that the model needs beside its maps.
        self._kept_unsplit = self.tail + unsplit.kept(model.bits) if self.goal.objective == "arena" else 0
        self.buffers, self.most_buffers = 0, int(share * self.patience.buffers)
        #: Plans that had been tried when improvement began, and when it found the lowest, whose score this is; the
        #: buffers then.
        self.begun = self.gained = self.spent = 0
        #: And until when plans were tried, in words.
        self.lowest, self.interrupted, self.ended = maxsize, False, ""

    def _scratch(self, op: int) -> int:
        """Bytes of the working buffers that the kernel of an operator asks for as a whole."""
        alone = replace(self.plain, steps=[self.plain.steps[self.order.index(op)]])
        return sum(size for _, size in placing.scratch_of(alone, self.model.runtime, {}))

    def _copied_scratch(self, op: int) -> int:
        """The same where the buffers hold a copy of the operand, so that they grow with its rows, else 0."""
        if op not in self.order or self.model.runtime.scratch is None:
            return 0
        scratch, graph = self._scratch(op), self.whole.graph
        return scratch if graph.ops[op].reads and scratch >= graph.tensors[graph.ops[op].reads[0]].nbytes else 0

    def answers(self) -> list[Rung]:
        """The best plans, packed at length and written; after Ctrl-C those of the plans that were made until then."""
        try:
            self._search()
        except KeyboardInterrupt:
            self.interrupted = True
        plans = self._answering()
        rungs = list(self._packed_rungs(plans))
        if not self.interrupted and not any(map(self.model.allowed, rungs)):
            rungs += self._packed_rungs(self._elsewhere(plans))
        return rungs

    def _search(self) -> None:
        self._build(self.start)
        is_close = self.lowest <= self.effort.close * self._least_score
        if not any(self.plans.values()) or (is_close and not self._is_near_bound()):
            self._sweep()

    def _sweep(self) -> None:
        """Builds the most promising plans and improves the best."""
        ceiling = max(self.space.peaks)
        floor = max(ceiling // 3, self.least[0])
        for first, last in candidates.promising_ranges(self.space, ceiling, floor):
            self.candidates += candidates.striped_candidates(self.space, first, last, ceiling)
        self._prices |= {c.stretch: c for c in self.candidates}
        most = self.goal.max_macs * self.model.macs, self.goal.max_time * self.model.time
        others = [c for c in self.candidates if not candidates.carries_rows(c)]
        choices = candidates.plans(self.space, others, *most)
        if len(others) < len(self.candidates):
            choices += candidates.plans(self.space, self.candidates, *most)
        self.model.report(f"{len(self.candidates)} candidates, {len(choices)} plans")
        self._build(list(dict.fromkeys((*self._lowest_of(choices), *self._one_stretch(), *self._one_loop()))))
        if hopeful := self.lowest <= self.effort.hopeful * self.unstriped:
            self._improve()
        if blocks := candidates.channel_candidates(self.space, ceiling, floor, self.barred):
            self._improve_by_blocks(blocks)
        if hopeful and (self.goal.budget is None or self.lowest > self.goal.budget):
            self._build(self._uneven())
            if self.goal.objective == "head":
                self._turn()

    def _turn(self) -> None:
        """Turns one operator more, so that it is computed from its last row to the first, as long as that gains.

        Where kernels write from the front each output lies a few rows below its operand, the next one below that. From
        the last row to the first, few at a time, it lies above.
        """
        lowest = maxsize
        while self.lowest < lowest and not self._good_enough():
            lowest, plans = self.lowest, list[Stretches]()
            for rows in self.effort.turned_rows:
                turned = {r.first: r for r in self._alone(rows)}
                best = [turned.get(r.first, r) if _is_turned(r) else r for r in self.best()]
                for new in turned.values():
                    others = [r for r in best if r.last < new.first or new.last < r.first]
                    plans.append(tuple(sorted((*others, new), key=lambda r: r.first)))
            for _ in self._try_plans(plans, lowest, lowest):
                pass

    def _uneven(self) -> list[Stretches]:
        """Plans that seem to need less than the lowest, with a stretch in two stripes of which one is a single row.

        The other one may then read all of a map, which no slice is made of. They stand alone or in the lowest plan.
        """
        lowest = self.best()
        plans = [*self._one_stretch(), *((*lowest[:i], s, *lowest[i + 1 :]) for i, s in enumerate(lowest))]
        uneven = dict[Stretches, tuple[bool, int]]()
        for i, stretches in ((i, plan) for plan in plans for i in range(len(plan))):
            stretch = stretches[i]
            if isinstance(stretch, ChannelBlocks | RollingStripes):
                continue
            height = stretch.cuts[-1]
            for row in {1, height - 1} if height > 2 else ():
                other = as_strategy(stretch, KeptHalo, cuts=(0, row, height))
                plan = *stretches[:i], other, *stretches[i + 1 :]
                uneven[plan] = self._outlook(plan)
        better = [plan for plan in uneven if uneven[plan] < (False, self.lowest) and plan not in self.plans]
        return sorted(better, key=uneven.__getitem__)[: 2 * self.effort.together]

    def _build(self, plans: Sequence[Stretches]) -> None:
        """Builds plans, but those that are far from the best, until one is near the bound."""
        for stretches in plans:
            if self._is_near_bound():
                return
            some, below, lowest = [stretches], None, None
            best = min(filter(None, self.plans.values()), key=lambda plan: plan.score, default=None)
            if best and self.goal.budget is None:  # no improvement brings one below it that is far from it
                far = self.effort.far
                some, below, lowest = self._likely(some, best, far), int(far * best.score), best.score
            for _ in self._try_plans(some, below, lowest):
                pass

    def _improve_by_blocks(self, blocks: Sequence[Candidate]) -> None:
        """Goes on with blocks of channels, alone and with rows, where plans with them are among the best then."""
        self.candidates += blocks
        most = self.goal.max_macs * self.model.macs, self.goal.max_time * self.model.time
        choices = candidates.plans(self.space, self.candidates, *most)
        alone = [(c.stretch,) for c in sorted(blocks, key=self._promise)[: self.effort.built]]
        self._build(list(dict.fromkeys((*self._lowest_of(choices), *alone))))
        best = (stretch for plan in self._ranked()[: self.effort.together] for stretch in plan.stretches)
        if any(isinstance(stretch, ChannelBlocks) for stretch in best):
            self.most_buffers = self.buffers + self.patience.buffers // 2
            self._improve()

    def loads(self) -> list[int]:
        """For each built plan its load bound in bytes."""
        return [plan.packing.load for plan in self.plans.values() if plan]

    def _one_stretch(self) -> list[Stretches]:
        """For each range of operators its most promising stripes, the best ranges first."""
        best: dict[tuple[int, int], Candidate] = {}
        macs, time = self.goal.max_macs * self.model.macs, self.goal.max_time * self.model.time
        for c in self.candidates:
            key = c.stretch.first, c.stretch.last
            if c.macs <= macs and c.time <= time and (key not in best or self._promise(c) < self._promise(best[key])):
                best[key] = c
        return [(c.stretch,) for c in sorted(best.values(), key=self._promise)[: self.effort.built]]

    def _one_loop(self) -> list[Stretches]:
        """The best ranges of operators as one loop each: few operators, so that they meet caps on operators."""
        ranges = self._one_stretch()[: self.effort.together]
        return [(loop,) for (stretch,) in ranges for loop in self._loops(stretch)]

    def _promise(self, candidate: Candidate) -> int:
        """The estimated bytes of the objective with this stretch alone."""
        before, behind = self.space.before[candidate.stretch.first], self.space.behind[candidate.stretch.last + 1]
        peak = max(candidate.peak, before, behind)
        return peak + (candidate.tail if self.goal.objective == "arena" else 0)

    def _packed_at_length(self, plan: PackedPlan) -> GroupPacking:
        """The packing of a plan, looked for at length from that of its first look on."""
        known = plan.packing
        if known.height == known.load:
            return known
        problem = self._parts.plan(plan.stretches).program.problem(planner.ALIGNMENT)
        return glance(problem, self._tries(self.effort.answer, len(problem)), self.goal.seed, known)

    def _packed_in_turn(self, plans: Sequence[PackedPlan]) -> Iterator[tuple[PackedPlan, GroupPacking]]:
        """Plans packed at length: for a budget as they come, else the lowest first, each when it may be the next."""
        if self.goal.budget is not None:
            yield from ((plan, self._packed_at_length(plan)) for plan in plans)
            return
        arenas = [self._arena(self._parts.plan(plan.stretches)) for plan in plans]
        waiting = [
            (self._score(arenas[at], plan.packing.load), False, plan.point.arena, at, plan.packing)
            for at, plan in enumerate(plans)
        ]
        heapify(waiting)
        while waiting:
            _, is_packed, arena, at, packing = heappop(waiting)
            if is_packed:
                yield plans[at], packing
                continue
            packing = self._packed_at_length(plans[at])
            heappush(waiting, (self._score(arenas[at], packing.height), True, arena, at, packing))

    def _packed_rungs(self, plans: Sequence[PackedPlan]) -> Iterator[Rung]:
        """Plans packed at length and written, those that came out lowest first, up to one that meets the goal."""
        for plan, packing in self._packed_in_turn(plans):
            check_packing(self._parts.plan(plan.stretches).program.problem(planner.ALIGNMENT), packing)
            program, total = self._program(plan.stretches), self.model.macs + plan.point.macs
            rung = self.model.packed_rung("split", program, self.overlaps, total, plan.stretches, packing)
            yield rung
            if self.model.fits(rung):
                return

    def _answering(self) -> list[PackedPlan]:
        """The plans that are packed at length: the best ones, and those that a better packing would bring lowest."""
        ranked = self._ranked()
        if self.interrupted or self.goal.budget is not None:
            return ranked[: 1 if self.interrupted else self.effort.answers]
        hopeful = sorted(ranked, key=lambda plan: plan.score - plan.packing.height + plan.packing.load)
        answers = (*ranked[: self.effort.answers], *hopeful[: self.effort.hopes])
        return list({plan.stretches: plan for plan in answers}.values())

    def _elsewhere(self, tried: Sequence[PackedPlan]) -> list[PackedPlan]:
        """The best plan of each set of operators in stripes that none of those has: one may raise no library."""

        def operators(plan: PackedPlan) -> tuple[tuple[int, int], ...]:
            return tuple((stretch.first, stretch.last) for stretch in plan.stretches)

        best: dict[tuple[tuple[int, int], ...], PackedPlan] = {}
        for plan in self._ranked():
            best.setdefault(operators(plan), plan)
        for plan in tried:
            best.pop(operators(plan), None)
        return list(best.values())[: self.effort.elsewhere]

    def _ranked(self) -> list[PackedPlan]:
        """Plans within the caps; for a budget the cheapest that seem to fit come first, else the lowest."""
        packed_plans = [plan for plan in self.plans.values() if plan]
        budget = self.goal.budget
        if budget is None:
            return sorted(packed_plans, key=lambda p: (p.score, p.point.arena, p.point.head, p.point.macs))
        fitting = [plan for plan in packed_plans if plan.score <= budget]
        cheap = sorted(fitting, key=lambda plan: plan.point.time)
        return [*cheap[:2], *sorted(packed_plans, key=lambda plan: plan.score)]

    def _allowed(self, plan: PartedPlan) -> bool:
        """Whether a plan meets the caps, and the target's TFLM has its operators and can run them where they lie."""
        cap, goal = self.goal.max_ops, self.goal
        work = plan.macs - self.model.macs <= goal.max_macs * self.model.macs and plan.slower <= 1 + goal.max_time
        work = work and plan.program.ticks <= self.effort.steps
        return work and plan.legal and (cap is None or plan.steps <= cap)

    def _expected(self, cost: Cost) -> int:
        return cost.peak if self.goal.objective == "head" else cost.peak + cost.tail

    def _lowest_of(self, choices: Iterable[Choice]) -> list[Stretches]:
        """The plans of a sweep that are built, those from which the least is expected."""
        ranked = sorted(choices, key=lambda choice: self._expected(choice.cost))
        return [choice.stretches for choice in ranked[: self.effort.built]]

    def _try_plans(
        self, plans: Sequence[Stretches], below: int | None, lowest: int | None
    ) -> Iterator[PackedPlan | None]:
        """Plans built and packed at a first look, in order; None where it was left out, see `try_plan`."""
        for stretches in [plan for plan in plans if plan and plan not in self.plans]:
            trial = self.try_plan(stretches, below, lowest)
            self.model.check()
            self.plans[stretches] = trial.plan
            if trial.plan and trial.plan.score < self.lowest:
                self.lowest, self.gained, self.spent = trial.plan.score, len(self.plans), self.buffers
            self.buffers += max(trial.buffers, self.effort.least_buffers) if trial.buffers else 0
            yield trial.plan

    def _program(self, stretches: Stretches) -> TfliteProgram:
        return striped_program(self.whole.graph, self.order, stretches, self.whole.file_ops)

    def try_plan(self, stretches: Stretches, below: int | None = None, lowest: int | None = None) -> Trial:
        """A plan built and packed at a first look, unless the caps or the stripes themselves forbid it.

        With `below`, a score to beat, plans that cannot are left out; those that hardly seem to beat `lowest` are
        packed in few tries.
        """
        try:
            plan = self._parts.plan(stretches)
        except IllegalStripeError:
            return Trial()
        trial = self._tried(plan, below, lowest)
        return replace(trial, plan=replace(trial.plan, stretches=stretches)) if trial.plan else trial

    def _first_look(self, plan: PartedPlan, below: int | None, lowest: int | None) -> Trial:
        """The same for a plan in parts, without its stretches: stripes of several forms may have the same program."""
        arena = self._arena(plan)

        def beats(height: int) -> bool:
            return below is None or self._score(arena, height) < below

        if not beats(0) or not self._allowed(plan):
            return Trial()
        problem = plan.program.problem(planner.ALIGNMENT, beats)
        if not beats(problem.load):
            return Trial(None, len(problem))
        packing = glance(problem, self._tries(self.effort.glance, len(problem)), self.goal.seed)
        hopeful = lowest is None or self._score(arena, int(self.effort.near * packing.height)) < lowest
        if hopeful and packing.height > packing.load:
            packing = _lowest(packing, glance(problem, self._tries(self.effort.look, len(problem)), self.goal.seed))
        point = Point(arena(packing.height), packing.height, plan.macs - self.model.macs, plan.steps, plan.slower)
        return Trial(PackedPlan((), packing, self._score(arena, packing.height), point), len(problem))

    def _tries(self, tries: int, buffers: int) -> int:
        """So many tries of a packing, of a large problem fewer, down to a third."""
        return max(tries // 3, min(tries, tries * self.effort.large // max(1, buffers)))

    def _score(self, arena: Callable[[int], int], height: int) -> int:
        """The bytes of the objective that a program of this arena is expected to need with a packing of a height."""
        return height if self.goal.objective == "head" else arena(height)

    def _arena(self, plan: PartedPlan) -> Callable[[int], int]:
        """The arena that the plan's file is expected to need, for the height of a packing."""
        kept = self.tail + plan.kept(self.model.bits)
        planning = costs.planning_bytes(plan.values, self.model.bits)
        return lambda height: kept + max(height, planning)

    def _improve(self) -> None:
        """Local search from the best plan.

        Then in turn from one whose stretches cover other operators, the best of the other objective, and the next.
        """
        self.begun = self.gained = len(self.plans)
        self.spent = self.buffers
        tried: set[Stretches] = set()
        starts = 0
        best = None
        while not self._is_over():
            if best is None:
                best, starts = self._next_start(self._ranked(), tried, starts % self.effort.starts), starts + 1
            if best is None or (enough := self._good_enough()):
                self.ended = enough if best else "no other plan lay near those"
                return
            tried.add(best.stretches)
            best = self._improve_one(best)
        self.ended = self._is_over()

    def _next_start(self, ranked: Sequence[PackedPlan], tried: set[Stretches], turn: int) -> PackedPlan | None:
        """The best plan that was not tried; in turn 1 one whose stretches cover what the fewest tried plans do.

        In turn 2 the best of the other objective.
        """
        new = (plan for plan in ranked if plan.stretches not in tried)
        if turn == 0:
            return next(new, None)
        if turn == 1:
            known = Counter(map(_spans, tried))
            return min(new, key=lambda plan: known[_spans(plan.stretches)], default=None)
        if self.goal.objective == "head":
            return min(new, key=lambda plan: (plan.point.arena, plan.point.head), default=None)
        return min(new, key=lambda plan: (plan.point.head, plan.point.arena), default=None)

    def _good_enough(self) -> str:
        """That in words, where a plan meets the budget, or none can be found that is much lower than the lowest."""
        if self.goal.budget is not None:
            lowest = min(plan.score for plan in self.plans.values() if plan)
            return "one seemed to fit" if lowest <= self.goal.budget else ""
        return f"one was within {self.effort.done:.1%} of the bound" if self._is_near_bound() else ""

    def _is_near_bound(self) -> bool:
        """Whether no plan seems to need much less than the lowest: each adds operators to those of the model.

        What TFLM keeps for them is estimated, up to half too high.
        """
        added = min((c.tail for c in self.candidates), default=0) // 2 if self.goal.objective == "arena" else 0
        return self.goal.budget is None and self.lowest <= (1 + self.effort.done) * (self._least_score + added)

    def _improve_one(self, best: PackedPlan) -> PackedPlan | None:
        """The first better plan of the neighbours; None where none is better.

        Loops that carry rows are unrolled first; then the most promising ones and any come in turn.
        """
        near = list(dict.fromkeys(self._neighbours(best.stretches)))
        self.random.shuffle(near)
        likely = self._likely(near, best, self.patience.hopeless)
        options = [stretches for stretches in likely if stretches not in self.plans]
        promising = sorted(options, key=self._outlook)
        in_turn = chain(self._unrolled_loops(best.stretches), *zip(promising, options, strict=True))
        options = list(dict.fromkeys(in_turn))
        if best.score == self.lowest:
            options += self._two_steps_away(best, sorted(likely, key=self._outlook)[: self.effort.together])
        for plan in self._try_plans(options, best.score, best.score):
            if plan and plan.score < best.score:
                self.model.report(f"{plan.score:,} bytes with {plan.point.ops} operators")
                return plan
            if self._is_over():
                break
        return None

    def _two_steps_away(self, best: PackedPlan, near: Sequence[Stretches]) -> list[Stretches]:
        """The most promising neighbours of neighbours that seem to need less than a plan."""
        far = {other: self._outlook(other) for stretches in near for other in self._neighbours(stretches)}
        better = [other for other, outlook in far.items() if outlook < (False, best.score) and other not in self.plans]
        return sorted(better, key=far.__getitem__)[: 2 * self.effort.together]

    def _is_over(self) -> str:
        """That in words, where improvement has used up its buffers, or has gained nothing for long."""
        since = len(self.plans) - self.gained
        enough = self.buffers - self.spent > self.effort.idle_buffers
        if enough and since > self.patience.without_gain + self.gained - self.begun:
            return f"{since:,} tries in a row gained nothing"
        return "the limit in work was reached" if self.buffers >= self.most_buffers else ""

    def _expectation(self, stretches: Stretches) -> tuple[bool, int]:
        """Whether a plan seems to break a cap, and the bytes of the objective that it is expected to need."""
        for stretch in stretches:
            if stretch not in self._prices:
                self._prices[stretch] = candidates.priced(self.space, stretch)
        parts = [self._prices[stretch] for stretch in stretches]
        cost = candidates.cost_of(self.space, [part for part in parts if part])
        dear = cost.macs > self.goal.max_macs * self.model.macs or cost.time > self.goal.max_time * self.model.time
        return dear or None in parts, self._expected(cost) + self._kept_unsplit

    def _likely(self, plans: Iterable[Stretches], best: PackedPlan, times: float) -> list[Stretches]:
        """The plans that seem to keep the caps and to need less than so many times what another one needs.

        That is what it needs or was expected to. Of blocks of channels more is expected than they need.
        """
        most = times * max(best.score, self._outlook(best.stretches)[1])

        def is_likely(stretches: Stretches) -> bool:
            dear, expected = self._outlook(stretches)
            return not dear and (expected < most or any(isinstance(stretch, ChannelBlocks) for stretch in stretches))

        return list(filter(is_likely, plans))

    def _neighbours(self, stretches: Stretches) -> Iterator[Stretches]:
        """Plans with one stretch changed or one stretch more."""
        for i, stretch in enumerate(stretches):
            for other in (*self._variants(stretch), None):
                changed = [*stretches[:i], *([other] if other else []), *stretches[i + 1 :]]
                if all(a.last < b.first for a, b in pairwise(changed)):
                    yield tuple(changed)
        for stretch in self._alone():
            if all(r.last < stretch.first or stretch.last < r.first for r in stretches):
                yield tuple(sorted((*stretches, stretch), key=lambda r: r.first))
        for extra in self.random.sample(self.candidates, min(self.effort.drawn, len(self.candidates))):
            new = extra.stretch
            if all(r.last < new.first or new.last < r.first for r in stretches):
                yield tuple(sorted((*stretches, new), key=lambda r: r.first))

    def _alone(self, rows: int = 0) -> Iterator[StripedStretch]:
        """Stretches of one operator, last first: their outputs may then lie above their operands.

        Each has stripes of so many `rows`, or without a number a few.
        """
        for step, op in enumerate(self.order):
            y = self.whole.graph.ops[op].outputs[:1]
            if isinstance(self.space.layers[op], str) or self.space.peaks[step] < max(self.space.peaks) // 2:
                continue
            axis = self.space.axis_of(op)
            height = self.whole.graph.tensors[y[0]].shape[axis]
            for stripes in (-(-height // rows),) if rows else self.effort.single_stripes:
                if 2 <= stripes <= min(height, self.effort.most_turned):
                    yield RecomputedHalo(step, step, axis, even_cuts(height, stripes), backward=True)

    def _variants(self, stretch: StripedStretch) -> Iterator[StripedStretch]:
        if isinstance(stretch, ChannelBlocks):
            yield from candidates.blocks_of(self.space, stretch.first, stretch.last)
            return
        height, n = stretch.cuts[-1], stretch.stripes
        carries = isinstance(stretch, CarryingLoop)
        for stripes in () if carries else {n - 2, n - 1, n + 1, n + 2, n * 2}:
            if 2 <= stripes <= height:
                yield replace(stretch, cuts=even_cuts(height, stripes))
        yield from self._loops(stretch)
        if isinstance(stretch, UnrolledStripes):
            for cuts in _shift_cuts(stretch.cuts):
                yield replace(stretch, cuts=cuts)
            yield from self._other_strategies(stretch)
        if carries or isinstance(stretch, UnrolledStripes):
            for first, last in product(*((end - 1, end, end + 1) for end in (stretch.first, stretch.last))):
                yield from (c.stretch for c in self.candidates if (c.stretch.first, c.stretch.last) == (first, last))
        if isinstance(stretch, UnrolledStripes):
            yield from self._exceptions(stretch)

    def _unrolled_loops(self, stretches: Stretches) -> Iterator[Stretches]:
        """Plans for the least head with one of the loops that carry rows unrolled."""
        loops = [at for at, stretch in enumerate(stretches) if isinstance(stretch, CarryingLoop)]
        for at in loops if self.goal.objective == "head" else ():
            yield from ((*stretches[:at], other, *stretches[at + 1 :]) for other in self._unrolled(stretches[at]))

    def _unrolled(self, stretch: StripedStretch) -> Iterator[KeptHalo]:
        """A loop that carries rows as stripes that end one after the other, so that what they keep dies with them."""
        layers = (self.space.layers[op] for op in self.order[stretch.first : stretch.last + 1])
        ops = zip(self.order[stretch.first : stretch.last + 1], layers, strict=True)
        pad = frozenset(op for op, layer in ops if not isinstance(layer, str) and layer.bordered and layer.paddable)
        for stripes in (stretch.cuts[-1] // 2, stretch.cuts[-1]):
            yield as_strategy(stretch, KeptHalo, cuts=even_cuts(stretch.cuts[-1], stripes), pad=pad)

    def _other_strategies(self, stretch: UnrolledStripes) -> Iterator[UnrolledStripes]:
        """The same stripes with the halo kept or recomputed, with other padding, trimming or direction."""
        if not isinstance(stretch, RecomputedHalo):
            yield replace(stretch, pad_early=not stretch.pad_early)
        if isinstance(stretch, KeptHalo):
            yield as_strategy(stretch, RecomputedHalo)
        elif isinstance(stretch, RecomputedHalo):
            yield as_strategy(stretch, KeptHalo)
        if isinstance(stretch, HaloStripes):
            plain = as_strategy(stretch, RecomputedHalo, pad_early=False)
            yield replace(plain, trim_late=not stretch.trim_late)
            yield replace(plain, backward=not stretch.backward)

    def _exceptions(self, stretch: UnrolledStripes) -> Iterator[UnrolledStripes]:
        """The stretch with one operator's padding, recomputing or trimming switched."""
        graph, layers = self.whole.graph, self.space.layers
        ops = self.order[stretch.first : stretch.last + 1]
        bordered = {op for op in ops if not isinstance(layer := layers[op], str) and layer.bordered}
        for op in ops:
            before = {graph.producers[t] for t in graph.ops[op].inputs if t >= 0}
            if op in bordered:
                yield replace(stretch, pad=stretch.pad ^ {op})
            if not isinstance(stretch, KeptHalo):
                continue
            if bordered & {reader for t in graph.ops[op].outputs for reader in graph.readers[t]}:
                yield replace(stretch, recomputed=stretch.recomputed ^ {op})
            if op not in stretch.pad and before & (bordered - stretch.pad):
                yield replace(stretch, untrimmed=stretch.untrimmed ^ {op})

    def _loops(self, stretch: StripedStretch) -> Iterator[StripedStretch]:
        """The stretch as a loop over stripes of some rows, and over tiles where it is one already."""
        if isinstance(stretch, RollingStripes | ChannelBlocks):
            return
        shape = self.whole.graph.tensors[self.whole.graph.ops[self.order[stretch.last]].outputs[0]].shape
        width = shape[2] if isinstance(stretch, LoopedStripes | CarryingLoop) and stretch.axis == 1 else 0
        height = stretch.cuts[-1]
        yield from candidates.loops_of(self.effort, stretch, height, width)
        yield from candidates.carrying_loops_of(self.effort, stretch, height)

    def best(self) -> Stretches:
        """The stretches of the plan that is lowest at a first look; none where no plan could be."""
        return next((plan.stretches for plan in self._ranked()), ())

    def points(self) -> list[Point]:
        """Every plan that was built."""
        return [plan.point for plan in self.plans.values() if plan]

    def reasons(self) -> Iterator[str]:
        """Why the operators that need the most could not be split."""
        need = max(self.space.peaks)
        for step, peak in enumerate(self.space.peaks):
            layer = self.space.layers[self.order[step]]
            if isinstance(layer, str) and peak > need // 2:
                yield f"{self.whole.graph.label(self.order[step])} is not split: {layer}"


def _prices(bits: int, whole: Graph) -> Prices:
    """What operators cost TFLM on addresses of `bits`; those of the graph as a whole are looked up once."""
    known = cache(partial(durations.op_time, whole))

    def time(graph: Graph, index: int) -> float:
        return known(index) if graph is whole else durations.op_time(graph, index)

    return Prices(cache(partial(costs.kept_for, bits)), time, cache(durations.terms_of), durations.ITERATION)


def _own_tail(model: ModelOnTarget) -> int:
    """The bytes that the unmodified file keeps behind its head but for those of its operators and values."""
    plain = striped_program(model.graph, range(len(model.graph.ops)), ())
    return model.rung("as is", model.data, 0, 0).tail - costs.kept_bytes(plain, model.bits)


def _is_turned(stretch: StripedStretch) -> bool:
    """Whether a stretch is one operator that is computed from its last row to the first."""
    return isinstance(stretch, RecomputedHalo) and stretch.backward and stretch.first == stretch.last


def _spans(stretches: Stretches) -> tuple[tuple[int, int], ...]:
    """The operators of each stretch, the first and the last."""
    return tuple((stretch.first, stretch.last) for stretch in stretches)


def _lowest(*packings: GroupPacking) -> GroupPacking:
    return min(packings, key=lambda packing: packing.height)


def _shift_cuts(cuts: tuple[int, ...]) -> Iterator[tuple[int, ...]]:
    """The same stripes with one cut moved by a row, or with one cut less."""
    for i in range(1, len(cuts) - 1):
        for shift in (-1, 1):
            moved = (*cuts[:i], cuts[i] + shift, *cuts[i + 1 :])
            if cuts[i - 1] < moved[i] < cuts[i + 1]:
                yield moved
    for i in range(1, len(cuts) - 1) if len(cuts) > 3 else ():
        yield (*cuts[:i], *cuts[i + 1 :])


def least_bytes(space: Space, scratch: Callable[[int], int]) -> tuple[int, str]:
    """Bytes that every plan of stripes needs in this order of operators, however it cuts rows, and why.

    All inputs are there before the first row is computed, all outputs behind the last. An operator that cannot be
    split, by rows or by channels, or that makes one row of a whole map, has its operands and its
    output whole and its working buffers, `scratch`, and beside them whatever was made before and is read behind it.
    """
    graph, tensors = space.graph, space.graph.tensors
    read = sum(tensors[t].nbytes for t in graph.inputs if graph.readers[t])
    computed = sum(tensors[t].nbytes for t in graph.outputs if space.lives[t] != (0, 0))
    needs = [(read, "the inputs of the model"), (computed, "the outputs of the model")]
    for step, live in enumerate(space.live):
        op = space.order[step]
        layer = space.layers[op]
        if makes_blocks(graph, op, scratch(op)):
            continue
        if isinstance(layer, str) or (layer.rows_out == 1 and layer.reach >= layer.rows_in):
            needed = _whole_bytes(space, step, live) + scratch(op)
            needs.append((needed, f"{graph.label(op)}, which is not split"))
    return max(needs, key=lambda pair: pair[0])


def _whole_bytes(space: Space, step: int, peak: int) -> int:
    """Live bytes of a step with its operator whole.

    The peak supposes that the output runs into one operand; where it may run into several, it may save all of them.
    """
    op, tensors = space.graph.ops[space.order[step]], space.graph.tensors
    operands = {op.inputs[position] for position, _, _ in space.overlaps(space.plain, space.plain.steps[step])}
    operands = {t for t in operands if space.lives[t][1] > step}  # parts in place are counted in what they are part of
    if len(operands) < 2:
        return peak
    return peak - min(tensors[op.writes[0]].nbytes, sum(tensors[t].nbytes for t in operands))

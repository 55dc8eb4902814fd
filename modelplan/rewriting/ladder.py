"""Makes a .tflite model fit into TFLM's arena: a ladder of ever dearer changes, up to maps computed in stripes.

Each rung is a whole file with its arena by TFLM's own rules (runtimes/tflm). The plan of every rung is replayed byte by
byte before it counts.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from pathlib import Path

from modelplan import pipeline, runtimes
from modelplan.errors import ModelError, RequestError
from modelplan.loaders import load
from modelplan.pipeline import Options
from modelplan.rewriting.folding import Folded, folded
from modelplan.rewriting.plan_metadata import write_plan
from modelplan.rewriting.striped_tflite import added_kinds, write_striped
from modelplan.rewriting.stripes import choosing, placing
from modelplan.rewriting.stripes.building import built
from modelplan.rewriting.stripes.choosing import Candidate, Choice, Space
from modelplan.rewriting.stripes.estimating import even_cuts
from modelplan.rewriting.stripes.layers import op_macs
from modelplan.rewriting.stripes.program import Program, Step
from modelplan.rewriting.stripes.unrolled import Region
from modelplan.rewriting.stripes.windows import IllegalStripeError
from modelplan.runtimes.tflm import TFLM, planner
from modelplan.runtimes.tflm.abi import find_abis, layout
from modelplan.runtimes.tflm.arena import arena
from modelplan.runtimes.tflm.file import FileModel, read_tflite
from modelplan.types import Graph, Problem, Runtime

#: The rungs in the order in which they are tried, with what each changes.
RUNGS = {
    "as is": "the file as it stands",
    "order": "its best order of operators",
    "views": "an offline plan in which views share bytes",
    "overlaps": "and outputs run into operands that are still read",
    "fold": "and convolutions do the padding in front of them",
    "split": "and the largest maps are computed in stripes",
}
#: Bytes that TFLM keeps for one more operator, without its tensors and channels, by kind: to rank plans only.
_TAIL = {
    64: {"CONV_2D": 191, "DEPTHWISE_CONV_2D": 191, "SLICE": 68, "CONCATENATION": 160, "PAD": 130},
    32: {"CONV_2D": 120, "DEPTHWISE_CONV_2D": 120, "SLICE": 34, "CONCATENATION": 64, "PAD": 92},
}
_TAIL_OF_OTHERS = {64: 150, 32: 100}
#: Bytes that TFLM keeps for each tensor.
_EVAL_TENSOR = {64: 24, 32: 12}
#: Bytes that TFLM keeps for a loop beside its operators.
_LOOP = {64: 420, 32: 220}
#: Bytes that TFLM works with for each planned tensor while it plans.
_PLANNING = {64: 72, 32: 64}
#: Tries of the packer for a first look, for a plan that is improved, and for the answer.
_LOOK, _ANSWER = 1500, 15000
#: Plans of the sweep that are built and packed, answers that are packed at length, plans of one region.
_BUILT, _ANSWERS, _SINGLE = 30, 3, 40
#: Improvements that are tried: fewer for models of many operators, whose plans take longer to build.
_IMPROVED, _IMPROVED_TIMES_OPS = 700, 12000
#: Extra work of one operator call, as a share of the whole model's: to choose the cheapest of those that fit.
_CALL = 5e-4


@dataclass(frozen=True, slots=True)
class Goal:
    """What is asked for.

    `budget` in bytes of the objective, None for the least. `max_macs` is a share of the model's multiply-accumulates,
    `max_ops` and `max_flash` cap the operators of the file and its bytes. `without` names rungs that are forbidden.
    """

    budget: int | None = None
    objective: str = "arena"
    abi: str = "32"
    kernels: str = "reference"
    max_macs: float = 0.10
    max_ops: int | None = None
    max_flash: int | None = None
    without: frozenset[str] = frozenset()
    seed: int = 0


@dataclass(frozen=True)
class Rung:
    """One way to run the model: the file, its arena in bytes, and what it costs.

    `macs` are multiply-accumulates in all, `regions` what is computed in stripes, `added` operators that the file needs
    and the model does not.
    """

    name: str
    model: bytes = field(repr=False)
    arena: int
    head: int
    tail: int
    macs: int
    ops: int
    regions: tuple[str, ...] = ()
    added: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Point:
    """A plan that was built and packed: estimated arena, head, extra multiply-accumulates, operators."""

    arena: int
    head: int
    macs: int
    ops: int


@dataclass(frozen=True)
class Ladder:
    """The rungs that were tried, the one that answers the goal or None, and the plans on the way.

    `bound` is what no plan of the family that was searched reaches below: live bytes of the best plan's steps.
    """

    rungs: tuple[Rung, ...]
    chosen: Rung | None
    points: tuple[Point, ...] = ()
    bound: int = 0
    macs: int = 0
    remarks: tuple[str, ...] = ()

    def least(self, goal: Goal) -> int:
        """The least bytes of the objective among all rungs."""
        return min(rung.arena if goal.objective == "arena" else rung.head for rung in self.rungs)

    @property
    def front(self) -> tuple[Point, ...]:
        """The plans of which none is better in arena and in extra work, by arena."""
        kept: list[Point] = []
        for point in sorted(self.points, key=lambda p: (p.arena, p.macs)):
            if not kept or point.macs < kept[-1].macs:
                kept.append(point)
        return tuple(kept)


Report = Callable[[str], None]


def _silent(_: str) -> None:
    """Reports nothing."""


def fit(model: str | Path, goal: Goal | None = None, report: Report = _silent) -> Ladder:
    """The cheapest change of a .tflite file that meets the goal, and what every rung of the ladder needs.

    Raises:
        ModelError: the file cannot be read.
        RequestError: the goal names what does not exist.
    """
    goal = goal or Goal()
    if strange := goal.without - RUNGS.keys():
        raise RequestError(f"no rung {', '.join(sorted(strange))}; there are: {', '.join(RUNGS)}")
    path = Path(model)
    try:
        data = path.read_bytes()
    except OSError as problem:
        raise ModelError(f"{path}: {problem.strerror}") from None
    return _Climb(data, str(path), goal, report).climb()


class _Climb:
    """One ascent: the rungs so far, and the model as the rungs see it."""

    def __init__(self, data: bytes, name: str, goal: Goal, report: Report) -> None:
        self.data, self.name, self.goal, self.report = data, name, goal, report
        self.rungs: list[Rung] = []
        self.points: list[Point] = []
        self.remarks: list[str] = []
        self.bound = 0
        self.known: dict[object, tuple[int, ...]] = {}
        graph = load(name)
        if not isinstance(graph, Graph) or graph.format != "tflite":
            raise RequestError(f"{name}: fit takes a .tflite model")
        self.graph = graph
        self.macs = sum(op_macs(graph, op) for op in graph.ops)
        self.bits = 8 * layout(("pointer",), find_abis(goal.abi)[0]).size
        self.runtime: Runtime = runtimes.with_kernels(TFLM, goal.kernels)

    def climb(self) -> Ladder:
        """Rung by rung until one fits; with no budget, all of them."""
        try:
            for found in self._rungs():
                self.rungs.append(found)
                self.report(f"{found.name}: {self.measure(found):,} bytes")
                if self.goal.budget is not None and self.fits(found):
                    break
        except KeyboardInterrupt:
            self.remarks.append("interrupted: the best so far")
        fitting = [rung for rung in self.rungs if self.fits(rung)]
        chosen = min(fitting, key=self.measure) if self.goal.budget is None and fitting else next(iter(fitting), None)
        return Ladder(tuple(self.rungs), chosen, tuple(self.points), self.bound, self.macs, tuple(self.remarks))

    def measure(self, rung: Rung) -> int:
        """The bytes of the objective."""
        return rung.arena if self.goal.objective == "arena" else rung.head

    def fits(self, rung: Rung) -> bool:
        """Whether a rung meets the budget and the caps."""
        goal = self.goal
        return (
            (goal.budget is None or self.measure(rung) <= goal.budget)
            and (goal.max_ops is None or rung.ops <= goal.max_ops or rung.name == "as is")
            and (goal.max_flash is None or len(rung.model) <= goal.max_flash or rung.name == "as is")
            and rung.macs - self.macs <= goal.max_macs * self.macs
        )

    def _rungs(self) -> Iterator[Rung]:
        without = self.goal.without
        file = read_tflite(self.data, self.name)
        yield self._rung("as is", self.data, len(self.graph.ops), self.macs)
        reason = _unplannable(file, self.graph)
        if reason:
            self.remarks.append(f"no other rung: {reason}")
            return
        order = tuple(range(len(self.graph.ops)))
        whole = Folded(self.graph, order)
        best = order if "order" in without else self._best_order()
        if best != order:
            yield self._planned("order", whole, best, None)
        orders = [order] if best == order else [order, best]
        if "views" not in without:
            yield min((self._planned("views", whole, o, placing.no_leads) for o in orders), key=self.measure)
        leads = placing.no_leads if "overlaps" in without else placing.kernel_leads(self.runtime)
        if "overlaps" not in without:
            yield min((self._planned("overlaps", whole, o, leads) for o in orders), key=self.measure)
        if "fold" not in without:
            fewer = folded(self.graph, same_scale(self.data))
            if len(fewer.file_ops) < len(order):
                whole, orders = fewer, [tuple(range(len(fewer.file_ops)))]
                yield self._planned("fold", whole, orders[0], leads)
        if "split" not in without:
            yield from self._split(whole, orders, leads)

    def _best_order(self) -> tuple[int, ...]:
        options = Options(runtime=TFLM.name, schedule="best", alias="none", allocator="tflm-greedy")
        return tuple(pipeline.plan(self.graph, options).schedule.order)

    def _split(self, whole: Folded, orders: Sequence[tuple[int, ...]], leads: placing.Leads) -> Iterator[Rung]:
        found = []
        for order in orders:
            hunt = Hunt(self, whole, order, leads)
            found += hunt.answers()
            self.points += hunt.points()
            self.bound = min([b for b in (self.bound, hunt.bound) if b], default=0)
            self.remarks += [r for r in hunt.reasons() if r not in self.remarks]
        if found:
            fitting = [rung for rung in found if self.fits(rung)]
            yield min(fitting or found, key=self._cost if self.goal.budget is not None and fitting else self.measure)

    def _cost(self, rung: Rung) -> float:
        """Extra work of a rung, operator calls counted, as a share of the model's."""
        return (rung.macs - self.macs) / max(self.macs, 1) + _CALL * (rung.ops - len(self.graph.ops))

    def _planned(self, name: str, whole: Folded, order: tuple[int, ...], leads: placing.Leads | None) -> Rung:
        """The model in an order, with a plan unless `leads` is None."""
        program = built(whole.graph, order, (), whole.file_ops)
        if leads is None:
            model, _ = write_striped(self.data, program)
            return self._rung(name, model, len(program.steps), self.macs)
        return self.realised(name, program, leads, _ANSWER, self.macs)

    def realised(
        self, name: str, program: Program, leads: placing.Leads, tries: int, macs: int, regions: Sequence[Region] = ()
    ) -> Rung:
        """A program packed, replayed and written.

        Raises:
            BrokenPlanError: the plan does not hold; never to be seen.
        """
        packing = placing.pack(self.posed(program, leads), tries, seed=self.goal.seed)
        placing.replay_steps(program, packing, leads)
        model, values = write_striped(self.data, program)
        file = read_tflite(model, self.name)
        planned = {row.tensor for row in planner.requests(file, self.goal.kernels) if not row.scratch}
        place = placing.value_addresses(program, packing)
        kept = [t in planned or tensor.variable for t, tensor in enumerate(file.tensors)]
        offsets = [place.get(value, planner.ONLINE) if kept[t] else planner.ONLINE for t, value in enumerate(values)]
        described = tuple(self._described(region) for region in regions)
        return self._rung(name, write_plan(file, offsets), len(program.steps), macs, described, added_kinds(program))

    def posed(self, program: Program, leads: placing.Leads) -> Problem:
        """The packing problem with the working buffers of the kernels."""
        return placing.posed(program, leads, planner.ALIGNMENT, placing.scratch_of(program, self.runtime, self.known))

    def _described(self, region: Region) -> str:
        labels = f"ops {region.first} to {region.last}"
        along = "rows" if region.axis == 1 else "columns"
        if region.loop:
            return f"{labels}: one loop over {region.stripes} stripes of {along}"
        keep = "kept" if region.carry else "made again"
        return f"{labels}: {region.stripes} stripes of {along}, halo {keep}, {len(region.pad)} padded"

    def _rung(
        self, name: str, model: bytes, ops: int, macs: int, regions: tuple[str, ...] = (), added: Sequence[str] = ()
    ) -> Rung:
        needs = arena(read_tflite(model, self.name), self.goal.abi, self.goal.kernels)
        return Rung(name, model, needs.size(), needs.head, needs.tail, macs, ops, regions, tuple(added))


def _unplannable(file: FileModel, graph: Graph) -> str:
    """Why the file's memory cannot be planned by this module, empty where it can."""
    if len(file.subgraphs) != 1:
        return f"it has {len(file.subgraphs)} subgraphs"
    if file.compressed or file.decodes:
        return "its weights are compressed"
    if len(file.subgraphs[0].ops) != len(graph.ops):
        return "its graph has other operators than the file"
    strange = sorted({op.kind for op in file.subgraphs[0].ops if op.kind == "ethos-u" or op.calls})
    return f"it holds {', '.join(strange)}" if strange else ""


def same_scale(data: bytes) -> Callable[[int, int], bool]:
    """Whether two tensors of the main graph of a .tflite file have the same scales and zero points."""
    import tflite

    subgraph = tflite.Model.GetRootAs(data, 0).Subgraphs(0)

    def scale(t: int) -> tuple[tuple[float, ...], tuple[int, ...]]:
        found = subgraph.Tensors(t).Quantization()
        if found is None:
            return (), ()
        scales = tuple(found.Scale(i) for i in range(found.ScaleLength()))
        return scales, tuple(found.ZeroPoint(i) for i in range(found.ZeroPointLength()))

    return lambda a, b: scale(a) == scale(b)


@dataclass(frozen=True)
class Made:
    """A plan that was built and packed at a first look."""

    choice: Choice
    program: Program = field(repr=False)
    height: int
    load: int
    score: int
    macs: int


class Hunt:
    """The search for stripes in one order of a model: sweep, build, improve."""

    def __init__(self, climb: _Climb, whole: Folded, order: tuple[int, ...], leads: placing.Leads) -> None:
        self.climb, self.whole, self.order, self.leads = climb, whole, order, leads
        self.goal = climb.goal
        self.random = random.Random(self.goal.seed)  # noqa: S311
        self.space = Space(whole.graph, order, leads, self._tail)
        self.made: dict[tuple[Region, ...], Made | None] = {}
        self.base = climb.rungs[0].tail
        self.bound = 0

    def _tail(self, kind: str, channels: int, tensors: int) -> int:
        bits = self.climb.bits
        scaled = 2 * -(-4 * channels // 16) * 16
        return _TAIL[bits].get(kind, _TAIL_OF_OTHERS[bits]) + scaled + _EVAL_TENSOR[bits] * tensors

    def answers(self) -> list[Rung]:
        """The best plans, packed at length and written."""
        peaks = self.space.peaks
        ceiling = max(peaks)
        if self.goal.budget is not None:
            ceiling = max(ceiling, 1)
        self.found = choosing.candidates(self.space, ceiling, ceiling // 3)
        most = int(self.goal.max_macs * self.climb.macs)
        plans = choosing.plans(self.space, self.found, most)
        self.climb.report(f"{len(self.found)} candidates, {len(plans)} plans")
        stopped = False
        try:
            for choice in sorted(plans, key=self._expected)[:_BUILT]:
                self._make(choice.regions)
            for regions in self._one_region():
                self._make(regions)
            self._improve()
        except KeyboardInterrupt:
            stopped = True
        rungs = [self._realised(made) for made in self._best()[:_ANSWERS]]
        self.bound = min((made.load for made in self.made.values() if made), default=0)
        if stopped and not rungs:
            raise KeyboardInterrupt
        return rungs

    def _one_region(self) -> list[tuple[Region, ...]]:
        """For each range of operators its most promising stripes, the best ranges first."""
        best: dict[tuple[int, int], Candidate] = {}
        most = self.goal.max_macs * self.climb.macs
        for c in self.found:
            key = c.region.first, c.region.last
            if c.macs <= most and (key not in best or self._promise(c) < self._promise(best[key])):
                best[key] = c
        return [(c.region,) for c in sorted(best.values(), key=self._promise)[:_SINGLE]]

    def _promise(self, candidate: Candidate) -> int:
        """The bytes of the objective with this region alone, as far as its rows tell."""
        steps = range(len(self.order))
        inside = range(candidate.region.first, candidate.region.last + 1)
        peak = max([candidate.peak, *(self.space.peaks[step] for step in steps if step not in inside)])
        return peak + (candidate.tail if self.goal.objective == "arena" else 0)

    def _realised(self, made: Made) -> Rung:
        total = self.climb.macs + made.macs
        return self.climb.realised("split", made.program, self.leads, _ANSWER, total, made.choice.regions)

    def _best(self) -> list[Made]:
        """Plans within the caps; for a budget the cheapest that seem to fit come first, else the lowest."""
        found = [made for made in self.made.values() if made and self._allowed(made)]
        budget = self.goal.budget
        if budget is None:
            return sorted(found, key=lambda made: (made.score, made.macs))
        fitting = [made for made in found if made.score <= budget]
        cheap = sorted(fitting, key=lambda made: made.macs / max(self.climb.macs, 1) + _CALL * len(made.program.steps))
        return [*cheap[:2], *sorted(found, key=lambda made: made.score)]

    def _allowed(self, made: Made) -> bool:
        cap = self.goal.max_ops
        return made.macs <= self.goal.max_macs * self.climb.macs and (cap is None or len(made.program.steps) <= cap)

    def _expected(self, choice: Choice) -> int:
        return choice.peak if self.goal.objective == "head" else choice.peak + choice.tail

    def _make(self, regions: tuple[Region, ...], tries: int = _LOOK) -> Made | None:
        """A plan built and packed at a first look; None where it has no stripes of this form."""
        if regions in self.made:
            return self.made[regions]
        self.made[regions] = None
        try:
            program = built(self.whole.graph, self.order, regions, self.whole.file_ops)
        except IllegalStripeError:
            return None
        packing = placing.pack(self.climb.posed(program, self.leads), tries, seed=self.goal.seed)
        macs = sum(step_macs(program, step) for step in program.steps) - self.climb.macs
        score = packing.height if self.goal.objective == "head" else self._arena(program, packing.height)
        made = Made(Choice(regions), program, packing.height, packing.load, score, macs)
        self.made[regions] = made
        return made

    def _arena(self, program: Program, height: int) -> int:
        """The arena that the program's file is expected to need."""
        plain = built(self.climb.graph, range(len(self.climb.graph.ops)), ())
        tail = self.base + self._kept(program) - self._kept(plain)
        constants = len(program.constants) * _EVAL_TENSOR[self.climb.bits]
        tail += constants
        return tail + max(height, _PLANNING[self.climb.bits] * len(program.homes))

    def _kept(self, program: Program) -> int:
        """What TFLM keeps for the steps of a program, as far as plans are ranked by it."""
        kept = 0
        for step in program.steps:
            if step.loop is not None:
                steps = (step.loop.condition, *step.loop.body)
                kept += _LOOP[self.climb.bits] + sum(self._tail(s.kind, _channels(program, s), 2) for s in steps)
            elif step.outputs:
                kept += self._tail(step.kind, _channels(program, step), len(step.outputs))
        return kept

    def _improve(self) -> None:
        """Changes the best plans a little, again and again, and keeps what is better."""
        tried: set[tuple[Region, ...]] = set()
        left = min(_IMPROVED, _IMPROVED_TIMES_OPS // len(self.order))
        while left > 0:
            best = next((made for made in self._best() if made.choice.regions not in tried), None)
            if best is None or (self.goal.budget is not None and best.score <= self.goal.budget):
                return
            tried.add(best.choice.regions)
            left -= self._improve_one(best, left)

    def _improve_one(self, best: Made, most: int) -> int:
        """Tries plans around one, up to the first that is better; returns how many."""
        options = [regions for regions in dict.fromkeys(self._around(best.choice.regions)) if regions not in self.made]
        self.random.shuffle(options)
        for count, regions in enumerate(options[:most], 1):
            made = self._make(regions)
            if made and self._allowed(made) and made.score < best.score:
                self.climb.report(f"{made.score:,} bytes with {len(made.program.steps)} operators")
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
        yield replace(region, carry=not region.carry)
        yield replace(region, lazy=not region.lazy, carry=False)
        yield replace(region, backward=not region.backward, carry=False)
        ranges = [(region.first + a, region.last + b) for a in (-1, 0, 1) for b in (-1, 0, 1)]
        for first, last in ranges:
            yield from (c.region for c in self.found if (c.region.first, c.region.last) == (first, last))
        ops = self.order[region.first : region.last + 1]
        for op in ops:
            yield replace(region, pad=region.pad ^ {op})

    def _loops(self, region: Region) -> Iterator[Region]:
        """The region as a loop over stripes of one to four rows."""
        height = region.cuts[-1]
        for rows in (1, 2, 3, 4, 6):
            if rows < height:
                cuts = (*range(0, height, rows), height)
                yield replace(region, cuts=cuts, carry=False, lazy=False, pad=frozenset(), loop=True)

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


def _uneven(cuts: tuple[int, ...]) -> Iterator[tuple[int, ...]]:
    """The same stripes with one border a row further up or down."""
    for i in range(1, len(cuts) - 1):
        for shift in (-1, 1):
            moved = (*cuts[:i], cuts[i] + shift, *cuts[i + 1 :])
            if cuts[i - 1] < moved[i] < cuts[i + 1]:
                yield moved


def _channels(program: Program, step: Step) -> int:
    """Output channels that a convolution scales each for itself."""
    return program.shape(step.outputs[0])[-1] if step.kind.endswith("CONV_2D") else 0


def step_macs(program: Program, step: Step) -> int:
    """Multiply-accumulates of a step, of a loop those of all its iterations."""
    if step.loop is not None:
        return step.loop.iterations * sum(step_macs(program, inner) for inner in step.loop.body)
    if step.source < 0 or not step.outputs:
        return 0
    graph, op = program.graph, program.graph.ops[step.source]
    whole = op_macs(graph, op)
    if step.outputs == op.outputs:
        return whole
    return whole * program.nbytes(step.outputs[0]) // graph.tensors[op.outputs[0]].nbytes

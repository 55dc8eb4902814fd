"""Makes a .tflite model fit into TFLM's arena: a ladder of ever dearer changes, up to maps computed in stripes."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import fields, replace
from pathlib import Path
from typing import Any, NamedTuple

from modelplan.answers.file_changes import HelpedLibrary
from modelplan.answers.proof_outcomes import Verdict
from modelplan.formats import load_model
from modelplan.formats.tflite import tflite_schema as schema
from modelplan.formats.tflite.tflite_file import QuantisationScales, TfliteFile
from modelplan.formats.whole_files import fingerprint, read_model
from modelplan.model import Graph, Kind
from modelplan.model.model_file import ModelFile
from modelplan.ops import facts
from modelplan.planning import pipeline
from modelplan.planning.pipeline import Options
from modelplan.primitives.errors import BrokenPlanError, ModelError, RequestError
from modelplan.primitives.lazy_records import dataclass
from modelplan.primitives.reporting import Report, report_nothing
from modelplan.primitives.showing_answers import Shown
from modelplan.rewriting.packing import packed
from modelplan.rewriting.striped_tflite import placing
from modelplan.rewriting.striped_tflite.building import striped_program
from modelplan.rewriting.striped_tflite.folded_convolutions import Folded, folded, with_dilations
from modelplan.rewriting.striped_tflite.interface import (
    INTERFACES,
    ChangedInterface,
    outer_conversions,
    with_interface,
)
from modelplan.rewriting.striped_tflite.joining import with_joins
from modelplan.rewriting.striped_tflite.renaming import with_fewer_renames
from modelplan.rewriting.striped_tflite.rungs import RUNGS, UNPLANNED, Goal, ModelOnTarget, Rung, why_unplannable
from modelplan.rewriting.striped_tflite.slicing import with_slices
from modelplan.rewriting.striped_tflite.steps import TfliteProgram
from modelplan.rewriting.striped_tflite.stripe_search import Point, Stretches, StripeSearch
from modelplan.rewriting.striped_tflite.turning import with_fewer_transposes
from modelplan.rewriting.striped_tflite.writing import write_striped
from modelplan.rewriting.stripes.group_packing import GroupPacking
from modelplan.rewriting.stripes.ladder import chosen_rung, climb_rungs, never_interrupt
from modelplan.rewriting.stripes.ordering import hoisted, late_reads
from modelplan.rewriting.stripes.stretches import StripedStretch
from modelplan.runtimes.tflm import TFLM, planner
from modelplan.runtimes.tflm.arena import refusals
from modelplan.runtimes.tflm.file import DECODE, FileModel, read_tflite
from modelplan.runtimes.tflm.kernels import ALL, is_group
from modelplan.runtimes.tflm.refused_operators import refusal_lines

#: Seconds after which the proof runs no further cut of the model on a runtime, and multiply-accumulates from which it
#: runs one round of inputs: the bytes are proved before that, so what is left to see is that the kernels take the file.
_PROOF_SECONDS, _MANY_MACS = 2.0, 20_000_000


class LowestLibrary(NamedTuple):
    """The arena of a rung with one of several kernel libraries, in bytes."""

    arena: int
    name: str
    rung: str


@dataclass(frozen=True)
class BestPlan:
    """The lowest plan of stripes in one order of the operators of a graph."""

    graph: Graph
    order: tuple[int, ...]
    stretches: Stretches

    def with_conversions(self, graph: Graph, order: Sequence[int]) -> Iterator[Stretches]:
        """The plan in an order of a graph that has conversions at its ends besides: without these, and with them.

        Nothing where that has other operators besides, or has them in another order.
        """
        known = {(op.kind, self.graph.tensors[t].name) for op in self.graph.ops for t in op.outputs}
        conversions = {op: graph.ops[op] for op in outer_conversions(graph).operators}
        ends = {at for at, op in conversions.items() if (op.kind, graph.tensors[op.outputs[0]].name) not in known}
        ops = [op for op in range(len(graph.ops)) if op not in ends]
        steps = [step for step, op in enumerate(order) if op not in ends]
        same = [graph.ops[op].kind for op in ops] == [op.kind for op in self.graph.ops]
        if not self.stretches or not same or [ops[op] for op in self.order] != [order[step] for step in steps]:
            return
        first, *more = moved = [_moved(stretch, steps, ops) for stretch in self.stretches]
        yield tuple(moved)
        if first.first > 0 and order[first.first - 1] in ends:
            moved = [replace(first, first=first.first - 1), *more]
            yield tuple(moved)
        last = moved[-1]
        if last.last + 1 < len(order) and order[last.last + 1] in ends:
            yield (*moved[:-1], replace(last, last=last.last + 1))


def _moved(stretch: StripedStretch, steps: Sequence[int], ops: Sequence[int]) -> StripedStretch:
    """A stretch whose positions and operators have these numbers elsewhere."""
    changed: dict[str, Any] = {"first": steps[stretch.first], "last": steps[stretch.last]}
    for field in fields(stretch):
        if isinstance(named := getattr(stretch, field.name), frozenset):
            changed[field.name] = frozenset(ops[op] for op in named)
    return replace(stretch, **changed)


@dataclass(frozen=True, repr=False)
class Ladder(Shown):
    """The rungs that were tried, cheapest first, the one that answers the goal or None, and the plans on the way.

    In bytes of the objective: `least` is the lowest that was found within the caps; `bound` what every plan of stripes
    needs that takes the operators in one of the orders that were tried, however rows are cut, and `bound_by` says why;
    `built_bound` what the plans that were built need, the `points`, wherever each puts its rows. 0 where no stripes
    were searched. `ended` says until when they were, for each order. `macs` are those of the model. `proof` are the
    verdicts on the chosen file. `kernels` is the library that all figures are for. Where it stands for several, no rung
    is chosen that raises the arena of one of them; `helped` is the one that such a rung would help most, and `lowest`
    the one with the lowest arena of any rung.
    `allowed` are the rungs that may be chosen, whatever the budget. `best` are the lowest plans of the searches.
    """

    rungs: tuple[Rung, ...]
    chosen: Rung | None
    least: int
    bound: int = 0
    bound_by: str = ""
    built_bound: int = 0
    points: tuple[Point, ...] = ()
    ended: tuple[str, ...] = ()
    macs: int = 0
    remarks: tuple[str, ...] = ()
    proof: tuple[Verdict, ...] = ()
    kernels: str = ALL
    helped: HelpedLibrary | None = None
    lowest: LowestLibrary | None = None
    allowed: tuple[Rung, ...] = ()
    best: tuple[BestPlan, ...] = ()

    @property
    def model(self) -> bytes | None:
        """The rewritten .tflite file; None where nothing fits."""
        return None if self.chosen is None else self.chosen.model


def climb(
    model: str | Path | Graph | ModelFile,
    goal: Goal,
    report: Report = report_nothing,
    check: Callable[[], None] = never_interrupt,
    *,
    proved: bool = True,
    like: Ladder | None = None,
) -> Ladder:
    """The ladder of a model for a goal; `proved`: the file that it chooses is proved to compute what the model does.

    `like` is one of the same model without the conversions at its ends, whose plans of stripes the search starts from.

    `check` is called before each plan that is built; what it raises ends the search and goes to the caller, but for
    KeyboardInterrupt, after which the best so far is the answer. A rung whose file breaks the proof is left out.
    """
    _check(goal)
    file = model if isinstance(model, ModelFile) else _file_of(model)
    graph, data = file.graph, file.content
    if fingerprint(data) != graph.fingerprint:
        raise RequestError(f"{graph.source}: the file has changed since the graph was loaded")
    changed = _other_interface(data, graph, goal)
    if goal.interface == INTERFACES[0] or changed is None:
        subject = ModelOnTarget(data, graph, graph.source, goal, report, check)
    else:
        subject = ModelOnTarget(changed.content, changed.graph, graph.source, goal, report, check, data)
    ladder = _Climb(subject, len(graph.ops), _interface_remarks(changed, goal), like.best if like else ()).ladder()
    if ladder.chosen is None or not proved:
        return ladder
    from modelplan.checking.verifier.rewrites.executing import ExecutionEffort  # here, since `explain` proves no file
    from modelplan.checking.verifier.rewrites.proving import prove_rewrite

    try:
        effort = ExecutionEffort(goal.seed, _PROOF_SECONDS, 1 if ladder.macs > _MANY_MACS else 2)
        proof = prove_rewrite(data, ladder.chosen.model, goal.kernels, effort)
    except BrokenPlanError as problem:
        name = ladder.chosen.name
        if name in UNPLANNED:
            raise
        remaining = climb(graph, replace(goal, without=goal.without | {name}), report, check)
        remark = f"no rung {name}: {problem}; a defect of modelplan, please report it with the model"
        return replace(remaining, remarks=(*remaining.remarks, remark))
    return _proved(replace(ladder, proof=tuple(proof)), goal)


def _file_of(model: str | Path | Graph) -> ModelFile:
    """The .tflite file that is named, or that a graph was read from."""
    graph = model if isinstance(model, Graph) else load_model(model)
    if graph.format != "tflite" or not graph.source:
        raise RequestError(f"{graph.source or graph.name}: fit takes a model from a .tflite file")
    return ModelFile(graph.source, read_model(graph.source), graph)


def _check(goal: Goal) -> None:
    """Refuses a goal with words that nothing has."""
    if strange := goal.without - (RUNGS.keys() - UNPLANNED):
        named = ", ".join(name for name in RUNGS if name not in UNPLANNED)
        raise RequestError(f"no rung {', '.join(sorted(strange))} to leave out; there are: {named}")
    if goal.interface not in INTERFACES:
        raise RequestError(f"no interface {goal.interface!r}; there are: {', '.join(INTERFACES)}")
    if goal.objective not in ("arena", "head"):
        raise RequestError(f"no objective {goal.objective!r}; there are: arena, head")


def _other_interface(data: bytes, graph: Graph, goal: Goal) -> ChangedInterface | None:
    """The file with the inputs and outputs that are asked for; where none are, with those that it could have."""
    if goal.interface != INTERFACES[0]:
        return with_interface(data, graph, goal.interface)
    if not outer_conversions(graph).inner:
        return None
    try:
        return with_interface(data, graph, INTERFACES[1])
    except (ModelError, RequestError):
        return None  # as its file is, which the next rungs judge


def _interface_remarks(changed: ChangedInterface | None, goal: Goal) -> list[str]:
    if goal.interface != INTERFACES[0]:
        return list(changed.reasons) if changed else []
    if changed is None or changed.fewer <= 0:
        return []
    said = f"--interface {INTERFACES[1]} is never taken unasked: the program would convert, and its inputs and outputs"
    return [f"{said} would have {changed.fewer:,} bytes less"]


def _proved(ladder: Ladder, goal: Goal) -> Ladder:
    """The ladder without its choice where that is another file than the model and was not proved to be equal."""
    as_is = ladder.rungs[0]
    reason = next((verdict.details for verdict in ladder.proof if verdict.outcome == "unproved"), "")
    if not reason or ladder.chosen in (None, as_is):
        return ladder
    whole = goal.budget is None and not as_is.refusals and all(rung.name != "interface" for rung in ladder.rungs)
    chosen = as_is if whole else None
    least = as_is.arena if goal.objective == "arena" else as_is.head
    remarks = (*ladder.remarks, f"no other rung is taken: a rewritten file {reason}")
    return replace(ladder, chosen=chosen, least=least, remarks=remarks, proof=())


#: A file that counts as the model, its graph, and the orders in which stripes are searched.
_Variant = tuple[ModelOnTarget, Folded, Sequence[tuple[int, ...]]]
#: A rung with the graph and the orders from which the next ones start.
_Start = tuple[Rung, Folded, list[tuple[int, ...]]]
#: Makes the program of a file and its graph that computes the same; None where there is nothing to leave out.
_Rewrite = Callable[[bytes, Graph], TfliteProgram | None]
#: What leaves operators out, by the rung that it makes.
_REWRITES: dict[str, _Rewrite] = {"turn": with_fewer_transposes, "renames": with_fewer_renames}


class _Climb:
    """One ascent: the rungs so far, and what the search for stripes found out.

    `subject` is the model, or the file with fewer TRANSPOSEs in its place. `joins` says whether the last plan needs the
    least where parts of joins lie in their places.
    """

    def __init__(
        self, model: ModelOnTarget, ops: int, remarks: Sequence[str] = (), like: Sequence[BestPlan] = ()
    ) -> None:
        self.like, self.best = like, list[BestPlan]()
        self.model, self.goal, self.graph, self.ops = model, model.goal, model.graph, ops
        self.subject, self.joins = model, True
        self.interrupted = False
        self.rungs: list[Rung] = []
        self.points: list[Point] = []
        self.ended: list[str] = []
        self.remarks = list(remarks)
        self.bounds: list[tuple[int, str]] = []
        self.built_bounds: list[int] = []

    def ladder(self) -> Ladder:
        """Rung by rung until one fits; with no budget, all of them."""
        try:
            climb_rungs(self._rungs(), self.rungs, self.goal, self.model.fits, self.model.measure, self.model.report)
        except KeyboardInterrupt:
            self.remarks.append("interrupted: the best so far")
        allowed = tuple(rung for rung in self.rungs if self.model.allowed(rung))
        (least, reason), tail = min(self.bounds, default=(0, "")), self._least_tail
        built = [*self.built_bounds, *(rung.head for rung in allowed)] if self.built_bounds else [0]
        return Ladder(
            rungs=tuple(self.rungs),
            chosen=chosen_rung(self.rungs, self.goal, self.model.fits, self.model.rank),
            least=min(map(self.model.measure, allowed or self.rungs), default=0),
            bound=least + tail,
            bound_by=reason,
            built_bound=max(least, min(built)) + tail,
            points=tuple(self.points),
            ended=tuple(dict.fromkeys(filter(None, self.ended))),
            macs=self.model.macs,
            remarks=tuple(self.remarks),
            kernels=self.goal.kernels,
            helped=self._helped(),
            lowest=self._lowest(),
            allowed=allowed,
            best=tuple(self.best),
        )

    @property
    def _least_tail(self) -> int:
        """The bytes that every plan of stripes needs beside its bound, where there is one."""
        return min(rung.tail for rung in self.rungs) if self.bounds and self.goal.objective == "arena" else 0

    def _lowest(self) -> LowestLibrary | None:
        """The lowest arena with one of several libraries, where that is below what all of them need."""
        each = [
            LowestLibrary(size, name, rung.name)
            for rung in self.rungs
            if self.model.within_caps(rung)
            for (name, _), size in rung.arenas.items()
        ]
        return min(each, key=lambda library: library.arena, default=None)

    def _helped(self) -> HelpedLibrary | None:
        """The library that a rung which raises another one would help most."""
        helped = [row for rung in self.rungs if (row := self.model.helped(rung))]
        return max(helped, key=lambda row: row.before - row.after, default=None)

    def _rungs(self) -> Iterator[Rung]:
        yield from self._unplanned()
        file = read_tflite(self.model.data, self.model.name)
        refused = refusal_lines(refusals(file, self.goal.abi, self.goal.kernels))
        if reason := f"TFLM does not run it: {refused[0]}" if refused else why_unplannable(file, self.graph):
            self.remarks.append(f"no other rung: {reason}")
            return
        without = self._left_out(file)
        order = tuple(range(len(self.graph.ops)))
        whole = Folded(self.graph, order)
        best = order if "order" in without else self._best_order()
        if best != order:
            model, _ = write_striped(self.model.data, striped_program(self.graph, best, (), order))
            yield self.model.rung("order", model, len(order), self.model.macs)
        orders = list(dict.fromkeys((self._settled(self.graph, order), self._settled(self.graph, best))))
        if "views" not in without:
            yield self._for_all_libraries(file, self._planned("views", whole, orders, placing.no_overlaps))
        overlaps = self.model.overlaps
        if "overlaps" not in without:
            yield self._planned("overlaps", whole, orders, overlaps)
        for start in self._restarts(without):
            whole, orders = start[1:]
            yield start[0]
        fewer = whole if "fold" in without else self._folded(self.subject)
        if len(fewer.file_ops) < len(whole.file_ops):
            whole, orders = fewer, [self._settled(fewer.graph, tuple(range(len(fewer.file_ops))))]
            yield self._planned("fold", whole, orders, overlaps)
        gathers = False
        if not without & {"gather", "overlaps"}:
            other = with_dilations(whole, self.model.runtime)
            rung = None if other is whole else self._planned("gather", other, orders, overlaps)
            if rung and self.model.measure(rung) < min(map(self.model.measure, self.rungs)):
                whole, gathers = other, True
                yield rung
        if "split" not in without and self.graph.ops:
            yield from self._split([(self.subject, whole, orders), *self._sliced(gathers=gathers)])

    def _for_all_libraries(self, file: FileModel, rung: Rung) -> Rung:
        """The rung, or, where it raises one of several libraries, the lowest plan in the file's order that does not."""
        if self.model.raised(rung) is None:
            return rung
        try:
            written, _ = packed(file, self.graph, "views", None, self.goal.kernels, str(self.goal.abi))
        except ModelError:
            return rung  # a file whose own plan keeps parts of tensors: no other one is proved
        other = self.model.rung(rung.name, written.data, len(self.graph.ops), self.model.macs)
        as_is = self.rungs[0]
        return other if self.model.raised(other) is None and other.arenas != as_is.arenas else rung

    def _folded(self, model: ModelOnTarget) -> Folded:
        """The graph with PADs folded into convolutions, where that is allowed."""
        if "fold" in self.goal.without:
            return Folded(model.graph, tuple(range(len(model.graph.ops))))
        return folded(model.graph, same_scale(model.data))

    def _sliced(self, *, gathers: bool) -> Iterator[_Variant]:
        """The model with slices in place of operators that are not split, if there are any."""
        program = with_slices(self.subject.data, self.subject.graph)
        if program is not None:
            model = self.subject.rewritten(write_striped(self.subject.data, program)[0])
            whole = self._folded(model)
            whole = with_dilations(whole, self.model.runtime) if gathers else whole
            yield model, whole, [self._settled(whole.graph, tuple(range(len(whole.graph.ops))))]

    def _restarts(self, without: Collection[str]) -> Iterator[_Start]:
        """The rungs of rewritten files, each with where the next rungs start from."""
        for name, rewrite in _REWRITES.items():
            if name not in without and (start := self._restarted(name, rewrite)):
                yield start

    def _restarted(self, name: str, rewrite: _Rewrite) -> _Start | None:
        """The rung of a rewritten file, which counts as the model from then on, unless it needs more."""
        subject, joins = self.subject, self.joins
        program = rewrite(subject.data, subject.graph)
        if program is None:
            return None
        model = self.subject = subject.rewritten(write_striped(subject.data, program)[0])
        order = tuple(range(len(model.graph.ops)))
        whole, orders = Folded(model.graph, order), [self._settled(model.graph, order)]
        rung = self._planned(name, whole, orders, self.model.overlaps)
        if self.model.measure(rung) <= min(map(self.model.measure, self.rungs)):
            return rung, whole, orders
        self.subject, self.joins = subject, joins
        return None

    def _unplanned(self) -> Iterator[Rung]:
        yield self.model.rung("as is", self.model.original, self.ops, self.model.macs)
        if self.model.original != self.model.data:
            yield self.model.rung("interface", self.model.data, len(self.graph.ops), self.model.macs)

    def _left_out(self, file: FileModel) -> frozenset[str]:
        """The rungs that are not climbed; of a model that unpacks its weights, those that change operators."""
        if not file.decodes:
            return self.goal.without
        self.remarks.append(f"no rungs behind overlaps: {DECODE} unpacks its weights")
        return self.goal.without | {"turn", "renames", "fold", "gather", "split"}

    def _settled(self, graph: Graph, order: tuple[int, ...]) -> tuple[int, ...]:
        """The order with operators at earlier steps where less waits for them then, and variables read late."""
        if "order" in self.goal.without:
            return order
        stateful = any(facts("tflite", op.kind).effects for op in graph.ops)
        stateful = stateful or any(tensor.kind is Kind.STATE for tensor in graph.tensors)
        return late_reads(graph, order) if stateful else tuple(hoisted(graph, order))

    def _best_order(self) -> tuple[int, ...]:
        options = Options(runtime=TFLM.name, schedule="best", alias="none", allocator="tflm-greedy")
        return tuple(pipeline.plan(self.graph, options).schedule.order)

    def _planned(
        self, name: str, whole: Folded, orders: Sequence[tuple[int, ...]], overlaps: placing.KernelOverlaps
    ) -> Rung:
        """The model with a plan, in the order that needs the least, with parts of joins in place if that needs less."""
        joins = [(joined, order) for order in orders if (joined := self._with_joins(whole, order)) is not whole]
        plans = [self._packed(*variant, overlaps) for variant in (*((whole, order) for order in orders), *joins)]
        tried: Sequence[int] = range(len(plans))
        if not is_group(self.goal.kernels):  # of several libraries the lowest plan may raise one
            heads = [planner.padded(packing.height) for _, packing in plans]
            lowest = [at for at in tried if heads[at] == min(heads)]  # of which the order of operators sets the tail
            tried = sorted(lowest, key=lambda at: plans[at][1].height)
        written = {at: self._written(name, *plans[at], overlaps) for at in tried}
        best = min(written, key=lambda at: self.model.preference(written[at]))
        self.joins = best >= len(orders)
        return written[best]

    def _packed(
        self, whole: Folded, order: tuple[int, ...], overlaps: placing.KernelOverlaps
    ) -> tuple[TfliteProgram, GroupPacking]:
        program = striped_program(whole.graph, order, (), whole.file_ops)
        return program, self.subject.packed(program, overlaps)

    def _written(
        self, name: str, program: TfliteProgram, packing: GroupPacking, overlaps: placing.KernelOverlaps
    ) -> Rung:
        return self.subject.packed_rung(name, program, overlaps, self.model.macs, packing=packing)

    def _with_joins(self, whole: Folded, order: tuple[int, ...]) -> Folded:
        """The graph with parts of joins in their places, where all kernels take them there; else the same."""
        joined = with_joins(whole)
        program = striped_program(joined.graph, order, (), whole.file_ops)
        return joined if placing.is_aligned(program, self.model.runtime) else whole

    def _split(self, variants: Sequence[_Variant]) -> Iterator[Rung]:
        rungs, budget = self._striped(variants), self.goal.budget
        fitting = list(filter(self.model.fits, rungs))
        least = min(self.bounds, default=(0, ""))[0] + self._least_tail
        if rungs and not fitting and budget is not None and least <= budget and not self.interrupted:
            rungs += self._striped(variants, least=True)  # which may lie below what was tried for the budget
            fitting = list(filter(self.model.fits, rungs))
        if rungs:
            allowed = fitting or [rung for rung in rungs if self.model.allowed(rung)] or rungs
            cheapest = budget is not None and fitting
            yield min(allowed, key=(lambda rung: rung.time) if cheapest else self.model.rank)

    def _striped(self, variants: Sequence[_Variant], *, least: bool = False) -> list[Rung]:
        """The answers of the search for stripes in each order; with `least`, whatever the budget."""
        rungs = list[Rung]()
        unstriped = min(map(self.model.measure, self.rungs))
        ordered_models = [(model, whole, order) for model, whole, orders in variants for order in orders]
        for model, whole, order in ordered_models:
            joined = self._with_joins(whole, order) if self.joins else whole
            start = [plan for best in self.like for plan in best.with_conversions(joined.graph, order)]
            if rungs and self.like and not start:
                continue
            search = StripeSearch(model, joined, order, 1 / len(ordered_models), start, unstriped, least=least)
            rungs += search.answers()
            self.best.append(BestPlan(joined.graph, order, search.best()))
            self.points += search.points()
            self.ended.append(search.ended)
            self.bounds.append(search.least)
            self.built_bounds += search.loads()
            self.remarks += [r for r in search.reasons() if r not in self.remarks]
            if search.interrupted:
                self.interrupted = True
                self.remarks.append("interrupted: the best so far")
                break
        return rungs


def same_scale(data: bytes) -> Callable[[int, int], bool]:
    """Whether two tensors of the main graph of a .tflite file have the same scales and zero points."""
    file = TfliteFile(data)
    scales = QuantisationScales(file, file.slots(file.subgraph(0), schema.SUBGRAPH_TENSORS))
    return lambda a, b: scales.of(a) == scales.of(b)

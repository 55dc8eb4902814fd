"""The ladder for ONNX: settings of the session, the order of the nodes, stripes, each measured on ONNX Runtime itself.

A rung counts by what ONNX Runtime allocated for it, in a process of its own. A file in stripes is taken only where it
needs less than the model does at its best settings, and computes what the model computes.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import field, replace
from math import ceil, isfinite
from pathlib import Path
from typing import TYPE_CHECKING, Any

from numpy.typing import NDArray

from modelplan.formats import load_model
from modelplan.formats.dims import parsed_values
from modelplan.model import Budget, Graph, Kind
from modelplan.planning import pipeline
from modelplan.primitives.errors import ModelError, RequestError
from modelplan.primitives.lazy_records import dataclass
from modelplan.primitives.reporting import Report
from modelplan.primitives.showing_answers import Shown
from modelplan.rewriting import reordering
from modelplan.rewriting.striped_onnx.equal_nodes import with_fused, with_slices
from modelplan.rewriting.striped_onnx.layers import Reading
from modelplan.rewriting.striped_onnx.onnx_search import OnnxSearch, StripePlan
from modelplan.rewriting.striped_onnx.output_differences import OutputDifference, compare_outputs, first_difference
from modelplan.rewriting.striped_onnx.recomputed_skips import Skip, late_skips, pooled_skips, with_copies
from modelplan.rewriting.striped_onnx.stretch_ordering import clustered_order
from modelplan.rewriting.striped_onnx.unrolled_nodes import OnnxProgram, striped_onnx_program
from modelplan.rewriting.striped_onnx.writing import parsed, reading_of, write_bound, write_striped_onnx
from modelplan.rewriting.stripes.ladder import RewriteGoal, chosen_rung, climb_rungs
from modelplan.rewriting.stripes.ordering import hoisted
from modelplan.rewriting.stripes.stretches import KeptHalo
from modelplan.runtimes.ort import ORT
from modelplan.runtimes.ort.feeding import feeds_of
from modelplan.runtimes.ort.measuring import (
    LEVELS,
    MOST_SECONDS,
    Measured,
    MeasuringLimits,
    SessionGraph,
    SessionLateError,
    SessionRefusedError,
    SessionSettings,
    blocked_values,
    kept_values,
    measure,
    reach,
    time_in_turn,
    write_optimized,
)
from modelplan.runtimes.ort.planned_extents import feeds_that_reach, feeds_that_run
from modelplan.runtimes.ort.reaching import Aim

if TYPE_CHECKING:
    from onnx import ModelProto

#: The rungs in the order in which they are tried, with what each changes.
RUNGS = {
    "as is": "the unmodified file",
    "settings": "settings of the session alone",
    "order": "its best order of nodes, which the priority-based order follows",
    "split": "the largest values are computed in stripes, skips recomputed where that helps",
}
#: Random inputs on which outputs are compared, beside extreme ones.
_INPUTS = 3
#: Sessions that are measured at level all, where some nodes run in another order in each; the most counts.
_DRAWS = 4
#: Processes in which both files are timed in turn, and the runs of each in a process.
_PROCESSES, _TIMED = 3, 7
#: A session optimises a model in seconds that grow with the square of its nodes: from so many on it optimises
#: the model a single time at a level, and what comes of it is measured: a file with its weights, so below 2 GiB.
_MANY_NODES, _MOST_WEIGHTS = 4_000, 3 << 29
_LARGE = "a large model: what a session makes of it is measured, in a single order of its nodes"
#: Said of files in which ONNX Runtime does not know all shapes, so that it does not keep dead values for later ones.
_OPEN = ", the first extent of inputs left open"
#: Forms of a plan as a file: extents known, left open, left open up to the last stripe.
_FORMS = {
    "": {"unnamed": False},
    _OPEN: {"unnamed": True},
    f"{_OPEN} and told behind the last stripe": {"unnamed": True, "known_tail": True},
}


@dataclass(frozen=True, slots=True, kw_only=True)
class OnnxGoal(RewriteGoal):
    """What is asked for on ONNX Runtime; `budget` counts the run that needs most under the best settings.

    `settings` are the user's; those named in `fixed` are kept, the others may be changed. `tolerance` is in units of
    the last place of the largest value of an output. `values` are those of inputs, as for `load`; `feeds` is the path
    of an .npz file with inputs, empty for none.
    """

    settings: SessionSettings = field(default_factory=SessionSettings)
    fixed: frozenset[str] = frozenset()
    max_macs: float = 0.25
    tolerance: float = 0.0
    values: tuple[str, ...] = ()
    feeds: str = ""


@dataclass(frozen=True)
class OnnxRung:
    """A file and settings, measured. `model` is None where the file is the model's; `usual` are the bytes at the user's
    own settings, `best` those at `settings`. `seconds` is the processor time of a run against the model's, the least of
    several runs of both in turn in several processes; `spread` are the lowest and the highest such ratio of a process.
    """

    name: str
    what: str
    settings: SessionSettings
    usual: Measured
    best: Measured
    macs: int
    nodes: int
    model: bytes | None = None
    stretches: tuple[str, ...] = ()
    difference: OutputDifference | None = None
    seconds: float = 1.0
    spread: tuple[float, float] = (1.0, 1.0)


@dataclass(repr=False)
class OnnxLadder(Shown):
    """The rungs that were measured, the one that is taken, None where none meets the goal, and what is to be said.

    `ended_early`: not all that the ladder has was tried, since the time was over or somebody ended it.
    """

    rungs: list[OnnxRung] = field(default_factory=list)
    chosen: OnnxRung | None = None
    macs: int = 0
    remarks: list[str] = field(default_factory=list)
    ended_early: bool = False

    @property
    def least(self) -> OnnxRung:
        """The rung that needs the fewest bytes, of several the first."""
        return min(self.rungs, key=lambda rung: rung.best.peak)


def climb(path: str, graph: Graph, goal: OnnxGoal, progress: Report, seconds: float | None = None) -> OnnxLadder:
    """The rungs for a model, up to the first that meets the goal.

    After `seconds`, or where somebody interrupts it, those count that are known by then: the model as it is at least.

    Raises:
        ModelError: ONNX Runtime does not run the model.
        RequestError: a rung that there is not.
    """
    unknown = goal.without - set(RUNGS)
    if unknown or "as is" in goal.without:
        name = min(unknown | (goal.without & {"as is"}))
        raise RequestError(f"no rung {name!r} to leave out; there are: {', '.join(list(RUNGS)[1:])}")
    with tempfile.TemporaryDirectory(dir=Path(path).resolve().parent, prefix=".modelplan-") as folder:
        try:
            return _Climb(path, graph, goal, progress, Path(folder), seconds).run()
        finally:
            for file in Path(folder).parent.glob(f"{Path(folder).name}_*.onnx"):
                file.unlink()


@dataclass
class _Source:
    """A form of the model's file, what stripes need to know of it, and the search for its stretches."""

    proto: ModelProto
    reading: Reading
    search: OnnxSearch | None = None


class _Climb:
    def __init__(
        self, path: str, graph: Graph, goal: OnnxGoal, progress: Report, folder: Path, seconds: float | None
    ) -> None:
        self.path, self.graph, self.goal, self.progress, self.folder = path, graph, goal, progress, folder
        self.phase = "as is"
        self.settled: OnnxRung | None = None  # the best settings of those that were tried
        self.deadline = None if seconds is None else time.monotonic() + seconds
        self.proto = parsed(path)
        self.feeds = feeds_of(parsed_values(goal.values), goal.feeds)
        self.shapes: Mapping[str, Sequence[int]] = {graph.tensors[t].name: graph.tensors[t].shape for t in graph.inputs}
        self.ladder = OnnxLadder()
        self.original: Measured | None = None
        #: Bytes of sessions of the model without an arena, aligned and all, by level, threads and order.
        self.sessions: dict[tuple[object, ...], tuple[int, int]] = {}
        weights = sum(tensor.nbytes for tensor in graph.tensors if tensor.kind is Kind.CONSTANT)
        self.is_large = len(self.proto.graph.node) >= _MANY_NODES and weights < _MOST_WEIGHTS
        #: What sessions make of a large model, by level.
        self.optimized: dict[str, SessionGraph] = {}
        self.blocked: dict[str, str] = {}

    def say(self, text: str) -> None:
        """Tells how far the ladder is, and ends it where its time is over; the model as it is is always measured."""
        self.progress(f"{self.phase}: {text}")
        if self._left() <= 0 and self.ladder.rungs:
            raise KeyboardInterrupt  # ends it as a user does

    def _left(self) -> float:
        """The seconds that are left, and those of one measurement where there is no limit."""
        left = float("inf") if self.deadline is None else self.deadline - time.monotonic()
        return min(left, MOST_SECONDS)

    def _reading(self, proto: ModelProto, graph: Graph, copies: frozenset[str] = frozenset()) -> Reading:
        """What stripes need to know of a form of the file; a session keeps `copies` too."""
        return reading_of(proto, graph, None if self.kept is None else self.kept | copies, self.blocked)

    def run(self) -> OnnxLadder:
        try:
            climb_rungs(
                self._rungs(), self.ladder.rungs, self.goal, self._fits, lambda rung: rung.best.peak, self.progress
            )
        except KeyboardInterrupt:
            if not self.ladder.rungs:
                raise
            if self.settled is not None and self.settled.best.peak < self.ladder.least.best.peak:
                self.ladder.rungs.append(self.settled)
            self.ladder.ended_early = True
        usable = [rung for rung in self.ladder.rungs if self.goal.budget is not None or self._is_usable(rung)]
        self.ladder.chosen = chosen_rung(usable, self.goal, self._fits, lambda rung: rung.best.peak)
        return self.ladder

    def _is_usable(self, rung: OnnxRung) -> bool:
        """Whether a rung is the model, or a file that needs less than that at the settings that the user runs."""
        return rung.model is None or rung.usual.peak < self.ladder.rungs[0].usual.peak

    def _fits(self, rung: OnnxRung) -> bool:
        return self.goal.budget is None or rung.best.peak <= self.goal.budget

    def _rungs(self) -> Iterator[OnnxRung]:
        usual = self._measured_as_is()
        self.original = usual
        base = OnnxRung(
            name="as is", what=RUNGS["as is"], settings=self.goal.settings, usual=usual, best=usual, macs=0,
            nodes=len(self.proto.graph.node),
        )  # fmt: skip
        yield base
        best, self.phase = base, "settings"
        if "settings" not in self.goal.without:
            best = self._best_settings(base)
            if best is not base:
                yield best
            self._remark_on_levels(best)
        if {"order", "split"} <= self.goal.without:
            return
        self.phase = "order"
        self.say("reading what a session fuses")
        reading = self._of_session()
        self.ladder.macs = self._search_of(reading).macs
        self.ladder.rungs[:] = [replace(rung, macs=self.ladder.macs) for rung in self.ladder.rungs]
        best = replace(best, macs=self.ladder.macs)
        ordered = self._ordered(reading)
        if ordered is not None:
            reading, rung = ordered
            if "order" not in self.goal.without:
                yield rung
        if "split" not in self.goal.without:
            self.phase = "split"
            yield from self._split(reading, best)

    def _check(self) -> None:
        """Ends the ladder where its time is over."""
        if self._left() <= 0:
            raise KeyboardInterrupt

    def _measured_as_is(self) -> Measured:
        """What the model takes, with inputs that reach the extents that are planned.

        Raises:
            ModelError: it does not run, or no inputs are found that reach them.
        """

        def ask(aim: Aim) -> Mapping[str, Any]:
            return reach(self.path, self.shapes, aim, MeasuringLimits(self._left(), 0), given)

        given = self.feeds
        self.feeds = feeds_that_reach(self.graph, given, ask)
        try:
            return self._measure(self.path, self.goal.settings, keep=True)
        except SessionRefusedError:
            self.feeds = feeds_that_run(given, ask)
            return self._measure(self.path, self.goal.settings, keep=True)

    def _of_session(self) -> Reading:
        """What stripes need to know of the model and of what a session makes of it."""
        self.kept = self._kept_values()
        if self.goal.settings.level == "all" and self.kept is not None and not self.goal.tolerance:
            known = self.optimized.get("all")
            self.blocked = known.blocked if known else blocked_values(self.path)
        return self._reading(self.proto, self.graph)

    def _kept_values(self) -> frozenset[str] | None:
        """The values that a session keeps; None where ONNX Runtime does not write its optimized model."""
        level = self.goal.settings.level
        known = self.optimized.get("extended" if level == "all" else level)
        try:
            return known.values if known else kept_values(self.path, level)
        except ModelError as problem:
            self.ladder.remarks.append(f"what a session fuses is not known, so stripes may part it: {problem}")
            return None

    def _measure(
        self, path: str | Path, settings: SessionSettings, *, keep: bool = False, below: int | None = None
    ) -> Measured:
        """What runs take at these settings, in all draws, unless one takes as much as what it is to be `below`."""
        self.say(f"measuring {Path(path).name}: {settings.described()}")
        measured = self._measured_once(path, settings, inputs=_INPUTS if keep else 0, keep=keep)
        usual = measured.session if self.original is None else self.original.session
        ordered_anew = settings.level == "all" and (settings.arena == "off" or "Conv" in self.graph.kinds)
        if ordered_anew and not (self.is_large and path == self.path):
            for draw in range(1, _DRAWS):
                if below is not None and measured.above(usual).peak >= below:
                    break
                again = self._measured_once(path, settings, runs=2, draw=draw)
                measured = measured.at_least(again.above(measured.session))
        return measured.above(usual)

    def _measured_once(self, path: str | Path, settings: SessionSettings, **more: Any) -> Measured:
        """What one process measures; the ladder ends where its time is over meanwhile."""
        seconds = self._left() if self.original else MOST_SECONDS
        key = path, settings.level, settings.threads, settings.order
        needed = self.sessions.get(key)
        try:
            file, now = self._in_place_of(path, settings, seconds)
            measured = measure(file, self.shapes, now, feeds=self.feeds, seconds=seconds, needed=needed, **more)
        except SessionLateError:
            self._check()
            raise
        if path == self.path:
            self.sessions.setdefault(key, (measured.session, measured.loaded))
        return measured

    def _in_place_of(
        self, path: str | Path, settings: SessionSettings, seconds: float
    ) -> tuple[str | Path, SessionSettings]:
        """The file that is measured, and how: of a large model what a session makes of it at the level.

        That lies beside the model, so that its external data is found. Where ONNX Runtime does not write it, each
        session optimises the model itself.

        Raises:
            SessionLateError: it is not written in so many seconds.
        """
        level = settings.level
        if path != self.path or not self.is_large or level == "disable":
            return path, settings
        file = self.folder.parent / f"{self.folder.name}_{level}.onnx"
        if level not in self.optimized:
            self.say(f"optimising {Path(path).name} at level {level}")
            try:
                session = write_optimized(path, level, file, weights_inside=True, seconds=seconds)
            except ModelError as problem:
                # what was measured until now is not compared with the model itself
                if self.original or isinstance(problem, SessionLateError):
                    raise
                self.ladder.remarks.append(f"each session optimises the model itself: {problem}")
                self.is_large = False
                return path, settings
            if not self.optimized:
                self.ladder.remarks.append(_LARGE)
            self.optimized[level] = session
        return file, replace(settings, level="disable")

    def _best_settings(self, base: OnnxRung) -> OnnxRung:
        """The model at the settings that need the fewest bytes, of those that may be changed; the order comes last."""
        best = base
        for settings in other_settings(self.goal):
            best = self._settle(best, settings)
        if "order" in self.goal.fixed:
            return best
        return self._settle(best, replace(best.settings, order="priority"))

    def _settle(self, best: OnnxRung, settings: SessionSettings) -> OnnxRung:
        """The better of a rung of the model and the one at these settings, which counts if nothing more is tried."""
        better = self._better(self.path, best, settings)
        if better is not best:
            self.settled = replace(better, name="settings", what=RUNGS["settings"])
            return self.settled
        return best

    def _better(self, path: str | Path, rung: OnnxRung, settings: SessionSettings) -> OnnxRung:
        """The rung, at these settings where it needs less there."""
        measured = self._measure(path, settings, below=rung.best.peak)
        return replace(rung, settings=settings, best=measured) if measured.peak < rung.best.peak else rung

    def _remark_on_levels(self, best: OnnxRung) -> None:
        """Says at which level, or with how many threads, the model needs least, if that is less: neither is changed."""
        user, least = best.settings, best
        for level in (level for level in LEVELS if level != user.level):
            least = self._better(self.path, least, replace(user, level=level))
        if user.threads > 1:
            least = self._better(self.path, least, replace(least.settings, threads=1))
        if least is not best:
            words = f"--ort-level {least.settings.level} --threads {least.settings.threads}"
            self.ladder.remarks.append(
                f"with {words} the model alone needs {least.best.peak:,} bytes, at another speed and with other last"
                " places"
            )

    def _ordered(self, reading: Reading) -> tuple[Reading, OnnxRung] | None:
        """The model in the order of the least peak; none where the file's order has that peak."""
        content = Path(self.path).read_bytes()
        try:
            precedences = reordering.file_precedences(content, self.graph)
            options = pipeline.Options(runtime=ORT.name, precedences=precedences)
            limit = None if self.deadline is None else Budget(seconds=max(self._left(), 0))
            order = pipeline.plan(self.graph, options, limit).schedule.order
        except RequestError as problem:
            self.ladder.remarks.append(f"no other order is tried: {problem}")
            return None
        again = reading.in_order(order)
        before, after = (
            OnnxSearch(form, check=self._check, effort=self.goal.effort.onnx).in_file_order for form in (reading, again)
        )
        if after >= before:
            return None
        model = write_striped_onnx(self.proto, again, striped_onnx_program(again, ()))
        settings = replace(self.ladder.least.settings, order="priority")
        with self._draft(model) as path:
            usual, best = self._measure(path, self.goal.settings), self._measure(path, settings)
        return again, OnnxRung(
            name="order", what=RUNGS["order"], settings=settings, usual=usual, best=best, macs=self.ladder.macs,
            nodes=len(self.proto.graph.node), model=model,
        )  # fmt: skip

    @contextmanager
    def _draft(self, model: bytes) -> Iterator[Path]:
        """A temporary file beside the model, so that its external data is found."""
        path = self.folder.parent / f"{self.folder.name}.onnx"
        path.write_bytes(model)
        try:
            yield path
        finally:
            path.unlink()

    def _split(self, reading: Reading, best: OnnxRung) -> Iterator[OnnxRung]:
        """Rewritten files in stripes that are better than all rungs before, measured most promising first."""
        self.say("forms of the model")
        reading = self._fused() or reading
        sources = [
            _Source(self.proto, reading),
            *self._hoisted(self.proto, reading),
            *self._with_copies(reading),
            *self._with_slices(reading),
            *self._clustered(reading),
        ]
        if (yield from self._tried(sources, best)):
            self.say("searching for stripes that recompute rows")
            yield from self._tried(sources, best, keeping=False)

    def _tried(
        self, sources: Sequence[_Source], best: OnnxRung, *, keeping: bool = True
    ) -> Generator[OnnxRung, None, bool]:
        """Files that are better than all rungs before; returns whether one that keeps rows has other outputs.

        Plans with other outputs do not count against those that are measured.
        """
        equal, unequal, kept = 0, 0, False
        for plan, source in self._in_turn([(p, form) for form in sources for p in self._plans(form, keeping=keeping)]):
            if equal < self.goal.effort.onnx.measured and unequal < self.goal.effort.onnx.unequal:
                self.say(f"plan {equal + unequal + 1}: {plan.peak:,} bytes alive, in {plan.steps:,} nodes")
                rung, differs = self._best_form(source, plan, best)
                equal, unequal = equal + (not differs), unequal + differs
                kept |= differs and any(isinstance(stretch, KeptHalo) for stretch in plan.stretches)
                if rung is not None:
                    yield rung
        return kept

    def _search_of(self, reading: Reading, **asked: Any) -> OnnxSearch:
        return OnnxSearch(reading, check=self._check, effort=self.goal.effort.onnx, **asked)

    def _plans(self, source: _Source, *, keeping: bool) -> list[StripePlan]:
        """The plans for a form of the model, none where that alone takes more work than is allowed."""
        macs = max(self._search_of(source.reading).macs, 1)
        share = self.ladder.macs * (1 + self.goal.max_macs) / macs - 1
        if share < 0:
            return []
        threads = 0 if self.goal.tolerance else self.goal.settings.threads
        self.say(f"searching for stretches in {len(source.reading.graph.ops)} operators")
        source.search = OnnxSearch(
            source.reading,
            most_macs=share,
            threads=threads,
            keeping=keeping,
            check=self._check,
            effort=self.goal.effort.onnx,
        )
        return source.search.plans()

    def _fused(self) -> Reading | None:
        """The model with the convolutions that a session makes of several nodes, as it would anew for each stripe."""
        fused, level = self.proto, self.goal.settings.level
        kinds = {node.op_type for node in fused.graph.node}
        for name, wanted, levels in (
            ("basic", "Conv", LEVELS[1:]), ("extended", "QuantizeLinear", LEVELS[2:])
        ):  # fmt: skip
            if self.kept is not None and level in levels and wanted in kinds:
                path = self.folder / f"{name}.onnx"
                write_optimized(self.path, name, path)
                fused = with_fused(fused, parsed(path), self.folder) or fused
        if fused is self.proto:
            return None
        self.proto = fused
        return self._reading(fused, self._graph_of(fused))

    def _graph_of(self, proto: ModelProto) -> Graph:
        """The graph of a form of the file, its inputs bound as the model's are."""
        with self._draft(write_bound(proto, self.shapes)) as path:
            return load_model(path, values=self.goal.values)

    def _hoisted(self, proto: ModelProto, reading: Reading) -> Iterator[_Source]:
        """The model with size-reducing operators as early as possible, where that changes the order."""
        order = hoisted(reading.graph)
        if order != sorted(order) and not reading.apart:
            yield _Source(proto, reading.in_order(order))

    def _with_copies(self, reading: Reading) -> Iterator[_Source]:
        """The model with its largest skips recomputed, one more each time."""
        by_share = [
            late_skips(reading, share)[: self.goal.effort.onnx.skips] for share in self.goal.effort.onnx.kept_shares
        ]
        for skips in dict.fromkeys(tuple(some[: k + 1]) for some in by_share for k in range(len(some))):
            again = self._with_recomputed(reading, skips)
            yield next(self._hoisted(again.proto, again.reading), again)

    def _clustered(self, reading: Reading) -> Iterator[_Source]:
        """The model with maps that a global pool reads recomputed behind it, right before their readers.

        Only where such maps are a good part of what is alive at the peak.
        """
        effort, most = self.goal.effort.onnx, max(self._search_of(reading).loads, default=0)
        skips = pooled_skips(reading, effort.kept_shares[0], int(effort.pooled * most))
        if skips:
            again = self._with_recomputed(reading, skips[: effort.skips])
            order = clustered_order(again.reading)
            yield again if again.reading.apart else _Source(again.proto, again.reading.in_order(order))

    def _with_recomputed(self, reading: Reading, skips: Sequence[Skip]) -> _Source:
        """The model with some values recomputed for late readers; a session keeps copies of what it keeps."""
        proto, origin = with_copies(self.proto, reading, skips)
        copies = frozenset(name for name, first in origin.items() if first in (self.kept or ()))
        return _Source(proto, self._reading(proto, self._graph_of(proto), copies))

    def _with_slices(self, reading: Reading) -> Iterator[_Source]:
        """The model with Slices in place of its Splits, where it has any."""
        proto = with_slices(self.proto, reading)
        if proto is not None:
            again = self._reading(proto, self._graph_of(proto))
            yield _Source(proto, again)
            yield from self._hoisted(proto, again)

    def _in_turn(self, plans: Sequence[tuple[StripePlan, _Source]]) -> list[tuple[StripePlan, _Source]]:
        """The plans in the order of measuring: for a budget least work first, else lowest peak first."""
        plans = sorted(plans, key=lambda pair: (pair[0].peak, pair[0].macs))
        if self.goal.budget is None:
            return plans
        enough = [pair for pair in plans if pair[0].peak <= self.goal.budget] or plans[:1]
        return sorted(enough, key=lambda pair: pair[0].macs)

    def _best_form(self, source: _Source, plan: StripePlan, best: OnnxRung) -> tuple[OnnxRung | None, bool]:
        """A plan as a file, in the form that needs least; None where that is not better.

        Also whether there is none since the outputs of a better one differ.
        """
        search, reading = source.search, source.reading
        assert search is not None
        assert self.original is not None
        program = striped_onnx_program(reading, plan.stretches, search.threads)
        least = min(rung.best.peak for rung in self.ladder.rungs)
        forms = []
        for said, form in _FORMS.items():
            model = write_striped_onnx(source.proto, reading, program, **form)
            try:
                with self._draft(model) as path:
                    forms.append((self._measure(path, best.settings, keep=True, below=least), said, model))
            except ModelError as problem:
                self.ladder.remarks.append(f"{_plan_words(plan, search)}: {problem}")
        better = sorted((form for form in forms if form[0].peak < least), key=lambda form: form[0].peak)
        differences = [compare_outputs(self.original.outputs, measured.outputs) for measured, *_ in better]
        for (measured, said, model), difference in zip(better, differences, strict=True):
            if difference.ulps <= self.goal.tolerance:
                return self._rung(search, plan, best, measured, model, difference, said), False
        if better:
            measured, said, model = better[0]
            self.ladder.remarks.append(
                f"{_plan_words(plan, search)}{said} needs {measured.peak:,} bytes but {differences[0].described()}"
                + f"; --tolerance {ceil(differences[0].ulps)} allows it" * isfinite(differences[0].ulps)
                + f"; {self._first_difference(source, program, model)}"
            )
        return None, bool(better)

    def _first_difference(self, source: _Source, program: OnnxProgram, model: bytes) -> str:
        """Where the values of a file in stripes first differ, in words."""

        def outputs(file: bytes) -> Sequence[NDArray[Any]]:
            with self._draft(file) as path:
                return (
                    measure(
                        path, self.shapes, self.goal.settings, runs=1, inputs=1, keep=True, feeds=self.feeds
                    ).outputs[0]
                    or ()
                )

        try:
            files = source.proto, type(source.proto).FromString(model)
            return first_difference(source.reading, program, files, outputs)
        except ModelError as problem:
            return f"which node differs first is not known: {problem}"

    def _rung(
        self, search: OnnxSearch, plan: StripePlan, best: OnnxRung, measured: Measured, model: bytes,
        difference: OutputDifference, said: str
    ) -> OnnxRung:  # fmt: skip
        with self._draft(model) as path:
            usual = measured if best.settings == self.goal.settings else self._measure(path, self.goal.settings)
            timed = [
                time_in_turn([self.path, path], self.shapes, best.settings, _TIMED, self.feeds)
                for _ in range(_PROCESSES)
            ]
        seconds, spread = run_times(timed)
        return OnnxRung(
            name="split", what=RUNGS["split"] + said, settings=best.settings, usual=usual,
            best=replace(measured, outputs=()), macs=plan.macs, nodes=plan.steps, model=model,
            stretches=_described(search, plan), difference=difference, seconds=seconds, spread=spread,
        )  # fmt: skip


def other_settings(goal: OnnxGoal) -> list[SessionSettings]:
    """Session settings that may need less, those first at which stripes gain most; settings that must stay are kept."""
    user = goal.settings
    tried = [
        replace(user, arena="off", pattern=False),
        replace(user, arena="off"),
        replace(user, arena="exact", pattern=False),
        replace(user, arena="exact"),
        replace(user, pattern=False, shrink=True),
        replace(user, pattern=False),
    ]
    changed = [replace(settings, **{name: getattr(user, name) for name in goal.fixed}) for settings in tried]
    legal = [replace(settings, shrink=settings.shrink and settings.arena != "off") for settings in changed]
    return [settings for settings in dict.fromkeys(legal) if settings != user]


def run_times(timed: Sequence[Sequence[Sequence[float]]]) -> tuple[float, tuple[float, float]]:
    """The least time of the second file against the first's over all processes, and the range of that in each."""
    least = [[max(min(runs), 1e-9) for runs in both] for both in timed]
    each = [second / first for first, second in least]
    first, second = map(min, zip(*least, strict=True))
    return second / first, (min(each), max(each))


def _plan_words(plan: StripePlan, search: OnnxSearch) -> str:
    extra = 100 * (plan.macs / max(search.macs, 1) - 1)
    return f"a plan of {len(plan.stretches)} stretches in stripes with {extra:+.1f} % of work"


def _described(search: OnnxSearch, plan: StripePlan) -> tuple[str, ...]:
    graph = search.graph
    return tuple(
        f"{graph.label(part.first)} to {graph.label(part.last)} in {part.stripes} stripes of axis {part.axis}"
        for part in plan.stretches
    )

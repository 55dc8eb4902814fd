"""The rungs of the ladder: what is asked for, what a rung needs and costs, and how a program becomes a rung.

Each rung is a whole file with its arena by TFLM's own rules (runtimes/tflm). The plan of every rung is replayed byte by
byte before it counts.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import field, replace
from datetime import date
from functools import cache, cached_property, partial

from modelplan import runtimes
from modelplan.answers.file_changes import HelpedLibrary
from modelplan.model import Graph, Problem, Runtime
from modelplan.ops.run_costs import graph_macs
from modelplan.primitives.lazy_records import dataclass
from modelplan.primitives.reporting import Report, report_nothing
from modelplan.rewriting.striped_tflite import placing
from modelplan.rewriting.striped_tflite.durations import op_time, program_time
from modelplan.rewriting.striped_tflite.interface import reloaded
from modelplan.rewriting.striped_tflite.steps import TfliteProgram
from modelplan.rewriting.striped_tflite.writing import added_kinds, write_striped
from modelplan.rewriting.stripes.group_packing import GroupPacking, as_problem, pack
from modelplan.rewriting.stripes.ladder import RewriteGoal, never_interrupt
from modelplan.rewriting.stripes.stretches import (
    CarryingLoop,
    ChannelBlocks,
    HaloStripes,
    LoopedStripes,
    RecomputedHalo,
    RollingStripes,
    StripedStretch,
    UnrolledStripes,
)
from modelplan.runtimes.tflm import TFLM, planner
from modelplan.runtimes.tflm.abi import find_abis, layout
from modelplan.runtimes.tflm.arena import each_arena, largest_arena
from modelplan.runtimes.tflm.file import FileModel, read_tflite
from modelplan.runtimes.tflm.history import Need, needs_of, operator_since
from modelplan.runtimes.tflm.kernels import is_group
from modelplan.runtimes.tflm.metadata import write_made_for, write_plan
from modelplan.runtimes.tflm.refused_operators import refusal_lines, remedy_lines

#: The rungs in the order in which they are tried, with what each changes.
RUNGS = {
    "as is": "the unmodified file",
    "interface": "the program passes other types: the outer conversions are its own",
    "order": "its best order of operators",
    "views": "an offline plan (addresses in the file, which TFLM takes) in which views and joined parts share bytes",
    "overlaps": "and outputs run into operands that are still read",
    "turn": "and TRANSPOSEs that cancel each other are left out",
    "renames": "and RESHAPEs, EXPAND_DIMS and SQUEEZEs that neighbours can do without are left out",
    "fold": "and convolutions do the padding in front of them",
    "gather": "and pointwise convolutions gather a few pixels before they write them",
    "split": "and the largest maps are computed in stripes",
}
#: Packings of a program that are written, to see where TFLM puts the working buffers.
_PACKINGS = 6
#: Those whose files have no plan and no operator more than the model.
UNPLANNED = frozenset({"as is", "interface"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Goal(RewriteGoal):
    """What is asked for of a .tflite file on TFLM; `budget` is in bytes of the objective, "arena" or "head".

    `max_time` is a share of the time that an invocation is expected to take, `max_ops` and `max_flash` cap the
    operators of the file and its bytes. `tflm` is the day of the TFLM that will run the file, None for the newest.
    `interface` is the type of inputs and outputs, "int8" or "uint8", that the program converts from and to.
    """

    objective: str = "arena"
    abi: str = "32"
    kernels: str = "reference"
    max_macs: float = 0.10
    max_ops: int | None = None
    max_flash: int | None = None
    seed: int = 0
    tflm: date | None = None
    max_time: float = 0.15
    interface: str = "as-is"


@dataclass(frozen=True)
class Rung:
    """One way to run the model: the file, its arena in bytes, and what it costs.

    `macs` are multiply-accumulates in all, `time` that of an invocation as a multiple of the model's, as it is expected
    of the reference kernels (durations.py), `copied` bytes that its added operators copy in one run, `stretches` what
    is computed in stripes, `added` operators that the file needs and the model does not. `needs` says since when TFLM
    can run it, `refusals` why the target's TFLM does not, and `remedies` how to get a model that it runs. Where the
    target is one of several kernel libraries, `arenas` are those with each that runs the file, by library and ABI.
    """

    name: str
    model: bytes = field(repr=False)
    arena: int
    head: int
    tail: int
    macs: int
    ops: int
    copied: int = 0
    stretches: tuple[str, ...] = ()
    added: tuple[str, ...] = ()
    needs: tuple[Need, ...] = ()
    refusals: tuple[str, ...] = ()
    time: float = 1.0
    remedies: tuple[str, ...] = ()
    arenas: Mapping[tuple[str, str], int] = field(default_factory=dict)


@dataclass(frozen=True, eq=False)
class _KnownSteps:
    """Nanoseconds of steps of programs of a graph that were looked up before."""

    graph: Graph
    times: dict[object, float] = field(default_factory=dict)


class ModelOnTarget:
    """The model that is rewritten for a target, with what its rungs have in common: graph, goal, runtime.

    `original` is the file as it came, where its inputs and outputs had other types. `before` is the graph of the model,
    where `graph` is a rewritten one.
    """

    def __init__(
        self,
        data: bytes,
        graph: Graph,
        name: str,
        goal: Goal,
        report: Report = report_nothing,
        check: Callable[[], None] = never_interrupt,
        original: bytes | None = None,
        before: Graph | None = None,
    ) -> None:
        self.data, self.graph, self.name, self.goal = data, graph, name, goal
        self.original = data if original is None else original
        self.report, self.check = report, check
        self.macs = graph_macs(graph)
        self.before = graph if before is None else before
        self.time = sum(op_time(self.before, op) for op in range(len(self.before.ops)))
        self.bits = 8 * layout(("pointer",), find_abis(goal.abi)[0]).size
        self.runtime: Runtime = runtimes.with_kernels(TFLM, goal.kernels)
        self.overlaps = placing.no_overlaps if "overlaps" in goal.without else placing.proved_overlaps(self.runtime)
        self._known, self._known_scratch = _KnownSteps(graph), dict[object, tuple[int, ...]]()

    def rewritten(self, data: bytes) -> ModelOnTarget:
        """Another file that computes the same, which counts as this model."""
        graph = reloaded(data, self.graph)
        return ModelOnTarget(data, graph, self.name, self.goal, self.report, self.check, self.original, self.before)

    def measure(self, rung: Rung) -> int:
        """The bytes of the objective."""
        return rung.arena if self.goal.objective == "arena" else rung.head

    def rank(self, rung: Rung) -> tuple[int, int]:
        """The bytes of the objective, then those of the other one."""
        return self.measure(rung), rung.arena + rung.head

    def preference(self, rung: Rung) -> tuple[bool, int, int]:
        """The same behind whether it raises one of several libraries."""
        return (self.raised(rung) is not None, *self.rank(rung))

    def fits(self, rung: Rung) -> bool:
        """Whether a rung meets the budget and the caps, and the target's TFLM runs it."""
        return (self.goal.budget is None or self.measure(rung) <= self.goal.budget) and self.allowed(rung)

    def raised(self, rung: Rung) -> tuple[str, str] | None:
        """The library and the ABI whose arena a rung raises most above that of the unmodified file, if any."""
        more = {key: size - self.own_arenas[key] for key, size in rung.arenas.items() if key in self.own_arenas}
        worst = max(more, key=lambda key: more[key], default=None)
        return worst if worst and more[worst] > 0 else None

    def helped(self, rung: Rung) -> HelpedLibrary | None:
        """The library that a rung helps most where it raises another one, so that it is not taken for all."""
        raised = self.raised(rung)
        if raised is None:
            return None
        own = self.own_arenas
        name, abi = min(rung.arenas.keys() & own.keys(), key=lambda key: (rung.arenas[key] - own[key], key))
        before, after = own[name, abi], rung.arenas[name, abi]
        if after >= before:
            return None
        return HelpedLibrary(f"rung {rung.name}", name, before, after, raised[0], own[raised], rung.arenas[raised])

    @cached_property
    def own_arenas(self) -> Mapping[tuple[str, str], int]:
        """The arenas of the unmodified file, as `Rung.arenas`."""
        return self.rung("as is", self.original, 0, 0).arenas

    def allowed(self, rung: Rung) -> bool:
        """Whether a rung raises none of several libraries and is within the caps."""
        return self.within_caps(rung) and (rung.name == "as is" or self.raised(rung) is None)

    def within_caps(self, rung: Rung) -> bool:
        """Whether a rung meets the caps, and the target's TFLM runs it; the unmodified file meets all caps."""
        goal = self.goal
        if rung.refusals or rung.name == "as is":
            return not rung.refusals and self.original == self.data
        return (
            (goal.max_ops is None or rung.ops <= goal.max_ops)
            and (goal.max_flash is None or len(rung.model) <= goal.max_flash)
            and rung.macs - self.macs <= goal.max_macs * self.macs
            and rung.time <= 1 + goal.max_time
            and (goal.tflm is None or all(need.since is not None and need.since <= goal.tflm for need in rung.needs))
        )

    def runs(self, program: TfliteProgram) -> bool:
        """Whether the target's TFLM has every operator that a program adds."""
        if self.goal.tflm is None:
            return True
        since = [operator_since(kind) for kind in added_kinds(program, self.before)]
        return all(day is not None and day <= self.goal.tflm for day in since)

    def problem_of(self, program: TfliteProgram, overlaps: placing.KernelOverlaps) -> Problem:
        """The packing problem with the working buffers of the kernels."""
        return as_problem(placing.whole_program(program, overlaps, self.scratch_of).problem(planner.ALIGNMENT))

    def scratch_of(self, program: TfliteProgram) -> list[tuple[int, int]]:
        """(tick, bytes) of every working buffer that the kernels ask for."""
        return placing.scratch_of(program, self.runtime, self._known_scratch)

    def packed(self, program: TfliteProgram, overlaps: placing.KernelOverlaps) -> GroupPacking:
        """A program packed at length."""
        return pack(self.problem_of(program, overlaps), self.goal.effort.tflite.answer, seed=self.goal.seed)

    def packed_rung(
        self,
        name: str,
        program: TfliteProgram,
        overlaps: placing.KernelOverlaps,
        macs: int,
        stretches: Sequence[StripedStretch] = (),
        packing: GroupPacking | None = None,
    ) -> Rung:
        """A program packed, unless it is, and written.

        TFLM places working buffers by itself. Where they end above the packing, or one of several libraries needs more
        than before, other packings are tried. Of all rungs the verifier proves the one that is chosen.
        """
        effort, seed = self.goal.effort.tflite, self.goal.seed
        problem = cache(partial(self.problem_of, program, overlaps))
        packing = packing or self.packed(program, overlaps)
        rung = self._written(name, program, macs, packing)
        for other in range(1, _PACKINGS):
            if rung.head < packing.height + planner.ALIGNMENT and not self.raised(rung):
                break
            changed = pack(problem(), effort.look, seed=seed + other)
            rung = min(rung, self._written(name, program, macs, changed), key=self.preference)
        described = tuple(_described(stretch) for stretch in stretches)
        return replace(rung, stretches=described, copied=placing.copied_bytes(program), time=self.slower(program))

    def _written(self, name: str, program: TfliteProgram, macs: int, packing: GroupPacking) -> Rung:
        """A program with a packing, written."""
        model, values = write_striped(self.data, program)
        file = read_tflite(model, self.name)
        planned = {row.tensor for row in planner.requests(file, self.goal.kernels) if not row.scratch}
        place = placing.value_addresses(program, packing)
        kept = [t in planned or tensor.variable for t, tensor in enumerate(file.tensors)]
        offsets = [place.get(value, planner.ONLINE) if kept[t] else planner.ONLINE for t, value in enumerate(values)]
        model = write_made_for(write_plan(file, offsets), self.goal.kernels, str(self.goal.abi))
        return self.rung(name, model, len(program.steps), macs, added_kinds(program, self.before))

    def slower(self, program: TfliteProgram) -> float:
        """How many times longer than the model a program is expected to take."""
        return program_time(program, self._known_steps(program.graph).times) / max(self.time, 1.0)

    def _known_steps(self, graph: Graph) -> _KnownSteps:
        """What is known of steps of a graph; those of another one are told apart by nothing but the graph."""
        if self._known.graph is not graph:
            self._known = _KnownSteps(graph)
        return self._known

    def rung(self, name: str, model: bytes, ops: int, macs: int, added: Sequence[str] = ()) -> Rung:
        """A file with what it needs on the target."""
        file = read_tflite(model, self.name)
        each = each_arena(file, self.goal.abi, self.goal.kernels)
        whole = largest_arena(each)
        several = is_group(self.goal.kernels) and not whole.refusals
        arenas = {(own.kernels, own.abi): own.size() for own in each if several and not own.refusals}
        return Rung(
            name=name, model=model, arena=whole.size(), head=whole.head, tail=whole.tail, macs=macs, ops=ops,
            added=tuple(added), needs=() if name in UNPLANNED else tuple(needs_of(file, added)),
            refusals=refusal_lines(whole.refusals), remedies=remedy_lines(whole.refusals), arenas=arenas,
        )  # fmt: skip


def _described(stretch: StripedStretch) -> str:
    labels = f"ops {stretch.first} to {stretch.last}"
    if isinstance(stretch, ChannelBlocks):
        return f"{labels}: {stretch.stripes} blocks of channels"
    along = "rows" if stretch.axis == 1 else "columns"
    if isinstance(stretch, LoopedStripes):
        tiles = f", in tiles of {stretch.columns} columns" if stretch.columns else ""
        return f"{labels}: one loop over {stretch.stripes} stripes of {along}{tiles}"
    if isinstance(stretch, CarryingLoop):
        return f"{labels}: one loop over {stretch.stripes} stripes of {along}, {along} that two stripes need are kept"
    if not isinstance(stretch, UnrolledStripes):
        return labels
    keep = "recomputed" if isinstance(stretch, RecomputedHalo) else "kept"
    pace = " at the pace of the first operator" * isinstance(stretch, RollingStripes)
    if isinstance(stretch, HaloStripes) and stretch.backward:
        pace = " from the last to the first"
    padded = f"{len(stretch.pad)} padded" + " once" * (stretch.pad_early and bool(stretch.pad))
    return f"{labels}: {stretch.stripes} stripes of {along}{pace}, {along} that two stripes need are {keep}, {padded}"


def why_unplannable(file: FileModel, graph: Graph) -> str:
    """Why the file's memory cannot be planned by `fit`, empty where it can."""
    called = [op for subgraph in file.subgraphs for op in subgraph.ops if op.calls]
    if any(op.kind != "CALL_ONCE" for op in called) or len(file.subgraphs) != 1 + len(called):
        callers = (f"op {i} {op.kind}" for i, op in enumerate(file.subgraphs[0].ops) if op.calls)
        listed = ", ".join(callers) or "no operator of the main graph"
        return (
            f"it has {len(file.subgraphs)} subgraphs ({listed} runs others), and these plans are for one alone;"
            " `modelplan fit --only plan` plans such files without stripes"
        )
    if file.compressed:
        return "its weights are compressed by metadata"
    if len(file.subgraphs[0].ops) != len(graph.ops):
        return "its graph has other operators than the file"
    strange = sorted({op.kind for op in file.subgraphs[0].ops if op.kind == "ethos-u"})
    return f"it holds {', '.join(strange)}" if strange else ""

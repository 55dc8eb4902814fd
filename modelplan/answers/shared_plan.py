"""What is known of several models in one memory: the models, how their runs relate, and the plan for all of them.

A model is active from the moment at which its first input is written until its last output has been read. Two models
take turns if they are never active at the same time, but for a tensor that a pipeline hands from one to the other.
"""

from __future__ import annotations

from collections.abc import Iterator

from modelplan.answers.file_changes import HelpedLibrary
from modelplan.model import Graph, Placement, Plan, Problem, Runtime, bounds
from modelplan.primitives.lazy_records import dataclass
from modelplan.primitives.showing_answers import Shown
from modelplan.runtimes.tflm.file import FileModel
from modelplan.runtimes.tflm.other_arenas import SharedArena
from modelplan.runtimes.tflm.planner import Request


@dataclass(frozen=True, slots=True)
class Place:
    """A tensor of a model: both by number."""

    model: int
    tensor: int


@dataclass(frozen=True, slots=True)
class Pipe:
    """The output `source` of one model is the input `target` of another, in the same bytes."""

    source: Place
    target: Place


@dataclass(frozen=True, slots=True)
class Relation:
    """How the runs of models relate. `names` are what the models are called.

    `turns` are pairs (lower, higher) of models that take turns; all other pairs may be active at the same time.
    `pipes` are all pairs of output and input that share their bytes; `kept` are tensors whose bytes nothing else uses.
    `order` has every model once, those that pipelines connect side by side and each behind those that feed it; models
    of one pipeline run in this order in each round.
    """

    names: tuple[str, ...]
    turns: frozenset[tuple[int, int]] = frozenset()
    pipes: tuple[Pipe, ...] = ()
    kept: tuple[Place, ...] = ()
    order: tuple[int, ...] = ()

    def take_turns(self, a: int, b: int) -> bool:
        """Whether the models `a` and `b` are never active at the same time."""
        return a == b or (min(a, b), max(a, b)) in self.turns

    @property
    def units(self) -> tuple[tuple[int, ...], ...]:
        """The models that pipelines connect, each set in the order of running; a model without pipelines is alone."""
        home = list(range(len(self.names)))
        for pipe in self.pipes:
            a, b = home[pipe.source.model], home[pipe.target.model]
            home = [a if unit == b else unit for unit in home]
        sets: dict[int, list[int]] = {}
        for model in self.order:
            sets.setdefault(home[model], []).append(model)
        return tuple(map(tuple, sets.values()))


@dataclass(frozen=True, eq=False)
class ModelPart:
    """One of several models: what it is called, its file, and the problem of its own buffers in its own steps.

    `plan` is the plan that the problem belongs to, None for a model that TFLM runs; then `file` is the file as TFLM
    reads it and `rows` are what TFLM plans, `buffer_of` names the buffer of each row, and `carried` holds the offsets
    of a plan that the file came with, which is kept as one block. `alone` is the planned memory that the model needs by
    itself, in bytes, up to the runtime's alignment.
    """

    name: str
    path: str
    graph: Graph
    runtime: Runtime
    alias: str
    problem: Problem
    alone: int
    plan: Plan | None = None
    file: FileModel | None = None
    rows: tuple[Request, ...] = ()
    buffer_of: tuple[tuple[int, int], ...] = ()
    carried: tuple[int, ...] | None = None

    @property
    def steps(self) -> int:
        """How many steps one run takes."""
        return max(int(self.problem.end.max(initial=1)), 1)


@dataclass(frozen=True, slots=True)
class Owned:
    """Buffer `buffer` of model `model` lies `delta` bytes above the start of a joint buffer."""

    model: int
    buffer: int
    delta: int = 0


@dataclass(frozen=True, eq=False, repr=False)
class SharedPlan(Shown):
    """The plan for several models in one memory.

    `problem` holds the buffers of all models, one behind the other in the order of the relation: model `m` runs in the
    steps from `starts[m]`. `owners` says for each of its buffers which buffers of models it is; those of two models are
    one where a pipeline hands a tensor on. What every model keeps from run to run is alive all the time, and pairs of
    buffers of models that may be active at the same time are conflicts. `in_turn` is the height of the plan in which
    all models take turns, the least that a promise could reach.
    """

    parts: tuple[ModelPart, ...]
    relation: Relation
    problem: Problem
    placement: Placement
    owners: tuple[tuple[Owned, ...], ...]
    starts: tuple[int, ...]
    allocator: str
    in_turn: int
    made_by: str

    @property
    def height(self) -> int:
        """The bytes that all models need together, state that lives apart from the arena not counted."""
        return bounds.height(self.problem, self.placement)

    @property
    def memory(self) -> int:
        """The same as a memory, which ends on the alignment of the runtimes as each model's own does."""
        return self.whole(self.height)

    def whole(self, size: int) -> int:
        """The bytes of a memory for so many."""
        alignment = max(part.runtime.alignment for part in self.parts)
        return -(-size // alignment) * alignment

    @property
    def separate(self) -> int:
        """The bytes of separate memories, one for each model."""
        return sum(part.alone for part in self.parts)

    def offsets_of(self, model: int) -> tuple[int, ...]:
        """The offset of each buffer of a model, in the order of the model's own problem."""
        offsets = {
            owned.buffer: int(offset) + owned.delta
            for owners, offset in zip(self.owners, self.placement.offsets, strict=True)
            for owned in owners
            if owned.model == model
        }
        return tuple(offsets[i] for i in range(len(offsets)))

    def places_of(self, model: int) -> tuple[int, ...]:
        """The offset of everything that TFLM plans for a model, in TFLM's order."""
        part, offsets = self.parts[model], self.offsets_of(model)
        return tuple(offsets[buffer] + delta for buffer, delta in part.buffer_of)

    def owners_of(self) -> Iterator[tuple[int, Owned]]:
        """Each buffer of a model with the number of its joint buffer."""
        for number, owners in enumerate(self.owners):
            for owned in owners:
                yield number, owned


@dataclass(frozen=True, slots=True)
class LibraryArenas:
    """The arenas of one shared plan with one kernel library, as `pinned` and `written` of `TflmArenas`."""

    kernels: str
    pinned: SharedArena
    written: SharedArena | None


@dataclass(frozen=True, slots=True)
class TflmArenas:
    """Whole arenas of models that TFLM runs, in bytes.

    Where no kernel library is named, each is that of the library that needs most, and `libraries` has each library that
    runs all of the models. `separate` are the arenas of each model by itself as its file stands; `shared` is one
    MicroAllocator for all of them as their files stand, for models that take turns; `pinned` is one with every address
    from this plan, `written` one with the files of this plan, `files`. There are none where TFLM would place scratch of
    such a file over another model, or where one of several libraries would need more than before; `reason` says so.
    `helped` is the library that other files would help most, which raise another one; `abi`
    the one that was asked for.
    """

    separate: tuple[int, ...]
    shared: SharedArena
    pinned: SharedArena
    written: SharedArena | None
    reason: str = ""
    libraries: tuple[LibraryArenas, ...] = ()
    files: tuple[FileModel, ...] = ()
    helped: HelpedLibrary | None = None
    abi: str = ""

    @property
    def asked_abi(self) -> str:
        """The ABI that was asked for, which may stand for several; without one that of the plan's arena."""
        return self.abi or self.pinned.abi

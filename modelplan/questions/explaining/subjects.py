"""The model that changes are made to, and `measured`, which plans it and says what it needs."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property, partial

from modelplan.model import Graph
from modelplan.model.model_file import ModelFile, Target
from modelplan.planning import pipeline
from modelplan.planning.pipeline import Options
from modelplan.primitives.errors import ModelError, RequestError
from modelplan.primitives.lazy_records import dataclass
from modelplan.questions.alternatives import planned_by_itself, planned_requirement
from modelplan.questions.explaining.edits import Edit, compacted, edited_file, edited_graph, orphans
from modelplan.rewriting import packing
from modelplan.runtimes.tflm import planner
from modelplan.runtimes.tflm.arena import arena
from modelplan.runtimes.tflm.file import FileModel, SameFile, read_tflite
from modelplan.runtimes.tflm.refused_operators import refusal_lines

#: Ways to plan beside the alias modes: what the runtime does by itself; every buffer at a place of the plan's choice,
#: scratch too; scratch in another memory.
OWN, PINNED, APART = "own", "pinned", "scratch apart"


class RefusedChangeError(Exception):
    """A change cannot be made to this model; the message says why. Whatever makes or tries a change raises it."""


class OutOfTimeError(Exception):
    """The deadline of a search has passed."""


@dataclass(frozen=True)
class ModelSubject:
    """A model on a target, with what was changed so far.

    `model` is the .tflite file as TFLM reads it, None for other formats. `source` is the file itself while nothing in
    it has changed. `ops` are the operators of the file behind those of the graph, `gone` tensors that nothing uses any
    more. `plan` says how it is planned, `tail_apart` that what TFLM keeps lies in an arena of its own. `commands` made
    it so far, `file` is what they wrote, `todo` says what no command does. `costs` are figures of what was changed.
    `deadline` is when a search has to end, by `time.monotonic`. `most_rows` are those that a search for plain C tries
    at most, and `most_stages` what it looks at; of larger models whole maps are planned. `needs` is what it needs where
    a change that exchanges the runtime has planned that already.
    """

    graph: Graph
    model: FileModel | None
    source: ModelFile | None
    target: Target
    file: str
    ops: tuple[int, ...]
    gone: frozenset[int] = frozenset()
    plan: str = OWN
    tail_apart: bool = False
    commands: tuple[str, ...] = ()
    todo: tuple[str, ...] = ()
    costs: tuple[str, ...] = ()
    deadline: float | None = None
    most_rows: int = 1_000_000
    most_stages: int | None = None
    needs: Measure | None = None

    @property
    def whole(self) -> bool:
        """Whether the runtime's whole arena is known, not only the planned activations."""
        return self.model is not None and self.target.runtime.requires is not None

    def check_time(self) -> None:
        """Checks the deadline."""
        if self.deadline is not None and time.monotonic() > self.deadline:
            raise OutOfTimeError

    def place(self, op: int) -> int:
        """Where operator `op` of the file stands in the graph now.

        Raises:
            RefusedChangeError: another change took it away.
        """
        if op not in self.places:
            raise RefusedChangeError("another change took the operator away")
        return self.places[op]

    @cached_property
    def places(self) -> dict[int, int]:
        """Where each operator of the file stands in the graph."""
        return {op: place for place, op in enumerate(self.ops)}


@dataclass(frozen=True, slots=True)
class Measure:
    """What a changed model needs in bytes: the arena, or the planned part where not `whole`; and the planned part."""

    arena: int
    head: int
    whole: bool


def subject_of(file: ModelFile, target: Target, deadline: float | None = None) -> ModelSubject:
    """The unmodified file as a subject.

    Raises:
        ModelError: TFLM could not hold it, where TFLM is the runtime.
    """
    model = None
    if file.graph.format == "tflite":
        try:
            model = read_tflite(file.content, file.path)
        except ModelError:
            if target.runtime.requires is not None:
                raise
    ops = tuple(range(len(file.graph.ops)))
    return ModelSubject(file.graph, model, file, target, file.path, ops, deadline=deadline)


def require_editable(subject: ModelSubject) -> None:
    """Checks that the graph and the file's records list the same operators."""
    graph, model = subject.graph, subject.model
    if graph.bodies:
        raise RefusedChangeError("operators run bodies, which are not changed")
    if model is None:
        return
    if len(model.subgraphs) != 1:
        raise RefusedChangeError(f"the file has {len(model.subgraphs)} subgraphs")
    if model.compressed or model.decodes:
        raise RefusedChangeError("its weights are compressed")
    main = model.subgraphs[0]
    if (len(main.ops), len(main.tensors)) != (len(graph.ops), len(graph.tensors)):
        raise RefusedChangeError("its graph has other operators or tensors than the file")
    if any(a.shape != b.shape for a, b in zip(main.tensors, graph.tensors, strict=True)):
        raise RefusedChangeError("the file leaves extents open")


def with_edit(subject: ModelSubject, edit: Edit) -> ModelSubject:
    """The subject after an edit, whose numbers are those of its present graph."""
    require_editable(subject)
    try:
        graph = edited_graph(subject.graph, edit)
    except ValueError as problem:
        raise RefusedChangeError(str(problem)) from None
    model = subject.model and edited_file(subject.model, edit)
    ops = tuple(op for number, op in enumerate(subject.ops) if number not in edit.without)
    gone = subject.gone | orphans(subject.graph, graph)
    file = f"changed.{graph.format}"
    return replace(subject, graph=graph, model=model, source=None, ops=ops, gone=gone, file=file)


def with_order(subject: ModelSubject, order: Sequence[int]) -> ModelSubject:
    """The subject with its operators in another order."""
    model = subject.model
    if model is not None:
        main, *others = model.subgraphs
        if len(main.ops) != len(order):
            raise RefusedChangeError("subgraphs stand in place of CALL, so its operators are not in one list")
        if list(order) == sorted(order):
            return replace(subject, source=None)  # the same graph, whose plans are known
        main = replace(main, ops=tuple(main.ops[i] for i in order))
        model = replace(model, subgraphs=(main, *others))
    graph = replace(subject.graph, ops=tuple(subject.graph.ops[i] for i in order), fingerprint="")
    return replace(subject, graph=graph, model=model, source=None, ops=tuple(subject.ops[i] for i in order))


def measured(subject: ModelSubject) -> Measure:
    """What the subject needs, planned.

    Raises:
        RefusedChangeError: the runtime would not run it, or it cannot be planned so.
        BrokenPlanError: never to be seen: a plan that breaks its model.
    """
    if subject.needs is not None:
        return subject.needs
    kept = "without", subject.gone, subject.model and SameFile(subject.model)
    graph, model = subject.graph.memoised(kept, lambda: compacted(subject.graph, subject.model, subject.gone))
    try:
        if subject.whole and model is not None:
            return _arena_of(subject, graph, model)
        return _activations_of(subject, graph)
    except (ModelError, RequestError) as problem:
        raise RefusedChangeError(str(problem)) from None


def _arena_of(subject: ModelSubject, graph: Graph, model: FileModel) -> Measure:
    """TFLM's arena by its own rules, under the plan that the subject asks for."""
    runtime, head = subject.target.runtime, None
    if subject.plan == APART:
        rows = [row for row in planner.requests(model, runtime.kernels) if not row.scratch]
        head = planner.head_bytes(rows, planner.greedy_offsets(rows, planner.read_plan(model)))
    elif subject.plan != OWN:
        alias = "safe" if subject.plan == PINNED else subject.plan
        asked = "packing", alias, runtime.kernels, SameFile(model), model.plan
        question = partial(packing.question_of, model, graph, alias, runtime.kernels)
        plan = graph.memoised(asked, lambda: packing.answer(question()))
        head = plan.pinned_head if subject.plan == PINNED else None
        model = model if head is not None else replace(model, plan=plan.offsets)
    sized = arena(model, subject.target.abi, runtime.kernels, head)
    if sized.refusals:
        raise RefusedChangeError("; ".join(refusal_lines(sized.refusals)[:3]))
    return Measure(sized.front if subject.tail_apart else sized.size(), sized.head, whole=True)


def _activations_of(subject: ModelSubject, graph: Graph) -> Measure:
    """What a runtime plans for the activations, or what modelplan plans for it."""
    runtime = subject.target.runtime
    if subject.plan == OWN:
        needed = planned_by_itself(graph, runtime)
    else:
        needed = planned_requirement(pipeline.plan_on(graph, runtime, Options(alias=subject.plan)), "")
    return Measure(needed.arena, needed.head, whole=False)

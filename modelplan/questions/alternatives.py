"""What an unmodified model file needs on its runtime, its plan, and what it would need after `reorder` and `pack`.

Every figure is that of an order or a plan that was made, proved and sized as the runtime would.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from modelplan.checking.verifier import proof
from modelplan.checking.verifier.subject import offline_subject, trusting_own_kernels
from modelplan.formats.whole_files import read_model
from modelplan.model import Alternative, Graph, Kind, Part, Plan, Requirement, Runtime, bounds
from modelplan.model.model_file import ModelFile, Target, kernels_words, without_options
from modelplan.planning import pipeline
from modelplan.planning.pipeline import Options
from modelplan.primitives.errors import BrokenPlanError, ModelError, RequestError
from modelplan.primitives.lazy_records import dataclass
from modelplan.questions.c_fitting import c_requirement
from modelplan.questions.model_request import Asked, ModelRequest, on_target, planning_options, target_of
from modelplan.questions.option_files import FROM_FILE
from modelplan.questions.session_needs import load_with_types, with_fed_shapes
from modelplan.rewriting import packing, reordering
from modelplan.runtimes.c import C
from modelplan.runtimes.tflm.arena import arena
from modelplan.runtimes.tflm.declaration import requirement_of
from modelplan.runtimes.tflm.file import FileModel, read_tflite
from modelplan.runtimes.tflm.metadata import kernels_made_for, write_plan
from modelplan.runtimes.tflm.planner import ONLINE, read_plan, requests

if TYPE_CHECKING:
    from modelplan.targets.choosing import Chosen
    from modelplan.targets.device import Bank


#: What the commands of an alternative call the files that they write.
_ORDERED, _PACKED = "ordered", "packed.tflite"
_BEST = "best order"
#: The plans that are tried, by alias mode: with one subgraph, and with several, which share no bytes.
_PLANS = {"views": "plan: views share bytes", "safe": "plan: in-place outputs"}
_APART = {"none": "offline plan"}
#: Tensors that a remark names.
_NAMED = 5


@dataclass(frozen=True, slots=True)
class Rewritten:
    """A file made of another one: what changes, and the commands that write it.

    Without a file, `refusal` says why there is none; where it is empty, none that needs less can be made so. `model` is
    the file as TFLM reads it, where it is a file for TFLM.
    """

    change: str
    commands: tuple[str, ...]
    file: ModelFile | None = None
    model: FileModel | None = None
    refusal: str = ""


def load_file(
    path: str, dims: Sequence[str] = (), shapes: Sequence[str] = (), values: Sequence[str] = (), feeds: str = ""
) -> ModelFile:
    """The model file `path`, with what it leaves open as `load` takes it; extents are proposed for inputs of `feeds`.

    Raises:
        ModelError: it cannot be read; where extents stay open, it names some with which a session runs.
    """
    try:
        graph = load_with_types(path, dims, shapes, values)  # first: it says what is no model
    except ModelError as problem:
        from modelplan.formats.onnx.onnx_open import OpenModelError  # here: few files need it
        from modelplan.questions.proposing import with_proposal

        if not isinstance(problem, OpenModelError):
            raise
        raise ModelError(with_proposal(problem, path, (dims, shapes, values), feeds)) from None
    return ModelFile(path, read_model(path), graph)


def open_on_target(request: Asked) -> tuple[Asked, ModelFile, Target]:
    """The request with the ABI and the kernels of its target, the file, and the runtime and ABI that it is sized for.

    Raises:
        ModelError: the file cannot be read.
        RequestError: the request names what there is not.
    """
    request, given = with_fed_shapes(request), given_words(request)
    file = load_file(request.path, request.dims, request.shapes, request.values, request.feeds or "")
    request = on_target(request, file)
    return request, file, replace(target_of(request, file.graph), given=given)


def given_words(request: ModelRequest) -> tuple[str, ...]:
    """The options by which a request names its device, kernels and ABI."""
    device = request.target.words if request.target else ()
    abi = ("--abi", request.abi) if request.abi else ()
    return (*device, *kernels_words(request.kernels or ""), *abi)


def unmodified_requirement(file: ModelFile, target: Target) -> Requirement:
    """What the runtime needs to run the file, with the order and the plan that it carries.

    Raises:
        BrokenPlanError: the file carries a plan by which an operator would read what it should not.
    """
    runtime, requirement = target.runtime, with_proved_plan(file, target)
    if not requirement.refusals and carries_plan(file, runtime):
        _prove_carried(read_tflite(file.content, file.path), runtime)
    return requirement


def _prove_carried(model: FileModel, runtime: Runtime) -> None:
    """Checks the plan that a file carries, for the runtime's kernels."""
    try:
        proof.prove(trusting_own_kernels(offline_subject(model, runtime.kernels)))
    except BrokenPlanError as problem:
        if runtime.kernels != runtime.usual_kernels or kernels_made_for(model.data, model.name):
            raise
        hint = "the plan may hold for one kernel library alone; name it by --kernels"
        raise BrokenPlanError(f"{problem}; {hint}") from None


def with_proved_plan(file: ModelFile, target: Target) -> Requirement:
    """What the runtime needs to run a file whose plan is already proved, or that carries none."""
    runtime = target.runtime
    if runtime.name == C.name:
        return c_requirement(file, runtime.kernels)
    if runtime.requires is None or file.graph.format != runtime.default_for:
        return planned_by_itself(file.graph, runtime)
    return runtime.requires(file.content, file.path, target.abi, runtime.kernels)


def planned_by_itself(graph: Graph, runtime: Runtime) -> Requirement:
    """The bytes that the runtime allocates for the activations of a graph by its own planner."""
    basis = f"what {runtime.name} plans by itself: file order, its own sharing and allocator ({runtime.allocator})"
    needed = planned_requirement(pipeline.runtime_plan(graph, runtime), basis)
    texts = [tensor.name for tensor in graph.tensors if tensor.dtype == "string" and tensor.kind is not Kind.CONSTANT]
    if not texts:
        return needed
    more = f" and {len(texts) - _NAMED} more" if len(texts) > _NAMED else ""
    return replace(needed, remarks=(f"texts are not counted: {', '.join(texts[:_NAMED])}{more}",))


def planned_requirement(plan: Plan, basis: str) -> Requirement:
    """The bytes of the activations as a plan has them, rounded up to the runtime's alignment."""
    height = bounds.height(plan.problem, plan.placement)
    arena = -(-height // plan.runtime.alignment) * plan.runtime.alignment
    return Requirement(arena, height, (Part("activations", height), Part("rounded up", arena - height)), basis)


def carries_plan(file: ModelFile, runtime: Runtime) -> bool:
    """Whether the file carries a plan that the runtime follows."""
    if not runtime.offline_plans or file.graph.format != runtime.default_for:
        return False
    return read_plan(read_tflite(file.content, file.path)) is not None


def carried_offsets(file: ModelFile, runtime: Runtime) -> tuple[int, ...]:
    """The offsets of the plan that the file carries for the runtime, one for each tensor of the graph; else none.

    Where other subgraphs need memory too, all run on one clock, and the plan says nothing of the graph alone. A plan
    that keeps parts of tensors, as for models in stripes, is none of the graph's tensors either.
    """
    if not carries_plan(file, runtime):
        return ()
    model = read_tflite(file.content, file.path)
    if not proof.keeps_whole_tensors(offline_subject(model, runtime.kernels)):
        return ()
    rows, own = requests(model, runtime.kernels), len(model.subgraphs[0].tensors)
    alone = all(row.op[0] == 0 if row.scratch else row.tensor < own for row in rows)
    return (read_plan(model) or ())[:own] if alone else ()


def alternatives(
    file: ModelFile, target: Target, needed: Requirement | None = None, order: Sequence[int] | None = None
) -> Iterator[Alternative]:
    """The file in its best order, packed with views and with overwrites, and both together.

    `needed` is what the unmodified file needs: those that cannot need less then have no figures. `order` is the best
    order of its operators where it is known.
    """
    below = needed.arena if needed else None
    return (sized(rewritten, target) for rewritten in rewritten_files(file, target, below, order))


def sized(rewritten: Rewritten, target: Target) -> Alternative:
    """What a rewritten file needs with the kernels that it was written for."""
    if rewritten.file is None:
        return Alternative(rewritten.change, rewritten.commands, None, rewritten.refusal)
    if rewritten.model is None:
        needed = with_proved_plan(rewritten.file, target)
    else:
        needed = requirement_of(rewritten.model, target.abi, target.runtime.kernels)
    return Alternative(rewritten.change, rewritten.commands, needed, file_bytes=len(rewritten.file.content))


def rewritten_files(
    file: ModelFile, target: Target, below: int | None = None, order: Sequence[int] | None = None
) -> Iterator[Rewritten]:
    """The files that `reorder` and `pack` make of a file; they are the same for every ABI.

    Those that can be known to need `below` bytes of arena or more on the target's ABI are not made. `order` is the best
    order where it is known.
    """
    if target.runtime.sorts:
        return
    ordering = ("modelplan", "fit", "--only", "order", file.path, "-o", _ORDERED + Path(file.path).suffix)
    reorder = shlex.join((*ordering, *without_options(target.words, "--abi")))
    ordered = _in_best_order(file, target, order)
    if ordered.file is file and below is not None:
        ordered = replace(ordered, file=None)
    yield replace(ordered, commands=(reorder,))
    if not target.runtime.offline_plans or file.graph.format != target.runtime.default_for:
        return
    own = _Plannable(file, read_tflite(file.content, file.path), target, below)
    for alias, change in (_PLANS if len(own.model.subgraphs) == 1 else _APART).items():
        yield own.packed(alias, change)
    if ordered.file is not None and ordered.model is not None and ordered.file.content != file.content:
        both = _Plannable(ordered.file, ordered.model, target, below, (reorder,))
        yield both.packed("safe", f"best order, {_PLANS['safe']}")


@dataclass(frozen=True)
class _Plannable:
    """A file that plans are written into, which the commands in `before` write; see `rewritten_files` for `below`."""

    file: ModelFile
    model: FileModel
    target: Target
    below: int | None
    before: tuple[str, ...] = ()

    def packed(self, alias: str, change: str) -> Rewritten:
        """The file with a plan under an alias mode."""
        file, model, kernels = self.file, self.model, self.target.runtime.kernels
        words = ("modelplan", "fit", "--only", "plan", file.path, "-o", _PACKED, "--alias", alias, *self.target.build)
        commands = (*self.before, shlex.join(words))
        try:
            packing.check_plannable(model)
            if self.reaches(0):  # without any head the arena is too large whatever the plan
                write_plan(model, (ONLINE,) * len(model.tensors))  # refused where no plan can be written
                return Rewritten(change, commands)
            asked = packing.question_of(model, file.graph, alias, kernels)
            if self.reaches(asked.lower_bound):
                write_plan(model, (ONLINE,) * len(model.tensors))
                return Rewritten(change, commands)
            file_model = packing.with_lowest_plan(asked)
            content = write_plan(model, read_plan(file_model) or ())
        except ModelError as problem:
            return Rewritten(change, commands, refusal=str(problem))
        return Rewritten(change, commands, replace(file, content=content), file_model)

    def reaches(self, head: int) -> bool:
        """Whether an arena with this head takes `below` bytes or more, so that the file need not be written.

        Of files that carry a plan or have several subgraphs each is made: not every plan of these can be proved.
        """
        if self.below is None or len(self.model.subgraphs) > 1 or read_plan(self.model) is not None:
            return False
        return arena(self.model, self.target.abi, self.target.runtime.kernels, head).size() >= self.below


def _in_best_order(file: ModelFile, target: Target, order: Sequence[int] | None) -> Rewritten:
    """The file in the order that needs the least memory, or why it cannot be reordered."""
    try:
        if order is None:
            order = pipeline.plan(file.graph, order_options(file, target)).schedule.order
        content = reordering.reordered(file.content, file.graph, order)
    except RequestError as problem:
        return Rewritten(_BEST, (), refusal=str(problem))
    if list(order) == sorted(order):
        return Rewritten(_BEST, (), file)
    ops = tuple(file.graph.ops[index] for index in order)
    ordered_file = ModelFile(_ORDERED + Path(file.path).suffix, content, replace(file.graph, ops=ops))
    if target.runtime.requires is None or file.graph.format != target.runtime.default_for:
        return Rewritten(_BEST, (), ordered_file)
    model = read_tflite(file.content, file.path)
    main, *others = model.subgraphs
    main = replace(main, ops=tuple(main.ops[index] for index in order))
    return Rewritten(
        _BEST, (), ordered_file, replace(model, name=ordered_file.path, data=content, subgraphs=(main, *others))
    )


def order_options(file: ModelFile, target: Target) -> Options:
    """The options of the plan whose order `reorder` writes by itself."""
    precedences = reordering.file_precedences(file.content, file.graph)
    return Options(target.runtime.name, kernels=target.runtime.kernels, precedences=precedences)


def usual_options(request: ModelRequest, file: ModelFile, target: Target) -> Options:
    """The options that a request asks for; where it asks for no plan, those of the plan that the file carries.

    Raises:
        RequestError: an option that cannot be read or that the plan in the file does not allow.
    """
    if not request.asks_for_plan and carried_offsets(file, target.runtime):
        request = replace(request, allocator=FROM_FILE)
    options = planning_options(request, file.graph)
    pipeline.require_names(options, target.runtime)
    return options


def unmodified_plan(file: ModelFile, target: Target, requirement: Requirement, chosen: Chosen | None = None) -> Plan:
    """The plan by which the runtime runs the unmodified file, with what the file needs, on `chosen` where given."""
    if chosen:
        requirement = replace(requirement, basis=f"{chosen.device.name}: {requirement.basis}")
    plan = pipeline.runtime_plan(file.graph, target.runtime, carried_offsets(file, target.runtime))
    return replace(plan, requirement=requirement)


def requested_plan(file: ModelFile, options: Options, unmodified: Plan, banks: Sequence[Bank] = ()) -> Plan:
    """The plan made with `options`, with what the unmodified file needs by its plan `unmodified`."""
    plan, requirement = pipeline.plan(file.graph, options), unmodified.requirement
    if requirement is not None and requirement.macro:
        height = requirement.head
    else:
        height = bounds.height(unmodified.problem, unmodified.placement)
    return replace(plan, runtime_height=height, requirement=requirement, banks=tuple(banks))

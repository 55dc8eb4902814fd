"""Makes each of several models a part: its file read, its buffers as one problem in its own steps; or refuses it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from modelplan import runtimes
from modelplan.answers.shared_plan import ModelPart, Pipe, Relation
from modelplan.checking.verifier import proof
from modelplan.checking.verifier.subject import offline_subject
from modelplan.model import Budget, Buffer, Problem, bounds
from modelplan.model.model_file import USUAL_ABI, ModelFile
from modelplan.planning import allocators, pipeline
from modelplan.planning.pipeline import Options
from modelplan.primitives.errors import ModelError, RefusedModelError, RequestError
from modelplan.primitives.lazy_records import dataclass
from modelplan.primitives.settled_requests import SettledRequest
from modelplan.rewriting.packing import check_plannable, request_problem, shared_tensors
from modelplan.runtimes.c import C
from modelplan.runtimes.tflm import TFLM, planner
from modelplan.runtimes.tflm.arena import most_planned, refusals
from modelplan.runtimes.tflm.file import FileModel, read_tflite
from modelplan.runtimes.tflm.kernels.own_kernels import library_of, with_library
from modelplan.runtimes.tflm.metadata import kernels_made_for
from modelplan.runtimes.tflm.planner import ONLINE, Request
from modelplan.runtimes.tflm.refused_operators import refusal_lines, remedy_lines

#: The operator whose output is what it keeps from run to run.
_RING = "CIRCULAR_BUFFER"


@dataclass(frozen=True, slots=True)
class ShareRequest(SettledRequest):
    """Asks for one memory for several models.

    Models may be active at the same time unless `in_turn` or a pipeline says otherwise. Active is a model from the
    writing of its first input to the reading of its last output.

    Args:
        models: the files, by the names that the other fields use.
        in_turn: names of models of which never two are active at the same time; ("all",) stands for all.
        pipelines: `A:out=B:in`: an output of one model that is an input of another, in the same bytes; models that
            pipelines connect run one after the other.
        keep: `A:tensor`, `A:inputs` or `A:outputs`: bytes that nothing else uses, so that what is in them stays.
        runtime: as for `plan`, for all models.
        alias: which tensors of one model may share memory: "none", "views" (the usual on TFLM), "safe" and others.
        allocator: a row of the table of allocators.
        abi: TFLM's target, for scratch that depends on the size of addresses.
        kernels: the kernel library that the runtime is built with; None: that of the plans in the files, else all.
        budget: how long each search of the allocator may run.
        dims: extents that the files leave open, as for `load`.
        shapes: shapes that the files leave open, as for `load`.
        values: values of inputs, as for `load`.
    """

    models: Mapping[str, str | Path]
    in_turn: Sequence[Sequence[str]] = ()
    pipelines: Sequence[str] = ()
    keep: Sequence[str] = ()
    runtime: str | None = None
    alias: str | None = None
    allocator: str = allocators.DEFAULT
    abi: str = USUAL_ABI
    kernels: str | None = None
    budget: Budget | None = None
    dims: Sequence[str] = ()
    shapes: Sequence[str] = ()
    values: Sequence[str] = ()


def check_pipes(files: Mapping[str, ModelFile], pipes: Sequence[Pipe]) -> None:
    """Checks that what a pipeline connects has the same shape, type and quantisation."""
    names = tuple(files)
    for pipe in pipes:
        ends = [(names[place.model], place.tensor) for place in (pipe.source, pipe.target)]
        facts = [_facts(files[name], tensor) for name, tensor in ends]
        for what, a, b in zip(("shape", "type", "quantisation"), *facts, strict=True):
            if a != b:
                labels = [f"{files[n].graph.tensors[t].name!r} of {n}" for n, t in ends]
                raise RequestError(
                    f"the pipeline from {labels[0]} to {labels[1]} does not fit: {what} {_shown(a)} is not {_shown(b)}"
                )


def _facts(file: ModelFile, tensor: int) -> tuple[object, object, object]:
    """Shape, data type, and scale and zero point (None without) of a tensor."""
    graph_tensor = file.graph.tensors[tensor]
    scaled: object = None
    if file.graph.format == "tflite":
        stored = read_tflite(file.content, file.path).subgraphs[0].tensors[tensor]
        known = stored.quantization
        if known.scales:
            scaled = (known.scales, known.scale, known.zero_point)
    return graph_tensor.shape, graph_tensor.dtype, scaled


def _shown(fact: object) -> str:
    if isinstance(fact, tuple) and len(fact) == 3 and isinstance(fact[1], float):
        return f"{fact[0]} scales from {fact[1]:g}, zero point {fact[2]}"
    return "none" if fact is None else str(list(fact) if isinstance(fact, tuple) else fact)


def parts_of(files: Mapping[str, ModelFile], relation: Relation, request: ShareRequest) -> tuple[ModelPart, ...]:
    """Each model as a part of the whole.

    Models of a pipeline that has a tensor with several readers, or a tensor that is kept, share no more than views:
    an operator that writes over its input would take the tensor from the others.

    Raises:
        ModelError: TFLM would not run a model; names the operators.
        RequestError: a model carries a plan and is in a pipeline, a name that does not exist, or plain C.
    """
    if request.runtime == C.name:
        raise RequestError(
            "networks in plain C keep rows, which are no tensors to share; where they run in turn compile each with "
            "-DPREFIX_RAM=shared, an array with the largest PREFIX_RAM_BYTES of their headers"
        )
    guarded = _guarded(relation)
    piped = {place.model for pipe in relation.pipes for place in (pipe.source, pipe.target)}
    bound = piped | {place.model for place in relation.kept}
    tflm_kernels, library = _kernels_of(files, request), library_of(request.kernels or "")
    parts = []
    for number, (name, file) in enumerate(files.items()):
        runtime = runtimes.runtime(request.runtime, file.graph.format)
        own = request if library in runtime.library_names else replace(request, kernels=None)
        if runtime.offline_plans and file.graph.format == runtime.default_for:
            own = replace(request, kernels=tflm_kernels)
            parts.append(_tflm_part(name, file, own, guarded=number in guarded, bound=number in bound))
        else:
            parts.append(_planned_part(name, file, own, guarded=number in guarded))
    if library and not any(library in part.runtime.library_names for part in parts):
        raise RequestError(f"no kernels {library!r} on {', '.join(sorted({p.runtime.name for p in parts}))}")
    return tuple(parts)


def _kernels_of(files: Mapping[str, ModelFile], request: ShareRequest) -> str:
    """The kernel library of one TFLM that runs all models: the one that is named, else that of the plans, else all."""
    if library_of(request.kernels or "") in TFLM.library_names:
        return str(request.kernels)
    known = {name: kernels_made_for(f.content, name) for name, f in files.items() if f.graph.format == TFLM.default_for}
    planned = {name: kernels for name, kernels in known.items() if kernels}
    if len(set(planned.values())) > 1:
        each = ", ".join(f"{name} for {kernels}" for name, kernels in planned.items())
        raise RequestError(f"the plans in the files are for different kernels ({each}); name the library by --kernels")
    return with_library(request.kernels, next(iter(planned.values()), TFLM.usual_kernels))


def _guarded(relation: Relation) -> set[int]:
    """The models of pipelines whose tensors have several readers or are kept: nothing may overwrite those."""
    readers = Counter(pipe.source for pipe in relation.pipes)
    shared = {place.model for place, count in readers.items() if count > 1}
    shared |= {place.model for place in relation.kept}
    return {model for unit in relation.units if shared & set(unit) for model in unit}


def _planned_part(name: str, file: ModelFile, request: ShareRequest, *, guarded: bool) -> ModelPart:
    """A model planned as `plan` does it: the best order, and what its runtime lets share."""
    options = Options(request.runtime, alias=request.alias, allocator=request.allocator, kernels=request.kernels)
    mode = pipeline.alias_mode(options, runtimes.runtime(request.runtime, file.graph.format))
    if guarded and mode != "none":
        options = replace(options, alias="views")
    plan = pipeline.plan(file.graph, options)
    alignment = plan.runtime.alignment
    alone = -(-bounds.height(plan.problem, plan.placement) // alignment) * alignment
    return ModelPart(name, file.path, plan.graph, plan.runtime, plan.alias, plan.problem, alone, plan)


def _tflm_part(name: str, file: ModelFile, request: ShareRequest, *, guarded: bool, bound: bool) -> ModelPart:
    """A model as TFLM plans it, in the order of its file."""
    kernels = with_library(request.kernels, TFLM.usual_kernels)
    model = read_tflite(file.content, file.path)
    refused = refusals(model, request.abi, kernels)
    if refused:
        raise RefusedModelError(f"{file.path}: tflm would not run it", refusal_lines(refused), remedy_lines(refused))
    check_plannable(model)
    _check_state(model)
    rows, carried = most_planned(model, request.abi, kernels), planner.read_plan(model)
    runtime = runtimes.with_kernels(TFLM, kernels)
    if carried is not None:
        _check_carried(name, model, carried, kernels, bound=bound)
        return replace(_block(name, file, model, rows, carried), runtime=runtime)
    mode = request.alias or "views"
    if len(model.subgraphs) > 1:
        mode = "none"
    elif guarded and mode != "none":
        mode = "views"
    shared, overlaps = shared_tensors(file.graph, mode, kernels)
    problem = request_problem(model, rows, shared, overlaps)
    alone = planner.padded(bounds.height(problem, allocators.place(problem, request.allocator)))
    where = _buffers_of_rows(problem, rows)
    return ModelPart(name, file.path, file.graph, runtime, mode, problem, alone, None, model, rows, where)


def _check_state(model: FileModel) -> None:
    """Checks that ring buffers are variables, which TFLM keeps apart from the head that other models write over."""
    for subgraph in model.subgraphs:
        for number, op in enumerate(subgraph.ops):
            if op.kind == _RING and not all(subgraph.tensors[t].variable for t in op.writes):
                raise ModelError(f"{model.name}: op {number} {op.kind} keeps state in its output, which is no variable")


def _check_carried(name: str, model: FileModel, carried: tuple[int, ...], kernels: str, *, bound: bool) -> None:
    if bound:
        raise RequestError(
            f"{name} carries a plan, in which the tensors of a pipeline or of --keep have a place already; give the"
            " file without it"
        )
    variables = [t for t, tensor in enumerate(model.tensors) if tensor.variable]
    if any(carried[t] != ONLINE for t in variables):
        raise RequestError(f"{name} carries a plan that places a variable in the head, where no other model may write")
    proof.prove(offline_subject(model, kernels))


def _block(
    name: str, file: ModelFile, model: FileModel, rows: tuple[Request, ...], carried: tuple[int, ...]
) -> ModelPart:
    """A model that carries a plan: all that it places is one block."""
    places = planner.greedy_offsets(rows, carried)
    head = planner.head_bytes(rows, places)
    end = max((row.last for row in rows), default=-1) + 2
    problem = Problem.of([Buffer("the plan that it carries", head, 0, max(end, 1), planner.ALIGNMENT)])
    where = tuple((0, place) for place in places)
    return ModelPart(name, file.path, file.graph, TFLM, "carried", problem, head, None, model, rows, where, carried)


def _buffers_of_rows(problem: Problem, rows: Sequence[Request]) -> tuple[tuple[int, int], ...]:
    """For each row the buffer that it lies in, and how far above the buffer's start."""
    of_tensor = {m.tensor: (i, m.delta) for i, members in enumerate(problem.members) for m in members}
    scratch = iter([i for i, here in enumerate(problem.is_scratch.tolist()) if here])
    return tuple((next(scratch), 0) if row.scratch else of_tensor[row.tensor] for row in rows)

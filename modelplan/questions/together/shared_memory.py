"""Plans several models in one memory, and says what TFLM needs for them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np

from modelplan.answers.shared_plan import LibraryArenas, ModelPart, Relation, SharedPlan, TflmArenas
from modelplan.checking import referee
from modelplan.checking.verifier import proof
from modelplan.checking.verifier.subject import offline_subject, plan_subject, shim_subject
from modelplan.model import Budget, Placement, bounds
from modelplan.planning import allocators
from modelplan.primitives.errors import BrokenPlanError, RequestError
from modelplan.primitives.version import __version__
from modelplan.questions.alternatives import load_file
from modelplan.questions.together.joining import joined
from modelplan.questions.together.parts import ShareRequest, check_pipes, parts_of
from modelplan.questions.together.placing import place_all
from modelplan.questions.together.relating import all_in_turn, related
from modelplan.runtimes.tflm import planner
from modelplan.runtimes.tflm.abi import Abi
from modelplan.runtimes.tflm.arena import Interpreter, arena, builds
from modelplan.runtimes.tflm.file import FileModel, read_tflite
from modelplan.runtimes.tflm.kernels import KernelSet, is_group
from modelplan.runtimes.tflm.plan_metadata import write_made_for, write_plan
from modelplan.runtimes.tflm.planner import ONLINE, Request
from modelplan.runtimes.tflm.shared_arena import shared_arena_of


def share_memory(request: ShareRequest) -> SharedPlan:
    """One memory for several models, every model's place in it proved.

    Args:
        request: the models, how their runs relate, and how they are planned.

    Returns:
        The place of every buffer of every model, and what the models would need in memories of their own.

    Raises:
        ModelError: a file cannot be read, or TFLM would not run it.
        RequestError: a name that does not exist, a pipeline of tensors that differ, or one that forms a circle.
        BrokenPlanError: a stage went wrong; never to be seen.
    """
    bound = request.dims, request.shapes, request.values
    files = {name: load_file(str(path), *bound) for name, path in request.models.items()}
    if len(files) < 2:
        raise RequestError("one model: expected two or more")
    graphs = {name: file.graph for name, file in files.items()}
    relation = related(graphs, request.in_turn, request.pipelines, request.keep)
    check_pipes(files, relation.pipes)
    shared_plan = planned_together(parts_of(files, relation, request), relation, request.allocator, request.budget)
    for number in range(len(shared_plan.parts)):
        _prove(shared_plan, number)
    return shared_plan


def planned_together(
    parts: tuple[ModelPart, ...], relation: Relation, allocator: str = allocators.DEFAULT, budget: Budget | None = None
) -> SharedPlan:
    """The plan of models whose problems are known, seen by the referee but not proved model by model."""
    joint = joined(parts, relation)
    placement = place_all(joint, relation, allocator, budget)
    turns, least = all_in_turn(relation), bounds.height(joint.problem, placement)
    if turns != relation:
        other = joined(parts, turns)
        least = bounds.height(other.problem, place_all(other, turns, allocator, budget))
    made_by = f"modelplan {__version__}"
    return SharedPlan(
        parts, relation, joint.problem, placement, joint.owners, joint.starts, allocator, least, made_by
    )  # fmt: skip


def _prove(shared_plan: SharedPlan, number: int) -> None:
    """Proves that no operator of a model reads what another of its operators has overwritten.

    That other models keep away is the referee's part, who has seen the whole problem.
    """
    part = shared_plan.parts[number]
    if part.plan is not None:
        offsets = Placement(np.array(shared_plan.offsets_of(number), dtype=np.int64))
        proof.prove(plan_subject(replace(part.plan, placement=offsets)))
    elif part.file is not None and part.carried is None:
        proof.prove(shim_subject(part.file, shared_plan.places_of(number), part.runtime.kernels, part.rows))


def runs_on_tflm(shared_plan: SharedPlan) -> bool:
    """Whether TFLM runs all of the models."""
    return all(part.file is not None for part in shared_plan.parts)


def tflm_arenas(shared_plan: SharedPlan, abi: str = "32") -> TflmArenas:
    """The whole arenas of models that TFLM runs: apart, on one allocator as it is, and with this plan.

    Without a kernel library, each for the library that needs most, and that of each library besides.
    """
    files, kernels, head = files_of(shared_plan), _kernels(shared_plan), planner.padded(shared_plan.height)
    separate = tuple(arena(file, abi, kernels).least for file in files)
    shared, pinned = shared_arena_of(files, abi, kernels), shared_arena_of(files, abi, kernels, head)
    written, reason = None, ""
    try:
        written = written_files(shared_plan, abi)
    except RequestError as problem:
        reason = str(problem)
    of_files = shared_arena_of(written, abi, kernels) if written else None
    each = []
    for library in dict.fromkeys(library.name for _, library in builds(abi, kernels)) if is_group(kernels) else ():
        of_plan = shared_arena_of(files, abi, library, head)
        if not any(share.refusals for share in of_plan.shares):
            each.append(LibraryArenas(library, of_plan, shared_arena_of(written, abi, library) if written else None))
    return TflmArenas(separate, shared, pinned, of_files, reason, tuple(each))


def _kernels(shared_plan: SharedPlan) -> str:
    """The kernel library of the TFLM that runs all models, or the name of several."""
    return shared_plan.parts[0].runtime.kernels


def files_of(shared_plan: SharedPlan) -> tuple[FileModel, ...]:
    """The files of models that TFLM runs.

    Raises:
        RequestError: TFLM does not run all of them.
    """
    missing = [part.name for part in shared_plan.parts if part.file is None]
    if missing:
        raise RequestError(f"not planned for tflm: {', '.join(missing)}")
    return tuple(replace(part.file, name=part.name) for part in shared_plan.parts if part.file is not None)


def written_files(shared_plan: SharedPlan, abi: str = "32") -> tuple[FileModel, ...]:
    """The models with their tensors' places as offline plans, proved with the scratch that TFLM adds to them.

    Raises:
        RequestError: TFLM would place scratch where another model may have its bytes; names the scratch.
        ModelError: a file's layout does not allow the edit.
    """
    file_models = []
    for number, model in enumerate(files_of(shared_plan)):
        part, places = shared_plan.parts[number], shared_plan.places_of(number)
        plan = [ONLINE] * len(model.tensors)
        for row, place in zip(part.rows, places, strict=True):
            if not row.scratch and (part.carried is None or part.carried[row.tensor] != ONLINE):
                plan[row.tensor] = place
        content = write_made_for(write_plan(model, plan), part.runtime.kernels, abi)
        file_models.append(read_tflite(content, model.name))
        if part.carried is None:
            proof.prove(offline_subject(file_models[-1], part.runtime.kernels))
    for build in builds(abi, _kernels(shared_plan)):
        _check_scratch(shared_plan, file_models, *build)
    return tuple(file_models)


def _check_scratch(shared_plan: SharedPlan, written: Sequence[FileModel], abi: Abi, library: KernelSet) -> None:
    """Checks that TFLM, built so, places no scratch over another model."""
    offsets, sizes = shared_plan.placement.offsets.copy(), shared_plan.problem.size.copy()
    joint_of = {(owned.model, owned.buffer): joint for joint, owned in shared_plan.owners_of()}
    for number, model in enumerate(written):
        part, rows = shared_plan.parts[number], Interpreter(model, abi, library).planned
        places = planner.greedy_offsets(rows, planner.read_plan(model))
        if part.carried is not None:
            _check_block(shared_plan, number, rows, places)
            continue
        for buffer, size, place in _scratch_places(part, rows, places):
            offsets[joint_of[number, buffer]], sizes[joint_of[number, buffer]] = place, size
    try:
        referee.check(replace(shared_plan.problem, size=sizes, capacity=None), Placement(offsets))
    except BrokenPlanError as problem:
        raise RequestError(f"TFLM places scratch by itself: {problem}") from None


def _check_block(shared_plan: SharedPlan, number: int, rows: Sequence[Request], places: Sequence[int]) -> None:
    """Checks that what TFLM places for a model with a plan of its own stays in the model's block."""
    (start,), part = shared_plan.offsets_of(number), shared_plan.parts[number]
    ends = [place + row.size for row, place in zip(rows, places, strict=True)]
    if min(places, default=start) < start or max(ends, default=start) > start + part.problem.size.sum():
        raise RequestError(f"TFLM would place what the plan of {part.name} leaves to it elsewhere")


def _scratch_places(part: ModelPart, rows: Sequence[Request], places: Sequence[int]) -> Iterator[tuple[int, int, int]]:
    """(buffer of the model, bytes, offset) of each scratch buffer in the plan; 0 bytes where this TFLM asks for none.

    An operator's largest request takes the place of the largest in the plan, and so on.
    """
    asked: dict[tuple[int, int], list[tuple[int, int]]] = {}
    for row, place in zip(rows, places, strict=True):
        if row.scratch:
            asked.setdefault(row.op, []).append((row.size, place))
    for requests in asked.values():
        requests.sort()
    planned = [(row, buffer) for row, (buffer, _) in zip(part.rows, part.buffer_of, strict=True) if row.scratch]
    for row, buffer in sorted(planned, key=lambda item: -item[0].size):
        size, place = asked[row.op].pop() if asked.get(row.op) else (0, 0)
        yield buffer, size, place

"""Plans several models in one memory, and says what TFLM needs for them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from modelplan.answers.shared_plan import ModelPart, Relation, SharedPlan, TflmArenas
from modelplan.checking import referee
from modelplan.checking.verifier import proof
from modelplan.checking.verifier.subject import offline_subject, plan_subject, shim_subject
from modelplan.model import Budget, IntArray, Placement, bounds
from modelplan.planning import allocators
from modelplan.primitives.errors import BrokenPlanError, RequestError
from modelplan.primitives.version import __version__
from modelplan.questions.alternatives import load_file
from modelplan.questions.together.joining import joined
from modelplan.questions.together.parts import ShareRequest, check_pipes, parts_of
from modelplan.questions.together.placing import place_all
from modelplan.questions.together.relating import all_in_turn, related
from modelplan.runtimes.tflm import planner
from modelplan.runtimes.tflm.arena import arena
from modelplan.runtimes.tflm.file import FileModel, read_tflite
from modelplan.runtimes.tflm.plan_metadata import write_plan
from modelplan.runtimes.tflm.planner import ONLINE
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
    files = {name: load_file(str(path), request.dims, request.shapes) for name, path in request.models.items()}
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
    """The plan of models whose problems are known, seen by the referee but not proved model by model.

    Raises:
        RequestError: as `joined` and `place_all`.
    """
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
    """The whole arenas of models that TFLM runs: apart, on one allocator as it is, and with this plan."""
    files, kernels = files_of(shared_plan), shared_plan.parts[0].runtime.kernels
    separate = tuple(arena(file, abi, kernels).least for file in files)
    shared, pinned = (shared_arena_of(files, abi, kernels, head) for head in (None, planner.padded(shared_plan.height)))
    try:
        written = shared_arena_of(written_files(shared_plan), abi, kernels)
    except RequestError as problem:
        return TflmArenas(separate, shared, pinned, None, str(problem))
    return TflmArenas(separate, shared, pinned, written)


def files_of(shared_plan: SharedPlan) -> tuple[FileModel, ...]:
    """The files of models that TFLM runs.

    Raises:
        RequestError: TFLM does not run all of them.
    """
    missing = [part.name for part in shared_plan.parts if part.file is None]
    if missing:
        raise RequestError(f"not planned for tflm: {', '.join(missing)}")
    return tuple(replace(part.file, name=part.name) for part in shared_plan.parts if part.file is not None)


def written_files(shared_plan: SharedPlan) -> tuple[FileModel, ...]:
    """The models with their tensors' places as offline plans, proved with the scratch that TFLM adds to them.

    Raises:
        RequestError: TFLM would place scratch where another model may have its bytes; names the scratch.
        ModelError: a file's layout does not allow the edit.
    """
    file_models, offsets = [], shared_plan.placement.offsets.copy()
    for number, model in enumerate(files_of(shared_plan)):
        part, places = shared_plan.parts[number], shared_plan.places_of(number)
        plan = [ONLINE] * len(model.tensors)
        for row, place in zip(part.rows, places, strict=True):
            if not row.scratch and (part.carried is None or part.carried[row.tensor] != ONLINE):
                plan[row.tensor] = place
        written = read_tflite(write_plan(model, plan), model.name)
        actual = planner.greedy_offsets(part.rows, plan)
        if part.carried is not None and list(actual) != list(places):
            raise RequestError(f"TFLM would place what the plan of {part.name} leaves to it elsewhere")
        if part.carried is None:
            proof.prove(offline_subject(written, part.runtime.kernels))
            _move_scratch(shared_plan, number, actual, offsets)
        file_models.append(written)
    try:
        referee.check(replace(shared_plan.problem, capacity=None), Placement(offsets))
    except BrokenPlanError as problem:
        raise RequestError(f"TFLM places scratch by itself: {problem}") from None
    return tuple(file_models)


def _move_scratch(shared_plan: SharedPlan, number: int, actual: Sequence[int], offsets: IntArray) -> None:
    """Puts the scratch of a model where TFLM would."""
    joint_of = {(owned.model, owned.buffer): joint for joint, owned in shared_plan.owners_of()}
    part = shared_plan.parts[number]
    for row, (buffer, _), place in zip(part.rows, part.buffer_of, actual, strict=True):
        if row.scratch:
            offsets[joint_of[number, buffer]] = place

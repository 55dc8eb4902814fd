"""Plans several models in one memory, and says what TFLM needs for them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from modelplan.answers.shared_plan import LibraryArenas, SharedPlan, TflmArenas
from modelplan.checking.verifier import proof
from modelplan.checking.verifier.subject import plan_subject, shim_subject
from modelplan.model import Placement
from modelplan.planning.together.joint_placing import planned_together
from modelplan.planning.together.relating import related
from modelplan.primitives.errors import RequestError
from modelplan.questions.alternatives import load_file
from modelplan.questions.together.parts import ShareRequest, check_pipes, parts_of
from modelplan.rewriting.shared_plan_files import PlannedFiles, files_of, kernels_of, planned_files
from modelplan.runtimes.tflm import planner
from modelplan.runtimes.tflm.arena import arena, builds
from modelplan.runtimes.tflm.kernels import is_group
from modelplan.runtimes.tflm.other_arenas import shared_arena_of


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
    files, kernels, head = files_of(shared_plan), kernels_of(shared_plan), planner.padded(shared_plan.height)
    separate = tuple(arena(file, abi, kernels).least for file in files)
    shared, pinned = shared_arena_of(files, abi, kernels), shared_arena_of(files, abi, kernels, head)
    planned, reason = PlannedFiles(()), ""
    try:
        planned = planned_files(shared_plan, abi)
    except RequestError as problem:
        reason = str(problem)
    written = planned.models
    of_files = shared_arena_of(written, abi, kernels) if written else None
    each = []
    for library in dict.fromkeys(library.name for _, library in builds(abi, kernels)) if is_group(kernels) else ():
        of_plan = shared_arena_of(files, abi, library, head)
        if not any(share.refusals for share in of_plan.shares):
            each.append(LibraryArenas(library, of_plan, shared_arena_of(written, abi, library) if written else None))
    return TflmArenas(separate, shared, pinned, of_files, reason, tuple(each), written, planned.helped, abi)

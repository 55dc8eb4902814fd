"""The files of several models in one memory: the models with their tensors' places as offline plans.

A file is for the kernel libraries that the plan is for. Where these are several, the addresses are those that need the
least among those with which no library needs more than before.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from modelplan.answers.file_changes import HelpedLibrary
from modelplan.answers.shared_plan import ModelPart, SharedPlan
from modelplan.checking import referee
from modelplan.checking.verifier import proof
from modelplan.checking.verifier.subject import offline_subject
from modelplan.model import Placement
from modelplan.planning.together.joint_placing import place_all
from modelplan.planning.together.joint_problem import joined
from modelplan.planning.together.relating import all_in_turn
from modelplan.primitives.errors import BrokenPlanError, RequestError
from modelplan.primitives.lazy_records import dataclass
from modelplan.runtimes.tflm import planner
from modelplan.runtimes.tflm.abi import Abi
from modelplan.runtimes.tflm.arena import Interpreter, arena, builds
from modelplan.runtimes.tflm.file import FileModel, read_tflite
from modelplan.runtimes.tflm.kernels import KernelSet, is_group
from modelplan.runtimes.tflm.kernels.own_kernels import library_of
from modelplan.runtimes.tflm.metadata import write_made_for, write_plan
from modelplan.runtimes.tflm.other_arenas import shared_arena_of
from modelplan.runtimes.tflm.planner import ONLINE, Request


@dataclass(frozen=True, slots=True)
class PlannedFiles:
    """The models with their plans, and the library that other addresses would help most, which raise another one."""

    models: tuple[FileModel, ...]
    helped: HelpedLibrary | None = None


def planned_files(shared_plan: SharedPlan, abi: str = "32") -> PlannedFiles:
    """The models with their tensors' places as offline plans, proved with the scratch that TFLM adds to them.

    Raises:
        RequestError: TFLM would place scratch where another model may have its bytes, or one of several kernel
            libraries would need more than before; names the scratch, or the library.
        ModelError: a file's layout does not allow the edit.
    """
    if not is_group(kernels_of(shared_plan)):
        return PlannedFiles(_with_places(shared_plan, abi))
    before, kept, helped = _own_arenas(shared_plan, abi), list[tuple[int, int, int]](), list[HelpedLibrary]()
    tried: list[tuple[tuple[FileModel, ...], Mapping[str, int]]] = []
    refused = ""
    for candidate in _candidates(shared_plan, abi):
        try:
            models = _with_places(candidate, abi)
        except RequestError as problem:
            refused = refused or str(problem)
            continue
        after = {name: shared_arena_of(models, abi, name).least for name in before}
        if (row := _raised(before, after)) is None:
            kept.append((max(after.values(), default=0), sum(after.values()), len(tried)))
        else:
            helped.append(row)
        tried.append((models, after))
    if not kept:
        raise RequestError(_why_none(helped, refused))
    chosen, reached = tried[min(kept)[2]]
    more = [row for row in helped if row.after < min(row.before, reached[row.name])]
    return PlannedFiles(chosen, max(more, key=lambda row: row.before - row.after, default=None))


def _why_none(helped: Sequence[HelpedLibrary], refused: str) -> str:
    """Why no file is written for several libraries."""
    if not helped:
        return refused
    least = min(helped, key=lambda row: row.raised_after - row.raised_before)
    return (
        f"files for all kernel libraries would take {library_of(least.raised)} from {least.raised_before:,} to"
        f" {least.raised_after:,} bytes; --kernels NAME writes them for yours"
    )


def kernels_of(shared_plan: SharedPlan) -> str:
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


def _own_arenas(shared_plan: SharedPlan, abi: str) -> dict[str, int]:
    """What the models need with each library that runs all of them, as their files stand.

    That is an arena for each, or one for all where that is less, all take turns and nothing is handed on or kept.
    """
    files, relation, needs = files_of(shared_plan), shared_plan.relation, dict[str, int]()
    turns = relation == all_in_turn(relation) and not relation.pipes and not relation.kept
    for name in dict.fromkeys(library.name for _, library in builds(abi, kernels_of(shared_plan))):
        shared = shared_arena_of(files, abi, name)
        if not any(share.refusals for share in shared.shares):
            apart = sum(arena(file, abi, name).least for file in files)
            needs[name] = min(apart, shared.least) if turns else apart
    return needs


def _candidates(shared_plan: SharedPlan, abi: str) -> Iterator[SharedPlan]:
    """The plan, and the plans of the same buffers in which scratch is as large as with one of the libraries."""
    yield shared_plan
    known = {_sizes(shared_plan.parts)}
    for build in builds(abi, kernels_of(shared_plan)):
        parts = tuple(_with_scratch_of(part, *build) for part in shared_plan.parts)
        if _sizes(parts) not in known:
            known.add(_sizes(parts))
            placement = place_all(joined(parts, shared_plan.relation), shared_plan.relation, shared_plan.allocator)
            yield replace(shared_plan, placement=placement)


def _sizes(parts: Sequence[ModelPart]) -> tuple[tuple[int, ...], ...]:
    return tuple(tuple(part.problem.size.tolist()) for part in parts)


def _with_scratch_of(part: ModelPart, abi: Abi, library: KernelSet) -> ModelPart:
    """A model whose scratch is as large as with one of the libraries; a plan that it came with is a block."""
    if part.carried is not None or part.file is None:
        return part
    rows, sizes = Interpreter(part.file, abi, library).planned, part.problem.size.copy()
    for buffer, size, _ in _scratch_places(part, rows, [0] * len(rows)):
        sizes[buffer] = size
    return replace(part, problem=replace(part.problem, size=sizes))


def _raised(before: Mapping[str, int], after: Mapping[str, int]) -> HelpedLibrary | None:
    """The library that is raised most, with the one that is helped most; None where none is raised."""
    worst = max(before, key=lambda name: after[name] - before[name], default=None)
    if worst is None or after[worst] <= before[worst]:
        return None
    most = max(before, key=lambda name: before[name] - after[name])
    return HelpedLibrary("--files", most, before[most], after[most], worst, before[worst], after[worst])


def _with_places(shared_plan: SharedPlan, abi: str) -> tuple[FileModel, ...]:
    """The models with the places of one plan, proved.

    Raises:
        RequestError: TFLM would place scratch where another model may have its bytes; names the scratch.
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
    for build in builds(abi, kernels_of(shared_plan)):
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

"""Searches the offline plan for TFLM with the lowest head, counting the scratch that TFLM places itself."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import NamedTuple

import numpy as np

from modelplan.answers.file_changes import HelpedLibrary
from modelplan.checking.verifier import proof
from modelplan.checking.verifier.subject import offline_subject, online_subject
from modelplan.model import (
    BoolArray,
    Buffer,
    BufferKind,
    Graph,
    IntArray,
    Member,
    Overlap,
    Placement,
    Problem,
    bounds,
)
from modelplan.model.model_file import USUAL_ABI
from modelplan.planning import allocators, pipeline
from modelplan.planning.aliasing.overlapping import reachable_overlap
from modelplan.planning.pipeline import Options
from modelplan.primitives.errors import BrokenPlanError, ModelError, RequestError
from modelplan.primitives.lazy_records import dataclass
from modelplan.runtimes.tflm import TFLM, planner
from modelplan.runtimes.tflm.file import FileModel, read_tflite
from modelplan.runtimes.tflm.kernels import find_libraries, is_group
from modelplan.runtimes.tflm.metadata import write_made_for, write_plan
from modelplan.runtimes.tflm.planner import ALIGNMENT, ONLINE, Request

#: Groups of tensors that use the same bytes, and outputs that may overlap an operand.
SharedTensors = tuple[list[tuple[Member, ...]], tuple[Overlap, ...]]

#: How often scratch is pinned where TFLM put it and the tensors are placed again around it.
_ROUNDS = 4


class LibraryHead(NamedTuple):
    """One of several kernel libraries: what TFLM plans with it, and its head with the file as it came."""

    name: str
    rows: tuple[Request, ...]
    before: int


@dataclass(frozen=True, slots=True)
class Packing:
    """An offline plan: an offset for each tensor over all subgraphs, -1 where TFLM decides or nothing is planned.

    `own` is the predicted head without any offline plan, `before` that of the file as it came, `head` that with this
    plan. No plan with the same aliases can go below `lower_bound`. `places` are the offsets of `rows` with this plan.
    `pinned` are offsets for all rows, scratch too, for a runtime that takes every address from the plan; its head is
    `pinned_head`. `used_overlaps` are those in which an output really overlaps an operand, in one of the two.

    A plan for several libraries raises the head of none of them above `before`; heads and bound are those of the one
    that needs most. `helped` is the library that a plan would help most which raises another one's head.
    """

    offsets: tuple[int, ...]
    rows: tuple[Request, ...]
    places: tuple[int, ...]
    pinned: tuple[int, ...]
    own: int
    before: int
    head: int
    lower_bound: int
    shared: tuple[tuple[Member, ...], ...]
    used_overlaps: tuple[Overlap, ...] = ()
    helped: HelpedLibrary | None = None

    @property
    def pinned_head(self) -> int:
        """The head with every address given."""
        return planner.head_bytes(self.rows, self.pinned)


def shared_tensors(graph: Graph, alias: str, kernels: str = "reference") -> SharedTensors:
    """The groups of tensors that share memory on TFLM under alias mode `alias`, and the overlaps of outputs.

    Raises:
        RequestError: there is no such mode.
    """
    options = Options(runtime=TFLM.name, alias=alias, allocator=TFLM.allocator, kernels=kernels)
    problem, overlaps = pipeline.shared_buffers(graph, options)
    return [members for members in problem.members if len(members) > 1], overlaps


def packed(
    model: FileModel,
    graph: Graph,
    alias: str,
    allocator: str | None = None,
    kernels: str = "reference",
    abi: str = USUAL_ABI,
) -> tuple[FileModel, Packing]:
    """The file `model`, whose graph is `graph`, with the lowest plan under an alias mode, proved; and that plan.

    The file says for which kernels and ABI the plan was made. The proof is that of the file as it was written and read
    again.

    Raises:
        BrokenPlanError: the plan is wrong; names the operator that would read what it should not.
        ModelError, RequestError: see `question_of` and `answer`.
    """
    asked = question_of(model, graph, alias, kernels)
    plan = answer(asked, allocator or allocators.DEFAULT)
    return _written(asked, plan, abi), plan


def with_lowest_plan(asked: Question) -> FileModel:
    """The file that `packed` gives, without reading again what it writes: `plan` holds the plan, and it is proved."""
    plan = answer(asked)
    file_model = replace(asked.model, plan=plan.offsets)
    try:
        proof.prove(online_subject(file_model, plan.offsets, asked.kernels))
    except BrokenPlanError:
        return _written(asked, plan)  # where parts of tensors may be kept, which the bytes of the file tell
    return file_model


def _written(asked: Question, plan: Packing, abi: str = USUAL_ABI) -> FileModel:
    """The file with the plan written, read again, and proved."""
    model, kernels = asked.model, asked.kernels
    content = write_made_for(write_plan(model, plan.offsets), kernels, abi)
    file_model = read_tflite(content, model.name)
    try:
        proof.prove(offline_subject(file_model, kernels))
    except BrokenPlanError:
        if planner.read_plan(model) is None or proof.keeps_whole_tensors(offline_subject(model, kernels)):
            raise
        raise ModelError(
            f"{model.name}: its plan keeps parts of tensors, as `fit` writes it, and no other is proved"
        ) from None
    return file_model


@dataclass(frozen=True)
class Question:
    """The problem that an offline plan solves: the requests of a file; each of `groups` shares the same bytes.

    `problem` has a buffer for each group, each other tensor and each scratch request. Where `kernels` are several
    libraries, it has scratch for every one, and `libraries` are those that TFLM plans differently.
    """

    model: FileModel
    kernels: str
    rows: tuple[Request, ...]
    groups: tuple[tuple[Member, ...], ...]
    overlaps: tuple[Overlap, ...]
    problem: Problem
    libraries: tuple[LibraryHead, ...] = ()

    @cached_property
    def lower_bound(self) -> int:
        """Bytes below which no head goes under a plan with these groups and overlaps."""
        return max(map(bounds.load_bound, self.problems))

    @cached_property
    def problems(self) -> tuple[Problem, ...]:
        """The problem of each library."""
        return tuple(
            request_problem(self.model, library.rows, self.groups, self.overlaps) for library in self.libraries
        ) or (self.problem,)


def question_of(model: FileModel, graph: Graph, alias: str, kernels: str = "reference") -> Question:
    """The question that an alias mode poses. Models with several subgraphs are planned without shared bytes.

    Raises:
        ModelError: the model's weights are compressed (TFLM unpacks them into memory no plan can name), or it
            holds an Ethos-U command stream, whose addresses are fixed.
        RequestError: there is no such mode.
    """
    check_plannable(model)
    sharing: SharedTensors = shared_tensors(graph, alias, kernels) if len(model.subgraphs) == 1 else ([], ())
    rows, groups = planner.requests(model, kernels), tuple(sharing[0])
    problem = request_problem(model, rows, groups, sharing[1])
    libraries = tuple(_library_heads(model, kernels)) if is_group(kernels) else ()
    return Question(model, kernels, rows, groups, sharing[1], problem, libraries)


def _library_heads(model: FileModel, kernels: str) -> Iterator[LibraryHead]:
    """The libraries that `kernels` stands for, without those with which TFLM plans what it plans with another."""
    known: set[tuple[Request, ...]] = set()
    for library in find_libraries(kernels):
        rows = planner.requests(model, library.name)
        if rows not in known:
            known.add(rows)
            yield LibraryHead(library.name, rows, planner.predicted_head(model, library.name))


def answer(asked: Question, allocator: str = allocators.DEFAULT) -> Packing:
    """The offline plan with the lowest predicted head among all that were tried; never above TFLM's own.

    Of several libraries it raises the head of none above that of the file as it came.

    Raises:
        RequestError: unknown allocator, or one that cannot honour alignment.
    """
    rows, problem, count = asked.rows, asked.problem, len(asked.model.tensors)
    together = allocators.place(problem, allocator)
    candidates = list(dict.fromkeys(_candidates(rows, problem, together, count, allocator)))
    if asked.libraries:
        candidates += _plans_of_libraries(asked, allocator)
    offsets, head, helped = _chosen(asked, candidates)
    places = tuple(planner.greedy_offsets(rows, offsets))
    pinned = min(
        _request_offsets(rows, problem, together), places, key=lambda addresses: planner.head_bytes(rows, addresses)
    )
    each = [library.rows for library in asked.libraries] or [rows]
    before = [library.before for library in asked.libraries] or [planner.predicted_head(asked.model, asked.kernels)]
    return Packing(
        offsets,
        rows,
        places,
        pinned,
        max(_head(own, None) for own in each),
        max(before),
        head,
        asked.lower_bound,
        tuple(_shared_groups(asked.groups, offsets)),
        _used(asked.overlaps, rows, (places, pinned)),
        helped,
    )


def _plans_of_libraries(asked: Question, allocator: str) -> Iterator[tuple[int, ...]]:
    """The plan that is lowest for each of several libraries, and the one that the file came with."""
    count = len(asked.model.tensors)
    for problem in asked.problems:
        yield _tensor_offsets(problem, allocators.place(problem, allocator), count)
    if (carried := planner.read_plan(asked.model)) is not None:
        yield carried


def _chosen(
    asked: Question, candidates: Sequence[tuple[int, ...]]
) -> tuple[tuple[int, ...], int, HelpedLibrary | None]:
    """The plan with the lowest head, that head, and the library that a plan which raises another one would help.

    Of several libraries the highest head counts, then the sum of all. The first of equal ones is preferred.
    """
    if not asked.libraries:
        heads = [_head(asked.rows, offsets) for offsets in candidates]
        best = heads.index(min(heads))
        return candidates[best], heads[best], None
    kept: list[tuple[int, int, int]] = []
    helped: list[HelpedLibrary] = []
    for number, offsets in enumerate(candidates):
        heads = [_head(library.rows, offsets) for library in asked.libraries]
        if all(head <= library.before for head, library in zip(heads, asked.libraries, strict=True)):
            kept.append((max(heads), sum(heads), number))
        else:
            helped.append(_helped(asked.libraries, heads))
    highest, _, number = min(kept)
    reached = [_head(library.rows, candidates[number]) for library in asked.libraries]
    of_name = {library.name: head for library, head in zip(asked.libraries, reached, strict=True)}
    more = [row for row in helped if row.after < min(row.before, of_name[row.name])]
    return candidates[number], highest, max(more, key=lambda row: row.before - row.after, default=None)


def _helped(libraries: Sequence[LibraryHead], heads: Sequence[int]) -> HelpedLibrary:
    """The library whose head a plan lowers most, and the one whose head it raises most."""
    most = max(range(len(heads)), key=lambda i: libraries[i].before - heads[i])
    worst = max(range(len(heads)), key=lambda i: heads[i] - libraries[i].before)
    helped, raised = libraries[most], libraries[worst]
    return HelpedLibrary("a plan", helped.name, helped.before, heads[most], raised.name, raised.before, heads[worst])


def _used(overlaps: Sequence[Overlap], rows: Sequence[Request], plans: Iterable[Sequence[int]]) -> tuple[Overlap, ...]:
    """The overlaps whose output shares bytes with the operand in one of the plans."""
    tensors = [(number, row) for number, row in enumerate(rows) if not row.scratch]
    spans = [{row.tensor: (places[n], places[n] + row.size) for n, row in tensors} for places in plans]
    return tuple(overlap for overlap in overlaps if any(_shares_bytes(at, overlap) for at in spans))


def _shares_bytes(at: Mapping[int, tuple[int, int]], overlap: Overlap) -> bool:
    (a, b), (c, d) = at.get(overlap.tensor, (0, 0)), at.get(overlap.over, (0, 0))
    return max(a, c) < min(b, d)


def _head(rows: Sequence[Request], offsets: Sequence[int] | None) -> int:
    return planner.head_bytes(rows, planner.greedy_offsets(rows, offsets))


def check_plannable(model: FileModel) -> None:
    """Checks that a plan can name all memory of a model."""
    if model.compressed:
        raise ModelError(f"{model.name}: holds compressed tensors, which offline plans do not cover")
    for subgraph in model.subgraphs:
        for number, op in enumerate(subgraph.ops):
            if op.kind == "ethos-u":
                raise ModelError(
                    f"{model.name}: op {number} ethos-u is a command stream with fixed addresses;"
                    " only the compiler that made it can plan its memory"
                )


def _shared_groups(groups: Iterable[tuple[Member, ...]], offsets: Sequence[int]) -> Iterator[tuple[Member, ...]]:
    """The groups whose tensors really share bytes in the chosen plan."""
    for group in groups:
        starts = {offsets[m.tensor] - m.delta for m in group}
        if len(starts) == 1 and starts != {ONLINE}:
            yield group


def request_problem(
    model: FileModel, rows: Sequence[Request], groups: Sequence[Sequence[Member]] = (), overlaps: Iterable[Overlap] = ()
) -> Problem:
    """What TFLM plans for `model` as one problem: a buffer for each group, each other tensor, and each scratch request.

    The buffers stand in the order of the rows. Of `overlaps` those count whose two buffers are alive together at their
    operator only.
    """
    return _overlapping(_problem(model, rows, groups), overlaps)


def _problem(model: FileModel, rows: Sequence[Request], groups: Sequence[Sequence[Member]]) -> Problem:
    """One buffer for each group, each tensor outside of groups, and each scratch request, in that order of rows."""
    of_tensor = {row.tensor: row for row in rows if not row.scratch}
    grouped: dict[int, Sequence[Member]] = {}
    for group in groups:
        if all(m.tensor in of_tensor and m.delta % ALIGNMENT == 0 for m in group):
            grouped |= {m.tensor: group for m in group}
    buffers, done = [], set()
    for row in rows:
        if row.scratch:
            buffers.append(_buffer(f"scratch of op {row.op[1]}", (), [row], BufferKind.SCRATCH))
        elif row.tensor not in done:
            members = tuple(grouped.get(row.tensor, (Member(row.tensor),)))
            done |= {m.tensor for m in members}
            name = model.tensors[row.tensor].name
            buffers.append(_buffer(name, members, [of_tensor[m.tensor] for m in members]))
    return Problem.of(buffers)


def _overlapping(problem: Problem, overlaps: Iterable[Overlap]) -> Problem:
    """The problem with the overlaps whose two buffers are alive together at their operator only."""
    buffer_of = {m.tensor: (i, m.delta) for i, members in enumerate(problem.members) for m in members}
    table = []
    for overlap in overlaps:
        if overlap.tensor not in buffer_of or overlap.over not in buffer_of:
            continue
        (below, low), (above, high) = buffer_of[overlap.tensor], buffer_of[overlap.over]
        alone = int(min(problem.end[below], problem.end[above])) - int(max(problem.start[below], problem.start[above]))
        shared = reachable_overlap(problem, below, above, int(problem.size[below]) - max(0, overlap.lead + low - high))
        if below != above and alone == 1 and shared > 0:
            table.append((below, above, shared))
    return replace(problem, overlaps=np.array(table, dtype=np.int64).reshape(-1, 3))


def _buffer(
    name: str, members: tuple[Member, ...], rows: Sequence[Request], kind: BufferKind = BufferKind.TENSOR
) -> Buffer:
    """Scopes are inclusive and start at -1 for what nothing touches; steps are half-open and start at 0."""
    deltas = [m.delta for m in members] or [0]
    size = max(delta + row.size for delta, row in zip(deltas, rows, strict=True))
    start, end = min(row.first for row in rows) + 1, max(row.last for row in rows) + 2
    return Buffer(name, size, start, end, ALIGNMENT, members=members, kind=kind)


def _candidates(
    rows: Sequence[Request], problem: Problem, together: Placement, count: int, allocator: str
) -> Iterator[tuple[int, ...]]:
    """The plans to compare, the preferred of equal ones first; the last is TFLM's own."""
    is_scratch = problem.is_scratch
    yield _tensor_offsets(problem, together, count)
    if is_scratch.any():
        bottom = planner.greedy_offsets([row for row in rows if row.scratch])
        yield from _around_scratch(problem, is_scratch, np.array(bottom, dtype=np.int64), count, allocator)
        offsets = _tensor_offsets(problem, together, count)
        for _ in range(_ROUNDS):
            where = planner.greedy_offsets(rows, offsets)
            pins = np.array([at for at, row in zip(where, rows, strict=True) if row.scratch], dtype=np.int64)
            plans = list(_around_scratch(problem, is_scratch, pins, count, allocator))
            if not plans or plans[0] == offsets:
                break
            offsets = plans[0]
            yield offsets
    yield (ONLINE,) * count


def _around_scratch(
    problem: Problem, where: BoolArray, pins: IntArray, count: int, allocator: str
) -> Iterator[tuple[int, ...]]:
    """The plan around scratch at `pins`; none when the allocator takes no pins."""
    pin = np.full(len(problem), -1, dtype=np.int64)
    pin[where] = pins
    try:
        placement = allocators.place(replace(problem, pin=pin), allocator)
    except RequestError:
        return
    yield _tensor_offsets(problem, placement, count)


def _request_offsets(rows: Sequence[Request], problem: Problem, placement: Placement) -> tuple[int, ...]:
    """The offset of each request, scratch too, from the offsets of the buffers."""
    of_tensor = _tensor_offsets(problem, placement, max((row.tensor for row in rows), default=-1) + 1)
    scratch = iter(placement.offsets[problem.is_scratch].tolist())
    return tuple(next(scratch) if row.scratch else of_tensor[row.tensor] for row in rows)


def _tensor_offsets(problem: Problem, placement: Placement, count: int) -> tuple[int, ...]:
    """The offset of each tensor from the offsets of the buffers."""
    offsets = [ONLINE] * count
    for members, start in zip(problem.members, placement.offsets.tolist(), strict=False):
        for member in members:
            offsets[member.tensor] = start + member.delta
    return tuple(offsets)

"""Joins the problems of several models into one: who is alive when, what is one buffer, what must stay apart.

step   0 ........ 40 | 40 ........ 90 | 90 ... 110       Models lie one behind the other, as their relation orders
       model A       | model B        | model C          them. The tensor that A hands to B lives from its making
          ######################                         in A to its last reader in B; what C keeps from run to
       ###################################### (state)    run lives all the time. Models that may be active at the
                                                         same time have conflicts: each buffer with each.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import accumulate, combinations, product

import numpy as np

from modelplan.answers.shared_plan import ModelPart, Owned, Place, Relation
from modelplan.model import Buffer, BufferKind, Kind, Problem
from modelplan.primitives.errors import RequestError
from modelplan.primitives.lazy_records import dataclass

#: Most pairs of buffers that are kept apart; more than that is a table of gigabytes.
_MOST_CONFLICTS = 20_000_000


@dataclass(frozen=True, eq=False)
class Joined:
    """One problem for all models, the buffers of models in each of its buffers, and the first step of each model.

    `models` says for each buffer which models may be active while it is alive; `always` are those alive all the time.
    """

    problem: Problem
    owners: tuple[tuple[Owned, ...], ...]
    starts: tuple[int, ...]
    models: tuple[frozenset[int], ...]
    always: tuple[bool, ...]


def joined(parts: Sequence[ModelPart], relation: Relation, capacity: int | None = None) -> Joined:
    """The problem of all models.

    Raises:
        RequestError: a pipeline or a kept tensor that has no buffer, or distances that no alignment allows.
    """
    starts, end = _starts(parts, relation)
    owners = tuple(_owners(parts, relation))
    kept = {(place.model, _member(parts, place)[0]) for place in relation.kept}
    always = tuple(
        any(_is_state(parts, owned) or (owned.model, owned.buffer) in kept for owned in group) for group in owners
    )
    buffers = [_joint(parts, starts, group) for group in owners]
    models = tuple(_active(parts, relation, starts, buffer) for buffer in buffers)
    buffers = [replace(b, start=0, end=end) if ever else b for b, ever in zip(buffers, always, strict=True)]
    problem = Problem.of(buffers, capacity)
    problem = replace(
        problem, overlaps=_overlaps(parts, owners, problem), conflicts=_conflicts(relation, models, always)
    )
    return Joined(problem, owners, starts, models, always)


def _starts(parts: Sequence[ModelPart], relation: Relation) -> tuple[tuple[int, ...], int]:
    """The first step of each model, and the end of the last one."""
    ends = list(accumulate((parts[m].steps for m in relation.order), initial=0))
    first = dict(zip(relation.order, ends, strict=False))
    return tuple(first[m] for m in range(len(parts))), ends[-1]


def _member(parts: Sequence[ModelPart], place: Place) -> tuple[int, int]:
    """The buffer that holds a tensor, and how far above its start."""
    part = parts[place.model]
    for number, members in enumerate(part.problem.members):
        for member in members:
            if member.tensor == place.tensor:
                return number, member.delta
    name = part.graph.tensors[place.tensor].name
    raise RequestError(f"{name!r} of {part.name} has no bytes in the arena: it cannot be handed on or kept")


def _owners(parts: Sequence[ModelPart], relation: Relation) -> Iterator[tuple[Owned, ...]]:
    """The buffers of all models, those that a pipeline makes one in one group, in the order of the models."""
    group_of = {(m, b): [Owned(m, b)] for m, part in enumerate(parts) for b in range(len(part.problem))}
    for pipe in relation.pipes:
        (a, up), (b, down) = _member(parts, pipe.source), _member(parts, pipe.target)
        first, second = group_of[pipe.source.model, a], group_of[pipe.target.model, b]
        here = next(owned.delta for owned in first if (owned.model, owned.buffer) == (pipe.source.model, a)) + up
        there = next(owned.delta for owned in second if (owned.model, owned.buffer) == (pipe.target.model, b)) + down
        if first is second:
            if here != there:
                part = parts[pipe.target.model]
                name = part.graph.tensors[pipe.target.tensor].name
                raise RequestError(f"{name!r} of {part.name} cannot be in two places at once")
            continue
        moved = [*first, *(replace(owned, delta=owned.delta + here - there) for owned in second)]
        least = min(owned.delta for owned in moved)
        union = [replace(owned, delta=owned.delta - least) for owned in moved]
        for owned in union:
            group_of[owned.model, owned.buffer] = union
    seen: set[int] = set()
    for group in group_of.values():
        if id(group) not in seen:
            seen.add(id(group))
            yield tuple(group)


def _is_state(parts: Sequence[ModelPart], owned: Owned) -> bool:
    part = parts[owned.model]
    members = part.problem.members[owned.buffer] if part.problem.members else ()
    return any(part.graph.tensors[m.tensor].kind is Kind.STATE for m in members)


def _joint(parts: Sequence[ModelPart], starts: Sequence[int], group: Sequence[Owned]) -> Buffer:
    """The buffer of a group: its largest size over the union of its lifetimes."""
    owned_buffers = [(owned, parts[owned.model].problem[owned.buffer]) for owned in group]
    alignment = max(buffer.alignment for _, buffer in owned_buffers)
    for owned, buffer in owned_buffers:
        if owned.delta % buffer.alignment:
            raise RequestError(
                f"{buffer.name!r} of {parts[owned.model].name} would lie {owned.delta} bytes behind what it is"
                f" one with, expected a multiple of {buffer.alignment}"
            )
    kinds = {buffer.kind for _, buffer in owned_buffers}
    return Buffer(
        " = ".join(f"{parts[owned.model].name}: {buffer.name}" for owned, buffer in owned_buffers),
        max(owned.delta + buffer.size for owned, buffer in owned_buffers),
        min(starts[owned.model] + buffer.start for owned, buffer in owned_buffers),
        max(starts[owned.model] + buffer.end for owned, buffer in owned_buffers),
        alignment,
        kind=kinds.pop() if len(kinds) == 1 else BufferKind.TENSOR,
    )


def _active(parts: Sequence[ModelPart], relation: Relation, starts: Sequence[int], buffer: Buffer) -> frozenset[int]:
    """The models that run during the buffer's lifetime."""
    spans = ((m, starts[m], starts[m] + parts[m].steps) for m in relation.order)
    return frozenset(m for m, start, end in spans if buffer.start < end and start < buffer.end)


def _conflicts(
    relation: Relation, models: Sequence[frozenset[int]], always: Sequence[bool]
) -> np.ndarray[tuple[int, int], np.dtype[np.int64]]:
    """Pairs of buffers of models that may be active at the same time."""
    sets: dict[frozenset[int], list[int]] = {}
    for number, (active, ever) in enumerate(zip(models, always, strict=True)):
        if not ever:
            sets.setdefault(active, []).append(number)
    apart = [
        (sets[a], sets[b])
        for a, b in combinations(sets, 2)
        if any(not relation.take_turns(x, y) for x, y in product(a, b))
    ]
    count = sum(len(a) * len(b) for a, b in apart)
    if count > _MOST_CONFLICTS:
        raise RequestError(f"{count} pairs of buffers of models that may be active at the same time, expected at most"
                           f" {_MOST_CONFLICTS}: say which models take turns")  # fmt: skip
    pairs = [np.stack(np.meshgrid(a, b), axis=-1).reshape(-1, 2) for a, b in apart]
    return np.concatenate([np.zeros((0, 2), dtype=np.int64), *pairs]).astype(np.int64)


def _overlaps(
    parts: Sequence[ModelPart], owners: Sequence[Sequence[Owned]], problem: Problem
) -> np.ndarray[tuple[int, int], np.dtype[np.int64]]:
    """The overlaps of each model whose two buffers are still alive together at one step only."""
    home: Mapping[tuple[int, int], tuple[int, int]] = {
        (owned.model, owned.buffer): (number, owned.delta) for number, group in enumerate(owners) for owned in group
    }
    rows = []
    for m, part in enumerate(parts):
        for below, above, shared in part.problem.overlaps.tolist():
            (a, low), (b, high) = home[m, below], home[m, above]
            size = int(part.problem.size[below])
            common = min(problem.end[a], problem.end[b]) - max(problem.start[a], problem.start[b])
            # What the joint buffer reserves above the lower one's end must stay clear, and so must what lies below the
            # upper one's start.
            if common == 1 and low + size == int(problem.size[a]) and high == 0:
                rows.append((a, b, shared))
    return np.array(rows, dtype=np.int64).reshape(-1, 3)

"""Reproduces TFLM's memory planning: the same requests in the same order, the same offsets, the same head.

Source: tflite-micro, micro_allocation_info.cc (lifetimes), micro_allocator.cc (what is planned),
memory_planner/greedy_memory_planner.cc (where it goes); see also its docs/memory_management.md.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from modelplan import _core
from modelplan.errors import ModelError
from modelplan.loaders.tflite_tables import get_metadata, metadata_entries, metadata_payload
from modelplan.runtimes.tflm.file import FileModel, SameFile
from modelplan.runtimes.tflm.scratch import scratch_requests

#: MicroArenaBufferAlignment().
ALIGNMENT = 16
#: The metadata entry that holds the offline plan, and the offset in it that leaves a tensor to TFLM.
METADATA = "OfflineMemoryAllocation"
ONLINE = -1


@dataclass(frozen=True, slots=True)
class Request:
    """One buffer that TFLM plans: padded bytes, alive in the scopes `first` to `last`, both included.

    `tensor` counts over all subgraphs; for scratch it is -1 and `op` is (subgraph, operator). A tensor that
    nothing touches has both scopes at -1, as in TFLM.
    """

    size: int
    first: int
    last: int
    tensor: int = -1
    op: tuple[int, int] = (-1, -1)

    @property
    def scratch(self) -> bool:
        """Whether a kernel asked for it, so that the offline plan cannot name it."""
        return self.tensor < 0


def requests(model: FileModel, kernels: str = "reference", pointer: int = 8) -> tuple[Request, ...]:
    """What TFLM adds to its planner, in its order: all tensors that need memory, then scratch.

    Raises:
        ModelError: an operator calls a subgraph that does not exist, or recursively.
    """
    return requests_with(model, scratch_requests(model, kernels, pointer))


def requests_with(
    model: FileModel, scratch: Iterable[tuple[int, int, int]], sizes: Mapping[int, int] | None = None
) -> tuple[Request, ...]:
    """The rows of `requests` with `scratch` as (subgraph, operator, bytes).

    `sizes` holds the bytes of tensors to which kernels give another shape than the file.

    Raises:
        ModelError: an operator calls a subgraph that does not exist, or recursively.
    """
    plan = read_plan(model) if any(tensor.variable for tensor in model.tensors) else None
    return _rows(SameFile(model), tuple(scratch), tuple((sizes or {}).items()), plan)


#: How many models' rows and lifetimes are remembered: a command asks several questions about one.
_REMEMBERED = 4


@lru_cache(maxsize=_REMEMBERED)
def _rows(
    file: SameFile,
    scratch: tuple[tuple[int, int, int], ...],
    sizes: tuple[tuple[int, int], ...],
    plan: tuple[int, ...] | None,
) -> tuple[Request, ...]:
    """The rows of `requests_with`; `plan` is the one that the file carries, where variables ask for it."""
    model, clock, changed = file.model, _clock_of(file), dict(sizes)
    rows = []
    for number, tensor in enumerate(model.tensors):
        nbytes = changed.get(number, tensor.nbytes)
        kept = tensor.variable and (plan is None or plan[number] == ONLINE)  # behind the planned memory
        if not tensor.constant and not kept and nbytes and number not in model.handles:
            rows.append(Request(padded(nbytes), *clock.lives[number], tensor=number))
    for subgraph, op, size in scratch:
        first, last = clock.spans.get((subgraph, op), (-1, -1))
        rows.append(Request(padded(size), first, last, op=(subgraph, op)))
    return tuple(rows)


#: Most subgraphs that call one another in a chain.
_DEEPEST = 32
#: TFLM counts scopes in an int.
_MOST_SCOPES = 2**31 - 1


class Clock:
    """TFLM's scope counter, one higher at every operator and every subgraph called; lifetimes are in its scopes.

    A subgraph that is called several times takes the same number of scopes each time; its tensors live from the first
    run to the last, so each subgraph is walked once.
    """

    def __init__(self, model: FileModel) -> None:
        self.model = model
        self.walks: dict[int, _Walk] = {}
        self.lives = [(-1, -1)] * len(model.tensors)
        self.spans: dict[tuple[int, int], tuple[int, int]] = {}
        self._length(0, ())
        starts = {0: (0, 0)}
        for index in reversed(self.walks):  # callers before what they call
            first, last = starts[index]
            self._mark(index, first, last)
            for called, at in self.walks[index].calls:
                earliest, latest = starts.get(called, (first + at, last + at))
                starts[called] = (min(earliest, first + at), max(latest, last + at))

    def _length(self, index: int, callers: tuple[int, ...]) -> int:
        """The scopes that one run of subgraph `index` takes."""
        if not 0 <= index < len(self.model.subgraphs) or index in callers or len(callers) >= _DEEPEST:
            raise ModelError(
                f"{self.model.name}: subgraph {index} is called, but is missing, calls itself or lies more than"
                f" {_DEEPEST} deep"
            )
        if index in self.walks:
            return self.walks[index].scope
        walk = _Walk()
        subgraph = self.model.subgraphs[index]
        walk.create(subgraph.inputs)
        walk.use(subgraph.inputs)
        for op in subgraph.ops:
            walk.scope += 1
            walk.create(op.outputs)
            entered = walk.scope
            for called in op.calls:
                walk.scope += 1
                walk.calls.append((called, walk.scope))
                walk.scope += self._length(called, (*callers, index))
            walk.use(op.inputs)
            walk.use(op.outputs)
            walk.spans.append((entered, walk.scope))
        walk.create(subgraph.outputs)
        walk.use(subgraph.outputs)
        if walk.scope > _MOST_SCOPES:
            raise ModelError(f"{self.model.name}: TFLM would count more than {_MOST_SCOPES} operators and calls")
        self.walks[index] = walk
        return walk.scope

    def _mark(self, index: int, first: int, last: int) -> None:
        """Sets the lifetimes of a subgraph whose first run begins in scope `first` and whose last in `last`."""
        walk, base = self.walks[index], self.model.firsts[index]
        for t, used in walk.used.items():
            self.lives[base + t] = (first + walk.created[t] if t in walk.created else -1, last + used)
        for number, (entered, left) in enumerate(walk.spans):
            self.spans[index, number] = (first + entered, last + left)


def clock_of(model: FileModel) -> Clock:
    """TFLM's scopes for a model; those of the models that were asked for last are remembered.

    Raises:
        ModelError: an operator calls a subgraph that does not exist, or recursively.
    """
    return _clock_of(SameFile(model))


@lru_cache(maxsize=_REMEMBERED)
def _clock_of(file: SameFile) -> Clock:
    return Clock(file.model)


class _Walk:
    """One run of a subgraph, in scopes since its start: when tensors are created and last used, and what is called."""

    def __init__(self) -> None:
        self.scope = 0
        self.created: dict[int, int] = {}
        self.used: dict[int, int] = {}
        self.spans: list[tuple[int, int]] = []
        self.calls: list[tuple[int, int]] = []

    def create(self, tensors: Sequence[int]) -> None:
        """The scope in which TFLM first sees a tensor stays."""
        for t in tensors:
            if t >= 0:
                self.created.setdefault(t, self.scope)

    def use(self, tensors: Sequence[int]) -> None:
        """The last use so far. A tensor that is read before it is written has no beginning in TFLM: -1."""
        for t in tensors:
            if t >= 0:
                self.used[t] = self.scope


def greedy_offsets(rows: Sequence[Request], offline: Sequence[int] | None = None) -> list[int]:
    """The offset that TFLM's greedy planner gives to each request.

    Args:
        rows: in the order of `requests`.
        offline: an offset for each tensor of the model, `ONLINE` where TFLM is to choose; None for all online.

    Cost: O(n log n + n k log k) for k buffers placed before that are alive at the same time.

    Source: greedy_memory_planner.cc: fixed ones first, in order and unchecked; then by size, of equal sizes
    the later-added first, each at the lowest gap among those alive with it.
    """
    size = np.array([row.size for row in rows], dtype=np.int64)
    first = np.array([row.first for row in rows], dtype=np.int64)
    last = np.array([row.last for row in rows], dtype=np.int64)
    fixed = np.array([_fixed(row, offline) for row in rows], dtype=np.int64)
    is_fixed = fixed != ONLINE
    below = np.where(is_fixed, np.minimum(fixed, 0), 0)  # what lies below the arena blocks nothing in it
    pins = np.where(is_fixed, fixed - below, -1)
    problem = _core.Problem(np.maximum(size + below, 0), first, last + 1, pin=pins)
    order = np.lexsort((-np.arange(len(size)), -size))
    placed = _core.place_in_order(problem, order.astype(np.int64), "lowest")
    offsets: list[int] = np.where(is_fixed, fixed, placed).tolist()
    return offsets


def _fixed(row: Request, offline: Sequence[int] | None) -> int:
    return ONLINE if offline is None or row.scratch else offline[row.tensor]


def head_bytes(rows: Sequence[Request], offsets: Sequence[int]) -> int:
    """The non-persistent part of the arena: the end of the highest buffer, rounded up."""
    ends = (offset + row.size for row, offset in zip(rows, offsets, strict=True))
    return padded(max(ends, default=0))


def predicted_head(model: FileModel, kernels: str = "reference") -> int:
    """The head bytes TFLM will report for this file, with the offline plan it carries, if any.

    Raises:
        ModelError: the plan in the file has another number of tensors.
    """
    rows = requests(model, kernels)
    return head_bytes(rows, greedy_offsets(rows, read_plan(model)))


def read_plan(model: FileModel) -> tuple[int, ...] | None:
    """The offline offsets of the model, one for each tensor over all subgraphs, or None.

    Raises:
        ModelError: the entry is cut short or counts another number of tensors than the model.
    """
    if model.plan is not None:
        return model.plan or None
    payload = get_metadata(model.data, METADATA)
    if payload is None:
        return None
    count = struct.unpack_from("<i", payload, 8)[0] if len(payload) >= 12 else -1
    if count != len(model.tensors) or len(payload) < 12 + 4 * count:
        raise ModelError(
            f"{model.name}: metadata {METADATA} holds {count} offsets in {len(payload)} bytes,"
            f" expected {len(model.tensors)}, one for each tensor of every subgraph"
        )
    return struct.unpack_from(f"<{count}i", payload, 12)


def without_plan(data: bytes) -> bytes:
    """The .tflite file with every offset of its plan left to TFLM, all else unchanged.

    Raises:
        ModelError: `data` is not a TFLite flatbuffer.
    """
    for entry in metadata_entries(data, METADATA)[-1:]:
        start, size = metadata_payload(data, entry)
        data = data[: start + 12] + b"\xff" * (size - 12) + data[start + size :]
    return data


def padded(size: int) -> int:
    """`size` rounded up to TFLM's alignment."""
    return -(-size // ALIGNMENT) * ALIGNMENT

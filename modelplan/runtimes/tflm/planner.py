"""Reproduces TFLM's memory planning: the same requests in the same order, the same offsets, the same head.

Source: tflite-micro, micro_allocation_info.cc (lifetimes), micro_allocator.cc (what is planned),
memory_planner/greedy_memory_planner.cc (where it goes); see also its docs/memory_management.md.
"""

import struct
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from itertools import chain
from typing import NamedTuple

import numpy as np

from modelplan.formats.tflite.tflite_tables import get_metadata, metadata_entries, metadata_payload
from modelplan.model import IntArray
from modelplan.primitives import _core
from modelplan.primitives.errors import ModelError
from modelplan.runtimes.tflm.file import FileModel, SameFile
from modelplan.runtimes.tflm.scratch import scratch_requests

#: MicroArenaBufferAlignment().
ALIGNMENT = 16
#: The metadata entry that holds the offline plan, and the offset in it that leaves a tensor to TFLM.
METADATA = "OfflineMemoryAllocation"
ONLINE = -1


class Request(NamedTuple):
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
    """
    plan = read_plan(model) if any(tensor.variable for tensor in model.tensors) else None
    return _rows(SameFile(model), tuple(scratch), tuple((sizes or {}).items()), plan)


#: How many models' lifetimes are remembered: a command asks several questions about one.
_REMEMBERED = 4
#: How many models' rows are remembered: for one model each kernel library may ask for other scratch.
_ROWS_REMEMBERED = 16


@lru_cache(maxsize=_ROWS_REMEMBERED)
def _rows(
    file: SameFile,
    scratch: tuple[tuple[int, int, int], ...],
    changed: tuple[tuple[int, int], ...],
    plan: tuple[int, ...] | None,
) -> tuple[Request, ...]:
    """The rows of `requests_with`; `plan` is the one that the file carries, where variables ask for it."""
    model, clock = file.model, _clock_of(file)
    sizes = np.array([tensor.nbytes for tensor in model.tensors], dtype=np.int64)
    for number, nbytes in changed:
        sizes[number] = nbytes
    asked = (sizes > 0) & ~np.array([tensor.constant for tensor in model.tensors], dtype=bool)
    asked[list(model.handles)] = False
    for number in (number for number, tensor in enumerate(model.tensors) if tensor.variable):
        asked[number] &= plan is not None and plan[number] != ONLINE  # else behind the planned memory
    numbers = np.flatnonzero(asked)
    columns = (-(-sizes // ALIGNMENT) * ALIGNMENT, clock.first, clock.last)
    rows = list(map(Request, *(column[numbers].tolist() for column in columns), numbers.tolist()))
    rows += [Request(padded(size), *clock.span(subgraph, op), op=(subgraph, op)) for subgraph, op, size in scratch]
    return tuple(rows)


#: Most subgraphs that call one another in a chain.
_DEEPEST = 32
#: TFLM counts scopes in an int.
_MOST_SCOPES = 2**31 - 1


class Clock:
    """TFLM's scope counter, one higher at every operator and every subgraph called; lifetimes are in its scopes.

    A subgraph that is called several times takes the same number of scopes each time; its tensors live from the first
    run to the last, so each subgraph is walked once. `first` and `last` are the scopes of each tensor over all
    subgraphs, -1 where there is none.
    """

    def __init__(self, model: FileModel) -> None:
        self.model = model
        self.walks: dict[int, _Walk] = {}
        self.first, self.last = (np.full(len(model.tensors), -1, dtype=np.int64) for _ in range(2))
        self._length(0, ())
        self._runs = {0: (0, 0)}
        for index in reversed(self.walks):  # callers before what they call
            first, last = self._runs[index]
            self._mark(index, first, last)
            for called, at in self.walks[index].calls:
                earliest, latest = self._runs.get(called, (first + at, last + at))
                self._runs[called] = (min(earliest, first + at), max(latest, last + at))

    def span(self, subgraph: int, op: int) -> tuple[int, int]:
        """The first and last scope of an operator over all runs of its subgraph, -1 where that never runs."""
        if subgraph not in self._runs:
            return -1, -1
        (first, last), walk = self._runs[subgraph], self.walks[subgraph]
        return first + walk.entered[op], last + walk.left[op]

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
        for op in self.model.subgraphs[index].ops:
            walk.scope += 1
            entered = walk.scope
            for called in op.calls:
                walk.scope += 1
                walk.calls.append((called, walk.scope))
                walk.scope += self._length(called, (*callers, index))
            walk.entered.append(entered)
            walk.left.append(walk.scope)
        if walk.scope > _MOST_SCOPES:
            raise ModelError(f"{self.model.name}: TFLM would count more than {_MOST_SCOPES} operators and calls")
        self.walks[index] = walk
        return walk.scope

    def _mark(self, index: int, first: int, last: int) -> None:
        """Sets the lifetimes of a subgraph whose first run begins in scope `first` and whose last in `last`.

        TFLM first sees a tensor where it is written; one that is read before has no beginning: -1.
        """
        walk, subgraph, base = self.walks[index], self.model.subgraphs[index], self.model.firsts[index]
        entered, left = (np.array([0, *scopes, walk.scope], dtype=np.int64) for scopes in (walk.entered, walk.left))
        lists = [subgraph.inputs, *(op.inputs for op in subgraph.ops), subgraph.outputs]
        readers, read = _flat(lists)
        lists[1:-1] = [op.outputs for op in subgraph.ops]
        writers, written = _flat(lists)
        self.first[base + written[::-1]] = first + entered[writers[::-1]]  # of several the earliest stays
        for tensors, users in ((read, readers), (written, writers)):
            used = np.full(len(subgraph.tensors), -1, dtype=np.int64)
            used[tensors] = last + left[users]  # of several the latest stays
            own = slice(base, base + len(used))
            self.last[own] = np.maximum(self.last[own], used)


def _flat(lists: Sequence[tuple[int, ...]]) -> tuple[IntArray, IntArray]:
    """The tensors of many lists in their order, without absent ones: the number of the list of each, and each."""
    numbers = np.repeat(np.arange(len(lists)), np.fromiter(map(len, lists), np.int64, len(lists)))
    tensors = np.fromiter(chain.from_iterable(lists), np.int64, len(numbers))
    return numbers[tensors >= 0], tensors[tensors >= 0]


def clock_of(model: FileModel) -> Clock:
    """TFLM's scopes for a model; those of the models that were asked for last are remembered."""
    return _clock_of(SameFile(model))


@lru_cache(maxsize=_REMEMBERED)
def _clock_of(file: SameFile) -> Clock:
    return Clock(file.model)


class _Walk:
    """One run of a subgraph, in scopes since its start: those that each operator enters and leaves, and the calls."""

    def __init__(self) -> None:
        self.scope = 0
        self.entered: list[int] = []
        self.left: list[int] = []
        self.calls: list[tuple[int, int]] = []


def greedy_offsets(rows: Sequence[Request], offline: Sequence[int] | None = None) -> list[int]:
    """The offset that TFLM's greedy planner gives to each request.

    Args:
        rows: in the order of `requests`.
        offline: an offset for each tensor of the model, `ONLINE` where TFLM is to choose; None for all online.

    Cost: O(n log n + n k log k) for k buffers placed before that are alive at the same time.

    Source: greedy_memory_planner.cc: fixed ones first, in order and unchecked; then by size, of equal sizes
    the later-added first, each at the lowest gap among those alive with it.
    """
    columns = list(zip(*rows, strict=True))[:4] if rows else [()] * 4
    size, first, last, tensor = (np.array(column, dtype=np.int64) for column in columns)
    fixed = np.full(len(size), ONLINE, dtype=np.int64)
    if offline is not None:
        fixed[tensor >= 0] = np.array(offline, dtype=np.int64)[tensor[tensor >= 0]]
    is_fixed = fixed != ONLINE
    below = np.where(is_fixed, np.minimum(fixed, 0), 0)  # what lies below the arena blocks nothing in it
    pins = np.where(is_fixed, fixed - below, -1)
    placed = _placed(*(column.tobytes() for column in (np.maximum(size + below, 0), size, first, last + 1, pins)))
    offsets: list[int] = np.where(is_fixed, fixed, placed).tolist()
    return offsets


@lru_cache(maxsize=16)
def _placed(*columns: bytes) -> IntArray:
    """Where TFLM's greedy planner puts buffers; many kernel libraries ask for the same ones."""
    nbytes, size, first, end, pins = (np.frombuffer(column, dtype=np.int64) for column in columns)
    problem = _core.Problem(nbytes, first, end, pin=pins)
    order = np.lexsort((-np.arange(len(size)), -size))
    return _core.place_in_order(problem, order.astype(np.int64), "lowest")


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

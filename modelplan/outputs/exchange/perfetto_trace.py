"""A plan as a trace for Perfetto, in its native TrackEvent protobuf: counters, operators, a track for each tensor.

One step takes a microsecond of the trace's time. Source: Perfetto, protos/perfetto/trace/ (trace_packet.proto,
track_event/track_event.proto, track_descriptor.proto, counter_descriptor.proto, process_descriptor.proto).
"""

from collections.abc import Iterator, Mapping
from itertools import count
from types import MappingProxyType

import numpy as np

from modelplan.answers.drawing import Drawing, of_plan
from modelplan.model import IntArray, Kind, Plan
from modelplan.outputs.report import folded
from modelplan.planning.lifetimes import tensor_spans

#: Trace time of a step, in nanoseconds.
STEP = 1000
#: Characters that names keep.
_WIDTH = 120
_PACKET = 1
_TIMESTAMP, _SEQUENCE_ID, _EVENT, _DESCRIPTOR = 8, 10, 11, 60
_UUID, _NAME, _PROCESS, _PARENT, _COUNTER, _ORDERING, _RANK, _MERGE = 1, 2, 3, 5, 8, 11, 12, 15
_PID, _PROCESS_NAME, _UNIT = 1, 6, 3
_TYPE, _TRACK, _EVENT_NAME, _VALUE, _ANNOTATION = 9, 11, 23, 30, 4
_ANNOTATION_NAME, _ANNOTATION_INT, _ANNOTATION_TEXT = 10, 4, 6
_BEGIN, _END, _COUNT = 1, 2, 4
_EXPLICIT, _SIZE_BYTES, _NO_MERGE = 3, 3, 2
#: Tracks that every trace has; those of counters, operators and tensors follow.
_MODEL, _MEMORY, _OPERATORS, _TENSORS, _WORKING, _FIRST = 1, 2, 3, 4, 5, 6

Field = int | bytes
Facts = dict[str, int | str]


def render(plan: Plan) -> bytes:
    """The trace of `plan`: a counter of live bytes for each bank or the arena, slices for operators, tensor by tensor.

    A tensor's slice lies on a track of its own, tracks by address; its arguments say where it lies, its bytes, shape,
    type, buffer and writer. Working memory of operators has tracks too.

    Cost: O(n log n).
    """
    drawing = of_plan(plan)
    return b"".join((*_frame(drawing), *_counters(drawing), *_operators(plan, drawing), *_lives(plan, drawing)))


def _frame(drawing: Drawing) -> Iterator[bytes]:
    """The process that holds all tracks, and the tracks that hold others."""
    process = _message({_PID: 1, _PROCESS_NAME: _text(drawing.title or "model")})
    yield _packet({_DESCRIPTOR: _message({_UUID: _MODEL, _PROCESS: process, _ORDERING: _EXPLICIT})})
    yield _track(_MEMORY, _MODEL, "live bytes", 0)
    yield _track(_OPERATORS, _MODEL, "operators", 1)
    yield _track(_TENSORS, _MODEL, "tensors by address", 2)
    if any(drawing.problem.is_scratch):
        yield _track(_WORKING, _MODEL, "scratch by address", 3)


def _counters(drawing: Drawing) -> Iterator[bytes]:
    """The bytes alive in each bank of the memory, or in the arena, whenever they change."""
    for rank, (name, start, end) in enumerate(_regions(drawing)):
        uuid = _FIRST + rank
        yield _track(uuid, _MEMORY, name, rank, {_COUNTER: _message({_UNIT: _SIZE_BYTES})})
        times, alive = _live(drawing, start, end)
        for step, live in zip(times.tolist(), alive.tolist(), strict=True):
            yield _event(uuid, step, _COUNT, {_VALUE: live})


def _regions(drawing: Drawing) -> list[tuple[str, int, int]]:
    """Name, start and end of each bank as offsets in the arena."""
    if not drawing.banks:
        return [("arena", 0, drawing.height)]
    starts = [at for _, at in drawing.banks]
    ends = [*starts[1:], max(drawing.height, starts[-1])]
    return [(name, start, end) for (name, start), end in zip(drawing.banks, ends, strict=True)]


def _live(drawing: Drawing, start: int, end: int) -> tuple[IntArray, IntArray]:
    """When the live bytes between two addresses change, and how many there are from then on."""
    problem, offsets = drawing.problem, drawing.placement.offsets
    inside = np.clip(np.minimum(offsets + problem.size, end) - np.maximum(offsets, start), 0, None)
    times = np.unique(np.concatenate([[0, drawing.steps], problem.start, problem.end]))
    change = np.zeros(len(times), dtype=np.int64)
    np.add.at(change, np.searchsorted(times, problem.start), inside)
    np.add.at(change, np.searchsorted(times, problem.end), -inside)
    return times, np.cumsum(change)


def _operators(plan: Plan, drawing: Drawing) -> Iterator[bytes]:
    """A slice for each operator, one step long."""
    times, alive = _live(drawing, 0, drawing.height)
    for step, index in enumerate(plan.schedule.order):
        live = int(alive[np.searchsorted(times, step, side="right") - 1])
        op = plan.graph.ops[index]
        facts: Facts = {"op": index, "step": step, "live bytes": live, "scratch bytes": sum(op.scratch)}
        if op.name:
            facts["name"] = op.name
        yield from _slice(_OPERATORS, op.kind, step, step + 1, facts)


def _lives(plan: Plan, drawing: Drawing) -> Iterator[bytes]:
    """A track with one slice for each tensor, and for each buffer that holds none."""
    problem, offsets = drawing.problem, drawing.placement.offsets
    columns = tensor_spans(plan.graph, plan.schedule.order, plan.runtime)
    spans = list(zip(*(column.tolist() for column in columns), strict=True))
    uuids = count(_FIRST + len(_regions(drawing)))
    for number in np.lexsort((problem.start, offsets)).tolist():
        buffer, at = problem[number], int(offsets[number])
        facts: Facts = {"buffer": number, "kind": drawing.labels[int(drawing.kinds[number])]}
        whole = buffer.start, buffer.end
        if not buffer.members:
            parent = _WORKING if problem.is_scratch[number] else _TENSORS
            yield from _life(next(uuids), parent, buffer.name, whole, facts | {"offset": at, "bytes": buffer.size})
        for member in buffer.members:
            t = member.tensor
            tensor, (first, last) = plan.graph.tensors[t], spans[t]
            alive = whole if tensor.kind is Kind.STATE else (first, last + 1)
            shown = facts | _facts(plan, t, at + member.delta)
            yield from _life(next(uuids), _TENSORS, tensor.name or f"tensor {t}", alive, shown)


def _life(uuid: int, parent: int, name: str, alive: tuple[int, int], facts: Facts) -> Iterator[bytes]:
    """A track with one slice; no two tracks are shown as one, whatever their names."""
    yield _track(uuid, parent, name, uuid, {_MERGE: _NO_MERGE})
    yield from _slice(uuid, f"{facts['bytes']:,} B at {facts['offset']:,}", *alive, facts)


def _facts(plan: Plan, number: int, offset: int) -> Facts:
    """What is known of a tensor."""
    tensor, writer = plan.graph.tensors[number], plan.graph.producers[number]
    return {
        "tensor": number,
        "offset": offset,
        "bytes": tensor.nbytes,
        "type": tensor.dtype,
        "shape": "x".join(map(str, tensor.shape)) or "scalar",
        "writer": plan.graph.label(writer) if writer >= 0 else "the caller",
        "readers": len(plan.graph.readers[number]),
    }


def _track(uuid: int, parent: int, name: str, rank: int, more: Mapping[int, Field] = MappingProxyType({})) -> bytes:
    """The packet that announces a track; the tracks below another one stand in the order of their ranks."""
    fields: dict[int, Field] = {_UUID: uuid, _NAME: _text(name), _PARENT: parent, _ORDERING: _EXPLICIT, _RANK: rank}
    return _packet({_DESCRIPTOR: _message({**fields, **more})})


def _slice(uuid: int, name: str, start: int, end: int, facts: Facts) -> Iterator[bytes]:
    """The two packets of a slice from one step to another."""
    annotations = b"".join(_field(_ANNOTATION, _annotation(key, value)) for key, value in facts.items())
    yield _event(uuid, start, _BEGIN, {_EVENT_NAME: _text(name)}, annotations)
    yield _event(uuid, end, _END, {})


def _annotation(key: str, value: int | str) -> bytes:
    value_field = _field(_ANNOTATION_INT, value) if isinstance(value, int) else _field(_ANNOTATION_TEXT, _text(value))
    return _field(_ANNOTATION_NAME, key.encode()) + value_field


def _event(uuid: int, step: int, sort: int, more: Mapping[int, Field], annotations: bytes = b"") -> bytes:
    event = _message({_TYPE: sort, _TRACK: uuid, **more}) + annotations
    return _packet({_TIMESTAMP: step * STEP, _EVENT: event})


def _packet(fields: Mapping[int, Field]) -> bytes:
    return _field(_PACKET, _message({**fields, _SEQUENCE_ID: 1}))


def _text(name: str) -> bytes:
    """A name of at most `_WIDTH` characters, without any that would drive a terminal."""
    return folded(name, _WIDTH).encode()


def _message(fields: Mapping[int, Field]) -> bytes:
    return b"".join(_field(number, value) for number, value in fields.items())


def _field(number: int, value: Field) -> bytes:
    """One field of a message in protobuf's encoding: a number that is not negative, or bytes with their length."""
    if isinstance(value, int):
        return _varint(number << 3) + _varint(value)
    return _varint(number << 3 | 2) + _varint(len(value)) + value


def _varint(value: int) -> bytes:
    """A number that is not negative, seven bits in each byte, the lowest first."""
    encoded = bytearray()
    while value > 0x7F:
        encoded.append(value & 0x7F | 0x80)
        value >>= 7
    encoded.append(value)
    return bytes(encoded)

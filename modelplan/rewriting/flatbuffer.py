"""Edits of a .tflite flatbuffer that keep every byte they do not name: weights, padding, unknown fields.

A flatbuffer table refers to its children by unsigned forward offsets and to its field map (vtable) by a signed one.
An edit therefore *prepends* a new root table whose vtable points to the fields of the old root where they stand:

    new: | header | vtable | root | buffers[] | metadata[] | new entry | new payload | padding | whole old file ...
    old:                                                                                        | header ... root ...

Nothing inside the old file moves relative to the rest of it, so all its own offsets stay right. The only absolute
positions in a model (data beyond 2 GiB) are raised by the length of what was put in front.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator, Sequence
from typing import TypeVar

from modelplan.errors import ModelError

T = TypeVar("T")

#: Field numbers of the TFLite schema, as in its schema.fbs.
_MODEL_SUBGRAPHS, _MODEL_BUFFERS, _MODEL_METADATA = 2, 4, 6
_SUBGRAPH_TENSORS, _SUBGRAPH_OPERATORS = 0, 3
_TENSOR_BUFFER = 2
_OPERATOR_LARGE_OPTIONS = 9
_BUFFER_DATA, _BUFFER_OFFSET = 0, 1
_METADATA_NAME, _METADATA_BUFFER = 0, 1

#: The most a vtable entry can say: how far a field may lie behind its table.
_FARTHEST = 0xFFFF
#: More than any alignment that the schema forces, so the old file keeps its alignment.
_FRONT = 64


def set_metadata(model: bytes, name: str, payload: bytes) -> bytes:
    """The model with `payload` (16-byte aligned) as its metadata entry `name`, added or replaced; all else unchanged.

    An entry whose payload has the same length and whose buffer nothing else uses is overwritten where it stands.

    Raises:
        ModelError: `model` is not a TFLite flatbuffer, or its root table lies too far behind the front.
    """
    return _guarded(lambda: _set_metadata(model, name, payload))


def get_metadata(model: bytes, name: str) -> bytes | None:
    """The payload of the last metadata entry called `name` (the one that TFLM obeys), or None.

    Raises:
        ModelError: `model` is not a TFLite flatbuffer.
    """
    return _guarded(lambda: _get_metadata(model, name))


def reorder_operators(model: bytes, order: Sequence[int], subgraph: int = 0) -> bytes:
    """The model whose subgraph runs its operators in `order` (indices into the old order); all else unchanged.

    Raises:
        ModelError: `model` is not a TFLite flatbuffer.
        ValueError: `order` is not a permutation of the operators.
    """
    return _guarded(lambda: _reorder_operators(model, order, subgraph))


def operator_count(model: bytes, subgraph: int = 0) -> int:
    """How many operators the file lists in a subgraph.

    Raises:
        ModelError: `model` is not a TFLite flatbuffer.
    """
    return _guarded(lambda: len(_operator_slots(model, subgraph)))


def _guarded(edit: Callable[[], T]) -> T:
    try:
        return edit()
    except (struct.error, IndexError) as error:
        raise ModelError(f"not a TFLite flatbuffer: an offset leads outside the file ({error})") from None


def _u32(data: bytes, at: int) -> int:
    if at < 0:
        raise IndexError(f"position {at}")
    return int(struct.unpack_from("<I", data, at)[0])


def _follow(data: bytes, at: int) -> int:
    """Where the forward offset stored at `at` leads."""
    return at + _u32(data, at)


def _root(data: bytes) -> int:
    if data[4:8] != b"TFL3":
        raise ModelError(f"not a TFLite flatbuffer: file identifier {data[4:8]!r}, expected b'TFL3'")
    return _follow(data, 0)


def _vtable(data: bytes, table: int) -> tuple[int, ...]:
    """The field map of a table: for each field number its distance from the table, 0 where absent."""
    at = table - struct.unpack_from("<i", data, table)[0]
    if at < 0:
        raise IndexError(f"vtable at {at}")
    size = struct.unpack_from("<H", data, at)[0]
    return struct.unpack_from(f"<{max(size // 2 - 2, 0)}H", data, at + 4)


def _field(data: bytes, table: int, number: int) -> int:
    """The position of a field, 0 where the table does not carry it."""
    fields = _vtable(data, table)
    return table + fields[number] if number < len(fields) and fields[number] else 0


def _scalar(data: bytes, table: int, number: int) -> int:
    at = _field(data, table, number)
    return _u32(data, at) if at else 0


def _slots(data: bytes, table: int, number: int) -> list[int]:
    """The positions of the elements of a vector field of offsets, none where it is absent."""
    at = _field(data, table, number)
    if not at:
        return []
    vector = _follow(data, at)
    count = _u32(data, vector)
    if vector + 4 + 4 * count > len(data):
        raise IndexError(f"a vector of {count} elements at {vector}")
    return [vector + 4 + 4 * i for i in range(count)]


def _tables(data: bytes, table: int, number: int) -> list[int]:
    return [_follow(data, slot) for slot in _slots(data, table, number)]


def _bytes(data: bytes, table: int, number: int) -> tuple[int, int]:
    """Where a byte vector or string field starts and how long it is; (0, 0) where it is absent."""
    at = _field(data, table, number)
    if not at:
        return 0, 0
    vector = _follow(data, at)
    if vector + 4 + _u32(data, vector) > len(data):
        raise IndexError(f"a vector of {_u32(data, vector)} bytes at {vector}")
    return vector + 4, _u32(data, vector)


def _entries(data: bytes, name: str) -> list[int]:
    """The numbers of the metadata entries called `name`."""
    found = []
    for number, entry in enumerate(_tables(data, _root(data), _MODEL_METADATA)):
        start, size = _bytes(data, entry, _METADATA_NAME)
        if data[start : start + size] == name.encode():
            found.append(number)
    return found


def _payload(data: bytes, entry: int) -> tuple[int, int]:
    """Where the payload of a metadata entry starts and how long it is."""
    root = _root(data)
    table = _tables(data, root, _MODEL_METADATA)[entry]
    buffer = _tables(data, root, _MODEL_BUFFERS)[_scalar(data, table, _METADATA_BUFFER)]
    return _bytes(data, buffer, _BUFFER_DATA)


def _get_metadata(model: bytes, name: str) -> bytes | None:
    entries = _entries(model, name)
    if not entries:
        return None
    start, size = _payload(model, entries[-1])
    return model[start : start + size]


def _set_metadata(model: bytes, name: str, payload: bytes) -> bytes:
    entries = _entries(model, name)
    if len(entries) == 1 and _owned(model, entries[0]):
        start, size = _payload(model, entries[0])
        if size == len(payload):
            return model[:start] + payload + model[start + size :]
    return _prepend(model, _front(model, entries, name, payload))


def _owned(data: bytes, entry: int) -> bool:
    """Whether nothing but this metadata entry uses its buffer."""
    root = _root(data)
    users = [_scalar(data, table, _METADATA_BUFFER) for table in _tables(data, root, _MODEL_METADATA)]
    mine = users.pop(entry)
    for subgraph in _tables(data, root, _MODEL_SUBGRAPHS):
        users += [_scalar(data, t, _TENSOR_BUFFER) for t in _tables(data, subgraph, _SUBGRAPH_TENSORS)]
    return mine not in users


def _front(model: bytes, replaced: list[int], name: str, payload: bytes) -> bytes:
    """The new header, root, vectors, entry and payload: a multiple of `_FRONT` bytes that precedes the old file."""
    root = _root(model)
    fields = _vtable(model, root)
    buffers, metadata = _tables(model, root, _MODEL_BUFFERS), _tables(model, root, _MODEL_METADATA)
    entries = len(metadata) + (not replaced)
    text = name.encode() + b"\0"

    vtable_at = 8
    field_count = max(len(fields), _MODEL_METADATA + 1)
    root_at = _up(vtable_at + 4 + 2 * field_count, 4)
    buffers_at = root_at + 12
    metadata_at = buffers_at + 4 + 4 * (len(buffers) + 1)
    entry_vtable_at = metadata_at + 4 + 4 * entries
    entry_at = entry_vtable_at + 8
    buffer_vtable_at = entry_at + 12
    buffer_at = buffer_vtable_at + 8
    text_at = buffer_at + 8
    payload_at = _up(text_at + 4 + len(text) + 4, 16)
    length = _up(payload_at + len(payload), _FRONT)

    places = _field_places(fields, field_count, length + root - root_at, len(buffers))
    front = bytearray(length)
    front[4:8] = model[4:8]
    _put(front, 0, "<I", root_at)
    _put(front, vtable_at, f"<{2 + field_count}H", 4 + 2 * field_count, 12, *places)
    _put(front, root_at, "<iII", root_at - vtable_at, buffers_at - root_at - 4, metadata_at - root_at - 8)
    _put_tables(front, buffers_at, [length + at for at in buffers] + [buffer_at])
    kept = [entry_at if i in replaced else length + at for i, at in enumerate(metadata)]
    _put_tables(front, metadata_at, kept + [entry_at] * (not replaced))
    _put(front, entry_vtable_at, "<4H", 8, 12, 4, 8)
    _put(front, entry_at, "<iII", entry_at - entry_vtable_at, text_at - entry_at - 4, len(buffers))
    _put(front, buffer_vtable_at, "<3H", 6, 8, 4)
    _put(front, buffer_at, "<iI", buffer_at - buffer_vtable_at, payload_at - 4 - buffer_at - 4)
    _put(front, text_at, f"<I{len(text)}s", len(text) - 1, text)
    _put(front, payload_at - 4, f"<I{len(payload)}s", len(payload), payload)
    return bytes(front)


def _field_places(fields: Sequence[int], count: int, shift: int, buffers: int) -> list[int]:
    """Where the new root finds its fields: two behind itself, the others in the old root, `shift` bytes further on."""
    places = [shift + offset if offset else 0 for offset in fields] + [0] * (count - len(fields))
    places[_MODEL_BUFFERS], places[_MODEL_METADATA] = 4, 8
    if max(places) > _FARTHEST:
        raise ModelError(
            f"the root table of the model would lie {max(places)} bytes behind the new one,"
            f" expected at most {_FARTHEST}: a model of {buffers} buffers cannot be patched"
        )
    return places


def _put(front: bytearray, at: int, layout: str, *values: int | bytes) -> None:
    struct.pack_into(layout, front, at, *values)


def _put_tables(front: bytearray, at: int, targets: Sequence[int]) -> None:
    """A vector of forward offsets to `targets`."""
    offsets = [target - (at + 4 + 4 * i) for i, target in enumerate(targets)]
    _put(front, at, f"<{1 + len(offsets)}I", len(offsets), *offsets)


def _up(value: int, alignment: int) -> int:
    return -(-value // alignment) * alignment


def _prepend(model: bytes, front: bytes) -> bytes:
    """`front` before `model`, whose absolute positions are raised."""
    raised = bytearray(model)
    for at in _absolute(model):
        position = struct.unpack_from("<Q", model, at)[0]
        if position > 1:  # 0 and 1 mean that the data stands in the flatbuffer
            _put(raised, at, "<Q", position + len(front))
    return front + bytes(raised)


def _absolute(data: bytes) -> Iterator[int]:
    """The fields that hold a position counted from the start of the file."""
    root = _root(data)
    for buffer in _tables(data, root, _MODEL_BUFFERS):
        if at := _field(data, buffer, _BUFFER_OFFSET):
            yield at
    for subgraph in _tables(data, root, _MODEL_SUBGRAPHS):
        for operator in _tables(data, subgraph, _SUBGRAPH_OPERATORS):
            if at := _field(data, operator, _OPERATOR_LARGE_OPTIONS):
                yield at


def _operator_slots(model: bytes, subgraph: int) -> Sequence[int]:
    return _slots(model, _tables(model, _root(model), _MODEL_SUBGRAPHS)[subgraph], _SUBGRAPH_OPERATORS)


def _reorder_operators(model: bytes, order: Sequence[int], subgraph: int) -> bytes:
    slots = _operator_slots(model, subgraph)
    if sorted(order) != list(range(len(slots))):
        raise ValueError(f"an order of {len(order)} operators, expected a permutation of {len(slots)}")
    reordered = bytearray(model)
    for slot, op in zip(slots, order, strict=True):
        # No table lies inside the vector, so each lies behind all of its slots and stays reachable.
        _put(reordered, slot, "<I", _follow(model, slots[op]) - slot)
    return bytes(reordered)

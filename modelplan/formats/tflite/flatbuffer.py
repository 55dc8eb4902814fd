"""Edits a .tflite flatbuffer and keeps every byte that an edit does not concern: weights, padding, unknown fields.

A flatbuffer table refers to its children by unsigned forward offsets and to its field map (vtable) by a signed one.
An edit therefore *prepends* a new root table whose vtable points to the fields of the old root, which do not move.
A model of so many buffers that the old root is out of a vtable's reach has its fields copied into the new root.

    new: | header | vtable | root | buffers[] | metadata[] | new entry | new payload | padding | whole old file ...
    old:                                                                                        | header ... root ...

Nothing inside the old file moves relative to the rest of it, so all its own offsets stay right. The only absolute
positions in a model (data beyond 2 GiB) are raised by the length of what was put in front.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence

import numpy as np

from modelplan.formats.tflite import tflite_schema as schema
from modelplan.formats.tflite.flatbuffer_columns import FlatBuffer, TableColumns
from modelplan.formats.tflite.tflite_tables import (
    follow,
    guarded,
    metadata_entries,
    metadata_payload,
    root_table,
    scalar,
    slots,
    tables,
    u32,
    vtable,
)
from modelplan.primitives.errors import ModelError
from modelplan.primitives.units import rounded_up

#: How far a field may lie behind its table, in bytes: the largest entry of a vtable.
_FARTHEST = 0xFFFF
#: More than any alignment that the schema forces, so the old file keeps its alignment.
_FRONT = 64


@guarded
def set_metadata(model: bytes, name: str, payload: bytes) -> bytes:
    """The model with `payload` (16-byte aligned) as its metadata entry `name`, added or replaced; all else unchanged.

    An entry whose payload has the same length and whose buffer nothing else uses is overwritten in its place.

    Raises:
        ModelError: `model` is not a TFLite flatbuffer, or its root table has fields that the schema does not know and
            lies too far behind the front.
    """
    entries = metadata_entries(model, name)
    if len(entries) == 1 and _owned(model, entries[0]):
        start, size = metadata_payload(model, entries[0])
        if size == len(payload):
            return model[:start] + payload + model[start + size :]
    return _prepend(model, _front(model, entries, name, payload))


@guarded
def reorder_operators(model: bytes, order: Sequence[int], subgraph: int = 0) -> bytes:
    """The model whose subgraph runs its operators in `order` (indices into the old order); all else unchanged.

    Raises:
        ModelError: `model` is not a TFLite flatbuffer.
        ValueError: `order` is not a permutation of the operators.
    """
    places = _operator_slots(model, subgraph)
    if sorted(order) != list(range(len(places))):
        raise ValueError(f"an order of {len(order)} operators, expected a permutation of {len(places)}")
    reordered = bytearray(model)
    for slot, op in zip(places, order, strict=True):
        # No table lies inside the vector, so each lies behind all of its slots and stays reachable.
        _put(reordered, slot, "<I", follow(model, places[op]) - slot)
    return bytes(reordered)


@guarded
def operator_count(model: bytes, subgraph: int = 0) -> int:
    """How many operators the file lists in a subgraph.

    Raises:
        ModelError: `model` is not a TFLite flatbuffer.
    """
    return len(_operator_slots(model, subgraph))


def _owned(data: bytes, entry: int) -> bool:
    """Whether nothing but this metadata entry uses its buffer."""
    root = root_table(data)
    users = [scalar(data, table, schema.METADATA_BUFFER) for table in tables(data, root, schema.MODEL_METADATA)]
    mine = users.pop(entry)
    for subgraph in tables(data, root, schema.MODEL_SUBGRAPHS):
        at = np.array(tables(data, subgraph, schema.SUBGRAPH_TENSORS), np.int64)
        users += TableColumns(FlatBuffer(data), at).scalars(schema.TENSOR_BUFFER, "<u4")
    return mine not in users


def _front(model: bytes, replaced: list[int], name: str, payload: bytes, copied: Sequence[int] = ()) -> bytes:
    """The new header, root, vectors, entry and payload: a multiple of `_FRONT` bytes that precedes the old file.

    The new root has the fields `copied` itself; they are those that there are if the old root lies too far behind it.
    """
    root, text = root_table(model), name.encode() + b"\0"
    fields = vtable(model, root)
    buffers, metadata = tables(model, root, schema.MODEL_BUFFERS), tables(model, root, schema.MODEL_METADATA)
    entries = len(metadata) + (not replaced)
    vtable_at = 8
    field_count = max(len(fields), schema.MODEL_METADATA + 1)
    root_at = rounded_up(vtable_at + 4 + 2 * field_count, 4)
    root_size = 12 + 4 * len(copied)
    buffers_at = root_at + root_size
    metadata_at = buffers_at + 4 + 4 * (len(buffers) + 1)
    entry_vtable_at = metadata_at + 4 + 4 * entries
    entry_at = entry_vtable_at + 8
    buffer_vtable_at = entry_at + 12
    buffer_at = buffer_vtable_at + 8
    text_at = buffer_at + 8
    payload_at = rounded_up(text_at + 4 + len(text) + 4, 16)
    length = rounded_up(payload_at + len(payload), _FRONT)
    places = _field_places(fields, field_count, length + root - root_at, copied)
    if max(places) > _FARTHEST:
        _check_known(fields, max(places))
        return _front(model, replaced, name, payload, _copied(fields))
    front = bytearray(length)
    front[4:8] = model[4:8]
    _put(front, 0, "<I", root_at)
    _put(front, vtable_at, f"<{2 + field_count}H", 4 + 2 * field_count, root_size, *places)
    _put(front, root_at, "<iII", root_at - vtable_at, buffers_at - root_at - 4, metadata_at - root_at - 8)
    for number in copied:
        at, old = root_at + places[number], root + fields[number]
        value = u32(model, old) if number == schema.MODEL_VERSION else length + follow(model, old) - at
        _put(front, at, "<I", value)
    _put_tables(front, buffers_at, [length + at for at in buffers] + [buffer_at])
    kept = [entry_at if i in replaced else length + at for i, at in enumerate(metadata)]
    _put_tables(front, metadata_at, kept + [entry_at] * (not replaced))
    _put(front, entry_vtable_at, "<4H", 8, 12, 4, 8)
    _put(front, entry_at, "<iII", entry_at - entry_vtable_at, text_at - entry_at - 4, len(buffers))
    _put(front, buffer_vtable_at, "<3H2xiI", 6, 8, 4, buffer_at - buffer_vtable_at, payload_at - 4 - buffer_at - 4)
    _put(front, text_at, f"<I{len(text)}s", len(text) - 1, text)
    _put(front, payload_at - 4, f"<I{len(payload)}s", len(payload), payload)
    return bytes(front)


def _copied(fields: Sequence[int]) -> list[int]:
    """The fields that the old root has, but the two that are made anew."""
    made_anew = (schema.MODEL_BUFFERS, schema.MODEL_METADATA)
    return [number for number, offset in enumerate(fields) if offset and number not in made_anew]


def _check_known(fields: Sequence[int], distance: int) -> None:
    """Checks that all fields of the old root can be copied: that the schema says what they are."""
    if any(fields[schema.MODEL_FIELDS :]):
        raise ModelError(
            f"the root table of the model would lie {distance} bytes behind the new one, expected at most {_FARTHEST},"
            " since it has fields that modelplan does not know"
        )


def _field_places(fields: Sequence[int], count: int, shift: int, copied: Sequence[int]) -> list[int]:
    """The distance of each field from the new root: made anew and copied fields lie in it, others in the old root."""
    places = [shift + offset if offset else 0 for offset in fields] + [0] * (count - len(fields))
    for place, number in enumerate((schema.MODEL_BUFFERS, schema.MODEL_METADATA, *copied)):
        places[number] = 4 + 4 * place
    return places


def _put(front: bytearray, at: int, layout: str, *values: int | bytes) -> None:
    struct.pack_into(layout, front, at, *values)


def _put_tables(front: bytearray, at: int, targets: Sequence[int]) -> None:
    """A vector of forward offsets to `targets`."""
    offsets = [target - (at + 4 + 4 * i) for i, target in enumerate(targets)]
    _put(front, at, f"<{1 + len(offsets)}I", len(offsets), *offsets)


def _prepend(model: bytes, front: bytes) -> bytes:
    """`front` followed by `model`, whose absolute file positions are raised."""
    raised = bytearray(model)
    for at in _absolute(model):
        position = struct.unpack_from("<Q", model, at)[0]
        if position > 1:  # 0 and 1 mean that the data is inside the flatbuffer
            _put(raised, at, "<Q", position + len(front))
    return front + bytes(raised)


def _absolute(data: bytes) -> Iterator[int]:
    """The fields that hold a position counted from the start of the file."""
    root = root_table(data)
    yield from _places(data, tables(data, root, schema.MODEL_BUFFERS), schema.BUFFER_OFFSET)
    for subgraph in tables(data, root, schema.MODEL_SUBGRAPHS):
        yield from _places(data, tables(data, subgraph, schema.SUBGRAPH_OPERATORS), schema.OPERATOR_LARGE_OPTIONS)


def _places(data: bytes, at: Sequence[int], number: int) -> Iterator[int]:
    """The positions of a field of the tables `at` that carry it."""
    places = TableColumns(FlatBuffer(data), np.array(at, np.int64)).places(number)
    return filter(None, places.tolist())


def _operator_slots(model: bytes, subgraph: int) -> Sequence[int]:
    return slots(model, tables(model, root_table(model), schema.MODEL_SUBGRAPHS)[subgraph], schema.SUBGRAPH_OPERATORS)

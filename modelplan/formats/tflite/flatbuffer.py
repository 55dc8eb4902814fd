"""Edits a .tflite flatbuffer and keeps every byte that an edit does not concern: weights, padding, unknown fields.

What is added lies in front, with a new root table, as `flatbuffer_tables.py` tells. Nothing inside the old file moves
relative to the rest of it, so all its own offsets stay right. The only absolute positions in a model (data beyond
2 GiB) are raised by the length of what was put in front.
"""

import struct
from collections.abc import Iterator, Sequence

import numpy as np

from modelplan.formats.tflite import tflite_schema as schema
from modelplan.formats.tflite.flatbuffer_columns import FlatBuffer, TableColumns
from modelplan.formats.tflite.flatbuffer_tables import BUFFER, METADATA, MODEL, FrontTables
from modelplan.formats.tflite.tflite_tables import (
    follow,
    guarded,
    metadata_entries,
    metadata_payload,
    root_table,
    scalar,
    slots,
    tables,
)


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
    return _with_entry(model, entries, name, payload)


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
        struct.pack_into("<I", reordered, slot, follow(model, places[op]) - slot)
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


def _with_entry(model: bytes, replaced: Sequence[int], name: str, payload: bytes) -> bytes:
    """The model behind a new root that lists one more buffer, and an entry for it in place of those replaced."""
    front, root = FrontTables(model), root_table(model)
    buffers = [front.at(at) for at in tables(model, root, schema.MODEL_BUFFERS)]
    buffer = front.table(BUFFER, {schema.BUFFER_DATA: front.data(payload)})
    named = {schema.METADATA_NAME: front.text(name), schema.METADATA_BUFFER: len(buffers)}
    entry = front.table(METADATA, named)
    there = enumerate(tables(model, root, schema.MODEL_METADATA))
    entries = [entry if number in replaced else front.at(at) for number, at in there] + [entry] * (not replaced)
    lists = {schema.MODEL_BUFFERS: [*buffers, buffer], schema.MODEL_METADATA: entries}
    fields = {number: front.references(offsets) for number, offsets in lists.items()}
    written = bytearray(front.file(front.table(MODEL, fields, root, "model")))
    length = len(written) - len(model)
    for at in _absolute(model):
        position = struct.unpack_from("<Q", model, at)[0]
        if position > 1:  # 0 and 1 mean that the data is inside the flatbuffer
            struct.pack_into("<Q", written, length + at, position + length)
    return bytes(written)


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

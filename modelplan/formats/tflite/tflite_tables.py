"""Reads a .tflite flatbuffer by positions in the file: tables, their fields, and the metadata of the model.

A table starts with the distance to its field map (vtable), which holds the distance of each field from the table, 0
where it is absent. Fields of tables, vectors and strings hold the distance to them. All positions count from the
start of the file.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from functools import wraps
from typing import TYPE_CHECKING, ParamSpec, TypeVar

from modelplan.formats.tflite import tflite_schema as schema
from modelplan.primitives.errors import ModelError

if TYPE_CHECKING:
    from mmap import mmap

P = ParamSpec("P")
T = TypeVar("T")


def guarded(work: Callable[P, T]) -> Callable[P, T]:
    """`work`, with a position outside the file as a ModelError."""

    @wraps(work)
    def run(*arguments: P.args, **named: P.kwargs) -> T:
        try:
            return work(*arguments, **named)
        except (struct.error, IndexError) as error:
            raise ModelError(f"not a TFLite flatbuffer: an offset leads outside the file ({error})") from None

    return run


def u32(data: bytes | mmap, at: int) -> int:
    """The unsigned number of 32 bits at position `at`."""
    if at < 0:
        raise IndexError(f"position {at}")
    return int(struct.unpack_from("<I", data, at)[0])


def follow(data: bytes | mmap, at: int) -> int:
    """The position to which the offset stored at `at` points."""
    return at + u32(data, at)


def root_table(data: bytes | mmap) -> int:
    """The position of the model's own table.

    Raises:
        ModelError: the file has another identifier than TFLite's.
    """
    if data[4:8] != b"TFL3":
        raise ModelError(f"not a TFLite flatbuffer: file identifier {data[4:8]!r}, expected b'TFL3'")
    return follow(data, 0)


def vtable(data: bytes | mmap, table: int) -> tuple[int, ...]:
    """The field map of a table: for each field number its distance from the table, 0 where absent."""
    at = table - struct.unpack_from("<i", data, table)[0]
    if at < 0:
        raise IndexError(f"vtable at {at}")
    size = struct.unpack_from("<H", data, at)[0]
    return struct.unpack_from(f"<{max(size // 2 - 2, 0)}H", data, at + 4)


def field(data: bytes | mmap, table: int, number: int) -> int:
    """The position of a field, 0 where the table does not carry it."""
    fields = vtable(data, table)
    return table + fields[number] if number < len(fields) and fields[number] else 0


def child(data: bytes | mmap, table: int, number: int) -> int:
    """The position that a field of a table, vector or string leads to, 0 where the table does not carry it."""
    at = field(data, table, number)
    return follow(data, at) if at else 0


def scalar(data: bytes | mmap, table: int, number: int) -> int:
    """The value of a field of 32 bits, 0 where the table does not carry it."""
    at = field(data, table, number)
    return u32(data, at) if at else 0


def slots(data: bytes | mmap, table: int, number: int) -> list[int]:
    """The positions of the elements of a vector field of offsets, none where it is absent."""
    vector = child(data, table, number)
    if not vector:
        return []
    count = u32(data, vector)
    if vector + 4 + 4 * count > len(data):
        raise IndexError(f"a vector of {count} elements at {vector}")
    return [vector + 4 + 4 * i for i in range(count)]


def tables(data: bytes | mmap, table: int, number: int) -> list[int]:
    """The positions of the tables in a vector field, none where it is absent."""
    return [follow(data, slot) for slot in slots(data, table, number)]


def byte_range(data: bytes | mmap, table: int, number: int) -> tuple[int, int]:
    """The position and the length of a byte vector or string field; (0, 0) where it is absent."""
    vector = child(data, table, number)
    if not vector:
        return 0, 0
    if vector + 4 + u32(data, vector) > len(data):
        raise IndexError(f"a vector of {u32(data, vector)} bytes at {vector}")
    return vector + 4, u32(data, vector)


def metadata_entries(data: bytes | mmap, name: str) -> list[int]:
    """The numbers of the metadata entries called `name`."""
    entries = []
    for number, entry in enumerate(tables(data, root_table(data), schema.MODEL_METADATA)):
        start, size = byte_range(data, entry, schema.METADATA_NAME)
        if data[start : start + size] == name.encode():
            entries.append(number)
    return entries


def metadata_payload(data: bytes | mmap, entry: int) -> tuple[int, int]:
    """The position and the length of the payload of a metadata entry."""
    root = root_table(data)
    table = tables(data, root, schema.MODEL_METADATA)[entry]
    buffer = tables(data, root, schema.MODEL_BUFFERS)[scalar(data, table, schema.METADATA_BUFFER)]
    return byte_range(data, buffer, schema.BUFFER_DATA)


@guarded
def get_metadata(model: bytes, name: str) -> bytes | None:
    """The payload of the last metadata entry called `name` (the one that TFLM obeys), or None.

    Raises:
        ModelError: `model` is not a TFLite flatbuffer.
    """
    entries = metadata_entries(model, name)
    if not entries:
        return None
    start, size = metadata_payload(model, entries[-1])
    return model[start : start + size]

"""New flatbuffer tables in front of an old file, which point into it for all that stays as it is.

A builder writes from its end forwards, and counts offsets from its end. The old file follows right behind, so its
position p is the offset -p of the builder: forward references from new tables to old ones need nothing else.
"""

import struct
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from modelplan.formats.tflite.tflite_tables import follow, vtable
from modelplan.primitives.errors import ModelError

#: More than any alignment that the schema forces, so the old file keeps its alignment.
_FRONT = 64
#: How far a field may lie behind its table, in bytes: the largest entry of a vtable; and what alignment may add.
_FARTHEST, _ALIGNED = 0xFFFF, 8
#: A field that refers to a table, vector or string; numbers are the bytes of a field that holds a value.
REFERENCE = 0

#: The fields of the tables of the TFLite schema that are written anew, by number.
MODEL = (4, 0, 0, 0, 0, 0, 0, 0)
SUBGRAPH = (0, 0, 0, 0, 0, 4)
OPERATOR = (4, 0, 0, 1, 0, 0, 1, 0, 0, 8, 8, 1, 0, 4)
TENSOR = (0, 1, 4, 0, 0, 1, 0, 0, 1, 0)
CODE = (1, 0, 4, 4)
QUANTISATION = (0, 0, 0, 0, 1, 0, 4)
BUFFER = (0, 8, 8)
METADATA = (0, 4)
#: Options with padding in field 0: of CONV_2D, DEPTHWISE_CONV_2D and pools.
OPTIONS = {
    "CONV_2D": (1, 4, 4, 1, 4, 4, 1),
    "DEPTHWISE_CONV_2D": (1, 4, 4, 4, 1, 4, 4),
    "AVERAGE_POOL_2D": (1, 4, 4, 4, 4, 1),
    "MAX_POOL_2D": (1, 4, 4, 4, 4, 1),
}
_FORMATS = {1: "<b", 4: "<i", 8: "<q"}


class FrontTables:
    """New tables in front of `old`. Offsets are the builder's; `at(p)` is that of position p of the old file."""

    def __init__(self, old: bytes) -> None:
        import flatbuffers

        self.old = old
        self.builder: Any = flatbuffers.Builder(1024)

    @staticmethod
    def at(position: int) -> int:
        """The offset of a position of the old file."""
        return -position

    def table(self, fields: Sequence[int], values: Mapping[int, int], like: int = 0, what: str = "") -> int:
        """A table with `values` by field number; the other fields as in the old table at `like`, if any.

        Fields behind those of `fields` are of a newer schema. With `what`, the table's name, they stay where they are,
        and the new table points to them; without they cannot be carried over.

        Raises:
            ModelError: the old table has such fields, and they lie too far behind the new one, or must not be kept.
        """
        kept = self._kept(fields, like) if like else {}
        newer = self._newer(fields, like, what) if like else {}
        self.builder.StartObject(max([len(fields), *(number + 1 for number in newer)]))
        merged: dict[int, int] = {**kept, **values}
        for number in sorted(merged, key=lambda n: -fields[n]):
            size, value = fields[number], merged[number]
            if size == REFERENCE:
                self.builder.PrependUOffsetTRelative(value)
            else:
                _PREPEND[size](self.builder)(value)
            self.builder.Slot(number)
        for number, position in newer.items():
            if self.builder.Offset() + 2 * _ALIGNED + position > _FARTHEST:
                raise ModelError(f"fields of the {what} that modelplan does not know lie too far behind the new ones")
            self.builder.current_vtable[number] = self.at(position)
        offset: int = self.builder.EndObject()
        return offset

    def _kept(self, fields: Sequence[int], table: int) -> dict[int, int]:
        """The values of the known fields of an old table."""
        values = {}
        for number, place in enumerate(vtable(self.old, table)[: len(fields)]):
            at = table + place
            if place and fields[number] == REFERENCE:
                values[number] = self.at(follow(self.old, at))
            elif place:
                values[number] = int(struct.unpack_from(_FORMATS[fields[number]], self.old, at)[0])
        return values

    def _newer(self, fields: Sequence[int], table: int, what: str) -> dict[int, int]:
        """The positions of the fields of an old table that are not known."""
        places = unknown_fields(self.old, table, len(fields))
        if places and not what:
            raise ModelError(
                f"the table at byte {table} has fields that modelplan does not know, so no other is made of it"
            )
        return places

    def references(self, offsets: Sequence[int]) -> int:
        """A vector of references."""
        return self._vector(4, offsets, self.builder.PrependUOffsetTRelative)

    def numbers(self, values: Sequence[int]) -> int:
        """A vector of 32-bit numbers."""
        return self._vector(4, values, self.builder.PrependInt32)

    def long_numbers(self, values: Sequence[int]) -> int:
        """A vector of 64-bit numbers."""
        return self._vector(8, values, self.builder.PrependInt64)

    def data(self, content: bytes) -> int:
        """A vector of bytes, aligned to 16."""
        self.builder.Prep(16, len(content))
        return int(self.builder.CreateByteVector(content))

    def _vector(self, size: int, values: Sequence[int], prepend: Callable[[int], None]) -> int:
        self.builder.StartVector(size, len(values), size)
        for value in reversed(values):
            prepend(value)
        return int(self.builder.EndVector())

    def text(self, content: str) -> int:
        """A string."""
        return int(self.builder.CreateString(content))

    def file(self, root: int) -> bytes:
        """The new front and the old file behind it."""
        self.builder.Prep(_FRONT, 0)
        self.builder.Finish(root, file_identifier=b"TFL3")
        return bytes(self.builder.Output()) + self.old


_PREPEND: dict[int, Callable[[Any], Callable[[int], None]]] = {
    1: lambda builder: builder.PrependInt8,
    4: lambda builder: builder.PrependInt32,
    8: lambda builder: builder.PrependInt64,
}


def unknown_fields(data: bytes, table: int, known: int) -> dict[int, int]:
    """The positions of the fields of a table behind its first `known` ones."""
    return {number: table + place for number, place in enumerate(vtable(data, table)) if number >= known and place}

"""Reads a field of many tables of a flatbuffer at once, as a column.

`tflite_tables.py` tells how a table lies in the file. A field that a table does not carry has its default.
Every position is checked before it is read.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from modelplan.model import IntArray

if TYPE_CHECKING:
    from mmap import mmap

T = TypeVar("T")

#: What says that a part of the file is damaged.
DAMAGE = (struct.error, IndexError, TypeError, AttributeError, ValueError, OverflowError)


def in_order(slots: IntArray, read: Callable[[IntArray], Sequence[T]]) -> Iterator[T]:
    """What `read` makes of the tables to which the elements `slots` of a vector lead, row by row.

    Where it fails, the rows before the first damaged one come first, then that row's error: halves are read apart.
    """
    if not len(slots):
        return
    try:
        rows = read(slots)
    except DAMAGE:
        if len(slots) == 1:
            raise
        middle = len(slots) // 2
        yield from in_order(slots[:middle], read)
        yield from in_order(slots[middle:], read)
    else:
        yield from rows


class FlatBuffer:
    """The bytes of a flatbuffer."""

    def __init__(self, data: bytes | mmap) -> None:
        self.data = data
        self.size = len(data)

    def numbers(self, at: IntArray, kind: str) -> Any:
        """The numbers of the type `kind` (as numpy writes it) at the positions `at`, which need not be aligned.

        Raises:
            IndexError: names the first position outside the file.
        """
        positions = max(self.size - int(kind[-1]) + 1, 0)
        if len(at) and at.view(np.uint64).max() >= positions:  # as a negative one is then
            wrong = int(at[(at < 0) | (at >= positions)][0])
            raise IndexError(f"found position {wrong} in a file of {self.size} bytes")
        return np.ndarray((positions,), kind, self.data, 0, (1,))[at]  # a number at each byte

    def follow(self, at: IntArray) -> IntArray:
        """The positions to which the offsets stored at `at` point."""
        targets: IntArray = at + self.numbers(at, "<u4")
        return targets

    def check_read(self, lengths: IntArray) -> None:
        """Bounds the memory for parts that are read at once, which is fewer where they overlap; see `in_order`.

        Raises:
            ValueError: parts of so many bytes are together larger than the file.
        """
        if int(lengths.sum()) > self.size:
            raise ValueError("parts of the file overlap")

    def root(self) -> TableColumns:
        return TableColumns(self, self.follow(np.zeros(1, np.int64)))


class TableColumns:
    """The fields of the tables at the positions `at`, by number; 0 is no table: it carries no field."""

    def __init__(self, file: FlatBuffer, at: IntArray) -> None:
        self.file = file
        self.at = at
        there = at != 0
        self._maps = np.zeros_like(at)
        self._maps[there] = at[there] - file.numbers(at[there], "<i4")
        self._sizes = np.zeros_like(at)
        self._sizes[there] = file.numbers(self._maps[there], "<u2")

    def places(self, field: int) -> IntArray:
        """Where the field lies in the file, 0 where it is absent."""
        slot = 4 + 2 * field
        carried = (slot < self._sizes).nonzero()[0]
        distances = self.file.numbers(self._maps[carried] + slot, "<u2").astype(np.int64)
        places = np.zeros_like(self.at)
        places[carried] = np.where(distances, self.at[carried] + distances, 0)
        return places

    def scalars(self, field: int, kind: str, default: int = 0) -> list[Any]:
        """The values of a field of the type `kind`."""
        places = self.places(field)
        carried = places.nonzero()[0]
        values = np.full(len(places), default, kind)
        values[carried] = self.file.numbers(places[carried], kind)
        scalars: list[Any] = values.tolist()
        return scalars

    def references(self, field: int) -> IntArray:
        """The positions of the tables, vectors or strings that a field leads to, 0 where it is absent."""
        places = self.places(field)
        carried = places.nonzero()[0]
        places[carried] = self.file.follow(places[carried])
        return places

    def tables(self, field: int) -> TableColumns:
        """The tables that a field leads to."""
        return TableColumns(self.file, self.references(field))

    def vectors(self, field: int) -> tuple[IntArray, IntArray]:
        """The position of the first element of each vector or string, and how many there are; 0 and 0 where absent."""
        starts = self.references(field)
        carried = starts.nonzero()[0]
        counts = np.zeros_like(starts)
        counts[carried] = self.file.numbers(starts[carried], "<u4")
        starts[carried] += 4
        return starts, counts

    def complete_vectors(self, field: int, width: int) -> tuple[IntArray, IntArray]:
        """The same for elements of `width` bytes, with their ends checked.

        Raises:
            ValueError: a vector ends outside the file, or several overlap so often that they are larger than the file.
        """
        starts, counts = self.vectors(field)
        outside = starts + width * counts > self.file.size
        if outside.any():
            count = int(counts[outside][0])
            raise ValueError(f"found a vector of {count} elements, which ends outside the file")
        self.file.check_read(width * counts)
        return starts, counts

    def integers(self, field: int) -> list[tuple[int, ...]]:
        """The vectors of 32-bit integers of a field, () where it is absent."""
        starts, counts = self.complete_vectors(field, 4)
        if not counts.any():
            return [()] * len(counts)
        ends = counts.cumsum()
        firsts = ends - counts
        at = np.repeat(starts - 4 * firsts, counts) + 4 * np.arange(int(counts.sum()))
        flat = self.file.numbers(at, "<i4").tolist()
        return [tuple(flat[first:end]) for first, end in zip(firsts.tolist(), ends.tolist(), strict=True)]

    def blobs(self, field: int, width: int) -> list[bytes]:
        """The vectors of a field as bytes, empty where it is absent; elements have `width` bytes."""
        starts, counts = self.complete_vectors(field, width)
        return self._cut(starts, starts + width * counts)

    def texts(self, field: int) -> list[bytes]:
        """The strings of a field, empty where it is absent; one that is longer than the file ends with the file."""
        starts, counts = self.vectors(field)
        ends = np.minimum(starts + counts, self.file.size)
        self.file.check_read(ends - starts)
        return self._cut(starts, ends)

    def _cut(self, starts: IntArray, ends: IntArray) -> list[bytes]:
        data = self.file.data
        return [bytes(data[start:end]) for start, end in zip(starts.tolist(), ends.tolist(), strict=True)]

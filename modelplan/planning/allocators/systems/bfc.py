"""TensorFlow's BFC, best fit with coalescing: an online allocator, replayed in step order.

What is followed: requests in multiples of 256 bytes; free chunks in bins of 256 x 2^b bytes, within a bin by size,
then by address; the first chunk that is large enough from the request's bin upwards; a chunk is split when it is
at least twice the request or would waste 128 MiB; a freed chunk is merged with free neighbours. One region, as
without growth, here without end: what lies above the last chunk in use is its last free chunk.
What is left out: timestamped frees (a device feature), several regions and their garbage collection.
Source: tensorflow, core/common_runtime/bfc_allocator.cc (FindChunkPtr, SplitChunk, TryToCoalesce); after
Doug Lea's dlmalloc.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from dataclasses import dataclass, field

import numpy as np

from modelplan.model import Budget, Placement, Problem
from modelplan.planning.allocators.allocator_rows import Allocator, Records
from modelplan.primitives.errors import RequestError

GRANULE = 256
BINS = 21
MOST_WASTE = 128 << 20
#: Bytes of the first region of ONNX Runtime's arena.
FIRST_REGION = 1 << 20
#: Bytes of an arena's own: for each chunk that fits into a region, for each place of the list of chunks, which grows
#: twofold, for each free chunk, and in all.
_HANDLE, _CHUNK_RECORD, _FREE_RECORD, _ARENA = 8, 72, 40, 1750
#: Larger than the sum of sizes that any problem may have, and still far from the end of 64 bits.
REGION = 1 << 62


def bin_of(size: int) -> int:
    """The bin of a chunk of `size` bytes: the last one is open-ended."""
    return min(BINS - 1, (size // GRANULE).bit_length() - 1)


def twofold(count: int) -> int:
    """The room of a list that grows twofold."""
    return 1 << (count - 1).bit_length() if count else 0


@dataclass(slots=True)
class _Chunk:
    """A piece of a region; `start` orders all chunks as addresses do."""

    start: int
    size: int
    free: bool = True
    before: _Chunk | None = field(default=None, repr=False)
    after: _Chunk | None = field(default=None, repr=False)


class BfcArena:
    """Regions of memory, cut into chunks that are in use or free; the first has `region` bytes, later ones are larger.

    Without arguments it is ONNX Runtime's arena at its defaults.
    """

    def __init__(self, region: int = FIRST_REGION) -> None:
        self.held = self.lowest = self._tables = self._room = 0
        self._growth = region
        self._free: list[tuple[int, int, int]] = []  # bin, size, start
        self._chunks: dict[int, _Chunk] = {}

    @property
    def own(self) -> int:
        """The bytes of its own bookkeeping."""
        return _ARENA + self._tables + self._room * _CHUNK_RECORD + len(self._free) * _FREE_RECORD

    def take(self, size: int) -> int:
        """A block of so many bytes, as a number to give it back by."""
        rounded = -(-size // GRANULE) * GRANULE
        chunk = self._fitting(rounded)
        if chunk is None:
            self._extend(rounded)
            chunk = self._fitting(rounded)
            assert chunk is not None
        if chunk.size >= 2 * rounded or chunk.size - rounded >= MOST_WASTE:
            self._split(chunk, rounded)
        chunk.free = False
        return chunk.start

    def give(self, block: int) -> None:
        """Takes a block back and merges it with free neighbours."""
        chunk = self._chunks[block]
        chunk.free = True
        if chunk.after is not None and chunk.after.free:
            self._remove(chunk.after)
            self._merge(chunk, chunk.after)
        if chunk.before is not None and chunk.before.free:
            self._remove(chunk.before)
            chunk = chunk.before
            assert chunk.after is not None
            self._merge(chunk, chunk.after)
        self._insert(chunk)

    def _fitting(self, rounded: int) -> _Chunk | None:
        """The smallest free chunk of the first bin that has a large enough one, taken out of its bin."""
        place = bisect_left(self._free, (bin_of(rounded), rounded, self.lowest - 1))
        if place == len(self._free):
            return None
        return self._chunks[self._free.pop(place)[2]]

    def _extend(self, rounded: int) -> None:
        grown = False
        while rounded > self._growth:
            self._growth *= 2
            grown = True
        size = self._growth
        if not grown:
            self._growth *= 2
        self.lowest -= size + GRANULE  # a gap, so that chunks of two regions are never neighbours
        chunk = _Chunk(self.lowest, size)
        self._chunks[chunk.start] = chunk
        self._insert(chunk)
        self.held += size
        self._tables += size // GRANULE * _HANDLE
        self._room = max(self._room, twofold(len(self._chunks)))

    def _split(self, chunk: _Chunk, size: int) -> None:
        rest = _Chunk(chunk.start + size, chunk.size - size, before=chunk, after=chunk.after)
        if chunk.after is not None:
            chunk.after.before = rest
        chunk.after, chunk.size = rest, size
        self._chunks[rest.start] = rest
        self._room = max(self._room, twofold(len(self._chunks)))
        self._insert(rest)

    def _merge(self, chunk: _Chunk, after: _Chunk) -> None:
        chunk.size += after.size
        chunk.after = after.after
        if after.after is not None:
            after.after.before = chunk
        del self._chunks[after.start]

    def _insert(self, chunk: _Chunk) -> None:
        insort(self._free, (bin_of(chunk.size), chunk.size, chunk.start))

    def _remove(self, chunk: _Chunk) -> None:
        self._free.pop(bisect_left(self._free, (bin_of(chunk.size), chunk.size, chunk.start)))


def place_online(problem: Problem, _budget: Budget) -> Placement:
    """Frees what has ended, then allocates what starts, step by step, ties by number.

    Raises:
        RequestError: an alignment that does not divide 256.
    """
    if (GRANULE % problem.alignment).any():
        raise RequestError(f"BFC aligns to {GRANULE} bytes, found an alignment of {problem.alignment.max()}")
    records = Records.of(problem)
    arena = BfcArena(REGION)
    address = [0] * len(records.buffers)
    ending = np.argsort(records.end, kind="stable").tolist()
    ended = 0
    for i, (size, start) in enumerate(zip(records.size.tolist(), records.start.tolist(), strict=True)):
        while records.end[ending[ended]] <= start:
            arena.give(address[ending[ended]])
            ended += 1
        address[i] = arena.take(size)
    return Placement(records.spread(np.array(address, dtype=np.int64) - arena.lowest, len(problem), 0))


ROWS: tuple[Allocator, ...] = (
    Allocator(
        "tensorflow-bfc",
        place_online,
        "TensorFlow, core/common_runtime/bfc_allocator.cc",
        "online",
        "none",
        "O(n log n)",
        honours=frozenset({"alignment", "overlaps"}),
        alignment=GRANULE,
        omits="growth, several regions and frees by timestamp: one region without end",
    ),
)

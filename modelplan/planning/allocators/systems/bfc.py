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

import numpy as np

from modelplan.model import Budget, Placement, Problem
from modelplan.planning.allocators.table import Allocator, Records
from modelplan.primitives.errors import RequestError

GRANULE = 256
BINS = 21
MOST_WASTE = 128 << 20
#: Larger than the sum of sizes that any problem may have, and still far from the end of 64 bits.
REGION = 1 << 62


def bin_of(size: int) -> int:
    """The bin of a chunk of `size` bytes: the last one is open-ended."""
    return min(BINS - 1, (max(size, GRANULE) // GRANULE).bit_length() - 1)


class BfcRegion:
    """One region of memory, cut into chunks that are in use or free."""

    def __init__(self) -> None:
        self.bins: list[list[tuple[int, int]]] = [[] for _ in range(BINS)]
        self.size: dict[int, int] = {0: REGION}
        self.before: dict[int, int] = {}
        self.in_use: set[int] = set()
        self._put_in_bin(0)

    def allocate(self, size: int) -> int:
        """The address of a chunk for `size` bytes."""
        rounded = -(-size // GRANULE) * GRANULE
        address = self._take(rounded)
        if self.size[address] >= 2 * rounded or self.size[address] - rounded >= MOST_WASTE:
            self._split(address, rounded)
        self.in_use.add(address)
        return address

    def free(self, address: int) -> None:
        """Gives the chunk at `address` back and merges it with free neighbours."""
        self.in_use.remove(address)
        following = address + self.size[address]
        if following in self.size and following not in self.in_use:
            self._take_from_bin(following)
            self._merge(address, following)
        previous = self.before.get(address)
        if previous is not None and previous not in self.in_use:
            self._take_from_bin(previous)
            self._merge(previous, address)
            address = previous
        self._put_in_bin(address)

    def _take(self, rounded: int) -> int:
        for number in range(bin_of(rounded), BINS):
            chunks = self.bins[number]
            at = bisect_left(chunks, (rounded, 0))
            if at < len(chunks):
                return chunks.pop(at)[1]
        raise AssertionError("the region has no end")

    def _split(self, address: int, rounded: int) -> None:
        rest, following = address + rounded, address + self.size[address]
        self.size[rest], self.size[address] = following - rest, rounded
        self.before[rest] = address
        if following in self.size:
            self.before[following] = rest
        self._put_in_bin(rest)

    def _merge(self, low: int, high: int) -> None:
        following = high + self.size[high]
        self.size[low] += self.size.pop(high)
        del self.before[high]
        if following in self.size:
            self.before[following] = low

    def _put_in_bin(self, address: int) -> None:
        insort(self.bins[bin_of(self.size[address])], (self.size[address], address))

    def _take_from_bin(self, address: int) -> None:
        chunks = self.bins[bin_of(self.size[address])]
        chunks.pop(bisect_left(chunks, (self.size[address], address)))


def place_online(problem: Problem, _budget: Budget) -> Placement:
    """Frees what has ended, then allocates what starts, step by step, ties by number.

    Raises:
        RequestError: an alignment that does not divide 256.
    """
    if (GRANULE % problem.alignment).any():
        raise RequestError(f"BFC aligns to {GRANULE} bytes, found an alignment of {problem.alignment.max()}")
    records = Records.of(problem)
    region = BfcRegion()
    address = [0] * len(records.buffers)
    ending = np.argsort(records.end, kind="stable").tolist()
    ended = 0
    for i, (size, start) in enumerate(zip(records.size.tolist(), records.start.tolist(), strict=True)):
        while records.end[ending[ended]] <= start:
            region.free(address[ending[ended]])
            ended += 1
        address[i] = region.allocate(size)
    return Placement(records.spread(np.array(address, dtype=np.int64), len(problem), 0))


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

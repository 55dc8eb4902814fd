"""What stands in each byte of a buffer, as runs of bytes that stand there as they stand in their tensor."""

from bisect import bisect_left, bisect_right
from collections.abc import Iterator


class ByteRuns:
    """For each byte of a buffer of `size` bytes the number of the byte that stands there, or nothing.

    In a run the number is the address plus the run's `shift`, so that a map takes one run, however large it is.
    """

    def __init__(self, size: int) -> None:
        self.size = size
        #: Where each run begins, and its shift, None where nothing stands; neighbours have different ones.
        self._starts: list[int] = [0]
        self._shifts: list[int | None] = [None]

    def write(self, first: int, end: int, shift: int | None) -> None:
        """Puts the byte of number address + `shift`, or nothing, at each address of [first, end).

        Cost: O(log runs), and moving what stands behind in a list of runs.
        """
        if first >= end:
            return
        starts, shifts = self._starts, self._shifts
        i = bisect_left(starts, first)
        j = bisect_left(starts, end, i)
        if i and shifts[i - 1] == shift:
            new_starts, new_shifts = list[int](), list[int | None]()
        else:
            new_starts, new_shifts = [first], [shift]
        if end < self.size:
            ends_run = j < len(starts) and starts[j] == end
            behind = shifts[j] if ends_run else shifts[j - 1]
            if ends_run and behind == shift:
                j += 1
            elif not ends_run and behind != shift:
                new_starts.append(end)
                new_shifts.append(behind)
        starts[i:j] = new_starts
        shifts[i:j] = new_shifts

    def wrong(self, first: int, end: int, shift: int) -> int | None:
        """The first address of [first, end) at which another byte stands than that of number address + `shift`."""
        i = bisect_right(self._starts, first) - 1
        if self._shifts[i] == shift and (i + 1 == len(self._starts) or end <= self._starts[i + 1]):
            return None  # nearly always
        return next((at for at, _, standing in self.runs(first, end) if standing != shift), None)

    def number(self, address: int) -> int | None:
        """The number of the byte at an address, None where nothing stands."""
        shift = self._shifts[bisect_right(self._starts, address) - 1]
        return None if shift is None else address + shift

    def runs(self, first: int, end: int) -> Iterator[tuple[int, int, int | None]]:
        """The runs of [first, end): where each begins and ends there, and its shift."""
        i = bisect_right(self._starts, first) - 1
        while first < end:
            behind = self._starts[i + 1] if i + 1 < len(self._starts) else self.size
            yield first, min(behind, end), self._shifts[i]
            first, i = behind, i + 1

    def move(self, first: int, to: int, count: int) -> None:
        """Copies `count` bytes, which may overlap where they go, to another address."""
        for start, end, shift in list(self.runs(first, first + count)):
            self.write(start - first + to, end - first + to, None if shift is None else shift + first - to)

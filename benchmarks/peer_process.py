"""Asks another system's allocator in a process of that system's Python: a problem on standard input, offsets back.

    python benchmarks/peer_process.py omnimalloc:ALLOCATOR | vela:hillclimb < problem.json

Both are JSON: rows [size, start, end) and {"offsets": [...], "seconds": CPU}. Imports nothing of this project.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Sequence
from typing import Any


class _Range:
    """What Vela asks a live range: steps inclusive."""

    def __init__(self, size: int, start: int, end: int) -> None:
        self.size, self.start_time, self.end_time = size, start, end - 1

    def get_alignment(self) -> int:
        return 1


def omnimalloc(rows: Sequence[Sequence[int]], allocator: str) -> tuple[list[int], float]:
    import omnimalloc as system

    entries = [system.Allocation(id=i, size=z, start=a, end=b) for i, (z, a, b) in enumerate(rows) if z]
    begin = time.process_time()
    placed: Any = system.allocate(entries, allocator)
    offsets = {entry.id: int(entry.offset) for entry in placed}
    return [offsets.get(i, 0) for i in range(len(rows))], time.process_time() - begin


def vela(rows: Sequence[Sequence[int]], _: str) -> tuple[list[int], float]:
    from ethosu.vela.hillclimb_allocation import allocate_live_ranges

    kept = [i for i, (size, _, _) in enumerate(rows) if size]
    begin = time.process_time()
    found = allocate_live_ranges([_Range(*rows[i]) for i in kept], None, 1 << 62)
    seconds = time.process_time() - begin
    offsets = dict(zip(kept, map(int, found), strict=True))
    return [offsets.get(i, 0) for i in range(len(rows))], seconds


def main() -> None:
    system, _, allocator = sys.argv[1].partition(":")
    offsets, seconds = {"omnimalloc": omnimalloc, "vela": vela}[system](json.load(sys.stdin), allocator)
    json.dump({"offsets": offsets, "seconds": seconds}, sys.stdout)


if __name__ == "__main__":
    main()

"""Slow twins of the planners in the core, written from the originals' rules with lists and no cleverness.

A record is (size, start, end), half-open, in order of rising start.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass, field

Record = tuple[int, int, int]


def together(a: Record, b: Record) -> bool:
    return a[1] < b[2] and b[1] < a[2]


def profiles(records: Sequence[Record]) -> list[list[int]]:
    """For every step the records alive there, largest first."""
    steps = range(max((r[2] for r in records), default=0))
    alive = [[i for i, r in enumerate(records) if r[1] <= s < r[2]] for s in steps]
    return [sorted(ids, key=lambda i: (-records[i][0], i)) for ids in alive]


def positional_maxima(records: Sequence[Record]) -> list[int]:
    rows = [[records[i][0] for i in profile] for profile in profiles(records)]
    return [max(row[r] for row in rows if len(row) > r) for r in range(max(map(len, rows), default=0))]


def share_by_breadth(records: Sequence[Record]) -> list[int]:
    """Steps by live bytes; the running choice among objects by rising number, as the original words it."""
    holder: dict[int, int] = {}
    sizes: list[int] = []
    rows = sorted(enumerate(profiles(records)), key=lambda row: (-sum(records[i][0] for i in row[1]), row[0]))
    for _, profile in rows:
        for i in (i for i in profile if i not in holder):
            holder[i] = _broad_choice(records, holder, sizes, i)
            if holder[i] == len(sizes):
                sizes.append(0)
            sizes[holder[i]] = max(sizes[holder[i]], records[i][0])
    return [holder[i] for i in range(len(records))]


def _broad_choice(records: Sequence[Record], holder: dict[int, int], sizes: list[int], i: int) -> int:
    best = len(sizes)
    for o, size in enumerate(sizes):
        if any(h == o and together(records[i], records[j]) for j, h in holder.items()):
            continue
        if (
            best == len(sizes)
            or (records[i][0] <= size < sizes[best])
            or (sizes[best] < records[i][0] and size > sizes[best])
        ):
            best = o
    return best


def gap(a: Record, b: Record) -> int:
    """Steps from the last of the earlier to the first of the later, 0 when they conflict."""
    if together(a, b):
        return 0
    first, second = sorted((a, b), key=lambda r: r[1])
    return second[1] - (first[2] - 1)


def share_by_distance(records: Sequence[Record]) -> list[int]:
    maxima = positional_maxima(records)
    position = [max(k for k, m in enumerate(maxima) if m >= size) for size, _, _ in records]
    holder: dict[int, int] = {}
    count = 0
    while len(holder) < len(records):
        best = None
        for i in (i for i in range(len(records)) if i not in holder):
            distance, nearest = _nearest(records, holder, count, i)
            key = (position[i], distance, -records[i][0], i)
            if best is None or key < best[0]:
                best = (key, nearest)
        assert best is not None
        chosen = count if best[1] is None else best[1]
        count = max(count, chosen + 1)
        holder[best[0][3]] = chosen
    return [holder[i] for i in range(len(records))]


def _nearest(records: Sequence[Record], holder: dict[int, int], count: int, i: int) -> tuple[float, int | None]:
    found: tuple[float, int | None] = (float("inf"), None)
    for o in range(count):
        distance = min(gap(records[i], records[j]) for j, h in holder.items() if h == o)
        if 0 < distance < found[0]:
            found = (distance, o)
    return found


def least_cost(records: Sequence[Record]) -> int:
    """The least sum of fresh sizes and growths, by trying every predecessor for every record."""

    def best(i: int, free: frozenset[int]) -> int:
        if i == len(records):
            return 0
        found = records[i][0] + best(i + 1, free | {i})
        for p in free:
            if records[p][2] <= records[i][1]:
                found = min(found, max(0, records[i][0] - records[p][0]) + best(i + 1, free - {p} | {i}))
        return found

    return best(0, frozenset())


def chain_cost(records: Sequence[Record], holder: Sequence[int]) -> int:
    """What the chains of an assignment cost by the same measure."""
    last: dict[int, int] = {}
    cost = 0
    for i, o in enumerate(holder):
        cost += max(0, records[i][0] - records[last[o]][0]) if o in last else records[i][0]
        last[o] = i
    return cost


def stack_in_objects(records: Sequence[Record], order: Sequence[int]) -> tuple[list[int], list[int], list[int]]:
    holder, offset = [-1] * len(records), [0] * len(records)
    sizes: list[int] = []
    for i in order:
        inside = [
            [j for j in range(len(records)) if holder[j] == o and together(records[i], records[j])]
            for o in range(len(sizes))
        ]
        tops = [max((offset[j] + records[j][0] for j in ids), default=0) for ids in inside]
        clear = [o for o, top in enumerate(tops) if top == 0]
        roomy = [o for o, top in enumerate(tops) if top and top + records[i][0] <= sizes[o]]
        if clear:
            holder[i] = clear[0]
        elif roomy:
            holder[i], offset[i] = roomy[0], tops[roomy[0]]
        else:
            holder[i] = len(sizes)
            sizes.append(records[i][0])
    return holder, offset, sizes


def most_live_first(records: Sequence[Record], *, by_duration: bool) -> list[int]:
    order: list[int] = []
    while len(order) < len(records):
        left = [i for i in range(len(records)) if i not in order]
        steps = range(max(r[2] for r in records))
        live = [sum(records[i][0] for i in left if records[i][1] <= s < records[i][2]) for s in steps]
        step = live.index(max(live))
        here = [i for i in left if records[i][1] <= step < records[i][2]]
        keys = {i: (records[i][0], records[i][2] - records[i][1]) for i in here}
        order.append(min(here, key=lambda i: (tuple(-k for k in (keys[i][::-1] if by_duration else keys[i])), i)))
    return order


@dataclass
class Climb:
    """Vela's hill climb with Python's own generator."""

    records: Sequence[Record]
    alignment: Sequence[int]
    address: list[int | None] = field(default_factory=list)
    end: list[int] = field(default_factory=list)
    below: list[int | None] = field(default_factory=list)
    turn: list[int] = field(default_factory=list)
    best: float = float("inf")

    def run(self, order: list[int], load: int, most: int) -> list[int]:
        n, draw = len(self.records), random.Random(1)
        self.end, self.below, self.turn = [0] * n, [None] * n, [0] * n
        self.best = self.place(order)
        kept, answer = order[:], [a or 0 for a in self.address]
        i = gained = 0
        while self.best > load and i < most and i - gained < 500:
            self.reorder(order, i - gained, draw)
            height = self.place(order)
            if height <= self.best:
                gained = i if height < self.best else gained
                self.best, kept, answer = height, order[:], [a or 0 for a in self.address]
            else:
                order = kept[:]
            i += 1
        return answer

    def around(self, i: int) -> list[int]:
        """Those alive with i in the order of the first step that they share, then by number."""
        mine = self.records[i]
        others = [j for j in range(len(self.records)) if j != i and together(mine, self.records[j])]
        return sorted(others, key=lambda j: (max(mine[1], self.records[j][1]), j))

    def place(self, order: Sequence[int]) -> int:
        self.address = [None] * len(self.records)
        height = 0
        for turn, i in enumerate(order):
            self.place_one(i)
            self.turn[i] = turn
            height = max(height, self.end[i])
            if height > self.best:
                break
        return height

    def place_one(self, i: int) -> None:
        size, address, below = self.records[i][0], 0, None
        moved = True
        while moved:
            moved = False
            for j in self.around(i):
                low = self.address[j]
                if low is not None and low < address + size and address < self.end[j]:
                    address = -(-self.end[j] // self.alignment[i]) * self.alignment[i]
                    below, moved = j, True
        self.address[i], self.end[i], self.below[i] = address, address + size, below

    def reorder(self, order: list[int], stuck: int, draw: random.Random) -> None:
        top = self.end.index(max(self.end))
        turns: list[int] = []
        for j in [top, *self.around(top)]:
            chain: int | None = j
            while chain is not None:
                turns += [self.turn[chain]] if self.turn[chain] not in turns else []
                chain = self.below[chain]
        apart = [t for t in turns if not together(self.records[top], self.records[order[t]])]
        first_list = apart if draw.randint(0, 100) < 30 and apart else turns
        first = first_list[draw.randint(0, len(first_list) - 1)]
        second = turns[draw.randint(0, len(turns) - 2)]
        second = turns[-1] if second == first else second
        order[first], order[second] = order[second], order[first]
        if stuck > 50:
            for t in apart:
                turns += [u for u in dict.fromkeys(self.turn[j] for j in self.around(order[t])) if u not in turns]
            first, second = turns[draw.randint(0, len(turns) - 1)], turns[draw.randint(0, len(turns) - 1)]
            order[first], order[second] = order[second], order[first]


def tflm_greedy(rows: Sequence[tuple[int, int, int]], fixed: Sequence[int]) -> list[int]:
    """TFLM's greedy planner on (size, first scope, last scope), both included; -1 in `fixed`: its choice."""
    offsets = list(fixed)
    placed = [i for i, offset in enumerate(offsets) if offset != -1]
    free = [i for i, offset in enumerate(offsets) if offset == -1]
    for i in sorted(free, key=lambda i: (-rows[i][0], -i)):
        alive = [j for j in placed if rows[i][1] <= rows[j][2] and rows[j][1] <= rows[i][2]]
        offsets[i] = 0
        for j in sorted(alive, key=lambda j: offsets[j]):
            if offsets[j] - offsets[i] >= rows[i][0]:
                break
            offsets[i] = max(offsets[i], offsets[j] + rows[j][0])
        placed.append(i)
    return offsets

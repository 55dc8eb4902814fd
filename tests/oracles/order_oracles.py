"""Slow twins of the scheduling core: live bytes, least peaks and flow bounds straight from the definitions."""

from __future__ import annotations

import itertools
import random
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from modelplan.primitives import _core

FAR = 1 << 60


@dataclass
class OrderCase:
    """A scheduling instance as plain lists; classes and ops by index, credits as (op, from, to, bytes)."""

    ops: int
    sizes: list[int] = field(default_factory=list)
    writers: list[list[int]] = field(default_factory=list)
    readers: list[list[int]] = field(default_factory=list)
    from_start: list[bool] = field(default_factory=list)
    to_end: list[bool] = field(default_factory=list)
    scratch: list[int] = field(default_factory=list)
    edges: list[tuple[int, int]] = field(default_factory=list)
    credits: list[tuple[int, int, int, int]] = field(default_factory=list)

    def add_class(
        self, size: int, writers: Sequence[int], readers: Sequence[int], *, start: bool = False, end: bool = False
    ) -> int:
        self.sizes.append(size)
        self.writers.append(sorted(set(writers)))
        self.readers.append(sorted(set(readers)))
        self.from_start.append(start)
        self.to_end.append(end)
        return len(self.sizes) - 1

    @cached_property
    def before(self) -> list[set[int]]:
        """Direct predecessors of each op."""
        before: list[set[int]] = [set() for _ in range(self.ops)]
        for a, b in self.edges:
            before[b].add(a)
        for writers, readers in zip(self.writers, self.readers, strict=True):
            if len(writers) == 1:
                for r in readers:
                    before[r].add(writers[0])
        return before

    def core(self) -> _core.ScheduleInstance:
        return _core.schedule_instance(
            self.ops,
            column(self.sizes),
            *flat(self.writers),
            *flat(self.readers),
            column(self.from_start),
            column(self.to_end),
            column(self.scratch or [0] * self.ops),
            table(self.edges, 2),
            table(self.credits, 4),
        )


def column(values: Sequence[int]) -> np.ndarray:
    return np.array(values, dtype=np.int64)


def table(rows: Sequence[Sequence[int]], width: int) -> np.ndarray:
    return np.array(rows, dtype=np.int64).reshape(-1, width)


def flat(rows: Sequence[Sequence[int]]) -> tuple[np.ndarray, np.ndarray]:
    ptr = np.concatenate([[0], np.cumsum([len(r) for r in rows], dtype=np.int64)]).astype(np.int64)
    return ptr, column([x for row in rows for x in row])


def alive(case: OrderCase, c: int, done: frozenset[int]) -> bool:
    written = case.from_start[c] or any(w in done for w in case.writers[c])
    return bool(written and (case.to_end[c] or any(r not in done for r in case.readers[c])))


def live_bytes(case: OrderCase, done: frozenset[int]) -> int:
    return sum(case.sizes[c] for c in range(len(case.sizes)) if alive(case, c, done))


def most_saved(case: OrderCase, op: int, done: frozenset[int]) -> int:
    """The best set of overwrites, each class taken once, among the classes that die at `op`."""

    def usable(x: int, y: int) -> bool:
        dies = not case.to_end[x] and all(r in done for r in case.readers[x] if r != op)
        return dies and not case.from_start[y] and not any(w in done for w in case.writers[y])

    open_ = [(x, y, b) for v, x, y, b in case.credits if v == op and usable(x, y)]

    def best(rest: list[tuple[int, int, int]], used: frozenset[tuple[str, int]]) -> int:
        if not rest:
            return 0
        (x, y, b), *others = rest
        skip = best(others, used)
        if ("from", x) in used or ("to", y) in used:
            return skip
        return max(skip, b + best(others, used | {("from", x), ("to", y)}))

    return best(open_, frozenset())


def transient(case: OrderCase, op: int, done: frozenset[int]) -> int:
    """Bytes in use while `op` runs after `done`."""
    new = sum(
        case.sizes[c]
        for c in range(len(case.sizes))
        if op in case.writers[c] and not case.from_start[c] and not any(w in done for w in case.writers[c])
    )
    scratch = case.scratch[op] if case.scratch else 0
    return live_bytes(case, done) + new + scratch - most_saved(case, op, done)


def sets_closed_under_predecessors(case: OrderCase) -> list[frozenset[int]]:
    """All of them, smaller ones first."""
    found = {frozenset[int]()}
    layer = found
    while layer:
        layer = {s | {v} for s in layer for v in range(case.ops) if v not in s and case.before[v] <= s}
        found |= layer
    return sorted(found, key=len)


def least_peak(case: OrderCase) -> int:
    """Plain dynamic programming over the sets closed under predecessors."""
    best = {frozenset[int](): live_bytes(case, frozenset())}
    for s in sets_closed_under_predecessors(case):
        for v in range(case.ops):
            if v not in s and case.before[v] <= s:
                reached = max(best[s], transient(case, v, s))
                best[s | {v}] = min(best.get(s | {v}, FAR), reached)
    return best[frozenset(range(case.ops))]


def least_transient(case: OrderCase, op: int) -> int:
    """The least bytes in use while `op` runs, over every set that may precede it."""
    sets = sets_closed_under_predecessors(case)
    return min(transient(case, op, s) for s in sets if op not in s and case.before[op] <= s)


def peak_of(case: OrderCase, order: Sequence[int]) -> int:
    """The highest transient; fails on an order that is not one."""
    done = frozenset[int]()
    peak = 0
    for op in order:
        assert op not in done
        assert case.before[op] <= done
        peak = max(peak, transient(case, op, done))
        done |= {op}
    assert len(done) == case.ops
    return peak


def random_case(seed: int) -> OrderCase:
    """9 to 14 ops with fan-out, in-place credits, scratch, dead results, several results and shared classes."""
    rng = random.Random(seed)
    n = rng.randint(9, 14)
    case = OrderCase(n, scratch=[rng.choice([0, 0, 0, rng.randint(1, 8)]) for _ in range(n)])
    sizes = rng.choice([(1, 1), (1, 3), (1, 20)])
    for _ in range(rng.randint(0, 2)):
        takers = rng.sample(range(n), rng.randint(1, 3))
        case.add_class(rng.randint(*sizes), [], takers, start=True, end=rng.random() < 0.3)
    for op in range(n):
        for _ in range(rng.choice([1, 1, 1, 2])):
            case.add_class(rng.randint(*sizes), [op], _takers(op, n, rng), end=rng.random() < 0.15)
    _share_some(case, rng)
    _add_credits(case, rng)
    for _ in range(rng.randint(0, 2)):
        first, second = sorted(rng.sample(range(n), 2))
        case.edges.append((first, second))
    return case


def _takers(op: int, n: int, rng: random.Random) -> list[int]:
    later = range(op + 1, n) if rng.random() < 0.3 else range(op + 1, min(n, op + 5))
    return rng.sample(later, min(len(later), rng.choice([0, 1, 1, 2, 2, 3])))


def _add_credits(case: OrderCase, rng: random.Random) -> None:
    for x, y in itertools.product(range(len(case.sizes)), repeat=2):
        for op in set(case.readers[x]) & set(case.writers[y]):
            if rng.random() < 0.5:
                case.credits.append((op, x, y, min(case.sizes[x], case.sizes[y])))


def _share_some(case: OrderCase, rng: random.Random) -> None:
    """Lets some joins be made of slices: one class written by several ops and read by the join and its readers."""
    for join in range(case.ops):
        inputs = [c for c, r in enumerate(case.readers) if join in r and len(case.writers[c]) == 1]
        outputs = [c for c, w in enumerate(case.writers) if w == [join]]
        inputs = [c for c in inputs if not case.to_end[c] and not case.from_start[c]]
        if len(inputs) < 2 or not outputs or rng.random() < 0.6:
            continue
        out = outputs[0]
        writers = {case.writers[c][0] for c in inputs}
        readers = {r for c in [*inputs, out] for r in case.readers[c]} | {join}
        if len(writers) < 2 or readers & writers:
            continue
        case.edges += [(case.writers[c][0], r) for c in inputs for r in case.readers[c]]
        case.edges += [(join, r) for r in case.readers[out]]
        for c in inputs:
            case.writers[c], case.readers[c], case.sizes[c] = [], [], 0
        case.writers[out], case.readers[out] = sorted(writers), sorted(readers)
        case.sizes[out] *= 2


def wide_case(n: int) -> OrderCase:
    """Unstructured wiring that takes more than a moment."""
    rng = random.Random(n)
    case = OrderCase(3 * n)
    for op in range(3 * n):
        later = range(op + 1, 3 * n)
        case.add_class(rng.randint(1, 60), [op], rng.sample(later, min(len(later), rng.choice([1, 2, 2, 3]))))
    return case


def random_tree(seed: int) -> OrderCase:
    """An in-tree: each op's one result is read by exactly one later op."""
    rng = random.Random(seed)
    n = rng.randint(5, 13)
    case = OrderCase(n, scratch=[rng.choice([0, 0, rng.randint(1, 9)]) for _ in range(n)])
    for op in range(n):
        readers = [rng.randint(op + 1, min(n - 1, op + 4))] if op < n - 1 else []
        case.add_class(rng.randint(1, 20), [op], readers, end=op == n - 1)
    return case

"""Synthetic placement problems by family, size and seed, for benchmarks and tests.

`python benchmarks/problem_families.py NAME N SEED > problem.csv` writes one as id,lower,upper,size. Perfect packings
(tiling, pinwheel, mix) fill a rectangle of CAPACITY bytes, so their load is their optimum.
"""

from __future__ import annotations

import random
import sys
from collections.abc import Callable

import numpy as np

from modelplan import Problem

CAPACITY = 1 << 20
Row = tuple[int, int, int]  # start, end, size


def problem(rows: list[Row] | np.ndarray) -> Problem:
    table = np.asarray(rows, dtype=np.int64).reshape(-1, 3)
    names = tuple(map(str, range(len(table))))
    start, end, size = (np.ascontiguousarray(table[:, k]) for k in range(3))
    return Problem(names=names, size=size, start=start, end=end)


# --- perfect packings: rectangles (start, end, low, high) cut up until there are n of them -------------------------


def _cut_in_two(piece: tuple[int, ...], draw: random.Random) -> list[tuple[int, ...]]:
    """One straight cut, across the longer side more often than not."""
    a, b, low, high = piece
    wide = draw.random() < (b - a) / (b - a + high - low)
    if (wide and b - a > 1) or high - low < 2:
        at = draw.randint(a + 1, b - 1)
        return [(a, at, low, high), (at, b, low, high)]
    at = draw.randint(low + 1, high - 1)
    return [(a, b, low, at), (a, b, at, high)]


def _cut_in_five(piece: tuple[int, ...], draw: random.Random) -> list[tuple[int, ...]]:
    """A pinwheel: four arms around a core, which no straight cut takes apart."""
    a, b, low, high = piece
    x, y = sorted(draw.sample(range(a + 1, b), 2))
    u, v = sorted(draw.sample(range(low + 1, high), 2))
    return [(a, y, low, u), (y, b, low, v), (x, b, v, high), (a, x, u, high), (x, y, u, v)]


def _room_for_five(piece: tuple[int, ...]) -> bool:
    return piece[1] - piece[0] > 4 and piece[3] - piece[2] > 4


def _area(piece: tuple[int, ...]) -> int:
    return (piece[1] - piece[0]) * (piece[3] - piece[2])


def _cut(n: int, seed: int, choose: Callable[[random.Random], bool]) -> Problem:
    """Cuts the largest pieces first; `choose` says whether the next one becomes a pinwheel."""
    import heapq

    draw = random.Random(seed)
    whole = (0, CAPACITY, 0, CAPACITY)
    heap: list[tuple[float, int, tuple[int, ...]]] = [(-_area(whole), 0, whole)]
    count = 0
    while len(heap) < n:
        _, _, piece = heapq.heappop(heap)
        five = n - len(heap) >= 5 and choose(draw) and _room_for_five(piece)
        for part in _cut_in_five(piece, draw) if five else _cut_in_two(piece, draw):
            count += 1
            heapq.heappush(heap, (-_area(part) * draw.uniform(0.5, 1), count, part))
    rows = [(a, b, high - low) for _, _, (a, b, low, high) in heap]
    draw.shuffle(rows)
    return problem(rows)


def tiling(n: int, seed: int) -> Problem:
    """Guillotine cuts of a full rectangle."""
    return _cut(n, seed, lambda _: False)


def pinwheel(n: int, seed: int) -> Problem:
    """Recursive five-way cuts without a straight line through: n = 1 mod 4."""
    return _cut(n, seed, lambda _: True)


def mix(n: int, seed: int) -> Problem:
    """Both kinds of cuts."""
    return _cut(n, seed, lambda draw: draw.random() < 0.5)


# --- sizes and lifetimes drawn at random -----------------------------------------------------------------------------


def _drawn(n: int, seed: int, steps: int, longest: int, sizes: Callable[[np.random.Generator], np.ndarray]) -> Problem:
    draw = np.random.default_rng(seed)
    start = draw.integers(0, steps, n)
    end = start + draw.integers(1, longest + 1, n)
    return problem(np.stack([start, end, sizes(draw).astype(np.int64)], axis=1))


def _log_uniform(n: int, low: int, high: int) -> Callable[[np.random.Generator], np.ndarray]:
    return lambda draw: np.exp(draw.uniform(np.log(low), np.log(high), n))


def skew_bimodal(n: int, seed: int) -> Problem:
    """Nineteen small buffers to one large."""

    def sizes(draw: np.random.Generator) -> np.ndarray:
        large = draw.random(n) < 0.05
        return np.where(large, draw.integers(900_000, CAPACITY, n), draw.integers(1024, 32_768, n))

    return _drawn(n, seed, n // 2, 64, sizes)


def skew_zipf(n: int, seed: int) -> Problem:
    """Sizes by a power law."""
    return _drawn(n, seed, n // 2, 64, lambda draw: np.minimum(1024 * draw.pareto(1.1, n) + 1024, CAPACITY))


def skew_log_uniform(n: int, seed: int) -> Problem:
    """Sizes spread evenly over ten octaves."""
    return _drawn(n, seed, n // 2, 64, _log_uniform(n, 1024, CAPACITY))


def skew_dominant(n: int, seed: int) -> Problem:
    """One buffer nearly as large as all the others together."""

    def sizes(draw: np.random.Generator) -> np.ndarray:
        all_equal = np.full(n, 1024)
        all_equal[draw.integers(n)] = 943_718
        return all_equal

    return _drawn(n, seed, n // 2, 64, sizes)


def rand_short(n: int, seed: int) -> Problem:
    """About a hundred alive at once."""
    return _drawn(n, seed, n, 200, _log_uniform(n, 64, CAPACITY))


def rand_sparse(n: int, seed: int) -> Problem:
    """About a dozen alive at once, sizes in multiples of 64."""
    return _drawn(n, seed, 4 * n, 96, lambda draw: _log_uniform(n, 64, 1024)(draw).astype(np.int64) * 64)


def rand_unif(n: int, seed: int) -> Problem:
    """Start and end anywhere: a third of all buffers are alive at once."""
    draw = np.random.default_rng(seed)
    ends = np.sort(draw.integers(0, 2 * n, (n, 2)), axis=1)
    ends[:, 1] += ends[:, 0] == ends[:, 1]
    return problem(np.column_stack([ends, draw.integers(1, CAPACITY, n)]))


def brimful(n: int, seed: int) -> Problem:
    """At most `n` buffers that fill nearly every step to the same few bytes: the optimum is often above the load."""
    draw = random.Random(seed)
    while True:
        room = [draw.choice((6, 12, 16, 24))] * draw.randint(n - n // 4, n + n // 2)
        rows: list[Row] = []
        whole = sum(room)
        while any(room) and len(rows) < n:
            a = draw.choice([i for i, free in enumerate(room) if free])
            b = a + 1
            while b < len(room) and room[b] and draw.random() < 0.6:
                b += 1
            while a > 0 and room[a - 1] and draw.random() < 0.6:
                a -= 1
            most = min(room[a:b])
            size = most if len(rows) > n - 3 else draw.randint(1, most)
            room[a:b] = [free - size for free in room[a:b]]
            rows.append((a, b, size))
        if 16 * sum(room) <= whole:
            return problem(rows)


# --- as a network makes them ------------------------------------------------------------------------------------


class _Tape:
    """Ops in order, each writing buffers that die when their last reader has run."""

    def __init__(self, seed: int) -> None:
        self.draw = random.Random(seed)
        self.rows: list[list[int]] = []
        self.now = 0

    def write(self, size: int) -> int:
        self.rows.append([self.now, self.now + 1, max(size // 64, 1) * 64])
        return len(self.rows) - 1

    def op(self, reads: list[int], size: int) -> int:
        self.now += 1
        for i in reads:
            self.rows[i][1] = self.now + 1
        return self.write(size)

    def problem(self, n: int) -> Problem:
        return problem([(a, b, z) for a, b, z in self.rows[:n]])


def nn_unet(n: int, seed: int) -> Problem:
    """Encoders and decoders with skips across, one network after another."""
    tape = _Tape(seed)
    x = tape.write(1 << 18)
    while len(tape.rows) < n:
        depth, width = tape.draw.randint(3, 6), tape.draw.choice((8, 12, 16, 24, 32))
        skips = []
        for level in range(depth):
            size = (width << 14) >> level
            for _ in range(tape.draw.randint(1, 3)):
                x = tape.op([x], size)
            skips.append((x, size))
            x = tape.op([x], size // 4)
        for skip, size in reversed(skips):
            x = tape.op([x], size)
            x = tape.op([x, skip], 2 * size)
            for _ in range(tape.draw.randint(1, 2)):
                x = tape.op([x], size)
    return tape.problem(n)


def nn_dense(n: int, seed: int) -> Problem:
    """Dense blocks: every op may read many earlier ones."""
    tape = _Tape(seed)
    recent = [tape.write(1 << 16)]
    while len(tape.rows) < n:
        reads = {recent[-1]} | {i for i in recent[:-1] if tape.draw.random() < 0.15}
        usual = tape.draw.randint(2048, 1 << 18)
        large = min(int(1472 * 2 ** tape.draw.expovariate(0.2)), 6 << 20)
        recent.append(tape.op(sorted(reads), large if tape.draw.random() < 0.05 else usual))
        if len(recent) > tape.draw.randint(16, 64):
            recent = recent[-4:]
    return tape.problem(n)


def nn_multi(n: int, seed: int) -> Problem:
    """Inception-like cells: branches that run one after the other, then join."""
    tape = _Tape(seed)
    x = tape.write(1 << 18)
    sizes = (4096, 6144, 8192, 20480, 32768, 49152, 98304)
    while len(tape.rows) < n:
        ends = []
        for _ in range(tape.draw.randint(2, 5)):
            y = x
            for _ in range(tape.draw.randint(1, 4)):
                y = tape.op([y], tape.draw.choice(sizes))
            ends.append(y)
        x = tape.op(ends, tape.draw.choice(sizes))
    return tape.problem(n)


def nn_train(n: int, seed: int) -> Problem:
    """A forward pass whose activations are kept for the backward pass, in reverse."""
    tape = _Tape(seed)
    saved, x = [], tape.write(1 << 18)
    while len(tape.rows) < n // 2:
        size = 64 << tape.draw.randint(0, 13)
        x = tape.op([tape.op([x], tape.draw.randint(1, 400) * 64)], size)
        saved.append((x, size))
    for activation, size in reversed(saved):
        x = tape.op([x, activation], size)
        tape.op([x, activation], tape.draw.randint(1, 400) * 64)
    return tape.problem(n)


FAMILIES: dict[str, Callable[[int, int], Problem]] = {
    family.__name__: family
    for family in (
        tiling, pinwheel, mix, skew_bimodal, skew_zipf, skew_log_uniform, skew_dominant, rand_short, rand_sparse,
        rand_unif, brimful, nn_unet, nn_dense, nn_multi, nn_train,
    )
}  # fmt: skip


def main(name: str, n: str, seed: str = "0") -> None:
    p = FAMILIES[name](int(n), int(seed))
    np.savetxt(
        sys.stdout,
        np.column_stack([np.arange(len(p)), p.start, p.end, p.size]),
        "%d",
        ",",
        header="id,lower,upper,size",
        comments="",
    )


if __name__ == "__main__":
    main(*sys.argv[1:])

"""Random questions of several memories that are too small, and a slow twin of their exact answer."""

from __future__ import annotations

import random
from collections.abc import Iterator
from itertools import combinations, product

import numpy as np

from modelplan.answers.region_layout import Access, RegionProblem
from modelplan.model import IntArray, Problem
from modelplan.targets.device import Dma, Region

HOMELESS = -1


def region_problem(seed: int, buffers: int = 7, steps: int = 8) -> RegionProblem:
    """Activations, inputs, weights in flash and state in PSRAM, over a small SRAM and two slower memories."""
    rng = random.Random(seed)
    last = rng.randint(2, steps)
    slow = Region(
        "psram",
        10_000,
        kind="psram",
        read_bandwidth=rng.choice([80, 100]),
        write_bandwidth=rng.choice([40, 100]),
        latency_ns=rng.choice([0.0, 1e6]),
    )
    regions = (
        Region("sram", rng.randint(20, 60), read_bandwidth=1000, write_bandwidth=1000),
        slow,
        Region("flash", 10_000, kind="nvm", read_bandwidth=50),
    )
    rows, accesses, allowed, home = [], [], [], []
    for buffer in range(rng.randint(2, buffers)):
        size, weights = rng.randint(1, 20), rng.random() < 0.3
        start = 0 if weights else rng.randrange(last)
        end = last if weights else rng.randint(start + 1, last)
        rows.append((size, start, end))
        for number, step in enumerate(sorted(rng.sample(range(start, end), rng.randint(1, min(4, end - start))))):
            accesses.append(
                Access(step, buffer, *_amounts(rng, size, first=number == 0 and step == start, weights=weights))
            )
        kept = not weights and rng.random() < 0.15
        home.append(2 if weights else 1 if kept else HOMELESS)
        allowed.append(rng.choice([(0,), (0, 2), (0, 1, 2)] if weights else [(0,), (0, 1), (0, 1)]))
    size, start, end = np.array(rows, dtype=np.int64).T
    return RegionProblem(
        Problem(tuple(f"b{i}" for i in range(len(rows))), size, start, end),
        regions,
        tuple(sorted(accesses, key=lambda access: access.step)),
        tuple(allowed),
        tuple(home),
        tuple(rng.random() / 10 for _ in range(last)),
        rng.choice([Dma(), Dma(1, 1), Dma(1, 2, 500, 1e6), Dma(2, 4)]),
        frozenset({1}) if rng.random() < 0.2 else frozenset(),
    )


def _amounts(rng: random.Random, size: int, *, first: bool, weights: bool) -> tuple[int, int]:
    """Bytes read and written by one access."""
    if weights:
        return size * rng.randint(1, 3), 0
    if first and rng.random() < 0.8:
        return 0, size
    return (size, size) if rng.random() < 0.2 else (size * rng.randint(1, 2), 0)


def least_cost(problem: RegionProblem) -> float | None:
    """The least seconds of accesses and copies by trying every set of places at every step; None: nothing fits.

    Contents are somewhere in each step of their lifetimes, copies happen between steps, sizes fit at each step.
    """
    choices = [sorted(_ways(problem, buffer), key=lambda way: way[0]) for buffer in range(len(problem.problem))]
    room = [region.size for region in problem.regions]
    best: list[float] = [float("inf")]

    def search(buffer: int, cost: float, load: IntArray) -> None:
        if buffer == len(choices):
            best[0] = min(best[0], cost)
            return
        least = sum(ways[0][0] for ways in choices[buffer + 1 :] if ways)
        for own, used in choices[buffer]:
            if cost + own + least >= best[0]:
                return
            if (load + used <= np.array(room)[:, None]).all():
                search(buffer + 1, cost + own, load + used)

    search(0, 0.0, np.zeros((len(room), len(problem.seconds)), dtype=np.int64))
    return None if best[0] == float("inf") else best[0]


class _Buffer:
    """One buffer of a problem, its uses at each step, and the places that may hold it."""

    def __init__(self, problem: RegionProblem, buffer: int) -> None:
        asked = problem.problem
        self.problem, self.size = problem, int(asked.size[buffer])
        self.start, self.end = int(asked.start[buffer]), int(asked.end[buffer])
        self.home, self.allowed = problem.home[buffer], problem.allowed[buffer]
        self.uses = dict.fromkeys(range(self.start, self.end), (0, 0))
        for a in problem.accesses:
            if a.buffer == buffer:
                read, written = self.uses[a.step]
                self.uses[a.step] = read + a.read, written + a.written
        self.changed = any(written for _, written in self.uses.values())
        self.fixed = self.home >= 0 and not self.changed
        places = [r for r in self.allowed if r != self.home] + ([HOMELESS] if self.home >= 0 else [])
        sets = [frozenset(c) for n in range(1, len(places) + 1) for c in combinations(places, n)]
        self.sets = [s for s in sets if not self.fixed or HOMELESS in s]

    def region(self, place: int) -> Region:
        return self.problem.regions[self.home if place < 0 else place]

    def copied(self, sources: set[int], target: int) -> float:
        """The seconds of the quickest copy to a place."""
        engine, found = self.problem.dma, []
        for source in sources:
            read, write = self.region(source).seconds(self.size, 0), self.region(target).seconds(0, self.size)
            own = self.size / engine.bandwidth if engine.bandwidth else 0.0
            found.append(engine.latency_ns / 1e9 + max(read, write, own) if engine.channels else read + write)
        return min(found)

    def used(self, step: int, there: frozenset[int]) -> float | None:
        """The seconds of the uses at a step; None where these places cannot serve them."""
        read, written = self.uses[step]
        serving = [p for p in there if (self.home if p < 0 else p) in self.allowed]
        serving = [p for p in serving if (self.home if p < 0 else p) not in self.problem.copied_only]
        if written:
            serving = [p for p in serving if len(there) == 1 and p >= 0 and self.region(p).kind != "nvm"]
        if not (read or written):
            return 0.0
        return min((self.region(p).seconds(read, written) for p in serving), default=None)

    def cost(self, way: tuple[frozenset[int], ...]) -> float | None:
        """The seconds of one way to be somewhere at each step; None where it cannot be."""
        before = {HOMELESS} if self.home >= 0 else set(way[0])
        if self.home < 0 and len(way[0]) > 1:
            return None
        if self.fixed and (self.start, self.end) == (0, len(self.problem.seconds)):
            before |= set(frozenset.intersection(*way))
        total = 0.0
        for step, there in zip(range(self.start, self.end), way, strict=True):
            own = self.used(step, there)
            if own is None:
                return None
            total += own + sum(self.copied(before, target) for target in there - before)
            before = set(there)
        back = self.home >= 0 and self.changed and HOMELESS not in before
        return total + (self.copied(before, HOMELESS) if back else 0.0)


def _ways(problem: RegionProblem, buffer: int) -> Iterator[tuple[float, IntArray]]:
    """Cost and bytes in each region at each step, for every way to hold one buffer."""
    one = _Buffer(problem, buffer)
    for way in product(one.sets, repeat=one.end - one.start):
        cost = one.cost(way)
        if cost is not None:
            held = np.zeros((len(problem.regions), len(problem.seconds)), dtype=np.int64)
            for step, there in zip(range(one.start, one.end), way, strict=True):
                held[[place for place in there if place >= 0], step] = one.size
            yield cost, held

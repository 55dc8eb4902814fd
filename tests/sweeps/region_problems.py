"""Random problems of several memories, the slow twin of the choice (every combination), the fast choice by HiGHS."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from random import Random
from typing import Any

import numpy as np

from modelplan.answers.region_layout import Access, RegionProblem
from modelplan.model import Buffer, Problem
from modelplan.planning.memories import exact_choice
from modelplan.planning.memories.choice_tables import Tables
from modelplan.planning.memories.pricing import priced_choice
from modelplan.targets.device import Region


def random_problem(random: Random, buffers: int, steps: int, regions: int, *, tight: float = 0.5) -> RegionProblem:
    """Buffers with accesses, in regions of which the last holds all; the others a share `tight` of the live bytes."""
    unit, weights = random.choice((1, 4, 16)), random.random() < 0.5
    rows = []
    for number in range(buffers):
        constant = weights and random.random() < 0.4
        start = 0 if constant else random.randrange(steps)
        end = steps if constant else min(steps, start + 1 + random.randrange(max(steps // 3, 1)))
        size = random.choice((0, 1, 3, 16, 40, 100, 900)) + random.randrange(1, 50)
        rows.append((Buffer(f"b{number}", size, start, end, unit), constant))
    live = max(sum(row.size for row, _ in rows if row.start <= s < row.end) for s in range(steps))
    total = sum(row.size + unit + 64 for row, _ in rows)
    made = [
        Region(
            f"r{r}",
            max(int(live * tight * random.random()), 8),
            random.choice((None, 0x1000 * (r + 1) * 100, 0x20000004 + r * 0x1000000)),
            bandwidth=random.choice((None, 10**9, 10**8)) if r else None,
            latency_ns=random.choice((None, 100.0)),
            reserved=random.choice((0, 5)),
            reserved_at=random.choice(("start", "end")),
            alignment=random.choice((1, 1, 32)),
        )
        for r in range(regions - 1)
    ]
    flash = weights and random.random() < 0.5
    made.append(Region("last", total * 2 + 64 * len(rows), None, read_bandwidth=4 * 10**7, write_bandwidth=2 * 10**7))
    if flash:
        made.append(Region("flash", total * 2, None, "nvm", read_bandwidth=random.choice((5 * 10**7, 10**8))))
    accesses = []
    for number, (row, constant) in enumerate(rows):
        if not constant:
            accesses.append(Access(row.start, number, 0, row.size))
        steps_of = sorted(random.sample(range(row.start, row.end), min(2, row.end - row.start)))
        accesses += [Access(step, number, row.size * random.choice((1, 1, 3, 9)), 0) for step in steps_of]
    writable = tuple(range(regions))
    allowed = tuple((*writable, regions) if constant and flash else writable for _, constant in rows)
    homes = tuple(regions if constant and flash else -1 for _, constant in rows)
    facts: dict[str, Any] = {}
    if buffers > 1 and random.random() < 0.3:
        facts["conflicts"] = np.array([random.sample(range(buffers), 2)])
    problem = Problem.of([row for row, _ in rows], **facts)
    return RegionProblem(
        problem, tuple(made), tuple(sorted(accesses, key=lambda a: a.step)), allowed, homes, (0.0,) * steps
    )


def swept_problem(random: Random, buffers: Sequence[int]) -> RegionProblem:
    """A random problem of random dimensions, with one of the given numbers of buffers."""
    sizes = random.choice(buffers), random.choice((2, 5, 9)), random.choice((1, 2, 3, 4))
    return random_problem(random, *sizes, tight=random.choice((0.3, 0.8, 1.2)))


def cheapest(tables: Tables) -> float:
    """The least cost of all combinations that fit, infinite where none does; for a few buffers only."""
    count, regions = tables.cost.shape
    found = float("inf")
    for choice in product(range(regions), repeat=count):
        chosen = np.array(choice, dtype=np.int64)
        cost = tables.cost_of(chosen)
        if cost < found and tables.fits(chosen):
            found = cost
    return found


@dataclass(frozen=True, slots=True)
class Gap:
    """The fast choice beside a bound: `over` is by which part of it the choice costs more, infinite where it is 0.

    `proved_by`: "LP", "MILP" (solved) or "limit" (HiGHS stopped; the bound is what it had proved). `spent` are the CPU
    seconds of the fast choice, `better` by which part HiGHS's own choice is cheaper, 0 where it is not.
    """

    over: float
    proved_by: str
    spent: float
    better: float = 0.0


def choice_gap(tables: Tables, *, enough: float = 0.02, seconds: float = 60.0) -> Gap:
    """The gap of the fast choice to the linear relaxation, or to HiGHS where that gap is above `enough`."""
    begun = time.process_time()
    choice, _ = priced_choice(tables)
    spent = time.process_time() - begun
    linear = exact_choice.linear_choice(tables)
    assert linear is not None
    cost = float("inf") if choice is None else tables.cost_of(choice)
    over = _over(tables, cost, linear.bound)
    if over <= enough:
        return Gap(over, "LP", spent)
    exact = exact_choice.exact_choice(tables, seconds=seconds)
    over = 0.0 if choice is None and exact.infeasible else _over(tables, cost, exact.bound)
    theirs = cost if exact.choice is None else tables.cost_of(exact.choice)
    return Gap(over, "MILP" if exact.optimal else "limit", spent, max(_over(tables, cost, theirs), 0.0))


def _over(tables: Tables, cost: float, bound: float) -> float:
    # HiGHS holds its answers to 1e-7 of the largest cost.
    if cost == bound or cost - bound <= 2e-7 * float(tables.cost[np.isfinite(tables.cost)].max(initial=0.0)):
        return 0.0
    return (cost - bound) / bound if bound else float("inf")

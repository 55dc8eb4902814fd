"""What every row of the table of allocators has to show on a problem, and 500 random problems to ask it on."""

from __future__ import annotations

import functools
import random
from collections.abc import Callable
from dataclasses import replace

from modelplan import Budget, Buffer, Placement, Problem, RequestError, height, load_bound, place

SHORT = Budget(steps=300)

#: Buffers up to which a search gets all these steps; beyond, they shrink with the square.
FULL_BUDGET = 300


@functools.cache
def random_problems() -> tuple[Problem, ...]:
    """500 problems of up to 24 buffers: few steps or many, equal sizes or not, aligned or not."""
    draw = random.Random(4)
    return tuple(_random_problem(draw, i) for i in range(500))


def _random_problem(draw: random.Random, i: int) -> Problem:
    n, horizon = draw.randint(1, 24), draw.choice([3, 8, 30, 1000])
    largest, step = draw.choice([(1, 1), (9, 1), (64, 8), (5000, 64), (10**9, 1)]), draw.choice([1, 1, 4, 16])
    buffers = []
    for b in range(n):
        start = draw.randrange(horizon)
        size = 7 if i % 10 == 0 else draw.randint(0, largest[0] // largest[1]) * largest[1]
        end = start + draw.randint(1, max(1, horizon // draw.choice([1, 3, 10])))
        buffers.append(Buffer(f"b{b}", size, start, end, step))
    return Problem.of(buffers)


def short(problem: Problem) -> Budget:
    """Steps that are few in time, too."""
    assert SHORT.steps is not None
    return Budget(steps=max(1, SHORT.steps * FULL_BUDGET**2 // max(len(problem), FULL_BUDGET) ** 2))


def answer(problem: Problem, name: str, budget: Budget | None = None) -> Placement | None:
    """The refereed placement within the budget, or a short one; None where the allocator refuses.

    Raises:
        AssertionError: its bound is above its height, or below the load.
    """
    try:
        found = place(problem, name, budget or short(problem))
    except RequestError:
        return None
    assert load_bound(problem) <= found.lower_bound <= height(problem, found), name
    return found


def repeats(problem: Problem, name: str, found: Placement) -> bool:
    """The same question gets the same answer."""
    return answer(problem, name) == found


def scales(problem: Problem, name: str, found: Placement) -> bool:
    """Sizes and alignments times three give offsets times three, unless the larger numbers are refused."""
    scaled = replace(problem, size=problem.size * 3, alignment=problem.alignment * 3, capacity=None)
    other = answer(scaled, name)
    return other is None or (found.offsets * 3).tolist() == other.offsets.tolist()


def turns(problem: Problem, name: str, found: Placement) -> bool:
    """Time turned round gives the same height."""
    last = int(problem.end.max(initial=0))
    turned = replace(problem, start=last - problem.end, end=last - problem.start)
    other = answer(turned, name)
    return other is None or height(problem, found) == height(turned, other)


CHECKS: dict[str, Callable[[Problem, str, Placement], bool]] = {
    "the same again": repeats,
    "scaling": scales,
    "reversal": turns,
}

"""Contiguous lists against brute force on small problems, and every allocator of the table."""

from __future__ import annotations

import itertools
import random

import core_oracles
import graphs
import numpy as np
import pytest
from shares import share

from modelplan import BrokenPlanError, Budget, Placement, Problem, RequestError, check, height, place
from modelplan.planning.allocators import ALLOCATORS


def drawn(rng: random.Random, unit: int = 1) -> Problem:
    """Up to six buffers in few steps, of which some stand in one or two lists; one alignment."""
    n, step = rng.randint(2, 6), rng.choice([1, 1, 2, 4])
    start = np.array([rng.randint(0, 3) for _ in range(n)])
    end = start + [rng.randint(1, 3) for _ in range(n)]
    size = np.array([rng.randint(1, 6) for _ in range(n)]) * unit
    ids = rng.sample(range(n), n)
    cut = rng.randint(2, n)
    lists = [tuple(ids[:cut])] + ([tuple(ids[cut:])] if n - cut >= 2 and rng.random() < 0.5 else [])
    names = tuple(f"b{i}" for i in range(n))
    return Problem(names, size, start, end, np.full(n, step), contiguous=tuple(lists))


def valid(problem: Problem, offsets: list[int]) -> bool:
    """From the definition: alignment, nothing shared, and each of a list at the first address behind the one before."""
    step = problem.alignment.tolist()
    if any(at < 0 or at % s for at, s in zip(offsets, step, strict=True)):
        return False
    for row in problem.contiguous:
        for a, b in itertools.pairwise(row):
            end = offsets[a] + int(problem.size[a])
            if offsets[b] != next(at for at in range(end, end + step[b]) if at % step[b] == 0):
                return False
    return not any(
        core_oracles.clash(problem, offsets, a, b) for a, b in itertools.combinations(range(len(problem)), 2)
    )


def optimum(problem: Problem, most: int) -> int:
    """The least height up to `most`, by trying every base of every list and buffer."""
    listed = {b for row in problem.contiguous for b in row}
    units = [*problem.contiguous, *((b,) for b in range(len(problem)) if b not in listed)]
    step, best = int(problem.alignment[0]), most + 1
    for bases in itertools.product(range(0, most, step), repeat=len(units)):
        offsets = [0] * len(problem)
        for base, unit in zip(bases, units, strict=True):
            at = base
            for b in unit:
                offsets[b] = at
                at += -(-int(problem.size[b]) // step) * step
        found = core_oracles.height(problem, offsets)
        if found < best and valid(problem, offsets):
            best = found
    return best


@pytest.mark.slow
def test_the_default_allocator_and_the_exact_model_meet_brute_force() -> None:
    pytest.importorskip("ortools")
    rng, met, asked = random.Random(3), 0, 0
    while asked < share(60):
        problem = drawn(rng)
        if len(problem) - sum(len(row) - 1 for row in problem.contiguous) > 3:
            continue
        own, exact = place(problem, budget=Budget(steps=300)), place(problem, "cp-sat")
        assert valid(problem, own.offsets.tolist())
        assert valid(problem, exact.offsets.tolist())
        best = optimum(problem, height(problem, own))
        assert exact.ended == "optimal"
        assert height(problem, exact) == best == exact.lower_bound
        assert own.lower_bound <= best <= height(problem, own)
        met, asked = met + (height(problem, own) == best), asked + 1
    assert met >= 0.95 * share(60)


@pytest.mark.parametrize("unit", [1, 512])
@pytest.mark.parametrize("name", ALLOCATORS)
def test_every_allocator_honours_the_lists_or_refuses_by_name(name: str, unit: int) -> None:
    """At multiples of 512 bytes also SOMAS, whose padding leaves them as they are."""
    if name == "cp-sat":
        pytest.importorskip("ortools")
    rng, placed = random.Random(5), 0
    for _ in range(10):
        problem = drawn(rng, unit)
        try:
            placement = place(problem, name, Budget(steps=50))
        except RequestError as refusal:
            assert any(word in str(refusal) for word in (name.removesuffix("-fixed"), "interval colouring"))  # noqa: PT017
            continue
        placed += 1
        assert valid(problem, placement.offsets.tolist())
        assert placement.lower_bound <= height(problem, placement)
    assert placed == 10 or name == "interval-colouring" or (name.startswith("somas") and unit == 1)


#: What SOMAS says of a buffer of 100 bytes.
PADDED = "'somas' pads each buffer of a contiguous list to 512 bytes, but 'b0' has 100"


@pytest.mark.parametrize("name", ["somas", "somas-fixed"])
def test_somas_refuses_lists_that_it_pads_otherwise(name: str) -> None:
    problem = graphs.problem([(100, 0, 2), (512, 0, 2)], alignment=[4, 4], contiguous=((0, 1),))
    with pytest.raises(RequestError, match=PADDED):
        place(problem, name)


def test_the_referee_agrees_with_the_definition() -> None:
    rng, found = random.Random(11), {True: 0, False: 0}
    for _ in range(share(400)):
        problem = drawn(rng)
        offsets = place(problem, budget=Budget(steps=1)).offsets.copy()
        if rng.random() < 0.6:
            offsets[rng.randrange(len(problem))] += rng.choice([-4, -1, 1, 2, 4, 40])
        right = valid(problem, offsets.tolist())
        found[right] += 1
        try:
            check(problem, Placement(offsets))
        except BrokenPlanError:
            assert not right
        else:
            assert right
    assert min(found.values()) > share(400) // 8

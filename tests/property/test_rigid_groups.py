"""Packings of rigid groups against brute force on small ones, from the definitions."""

from __future__ import annotations

import itertools
import random
import tempfile
from pathlib import Path

import core_oracles
import numpy as np
import pytest
from group_packing import generated
from hypothesis import given
from hypothesis import strategies as st

from modelplan import BrokenPlanError, Budget, Placement, Problem, RequestError, check, height, place
from modelplan.formats import problem_csv
from modelplan.outputs.exchange import buffers_csv


def drawn(rng: random.Random) -> Problem:
    """Up to four units of up to three buffers in few steps, with meetings of some of them."""
    rows, groups = [], []
    for unit in range(rng.randint(1, 4)):
        alone = rng.random() < 0.3
        at = rng.randint(0, 2)
        for _ in range(1 if alone else rng.randint(1, 3)):
            size, start = rng.randint(0, 4), rng.randint(0, 3)
            rows.append((size, start, start + rng.randint(1, 3)))
            if not alone:
                groups.append((len(rows) - 1, 3 * unit, at))
            at += size + rng.randint(0, 2) - rng.randint(0, 3) * (rng.random() < 0.1)
            at = max(at, 0)
    size, start, end = np.array(rows, dtype=np.int64).T
    meetings = []
    for a, b in itertools.permutations(range(len(rows)), 2):
        if size[a] and size[b] and rng.random() < 0.15:
            least = rng.randint(-int(size[a]), int(size[b]))
            meetings.append((a, b, least, least + rng.choice([0, 0, 1, 3])))
    return Problem(
        tuple(f"b{i}" for i in range(len(rows))), size, start, end, np.array([rng.choice([1, 1, 1, 2]) for _ in rows]),
        groups=np.array(groups, dtype=np.int64).reshape(-1, 3),
        meetings=np.array(meetings, dtype=np.int64).reshape(-1, 4),
    )  # fmt: skip


RIGID = st.builds(lambda seed: drawn(random.Random(seed)), st.integers(0, 2**32))


def valid(problem: Problem, offsets: list[int]) -> bool:
    """Every pair and every group, one by one."""
    if any(at < 0 or at % step for at, step in zip(offsets, problem.alignment.tolist(), strict=True)):
        return False
    bases: dict[int, set[int]] = {}
    for b, group, delta in problem.groups.tolist():
        bases.setdefault(group, set()).add(offsets[b] - delta)
    return all(len(found) == 1 for found in bases.values()) and not any(
        core_oracles.clash(problem, offsets, a, b) and not meets(problem, offsets, a, b)
        for a, b in itertools.combinations(range(len(problem)), 2)
    )


def meets(problem: Problem, offsets: list[int], a: int, b: int) -> bool:
    return any(
        {x, y} == {a, b} and least <= offsets[x] - offsets[y] <= most for x, y, least, most in problem.meetings.tolist()
    )


def units_of(problem: Problem) -> list[tuple[str, int]]:
    """For each buffer what it moves with."""
    group = {b: g for b, g, _ in problem.groups.tolist()}
    return [("group", group[b]) if b in group else ("buffer", b) for b in range(len(problem))]


def optimum(problem: Problem, most: int) -> int | None:
    """The least height of any placement not above `most`, by trying all bases; None where there is none."""
    units = units_of(problem)
    delta = {b: d for b, _, d in problem.groups.tolist()}
    best = None
    distinct = list(dict.fromkeys(units))
    for bases in itertools.product(range(-2, most + 1), repeat=len(distinct)):
        base = dict(zip(distinct, bases, strict=True))
        offsets = [base[unit] + delta.get(b, 0) for b, unit in enumerate(units)]
        found = core_oracles.height(problem, offsets)
        if found <= most and (best is None or found < best) and valid(problem, offsets):
            best = found
    return best


@given(RIGID, st.sampled_from((60, 1500)))
def test_a_packing_is_valid_and_never_below_its_bound(problem: Problem, steps: int) -> None:
    try:
        placement = place(problem, budget=Budget(steps=steps))
    except RequestError:
        return
    assert valid(problem, placement.offsets.tolist())
    assert placement.lower_bound <= height(problem, placement)


@given(RIGID, st.integers(0, 2**32))
def test_a_packing_written_and_read_passes_the_referee_and_a_changed_one_only_where_it_is_valid(
    problem: Problem, seed: int
) -> None:
    try:
        answer = place(problem, budget=Budget(steps=60))
    except RequestError:
        return
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "packing.csv"
        path.write_text(buffers_csv.write(problem, answer))
        again, placement = problem_csv.read_solution(path)
    assert again == problem
    assert placement is not None
    check(again, placement)
    rng, changed = random.Random(seed), placement.offsets.copy()
    changed[rng.randrange(len(changed))] += rng.choice([-2, -1, 1, 2])
    try:
        check(again, Placement(changed))
    except BrokenPlanError:
        assert not valid(problem, changed.tolist())
    else:
        assert valid(problem, changed.tolist())


@given(RIGID, st.integers(0, 2**32))
def test_the_referee_agrees_with_the_definition(problem: Problem, seed: int) -> None:
    rng = random.Random(seed)
    base = {g: rng.randint(0, 6) for g in problem.groups[:, 1].tolist()}
    offsets = [rng.randint(0, 8) for _ in range(len(problem))]
    for b, group, delta in problem.groups.tolist():
        offsets[b] = base[group] + delta + (rng.random() < 0.02)
    try:
        check(problem, Placement(np.array(offsets)))
    except BrokenPlanError:
        assert not valid(problem, offsets)
    else:
        assert valid(problem, offsets)


@pytest.mark.parametrize("seed", [40, 47, 161, 454])
def test_what_is_not_proved_goes_through_each_search(seed: int) -> None:
    """The constraint search too, which takes what the complete ones leave."""
    problem = generated(random.Random(seed))
    few, many = (place(problem, budget=Budget(steps=steps)) for steps in (260, 1500))
    assert many.ended == "budget"
    assert valid(problem, many.offsets.tolist())
    assert many.lower_bound < height(problem, many) < height(problem, few)


@pytest.mark.slow
def test_small_problems_are_packed_and_proved_to_the_optimum() -> None:
    rng, placed, refused = random.Random(7), 0, 0
    while placed < 120 or not refused:
        problem = drawn(rng)
        if len(set(units_of(problem))) > 3:
            continue
        try:
            placement = place(problem, budget=Budget(steps=200))
        except RequestError:
            refused += 1
            assert optimum(problem, 12) is None
            continue
        placed += 1
        found = height(problem, placement)
        best = optimum(problem, found)
        assert best is not None
        assert placement.lower_bound == best == found
        assert placement.ended == "optimal"

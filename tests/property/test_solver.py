"""The solver against brute force, with every rule on and off; run under the sanitizers too."""

from __future__ import annotations

import itertools
import random
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import core_oracles
import graphs
import numpy as np
import pytest
import strategies
from hypothesis import given
from interrupting import interrupted
from problem_families import CAPACITY, FAMILIES
from shares import examples, share

from modelplan import Budget, Placement, Problem, Progress, RequestError, check, height, load, load_bound, place
from modelplan.primitives import _core

RULES = [*_core.SOLVER_RULES]
FEATURES = ["plain", "alignment", "pins", "overlaps", "alignment pins overlaps"]


def tight(draw: random.Random, features: str, most: int = 7) -> Problem:
    """A few buffers that are hard to fit: few steps, sizes of the same order."""
    n, steps, largest = draw.randint(2, most), draw.randint(2, 7), draw.choice([4, 12, 40])
    rows = []
    for _ in range(n):
        start = draw.randrange(steps)
        rows.append((draw.randint(1, largest), start, draw.randint(start + 1, steps)))
    alignment = [draw.choice([1, 2, 3, 16, 64]) if "alignment" in features else 1 for _ in rows]
    pin = [draw.randrange(10) * a if "pins" in features and draw.random() < 0.25 else None for a in alignment]
    overlaps = []
    if "overlaps" in features:
        for _ in range(draw.randint(1, n)):
            below, above = draw.sample(range(n), 2)
            overlaps.append((below, above, draw.randint(0, rows[below][0])))
    facts = np.array(overlaps, dtype=np.int64).reshape(-1, 3)
    return graphs.problem(rows, alignment=alignment, pin=pin, overlaps=facts)


def solve(problem: Problem, **options: object) -> tuple[np.ndarray, int, str]:
    offsets, bound, ended, _, _ = _core.solve(problem.core, **options)  # type: ignore[arg-type]
    return offsets, bound, ended


def cases(count: int, features: str, seed: int, most: int = 7) -> list[Problem]:
    """Problems whose pins leave some placement."""
    draw = random.Random(f"{features} {seed}")
    made: list[Problem] = []
    while len(made) < count:
        problem = tight(draw, features, most)
        offsets, _, ended = solve(problem)
        if len(offsets):
            made.append(problem)
        else:
            assert ended == "infeasible"
            assert not core_oracles.packs_below(problem, 1 << 20)
    return made


@pytest.mark.slow
@pytest.mark.parametrize("features", FEATURES)
def test_the_optimum_and_its_proof_equal_brute_force(features: str) -> None:
    """A height at the load bound proves itself; any other is compared with every order."""
    above = 0
    for problem in cases(share(120), features, seed=1):
        placement = place(problem)
        found = height(problem, placement)
        assert placement.ended == "optimal"
        assert placement.lower_bound == found
        if len(problem.overlaps) or found > core_oracles.load(problem):
            above += 1
            assert not core_oracles.packs_below(problem, found)
    assert above > share(120) // 6 or features == "plain"


@pytest.mark.parametrize("features", FEATURES)
def test_no_rule_changes_an_optimum(features: str) -> None:
    draw = random.Random(features)
    for problem in cases(share(40), features, seed=2):
        _, best, _ = solve(problem)
        some = [rule for rule in RULES if draw.random() < 0.5]
        for without in [*([rule] for rule in RULES), RULES, some]:
            offsets, bound, ended = solve(problem, without=without)
            assert ended == "optimal", without
            assert bound == best == height(problem, Placement(offsets)), without
            check(problem, Placement(offsets))


@pytest.mark.parametrize("features", FEATURES)
def test_a_capacity_is_decided_with_proof(features: str) -> None:
    for problem in cases(share(60), features, seed=3):
        _, best, _ = solve(problem)
        for capacity in (best - 1, best, best + 3):
            offsets, bound, ended = solve(problem, capacity=capacity, minimize=False)
            fits = height(problem, Placement(offsets)) <= capacity
            assert fits == (capacity >= best)
            assert ended in ({"fits", "optimal"} if fits else {"infeasible", "optimal"})
            assert bound <= best
            assert fits or bound > capacity


@pytest.mark.slow
@examples(60)
@given(strategies.overlapping(most=6))
def test_any_facts_and_conflicts_are_honoured(problem: Problem) -> None:
    placement = place(problem, "modelplan")
    assert core_oracles.valid(problem, placement.offsets.tolist())
    assert placement.lower_bound <= height(problem, placement)
    assert placement.lower_bound <= core_oracles.optimum(problem)


def jigsaw(draw: random.Random, most: int) -> Problem:
    """A rectangle of few steps and units cut into pieces by straight cuts and wheels, now and then one taken away."""
    pieces = [(0, draw.randint(3, 9), 0, draw.randint(3, 9))]
    while len(pieces) < most and draw.random() < 0.95:
        a, b, low, high = piece = draw.choice(pieces)
        if b - a > 2 and high - low > 2 and len(pieces) + 4 <= most and draw.random() < 0.5:
            x, y = sorted(draw.sample(range(a + 1, b), 2))
            u, v = sorted(draw.sample(range(low + 1, high), 2))
            parts = [(a, y, low, u), (y, b, low, v), (x, b, v, high), (a, x, u, high), (x, y, u, v)]
        elif b - a > 1 and draw.random() < 0.5:
            at = draw.randrange(a + 1, b)
            parts = [(a, at, low, high), (at, b, low, high)]
        elif high - low > 1:
            at = draw.randrange(low + 1, high)
            parts = [(a, b, low, at), (a, b, at, high)]
        else:
            continue
        pieces.remove(piece)
        pieces += parts
    draw.shuffle(pieces)
    rows = [(high - low, a, b) for a, b, low, high in pieces]
    return graphs.problem(rows[1:] if len(rows) > 2 and draw.random() < 0.3 else rows)


@pytest.mark.slow
def test_joins_change_no_optimum_of_a_jigsaw() -> None:
    """Sizes and steps on a coarse grid, so that much fits that does not belong together."""
    draw = random.Random(5)
    for _ in range(share(400)):
        problem = jigsaw(draw, 9)
        offsets, bound, ended = solve(problem)
        check(problem, Placement(offsets))
        assert ended == "optimal"
        assert bound == height(problem, Placement(offsets)) == solve(problem, without=["joins"])[1]
        assert bound == load_bound(problem) or not core_oracles.packs_below(problem, bound)


@pytest.mark.parametrize(("family", "n"), [("tiling", 4096), ("pinwheel", 4097), ("mix", 4096)])
@pytest.mark.parametrize("seed", range(3))
def test_perfect_packings_are_put_together(family: str, n: int, seed: int) -> None:
    problem = FAMILIES[family](n, seed)
    placement = place(problem, "modelplan", Budget(steps=2000))
    assert height(problem, placement) == CAPACITY == load_bound(problem)


def test_a_perfect_packing_needs_the_joins() -> None:
    problem = FAMILIES["tiling"](4096, 0)
    assert height(problem, Placement(solve(problem, without=["joins"], steps=2000)[0])) > CAPACITY


def test_time_reversed_and_sizes_multiplied() -> None:
    for problem in cases(40, "plain", seed=4, most=9):
        best = solve(problem)[1]
        last = int(problem.end.max())
        assert solve(replace(problem, start=last - problem.end, end=last - problem.start))[1] == best
        assert solve(replace(problem, size=problem.size * 48))[1] == best * 48


def crowd(n: int, seed: int, steps: int, longest: int) -> Problem:
    draw = np.random.default_rng(seed)
    start = draw.integers(0, steps, n)
    end = start + draw.integers(1, longest, n)
    return Problem(tuple(map(str, range(n))), draw.integers(1, 1 << 20, n), start, end)


@pytest.mark.parametrize("seed", range(3))
def test_the_answer_to_a_step_budget_does_not_depend_on_threads(seed: int) -> None:
    problem = crowd(60, seed, 25, 20)
    answers = [place(problem, "modelplan", Budget(steps=4000, seed=seed, threads=t)) for t in (1, 1, 2, 3)]
    assert answers[0] == answers[1] == answers[2] == answers[3]


@pytest.mark.slow
@pytest.mark.parametrize("count", [40, 300, 1600])
def test_a_budget_that_ends_anywhere_does_not_depend_on_threads(count: int) -> None:
    """Within the orders of first fit, the settings, the dives and the rounds; with and without a capacity."""
    for seed in range(4):
        problem = crowd(count, seed, 2 * count, count)
        bound = load_bound(problem)
        for steps, goal in itertools.product((10, 100, 400, 1_500, 6_000, 20_000), (-1, bound, bound + bound // 20)):
            alone, together = (
                _core.solve(problem.core, goal, goal == bound, steps, seed=seed, threads=threads) for threads in (1, 2)
            )
            assert list(alone[0]) == list(together[0]), (seed, steps, goal)
            assert alone[1:] == together[1:], (seed, steps, goal)


def test_calls_from_many_threads_at_once_do_not_disturb_each_other() -> None:
    problems = [crowd(120, seed, 60, 40) for seed in range(4)]
    alone = [place(problem, "modelplan", Budget(steps=3_000)) for problem in problems]
    with ThreadPoolExecutor(8) as pool:
        together = pool.map(lambda problem: place(problem, "modelplan", Budget(steps=3_000, threads=2)), problems * 4)
        assert list(together) == alone * 4


THREADS = Path("/proc/self/task")  # a folder for each


@pytest.mark.skipif(not THREADS.exists(), reason="threads are counted on Linux only")
def test_no_thread_is_left_behind() -> None:
    """A call waits for its second thread to end; the kernel may list that a little longer."""
    problem = crowd(60, 0, 25, 20)
    before = len(list(THREADS.iterdir()))
    for _ in range(50):
        place(problem, "modelplan", Budget(steps=200, threads=2))
    until = time.monotonic() + 30
    while len(list(THREADS.iterdir())) > before and time.monotonic() < until:
        time.sleep(0.01)
    assert len(list(THREADS.iterdir())) <= before


@pytest.fixture
def hard(corpus: Path) -> Problem:
    """An instance whose optimum nobody has proved."""
    problem = load(corpus / "problems" / "minimalloc" / "D.1048576.csv")
    assert isinstance(problem, Problem)
    return problem


def test_a_budget_of_steps_is_kept_and_progress_only_improves(hard: Problem) -> None:
    problem = hard
    seen: list[Progress] = []
    placement = place(problem, "modelplan", Budget(steps=3000, progress=seen.append))
    assert placement.ended == "budget"
    assert placement.steps <= 3100
    assert seen
    assert [p.height for p in seen] == sorted((p.height for p in seen), reverse=True)
    assert [p.lower_bound for p in seen] == sorted(p.lower_bound for p in seen)
    assert placement == place(problem, "modelplan", Budget(steps=3000))


def test_a_deadline_ends_the_search_and_keeps_the_best(hard: Problem) -> None:
    placement = place(hard, "modelplan", Budget(seconds=0.05))
    assert placement.ended == "deadline"
    assert load_bound(hard) <= placement.lower_bound <= height(hard, placement)


@pytest.mark.parametrize("seconds", [1e-9, 0.002, 0.01, 0.03, 0.1])
@pytest.mark.parametrize("features", ["plain", "alignment pins"])
def test_a_deadline_in_any_stage_leaves_a_sound_placement(seconds: float, features: str) -> None:
    problem = crowd(30_000, 1, 30_000, 60)
    if "pins" in features:
        pin = np.full(len(problem), -1)
        pin[::3000] = 64 * np.arange(10)
        problem = replace(problem, alignment=np.resize([16, 64], len(problem)), pin=pin)
    offsets, bound, _ = solve(problem, seconds=seconds)
    check(problem, Placement(offsets))
    assert 0 < bound <= height(problem, Placement(offsets))


def test_no_time_at_all_stacks_the_buffers() -> None:
    problem = crowd(100_000, 1, 100_000, 60)
    offsets, bound, ended = solve(problem, seconds=1e-9)
    assert ended == "deadline"
    assert bound == problem.size.max()
    assert height(problem, Placement(offsets)) == problem.size.sum()


def test_an_interruption_keeps_the_best(hard: Problem) -> None:
    placement = interrupted(lambda: place(hard, "modelplan", Budget(seconds=60)))
    assert placement.ended == "cancelled"
    assert load_bound(hard) <= placement.lower_bound <= height(hard, placement)


def test_a_search_ends_where_it_is_cancelled(hard: Problem) -> None:
    asked = list[int]()

    def cancelled() -> bool:
        asked.append(1)
        return len(asked) > 2

    placement = place(hard, budget=Budget(seconds=60, cancelled=cancelled))
    assert placement.ended == "cancelled"
    assert len(asked) < 10
    assert placement.lower_bound <= height(hard, placement)


def test_an_error_in_the_progress_callback_ends_the_call(hard: Problem) -> None:
    def refuse(progress: Progress) -> None:
        raise LookupError("enough")

    with pytest.raises(LookupError, match="enough"):
        place(hard, "modelplan", Budget(seconds=30, progress=refuse))


@pytest.mark.parametrize("n", [3000, 45_000])
def test_many_buffers_end_at_the_bound(n: int) -> None:
    placement = place(crowd(n, 1, n, 60), "modelplan")
    assert placement.ended == "optimal"


def test_many_buffers_with_alignment_and_pins() -> None:
    problem = crowd(2000, 1, 2000, 60)
    draw = np.random.default_rng(1)
    pin = np.full(2000, -1)
    pin[::400] = 64 * draw.integers(0, 1000, 5)
    problem = replace(problem, alignment=draw.choice([16, 64], 2000), pin=pin)
    assert load_bound(problem) <= place(problem, "modelplan", Budget(steps=20_000)).lower_bound


def test_pins_that_exclude_each_other_are_refused() -> None:
    problem = graphs.problem([(8, 0, 2), (8, 1, 3)], pin=[0, 4])
    with pytest.raises(RequestError, match="no placement"):
        place(problem, "modelplan")


def test_nothing_and_empty_buffers() -> None:
    assert len(place(graphs.problem([]), "modelplan").offsets) == 0
    problem = graphs.problem([(0, 0, 2), (8, 1, 3), (0, 0, 9)], pin=[16, None, None])
    placement = place(problem, "modelplan")
    assert placement.offsets.tolist() == [16, 0, 0]
    assert placement.ended == "optimal"


@pytest.mark.parametrize(
    ("column", "value", "complaint"),
    [
        ("size", -1, "buffer 0: negative size"),
        ("end", 0, "buffer 0: lifetime is empty"),
        ("alignment", 0, "alignment below 1"),
        ("pin", -2, "buffer 0: negative pin"),
        ("pin", 3, "no multiple of its alignment"),
        ("size", 1 << 62, "the sum of all sizes overflows"),
    ],
)
def test_senseless_columns_are_refused_by_the_core(column: str, value: int, complaint: str) -> None:
    columns = {"size": 8, "start": 0, "end": 2, "alignment": 2, "pin": -1} | {column: value}
    with pytest.raises(ValueError, match=complaint):
        _core.solve(_core.Problem(*(np.array([v], dtype=np.int64) for v in columns.values())))


def test_senseless_facts_and_rules_are_refused_by_the_core() -> None:
    two = graphs.problem([(8, 0, 2), (8, 1, 3)])
    for fact in [(0, 0, 4), (0, 2, 4), (-1, 1, 4), (0, 1, -4)]:
        table = np.array([fact], dtype=np.int64)
        with pytest.raises(ValueError, match="overlap 0"):
            _core.solve(_core.Problem(two.size, two.start, two.end, two.alignment, two.pin, table))
    with pytest.raises(ValueError, match="no rule magic"):
        solve(two, without=["magic"])


@pytest.mark.parametrize("seed", range(40))
def test_the_ejection_search_finds_what_there_is(seed: int) -> None:
    (problem,) = cases(1, "plain", 900 + seed, most=9)
    least = height(problem, place(problem))
    offsets = _core.ejection_search(problem.core, least, 100_000, seed)
    assert offsets is not None
    assert checked_height(problem, offsets) <= least
    again = _core.ejection_search(problem.core, least, 100_000, seed)
    assert again is not None
    assert offsets.tolist() == again.tolist()
    assert _core.ejection_search(problem.core, load_bound(problem) - 1, 100_000, seed) is None


@pytest.mark.parametrize("tall", [960, 1_000_003, (1 << 40) + 15])
def test_the_ejection_search_packs_what_is_hard(tall: int) -> None:
    """A set of the corpus' kind: 40 buffers that fill their load, cut out of a rectangle; in 16, 32 and 64 bits."""
    draw, rows = random.Random(5), [(0, 24, 0, tall)]
    while len(rows) < 40:
        start, end, low, high = rows.pop(draw.randrange(len(rows)))
        if draw.random() < 0.5 and end - start > 1:
            cut = draw.randrange(start + 1, end)
            rows += [(start, cut, low, high), (cut, end, low, high)]
        elif high - low > 1:
            cut = draw.randrange(low + 1, high)
            rows += [(start, end, low, cut), (start, end, cut, high)]
        else:
            rows.append((start, end, low, high))
    problem = graphs.problem([(high - low, start, end) for start, end, low, high in rows])
    assert load_bound(problem) == tall
    offsets = _core.ejection_search(problem.core, tall, 30_000_000, 1)
    assert offsets is not None
    assert checked_height(problem, offsets) == tall


@pytest.mark.parametrize(
    "options",
    [{"alignment": [16, 1, 64]}, {"pin": [None, 8, None]}, {"overlaps": np.array([[0, 1, 2]])}],
    ids=["alignment", "pin", "overlap"],
)
def test_the_ejection_search_refuses_what_it_does_not_know(options: dict[str, Any]) -> None:
    problem = graphs.problem([(5, 0, 2), (7, 1, 3), (9, 0, 3)], **options)
    with pytest.raises(ValueError, match="takes no alignments, pins, overlaps"):
        _core.ejection_search(problem.core, 1 << 20, 1000)


def checked_height(problem: Problem, offsets: np.ndarray) -> int:
    placement = Placement(offsets, load_bound(problem))
    check(problem, placement)
    return height(problem, placement)

"""The systems' planners against their slow twins, the searches against brute force; run under the sanitizers too."""

from __future__ import annotations

import itertools
import random
from dataclasses import fields, replace

import core_oracles
import numpy as np
import pytest
import strategies
import twins
from hypothesis import given
from hypothesis import strategies as st
from problem_families import CAPACITY, FAMILIES
from recorded_backtracks import backtracks
from shares import examples, share

from modelplan import Budget, Placement, Problem, RequestError, check, height, load_bound, place
from modelplan.planning.allocators.systems import (
    compilers,
    idealloc,
    minimalloc,
    somas,
    telamalloc,
    tokens,
    usmp,
    xla,
)
from modelplan.primitives import _core

ROWS = [
    variant
    for module in (usmp, tokens, somas, compilers, xla, telamalloc, minimalloc, idealloc)
    for row in module.ROWS
    for variant in row.variants
]


@st.composite
def related(draw: st.DrawFn, most: int = 10, alignments: tuple[int, ...] = (1,)) -> Problem:
    """Problems with extra conflicts, as streams bring them."""
    base = draw(strategies.problems(most, alignments))
    ids = st.integers(0, max(len(base) - 1, 0))
    pairs = draw(st.lists(st.tuples(ids, ids), max_size=6)) if len(base) > 1 else []
    return replace(base, conflicts=np.array([p for p in pairs if p[0] != p[1]], dtype=np.int64))


@pytest.mark.slow
@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
@examples(60)
@given(problem=st.one_of(related(alignments=(1, 4, 6)), strategies.overlapping(), strategies.problems(pins=True)))
def test_answers_pass_the_referee_or_are_refused(row: object, problem: Problem) -> None:
    try:
        answer = place(problem, row.name, Budget(steps=200))  # type: ignore[attr-defined]
    except RequestError:
        return
    assert answer == place(problem, row.name, Budget(steps=200))  # type: ignore[attr-defined]
    assert core_oracles.valid(problem, answer.offsets.tolist())
    assert answer.lower_bound <= height(problem, answer)


@pytest.mark.slow
@given(related(alignments=(1, 4, 6)))
def test_triton_equals_its_twin(problem: Problem) -> None:
    assert compilers.slots_then_colours(problem)[0].offsets.tolist() == twins.triton(problem)


@pytest.mark.slow
@given(related(alignments=(1, 4, 6)))
def test_xla_best_fit_equals_its_twin(problem: Problem) -> None:
    for order in (xla.spatial(problem, xla.apart(problem)), xla.temporal(problem, xla.apart(problem))):
        assert xla.best_fit(problem, order).offsets.tolist() == twins.xla_best_fit(problem, order.tolist())


@pytest.mark.slow
@given(related(), st.booleans(), st.booleans(), st.booleans())
def test_somas_equals_its_twin(problem: Problem, smallest: bool, single: bool, same_gap: bool) -> None:
    alone = np.arange(len(problem), dtype=np.int64)
    order = np.argsort(-problem.size, kind="stable").astype(np.int64)
    found = _core.somas_place(
        problem.core, alone, alone, alone, order, smallest=smallest, single=single, same_gap=same_gap
    )
    wanted = twins.somas(problem, order.tolist(), smallest=smallest, single=single, same_gap=same_gap)
    assert found.tolist() == wanted


@pytest.mark.parametrize("largest", [300, 2**34])
def test_among_hundreds_of_conflicts_xla_and_somas_equal_their_twins(largest: int) -> None:
    problem = strategies.crowded(220, largest)
    order = np.argsort(-problem.size, kind="stable").astype(np.int64)
    assert xla.best_fit(problem, order).offsets.tolist() == twins.xla_best_fit(problem, order.tolist())
    alone = np.arange(len(problem), dtype=np.int64)
    found = _core.somas_place(problem.core, alone, alone, alone, order, smallest=False, single=False, same_gap=False)
    assert found.tolist() == twins.somas(problem, order.tolist(), smallest=False, single=False, same_gap=False)


@pytest.mark.slow
@examples(60)
@given(related(), st.sampled_from([1, 8]))
def test_hill_climb_replays_its_twin(problem: Problem, alignment: int) -> None:
    problem = replace(problem, alignment=np.full(len(problem), alignment))
    found = usmp.climb(problem, attempts=40)
    order = usmp.by_size(problem).tolist()
    assert (found.plan.offset.tolist(), found.attempts) == twins.hill_climb(
        problem, order, core_oracles.load(problem), 40
    )


def tiny(seed: int) -> Problem:
    """At most five buffers, some aligned, some pinned at a multiple of their alignment."""
    rng = random.Random(seed)
    n = rng.randint(1, 5)
    start = [rng.randint(0, 4) for _ in range(n)]
    alignment = [rng.choice([1, 1, 2, 3]) for _ in range(n)]
    problem = Problem(
        tuple("abcde"[:n]),
        np.array([rng.randint(0, 6) for _ in range(n)]),
        np.array(start),
        np.array([s + rng.randint(1, 3) for s in start]),
        np.array(alignment),
    )
    pin = np.full(n, -1)
    if rng.random() < 0.3:
        pin[0] = 2 * alignment[0]
    return replace(problem, pin=pin)


EVERY_SET_OF_RULES = [minimalloc.Rules(*on) for on in itertools.product([True, False], repeat=9)]


@pytest.mark.slow
def test_minimalloc_equals_brute_force_under_every_set_of_rules() -> None:
    assert len(fields(minimalloc.Rules)) == 9
    for seed in range(share(30)):
        problem = tiny(seed)
        best = core_oracles.optimum(problem)
        for rules in EVERY_SET_OF_RULES:
            fits = minimalloc.decide(problem, best, rules=rules)
            assert fits.ended == "complete", (seed, rules)
            assert core_oracles.height(problem, fits.offsets.tolist()) == best
            check(problem, Placement(fits.offsets.tolist()))
            if best > 0:
                assert minimalloc.decide(problem, best - 1, rules=rules).ended == "infeasible", (seed, rules)


@pytest.mark.slow
@pytest.mark.parametrize("orders", [("WAT",), ("ZLU", "O"), ("CATWZLOU",), minimalloc.ORDERS])
def test_minimalloc_answers_alike_for_all_orders(orders: tuple[str, ...]) -> None:
    for seed in range(30, 30 + share(100)):
        problem = tiny(seed)
        best = core_oracles.optimum(problem)
        assert minimalloc.decide(problem, best, orders=orders).ended == "complete"
        assert best == 0 or minimalloc.decide(problem, best - 1, orders=orders).ended == "infeasible"


@pytest.mark.slow
@examples(60)
@given(strategies.problems(most=5, alignments=(1, 4, 6)))
def test_minimalloc_minimises(problem: Problem) -> None:
    answer = place(problem, "minimalloc")
    assert answer.ended == "optimal"
    assert answer.lower_bound == height(problem, answer) == core_oracles.optimum(problem)


def test_minimalloc_tells_three_answers_apart() -> None:
    problem = Problem(tuple("abc"), np.array([4, 3, 3]), np.zeros(3, int), np.array([2, 1, 1]))
    assert place(replace(problem, capacity=10), "minimalloc").ended == "complete"
    impossible = place(replace(problem, capacity=9), "minimalloc")
    assert (impossible.ended, impossible.lower_bound) == ("infeasible", 10)
    assert place(replace(problem, capacity=9), "minimalloc", Budget(steps=0)).ended in ("budget", "infeasible")
    assert minimalloc.decide(problem, 10, Budget(steps=1)).ended == "budget"
    assert minimalloc.decide(problem, 10, Budget(seconds=0)).ended == "complete"  # too short to look at the clock


@pytest.mark.slow
@examples(60)
@given(related(most=5, alignments=(1, 4)), st.booleans(), st.booleans(), st.booleans())
def test_telamalloc_proves_only_what_is_true(problem: Problem, phases: bool, smart: bool, first: bool) -> None:
    best = core_oracles.optimum(problem)
    options = telamalloc.TelamallocOptions(phases, smart, first, stuck_after=2)
    for capacity in (best - 1, best, best + 7):
        if capacity < 0:
            continue
        answer = telamalloc.decide(problem, capacity, Budget(steps=500), options)
        if answer.ended == "complete":
            assert core_oracles.valid(problem, answer.offsets.tolist())
            assert best <= core_oracles.height(problem, answer.offsets.tolist()) <= capacity
        else:
            assert answer.ended == "budget" or capacity < best


#: Trees that take back the earliest decision, the latest, and the one that was returned to most often.
CHOICES = {
    "earliest": [(0, 7, 1, 2), (0, -1, 0, 0), (0, 7, 3, 4), (0, -1, 1, 0), (0, -1, 2, 0)],
    "latest": [(0, -1, 5, 0)],
    "returned to": [(0, 8, 0, 2), (0, -1, 0, 0), (0, -1, 9, 0), (1, 8, 2, 5), (1, -1, 0, 0), (1, -1, 9, 0)],
}


@pytest.mark.slow
@examples(60)
@given(related(most=5, alignments=(1, 4)), st.sampled_from(sorted(CHOICES)))
def test_no_choice_of_the_trees_breaks_a_placement(problem: Problem, choice: str) -> None:
    best = core_oracles.optimum(problem)
    table = np.array(CHOICES[choice])
    for capacity in (best - 1, best, best + 7):
        if capacity < 0:
            continue
        ended, offsets, steps = _core.telamalloc_decide(problem.core, capacity, [], 2, table, 0, 500, np.inf)
        assert steps <= 500
        if ended == "complete":
            assert core_oracles.valid(problem, offsets.tolist())
            assert best <= core_oracles.height(problem, offsets.tolist()) <= capacity
        else:
            assert ended == "budget" or capacity < best


def test_the_trees_end_searches_that_the_culprits_alone_do_not() -> None:
    problem = FAMILIES["tiling"](61, 6)
    assert backtracks(problem, CAPACITY, 2000).ended == "budget"
    learned = backtracks(problem, CAPACITY, 2000, telamalloc.LEARNED)
    assert (learned.ended, learned.major > telamalloc.LEARNED_AFTER) == ("complete", True)
    check(problem, place(replace(problem, capacity=CAPACITY), "telamalloc-learned", Budget(steps=2000)))


def test_a_recorded_backtrack_says_what_was_decided() -> None:
    problem = FAMILIES["tiling"](61, 0)
    found = backtracks(problem, CAPACITY, 500, most=3, every=5)
    assert (found.ended, len(found.records)) == ("budget", 3)
    for record in found.records:
        together = Problem(
            tuple(map(str, record.buffers)),
            problem.size[record.buffers],
            problem.start[record.buffers],
            problem.end[record.buffers],
        )
        check(together, Placement(record.offsets))
        size, distance, culprit = record.features[:, 0], record.features[:, 7], record.features[:, 10]
        assert size.tolist() == [1000 * z // CAPACITY for z in problem.size[record.buffers].tolist()]
        assert distance.tolist() == list(range(len(record.buffers), 0, -1))
        assert culprit.max() == (culprit > 0).sum() == record.features[0, 11] > 0


@pytest.mark.parametrize(
    "table",
    [
        [(0, 14, 5, 2), (0, -1, 0, 0), (0, -1, 0, 0)],  # no such feature
        [(0, -2, 5, 2), (0, -1, 0, 0), (0, -1, 0, 0)],
        [(0, 3, 5, 0), (0, -1, 0, 0), (0, -1, 0, 0)],  # back to itself
        [(0, 3, 5, 3), (0, -1, 0, 0), (0, -1, 0, 0)],  # beyond the last row
        [(0, 3, 5, 2), (0, -1, 0, 0), (1, -1, 0, 0)],  # into another tree
        [(0, -1, 0, 0), (0, 3, 5, 1)],  # ends without a leaf
    ],
)
def test_trees_that_make_no_sense_are_refused(table: list[tuple[int, ...]]) -> None:
    problem = tiny(0)
    with pytest.raises(ValueError, match=r"row \d of the trees makes no sense"):
        _core.telamalloc_decide(problem.core, 100, [], 8, np.array(table), 0, 10, np.inf)


@pytest.mark.slow
@given(strategies.overlapping(most=6))
def test_telamalloc_with_facts_stays_within_the_capacity(problem: Problem) -> None:
    answer = telamalloc.decide(problem, int(problem.size.sum()), Budget(steps=500))
    assert answer.ended == "complete"
    assert core_oracles.valid(problem, answer.offsets.tolist())


@pytest.mark.slow
@given(related(alignments=(1, 4, 6)))
def test_telamallocs_heuristic_equals_its_twin(problem: Problem) -> None:
    assert place(problem, "telamalloc-heuristic").offsets.tolist() == twins.telamalloc_heuristic(problem)


def test_the_heuristic_places_on_top_of_the_skyline_only() -> None:
    problem = Problem(tuple("abc"), np.array([4, 6, 3]), np.array([0, 1, 0]), np.array([2, 4, 1]))
    assert place(problem, "telamalloc-heuristic").offsets.tolist() == [6, 0, 10]


def test_the_phases_follow_contention() -> None:
    problem = Problem(tuple("abcd"), np.array([5, 40, 30, 10]), np.array([0, 4, 5, 9]), np.array([3, 6, 7, 12]))
    assert _core.telamalloc_phases(problem.core) == [2, 0, 0, 1]


@pytest.mark.slow
@examples(60)
@given(strategies.problems(most=30), st.integers(0, 3))
def test_idealloc_is_never_above_its_bootstrap_and_repeats(problem: Problem, seed: int) -> None:
    once = idealloc.box(problem, Budget(steps=3, seed=seed))
    again = idealloc.box(problem, Budget(steps=3, seed=seed))
    assert (once.placement, once.tries, once.epsilon) == (again.placement, again.tries, again.epsilon)
    order = np.lexsort((problem.start - problem.end, -problem.size))
    assert height(problem, once.placement) <= core_oracles.height(
        problem, core_oracles.place_in_order(problem, order.tolist())
    )


@examples(60)
@given(strategies.problems(most=20, alignments=(1, 4, 6)), st.integers(0, 13), st.sampled_from([1.0, 1.5, 9.0]))
def test_idealloc_aligns_addresses_from_where_the_arena_starts(problem: Problem, start: int, wanted: float) -> None:
    found = idealloc.box(problem, Budget(steps=2), fragmentation=wanted, start_address=start)
    offsets = found.placement.offsets
    held = problem.size > 0
    assert ((offsets + start)[held] % problem.alignment[held] == 0).all()
    assert (offsets[held] >= 0).all()
    check(replace(problem, alignment=np.ones(len(problem), dtype=np.int64)), Placement(np.where(held, offsets, 0)))
    assert height(problem, found.placement) >= load_bound(problem)
    assert found.tries <= 2


def scattered(seed: int) -> Problem:
    """Sixty buffers of many sizes, a third of them alive together, which no first fit packs to the load."""
    draw = np.random.default_rng(seed)
    start = draw.integers(0, 90, 60)
    return Problem(
        tuple(f"b{i}" for i in range(60)), draw.integers(1, 3000, 60), start, start + draw.integers(1, 60, 60)
    )


def test_idealloc_is_content_with_the_fragmentation_that_it_is_given() -> None:
    problem = scattered(2)
    first = idealloc.box(problem, Budget(steps=1))
    enough = height(problem, first.placement) / load_bound(problem)
    assert enough > 1
    assert idealloc.box(problem, Budget(steps=50), fragmentation=2 * enough).tries == 0
    assert idealloc.box(problem, Budget(steps=50, enough=int(problem.size.sum()))).tries == 0
    assert idealloc.box(problem, Budget(steps=50)).tries == 50
    assert idealloc.box(problem, Budget(seconds=0.2)).tries > 1
    with pytest.raises(ValueError, match="expected at least 1"):
        idealloc.box(problem, fragmentation=0.5)
    with pytest.raises(ValueError, match="start address"):
        idealloc.box(replace(problem, pin=np.where(np.arange(60) == 3, 0, -1)), start_address=8)


def test_idealloc_says_when_its_bootstrap_stands_in() -> None:
    problem, names = scattered(2), set()
    bootstrap = height(problem, place(problem, "first-fit-size"))
    for seed in range(4):
        found = idealloc.box(problem, Budget(steps=40, seed=seed)).placement
        names.add(found.found_by)
        if found.found_by:
            assert found.own_height is not None
            assert found.own_height > height(problem, found) == bootstrap
        else:
            assert found.own_height is None
            assert height(problem, found) < bootstrap
    assert names == {"", "first-fit-size"}


def test_hardness_is_spread_and_crowding() -> None:
    problem = Problem(tuple("abc"), np.array([1, 3, 0]), np.array([0, 1, 0]), np.array([2, 6, 9]))
    found = idealloc.hardness(problem)
    assert (found.sizes, found.conflicts, found.ends) == (0.5, 1.0, 0.5)
    assert found.compound == 1.5 * 2 * 1.5
    assert idealloc.hardness(Problem.of(())).compound == 1


@pytest.mark.slow
@given(strategies.problems(most=30), st.integers(1, 64))
def test_idealloc_is_optimal_for_equal_sizes(problem: Problem, size: int) -> None:
    problem = replace(problem, size=np.full(len(problem), size))
    answer = idealloc.box(problem)
    assert answer.tries == 0
    assert height(problem, answer.placement) == load_bound(problem)


@pytest.mark.slow
@examples(60)
@given(strategies.problems(most=40), st.integers(1, 5), st.sampled_from([0.3, 0.7, 1.5]), st.integers(0, 3))
def test_boxes_hold_every_job_once_and_never_too_many_at_a_time(
    problem: Problem, at_once: int, epsilon: float, seed: int
) -> None:
    """Theorem 2: a partition of the jobs, no box with more than its height alive at one step."""
    box = _core.idealloc_theorem2(problem.start, problem.end, at_once, epsilon, seed)
    assert len(box) == len(problem)
    for b in set(box):
        inside = replace(problem, size=np.where(np.array(box) == b, 1, 0))
        assert core_oracles.load(inside) <= at_once


@pytest.mark.slow
@given(strategies.problems(most=20))
def test_tokens_stay_within_the_window_when_taken(problem: Problem) -> None:
    objects = tokens.share_tokens(problem, Budget())
    assert all((h >= 0) == (s > 0) for h, s in zip(objects.holder, problem.size, strict=True))
    for token, size in enumerate(objects.sizes):
        held = problem.size[objects.holder == token]
        assert size == held.max()


def test_token_reuse_takes_the_smallest_that_holds_then_the_largest_that_grows() -> None:
    sizes = [100, 10, 1700, 60, 5, 40]
    problem = Problem(tuple("abcdef"), np.array(sizes), np.array([0, 0, 0, 1, 2, 2]), np.array([1, 1, 1, 2, 3, 3]))
    objects = tokens.share_tokens(problem, Budget())
    assert objects.holder.tolist() == [0, 1, 2, 0, 1, 0]
    assert objects.sizes == (100, 10, 1700)
    growing = Problem(("a", "b", "c"), np.array([2, 32, 33]), np.array([0, 1, 0]), np.array([1, 2, 1]))
    assert tokens.share_tokens(growing, Budget()).sizes == (2, 33)


def test_somas_contiguous_lists_unions_outputs_and_life_long_buffers() -> None:
    problem = Problem(tuple("abcdef"), np.array([512, 1024, 512, 700, 100, 512]), np.zeros(6, int), np.full(6, 2))
    demands = somas.Demands(contiguous=((2, 0, 3),), outputs=frozenset({1}), life_long=frozenset({5}))
    placement = somas.solve(problem, demands)
    check(problem, placement)
    c, a, d = (int(placement.offsets[i]) for i in (2, 0, 3))
    assert (a - c, d - a) == (512, 512)
    assert placement.offsets[5] == placement.offsets[[0, 1, 2, 3, 4]].max() + 512
    apart = Problem(("x", "y", "z"), np.array([512, 2048, 512]), np.array([0, 4, 2]), np.array([2, 6, 4]))
    united = somas.solve(apart, somas.Demands(unions=((0, 1),)))
    assert united.offsets[0] == united.offsets[1]
    with pytest.raises(RequestError, match="names buffer 0 twice"):
        somas.solve(apart, somas.Demands(unions=((0, 1), (0, 2))))


def test_somas_makes_eight_runs_and_distrusts_one_open_object() -> None:
    problem = Problem(tuple("ab"), np.array([512, 512]), np.zeros(2, int), np.ones(2, int))
    assert len(somas.runs(problem)) == 8
    assert len({(r.order, r.smallest, r.single) for r in somas.runs(problem)}) == 8

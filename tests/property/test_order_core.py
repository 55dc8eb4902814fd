"""The scheduling core against slow twins: least peaks, bounds, cheap orders, on small random graphs."""

from __future__ import annotations

import itertools

import order_oracles
import pytest
from order_oracles import OrderCase, flat, random_case, random_tree
from shares import share

from modelplan.primitives import _core

RULES = _core.SCHEDULE_RULES
#: Sets of rules to switch off: all that leave `look_ahead` off, and all that leave `segment` off.
WHOLE, WITHIN = (
    [[last, *rest] for k in range(5) for rest in itertools.combinations([r for r in RULES if r != last], k)]
    for last in ("look_ahead", "segment")
)
METHODS = ["file", "rpo", "list", "dfs", "post", "merge", "beam"]
FAR = 1 << 60


@pytest.mark.slow
@pytest.mark.parametrize("block", range(10))
def test_every_combination_of_rules_equals_plain_dynamic_programming(block: int) -> None:
    for seed in range(100 * block, 100 * block + share(100)):
        case = random_case(seed)
        instance = case.core()
        best = order_oracles.least_peak(case)
        for without in WHOLE:
            found = _core.schedule_solve(instance, without=without)
            assert (found.peak, found.lower_bound) == (best, best), (seed, without)
            assert order_oracles.peak_of(case, found.order.tolist()) == best, (seed, without)


@pytest.mark.slow
@pytest.mark.parametrize("without", WITHIN, ids="-".join)
def test_the_bare_search_is_exact_under_every_combination_of_rules(without: list[str]) -> None:
    for seed in range(1000, 1000 + share(100)):
        case = random_case(seed)
        instance = case.core()
        best = order_oracles.least_peak(case)
        end, order, peak, proven, _ = _core.schedule_search(instance, 0, FAR, without, look_ahead_after=0)
        assert (end, peak, proven) == ("feasible", best, best), seed
        assert order_oracles.peak_of(case, order.tolist()) == best, seed
        end, _, _, proven, _ = _core.schedule_search(instance, best - 1, best - 1, without, look_ahead_after=0)
        assert (end, proven) == ("infeasible", best), seed


@pytest.mark.slow
def test_the_flow_bound_is_the_least_transient_over_all_sets() -> None:
    for seed in range(share(150)):
        case = random_case(seed)
        instance = case.core()
        shared = any(len(writers) > 1 for writers in case.writers)
        for op in range(case.ops):
            bound, least = _core.schedule_bound_at(instance, op), order_oracles.least_transient(case, op)
            assert bound <= least, (seed, op)
            # An overwrite of a class that another op has begun saves nothing, which the flow does not see.
            assert bound == least or shared, (seed, op)


@pytest.mark.slow
@pytest.mark.parametrize("method", METHODS)
def test_cheap_orders_are_orders_and_bounds_hold(method: str) -> None:
    for seed in range(share(100)):
        case = random_case(seed)
        found = _core.schedule_solve(case.core(), method=method)
        best = order_oracles.least_peak(case)
        assert found.flow_bound <= found.lower_bound <= best <= found.peak, seed
        assert order_oracles.peak_of(case, found.order.tolist()) == found.peak, seed


@pytest.mark.slow
def test_time_reversed_the_least_peak_is_the_same() -> None:
    tried = 0
    for seed in range(share(300)):
        case = random_case(seed)
        if seed % 2:
            case.credits.clear()
        back = _core.schedule_reversed(case.core())
        if back is None:
            continue
        tried += 1
        end, order, peak, _, _ = _core.schedule_search(back, 0, FAR, ["segment"], look_ahead_after=0)
        assert (end, peak) == ("feasible", order_oracles.least_peak(case)), seed
        assert order_oracles.peak_of(case, order.tolist()[::-1]) == peak, seed
    assert tried > share(300) // 2


@pytest.mark.slow
def test_the_merge_is_optimal_on_in_trees() -> None:
    for seed in range(share(200)):
        case = random_tree(seed)
        assert _core.schedule_solve(case.core(), method="merge").peak == order_oracles.least_peak(case), seed


def test_a_callback_may_stop_the_work() -> None:
    def enough(_: int) -> None:
        raise KeyError("enough")

    case = order_oracles.wide_case(26)
    with pytest.raises(KeyError, match="enough"):
        _core.schedule_solve(case.core(), progress=enough)


def test_a_step_budget_ends_the_search_with_a_proven_gap() -> None:
    case = order_oracles.wide_case(26)
    found = _core.schedule_solve(case.core(), steps=20_000)
    assert found.ended == "budget"
    assert found.lower_bound <= found.peak
    assert order_oracles.peak_of(case, found.order.tolist()) == found.peak


@pytest.mark.parametrize(("size", "steps"), [(50, 1_000_000), (80, 3_000_000)])
def test_where_the_search_does_not_end_the_local_search_lowers_the_peak(size: int, steps: int) -> None:
    case = order_oracles.wide_case(size)
    found = _core.schedule_solve(case.core(), steps=steps)
    assert (found.ended, found.found_by) == ("budget", "local search")
    assert found.lower_bound < found.peak < _core.schedule_solve(case.core(), steps=50_000).peak
    assert order_oracles.peak_of(case, found.order.tolist()) == found.peak


def test_equal_budgets_give_equal_answers() -> None:
    case = random_case(7)
    found = [_core.schedule_solve(case.core(), steps=500) for _ in range(2)]
    assert found[0].order.tolist() == found[1].order.tolist()
    assert (found[0].steps, found[0].states) == (found[1].steps, found[1].states)


def test_an_empty_graph_has_an_empty_order() -> None:
    found = _core.schedule_solve(OrderCase(0).core())
    assert (found.order.tolist(), found.peak, found.lower_bound) == ([], 0, 0)


def refused(case: OrderCase, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        case.core()


def test_what_is_not_an_instance_is_refused() -> None:
    refused(OrderCase(2, edges=[(0, 1), (1, 0)]), "cycle")
    refused(OrderCase(1, edges=[(0, 3)]), r"edge 3 is not in \[0, 1\)")
    refused(OrderCase(1, scratch=[-1]), "negative scratch")
    refused(OrderCase(1, scratch=[1, 2]), "one entry for each op")
    case = OrderCase(2)
    case.add_class(4, [], [0])
    refused(case, "read but never written")
    case = OrderCase(1)
    case.add_class(4, [0], [0])
    refused(case, "both writes and reads")
    case = OrderCase(2)
    case.add_class(1 << 62, [0], [1])
    refused(case, "overflow")


def test_a_shared_class_needs_its_edges() -> None:
    case = OrderCase(3)
    case.add_class(4, [0, 1], [2])
    refused(case, "may run after the last reader")
    case.edges = [(0, 2), (1, 2)]
    assert _core.schedule_solve(case.core()).peak == 4


def test_credits_must_fit_what_the_op_does() -> None:
    case = OrderCase(2)
    x = case.add_class(4, [0], [1])
    y = case.add_class(6, [1], [], end=True)
    for credit, message in [((0, x, y, 1), "does not read"), ((1, x, x, 1), "does not write"), ((1, x, y, 5), "more")]:
        case.credits = [credit]
        refused(case, message)
    case.credits = [(1, x, y, 4)]
    assert _core.schedule_solve(case.core()).peak == 6


def test_ragged_columns_are_refused() -> None:
    ptr, ops = flat([[0]])
    with pytest.raises(ValueError, match="from_start needs one entry"):
        _core.schedule_instance(
            1,
            order_oracles.column([4]),
            *(ptr, ops),
            *(ptr, ops),
            order_oracles.column([]),
            order_oracles.column([0]),
            order_oracles.column([0]),
            order_oracles.table([], 2),
            order_oracles.table([], 4),
        )

"""Orders, their bounds and their proofs on graphs small enough to check by hand."""

from __future__ import annotations

from dataclasses import replace

import graphs
import order_oracles
import pytest

from modelplan import BrokenPlanError, Graph, Kind, Options, RequestError, plan, runtimes, storages
from modelplan.checking.referee import check_flow
from modelplan.model import Budget, OrderProblem, Overwrite, Schedule, Storage, Transfer, Witness
from modelplan.planning import schedulers
from modelplan.planning.schedulers.order_core import Effort, solve
from modelplan.planning.schedulers.ordering_problem import has_side_effects, order_problem, precedences

GENERIC = runtimes.runtime("generic", "tflite")


def ordered(graph: Graph, name: str, **options: object) -> Schedule:
    return schedulers.order(graph, storages(graph), GENERIC, name, **options)  # type: ignore[arg-type]


def case_of(problem: OrderProblem) -> order_oracles.OrderCase:
    case = order_oracles.OrderCase(problem.ops, scratch=list(problem.scratch), edges=list(problem.edges))
    for s in problem.storages:
        case.add_class(s.size, s.writers, s.readers, start=s.from_start, end=s.to_end)
    case.credits = [(o.op, o.over, o.to, o.saved) for o in problem.overwrites]
    return case


def problem_of(case: order_oracles.OrderCase) -> OrderProblem:
    rows = zip(case.sizes, case.writers, case.readers, case.from_start, case.to_end, strict=True)
    return OrderProblem(
        case.ops,
        tuple(Storage(size, tuple(w), tuple(r), start, end) for size, w, r, start, end in rows),
        tuple(case.scratch),
        tuple(case.edges),
        tuple(Overwrite(*credit) for credit in case.credits),
    )


def test_the_file_order_is_kept_and_its_bound_is_that_of_every_order() -> None:
    schedule = ordered(graphs.fork(), "file")
    assert schedule.order == (0, 1, 2, 3, 4)
    assert (schedule.peak, schedule.lower_bound) == (336, 192)
    assert not schedule.optimal
    assert schedule.gap == 0.75


@pytest.mark.parametrize("name", ["best", "exact", "beam"])
def test_the_search_runs_one_branch_at_a_time(name: str) -> None:
    schedule = ordered(graphs.fork(), name)
    assert (schedule.peak, schedule.lower_bound) == (192, 192)
    assert schedule.proof == "flow certificate"
    assert schedule.optimal


def test_whichever_operator_is_last_its_operands_are_alive_beside_all_outputs() -> None:
    count = 300  # operators that each read the same value: no order is lower than another
    storages_ = [Storage(16, (), tuple(range(count)), True, False)]
    storages_ += [Storage(16, (op,), (), False, True) for op in range(count)]
    answer = solve(OrderProblem(count, tuple(storages_), (0,) * count, (), ()), Effort("best", search=True))
    assert answer.peak == answer.lower_bound == 16 * (count + 1) > answer.flow_bound
    assert (answer.states, answer.ended) == (0, "complete")
    assert answer.steps < 10 * count


def test_every_scheduler_agrees_with_the_lifetimes() -> None:
    for graph in (graphs.chain(), graphs.fork()):
        for name in schedulers.SCHEDULERS:
            schedule = ordered(graph, name)
            order_case = case_of(order_problem(graph, storages(graph), GENERIC))
            assert schedule.peak == order_oracles.peak_of(order_case, schedule.order)


def test_an_unknown_scheduler_is_refused_with_the_names_of_all() -> None:
    with pytest.raises(RequestError, match="no schedule 'magic'; there are: file, list, dfs, merge, beam, best, exact"):
        ordered(graphs.chain(), "magic")


def test_a_budget_of_no_steps_still_gives_an_order_and_a_bound() -> None:
    schedule = ordered(graphs.fork(), "best", budget=Budget(steps=0))
    assert sorted(schedule.order) == [0, 1, 2, 3, 4]
    assert schedule.lower_bound <= schedule.peak


def test_views_cost_nothing() -> None:
    problem = order_problem(graphs.chain(), storages(graphs.chain()), GENERIC)
    assert Storage(32, (0,), (1, 2)) in problem.storages


def test_state_is_alive_all_the_time_and_orders_its_users() -> None:
    graph = graphs.graph(
        """
        x s -> a : SVDF
        x s -> b : SVDF
        a b -> y : ADD
        """,
        {"x": 16, "s": 64, "a": 16, "b": 16, "y": 16},
        inputs="x",
        outputs="y",
        kinds={"s": Kind.STATE},
    )
    problem = order_problem(graph, storages(graph), GENERIC)
    assert (0, 1) in problem.edges
    assert Storage(64, (), (0, 1), from_start=True, to_end=True) in problem.storages
    apart = order_problem(graph, storages(graph), runtimes.runtime("tflm", "tflite"))
    assert all(s.size < 64 for s in apart.storages)


def test_side_effects_keep_the_order_of_the_file() -> None:
    graph = graphs.graph(
        """
        x -> a : CUSTOM
        x -> b : ADD
        x -> c : RANDOM_UNIFORM
        a b c -> y : CONCATENATION
        """,
        {"x": 1, "a": 1, "b": 1, "c": 1, "y": 3},
        inputs="x",
        outputs="y",
    )
    assert list(precedences(graph)) == [(0, 2)]
    assert has_side_effects("onnx", "RandomNormal")
    assert has_side_effects("onnx", "com.acme.Thing")
    assert not has_side_effects("onnx", "Add")


def proof(case: order_oracles.OrderCase) -> tuple[OrderProblem, Witness]:
    problem = problem_of(case)
    return problem, solve(problem, Effort("best", search=True)).witness


@pytest.mark.slow
def test_the_referee_accepts_every_witness_of_the_core() -> None:
    for seed in range(400):
        problem, witness = proof(order_oracles.random_case(seed))
        check_flow(problem, witness)


def test_the_referee_refuses_a_bound_that_is_one_byte_too_high() -> None:
    for seed in range(100):
        problem, witness = proof(order_oracles.random_case(seed))
        with pytest.raises(BrokenPlanError, match="no flow proves"):
            check_flow(problem, replace(witness, bytes=witness.bytes + 1))


def flawed(witness: Witness, *flow: Transfer) -> Witness:
    return replace(witness, cases=(replace(witness.cases[0], flow=flow),))


def test_the_referee_names_the_flaw_of_a_false_witness() -> None:
    problem = OrderProblem(
        3,
        (Storage(4, (0,), (1, 2)), Storage(2, (1,), (2,)), Storage(1, (2,), (), to_end=True)),
        (0, 0, 0),
        (),
    )
    witness = solve(problem, Effort("best", search=True)).witness
    check_flow(problem, witness)
    assert (witness.op, witness.bytes) == (2, 7)
    for flow, said in [
        ([Transfer(0, 2, 0, 5), Transfer(1, 2, 1, 2)], "5 bytes flow through storage 0, which holds 4"),
        ([Transfer(0, 2, 0, 4), Transfer(0, 2, 1, 2)], "op 0 does not write storage 1"),
        ([Transfer(0, 2, 0, 4), Transfer(1, 0, 1, 2)], "op 0 does not read storage 1"),
        ([Transfer(0, 2, 0, 4), Transfer(1, -1, 1, 2)], "op -1 does not read storage 1"),
        ([Transfer(0, 2, 0, 4), Transfer(0, 1, -1, 2)], "is no precedence"),
        ([Transfer(0, 2, 0, 4), Transfer(1, 2, 1, 0)], "carries nothing"),
        ([Transfer(2, -1, 2, 1)], "already counted"),
        ([Transfer(0, 2, 0, 4)], "no flow proves 7 bytes at op 2"),
    ]:
        with pytest.raises(BrokenPlanError, match=said):
            check_flow(problem, flawed(witness, *flow))
    with pytest.raises(BrokenPlanError, match="names op 9"):
        check_flow(problem, replace(witness, op=9))


def test_what_is_alive_at_the_ends_of_time_needs_no_flow() -> None:
    fed = Storage(8, (), (0,), from_start=True)
    kept = (Storage(9, (0,), (), to_end=True), Storage(7, (1,), (), to_end=True))
    problem = OrderProblem(2, (fed, *kept), (0, 0), ((0, 1),))
    check_flow(problem, Witness(-1, 16))
    with pytest.raises(BrokenPlanError, match="8 bytes are alive before the first op, 16 after the last, not 17"):
        check_flow(problem, Witness(-1, 17))


def test_a_peak_that_no_order_changes_is_found_in_the_file() -> None:
    """Everything is written over the input, so that most is alive before the first op."""
    graph = graphs.graph("x -> a : RELU \n a -> y : RELU", dict.fromkeys("xay", 16), "x", "y")
    schedule = plan(graph, Options("tflm", alias="safe")).schedule
    assert (schedule.method, schedule.peak, schedule.optimal) == ("best (file order)", 16, True)


def test_flow_must_be_conserved_at_ops_that_may_run_on_either_side() -> None:
    problem = OrderProblem(
        4,
        (
            Storage(5, (), (0, 1), from_start=True),
            Storage(5, (1,), (3,)),
            Storage(3, (0,), (2,)),
            Storage(3, (2,), (3,)),
            Storage(1, (3,), (), to_end=True),
        ),
        (0, 0, 0, 0),
        (),
    )
    witness = Witness(2, 100, solve(problem, Effort("best")).witness.cases)
    leaking = flawed(witness, Transfer(-1, 1, 0, 5))
    with pytest.raises(BrokenPlanError, match="op 1 takes in 5 bytes of flow more than it passes on"):
        check_flow(problem, leaking)

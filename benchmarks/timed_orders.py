"""The answer of `best` for a graph with its CPU seconds, its witness checked, beside the peaks of cheap orders."""

from __future__ import annotations

import time
from dataclasses import dataclass

from modelplan import Graph, runtimes
from modelplan.checking.referee import check_flow
from modelplan.model import OrderProblem
from modelplan.planning import aliasing
from modelplan.planning.schedulers import BEST_STEPS
from modelplan.planning.schedulers.order_core import Effort, OrderAnswer, solve
from modelplan.planning.schedulers.problem import order_problem


@dataclass(frozen=True)
class Timed:
    """An answer, its CPU seconds, and the peaks of the cheap orders."""

    answer: OrderAnswer
    seconds: float
    cheap: dict[str, int]


def timed(problem: OrderProblem, steps: int) -> Timed:
    """The answer of `best` within `steps`, its witness checked."""
    cheap = {
        "file": solve(problem, Effort("file", steps=0)).peak,
        "list": solve(problem, Effort("list", steps=0)).peak,
        "beam": solve(problem, Effort("beam", width=16, steps=BEST_STEPS)).peak,
    }
    start = time.process_time()
    answer = solve(problem, Effort("best", search=True, steps=steps))
    seconds = time.process_time() - start
    check_flow(problem, answer.witness)
    return Timed(answer, seconds, cheap)


def proof(answer: OrderAnswer) -> str:
    """How good the peak is, in the words of `analyze`."""
    if answer.peak == answer.lower_bound:
        return "optimal (flow certificate)" if answer.flow_bound == answer.peak else "optimal (search)"
    return f"within {answer.peak / answer.lower_bound - 1:.1%}"


def problem_of(graph: Graph, *, alias: str = "none", runtime: str | None = None) -> OrderProblem:
    return order_problem(graph, aliasing.storages(graph, alias), runtimes.runtime(runtime, graph.format))

"""Asks the core for an order: an order problem and a method in, an order, a bound and its witness out."""

from collections.abc import Callable, Iterable, Sequence

import numpy as np

from modelplan.model import Ended, FlowCase, IntArray, OrderProblem, Transfer, Witness
from modelplan.primitives import _core
from modelplan.primitives.lazy_records import dataclass


@dataclass(frozen=True, slots=True)
class Effort:
    """How hard to try: a method of the core, its width if it is a beam, and where it must stop."""

    method: str
    search: bool = False
    width: int = 16
    steps: int | None = None
    seconds: float | None = None
    progress: Callable[[int], None] | None = None


@dataclass(frozen=True, slots=True)
class OrderAnswer:
    """An order, others with the same peak, what holds for every order, and how much work it took."""

    order: tuple[int, ...]
    alternatives: tuple[tuple[int, ...], ...]
    peak: int
    flow_bound: int
    lower_bound: int
    found_by: str
    witness: Witness
    states: int
    steps: int
    ended: Ended


def solve(problem: OrderProblem, effort: Effort) -> OrderAnswer:
    """The core's answer to `problem`: same problem and effort, same answer, unless seconds end it.

    Raises:
        ValueError: the problem contradicts itself.
    """
    outcome = _core.schedule_solve(
        instance(problem),
        method=effort.method,
        search=effort.search,
        width=effort.width,
        steps=effort.steps,
        seconds=effort.seconds,
        progress=effort.progress,
    )
    cases = tuple(
        FlowCase(dying, saved, tuple(Transfer(*transfer) for transfer in flow)) for dying, saved, flow in outcome.cases
    )
    return OrderAnswer(
        tuple(outcome.order.tolist()),
        tuple(tuple(other.tolist()) for other in outcome.alternatives),
        outcome.peak,
        outcome.flow_bound,
        outcome.lower_bound,
        outcome.found_by,
        Witness(outcome.critical_op, outcome.flow_bound, cases),
        outcome.states,
        outcome.steps,
        outcome.ended,
    )


def instance(problem: OrderProblem) -> _core.ScheduleInstance:
    """The problem as the core's columns, checked."""
    storages = problem.storages
    return _core.schedule_instance(
        problem.ops,
        _column(s.size for s in storages),
        *_rows([s.writers for s in storages]),
        *_rows([s.readers for s in storages]),
        _column(s.from_start for s in storages),
        _column(s.to_end for s in storages),
        _column(problem.scratch),
        _table(problem.edges, 2),
        _table([(o.op, o.over, o.to, o.saved) for o in problem.overwrites], 4),
    )


def _column(values: Iterable[int]) -> IntArray:
    return np.fromiter(values, dtype=np.int64)


def _table(rows: Sequence[Sequence[int]], width: int) -> IntArray:
    return np.array(rows, dtype=np.int64).reshape(-1, width)


def _rows(rows: Sequence[Sequence[int]]) -> tuple[IntArray, IntArray]:
    ends = np.cumsum([0, *map(len, rows)], dtype=np.int64)
    return ends, _column(item for row in rows for item in row)

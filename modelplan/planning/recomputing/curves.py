"""The curve of a model: what each amount of extra work saves, each point planned and replayed."""

import time
from collections.abc import Iterator, Sequence
from dataclasses import replace

from modelplan.answers.recomputation import Curve, Repeated
from modelplan.checking.recomputation_replay import check_repeated
from modelplan.model import Graph, bounds
from modelplan.planning import pipeline
from modelplan.planning.pipeline import Options
from modelplan.planning.recomputing import exact, greedy
from modelplan.planning.recomputing.op_units import Units, repeated, units_of
from modelplan.primitives import highs
from modelplan.primitives.errors import RequestError
from modelplan.primitives.version import __version__

#: Budgets between the peak and what every sequence needs.
LEVELS = 12
#: Sequences that one search of the greedy method looks at, summed over units.
MOST_LOOKS = 1_000_000
#: Seconds that each exact search has at least; units up to which each budget is solved.
_LEAST_SECONDS, _SMALL = 0.5, 30
#: HiGHS holds its answers to so much of the work.
_TOLERANCE = 1e-6


def curve_of(
    graph: Graph, options: Options, *, most_work: float = 0.2, budget: int | None = None, seconds: float = 30.0
) -> Curve:
    """The plans of `graph` with repeated operators that no other one beats in bytes and work.

    Args:
        graph: the model.
        options: how it is planned; the order is that of the plan without repetitions.
        most_work: of the extra work, as a share; the lowest point within it is chosen where no budget is given.
        budget: bytes; the point of least work within them is chosen.
        seconds: for all exact searches, 0: without them; the greedy method does not look at it.

    Raises:
        RequestError: streams, precedences or a finished plan, which say nothing of repeated operators.
    """
    if options.streams is not None or options.offsets or options.precedences or options.overlaps or options.contiguous:
        raise RequestError("recompute takes no streams, offsets, precedences, overlaps or contiguous lists")
    plain = pipeline.plan(graph, options)
    order = plain.schedule.order
    mode = pipeline.alias_mode(options, plain.runtime)
    units = units_of(plain.graph, order, plain.runtime, mode)
    plans = [Repeated(plain, order, bounds.height(plain.problem, plain.placement), units.work, "as it is")]
    seen = {tuple(range(len(units.units)))}
    remarks = list(_remarks(units, sorts=plain.runtime.sorts))
    for sequence, method, bound in _sequences(units, budget, seconds):
        if sequence not in seen:
            seen.add(sequence)
            plans.append(_planned(graph, options, units, sequence, method, bound))
    points = _front(plans)
    return Curve(graph, points, _chosen(points, most_work, budget), tuple(remarks), f"modelplan {__version__}", budget)


def _remarks(units: Units, *, sorts: bool) -> Iterator[str]:
    if len(units.units) > exact.MOST_UNITS:
        yield f"{len(units.units)} units, more than the {exact.MOST_UNITS} of the exact search: greedy only"
    elif not highs.is_there():
        yield f"without SciPy there is no exact search: greedy only ({highs.INSTALL})"
    if sorts:
        yield "this runtime orders operators by itself: the curve is for one that obeys the file's order"
    fixed = sum(not unit.repeatable for unit in units.units)
    if fixed:
        yield f"{fixed} units have side effects, state or bodies and are not repeated"


def _sequences(units: Units, budget: int | None, seconds: float) -> Iterator[tuple[tuple[int, ...], str, int]]:
    """Sequences with the method that found them and the work that is proved to be needed within those bytes."""
    plain = tuple(range(len(units.units)))
    tries = max(MOST_LOOKS // max(len(plain), 1), 200)
    levels = _levels(units, plain, budget)
    in_reach = seconds > 0 and len(plain) <= exact.MOST_UNITS and highs.is_there()
    answers = _exact_answers(units, levels, seconds) if in_reach else {}
    least = units.work
    for level in levels:
        again, answer = max(exact.extra_work(units, level).values(), default=0), answers.get(level)
        if again == float("inf") or (answer and answer.ended == "infeasible"):
            return
        # What is needed within more bytes is needed within fewer.
        least = max(least, units.work + int(again), answer.bound if answer else 0)
        sequence = greedy.lowered(units, plain, level, min(tries, greedy.MOST_TRIES))
        if sequence is not None:
            proved = units.work_of(sequence) <= least + _TOLERANCE * units.work
            yield sequence, "exact" if proved else "greedy", least
        if answer and answer.sequence is not None and units.peak(answer.sequence) <= level:
            yield answer.sequence, "exact" if answer.ended == "optimal" else "exact, stopped", least
        if sequence is None and not answers:
            return


def _exact_answers(units: Units, levels: Sequence[int], seconds: float) -> dict[int, exact.SequenceAnswer]:
    """The answer of the exact search for each of the budgets, from the lowest up: those without any are proved soon.

    What one search leaves of its time is for the others. The highest budget is for small graphs only: a byte less than
    the peak says little, and is the last to be proved.
    """
    sequence_answers, until = {}, time.monotonic() + seconds
    asked = sorted(levels)[: None if len(units.units) <= _SMALL else -1]
    for number, level in enumerate(asked):
        left = (until - time.monotonic()) / (len(asked) - number)
        sequence_answers[level] = exact.least_work(units, level, max(left, _LEAST_SECONDS))
    return sequence_answers


def _levels(units: Units, plain: Sequence[int], budget: int | None) -> list[int]:
    """The budgets to ask for, from the highest down, each between the peak and what every sequence needs."""
    peak, floor = units.peak(plain), units.floor
    budgets = {peak - 1 - (peak - 1 - floor) * i // (LEVELS - 1) for i in range(LEVELS)}
    budgets |= {budget} if budget is not None else set()
    return sorted((level for level in budgets if floor <= level < peak), reverse=True)


def _planned(
    graph: Graph, options: Options, units: Units, sequence: Sequence[int], method: str, bound: int
) -> Repeated:
    """The plan of the graph that runs the sequence, replayed."""
    again, origins = repeated(graph, [op for u in sequence for op in units.units[u].ops])
    plan = pipeline.plan(again, replace(options, schedule="file"))
    check_repeated(graph, plan, origins)
    return Repeated(plan, origins, bounds.height(plan.problem, plan.placement), units.work_of(sequence), method, bound)


def _front(points: Sequence[Repeated]) -> tuple[Repeated, ...]:
    """Those that none beats in both, from little work to much; the first is always the one without repetitions."""
    front = [points[0]]
    for point in sorted(points[1:], key=lambda point: (point.work, point.height)):
        if point.height < front[-1].height:
            front.append(point)
    return tuple(front)


def _chosen(points: Sequence[Repeated], most_work: float, budget: int | None) -> int:
    if budget is not None:
        return next((i for i, point in enumerate(points) if point.height <= budget), -1)
    within = [i for i, point in enumerate(points) if point.work <= points[0].work * (1 + most_work)]
    return within[-1]

"""The table of schedulers, and `order`, which runs one and checks its bound."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from modelplan.checking import referee
from modelplan.model import Aliases, Budget, Graph, OrderProblem, Runtime, Schedule, bounds
from modelplan.planning import entry_points, lifetimes
from modelplan.planning.schedulers.order_core import Effort, OrderAnswer, solve
from modelplan.planning.schedulers.ordering_problem import order_problem, with_late_unpacking
from modelplan.primitives.errors import BrokenPlanError, RequestError
from modelplan.primitives.lazy_records import dataclass

#: Two seconds of one core of 2023.
BEST_STEPS = 60_000_000


@dataclass(frozen=True, slots=True)
class Scheduler:
    """One row of the table: what the core is asked for."""

    name: str
    effort: Effort
    notes: str


SCHEDULERS: dict[str, Scheduler] = {
    s.name: s
    for s in (
        Scheduler("file", Effort("file", steps=BEST_STEPS), "the order of the file, where it is topological"),
        Scheduler("list", Effort("list", steps=BEST_STEPS), "XLA's list rule: free the most, allocate the least"),
        Scheduler("dfs", Effort("dfs", steps=BEST_STEPS), "XLA's depth-first rule: operands with many users first"),
        Scheduler("merge", Effort("merge", steps=BEST_STEPS), "Liu's hills and valleys: least peak on trees"),
        Scheduler("beam", Effort("beam", width=64, steps=BEST_STEPS), "the 64 best partial orders at each step"),
        Scheduler("best", Effort("best", search=True, steps=BEST_STEPS), "all of these, then the exact search"),
        Scheduler("exact", Effort("best", search=True), "as best, until it is proved or memory ends"),
    )
}

BEST = "best"


def order(graph: Graph, aliases: Aliases, runtime: Runtime, name: str = BEST, budget: Budget | None = None) -> Schedule:
    """An execution order of `graph` by the scheduler `name`, with a bound for every order, both checked.

    `budget` replaces the steps and seconds of the scheduler where it names them.

    Raises:
        RequestError: unknown name; the message lists the names.
        BrokenPlanError: the witness does not prove its bound.
    """
    return next(orders(graph, aliases, runtime, name, budget))


def names() -> tuple[str, ...]:
    """The schedulers by name: those of the table, then those of packages with entry points of their group."""
    return tuple(dict.fromkeys((*SCHEDULERS, *entry_points.installed(entry_points.SCHEDULERS))))


def require_schedule(name: str) -> None:
    """Checks that there is a schedule called `name`."""
    if name not in SCHEDULERS and name not in names():
        raise RequestError(f"no schedule {name!r}; there are: {', '.join(names())}")


def orders(
    graph: Graph,
    aliases: Aliases,
    runtime: Runtime,
    name: str = BEST,
    budget: Budget | None = None,
    precedences: Iterable[tuple[int, int]] = (),
) -> Iterator[Schedule]:
    """What `order` gives, then other orders of the same peak: they need not pack equally well.

    All keep the pairs (before, after) of `precedences`; the bound holds for the orders that do.
    """
    require_schedule(name)
    pairs = tuple(precedences)
    asked = "order problem", aliases, runtime, pairs
    problem = graph.memoised(asked, lambda: order_problem(graph, aliases, runtime, pairs))
    answer = solve(problem, _limited(SCHEDULERS[name if name in SCHEDULERS else "file"].effort, budget))
    referee.check_flow(problem, answer.witness)
    if name not in SCHEDULERS:
        yield _installed_order(graph, aliases, runtime, name, problem, answer)
        return
    sequence = answer.order if name == "file" else with_late_unpacking(graph, answer.order)
    least = peak(graph, sequence, aliases, runtime)
    found_by = name if not SCHEDULERS[name].effort.search else f"{name} ({answer.found_by})"
    proof = "flow certificate" if answer.flow_bound == answer.lower_bound else "search"
    first = Schedule(sequence, least, min(answer.lower_bound, least), found_by, proof, answer.witness)
    yield first
    for sequence in dict.fromkeys(with_late_unpacking(graph, alternative) for alternative in answer.alternatives):
        if peak(graph, sequence, aliases, runtime) == least:
            yield replace(first, order=sequence)


def _installed_order(
    graph: Graph, aliases: Aliases, runtime: Runtime, name: str, problem: OrderProblem, answer: OrderAnswer
) -> Schedule:
    """The order of another package's scheduler, checked, with the bound of `answer`."""
    entry = entry_points.installed(entry_points.SCHEDULERS)[name]
    listed = entry_points.guarded(entry, entry_points.loaded(entry))(graph)
    sequence = tuple(map(int, listed))
    step = {op: at for at, op in enumerate(sequence)}
    if sorted(sequence) != list(range(problem.ops)):
        raise BrokenPlanError(f"schedule {name!r}: {len(sequence)} operators, not each of the {problem.ops} once")
    for before, after in problem.edges:
        if step[before] > step[after]:
            raise BrokenPlanError(f"schedule {name!r}: {graph.label(after)} runs before {graph.label(before)}")
    least = peak(graph, sequence, aliases, runtime)
    return Schedule(sequence, least, min(answer.flow_bound, least), name, "flow certificate", answer.witness)


def peak(graph: Graph, sequence: Sequence[int], aliases: Aliases, runtime: Runtime) -> int:
    """The most bytes alive at once when the ops run in `sequence`."""
    problem = lifetimes.buffers(graph, sequence, aliases, runtime)
    return int(bounds.live_bytes(problem, max(len(sequence), 1)).max())


def _limited(effort: Effort, budget: Budget | None) -> Effort:
    if budget is None:
        return effort
    steps = effort.steps if budget.steps is None else budget.steps
    return replace(effort, steps=steps, seconds=budget.seconds)

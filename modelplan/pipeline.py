"""The stages in their order: the only place that knows it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import get_args

from modelplan import __version__, aliasing, allocators, bounds, lifetimes, runtimes, schedulers, streams
from modelplan.errors import RequestError
from modelplan.types import Aliases, Budget, Graph, Padding, Placement, Plan, Problem, Runtime, Schedule
from modelplan.verifier import proof
from modelplan.verifier.subject import plan_subject


@dataclass(frozen=True, slots=True)
class Options:
    """What a caller may choose; None means the runtime's own fact.

    `streams` is the number of streams that ops are spread over, or the stream of each op; buffers whose ops may then
    run at the same time share no bytes. None: one op after the other. `precedences` are pairs (before, after) of ops
    that every order must keep besides what the graph demands.
    """

    runtime: str | None = None
    schedule: str = schedulers.BEST
    alias: str = "views"
    allocator: str = allocators.DEFAULT
    alignment: int | None = None
    pad: Padding | None = None
    capacity: int | None = None
    streams: int | tuple[int, ...] | None = None
    precedences: tuple[tuple[int, int], ...] = ()


def plan(graph: Graph, options: Options | None = None, budget: Budget | None = None) -> Plan:
    """A refereed memory plan of `graph`, replayed by the verifier.

    Raises:
        BrokenPlanError: a stage went wrong; names the operator that would read what it should not.
        RequestError: a name that does not exist, or an option the stage cannot honour.
    """
    options = options or Options()
    return _plan(graph, layout(graph, options), options, budget)


def today(graph: Graph, runtime: Runtime) -> Plan:
    """What the runtime does by itself: file order, no merges, its own allocator."""
    return _plan(graph, runtime, Options(schedule="file", alias="none", allocator=runtime.allocator))


def _plan(graph: Graph, runtime: Runtime, options: Options, budget: Budget | None = None) -> Plan:
    aliases = aliasing.storages(graph, options.alias)
    schedules = schedulers.orders(graph, aliases, runtime, options.schedule, precedences=options.precedences)
    schedule, problem, placement = _tightest(graph, aliases, runtime, schedules, options, budget)
    made_by = f"modelplan {__version__}"
    made = Plan(graph, schedule, aliases.merges, problem, placement, runtime, options.allocator, options.alias, made_by)
    proof.prove(plan_subject(made))
    return made


def _tightest(
    graph: Graph,
    aliases: Aliases,
    runtime: Runtime,
    schedules: Sequence[Schedule],
    options: Options,
    budget: Budget | None,
) -> tuple[Schedule, Problem, Placement]:
    """The first of the orders whose arena is its peak, else the one with the least height."""
    found = []
    for schedule in schedules:
        problem = pose(graph, schedule.order, aliases, runtime, options)
        found.append((schedule, problem, allocators.place(problem, options.allocator, budget)))
        if bounds.height(problem, found[-1][2]) <= schedule.peak:
            return found[-1]
    return min(found, key=lambda made: bounds.height(made[1], made[2]))


def pose(graph: Graph, order: Sequence[int], aliases: Aliases, runtime: Runtime, options: Options) -> Problem:
    """The buffers of an order, with the extra conflicts of ops that streams let run at the same time.

    Raises:
        RequestError: streams that do not match the graph, or an alias mode under which they would not be safe.
    """
    problem = lifetimes.buffers(graph, order, aliases, runtime, options.capacity)
    if options.streams is None:
        return problem
    if options.alias not in ("none", "views"):
        raise RequestError(f"streams with alias mode {options.alias!r}: an op could overwrite what another still reads")
    given = options.streams
    stream = streams.spread_ops(graph, order, given) if isinstance(given, int) else given
    return replace(problem, conflicts=streams.stream_conflicts(graph, order, stream, problem))


def layout(graph: Graph, options: Options) -> Runtime:
    """The runtime's facts with the caller's alignment and padding in place of its own."""
    runtime = runtimes.runtime(options.runtime, graph.format)
    if options.alignment is not None and options.alignment < 1:
        raise RequestError(f"alignment is {options.alignment}, expected at least 1")
    if options.pad not in (None, *get_args(Padding)):
        raise RequestError(f"no padding {options.pad!r}; there are: {', '.join(get_args(Padding))}")
    return replace(
        runtime,
        alignment=options.alignment or runtime.alignment,
        pad=options.pad or runtime.pad,
    )

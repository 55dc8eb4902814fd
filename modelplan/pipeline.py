"""The stages in their order: the only place that knows it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import get_args

from modelplan import __version__, aliasing, allocators, lifetimes, runtimes, schedulers
from modelplan.errors import RequestError
from modelplan.types import Budget, Graph, Padding, Plan, Runtime
from modelplan.verifier import proof
from modelplan.verifier.subject import plan_subject


@dataclass(frozen=True, slots=True)
class Options:
    """What a caller may choose; None means the runtime's own fact."""

    runtime: str | None = None
    schedule: str = schedulers.BEST
    alias: str = "views"
    allocator: str = allocators.DEFAULT
    alignment: int | None = None
    pad: Padding | None = None
    capacity: int | None = None


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
    schedule = schedulers.order(graph, aliases, runtime, options.schedule)
    problem = lifetimes.buffers(graph, schedule.order, aliases, runtime, options.capacity)
    placement = allocators.place(problem, options.allocator, budget)
    made_by = f"modelplan {__version__}"
    made = Plan(graph, schedule, aliases.merges, problem, placement, runtime, options.allocator, options.alias, made_by)
    proof.prove(plan_subject(made))
    return made


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

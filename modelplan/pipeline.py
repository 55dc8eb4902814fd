"""The stages in their order: the only place that knows it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import get_args

import numpy as np

from modelplan import __version__, aliasing, allocators, bounds, lifetimes, runtimes, schedulers, streams
from modelplan.aliasing import overlapping as partial
from modelplan.errors import RequestError
from modelplan.runtimes.in_place import SHARING
from modelplan.types import Aliases, Budget, Graph, Op, Overlap, Padding, Placement, Plan, Problem, Runtime, Schedule
from modelplan.verifier import proof
from modelplan.verifier.subject import plan_subject


@dataclass(frozen=True, slots=True)
class Options:
    """What a caller may choose; None means the runtime's own fact.

    `streams` is the number of streams that ops are spread over, or the stream of each op; buffers whose ops may then
    run at the same time share no bytes. None: one op after the other. `precedences` are pairs (before, after) of ops
    that every order must keep besides what the graph demands. `offsets` is a ready plan, an offset for each tensor or
    -1; `overlaps` are the caller's word for operators that may write over what they read.
    """

    runtime: str | None = None
    schedule: str = schedulers.BEST
    alias: str | None = None
    allocator: str = allocators.DEFAULT
    alignment: int | None = None
    pad: Padding | None = None
    capacity: int | None = None
    streams: int | tuple[int, ...] | None = None
    precedences: tuple[tuple[int, int], ...] = ()
    kernels: str | None = None
    offsets: tuple[int, ...] = ()
    overlaps: tuple[Overlap, ...] = ()


def plan(graph: Graph, options: Options | None = None, budget: Budget | None = None) -> Plan:
    """A refereed memory plan of `graph`, replayed by the verifier.

    Raises:
        BrokenPlanError: a stage went wrong; names the operator that would read what it should not.
        RequestError: a name that does not exist, or an option the stage cannot honour.
    """
    options = options or Options()
    return _plan(graph, layout(graph, options), options, budget)


def alias_mode(options: Options, runtime: Runtime) -> str:
    """The mode that was asked for, else the runtime's usual one: no plan needs more than the runtime by itself.

    `safe` where the runtime overwrites operands without being told, `views` where it does not or streams run.
    """
    overwrites = bool(SHARING[runtime.name].overwrites) and options.streams is None
    return options.alias or ("safe" if overwrites else "views")


def today(graph: Graph, runtime: Runtime) -> Plan:
    """What the runtime does by itself: file order, the merges that it makes, its own allocator."""
    return _plan(graph, runtime, Options(schedule="file", alias="runtime", allocator=runtime.allocator))


def _plan(graph: Graph, runtime: Runtime, options: Options, budget: Budget | None = None) -> Plan:
    graph = with_scratch(runtimes.as_stored(graph, runtime), runtime, options)
    made = min(_made(graph, runtime, options, budget), key=lambda plan: bounds.height(plan.problem, plan.placement))
    proof.prove(plan_subject(made))
    return made


def _made(graph: Graph, runtime: Runtime, options: Options, budget: Budget | None) -> Iterator[Plan]:
    """The plan, and in mode max also the one without joins and splits: those were judged in the file's order only."""
    in_file = aliasing.topological(graph)
    made_by = f"modelplan {__version__}"
    mode = alias_mode(options, runtime)
    offers = [aliasing.storages(graph, mode, runtime)]
    if mode == "max":
        with_parts = aliasing.storages(graph, "max", runtime, lifetimes.Occupancy(graph, in_file, runtime).swap)
        offers = [with_parts, *offers] if with_parts != offers[0] else offers
    for offered in offers:
        schedules = schedulers.orders(graph, offered, runtime, options.schedule, precedences=options.precedences)
        schedule, aliases, problem, placement, overlaps = _tightest(graph, offered, runtime, schedules, options, budget)
        names = options.allocator, mode, made_by
        yield Plan(graph, schedule, aliases.merges, problem, placement, runtime, *names, overlaps)


def _tightest(
    graph: Graph,
    offered: Aliases,
    runtime: Runtime,
    schedules: Sequence[Schedule],
    options: Options,
    budget: Budget | None,
) -> tuple[Schedule, Aliases, Problem, Placement, tuple[Overlap, ...]]:
    """The first of the orders whose arena is its peak, else the one with the least height."""
    found = []
    for schedule in schedules:
        aliases = aliasing.settled(graph, offered, schedule.order, runtime)
        problem, overlaps = posed(graph, schedule.order, aliases, runtime, options)
        peak = schedulers.peak(graph, schedule.order, aliases, runtime)
        priced = replace(schedule, peak=peak, lower_bound=min(schedule.lower_bound, peak))
        found.append((priced, aliases, problem, allocators.place(problem, options.allocator, budget), overlaps))
        if not overlaps and bounds.height(problem, found[-1][3]) <= peak:
            return found[-1]
    return min(found, key=lambda made: bounds.height(made[2], made[3]))


def posed(
    graph: Graph, order: Sequence[int], aliases: Aliases, runtime: Runtime, options: Options
) -> tuple[Problem, tuple[Overlap, ...]]:
    """The buffers of an order as `pose` makes them, with the overlaps that the mode, the caller and a ready plan allow.

    Raises:
        RequestError: as `pose`, or overlaps together with streams.
    """
    problem = pose(graph, order, aliases, runtime, options)
    if options.streams is not None:
        if options.overlaps:
            raise RequestError("streams with overlaps: an op could write over what another still reads")
        return problem, ()  # what may run at the same time has no step in which only two buffers meet
    found = [
        *partial.overlaps(graph, aliases, order, alias_mode(options, runtime), runtime, options.overlaps),
        *partial.chosen(graph, order, options.offsets, runtime),
    ]
    kept, table = partial.rows(graph, order, problem, found)
    return replace(problem, overlaps=table), tuple(kept)


def with_scratch(graph: Graph, runtime: Runtime, options: Options) -> Graph:
    """The graph with the working memory of its operators: what kernels ask for, and the plans of bodies."""
    demands = [_demand(graph, op, runtime, options) for op in graph.ops]
    if not any(demands):
        return graph
    ops = tuple(replace(op, scratch=demand) for op, demand in zip(graph.ops, demands, strict=True))
    return replace(graph, ops=ops)


def _demand(graph: Graph, op: Op, runtime: Runtime, options: Options) -> tuple[int, ...]:
    """Bytes that the operator needs for itself: of bodies the largest, since they run one after the other."""
    kernel = runtimes.kernel_scratch(graph, op, runtime)
    bodies = [_body_bytes(body, runtime, options) for body in op.subgraphs]
    return (*kernel, max(bodies)) if any(bodies) else kernel


def _body_bytes(body: Graph, runtime: Runtime, options: Options) -> int:
    """The arena of a body. What goes in stays until what comes out is there: a loop reads both."""
    inner = _plan(
        body,
        replace(runtime, inputs="live"),
        replace(options, capacity=None, streams=None, precedences=(), alias=_body_mode(options), overlaps=()),
    )
    return bounds.height(inner.problem, inner.placement)


def _body_mode(options: Options) -> str:
    """Bodies share no more than views: nothing outside says that their inputs may be overwritten."""
    return "none" if options.alias == "none" else "views"


def pose(graph: Graph, order: Sequence[int], aliases: Aliases, runtime: Runtime, options: Options) -> Problem:
    """The buffers of an order, with the extra conflicts of ops that streams let run at the same time.

    Raises:
        RequestError: streams that do not match the graph, or an alias mode under which they would not be safe.
    """
    problem = lifetimes.buffers(graph, order, aliases, runtime, options.capacity)
    if options.offsets:
        problem = _pinned(problem, options.offsets)
    if options.streams is None:
        return problem
    if (mode := alias_mode(options, runtime)) not in ("none", "views"):
        raise RequestError(f"streams with alias mode {mode!r}: an op could overwrite what another still reads")
    given = options.streams
    stream = streams.spread_ops(graph, order, given) if isinstance(given, int) else given
    return replace(problem, conflicts=streams.stream_conflicts(graph, order, stream, problem))


def _pinned(problem: Problem, offsets: tuple[int, ...]) -> Problem:
    """The problem with each buffer where a ready plan has its tensors; -1 leaves a tensor free.

    Raises:
        RequestError: tensors of one buffer that the plan puts in different places, or an offset that is misaligned.
    """
    pins = []
    for name, members in zip(problem.names, problem.members, strict=True):
        at = {offsets[m.tensor] - m.delta for m in members if m.tensor < len(offsets) and offsets[m.tensor] >= 0}
        if len(at) > 1:
            raise RequestError(f"the file's plan keeps tensors of buffer {name!r} apart: use --alias none")
        pins.append(at.pop() if at else -1)
    try:
        return replace(problem, pin=np.array(pins, dtype=np.int64))
    except ValueError as reason:
        raise RequestError(f"the file's plan: {reason}") from None


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
        kernels=options.kernels or runtime.kernels,
    )

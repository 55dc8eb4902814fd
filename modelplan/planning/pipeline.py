"""The stages in their order: the only place that knows it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import get_args

import numpy as np

from modelplan import runtimes
from modelplan.checking.verifier import proof
from modelplan.checking.verifier.concurrency import check_streams
from modelplan.checking.verifier.subject import plan_subject
from modelplan.formats import as_graph
from modelplan.model import (
    Aliases,
    Budget,
    Graph,
    Op,
    Overlap,
    Padding,
    Placement,
    Plan,
    Problem,
    Runtime,
    Schedule,
    Witness,
    bounds,
)
from modelplan.ops.run_costs import graph_macs
from modelplan.planning import aliasing, allocators, lifetimes, schedulers, streams
from modelplan.planning.aliasing import overlapping, side_by_side
from modelplan.primitives.errors import RequestError
from modelplan.primitives.lazy_records import dataclass
from modelplan.primitives.version import __version__


@dataclass(frozen=True, slots=True)
class Options:
    """How a plan is made.

    Args:
        runtime: tflm, c, litert, ort, executorch or generic; None: tflm for .tflite and ort for .onnx.
        schedule: how the operators are ordered: file, list, dfs, merge, beam, best or exact.
        alias: which tensors may share memory: runtime, none, views, safe or max; None: safe where the
            runtime overwrites by itself, else views.
        allocator: a row of the table of allocators.
        alignment: bytes that each offset is a multiple of, a power of two; None: the runtime's.
        pad: what is rounded up to the alignment: "tensor" or "arena"; None: as the runtime does.
        capacity: bytes there are, None without a limit; the plan says whether it fits.
        streams: how many streams the operators are spread over, or the stream of each; buffers whose operators may then
            run at the same time share no bytes. None: one operator after the other.
        precedences: pairs (before, after) of operators that every order must keep besides what the graph demands.
        kernels: the kernel library that the runtime is built with; None: its first.
        offsets: a finished plan, such as a model file carries: an offset for each tensor, -1 where the allocator
            chooses.
        overlaps: outputs that may run into an operand although no table says so; the caller answers for them.
        contiguous: lists of tensors whose buffers stand side by side in this order.
        joins: whether parts of joins and splits may stand inside of the whole while they live, so that nothing is
            copied, where that lowers the plan.
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
    contiguous: tuple[tuple[int, ...], ...] = ()
    joins: bool = False


def plan(graph: Graph | Path | str, options: Options | None = None, budget: Budget | None = None) -> Plan:
    """A memory plan of `graph`, checked by the referee and proved by the verifier.

    Args:
        graph: the model, or the path of its file.
        options: how it is planned; None: as the usual runtime of its format does.
        budget: how long each search of the allocator may run.

    Raises:
        BrokenPlanError: a stage went wrong; names the operator that would read what it should not.
        RequestError: a name that does not exist, or an option the stage cannot honour.
    """
    graph, options = as_graph(graph), options or Options()
    runtime = configured_runtime(graph, options)
    memory_plan, own = plan_on(graph, runtime, options, budget), runtime_plan(graph, runtime, options.offsets)
    return replace(memory_plan, runtime_height=bounds.height(own.problem, own.placement))


@dataclass(frozen=True, slots=True)
class Footprint:
    """What a network needs: bytes of its plan, bytes below which no placement of these buffers goes, its work.

    `macs` are the multiply-accumulates of convolutions and matrix products of one run.
    """

    height: int
    bound: int
    macs: int


def measure(graph: Graph | Path | str, options: Options | None = None, budget: Budget | None = None) -> Footprint:
    """The height of the plan that `plan` makes of `graph`, and the work of one run: what a search over networks asks.

    The plan is made, checked and proved as by `plan`; what the runtime by itself would need is left out, which takes
    half of the time.

    Raises:
        BrokenPlanError, RequestError: as `plan`.

    Cost: about 0.15 ms of one processor for an operator in alias modes none and views.
    """
    graph, chosen = as_graph(graph), options or Options()
    memory_plan = plan_on(graph, configured_runtime(graph, chosen), chosen, budget)
    return Footprint(
        bounds.height(memory_plan.problem, memory_plan.placement), memory_plan.placement.lower_bound, graph_macs(graph)
    )


def runtime_plan(graph: Graph, runtime: Runtime, offsets: tuple[int, ...] = ()) -> Plan:
    """The plan that the runtime makes by itself: file order, the sharing by itself, its own allocator.

    `offsets` is the plan that the file carries for it, as in `Options`. The graph remembers the plans that were asked
    for last: a command asks for one several times.
    """
    alias = "views" if offsets else "runtime"  # a view keeps its bytes where the file's plan says so
    own = Options(schedule="file", alias=alias, allocator=runtime.allocator, offsets=offsets)
    return graph.memoised(("as the runtime", runtime, offsets), lambda: plan_on(graph, runtime, own))


def plan_on(graph: Graph, runtime: Runtime, options: Options, budget: Budget | None = None) -> Plan:
    """The plan for a runtime given as a record, which may stand in no table; its name in `options` is unread."""
    return _best(_prepared(graph, runtime, options), runtime, options, budget)


def shared_buffers(graph: Graph, options: Options) -> tuple[Problem, tuple[Overlap, ...]]:
    """The buffers of a plan in file order, and the outputs that may overlap an operand, before anything is placed.

    They are those of `plan` with these options; what is asked of the order and of the allocator does not count.
    """
    order = tuple(range(len(graph.ops)))
    # Which of the two sets of buffers of mode max is better shows when they are placed.
    if options.alias == "max" or tuple(graph.producers_first) != order:
        memory_plan = plan(graph, replace(options, schedule="file"))
        return memory_plan.problem, memory_plan.overlaps
    runtime = configured_runtime(graph, options)
    stored = _prepared(graph, runtime, options)
    offered = _offered(stored, alias_mode(options, runtime), runtime)
    aliases = aliasing.take_offers(stored, offered, order, runtime)
    return placement_problem(stored, order, aliases, runtime, options)


def alias_mode(options: Options, runtime: Runtime) -> str:
    """The mode that was asked for, else the usual one of the runtime, which needs no more than the runtime by itself.

    `safe` where the runtime overwrites operands by itself, `views` where it does not or streams run.
    """
    overwrites = bool(runtime.sharing.overwrites) and options.streams is None
    return options.alias or ("safe" if overwrites else "views")


def configured_runtime(graph: Graph, options: Options) -> Runtime:
    """The runtime that the options name, with the caller's alignment, padding and kernels in place of its own.

    Raises:
        RequestError: no such runtime, kernel library or padding, or an alignment that is no power of two.
    """
    runtime = runtimes.runtime(options.runtime, graph.format)
    if options.alignment is not None and (options.alignment < 1 or options.alignment & (options.alignment - 1)):
        raise RequestError(f"alignment is {options.alignment}, expected a power of two, such as 16")
    if options.pad not in (None, *get_args(Padding)):
        raise RequestError(f"no padding {options.pad!r}; there are: {', '.join(get_args(Padding))}")
    if options.kernels:
        runtime = runtimes.with_kernels(runtime, options.kernels)
    return replace(runtime, alignment=options.alignment or runtime.alignment, pad=options.pad or runtime.pad)


def require_names(options: Options, runtime: Runtime) -> None:
    """Checks that there are the schedule, the alias mode and the allocator that the options name.

    Raises:
        RequestError: there is none of that name; the message lists the names.
    """
    schedulers.require_schedule(options.schedule)
    aliasing.require_mode(alias_mode(options, runtime))
    allocators.allocator(options.allocator)


@dataclass(frozen=True, slots=True)
class _Candidate:
    """An order, the classes of tensors that share memory in it, and the placement of their buffers."""

    schedule: Schedule
    aliases: Aliases
    problem: Problem
    placement: Placement
    overlaps: tuple[Overlap, ...]

    @property
    def height(self) -> int:
        """The bytes that the placement needs."""
        return bounds.height(self.problem, self.placement)


def _prepared(graph: Graph, runtime: Runtime, options: Options) -> Graph:
    """The graph with its values as the runtime stores them and with its working memory."""

    def make() -> Graph:
        return with_scratch(runtimes.as_stored(graph, runtime), runtime, options)

    return make() if graph.bodies else graph.memoised(("prepared", runtime), make)  # bodies are planned by the options


def _offered(graph: Graph, mode: str, runtime: Runtime) -> Aliases:
    """The overwrites and views that the alias mode offers for any order."""
    return graph.memoised(("offered", mode, runtime), lambda: aliasing.storages(graph, mode, runtime))


def _best(graph: Graph, runtime: Runtime, options: Options, budget: Budget | None = None) -> Plan:
    """The lowest of the plans of a graph whose scratch is known, proved."""
    best = min(_candidates(graph, runtime, options, budget), key=lambda candidate: candidate.height)
    memory_plan = Plan(
        graph,
        best.schedule,
        best.aliases.merges,
        best.problem,
        best.placement,
        runtime,
        options.allocator,
        alias_mode(options, runtime),
        f"modelplan {__version__}",
        best.overlaps,
        streams=_streams(graph, best.schedule.order, options),
    )
    proof.prove(plan_subject(memory_plan))
    check_streams(memory_plan)
    return memory_plan


def _candidates(graph: Graph, runtime: Runtime, options: Options, budget: Budget | None) -> Iterator[_Candidate]:
    """The best candidate; in mode max also the best without joins and splits, which were judged in file order only."""
    mode = alias_mode(options, runtime)
    if options.offsets and mode in ("none", "runtime"):
        mode = "views"  # where a finished plan has a view over its source, both are one value
    offers = [_offered(graph, mode, runtime)]
    if mode == "max":
        in_file = lifetimes.Occupancy(graph, graph.producers_first, runtime)
        with_parts = aliasing.storages(graph, "max", runtime, in_file.swap)
        offers = [with_parts, *offers] if with_parts != offers[0] else offers
    for offered in offers:
        schedules = schedulers.orders(graph, offered, runtime, options.schedule, precedences=options.precedences)
        yield _lowest(graph, offered, runtime, schedules, options, budget)


def _lowest(
    graph: Graph,
    offered: Aliases,
    runtime: Runtime,
    schedules: Iterable[Schedule],
    options: Options,
    budget: Budget | None,
) -> _Candidate:
    """The candidate of the first order that needs no more than its peak, else the lowest candidate."""
    candidates = []
    for schedule in schedules:
        aliases = aliasing.take_offers(graph, offered, schedule.order, runtime)
        if options.offsets:
            aliases = aliasing.as_placed(aliases, options.offsets)
        problem, overlaps = placement_problem(graph, schedule.order, aliases, runtime, options)
        if options.joins:
            candidates += _joined(graph, schedule, aliases, problem, overlaps, options, budget)
        peak = int(bounds.live_bytes(problem, max(len(schedule.order), 1)).max())
        reached = replace(schedule, peak=peak, lower_bound=min(schedule.lower_bound, peak))
        placement = allocators.place(problem, options.allocator, budget)
        candidates.append(_Candidate(reached, aliases, problem, placement, overlaps))
        if not overlaps and candidates[-1].height <= peak:
            return min(candidates, key=lambda candidate: candidate.height) if options.joins else candidates[-1]
    return min(candidates, key=lambda candidate: candidate.height)


def _joined(
    graph: Graph,
    schedule: Schedule,
    aliases: Aliases,
    problem: Problem,
    overlaps: tuple[Overlap, ...],
    options: Options,
    budget: Budget | None,
) -> list[_Candidate]:
    """The candidate with the parts of joins and splits inside of the whole; nothing without such sites."""
    if options.contiguous or options.streams is not None or options.offsets:
        raise RequestError("joins go with no contiguous lists, streams or offsets of a file")
    groups, meetings = side_by_side.side_by_side_rows(graph, schedule.order, problem)
    if not len(groups):
        return []
    joined = replace(problem, groups=groups, meetings=meetings)
    peak = bounds.load_bound(joined)
    # The bound of the scheduler counts copies; with joins an order still holds what each operator writes.
    least = max((sum(graph.tensors[t].nbytes for t in op.writes) for op in graph.ops), default=0)
    reached = replace(schedule, peak=peak, lower_bound=min(least, peak), proof="largest results", witness=Witness())
    return [_Candidate(reached, aliases, joined, allocators.place(joined, options.allocator, budget), overlaps)]


def placement_problem(
    graph: Graph, order: Sequence[int], aliases: Aliases, runtime: Runtime, options: Options
) -> tuple[Problem, tuple[Overlap, ...]]:
    """The buffers of an order that need an address, and the overlaps that the mode, the caller and `offsets` allow.

    Raises:
        RequestError: streams that do not match the graph or that overwrites and overlaps would make unsafe, or
            `offsets` that the buffers cannot have.
    """
    problem = _listed(graph, lifetimes.buffers(graph, order, aliases, runtime, options.capacity), options)
    if options.offsets:
        problem = _pinned(problem, options.offsets)
    if options.streams is not None:
        # What may run at the same time has no step in which only two buffers meet, and so no overlaps.
        return _with_stream_conflicts(graph, order, problem, alias_mode(options, runtime), options), ()
    overlaps = [
        *overlapping.allowed_overlaps(graph, aliases, order, alias_mode(options, runtime), runtime, options.overlaps),
        *overlapping.overlaps_of_offsets(graph, order, options.offsets, runtime),
    ]
    kept, rows = overlapping.overlap_rows(graph, order, problem, overlaps)
    if options.offsets and runtime.inputs == "dying":
        rows = np.concatenate([rows, overlapping.unread_input_rows(graph, problem)])
    return replace(problem, overlaps=rows), tuple(kept)


def _listed(graph: Graph, problem: Problem, options: Options) -> Problem:
    """The problem with the requested contiguous lists."""
    if not options.contiguous:
        return problem
    try:
        return replace(problem, contiguous=lifetimes.contiguous_buffers(graph, problem, options.contiguous))
    except ValueError as reason:
        raise RequestError(f"contiguous: {reason}") from None


def _with_stream_conflicts(
    graph: Graph, order: Sequence[int], problem: Problem, mode: str, options: Options
) -> Problem:
    """The problem with the conflicts of buffers that streams may bring to life at the same time."""
    if mode not in ("none", "views"):
        raise RequestError(f"streams with alias mode {mode!r}: an op could overwrite what another still reads")
    if options.overlaps:
        raise RequestError("streams with overlaps: an op could write over what another still reads")
    stream = _streams(graph, order, options)
    return replace(problem, conflicts=streams.stream_conflicts(graph, order, stream, problem))


def _streams(graph: Graph, order: Sequence[int], options: Options) -> tuple[int, ...]:
    """The stream of each operator; empty where one runs after the other."""
    if isinstance(options.streams, int):
        return streams.spread_ops(graph, order, options.streams)
    return options.streams or ()


def _pinned(problem: Problem, offsets: tuple[int, ...]) -> Problem:
    """The problem with each buffer where the finished plan has its tensors; -1 leaves a tensor free."""
    pins = []
    for buffer in problem:
        known = [m for m in buffer.members if m.tensor < len(offsets) and offsets[m.tensor] >= 0]
        at = {offsets[m.tensor] - m.delta for m in known}
        if len(at) > 1:
            raise RequestError(f"the file's plan keeps tensors of buffer {buffer.name!r} apart: use --alias none")
        pins.append(at.pop() if at else -1)
    try:
        return replace(problem, pin=np.array(pins, dtype=np.int64))
    except ValueError as reason:
        raise RequestError(f"the file's plan: {reason}") from None


def with_scratch(graph: Graph, runtime: Runtime, options: Options) -> Graph:
    """The graph with the working memory of its operators: what kernels ask for, and the plans of bodies."""
    arenas: dict[int, int] = {}
    for body in reversed(graph.bodies):
        arenas[id(body)] = _body_bytes(body, runtime, options, arenas)
    return _with_demands(graph, runtime, arenas)


def _with_demands(graph: Graph, runtime: Runtime, arenas: Mapping[int, int]) -> Graph:
    """The graph with what its operators ask for; `arenas` are the arenas of bodies by their id."""
    kernels: dict[int, tuple[int, ...]] = {}
    if runtime.scratch:
        kernels = {first: runtime.scratch(graph, graph.ops[first], runtime.kernels) for first in set(graph.first_alike)}
    if not any(kernels.values()) and not any(arenas.values()):
        return graph
    demands = [
        _scratch_sizes(op, kernels.get(first, ()), arenas)
        for op, first in zip(graph.ops, graph.first_alike, strict=True)
    ]
    if not any(demands):
        return graph
    ops = tuple(replace(op, scratch=sizes) for op, sizes in zip(graph.ops, demands, strict=True))
    return replace(graph, ops=ops)


def _scratch_sizes(op: Op, kernel: tuple[int, ...], arenas: Mapping[int, int]) -> tuple[int, ...]:
    """Bytes of each working buffer of an operator: of its bodies the largest, since they run one after the other."""
    bodies = [arenas[id(body)] for body in op.subgraphs]
    return (*kernel, max(bodies)) if any(bodies) else kernel


def _body_bytes(body: Graph, runtime: Runtime, options: Options, arenas: Mapping[int, int]) -> int:
    """The arena of a body, given those of the bodies in it.

    Its inputs live to the end, because a loop reads them beside the outputs.
    """
    inside = replace(runtime, inputs="live")
    wanted = replace(
        options,
        capacity=None,
        streams=None,
        precedences=(),
        # Nothing outside says that a body's inputs may be overwritten.
        alias="none" if options.alias == "none" else "views",
        overlaps=(),
        contiguous=(),
        joins=False,
    )
    inner = _best(_with_demands(runtimes.as_stored(body, inside), inside, arenas), inside, wanted)
    return bounds.height(inner.problem, inner.placement)

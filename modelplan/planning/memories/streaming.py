"""Models that are larger than the memory of what computes them: weights come from a host, layer by layer.

Part of the device's memory keeps weights from run to run, part holds activations, the rest is a window through which
the other weights stream while operators compute. With a run after the other, what is kept is loaded once.
"""

from collections import defaultdict, deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from functools import cached_property

import numpy as np

from modelplan.answers.moving_layout import CurvePoint, StreamCurve
from modelplan.answers.region_layout import Layout, RegionProblem
from modelplan.checking.moves_simulator import simulate
from modelplan.model import Graph, Plan
from modelplan.model.bounds import height
from modelplan.planning.memories.asking import region_problem
from modelplan.planning.memories.prefetching import Moving, copied_ahead, plan_moves
from modelplan.planning.memories.tracks import HOME, Costs, Held, Track, moves_of, placed
from modelplan.primitives.errors import RequestError
from modelplan.primitives.lazy_records import dataclass
from modelplan.targets.device import Dma, Region

DEVICE, HOST = 0, 1
#: Shares of the memory beside activations that are tried as window; the rest keeps weights.
_WINDOWS = (0.02, 0.05, 0.1, 0.2, 0.35, 0.5, 0.75, 1.0)
#: How often fewer weights are kept where offsets do not fit, and how many windows get addresses.
_ROUNDS, _TRIED = 6, 3


@dataclass(frozen=True, slots=True)
class Link:
    """What a device computes with and gets weights by.

    `rate` is in bytes per second, `latency_ns` what a copy takes before its first byte, `queue` how many copies may be
    issued and not complete. An operator takes the longer of its multiply-accumulates at `macs_per_second` and its
    operands at `memory_rate`, bytes per second of the device's own memory (None: no time).
    """

    rate: int
    macs_per_second: float
    memory_rate: int | None = None
    latency_ns: float = 10_000.0
    queue: int = 64


@dataclass(frozen=True, eq=False)
class Stream:
    """A model that streams, as a question with a device's memory as large as may be.

    `activations` is the arena of its plan, `computing` the seconds of its operators. Weights of which operators read
    only some rows (embeddings) count with these rows, stay on the host and bring them in each run.
    """

    problem: RegionProblem
    link: Link
    activations: int
    computing: float
    rows: frozenset[int]

    @cached_property
    def tracks(self) -> dict[int, Track]:
        """The weights that operators use, by buffer."""
        return {t.buffer: t for t in Costs(self.problem).tracks if t.home == HOST and t.last_used >= 0}

    @property
    def weights(self) -> int:
        """The bytes of all weights, less the rows that no operator reads."""
        return sum(track.size for track in self.tracks.values())

    @cached_property
    def largest(self) -> int:
        """The most bytes of weights that one operator uses."""
        totals: dict[int, int] = defaultdict(int)
        for track in self.tracks.values():
            for segment in track.segments:
                totals[segment.start] += track.size * segment.used
        return max(totals.values())

    @property
    def least(self) -> int:
        """The memory below which an operator has no room for its weights beside all activations."""
        return self.activations + self.largest

    @property
    def most(self) -> int:
        """The memory in which all weights are kept."""
        return self.activations + self.weights


def stream_of(plan: Plan, link: Link) -> Stream:
    """The question of streaming the weights of a plan; its activations stay where the plan has them.

    Raises:
        RequestError: the model has no weights.
    """
    total = sum(tensor.nbytes for tensor in plan.graph.tensors) + plan.problem.size.sum() + 2**20
    device = Region("device", int(total))
    host = Region("host", int(total), kind="nvm", read_bandwidth=link.rate)
    asked = region_problem([plan], (device, host), macs_per_second=link.macs_per_second)
    rows = _rows(plan.graph, asked)
    size = asked.problem.size.copy()
    for buffer, read in rows.items():
        size[buffer] = read
    asked = replace(asked, problem=replace(asked.problem, size=size))
    engine = Dma(1, link.queue, link.rate, link.latency_ns)
    asked = replace(asked, dma=engine, copied_only=frozenset({HOST}), seconds=_seconds_of(asked, link))
    stream = Stream(asked, link, height(plan.problem, plan.placement), sum(asked.seconds), frozenset(rows))
    if not stream.tracks:
        raise RequestError(f"{plan.graph.name} has no weights that could be streamed")
    return stream


def _rows(graph: Graph, asked: RegionProblem) -> dict[int, int]:
    """Weights of which operators only gather rows, with the most bytes that one of these operators gathers."""
    rows = {}
    for buffer, members in enumerate(asked.problem.members):
        tensor = members[0].tensor if members and asked.home[buffer] == HOST else -1
        readers = [graph.ops[index] for index in graph.readers[tensor]] if tensor >= 0 else []
        if readers and all(op.kind in ("Gather", "GATHER", "EMBEDDING_LOOKUP") for op in readers):
            read = max(graph.tensors[op.writes[0]].nbytes for op in readers)
            if read < graph.tensors[tensor].nbytes:
                rows[buffer] = read
    return rows


def _seconds_of(asked: RegionProblem, link: Link) -> tuple[float, ...]:
    """The seconds of each operator: its work, or its operands from the device's memory where that takes longer."""
    moved = [0] * len(asked.seconds)
    for step, buffer in {(access.step, access.buffer) for access in asked.accesses}:
        moved[step] += int(asked.problem.size[buffer])
    rate = link.memory_rate or float("inf")
    return tuple(max(work, bytes_ / rate) for work, bytes_ in zip(asked.seconds, moved, strict=True))


@dataclass(frozen=True, slots=True)
class _Split:
    """A window, the weights that the rest of the memory keeps, and (step, bytes) of each copy in order of use."""

    window: int
    kept: frozenset[int]
    arrivals: tuple[tuple[int, int], ...]


def point(stream: Stream, memory: int) -> CurvePoint:
    """The quickest run in so much memory, by the time model.

    Raises:
        RequestError: less memory than an operator needs; names the least.
    """
    _check_memory(stream, memory)
    splits = _splits(stream, memory)
    best = min(splits, key=lambda split: (_seconds(stream, split, stream.link.rate), split.window))
    kept = sum(stream.tracks[buffer].size for buffer in best.kept)
    seconds, coming = _seconds(stream, best, stream.link.rate), sum(size for _, size in best.arrivals)
    return CurvePoint(memory, kept, best.window, coming, seconds, _needed_rate(stream, splits))


def stream_curve(plan: Plan, links: Sequence[Link], memory: int | None = None, points: int = 13) -> StreamCurve:
    """Runs in memories from the least to what keeps all weights, for each link; and one layout in `memory` bytes.

    The layout is for the first link and replayed by the simulator. In less than `Stream.least` activations wait on the
    host too.

    Raises:
        RequestError: no link; no weights; or `memory` too small for one operator.
    """
    if not links:
        raise RequestError("no link is given, expected at least one")
    streams = [stream_of(plan, link) for link in links]
    first = streams[0]
    grid = sorted({*np.linspace(first.least, first.most, points).astype(np.int64).tolist()})
    curves = tuple((s.link.rate, tuple(_running_minima(point(s, each) for each in grid))) for s in streams)
    replayed, moved = None, False
    if memory is not None and memory >= first.least:
        problem, layout = streamed(first, memory)
        replayed = simulate(problem, layout)
    elif memory is not None:
        problem, moving = swapped(first, memory)
        replayed, moved = simulate(problem, moving.layout), True
    return StreamCurve(
        plan.graph.name, first.activations, first.weights, first.computing, first.least, curves, memory, replayed,
        moved, plan.made_by,
    )  # fmt: skip


def _running_minima(points: Iterable[CurvePoint]) -> Iterator[CurvePoint]:
    """The points as running minima: more memory needs neither more time nor a faster link."""
    least, best = float("inf"), None
    for curve_point in points:
        least = min(least, curve_point.needed)
        best = curve_point if best is None or curve_point.seconds < best.seconds else best
        yield replace(best, memory=curve_point.memory, needed=least)


def _check_memory(stream: Stream, memory: int) -> None:
    if memory < stream.least:
        raise RequestError(
            f"{memory:,} bytes are too few: activations take {stream.activations:,} and the weights of one operator"
            f" {stream.largest:,}; the least is {stream.least:,}"
        )


def _splits(stream: Stream, memory: int) -> list[_Split]:
    """Windows to try, each with the weights that the rest keeps."""
    left, largest = memory - stream.activations, stream.largest
    windows = {max(largest, int(left * share)) for share in _WINDOWS} | {min(left, 2 * largest)}
    if memory >= stream.most:
        windows = {left - stream.weights + sum(stream.tracks[buffer].size for buffer in stream.rows)}
    splits = []
    for window in sorted(windows):
        kept = _weights_to_keep(stream, left - window)
        splits.append(_Split(window, kept, tuple(_arrivals(stream, kept))))
    return splits


def _weights_to_keep(stream: Stream, room: int) -> frozenset[int]:
    """Weights to keep in so many bytes: those that are used more than once, then evenly spread over the run.

    Spread evenly, since what streams then has to come no faster in one part of the run than in another.
    """
    tracks = sorted(
        (track for buffer, track in stream.tracks.items() if buffer not in stream.rows),
        key=lambda track: track.segments[track.first_used].start,
    )
    kept, left = set[int](), room
    for track in tracks:
        if sum(segment.used for segment in track.segments) > 1 and track.size <= left:
            kept.add(track.buffer)
            left -= track.size
    rest = [track for track in tracks if track.buffer not in kept]
    share, owed = min(1.0, left / max(sum(track.size for track in rest), 1)), 0.0
    for track in rest:
        owed += track.size * share
        if owed >= track.size / 2 and track.size <= left:
            kept.add(track.buffer)
            owed -= track.size
            left -= track.size
    for track in sorted(rest, key=lambda t: -t.size):  # what the even spread left over
        if track.buffer not in kept and track.size <= left:
            kept.add(track.buffer)
            left -= track.size
    return frozenset(kept)


def _arrivals(stream: Stream, kept: frozenset[int]) -> list[tuple[int, int]]:
    """(step, bytes) of each copy in the order of their use."""
    return sorted(
        (segment.start, track.size)
        for buffer, track in stream.tracks.items()
        if buffer not in kept
        for segment in track.segments
        if segment.used
    )


def _seconds(stream: Stream, split: _Split, rate: float) -> float:
    """The time model: copies one after the other, each as soon as the window has room; operators wait for theirs.

    A weight leaves the window when the operator that uses it has ended.
    """
    inside: deque[tuple[float, int]] = deque()
    free, channel, clock, number = float(split.window), 0.0, 0.0, 0
    wait, arrivals = stream.link.latency_ns * 1e-9, split.arrivals
    for step, takes in enumerate(stream.problem.seconds):
        ready, own = clock, 0
        while number < len(arrivals) and arrivals[number][0] == step:
            size = arrivals[number][1]
            number += 1
            while free < size and inside:
                ended, gone = inside.popleft()
                channel, free = max(channel, ended), free + gone
            channel += wait + size / rate
            free, own = free - size, own + size
            ready = channel
        clock = max(clock, ready) + takes
        if own:
            inside.append((clock, own))
    return clock


def _needed_rate(stream: Stream, splits: Sequence[_Split]) -> float:
    """Bytes per second with which a run takes at most a hundredth longer than its operators compute."""
    if not all(split.arrivals for split in splits):
        return 0.0
    aim = stream.computing * 1.01

    def reached(rate: float) -> bool:
        return any(_seconds(stream, split, rate) <= aim for split in splits)

    low, high = 1e3, 1e15
    if not reached(high):
        return float("inf")
    while high > low * 1.01:
        middle = (low * high) ** 0.5
        low, high = (low, middle) if reached(middle) else (middle, high)
    return high


def streamed(stream: Stream, memory: int) -> tuple[RegionProblem, Layout]:
    """The quickest layout in so much memory, every address and copy, with its times; and the question it answers.

    Raises:
        RequestError: less memory than an operator needs, or no offsets found.
    """
    _check_memory(stream, memory)
    device, host = stream.problem.regions
    problem = replace(stream.problem, regions=(replace(device, size=memory), host))
    layouts = list[tuple[float, int, Layout]]()
    splits = sorted(_splits(stream, memory), key=lambda split: _seconds(stream, split, stream.link.rate))
    for split in splits[:_TRIED]:
        layout = _layout(problem, split.kept)
        if layout is not None and layout.timetable is not None:
            layouts.append((layout.timetable.seconds, len(layouts), layout))
    if not layouts:
        raise RequestError(f"no offsets were found for the window in {memory:,} bytes; give a little more memory")
    return problem, min(layouts)[2]


def swapped(stream: Stream, memory: int) -> tuple[RegionProblem, Moving]:
    """A layout in which activations wait on the host too, and the question it answers: for less than `Stream.least`.

    Raises:
        RequestError: the operands of one operator do not fit; names it.
    """
    device, host = stream.problem.regions
    regions = replace(device, size=memory), replace(host, kind="psram", write_bandwidth=stream.link.rate)
    allowed = tuple((DEVICE,) if home == HOST else (DEVICE, HOST) for home in stream.problem.home)
    problem = replace(stream.problem, regions=regions, allowed=allowed)
    return problem, plan_moves(problem, shares=(1.0, 0.75))


def _layout(problem: RegionProblem, kept: frozenset[int]) -> Layout | None:
    """A layout that keeps these weights, or fewer where offsets do not fit; None where none does."""
    costs = Costs(problem)
    remaining = sorted(kept, key=lambda buffer: costs.tracks[buffer].size)
    for _ in range(_ROUNDS):
        held = [_holdings(track, kept=track.buffer in set(remaining)) for track in costs.tracks]
        moves = moves_of(costs, held)
        stays, heights = placed(problem, moves)
        excess = heights.get(DEVICE, 0) - problem.regions[DEVICE].size
        if excess <= 0:
            base = Layout(stays, moves.copies, 0.0, "stream")
            return copied_ahead(problem, base)
        while remaining and excess > 0:
            excess -= costs.tracks[remaining.pop()].size
    return None


def _holdings(track: Track, *, kept: bool) -> Held:
    """The holdings of a layout: activations on the device, weights for the whole run or while used."""
    if track.home == HOME:
        return tuple(frozenset({DEVICE}) for _ in track.segments)
    if kept:
        return tuple(frozenset({HOME, DEVICE}) for _ in track.segments)
    return tuple(frozenset({HOME, DEVICE} if segment.used else {HOME}) for segment in track.segments)

"""A buffer's lifetime in segments (its accesses and the gaps between them), and what it costs to be where in each."""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import cached_property

import numpy as np

from modelplan.answers.region_layout import Copy, Layout, RegionProblem, Stay
from modelplan.model import Budget, Problem
from modelplan.model.bounds import height
from modelplan.planning import allocators
from modelplan.primitives.errors import RequestError
from modelplan.primitives.lazy_records import dataclass
from modelplan.primitives.units import steps_words

#: Steps of the allocator's search for each region.
_STEPS = 20_000
#: The place of a buffer's content in its home, beside the numbers of regions.
HOME = -1
#: For each segment of a buffer the places that hold its content.
Held = tuple[frozenset[int], ...]


@dataclass(frozen=True, slots=True)
class TrackSegment:
    """Steps [start, end) of a lifetime: one step in which the buffer is used, or a gap. `used` tells them apart."""

    start: int
    end: int
    used: bool = False
    read: int = 0
    written: int = 0


@dataclass(frozen=True)
class Track:
    """A buffer with its segments. `places` may hold it, `served` are those in which an operator may use it.

    A buffer with a home that operators write ends with an empty segment, in which its home holds the content again.
    `steps` is how many the problem has.
    """

    buffer: int
    size: int
    segments: tuple[TrackSegment, ...]
    places: tuple[int, ...]
    home: int
    steps: int

    @cached_property
    def written(self) -> bool:
        """Whether an operator writes it."""
        return any(segment.written for segment in self.segments)

    @cached_property
    def first_used(self) -> int:
        """The number of the first segment with an access; the number of segments where there is none."""
        return next((q for q, segment in enumerate(self.segments) if segment.used), len(self.segments))

    @cached_property
    def last_used(self) -> int:
        """The number of the last segment with an access; -1 where there is none."""
        return max((q for q, segment in enumerate(self.segments) if segment.used), default=-1)

    @cached_property
    def fixed(self) -> bool:
        """Whether its home holds the content all the time."""
        return self.home != HOME and not self.written

    @cached_property
    def loadable(self) -> bool:
        """Whether it may be loaded before the first run, so that a stay over its whole life needs no copy."""
        return self.fixed and (self.segments[0].start, self.segments[-1].end) == (0, self.steps)

    def may_stay(self, q: int, place: int) -> bool:
        """Whether holding the content in `place` during segment `q` can pay."""
        if place == HOME or self.home == HOME:
            return True
        last = len(self.segments) if self.written else self.last_used
        return self.segments[q].start < self.segments[q].end and self.first_used <= q <= last


class Costs:
    """What accesses and copies of a problem take, in seconds."""

    def __init__(self, problem: RegionProblem) -> None:
        self.problem = problem
        self.tracks = tuple(_tracks(problem))

    def region(self, track: Track, place: int) -> int:
        return track.home if place == HOME else place

    def serves(self, track: Track, q: int, place: int) -> bool:
        """Whether an operator can use the content in `place` at segment `q`."""
        region = self.region(track, place)
        writable = not track.segments[q].written or (place != HOME and self.problem.regions[region].kind != "nvm")
        return writable and region in self.problem.allowed[track.buffer] and region not in self.problem.copied_only

    def access(self, track: Track, q: int, place: int) -> float:
        """Seconds of the access of segment `q` to the content in `place`."""
        segment = track.segments[q]
        return self.problem.regions[self.region(track, place)].seconds(segment.read, segment.written)

    def copy(self, track: Track, source: int, target: int) -> float:
        """Seconds of a copy of the buffer from one place to another, with nothing else to do."""
        return copy_seconds(self.problem, track.size, self.region(track, source), self.region(track, target))

    def of(self, held: Sequence[Held]) -> float:
        """The seconds of all accesses and copies under this holding."""
        return sum(self.of_track(track, there) for track, there in zip(self.tracks, held, strict=True))

    def of_track(self, track: Track, held: Held) -> float:
        """The seconds of one buffer."""
        total = sum(self.copy(track, source, target) for _, source, target in self.copies(track, held))
        for q, segment in enumerate(track.segments):
            if segment.used:
                total += min(self.access(track, q, place) for place in held[q] if self.serves(track, q, place))
        return total

    def copies(self, track: Track, held: Held) -> Iterator[tuple[int, int, int]]:
        """(segment, source, target) of each copy that this holding needs, made at the segment's begin."""
        before = frozenset({HOME}) if track.home != HOME else None
        if track.loadable:
            before = frozenset({HOME}).union(frozenset.intersection(*held))
        for q, places in enumerate(held):
            for target in sorted(places - before) if before is not None else ():
                yield q, min(before or (), key=lambda place: (self.copy(track, place, target), place)), target
            before = places


def engine_copies(problem: RegionProblem, source: int, target: int) -> bool:
    """Whether there is an engine that reaches both regions."""
    return problem.dma.channels > 0 and all(problem.regions[end].dma is not False for end in (source, target))


def copy_seconds(problem: RegionProblem, size: int, source: int, target: int) -> float:
    """How long a copy of `size` bytes takes from one region to another by what the target has for it.

    An engine reads and writes at the same time, a processor one after the other. An engine that does not reach one of
    the regions leaves the copy to the processor.
    """
    if not size:
        return 0.0
    reading, writing = problem.regions[source].seconds(size, 0), problem.regions[target].seconds(0, size)
    if not engine_copies(problem, source, target):
        return reading + writing
    own = size / problem.dma.bandwidth if problem.dma.bandwidth else 0.0
    return problem.dma.latency_ns * 1e-9 + max(reading, writing, own)


def _tracks(problem: RegionProblem) -> Iterator[Track]:
    uses: list[dict[int, tuple[int, int]]] = [{} for _ in range(len(problem.problem))]
    for (step, buffer), amounts in problem.uses.items():
        uses[buffer][step] = amounts
    starts, ends = problem.problem.start.tolist(), problem.problem.end.tolist()
    for buffer, size in enumerate(problem.problem.size.tolist()):
        start, end, home = starts[buffer], ends[buffer], problem.home[buffer]
        segments: list[TrackSegment] = []
        for step, (read, written) in sorted(uses[buffer].items()):
            if not start <= step < end:
                name = problem.problem.names[buffer]
                raise RequestError(
                    f"buffer {name!r} is used at step {step}, outside of its lifetime, steps {steps_words(start, end)}"
                )
            done = segments[-1].end if segments else start
            if done < step:
                segments.append(TrackSegment(done, step))
            segments.append(TrackSegment(step, step + 1, used=True, read=read, written=written))
        done = segments[-1].end if segments else start
        if done < end:
            segments.append(TrackSegment(done, end))
        if home >= 0 and any(segment.written for segment in segments):
            segments.append(TrackSegment(end, end))
        places = tuple(region for region in problem.allowed[buffer] if region != home)
        yield Track(buffer, size, tuple(segments), places + ((HOME,) if home >= 0 else ()), home, len(problem.seconds))


def fastest(problem: RegionProblem) -> int:
    """The region in which a byte is read and written in the least time; of several the first."""
    million = 10**6
    return min(range(len(problem.regions)), key=lambda r: (problem.regions[r].seconds(million, million), r))


def room(problem: RegionProblem, region: int) -> int:
    """The bytes of a region that stays may use: what is neither reserved nor taken by homes."""
    own = problem.regions[region]
    return own.size - own.reserved - problem.stored[region]


def _first_offset(problem: RegionProblem, region: int) -> int:
    """The first byte of a region that is not reserved, as an aligned address."""
    own = problem.regions[region]
    held = own.reserved if own.reserved_at == "start" else 0
    step = max(own.alignment, int(problem.problem.alignment.max(initial=1)))
    return held + -((own.base or 0) + held) % step


def moves_of(costs: Costs, held: Sequence[Held]) -> Layout:
    """The stays, which have no offsets yet, and the copies, all made between two steps, by which contents are held so.

    Copies out of the fastest region come before the others of the same step, since those may need their room.
    """
    stays: list[Stay] = []
    copies: list[Copy] = []
    for track, there in zip(costs.tracks, held, strict=True):
        number = _stays(track, there, stays)
        for q, source, target in costs.copies(track, there):
            step = track.segments[q].start
            copies.append(Copy(number.get((max(q - 1, 0), source), HOME), number.get((q, target), HOME), step, step))
    quick = fastest(costs.problem)
    out = [copy.source != HOME and stays[copy.source].region == quick for copy in copies]
    order = sorted(range(len(copies)), key=lambda c: (copies[c].issued, not out[c], c))
    return Layout(tuple(stays), tuple(copies[c] for c in order))


def _stays(track: Track, held: Held, stays: list[Stay]) -> dict[tuple[int, int], int]:
    """Adds the stays of one buffer; returns the number of the stay for each segment and region."""
    number: dict[tuple[int, int], int] = {}
    for q, segment in enumerate(track.segments):
        for place in sorted(held[q] - {HOME}):
            known = number.get((q - 1, place))
            if known is None:
                number[q, place] = len(stays)
                stays.append(Stay(track.buffer, place, -1, segment.start, segment.end))
            else:
                number[q, place] = known
                stays[known] = replace(stays[known], end=segment.end)
    return number


def placed(problem: RegionProblem, moves: Layout) -> tuple[tuple[Stay, ...], dict[int, int]]:
    """The stays with offsets, each region placed by itself, and the height of each region that is used.

    A height may be above what the region has.
    """
    quick, stays, heights = fastest(problem), list(moves.stays), {}
    apart = _taken_over(moves, quick)
    _keep_conflicts(problem, stays, apart)
    numbers: dict[int, list[int]] = defaultdict(list)
    for number, stay in enumerate(stays):
        numbers[stay.region].append(number)
    for region, own in numbers.items():
        question = _problem_of(problem, region, own, stays, apart[region])
        placement = allocators.place(question, budget=Budget(steps=_STEPS, enough=question.capacity))
        first = _first_offset(problem, region)
        for number, offset in zip(own, placement.offsets.tolist(), strict=True):
            stays[number] = replace(stays[number], offset=first + offset)
        lost = first - (problem.regions[region].reserved if problem.regions[region].reserved_at == "start" else 0)
        heights[region] = height(question, placement) + lost
    return tuple(stays), heights


def _problem_of(
    problem: RegionProblem, region: int, own: list[int], stays: list[Stay], apart: set[tuple[int, int]]
) -> Problem:
    buffers = np.array([stays[number].buffer for number in own], dtype=np.int64)
    local = {number: i for i, number in enumerate(own)}
    return Problem(
        names=tuple(problem.problem.names[buffer] for buffer in buffers.tolist()),
        size=problem.problem.size[buffers],
        start=np.array([stays[number].start for number in own], dtype=np.int64),
        end=np.array([stays[number].end for number in own], dtype=np.int64),
        alignment=np.maximum(problem.problem.alignment[buffers], problem.regions[region].alignment),
        capacity=room(problem, region),
        conflicts=np.array([(local[a], local[b]) for a, b in sorted(apart)], dtype=np.int64).reshape(-1, 2),
    )


def _keep_conflicts(problem: RegionProblem, stays: list[Stay], apart: dict[int, set[tuple[int, int]]]) -> None:
    """Adds the pairs of stays whose buffers must not share bytes although their lifetimes are apart."""
    if not len(problem.problem.conflicts):
        return
    of_buffer: dict[int, list[int]] = defaultdict(list)
    for number, stay in enumerate(stays):
        of_buffer[stay.buffer].append(number)
    for a, b in problem.problem.conflicts.tolist():
        for first in of_buffer[a]:
            apart[stays[first].region] |= {
                (first, second) for second in of_buffer[b] if stays[second].region == stays[first].region
            }


def _taken_over(moves: Layout, quick: int) -> dict[int, set[tuple[int, int]]]:
    """Pairs of stays where one begins in the step in which the other ends, without shared bytes.

    A copy may fill bytes from which another copy of the same step has still to read, unless the order of both is known:
    what leaves the fastest region has left it before anything comes in.
    """
    pairs: dict[int, set[tuple[int, int]]] = defaultdict(set)
    leaving: dict[tuple[int, int], set[int]] = defaultdict(set)
    for copy in moves.copies:
        if copy.source >= 0 and moves.stays[copy.source].end == copy.issued:
            leaving[copy.issued, moves.stays[copy.source].region].add(copy.source)
    for copy in moves.copies:
        if copy.target < 0 or (region := moves.stays[copy.target].region) == quick:
            continue
        pairs[region] |= {(source, copy.target) for source in leaving[copy.issued, region]}
    return pairs

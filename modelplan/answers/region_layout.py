"""What is known of a model in several memories: what is asked, where each buffer lies and when, what is copied.

A question is a `RegionProblem`, an answer a `Layout`. A buffer has content from the first step of its lifetime to the
last; a `Stay` says in which region and at which offset that content is during a part of it, a `Copy` how it gets from
one stay to the next. Without copies each buffer has one stay, which lasts as long as the buffer.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from itertools import compress

from modelplan.model import Problem
from modelplan.primitives.lazy_records import dataclass
from modelplan.targets.device import Dma, Region, allocatable

#: Without an engine the processor copies.
PROCESSOR = Dma()


@dataclass(frozen=True, slots=True)
class Access:
    """What the operator at step `step` does with buffer `buffer`: bytes read and written, each time counted.

    A kernel that reads an operand three times reads three times its bytes.
    """

    step: int
    buffer: int
    read: int
    written: int


@dataclass(frozen=True, eq=False)
class RegionProblem:
    """Which buffers need a region and an offset, and what it costs to use them there.

    Args:
        problem: every buffer, weights too, with lifetimes in half-open steps; its own capacity is not used.
        regions: the memories.
        accesses: what operators read and write, sorted by step; steps are those of `problem`.
        allowed: for each buffer the regions that may hold it, as indices, ascending.
        home: for each buffer the region in which its content stands before the first step and after the last, whether
            anything else holds it or not (weights in flash), or -1. A home is read in place without a copy where it
            is one of the allowed regions. A buffer without a home that is read first has its content from its start.
        seconds: for each step how long its operator computes when all operands arrive in time.
        dma: what copies.
        copied_only: regions that copies reach and operators do not (a host's memory); contents there wait.
        reader: what runs the operators, on which `allowed` depends; empty: it reaches all regions.
        macs_per_second: on which `seconds` depend; None: operators take no time beside their accesses.

    Raises:
        ValueError: columns of different length, or an index out of range.
    """

    problem: Problem
    regions: tuple[Region, ...]
    accesses: tuple[Access, ...]
    allowed: tuple[tuple[int, ...], ...]
    home: tuple[int, ...]
    seconds: tuple[float, ...]
    dma: Dma = PROCESSOR
    copied_only: frozenset[int] = frozenset()
    reader: str = ""
    macs_per_second: float | None = None

    def __post_init__(self) -> None:
        count, regions = len(self.problem), len(self.regions)
        for name in ("allowed", "home"):
            if len(getattr(self, name)) != count:
                raise ValueError(f"{name} has {len(getattr(self, name))} rows, expected {count}")
        for buffer, (allowed, home) in enumerate(zip(self.allowed, self.home, strict=True)):
            if any(not 0 <= region < regions for region in allowed) or not -1 <= home < regions:
                raise ValueError(f"buffer {self.problem.names[buffer]!r} names a region outside 0..{regions - 1}")
        for access in self.accesses:
            if not 0 <= access.buffer < count or not 0 <= access.step < len(self.seconds):
                raise ValueError(f"an access names step {access.step} and buffer {access.buffer}, which do not exist")
            if access.read < 0 or access.written < 0:
                raise ValueError(f"an access of {access.read} bytes read and {access.written} written")

    @cached_property
    def stored(self) -> list[int]:
        """For each region the bytes of the buffers that have their home there."""
        sizes = self.problem.size.tolist()
        return [sum(compress(sizes, (home == r for home in self.home))) for r in range(len(self.regions))]

    @cached_property
    def uses(self) -> dict[tuple[int, int], tuple[int, int]]:
        """For each step and each buffer that it uses, the bytes read and written in all accesses."""
        totals: dict[tuple[int, int], tuple[int, int]] = {}
        for access in self.accesses:
            read, written = totals.get((access.step, access.buffer), (0, 0))
            totals[access.step, access.buffer] = read + access.read, written + access.written
        return totals

    def route(self, copy: Copy, stays: Sequence[Stay]) -> tuple[int, int, int]:
        """The buffer that a copy carries, the region that it reads and the one that it writes.

        `stays` are those that its source and its target number.
        """
        buffer = stays[copy.source if copy.source >= 0 else copy.target].buffer
        source, target = (stays[end].region if end >= 0 else self.home[buffer] for end in (copy.source, copy.target))
        return buffer, source, target


@dataclass(frozen=True, slots=True)
class Stay:
    """The content of buffer `buffer` is in region `region` at `offset` bytes from its base in steps [start, end)."""

    buffer: int
    region: int
    offset: int
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Copy:
    """The content of stay `source` is copied to stay `target`, both by number; -1 as source is the buffer's home.

    It is issued when step `issued` begins, and is complete before step `due` begins; both stays last over
    [issued, due). Where both are the same step the processor waits for the copy between two steps, and such copies run
    in their order: the target may then take bytes from which an earlier copy has read. A `target` of -1 is the buffer's
    home, to which content that changed is written back.
    """

    source: int
    target: int
    issued: int
    due: int


@dataclass(frozen=True, slots=True)
class Timetable:
    """When everything happens, in seconds from the begin of the run.

    `begins` is when the operator of each step starts, its operands being there. `copies` holds (channel, begin, end) of
    each copy, with channel -1 where the processor copies. `seconds` is when all is over.
    """

    begins: tuple[float, ...]
    copies: tuple[tuple[int, float, float], ...]
    seconds: float


@dataclass(frozen=True, eq=False)
class Layout:
    """Where everything is at every step: the answer to a `RegionProblem`.

    Where a buffer has several stays in a step, its content is read from the one that is quickest to read; where it is
    written there is one. A stay over the whole run of a buffer with a home needs no copy: it is loaded before.

    `bound` is a proved lower bound of the cost in seconds that operators and copies spend on memory; `method` names
    what found the layout and `ended` says whether the search ran through ("optimal": the cost meets the bound).
    `timetable` is what it promises to take.
    """

    stays: tuple[Stay, ...]
    copies: tuple[Copy, ...] = ()
    bound: float = 0.0
    method: str = ""
    ended: str = "complete"
    timetable: Timetable | None = None

    def copied(self, copy: Copy) -> int:
        """The buffer whose content a copy carries."""
        return self.stays[copy.source if copy.source >= 0 else copy.target].buffer


def region_heights(problem: RegionProblem, layout: Layout) -> list[int]:
    """For each region the end of its highest stay."""
    heights = [0] * len(problem.regions)
    for stay in layout.stays:
        heights[stay.region] = max(heights[stay.region], stay.offset + int(problem.problem.size[stay.buffer]))
    return heights


def free_range(region: Region, alignment: int) -> tuple[int, int]:
    """The offsets [low, high) of a region that buffers may use; low is where an aligned address begins."""
    low = region.reserved if region.reserved_at == "start" else 0
    high = region.size - (region.reserved if region.reserved_at == "end" else 0)
    low += -((region.base or 0) + low) % alignment
    return low, low + allocatable(high - low, region.granularity, power_of_two=region.power_of_two)

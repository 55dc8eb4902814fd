"""Copies that run while operators compute: issued as early as needed to hide them, where there is room.

A layout whose copies all happen between steps is taken as it is decided; then what is brought gets its place earlier,
what leaves is copied while its last readers run, or keeps its place a little longer. Weights that one operator after
the other needs are so buffered twice.
"""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from modelplan.answers.region_layout import Copy, Layout, RegionProblem
from modelplan.planning.memories.spilling import Spilled, spill
from modelplan.planning.memories.timing import copied_by_engine, copy_takes, step_seconds, timetable_of
from modelplan.planning.memories.tracks import HOME, fastest, placed, room
from modelplan.primitives.errors import RequestError
from modelplan.primitives.lazy_records import dataclass

#: How often less room is given to copies ahead whose offsets do not fit.
_ROUNDS = 5
#: Shares of the fastest region that contents are first decided for; the rest is room for copies ahead.
SHARES = (1.0, 0.9, 0.75, 0.6)


@dataclass(frozen=True, eq=False)
class Moving:
    """A layout with its promised times, the time of the same contents with copies between steps, and a floor.

    `floor` is the time with every operand in the quickest region that may hold it and no copy: no layout is quicker.
    `spilled` is what was decided about contents.
    """

    layout: Layout
    seconds: float
    blocking: float
    floor: float
    spilled: Spilled


def plan_moves(
    problem: RegionProblem,
    method: str = "greedy",
    seconds: float = 60.0,
    shares: Sequence[float] = SHARES,
) -> Moving:
    """The layout that takes the least time of those found: contents leave and come back, copies run ahead.

    Args:
        problem: what is asked.
        method: how contents are decided, `greedy` or `exact`.
        seconds: the limit of each run of the exact program.
        shares: of the fastest region, for which contents are decided; each is tried where an engine copies.
    """
    first = spill(problem, method, seconds)
    blocking = replace(first.layout, timetable=timetable_of(problem, first.layout))
    assert blocking.timetable is not None
    best = Moving(blocking, blocking.timetable.seconds, blocking.timetable.seconds, floor_seconds(problem), first)
    if not problem.dma.channels:
        return best
    for share in shares:
        decided = first if share == 1.0 else _with_less(problem, share, method, seconds)
        if decided is None:
            continue
        layout = copied_ahead(problem, decided.layout)
        assert layout.timetable is not None
        if layout.timetable.seconds < best.seconds * (1 - 1e-9):
            bounded = replace(layout, bound=first.layout.bound)
            if share < 1.0 and bounded.ended == "optimal":
                bounded = replace(bounded, ended="complete")
            best = replace(best, layout=bounded, seconds=layout.timetable.seconds, spilled=decided)
    return best


def _with_less(problem: RegionProblem, share: float, method: str, seconds: float) -> Spilled | None:
    """The choice for a smaller region; None where an operator's operands do not fit in it."""
    quick = fastest(problem)
    own = problem.regions[quick]
    smaller = replace(own, size=own.reserved + max(1, int((own.size - own.reserved) * share)))
    regions = tuple(smaller if r == quick else region for r, region in enumerate(problem.regions))
    try:
        return spill(replace(problem, regions=regions), method, seconds)
    except RequestError:
        return None


def floor_seconds(problem: RegionProblem) -> float:
    """The time of all operators with each operand in the quickest region that may hold it."""
    return sum(problem.seconds) + sum(
        min(
            (
                problem.regions[r].seconds(read, written)
                for r in problem.allowed[buffer]
                if r not in problem.copied_only
            ),
            default=0.0,
        )
        for (_, buffer), (read, written) in problem.uses.items()
    )


def copied_ahead(problem: RegionProblem, layout: Layout) -> Layout:
    """The layout with copies that run while operators do, and its times; the same layout where none can."""
    quick = fastest(problem)
    limit = room(problem, quick)
    timed = replace(layout, timetable=timetable_of(problem, layout))
    for _ in range(_ROUNDS):
        ahead = _Ahead(problem, layout, limit)
        moves = ahead.moves()
        stays, heights = placed(problem, moves)
        above = max((high - room(problem, region) for region, high in heights.items()), default=0)
        if above <= 0:
            tried = replace(layout, stays=stays, copies=moves.copies)
            tried = replace(tried, timetable=timetable_of(problem, tried))
            assert tried.timetable is not None
            assert timed.timetable is not None
            return tried if tried.timetable.seconds < timed.timetable.seconds else timed
        limit -= max(above, limit // 16)
    return timed


class _Ahead:
    """Moves the issue of copies to earlier steps, in the order in which they are due."""

    def __init__(self, problem: RegionProblem, layout: Layout, limit: int) -> None:
        self.problem = problem
        self.stays, self.copies = list(layout.stays), list(layout.copies)
        self.limits = [room(problem, region) for region in range(len(problem.regions))]
        self.limits[fastest(problem)] = limit
        steps = len(problem.seconds)
        self.takes = step_seconds(problem, layout)
        self.free = [takes * problem.dma.channels for takes in self.takes]
        self.load = np.zeros((len(problem.regions), steps + 1), dtype=np.int64)
        self.of_buffer: dict[int, list[int]] = defaultdict(list)
        for number, stay in enumerate(self.stays):
            self.load[stay.region, stay.start : stay.end] += self._size(stay.buffer)
            self.of_buffer[stay.buffer].append(number)
        self.filled_by = {copy.target: number for number, copy in enumerate(self.copies) if copy.target != HOME}
        self.written: dict[int, list[int]] = defaultdict(list)
        self.used: dict[int, list[int]] = defaultdict(list)
        for access in problem.accesses:
            self.used[access.buffer].append(access.step)
            if access.written:
                self.written[access.buffer].append(access.step)

    def moves(self) -> Layout:
        """The stays, lengthened, and the copies in the order of their issue."""
        quick = fastest(self.problem)
        leaving = [c.source != HOME and self.stays[c.source].region == quick for c in self.copies]
        by_due = sorted(range(len(self.copies)), key=lambda n: (self.copies[n].due, not leaving[n]))
        for number in by_due:
            if not copied_by_engine(self.problem, self.stays, self.copies[number]):
                continue
            left = copy_takes(self.problem, self.stays, self.copies[number])
            left = self._issue_earlier(number, left)
            if left > 0 and leaving[number]:
                self._end_later(number, left)
        order = sorted(range(len(self.copies)), key=lambda n: (self._phase(n, leaving[n]), n))
        return Layout(tuple(self.stays), tuple(self.copies[n] for n in order))

    def _phase(self, number: int, leaves: bool) -> tuple[int, int]:  # noqa: FBT001 -- one of a list
        copy = self.copies[number]
        return copy.issued, 2 if copy.issued < copy.due else 0 if leaves else 1

    def _size(self, buffer: int) -> int:
        return int(self.problem.problem.size[buffer])

    def _buffer(self, copy: Copy) -> int:
        return self.stays[copy.source if copy.source != HOME else copy.target].buffer

    def _earliest(self, copy: Copy) -> int:
        """The first step at whose begin the source has what the copy carries, and the target no other stay."""
        buffer = self._buffer(copy)
        bounds = [
            int(self.problem.problem.start[buffer]),
            *(step + 1 for step in self.written[buffer] if step < copy.due),
        ]
        if copy.source == HOME:
            back = [c.due for c in self.copies if c.target == HOME and self._buffer(c) == buffer and c.due <= copy.due]
            bounds += back
        elif copy.source in self.filled_by:
            bounds.append(self.copies[self.filled_by[copy.source]].due)
        else:
            bounds.append(self.stays[copy.source].start + 1)
        if copy.target != HOME:
            target = self.stays[copy.target]
            others = (self.stays[n] for n in self.of_buffer[buffer] if n != copy.target)
            bounds += [stay.end for stay in others if stay.region == target.region and stay.end <= target.start]
        return max(bounds)

    def _issue_earlier(self, number: int, left: float) -> float:
        """Moves the issue of a copy back until steps hide it or room ends; returns the seconds that are not hidden."""
        copy = self.copies[number]
        size, issued, step = self._size(self._buffer(copy)), copy.issued, copy.issued
        region = None if copy.target == HOME else self.stays[copy.target].region
        earliest = self._earliest(copy)
        while left > 0 and step > earliest:
            step -= 1
            if region is not None and self.load[region, step] + size > self.limits[region]:
                break
            hidden = min(left, self.free[step], self.takes[step])
            self.free[step] -= hidden
            left -= hidden
            if hidden > 0:
                issued = step
        if issued < copy.issued:
            self.copies[number] = replace(copy, issued=issued)
            if region is not None:
                self.load[region, issued : copy.issued] += size
                self.stays[copy.target] = replace(self.stays[copy.target], start=issued)
        return left

    def _end_later(self, number: int, left: float) -> None:
        """Keeps the source of a copy until more of it is hidden, at most to the next use of the buffer."""
        copy = self.copies[number]
        source, buffer = self.stays[copy.source], self._buffer(copy)
        if source.end != copy.due or copy.target == HOME:
            return
        size, due = self._size(buffer), copy.due
        last = min([step for step in self.used[buffer] if step >= copy.due], default=self.stays[copy.target].end - 1)
        last = min(last, self.stays[copy.target].end - 1, int(self.problem.problem.end[buffer]))
        while left > 0 and due < last and self.load[source.region, due] + size <= self.limits[source.region]:
            hidden = min(left, self.free[due], self.takes[due])
            self.free[due] -= hidden
            left -= hidden
            due += 1
        if due > copy.due:
            self.load[source.region, copy.due : due] += size
            self.copies[number] = replace(copy, due=due)
            self.stays[copy.source] = replace(source, end=due)

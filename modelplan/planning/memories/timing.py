"""When each step and each copy of a layout happens: the times that a planner promises."""

import heapq
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace

from modelplan.answers.region_layout import Copy, Layout, RegionProblem, Stay, Timetable
from modelplan.planning.memories.tracks import copy_seconds, engine_copies


def timetable_of(problem: RegionProblem, layout: Layout) -> Timetable:
    """The earliest times of all steps and copies, copies being issued in the order of the layout.

    Cost: O(stays + accesses + copies log channels).
    """
    takes = step_seconds(problem, layout)
    due: dict[int, list[int]] = defaultdict(list)
    issued: dict[int, list[int]] = defaultdict(list)
    for number, copy in enumerate(layout.copies):
        issued[copy.issued].append(number)
        due[copy.due].append(number)
    engine = _Engine(problem)
    clock, begins = 0.0, []
    times: list[tuple[int, float, float]] = [(-1, 0.0, 0.0)] * len(layout.copies)
    for step in range(len(takes) + 1):
        clock = max([clock, *(times[number][2] for number in due[step] if layout.copies[number].issued < step)])
        for number in issued[step]:
            copy = layout.copies[number]
            by_engine, length = copied_by_engine(problem, layout.stays, copy), copy_takes(problem, layout.stays, copy)
            clock, times[number] = engine.issue(clock, length, by_engine=by_engine)
            if copy.due == step or not by_engine:
                clock = max(clock, times[number][2])
        if step < len(takes):
            begins.append(clock)
            clock += takes[step]
    return Timetable(tuple(begins), tuple(times), clock)


def copy_takes(problem: RegionProblem, stays: Sequence[Stay], copy: Copy) -> float:
    """The duration of one copy in seconds."""
    buffer, source, target = problem.route(copy, stays)
    return copy_seconds(problem, int(problem.problem.size[buffer]), source, target)


def copied_by_engine(problem: RegionProblem, stays: Sequence[Stay], copy: Copy) -> bool:
    """Whether the engine does the copy, and not the processor."""
    return engine_copies(problem, *problem.route(copy, stays)[1:])


def step_seconds(problem: RegionProblem, layout: Layout) -> list[float]:
    """For each step its computing and accesses: each operand from the quickest place that has it."""
    takes = list(problem.seconds)
    of_buffer: dict[int, list[Stay]] = defaultdict(list)
    filled = {copy.target: copy.due for copy in layout.copies if copy.target >= 0}
    for number, stay in enumerate(layout.stays):
        of_buffer[stay.buffer].append(replace(stay, start=max(stay.start, filled.get(number, 0))))
    changed = {buffer for (_, buffer), (_, written) in problem.uses.items() if written}
    for (step, buffer), (read, written) in problem.uses.items():
        there = [stay.region for stay in of_buffer[buffer] if stay.start <= step < stay.end]
        home = problem.home[buffer]
        if home in problem.allowed[buffer] and (not there or buffer not in changed):
            there.append(home)
        there = [region for region in there if region not in problem.copied_only]
        takes[step] += min((problem.regions[region].seconds(read, written) for region in there), default=0.0)
    return takes


class _Engine:
    """The channels of the engine, and the copies in its queue."""

    def __init__(self, problem: RegionProblem) -> None:
        self._channels = [(0.0, channel) for channel in range(problem.dma.channels)]
        self._depth, self._queue = problem.dma.depth, list[float]()

    def issue(self, clock: float, takes: float, *, by_engine: bool) -> tuple[float, tuple[int, float, float]]:
        """When the processor goes on after it has issued a copy, and the channel, begin and end of the copy."""
        if not by_engine:
            return clock, (-1, clock, clock + takes)
        while self._queue and (self._queue[0] <= clock or len(self._queue) >= self._depth):
            clock = max(clock, heapq.heappop(self._queue))
        free, channel = heapq.heappop(self._channels)
        begin = max(clock, free)
        heapq.heappush(self._channels, (begin + takes, channel))
        heapq.heappush(self._queue, begin + takes)
        return clock, (channel, begin, begin + takes)

"""The independent checker of layouts: looks at stays and copies, then replays accesses and copies, with time.

It shares no code with what chooses, places, spills or prefetches. Contents have versions: an operator's write makes a
new one, a copy carries the one that it finds. A layout passes where every access finds the present version in memory
that it may use, no byte is used twice, nothing is freed or written under a copy, what changed is at home in the end,
and the claimed bound and the promised times can be kept.
"""

from bisect import bisect_left
from collections import defaultdict
from itertools import pairwise

from modelplan.answers.moving_layout import Simulation
from modelplan.answers.region_layout import Copy, Layout, RegionProblem, Stay, Timetable
from modelplan.checking.region_referee import check_places
from modelplan.primitives.errors import BrokenPlanError
from modelplan.primitives.units import steps_words
from modelplan.targets.device import Region

#: Two times differ where they do by more than this share of the whole.
_TOLERANCE = 1e-9


def simulate(problem: RegionProblem, layout: Layout) -> Simulation:
    """What a run by this layout takes, if the layout is safe and keeps the times that it promises.

    At each step the processor waits for the copies that are due, issues those of the step in their order (and waits
    for those that are due at once, and for room in the engine's queue), then runs the operator: its computing, then its
    accesses. Copies do not slow operators down.

    Raises:
        BrokenPlanError: names the buffer, the copy or the region, and the step.

    Cost: O(n log n) for stays and accesses, and for each stay that begins those whose bytes it takes.
    """
    check_places(problem, layout)
    run = _Run(problem, layout)
    simulation = run.result()
    memory = sum(run.working) - sum(problem.seconds) + sum(end - begin for _, begin, end in simulation.copies)
    if layout.bound > memory * (1 + 1e-6) + 1e-12:
        raise BrokenPlanError(f"the claimed bound is {layout.bound:.9f} s, accesses and copies take {memory:.9f} s")
    if layout.timetable is not None:
        _check_promise(problem, layout, layout.timetable, run, simulation)
    return simulation


def _name(problem: RegionProblem, buffer: int) -> str:
    return f"buffer {problem.problem.names[buffer]!r}"


def _place(problem: RegionProblem, stay: Stay) -> str:
    low = stay.offset
    there = f"{problem.regions[stay.region].name} bytes {low}..{low + int(problem.problem.size[stay.buffer])}"
    return f"{_name(problem, stay.buffer)} in {there}, steps {steps_words(stay.start, stay.end)}"


class _Run:
    """One replay: which version each stay holds, and what time it is."""

    def __init__(self, problem: RegionProblem, layout: Layout) -> None:
        self.problem, self.layout = problem, layout
        self.now, self.waited = 0.0, 0.0
        self.version = [0] * len(problem.problem)
        self.at_home = [0 if home >= 0 else None for home in problem.home]
        self.holds: list[int | None] = [None] * len(layout.stays)
        self.carried: dict[int, int] = {}
        self.present: dict[int, list[tuple[int, int, int]]] = defaultdict(list)
        self.starting: dict[int, list[int]] = defaultdict(list)
        self.of_buffer: dict[int, list[int]] = defaultdict(list)
        for number, stay in enumerate(layout.stays):
            self.starting[stay.start].append(number)
            self.of_buffer[stay.buffer].append(number)
        self.issued: dict[int, list[int]] = defaultdict(list)
        self.due: dict[int, list[int]] = defaultdict(list)
        for number, copy in enumerate(layout.copies):
            self.issued[copy.issued].append(number)
            if copy.due > copy.issued:
                self.due[copy.due].append(number)
        self.times: list[tuple[int, float, float]] = [(-1, 0.0, 0.0)] * len(layout.copies)
        self.free = [0.0] * problem.dma.channels
        self.pending: list[float] = []
        self.flying: set[int] = set()
        self.begins: list[float] = []
        self.working: list[float] = []
        self.read, self.written = [0] * len(problem.regions), [0] * len(problem.regions)
        self._run()

    def result(self) -> Simulation:
        copied = sum(int(self.problem.problem.size[self.buffer_of(copy)]) for copy in self.layout.copies)
        traffic = tuple(self.read), tuple(self.written)
        return Simulation(self.now, tuple(self.begins), tuple(self.times), *traffic, copied, self.waited)

    def _run(self) -> None:
        accesses: dict[int, dict[int, list[int]]] = defaultdict(dict)
        for access in self.problem.accesses:
            amounts = accesses[access.step].setdefault(access.buffer, [0, 0])
            amounts[0] += access.read
            amounts[1] += access.written
        ending: dict[int, list[int]] = defaultdict(list)
        for buffer, end in enumerate(self.problem.problem.end.tolist()):
            ending[end].append(buffer)
        for step, computing in enumerate(self.problem.seconds):
            self._copies(step)
            self.begins.append(self.now)
            self.now += computing
            for buffer, (read, written) in accesses[step].items():
                self.now += self._access(step, buffer, read, written)
            self.working.append(self.now - self.begins[-1])
            for buffer in ending[step + 1]:
                self._check_kept(step, buffer)
        self._copies(len(self.problem.seconds))
        for buffer, version in enumerate(self.at_home):
            if version is not None and version != self.version[buffer]:
                home = self.problem.regions[self.problem.home[buffer]].name
                raise BrokenPlanError(f"{_name(self.problem, buffer)}: what changed is never written back to {home}")

    def buffer_of(self, copy: Copy) -> int:
        """The buffer whose content a copy carries."""
        return self.layout.stays[copy.source if copy.source >= 0 else copy.target].buffer

    def _copies(self, step: int) -> None:
        """Completes the copies that are due, makes new stays known, issues the copies of the step."""
        before = self.now
        for number in self.due[step]:
            self.now = max(self.now, self.times[number][2])
        for number in self.due[step]:
            self._arrive(number, self.carried.pop(number))
            self.flying.discard(number)
        if step == 0:
            self._give_first_contents(step)
        for number in self.issued[step]:
            copy = self.layout.copies[number]
            version = self._leave(number, copy, step)
            if copy.target >= 0:
                self._overwrite(copy.target)
            self._issue(number, copy)
            if copy.due == copy.issued:
                self.now = max(self.now, self.times[number][2])
                self._arrive(number, version)
            else:
                self.carried[number] = version
                self.flying.add(number)
        if step:
            self._give_first_contents(step)
        self.waited += self.now - before

    def _give_first_contents(self, step: int) -> None:
        """A buffer without a home has its content where its first stay is: inputs at once, others as they are made.

        What has a home may have been loaded before the run where it stays in one place for all of it.
        """
        question, last = self.problem.problem, len(self.problem.seconds)
        for number in self.starting[step]:
            stay = self.layout.stays[number]
            if step != int(question.start[stay.buffer]):
                continue
            first = all(self.holds[other] is None for other in self.of_buffer[stay.buffer])
            if first if self.problem.home[stay.buffer] < 0 else (stay.start, stay.end) == (0, last):
                self._overwrite(number)
                self.holds[number] = 0

    def _leave(self, number: int, copy: Copy, step: int) -> int:
        """Reads the version of the content that a copy finds at its source."""
        buffer = self.buffer_of(copy)
        version = self.at_home[buffer] if copy.source < 0 else self.holds[copy.source]
        if version is None:
            where = "home" if copy.source < 0 else _place(self.problem, self.layout.stays[copy.source])
            raise BrokenPlanError(
                f"copy {number} of {_name(self.problem, buffer)} at step {step} finds no content in {where}: it never"
                " came, or an earlier copy has overwritten it"
            )
        return version

    def _arrive(self, number: int, version: int) -> None:
        """Stores the version that a copy carries at its target."""
        copy = self.layout.copies[number]
        buffer = self.buffer_of(copy)
        size, home = int(self.problem.problem.size[buffer]), self.problem.home[buffer]
        self.read[home if copy.source < 0 else self.layout.stays[copy.source].region] += size
        self.written[home if copy.target < 0 else self.layout.stays[copy.target].region] += size
        if copy.target < 0:
            self.at_home[buffer] = version
        else:
            self.holds[copy.target] = version

    def _overwrite(self, number: int) -> None:
        """Invalidates older contents whose bytes a stay is written over; what it may overlap lasts as it does."""
        stay, there = self.layout.stays[number], self.present[self.layout.stays[number].region]
        low, high = stay.offset, stay.offset + int(self.problem.problem.size[stay.buffer])
        self.holds[number] = None
        if low == high:
            return
        first = bisect_left(there, (low, 0, 0))
        first -= first > 0 and there[first - 1][1] > low
        behind = bisect_left(there, (high, 0, 0))
        for _, _, other in there[first:behind]:
            if self.layout.stays[other].end <= stay.start:
                self.holds[other] = None
        there[first:behind] = [(low, high, number)]

    def _issue(self, number: int, copy: Copy) -> None:
        """Gives a copy its time: on the engine, or on the processor where none reaches both regions."""
        takes = self.seconds_of(copy)
        if not self.on_engine(copy):
            self.times[number] = -1, self.now, self.now + takes
            self.now += takes
            return
        self.pending = [end for end in self.pending if end > self.now]
        while len(self.pending) >= self.problem.dma.depth:
            self.now = min(self.pending)
            self.pending = [end for end in self.pending if end > self.now]
        channel = min(range(len(self.free)), key=lambda c: self.free[c])
        begin = max(self.now, self.free[channel])
        self.free[channel] = begin + takes
        self.pending.append(begin + takes)
        self.times[number] = channel, begin, begin + takes

    def _regions_of(self, copy: Copy) -> tuple[Region, Region]:
        """The regions that a copy reads and writes."""
        home, regions, stays = self.problem.home[self.buffer_of(copy)], self.problem.regions, self.layout.stays
        first, second = (home if end < 0 else stays[end].region for end in (copy.source, copy.target))
        return regions[first], regions[second]

    def on_engine(self, copy: Copy) -> bool:
        """Whether the engine does a copy: there is one, and it reaches both regions."""
        return bool(self.free) and False not in {region.dma for region in self._regions_of(copy)}

    def seconds_of(self, copy: Copy) -> float:
        """How long a copy takes by itself."""
        size = int(self.problem.problem.size[self.buffer_of(copy)])
        if size == 0:
            return 0.0
        source, target = self._regions_of(copy)
        reading, writing = self._amount(source, size, 0), self._amount(target, 0, size)
        if not self.on_engine(copy):
            return reading + writing
        engine = self.problem.dma
        return engine.latency_ns / 1e9 + max(reading, writing, size / engine.bandwidth if engine.bandwidth else 0.0)

    def _amount(self, region: Region, read: int, written: int) -> float:
        """Seconds to read and write so many bytes of a region: the latency of each direction, and the transfer."""
        total = 0.0
        for amount, own in ((read, region.read_bandwidth), (written, region.write_bandwidth)):
            rate = own or region.bandwidth
            if amount:
                total += (region.latency_ns or 0.0) / 1e9 + (amount / rate if rate else 0.0)
        return total

    def _access(self, step: int, buffer: int, read: int, written: int) -> float:
        """One operator's use of one buffer; returns its seconds."""
        there = [n for n in self.of_buffer[buffer] if self.layout.stays[n].start <= step < self.layout.stays[n].end]
        home, hidden = self.problem.home[buffer], self.problem.copied_only
        at_home = home >= 0 and home in self.problem.allowed[buffer] and self.at_home[buffer] == self.version[buffer]
        at_home = at_home and home not in hidden
        if written:
            return self._write(step, buffer, read, written, there)
        there = [n for n in there if self.layout.stays[n].region not in hidden]
        good = [n for n in there if self.holds[n] == self.version[buffer] and not self._filling(n)]
        regions = {self.layout.stays[n].region for n in good} | ({home} if at_home else set())
        if not regions:
            raise BrokenPlanError(self._missing(step, buffer, there))
        takes, region = min((self._amount(self.problem.regions[r], read, 0), r) for r in regions)
        self.read[region] += read
        return takes

    def _write(self, step: int, buffer: int, read: int, written: int, there: list[int]) -> float:
        """A use that changes the content; it needs one place, with the present content unless it is the first use."""
        what = f"step {step} writes {_name(self.problem, buffer)}"
        if len(there) != 1 or self.layout.stays[there[0]].region in self.problem.copied_only:
            raise BrokenPlanError(f"{what}, which has {len(there)} places there, expected one that it reaches")
        if self._filling(there[0]):
            raise BrokenPlanError(f"{what} while a copy writes to it")
        flying = (self.layout.copies[number] for number in self.flying)
        if any(copy.source in there and self.buffer_of(copy) == buffer for copy in flying):
            raise BrokenPlanError(f"{what} while a copy reads from it")
        if self.holds[there[0]] != self.version[buffer]:
            raise BrokenPlanError(self._missing(step, buffer, there))
        region = self.layout.stays[there[0]].region
        if self.problem.regions[region].kind == "nvm":
            raise BrokenPlanError(f"{what} in {self.problem.regions[region].name}, which is not written at run time")
        self.version[buffer] += 1
        self.holds[there[0]] = self.version[buffer]
        self.read[region] += read
        self.written[region] += written
        return self._amount(self.problem.regions[region], read, written)

    def _filling(self, number: int) -> bool:
        """Whether a copy to this stay is under way."""
        return any(self.layout.copies[n].target == number for n in self.flying)

    def _missing(self, step: int, buffer: int, there: list[int]) -> str:
        """The message for an operand whose newest content is not where the operator reads it."""
        what = f"step {step} uses {_name(self.problem, buffer)}"
        for number in there:
            where = _place(self.problem, self.layout.stays[number])
            late = [c.due for n, c in enumerate(self.layout.copies) if n in self.flying and c.target == number]
            if late:
                return f"{what}, but the copy that brings it is due at step {late[0]}: too late"
            if self.holds[number] is None:
                return f"{what}, but nothing brought its content to {where}, or it was overwritten"
            return f"{what}, but {where} holds an older content: what changed was never written back"
        return f"{what}, but no memory that it may use holds it there: it was spilled"

    def _check_kept(self, step: int, buffer: int) -> None:
        """Checks that the newest content still exists somewhere at the end of the buffer's lifetime."""
        if self.problem.home[buffer] >= 0:
            return
        alive = [n for n in self.of_buffer[buffer] if self.layout.stays[n].start <= step < self.layout.stays[n].end]
        if not any(self.holds[n] == self.version[buffer] for n in alive):
            raise BrokenPlanError(f"{_name(self.problem, buffer)} is lost before its lifetime ends with step {step}")


def _check_promise(problem: RegionProblem, layout: Layout, promised: Timetable, run: _Run, replay: Simulation) -> None:
    """The promised times hold together, and are not shorter than the replay's."""
    slack = _TOLERANCE * max(replay.seconds, promised.seconds, 1e-12)
    if len(promised.begins) != len(problem.seconds) or len(promised.copies) != len(layout.copies):
        counts = f"{len(promised.begins)} steps and {len(promised.copies)} copies"
        raise BrokenPlanError(f"the timetable has {counts}, expected {len(problem.seconds)} and {len(layout.copies)}")
    ends = [begin + takes for begin, takes in zip(promised.begins, run.working, strict=True)]
    for step, (end, begin) in enumerate(zip(ends, [*promised.begins[1:], promised.seconds], strict=True)):
        if end > begin + slack:
            raise BrokenPlanError(f"step {step} ends at {end:.9f} s, after the {begin:.9f} s promised for what follows")
    for number, (copy, (_, begin, end)) in enumerate(zip(layout.copies, promised.copies, strict=True)):
        what = f"copy {number} of {_name(problem, run.buffer_of(copy))}"
        takes = run.seconds_of(copy)
        if end - begin < takes - slack:
            raise BrokenPlanError(f"{what} takes {takes:.9f} s, promised were {end - begin:.9f} s")
        if copy.issued and begin < ends[copy.issued - 1] - slack:
            raise BrokenPlanError(f"{what} begins at {begin:.9f} s, before step {copy.issued} does")
        if end > (promised.begins[copy.due] if copy.due < len(promised.begins) else promised.seconds) + slack:
            raise BrokenPlanError(f"{what} ends at {end:.9f} s, after step {copy.due} has begun: too late")
    _check_slots(problem, layout, promised, run, slack)
    if promised.seconds < replay.seconds - slack:
        raise BrokenPlanError(f"promised are {promised.seconds:.9f} s, the replay takes {replay.seconds:.9f} s")


def _check_slots(problem: RegionProblem, layout: Layout, promised: Timetable, run: _Run, slack: float) -> None:
    """Each channel does one copy at a time, the processor those between regions that the engine does not reach."""
    slots: dict[int, list[tuple[float, float, int]]] = defaultdict(list)
    for number, (channel, begin, end) in enumerate(promised.copies):
        engine = run.on_engine(layout.copies[number])
        if not (0 <= channel < problem.dma.channels if engine else channel == -1):
            there = f"there are {problem.dma.channels}" if engine else "the processor does it, which is channel -1"
            raise BrokenPlanError(f"copy {number} is on channel {channel}; {there}")
        slots[channel].append((begin, end, number))
    for channel, own in slots.items():
        own.sort()
        for (_, end, first), (begin, _, second) in pairwise(own):
            if begin < end - slack:
                raise BrokenPlanError(
                    f"copies {min(first, second)} and {max(first, second)} have channel {channel} at the same time"
                )

"""The independent checker of layouts: it shares no code with what chooses, places, spills or prefetches.

What it takes for granted, and so holds a layout to:

* Buffers without a home have content from the first step of their lifetime in each stay that begins there. Those with
  a home have it at home; a stay as long as the whole lifetime is loaded once, before the first run.
* Any other stay gets content by a copy. A copy takes the content that its source has when step `issued` begins, and
  its target has it when step `due` begins. Where both are the same step, it is done before that step.
* An operator reads and writes one stay of each buffer: of those whose content is the newest, the one that began last.
  Without any it reads the home in place. When it writes, every other stay of the buffer and its home are out of date.
* A home whose content changed is written back by a copy before the buffer's lifetime ends.
"""

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np

from modelplan.answers.region_layout import Access, Copy, Layout, RegionProblem, Stay
from modelplan.checking import referee
from modelplan.model import Placement, Problem
from modelplan.primitives.errors import BrokenPlanError
from modelplan.primitives.units import steps_words

#: Sums of the same seconds in another order may differ by so much of them.
_ROUNDING = 1e-9


def check_layout(problem: RegionProblem, layout: Layout) -> None:
    """Returns only if `layout` answers `problem`.

    Looks at each stay (region, address, alignment, lifetime), at overlaps in each region, at the room that homes need,
    at the content of every operand at every step, and at the bound.

    Raises:
        BrokenPlanError: names the buffer, the region and the step.

    Cost: O(n log n) for each region, and O(accesses + stays + copies).
    """
    for number, stay in enumerate(layout.stays):
        _check_stay(problem, stay, number)
    for region in range(len(problem.regions)):
        _check_region(problem, layout, region)
    for number, copy in enumerate(layout.copies):
        _check_copy(problem, layout, copy, number)
    for buffer, (stays, copies, accesses) in _events(problem, layout).items():
        _replay(problem, layout, buffer, stays, copies, accesses)
    waited = seconds_of(problem, layout)
    if layout.bound > waited * (1 + _ROUNDING) + 1e-15:
        raise BrokenPlanError(f"the layout claims a bound of {layout.bound} s, but takes {waited} s")


def _named(problem: RegionProblem, buffer: int) -> str:
    return f"buffer {buffer} {problem.problem.names[buffer]!r}"


def _check_stay(problem: RegionProblem, stay: Stay, number: int) -> None:
    """The stay lies inside of a region that may hold the buffer, aligned, within the buffer's lifetime."""
    rows = problem.problem
    if not 0 <= stay.buffer < len(rows) or not 0 <= stay.region < len(problem.regions):
        raise BrokenPlanError(f"stay {number} names buffer {stay.buffer} and region {stay.region}, which do not exist")
    region, who = problem.regions[stay.region], _named(problem, stay.buffer)
    size, born, dies = (int(column[stay.buffer]) for column in (rows.size, rows.start, rows.end))
    if stay.region not in problem.allowed[stay.buffer] and stay.region != problem.home[stay.buffer]:
        raise BrokenPlanError(f"{who} lies in {region.name}, which may not hold it")
    if not born <= stay.start < stay.end <= dies:
        raise BrokenPlanError(
            f"{who} stays in {region.name} in steps {steps_words(stay.start, stay.end)},"
            f" but lives in steps {steps_words(born, dies)}"
        )
    kept_low = region.reserved if region.reserved_at == "start" else 0
    kept_high = region.reserved if region.reserved_at == "end" else 0
    if stay.offset < kept_low or stay.offset + size > region.size - kept_high:
        raise BrokenPlanError(
            f"{who} lies at bytes {stay.offset}..{stay.offset + size} of {region.name},"
            f" expected within {kept_low}..{region.size - kept_high}"
        )
    if (pin := int(rows.pin[stay.buffer])) >= 0 and stay.offset != pin:
        raise BrokenPlanError(f"{who} lies at byte {stay.offset} of {region.name}, pinned at {pin}")
    address = stay.offset + (region.base or 0)
    for unit in (int(rows.alignment[stay.buffer]), region.alignment):
        if address % unit:
            raise BrokenPlanError(f"{who} lies at address {address:#x} of {region.name}, expected a multiple of {unit}")


def _check_region(problem: RegionProblem, layout: Layout, number: int) -> None:
    """No two stays share bytes, but for those that the problem allows, and homes have their bytes besides."""
    region, rows = problem.regions[number], problem.problem
    inside = [stay for stay in layout.stays if stay.region == number]
    held: dict[int, list[int]] = defaultdict(list)
    for place, stay in enumerate(inside):
        held[stay.buffer].append(place)
    pairs = [(a, b, n) for buffer, other, n in rows.overlaps.tolist() for a in held[buffer] for b in held[other]]
    apart = [(a, b) for buffer, other in rows.conflicts.tolist() for a in held[buffer] for b in held[other]]
    part = Problem(
        tuple(rows.names[stay.buffer] for stay in inside),
        np.array([rows.size[stay.buffer] for stay in inside], dtype=np.int64),
        np.array([stay.start for stay in inside], dtype=np.int64),
        np.array([stay.end for stay in inside], dtype=np.int64),
        overlaps=np.array(pairs, dtype=np.int64).reshape(-1, 3),
        conflicts=np.array(apart, dtype=np.int64).reshape(-1, 2),
    )
    offsets = np.array([stay.offset for stay in inside], dtype=np.int64)
    try:
        referee.check(part, Placement(offsets))
    except BrokenPlanError as broken:
        raise BrokenPlanError(f"region {region.name}: {broken}") from None
    stored = sum(int(size) for size, home in zip(rows.size, problem.home, strict=True) if home == number)
    if stored > region.size - region.reserved:
        raise BrokenPlanError(
            f"{stored} bytes have their home in {region.name}, which has {region.size - region.reserved}"
        )


@dataclass(slots=True)
class _Buffer:
    """What is known of a buffer's content while steps pass: versions are counted by writes."""

    home: int
    version: int = 0
    at_home: int = -1
    held: dict[int, int] = field(default_factory=dict)


def _check_copy(problem: RegionProblem, layout: Layout, copy: Copy, number: int) -> None:
    """A copy joins two stays of one buffer, or one and the buffer's home, and both last as long as it does."""
    ends = [end for end in (copy.source, copy.target) if end != -1]
    if not ends or any(not 0 <= end < len(layout.stays) for end in ends):
        raise BrokenPlanError(f"copy {number} joins stays {copy.source} and {copy.target}, which do not exist")
    stays = [layout.stays[end] for end in ends]
    buffer = stays[0].buffer
    if any(stay.buffer != buffer for stay in stays):
        raise BrokenPlanError(f"copy {number} joins {_named(problem, buffer)} and {_named(problem, stays[1].buffer)}")
    if -1 in (copy.source, copy.target) and problem.home[buffer] == -1:
        raise BrokenPlanError(f"copy {number}: {_named(problem, buffer)} has no home")
    if copy.issued > copy.due:
        raise BrokenPlanError(
            f"copy {number} of {_named(problem, buffer)} is due at step {copy.due}, issued at {copy.issued}"
        )
    for end, stay in zip(ends, stays, strict=True):
        begins = copy.issued if copy.issued < copy.due or end == copy.target else max(copy.issued - 1, 0)
        if stay.start > begins or stay.end < copy.due or stay.end < copy.issued:
            raise BrokenPlanError(
                f"copy {number} of {_named(problem, buffer)} takes steps {steps_words(copy.issued, copy.due)},"
                f" but stay {end} lasts in steps {steps_words(stay.start, stay.end)}"
            )


_Events = tuple[list[int], list[Copy], list[Access]]


def _events(problem: RegionProblem, layout: Layout) -> dict[int, _Events]:
    """Stays, copies and accesses of each buffer."""
    events: dict[int, _Events] = {buffer: ([], [], []) for buffer in range(len(problem.problem))}
    for number, stay in enumerate(layout.stays):
        events[stay.buffer][0].append(number)
    for copy in layout.copies:
        events[layout.stays[max(copy.source, copy.target)].buffer][1].append(copy)
    for access in problem.accesses:
        events[access.buffer][2].append(access)
    return events


def _replay(
    problem: RegionProblem,
    layout: Layout,
    buffer: int,
    stays: list[int],
    copies: list[Copy],
    accesses: Iterable[Access],
) -> None:
    """Follows the versions of one buffer's content from step to step."""
    born, dies = int(problem.problem.start[buffer]), int(problem.problem.end[buffer])
    state = _Buffer(problem.home[buffer])
    state.at_home = 0 if state.home >= 0 else -1
    for number in stays:
        stay = layout.stays[number]
        whole = (stay.start, stay.end) == (born, dies)
        if stay.start == born and (state.home < 0 or whole or stay.region == state.home):
            state.held[number] = 0
    if state.home < 0 and not state.held:
        raise BrokenPlanError(f"{_named(problem, buffer)} lies nowhere when it is made at step {born}")
    taken: dict[int, int] = {}
    events = [(copy.issued, 1, place, None) for place, copy in enumerate(copies)]
    events += [(copy.due, 0 if copy.due > copy.issued else 2, place, None) for place, copy in enumerate(copies)]
    timed = [*events, *((access.step, 3, 0, access) for access in accesses)]
    for step, what, place, access in sorted(timed, key=lambda event: event[:3]):
        if access is not None:
            _use(problem, layout, buffer, state, access)
        elif what == 1:
            taken[place] = _content(problem, layout, buffer, state, copies[place], step)
        elif copies[place].target == -1:
            state.at_home = taken[place]
        else:
            state.held[copies[place].target] = taken[place]
    if state.home >= 0 and state.version and state.at_home != state.version and not any(
        layout.stays[n].region == state.home and layout.stays[n].end == dies and v == state.version
        for n, v in state.held.items()
    ):  # fmt: skip
        raise BrokenPlanError(f"{_named(problem, buffer)} changed and is not written back to its home")


def _content(problem: RegionProblem, layout: Layout, buffer: int, state: _Buffer, copy: Copy, step: int) -> int:
    """The version that a copy takes."""
    version = state.at_home if copy.source == -1 else state.held.get(copy.source, -1)
    if version != state.version:
        where = "its home"
        if copy.source != -1:
            where = f"stay {copy.source} in {problem.regions[layout.stays[copy.source].region].name}"
        raise BrokenPlanError(
            f"{_named(problem, buffer)}: the copy issued at step {step} takes it from {where}, which is out of date"
        )
    return version


def _use(problem: RegionProblem, layout: Layout, buffer: int, state: _Buffer, access: Access) -> None:
    """One operator's access: finds the newest content, and makes all else out of date where it writes."""
    number = _serving(layout, state, access.step)
    if number is None:
        if state.at_home == state.version and not access.written:
            return
        if state.at_home == state.version:
            raise BrokenPlanError(
                f"{_named(problem, buffer)} is written at step {access.step}, where it lies in no stay"
            )
        raise BrokenPlanError(f"{_named(problem, buffer)} is used at step {access.step}, where its content is nowhere")
    if access.written:
        state.version += 1
        state.held[number] = state.version


def _serving(layout: Layout, state: _Buffer, step: int) -> int | None:
    """The stay that an operator uses at a step: the latest of those with the newest content."""
    there = [
        number
        for number, version in state.held.items()
        if version == state.version and layout.stays[number].start <= step < layout.stays[number].end
    ]
    return max(there, key=lambda number: (layout.stays[number].start, number), default=None)


def seconds_of(problem: RegionProblem, layout: Layout) -> float:
    """How long operators wait for their operands where the layout has them, without copies, in seconds."""
    held: dict[int, list[Stay]] = defaultdict(list)
    for stay in layout.stays:
        held[stay.buffer].append(stay)
    total = 0.0
    for access in problem.accesses:
        there = [stay for stay in held[access.buffer] if stay.start <= access.step < stay.end]
        place = max(there, key=lambda stay: stay.start).region if there else problem.home[access.buffer]
        region = problem.regions[place]
        for count, rate in ((access.read, region.read_bandwidth), (access.written, region.write_bandwidth)):
            speed = rate or region.bandwidth
            if count:
                total += (region.latency_ns or 0.0) / 1e9 + (count / speed if speed else 0.0)
    return total

"""What of a layout is right or wrong whatever happens in a run: where its stays lie, and what its copies join.

Shares no code with what chooses, places, spills or prefetches. What moves through the stays is `moves_simulator`'s.
"""

from collections import defaultdict

import numpy as np

from modelplan.answers.region_layout import Copy, Layout, RegionProblem, Stay
from modelplan.checking import referee
from modelplan.model import Placement, Problem
from modelplan.primitives.errors import BrokenPlanError
from modelplan.primitives.units import steps_words


def check_places(problem: RegionProblem, layout: Layout) -> None:
    """Returns only if the stays and the copies of `layout` can be those of an answer to `problem`.

    Looks at each stay (region, address, alignment, lifetime), at overlaps in each region, at the room that homes need,
    and at what each copy joins and when.

    Raises:
        BrokenPlanError: names the buffer, the region and the step.

    Cost: O(n log n) for each region.
    """
    for number, stay in enumerate(layout.stays):
        _check_stay(problem, stay, number)
    for region in range(len(problem.regions)):
        _check_region(problem, layout, region)
    for number, copy in enumerate(layout.copies):
        _check_copy(problem, layout, copy, number)


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
    if copy.target == -1 and problem.regions[problem.home[buffer]].kind == "nvm":
        raise BrokenPlanError(f"copy {number}: the home of {_named(problem, buffer)} is not written at run time")
    if not 0 <= copy.issued <= copy.due:
        raise BrokenPlanError(
            f"copy {number} of {_named(problem, buffer)} is due at step {copy.due}, issued at {copy.issued}"
        )
    for end, stay in zip(ends, stays, strict=True):
        begins = copy.issued if copy.issued < copy.due or end == copy.target else max(copy.issued - 1, 0)
        if stay.start > begins or stay.end < copy.due:
            raise BrokenPlanError(
                f"copy {number} of {_named(problem, buffer)}, issued at step {copy.issued} and due at {copy.due}: its"
                f" {'source' if end == copy.source else 'target'} lasts in steps {steps_words(stay.start, stay.end)}"
            )

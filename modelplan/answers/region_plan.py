"""What is known once several memories are planned: the question, the answer, and what both say of each region."""

from __future__ import annotations

from collections import defaultdict
from functools import cached_property
from itertools import accumulate

from modelplan.answers.region_layout import Layout, RegionProblem, Stay
from modelplan.model import Plan
from modelplan.primitives.lazy_records import dataclass
from modelplan.primitives.showing_answers import Shown
from modelplan.targets.device import Region


@dataclass(frozen=True, slots=True)
class RegionUse:
    """What a layout does with one region, in bytes and seconds.

    `low` is the end of what lies at the lower end, counted from the base, `high` the start of what lies at the upper
    end (the region's size where nothing does). `most` are the most bytes in use at a step, `stored` those that have
    their home here. `read`, `written` and `seconds` are those of operators, not of copies.
    """

    region: Region
    buffers: int
    low: int
    high: int
    most: int
    stored: int
    read: int
    written: int
    seconds: float

    @property
    def free(self) -> int:
        """Bytes between the two ends that nothing uses; what is reserved at the upper end is not free."""
        kept = self.region.reserved if self.region.reserved_at == "end" and self.high == self.region.size else 0
        return self.high - kept - self.low


@dataclass(frozen=True, slots=True)
class TflmArena:
    """One of TFLM's two arenas: its bytes, what it is made of, and the region that holds it, -1 without one."""

    name: str
    nbytes: int
    holds: str
    region: int
    seconds: float = 0.0


@dataclass(frozen=True, eq=False, repr=False)
class RegionPlan(Shown):
    """The layout of models in several memories, with all that outputs say of it.

    `plans` are the plans of the models, one behind the other in time; their placements are not used; a table of buffers
    has none, but a `name`. `owners` says of
    each buffer which model's it is and what it is for: weights, state, scratch, input, output or activation.
    `arenas` are TFLM's two arenas, where it runs the model.
    """

    plans: tuple[Plan, ...]
    problem: RegionProblem
    layout: Layout
    owners: tuple[tuple[int, str], ...]
    both_ends: bool
    made_by: str
    arenas: tuple[TflmArena, ...] = ()
    name: str = ""

    @property
    def title(self) -> str:
        """The names of the models, or that of the table."""
        return self.name or ", ".join(plan.graph.name for plan in self.plans)

    @property
    def ops(self) -> tuple[str, ...]:
        """The operator of each step; empty where a step has none."""
        labels: list[str] = []
        for plan in self.plans:
            kinds = [plan.graph.ops[index].kind for index in plan.schedule.order]
            labels += [*kinds, *[""] * (plan.steps - len(kinds))]
        return tuple(labels)

    @property
    def starts(self) -> tuple[int, ...]:
        """The first step of each model."""
        return tuple(accumulate((plan.steps for plan in self.plans[:-1]), initial=0))

    @property
    def seconds(self) -> float:
        """How long operators wait for memory in one run of all models."""
        return sum(use.seconds for use in self.uses)

    @cached_property
    def uses(self) -> tuple[RegionUse, ...]:
        """What each region holds and how it is used, in the order of the regions."""
        return tuple(self._use(number) for number in range(len(self.problem.regions)))

    def _use(self, number: int) -> RegionUse:
        region, rows = self.problem.regions[number], self.problem.problem
        stays = [stay for stay in self.layout.stays if stay.region == number and rows.size[stay.buffer]]
        upper = [stay for stay in stays if self._is_upper(stay)]
        lower = [stay for stay in stays if not self._is_upper(stay)]
        read, written, seconds = self._traffic[number]
        stored = self.problem.stored[number]
        first = stored + (region.reserved if region.reserved_at == "start" else 0)
        low = max((stay.offset + int(rows.size[stay.buffer]) for stay in lower), default=first)
        high = min((stay.offset for stay in upper), default=region.size)
        return RegionUse(region, len(stays), max(low, first), high, self._most(stays), stored, read, written, seconds)

    def _is_upper(self, stay: Stay) -> bool:
        whole = stay.start == 0 and stay.end == int(self.problem.problem.end.max(initial=1))
        return self.both_ends and whole

    def _most(self, stays: list[Stay]) -> int:
        """The most bytes in use at a step."""
        sizes = [(stay, int(self.problem.problem.size[stay.buffer])) for stay in stays]
        begins, ends = [(stay.start, size) for stay, size in sizes], [(stay.end, -size) for stay, size in sizes]
        return max(accumulate((change for _, change in sorted(begins + ends)), initial=0))

    @cached_property
    def _traffic(self) -> list[tuple[int, int, float]]:
        """Bytes read and written by operators and the seconds that they wait, for each region."""
        totals = [(0, 0, 0.0)] * len(self.problem.regions)
        held: dict[int, list[Stay]] = defaultdict(list)
        for stay in self.layout.stays:
            held[stay.buffer].append(stay)
        for access in self.problem.accesses:
            there = [stay for stay in held[access.buffer] if stay.start <= access.step < stay.end]
            place = max(there, key=lambda s: s.start).region if there else self.problem.home[access.buffer]
            read, written, seconds = totals[place]
            waited = self.problem.regions[place].seconds(access.read, access.written)
            totals[place] = read + access.read, written + access.written, seconds + waited
        return totals

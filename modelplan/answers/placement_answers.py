"""Answers to a problem of placement: one, with the plan of the tool that wrote the file, or those of all allocators."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from modelplan.answers import drawing
from modelplan.answers.drawing import Drawing
from modelplan.answers.summary import RuntimePlan, runtime_plan
from modelplan.model import IntArray, Placement, Plan, Problem, bounds
from modelplan.primitives.errors import RequestError
from modelplan.primitives.lazy_records import dataclass
from modelplan.primitives.showing_answers import Shown
from modelplan.primitives.units import counted, human, stand_in
from modelplan.primitives.version import __version__

if TYPE_CHECKING:
    from modelplan.targets.choosing import Chosen


@dataclass(frozen=True, eq=False, repr=False)
class Solution(Shown):
    """Buffers and where they stand, which `render` and `show` draw.

    Args:
        problem: the buffers.
        placement: an offset for each.
        source: the file that they came from, or a name for them.
        planner: the tool that planned the file's own offsets, empty where the file does not say.
        planned: the file's own offsets, None without such; `flaw` is what is wrong with them.
        flaw: why the file's own offsets are no placement, empty where they are one.
        hints: the offsets that the file asks for, negative where it does not; None without such.
    """

    problem: Problem
    placement: Placement
    source: str = "problem"
    planner: str = ""
    planned: Placement | None = None
    flaw: str = ""
    hints: IntArray | None = None

    @property
    def height(self) -> int:
        """The end of the highest buffer."""
        return bounds.height(self.problem, self.placement)

    @property
    def fits(self) -> bool:
        """Whether the placement keeps to the capacity; without one it does."""
        return self.problem.capacity is None or self.height <= self.problem.capacity

    @property
    def planned_height(self) -> int | None:
        """The end of the highest buffer in the file's own plan; None without one."""
        return None if self.planned is None else bounds.height(self.problem, self.planned)


def drawing_of(solution: Solution) -> Drawing:
    """The drawing of the buffers where the answer has them."""
    return drawing.of_problem(Path(solution.source).stem, solution.problem, solution.placement)


def planned_words(planner: str, height: int, bound: int) -> str:
    """How far the plan of the tool that wrote the file is from the bound."""
    above = height - bound
    away = "at the bound" if above <= 0 else f"{above:,} B ({above / max(bound, 1):.2%}) above the bound"
    return f"{planner or 'the file'}'s own plan: {human(height)}, {away}"


#: Rows that head the table whatever their height.
OURS = ("best", "modelplan")


@dataclass(frozen=True, slots=True)
class Row:
    """One allocator's answer; `height` is None where it refused, `why` says so.

    `objects` is what a planner of shared objects reports itself: their bytes, without padding between them.
    `lower_bound` is what it proved. `found_by` and `own_height` are those of its placement: where the first is a name,
    the height is that allocator's, and the second is the height of the search's own best, None without one.
    """

    allocator: str
    kind: str
    height: int | None
    microseconds: int
    objects: int | None = None
    why: str = ""
    lower_bound: int = 0
    found_by: str = ""
    own_height: int | None = None


@dataclass(frozen=True, slots=True)
class Comparison:
    """The answers to one problem of `buffers` buffers; `remarks` are lines about the problem.

    `planned`: the buffers are those of a model, so that heights are planned activations.
    """

    title: str
    buffers: int
    rows: tuple[Row, ...]
    remarks: tuple[str, ...] = ()
    planned: bool = False

    @property
    def counted(self) -> str:
        """What heights count, in the words of other commands."""
        return f"{counted(self.buffers, 'buffer')}{' of planned activations' if self.planned else ''}"

    @property
    def lower_bound(self) -> int:
        """The greatest bound that one of the rows proved."""
        return max((row.lower_bound for row in self.rows), default=0)

    @property
    def ranked(self) -> list[Row]:
        """The rows with an answer: lowest first, of equal ones own answers first, then the fastest."""
        placed = [row for row in self.rows if row.height is not None]
        return sorted(placed, key=lambda row: (row.height, bool(row.found_by), row.microseconds))

    @property
    def field(self) -> Field:
        """What a chart shows: the answers lowest first, and who refused."""
        marks = tuple(Mark(r.allocator, r.kind, r.height or 0, r.microseconds, r.found_by) for r in self.ranked)
        refused = tuple(row.allocator for row in self.rows if row.height is None)
        facts = f"{self.counted}  ·  lower bound {human(self.lower_bound)}  ·  {len(marks)} allocators"
        return Field(
            Path(self.title).name, self.buffers, self.lower_bound, marks, refused, f"modelplan {__version__}", facts
        )


@dataclass(frozen=True, eq=False)
class ProblemSource:
    """The problem that all allocators get; of a model the plan that `analyze` makes of it.

    `planned` are the offsets that a file of buffers states, and `planner` the tool that gave them.
    """

    problem: Problem
    plan: Plan | None = None
    banks: tuple[tuple[str, int], ...] = ()
    planner: str = ""
    planned: Placement | None = None

    @property
    def runtime_plan(self) -> RuntimePlan | None:
        """What the model's runtime does by itself."""
        return None if self.plan is None else runtime_plan(self.plan)

    def within(self, chosen: Chosen | None) -> ProblemSource:
        """The same with the block of the target as capacity, for a figure; the answers are heights without one."""
        if chosen is None:
            return self
        problem = replace(self.problem, capacity=chosen.known_budget)
        plan = None if self.plan is None else replace(self.plan, problem=problem, banks=chosen.banks)
        return replace(self, problem=problem, plan=plan, banks=chosen.banks)

    @property
    def kept(self) -> int:
        """Bytes of the same memory that the model's runtime takes outside of the planned buffers."""
        return self.plan.requirement.kept if self.plan and self.plan.requirement else 0

    @property
    def refusals(self) -> tuple[str, ...]:
        """Why the model's runtime would not run it."""
        return self.plan.requirement.refusals if self.plan and self.plan.requirement else ()

    @property
    def lower_bound(self) -> int:
        """What is proved before any allocator has run: the load, of a model what its plan proved."""
        proved = 0 if self.plan is None else self.plan.placement.lower_bound
        return max(proved, bounds.load_bound(self.problem))


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class AllocatorAnswers(Shown):
    """What `compare` finds out: the table, the problem, and what each allocator placed; `target` is the device."""

    comparison: Comparison
    source: ProblemSource
    placements: Mapping[str, Placement]
    target: Chosen | None = None

    @property
    def fitting(self) -> int:
        """How many answers fit the block of the target with what the runtime keeps; all do where there is none."""
        heights = [row.height for row in self.comparison.ranked if row.height is not None]
        budget = self.target.known_budget if self.target else None
        if budget is None:
            return len(heights)
        return 0 if self.source.refusals else sum(height + self.source.kept <= budget for height in heights)

    def drawing_of(self, name: str) -> Drawing:
        """The drawing of one allocator's placement, with the allocator in its title.

        Raises:
            RequestError: the allocator refused the problem.
        """
        if name not in self.placements:
            raise RequestError(f"--draw {name}: it refused the problem, there is nothing to draw")
        placement, source = self.placements[name], self.source.within(self.target)
        if source.plan is not None:
            shown = drawing.of_plan(replace(source.plan, placement=placement, allocator=name))
        else:
            shown = drawing.of_problem(Path(self.comparison.title).stem, source.problem, placement)
            shown = replace(shown, banks=source.banks)
        note = stand_in(placement.found_by, placement.own_height)
        return replace(shown, title=f"{shown.title}: {name}" + (f" ({note})" if note else ""))


@dataclass(frozen=True, slots=True)
class Mark:
    """One allocator's answer; `found_by` names another one whose height it is."""

    name: str
    kind: str
    height: int
    microseconds: int
    found_by: str = ""


@dataclass(frozen=True, slots=True)
class Field:
    """All the answers to one problem, lowest first, and who refused it; `facts` is a line about them."""

    title: str
    buffers: int
    lower_bound: int
    marks: tuple[Mark, ...]
    refused: tuple[str, ...]
    made_by: str
    facts: str = ""

    def excess(self, mark: Mark) -> float:
        """Percent above the lower bound."""
        return 100 * (mark.height - self.lower_bound) / self.lower_bound if self.lower_bound else 0.0

    def unbeaten(self) -> list[Mark]:
        """Those with an answer of their own that no other beats in height without taking longer, fastest first."""
        marks: list[Mark] = []
        for mark in sorted((m for m in self.marks if not m.found_by), key=lambda m: (m.microseconds, m.height)):
            if not marks or mark.height < marks[-1].height:
                marks.append(mark)
        return marks

"""A placement problem with its answer, and beside it the plan of the tool that wrote the file."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from modelplan.answers import drawing
from modelplan.answers.drawing import Drawing
from modelplan.model import IntArray, Placement, Problem, bounds
from modelplan.primitives.units import human


@dataclass(frozen=True, eq=False)
class Solution:
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

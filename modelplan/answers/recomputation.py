"""What is known of dropping values and computing them again: plans of the graph with repeated operators."""

from __future__ import annotations

from modelplan.model import Graph, Plan
from modelplan.primitives.lazy_records import dataclass
from modelplan.primitives.showing_answers import Shown


@dataclass(frozen=True, eq=False)
class Repeated:
    """A plan of the graph in which some operators run again.

    `origins` holds for each operator of the plan's graph the operator of the model that it repeats; `work` is that of
    one run: multiply-accumulates, and one for each element that another operator writes. `method` names the search;
    `bound` is work below which no sequence of its form stays within the bytes that were asked for, 0 where none is
    proved.
    """

    plan: Plan
    origins: tuple[int, ...]
    height: int
    work: int
    method: str
    bound: int = 0

    @property
    def again(self) -> int:
        """The number of repeated runs, summed over all operators."""
        return len(self.origins) - len(set(self.origins))


@dataclass(frozen=True, eq=False, repr=False)
class Curve(Shown):
    """Plans from little work to much, each lower than those before it; the first repeats nothing.

    `chosen` is the index of the one that was asked for, -1 where none keeps to what was asked. `remarks` say what was
    left out; `model` is the graph without repetitions, as the file has it; `budget` the bytes that were asked for.
    """

    model: Graph
    points: tuple[Repeated, ...]
    chosen: int
    remarks: tuple[str, ...]
    made_by: str
    budget: int | None = None

    @property
    def title(self) -> str:
        """What the model is called."""
        return self.model.name

    @property
    def counted(self) -> str:
        """What the heights are: the head of an arena whose tail stays, or all that is planned."""
        return "head" if self.first.plan.runtime.requires else "planned"

    @property
    def basis(self) -> str:
        """The runtime that it is planned for, with its kernels where it has a choice of them."""
        runtime = self.first.plan.runtime
        return f"{runtime.name}, {runtime.library.name} kernels" if len(runtime.libraries) > 1 else runtime.name

    @property
    def first(self) -> Repeated:
        """The plan without repetitions."""
        return self.points[0]

    def extra_work(self, point: Repeated) -> float:
        """The extra work of a point as a share of the work without repetitions."""
        return (point.work - self.first.work) / max(self.first.work, 1)

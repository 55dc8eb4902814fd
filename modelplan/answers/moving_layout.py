"""What is found out about contents that move between memories: the nouns that outputs read."""

from __future__ import annotations

from modelplan.answers.region_layout import Layout, RegionProblem
from modelplan.model import Plan
from modelplan.primitives.lazy_records import dataclass
from modelplan.primitives.showing_answers import Shown


@dataclass(frozen=True, slots=True)
class Simulation:
    """What a run takes: `seconds` in all, when each step begins, channel, begin and end of each copy.

    `read` and `written` are bytes for each region, by operators and copies; `copied` the bytes of all copies. `waiting`
    is how long operators wait for copies.
    """

    seconds: float
    begins: tuple[float, ...]
    copies: tuple[tuple[int, float, float], ...]
    read: tuple[int, ...]
    written: tuple[int, ...]
    copied: int
    waiting: float


@dataclass(frozen=True, eq=False, repr=False)
class MovingPlan(Shown):
    """A layout whose contents move, with what the independent replay found.

    `plan` is the model's, whose placement is not used. `blocking` is the time with the same contents and copies between
    steps (0: not known), `floor` that without copies and every operand in the quickest region that may hold it; `cost`
    the seconds of accesses and copies between steps, `relaxed` the value of the linear relaxation (0: not computed);
    `method` who decided; `owners` what each buffer is for, as in `RegionPlan`.
    """

    plan: Plan
    problem: RegionProblem
    layout: Layout
    simulated: Simulation
    blocking: float
    floor: float
    cost: float
    relaxed: float
    method: str
    made_by: str
    owners: tuple[tuple[int, str], ...]

    @property
    def title(self) -> str:
        """The name of the model."""
        return self.plan.graph.name

    @property
    def ops(self) -> tuple[str, ...]:
        """The operator of each step."""
        return tuple(self.plan.graph.ops[index].kind for index in self.plan.schedule.order)


@dataclass(frozen=True, slots=True)
class Recheck:
    """A model that was planned again in the memories of a saved layout.

    `seconds` are those of a run where contents move, else what operators wait for memory; `traffic` are bytes read and
    written outside of the fastest memory. None after: it does not fit. `room` is for each region its name, the end of
    its highest stay and its size, `reasons` what is worse than allowed; empty: nothing.
    """

    model: str
    seconds_before: float
    traffic_before: int
    seconds: float | None
    traffic: int | None
    room: tuple[tuple[str, int, int], ...]
    reasons: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class LayoutCheck:
    """Each model, planned again in the memories of the saved `layout`."""

    layout: str
    models: tuple[Recheck, ...]

    @property
    def passed(self) -> bool:
        """Whether all models fit and none is worse than allowed."""
        return not any(model.reasons for model in self.models)


@dataclass(frozen=True, slots=True)
class CurvePoint:
    """A run in `memory` bytes: `kept` bytes of weights stay, `streamed` come in each run through `window` bytes.

    `seconds` is the time of a run by the time model, `needed` the bytes per second with which it would take at most a
    hundredth longer than its operators compute; infinite where the latency of copies alone takes longer.
    """

    memory: int
    kept: int
    window: int
    streamed: int
    seconds: float
    needed: float


@dataclass(frozen=True, eq=False, repr=False)
class StreamCurve(Shown):
    """Runs in different memories: for each rate of the link, in bytes per second, one point for each memory.

    `activations` and `weights` are bytes, `computing` the seconds of all operators, `least` the memory in which the
    activations and the weights of one operator fit. `simulated` is the replay of a layout in `chosen` bytes at the
    first rate, None where no memory was named; `swapped` says that activations are copied in it.
    """

    title: str
    activations: int
    weights: int
    computing: float
    least: int
    curves: tuple[tuple[int, tuple[CurvePoint, ...]], ...]
    chosen: int | None
    simulated: Simulation | None
    swapped: bool
    made_by: str

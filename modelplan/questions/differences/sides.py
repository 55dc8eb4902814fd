"""One side of a comparison: a model with what it needs, the plan behind that, and what its file says besides."""

from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property

import numpy as np

from modelplan.formats import read_contents
from modelplan.formats.model_contents import Contents, known_contents
from modelplan.model import BufferKind, Graph, Plan, Requirement, Runtime, bounds
from modelplan.model.model_file import ModelFile, Target
from modelplan.planning import pipeline
from modelplan.planning.matching.labelling import Structure
from modelplan.primitives.lazy_records import dataclass
from modelplan.questions.alternatives import carried_offsets, carries_plan, planned_requirement, unmodified_requirement
from modelplan.questions.model_request import SessionAsked
from modelplan.questions.session_needs import sized_by_session
from modelplan.runtimes import with_kernels
from modelplan.runtimes.c import RAM_MACRO

#: Who made a buffer that is alive at the peak: an operator, or an input or other tensor that none makes.
Maker = tuple[str, int]


@dataclass(frozen=True)
class Side:
    """What is compared: a graph, what it needs, and the plan that its planned part follows.

    `graph` is as the file has it; that of the plan has the types of the runtime's memory. `whole`: the requirement is
    all that the runtime needs, not only the planned part. `kept` are the bytes that the runtime keeps for each
    operator, empty where it is not known. `settings` name the choices made for this side.
    """

    name: str
    graph: Graph
    needed: Requirement
    plan: Plan
    contents: Contents
    whole: bool = False
    kept: tuple[int, ...] = ()
    settings: tuple[tuple[str, str], ...] = ()
    file_bytes: int | None = None
    capacity: int | None = None

    @property
    def counted(self) -> str:
        """What the requirement counts, in the words of other commands."""
        if self.needed.macro and self.whole:
            return "RAM" if self.needed.macro == RAM_MACRO else "arena"
        if self.plan.requirement is None:
            return "planned activations"
        if self.needed.session:
            return "memory" if self.needed.session.usual.measured else "memory with the margin of a prediction"
        return f"{self.plan.runtime.name} by itself" if self.plan.runtime.sorts else "memory"

    @cached_property
    def structure(self) -> Structure:
        """The graph as far as matching looks at it."""
        return Structure(self.graph, self.contents)

    @cached_property
    def steps(self) -> tuple[int, ...]:
        """The step of each operator."""
        steps = [-1] * len(self.graph.ops)
        for step, op in enumerate(self.plan.schedule.order):
            steps[op] = step
        return tuple(steps)

    @cached_property
    def live(self) -> tuple[int, ...]:
        """The bytes alive at each step."""
        return tuple(bounds.live_bytes(self.plan.problem, max(len(self.plan.schedule.order), 1)).tolist())

    @cached_property
    def peak_step(self) -> int:
        """The first step at which most is alive."""
        return int(np.argmax(self.live))

    @cached_property
    def peak_buffers(self) -> tuple[int, ...]:
        """The buffers that are alive at the peak, largest first."""
        return tuple(bounds.alive_at(self.plan.problem, self.peak_step).tolist())

    def maker(self, buffer: int) -> Maker:
        """Who made a buffer of the plan: ("op", operator) or, where no operator did, ("tensor", tensor)."""
        row, graph = self.plan.problem[buffer], self.graph
        order = self.plan.schedule.order
        makers = {graph.producers[m.tensor] for m in row.members}
        if row.kind is BufferKind.SCRATCH:
            return "op", order[row.start]
        if -1 not in makers:  # state is alive before its handle is made
            return "op", min(makers, key=order.index)
        return "tensor", next(m.tensor for m in row.members if graph.producers[m.tensor] < 0)


def side_of(
    file: ModelFile,
    target: Target,
    *,
    plan: Plan | None = None,
    session: SessionAsked | None = None,
    settings: Sequence[tuple[str, str]] = (),
    capacity: int | None = None,
) -> Side:
    """The side that a file is on its runtime: by a given plan, else unmodified, with the order and plan it carries.

    `session`: how a session is sized, for a runtime that has them; None: what its planner needs by itself counts.

    Raises:
        BrokenPlanError: the file carries a plan by which an operator would read what it should not.
        ModelError: it is damaged.
    """
    contents = read_contents(file.content, file.path, file.graph)
    side = _standing(file, target, contents, session) if plan is None else planned_side(plan, file.path, contents)
    return replace(
        side,
        graph=file.graph,
        settings=(*side.settings, *settings),
        file_bytes=len(file.content),
        capacity=capacity,
    )


def _standing(file: ModelFile, target: Target, contents: Contents, session: SessionAsked | None) -> Side:
    runtime = target.runtime
    whole = runtime.requires is not None and file.graph.format == runtime.default_for
    carried = carries_plan(file, runtime)
    needed = unmodified_requirement(file, target)
    if session is not None:
        needed = sized_by_session(file, target, needed, session)
    deciding = with_kernels(runtime, needed.kernels) if needed.kernels else runtime
    own = runtime.keeps(file.content, file.path, target.abi, deciding.kernels) if whole and runtime.keeps else ()
    plan = pipeline.runtime_plan(file.graph, deciding, carried_offsets(file, deciding))
    kept = own if len(own) == len(file.graph.ops) else ()
    choices = _choices(runtime, "carried by the file" if carried else "as the runtime makes it")
    abi = [("ABI", target.abi)] if whole else []
    plan = replace(plan, requirement=needed)
    whole = whole or needed.session is not None or bool(needed.macro)
    return Side(file.path, file.graph, needed, plan, contents, whole, kept, (*choices, *abi))


def planned_side(plan: Plan, name: str = "", contents: Contents | None = None) -> Side:
    """The side of a plan alone: only its activations are compared."""
    needed = planned_requirement(plan, f"the planned activations for {plan.runtime.name}")
    known = contents or known_contents(plan.graph)
    asked = f"{plan.schedule.method} order, aliases {plan.alias}, allocator {plan.allocator}"
    return Side(name or plan.graph.name, plan.graph, needed, plan, known, settings=_choices(plan.runtime, asked))


def _choices(runtime: Runtime, plan: str) -> tuple[tuple[str, str], ...]:
    return ("runtime", runtime.name), ("kernels", runtime.kernels), ("plan", plan)

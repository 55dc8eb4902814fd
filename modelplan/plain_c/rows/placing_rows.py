"""Where the values of a plan lie: rows live and die one by one, and values are packed as rigid groups of rows."""

from collections.abc import Iterator, Sequence
from functools import cached_property

import numpy as np

from modelplan.model import Problem
from modelplan.model.bounds import load_bound
from modelplan.model.c_program import (
    CProgram,
    KernelCall,
    PlanChoices,
    RowsArrival,
    RowsRead,
    RowsWritten,
    Stage,
    StageChoice,
    Step,
    StoredValue,
    ValueShift,
)
from modelplan.plain_c.rows.row_graph import RowGraph
from modelplan.plain_c.rows.stage_plan import StagedGraph
from modelplan.primitives import _core
from modelplan.primitives.lazy_records import dataclass
from modelplan.rewriting.stripes.group_packing import GroupPacking, pack

#: Most tries of a packing for each of its groups: orders of few are soon all alike.
_TRIES_OF_GROUP = 200


@dataclass(frozen=True)
class PlacedStages:
    """Stages with the lowest placement of their values that is found in so many tries, of few groups in fewer.

    It is looked for when it is asked for, which Ctrl-C ends with KeyboardInterrupt.
    """

    graph: StagedGraph
    choices: tuple[StageChoice, ...]
    tries: int
    seed: int = 0

    @cached_property
    def plan(self) -> _core.RowPlan:
        """The steps."""
        return self.graph.plan(self.choices)

    @cached_property
    def problem(self) -> Problem:
        """The packing problem; its groups are the values, and the working memory of operators."""
        size, start, end, alignment, group, delta, meetings = self.plan.problem()
        values, scratch = range(len(self.graph.rows.values)), self.plan.scratch
        names = [*(f"value {v}" for v in values), *(f"scratch of op {n}" for n in scratch)]
        groups = np.column_stack((np.arange(len(size)), group, delta))
        labels = tuple(np.array(names, dtype=object)[group].tolist())
        return Problem(labels, size, start, end, alignment, groups=groups, meetings=meetings.reshape(-1, 4))

    @cached_property
    def load(self) -> int:
        """The most bytes that are alive at a time, which are known without a placement."""
        return load_bound(self.problem)

    @cached_property
    def packing(self) -> GroupPacking:
        """Where the groups lie."""
        groups = int(self.problem.groups[:, 1].max(initial=0)) + 1
        return pack(self.problem, min(self.tries, _TRIES_OF_GROUP * groups), self.seed)

    @property
    def nbytes(self) -> int:
        """The bytes of the buffer."""
        return self.packing.height

    @property
    def bound(self) -> int:
        """What no placement of these stages needs less than."""
        return self.packing.load

    def program(self) -> CProgram:
        """The steps of the stages at their addresses."""
        return _program(self.graph, self.plan, self.choices, self.packing)


def lower_one(least: PlacedStages, other: PlacedStages) -> PlacedStages:
    """The one that needs less; the other one is not placed where as many bytes are alive as the first one needs."""
    return other if other.load < least.nbytes and other.nbytes < least.nbytes else least


def placed_program(graph: StagedGraph, choices: Sequence[StageChoice], tries: int, seed: int = 0) -> CProgram:
    """The program of these stages with the lowest placement found in so many tries."""
    return PlacedStages(graph, tuple(choices), tries, seed).program()


def chosen_program(graph: StagedGraph, choices: PlanChoices, nbytes: int) -> CProgram:
    """The program of these choices, all of them already made, in a buffer of `nbytes`.

    Raises:
        ValueError: the stages do not hold every operator once, or the choices have other bases than it has values.
    """
    ends = [0, *(choice.end for choice in choices.stages)]
    if [choice.first for choice in choices.stages] != ends[:-1] or ends[-1] != len(graph.rows.order):
        raise ValueError("the stages do not hold every operator once")
    plan = graph.plan(choices.stages)
    count = len(graph.rows.values) + len(plan.scratch)
    if len(choices.bases) != count:
        raise ValueError(f"{len(choices.bases)} places, but {count} values")
    return _program(graph, plan, choices.stages, GroupPacking(choices.bases, nbytes, nbytes))


def _program(
    graph: StagedGraph, plan: _core.RowPlan, choices: Sequence[StageChoice], packing: GroupPacking
) -> CProgram:
    rows, bases = graph.rows, packing.bases
    values = tuple(
        StoredValue(tuple(map(rows.tensor_in_model, value.tensors)), value.nbytes, capacity, base, value.producer == -2)
        for value, capacity, base in zip(rows.values, plan.capacities, bases, strict=False)
    )
    stages = tuple(
        Stage(_run(graph, choice), tuple(_steps(numbers, rows)))
        for choice, numbers in zip(choices, plan.steps(list(bases)), strict=True)
    )
    inputs = tuple(rows.value_of[t] for t in rows.graph.inputs)
    outputs = tuple(rows.value_of.get(t, -1) for t in rows.graph.outputs)
    scratch = {index: rows.operators[index].scratch for index in plan.scratch}
    made_of = PlanChoices(tuple(choices), rows.all_chains, tuple(bases), repeats=rows.repeats, order=rows.other_order)
    ends = inputs, outputs
    return CProgram(values, stages, packing.height, packing.load, *ends, graph.pushed, scratch, choices=made_of)


def _run(graph: StagedGraph, choice: StageChoice) -> tuple[int, ...]:
    """The operators of a stage, with all of those that run tile by tile."""
    numbers = graph.rows.order[choice.first : choice.end]
    members = (member for number in numbers for member in graph.rows.members(number))
    return tuple(map(graph.rows.number_in_model, members))


def _steps(numbers: Sequence[int], rows: RowGraph) -> Iterator[Step]:
    """The steps that the core gives as numbers, see `RowPlan.steps`."""
    named, at, end = {t: rows.tensor_in_model(t) for t in rows.value_of}, 0, len(numbers)
    while at < end:
        kind = numbers[at]
        if kind == 1:
            yield ValueShift(*numbers[at + 1 : at + 5])
            at += 5
        elif kind == 2:
            yield RowsArrival(*numbers[at + 1 : at + 4])
            at += 4
        else:
            operator, cut, left, right, scratch, reads, writes = numbers[at + 1 : at + 8]
            first, last = at + 8, at + 8 + 8 * reads
            at = last + 5 * writes
            read = tuple([RowsRead(named[numbers[i]], *numbers[i + 1 : i + 8]) for i in range(first, last, 8)])
            written = tuple([RowsWritten(named[numbers[i]], *numbers[i + 1 : i + 5]) for i in range(last, at, 5)])
            yield KernelCall(rows.number_in_model(operator), read, written, (left, right) if cut else None, scratch)

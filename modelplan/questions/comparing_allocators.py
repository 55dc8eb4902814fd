"""`compare`: every allocator on one problem."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from modelplan.answers.placement_answers import AllocatorAnswers, Comparison, ProblemSource, Row, planned_words
from modelplan.formats import is_table, load_table
from modelplan.model import Budget, Placement, Problem, bounds
from modelplan.planning import pipeline
from modelplan.planning.allocators import ALLOCATORS, OWN_NAMES, allocator, place
from modelplan.planning.allocators.narrowing import conflicting_pairs
from modelplan.planning.allocators.systems.idealloc import hardness
from modelplan.planning.allocators.tied_buffers import colliding_pins
from modelplan.primitives.errors import BrokenPlanError, RequestError
from modelplan.primitives.lazy_records import dataclass
from modelplan.primitives.settled_requests import answers_paths
from modelplan.primitives.units import human
from modelplan.questions.model_request import ModelRequest, planning_options, with_deciding_kernels
from modelplan.questions.option_files import FROM_FILE
from modelplan.questions.solving import stated

if TYPE_CHECKING:
    from modelplan.answers.page_views import Page


#: Why an allocator is not asked.
_LONG = "asked about at most {1:,.0f} pairs of buffers alive together without --seconds, found {0:,}"


@dataclass(frozen=True, slots=True)
class CompareRequest(ModelRequest):
    """Asks for the answers of all allocators to one problem: that of a model's plan, or a table of buffers as .csv.

    Args:
        seconds: how long each search may take; None: steps of its own, and for a model's plan no more pairs of buffers
            alive together than a row takes in a short time.
        part: which memory of an ExecuTorch program, or which allocation of a dump of XLA, where there are several.
    """

    seconds: float | None = None
    part: str = ""


@answers_paths(CompareRequest)
def compare(request: CompareRequest) -> AllocatorAnswers:
    """The answers of all allocators to one problem: heights, bounds and times by the wall clock.

    Args:
        request: the model or problem, and how long each search may take.

    Returns:
        The table with a row for each allocator, the problem, and the placements.

    Raises:
        ModelError: the file cannot be read.
        RequestError: the request names what there is not, or combines what does not go together.
    """
    source = problem_source(request)
    if collision := colliding_pins(source.problem):
        raise RequestError(f"{request.path}: {collision}")
    placements: dict[str, Placement] = {} if source.planned is None else {FROM_FILE: source.planned}
    limited = source.plan is not None and request.seconds is None
    answers = allocator_answers(source.problem, Budget(seconds=request.seconds), placements, limited=limited)
    rows = tuple(replace(row, lower_bound=max(row.lower_bound, source.lower_bound)) for row in answers)
    remarks = _remarks(source, max((row.lower_bound for row in rows), default=source.lower_bound))
    comparison = Comparison(request.path, len(source.problem), rows, remarks, planned=source.plan is not None)
    return AllocatorAnswers(comparison, source, placements, request.target)


def problem_source(request: CompareRequest) -> ProblemSource:
    """The problem in the file, or that of the plan which `analyze` makes of the model with the same options."""
    from modelplan.questions.alternatives import open_on_target, unmodified_requirement

    if is_table(request.path):
        table = load_table(request.path, request.part)
        return ProblemSource(table.problem, planner=table.planner, planned=stated(table.problem, table)[0])
    request, file, target = open_on_target(request)
    requirement = unmodified_requirement(file, target)
    unlimited = replace(request, target=None, capacity=None)  # heights are compared without a limit
    plan = pipeline.plan(file.graph, planning_options(with_deciding_kernels(unlimited, requirement), file.graph))
    return ProblemSource(plan.problem, replace(plan, requirement=requirement))


def allocator_answers(
    problem: Problem, budget: Budget, placements: dict[str, Placement], *, limited: bool = False
) -> Iterator[Row]:
    """Every allocator of the table in turn, timed by the wall clock; `budget` holds for each search alone.

    With `limited` a row is asked for no more pairs of buffers in conflict than it says.

    Each places nothing first, untimed, so that the time does not hold the loading of its code. What it places is put
    into `placements` under its name.
    """
    nothing, pairs = Problem.of(()), conflicting_pairs(problem)
    for name in ALLOCATORS:
        begin, kind = time.perf_counter(), "offsets"
        try:
            row = allocator(name)
            kind = row.kind
            if limited and pairs > row.most_pairs:
                raise RequestError(_LONG.format(pairs, row.most_pairs))
            place(nothing, name)
            begin = time.perf_counter()
            placement = place(problem, name, budget)
        except (RequestError, BrokenPlanError) as refusal:
            if isinstance(refusal, BrokenPlanError) and name in OWN_NAMES:
                raise
            yield Row(name, kind, None, round((time.perf_counter() - begin) * 1e6), why=str(refusal))
            continue
        taken = round((time.perf_counter() - begin) * 1e6)
        if placement.ended == "cancelled":  # a search that keeps its best on Ctrl-C; the command ends all the same
            raise KeyboardInterrupt
        placements[row.name] = placement
        yield Row(
            row.name,
            row.kind,
            bounds.height(problem, placement),
            taken,
            objects=row.share(problem, budget).total if row.share else None,
            lower_bound=placement.lower_bound,
            found_by=placement.found_by,
            own_height=placement.own_height,
        )


def _remarks(source: ProblemSource, bound: int) -> tuple[str, ...]:
    """What the runtime does by itself, how hard idealloc's figures call the problem, and the file's own plan."""
    own, hard = source.runtime_plan, hardness(source.problem)
    spreads = f"sizes {hard.sizes:.0%}, conflicts {hard.conflicts:.0%}, ends {hard.ends:.0%}"
    lines = [f"hardness by idealloc's figures {hard.compound:.2f}: {spreads}"]
    if own:
        lines.append(f"{own.runtime} by itself, file order and its own sharing ({own.allocator}): {human(own.height)}")
    if source.plan is not None and source.plan.requirement is not None:
        refusals = source.plan.requirement.refusals
        lines += [f"{source.plan.runtime.name} would not run it: {refusal}" for refusal in refusals]
    if source.planned is not None:
        lines.append(planned_words(source.planner, bounds.height(source.problem, source.planned), bound))
    return tuple(lines)


def comparison_page(answers: AllocatorAnswers) -> Page:
    from modelplan.questions.pages.plan_views import answers_page

    comparison, source = answers.comparison, answers.source.within(answers.target)
    title = Path(comparison.title).stem
    return answers_page(title, source.problem, source.plan, answers.placements, comparison.field)

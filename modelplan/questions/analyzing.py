"""`analyze`: what a model file needs on its runtime, why, and what would need less."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from modelplan.answers.analysis import (
    Analysis,
    ComparedFile,
    PlannedFile,
    RunFile,
    SizedFile,
    lower_alternatives,
)
from modelplan.answers.explanation import Suggestion
from modelplan.model import Alternative
from modelplan.model.model_file import Target
from modelplan.planning.aliasing.explaining import reasons, tensors_called
from modelplan.planning.pipeline import Options
from modelplan.primitives.copied_processes import result_from_copy
from modelplan.primitives.lazy_records import dataclass
from modelplan.primitives.settled_requests import answers_paths
from modelplan.questions.alternatives import (
    alternatives,
    open_on_target,
    order_options,
    requested_plan,
    unmodified_plan,
    unmodified_requirement,
    usual_options,
)
from modelplan.questions.explaining.quick_ways import (
    as_plain_c,
    has_quick_changes,
    named_kernels,
    quick_changes,
    searches,
    with_alternatives,
)
from modelplan.questions.explaining.ranking import ranked
from modelplan.questions.model_request import ModelRequest, page_options, target_of, with_deciding_kernels
from modelplan.questions.session_needs import begin_measuring, session_asked, sized_by_session, with_other_settings

if TYPE_CHECKING:
    from modelplan.answers.page_views import Page

#: Of files with more operators than these a second process tries the changes: a copy costs some milliseconds.
_MANY = 2000


@dataclass(frozen=True, slots=True)
class AnalyzeRequest(ModelRequest):
    """Asks what a model file needs on its runtime, why, and what would need less.

    Args:
        why_not: names of tensors of which the answer says why they share no memory.
        advice: whether other forms of the file and quick changes are tried, which takes longer than the plan.
    """

    why_not: tuple[str, ...] = ()
    advice: bool = True


@answers_paths(AnalyzeRequest)
def analyze(request: AnalyzeRequest) -> Analysis:
    """What a model file needs on its runtime, its best plan, and what would need less.

    Args:
        request: the file, what it runs on, and how its activations are planned.

    Returns:
        The requirement of the unmodified file, the plan that its runtime follows, the plan that was asked for, other
        forms of the file with what they need, and the changes that help most.

    Raises:
        ModelError: the file cannot be read.
        RequestError: the request names what there is not, or combines what does not go together.
        BrokenPlanError: the file carries a plan by which an operator would read what it should not.
    """
    *_, analysis = analysis_stages(request)
    assert isinstance(analysis, Analysis)
    return analysis


@answers_paths(AnalyzeRequest)
def analysis_stages(request: AnalyzeRequest) -> Iterator[SizedFile]:
    """The stages of `analyze` as each is known: SizedFile, RunFile, PlannedFile, ComparedFile, Analysis.

    Raises:
        BrokenPlanError, ModelError, RequestError: as `analyze`.
    """
    asked = session_asked(request)
    begin_measuring(request)
    request, file, target = open_on_target(request)
    requirement = sized_by_session(file, target, unmodified_requirement(file, target), asked)
    request = with_deciding_kernels(request, requirement)
    runs_on = target_of(request, file.graph)
    options = usual_options(request, file, runs_on)
    for name in request.why_not:
        tensors_called(file.graph, name)  # a wrong name is refused before anything is shown
    sized = SizedFile(file, target, requirement, request.available, origin=request.origin)
    yield sized
    requirement = with_other_settings(file, target, requirement, asked)
    unmodified = unmodified_plan(file, runs_on, requirement, request.target)
    run = replace(sized, requirement=requirement).followed_by(RunFile, unmodified=unmodified)
    yield run
    with _quick_suggestions(run, advice=request.advice) as suggestions:
        banks = request.target.banks if request.target else ()
        planned = run.followed_by(PlannedFile, plan=requested_plan(file, options, unmodified, banks))
        yield planned
        compared = _compared(planned, options, request) if request.advice else planned.followed_by(ComparedFile)
        yield compared
        quick = suggestions(compared.alternatives)
        yield _advised(compared, target, quick) if request.advice else compared.followed_by(Analysis)


def _advised(compared: ComparedFile, target: Target, quick: Sequence[Suggestion]) -> Analysis:
    """The analysis with all suggestions; `target` has the kernels that were asked for, not those that decide."""
    file, needed = compared.file, compared.requirement
    suggestions = ranked((*named_kernels(file, target, needed), *quick, *as_plain_c(file, target, needed)))
    longer = tuple(searches(file, target, needed, compared.capacity))
    return compared.followed_by(Analysis, suggestions=suggestions, searches=longer)


def analysis_page(request: AnalyzeRequest, analysis: PlannedFile) -> Page:
    """The page of the plan, with others that are made for it: the runtime's own, other orders and other sharing."""
    from modelplan.questions.pages.plan_views import model_page

    options = page_options(request, analysis.file, analysis.requirement)
    return model_page(options, analysis.file.graph, analysis.plan, analysis.unmodified)


def _compared(planned: PlannedFile, options: Options, request: AnalyzeRequest) -> ComparedFile:
    return planned.followed_by(
        ComparedFile,
        alternatives=tuple(_alternatives(planned, options)),
        reasons=tuple((name, tuple(reasons(planned.plan, name))) for name in request.why_not),
    )


def _alternatives(planned: PlannedFile, options: Options) -> Sequence[Alternative]:
    """What other forms of a file that runs would need; `options` are those of the plan."""
    file, target = planned.file, planned.target
    if planned.requirement.refusals or target.runtime.sorts:  # a runtime that orders by itself has no other forms
        return ()
    if planned.requirement.measured:  # of other forms the plan alone is known
        return ()
    usual = order_options(file, target)
    asked = replace(options, runtime=usual.runtime, kernels=usual.kernels, capacity=None)
    order = planned.plan.schedule.order if asked == usual else None
    return tuple(alternatives(file, target, planned.requirement, order))


@contextmanager
def _quick_suggestions(
    run: RunFile, *, advice: bool
) -> Iterator[Callable[[Sequence[Alternative]], tuple[Suggestion, ...]]]:
    """Gives a function from alternatives to the suggestions that take little time.

    Of a large file a second process tries the changes while the block runs.
    """
    if run.requirement.refusals or not advice:
        yield lambda _: ()
        return
    changes = partial(quick_changes, run.file, run.target, run.requirement, run.unmodified)
    many = len(run.file.graph.ops) > _MANY and has_quick_changes(run.file, run.target)
    with result_from_copy(changes) if many else nullcontext(changes) as tried:
        yield lambda alternatives: with_alternatives(
            tried(), lower_alternatives(run.requirement, alternatives), run.requirement
        )

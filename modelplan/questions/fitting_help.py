"""What would make a model fit where no rewritten file does, and in which forms plain C would."""

import shlex
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple

from modelplan.answers.analysis import Search
from modelplan.answers.explanation import CWay, Suggestion, Way, ways_of
from modelplan.formats import load_model
from modelplan.model import Requirement
from modelplan.model.model_file import ModelFile, Target
from modelplan.planning import pipeline
from modelplan.primitives.errors import ModelError, RequestError
from modelplan.questions.alternatives import carried_offsets, load_file, unmodified_requirement
from modelplan.questions.c_fitting import FitCRequest, fit_c, is_onnx
from modelplan.questions.explaining.changes import CHANGES, TriedChange
from modelplan.questions.explaining.plain_c import CChange
from modelplan.questions.explaining.quick_ways import at_the_peak, c_search, searches
from modelplan.questions.explaining.ranking import Trials, advice
from modelplan.questions.explaining.subjects import (
    Measure,
    ModelSubject,
    OutOfTimeError,
    RefusedChangeError,
    subject_of,
)
from modelplan.questions.model_fitting import FitRequest
from modelplan.rewriting.striped_tflite.interface import outer_conversions
from modelplan.runtimes import with_kernels
from modelplan.runtimes.c import C
from modelplan.runtimes.tflm import TFLM

#: Changes that plan anew are tried at each place, and together; those that search are tried one by one.
_EFFORT = 1
#: Where it has to be quick: operators of all models that are planned anew, and of a network that becomes plain C the
#: operators, the bytes, and the rows and stages of a search; beyond these two whole maps are planned.
_QUICK_WORK, _QUICK_OPERATORS, _QUICK_BYTES, _QUICK_ROWS, _QUICK_STAGES = 4_000, 150, 1_000_000, 220_000, 400
_C_WAYS = frozenset({Way.C_HELD, Way.C_INTERFACE, Way.C_ROWS})
#: Changes that `fit` itself has tried at length.
_FITTED = frozenset({"rewritten without stripes", "stripes"})


def changes_that_fit(request: FitRequest, path: str, given: tuple[str, ...] = ()) -> tuple[Suggestion, ...]:
    """For each way the change of `explain` that would need no more than the budget, the least change first.

    Args:
        request: what was asked of `fit`, with a budget for the arena.
        path: the file.
        given: the options by which device, kernels and ABI were named.

    Raises:
        ModelError: the file cannot be read.
    """
    if request.budget is None or request.objective != "arena":
        return ()
    file = load_file(path)
    target = Target(with_kernels(TFLM, request.kernels), str(request.abi), given=given)
    needed = unmodified_requirement(file, target)
    return () if needed.refusals else ways_that_fit(file, target, needed, request.budget, _FITTED)


def ways_that_fit(
    file: ModelFile, target: Target, needed: Requirement, budget: int, without: frozenset[str] = frozenset()
) -> tuple[Suggestion, ...]:
    """For each way the change of `explain` with which a file, that needs `needed`, fits the budget: planned.

    Changes `without` are not tried.
    """
    subject, start = subject_of(file, target), Measure(needed.arena, needed.head, whole=True)
    long = [change for change in CHANGES.values() if change.effort > _EFFORT and change.name not in without]
    tried = advice(subject, start, effort=_EFFORT).suggestions
    return ways_of((*tried, *_suggestions_of(long, subject, start)), budget)


def _suggestions_of(changes: Sequence[TriedChange], subject: ModelSubject, start: Measure) -> Iterator[Suggestion]:
    """Each change at each of its places, one by one, but for those that cannot be made."""
    trials = Trials(subject, start)
    for change in changes:
        for place in change.places(subject):
            try:
                yield trials.suggestion([(change, place)])
            except (RefusedChangeError, OutOfTimeError):
                continue  # one way less


class WaysOut(NamedTuple):
    """Changes with which a model fits, the least first, and searches that may find a lesser one."""

    ways: tuple[Suggestion, ...]
    searches: tuple[Search, ...]


def quick_ways_that_fit(file: ModelFile, target: Target, needed: Requirement, budget: int) -> WaysOut:
    """The ways of `ways_that_fit` that take about a second to plan, and the searches of `fit` for lesser changes.

    Changes of single operators are tried at the peak alone, plain C of networks of few rows; no stripes are searched.
    """
    start = Measure(needed.arena, needed.head, whole=True)
    subject = replace(subject_of(file, target), most_rows=_QUICK_ROWS, most_stages=_QUICK_STAGES)
    peak = at_the_peak(pipeline.runtime_plan(file.graph, target.runtime, carried_offsets(file, target.runtime)))
    tried = advice(subject, start, effort=_EFFORT, at=peak, most_work=_QUICK_WORK).suggestions
    small = len(file.graph.ops) <= _QUICK_OPERATORS and len(file.content) <= _QUICK_BYTES
    plain_c = [change for change in CHANGES.values() if change.effort > _EFFORT and change.way in _C_WAYS]
    ways = ways_of((*tried, *_suggestions_of(plain_c if small else (), subject, start)), budget)
    least = min((way.way for way in ways), default=Way.MODEL)
    return WaysOut(ways, tuple(search for search in _all_searches(file, target, needed, budget) if search.way < least))


def _all_searches(file: ModelFile, target: Target, needed: Requirement, budget: int) -> Iterator[Search]:
    """The searches of `fit` to a budget: for a rewritten file, and for plain C."""
    yield from (search for search in searches(file, target, needed, budget) if search.way is Way.FILE)
    yield from c_search(file, target, "--budget", str(budget))


#: Forms of plain C that are tried where one does not fit, with what the program does for them.
_C_FORMS = (
    (CChange("int8"), "the program converts inputs and outputs"),
    (CChange(pushed=True), "the program hands over the input row by row"),
    (CChange("int8", pushed=True), "the program converts, and hands over the input row by row"),
)


def forms_that_fit(request: FitCRequest, given: tuple[str, ...]) -> tuple[CWay, ...]:
    """The forms of plain C that would fit where the requested one does not: other kernels, ends, rows.

    One that asks more of the program is left out where it needs no less.

    Args:
        request: what was asked of `fit --runtime c`, with a budget.
        given: the options of the command but for file, budget, form and output.
    """
    forms = list[CWay]()
    for form in _forms_that_fit(request, given):
        if all(form.ram < other.ram for other in forms):
            forms.append(form)
    return tuple(forms)


def _forms_that_fit(request: FitCRequest, given: tuple[str, ...]) -> Iterator[CWay]:
    own, onnx = CChange(request.interface, request.pushed), is_onnx(request.path)
    converts = onnx or bool(outer_conversions(load_model(request.path)).inner)
    tried = [(replace(request, kernels=C.kernels), own, "portable kernels")] if request.kernels != C.kernels else []
    for form, cost in _C_FORMS:
        if form.interface != own.interface and (own.interface != CChange().interface or not converts):
            continue  # with the ends that were asked for, or those that the model has
        if form != own and form.pushed >= own.pushed:
            layout = "nhwc" if onnx and form.pushed and not request.layout else request.layout  # as rows are
            changed = replace(request, interface=form.interface, pushed=form.pushed, layout=layout)
            tried.append((changed, form, cost))
    for other, form, cost in tried:
        try:
            rung = fit_c(other).chosen
        except (ModelError, RequestError):
            continue  # the model has no such form
        if rung is not None:
            kernels = () if other.kernels == C.kernels else ("--kernels", other.kernels)
            layouts = () if other.layout == request.layout else ("--layout", other.layout)
            words = ("modelplan", "fit", request.path, "--runtime", C.name, *given, *kernels, *form.words, *layouts)
            command = shlex.join((*words, "--budget", str(request.budget), "-o", request.output))
            yield CWay(rung.ram, cost, command)

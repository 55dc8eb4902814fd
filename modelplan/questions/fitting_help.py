"""What would make a model fit where no rewritten file does."""

from __future__ import annotations

from modelplan.answers.explanation import Suggestion
from modelplan.model.model_file import Target
from modelplan.questions.alternatives import load_file, unmodified_requirement
from modelplan.questions.explaining.ranking import advice
from modelplan.questions.explaining.subjects import Measure, subject_of
from modelplan.questions.model_fitting import FitRequest
from modelplan.runtimes import with_kernels
from modelplan.runtimes.tflm import TFLM

#: Changes that plan anew are tried, searches are not.
_EFFORT = 1


def changes_that_fit(request: FitRequest, path: str) -> tuple[Suggestion, ...]:
    """The changes of `explain` after which the unmodified file needs no more than the budget, the easiest first.

    Args:
        request: what was asked of `fit`, with a budget for the arena.
        path: the file.

    Raises:
        ModelError: the file cannot be read.
    """
    if request.budget is None or request.objective != "arena":
        return ()
    file = load_file(path)
    target = Target(with_kernels(TFLM, request.kernels), str(request.abi))
    needed = unmodified_requirement(file, target)
    if needed.refusals:
        return ()
    tried = advice(subject_of(file, target), Measure(needed.arena, needed.head, whole=True), effort=_EFFORT)
    fitting = [one for one in tried.suggestions if one.arena is not None and one.arena <= request.budget]
    return tuple(sorted(fitting, key=lambda one: (one.needs, one.arena)))

"""What would make a model fit where no rewritten file does."""

from __future__ import annotations

import shlex
from pathlib import Path

from modelplan.answers.explanation import Needs, Suggestion
from modelplan.model import Requirement
from modelplan.model.model_file import ModelFile, Target
from modelplan.questions.alternatives import load_file, unmodified_requirement
from modelplan.questions.c_fitting import c_requirement
from modelplan.questions.explaining.ranking import advice
from modelplan.questions.explaining.subjects import Measure, subject_of
from modelplan.questions.model_fitting import FitRequest
from modelplan.runtimes import with_kernels
from modelplan.runtimes.c import C
from modelplan.runtimes.tflm import TFLM

#: Changes that plan anew are tried, searches are not.
_EFFORT = 1


def changes_that_fit(request: FitRequest, path: str) -> tuple[Suggestion, ...]:
    """What would need no more than the budget, the easiest first: changes of `explain` to the file, and plain C.

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
    every = (*tried.suggestions, *_plain_c(file, request.budget, needed))
    fitting = [
        suggestion for suggestion in every if suggestion.arena is not None and suggestion.arena <= request.budget
    ]
    return tuple(sorted(fitting, key=lambda suggestion: (suggestion.needs, suggestion.arena)))


def _plain_c(file: ModelFile, budget: int, needed: Requirement) -> tuple[Suggestion, ...]:
    """The model as plain C; nothing where an operator of it has no C."""
    ours = c_requirement(file, C.kernels)
    if ours.refusals:
        return ()
    output = f"{Path(file.path).stem}.c"
    words = ("modelplan", "fit", file.path, "--budget", str(budget), "--runtime", "c", "-o", output)
    saved = needed.arena - ours.arena, needed.head - ours.head
    name, cost = ("plain C",), ("no TFLM and no optimised kernels",)
    return (Suggestion(name, ours.arena, ours.head, *saved, cost, Needs.PLATFORM, (shlex.join(words),)),)

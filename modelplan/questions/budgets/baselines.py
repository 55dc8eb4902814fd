"""What a model needed in a baseline: figures that were saved, or the model of a git revision, sized as today."""

from __future__ import annotations

from modelplan.answers.check_outcomes import Earlier, Figures
from modelplan.model.model_file import ModelFile, Target
from modelplan.primitives.errors import ModelPlanError
from modelplan.questions.budgets.measuring import Measurements, setting_of
from modelplan.questions.budgets.revisions import Revision
from modelplan.questions.budgets.saved_figures import SavedFigures

Baseline = SavedFigures | Revision
#: Extents and shapes that are bound.
Bound = tuple[tuple[str, ...], tuple[str, ...]]


def compared(
    baseline: Baseline, key: str, file: ModelFile, target: Target, bound: Bound, measurements: Measurements
) -> tuple[Earlier, tuple[str, ...]]:
    """What the model called `key` needed, and in one line each what made it need more or less since.

    `bound` are the extents and shapes that were bound for the file.
    """
    if isinstance(baseline, SavedFigures):
        return baseline.earlier(key, setting_of(target, *bound)), ()
    old = measurements.earlier_file(baseline, key, *bound)
    if isinstance(old, str):
        return Earlier(baseline.name, None, old), ()
    try:
        needed = measurements.requirement(old, target)
    except ModelPlanError as problem:
        return Earlier(baseline.name, None, str(problem)), ()
    if needed.refusals:
        return Earlier(baseline.name, None, f"{old.path} does not run: {needed.refusals[0]}"), ()
    earlier = Earlier(baseline.name, Figures(needed.arena, needed.head, len(old.content)))
    return earlier, measurements.causes(old, file, target)

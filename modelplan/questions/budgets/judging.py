"""Judges what a model needs against its limits and a baseline: saved figures, or the model of a git revision."""

from __future__ import annotations

from collections.abc import Iterator

from modelplan.answers.check_outcomes import Earlier, Figures, Judgement, Limits
from modelplan.model.model_file import ModelFile, Target
from modelplan.primitives.errors import ModelPlanError
from modelplan.questions.budgets.measuring import Measurements, setting_of
from modelplan.questions.budgets.revisions import Revision
from modelplan.questions.budgets.saved_figures import SavedFigures
from modelplan.questions.model_request import SessionAsked

Baseline = SavedFigures | Revision
#: Extents and shapes that are bound.
Bound = tuple[tuple[str, ...], tuple[str, ...]]
#: Said where growth is limited and nobody told what to compare with.
NO_BASELINE = "no baseline is given; --baseline FILE.json or a git revision names one"


def judgements(limits: Limits, figures: Figures, earlier: Earlier | None) -> Iterator[Judgement]:
    """Each limit with what was measured. Growth without an earlier figure cannot be judged, and says why."""
    if limits.arena is not None:
        yield Judgement("arena", figures.arena, limits.arena)
    if limits.head is not None:
        yield Judgement("head", figures.head, limits.head)
    if limits.flash is not None:
        yield Judgement("flash", figures.flash, limits.flash)
    if limits.growth is not None:
        before = earlier.figures if earlier else None
        if before is None:
            yield Judgement("growth", None, None, earlier.reason if earlier else NO_BASELINE)
        else:
            yield Judgement("growth", figures.arena - before.arena, limits.growth.allowed(before.arena))


def compared(
    baseline: Baseline,
    key: str,
    file: ModelFile,
    target: Target,
    bound: Bound,
    measurements: Measurements,
    asked: SessionAsked,
) -> tuple[Earlier, tuple[str, ...]]:
    """What the model called `key` needed, and in one line each what made it need more or less since.

    `bound` are the extents and shapes that were bound for the file, `asked` how a session of it is sized.
    """
    if isinstance(baseline, SavedFigures):
        return baseline.earlier(key, setting_of(target, *bound)), ()
    old = measurements.earlier_file(baseline, key, *bound)
    if isinstance(old, str):
        return Earlier(baseline.name, None, old), ()
    try:
        needed = measurements.requirement(old, target, asked)
    except ModelPlanError as problem:
        return Earlier(baseline.name, None, str(problem)), ()
    if needed.refusals:
        return Earlier(baseline.name, None, f"{old.path} does not run: {needed.refusals[0]}"), ()
    earlier = Earlier(baseline.name, Figures(needed.arena, needed.head, len(old.content)))
    return earlier, measurements.causes(old, file, target, asked)

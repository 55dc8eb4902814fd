"""Names what made a model need more or less than an earlier form of it."""

from __future__ import annotations

from collections.abc import Iterator

from modelplan.answers.model_difference import Change, Difference
from modelplan.model.model_file import ModelFile, Target
from modelplan.primitives.errors import ModelPlanError
from modelplan.questions.differences.comparing import difference
from modelplan.questions.differences.sides import side_of
from modelplan.questions.model_request import SessionAsked

#: How many operators are named; the others are counted.
_MOST = 8


def causes(old: ModelFile, new: ModelFile, target: Target, asked: SessionAsked) -> tuple[str, ...]:
    """One line for each operator or input that changed what the model needs, largest effect first.

    Then follow what each is sized for, where another kernel library needs most, the parts of the memory that differ and
    the two peaks; where the files cannot be compared, the reason. `asked` is how sessions are sized.
    """
    try:
        comparison = difference(side_of(old, target, session=asked), side_of(new, target, session=asked))
    except ModelPlanError as problem:
        return (f"operators not compared: {problem}",)
    return tuple(_lines(comparison))


def _lines(comparison: Difference) -> Iterator[str]:
    own = [change for change in comparison.changes if change.change not in (Change.VALUES, Change.FOLLOWS)]
    for change in own[:_MOST]:
        yield change.line + (f"; {change.effect:+,} bytes at the peak and kept for it" if change.effect else "")
    if len(own) > _MOST:
        yield f"[{len(own) - _MOST:,} others, which `modelplan diff` lists]"
    follow, values = len(comparison.of(Change.FOLLOWS)), len(comparison.of(Change.VALUES))
    if follow:
        yield f"operators that differ since what they read does: {follow:,}"
    if values and not own:
        yield f"operators that differ in values only: {values:,}"
    if comparison.moved:
        yield f"operators elsewhere in the order: {comparison.moved:,}"
    if comparison.basis[0] != comparison.basis[1]:
        yield f"sized for {comparison.basis[0]} -> {comparison.basis[1]}"
    if parts := [f"{part.name} {part.bytes.delta:+,}" for part in comparison.parts if part.bytes.delta]:
        yield f"bytes by part: {', '.join(parts)}"
    before, after = comparison.peaks
    if (before.operator, before.nbytes) != (after.operator, after.nbytes):
        yield f"peak: {before.nbytes:,} bytes at {before.operator} -> {after.nbytes:,} bytes at {after.operator}"

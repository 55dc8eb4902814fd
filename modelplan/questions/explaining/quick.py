"""Suggestions that take no time to find, for the end of `analyze`: known alternatives and the quick changes."""

from __future__ import annotations

from collections.abc import Sequence

from modelplan.answers.explanation import Needs, Suggestion, Way
from modelplan.model import Alternative, Plan, Requirement, bounds
from modelplan.model.model_file import ModelFile, Target
from modelplan.questions.explaining.ranking import advice, ranked
from modelplan.questions.explaining.subjects import Measure, subject_of


def has_quick_changes(file: ModelFile, target: Target) -> bool:
    """Whether `quick_changes` tries any change on this file.

    Runtimes of which only the planned activations are known are planned anew for each change, which takes its time:
    there the alternatives are all.
    """
    return target.runtime.requires is not None and file.graph.format in target.runtime.runs


def quick_changes(file: ModelFile, target: Target, needed: Requirement, unmodified: Plan) -> tuple[Suggestion, ...]:
    """The quick changes that need less memory; changes of single operators only at the peak."""
    if not has_quick_changes(file, target):
        return ()
    start = Measure(needed.arena, needed.head, whole=True)
    return advice(subject_of(file, target), start, effort=0, at=at_the_peak(unmodified)).suggestions


def with_alternatives(
    tried: Sequence[Suggestion], lower: Sequence[Alternative], needed: Requirement
) -> tuple[Suggestion, ...]:
    """These changes and the alternatives that need less, ranked."""
    return ranked([*(_suggestion(alternative, needed) for alternative in lower), *tried])


def _suggestion(alternative: Alternative, needed: Requirement) -> Suggestion:
    """An alternative that needs less, as a suggestion: these are free."""
    assert alternative.requirement is not None
    arena, head = alternative.requirement.arena, alternative.requirement.head
    saved = needed.arena - arena, needed.head - head
    return Suggestion((alternative.change,), arena, head, *saved, (), Needs.NOTHING, alternative.commands, way=Way.PLAN)


def at_the_peak(plan: Plan) -> frozenset[int]:
    """The operators that make or read what is alive at the peak."""
    alive = bounds.alive_at(plan.problem, bounds.peak_step(plan.problem))
    tensors = [member.tensor for i in alive for member in plan.problem[int(i)].members]
    ops = (op for t in tensors for op in (plan.graph.producers[t], *plan.graph.readers[t]))
    return frozenset(op for op in ops if op >= 0)

"""Suggestions that take no time to find, for the end of `analyze`: known alternatives and the quick changes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from modelplan import bounds
from modelplan.explaining.findings import Needs, Suggestion
from modelplan.explaining.ranking import advice, ranked
from modelplan.explaining.subjects import Measure, subject_of
from modelplan.rewriting.alternatives import ModelFile, Target
from modelplan.types import Alternative, Plan, Requirement


def quick_suggestions(
    file: ModelFile, target: Target, needed: Requirement, stands: Plan, lower: Sequence[Alternative]
) -> tuple[Suggestion, ...]:
    """The alternatives that need less (`lower`), and the quick changes; of single operators those at the peak.

    Runtimes of which only the planned activations are known are planned anew for each change, which takes its time:
    there the alternatives are all.
    """
    tried: tuple[Suggestion, ...] = ()
    if target.runtime.requires is not None and file.graph.format in target.runtime.runs:
        start = Measure(needed.arena, needed.head, whole=True)
        tried = advice(subject_of(file, target), start, effort=0, at=frozenset(_at_the_peak(stands))).suggestions
    return ranked([*(_suggestion(one, needed) for one in lower), *tried])


def _suggestion(one: Alternative, needed: Requirement) -> Suggestion:
    """An alternative that needs less, as a suggestion: these are free."""
    assert one.requirement is not None
    arena, head = one.requirement.arena, one.requirement.head
    saved = needed.arena - arena, needed.head - head
    return Suggestion((one.change,), arena, head, *saved, (), Needs.NOTHING, one.commands)


def _at_the_peak(plan: Plan) -> Iterator[int]:
    """The operators that make or read what is alive at the peak."""
    alive = bounds.alive_at(plan.problem, bounds.peak_step(plan.problem))
    for member in (member for i in alive for member in plan.problem[int(i)].members):
        yield from (op for op in (plan.graph.producers[member.tensor], *plan.graph.readers[member.tensor]) if op >= 0)

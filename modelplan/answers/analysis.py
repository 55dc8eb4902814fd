"""What `analyze` finds out, as frozen records: each stage knows what the one before it knows, and more."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field, fields
from typing import Any, TypeVar

from modelplan.answers.explanation import Suggestion, Way
from modelplan.model import Alternative, Plan, Requirement
from modelplan.model.model_file import ModelFile, Target
from modelplan.primitives.lazy_records import dataclass
from modelplan.primitives.showing_answers import Shown


@dataclass(frozen=True, eq=False, repr=False)
class SizedFile(Shown):
    """First stage: what the unmodified file needs on its target; `capacity` are the bytes there are, if that is known.

    `requirement` also says why the runtime would not run the file.
    """

    file: ModelFile
    target: Target
    requirement: Requirement
    capacity: int | None
    origin: str = field(default="", kw_only=True)

    def followed_by(self, kind: type[Stage], **more: Any) -> Stage:
        """The next stage, of the class `kind`: all of this one, and `more`."""
        known: dict[str, Any] = {field.name: getattr(self, field.name) for field in fields(self)}
        return kind(**known, **more)


#: A stage of the analysis.
Stage = TypeVar("Stage", bound=SizedFile)


@dataclass(frozen=True, eq=False, repr=False)
class RunFile(SizedFile):
    """Second stage: `unmodified` is the plan by which the runtime runs the unmodified file."""

    unmodified: Plan


@dataclass(frozen=True, eq=False, repr=False)
class PlannedFile(RunFile):
    """Third stage: `plan` is the plan that was asked for, else the best one or the one that the file carries."""

    plan: Plan


@dataclass(frozen=True, eq=False, repr=False)
class ComparedFile(PlannedFile):
    """Fourth stage: what other forms of the file need.

    `reasons` say of each tensor that was asked about why it shares its bytes or not.
    """

    alternatives: tuple[Alternative, ...] = ()
    reasons: tuple[tuple[str, tuple[str, ...]], ...] = ()


@dataclass(frozen=True, slots=True)
class Search:
    """A command that may find what needs less: what it looks for, and up to how many seconds about it takes."""

    way: Way
    name: str
    seconds: int
    command: str


@dataclass(frozen=True, eq=False, repr=False)
class Analysis(ComparedFile):
    """All that `analyze` finds out: what a file needs, its plans, and the changes that would lower the need most.

    `suggestions` are those that take little time to plan, ranked as `explain` ranks them, which tries the others.
    `searches` take longer; those that are known to bring nothing are left out.
    """

    suggestions: tuple[Suggestion, ...] = ()
    searches: tuple[Search, ...] = ()


@dataclass(frozen=True, slots=True)
class ExtentRow:
    """What the model needs where the symbols of the table have these extents."""

    extents: tuple[int, ...]
    requirement: Requirement


@dataclass(frozen=True, slots=True)
class ExtentTable:
    """The rows of a model file, each for other extents of `symbols`; `capacity` are the bytes there are, if known.

    `has_sessions`: it runs in sessions; a row whose requirement has none has no figure of one.
    """

    path: str
    symbols: tuple[str, ...]
    rows: tuple[ExtentRow, ...]
    capacity: int | None
    has_sessions: bool = False


def lower_alternatives(requirement: Requirement, alternatives: Sequence[Alternative]) -> list[Alternative]:
    """The alternatives that need less memory than the unmodified file and than those before them."""
    best, lower = requirement.arena, []
    for other in alternatives:
        if other.requirement is not None and not other.requirement.refusals and other.requirement.arena < best:
            best = other.requirement.arena
            lower.append(other)
    return lower


def plan_of(analysis: Analysis) -> Plan:
    """The plan of the model."""
    return analysis.plan

"""The four levels in their order, and what each says about a subject."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from modelplan.errors import BrokenPlanError
from modelplan.verifier.replay import replay
from modelplan.verifier.static import check_static
from modelplan.verifier.subject import Subject, check_declared

NAMES = ("static", "fingerprint replay", "value replay", "execution")


@dataclass(frozen=True, slots=True)
class Verdict:
    """What one level found: "ok" or "skipped" with details, or "broken" with the sentence."""

    level: str
    outcome: str
    details: str


class Skipped(Exception):  # noqa: N818
    """A level cannot run here; says why and what would change that."""


def prove(subject: Subject) -> None:
    """Levels static and fingerprint replay: fast, and enough for any plan of modelplan's own.

    Raises:
        BrokenPlanError: the sentence of the replay where it fails, else that of the static level.

    Cost: O(n log n) for n reads and writes.
    """
    for verdict in reversed(list(quick_levels(subject))):
        if verdict.outcome == "broken":
            raise BrokenPlanError(verdict.details)


def quick_levels(subject: Subject) -> Iterator[Verdict]:
    """The two levels that need nothing but the plan and the file."""
    yield _verdict(NAMES[0], lambda: _static(subject))
    yield _verdict(NAMES[1], lambda: f"{replay(subject.program, subject.layout)} steps in two runs")


def deep_levels(subject: Subject, model: Path | None, seed: int = 0) -> Iterator[Verdict]:
    """The two levels that need real kernels; `model` is the file that golden values come from."""
    from modelplan.verifier.execution import execute
    from modelplan.verifier.values import replay_values

    yield _verdict(NAMES[2], lambda: replay_values(subject, model, seed))
    yield _verdict(NAMES[3], lambda: execute(subject, seed))


def _static(subject: Subject) -> str:
    lives = check_static(subject.program, subject.layout)
    check_declared(subject)
    return f"{lives} lifetimes apart or allowed to share"


def _verdict(level: str, run: Callable[[], str]) -> Verdict:
    try:
        return Verdict(level, "ok", run())
    except BrokenPlanError as problem:
        return Verdict(level, "broken", str(problem))
    except Skipped as reason:
        return Verdict(level, "skipped", str(reason))

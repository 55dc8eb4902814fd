"""Runs the four levels of proof in their order and returns the verdict of each."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

from modelplan.errors import BrokenPlanError
from modelplan.verifier.execution import PlanWriter, execute
from modelplan.verifier.replay import replay
from modelplan.verifier.static import check_static
from modelplan.verifier.subject import Subject, check_declared
from modelplan.verifier.values import replay_values
from modelplan.verifier.verdicts import Skipped, Verdict

NAMES = ("static", "fingerprint replay", "value replay", "execution")


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


def deep_levels(subject: Subject, model: Path | None, write_plan: PlanWriter, seed: int = 0) -> Iterator[Verdict]:
    """The two levels that need real kernels; `model` is the file that golden values come from."""
    yield _verdict(NAMES[2], lambda: replay_values(subject, model, seed))
    yield _verdict(NAMES[3], lambda: execute(subject, write_plan, seed))


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

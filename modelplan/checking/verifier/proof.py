"""Runs the four levels of proof in their order and returns the verdict of each."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from modelplan.answers.proof_outcomes import Verdict
from modelplan.checking.verifier.replay import replay
from modelplan.checking.verifier.static import check_static
from modelplan.checking.verifier.subject import Subject, check_declared
from modelplan.checking.verifier.verdicts import verdict_of
from modelplan.primitives.errors import BrokenPlanError, ModelError

if TYPE_CHECKING:
    from modelplan.checking.verifier.execution import PlanWriter

NAMES = ("static", "fingerprint replay", "value replay", "execution")
#: What stands for the first two levels where a plan keeps parts of tensors.
BY_BYTE = "byte replay"
_PARTS = "the plan keeps parts of tensors"


def prove(subject: Subject) -> None:
    """Levels static and fingerprint replay: fast, and enough for any plan of modelplan's own.

    Raises:
        BrokenPlanError: the sentence of the replay where it fails, else that of the static level.

    Cost: O(n log n) for n reads and writes.
    """
    for verdict in reversed(list(quick_levels(subject))):
        if verdict.outcome == "broken":
            raise BrokenPlanError(verdict.details)


def keeps_whole_tensors(subject: Subject) -> bool:
    """Whether all bytes of each tensor stay from its making to its last use: what plans of whole tensors can say."""
    return all(verdict.outcome == "ok" for verdict in _whole_levels(subject))


def quick_levels(subject: Subject) -> Iterator[Verdict]:
    """The two levels that need nothing but the plan and the file.

    They follow whole tensors. Where they fail, a file that carries its plan is replayed byte by byte, for operators may
    read parts of a tensor whose other parts are overwritten, as in models computed in stripes.
    """
    verdicts = _whole_levels(subject)
    exact = _by_byte(subject) if any(verdict.outcome == "broken" for verdict in verdicts) else None
    if exact is not None:
        verdicts = [Verdict(verdict.level, "skipped", _PARTS) for verdict in verdicts]
        verdicts.append(exact)
    yield from verdicts


def _whole_levels(subject: Subject) -> list[Verdict]:
    static = verdict_of(NAMES[0], lambda: _static(subject))
    if static.outcome == "broken" and not (_inside(subject) and _has_room(subject)):
        # A file may claim extents without end, and the replay follows each row.
        return [static, Verdict(NAMES[1], "skipped", "a tensor is larger than the bytes that there are for it")]
    return [static, verdict_of(NAMES[1], lambda: f"{replay(subject.program, subject.layout)} steps in two runs")]


def _has_room(subject: Subject) -> bool:
    """Whether every tensor fits in the bytes that the plan reserves for it."""
    layout, values = subject.layout, subject.program.values
    return all(values[t].nbytes <= nbytes for t, nbytes in layout.reserved.items() if t in layout.address)


def _inside(subject: Subject) -> bool:
    """Whether every tensor lies within the valid addresses."""
    layout, values = subject.layout, subject.program.values
    return all(
        at >= 0 and (layout.arena is None or at + values[t].nbytes <= layout.arena) for t, at in layout.address.items()
    )


def _by_byte(subject: Subject) -> Verdict | None:
    """The byte-by-byte replay of the whole run; None where it proves nothing."""
    if subject.carrier is None or not _inside(subject):
        return None
    from modelplan.checking.verifier.rewrites.proving import rewrite_levels  # no plan of whole tensors needs it

    try:
        last = list(rewrite_levels(subject.carrier, subject.carrier, subject.kernels))[-1]
    except ModelError:  # what it cannot read it cannot prove: the other levels stand
        return None
    return Verdict(BY_BYTE, "ok", last.details) if last.outcome == "ok" else None


def deep_levels(
    subject: Subject, model: Path | None, write_plan: PlanWriter, seed: int = 0, *, parts: bool = False
) -> Iterator[Verdict]:
    """The two levels that need real kernels; `model` is the file that golden values come from.

    With `parts` the plan keeps parts of tensors, which the replay of values does not follow.
    """
    from modelplan.checking.verifier.execution import execute  # what runs kernels takes long to import
    from modelplan.checking.verifier.values import replay_values

    if parts:
        yield Verdict(NAMES[2], "skipped", _PARTS)
    else:
        yield verdict_of(NAMES[2], lambda: replay_values(subject, model, seed))
    yield verdict_of(NAMES[3], lambda: execute(subject, write_plan, seed))


def _static(subject: Subject) -> str:
    lives = check_static(subject.program, subject.layout)
    check_declared(subject)
    return f"{lives} lifetimes apart or allowed to share"

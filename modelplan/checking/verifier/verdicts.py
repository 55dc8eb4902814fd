"""What a level of proof that runs kernels returns, the exception of one that cannot run, and the verdict of either."""

from collections.abc import Callable
from typing import NamedTuple

from modelplan.answers.proof_outcomes import Verdict
from modelplan.primitives.errors import BrokenPlanError


class Executed(NamedTuple):
    """What was run: the details of the verdict, the file and the kernels, and whether with the plan that is proved."""

    details: str
    what: str
    planned: bool = False


class Skipped(Exception):  # noqa: N818
    """A level cannot run here; the message says why and what to install or give."""


def verdict_of(
    level: str, run: Callable[[], str | Executed], faults: tuple[type[Exception], ...] = (BrokenPlanError,)
) -> Verdict:
    """The verdict of a level that `run` carries out; `faults` are the exceptions that say what is broken."""
    try:
        said = run()
    except faults as problem:
        return Verdict(level, "broken", str(problem))
    except Skipped as reason:
        return Verdict(level, "skipped", str(reason))
    return Verdict(level, "ok", *said) if isinstance(said, Executed) else Verdict(level, "ok", said)

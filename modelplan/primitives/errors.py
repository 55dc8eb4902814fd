"""The errors a caller can meet: who is at fault decides the class, the class decides the exit code."""

from __future__ import annotations

from collections.abc import Iterable

_LIKELY, _MOST = 0.7, 3


class ModelPlanError(Exception):
    """Base of all errors that modelplan raises deliberately; `exit_code` is that of the command line."""

    exit_code = 2


class ModelError(ModelPlanError):
    """The file cannot be read or is not supported: names the file, the place in it, what was found and expected."""

    exit_code = 3


class RefusedModelError(ModelError):
    """The runtime would not run the model, so that nothing is made of it: names the operators, and a way out of each.

    Args:
        what: the file, and what is not done with it.
        refusals: the operators with the reasons.
        remedies: how to get a model that runs.
    """

    exit_code = 1

    def __init__(self, what: str, refusals: Iterable[str], remedies: Iterable[str]) -> None:
        ways = "".join(f"; remedy: {remedy}" for remedy in remedies)
        super().__init__(f"{what}: {'; '.join(refusals)}{ways}")


class RequestError(ModelPlanError):
    """The caller asked for something that does not exist or cannot be combined: names the option and the choices."""

    exit_code = 2


class BrokenPlanError(ModelPlanError):
    """A placement breaks its own problem: names both tensors, their byte ranges and the step."""

    exit_code = 4


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """A question to put behind an error message: the known words that are nearest; empty where none is near.

    >>> did_you_mean("analyse", ["analyze", "explain"])
    "; did you mean 'analyze'?"
    """
    from difflib import get_close_matches

    lower = {candidate.lower(): candidate for candidate in known}
    near = [lower[match] for match in get_close_matches(word.lower(), lower, _MOST, _LIKELY)]
    return f"; did you mean {' or '.join(map(repr, near))}?" if near else ""

"""LiteRT's kernels on one model, in a process of its own: digests of its outputs, values of its tensors."""

from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from textwrap import shorten
from typing import Any

import numpy as np
import numpy.typing as npt

from modelplan.primitives.answering import NoAnswerError, ask_isolated, start_isolated

INSTALL = "pip install 'modelplan[verify]'"

#: LiteRT's kernels by its own words: the plain ones, and those for speed.
REFERENCE, OPTIMISED = "BUILTIN_REF", "BUILTIN_WITHOUT_DEFAULT_DELEGATES"

_PROGRAM = ("-m", "modelplan.checking.verifier.litert_process")
#: Characters of LiteRT's reason that are quoted.
_LONGEST = 120
#: How long a model may take.
_SECONDS = 120

Array = npt.NDArray[np.generic]


class LiteRTError(Exception):
    """LiteRT did not load or run the model; the message is its reason."""


def litert_installed() -> bool:
    """Whether the package ai-edge-litert is installed."""
    return find_spec("ai_edge_litert") is not None


def start_litert() -> None:
    """Starts the process that runs models, where it does not run yet."""
    start_isolated(_PROGRAM)


def litert_outputs(
    model: bytes, rounds: int, seed: int, seconds: float = _SECONDS, kernels: str = REFERENCE
) -> tuple[str, ...]:
    """A digest of all outputs for each of `rounds` random inputs, and for the least, 0 and the greatest values.

    Raises:
        LiteRTError: LiteRT does not accept the model, crashes, or takes longer than `seconds`.
    """
    digests: tuple[str, ...] = _asked((model, rounds, seed, (), kernels), seconds)[0]
    return digests


def litert_given(model: bytes, feeds: Sequence[Sequence[Array]]) -> list[list[Array]]:
    """The outputs of each run, of which `feeds` has every input."""
    values: list[list[Array]] = _asked((model, feeds))
    return values


def litert_tensors(model: bytes, tensors: Sequence[int], seed: int) -> Mapping[int, Array]:
    """The values of `tensors` by their numbers, each in memory of its own, for one random input."""
    values: dict[int, Array] = _asked((model, 1, seed, tuple(tensors), REFERENCE))[1]
    return values


def _asked(question: tuple[object, ...], seconds: float = _SECONDS) -> Any:
    try:
        return ask_isolated(_PROGRAM, question, seconds)[0]
    except NoAnswerError as problem:
        raise LiteRTError(shorten(str(problem), _LONGEST)) from None

"""LiteRT's reference kernels on one model, in a process of its own: digests of its outputs, values of its tensors."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from textwrap import shorten
from typing import Any

import numpy as np
import numpy.typing as npt

from modelplan.primitives.answering import NoAnswerError, ask_isolated

INSTALL = "pip install 'modelplan[verify]'"

_PROGRAM = ("-m", "modelplan.checking.verifier.litert_process")
#: Characters of LiteRT's reason that are quoted.
_LONGEST = 120


class LiteRTError(Exception):
    """LiteRT did not load or run the model; the message is its reason."""


def litert_installed() -> bool:
    """Whether the package ai-edge-litert is installed."""
    return find_spec("ai_edge_litert") is not None


def litert_outputs(model: bytes, rounds: int, seed: int, seconds: float = 120) -> tuple[str, ...]:
    """A digest of all outputs for each of `rounds` random inputs, and for the least, 0 and the greatest values.

    Raises:
        LiteRTError: LiteRT does not accept the model, crashes, or takes longer than `seconds`.
    """
    return _run(model, rounds, seed, (), seconds)[0]


def litert_given(
    model: bytes, feeds: Sequence[Sequence[npt.NDArray[np.generic]]], seconds: float = 120
) -> list[list[npt.NDArray[np.generic]]]:
    """The outputs of each run, of which `feeds` has every input."""
    values: list[list[npt.NDArray[np.generic]]] = _asked((model, feeds), seconds)
    return values


def litert_tensors(
    model: bytes, tensors: Sequence[int], seed: int, seconds: float = 120
) -> Mapping[int, npt.NDArray[np.generic]]:
    """The values of `tensors` by their numbers, each in memory of its own, for one random input."""
    return _run(model, 1, seed, tensors, seconds)[1]


def _run(
    model: bytes, rounds: int, seed: int, tensors: Sequence[int], seconds: float
) -> tuple[tuple[str, ...], dict[int, npt.NDArray[np.generic]]]:
    answer: tuple[tuple[str, ...], dict[int, npt.NDArray[np.generic]]]
    answer = _asked((model, rounds, seed, tuple(tensors)), seconds)
    return answer


def _asked(question: tuple[object, ...], seconds: float) -> Any:
    try:
        return ask_isolated(_PROGRAM, question, seconds)[0]
    except NoAnswerError as problem:
        raise LiteRTError(shorten(str(problem), _LONGEST)) from None

"""Runs a model on the real tflite-micro in a process of its own: arena bytes by row, and digests of the outputs.

Needs the extra `tflm`; nothing else in modelplan does.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from modelplan.primitives.answering import NoAnswerError, ask_isolated, start_isolated
from modelplan.primitives.errors import ModelError, RequestError
from modelplan.primitives.lazy_records import dataclass
from modelplan.primitives.version import installed_version

if TYPE_CHECKING:
    import numpy.typing as npt

INSTALL = "pip install --pre 'modelplan[tflm]'"

_PROGRAM = (str(Path(__file__).with_name("interpreter_process.py")),)

_PART = re.compile(r"Arena allocation (head|tail) (\d+) bytes")
_ROW = re.compile(r"'([^']+)' used (\d+) bytes with alignment overhead \(requested (\d+) bytes for (\d+)")


@dataclass(frozen=True, slots=True)
class LoggedRow:
    """One line of RecordingMicroAllocator: bytes used with alignment, bytes requested, allocations."""

    name: str
    used: int
    requested: int
    count: int


@dataclass(frozen=True, slots=True)
class TflmRun:
    """What TFLM reported: head and tail bytes, the tail's rows, one digest of all outputs for each invocation."""

    head: int
    tail: int
    rows: tuple[LoggedRow, ...]
    outputs: tuple[str, ...]


class RefusalError(ModelError):
    """TFLM did not load or run the model; the message holds what it logged."""


class OvertimeError(RefusalError):
    """TFLM was stopped before it had answered, which says nothing about the model."""


def installed() -> bool:
    """Whether the package tflite-micro is installed."""
    return find_spec("tflite_micro") is not None


def tflm_version() -> str:
    """The wheel's version, or "not installed"."""
    return installed_version("tflite_micro") or "not installed"


def start_tflm() -> None:
    """Starts the process that runs models, where it does not run yet."""
    start_isolated(_PROGRAM)


def run_tflm(
    model: bytes, *, rounds: int = 4, seed: int = 0, arena: int = 0, seconds: float = 120, extremes: bool = False
) -> TflmRun:
    """Runs `model` on `rounds` random inputs without a reset between them.

    With `extremes` also on inputs of which all elements are the least, 0 and the greatest value of their type.

    The arena is first filled by a run on other data. `arena` 0 means 64 MiB, or 16 times the file if that is more.

    Raises:
        RequestError: the extra is not installed; names the command that installs it.
        RefusalError: TFLM does not accept the model, crashes, or takes longer than `seconds`.
    """
    arena = arena or max(64 << 20, 16 * len(model))
    return _report(*_asked(("digests", model, arena, rounds, seed, extremes), seconds))


def tflm_values(
    model: bytes, inputs: Sequence[Sequence[bytes]], tensors: Sequence[int] | None = None, seconds: float = 120
) -> list[tuple[list[npt.NDArray[Any]], list[int]]]:
    """The outputs of each run, of which `inputs` has the bytes of every input, and the CRC-32 of each of `tensors`.

    Tensors are those of the main subgraph; where some are named, even none, each has memory of its own. Nothing is
    reset between runs.

    Raises:
        RequestError: the extra is not installed; names the command that installs it.
        RefusalError: TFLM does not accept the model, crashes, or takes longer than `seconds`.
    """
    question = ("values", model, [list(run) for run in inputs], list(tensors or ()), "crc", tensors is not None)
    values: list[tuple[list[npt.NDArray[Any]], list[int]]] = _asked(question, seconds)[0]
    return values


def tflm_contents(
    model: bytes, inputs: Sequence[Sequence[bytes]], tensors: Sequence[int], seconds: float = 120
) -> list[tuple[list[npt.NDArray[Any]], list[bytes]]]:
    """The outputs of each run, and all bytes of each of `tensors`, as `tflm_values` gives their CRC-32."""
    question = ("values", model, [list(run) for run in inputs], list(tensors), "bytes", True)
    values: list[tuple[list[npt.NDArray[Any]], list[bytes]]] = _asked(question, seconds)[0]
    return values


def _asked(question: tuple[object, ...], seconds: float) -> tuple[Any, str]:
    """What the process answers, and what TFLM logged."""
    if not installed():
        raise RequestError(f"tflite-micro is not installed; install it with: {INSTALL}")
    try:
        return ask_isolated(_PROGRAM, question, seconds)
    except NoAnswerError as problem:
        kind = OvertimeError if problem.late else RefusalError
        raise kind(f"tflite-micro {_refusal(problem)}") from None


def _refusal(problem: NoAnswerError) -> str:
    """Why TFLM gave no answer: what it logged first, and how it ended."""
    if problem.late:
        return str(problem)
    lines = [line.strip() for line in problem.log.splitlines() if "(" not in line[:40] and line.strip()]
    return f"refuses the model: {'; '.join(dict.fromkeys([*lines[:1], str(problem)]))}"


def _report(outputs: Sequence[str], log: str) -> TflmRun:
    parts = {name: int(size) for name, size in _PART.findall(log)}
    rows = tuple(LoggedRow(name, *map(int, figures)) for name, *figures in _ROW.findall(log))
    if not {"head", "tail"} <= parts.keys():
        raise RefusalError(f"tflite-micro {tflm_version()} prints its allocations in another form")
    return TflmRun(parts["head"], parts["tail"], rows, tuple(outputs))

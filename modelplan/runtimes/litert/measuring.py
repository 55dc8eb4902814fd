"""What LiteRT's interpreter itself allocates for a model, in a process of its own, under an allocation trace.

Needs the package ai-edge-litert and Linux, where a library can be loaded before libc.
"""

import atexit
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from threading import Lock
from typing import NamedTuple

from modelplan.primitives.allocation_trace import ENVIRONMENT, check_traceable
from modelplan.primitives.answering import AnsweringProcess, NoAnswerError
from modelplan.primitives.errors import ModelError, RequestError
from modelplan.primitives.version import installed_version

INSTALL = "pip install 'modelplan[verify]'"
_PROGRAM = Path(__file__).with_name("interpreter_process.py")
#: Characters of LiteRT's reason that are quoted.
_LONGEST = 120

#: LiteRT's name for each choice of kernels, with ours; the first is what an interpreter has that asks for nothing.
KERNELS = {
    "AUTO": "its default kernels (XNNPACK where it has them)",
    "BUILTIN_WITHOUT_DEFAULT_DELEGATES": "its optimised kernels without XNNPACK",
    "BUILTIN_REF": "its reference kernels",
}


class InterpreterNeed(NamedTuple):
    """The most bytes that an interpreter takes from AllocateTensors to the end of its second run, by its kernels.

    `aligned` are those in aligned blocks: the arena, packed weights and what kernels work with; `heap` are all of them.
    What the model itself takes once it is loaded is in neither.
    """

    kernels: str
    aligned: int
    heap: int


def litert_version() -> str:
    """The version of ai-edge-litert, or "not installed"."""
    return installed_version("ai-edge-litert") or "not installed"


def measure_interpreters(
    model: bytes, shapes: Sequence[Sequence[int]], threads: int, seconds: float
) -> list[InterpreterNeed]:
    """What interpreters with each of `KERNELS` take; `shapes` are those of the inputs, in their order.

    Raises:
        RequestError: ai-edge-litert is not installed, or nothing can be traced here.
        ModelError: LiteRT does not run the model, or not within `seconds`; quotes its reason.
    """
    if find_spec("ai_edge_litert") is None:
        raise RequestError(f"measuring needs LiteRT: {INSTALL}")
    check_traceable()
    question = model, [list(shape) for shape in shapes], threads, tuple(KERNELS)
    try:
        with _one_at_a_time:
            answers = _process.ask(question, seconds)
    except NoAnswerError as problem:
        raise ModelError(f"not run on LiteRT {litert_version()}: {str(problem)[:_LONGEST]}") from None
    return [InterpreterNeed(kernels, *answer) for kernels, answer in zip(KERNELS, answers, strict=True)]


_process = AnsweringProcess(str(_PROGRAM), environment=ENVIRONMENT)
atexit.register(_process.end)
_one_at_a_time = Lock()

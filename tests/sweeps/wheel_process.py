"""Tries models on the tflite-micro wheel in arenas of given sizes; started by `ask_wheel` of the sweep of TFLM.

TFLM stops in assertions, so each model runs in a copy of this process; it is small, and copies of it are fast.
"""

from __future__ import annotations

import importlib
import os
from functools import partial
from typing import Any

import numpy as np

from modelplan.primitives.answering import answer_questions
from modelplan.primitives.copied_processes import start_copy


def value(dtype: Any) -> float:
    """What inputs are filled with: harmless as an index, above zero points, no division by zero."""
    return {"f": 0.5, "b": 1}.get(np.dtype(dtype).kind, 50 if np.dtype(dtype).itemsize == 1 else 1)


def runs(runtime: Any, asked: tuple[bytes, int]) -> bool:
    """Whether TFLM runs the model in an arena of so many bytes; its report goes to the log."""
    return os.waitpid(start_copy([partial(interpret, runtime, *asked)]), 0)[1] == 0


def interpret(runtime: Any, data: bytes, size: int) -> None:
    interpreter = runtime.Interpreter.from_bytes(data, arena_size=size)
    for index in range(10**6):
        try:
            details = interpreter.get_input_details(index)
        except IndexError:
            break
        interpreter.set_input(np.full(details["shape"], value(details["dtype"]), details["dtype"]), index)
    interpreter.invoke()
    interpreter.print_allocations()


if __name__ == "__main__":
    answer_questions(partial(runs, importlib.import_module("tflite_micro.python.tflite_micro.runtime")))

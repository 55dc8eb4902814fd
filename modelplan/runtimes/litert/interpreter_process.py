"""Runs LiteRT's interpreters under the allocation trace; started as a script by `measuring`, which says what for.

Each question is answered by a copy of this process, since LiteRT ends the process on some models.
"""

import ctypes
import gc
from collections.abc import Sequence
from typing import Any

import numpy as np
from ai_edge_litert.interpreter import Interpreter, OpResolverType

from modelplan.primitives.answering import answer_questions

#: The runs that are measured: kernels prepare some of their memory in the first.
_RUNS = 2


def answer(asked: tuple[bytes, Sequence[Sequence[int]], int, Sequence[str]]) -> list[tuple[int, int]]:
    """For each choice of kernels the most bytes in aligned blocks and in all, above those of the loaded model."""
    model, shapes, threads, kernels = asked
    library = ctypes.CDLL(None)
    library.trace_live.restype = library.trace_peak.restype = ctypes.c_longlong
    needs = []
    for name in kernels:
        _run(_loaded(model, threads, name), shapes)  # what a process makes for its first interpreter is no model's need
        gc.collect()
        gc.disable()  # what Python tidies up would be taken for the interpreter's
        library.trace_count()
        interpreter = _loaded(model, threads, name)
        loaded = [library.trace_live(of_all) for of_all in (0, 1)]
        library.trace_restart()
        _run(interpreter, shapes)
        aligned, heap = (library.trace_peak(of_all) - held for of_all, held in enumerate(loaded))
        needs.append((aligned, heap))
        del interpreter
        gc.enable()
    return needs


def _loaded(model: bytes, threads: int, kernels: str) -> Any:
    resolver = getattr(OpResolverType, kernels)
    return Interpreter(model_content=model, num_threads=threads, experimental_op_resolver_type=resolver)


def _run(interpreter: Any, shapes: Sequence[Sequence[int]]) -> None:
    """Allocates the tensors and runs on zeros."""
    for details, shape in zip(interpreter.get_input_details(), shapes, strict=True):
        if list(details["shape"]) != list(shape):
            interpreter.resize_tensor_input(details["index"], shape)
    interpreter.allocate_tensors()
    for details in interpreter.get_input_details():
        if np.dtype(details["dtype"]).kind not in "SO":  # texts have no value that all models take
            interpreter.set_tensor(details["index"], np.zeros(details["shape"], details["dtype"]))
    for _ in range(_RUNS):
        interpreter.invoke()


if __name__ == "__main__":
    answer_questions(answer, isolated=True)

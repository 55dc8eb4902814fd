"""Runs one model on the tflite-micro wheel and answers with what came out; started by `runner`, never imported.

A plan that is wrong can write anywhere, so the interpreter has a process of its own. The allocator's report goes
to standard error, where the wheel prints it.
"""

from __future__ import annotations

import hashlib
import zlib
from collections.abc import Callable, Iterator
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from tflite_micro.python.tflite_micro import runtime

from modelplan.primitives.answering import answer_questions

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Array = NDArray[Any]


def answer(asked: tuple[Any, ...]) -> object:
    """The digests of random runs, or the values of given ones; the last argument is the choice of either function."""
    name, *arguments, chosen = asked
    return run_model(*arguments, extremes=chosen) if name == "digests" else run_given(*arguments, kept=chosen)


def run_given(
    model: bytes, runs: list[list[bytes]], tensors: list[int], form: str, *, kept: bool
) -> list[tuple[list[Array], list[int | bytes]]]:
    """The outputs of each run, of which the bytes of every input are given, and the CRC-32 of each of `tensors`.

    With the form "bytes" all bytes of them instead. `kept`: every tensor has memory of its own; without it tensors that
    are no outputs cannot be asked for.
    """
    config = runtime.InterpreterConfig
    interpreter = runtime.Interpreter.from_bytes(
        model,
        arena_size=max(256 << 20, 64 * len(model)),
        intrepreter_config=config.kPreserveAllTensors if kept else config.kAllocationRecording,
    )
    return [_values(interpreter, iter(run), tensors, bytes if form == "bytes" else zlib.crc32) for run in runs]


def _values(
    interpreter: runtime.Interpreter,
    inputs: Iterator[bytes],
    tensors: list[int],
    remember: Callable[[bytes], int | bytes],
) -> tuple[list[Array], list[int | bytes]]:
    outputs = _outputs(interpreter, lambda details: _given(details, next(inputs)))
    return outputs, [remember(interpreter.GetTensor(t, 0)["tensor_data"].tobytes()) for t in tensors]


def run_model(model: bytes, arena: int, rounds: int, seed: int, *, extremes: bool) -> list[str]:
    """Digests of outputs for a model, bytes of its arena, number of random inputs, seed, whether extreme inputs too."""
    interpreter = runtime.Interpreter.from_bytes(model, arena_size=arena)
    rng = np.random.default_rng(seed)
    digests = [_invoke(interpreter, partial(_random, rng=rng)) for _ in range(rounds + 1)] if rounds else []
    digests += [_invoke(interpreter, partial(_constant, extreme=n)) for n in (-1, 0, 1) if extremes]
    interpreter.print_allocations()
    # The first run only fills the arena with other data, so that stale right answers cannot pass.
    return digests[1:]


def _invoke(interpreter: runtime.Interpreter, values: Callable[[Any], Array]) -> str:
    digest = hashlib.sha256()
    for output in _outputs(interpreter, values):
        digest.update(output.tobytes())
    return digest.hexdigest()


def _outputs(interpreter: runtime.Interpreter, values: Callable[[Any], Array]) -> list[Array]:
    """The outputs of one run, whose inputs are made from their details in order."""
    for index, details in enumerate(_details(interpreter.get_input_details)):
        interpreter.set_input(values(details), index)
    interpreter.invoke()
    return [interpreter.get_output(index) for index, _ in enumerate(_details(interpreter.get_output_details))]


def _details(get: Callable[[int], Any]) -> list[Any]:
    """All details in order; the package gives no count, but raises IndexError after the last."""
    details: list[Any] = []
    while True:
        try:
            details.append(get(len(details)))
        except IndexError:
            return details


def _given(details: Any, content: bytes) -> Array:
    return np.frombuffer(content, np.dtype(details["dtype"])).reshape(details["shape"])


def _random(details: Any, rng: np.random.Generator) -> Any:
    dtype = np.dtype(details["dtype"])
    if dtype.kind == "f":
        return rng.standard_normal(details["shape"]).astype(dtype)
    if dtype.kind == "b":
        return rng.integers(0, 2, details["shape"]).astype(dtype)
    limits = np.iinfo(dtype)
    return rng.integers(limits.min, limits.max, details["shape"], dtype=dtype, endpoint=True)


def _constant(details: Any, extreme: int) -> Any:
    """All elements at the least (-1), at 0 or at the greatest value (1) of the type; floats at -1, 0 or 1."""
    dtype = np.dtype(details["dtype"])
    if dtype.kind in "fb":
        return np.full(details["shape"], extreme, dtype=np.int8).astype(dtype)
    limits = np.iinfo(dtype)
    return np.full(details["shape"], (0, limits.max, limits.min)[extreme], dtype=dtype)


if __name__ == "__main__":
    answer_questions(answer, isolated=True)

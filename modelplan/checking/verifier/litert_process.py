"""Runs one model on LiteRT's kernels; started by `litert`, which says what goes in and what comes out.

LiteRT ends the process on some models that it cannot run, so the interpreter has a process of its own.
"""

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from ai_edge_litert.interpreter import Interpreter, OpResolverType

from modelplan.checking.verifier.random_inputs import random_array
from modelplan.primitives.answering import answer_questions

Array = npt.NDArray[Any]


def answer(asked: tuple[Any, ...]) -> object:
    """The outputs of a model for given inputs, or what `run_model` gives."""
    if len(asked) != 2:
        return run_model(asked)
    model, feeds = asked
    interpreter = _interpreter(model)
    return [_returned(interpreter, feed) for feed in feeds]


def run_model(asked: tuple[bytes, int, int, tuple[int, ...], str]) -> tuple[tuple[str, ...], dict[int, Array]]:
    """Digests of outputs and values of tensors, for a model, a number of rounds, a seed, tensors and kernels."""
    model, rounds, seed, tensors, kernels = asked
    interpreter = _interpreter(model, kernels, kept=bool(tensors))
    digests = tuple(_invoked(interpreter, feeds) for feeds in _feeds(interpreter, seed, rounds))
    return digests, {t: interpreter.get_tensor(t) for t in tensors}


def _interpreter(model: bytes, kernels: str = "BUILTIN_REF", *, kept: bool = False) -> Interpreter:
    """Kernels on a model; `kept`: every tensor has memory of its own."""
    interpreter = Interpreter(
        model_content=model,
        experimental_preserve_all_tensors=kept,
        experimental_op_resolver_type=getattr(OpResolverType, kernels),
    )
    interpreter.allocate_tensors()
    return interpreter


def _invoked(interpreter: Interpreter, feeds: Sequence[Array]) -> str:
    digest = hashlib.sha256()
    for output in _returned(interpreter, feeds):
        digest.update(output.tobytes())
    return digest.hexdigest()


def _returned(interpreter: Interpreter, feeds: Sequence[Array]) -> list[Array]:
    for details, array in zip(interpreter.get_input_details(), feeds, strict=True):
        interpreter.set_tensor(details["index"], array)
    interpreter.invoke()
    return [interpreter.get_tensor(details["index"]) for details in interpreter.get_output_details()]


def _feeds(interpreter: Interpreter, seed: int, rounds: int) -> Iterator[list[Array]]:
    """One array of random values for each input; with more than one round also the least, 0 and the greatest."""
    rng, inputs = np.random.default_rng(seed), interpreter.get_input_details()
    for _ in range(rounds):
        yield [random_array(x["dtype"], x["shape"], rng) for x in inputs]
    for extreme in (-1, 0, 1) if rounds > 1 else ():
        yield [_constant(x, extreme) for x in inputs]


def _constant(details: Mapping[str, Any], extreme: int) -> Array:
    kind = np.dtype(details["dtype"])
    if kind.kind in "fb" or kind.itemsize >= 4:
        return np.full(details["shape"], max(extreme, 0) if kind.kind != "f" else extreme, dtype=kind)
    limits = np.iinfo(kind)
    return np.full(details["shape"], {-1: limits.min, 0: 0, 1: limits.max}[extreme], dtype=kind)


if __name__ == "__main__":
    answer_questions(answer, isolated=True)

"""Runs one model on the tflite-micro wheel and prints what came out as JSON; started by `runner`, never imported.

A plan that is wrong can write anywhere, so the interpreter has a process of its own. The allocator's report goes
to standard error, where the wheel prints it.
"""

from __future__ import annotations

import hashlib
import json
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np


def main() -> None:
    """Arguments: model file, arena bytes, number of random inputs, seed, 1 for extreme inputs too."""
    path, arena, rounds, seed, extremes = sys.argv[1], *map(int, sys.argv[2:6])
    from tflite_micro.python.tflite_micro import runtime

    interpreter = runtime.Interpreter.from_bytes(Path(path).read_bytes(), arena_size=arena)
    rng = np.random.default_rng(seed)
    digests = [_invoke(interpreter, partial(_random, rng=rng)) for _ in range(2 * rounds + 1)] if rounds else []
    digests += [_invoke(interpreter, partial(_constant, extreme=n)) for n in (-1, 0, 1) if extremes]
    interpreter.print_allocations()
    # The first run only fills the arena with other data, so that stale right answers cannot pass.
    sys.stdout.write(json.dumps({"outputs": digests[1:]}))


def _invoke(interpreter: Any, values: Callable[[Any], Any]) -> str:
    for index, details in enumerate(_details(interpreter.get_input_details)):
        interpreter.set_input(values(details), index)
    interpreter.invoke()
    digest = hashlib.sha256()
    for index, _ in enumerate(_details(interpreter.get_output_details)):
        digest.update(interpreter.get_output(index).tobytes())
    return digest.hexdigest()


def _details(get: Any) -> list[Any]:
    """All details in order; the package gives no count, but raises IndexError after the last."""
    details: list[Any] = []
    while True:
        try:
            details.append(get(len(details)))
        except IndexError:
            return details


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
    main()

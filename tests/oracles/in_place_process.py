"""Runs every .tflite file of a folder twice on the same random inputs; prints a digest of the outputs for each."""

from __future__ import annotations

import hashlib
import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
from tflite_micro.python.tflite_micro import runtime


def random(rng: np.random.Generator, details: dict[str, Any]) -> np.ndarray:
    kind, shape = np.dtype(details["dtype"]), tuple(details["shape"])
    if kind == np.bool_:
        return rng.integers(0, 2, shape).astype(kind)
    if np.issubdtype(kind, np.floating):
        return rng.standard_normal(shape).astype(kind)
    return rng.integers(np.iinfo(kind).min, np.iinfo(kind).max, shape, kind, endpoint=True)


def digest(path: Path, inputs: int) -> str:
    interpreter = runtime.Interpreter.from_bytes(path.read_bytes(), arena_size=1 << 16)
    rng, found = np.random.default_rng(7), hashlib.sha256()
    for _ in range(3):
        for i in range(inputs):
            interpreter.set_input(random(rng, interpreter.get_input_details(i)), i)
        interpreter.invoke()
        found.update(interpreter.get_output(0).tobytes())
    return found.hexdigest()


if __name__ == "__main__":
    results = {}
    for path in sorted(Path(sys.argv[1]).glob("*.tflite")):
        try:
            results[path.stem] = digest(path, int(path.stem[0]))
        except RuntimeError as problem:
            results[path.stem] = f"refused: {problem}"
    print(json.dumps(results))

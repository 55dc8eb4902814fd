"""LiteRT's reference kernels on one model, in a process of its own: digests of its outputs, values of its tensors."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory
from textwrap import shorten

import numpy as np
import numpy.typing as npt

INSTALL = "pip install 'modelplan[verify]'"

_COMMAND = (sys.executable, "-P", "-m", "modelplan.checking.verifier.litert_process")
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


def litert_tensors(
    model: bytes, tensors: Sequence[int], seed: int, seconds: float = 120
) -> Mapping[int, npt.NDArray[np.generic]]:
    """The values of `tensors` by their numbers, each in memory of its own, for one random input.

    Raises:
        LiteRTError: as `litert_outputs`.
    """
    return _run(model, 1, seed, tensors, seconds)[1]


def _run(
    model: bytes, rounds: int, seed: int, tensors: Sequence[int], seconds: float
) -> tuple[tuple[str, ...], dict[int, npt.NDArray[np.generic]]]:
    with TemporaryDirectory() as folder:
        path, values = Path(folder, "model.tflite"), Path(folder, "values.npz")
        path.write_bytes(model)
        asked = {"model": str(path), "seed": seed, "rounds": rounds, "tensors": list(tensors), "values": str(values)}
        try:
            done = subprocess.run(  # noqa: S603  this Python, this package
                _COMMAND, input=json.dumps(asked), capture_output=True, text=True, timeout=seconds, check=False
            )
        except subprocess.TimeoutExpired:
            raise LiteRTError(f"did not finish within {seconds:g} seconds") from None
        if done.returncode < 0:
            raise LiteRTError(f"it crashes (signal {-done.returncode})")
        if done.returncode:
            raise LiteRTError(shorten(done.stderr.strip().splitlines()[-1] if done.stderr.strip() else "", _LONGEST))
        arrays = {int(name): array for name, array in np.load(values).items()} if tensors else {}
    return tuple(json.loads(done.stdout)), arrays

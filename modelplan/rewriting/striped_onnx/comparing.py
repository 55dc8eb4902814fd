"""How far outputs of a rewritten model are from those of the model."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

Outputs = Sequence[Sequence[npt.NDArray[Any]]]


@dataclass(frozen=True, slots=True)
class OutputDifference:
    """The largest difference between outputs: as it is, and in units of the last place of the output's largest value.

    Integers count in ones. Outputs with other shapes, types, infinities or NaN differ without bound.
    """

    ulps: float = 0.0
    absolute: float = 0.0
    inputs: int = 0

    def described(self) -> str:
        """The difference in words."""
        if not self.ulps:
            return f"outputs equal bit by bit on {self.inputs} inputs"
        return (
            f"outputs differ by up to {self.ulps:.3g} units of the last place of their largest value"
            f" ({self.absolute:.3g}) on {self.inputs} inputs"
        )


def compare_outputs(expected: Outputs, found: Outputs) -> OutputDifference:
    """The largest difference between the outputs of two models on the same inputs."""
    worst, absolute = 0.0, 0.0
    for run, again in zip(expected, found, strict=True):
        for x, y in zip(run, again, strict=True):
            ulps, distance = _distance(x, y)
            worst, absolute = max(worst, ulps), max(absolute, distance)
    return OutputDifference(worst, absolute, len(expected))


def _distance(x: npt.NDArray[Any], y: npt.NDArray[Any]) -> tuple[float, float]:
    if x.shape != y.shape or x.dtype != y.dtype:
        return float("inf"), float("inf")
    if x.tobytes() == y.tobytes() or not x.size:
        return 0.0, 0.0
    if x.dtype.kind != "f":
        apart = float(np.max(np.abs(x.astype(np.float64) - y.astype(np.float64))))
        return apart, apart
    finite = np.isfinite(x)
    if not np.array_equal(finite, np.isfinite(y)) or not np.array_equal(x[~finite], y[~finite], equal_nan=True):
        return float("inf"), float("inf")
    if not finite.any():
        return 0.0, 0.0
    apart = float(np.max(np.abs(x[finite].astype(np.float64) - y[finite].astype(np.float64))))
    unit = float(np.spacing(np.max(np.abs(x[finite])).astype(x.dtype)))
    return apart / unit, apart

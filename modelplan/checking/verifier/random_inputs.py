"""Random values for the inputs of a model."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt


def random_array(dtype: npt.DTypeLike, shape: Sequence[int], rng: np.random.Generator) -> npt.NDArray[Any]:
    """Random values of a type: wide integers stay 0 or 1, because models use them as indices."""
    kind = np.dtype(dtype)
    if kind.kind == "f":
        values: npt.NDArray[Any] = rng.standard_normal(shape)
    elif kind.kind == "b" or kind.itemsize >= 4:
        values = rng.integers(0, 2, shape)
    else:
        limits = np.iinfo(kind)
        values = rng.integers(limits.min, limits.max, shape, dtype=np.int64, endpoint=True)
    return values.astype(kind)

"""Columns and tables of whole numbers: read-only numpy arrays of 64 bits."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import fields

import numpy as np
import numpy.typing as npt

IntArray = npt.NDArray[np.int64]
BoolArray = npt.NDArray[np.bool_]


def column(values: Iterable[int]) -> IntArray:
    """A read-only int64 column.

    Raises:
        ValueError: a number that does not fit.
    """
    try:
        array = np.array(values if isinstance(values, np.ndarray) else list(values), dtype=np.int64)
    except OverflowError:
        raise ValueError("a number does not fit in 63 bits") from None
    array.flags.writeable = False
    return array


def rows_of(values: Iterable[Sequence[int]], width: int) -> IntArray:
    """A read-only table of `width` columns, possibly without rows."""
    table = np.array(values if isinstance(values, np.ndarray) else list(values), dtype=np.int64)
    table = table.reshape(-1, width)
    table.flags.writeable = False
    return table


def same_fields(a: object, b: object) -> bool:
    """Field-wise equality of two dataclasses that hold arrays."""
    pairs = [(getattr(a, f.name), getattr(b, f.name)) for f in fields(a)]  # type: ignore[arg-type]
    return all(np.array_equal(x, y) if isinstance(x, np.ndarray) else x == y for x, y in pairs)

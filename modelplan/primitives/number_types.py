"""Types of numbers: bits of one element of each data type, bytes of a tensor, and read-only columns of 64 bits."""

from collections.abc import Iterable, Sequence
from dataclasses import fields
from math import prod

import numpy as np
import numpy.typing as npt

#: Bits of one element in memory. Sub-byte elements are packed over the whole tensor, never row by row.
BITS: dict[str, int] = {
    "bool": 8,
    "int2": 2, "int4": 4, "int8": 8, "int16": 16, "int32": 32, "int64": 64,
    "uint2": 2, "uint4": 4, "uint8": 8, "uint16": 16, "uint32": 32, "uint64": 64,
    "float4e2m1": 4, "float6e2m3": 6, "float6e3m2": 6,
    "float8e4m3fn": 8, "float8e4m3fnuz": 8, "float8e5m2": 8, "float8e5m2fnuz": 8, "float8e8m0": 8,
    "bfloat16": 16, "float16": 16, "float32": 32, "float64": 64,
    "complex64": 64, "complex128": 128,
}  # fmt: skip

#: Values whose memory comes from the heap at run time: they take no bytes of an arena.
UNPLANNED = frozenset({"string", "sequence", "optional", "map", "sparse", "resource", "variant"})


def nbytes(dtype: str, shape: tuple[int, ...]) -> int:
    """Bytes of a packed tensor: the bits of all its elements together, rounded up once.

    Args:
        dtype: a key of `BITS`, or one of `UNPLANNED`, which takes none.
        shape: non-negative extents; `()` is one element.

    Raises:
        ValueError: there is no such data type.

    >>> nbytes("int4", (3, 3))
    5
    """
    if dtype in UNPLANNED:
        return 0
    if dtype not in BITS:
        raise ValueError(f"data type {dtype!r} is unknown")
    return (prod(shape) * BITS[dtype] + 7) // 8


IntArray = npt.NDArray[np.int64]
FloatArray = npt.NDArray[np.float64]
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

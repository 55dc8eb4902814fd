"""What each operator becomes in C: the kernel that computes it, its tables, and how its rows depend on others.

A *row* of a map [1, H, W, C] is the W * C elements at one height, of a map [1, T, C] the C elements at one time, of a
matrix [B, C] one of its B lines. Any other tensor is a single row.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from math import prod
from typing import Any

import numpy as np
import numpy.typing as npt

from modelplan.primitives.errors import ModelError

Table = npt.NDArray[Any]


class MissingKernelError(ModelError):
    """There is no C for an operator: names it, its place in the file, and what would be needed."""


def rows_of(shape: tuple[int, ...]) -> int:
    """How many rows a tensor has.

    >>> rows_of((1, 96, 80, 3)), rows_of((4, 10)), rows_of((2, 8, 8, 3))
    (96, 4, 1)
    """
    if len(shape) == 2:
        return shape[0]
    return shape[1] if len(shape) in (3, 4) and shape[0] == 1 else 1


@dataclass(frozen=True, slots=True)
class RowWindow:
    """Row y of the result reads the operand's rows [y * stride - above, y * stride - above + reach)."""

    reach: int = 1
    stride: int = 1
    above: int = 0


@dataclass(frozen=True, slots=True)
class RowOperand:
    """A tensor that is computed or fed, as an operator reads it: so many `rows` of `row_bytes` bytes each.

    `window` says which rows a row of the result reads; None: all of them.
    """

    tensor: int
    rows: int
    row_bytes: int
    window: RowWindow | None = None


@dataclass(frozen=True, slots=True)
class RowResult:
    """A tensor that an operator computes, as so many `rows` of `row_bytes` bytes each."""

    tensor: int
    rows: int
    row_bytes: int


@dataclass(frozen=True, slots=True, eq=False)
class ConstTable:
    """A `const` table: what its name says about it, its C type and its numbers.

    Equal tables of a file become one.
    """

    name: str
    ctype: str
    numbers: Table


@dataclass(frozen=True, slots=True, eq=False)
class CKernel:
    """One call of a kernel: the function, the file that defines it, and its parameters by name.

    `element` is the C type that takes the place of `element_t` in the file. A parameter is a number, or a table whose
    address is meant. `operands` and `result` are positions in those of the operator. `result_skip` are the bytes from
    the beginning of each row of the result to where the kernel writes. `repeats` maps of a batch follow each other.
    """

    source: str
    element: str
    parameters: dict[str, int | float | str | ConstTable]
    operands: tuple[int, ...] = (0,)
    result: int = 0
    result_skip: int = 0
    operand_skip: int = 0
    repeats: int = 1

    @property
    def function(self) -> str:
        """The function's name: that of the file and of the element."""
        return f"{self.source}_{self.element.removesuffix('_t')}"


@dataclass(frozen=True, slots=True, eq=False)
class COperator:
    """An operator as calls of kernels.

    `operands` are the tensors that it reads and that are no constants, in the order of the operator's inputs; a tensor
    that is read twice stands there twice. `by_rows` says that the rows of all results can be computed a few at a time,
    from the rows that the windows of the operands name. Otherwise the operator runs whole.

    `in_place` are the positions of operands that may have the memory of result 0: element i of the result is written
    after element i of the operand was read, and nothing is read of the operand again. Every kernel that goes by rows
    writes row r of the result only when it has read all of the operands that row r needs, and reads then nothing but
    what rows behind r need: a result may run into an operand row by row. A kernel that runs whole promises nothing.

    `view`: the result is the operand's bytes as they are, no code is needed where both have the same memory.
    `scratch` are bytes of working memory, `state` the number of a variable that is read or written, or -1.
    """

    index: int
    kind: str
    operands: tuple[RowOperand, ...]
    results: tuple[RowResult, ...]
    kernels: tuple[CKernel, ...]
    by_rows: bool = False
    in_place: tuple[int, ...] = ()
    view: bool = False
    scratch: int = 0
    variable: str = field(default="")


def row_operand(tensor: int, shape: tuple[int, ...], nbytes: int, window: RowWindow | None = None) -> RowOperand:
    """A tensor of a shape as an operand with rows."""
    rows = rows_of(shape)
    return RowOperand(tensor, rows, nbytes // max(rows, 1), window)


def row_result(tensor: int, shape: tuple[int, ...], nbytes: int) -> RowResult:
    """A tensor of a shape as a result with rows."""
    rows = rows_of(shape)
    return RowResult(tensor, rows, nbytes // max(rows, 1))


def elements(shape: tuple[int, ...]) -> int:
    """How many elements a tensor of a shape has."""
    return prod(shape)


def table(name: str, ctype: str, numbers: npt.ArrayLike) -> ConstTable:
    """A `const` table of numbers of a C type."""
    return ConstTable(name, ctype, np.ascontiguousarray(numbers, np.dtype(ctype.removesuffix("_t"))))

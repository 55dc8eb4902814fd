"""What each operator becomes in C: the kernel that computes it, its tables, and how its rows depend on others.

A *row* of a map [1, H, W, C] is the W * C elements at one height, of a sequence, [1, 1, W, C] or [1, W, C], the C
elements at one place, of a matrix [B, C] one of its B lines. Any other tensor is a single row.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from modelplan.ops.access.spans import Span
from modelplan.primitives.errors import ModelError
from modelplan.primitives.lazy_records import dataclass

#: The C type of each element type.
C_TYPES = {
    "int8": "int8_t", "uint8": "uint8_t", "int16": "int16_t", "int32": "int32_t", "uint32": "uint32_t",
    "int64": "int64_t", "float32": "float", "bool": "uint8_t",
}  # fmt: skip

Table = npt.NDArray[Any]


class MissingKernelError(ModelError):
    """There is no C for operators: names them, their places in the file, and what would be needed.

    Whatever reads an operator here raises it. `missing` has the kind, the reason and the place of each.
    """

    def __init__(self, model: str, missing: Sequence[tuple[str, str, str]]) -> None:
        self.missing = tuple(missing)
        super().__init__(f"{model}: no plain C: " + "; ".join(self.lines))

    @property
    def lines(self) -> list[str]:
        """A line for each kind of operator and reason, with the first place and how many more there are."""
        places: dict[tuple[str, str], list[str]] = {}
        for kind, why, place in self.missing:
            places.setdefault((kind, why), []).append(place)
        return [
            f"{kind}: {why}: {at[0]}" + (f" and {len(at) - 1} more" if len(at) > 1 else "")
            for (kind, why), at in places.items()
        ]


def row_axis(shape: tuple[int, ...]) -> int:
    """The axis along which the rows of a tensor stand, -1 where there is a single row.

    >>> row_axis((1, 96, 80, 3)), row_axis((1, 1, 80, 3)), row_axis((4, 10)), row_axis((2, 8, 8, 3))
    (1, 2, 0, -1)
    """
    if len(shape) not in (2, 3, 4) or 0 in shape:
        return -1
    axis = next((axis for axis, extent in enumerate(shape[:-1]) if extent > 1), -1)
    return axis if axis != 0 or len(shape) == 2 else -1


def rows_of(shape: tuple[int, ...]) -> int:
    """How many rows a tensor has.

    >>> rows_of((1, 96, 80, 3)), rows_of((1, 80, 3)), rows_of((4, 10)), rows_of((2, 8, 8, 3))
    (96, 80, 4, 1)
    """
    axis = row_axis(shape)
    return shape[axis] if axis >= 0 else 1


def in_groups(source: tuple[int, ...], result: tuple[int, ...], size: int) -> bool:
    """Whether an operator may make so many rows of a map at a time, more than once, from rows of a map.

    >>> in_groups((1, 4, 4, 2), (1, 8, 8, 2), 2), in_groups((1, 1, 4, 2), (1, 2, 8, 2), 2)
    (True, False)
    """
    return row_axis(source) == row_axis(result) == 1 and result[1] % size == 0 and result[1] > size > 0


@dataclass(frozen=True, slots=True)
class AxisWindow:
    """Row i of a result reads `reach` rows of an operand from row i * stride - before on; some may lie outside."""

    reach: int = 1
    stride: int = 1
    before: int = 0

    @classmethod
    def of(cls, span: Span) -> AxisWindow | None:
        """The window of an axis of an access map; None where places do not follow run after run, or lie at an edge."""
        steps, rest = divmod(span.mul, span.div)
        if span.table or span.clamp or rest or steps < 1:
            return None
        first, last = span.lo // span.div, span.hi // span.div
        return cls(last - first + 1, steps, -first)

    def read(self, first: int, end: int) -> tuple[int, int]:
        """The first row that results [first, end) read, and the one behind the last."""
        start = first * self.stride - self.before
        return start, start + (end - 1 - first) * self.stride + self.reach

    def mirrored(self, extent: int, results: int) -> AxisWindow:
        """The same window where both sides are counted from the end; `extent` is that of the operand."""
        return AxisWindow(self.reach, self.stride, (results - 1) * self.stride - self.before + self.reach - extent)


@dataclass(frozen=True, slots=True)
class RowOperand:
    """A tensor that is computed or fed, as an operator reads it: so many `rows` of `row_bytes` bytes each.

    `window` says which rows a row of the result reads; None: all of them. `columns` says the same of the columns of a
    row; None: its kernel computes whole rows only.
    """

    tensor: int
    rows: int
    row_bytes: int
    window: AxisWindow | None = None
    columns: AxisWindow | None = None


@dataclass(frozen=True, slots=True)
class RowResult:
    """A tensor that an operator computes, as so many `rows` of `row_bytes` bytes each.

    Where an operator computes several rows of its map at a time, as of blocks, these are one.
    """

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


#: Parameters of a kernel by name.
Parameters: TypeAlias = dict[str, int | float | ConstTable]


@dataclass(frozen=True, slots=True)
class StateReference:
    """Bytes of what a network remembers between runs, from `offset` on; elements of type `ctype`."""

    offset: int
    ctype: str = "int8_t"


@dataclass(frozen=True, slots=True, eq=False)
class CKernel:
    """One call of a kernel: the source that defines it, for which types of elements, and its parameters by name.

    A parameter is a number, or a table whose address is meant. `operands` are positions in those of the operator, or
    tables, or memory of the network; `result` is the position of the result, or such memory. Where the operator does
    not run by rows, `whole` are the rows that the kernel is handed, those above the map, and the rows that it computes.
    `repeats` maps of a batch follow each other, each as long as the whole over the repeats.
    """

    source: str
    variant: str
    parameters: Mapping[str, int | float | ConstTable]
    operands: tuple[int | ConstTable | StateReference, ...] = (0,)
    result: int | StateReference = 0
    whole: tuple[int, int, int] = (1, 0, 1)
    repeats: int = 1

    def number(self, name: str) -> int:
        """A parameter that is a whole number."""
        value = self.parameters[name]
        if not isinstance(value, int):
            raise TypeError(f"{name} of {self.source} is no whole number")
        return value


@dataclass(frozen=True, slots=True, eq=False)
class COperator:
    """An operator as calls of kernels.

    `operands` are the tensors that it reads and that are no constants, in the order of the operator's inputs; a tensor
    that is read twice stands there twice. `by_rows` says that the rows of all results can be computed a few at a time,
    from the rows that the windows of the operands name. Otherwise the operator runs whole.

    A single kernel that goes by rows computes row after row: while it computes row r, and later, it reads nothing but
    rows from the first of r's window on, and writes nothing but rows from r on. So a result may run into an operand row
    by row. Several kernels run one after the other, each for all rows of a call; for them that does not hold.

    `in_place` are the positions of operands that may have the memory of result 0: element i of the result is written
    after element i of the operand was read, and nothing is read of it again.

    `view`: the result is the operand's bytes as they are, no code is needed where both have the same memory.
    `scratch` are bytes of working memory.

    `parts` are (operand, offset) of operands that become the result's bytes from there on as they are: kernel i copies
    part i, which is not needed where the operand lies there already.

    A kernel that is not `in_order` computes several rows in an order of its own, so in a call of several rows results
    and operands lie apart. One without `by_columns` computes whole rows only.
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
    in_order: bool = True
    by_columns: bool = True
    parts: tuple[tuple[int, int], ...] = ()


def const_table(name: str, ctype: str, numbers: npt.ArrayLike) -> ConstTable:
    """A `const` table of numbers of a C type."""
    return ConstTable(
        name,
        ctype,
        np.ascontiguousarray(numbers, np.dtype("float32" if ctype == "float" else ctype.removesuffix("_t"))),
    )

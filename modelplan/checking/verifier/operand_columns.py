"""The operands of all steps of a program as columns, so that checks run over columns and not step by step."""

from collections.abc import Collection, Sequence
from itertools import chain

import numpy as np

from modelplan.model import BoolArray, IntArray
from modelplan.primitives.lazy_records import dataclass

#: Numbers above are cut off, so that sums of two stay within 63 bits.
_MOST = 2**62 - 1


@dataclass(frozen=True, slots=True)
class Uses:
    """One row for each tensor that a step reads or writes, in order: the step, the operand's number, the tensor."""

    step: IntArray
    operand: IntArray
    tensor: IntArray


def uses(operands: Collection[tuple[int, ...]]) -> Uses:
    """The operands of each step, without the absent ones (-1)."""
    counts = np.fromiter(map(len, operands), np.int64, len(operands))
    total = int(counts.sum())
    tensor = np.fromiter(chain.from_iterable(operands), np.int64, total)
    operand = np.arange(total) - np.repeat(np.cumsum(counts) - counts, counts)
    step = np.repeat(np.arange(len(operands)), counts)
    present = tensor >= 0
    return Uses(step, operand, tensor) if present.all() else Uses(step[present], operand[present], tensor[present])


def distinct(rows: Uses) -> Uses:
    """Each tensor of a step once, at its first use, with the number of the last operand that names it."""
    if not (rows.step[1:] == rows.step[:-1]).any():
        return rows
    key = rows.step * (int(rows.tensor.max()) + 1) + rows.tensor
    _, firsts = np.unique(key, return_index=True)
    _, behind = np.unique(key[::-1], return_index=True)
    order = np.argsort(firsts)
    first, last = firsts[order], (len(key) - 1 - behind)[order]
    return Uses(rows.step[first], rows.operand[last], rows.tensor[first])


def counts_of(numbers: Sequence[int]) -> IntArray:
    """Whole numbers from 0 on as a column, larger ones than fit cut off."""
    fit = max(numbers, default=0) <= _MOST
    return np.array(numbers if fit else [min(number, _MOST) for number in numbers], np.int64)


@dataclass(frozen=True, slots=True)
class Columns:
    """A program as columns.

    By tensor: bytes, elements, whether it is a constant, whether it is state. By step: the number of its kind in
    `kinds`, and the tensor that is its first output, -1 where that is absent. `written` are the rows of `writes` with
    each tensor of a step once.
    """

    nbytes: IntArray
    elements: IntArray
    constant: BoolArray
    state: BoolArray
    kinds: tuple[str, ...]
    kind: IntArray
    result: IntArray
    reads: Uses
    writes: Uses
    written: Uses

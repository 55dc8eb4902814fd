"""Copies whose operands and results share bytes: accepted where each byte is read before it is replaced."""

from __future__ import annotations

import numpy as np
import pytest

from modelplan.checking.verifier.rewrites.contents import Numbers
from modelplan.checking.verifier.rewrites.copy_order import OrderedMove, in_order
from modelplan.checking.verifier.rewrites.moving import calculated
from modelplan.checking.verifier.rewrites.reading import Cell, Coding, Operation


def operation(kind: str) -> Operation:
    return Operation(0, 0, kind, (0,), (1,), (), (), 0, custom=False)


def slice_of(start: int, run: int) -> list[OrderedMove]:
    """Eight bytes from `start` to address 0, `run` at a time."""
    return [OrderedMove(0, np.arange(start, start + 8), np.arange(8), run)]


@pytest.mark.parametrize(
    ("start", "run", "right"),
    [(2, 1, True), (2, 4, False), (3, 4, False), (4, 4, True), (6, 4, True), (6, 8, False), (8, 8, True), (0, 8, True)],
)
def test_bytes_that_are_copied_at_once_may_not_be_written_among_themselves(start: int, run: int, right: bool) -> None:
    assert in_order(operation("SLICE"), slice_of(start, run), None) is right


def test_a_copy_backwards_and_an_unknown_kernel_are_refused() -> None:
    backwards = [OrderedMove(0, np.arange(8), np.arange(2, 10), 1)]
    assert not in_order(operation("SLICE"), backwards, None)
    assert not in_order(operation("TRANSPOSE"), slice_of(8, 8), None)


def test_known_numbers_keep_values_and_type_in_another_shape() -> None:
    numbers = Numbers(np.array([[3, 4]], dtype=np.int64), "int64")
    output = Cell("y", (2,), Coding("int64"), 1, variable=False, data=None)
    for others in ([], [Numbers(np.array([2], dtype=np.int32), "int32")]):
        made = calculated(operation("RESHAPE"), [numbers, *others], output)
        assert made is not None
        assert (made.array.tolist(), made.dtype) == ([3, 4], "int64")

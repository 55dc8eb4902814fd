"""What the proof of a rewrite knows of single operators: copies in order, small numbers, windows."""

from __future__ import annotations

import numpy as np
import pytest

from modelplan.checking.verifier.rewrites.contents import Content, Numbers
from modelplan.checking.verifier.rewrites.copy_order import OrderedMove, in_order
from modelplan.checking.verifier.rewrites.moving import Given, calculated
from modelplan.checking.verifier.rewrites.reading import Cell, Coding, Operation
from modelplan.checking.verifier.rewrites.windows import WindowSpread, spread_of


def operation(kind: str, **options: int) -> Operation:
    return Operation(0, 0, kind, (0,), (1,), tuple(options.items()), (), 0, custom=False)


def cell(*shape: int, dtype: str = "int8") -> Cell:
    return Cell("t", shape, Coding(dtype), 1, variable=False, data=None)


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
    for others in ([], [Numbers(np.array([2], dtype=np.int32), "int32")]):
        made = calculated(operation("RESHAPE"), [numbers, *others], cell(2, dtype="int64"))
        assert made is not None
        assert (made.array.tolist(), made.dtype) == ([3, 4], "int64")


def test_a_transposed_convolution_depends_on_rows_and_columns_by_windows_and_on_all_channels() -> None:
    shape, weights = (Given(cell(*n), Content(i, tuple(map(tuple, map(range, n))))) for i, n in
                      enumerate([(4,), (2, 2, 2, 3)]))  # fmt: skip

    def spread(rows: range, columns: range, channels: range) -> WindowSpread:
        axes = tuple(map(tuple, (range(1), rows, columns, channels)))
        x = Given(cell(*map(len, axes)), Content(2, axes))
        made = cell(1, 2 * len(rows), 2 * len(columns), 2)
        found = spread_of(operation("TRANSPOSE_CONV", StrideH=2, StrideW=2), [shape, weights, x], [made])
        assert found is not None
        return found

    whole = spread(range(4), range(4), range(3))
    right = spread(range(4), range(2, 4), range(3))
    assert right.rest == whole.rest
    assert right.axes[2] == whole.axes[2][4:]
    assert right.axes[1] == whole.axes[1]
    assert spread(range(4), range(4), range(3, 6)).rest != whole.rest

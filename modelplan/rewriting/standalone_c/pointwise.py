"""Operators that take each element, or each line of elements, by itself."""

from __future__ import annotations

import numpy as np

from modelplan.rewriting.standalone_c.fixed_point import quantized_multiplier
from modelplan.rewriting.standalone_c.function_tables import softmax_parameters
from modelplan.rewriting.standalone_c.reading import OperatorReader
from modelplan.rewriting.standalone_c.records import (
    CKernel,
    ConstTable,
    COperator,
    RowOperand,
    RowWindow,
    rows_of,
    table,
)

Parameters = dict[str, int | float | str | ConstTable]


def view(r: OperatorReader) -> COperator:
    """RESHAPE and its like: the bytes stay as they are."""
    r.require(holds=r.input(0).nbytes == r.output().nbytes, why="a view of another size")
    kernel = CKernel("copy_bytes", "uint8_t", {"bytes": r.output().nbytes})
    return COperator(r.index, r.op.kind, (r.row_operand(0),), r.row_results(), (kernel,), in_place=(0,), view=True)


def binary(r: OperatorReader) -> COperator:
    """ADD of two maps; one that has fewer elements is repeated along some axes."""
    types = {r.dtype(r.input(0)), r.dtype(r.input(1)), r.dtype(r.output())}
    r.require(holds=types == {"int8"}, why=f"types {', '.join(sorted(types))}; there are kernels for int8")
    parameters = _sum_parameters(r)
    for name, position in (("a", 0), ("b", 1)):
        steps = broadcast_steps(r, position)
        parameters |= {f"{name}_{axis}": step for axis, step in zip(_AXES, steps, strict=True)}
        if r.is_constant(position):
            parameters[f"{name}_constant"] = table(name, "int8_t", r.constant(position))
        else:
            parameters[f"{name}_constant"] = "0"
    _, width, channels = rows_columns(r.output().shape)
    parameters |= {"width": width, "channels": channels}
    operands = tuple(_pointwise_operand(r, i) for i in (0, 1) if not r.is_constant(i))
    return element_wise(r, operands, "add", "int8_t", parameters)


_AXES = ("row", "column", "channel")


def element_wise(
    r: OperatorReader, operands: tuple[RowOperand, ...], source: str, element: str, parameters: Parameters
) -> COperator:
    """An operator whose elements depend on the same elements of its operands, by rows."""
    same = r.output()
    in_place = tuple(
        i for i, o in enumerate(operands) if o.window and r.tensor(o.tensor).nbytes == same.nbytes and element
    )
    kernel = CKernel(source, element, parameters, tuple(range(len(operands))))
    return COperator(
        r.index, r.op.kind, operands, r.row_results(), (kernel,), by_rows=rows_of(same.shape) > 1, in_place=in_place
    )


def _pointwise_operand(r: OperatorReader, position: int) -> RowOperand:
    """An operand of which each row gives a row of the result; one with a single row is read whole."""
    by_rows = rows_of(r.input(position).shape) == rows_of(r.output().shape) > 0
    return r.row_operand(position, RowWindow() if by_rows else None)


def rows_columns(shape: tuple[int, ...]) -> tuple[int, int, int]:
    """A shape as rows, columns and channels."""
    rows = rows_of(shape)
    channels = shape[-1] if shape else 1
    whole = int(np.prod(shape, dtype=np.int64))
    return rows, whole // max(rows * channels, 1), channels


def broadcast_steps(r: OperatorReader, position: int) -> tuple[int, int, int]:
    """How many elements of an operand lie between those of neighbouring rows, columns and channels of the result.

    Raises:
        MissingKernelError: it is repeated along axes that are none of these.
    """
    shape, result = r.input(position).shape, r.output().shape
    full = (1,) * (len(result) - len(shape)) + shape
    strides = np.array([int(np.prod(full[i + 1 :])) for i in range(len(full))], np.int64)
    taken = np.broadcast_to(
        np.lib.stride_tricks.as_strided(np.zeros(1, np.int8), full, tuple(strides.tolist())), result
    ).strides
    rows, columns, channels = rows_columns(result)
    inner = [s for s, n in zip(taken, result, strict=True) if n > 1]
    places = _places(result, taken)
    steps = _steps(places, (rows, columns, channels))
    r.require(holds=steps is not None and len(inner) >= 0, why=f"an operand of shape {list(shape)} for {list(result)}")
    assert steps is not None
    return steps


def _places(result: tuple[int, ...], strides: tuple[int, ...]) -> np.ndarray[tuple[int, ...], np.dtype[np.int64]]:
    """The element of the operand for each element of the result."""
    places = np.zeros((), np.int64)
    for n, s in zip(result, strides, strict=True):
        places = places[..., None] + np.arange(n) * s
    return places


def _steps(
    places: np.ndarray[tuple[int, ...], np.dtype[np.int64]], extents: tuple[int, int, int]
) -> tuple[int, int, int] | None:
    """The steps along three axes that give all places, if there are any."""
    if not places.size:
        return (0, 0, 0)
    block = places.reshape(extents)
    corners = (block[1:2, 0, 0], block[0, 1:2, 0], block[0, 0, 1:2])
    row, column, channel = (int(c[0]) if c.size else 0 for c in corners)
    y, x, z = np.ogrid[: extents[0], : extents[1], : extents[2]]
    return (row, column, channel) if np.array_equal(block, y * row + x * column + z * channel) else None


def _sum_parameters(r: OperatorReader) -> Parameters:
    """What TFLM prepares for a quantised ADD."""
    (a, a_zero), (b, b_zero), (out, out_zero) = map(r.quantised, (r.input(0), r.input(1), r.output()))
    left, twice = 20, 2 * float(max(a, b))
    found: Parameters = {"a_zero": a_zero, "b_zero": b_zero, "out_zero": out_zero, "left_shift": left}
    real = {"a": a / twice, "b": b / twice, "out": twice / ((1 << left) * float(out))}
    for name, value in real.items():
        multiplier, shift = quantized_multiplier(value)
        r.require(holds=0 < value < 1, why=f"scales {a}, {b} and {out}, which TFLM's kernel does not take")
        found |= {f"{name}_multiplier": multiplier, f"{name}_shift": shift}
    low, high = r.output_range(r.activation())
    return {**found, "least": low, "most": high}


def softmax(r: OperatorReader) -> COperator:
    """SOFTMAX along the last axis."""
    types = r.dtype(r.input(0)), r.dtype(r.output())
    r.require(holds=types == ("int8", "int8"), why=f"types {', '.join(types)}; there are kernels for int8")
    shape = r.input(0).shape
    r.require(holds=len(shape) > 0 and shape == r.output().shape, why="operands of different shapes")
    rows, columns, channels = rows_columns(shape)
    parameters = {**softmax_parameters(r), "lines": columns, "channels": channels}
    operand = r.row_operand(0, RowWindow())
    kernel = CKernel("softmax", "int8_t", parameters)
    return COperator(r.index, r.op.kind, (operand,), r.row_results(), (kernel,), by_rows=rows > 1)

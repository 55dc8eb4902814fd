"""Means over axes, and maps that are resized, as calls of C kernels."""

from math import prod

import numpy as np

from modelplan.plain_c.kernel_records import (
    AxisWindow,
    CKernel,
    COperator,
    Parameters,
    const_table,
    in_groups,
    row_axis,
    rows_of,
)
from modelplan.plain_c.operator_calls.fixed_point import quantized_multiplier
from modelplan.plain_c.operator_calls.reading import OperatorReader


def reduced_block(r: OperatorReader) -> tuple[int, int, int]:
    """Elements along the axes before those that are reduced, along these, and along those behind them."""
    shape = r.input(0).shape
    r.require(holds=bool(shape), why="a tensor without axes")
    axes = sorted({int(axis) % len(shape) for axis in r.constant(1).ravel()})
    axes = [axis for axis in axes if shape[axis] > 1] or axes[:1]
    r.require(holds=bool(axes), why="no axes")
    reduced = prod(shape[axes[0] : axes[-1] + 1])
    r.require(holds=reduced == prod(shape[a] for a in axes), why=f"axes {axes}, which are no neighbours")
    outer, inner = prod(shape[: axes[0]]), prod(shape[axes[-1] + 1 :])
    r.require(holds=reduced > 0 and outer * inner == r.output().elements, why=f"axes {axes} of {list(shape)}")
    return outer, reduced, inner


def reduced_axes(r: OperatorReader, source: str) -> tuple[str, Parameters, int]:
    """The kernel of a reduction, how it goes over the axes, and how many elements one of the result is made of.

    Axes that are neighbours are one block; of others there may be two.
    """
    shape = r.input(0).shape
    axes = {int(axis) % max(len(shape), 1) for axis in r.constant(1).ravel()}
    blocks = [1]
    for axis, extent in enumerate(shape):
        if extent > 1 and (axis in axes) != (len(blocks) % 2 == 0):
            blocks.append(1)
        blocks[-1] *= extent
    if len(blocks) <= 3:
        outer, reduced, inner = reduced_block(r)
        return source, {"outer": outer, "reduced": reduced, "inner": inner}, reduced
    r.require(holds=len(blocks) <= 5, why=f"axes {sorted(axes)} of {list(shape)}, more than two blocks")
    outer, reduced, middle, again, inner = [*blocks, *[1] * (5 - len(blocks))]
    r.require(holds=outer * middle * inner == r.output().elements > 0 < reduced, why=f"axes {sorted(axes)}")
    extents: Parameters = {"outer": outer, "reduced": reduced, "middle": middle, "again": again, "inner": inner}
    return f"{source}_apart", extents, reduced * again


def reduced_by_rows(r: OperatorReader, source: str, variant: str, parameters: Parameters) -> COperator:
    """A reduction of a block of axes; row by row where each row of the result is made of one of the operand."""
    window, results = r.row_window(0), r.row_results()
    outer, rows = parameters["outer"], results[0].rows
    by_rows = window == AxisWindow() and rows > 1 and isinstance(outer, int) and outer % rows == 0
    if by_rows and isinstance(outer, int):
        parameters = {**parameters, "outer": outer // rows}
    kernel = CKernel(source, variant, parameters, whole=(rows, 0, rows) if by_rows else (1, 0, 1))
    operand = r.row_operand(0, window if by_rows else None)
    return COperator(r.index, r.op.kind, (operand,), results, (kernel,), by_rows=by_rows, by_columns=False)


def reduction(r: OperatorReader) -> COperator:
    """MEAN and SUM over axes."""
    variant = r.variant("int8", "int16")
    kernel_source, extents, reduced = reduced_axes(r, "mean")
    (source, zero), (result, out_zero) = r.quantised(r.input(0)), r.quantised(r.output())
    multiplier, shift = quantized_multiplier(source / result)
    if r.op.kind == "MEAN":
        down = min(reduced.bit_length() - 1, 32, 31 + shift)
        multiplier, shift = (multiplier << down) // reduced, shift - down
    parameters: Parameters = {
        **extents,
        "in_zero": zero,
        "out_zero": out_zero,
        "multiplier": multiplier,
        "shift": shift,
    }
    kernel = CKernel(kernel_source, variant, parameters)
    return COperator(r.index, r.op.kind, (r.row_operand(0),), r.row_results(), (kernel,))


def extreme(r: OperatorReader) -> COperator:
    """REDUCE_MAX and REDUCE_MIN over axes."""
    variant = r.variant("int8", "float32")
    source, extents, _ = reduced_axes(r, "extreme")
    kernel = CKernel(source, variant, {**extents, "least": int(r.op.kind == "REDUCE_MIN")})
    return COperator(r.index, r.op.kind, (r.row_operand(0),), r.row_results(), (kernel,))


def running_sum(r: OperatorReader) -> COperator:
    """CUMSUM along a constant axis."""
    variant = r.variant("int8", "float32")
    shape = r.input(0).shape
    (axis,) = (int(n) % max(len(shape), 1) for n in r.constant(1).ravel())
    parameters: Parameters = {
        "outer": prod(shape[:axis]),
        "depth": shape[axis],
        "inner": prod(shape[axis + 1 :]),
        "exclusive": int(r.option("Exclusive")),
        "reverse": int(r.option("Reverse")),
    }
    if variant == "int8":
        (source, zero), (result, out_zero) = r.quantised(r.input(0)), r.quantised(r.output())
        factor = 2 * float(source) / ((1 << 20) * float(result))
        r.require(holds=0 < factor < 1, why=f"scales {source} and {result}, which TFLM's kernel does not take")
        multiplier, shift = quantized_multiplier(factor)
        parameters |= {"in_zero": zero, "out_zero": out_zero, "multiplier": multiplier, "shift": shift}
    kernel = CKernel("float_running_sum" if variant == "float" else "running_sum", variant, parameters)
    return COperator(r.index, r.op.kind, (r.row_operand(0),), r.row_results(), (kernel,))


def extreme_places(r: OperatorReader) -> COperator:
    """ARG_MAX and ARG_MIN: along an axis the place of the first of the largest or least elements, by rows before it."""
    source, result = r.dtype(r.input(0)), r.dtype(r.output())
    known = source in ("int8", "float32") and result == "int32"
    r.require(holds=known, why=f"types {source} and {result}; there are kernels from int8 and float32 to int32")
    outer, reduced, inner = reduced_block(r)
    shape, kept = r.input(0).shape, r.output().shape
    axis, rows = row_axis(kept), rows_of(kept)
    by_rows = rows > 1 and axis == row_axis(shape) and rows == rows_of(shape) and outer % rows == 0
    lines = outer // rows if by_rows else outer
    parameters: Parameters = {
        "lines": lines,
        "reduced": reduced,
        "inner": inner,
        "least": int(r.op.kind == "ARG_MIN"),
    }
    variant = f"{source.removesuffix('32')}_to_int32"
    kernel = CKernel("extreme_places", variant, parameters, whole=(rows, 0, rows) if by_rows else (1, 0, 1))
    operand = r.row_operand(0, AxisWindow() if by_rows else None)
    return COperator(r.index, r.op.kind, (operand,), r.row_results(), (kernel,), by_rows=by_rows)


def _sizes(r: OperatorReader) -> tuple[tuple[int, int], tuple[int, int]]:
    """Height and width of operand and result, which have the same batches and channels."""
    source, result = r.input(0).shape, r.output().shape
    same = len(source) == len(result) == 4 and (source[0], source[3]) == (result[0], result[3])
    r.require(holds=same and 0 not in result, why=f"maps of shape {list(source)} and {list(result)}")
    return (source[1], source[2]), (result[1], result[2])


def _nearest(extent: int, computed: int, *, corners: bool, half: bool) -> list[int]:
    """The element that each element of the result is, in float32 as TFLM computes it."""
    aligned = corners and computed > 1
    size, count = (extent - 1, computed - 1) if aligned else (extent, computed)
    places = (np.arange(computed, dtype=np.float32) + np.float32(0.5 if half else 0)) * (
        np.float32(size) / np.float32(count)
    )
    places = np.where(places >= 0, np.floor(places + np.float32(0.5)), places) if corners else np.floor(places)
    elements = np.minimum(places.astype(np.int64), extent - 1)
    return [max(int(element), 0) for element in elements]


def resize_nearest(r: OperatorReader) -> COperator:
    """RESIZE_NEAREST_NEIGHBOR, by rows of the operand where each is repeated as often as the others."""
    variant = r.variant("int8", "int16", "float32")
    (height, width), (rows, columns) = _sizes(r)
    corners, half = bool(r.option("AlignCorners")), bool(r.option("HalfPixelCenters"))
    size = r.output().nbytes // r.output().elements
    places, group = _nearest(height, rows, corners=corners, half=half), max(rows // height, 1)
    repeated = [y // group for y in range(height * group)]
    alike = places == repeated and in_groups(r.input(0).shape, r.output().shape, group)
    parameters: Parameters = {
        "rows": const_table("rows", "int16_t", [0] if alike else places),
        "group": group if alike else 0,
        "columns": const_table("columns", "int16_t", _nearest(width, columns, corners=corners, half=half)),
        "in_row": width * r.input(0).shape[3] * size,
        "out_width": columns,
        "pixel": r.input(0).shape[3] * size,
    }
    r.require(holds=bool(variant), why="a type without a kernel")
    if not alike:
        return _resized(r, "resize_nearest", "bytes", parameters)
    kernel, results = CKernel("resize_nearest", "bytes", parameters, whole=(height, 0, height)), r.row_results(height)
    return COperator(r.index, r.op.kind, (r.row_operand(0, AxisWindow()),), results, (kernel,), by_rows=True)


def resize_bilinear(r: OperatorReader) -> COperator:
    """RESIZE_BILINEAR in fixed point with 10 bits behind the point."""
    variant = r.variant("int8")
    (height, width), (rows, columns) = _sizes(r)
    corners, half = bool(r.option("AlignCorners")), bool(r.option("HalfPixelCenters"))
    parameters: Parameters = {
        **_between("row", height, rows, corners=corners, half=half),
        **_between("column", width, columns, corners=corners, half=half),
        "in_width": width,
        "out_width": columns,
        "channels": r.input(0).shape[3],
    }
    return _resized(r, "resize_bilinear", variant, parameters)


def float_bilinear(r: OperatorReader) -> COperator:
    """RESIZE_BILINEAR of floats."""
    (height, width), (rows, columns) = _sizes(r)
    corners, half = bool(r.option("AlignCorners")), bool(r.option("HalfPixelCenters"))
    parameters: Parameters = {
        **_float_between("row", height, rows, corners=corners, half=half),
        **_float_between("column", width, columns, corners=corners, half=half),
        "in_width": width,
        "out_width": columns,
        "channels": r.input(0).shape[3],
    }
    return _resized(r, "float_bilinear", "float", parameters)


def _float_between(name: str, extent: int, computed: int, *, corners: bool, half: bool) -> Parameters:
    """The same in float32."""
    aligned, f32 = corners and computed > 1, np.float32
    scale = f32(extent - 1) / f32(computed - 1) if aligned else f32(extent) / f32(computed)
    places = np.arange(computed, dtype=f32)
    places = (places + f32(0.5)) * scale - f32(0.5) if half else places * scale
    first = np.maximum(np.floor(places).astype(np.int64), 0)
    return {
        f"{name}_first": const_table(f"{name}_first", "int16_t", first),
        f"{name}_second": const_table(
            f"{name}_second", "int16_t", np.minimum(np.ceil(places).astype(np.int64), extent - 1)
        ),
        f"{name}_part": const_table(f"{name}_part", "float", places - first.astype(f32)),
    }


def _between(name: str, extent: int, computed: int, *, corners: bool, half: bool) -> Parameters:
    """The two elements between which each element of the result lies, and how far behind the first."""
    aligned = corners and computed > 1
    size, count = (extent - 1, computed - 1) if aligned else (extent, computed)
    scale = (1024 * size + count // 2) // count
    places = np.arange(computed, dtype=np.int64) * scale + (scale // 2 - 512 if half else 0)
    first = np.maximum(np.fix(places / 1024).astype(np.int64), 0)
    second = np.minimum(np.fix((places + 1023) / 1024).astype(np.int64), extent - 1)
    return {
        f"{name}_first": const_table(f"{name}_first", "int16_t", first),
        f"{name}_second": const_table(f"{name}_second", "int16_t", second),
        f"{name}_part": const_table(f"{name}_part", "int16_t", places - 1024 * first),
    }


def _resized(r: OperatorReader, source: str, variant: str, parameters: Parameters) -> COperator:
    whole = (r.input(0).shape[1], 0, r.output().shape[1])
    kernel = CKernel(source, variant, parameters, whole=whole, repeats=r.output().shape[0])
    return COperator(r.index, r.op.kind, (r.row_operand(0),), r.row_results(), (kernel,))

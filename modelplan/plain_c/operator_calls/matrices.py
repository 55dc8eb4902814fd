"""Products of two matrices that are both computed, as calls of C kernels."""

from math import prod

from modelplan.plain_c.kernel_records import (
    C_TYPES,
    CKernel,
    ConstTable,
    COperator,
    Parameters,
    RowOperand,
    const_table,
)
from modelplan.plain_c.operator_calls.elementwise import repeated_strides
from modelplan.plain_c.operator_calls.fixed_point import LIMITS, quantized_multiplier
from modelplan.plain_c.operator_calls.moving import merged_loops
from modelplan.plain_c.operator_calls.reading import OperatorReader

_NAMES = "ab"


def batch_product(r: OperatorReader) -> COperator:
    """BATCH_MATMUL: matrices whose batches are the same or repeated, each turned where the options say so."""
    variant = r.variant("int8", "int16", "float32")
    shapes, result = [r.input(0).shape, r.input(1).shape], r.output().shape
    r.require(holds=min(map(len, shapes)) >= 2 and len(result) >= 2, why="operands that are no matrices")
    types = {r.dtype(r.input(0)), r.dtype(r.input(1))}
    r.require(holds=len(types) == 1, why=f"operands of types {', '.join(sorted(types))}")
    turned = [bool(r.option("AdjX")), bool(r.option("AdjY"))]
    (rows, depth), (deep, columns) = (
        (shape[-1], shape[-2]) if turn else (shape[-2], shape[-1]) for shape, turn in zip(shapes, turned, strict=True)
    )
    r.require(holds=depth == deep and result[-2:] == (rows, columns), why=f"matrices {shapes[0]} and {shapes[1]}")
    strides = [repeated_strides(r, shape[:-2], result[:-2]) for shape in shapes]
    sizes = [prod(shape[-2:]) for shape in shapes]
    batches = merged_loops([(n, *steps) for n, *steps in zip(result[:-2], *strides, strict=True) if n != 1], 0)
    r.require(holds=len(batches) <= 2, why=f"batches that are repeated along every other axis of {list(result)}")
    parameters: Parameters = {"rows": rows, "columns": columns, "depth": depth}
    loops = [*[(1, 0, 0)] * (2 - len(batches)), *batches]
    for name, (count, *steps) in zip(("outer", "inner"), loops, strict=True):
        parameters[name] = count
        parameters |= {f"{x}_{name}": step * size for x, step, size in zip(_NAMES, steps, sizes, strict=True)}
    parameters |= {"a_row": 1 if turned[0] else depth, "a_deep": rows if turned[0] else 1}
    parameters |= {"b_column": depth if turned[1] else 1, "b_deep": 1 if turned[1] else columns}
    if variant != "float":
        parameters |= _scaled(r, variant)
    sources: list[int | ConstTable] = []
    operands: list[RowOperand] = []
    for position in (0, 1):
        if r.is_constant(position):
            ctype = C_TYPES[r.dtype(r.input(position))]
            sources.append(const_table("constant", ctype, r.constant(position)))
        else:
            sources.append(len(operands))
            operands.append(r.row_operand(position))
    kernel = CKernel("float_matrices" if variant == "float" else "matrices", variant, parameters, tuple(sources))
    return COperator(r.index, r.op.kind, tuple(operands), r.row_results(), (kernel,))


def _scaled(r: OperatorReader, variant: str) -> Parameters:
    (a, a_zero), (b, b_zero), (out, out_zero) = map(r.quantised, (r.input(0), r.input(1), r.output()))
    multiplier, shift = quantized_multiplier(float(a) * float(b) / float(out))
    low, high = LIMITS[variant]
    zeros = {"a_zero": a_zero, "b_zero": b_zero, "out_zero": out_zero}
    r.require(holds=variant == "int8" or not any(zeros.values()), why="16-bit maps whose zero point is not 0")
    return {**zeros, "multiplier": multiplier, "shift": shift, "least": low, "most": high}

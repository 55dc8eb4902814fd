"""Operators that take each element, or each line of elements, by itself."""

from math import prod

import numpy as np

from modelplan.ops.access.rows import ALIKE
from modelplan.plain_c.kernel_records import (
    C_TYPES,
    CKernel,
    ConstTable,
    COperator,
    Parameters,
    RowOperand,
    const_table,
    rows_of,
)
from modelplan.plain_c.operator_calls.expressions import expression_of
from modelplan.plain_c.operator_calls.fixed_point import LIMITS, quantized_multiplier, rounded
from modelplan.plain_c.operator_calls.function_tables import (
    function_table,
    log_softmax_parameters,
    sigmoid_parameters,
    slopes_parameters,
    softmax_parameters,
    wide_softmax_parameters,
)
from modelplan.plain_c.operator_calls.moving import Loop, merged_loops
from modelplan.plain_c.operator_calls.reading import OperatorReader

#: The kernels of two operands that are repeated along axes where they have one element.
_BINARY = {"ADD": "add", "SUB": "add", "MUL": "multiply", "DIV": "divide", "PRELU": "prelu"}
_AXES = ("row", "column", "channel")
#: The kernels of expressions, by the number of operands.
_EXPRESSED = ("each", "pairs", "triples")


def expressed(r: OperatorReader) -> COperator | None:
    """An operator that is one expression of the elements at the same place; None where it is none, for these types."""
    data = r.op.inputs[-1:] if r.op.kind == "SELECT_V2" else r.op.inputs[:1]
    dtype = r.dtype(r.tensor(data[0])).replace("float32", "float") if data and data[0] >= 0 else ""
    expression = expression_of(r.function, dtype)
    if expression is None or not r.op.writes:
        return None
    result = r.dtype(r.output()).replace("float32", "float")
    if r.op.kind == "CAST":
        known = result in ("float", "int8", "int16", "int32", "uint32")
    else:
        known = result == (expression.result or dtype)
    count = len(r.op.inputs)
    r.require(holds=known, why=f"types {dtype} and {result}")
    r.require(holds=count == expression.operands, why=f"{count} operands, there is a kernel for {expression.operands}")
    if r.op.kind in ("ADD", "SUB", "MUL", "DIV"):
        r.require(holds=r.activation() == 0, why=f"a fused activation of {dtype}")
    variant = f"{r.function.lower()}_of_{dtype}" + (f"_to_{result}" if result != dtype else "")
    if r.op.kind == "LEAKY_RELU":
        return one_operand(r, "slope", variant, {"slope": float(r.option("Alpha")), "elements": row_elements(r)})
    if count == 1:
        return one_operand(r, "each", variant, {"elements": row_elements(r)})
    if expression.scaled:
        source = "scaled_pairs" if expression.result else "squared_difference"
        return binary_operator(r, source, variant, _scaled_parameters(r))
    return binary_operator(r, _EXPRESSED[count - 1], variant, {})


def _scaled_parameters(r: OperatorReader) -> Parameters:
    """Comparisons and squared differences of quantised numbers, whose operands are brought to one scale."""
    (a, a_zero), (b, b_zero) = r.quantised(r.input(0)), r.quantised(r.input(1))
    parameters: Parameters = {"a_zero": a_zero, "b_zero": b_zero}
    factors, left = (a, b), 8
    if r.op.kind == "SQUARED_DIFFERENCE":
        twice, left = 2 * float(max(a, b)), 7 if r.variant() == "int8" else 0
        (out, zero), factors = r.quantised(r.output()), (a / twice, b / twice)
        multiplier, shift = quantized_multiplier(twice * twice / ((1 << 2 * left) * out))
        parameters |= {"out_zero": zero, "multiplier": multiplier, "shift": shift}
    for name, factor in zip("ab", factors, strict=True):
        r.require(holds=0 < factor < 1, why=f"scales {a} and {b}, which TFLM's kernel does not take")
        multiplier, shift = quantized_multiplier(factor)
        parameters |= {f"{name}_multiplier": multiplier, f"{name}_shift": shift}
    return {**parameters, "unit": 1 << left}


def binary(r: OperatorReader) -> COperator:
    """ADD, SUB, MUL, DIV and PRELU of two maps; one with fewer elements is repeated along some axes."""
    variant = r.variant("int8") if r.op.kind == "DIV" else r.variant("int8", "int16")
    variant += "_by_int8" if r.op.kind == "PRELU" and variant == "int16" else ""
    return binary_operator(r, _BINARY[r.op.kind], variant, _binary_parameters(r))


def binary_operator(r: OperatorReader, source: str, variant: str, more: Parameters) -> COperator:
    """A kernel of two operands or three, of which some may be constants."""
    types = [r.dtype(r.input(i)) for i in range(len(r.op.inputs))]
    alike = {*types} if types[0] != "bool" else {*types[1:]}  # what SELECT_V2 chooses by is another type
    slopes = r.op.kind == "PRELU" and types == ["int16", "int8"]
    r.require(holds=len(alike) == 1 or slopes, why=f"operands of types {', '.join(types)}")
    loops = broadcast_loops(r)
    rows, width, channels = (count for count, *_ in loops)
    parameters: Parameters = {"width": width, "channels": channels, **more}
    sources: list[int | ConstTable] = []
    operands: list[RowOperand] = []
    by_rows = True
    for position, name in zip(range(len(types)), "abc", strict=False):
        parameters |= {f"{name}_{axis}": loop[1 + position] for axis, loop in zip(_AXES, loops, strict=True)}
        window = None if r.is_constant(position) else r.row_window(position)
        by_rows = by_rows and (window is not None or r.row_span(position) == ALIKE)
        if r.is_constant(position):
            sources.append(const_table("constant", C_TYPES[types[position]], r.constant(position)))
        else:
            sources.append(len(operands))
            operands.append(r.row_operand(position, window))
    kernel = CKernel(source, variant, parameters, tuple(sources), whole=(rows, 0, rows))
    return element_wise(r, tuple(operands), kernel, by_rows=by_rows)


def _all_rows(r: OperatorReader) -> tuple[int, int, int]:
    """What an element-wise kernel is told that computes all rows."""
    rows = rows_of(r.output().shape)
    return rows, 0, rows


def element_wise(
    r: OperatorReader, operands: tuple[RowOperand, ...], kernel: CKernel, *, by_rows: bool = True
) -> COperator:
    """An operator whose elements depend on the same elements of its operands, by rows."""
    nbytes, single = r.output().nbytes, rows_of(r.output().shape) == 1
    in_place = tuple(i for i, o in enumerate(operands) if (o.window or single) and r.tensor(o.tensor).nbytes == nbytes)
    by_rows = by_rows and not single
    return COperator(r.index, r.op.kind, operands, r.row_results(), (kernel,), by_rows=by_rows, in_place=in_place)


def _binary_parameters(r: OperatorReader) -> Parameters:
    if r.op.kind in ("ADD", "SUB"):
        return _sum_parameters(r)
    scales = [r.quantised(t) for t in (r.input(0), r.input(1), r.output())]
    (a, a_zero), (b, b_zero), (out, out_zero) = scales
    multiplier, shift = quantized_multiplier(a / (b * out) if r.op.kind == "DIV" else a * b / out)
    if r.op.kind == "PRELU":
        identity, identity_shift = quantized_multiplier(a / out)
        fields = {"a_zero": a_zero, "b_zero": b_zero, "out_zero": out_zero, "multiplier": multiplier, "shift": shift}
        return {**fields, "identity_multiplier": identity, "identity_shift": identity_shift}
    low, high = r.output_range()
    zeros = {"a_zero": a_zero, "b_zero": b_zero, "out_zero": out_zero}
    return {**zeros, "multiplier": multiplier, "shift": shift, "least": low, "most": high}


def rows_columns(shape: tuple[int, ...]) -> tuple[int, int, int]:
    """A shape as rows, columns and channels."""
    rows = rows_of(shape)
    channels = shape[-1] if shape else 1
    whole = int(np.prod(shape, dtype=np.int64))
    return rows, whole // max(rows * channels, 1), channels


def broadcast_loops(r: OperatorReader) -> list[Loop]:
    """Three loops over the elements of the result: their counts, and the elements from one to the next in each operand.

    The first is that over the rows, where there are several.
    """
    result = r.output().shape
    strides = [repeated_strides(r, r.input(position).shape, result) for position in range(len(r.op.inputs))]
    by_rows = rows_of(result) > 1
    axes = [axis for axis in zip(result, *strides, strict=True) if axis[0] != 1]
    loops = merged_loops(axes, int(by_rows))
    r.require(holds=len(loops) <= 3, why=f"operands that are repeated along every other axis of {list(result)}")
    first = loops[:1] if by_rows else []
    rest = loops[len(first) :]
    return [*first, *[(1, *[0] * len(strides))] * (3 - len(loops)), *rest]


def repeated_strides(r: OperatorReader, shape: tuple[int, ...], result: tuple[int, ...]) -> list[int]:
    """Elements between neighbours along each axis of the result; 0 where an operand of this shape has one element."""
    full = (1,) * (len(result) - len(shape)) + shape
    fits = len(full) == len(result) and all(n in (1, m) for n, m in zip(full, result, strict=True))
    r.require(holds=fits, why=f"an operand of shape {list(shape)} for a result of {list(result)}")
    return [prod(full[i + 1 :]) if n > 1 else 0 for i, n in enumerate(full)]


def _sum_parameters(r: OperatorReader) -> Parameters:
    """What TFLM prepares for a quantised ADD."""
    (a, a_zero), (b, b_zero), (out, out_zero) = map(r.quantised, (r.input(0), r.input(1), r.output()))
    left, twice = 20 if r.variant() == "int8" else 15, 2 * float(max(a, b))
    real = {"a": a / twice, "b": b / twice, "out": twice / ((1 << left) * out)}
    parameters: Parameters = {"a_zero": a_zero, "b_zero": b_zero, "out_zero": out_zero, "left_shift": left}
    parameters["b_sign"] = -1 if r.op.kind == "SUB" else 1
    for name, value in real.items():
        multiplier, shift = quantized_multiplier(value)
        r.require(holds=0 < value < 1, why=f"scales {a}, {b} and {out}, which TFLM's kernel does not take")
        parameters |= {f"{name}_multiplier": multiplier, f"{name}_shift": shift}
    low, high = r.output_range()
    return {**parameters, "least": low, "most": high}


def softmax(r: OperatorReader) -> COperator:
    """SOFTMAX along the last axis."""
    types = r.dtype(r.input(0)), r.dtype(r.output())
    known = types in (("int8", "int8"), ("int8", "int16"), ("int16", "int16"))
    r.require(holds=known, why=f"types {', '.join(types)}; there are kernels for int8 and int16")
    _, columns, channels = rows_columns(r.input(0).shape)
    extents: Parameters = {"lines": columns, "channels": channels}
    if types[0] == "int16":
        return softmax_operator(r, "wide_softmax", "int16", {**wide_softmax_parameters(r), **extents})
    parameters = {**softmax_parameters(r), **extents}
    return softmax_operator(r, "softmax", "int8" if types[1] == "int8" else "int8_to_int16", parameters)


def softmax_operator(r: OperatorReader, source: str, variant: str, parameters: Parameters) -> COperator:
    """A kernel that takes each line along the last axis by itself."""
    shape = r.input(0).shape
    r.require(holds=len(shape) > 0 and shape == r.output().shape, why="operands of different shapes")
    operand = r.row_operand(0, r.row_window(0))
    kernel = CKernel(source, variant, parameters, whole=_all_rows(r))
    return COperator(r.index, r.op.kind, (operand,), r.row_results(), (kernel,), by_rows=rows_of(shape) > 1)


def normalised(r: OperatorReader) -> COperator:
    """L2_NORMALIZATION along the last axis."""
    variant = r.variant("int8", "float32")
    _, columns, channels = rows_columns(r.input(0).shape)
    parameters: Parameters = {"lines": columns, "channels": channels}
    r.require(holds=r.activation() == 0, why="a fused activation, which TFLM's kernel does not take")
    if variant == "float":
        return softmax_operator(r, "float_normalised", variant, parameters)
    return softmax_operator(r, "normalised", variant, {"in_zero": r.quantised(r.input(0))[1], **parameters})


def log_softmax(r: OperatorReader) -> COperator:
    """LOG_SOFTMAX along the last axis."""
    variant = r.variant("int8", "float32")
    _, columns, channels = rows_columns(r.input(0).shape)
    extents: Parameters = {"lines": columns, "channels": channels}
    if variant == "float":
        return softmax_operator(r, "log_softmax", variant, extents)
    r.require(holds=channels < 4096, why=f"{channels} elements along the last axis, whose exponents add up to too much")
    return softmax_operator(r, "quantised_log_softmax", variant, {**log_softmax_parameters(r), **extents})


def sum_of_all(r: OperatorReader) -> COperator:
    """ADD_N of maps of one shape."""
    variant, count = r.variant("int8", "float32"), len(r.op.inputs)
    shapes = {r.input(i).shape for i in range(count)} | {r.output().shape}
    types = {r.dtype(r.input(i)) for i in range(count)}
    r.require(holds=len(shapes) == len(types) == 1, why="operands of different shapes or types")
    parameters: Parameters = {"elements": row_elements(r)}
    if variant == "int8":
        (scale, zero), (result, out_zero) = r.quantised(r.input(0)), r.quantised(r.output())
        alike = {r.quantised(r.input(i)) for i in range(count)} == {(scale, zero)}
        factor = 2 * float(scale) / ((1 << 20) * float(result))
        r.require(holds=alike and 0 < factor < 1, why="scales and zero points that TFLM's kernel does not take")
        multiplier, shift = quantized_multiplier(factor)
        parameters |= {"in_zero": zero, "out_zero": out_zero, "multiplier": multiplier, "shift": shift}
    source = "add_n" if variant == "float" else "quantised_add_n"
    operands = tuple(r.row_operand(i, r.row_window(i)) for i in range(count))
    kernel = CKernel(source, f"{variant}x{count}", parameters, tuple(range(count)), whole=_all_rows(r))
    return element_wise(r, operands, kernel)


def row_elements(r: OperatorReader) -> int:
    """The elements of a row of the result."""
    return r.output().elements // rows_of(r.output().shape)


def unary(r: OperatorReader) -> COperator:
    """A function of 8-bit numbers: a table of all of its values."""
    types = r.dtype(r.input(0)), r.dtype(r.output())
    if types == ("int16", "int16"):
        return _wide_unary(r)
    known = {"int8", "uint8"} if r.op.kind == "QUANTIZE" else {"int8"}
    r.require(
        holds={*types} <= known, why=f"types {', '.join(types)}; there are kernels for {', '.join(sorted(known))}"
    )
    parameters: Parameters = {
        "values": function_table(r),
        "least": LIMITS[types[0]][0],
        "elements": row_elements(r),
    }
    variant = types[0] if types[0] == types[1] else f"{types[0]}_to_{types[1]}"
    return one_operand(r, "look_up", variant, parameters)


def one_operand(r: OperatorReader, source: str, variant: str, parameters: Parameters) -> COperator:
    """A kernel that makes each element of the result from the same element of operand 0."""
    operand = r.row_operand(0, r.row_window(0))
    return element_wise(r, (operand,), CKernel(source, variant, parameters, whole=_all_rows(r)))


def quantise(r: OperatorReader) -> COperator:
    """QUANTIZE: from floats, or from one scale to another."""
    source, result = r.dtype(r.input(0)), r.dtype(r.output())
    if source in ("int8", "uint8") and result in ("int8", "uint8"):
        return unary(r)
    scale, zero = r.quantised(r.output())
    if source == "float32" and result in ("int8", "int16"):
        parameters: Parameters = {"scale": float(scale), "zero": zero, "elements": row_elements(r)}
        return one_operand(r, "quantise", f"float_to_{result}", parameters)
    known = source in ("int8", "int16", "int32") and result in ("int8", "int16", "int32")
    r.require(holds=(known and source != "int32") or result != "int32", why=f"types {source} and {result}")
    multiplier, shift = quantized_multiplier(r.quantised(r.input(0))[0] / scale)
    parameters = {
        "in_zero": r.quantised(r.input(0))[1],
        "out_zero": zero,
        "multiplier": multiplier,
        "shift": shift,
        "elements": row_elements(r),
    }
    return one_operand(r, "rescale", source if source == result else f"{source}_to_{result}", parameters)


def dequantise(r: OperatorReader) -> COperator:
    """DEQUANTIZE: to floats; nothing of constants of 16 bits, which their readers unpack."""
    if r.unpacks_half:
        return COperator(r.index, r.op.kind, (), (), ())
    source, result = r.dtype(r.input(0)), r.dtype(r.output())
    known = source in ("int8", "uint8", "int16") and result == "float32"
    r.require(holds=known, why=f"types {source} and {result}")
    scale, zero = r.quantised(r.input(0))
    parameters: Parameters = {"scale": float(scale), "zero": zero, "elements": row_elements(r)}
    return one_operand(r, "dequantise", source, parameters)


def _wide_unary(r: OperatorReader) -> COperator:
    """A function of 16-bit numbers."""
    if r.op.kind == "RELU6":
        scale, zero = r.quantised(r.input(0))
        six = min(rounded(float(np.float32(6) / np.float32(scale))) + zero, LIMITS["int16"][1])
        return one_operand(r, "bounded", "int16", {"least": zero, "most": six, "elements": row_elements(r)})
    if r.op.kind in ("RELU", "LEAKY_RELU"):
        return one_operand(r, "slopes", "int16", slopes_parameters(r) | {"elements": row_elements(r)})
    if r.op.kind == "ABS":
        zeros = r.quantised(r.input(0))[1], r.quantised(r.output())[1]
        r.require(holds=zeros == (0, 0), why="zero points that are not 0")
        factor = float(r.quantised(r.input(0))[0]) / float(r.quantised(r.output())[0])
        multiplier, shift = quantized_multiplier(factor)
        parameters: Parameters = {"multiplier": multiplier, "shift": shift, "elements": row_elements(r)}
        return one_operand(r, "magnitude", "int16", parameters)
    r.require(holds=r.op.kind in ("LOGISTIC", "TANH"), why="types int16, int16; there are kernels for 8 bits")
    zeros = r.quantised(r.input(0))[1], r.quantised(r.output())[1]
    known = zeros == (0, 0) and r.quantised(r.output())[0] == 1 / 32768
    r.require(holds=known, why="a result whose scale is not 1 / 32768, or zero points that are not 0")
    parameters = {"tangent": int(r.op.kind == "TANH"), **sigmoid_parameters(r), "elements": row_elements(r)}
    return one_operand(r, "sigmoid", "int16", parameters)

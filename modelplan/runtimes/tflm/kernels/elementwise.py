"""TFLM's reference kernels that treat elements one by one: arithmetic, comparisons, activations, tables."""

from functools import partial

from modelplan.runtimes.tflm.kernels.checks import (
    QUANTISED,
    added_scales,
    below_one,
    first_scale,
    one_of,
    rank_between,
    same_scales,
    same_shape,
    same_types,
    scale_near,
    scaled,
    unscaled,
    zero_point,
    zero_points,
)
from modelplan.runtimes.tflm.kernels.preparation import Operator, Preparation, Prepare

_FLOAT = ("float32",)
_FLOAT_INT8 = ("float32", "int8")
_FLOAT_QUANTISED = ("float32", "int8", "int16")


def _unary(p: Preparation) -> None:
    p.counts(1)
    same_types(p, p.input(), p.output())


def _unary_of_any_type(p: Preparation) -> None:
    p.counts(1)
    p.input()
    p.output()


def _rounding(p: Preparation) -> None:
    source, result = p.input(), p.output()
    p.counts(1)
    same_types(p, source, result)
    same_shape(p, source, result)


def _rescaled(p: Preparation) -> None:
    """Prepares ABS and RSQRT."""
    p.counts(1)
    source, result = p.input(), p.output()
    same_types(p, source, result)
    quantised = source.dtype == "int8" or (source.dtype == "int16" and source.scales > 0)
    if quantised:
        scaled(p, source, "input 0")
        scaled(p, result, "output")
    if quantised and source.dtype == "int16":
        zero_points(p, source, result)


def _add(p: Preparation) -> None:
    add(p)
    if p.call.output().dtype == "int8":
        for operand in (p.call.input(0), p.call.input(1)):
            point = operand.quantization.zero_point if operand.quantization is not None else 0
            p.require(-128 <= point <= 127, f"a zero point of {point}; its kernel takes -128 to 127")


def add(p: Preparation) -> None:
    """ADD, which CMSIS-NN and ESP-NN prepare alike."""
    operand, other, result = p.input(0), p.input(1), p.output()
    if result.dtype in QUANTISED:
        scaled(p, result, "output")
        added_scales(p, (operand, other, result), _SUM_SHIFT[result.dtype])
    if result.dtype == "int32":
        unscaled(p, operand, "input 0")
        unscaled(p, other, "input 1")


def _sub(p: Preparation) -> None:
    operand, other, result = p.input(0), p.input(1), p.output()
    if result.dtype in QUANTISED:
        added_scales(p, (operand, other, result), _SUM_SHIFT[result.dtype])
    if result.dtype == "int16" and operand.shape == other.shape:
        zero_point(p, operand, "input 0")
        zero_point(p, other, "input 1")
    if result.dtype == "int32":
        unscaled(p, operand, "input 0")
        unscaled(p, other, "input 1")
        unscaled(p, result, "output")


def mul(p: Preparation) -> None:
    """MUL, which CMSIS-NN and ESP-NN prepare alike."""
    operand, other, result = p.input(0), p.input(1), p.output()
    p.counts(2)
    same_types(p, operand, other)
    if operand.dtype == "int16" and result.dtype in QUANTISED:
        zero_points(p, operand, other, result)


def _div(p: Preparation) -> None:
    operand, other, result = p.input(0), p.input(1), p.output()
    same_types(p, operand, other, result)
    if result.dtype == "int32":
        unscaled(p, operand, "input 0")
        unscaled(p, other, "input 1")


def _binary(p: Preparation) -> None:
    """FLOOR_DIV and FLOOR_MOD."""
    p.counts(2)
    same_types(p, p.input(0), p.input(1), p.output())


def _squared_difference(p: Preparation) -> None:
    p.counts(2)
    operand, other, result = p.input(0), p.input(1), p.output()
    same_types(p, operand, other)
    if operand.dtype == "int16":
        zero_points(p, operand, other, result)
    if operand.dtype in QUANTISED:
        first, second = first_scale(operand), first_scale(other)
        largest = max(first or 0.0, second or 0.0)
        for scale in (first, second):
            below_one(p, "an input's multiplier", scale, 0.5 / largest if largest else 0.0)


def _comparison(p: Preparation) -> None:
    operand, other = p.input(0), p.input(1)
    if operand.dtype == "int8":
        below_one(p, "input 0's multiplier", first_scale(operand))
        below_one(p, "input 1's multiplier", first_scale(other))


def _add_n(p: Preparation) -> None:
    count = len(p.call.inputs)
    p.require(count >= 2, f"{count} inputs; its kernel takes 2 or more")
    first, result = p.input(0), p.output()
    same_types(p, result, first)
    for index in range(1, count):
        other = p.input(index)
        same_shape(p, first, other)
        same_types(p, first, other)
        if first.dtype == "int8":
            same_scales(p, first, other)
    if result.dtype == "int8":
        p.keep_struct(("int32*6", "int*4"))
    p.scratch_pointers(count)
    if result.dtype == "int8":
        added_scales(p, (first, result), 20)


def _relu(p: Preparation) -> None:
    source, result = p.input(), p.output()
    if source.dtype == "int16":
        zero_points(p, source, result)


def _relu6(p: Preparation) -> None:
    p.input()


def _prelu(p: Preparation) -> None:
    source, slope, result = p.input(0), p.input(1), p.output()
    for operand, what in ((source, "input 0"), (slope, "input 1"), (result, "output")):
        rank_between(p, operand, what, 0, 4 if source.dtype == "float32" else 6)
    if result.dtype == "int16":
        one_of(p, slope, "input 1", "int8")


def _sigmoidal(p: Preparation, source_zero: int | None) -> None:
    """LOGISTIC and TANH: tables in fixed point with the scales that they were made for."""
    source, result = p.input(), p.output()
    same_types(p, source, result)
    if source.dtype == "int8" and source_zero is not None:
        zero_point(p, result, "output", source_zero)
    if source.dtype == "int16":
        zero_points(p, source, result)
        scale_near(p, result, "output", 2.0**-15, 2.0**-15 * 1e-3)


def _tanh(p: Preparation) -> None:
    p.input()
    p.counts(1)
    _sigmoidal(p, None)


def softmax(p: Preparation) -> None:
    """SOFTMAX: with 16-bit input two tables of 513 values stay."""
    p.counts(1)
    source = p.input()
    p.require(source.rank >= 1, "a scalar; its kernel takes one dimension or more")
    result = p.output()
    if source.dtype == "int16":
        p.keep(2 * 513)
        p.keep(2 * 513)
    if result.dtype == "int16":
        one_of(p, source, "input 0", "int8", "int16")
    else:
        same_types(p, source, result)
    _softmax_scales(p)


def _softmax_scales(p: Preparation) -> None:
    source, result = p.call.input(0), p.call.output()
    if source.dtype == "int16":
        zero_points(p, source, result)
        scale_near(p, result, "output", 2.0**-15, 2.0**-15 * 1e-3)
    elif source.dtype == "int8" and result.dtype == "int16":
        zero_point(p, result, "output", -32768)
        scale_near(p, result, "output", 2.0**-16, 2.0**-16 * 1e-3)
    elif source.dtype == "int8":
        zero_point(p, result, "output", -128)
        scale_near(p, result, "output", 2.0**-8)


def _log_softmax(p: Preparation) -> None:
    p.counts(1)
    source, result = p.input(), p.output()
    same_types(p, source, result)
    same_shape(p, source, result)
    p.require(source.rank >= 1, "a scalar; its kernel takes one dimension or more")
    if source.dtype == "int8":
        p.keep_struct(("int32*4", "int", "size", "size"))
        scale_near(p, result, "output", 16.0 / 256)
        zero_point(p, result, "output", 127)


def _l2_normalization(p: Preparation) -> None:
    p.counts(1)
    source, result = p.input(), p.output()
    rank_between(p, source, "input 0", 1, 4)
    one_of(p, result, "output", *_FLOAT_INT8)
    same_types(p, source, result)
    p.require(not p.call.number("fused_activation_function"), "a fused activation, which its kernel does not compute")


def _quantize(p: Preparation) -> None:
    p.counts(1)
    source, result = p.input(), p.output()
    known = scaled(p, result, "output")
    p.require(known is None or known.scales == 1, "an output with a scale for each channel; its kernel takes one scale")
    wanted = REQUANTISED.get(source.dtype, ())
    one_of(p, result, f"output of {source.dtype} input", *wanted)


def _dequantize(p: Preparation) -> None:
    p.counts(1)
    p.input()
    one_of(p, p.output(), "output", "float32")


def _cast(p: Preparation) -> None:
    p.counts(1)
    p.input()
    one_of(p, p.output(), "output", *_CAST_TO, *(("bool",) if p.later else ()))


#: Fraction bits of sums by type of result.
_SUM_SHIFT = {"int8": 20, "int16": 15}

_CAST_TO = ("int8", "int16", "int32", "uint32", "float32")

#: The types that QUANTIZE makes of each type of input.
REQUANTISED = {
    "float32": ("int8", "int16"),
    "int32": ("int8", "int16"),
    "int16": ("int8", "int16", "int32"),
    "int8": ("int8", "uint8", "int16", "int32"),
    "uint8": ("int8",),
}

ADD_DATA = ("bool", "int*2", "int32*5", "int*2", "int32*3", "float*2")
_SUB_DATA = ("bool", "int*2", "int32*5", "int*2", "int32*3")
_COMPARISON_DATA = ("int", "int32*2", "int", "int32*2", "int", "bool")
#: ArithmeticParams of TFLM's kernels.
ARITHMETIC = (
    "int8", "int32*4", "int*2", "int32", "int", "int32", "int", "int32*2", "float*2", "int64*2", "int16*2", "int*5",
)  # fmt: skip
SOFTMAX_DATA = ("double", "int32*4", "int", "int32", "float", "pointer*5")
_FOUR_WORDS = ("int32*3", "int")
#: The kind of quantisation is an enum of four bytes on every ABI.
_RESCALE = ("int32", "int*3", "bool", "int", "enum")

_COMPARED = ("float32", "int32", "int64", "int8")


def _compare(*types: str) -> Operator:
    return Operator(data=_COMPARISON_DATA, prepare=_comparison, types=types, in_place=("int8",))


def _float(prepare: Prepare) -> Operator:
    return Operator(prepare=prepare, types=_FLOAT, in_place=_FLOAT)


OPERATORS: dict[str, Operator] = {
    "ABS": Operator(data=_RESCALE, prepare=_rescaled, types=_FLOAT_QUANTISED, in_place=_FLOAT_INT8),
    "RSQRT": Operator(data=_RESCALE, prepare=_rescaled, types=_FLOAT_QUANTISED, in_place=_FLOAT_INT8),
    **dict.fromkeys(("SIN", "COS", "LOG", "SQRT", "SQUARE"), _float(_unary)),
    "LOGICAL_NOT": Operator(prepare=_unary, types=("bool",), in_place=("bool",)),
    "LOGICAL_AND": Operator(in_place=("bool",)),
    "LOGICAL_OR": Operator(in_place=("bool",)),
    **dict.fromkeys(("CEIL", "EXP", "ROUND"), _float(_rounding)),
    "FLOOR": Operator(types=_FLOAT, in_place=_FLOAT),
    "NEG": Operator(types=_FLOAT, in_place=_FLOAT),
    "ADD": Operator(("enum", "bool"), ADD_DATA, _add, ("float32", "int32", *QUANTISED), -1, in_place=_FLOAT_QUANTISED),
    "SUB": Operator(("enum", "bool"), _SUB_DATA, _sub, ("float32", "int32", *QUANTISED), -1, in_place=_FLOAT_QUANTISED),
    "MUL": Operator(
        ("enum",), ("int32*6", "int", "float*2"), mul, ("float32", "int32", *QUANTISED), in_place=_FLOAT_QUANTISED
    ),
    "DIV": Operator(("enum",), ("int32*6", "int"), _div, ("float32", "int32", "int8"), -1, in_place=_FLOAT),
    "FLOOR_DIV": _float(_binary),
    "FLOOR_MOD": _float(_binary),
    "SQUARED_DIFFERENCE": Operator(
        (), ("bool", ARITHMETIC), _squared_difference, ("float32", "int32", *QUANTISED), in_place=_FLOAT
    ),
    "MAXIMUM": Operator(types=("float32", "int8", "int16", "int32", "int64"), typed=-1, in_place=_FLOAT_INT8),
    "MINIMUM": Operator(types=("float32", "int8", "int16", "int32", "int64"), typed=-1, in_place=_FLOAT_INT8),
    "ADD_N": Operator(prepare=_add_n, types=_FLOAT_INT8, typed=-1),
    "EQUAL": _compare("bool", *_COMPARED),
    "NOT_EQUAL": _compare("bool", *_COMPARED),
    "GREATER": _compare(*_COMPARED, "int16"),
    **dict.fromkeys(("GREATER_EQUAL", "LESS", "LESS_EQUAL"), _compare(*_COMPARED)),
    "RELU": Operator((), (("int8", "int32*2"), "int32*3", "int"), _relu, _FLOAT_QUANTISED, in_place=_FLOAT_INT8),
    "RELU6": Operator((), ("int32*2",), _relu6, _FLOAT_QUANTISED, in_place=_FLOAT_INT8),
    "PRELU": Operator((), ("int32*4", "int", "int32", "int"), _prelu, _FLOAT_QUANTISED, in_place=_FLOAT_INT8),
    "LEAKY_RELU": Operator(("float",), ("int32*6",), _unary, _FLOAT_QUANTISED, in_place=_FLOAT_QUANTISED),
    "ELU": Operator((), ("int8*256",), _unary, _FLOAT_INT8, in_place=_FLOAT_INT8),
    "HARD_SWISH": Operator(
        (), ("int16*3", "int", "int16", "int"), _unary_of_any_type, _FLOAT_INT8, in_place=_FLOAT_INT8
    ),
    "LOGISTIC": Operator(
        (), _FOUR_WORDS, partial(_sigmoidal, source_zero=-128), _FLOAT_QUANTISED, in_place=_FLOAT_QUANTISED
    ),
    "TANH": Operator((), _FOUR_WORDS, _tanh, _FLOAT_QUANTISED, in_place=_FLOAT_QUANTISED),
    "SOFTMAX": Operator(("float",), SOFTMAX_DATA, softmax, _FLOAT_QUANTISED, in_place=_FLOAT_QUANTISED),
    "LOG_SOFTMAX": Operator((), (), _log_softmax, _FLOAT_INT8, in_place=_FLOAT),
    "L2_NORMALIZATION": Operator(("enum",), ("int32",), _l2_normalization, _FLOAT_INT8, -1, in_place=_FLOAT_INT8),
    "QUANTIZE": Operator(
        (),
        (("int32", "double"), "int32", "int", "int32"),
        _quantize,
        tuple(REQUANTISED),
        front_to_back=("float32", "int32", "int16", "int8", "uint8"),
    ),
    "DEQUANTIZE": Operator(
        (),
        (("double", "int32"), "int32", "int", "int32"),
        _dequantize,
        ("int8", "int16", "uint8"),
        front_to_back=("int8",),
    ),
    "CAST": Operator(("enum", "enum"), (), _cast, ("int8", "int16", "int32", "uint32", "float32", "bool")),
    "ZEROS_LIKE": Operator((), (), _unary_of_any_type, ("int64", "int32", "int8", "float32")),
}

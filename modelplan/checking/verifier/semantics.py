"""What operators do to bytes: the verifier's own tables, independent of those that planning uses.

An *overwrite* reads element i of an operand before it writes element i of the output, and nothing of that operand
afterwards.
Source: tflite-micro and ONNX kernels; in-place tolerance measured on tflite-micro's reference kernels.
"""

import numpy as np

from modelplan.checking.verifier.program import Program, Step
from modelplan.model import BoolArray

#: Operators of .tflite files that leave the elements of operand 0 as they are.
RESHAPES = {"RESHAPE", "SQUEEZE", "EXPAND_DIMS"}
#: Operators that put operands side by side, along an axis that these have or along a new one; and that take them apart.
CONCATENATIONS = {"CONCATENATION", "Concat"}
JOINS = CONCATENATIONS | {"PACK"}
SPLITS = {"SPLIT", "SPLIT_V", "Split", "UNPACK"}
#: Operators of .tflite files that leave some elements out, or add some of one value.
SLICES = {"SLICE", "STRIDED_SLICE"}
PADS = {"PAD", "PADV2"}

#: Functions of one number that run alike whatever they are given: no division, no root, no rounding of floats; all.
_LEVEL_FUNCTIONS = {"HARD_SWISH", "LOGISTIC", "TANH", "ABS", "NEG"}
FUNCTIONS_OF_ONE = _LEVEL_FUNCTIONS | {"EXP", "LOG", "SQRT", "FLOOR", "CEIL", "SIN", "COS", "ELU", "ROUND"}
#: Operators that run so: of one operand, and all of them.
_ALIKE = _LEVEL_FUNCTIONS | {"RELU", "RELU6", "RELU_N1_TO_1", "LEAKY_RELU", "PRELU"}
RUN_ALIKE = _ALIKE | RESHAPES | JOINS | {
    "ADD", "SUB", "MUL", "MAXIMUM", "MINIMUM", "SQUARED_DIFFERENCE", "CONV_2D", "DEPTHWISE_CONV_2D", "MAX_POOL_2D",
    "AVERAGE_POOL_2D", "TRANSPOSE_CONV", "RESIZE_NEAREST_NEIGHBOR", "RESIZE_BILINEAR", "SPACE_TO_DEPTH",
    "DEPTH_TO_SPACE", "TRANSPOSE",
}  # fmt: skip
#: Operators whose result is operand 0: always, of a Dropout where it drops nothing.
VIEWS = {
    "tflite": {*RESHAPES, "BITCAST", "STABLEHLO_RESHAPE"},
    "onnx": {
        "Reshape", "Flatten", "Squeeze", "Unsqueeze", "Identity", "BitCast", "Optional", "OptionalGetElement",
        "Dropout",
    },
}  # fmt: skip

#: Operators that may write output 0 over operand 0 where both have the same elements. What needs more than one element
#: of an operand for one of the output stands in `_ROWS_AND_UPDATES` too.
FIRST_OPERAND = {
    "tflite": _ALIKE | {
        "CEIL", "COS", "ELU", "EXP", "FLOOR", "GELU", "LOG", "LOGICAL_NOT", "RELU_0_TO_1", "ROUND", "RSQRT", "SIGN",
        "SIN", "SQRT", "SQUARE", "ZEROS_LIKE", "FAKE_QUANT", "QUANTIZE", "CAST",
        "SOFTMAX", "LOG_SOFTMAX", "L2_NORMALIZATION", "CUMSUM", "DYNAMIC_UPDATE_SLICE", "MATRIX_SET_DIAG",
        "STABLEHLO_SCATTER", "STABLEHLO_DYNAMIC_UPDATE_SLICE", "STABLEHLO_CONVERT", "STABLEHLO_LOGISTIC",
        "STABLEHLO_ABS", "STABLEHLO_COSINE", "STABLEHLO_EXPONENTIAL", "STABLEHLO_FLOOR", "STABLEHLO_LOG",
        "STABLEHLO_NEGATE", "STABLEHLO_RSQRT", "STABLEHLO_TANH", "STABLEHLO_CBRT",
    },
    "onnx": {
        "Abs", "Acos", "Acosh", "Asin", "Asinh", "Atan", "Atanh", "BitwiseNot", "Ceil", "Celu", "Clip", "Cos",
        "Cosh", "Elu", "Erf", "Exp", "Floor", "Gelu", "HardSigmoid", "HardSwish", "LeakyRelu", "Log", "Mish", "Neg",
        "Not", "QuantizeLinear", "Reciprocal", "Relu", "Round", "Selu", "Shrink", "Sigmoid", "Sign", "Sin", "Sinh",
        "Softplus", "Softsign", "Sqrt", "Swish", "Tan", "Tanh", "ThresholdedRelu", "Cast", "CastLike",
        "BatchNormalization", "Bernoulli", "IsNaN", "IsInf", "RotaryEmbedding",
        "Softmax", "LogSoftmax", "Hardmax", "LayerNormalization", "RMSNormalization", "GroupNormalization",
        "InstanceNormalization", "MeanVarianceNormalization", "LpNormalization",
        "ScatterElements", "Scatter", "ScatterND", "TensorScatter", "CumSum", "CumProd", "Trilu", "PRelu",
        "com.microsoft.BiasGelu", "com.microsoft.FastGelu", "com.microsoft.QuickGelu",
    },
}  # fmt: skip

#: Operators that may write output 0 over any operand with the same elements as the output; as above.
ANY_OPERAND = {
    "tflite": {
        "ADD", "SUB", "MUL", "DIV", "FLOOR_DIV", "FLOOR_MOD", "MAXIMUM", "MINIMUM", "POW", "SQUARED_DIFFERENCE",
        "ATAN2", "BITWISE_XOR", "RIGHT_SHIFT", "LOGICAL_AND", "LOGICAL_OR", "ADD_N", "SELECT", "SELECT_V2", "EQUAL",
        "NOT_EQUAL", "GREATER", "GREATER_EQUAL", "LESS", "LESS_EQUAL", "STABLEHLO_ADD", "STABLEHLO_MULTIPLY",
        "STABLEHLO_MAXIMUM", "STABLEHLO_MINIMUM", "STABLEHLO_DIVIDE", "STABLEHLO_AND", "STABLEHLO_OR",
        "STABLEHLO_POWER", "STABLEHLO_REMAINDER", "STABLEHLO_SUBTRACT", "STABLEHLO_SHIFT_LEFT", "STABLEHLO_SELECT",
    },
    "onnx": {
        "Add", "Sub", "Mul", "Div", "Mod", "Pow", "And", "Or", "Xor", "BitwiseAnd", "BitwiseOr", "BitwiseXor",
        "BitShift", "Sum", "Max", "Min", "Mean", "Where", "Equal", "Greater", "Less", "GreaterOrEqual",
        "LessOrEqual", "com.microsoft.SkipLayerNormalization",
    },
}  # fmt: skip

#: Operators that may write output 0 over one operand other than the first.
OTHER_OPERAND = {
    "STABLEHLO_CLAMP": 1,
    "com.microsoft.FusedConv": 3,
    "com.microsoft.NhwcFusedConv": 3,
    "com.microsoft.nchwc.Conv": 3,
}

#: Of the operators that may work in place those that look at more than one element for an element of the result.
_ROWS_AND_UPDATES = {
    "SOFTMAX", "LOG_SOFTMAX", "L2_NORMALIZATION", "CUMSUM", "DYNAMIC_UPDATE_SLICE", "MATRIX_SET_DIAG",
    "STABLEHLO_SCATTER", "STABLEHLO_DYNAMIC_UPDATE_SLICE", "RotaryEmbedding", "Softmax", "LogSoftmax", "Hardmax",
    "LayerNormalization", "RMSNormalization", "GroupNormalization", "InstanceNormalization",
    "MeanVarianceNormalization", "LpNormalization", "ScatterElements", "Scatter", "ScatterND", "TensorScatter",
    "CumSum", "CumProd", "Trilu", "com.microsoft.SkipLayerNormalization",
}  # fmt: skip
_WIDENING = {"DEQUANTIZE", "DequantizeLinear"}
#: Operators that make each element of the one at its place, of operands of one place along an axis of that.
POINTWISE = (
    FIRST_OPERAND["tflite"] | FIRST_OPERAND["onnx"] | ANY_OPERAND["tflite"] | ANY_OPERAND["onnx"] | _WIDENING
) - _ROWS_AND_UPDATES

OPAQUE = "ethos-u"


def may_overwrite(program: Program, step: Step, operand: int, output: int) -> bool:
    """Whether the kernel may write output `output` over operand `operand`, element over element."""
    if output != 0 or _overwritable(program.format, step.kind) not in (operand, _ANY):
        return False
    x, y = program.values[step.inputs[operand]], program.values[step.outputs[output]]
    return (x.elements, x.nbytes) == (y.elements, y.nbytes)


def overwritable_reads(program: Program) -> BoolArray:
    """For each row of the program's reads whether `may_overwrite` holds for it and the step's first output."""
    columns = program.columns
    reads, operands = columns.reads, [_overwritable(program.format, kind) for kind in columns.kinds]
    allowed = np.array(operands, np.int64)[columns.kind[reads.step]]
    result = columns.result[reads.step]
    overwritable: BoolArray = (result >= 0) & ((allowed == _ANY) | (allowed == reads.operand))
    for counts in (columns.elements, columns.nbytes):
        overwritable &= counts[reads.tensor] == counts[result]
    return overwritable


_ANY, _NONE = -1, -2


def _overwritable(form: str, kind: str) -> int:
    """The operand that a kind of operator may write output 0 over; `_ANY` of them, or `_NONE`."""
    if kind in ANY_OPERAND[form]:
        return _ANY
    return 0 if kind in FIRST_OPERAND[form] else OTHER_OPERAND.get(kind, _NONE)


def is_opaque(step: Step) -> bool:
    """Whether the operator orders its own reads and writes, so that its operands may overlap as its compiler chose."""
    return step.kind == OPAQUE

"""What operators do to bytes: the verifier's own tables, independent of those that planning uses.

A *move* puts bytes of an input, unchanged, into an output. An *overwrite* reads element i of an operand before it
writes element i of the output, and nothing of that operand afterwards.
Source: tflite-micro and ONNX kernels; in-place tolerance measured on tflite-micro's reference kernels.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from math import prod
from weakref import WeakKeyDictionary

import numpy as np

from modelplan.checking.verifier.indexing import INDEXED, contiguous_run
from modelplan.checking.verifier.program import Program, Step, Value
from modelplan.model import BoolArray

#: Operators of .tflite files that leave the elements of operand 0 as they are.
RESHAPES = {"RESHAPE", "SQUEEZE", "EXPAND_DIMS"}
_VIEWS = {
    "tflite": {*RESHAPES, "BITCAST", "STABLEHLO_RESHAPE"},
    "onnx": {
        "Reshape", "Flatten", "Squeeze", "Unsqueeze", "Identity", "BitCast", "Optional", "OptionalGetElement",
        "Dropout",
    },
}  # fmt: skip
_JOINS = {"tflite": {"CONCATENATION", "PACK"}, "onnx": {"Concat"}}
_SPLITS = {"tflite": {"SPLIT", "SPLIT_V", "UNPACK"}, "onnx": {"Split"}}

#: Operators that may write output 0 over operand 0 where both have the same elements. What needs more than one element
#: of an operand for one of the output stands in `safe_overlap.py` too.
FIRST_OPERAND = {
    "tflite": {
        "ABS", "CEIL", "COS", "ELU", "EXP", "FLOOR", "GELU", "HARD_SWISH", "LEAKY_RELU", "LOG", "LOGICAL_NOT",
        "LOGISTIC", "NEG", "RELU", "RELU_0_TO_1", "RELU_N1_TO_1", "RELU6", "ROUND", "RSQRT", "SIGN", "SIN", "SQRT",
        "SQUARE", "TANH", "ZEROS_LIKE", "FAKE_QUANT", "QUANTIZE", "CAST",
        "SOFTMAX", "LOG_SOFTMAX", "L2_NORMALIZATION", "CUMSUM", "DYNAMIC_UPDATE_SLICE", "PRELU", "MATRIX_SET_DIAG",
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

OPAQUE = "ethos-u"


@dataclass(frozen=True, slots=True)
class Move:
    """`length` bytes that output `output` takes, from byte `to`, out of input `input`, from byte `start`."""

    input: int
    start: int
    output: int
    to: int
    length: int


def moves_of(program: Program, step: Step) -> list[Move]:
    """The moves of a step; together they fill each output that they touch.

    Cost: O(operands).
    """
    if step.moves:
        pairs = zip(step.inputs, step.outputs, strict=True)
        return [Move(i, 0, i, 0, program.values[x].nbytes) for i, (x, _) in enumerate(pairs) if x >= 0]
    if step.kind in _VIEWS[program.format]:
        return _view(program, step)
    if step.kind in _JOINS[program.format]:
        return _joined(program, step)
    if step.kind in _SPLITS[program.format]:
        return _parted(program, step)
    run = contiguous_run(program, step)
    return [Move(0, run[0], 0, 0, run[1])] if run else []


def all_moves(program: Program) -> Mapping[int, list[Move]]:
    """The moves of each step that has any, by the step's index; remembered as long as the program is."""
    known = _MOVES.get(program)
    if known is None:
        form = program.format
        kinds = _VIEWS[form] | _JOINS[form] | _SPLITS[form] | INDEXED
        moving = (i for i, step in enumerate(program.steps) if step.moves or step.kind in kinds)
        known = {i: moves for i in moving if (moves := moves_of(program, program.steps[i]))}
        _MOVES[program] = known
    return known


_MOVES: WeakKeyDictionary[Program, Mapping[int, list[Move]]] = WeakKeyDictionary()


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


def _view(program: Program, step: Step) -> list[Move]:
    if not step.inputs or step.inputs[0] < 0 or not step.outputs or step.outputs[0] < 0:
        return []
    x, y = program.values[step.inputs[0]], program.values[step.outputs[0]]
    if x.nbytes != y.nbytes or (step.kind == "Dropout" and _trains(step)):
        return []
    return [Move(0, 0, 0, 0, y.nbytes)]


def _trains(step: Step) -> bool:
    """Whether a Dropout may drop: its mode is an operand that is not a constant zero."""
    mode = step.attribute("operand 2")
    return len(step.inputs) > 2 and step.inputs[2] >= 0 and (mode is None or mode not in (False, 0, (0,), (False,)))


def _joined(program: Program, step: Step) -> list[Move]:
    """Inputs end to end, where all axes before the joined one have extent 1."""
    if any(x < 0 for x in step.inputs) or not step.outputs or step.outputs[0] < 0:
        return []
    whole = program.values[step.outputs[0]]
    parts = [program.values[x] for x in step.inputs]
    if not _contiguous(whole, step) or sum(p.nbytes for p in parts) != whole.nbytes:
        return []
    starts = accumulate((part.nbytes for part in parts), initial=0)
    return [Move(i, 0, 0, at, part.nbytes) for i, (part, at) in enumerate(zip(parts, starts, strict=False))]


def _parted(program: Program, step: Step) -> list[Move]:
    """Outputs end to end, where all axes before the split one have extent 1."""
    data = 1 if step.kind == "SPLIT" else 0
    if len(step.inputs) <= data or step.inputs[data] < 0 or any(y < 0 for y in step.outputs):
        return []
    whole = program.values[step.inputs[data]]
    parts = [program.values[y] for y in step.outputs]
    if not _split_contiguous(whole, parts, step) or sum(p.nbytes for p in parts) != whole.nbytes:
        return []
    starts = accumulate((part.nbytes for part in parts), initial=0)
    return [Move(data, at, i, 0, part.nbytes) for i, (part, at) in enumerate(zip(parts, starts, strict=False))]


def _contiguous(whole: Value, step: Step) -> bool:
    axis = step.attribute("axis")
    if not isinstance(axis, int) or isinstance(axis, bool):
        return False
    return prod(whole.shape[: axis % max(len(whole.shape), 1)]) == 1


def _split_contiguous(whole: Value, parts: Sequence[Value], step: Step) -> bool:
    """The axis of SPLIT is a tensor; the first axis in which the parts differ from the whole is it."""
    if step.kind in ("UNPACK", "Split"):
        return _contiguous(whole, step)
    differing = [a for a, extent in enumerate(whole.shape) if any(p.shape[a : a + 1] != (extent,) for p in parts)]
    return len(differing) == 1 and prod(whole.shape[: differing[0]]) == 1

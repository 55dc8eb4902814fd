"""Types of whole numbers in place of floats: which tensor gets which, for its size alone."""

from __future__ import annotations

from modelplan.model import Graph, Kind
from modelplan.questions.explaining.edits import Edit
from modelplan.questions.explaining.subjects import RefusedChangeError

#: For each type of activations that of biases.
_BIASES = {"int8": "int32", "int16": "int64"}
#: The operand that is a bias, by operator.
_BIAS = {"CONV_2D": 2, "DEPTHWISE_CONV_2D": 2, "FULLY_CONNECTED": 2, "TRANSPOSE_CONV": 3, "Conv": 2, "Gemm": 2}
#: Operators whose form for whole numbers has other operands.
_OTHER_FORMS = frozenset({"SVDF", "LSTM", "GRU", "RNN", "UNIDIRECTIONAL_SEQUENCE_LSTM", "BIDIRECTIONAL_SEQUENCE_LSTM"})
_FLOATS = frozenset({"float32", "float16"})


def is_float(graph: Graph) -> bool:
    """Whether activations are floats."""
    return any(t.dtype in _FLOATS and t.kind is Kind.ACTIVATION for t in graph.tensors)


def quantised(graph: Graph, dtype: str) -> Edit:
    """The edit that gives activations the type `dtype`, weights int8 and biases what goes with it.

    Raises:
        RefusedChangeError: an operator has another form for whole numbers.
    """
    for number, op in enumerate(graph.ops):
        if op.kind in _OTHER_FORMS:
            raise RefusedChangeError(f"op {number} {op.kind} has other operands in its form for whole numbers")
    biases = {op.inputs[_BIAS[op.kind]] for op in graph.ops if op.kind in _BIAS and len(op.inputs) > _BIAS[op.kind]}
    weights = {t for op in graph.ops if op.kind in _BIAS for t in op.inputs[:2]}
    dtypes = {}
    for number, tensor in enumerate(graph.tensors):
        if tensor.dtype not in _FLOATS:
            continue
        if tensor.kind is Kind.CONSTANT and number in biases:
            dtypes[number] = _BIASES[dtype]
        else:
            dtypes[number] = "int8" if tensor.kind is Kind.CONSTANT and number in weights else dtype
    return Edit(dtypes=dtypes)

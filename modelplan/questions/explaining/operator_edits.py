"""Edits of types, whole numbers in place of floats, and of operators that a changed model does without.

Padding and activations are taken over by a convolution, transpositions cancel. Each function returns the edit, or says
why there is none.
"""

from collections.abc import Callable

from modelplan.model import Graph, Kind, Op
from modelplan.ops import OpFacts, facts
from modelplan.ops.access.spans import same_padding
from modelplan.ops.conditions import number, numbers
from modelplan.questions.explaining.edits import Edit
from modelplan.questions.explaining.subjects import RefusedChangeError
from modelplan.rewriting.striped_tflite.layers import window_along

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
    for index, op in enumerate(graph.ops):
        if op.kind in _OTHER_FORMS:
            raise RefusedChangeError(f"op {index} {op.kind} has other operands in its form for whole numbers")
    biases = {op.inputs[_BIAS[op.kind]] for op in graph.ops if op.kind in _BIAS and len(op.inputs) > _BIAS[op.kind]}
    weights = {t for op in graph.ops if op.kind in _BIAS for t in op.inputs[:2]}
    dtypes = {}
    for index, tensor in enumerate(graph.tensors):
        if tensor.dtype not in _FLOATS:
            continue
        if tensor.kind is Kind.CONSTANT and index in biases:
            dtypes[index] = _BIASES[dtype]
        else:
            dtypes[index] = "int8" if tensor.kind is Kind.CONSTANT and index in weights else dtype
    return Edit(dtypes=dtypes)


#: Activations that can be an option of the operator in front of them, with its number there.
_FUSED = {"RELU": 1, "RELU_N1_TO_1": 2, "RELU6": 3, "Relu": 0, "Clip": 0}
#: Operators that can carry an activation out on their results.
_FUSING = frozenset({"CONV_2D", "DEPTHWISE_CONV_2D", "FULLY_CONNECTED", "ADD", "MUL", "SUB", "Conv", "Gemm"})
_CONVOLUTIONS = frozenset({"CONV_2D", "DEPTHWISE_CONV_2D"})


def _of(graph: Graph, wanted: Callable[[OpFacts], bool]) -> list[int]:
    """The operators with facts that are wanted, and operand 0."""
    ops = enumerate(graph.ops)
    return [i for i, op in ops if wanted(facts(graph.format, op.kind)) and op.outputs and op.inputs[:1] > (-1,)]


def pads(graph: Graph) -> list[int]:
    """The operators that pad."""
    return _of(graph, lambda row: row.rows == "pad")


def activations(graph: Graph) -> list[int]:
    """The operators that are activations."""
    return _of(graph, lambda row: row.activation)


def transpositions(graph: Graph) -> list[int]:
    """The operators that transpose."""
    return _of(graph, lambda row: row.rows == "permute")


def padding_fused(graph: Graph, index: int) -> tuple[Edit, str]:
    """The edit that leaves a padding to the convolutions that read it, and what that does to the outputs."""
    pad = graph.ops[index]
    x, y = pad.inputs[0], pad.outputs[0]
    readers = graph.readers[y]
    if y in graph.outputs or not readers:
        raise RefusedChangeError("no convolution reads it")
    if graph.format == "onnx":
        if any(graph.ops[reader].kind != "Conv" for reader in readers):
            raise RefusedChangeError("others than convolutions read it")
        return Edit(without=frozenset({index}), renamed={y: x}), "equal outputs where it pads with zeros"
    for reader in readers:
        _require_same_padding(graph, graph.ops[reader], pad)
    same = {reader: {"padding": "SAME"} for reader in readers}
    equal = all(_pads_alike(graph, graph.ops[reader], pad) for reader in readers)
    said = "equal outputs" if equal else "other outputs: SAME pads other sides, so the model must be trained again"
    return Edit(without=frozenset({index}), renamed={y: x}, options=same), said


def _require_same_padding(graph: Graph, op: Op, pad: Op) -> None:
    amounts = numbers(pad, "operand 1")
    if op.kind not in _CONVOLUTIONS or op.attribute("padding") != "VALID" or op.inputs.count(pad.outputs[0]) != 1:
        raise RefusedChangeError(f"{op.kind} reads it, which has no padding of its own to use")
    if amounts is None or len(amounts) != 8 or any((*amounts[:2], *amounts[6:])):
        raise RefusedChangeError("it pads more than height and width")
    for axis in (1, 2):
        stride = window_along(graph, op, axis).mul
        rows = -(-graph.tensors[pad.inputs[0]].shape[axis] // stride)
        wanted = graph.tensors[op.outputs[0]].shape[axis]
        if rows != wanted:
            raise RefusedChangeError(f"{op.kind} with SAME would make {rows} rows or columns, not {wanted}")


def _pads_alike(graph: Graph, op: Op, pad: Op) -> bool:
    """Whether SAME pads as many rows and columns in front as the operator that goes."""
    amounts = numbers(pad, "operand 1") or ()
    for axis in (1, 2):
        window = window_along(graph, op, axis)
        size, rows = graph.tensors[pad.inputs[0]].shape[axis], graph.tensors[op.outputs[0]].shape[axis]
        if same_padding(size, rows, window.hi - window.lo + 1, window.mul) // 2 != amounts[2 * axis]:
            return False
    return True


def activation_fused(graph: Graph, index: int) -> tuple[Edit, str]:
    """The edit that leaves an activation to the operator in front of it, and what that does to the outputs."""
    op = graph.ops[index]
    x, y = op.inputs[0], op.outputs[0]
    before = graph.producers[x]
    if before < 0 or graph.ops[before].kind not in _FUSING:
        raise RefusedChangeError("the operator in front of it carries no activation out")
    if len(graph.readers[x]) != 1 or x in graph.outputs:
        raise RefusedChangeError("others read what it reads")
    if number(graph.ops[before], "fused_activation_function", 0):
        raise RefusedChangeError("the operator in front of it has an activation already")
    fused = _FUSED.get(op.kind)
    said = (
        "equal outputs"
        if fused is not None
        else "other outputs: RELU6 in its place, so the model must be trained again"
    )
    options = {} if graph.format == "onnx" else {before: {"fused_activation_function": 3 if fused is None else fused}}
    return Edit(without=frozenset({index}), renamed={x: y}, options=options), said


def transposition_removed(graph: Graph, index: int) -> tuple[Edit, str]:
    """The edit that removes a transposition, and who must then give or take the other layout."""
    op = graph.ops[index]
    x, y = op.inputs[0], op.outputs[0]
    if graph.tensors[x].kind is not Kind.ACTIVATION:
        raise RefusedChangeError("it transposes a constant")
    if x in graph.inputs and len(graph.readers[x]) == 1:
        return Edit(without=frozenset({index}), renamed={x: y}), "the caller must feed the other layout"
    if y in graph.outputs and x not in graph.outputs:
        return Edit(without=frozenset({index}), renamed={y: x}), "the caller gets the other layout"
    raise RefusedChangeError("operators on both sides need the layouts that they have")

"""The operators that become plain C, a row for each kind."""

from __future__ import annotations

from collections.abc import Callable

from modelplan.rewriting.standalone_c.elementwise import binary, dequantise, quantise, softmax, unary, view
from modelplan.rewriting.standalone_c.floating import (
    float_binary,
    float_convolution,
    float_mean,
    float_pool,
    float_product,
    float_softmax,
    float_unary,
)
from modelplan.rewriting.standalone_c.kernel_records import COperator
from modelplan.rewriting.standalone_c.moving import concatenation, pad, split, strided_slice, transpose
from modelplan.rewriting.standalone_c.reading import OperatorReader
from modelplan.rewriting.standalone_c.recurrent import lstm
from modelplan.rewriting.standalone_c.resampling import reduction, resize_bilinear, resize_nearest
from modelplan.rewriting.standalone_c.variables import assign_variable, nothing, read_variable, svdf
from modelplan.rewriting.standalone_c.windowed import (
    convolution,
    depthwise_convolution,
    fully_connected,
    pool,
    transposed_convolution,
)
from modelplan.runtimes.tflm.file import FileModel

_ROWS: dict[str, Callable[[OperatorReader], COperator]] = {
    "CONV_2D": convolution,
    "DEPTHWISE_CONV_2D": depthwise_convolution,
    "FULLY_CONNECTED": fully_connected,
    "TRANSPOSE_CONV": transposed_convolution,
    "AVERAGE_POOL_2D": pool,
    "MAX_POOL_2D": pool,
    "ADD": binary,
    "SUB": binary,
    "MUL": binary,
    "MAXIMUM": binary,
    "MINIMUM": binary,
    "PRELU": binary,
    "LOGISTIC": unary,
    "TANH": unary,
    "HARD_SWISH": unary,
    "LEAKY_RELU": unary,
    "RELU": unary,
    "RELU6": unary,
    "QUANTIZE": quantise,
    "DEQUANTIZE": dequantise,
    "MEAN": reduction,
    "SUM": reduction,
    "RESIZE_NEAREST_NEIGHBOR": resize_nearest,
    "RESIZE_BILINEAR": resize_bilinear,
    "VAR_HANDLE": nothing,
    "CALL_ONCE": nothing,
    "READ_VARIABLE": read_variable,
    "ASSIGN_VARIABLE": assign_variable,
    "SVDF": svdf,
    "UNIDIRECTIONAL_SEQUENCE_LSTM": lstm,
    "PAD": pad,
    "PADV2": pad,
    "CONCATENATION": concatenation,
    "SPLIT": split,
    "SPLIT_V": split,
    "SLICE": strided_slice,
    "STRIDED_SLICE": strided_slice,
    "TRANSPOSE": transpose,
    "RESHAPE": view,
    "SQUEEZE": view,
    "EXPAND_DIMS": view,
    "SOFTMAX": softmax,
}
#: Those that have kernels of their own for float32.
_FLOAT_ROWS: dict[str, Callable[[OperatorReader], COperator]] = {
    "CONV_2D": float_convolution,
    "DEPTHWISE_CONV_2D": float_convolution,
    "FULLY_CONNECTED": float_product,
    "AVERAGE_POOL_2D": float_pool,
    "MAX_POOL_2D": float_pool,
    "ADD": float_binary,
    "SUB": float_binary,
    "MUL": float_binary,
    "DIV": float_binary,
    "MAXIMUM": float_binary,
    "MINIMUM": float_binary,
    "PRELU": float_binary,
    "LOGISTIC": float_unary,
    "TANH": float_unary,
    "HARD_SWISH": float_unary,
    "LEAKY_RELU": float_unary,
    "RELU": float_unary,
    "RELU6": float_unary,
    "SOFTMAX": float_softmax,
    "MEAN": float_mean,
    "SUM": float_mean,
}
#: The kinds of operators that can become C.
C_KINDS = frozenset((*_ROWS, *_FLOAT_ROWS))


def c_operator(model: FileModel, index: int, subgraph: int = 0) -> COperator:
    """Operator `index` of a subgraph as calls of kernels."""
    reader = OperatorReader(model, index, subgraph)
    floats = bool(reader.op.writes) and reader.dtype(reader.output()) == "float32" and reader.has(0)
    floats = floats and reader.dtype(reader.input(0)) == "float32"
    rows = _FLOAT_ROWS if floats and reader.op.kind in _FLOAT_ROWS else _ROWS
    if reader.op.kind not in rows:
        raise reader.refuse(f"there is no kernel for this kind of operator; there are {', '.join(sorted(C_KINDS))}")
    return rows[reader.op.kind](reader)

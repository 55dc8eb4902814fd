"""The operators that become plain C, a row for each kind."""

from __future__ import annotations

from collections.abc import Callable

from modelplan.rewriting.standalone_c.elementwise import binary, dequantise, quantise, softmax, unary, view
from modelplan.rewriting.standalone_c.kernel_records import COperator
from modelplan.rewriting.standalone_c.moving import concatenation, pad, split, strided_slice, transpose
from modelplan.rewriting.standalone_c.reading import OperatorReader
from modelplan.rewriting.standalone_c.resampling import reduction, resize_bilinear, resize_nearest
from modelplan.rewriting.standalone_c.variables import assign_variable, nothing, read_variable, svdf
from modelplan.rewriting.standalone_c.windowed import convolution, depthwise_convolution, fully_connected, pool
from modelplan.runtimes.tflm.file import FileModel

_ROWS: dict[str, Callable[[OperatorReader], COperator]] = {
    "CONV_2D": convolution,
    "DEPTHWISE_CONV_2D": depthwise_convolution,
    "FULLY_CONNECTED": fully_connected,
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
#: The kinds of operators that can become C.
C_KINDS = frozenset(_ROWS)


def c_operator(model: FileModel, index: int, subgraph: int = 0) -> COperator:
    """Operator `index` of a subgraph as calls of kernels.

    Raises:
        MissingKernelError: there is no C for it; says what is missing.
    """
    reader = OperatorReader(model, index, subgraph)
    if reader.op.kind not in _ROWS:
        raise reader.refuse(f"there is no kernel for this kind of operator; there are {', '.join(sorted(_ROWS))}")
    return _ROWS[reader.op.kind](reader)

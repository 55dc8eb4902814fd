"""The operators that become plain C, a row for each function that writes some kinds."""

from collections.abc import Callable, Mapping
from dataclasses import replace

from modelplan.ops.op_facts import TFLITE_RESHAPES
from modelplan.plain_c.kernel_records import C_TYPES, CKernel, ConstTable, COperator, const_table
from modelplan.plain_c.operator_calls.elementwise import (
    binary,
    dequantise,
    expressed,
    log_softmax,
    normalised,
    quantise,
    softmax,
    sum_of_all,
    unary,
)
from modelplan.plain_c.operator_calls.even_rounding import (
    even_function,
    even_mean,
    even_pool,
    even_product,
    even_quantised,
    even_softmax,
    even_sum,
    sum_of_codes,
)
from modelplan.plain_c.operator_calls.expressions import EXPRESSIONS
from modelplan.plain_c.operator_calls.floating import (
    float_binary,
    float_convolution,
    float_mean,
    float_pool,
    float_product,
    float_softmax,
    float_transposed,
)
from modelplan.plain_c.operator_calls.function_tables import UNARY
from modelplan.plain_c.operator_calls.moving import by_batches, moved, pad, view
from modelplan.plain_c.operator_calls.picking import embedded, filled, gather, gather_slices, shape_of, updated
from modelplan.plain_c.operator_calls.reading import NetworkReader, OperatorReader, reader_of
from modelplan.plain_c.operator_calls.recurrent import float_lstm, lstm
from modelplan.plain_c.operator_calls.resampling import (
    extreme,
    extreme_places,
    float_bilinear,
    reduction,
    resize_bilinear,
    resize_nearest,
    running_sum,
)
from modelplan.plain_c.operator_calls.variables import assign_variable, float_svdf, nothing, read_variable, svdf
from modelplan.plain_c.operator_calls.windowed import (
    batch_product,
    convolution,
    depthwise_convolution,
    fully_connected,
    pool,
    transposed_convolution,
)
from modelplan.runtimes.tflm.file import FileModel

_Write = Callable[[OperatorReader], COperator]


def _by_kind(writers: Mapping[_Write, str]) -> dict[str, _Write]:
    return {kind: write for write, kinds in writers.items() for kind in kinds.split()}


_ROWS = _by_kind({
    convolution: "CONV_2D",
    depthwise_convolution: "DEPTHWISE_CONV_2D",
    fully_connected: "FULLY_CONNECTED",
    transposed_convolution: "TRANSPOSE_CONV",
    pool: "AVERAGE_POOL_2D MAX_POOL_2D",
    binary: "ADD SUB MUL DIV PRELU",
    unary: " ".join(UNARY),
    quantise: "QUANTIZE",
    dequantise: "DEQUANTIZE",
    reduction: "MEAN SUM",
    extreme: "REDUCE_MAX REDUCE_MIN",
    running_sum: "CUMSUM",
    normalised: "L2_NORMALIZATION",
    log_softmax: "LOG_SOFTMAX",
    sum_of_all: "ADD_N",
    batch_product: "BATCH_MATMUL",
    extreme_places: "ARG_MAX ARG_MIN",
    resize_nearest: "RESIZE_NEAREST_NEIGHBOR",
    resize_bilinear: "RESIZE_BILINEAR",
    nothing: "VAR_HANDLE CALL_ONCE",
    read_variable: "READ_VARIABLE",
    assign_variable: "ASSIGN_VARIABLE",
    svdf: "SVDF",
    lstm: "UNIDIRECTIONAL_SEQUENCE_LSTM",
    pad: "PAD PADV2",
    moved: """CONCATENATION PACK SPLIT SPLIT_V UNPACK SLICE STRIDED_SLICE TRANSPOSE REVERSE_V2 BROADCAST_TO
              DEPTH_TO_SPACE SPACE_TO_DEPTH MIRROR_PAD""",
    by_batches: "SPACE_TO_BATCH_ND BATCH_TO_SPACE_ND",
    view: " ".join(TFLITE_RESHAPES),
    gather: "GATHER",
    gather_slices: "GATHER_ND",
    embedded: "EMBEDDING_LOOKUP",
    filled: "FILL",
    shape_of: "SHAPE",
    updated: "DYNAMIC_UPDATE_SLICE",
    softmax: "SOFTMAX",
})  # fmt: skip
#: Those that have kernels of their own for float32.
_FLOAT_ROWS = _by_kind({
    float_convolution: "CONV_2D DEPTHWISE_CONV_2D",
    float_transposed: "TRANSPOSE_CONV",
    float_product: "FULLY_CONNECTED",
    float_pool: "AVERAGE_POOL_2D MAX_POOL_2D L2_POOL_2D",
    float_binary: "ADD SUB MUL DIV PRELU",
    float_softmax: "SOFTMAX",
    float_bilinear: "RESIZE_BILINEAR",
    float_lstm: "UNIDIRECTIONAL_SEQUENCE_LSTM",
    float_mean: "MEAN SUM",
    float_svdf: "SVDF",
})  # fmt: skip
#: Those that compute codes otherwise where these round as float32 does.
_EVEN_ROWS: dict[str, Callable[[NetworkReader], COperator]] = {
    **{kind: even_function for kind, row in UNARY.items() if row.exact},
    "ADD": even_sum,
    "MUL": even_product,
    "QUANTIZE": even_quantised,
    "MEAN": even_mean,
    "SUM": sum_of_codes,
    "AVERAGE_POOL_2D": even_pool,
    "SOFTMAX": even_softmax,
}
#: The kinds of operators that can become C.
C_KINDS = frozenset((*_ROWS, *_FLOAT_ROWS, *EXPRESSIONS))


def c_operator(model: FileModel, index: int, subgraph: int = 0) -> COperator:
    """Operator `index` of a subgraph as calls of kernels."""
    reader = reader_of(model, index, subgraph)
    return _with_tables(reader, _written(reader))


def _with_tables(r: OperatorReader, operator: COperator) -> COperator:
    """The operator with a table for each operand that is a constant; with one it is computed as a whole."""
    held = [o for o in operator.operands if not r.tensor(o.tensor).constant]
    if len(held) == len(operator.operands):
        return operator
    sources = [held.index(o) if o in held else _table(r, o.tensor) for o in operator.operands]
    kernels = [
        replace(k, operands=tuple(sources[o] if isinstance(o, int) else o for o in k.operands))
        for k in (_whole(operator, kernel) for kernel in operator.kernels)
    ]
    in_place = tuple(s for s in (sources[i] for i in operator.in_place) if isinstance(s, int))
    whole = replace(operator, by_rows=False, by_columns=False, view=False, parts=())
    return replace(whole, operands=tuple(held), kernels=tuple(kernels), in_place=in_place)


def _table(r: OperatorReader, tensor: int) -> ConstTable:
    """A constant operand."""
    return const_table("constant", C_TYPES[r.dtype(r.tensor(tensor))], r.constant(r.op.inputs.index(tensor)))


def _whole(operator: COperator, kernel: CKernel) -> CKernel:
    """The kernel as it computes all rows of an operator at once."""
    operand, window = operator.operands[0], operator.operands[0].window
    above = window.before if window else 0
    return replace(kernel, whole=(operand.rows, above, operator.results[0].rows)) if operator.by_rows else kernel


def _written(reader: OperatorReader) -> COperator:
    """What the function of its kind makes of an operator."""
    if isinstance(reader, NetworkReader) and reader.computes_codes and reader.op.kind in _EVEN_ROWS:
        return _EVEN_ROWS[reader.op.kind](reader)
    if (reader.op.kind in EXPRESSIONS or reader.function != reader.op.kind) and (operator := expressed(reader)):
        return operator
    floats = bool(reader.op.writes) and reader.dtype(reader.output()) == "float32"
    rows = _FLOAT_ROWS if floats and reader.op.kind in _FLOAT_ROWS else _ROWS
    if reader.op.kind in EXPRESSIONS and reader.op.kind not in rows:
        types = ", ".join(word for e in EXPRESSIONS[reader.op.kind] for word in e.types.split()).replace(
            "float", "float32"
        )
        raise reader.refuse(f"type {reader.dtype(reader.input(0))}; there are kernels for {types}")
    if reader.op.kind not in rows:
        raise reader.refuse("no kernel for this kind of operator")
    return rows[reader.op.kind](reader)

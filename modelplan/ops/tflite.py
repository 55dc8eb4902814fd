"""TFLite builtin operators: what planners need to know of each. Every operator of the schema is in exactly one group.

Source: tflite/schema/schema.fbs and the kernels of LiteRT (2026-08) and tflite-micro (2026-08). The times are those
that `benchmarks/durations.py` fitted.
"""

from dataclasses import replace
from typing import cast

from modelplan.ops import conditions as when
from modelplan.ops import safe_overlap, work
from modelplan.ops.access import builders
from modelplan.ops.access import tflite as access
from modelplan.ops.op_facts import TFLITE_RESHAPES, Axis, OpFacts, Terms

_NEVER = """
HASHTABLE_LOOKUP LOCAL_RESPONSE_NORMALIZATION LSH_PROJECTION
LSTM RNN CONCAT_EMBEDDINGS SKIP_GRAM EMBEDDING_LOOKUP_SPARSE UNIDIRECTIONAL_SEQUENCE_RNN
UNIDIRECTIONAL_SEQUENCE_LSTM BIDIRECTIONAL_SEQUENCE_RNN BIDIRECTIONAL_SEQUENCE_LSTM TOPK_V2 DELEGATE
SPARSE_TO_DENSE ONE_HOT UNIQUE WHERE REVERSE_SEQUENCE MATRIX_DIAG NON_MAX_SUPPRESSION_V4
NON_MAX_SUPPRESSION_V5 SCATTER_ND DENSIFY SEGMENT_SUM RFFT2D CONV_3D IMAG REAL COMPLEX_ABS
CONV_3D_TRANSPOSE BROADCAST_ARGS BUCKETIZE UNSORTED_SEGMENT_PROD UNSORTED_SEGMENT_MAX UNSORTED_SEGMENT_SUM
UNSORTED_SEGMENT_MIN DILATE REDUCE_WINDOW REDUCE_ANY REDUCE_ALL CUSTOM PLACEHOLDER_FOR_GREATER_OP_CODES
STABLEHLO_CONVOLUTION STABLEHLO_REDUCE STABLEHLO_DYNAMIC_SLICE STABLEHLO_PAD
STABLEHLO_DOT_GENERAL STABLEHLO_REDUCE_WINDOW STABLEHLO_SORT STABLEHLO_GATHER STABLEHLO_BROADCAST_IN_DIM
STABLEHLO_TRANSPOSE STABLEHLO_CONCATENATE STABLEHLO_SLICE STABLEHLO_COMPARE
"""
_GENERATORS = "FILL RANGE STABLEHLO_IOTA"
_RANDOM = "MULTINOMIAL RANDOM_STANDARD_NORMAL RANDOM_UNIFORM STABLEHLO_RNG_BIT_GENERATOR"
_STATE = "HASHTABLE HASHTABLE_FIND HASHTABLE_IMPORT HASHTABLE_SIZE VAR_HANDLE READ_VARIABLE ASSIGN_VARIABLE"
_CONTROL = "CALL IF WHILE CALL_ONCE STABLEHLO_WHILE STABLEHLO_COMPOSITE"
_UNARY = """
FAKE_QUANT LOGICAL_NOT ZEROS_LIKE RELU_0_TO_1 SIGN
STABLEHLO_LOGISTIC STABLEHLO_ABS STABLEHLO_COSINE STABLEHLO_EXPONENTIAL STABLEHLO_FLOOR STABLEHLO_LOG STABLEHLO_NEGATE
STABLEHLO_RSQRT STABLEHLO_TANH STABLEHLO_CBRT
"""
_UNARY_OF_ROWS = "EXP SQRT RSQRT SQUARE LOG SIN COS FLOOR CEIL ROUND"
_ACTIVATIONS = "RELU RELU6 RELU_N1_TO_1 HARD_SWISH LEAKY_RELU LOGISTIC TANH"
_BINARY = """
POW ATAN2 BITWISE_XOR RIGHT_SHIFT
STABLEHLO_ADD STABLEHLO_DIVIDE STABLEHLO_MULTIPLY STABLEHLO_MAXIMUM STABLEHLO_MINIMUM STABLEHLO_AND STABLEHLO_OR
STABLEHLO_POWER STABLEHLO_REMAINDER STABLEHLO_SUBTRACT STABLEHLO_SHIFT_LEFT
"""
_BROADCAST = "LESS GREATER GREATER_EQUAL LESS_EQUAL EQUAL NOT_EQUAL LOGICAL_OR LOGICAL_AND FLOOR_DIV FLOOR_MOD"
_REDUCTIONS = "REDUCE_PROD REDUCE_MAX REDUCE_MIN"

_unary = OpFacts("elementwise", builders.pointwise, overwrite=(0,), lead=safe_overlap.pointwise)
_unary_of_rows = replace(_unary, rows="pointwise")
_unary_of_any_rows = replace(_unary_of_rows, any_values=True)
_binary = OpFacts("elementwise", builders.pointwise, overwrite=(0, 1), lead=safe_overlap.pointwise)
_broadcast = replace(_binary, reads=work.ANEW)
_broadcast_rows = replace(_broadcast, rows="pointwise", any_values=True)
_row = OpFacts("row", access.along_channels, overwrite=(0,), rows="along channels")
_view = OpFacts("view", builders.reshaped, view=0)
_reduction = OpFacts(access=access.reduction, operands=(1,), same_quantisation=True, passes_on="all")
_sum = replace(
    _reduction,
    unsplit="{kind} adds all rows up inside its kernel, integers in 32 bits, and no operator hands such a sum on",
)
_pool = OpFacts("stream", access.pool, lead=safe_overlap.in_order(access.pool))
_pool_of_rows = replace(_pool, reads=work.ANEW, rows="window", any_values=True)
_resize = OpFacts(access=access.resized, rows="resize", any_values=True)
_padding = OpFacts(
    "stream",
    access.padding,
    lead=safe_overlap.padded,
    operands=(1,),
    passes_on="all",
    rows="pad",
    any_values=True,
)
_copy = OpFacts(access=builders.repeated, passes_on="all")
_blocks = OpFacts(passes_on="all", rows="blocks", any_values=True)
_convert = OpFacts("elementwise", builders.converted, overwrite=(0,), lead=safe_overlap.pointwise, passes_on="all")
_update = OpFacts("update", overwrite=(0,))
_select = OpFacts("elementwise", builders.pointwise, overwrite=(1, 2, 0))
_slice = OpFacts("stream", lead=safe_overlap.sliced, passes_on="part", reads=work.PICKED, rows="slice", any_values=True)

OPERATORS: dict[str, OpFacts] = {
    **dict.fromkeys(_NEVER.split(), OpFacts()),
    **dict.fromkeys(_GENERATORS.split(), OpFacts("generator")),
    **dict.fromkeys(_RANDOM.split(), OpFacts("generator", effects=True)),
    **dict.fromkeys(_STATE.split(), OpFacts("state", effects=True)),
    **dict.fromkeys(_CONTROL.split(), OpFacts("control", effects=True)),
    **dict.fromkeys(_UNARY.split(), _unary),
    **dict.fromkeys(_UNARY_OF_ROWS.split(), _unary_of_rows),
    **dict.fromkeys(("ABS", "NEG"), _unary_of_any_rows),
    **dict.fromkeys(_ACTIVATIONS.split(), replace(_unary_of_any_rows, activation=True)),
    "ELU": replace(_unary_of_rows, activation=True),
    "GELU": replace(_unary, activation=True),
    **dict.fromkeys(_BINARY.split(), _binary),
    **dict.fromkeys(_BROADCAST.split(), _broadcast),
    **dict.fromkeys(("SUB", "MUL", "MAXIMUM", "MINIMUM", "SQUARED_DIFFERENCE"), _broadcast_rows),
    "ADD": replace(_broadcast_rows, time=Terms(164, 6.74)),
    "DIV": replace(_broadcast, rows="pointwise"),
    "PRELU": replace(_unary_of_any_rows, reads=work.ANEW, activation=True),
    **dict.fromkeys(_REDUCTIONS.split(), _reduction),
    **dict.fromkeys(("MEAN", "SUM"), _sum),
    **dict.fromkeys(TFLITE_RESHAPES, replace(_view, rows="reshape", any_values=True)),
    "STABLEHLO_RESHAPE": _view,
    "BITCAST": OpFacts("view", builders.reshaped, view=0, view_if=when.same_width),
    **dict.fromkeys(("SHAPE", "RANK"), OpFacts("shape")),
    "RESIZE_BILINEAR": replace(_resize, reads=work.INTERPOLATED, time=Terms(166, 1.81, copy=3.53)),
    "RESIZE_NEAREST_NEIGHBOR": replace(_resize, reads=work.PICKED, time=Terms(171, copy=3.80)),
    "DEPTH_TO_SPACE": replace(_blocks, access=access.depth_to_space),
    "SPACE_TO_DEPTH": replace(_blocks, access=access.space_to_depth),
    "BATCH_TO_SPACE_ND": OpFacts(access=access.batch_to_space, operands=(1, 2)),
    "SPACE_TO_BATCH_ND": OpFacts(access=access.space_to_batch, operands=(1, 2)),
    "PAD": replace(_padding, time=Terms(256, 0.169, 0.957)),
    "PADV2": _padding,
    "MIRROR_PAD": OpFacts(access=access.mirrored_padding, operands=(1,), passes_on="all"),
    "TILE": _copy,
    "BROADCAST_TO": replace(_copy, reads=work.PICKED),
    "SOFTMAX": replace(_row, reads=work.SOFTMAX),
    "LOG_SOFTMAX": replace(_row, reads=work.LOG_SOFTMAX),
    "L2_NORMALIZATION": replace(_row, reads=work.NORMALISED),
    **dict.fromkeys(("STABLEHLO_DYNAMIC_UPDATE_SLICE", "MATRIX_SET_DIAG", "STABLEHLO_SCATTER"), _update),
    "DYNAMIC_UPDATE_SLICE": replace(_update, access=access.block_replaced, time=Terms(150, copy=4.43)),
    "CUMSUM": replace(_update, access=access.running_sum, operands=(1,), overwrite_if=when.not_reversed),
    **dict.fromkeys(("SELECT", "STABLEHLO_SELECT"), _select),
    "SELECT_V2": replace(_select, reads=work.ANEW),
    "STABLEHLO_CLAMP": OpFacts("elementwise", builders.pointwise, overwrite=(1,)),
    "ADD_N": OpFacts("elementwise", builders.pointwise, overwrite=(0,)),
    "L2_POOL_2D": _pool,
    "AVERAGE_POOL_2D": replace(_pool_of_rows, time=Terms(137, 3.72, 0.463)),
    "MAX_POOL_2D": replace(_pool_of_rows, time=Terms(142, 2.53, 0.634)),
    "CAST": replace(_convert, rows="pointwise"),
    "STABLEHLO_CONVERT": _convert,
    "QUANTIZE": replace(_unary_of_rows, time=Terms(127, 3.11)),
    "DEQUANTIZE": OpFacts("elementwise", builders.pointwise, lead=safe_overlap.pointwise, rows="pointwise"),
    "CONV_2D": OpFacts(
        access=access.convolution, lead=safe_overlap.in_order(access.convolution), reads=work.ANEW, rows="window",
        any_values=True, time=Terms(244, 5.80, 1.77, 0.535)),
    "DEPTHWISE_CONV_2D": OpFacts(
        access=access.depthwise_convolution, lead=safe_overlap.in_order(access.depthwise_convolution), reads=work.ANEW,
        rows="window", any_values=True, time=Terms(184, 5.87, 1.75)),
    "TRANSPOSE_CONV": OpFacts(
        access=access.transposed_convolution, lead=safe_overlap.read_first, reads=work.ANEW, rows="spread",
        any_values=True),
    "FULLY_CONNECTED": OpFacts(
        access=access.fully_connected, lead=safe_overlap.in_order(access.fully_connected), reads=work.ANEW,
        rows="gemm", any_values=True, time=Terms(177, 2.25, mac=0.568)),
    "BATCH_MATMUL": OpFacts(access=access.batch_product, reads=work.ANEW, rows="product", any_values=True),
    "REVERSE_V2": OpFacts(access=access.reversed_axes, operands=(1,)),
    **dict.fromkeys(("ARG_MAX", "ARG_MIN"), OpFacts(access=access.chosen, operands=(1,), rows="along channels")),
    "SVDF": OpFacts(reads=work.FILTERED),
    "GATHER_ND": OpFacts(reads=work.PICKED),
    "EMBEDDING_LOOKUP": OpFacts(access=access.embedding, reads=work.ANEW),
    "STABLEHLO_CUSTOM_CALL": OpFacts(effects=True),
    "TRANSPOSE": OpFacts(
        access=access.transposition, operands=(1,), passes_on="all", rows="permute", any_values=True),
    "GATHER": OpFacts(
        access=access.gathering, operands=(1,), passes_on="part", reads=work.PICKED,
        time=Terms(155, 0.247, copy=0.417)),
    "SLICE": replace(
        _slice, access=access.slice_of, operands=(1, 2), time=Terms(155, 0.247, copy=0.417)),
    "STRIDED_SLICE": replace(_slice, access=access.strided_slice, operands=(1, 2, 3)),
    "CONCATENATION": OpFacts(
        "join", access.concatenation, parts=when.axis_attribute, lead=safe_overlap.joined, same_quantisation=True,
        rows="join", any_values=True, time=Terms(126, 0.007, copy=12.6)),
    "PACK": OpFacts(
        "join", access.pack, parts=when.axis_attribute, same_quantisation=True, rows="join", any_values=True),
    "UNPACK": OpFacts("split", access.unpack, parts=when.axis_attribute, same_quantisation=True),
    "SPLIT": OpFacts("split", access.splitting(0, 1), parts=cast("Axis", when.axis_operand(0)), whole=1, operands=(0,)),
    "SPLIT_V": OpFacts("split", access.splitting(2, 0), parts=cast("Axis", when.axis_operand(2)), operands=(1, 2)),
}  # fmt: skip

#: Operators that are known by name but that the installed schema has not.
CUSTOM: dict[str, OpFacts] = {"CUSTOM:ethos-u": OpFacts("opaque"), "STABLEHLO_CASE": OpFacts(effects=True)}

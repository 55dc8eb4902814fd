"""TFLite builtin operators: what each does to memory. Every operator of the schema is in exactly one group.

Source: tflite/schema/schema.fbs and the kernels of LiteRT (2026-08) and tflite-micro (2026-08).
"""

from __future__ import annotations

from typing import cast

from modelplan.ops import conditions as when
from modelplan.ops import safe_overlap
from modelplan.ops.op_facts import Axis, OpFacts

_NEVER = """
EMBEDDING_LOOKUP HASHTABLE_LOOKUP LOCAL_RESPONSE_NORMALIZATION LSH_PROJECTION
LSTM RNN SVDF CONCAT_EMBEDDINGS SKIP_GRAM EMBEDDING_LOOKUP_SPARSE UNIDIRECTIONAL_SEQUENCE_RNN
UNIDIRECTIONAL_SEQUENCE_LSTM BIDIRECTIONAL_SEQUENCE_RNN BIDIRECTIONAL_SEQUENCE_LSTM TOPK_V2 DELEGATE
SPARSE_TO_DENSE ONE_HOT UNIQUE REVERSE_V2 GATHER_ND WHERE REVERSE_SEQUENCE MATRIX_DIAG NON_MAX_SUPPRESSION_V4
NON_MAX_SUPPRESSION_V5 SCATTER_ND DENSIFY SEGMENT_SUM BATCH_MATMUL RFFT2D CONV_3D IMAG REAL COMPLEX_ABS
CONV_3D_TRANSPOSE BROADCAST_ARGS BUCKETIZE UNSORTED_SEGMENT_PROD UNSORTED_SEGMENT_MAX UNSORTED_SEGMENT_SUM
UNSORTED_SEGMENT_MIN DILATE REDUCE_WINDOW REDUCE_ANY REDUCE_ALL CUSTOM PLACEHOLDER_FOR_GREATER_OP_CODES
STABLEHLO_CONVOLUTION STABLEHLO_CUSTOM_CALL STABLEHLO_REDUCE STABLEHLO_DYNAMIC_SLICE STABLEHLO_PAD
STABLEHLO_DOT_GENERAL STABLEHLO_REDUCE_WINDOW STABLEHLO_SORT STABLEHLO_GATHER STABLEHLO_BROADCAST_IN_DIM
STABLEHLO_TRANSPOSE STABLEHLO_CONCATENATE STABLEHLO_SLICE STABLEHLO_COMPARE ARG_MAX ARG_MIN
"""
_GENERATORS = "FILL RANGE MULTINOMIAL RANDOM_STANDARD_NORMAL RANDOM_UNIFORM STABLEHLO_IOTA STABLEHLO_RNG_BIT_GENERATOR"
_STATE = "HASHTABLE HASHTABLE_FIND HASHTABLE_IMPORT HASHTABLE_SIZE VAR_HANDLE READ_VARIABLE ASSIGN_VARIABLE"
_CONTROL = "CALL IF WHILE CALL_ONCE STABLEHLO_WHILE STABLEHLO_COMPOSITE"
_UNARY = """
FLOOR LOGISTIC RELU RELU_N1_TO_1 RELU6 TANH EXP NEG SIN LOG SQRT RSQRT FAKE_QUANT LOGICAL_NOT SQUARE ZEROS_LIKE
LEAKY_RELU ABS CEIL COS ELU ROUND HARD_SWISH GELU RELU_0_TO_1 SIGN
STABLEHLO_LOGISTIC STABLEHLO_ABS STABLEHLO_COSINE STABLEHLO_EXPONENTIAL STABLEHLO_FLOOR STABLEHLO_LOG STABLEHLO_NEGATE
STABLEHLO_RSQRT STABLEHLO_TANH STABLEHLO_CBRT
"""
_BINARY = """
ADD MUL SUB DIV MAXIMUM LESS MINIMUM GREATER GREATER_EQUAL LESS_EQUAL EQUAL NOT_EQUAL POW LOGICAL_OR LOGICAL_AND
FLOOR_DIV FLOOR_MOD SQUARED_DIFFERENCE ATAN2 BITWISE_XOR RIGHT_SHIFT
STABLEHLO_ADD STABLEHLO_DIVIDE STABLEHLO_MULTIPLY STABLEHLO_MAXIMUM STABLEHLO_MINIMUM STABLEHLO_AND STABLEHLO_OR
STABLEHLO_POWER STABLEHLO_REMAINDER STABLEHLO_SUBTRACT STABLEHLO_SHIFT_LEFT
"""
_REDUCTIONS = "MEAN SUM REDUCE_PROD REDUCE_MAX REDUCE_MIN"
_POOLS = "AVERAGE_POOL_2D L2_POOL_2D MAX_POOL_2D"

_view = OpFacts("view", view=0)
_pool = OpFacts("stream", view_if=when.unit_window, lead=safe_overlap.pooled, same_quantisation=True)

OPERATORS: dict[str, OpFacts] = {
    **dict.fromkeys(_NEVER.split(), OpFacts()),
    **dict.fromkeys(_GENERATORS.split(), OpFacts("generator")),
    **dict.fromkeys(_STATE.split(), OpFacts("state")),
    **dict.fromkeys(_CONTROL.split(), OpFacts("control")),
    **dict.fromkeys(_UNARY.split(), OpFacts("elementwise", overwrite=(0,), lead=safe_overlap.pointwise)),
    **dict.fromkeys(_BINARY.split(), OpFacts("elementwise", overwrite=(0, 1), lead=safe_overlap.pointwise)),
    **dict.fromkeys(_REDUCTIONS.split(), OpFacts(view_if=when.nothing_reduced, same_quantisation=True)),
    **dict.fromkeys(("RESHAPE", "SQUEEZE", "EXPAND_DIMS", "STABLEHLO_RESHAPE"), _view),
    **dict.fromkeys(("SHAPE", "RANK"), OpFacts("shape")),
    **dict.fromkeys(("RESIZE_BILINEAR", "RESIZE_NEAREST_NEIGHBOR"), OpFacts(view_if=when.same_extents)),
    **dict.fromkeys(("DEPTH_TO_SPACE", "SPACE_TO_DEPTH"), OpFacts(view_if=when.unit_block)),
    **dict.fromkeys(("BATCH_TO_SPACE_ND", "SPACE_TO_BATCH_ND"), OpFacts(
        view_if=when.unit_block_shape, operands=(1, 2))),
    **dict.fromkeys(("PAD", "PADV2"), OpFacts(
        "stream", view_if=when.no_padding, lead=safe_overlap.padded, operands=(1,))),
    "MIRROR_PAD": OpFacts(view_if=when.no_padding, operands=(1,)),
    **dict.fromkeys(("TILE", "BROADCAST_TO"), OpFacts(view_if=when.no_growth)),
    **dict.fromkeys(("SOFTMAX", "LOG_SOFTMAX", "L2_NORMALIZATION"), OpFacts("row", overwrite=(0,))),
    **dict.fromkeys(("DYNAMIC_UPDATE_SLICE", "STABLEHLO_DYNAMIC_UPDATE_SLICE"), OpFacts("update", overwrite=(0,))),
    **dict.fromkeys(("MATRIX_SET_DIAG", "STABLEHLO_SCATTER"), OpFacts("update", overwrite=(0,))),
    **dict.fromkeys(("SELECT", "SELECT_V2", "STABLEHLO_SELECT"), OpFacts("elementwise", overwrite=(1, 2, 0))),
    **dict.fromkeys(_POOLS.split(), _pool),
    **dict.fromkeys(("CAST", "STABLEHLO_CONVERT"), OpFacts(
        "elementwise", view_if=when.same_type, overwrite=(0,), lead=safe_overlap.pointwise)),
    "BITCAST": OpFacts("view", view_if=when.same_width),
    "STABLEHLO_CLAMP": OpFacts("elementwise", overwrite=(1,)),
    "PRELU": OpFacts("elementwise", overwrite=(0,), lead=safe_overlap.pointwise),
    "ADD_N": OpFacts("elementwise", view_if=when.single, overwrite=(0,), same_quantisation=True),
    "QUANTIZE": OpFacts("elementwise", overwrite=(0,), lead=safe_overlap.pointwise),
    "DEQUANTIZE": OpFacts("elementwise", lead=safe_overlap.pointwise),
    "CONV_2D": OpFacts(lead=safe_overlap.convolved),
    "DEPTHWISE_CONV_2D": OpFacts(lead=safe_overlap.convolved_by_channel),
    "FULLY_CONNECTED": OpFacts(lead=safe_overlap.connected),
    "TRANSPOSE_CONV": OpFacts(lead=safe_overlap.read_first),
    "CUMSUM": OpFacts("update", overwrite=(0,), overwrite_if=when.not_reversed),
    "TRANSPOSE": OpFacts(view_if=when.kept_order, operands=(1,)),
    "GATHER": OpFacts(view_if=when.gathered_start, operands=(1,)),
    "SLICE": OpFacts("stream", view_if=when.slice_start, lead=safe_overlap.sliced, operands=(1, 2)),
    "STRIDED_SLICE": OpFacts("stream", view_if=when.strided_slice_start, lead=safe_overlap.sliced,
                             operands=(1, 2, 3)),
    "CONCATENATION": OpFacts(
        "join", view_if=when.single, parts=when.axis_attribute, lead=safe_overlap.joined, same_quantisation=True),
    "PACK": OpFacts("join", view_if=when.single, parts=when.axis_attribute, same_quantisation=True),
    "UNPACK": OpFacts("split", parts=when.axis_attribute, same_quantisation=True),
    "SPLIT": OpFacts("split", parts=cast("Axis", when.axis_operand(0)), whole=1, operands=(0,)),
    "SPLIT_V": OpFacts("split", parts=cast("Axis", when.axis_operand(2)), operands=(1, 2)),
}  # fmt: skip

#: Operators outside the schema that are known by name.
CUSTOM: dict[str, OpFacts] = {"CUSTOM:ethos-u": OpFacts("opaque")}

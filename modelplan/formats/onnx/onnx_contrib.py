"""Output types of operators that ONNX Runtime adds to the standard, where a quantized or optimised model has them.

A row for each operator that its CPU provider runs, of a shape and an element type for each output.

Source: onnxruntime, core/graph/contrib_ops and onnx_deprecated_operators.cc; each row is compared with a session's.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from math import ceil, isfinite
from typing import TYPE_CHECKING

from modelplan.formats.onnx import onnx_attention as attention
from modelplan.formats.onnx import onnx_sequences as search
from modelplan.formats.onnx.onnx_shapes import (
    BFLOAT16,
    FLOAT,
    INT32,
    INT64,
    UINT8,
    UINT32,
    Element,
    Shape,
    ShapeRule,
    TypedNode,
    all_of,
    always,
    at,
    broadcast,
    divided,
    last_is,
    picked,
    product,
    same,
    standard,
    times,
)
from modelplan.formats.onnx.onnx_types import Extent, Type, tensor_type

if TYPE_CHECKING:
    from onnx import GraphProto, NodeProto

_DOMAIN, _BLOCKED = "com.microsoft", "com.microsoft.nchwc"
#: Blocks of channels have 8 or 16 of them, by the processor: a multiple of this is whole blocks on each.
_BLOCK = 16

Outputs = tuple[tuple[ShapeRule, Element], ...]


def has_row(node: NodeProto, version: int | None) -> bool:
    """Whether the types of the node's outputs are known here: those of onnx's own operators are its own business."""
    import onnx

    if (node.domain, node.op_type) not in ROWS:
        return False
    return bool(node.domain) or not onnx.defs.has(node.op_type, max_inclusive_version=version or 1, domain="")


def blocked_weights(graph: GraphProto) -> dict[str, int]:
    """How many channels the weights of convolutions in blocks have, by the names of the maps that these read."""
    extents = {tensor.name: tensor.dims[1] for tensor in graph.initializer if len(tensor.dims) > 1}
    channels = {}
    for node in graph.node:
        if (node.domain, node.op_type) == (_BLOCKED, "Conv") and len(node.input) > 1 and node.input[1] in extents:
            groups = next((attribute.i for attribute in node.attribute if attribute.name == "group"), 1)
            channels[node.input[0]] = extents[node.input[1]] * groups
    return channels


def contributed(typed: TypedNode) -> dict[str, Type]:
    """The types of outputs by name, as far as the operator settles them; of some the rank stays open.

    Raises:
        ValueError: operands that no run takes.
    """
    known = {}
    for name, (shape, element) in zip(typed.node.output, ROWS[typed.node.domain, typed.node.op_type], strict=False):
        number = typed.element(element) if isinstance(element, int) else element(typed)
        if name and number is not None:
            known[name] = tensor_type(number, _checked(shape(typed)))
    return known


def _checked(shape: Shape | None) -> Shape | None:
    wrong = [extent for extent in shape or () if isinstance(extent, int) and extent < 0]
    if wrong:
        raise ValueError(f"makes an extent of {wrong[0]}")
    return shape


def _zero_point(operand: int, usual: int | None) -> Callable[[TypedNode], int | None]:
    """The element type of an operand, where it is absent a usual one."""
    return lambda typed: typed.element(operand) if typed.has(operand) else usual


def _first_there(*operands: int) -> Callable[[TypedNode], int | None]:
    """The element type of the first operand that is there."""
    return lambda typed: next((typed.element(operand) for operand in operands if typed.has(operand)), None)


def _reduced(operand: int) -> ShapeRule:
    """The shape of an operand with a last extent of 1."""

    def shape(typed: TypedNode) -> Shape | None:
        known = typed.shape(operand)
        return (*known[:-1], 1) if known else None

    return shape


def _states(typed: TypedNode) -> Shape:
    """All hidden states of a recurrent operator."""
    return (at(typed, 0, 0), *_last_state(typed))


def _last_state(typed: TypedNode) -> Shape:
    direction = typed.attribute("direction")
    directions = 2 if direction is not None and direction.s == b"bidirectional" else 1
    return directions, at(typed, 0, 1), typed.number("hidden_size") or None


def _concatenated(typed: TypedNode) -> Shape | None:
    """Of QLinearConcat: every third operand from the third on, joined along an axis."""
    shapes = [typed.shape(operand) for operand in range(2, len(typed.types), 3)]
    first = shapes[0] if shapes else None
    if first is None or any(shape is None or len(shape) != len(first) for shape in shapes):
        return None
    axis = typed.number("axis")
    if not -len(first) <= axis < len(first):
        raise ValueError(f"joins along axis {axis} of {len(first)}")
    extents = [shape[axis] for shape in shapes if shape is not None]
    numbers = [extent for extent in extents if isinstance(extent, int)]
    place = axis % len(first)
    return (*first[:place], sum(numbers) if len(numbers) == len(extents) else None, *first[place + 1 :])


def _expanded(typed: TypedNode) -> Shape | None:
    """Of ExpandDims: an extent of 1 more, where a constant operand says."""
    shape, axis = typed.shape(0), typed.wholes(1)
    if shape is None or axis is None or len(axis) != 1 or not -len(shape) - 1 <= axis[0] <= len(shape):
        return None if shape is None else (None,) * (len(shape) + 1)
    place = axis[0] % (len(shape) + 1)
    return (*shape[:place], 1, *shape[place:])


def _rows_of_blocks(typed: TypedNode) -> Shape | None:
    """Of GatherBlockQuantized: rows of a table, of which a byte may hold several numbers."""
    data, indices = typed.shape(0), typed.shape(1)
    if not data or indices is None:
        return None
    if typed.element(0) == UINT8:
        data = (*data[:-1], times(data[-1], 8 // max(typed.number("bits", 4), 1)))
    axis = typed.number("gather_axis") % len(data)
    return (*data[:axis], *indices, *data[axis + 1 :])


def _packed_rows(typed: TypedNode) -> Shape | None:
    indices = typed.shape(1)
    return None if indices is None else (*indices, typed.number("K") or None)


def _premixed(typed: TypedNode) -> Shape | None:
    """Of HyperConnectionPreMix: one of several streams, which stand along an axis of their own or behind each other."""
    shape, branches = typed.shape(0), typed.number("num_branches")
    if not shape:
        return None
    return (*shape[:-1], divided(shape[-1], branches)) if branches else (*shape[:-2], shape[-1])


def _routed(typed: TypedNode) -> Shape | None:
    """Of MoEGroupRouter: a number for each token and expert."""
    logits = typed.shape(0)
    return (all_of(logits[:-1]), at(typed, 1, 0)) if logits else None


def _unfolded(typed: TypedNode) -> Shape | None:
    """Of UnfoldTensor: pieces of an axis, which become an axis behind the last."""
    shape, size, step = typed.shape(0), typed.number("size"), typed.number("step", 1)
    if not shape or size < 1 or step < 1:
        return None
    axis = typed.number("dim", -1) % len(shape)
    extent = shape[axis]
    pieces = (extent - size) // step + 1 if isinstance(extent, int) and extent >= size else None
    return (*shape[:axis], pieces, *shape[axis + 1 :], size)


def _counted(typed: TypedNode) -> Shape:
    """Of Range: as many numbers as lie between two constants, at distances that are 1 where nothing says another."""
    values = [typed.value(operand) for operand in range(3 if typed.has(2) else 2)]
    ends = [float(value.reshape(-1)[0]) for value in values if value is not None and value.size == 1]
    start, limit, step = (*ends, 1.0)[:3] if len(ends) == len(values) else (0.0, 0.0, 0.0)
    return (max(ceil((limit - start) / step), 0) if step and isfinite((limit - start) / step) else None,)


def _transposed(typed: TypedNode) -> Shape | None:
    """Of ConvTransposeWithDynamicPads: that of ConvTranspose, open along maps where the paddings are not constant."""
    from onnx import helper

    pads = typed.wholes(2) if typed.has(2) else ()
    if pads is None:
        shape, weights = typed.shape(0), typed.shape(1)
        if not shape or not weights or len(weights) != len(shape):
            return None
        return (shape[0], times(weights[1], typed.number("group", 1)), *(None,) * (len(shape) - 2))
    padded = type(typed.node)()
    padded.CopyFrom(typed.node)
    if pads:
        padded.attribute.append(helper.make_attribute("pads", pads))
    return standard("ConvTranspose", 0, 1)(replace(typed, node=padded))


def _cropped(typed: TypedNode) -> Shape:
    """Of CropAndResize: as many crops as regions, of a size that a constant operand says."""
    size: tuple[Extent, ...] = typed.wholes(3) or ()
    height, width = size if len(size) == 2 else (None, None)
    return at(typed, 1, 0), at(typed, 0, 1), height, width


def _product_by_shape(typed: TypedNode) -> Shape | None:
    """Of MatMulFpQ4, whose weights are a row of bytes: their shape is a constant operand."""
    first, shape = typed.shape(0), typed.wholes(2)
    return (*first[:-1], shape[1] if shape is not None and len(shape) == 2 else None) if first else None


def _general_product(typed: TypedNode) -> Shape:
    a, b = typed.of_rank(0, 2), typed.of_rank(3, 2)
    return a[typed.number("transA") != 0], b[typed.number("transB") == 0]


def _sparse_product(typed: TypedNode) -> Shape:
    sparse, b = typed.types[0], typed.of_rank(1, 2)
    dims = sparse.proto.sparse_tensor_type.shape.dim if sparse is not None else ()
    place = typed.number("transA") != 0
    rows = dims[place] if len(dims) == 2 else None
    known = rows is not None and rows.HasField("dim_value")
    return rows.dim_value if known and rows is not None else None, b[typed.number("transB") == 0]


def _conv_state(typed: TypedNode) -> Shape | None:
    """Of CausalConvWithState: the last inputs, as many as the next step reads."""
    if typed.has(3):
        return typed.shape(3)
    shape, taps = typed.shape(0), at(typed, 1, -1)
    if not shape or not isinstance(taps, int) or typed.number("state_window"):
        return None
    length = (taps - 1) * typed.number("dilation", 1)
    return (shape[0], length, *shape[2:]) if typed.number("channels_last") else (*shape[:-1], length)


def _hashed(typed: TypedNode) -> Shape | None:
    """Of NGramHashMapping: a number for each head of each length of n-gram, at each token."""
    shape = typed.shape(0)
    heads = (typed.number("max_ngram_size") - 1) * typed.number("n_head_per_ngram")
    return (*shape, heads) if shape is not None else None


def _hash_state(typed: TypedNode) -> Shape | None:
    """Of NGramHashMapping: the tokens that the next n-grams begin with."""
    if typed.has(3):
        return typed.shape(3)
    return (at(typed, 0, 0), typed.number("max_ngram_size") - 1)


def _captured(*last: tuple[int, int]) -> ShapeRule:
    """What is kept of so many steps for each request."""

    def shape(typed: TypedNode) -> Shape:
        return (at(typed, 4, 0), typed.number("state_update_capacity"), *(at(typed, *place) for place in last))

    return shape


def _delta_update(typed: TypedNode) -> Shape:
    return at(typed, 6, 0), None


def _kept_windows(typed: TypedNode) -> Shape | None:
    """Of Crop: the middle of an image, without a border, or as large as `scale` says from its corner on."""
    shape, border, scale = typed.shape(0), typed.numbers("border"), typed.numbers("scale")
    if shape is None or len(shape) != 4 or len(border) != 4:
        return None
    if len(scale) == 2:
        return (*shape[:2], *scale)
    (left, top, right, bottom), (height, width) = border, shape[2:]
    rows = height - top - bottom if isinstance(height, int) else None
    columns = width - left - right if isinstance(width, int) else None
    return (*shape[:2], rows, columns)


def _blocked_input(typed: TypedNode) -> Shape | None:
    """Of ReorderInput: channels in blocks, of which the last is filled up."""
    shape = typed.shape(0)
    if shape is None or len(shape) < 2:
        return None
    if typed.number("channels_last"):
        shape = (shape[0], shape[-1], *shape[1:-1])
    channels = shape[1]
    whole = isinstance(channels, int) and channels % _BLOCK == 0
    return (shape[0], channels if whole else typed.blocked, *shape[2:])


def _unblocked_output(typed: TypedNode) -> Shape | None:
    """Of ReorderOutput: as many channels as an attribute says."""
    shape, channels = typed.shape(0), typed.number("channels") or None
    if shape is None or len(shape) < 2:
        return None
    return (shape[0], *shape[2:], channels) if typed.number("channels_last") else (shape[0], channels, *shape[2:])


def _scaled(typed: TypedNode) -> Shape | None:
    shape, scales = typed.shape(0), typed.numbers("scales")
    if shape is None or len(scales) != len(shape):
        return None
    return tuple(times(extent, factor) for extent, factor in zip(shape, scales, strict=True))


def _row(*outputs: tuple[ShapeRule, Element]) -> Outputs:
    return outputs


_like = _row((same(0), 0))
_LIKE = """
BiasGelu BranchwiseRMSNorm FastGelu GatedAdd GatedRMSNorm Gelu HyperConnectionPostMix Inverse MRotaryEmbedding MoE QMoE
QLinearLeakyRelu QLinearSigmoid QLinearSoftmax QuickGelu RotaryEmbedding SampleOp ScaledSiLU Trilu
"""
_state = ((_states, 0), (_last_state, 0), (_last_state, 0))
_skipped = ((same(0), 0), (_reduced(0), always(FLOAT)), (_reduced(0), always(FLOAT)), (same(0), 0))
_windows = standard("MaxPool", 0)

_ADDED: dict[str, Outputs] = {
    **dict.fromkeys(_LIKE.split(), _like),
    "Attention": _row((attention.projected, 0), (attention.projected_state(4), 0)),
    "AttnLSTM": _state,
    "BeamSearch": search.BEAM_OUTPUTS,
    "BifurcationDetector": _row((picked(None), 0), (picked(), 0)),
    "CDist": _row((picked((0, 0), (1, 0)), 0)),
    "CausalConvWithState": _row((same(0), 0), (_conv_state, 0)),
    "ConvTransposeWithDynamicPads": _row((_transposed, 0)),
    "CropAndResize": _row((_cropped, 0)),
    "DecoderMaskedMultiHeadAttention": _row(
        (attention.attended, 0), (same(5), 0), (same(6), 0), (attention.products, 0)),
    "DequantizeLinear": _row((same(0), 1)),
    "DynamicQuantizeLSTM": _state,
    "DynamicQuantizeMatMul": _row((product(), 0)),
    "DynamicTimeWarping": _row((picked(2, None), always(INT32))),
    "EmbedLayerNormalization": _row(
        (picked((0, 0), (0, 1), (2, 1)), 2), (picked((0, 0)), always(INT32)), (picked((0, 0), (0, 1), (2, 1)), 2)),
    "EngramGate": _row((same(0), 0), (same(0), 0)),
    "ExpandDims": _row((_expanded, 0)),
    "FusedConv": _row((standard("Conv", 0, 1), 0)),
    "FusedGemm": _row((standard("Gemm", 0, 1), 0)),
    "FusedMatMul": _row((product(), 0)),
    "GatedDeltaNet": _row((attention.delta, 0), (attention.delta_state, always(FLOAT)), (_delta_update, always(FLOAT))),
    "GatherBlockQuantized": _row((_rows_of_blocks, 2)),
    "GatherND": _row((standard("GatherND", 0, 1), 0)),
    "GatherPacked": _row((_packed_rows, lambda typed: typed.number("output_dtype", BFLOAT16))),
    "GreedySearch": _row((search.sequences, always(INT32))),
    "GridSample": _row((standard("GridSample", 0, 1), 0)),
    "GroupQueryAttention": _row(
        (attention.grouped, 0), (attention.grouped_state(3), _first_there(3, 0)),
        (attention.grouped_state(4), _first_there(4, 0)), (attention.grouped_products, 0)),
    "HyperConnectionPreMix": _row((_premixed, 0)),
    "LinearAttention": _row((attention.linear, 0), (attention.linear_state, _first_there(3, 0))),
    "LinearAttentionGate": _row((same(0), 0), (same(3), 0)),
    "MatMulBnb4": _row((last_is("N"), 0)),
    "MatMulFpQ4": _row((_product_by_shape, 0)),
    "MatMulInteger16": _row((product(), always(INT32))),
    "MatMulIntegerToFloat": _row((product(), 2)),
    "MatMulNBits": _row((last_is("N"), 0)),
    "MaxpoolWithMask": _row((_windows, 0)),
    "MoEGroupRouter": _row((_routed, 0), (_routed, always(FLOAT)), (_routed, always(FLOAT))),
    "MultiHeadAttention": _row(
        (attention.attended, 0), (attention.attended_state(1, 6), 0), (attention.attended_state(2, 7), 0),
        (attention.products, 0)),
    "MurmurHash3": _row((same(0), lambda typed: UINT32 if typed.number("positive", 1) else INT32)),
    "NGramHashMapping": _row((_hashed, 0), (_hash_state, 0)),
    "NGramRepeatBlock": _row((same(1), 1)),
    "NhwcMaxPool": _row((standard("MaxPool", 0, channels_last=True), 0)),
    "Pad": _row((standard("Pad", 0, 1), 0)),
    "QAttention": _row((attention.projected, 3), (attention.projected_state(8), 3)),
    "QEmbedLayerNormalization": _row((picked((0, 0), (0, 1), (2, 1)), 8), (picked((0, 0)), always(INT32))),
    "QGemm": _row((_general_product, _zero_point(8, FLOAT))),
    "QLinearAdd": _row((broadcast(0, 3), 0)),
    "QLinearAveragePool": _row((standard("AveragePool", 0, channels_last=None), 0)),
    "QLinearConcat": _row((_concatenated, 1)),
    "QLinearConv": _row((standard("Conv", 0, 3, channels_last=None), 7)),
    "QLinearGlobalAveragePool": _row((standard("GlobalAveragePool", 0, channels_last=None), 0)),
    "QLinearMul": _row((broadcast(0, 3), 0)),
    "QLinearWhere": _row((broadcast(0, 1, 4), 1)),
    "QuantizeLinear": _row((same(0), _zero_point(2, UINT8))),
    "Range": _row((_counted, 0)),
    "Sampling": _row((search.sequences, always(INT32)), (search.per_row(None), always(FLOAT))),
    "SkipLayerNormalization": _skipped,
    "SkipSimplifiedLayerNormalization": _skipped,
    "SparseAttention": _row((attention.grouped, 0), (same(3), 0), (same(4), 0)),
    "SparseToDenseMatMul": _row((_sparse_product, 1)),
    "Tokenizer": _row((lambda typed: (*(typed.shape(0) or ()), None), 0)),
    "TransposeMatMul": _row((product(), 0)),
    "UnfoldTensor": _row((_unfolded, 0)),
    "Unique": _row((picked(None), 0), (same(0), always(INT64)), (picked(None), always(INT64))),
    "VarlenCausalConvWithState": _row((same(0), 0), (same(4), 0), (_captured((0, 1)), 0)),
    "VarlenNGramHashMapping": _row((_hashed, 0), (same(4), 0)),
    "WhisperBeamSearch": _row(
        *search.BEAM_OUTPUTS, (search.per_row(*[None] * 5), always(FLOAT)), (search.per_row(), search.scored)),
    "WordConvEmbedding": _row((picked((0, 0), (1, 0)), 1)),
}  # fmt: skip
_IN_BLOCKS: dict[str, Outputs] = {
    "AveragePool": _row((standard("AveragePool", 0), 0)),
    "Conv": _row((standard("Conv", 0, 1), 0)),
    "GlobalAveragePool": _row((standard("GlobalAveragePool", 0), 0)),
    "GlobalMaxPool": _row((standard("GlobalMaxPool", 0), 0)),
    "MaxPool": _row((_windows, 0)),
    "ReorderInput": _row((_blocked_input, 0)),
    "ReorderOutput": _row((_unblocked_output, 0)),
    "Upsample": _row((_scaled, 0)),
}
#: Operators that onnx had while they were tried, and those that a session adds between providers.
_DROPPED: dict[str, Outputs] = {
    **dict.fromkeys(
        ["Affine", "ImageScaler", "MemcpyFromHost", "MemcpyToHost", "ParametricSoftplus", "Scale", "ScaledTanh"], _like
    ),
    "Crop": _row((_kept_windows, 0)),
    "DynamicSlice": _row((standard("Slice", 0, 1, 2, 3, least=3), 0)),
}
#: The types of each operator's outputs, by its domain and name.
ROWS: dict[tuple[str, str], Outputs] = {
    (domain, kind): outputs
    for domain, rows in ((_DOMAIN, _ADDED), (_BLOCKED, _IN_BLOCKS), ("", _DROPPED))
    for kind, outputs in rows.items()
}

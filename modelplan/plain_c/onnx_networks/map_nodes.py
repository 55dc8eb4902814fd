"""Nodes that compute maps by windows: convolutions, pools, means over places, and maps of another size."""

from collections.abc import Sequence
from dataclasses import replace
from math import prod
from typing import Any

import numpy as np

from modelplan.plain_c.onnx_networks.emitting import (
    ConstantCodes,
    Emitter,
    Held,
    NodeResult,
    UnknownValueError,
    require,
    require_axis,
)
from modelplan.plain_c.onnx_networks.onnx_nodes import Array, OnnxNode, Shape
from modelplan.runtimes.tflm.stated_network import CodeScales

Pair = tuple[int, int]
#: Codes whose sum has 16 bits.
_MOST_SUMMED = 255


def _windows(node: OnnxNode, extents: Sequence[int], kernel: Sequence[int]) -> dict[str, Any]:
    """Strides, distances and paddings along both axes; a sequence has a second axis of one place."""
    axes = len(extents)
    require(node.numbers("kernel_shape", kernel) == tuple(kernel), "a kernel_shape that its weights do not have")
    strides, apart = node.numbers("strides", (1,) * axes), node.numbers("dilations", (1,) * axes)
    pads = list(node.numbers("pads", (0,) * 2 * axes))
    auto = node.text("auto_pad", "NOTSET") or "NOTSET"
    if auto.startswith("SAME"):
        for axis, (extent, taps) in enumerate(zip(extents, kernel, strict=True)):
            reach = (taps - 1) * apart[axis] + 1
            missing = max((-(-extent // strides[axis]) - 1) * strides[axis] + reach - extent, 0)
            first = missing // 2 if auto == "SAME_UPPER" else missing - missing // 2
            pads[axis], pads[axes + axis] = first, missing - first
    elif auto == "VALID":
        pads = [0] * 2 * axes
    require(min(pads) >= 0, "paddings below 0")
    ones = (1,) * (2 - axes)
    zeros = (0,) * (2 - axes)
    (h, w), (dh, dw) = (*strides, *ones), (*apart, *ones)
    above, below = (*pads[:axes], *zeros), (*pads[axes:], *zeros)
    places = {"StrideH": h, "StrideW": w, "DilationHFactor": dh, "DilationWFactor": dw}
    return {**places, "Pads": (above[0], above[1], below[0], below[1])}


def _spatial(shape: Shape) -> Shape:
    require(len(shape) in (3, 4), f"a map of {len(shape)} dimensions, there are kernels for 3 and 4")
    return shape[2:]


def weights_of(e: Emitter, name: str) -> tuple[Array, CodeScales | None]:
    """Weights, and their scales where they are codes."""
    coded = e.constant_codes.get(name)
    if coded:
        return coded.codes, coded.scales
    values = e.constant(name)
    require(values is not None, "weights that are computed")
    assert values is not None
    return values, None


#: The share by which the scale of a bias may be beside that of the sums, as products are rounded.
_SAME_UNIT = 1e-6


def bias_codes(e: Emitter, name: str, source: CodeScales, weights: CodeScales) -> Array:
    """Biases as whole numbers, in units of the products of codes; codes of other units become the nearest of these."""
    coded, scale = e.constant_codes.get(name), np.float32(source.scale) * np.array(weights.scales, np.float32)
    if coded and coded.codes.dtype == np.int32 and np.allclose(coded.scales.scales, scale, rtol=_SAME_UNIT, atol=0):
        return coded.codes
    values = e.constant(name)
    require(values is not None, "a bias that is computed")
    assert values is not None
    if values.dtype == np.int32:
        return values
    return np.rint(values.astype(np.float32) / scale).astype(np.int32)


def convolution(e: Emitter, node: OnnxNode) -> None:
    """Conv, of floats or of codes."""
    source, (weights, scales) = e.codes_of(node.inputs[0]), weights_of(e, node.inputs[1])
    target = e.target(node, coded=source is not None and scales is not None)
    if source is None or scales is None or target.scales is None:
        weights = e.needed(node, 1, "weights")
        _emit_convolution(e, node, e.last(node.inputs[0]), weights, None, e.known(node, 2), target)
        return
    assert source.scales is not None
    require_axis(scales, 0)
    bias = bias_codes(e, node.inputs[2], source.scales, scales) if node.has(2) else None
    _emit_convolution(e, node, e.in_order(source, last=True), weights, scales, bias, target)


def coded_convolution(e: Emitter, node: OnnxNode) -> None:
    """QLinearConv."""
    source = coded_operand(e, node)
    scales, _ = e.scales(node, 4, weights=True)
    weights = signed(e.needed(node, 3, "weights"))
    out, code = e.scales(node, 6)
    target = NodeResult(node.outputs[0], scales=out, code=code)
    scales = CodeScales(scales.scales, scales.zero, 0)
    _emit_convolution(e, node, e.in_order(source, last=True), weights, scales, e.known(node, 8), target)


def signed(codes: Array) -> Array:
    """Codes of 8 bits, moved to where they have a sign."""
    return codes if codes.dtype != np.uint8 else (codes.astype(np.int16) - 128).astype(np.int8)


def _emit_convolution(
    e: Emitter,
    node: OnnxNode,
    source: int,
    weights: Array,
    scales: CodeScales | None,
    bias: Array | None,
    target: NodeResult,
) -> None:
    shape, groups = e.built.tensors[source].shape, int(node.number("group", 1))
    extents = shape[1:3] if weights.ndim == 4 else shape[1:2]
    require(weights.ndim in (3, 4), f"windows of {weights.ndim - 2} dimensions")
    require(scales is None or scales.zero == 0, "weights whose zero point is not 0")
    options = _windows(node, extents, weights.shape[2:]) | e.options(target)
    filters = weights if weights.ndim == 4 else weights[..., None]
    by_channel = groups == shape[3] and filters.shape[1] == 1
    order, kind = ((1, 2, 3, 0), "DEPTHWISE_CONV_2D") if by_channel else ((0, 2, 3, 1), "CONV_2D")
    if by_channel:
        options["DepthMultiplier"] = filters.shape[0] // groups
    stated = scales and CodeScales(scales.scales, 0, 3 if by_channel else 0)
    tables = [e.built.constant(f"{target.name} weights", filters.transpose(order), stated)]
    if bias is not None:
        tables.append(e.built.constant(f"{target.name} bias", bias))
    e.built.op(kind, [source, *tables], [e.result(target, last=True)], **options)


def transposed_convolution(e: Emitter, node: OnnxNode) -> None:
    """ConvTranspose, of floats or of codes."""
    source, (weights, scales) = e.codes_of(node.inputs[0]), weights_of(e, node.inputs[1])
    coded = source is not None and scales is not None
    target, bias = e.target(node, coded=coded), e.known(node, 2)
    if target.scales is None:
        weights, scales, held = e.needed(node, 1, "weights"), None, e.last(node.inputs[0])
    else:
        assert source is not None
        assert source.scales is not None
        assert scales is not None
        require_axis(scales, 1)
        held = e.in_order(source, last=True)
        bias = bias_codes(e, node.inputs[2], source.scales, scales) if node.has(2) else None
    require(int(node.number("group", 1)) == 1, "groups")
    require(scales is None or scales.zero == 0, "weights whose zero point is not 0")
    require(set(node.numbers("dilations", (1,))) == {1}, "dilations")
    shape, result = _spatial(e.shape(node.inputs[0])), _spatial(e.shape(target.name))
    taps, axes = weights.shape[2:], len(shape)
    require(node.numbers("kernel_shape", taps) == taps, "a kernel_shape that its weights do not have")
    strides = node.numbers("strides", (1,) * axes)
    more = node.numbers("output_padding", (0,) * axes)
    auto, stated = node.text("auto_pad", "NOTSET") or "NOTSET", node.numbers("pads", (0,) * 2 * axes)
    before = list(stated[:axes])
    if auto.startswith("SAME") or "output_shape" in node.attributes:
        for a in range(axes):
            total = strides[a] * (shape[a] - 1) + more[a] + taps[a] - result[a]
            before[a] = total - total // 2 if auto == "SAME_LOWER" else total // 2
    require(min(before) >= 0 and all(b < t for b, t in zip(before, taps, strict=True)), "paddings beyond the window")
    ones, zeros = (1,) * (2 - axes), (0,) * (2 - axes)
    (h, w), (top, left) = (*strides, *ones), (*before, *zeros)
    filters = weights if weights.ndim == 4 else weights[..., None]
    stated_scales = scales and CodeScales(scales.scales, 0, 0)
    tables = [e.built.constant(f"{target.name} weights", filters.transpose(1, 2, 3, 0), stated_scales)]
    result_tensor = e.result(target, last=True)
    extents = e.integers("shape", e.built.tensors[result_tensor].shape)
    biases = [e.built.constant(f"{target.name} bias", bias)] if bias is not None else []
    options = {"StrideH": h, "StrideW": w, "Pads": (top, left, 0, 0), **e.options(target)}
    e.built.op("TRANSPOSE_CONV", [extents, *tables, held, *biases], [result_tensor], **options)


def _pooled(e: Emitter, node: OnnxNode, source: int, target: NodeResult, kind: str) -> None:
    shape, taps = e.built.tensors[source].shape, node.numbers("kernel_shape")
    extents = shape[1:3] if len(taps) == 2 else shape[1:2]
    require(len(taps) in (1, 2), f"windows of {len(taps)} dimensions")
    options = _windows(node, extents, taps)
    require({options.pop("DilationHFactor"), options.pop("DilationWFactor")} == {1}, "dilations")
    high, wide = (*taps, *(1,) * (2 - len(taps)))
    above = options["Pads"]
    result = e.result(target, last=True)
    counted = kind == "AVERAGE_POOL_2D" and int(node.number("count_include_pad")) and max(above) > 0
    stored = e.built.tensors[result].shape
    for axis, (stride, reach) in enumerate(((options["StrideH"], high), (options["StrideW"], wide))):
        end = (stored[1 + axis] - 1) * stride - above[axis] + reach
        beyond = end - shape[1 + axis] > above[2 + axis]
        require(not (counted and beyond), "windows that end behind the padding of a mean that counts it")
        require((stored[1 + axis] - 1) * stride - above[axis] < shape[1 + axis], "windows beside the map")
    whole = {"Whole": 1} if counted else {}
    e.built.op(kind, [source], [result], FilterHeight=high, FilterWidth=wide, **options, **e.options(target), **whole)


def greatest_of_windows(e: Emitter, node: OnnxNode) -> None:
    """MaxPool, of floats or of codes, which it keeps."""
    require(len(node.outputs) < 2 or not node.outputs[1], "the places of the greatest")
    held = moved_operand(e, node)
    target = NodeResult(node.outputs[0], scales=held.scales, code=held.code)
    _pooled(e, node, e.in_order(held, last=True), target, "MAX_POOL_2D")
    pass_codes_on(e, node)


def mean_of_windows(e: Emitter, node: OnnxNode) -> None:
    """AveragePool, of floats or from codes to codes."""
    source = e.codes_of(node.inputs[0])
    whole = source is not None and _covers_map(e, node)
    target = e.target(node, coded=source is not None, limited=not whole)
    if whole and source and target.scales:
        _reduced(e, source, target, "MEAN", keep=True)
        return
    held = source if target.scales and source else e.floats(node.inputs[0])
    _pooled(e, node, e.in_order(held, last=True), target, "AVERAGE_POOL_2D")


def _covers_map(e: Emitter, node: OnnxNode) -> bool:
    """Whether the only window of a mean is the map, of whose codes ONNX Runtime then takes the mean in integers."""
    extents, taps = _spatial(e.shape(node.inputs[0])), node.numbers("kernel_shape")
    return taps == extents and not any(_windows(node, extents, taps)["Pads"])


def coded_pool(e: Emitter, node: OnnxNode) -> None:
    """QLinearAveragePool."""
    scales, code = e.scales(node, 3)
    require(not int(node.number("channels_last")), "channels that stand last")
    target = NodeResult(node.outputs[0], scales=scales, code=code)
    if _covers_map(e, node):
        _reduced(e, coded_operand(e, node), target, "MEAN", keep=True)
        return
    _pooled(e, node, e.in_order(coded_operand(e, node), last=True), target, "AVERAGE_POOL_2D")


def coded_mean(e: Emitter, node: OnnxNode) -> None:
    """QLinearGlobalAveragePool."""
    scales, code = e.scales(node, 3)
    require(not int(node.number("channels_last")), "channels that stand last")
    _reduced(e, coded_operand(e, node), NodeResult(node.outputs[0], scales=scales, code=code), "MEAN", keep=True)


def global_pool(e: Emitter, node: OnnxNode) -> None:
    """GlobalAveragePool and GlobalMaxPool."""
    kind = "MEAN" if node.kind == "GlobalAveragePool" else "REDUCE_MAX"
    source = e.codes_of(node.inputs[0])
    target = e.target(node, coded=source is not None and kind == "MEAN", limited=False)
    held = source if source and kind == "MEAN" else e.floats(node.inputs[0])
    _reduced(e, held, target, kind, keep=True)


def _reduced(e: Emitter, held: Held, target: NodeResult, kind: str, *, keep: bool) -> None:
    """A mean, a sum or an extreme over all places of a map."""
    source = e.in_order(held, last=True)
    more: dict[str, int] = {}
    if kind in ("MEAN", "SUM"):
        source, more = _row_by_row(e, source, held.scales, kind, target)
    result = e.result(target, last=keep)
    e.built.op(kind, [source, e.integers("axes", (1, 2))], [result], KeepDims=int(keep), **more, **e.options(target))


def _row_by_row(
    e: Emitter, source: int, scales: CodeScales | None, kind: str, target: NodeResult
) -> tuple[int, dict[str, int]]:
    """What is reduced of a map: first each row by itself, so that the map need not be there as a whole.

    Sums of codes are whole numbers of 16 bits, which state of how many elements each is.
    """
    n, high, wide, channels = e.built.tensors[source].shape
    if n != 1 or high < 2 or wide < 2 or (scales and wide > _MOST_SUMMED):
        return source, {}
    name, axes = f"{target.name} of rows", e.integers("axes", (2,))
    summed = scales and CodeScales(scales.scales, scales.zero * wide)
    rows = e.built.tensor(name, (n, high, 1, channels), "int16" if scales else "float32", summed)
    e.built.op("SUM" if scales else kind, [source, axes], [rows], KeepDims=1)
    return rows, {"Summed": wide} if scales else {}


_REDUCTIONS = {
    "ReduceMean": "MEAN", "ReduceSum": "SUM", "ReduceMax": "REDUCE_MAX", "ReduceMin": "REDUCE_MIN", "ReduceL2": "SUM",
    "ReduceSumSquare": "SUM", "ReduceL1": "SUM",
}  # fmt: skip


def reduction(e: Emitter, node: OnnxNode) -> None:
    """ReduceMean and its like along constant axes, a mean also of codes."""
    kind = _REDUCTIONS[node.kind]
    source = e.codes_of(node.inputs[0]) if kind == "MEAN" else None
    held = source or e.floats(node.inputs[0])
    if node.kind in ("ReduceL2", "ReduceSumSquare", "ReduceL1"):
        sizes = e.built.tensor(f"{node.outputs[0]} of", e.built.tensors[held.tensor].shape, "float32")
        absolute, squares = ("ABS", [held.tensor]), ("MUL", [held.tensor, held.tensor])
        e.built.op(*(absolute if node.kind == "ReduceL1" else squares), [sizes], FusedActivationFunction=0)
        held = replace(held, tensor=sizes)
    _emit_reduction(e, node, held, kind)
    if node.kind == "ReduceL2":
        squared = e.values[node.outputs[0]]
        e.built.op("SQRT", [squared.tensor], [e.result(NodeResult(node.outputs[0]), last=squared.last)])


def _emit_reduction(e: Emitter, node: OnnxNode, held: Held, kind: str) -> None:
    shape = e.shape(node.inputs[0])
    axes = e.known(node, 1)
    stated = node.numbers("axes") if axes is None else tuple(int(a) for a in axes.ravel())
    require(bool(stated) or not int(node.number("noop_with_empty_axes")), "no axes")
    gone = tuple(sorted(a % len(shape) for a in stated)) or tuple(range(len(shape)))
    keep = bool(int(node.number("keepdims", 1)))
    target = NodeResult(node.outputs[0])
    if held.last and not held.flat and gone == tuple(range(2, len(shape))):
        _reduced(e, held, target, kind, keep=keep)
        return
    e.built.op(
        kind,
        [e.in_order(held, last=False), e.integers("axes", gone)],
        [e.result(target, last=False)],
        KeepDims=int(keep),
        **e.options(target),
    )


def moved_operand(e: Emitter, node: OnnxNode, position: int = 0) -> Held:
    """An operand that is only moved: its codes where it has some."""
    return e.codes_of(node.inputs[position]) or e.floats(node.inputs[position])


def pass_codes_on(e: Emitter, node: OnnxNode) -> None:
    """States that the result of a move of codes are codes too, where the node moved the numbers that they stand for."""
    name = node.outputs[0]
    if node.inputs[0] in e.codes:
        held = e.values.pop(name)
        e.values[f"{name} codes"] = held
        e.codes[name] = f"{name} codes"


def resized(e: Emitter, node: OnnxNode) -> None:
    """Resize and Upsample along height and width."""
    shape, result = e.shape(node.inputs[0]), e.shape(node.outputs[0])
    _spatial(shape)
    require(shape[:2] == result[:2], "another number of channels")
    mode = node.text("mode", "nearest")
    asked = "asymmetric" if node.kind == "Upsample" else "half_pixel"
    placed = node.text("coordinate_transformation_mode", asked)
    one_to_one = "pytorch_half_pixel" if placed == "half_pixel" and min(result[2:]) > 1 else placed
    pairs = list(zip(shape[2:], result[2:], strict=True))
    options: dict[str, Any] = {"AlignCorners": 0, "HalfPixelCenters": 0}
    if mode == "nearest":
        nearest = "floor" if node.kind == "Upsample" else node.text("nearest_mode", "round_prefer_floor")
        even = all(b % a == 0 for a, b in pairs)
        known = (placed, nearest) == ("asymmetric", "floor")
        known = known or (even and placed == "half_pixel" and nearest.startswith("round"))
        require(known, f"places by {placed} and {nearest}")
        kind = "RESIZE_NEAREST_NEIGHBOR"
    else:
        require(mode == "linear", f"mode {mode}")
        known = placed in ("asymmetric", "align_corners") or one_to_one == "pytorch_half_pixel"
        require(known and not int(node.number("antialias")), f"places by {placed}")
        options = {"AlignCorners": int(placed == "align_corners"), "HalfPixelCenters": int("half_pixel" in placed)}
        kind = "RESIZE_BILINEAR"
    held = moved_operand(e, node) if mode == "nearest" else e.floats(node.inputs[0])
    require(mode == "nearest" or not held.scales, "codes between which values are computed")
    source = e.in_order(held, last=True)
    target = NodeResult(node.outputs[0], scales=held.scales, code=held.code)
    tensor = e.result(target, last=True)
    extents = e.integers("size", e.built.tensors[tensor].shape[1:3])
    e.built.op(kind, [source, extents], [tensor], **options)
    if mode == "nearest":
        pass_codes_on(e, node)


def normalised_by_channel(e: Emitter, node: OnnxNode) -> None:
    """BatchNormalization: a product and a sum for each channel, or none where a convolution before has them."""
    require(not int(node.number("training_mode")), "training")
    scale, shift, mean, variance = (e.needed(node, i, "statistics").astype(np.float64) for i in range(1, 5))
    factor = scale / np.sqrt(variance + np.float64(node.number("epsilon", 1e-5)))
    offset = shift - mean * factor
    held, rank = e.floats(node.inputs[0]), len(e.shape(node.inputs[0]))
    last = rank in (3, 4)
    source = e.in_order(held, last=last)
    target = e.target(node, coded=False)
    middle = e.built.tensor(f"{target.name} product", e.built.tensors[source].shape, "float32")
    tables = [
        e.built.constant(f"{target.name} {w}", v.astype(np.float32))
        for w, v in (("factor", factor), ("offset", offset))
    ]
    require(last or rank == 2, f"{rank} dimensions")
    e.built.op("MUL", [source, tables[0]], [middle], FusedActivationFunction=0)
    e.built.op("ADD", [middle, tables[1]], [e.result(target, last=last)], **e.options(target))


def blocks_to_space(e: Emitter, node: OnnxNode) -> None:
    """DepthToSpace, by rows of blocks or by channels first."""
    size, shape, result = int(node.number("blocksize")), e.shape(node.inputs[0]), e.shape(node.outputs[0])
    held = moved_operand(e, node)
    target = NodeResult(node.outputs[0], scales=held.scales, code=held.code)
    source = e.in_order(held, last=True)
    if node.text("mode", "DCR") == "CRD":
        n, h, w, _ = e.built.tensors[source].shape
        source = _channels_regrouped(e, source, (n * h * w, result[1], size * size), held.scales)
        source = _as(e, source, (n, h, w, shape[1]), held.scales)
    e.built.op("DEPTH_TO_SPACE", [source], [e.result(target, last=True)], BlockSize=size)
    pass_codes_on(e, node)


def _as(e: Emitter, source: int, shape: Shape, scales: CodeScales | None) -> int:
    """A view of a tensor."""
    tensor = e.built.tensors[source]
    require(prod(shape) == tensor.elements, "other extents")
    held = Held(source, last=False, shape=tensor.shape, scales=scales)
    return e.viewed(held, tensor.name, shape, stored=shape, last=False).tensor


def _channels_regrouped(e: Emitter, source: int, shape: Shape, scales: CodeScales | None) -> int:
    """The last two axes of a view in the other order."""
    held = Held(_as(e, source, shape, scales), last=False, shape=shape, scales=scales)
    turned = (shape[0], shape[2], shape[1])
    return e.transposed(held, e.built.tensors[source].name, turned, (0, 2, 1)).tensor


def space_to_blocks(e: Emitter, node: OnnxNode) -> None:
    """SpaceToDepth."""
    held = moved_operand(e, node)
    target = NodeResult(node.outputs[0], scales=held.scales, code=held.code)
    source = e.in_order(held, last=True)
    e.built.op("SPACE_TO_DEPTH", [source], [e.result(target, last=True)], BlockSize=int(node.number("blocksize")))
    pass_codes_on(e, node)


def coded_operand(e: Emitter, node: OnnxNode, position: int = 0) -> Held:
    """Codes that a node reads, by the scale and zero point behind them, for which they have to be made."""
    scales, _ = e.scales(node, position + 1)
    name = node.inputs[position]
    if name not in e.values:
        raise UnknownValueError(f"{name!r} is computed by no node that has plain C")
    held = e.values[name]
    require(held.scales == scales, "codes that are read by another scale than they were made for")
    return held


def stated_constant(e: Emitter, node: OnnxNode) -> ConstantCodes | None:
    """Constants behind a DequantizeLinear."""
    values = e.model.constants.get(node.inputs[0])
    if values is None:
        return None
    scale = e.needed(node, 1, "scale").astype(np.float32).ravel()
    zero = e.known(node, 2)
    zeros = np.unique(zero) if zero is not None else np.zeros(1, values.dtype)
    require(values.dtype in (np.int8, np.uint8, np.int32), f"constants of type {values.dtype}")
    require(len(zeros) == 1, "zero points by channel that differ")
    require(not int(node.number("block_size")), "scales by blocks")
    unsigned = values.dtype == np.uint8
    axis = int(node.number("axis", 1)) % max(values.ndim, 1)
    scales = CodeScales(
        tuple(float(s) for s in scale), int(zeros[0]) - (128 if unsigned else 0), axis if len(scale) > 1 else 0
    )
    return ConstantCodes(signed(values), scales)

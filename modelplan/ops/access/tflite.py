"""How TFLite's operators state their access maps: builders for the rows of `ops/tflite.py`.

Source: tflite/schema/schema.fbs and the reference kernels of LiteRT (2026-08), whose maps are NHWC.
"""

from collections.abc import Sequence
from math import prod

from modelplan.ops.access import builders
from modelplan.ops.access.builders import Builder, Filter, ShapedOp, Window
from modelplan.ops.access.spans import AccessMap, Reads, Shape, Span, fixed, listed, same, same_padding, shifted, whole
from modelplan.ops.conditions import number, numbers

#: Weights [out, height, width, in], and those of a depthwise convolution [1, height, width, out].
_FILTER, _DEPTHWISE = Filter(1, results=0, channels=3, windows=1), Filter(1, results=3, channels=0, windows=1)


def _windows(node: ShapedOp, kernel: Sequence[int], data: int = 0) -> list[Window] | None:
    """The windows of a map along height and width."""
    shape, result = node.shape(data), node.result
    if shape is None or not len(shape) == len(result) == 4 or len(kernel) != 2:
        return None
    windows = []
    for axis, letter, reach in ((1, "h", kernel[0]), (2, "w", kernel[1])):
        stride, apart = number(node.op, f"stride_{letter}", 1), number(node.op, f"dilation_{letter}_factor", 1)
        if min(reach, stride, apart) < 1:
            return None
        padding = same_padding(shape[axis], result[axis], (reach - 1) * apart + 1, stride)
        before = _before(node, axis, padding // 2)
        windows.append(Window(reach, stride, before, apart))
    return windows


def _before(node: ShapedOp, axis: int, same: int) -> int:
    """The places in front of a map: stated ones (top, left, ...), those of SAME, or none."""
    pads = node.op.attribute("pads")
    if isinstance(pads, tuple):
        return int(str(pads[axis - 1]))
    return same if node.op.attribute("padding") == "SAME" else 0


def _kernel(node: ShapedOp) -> Shape:
    weights = node.shape(1)
    return weights[1:3] if weights is not None and len(weights) == 4 else ()


def convolution(node: ShapedOp) -> AccessMap | None:
    """CONV_2D, in groups where the weights have fewer channels than the map."""
    windows = _windows(node, _kernel(node))
    return builders.convolved(node, windows, _FILTER, last=True) if windows else None


def depthwise_convolution(node: ShapedOp) -> AccessMap | None:
    """DEPTHWISE_CONV_2D: some channels of each channel."""
    windows = _windows(node, _kernel(node))
    return builders.convolved(node, windows, _DEPTHWISE, last=True) if windows else None


def pool(node: ShapedOp) -> AccessMap | None:
    """A pool: a window of each channel."""
    windows = _windows(node, (number(node.op, "filter_height", 0), number(node.op, "filter_width", 0)))
    return builders.pooled(node, windows, first=1) if windows else None


def transposed_convolution(node: ShapedOp) -> AccessMap | None:
    """TRANSPOSE_CONV: operand 0 is a shape, operand 2 the map."""
    shape, kernel, result = node.shape(2), _kernel(node), node.result
    if shape is None or not kernel or not len(shape) == len(result) == 4:
        return None
    windows = []
    for axis, letter, reach in ((1, "h", kernel[0]), (2, "w", kernel[1])):
        stride = number(node.op, f"stride_{letter}", 1)
        if min(stride, reach) < 1:
            return None
        padding = same_padding(result[axis], shape[axis], reach, stride)
        windows.append(Window(reach, stride, _before(node, axis, padding // 2)))
    return builders.transposed_convolution(node, windows, _FILTER, data=2, bias=3, last=True)


def fully_connected(node: ShapedOp) -> AccessMap | None:
    """FULLY_CONNECTED: each run of inputs against all rows of the weights."""
    shape, weights, result = node.shape(0), node.shape(1), node.result
    if shape is None or weights is None or len(weights) != 2 or not all(weights):
        return None
    outputs, inputs = weights
    rows = prod(result) // outputs
    if prod(shape) != rows * inputs or prod(result) != rows * outputs:
        return None
    view = (*shape[:-1], inputs) if result[:-1] == shape[:-1] and shape[-1:] == (inputs,) else (rows, inputs)
    result, last = (*view[:-1], outputs), len(view) - 1
    reads = [
        Reads(0, view, result, (*builders.identity(view[:-1]), whole(inputs))),
        Reads(1, weights, result, (same(last), whole(inputs))),
    ]
    if node.shape(2) is not None and prod(node.shape(2) or ()) == outputs:
        reads.append(Reads(2, (outputs,), result, (same(last),)))
    return AccessMap(tuple(reads), products=1)


def batch_product(node: ShapedOp) -> AccessMap | None:
    """BATCH_MATMUL, its operands turned by adj_x and adj_y."""
    turned = (bool(number(node.op, "adj_x", 0)), bool(number(node.op, "adj_y", 0)))
    return builders.product(node, 0, 1, turned=turned)


def padding(node: ShapedOp) -> AccessMap | None:
    """PAD and PADV2 with constant paddings."""
    pads, shape = numbers(node.op, "operand 1"), node.shape(0)
    if pads is None or shape is None or len(pads) != 2 * len(shape):
        return None
    return builders.taken(node, [shifted(axis, -pads[2 * axis]) for axis in range(len(shape))])


def mirrored_padding(node: ShapedOp) -> AccessMap | None:
    """MIRROR_PAD: beyond its border the map stands in reverse, with the border or, where it reflects, without."""
    pads, shape = numbers(node.op, "operand 1"), node.shape(0)
    if pads is None or shape is None or len(pads) != 2 * len(shape):
        return None
    edge = number(node.op, "mode", -1)  # 0: REFLECT, 1: SYMMETRIC
    if edge not in (0, 1):
        return None
    spans = [builders.mirrored(axis, n, pads[2 * axis], pads[2 * axis + 1], edge) for axis, n in enumerate(shape)]
    return builders.taken(node, spans)


def slice_of(node: ShapedOp) -> AccessMap | None:
    """SLICE from a constant place on."""
    begin, shape = numbers(node.op, "operand 1"), node.shape(0)
    if begin is None or shape is None or len(begin) != len(shape) != len(node.result) - 1:
        return None
    return builders.taken(node, [shifted(axis, at) for axis, at in enumerate(begin)])


def strided_slice(node: ShapedOp) -> AccessMap | None:
    """STRIDED_SLICE from constant places on, with axes that it drops."""
    begin, step, shape = numbers(node.op, "operand 1"), numbers(node.op, "operand 3"), node.shape(0)
    masks = [number(node.op, name, 0) for name in ("ellipsis_mask", "new_axis_mask", "offset")]
    if begin is None or step is None or shape is None or any(masks) or 0 in step or 0 in shape:
        return None
    if not len(begin) == len(step) == len(shape):
        return None
    begins, drops = number(node.op, "begin_mask", 0), number(node.op, "shrink_axis_mask", 0)
    spans: list[Span] = []
    result = 0
    for axis, extent in enumerate(shape):
        at, by = begin[axis] + extent * (begin[axis] < 0), step[axis]
        at = min(max(at, 0 if by > 0 else -1), extent - (by < 0))
        if begins >> axis & 1:
            at = 0 if by > 0 else extent - 1
        if drops >> axis & 1:
            spans.append(fixed(at))
            continue
        spans.append(shifted(result, at, by))
        result += 1
    if result != len(node.result):
        return None
    return builders.taken(node, spans)


def concatenation(node: ShapedOp) -> AccessMap | None:
    """Operands side by side along an axis that they have."""
    return builders.joined(node, number(node.op, "axis", 0), range(len(node.shapes)))


def pack(node: ShapedOp) -> AccessMap | None:
    """PACK: operands along a new axis."""
    return builders.stacked(node, number(node.op, "axis", 0))


def unpack(node: ShapedOp) -> AccessMap | None:
    """UNPACK: one place of an axis, which goes."""
    shape = node.shape(0)
    if not shape:
        return None
    axis = number(node.op, "axis", 0) % len(shape)
    spans = [fixed(node.output) if k == axis else same(k - (k > axis)) for k in range(len(shape))]
    return builders.taken(node, spans) if len(node.result) == len(shape) - 1 else None


def splitting(axis_operand: int, operand: int) -> Builder:
    """SPLIT and SPLIT_V: runs along an axis that a constant operand names."""

    def split(node: ShapedOp) -> AccessMap | None:
        axes, shape = numbers(node.op, f"operand {axis_operand}"), node.shape(operand)
        if axes is None or len(axes) != 1 or not shape or any(len(result) != len(shape) for result in node.results):
            return None
        axis = axes[0] % len(shape)
        first = sum(result[axis] for result in node.results[: node.output])
        spans = [shifted(k, first) if k == axis else same(k) for k in range(len(shape))]
        return builders.taken(node, spans, operand)

    return split


def transposition(node: ShapedOp) -> AccessMap | None:
    """TRANSPOSE with a constant order."""
    order = numbers(node.op, "operand 1")
    return builders.permuted(node, order) if order is not None else None


def along_channels(node: ShapedOp) -> AccessMap | None:
    """An operator over the last axis: softmax and norms."""
    return builders.along(node, (-1,))


def reduction(node: ShapedOp) -> AccessMap | None:
    """A sum, product, least or greatest along constant axes."""
    return builders.reduced(node, numbers(node.op, "operand 1"))


def resized(node: ShapedOp) -> AccessMap | None:
    """RESIZE_BILINEAR and RESIZE_NEAREST_NEIGHBOR: one place, or two neighbours, for each row and column."""
    shape, result = node.shape(0), node.result
    if shape is None or not len(shape) == len(result) == 4 or not prod(result) or not prod(shape):
        return None
    spans = [same(0), *(_resized(node, axis, shape[axis], result[axis]) for axis in (1, 2)), same(3)]
    return builders.taken(node, spans) if node.op.kind.endswith("NEIGHBOR") else _not_moved(builders.taken(node, spans))


def _not_moved(access: AccessMap | None) -> AccessMap | None:
    return AccessMap(access.reads) if access else None


def _resized(node: ShapedOp, axis: int, extent: int, result: int) -> Span:
    """The places that an index reads; one more on each side where single precision may round to the neighbour."""
    corners, centres = bool(number(node.op, "align_corners", 0)), bool(number(node.op, "half_pixel_centers", 0))
    above, below = (extent - 1, result - 1) if corners and result > 1 else (extent, result)
    linear, step = node.op.kind == "RESIZE_BILINEAR", (1024 * above + below // 2) // below
    places = []
    for y in range(result):
        # twice the place, as a fraction over 2 * below: (y + 1/2) * above / below (- 1/2 for bilinear)
        twice = (2 * y + centres) * above - (below if centres and linear else 0)
        if not linear and corners:
            twice += below  # rounded
        first = twice // (2 * below)
        exact = twice % (2 * below) == 0
        last = first + 1 if linear else first
        if exact and above % below and below % above and not linear:
            first -= 1  # a quotient of floats may lie below the whole number
        if linear:  # kernels of integers round the scale to 10 bits
            coarse = y * step + (step // 2 - 512 if centres else 0)
            first, last = min(first, coarse // 1024), max(last, -(-coarse // 1024))
        places.append((min(max(first, 0), extent - 1), min(max(last, 0), extent - 1)))
    return listed(axis, tuple(places))


def space_to_depth(node: ShapedOp) -> AccessMap | None:
    """SPACE_TO_DEPTH."""
    return builders.space_to_depth(node, number(node.op, "block_size", 0))


def depth_to_space(node: ShapedOp) -> AccessMap | None:
    """DEPTH_TO_SPACE."""
    return builders.depth_to_space(node, number(node.op, "block_size", 0))


def space_to_batch(node: ShapedOp) -> AccessMap | None:
    """SPACE_TO_BATCH_ND of a map whose blocks divide it, padded by constants."""
    blocks, pads, shape, result = (
        numbers(node.op, "operand 1"), numbers(node.op, "operand 2"), node.shape(0), node.result,
    )  # fmt: skip
    if blocks is None or pads is None or shape is None or len(pads) != 2 * len(blocks) or min(blocks, default=0) < 1:
        return None
    count = len(blocks)
    if len(shape) != len(result) or len(shape) <= count:
        return None
    view = (*blocks, shape[0], *result[1:])
    spans = [same(count)]
    spans += [Span(count + 1 + k, -pads[2 * k], -pads[2 * k] + blocks[k] - 1, mul=blocks[k]) for k in range(count)]
    spans += [same(count + 1 + axis) for axis in range(count, len(shape) - 1)]
    if prod(view) != prod(result):
        return None
    if any(pads):
        return AccessMap((Reads(0, shape, view, tuple(spans), exact=False),))
    parts, axes = _in_blocks(shape, blocks, count)
    return AccessMap((Reads(0, parts, view, tuple(map(same, axes))),), moves=True)


def _in_blocks(shape: Shape, blocks: Sequence[int], batch: int) -> tuple[Shape, list[int]]:
    """A map as batches, for each axis with blocks its blocks and the places in one, and what is behind these axes.

    Beside it for each of these axes its place where the places in blocks come first, then the batches at `batch`.
    """
    parts, axes = [shape[0]], [batch]
    for k, block in enumerate(blocks):
        parts += [shape[1 + k] // block, block]
        axes += [batch + 1 + k, k]
    count = len(blocks)
    return (*parts, *shape[1 + count :]), [*axes, *range(batch + 1 + count, batch + len(shape))]


def batch_to_space(node: ShapedOp) -> AccessMap | None:
    """BATCH_TO_SPACE_ND with constant blocks and crops."""
    blocks, crops, shape, result = (
        numbers(node.op, "operand 1"), numbers(node.op, "operand 2"), node.shape(0), node.result,
    )  # fmt: skip
    if blocks is None or crops is None or shape is None or len(crops) != 2 * len(blocks) or min(blocks, default=0) < 1:
        return None
    count = len(blocks)
    if len(shape) != len(result) or len(shape) <= count or shape[0] != prod(blocks) * result[0]:
        return None
    view = (*blocks, result[0], *shape[1:])
    if not any(crops):
        parts, axes = _in_blocks(result, blocks, count)
        return AccessMap((Reads(0, view, parts, tuple(same(axes.index(k)) for k in range(len(view)))),), moves=True)
    spans = [*(whole(block) for block in blocks), same(0)]
    spans += [Span(1 + k, crops[2 * k], crops[2 * k], div=blocks[k]) for k in range(count)]
    spans += [same(1 + axis) for axis in range(count, len(shape) - 1)]
    return AccessMap((Reads(0, view, result, tuple(spans), exact=False),))


def gathering(node: ShapedOp) -> AccessMap | None:
    """GATHER along an axis; by batches the operand is read whole."""
    if number(node.op, "batch_dims", 0):
        return None
    return builders.picked(node, number(node.op, "axis", 0), numbers(node.op, "operand 1"))


def embedding(node: ShapedOp) -> AccessMap | None:
    """EMBEDDING_LOOKUP: rows of operand 1 that operand 0 names."""
    names, table, result = node.shape(0), node.shape(1), node.result
    if names is None or not table or prod(result) != prod(names) * prod(table[1:]):
        return None
    view = (prod(names), *table[1:])
    picked = Reads(1, table, view, (whole(table[0]), *(same(k) for k in range(1, len(table)))), exact=False)
    return AccessMap((Reads(0, (prod(names),), view, (same(0),)), picked), moves=True)


def running_sum(node: ShapedOp) -> AccessMap | None:
    """CUMSUM along a constant axis."""
    axis = numbers(node.op, "operand 1")
    if axis is None or len(axis) != 1:
        return None
    ways = (bool(number(node.op, name, 0)) for name in ("reverse", "exclusive"))
    return builders.cumulative(node, axis[0], reverse=next(ways), exclusive=next(ways))


def reversed_axes(node: ShapedOp) -> AccessMap | None:
    """REVERSE_V2 along constant axes."""
    axes, shape = numbers(node.op, "operand 1"), node.shape(0)
    if axes is None or shape is None:
        return None
    turned = {axis % max(len(shape), 1) for axis in axes}
    return builders.taken(node, [shifted(k, n - 1, -1) if k in turned else same(k) for k, n in enumerate(shape)])


def chosen(node: ShapedOp) -> AccessMap | None:
    """ARG_MAX and ARG_MIN along a constant axis."""
    axis, shape = numbers(node.op, "operand 1"), node.shape(0)
    return builders.reduced(node, axis) if axis is not None and len(axis) == 1 and shape else None


def block_replaced(node: ShapedOp) -> AccessMap | None:
    """DYNAMIC_UPDATE_SLICE: what is not replaced stands at its place; the update lies anywhere."""
    shape, update = node.shape(0), node.shape(1)
    if shape is None or update is None or shape != node.result:
        return None
    spans = tuple(whole(extent) for extent in update)
    kept = Reads(0, shape, shape, builders.identity(shape), exact=False)
    return AccessMap((kept, Reads(1, update, shape, spans, exact=False)), moves=True)

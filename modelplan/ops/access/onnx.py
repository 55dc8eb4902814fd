"""How ONNX's operators state their access maps: builders for the rows of `ops/onnx.py`.

Source: onnx/docs/Operators.md and Changelog.md; maps are NCHW. What an opset takes as operands older ones have as
attributes; both are read.
"""

from collections.abc import Sequence
from math import prod

from modelplan.ops.access import builders
from modelplan.ops.access.builders import Builder, Filter, ShapedOp, Window
from modelplan.ops.access.spans import AccessMap, Reads, Shape, same, same_padding, shifted
from modelplan.ops.conditions import number, numbers

#: The first opset in which a softmax works along one axis, not along all from one on.
_SOFTMAX_ALONG_ONE = 13
#: The first opset in which a Concat joins along axis 0 unless it says another.
_CONCAT_ALONG_ZERO = 4


def _windows(node: ShapedOp, kernel: Shape) -> list[Window] | None:
    """The windows of a map along its axes behind the channels, padded as the file says."""
    shape, result, count = node.shape(0), node.result, len(kernel)
    if shape is None or not len(shape) == len(result) == count + 2 or min(kernel, default=0) < 1:
        return None
    strides = numbers(node.op, "strides") or (1,) * count
    apart = numbers(node.op, "dilations") or (1,) * count
    pads = numbers(node.op, "pads") or (0,) * (2 * count)
    word = node.op.attribute("auto_pad", "NOTSET")
    if len(strides) != count or len(apart) != count or len(pads) != 2 * count or min(*strides, *apart) < 1:
        return None
    windows = []
    for k in range(count):
        before = pads[k] if word in ("NOTSET", "") else 0
        if word in ("SAME_UPPER", "SAME_LOWER"):
            total = same_padding(shape[2 + k], result[2 + k], (kernel[k] - 1) * apart[k] + 1, strides[k])
            before = total // 2 if word == "SAME_UPPER" else total - total // 2
        windows.append(Window(kernel[k], strides[k], before, apart[k]))
    return windows


def convolution(weights: int, data: int = 0) -> Builder:
    """A convolution whose weights [out, in, ...] are an operand."""

    def convolve(node: ShapedOp) -> AccessMap | None:
        filters = node.shape(weights)
        if filters is None or number(node.op, "channels_last", 0):
            return None
        windows = _windows(node, filters[2:])
        named = Filter(weights, results=0, channels=1, windows=2)
        return builders.convolved(node, windows, named, data=data, last=False) if windows else None

    return convolve


def transposed_convolution(node: ShapedOp) -> AccessMap | None:
    """A ConvTranspose whose paddings the file states; its weights are [in, out, ...]."""
    weights = node.shape(1)
    stated = node.op.attribute("auto_pad", "NOTSET") in ("NOTSET", "") and not numbers(node.op, "output_shape")
    windows = _windows(node, weights[2:]) if weights is not None and stated else None
    named = Filter(1, results=1, channels=0, windows=2)
    return builders.transposed_convolution(node, windows, named, bias=2, last=False) if windows else None


def pool(node: ShapedOp) -> AccessMap | None:
    """A pool, whose windows are as large as its kernel_shape."""
    kernel = numbers(node.op, "kernel_shape")
    if kernel is None or number(node.op, "channels_last", 0) or len(node.results) != 1:
        return None
    windows = _windows(node, kernel)
    return builders.pooled(node, windows, first=2) if windows else None


def product(left: int, right: int) -> Builder:
    """A matrix product of two operands."""
    return lambda node: builders.product(node, left, right)


def gemm(node: ShapedOp) -> AccessMap | None:
    """A Gemm, its operands turned by transA and transB, with a matrix that is added."""
    turned = (bool(number(node.op, "transA", 0)), bool(number(node.op, "transB", 0)))
    access, added = builders.product(node, 0, 1, turned=turned), node.shape(2)
    if access is None or added is None:
        return access
    more = builders.broadcast(2, added, node.result)
    return AccessMap((*access.reads, more), products=access.products) if more else None


def transposition(node: ShapedOp) -> AccessMap | None:
    """A Transpose; without an order the axes are reversed."""
    shape = node.shape(0)
    if shape is None:
        return None
    order = numbers(node.op, "perm")
    return builders.permuted(node, order if order is not None else range(len(shape))[::-1])


def concatenation(node: ShapedOp) -> AccessMap | None:
    """A Concat along an axis."""
    default = 1 if node.op.version < _CONCAT_ALONG_ZERO else 0
    return builders.joined(node, number(node.op, "axis", default), range(len(node.shapes)))


def quantised_concatenation(node: ShapedOp) -> AccessMap | None:
    """A QLinearConcat: behind each operand stand its scale and its zero point, before all those of the result."""
    return builders.joined(node, number(node.op, "axis", 1), range(2, len(node.shapes), 3))


def splitting(node: ShapedOp) -> AccessMap | None:
    """A Split: runs along an axis."""
    shape = node.shape(0)
    if not shape or any(len(result) != len(shape) for result in node.results):
        return None
    axis = number(node.op, "axis", 0) % len(shape)
    first = sum(result[axis] for result in node.results[: node.output])
    return builders.taken(node, [shifted(k, first) if k == axis else same(k) for k in range(len(shape))])


def padding(node: ShapedOp) -> AccessMap | None:
    """A Pad by constant paddings, which may be negative: with one constant, the border or the map in reverse."""
    pads, shape = (
        numbers(node.op, "operand 1") or numbers(node.op, "pads") or numbers(node.op, "paddings"),
        node.shape(0),
    )
    named = len(node.shapes) > 3 and node.shapes[3] is not None
    mode = node.op.attribute("mode", "constant")
    if pads is None or shape is None or named or len(pads) != 2 * len(shape) or mode == "wrap":
        return None
    spans = [shifted(axis, -pads[axis]) for axis in range(len(shape))]
    if mode == "edge":
        spans = [span._replace(clamp=True) for span in spans]
    elif mode == "reflect":
        spans = [builders.mirrored(k, n, pads[k], pads[len(shape) + k], 0) for k, n in enumerate(shape)]
    return builders.taken(node, spans)


def slice_of(node: ShapedOp) -> AccessMap | None:
    """A Slice from constant places on."""
    shape, result = node.shape(0), node.result
    starts = numbers(node.op, "operand 1") or numbers(node.op, "starts")
    if shape is None or starts is None or len(result) != len(shape):
        return None
    axes = numbers(node.op, "operand 3") or numbers(node.op, "axes") or tuple(range(len(starts)))
    absent = len(node.shapes) < 5 or node.shapes[4] is None
    steps = (1,) * len(axes) if absent else numbers(node.op, "operand 4")
    if steps is None or not len(axes) == len(starts) == len(steps) or 0 in steps or len(starts) > len(shape):
        return None
    if any(not -len(shape) <= axis < len(shape) for axis in axes):
        return None
    spans = list(builders.identity(shape))
    for axis, start, step in zip((axis % len(shape) for axis in axes), starts, steps, strict=True):
        extent = shape[axis]
        at = start + extent if start < 0 else start
        at = min(max(at, 0), extent) if step > 0 else min(max(at, -1), extent - 1)
        spans[axis] = shifted(axis, at, step)
    return builders.taken(node, spans)


def gathering(node: ShapedOp) -> AccessMap | None:
    """A Gather along an axis."""
    return builders.picked(node, number(node.op, "axis", 0), numbers(node.op, "operand 1"))


def blocks(node: ShapedOp, *, apart: bool) -> AccessMap | None:
    """Blocks of an NCHW map as channels, or back where they come `apart`.

    In mode CRD the channels of the map stand before the places of a block, else behind them, as in SpaceToDepth.
    """
    shape, result, size = node.shape(0), node.result, number(node.op, "blocksize", 0)
    if shape is None or not len(shape) == len(result) == 4 or size < 1 or prod(shape) != prod(result):
        return None
    space = result if apart else shape
    n, c, h, w = space[0], space[1], space[2] // size, space[3] // size
    inside = (n, c, h, size, w, size)
    crd = apart and node.op.attribute("mode", "DCR") == "CRD"
    order = (0, 1, 3, 5, 2, 4) if crd else (0, 3, 5, 1, 2, 4)  # axes of `inside` as those of the channels' view
    outside = tuple(inside[axis] for axis in order)
    if prod(inside) != prod(space):
        return None
    if apart:
        return AccessMap((Reads(0, outside, inside, tuple(same(axis) for axis in order)),), moves=True)
    return AccessMap((Reads(0, inside, outside, tuple(same(order.index(axis)) for axis in range(6))),), moves=True)


def depth_to_space(node: ShapedOp) -> AccessMap | None:
    """DepthToSpace in both of its modes."""
    return blocks(node, apart=True)


def space_to_depth(node: ShapedOp) -> AccessMap | None:
    """SpaceToDepth."""
    return blocks(node, apart=False)


def _axes(node: ShapedOp) -> Sequence[int] | None:
    """The axes of a reduction; all where it names none, None where they are not known."""
    shape = node.shape(0)
    if shape is None:
        return None
    given = numbers(node.op, "axes") or numbers(node.op, "operand 1")
    if given is not None:
        return given
    computed = len(node.shapes) > 1 and node.shapes[1] is not None
    return None if computed or number(node.op, "noop_with_empty_axes", 0) else range(len(shape))


def reduction(node: ShapedOp) -> AccessMap | None:
    """A sum, mean, product, least or greatest along axes."""
    return builders.reduced(node, _axes(node))


def global_pool(node: ShapedOp) -> AccessMap | None:
    """A pool over all places of a map."""
    shape = node.shape(0)
    return builders.reduced(node, range(2, len(shape))) if shape is not None else None


def softmax(node: ShapedOp) -> AccessMap | None:
    """A softmax along one axis, before opset 13 along all from that one on."""
    shape = node.shape(0)
    if not shape:
        return None
    late = number(node.op, "opset", node.op.version) >= _SOFTMAX_ALONG_ONE  # a quantised one says whose it was
    axis = number(node.op, "axis", -1 if late else 1) % len(shape)
    return builders.along(node, (axis,) if late else range(axis, len(shape)))


def normalisation(node: ShapedOp) -> AccessMap | None:
    """A norm along the axes from `axis` on."""
    shape = node.shape(0)
    if not shape or node.output:
        return None
    return builders.along(node, range(number(node.op, "axis", -1) % len(shape), len(shape)))


def by_channel(node: ShapedOp) -> AccessMap | None:
    """An element from all channels at its place: LRN."""
    return builders.along(node, (1,))

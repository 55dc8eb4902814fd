"""Tests of single operators: is the output a view, may it overwrite an operand, does it read ahead of its writes."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from math import prod

from modelplan.model import Graph, Op, Tensor
from modelplan.primitives.dtypes import BITS

Numbers = tuple[int, ...]


def source(graph: Graph, op: Op, operand: int = 0) -> Tensor | None:
    """The tensor behind an operand, None where it is absent."""
    t = op.inputs[operand] if operand < len(op.inputs) else -1
    return graph.tensors[t] if t >= 0 else None


def result(graph: Graph, op: Op) -> Tensor | None:
    """Output 0, None where it is absent."""
    return graph.tensors[op.outputs[0]] if op.outputs and op.outputs[0] >= 0 else None


def numbers(op: Op, name: str) -> Numbers | None:
    """An attribute as whole numbers, None where it is missing or something else."""
    value = op.attribute(name)
    if isinstance(value, int):
        return (int(value),)
    items = value if isinstance(value, tuple) else (value,)
    integers = tuple(int(item) for item in items if isinstance(item, int | float) and item == item // 1)
    return integers if value is not None and len(integers) == len(items) else None


def number(op: Op, name: str, default: int) -> int:
    """A numeric attribute, `default` where the file does not carry it."""
    integers = numbers(op, name)
    return integers[0] if integers else default


def both(graph: Graph, op: Op, operand: int = 0) -> tuple[Tensor, Tensor] | None:
    """Operand and output 0 if both exist with the same type, else None."""
    x, y = source(graph, op, operand), result(graph, op)
    return (x, y) if x is not None and y is not None and x.dtype == y.dtype else None


def unchanged(op: Op) -> bool:
    """Whether operands and results have the same scale and zero point."""
    return not op.attribute("requantises", default=False)


# -- views -------------------------------------------------------------------------------------------------------------


def same_type(graph: Graph, op: Op) -> int | None:
    """A cast to the type that the operand has already."""
    return 0 if both(graph, op) else None


def same_width(graph: Graph, op: Op) -> int | None:
    """A reinterpretation of the same bytes."""
    x, y = source(graph, op), result(graph, op)
    return 0 if x and y and x.nbytes == y.nbytes else None


def no_growth(graph: Graph, op: Op) -> int | None:
    """A repetition or broadcast that repeats nothing."""
    pair = both(graph, op)
    return 0 if pair and _squeezed(pair[0].shape) == _squeezed(pair[1].shape) else None


def single(graph: Graph, op: Op) -> int | None:
    """A join of a single operand."""
    pair = both(graph, op)
    return 0 if pair and len(op.reads) == len(op.inputs) == 1 and unchanged(op) else None


def nothing_reduced(graph: Graph, op: Op) -> int | None:
    """A reduction over axes of extent 1 only."""
    pair = both(graph, op)
    return 0 if pair and prod(pair[0].shape) == prod(pair[1].shape) and unchanged(op) else None


def no_padding(graph: Graph, op: Op) -> int | None:
    """Padding by nothing on every side."""
    pads = numbers(op, "operand 1") or numbers(op, "pads") or numbers(op, "paddings")
    return 0 if both(graph, op) and pads is not None and not any(pads) else None


def unit_block(graph: Graph, op: Op) -> int | None:
    """Depth to space and back with block 1."""
    size = number(op, "block_size", 0) or number(op, "blocksize", 0)
    return 0 if both(graph, op) and size == 1 else None


def kept_order(graph: Graph, op: Op) -> int | None:
    """A transposition that moves only axes of extent 1."""
    pair = both(graph, op)
    if pair is None:
        return None
    rank = len(pair[0].shape)
    usual = tuple(reversed(range(rank))) if rank < 2 and op.kind == "Transpose" else None
    order = numbers(op, "perm") or numbers(op, "operand 1") or usual
    if order is None or sorted(order) != list(range(rank)):
        return None
    moved = [axis for axis in order if pair[0].shape[axis] != 1]
    return 0 if moved == sorted(moved) else None


def inference(graph: Graph, op: Op) -> int | None:
    """A Dropout in inference mode or with ratio 0."""
    if not both(graph, op):
        return None
    if op.version < 7:
        return 0 if number(op, "is_test", 0) else None
    if op.version < 12 or len(op.inputs) < 3 or op.inputs[2] < 0:
        return 0
    mode = numbers(op, "operand 2")
    return 0 if mode is not None and not any(mode) else None


def slice_start(graph: Graph, op: Op) -> int | None:
    """A TFLite SLICE of whole blocks along the outermost axis that is not 1."""
    begin = numbers(op, "operand 1")
    return _block(graph, op, begin) if begin is not None else None


def strided_slice_start(graph: Graph, op: Op) -> int | None:
    """A TFLite STRIDED_SLICE of whole blocks with step 1."""
    pair, begin, step = both(graph, op), numbers(op, "operand 1"), numbers(op, "operand 3")
    masks = [number(op, name, 0) for name in ("ellipsis_mask", "new_axis_mask", "shrink_axis_mask")]
    if not pair or begin is None or step is None or any(masks) or any(s != 1 for s in step):
        return None
    mask = number(op, "begin_mask", 0)
    shape = pair[0].shape
    if len(begin) != len(shape):
        return None
    return _block(graph, op, tuple(0 if mask >> i & 1 else _from_end(b, shape[i]) for i, b in enumerate(begin)))


def onnx_slice_start(graph: Graph, op: Op) -> int | None:
    """An ONNX Slice of whole blocks with step 1."""
    pair = both(graph, op)
    starts = numbers(op, "operand 1") or numbers(op, "starts")
    axes = numbers(op, "operand 3") or numbers(op, "axes") or (tuple(range(len(starts))) if starts else None)
    absent = len(op.inputs) < 5 or op.inputs[4] < 0
    steps = tuple(1 for _ in axes or ()) if absent else numbers(op, "operand 4")
    if not pair or starts is None or axes is None or steps is None or any(s != 1 for s in steps):
        return None
    rank = len(pair[0].shape)
    begin = [0] * rank
    for axis, start in zip(axes, starts, strict=False):
        if not -rank <= axis < rank:
            return None
        extent = pair[0].shape[axis]
        begin[axis] = min(max(start + extent if start < 0 else start, 0), extent)
    return _block(graph, op, tuple(begin))


def gathered_start(graph: Graph, op: Op) -> int | None:
    """A gather of ascending neighbours along the outermost axis that is not 1."""
    pair, indices = both(graph, op), numbers(op, "operand 1")
    if not pair or not indices or number(op, "batch_dims", 0):
        return None
    x = pair[0]
    axis = number(op, "axis", 0) % max(len(x.shape), 1)
    first = _from_end(indices[0], x.shape[axis]) if x.shape else 0
    if prod(x.shape[:axis]) != 1 or any(b - a != 1 for a, b in pairwise(indices)):
        return None
    if prod(pair[1].shape) != len(indices) * prod(x.shape[axis + 1 :]):
        return None
    return (
        _start(first * prod(x.shape[axis + 1 :]), x) if first >= 0 and first + len(indices) <= x.shape[axis] else None
    )


# -- overwrites --------------------------------------------------------------------------------------------------------


def is_inference(_graph: Graph, op: Op) -> bool:
    """A BatchNormalization in inference mode."""
    if op.version >= 14:
        return not number(op, "training_mode", 0)
    return op.version >= 7 or bool(number(op, "is_test", 0))


def not_reversed(_graph: Graph, op: Op) -> bool:
    """A running sum from the first element to the last that includes its own element."""
    return not number(op, "reverse", 0) and not number(op, "exclusive", 0)


# -- streams -----------------------------------------------------------------------------------------------------------


def forward_slice(graph: Graph, op: Op) -> bool:
    """A slice whose steps are positive copies elements towards the front."""
    steps = numbers(op, "operand 4") if graph.format == "onnx" else numbers(op, "operand 3")
    unstepped = op.kind in ("SLICE", "STABLEHLO_SLICE") or (graph.format == "onnx" and len(op.inputs) < 5)
    return both(graph, op) is not None and (unstepped or (steps is not None and all(s > 0 for s in steps)))


def disjoint_windows(graph: Graph, op: Op) -> bool:
    """Pooling whose windows neither overlap nor reach outside the input."""
    kernel = numbers(op, "kernel_shape") or _pair(op, "filter_height", "filter_width")
    strides = numbers(op, "strides") or _pair(op, "stride_h", "stride_w") or tuple(1 for _ in kernel or ())
    padded = any(numbers(op, "pads") or (0,)) or op.attribute("padding") == "SAME"
    automatic = str(op.attribute("auto_pad", "NOTSET")) not in ("NOTSET", "VALID")
    dilated = any(d != 1 for d in numbers(op, "dilations") or ())
    if kernel is None or padded or automatic or dilated or number(op, "ceil_mode", 0) or len(op.writes) != 1:
        return False
    return both(graph, op) is not None and all(k <= s for k, s in zip(kernel, strides, strict=False))


# -- parts -------------------------------------------------------------------------------------------------------------


def axis_attribute(_graph: Graph, op: Op) -> int | None:
    """The axis of a join or split as an attribute."""
    default = 1 if op.kind == "Concat" and op.version < 4 else 0
    return number(op, "axis", default) if unchanged(op) else None


def axis_operand(operand: int) -> object:
    """The axis of a split as a constant operand."""

    def axis(_graph: Graph, op: Op) -> int | None:
        integers = numbers(op, f"operand {operand}")
        return integers[0] if integers and len(integers) == 1 else None

    return axis


# -- arithmetic --------------------------------------------------------------------------------------------------------


def without_leading_ones(shape: Numbers) -> Numbers:
    """The shape without leading ones, which broadcasting adds."""
    lead = next((i for i, extent in enumerate(shape) if extent != 1), len(shape))
    return shape[lead:]


def _squeezed(shape: Numbers) -> Numbers:
    return tuple(extent for extent in shape if extent != 1)


def _pair(op: Op, first: str, second: str) -> Numbers | None:
    a, b = numbers(op, first), numbers(op, second)
    return (*a, *b) if a and b else None


def _from_end(index: int, extent: int) -> int:
    return index + extent if index < 0 else index


def _block(graph: Graph, op: Op, begin: Sequence[int]) -> int | None:
    """The byte where a block [begin, begin + output shape) starts, if it is contiguous in the operand."""
    pair = both(graph, op)
    if pair is None or len(begin) != len(pair[0].shape) or len(pair[1].shape) != len(pair[0].shape):
        return None
    x, y = pair
    if any(b < 0 or b + n > extent for b, n, extent in zip(begin, y.shape, x.shape, strict=True)):
        return None
    cut = [axis for axis, (a, b) in enumerate(zip(x.shape, y.shape, strict=True)) if a != b]
    if any(extent != 1 for extent in y.shape[: cut[-1]] if cut) if cut else False:
        return None
    elements = 0
    for b, extent in zip(begin, x.shape, strict=True):
        elements = elements * extent + b
    return _start(elements, x)


def _start(elements: int, tensor: Tensor) -> int | None:
    """Bytes before element number `elements`, None inside a byte."""
    bits = elements * BITS.get(tensor.dtype, 0)
    return bits // 8 if bits % 8 == 0 else None

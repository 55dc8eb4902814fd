"""TFLM's reference kernels that move, cut, join and reduce: their results are values of their operands."""

from modelplan.runtimes.tflm.kernels.calls import Operand
from modelplan.runtimes.tflm.kernels.checks import (
    added_scales,
    constant,
    one_of,
    rank_between,
    same_scales,
    same_shape,
    same_types,
    shaped,
    zero_point,
)
from modelplan.runtimes.tflm.kernels.preparation import Operator, Preparation

_MOST_CONCATENATED = 10
_MOST_CONCATENATED_RANK = 6
_FLOAT_INT8 = ("float32", "int8")
_FLOAT_QUANTISED = ("float32", "int8", "int16")
_PLAIN = ("float32", "int8", "int16", "int32")


def _reshape(p: Preparation) -> None:
    p.counts((1, 2))
    source, result = p.input(), p.output()
    same_types(p, source, result)
    wanted = 1 if result.shape == (0,) and len(p.call.inputs) == 1 else result.elements
    p.require(source.elements == wanted, f"{source.elements} values for an output of {wanted}")


def _squeeze(p: Preparation) -> None:
    p.counts(1)
    source, result = p.input(), p.output()
    rank_between(p, source, "input 0", 0, 8)
    for axis in p.call.numbers("squeeze_dims"):
        place = axis + source.rank if axis < 0 else axis
        fits = 0 <= place < source.rank and source.shape[place] == 1
        p.require(fits, f"axis {axis} of shape {list(source.shape)} taken out; its kernel takes axes of extent 1")
    p.require(source.nbytes == result.nbytes, f"{source.nbytes} bytes for an output of {result.nbytes}")


def _expand_dims(p: Preparation) -> None:
    p.counts(2)
    source, axis, result = p.input(0), p.input(1), p.output()
    constant(p, axis, "the axis")
    rank_between(p, axis, "input 1", 0, 1)
    one_of(p, axis, "input 1", "int32")
    values = axis.integers()
    if not values:
        return
    place = values[0] if values[0] >= 0 else source.rank + 1 + values[0]
    p.require(0 <= place <= source.rank, f"axis {values[0]} for an input of {source.rank} dimensions")
    wanted = (*source.shape[:place], 1, *source.shape[place:])
    shaped(p, result, wanted)


def _transpose(p: Preparation) -> None:
    p.counts(2)
    source, order, result = p.input(0), p.input(1), p.output()
    rank_between(p, source, "input 0", 0, 5)
    same_types(p, source, result)
    constant(p, order, "the permutation")
    p.require(order.shape == (source.rank,), f"a permutation of shape {list(order.shape)} for {source.rank} dimensions")
    values = order.integers() or ()
    p.require(all(0 <= v < source.rank for v in values), f"a permutation {list(values)} out of range")


def pad(p: Preparation) -> None:
    """PAD and PADV2."""
    p.counts((2, 3))
    source, amounts = p.input(0), p.input(1)
    filling = p.optional(2)
    result = p.output()
    same_types(p, source, result)
    rank_between(p, source, "input 0", 0, 5)
    if filling is not None:
        same_types(p, source, filling)
        p.require(filling.elements == 1, f"{filling.elements} values to fill with; its kernel takes 1")
    p.require(amounts.elements == 2 * result.rank, f"{amounts.elements} amounts for {result.rank} dimensions")
    constant(p, amounts, "the padding")
    _require_padded(p, source, amounts, result)
    if source.dtype == "int8" and filling is not None:
        same_scales(p, result, filling)


def _require_padded(p: Preparation, source: Operand, amounts: Operand, result: Operand) -> None:
    values = amounts.integers() if amounts.dtype == "int32" else None
    if values is None:
        return
    pairs = zip(source.shape, values[::2], values[1::2], strict=False)
    wanted = tuple(extent + before + after for extent, before, after in pairs)
    shaped(p, result, wanted)


def _mirror_pad(p: Preparation) -> None:
    source, amounts = p.input(0), p.input(1)
    p.output()
    rank_between(p, amounts, "input 1", 2, 2)
    p.require(amounts.dim(0) == source.rank, f"amounts for {amounts.dim(0)} dimensions; the input has {source.rank}")
    p.scratch(4 * source.rank)
    p.scratch(4 * source.rank)


def _slice(p: Preparation) -> None:
    p.counts(3)
    source, begin, size, result = p.input(0), p.input(1), p.input(2), p.output()
    same_types(p, source, result)
    same_types(p, begin, size)
    one_of(p, begin, "input 1", "int32", "int64")
    rank_between(p, begin, "input 1", 1, 1)
    rank_between(p, size, "input 2", 1, 1)
    p.require(begin.elements == size.elements, "as many begins as sizes are needed")
    rank_between(p, source, "input 0", 0, 5)


def _strided_slice(p: Preparation) -> None:
    p.counts(4)
    source = p.input(0)
    bounds = [p.input(1), p.input(2), p.input(3)]
    p.output()
    rank_between(p, source, "input 0", 0, 4)
    for operand, what in zip(bounds, ("the begin", "the end", "the strides"), strict=True):
        constant(p, operand, what)
    _require_sliced(p, source, bounds)


def _require_sliced(p: Preparation, source: Operand, bounds: list[Operand]) -> None:
    """Requires that the output has the shape that the kernel computes."""
    values = [operand.integers() if operand.dtype == "int32" else None for operand in bounds]
    begins, ends, strides = values
    if begins is None or ends is None or strides is None or min(map(len, (begins, ends, strides))) < source.rank:
        return
    wanted = []
    for axis, extent in enumerate(source.shape):
        p.require(strides[axis] != 0, "a stride of 0")
        count = _sliced(p, axis, extent, (begins[axis], ends[axis], strides[axis]))
        if not p.call.number("shrink_axis_mask") >> axis & 1:
            wanted.append(count)
    shaped(p, p.call.output(), wanted)


def _sliced(p: Preparation, axis: int, extent: int, bounds: tuple[int, int, int]) -> int:
    """How many values of one axis a slice takes."""
    begin, end, stride = bounds
    low, high = (0, extent) if stride > 0 else (-1, extent - 1)

    def place(value: int) -> int:
        return min(max(value + extent if value < 0 else value, low), high)

    start = (0 if stride > 0 else extent - 1) if p.call.number("begin_mask") >> axis & 1 else place(begin)
    stop = (extent if stride > 0 else -1) if p.call.number("end_mask") >> axis & 1 else place(end)
    if p.call.number("shrink_axis_mask") >> axis & 1:
        return 1
    return max(0, -(-(stop - start) // stride))


def _concatenation(p: Preparation) -> None:
    first, result = p.input(0), p.output()
    p.require(not p.call.number("fused_activation_function"), "a fused activation, which its kernel does not compute")
    same_types(p, first, result)
    count = len(p.call.inputs)
    p.require(count <= _MOST_CONCATENATED, f"{count} inputs; its kernel takes at most {_MOST_CONCATENATED}")
    for index in range(count):
        source = p.input(index)
        same_types(p, first, source)
        rank_between(p, source, f"input {index}", 0, _MOST_CONCATENATED_RANK)
        if first.dtype == "int8":
            same_scales(p, source, result)
        elif first.dtype == "int16":
            zero_point(p, source, f"input {index}")
    if first.dtype == "int16":
        zero_point(p, result, "output")


def _split(p: Preparation) -> None:
    constant(p, p.input(0), "the axis")


def _split_v(p: Preparation) -> None:
    p.require(len(p.call.inputs) == 3, f"{len(p.call.inputs)} inputs; its kernel takes 3")
    constant(p, p.input(2), "the axis")


def _gather(p: Preparation) -> None:
    p.counts(2)
    source, places = p.input(0), p.input(1)
    p.output()
    one_of(p, places, "input 1", "int32")
    axis = p.call.number("axis")
    axis += source.rank if axis < 0 else 0
    p.require(0 <= axis < source.rank, f"axis {axis} for an input of {source.rank} dimensions")
    batch = p.call.number("batch_dims")
    batch += places.rank if batch < 0 else 0
    p.require(0 <= batch <= min(axis, places.rank), f"{batch} batch dimensions")
    p.require(source.shape[:batch] == places.shape[:batch], "batch dimensions that differ")
    p.reshape((*source.shape[:axis], *places.shape[batch:], *source.shape[axis + 1 :]))


def _gather_nd(p: Preparation) -> None:
    p.counts(2)
    source, places = p.input(0), p.input(1)
    p.output()
    one_of(p, places, "input 1", "int32")
    depth = places.dim(-1)
    p.require(source.rank >= 1 and depth <= min(source.rank, 5), f"indices of {depth} for {source.rank} dimensions")
    p.reshape((*places.shape[:-1], *source.shape[depth:]))


def _embedding_lookup(p: Preparation) -> None:
    p.counts(2)
    places = p.input(0)
    rank_between(p, places, "input 0", 1, 1)
    one_of(p, places, "input 0", "int32")
    table = p.input(1)
    p.require(table.rank >= 2, f"a table of {table.rank} dimensions; its kernel takes 2 or more")
    result = p.output()
    one_of(p, result, "output", *(("float32",) if table.dtype == "float32" else _FLOAT_INT8))
    p.require(result.rank >= table.rank, f"an output of {result.rank} dimensions for a table of {table.rank}")
    p.reshape((places.dim(0), *table.shape[1:]))
    p.keep_struct(("float", "size"))
    if table.dtype == "int8" and result.dtype == "float32":
        zero_point(p, table, "input 1")


def _depth_to_space(p: Preparation) -> None:
    source, block = _blocks(p)
    p.require(source.shape[3] % (block * block) == 0, f"{source.shape[3]} channels for blocks of {block} x {block}")
    batch, height, width, depth = source.shape
    p.reshape((batch, height * block, width * block, depth // block // block))


def _space_to_depth(p: Preparation) -> None:
    source, block = _blocks(p)
    batch, height, width, depth = source.shape
    p.require(height % block == 0 and width % block == 0, f"shape {list(source.shape)} for blocks of {block} x {block}")
    p.reshape((batch, height // block, width // block, depth * block * block))


def _blocks(p: Preparation) -> tuple[Operand, int]:
    p.counts(1)
    source, result = p.input(), p.output()
    rank_between(p, source, "input 0", 4, 4)
    same_types(p, source, result)
    block = p.call.number("block_size")
    p.require(block > 0, f"a block size of {block}")
    return source, block


def _batches(p: Preparation) -> None:
    """BATCH_TO_SPACE_ND and SPACE_TO_BATCH_ND."""
    p.counts(3)
    source, result = p.input(), p.output()
    rank_between(p, source, "input 0", 3, 4)
    rank_between(p, result, "output", 3, 4)
    same_types(p, source, result)


def _resize(p: Preparation) -> None:
    p.counts(2)
    source, size = p.input(0), p.input(1)
    p.output()
    rank_between(p, source, "input 0", 4, 4)
    rank_between(p, size, "input 1", 1, 1)
    one_of(p, size, "input 1", "int32")
    constant(p, size, "the size")


def _resize_bilinear(p: Preparation) -> None:
    _resize(p)
    both = p.call.number("half_pixel_centers") and p.call.number("align_corners")
    p.require(not both, "half pixel centers with aligned corners")


def _resize_nearest(p: Preparation) -> None:
    _resize(p)
    p.require(p.call.input(1).dim(0) == 2, "a size of other than 2 values")


def _reverse(p: Preparation) -> None:
    p.counts(2)
    source, axes, result = p.input(0), p.input(1), p.output()
    rank_between(p, axes, "input 1", 1, 1)
    rank_between(p, source, "input 0", axes.elements, 6)
    one_of(p, axes, "input 1", "int32")
    same_types(p, source, result)


def _broadcast_args(p: Preparation) -> None:
    p.counts(2)
    operands = (p.input(0), p.input(1), p.output())
    same_types(p, *operands)
    for operand in operands:
        rank_between(p, operand, "an operand", 1, 1)


def _broadcast_to(p: Preparation) -> None:
    p.counts(2)
    source, shape, result = p.input(0), p.input(1), p.output()
    rank_between(p, source, "input 0", 0, 5)
    one_of(p, shape, "input 1", "int32", "int64")
    same_types(p, source, result)
    constant(p, shape, "the shape")
    rank_between(p, shape, "input 1", 1, 1)
    p.require(result.rank == shape.dim(0), f"a shape of {shape.dim(0)} extents for {result.rank} dimensions")
    rank_between(p, result, "output", source.rank, 5)
    ending = result.shape[result.rank - source.rank :]
    fits = all(a in (1, b) for a, b in zip(source.shape, ending, strict=True))
    p.require(fits, f"an input of shape {list(source.shape)} for an output of {list(result.shape)}")
    shaped(p, result, shape.integers())


def _fill(p: Preparation) -> None:
    shape, value, result = p.input(0), p.input(1), p.output()
    rank_between(p, value, "input 1", 0, 0)
    same_types(p, value, result)
    constant(p, shape, "the shape")
    rank_between(p, shape, "input 0", 1, 1)
    p.require(shape.dim(0) == result.rank, f"a shape of {shape.dim(0)} extents for {result.rank} dimensions")
    shaped(p, result, shape.integers())


def _dynamic_update_slice(p: Preparation) -> None:
    p.counts(3)
    source, update, start, _ = p.input(0), p.input(1), p.input(2), p.output()
    same_types(p, source, update)
    one_of(p, start, "input 2", "int32", "int64")
    rank_between(p, start, "input 2", 1, 1)
    p.require(start.dim(0) == source.rank == update.rank, "as many start indices as dimensions are needed")
    p.require(all(u <= s for u, s in zip(update.shape, source.shape, strict=True)), "an update larger than the operand")


def _select(p: Preparation) -> None:
    p.counts(3)
    choice, operand, other, result = p.input(0), p.input(1), p.input(2), p.output()
    one_of(p, choice, "input 0", "bool")
    same_types(p, operand, other)
    if choice.shape == operand.shape == other.shape or all(o.elements == 1 for o in (choice, operand, other, result)):
        return
    rank = max(choice.rank, operand.rank, other.rank)
    padded = [(1,) * (rank - o.rank) + o.shape for o in (choice, operand, other)]
    wanted = tuple(0 if 0 in extents else max(extents) for extents in zip(*padded, strict=True))
    fits = all(extent in (1, most) for shape in padded for extent, most in zip(shape, wanted, strict=True))
    p.require(fits and result.shape == wanted, f"an output of shape {list(result.shape)} for {list(wanted)}")


def _shape(p: Preparation) -> None:
    p.counts(1)
    one_of(p, p.call.output(), "output", "int32")


def _arg(p: Preparation) -> None:
    """ARG_MAX and ARG_MIN look at their operands only when they run."""
    p.require(p.call.input(0).rank >= 1, "a scalar; its kernel takes one dimension or more")
    one_of(p, p.call.input(1), "input 1", "int32")
    one_of(p, p.call.output(), "output", "int32")


def _cumsum(p: Preparation) -> None:
    p.counts(2)
    source, axis = p.input(0), p.input(1)
    one_of(p, axis, "input 1", "int32")
    p.require(axis.elements == 1, f"{axis.elements} axes; its kernel takes 1")
    p.require(source.rank >= 1, "a scalar; its kernel takes one dimension or more")
    result = p.output()
    same_types(p, source, result)
    same_shape(p, source, result)
    if result.dtype == "int8":
        p.keep_struct(("int32*6", "int*3"))
        added_scales(p, (source, result), 20)


def _reduced_types(p: Preparation) -> None:
    """Checks common to all reductions."""
    source = p.input(0)
    p.counts(2)
    one_of(p, p.input(1), "input 1", "int32")
    if source.dtype == "int8":
        p.output()


def _reduced_scratch(p: Preparation, source: Operand, axes: Operand) -> None:
    """Scratch of a reduction: the running index and the resolved axes."""
    p.scratch(4 * source.rank)
    p.scratch(4 * axes.elements)


def _mean(p: Preparation) -> None:
    source, result, axes = p.input(0), p.output(), p.input(1)
    if source.dtype in ("int8", "int16"):
        p.scratch(4 * result.elements)
    _reduced_scratch(p, source, axes)
    _reduced_types(p)


def _most(p: Preparation) -> None:
    _reduced_types(p)
    source, result, axes = p.input(0), p.output(), p.input(1)
    same_types(p, source, result)
    if source.dtype == "int8":
        same_scales(p, source, result)
    _reduced_scratch(p, source, axes)


def _sum(p: Preparation) -> None:
    _mean(p)
    same_types(p, p.call.input(0), p.call.output())


def _all(p: Preparation) -> None:
    source, result, axes = p.input(0), p.output(), p.input(1)
    _reduced_types(p)
    same_types(p, source, result)
    _reduced_scratch(p, source, axes)


_REDUCE_DATA = ("int32", "int*5", "float", "int", "float", "int*2")
_PAD_DATA = (("int8", "int32*5", "int8", "int32*5", "int8"), "int32")
_SLICE_DATA = ("int8", "int32*5", "int8", "int32*5", "int8", "int32*5", "int16*5", "bool")
_EIGHT_EXTENTS = ("int32*8", "int")
_CONCATENATION_DATA = (("int32", "pointer*2", "int32*2", "float"), "compressed*10")

OPERATORS: dict[str, Operator] = {
    "RESHAPE": Operator(_EIGHT_EXTENTS, (), _reshape),
    "SQUEEZE": Operator(_EIGHT_EXTENTS, (), _squeeze),
    "EXPAND_DIMS": Operator((), (), _expand_dims, ("float32", "int16", "int8")),
    "TRANSPOSE": Operator((), (), _transpose, ("float32", "int8", "int16")),
    "PAD": Operator((), _PAD_DATA, pad, _PLAIN, front_to_back=_FLOAT_QUANTISED),
    "PADV2": Operator((), _PAD_DATA, pad, _PLAIN, front_to_back=_FLOAT_QUANTISED),
    "MIRROR_PAD": Operator(("enum",), ("int*5",), _mirror_pad, _FLOAT_INT8, -1),
    "SLICE": Operator((), (), _slice, (*_PLAIN, "bool"), front_to_back=_FLOAT_QUANTISED),
    "STRIDED_SLICE": Operator(("int*5", "bool"), _SLICE_DATA, _strided_slice, (*_PLAIN, "bool"), -1),
    "CONCATENATION": Operator(
        ("int", "enum"),
        _CONCATENATION_DATA,
        _concatenation,
        (*_PLAIN, "int64", "bool"),
        unpacks=tuple(range(_MOST_CONCATENATED)),
        front_to_back=_FLOAT_QUANTISED,
    ),
    "SPLIT": Operator(("int",), (), _split, _PLAIN, 1),
    "SPLIT_V": Operator(("int",), (), _split_v, _PLAIN),
    "PACK": Operator(("int*2",), (), types=(*_PLAIN, "int64"), typed=-1),
    "UNPACK": Operator(("int*2",), (), types=_PLAIN),
    "GATHER": Operator(("int*2",), (), _gather, _FLOAT_INT8),
    "GATHER_ND": Operator((), (), _gather_nd, _FLOAT_INT8),
    "EMBEDDING_LOOKUP": Operator((), (), _embedding_lookup, _FLOAT_INT8, 1),
    "DEPTH_TO_SPACE": Operator(("int",), (), _depth_to_space, _FLOAT_INT8),
    "SPACE_TO_DEPTH": Operator(("int",), (), _space_to_depth, _FLOAT_INT8),
    "BATCH_TO_SPACE_ND": Operator((), (), _batches, _FLOAT_INT8),
    "SPACE_TO_BATCH_ND": Operator((), ("int32",), _batches, _FLOAT_INT8),
    "RESIZE_BILINEAR": Operator(("bool*2",), (), _resize_bilinear, _FLOAT_INT8, -1),
    "RESIZE_NEAREST_NEIGHBOR": Operator(("bool*2",), (), _resize_nearest, (*_FLOAT_INT8, "int16"), -1),
    "REVERSE_V2": Operator((), (), _reverse, (*_PLAIN, "uint8", "int64", "bool")),
    "BROADCAST_ARGS": Operator((), (), _broadcast_args, ("int32", "int64")),
    "BROADCAST_TO": Operator((), (), _broadcast_to),
    "FILL": Operator((), (), _fill, ("float32", "int32", "int8"), 1),
    "DYNAMIC_UPDATE_SLICE": Operator((), (), _dynamic_update_slice, _PLAIN),
    "SELECT_V2": Operator((), ("bool",), _select, ("float32", "int8", "int16"), 1),
    "SHAPE": Operator(("enum",), (), _shape),
    "ARG_MAX": Operator(("enum",), (), _arg, _FLOAT_INT8),
    "ARG_MIN": Operator(("enum",), (), _arg, _FLOAT_INT8),
    "CUMSUM": Operator(("bool*2",), (), _cumsum, _FLOAT_INT8, in_place=("float32",)),
    "MEAN": Operator(("bool",), _REDUCE_DATA, _mean, (*_FLOAT_INT8, "int16")),
    "SUM": Operator(("bool",), _REDUCE_DATA, _sum, (*_FLOAT_INT8, "int16")),
    "REDUCE_MAX": Operator(("bool",), _REDUCE_DATA, _most, _FLOAT_INT8),
    "REDUCE_MIN": Operator(("bool",), _REDUCE_DATA, _most, _FLOAT_INT8),
    "REDUCE_ALL": Operator(("bool",), _REDUCE_DATA, _all, ("bool",)),
}

"""The shapes of a model for other inputs: of a .tflite model by formulas, of an .onnx model as its reader infers them.

A formula gives the result of an operator, or why it has none. The formulas are tried on the shapes that the file
carries before they are believed for others.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from math import prod
from pathlib import Path

from modelplan.formats import load_model
from modelplan.model import Graph
from modelplan.ops import facts
from modelplan.ops.access import builders
from modelplan.ops.access.tflite import along_channels
from modelplan.ops.op_facts import ONNX_RESHAPES
from modelplan.primitives.errors import ModelError
from modelplan.primitives.lazy_records import dataclass
from modelplan.questions.explaining.subjects import ModelSubject, RefusedChangeError
from modelplan.runtimes.tflm.file import FileModel
from modelplan.runtimes.tflm.kernels.calls import Call, Operand
from modelplan.runtimes.tflm.scratch import calls_of

#: Operators that keep the number of values, and those whose operands meet along an axis.
_AS_MANY = ONNX_RESHAPES | {"Transpose"}
_PRODUCTS = frozenset({"MatMul", "Gemm"})


def with_inputs(subject: ModelSubject, of: Callable[[tuple[int, ...]], tuple[int, ...]]) -> ModelSubject:
    """The model with inputs of the shapes that `of` makes of theirs."""
    if subject.source is None:
        raise RefusedChangeError("shapes are inferred for the unmodified file only")
    graph = subject.graph
    shapes = {graph.tensors[t].name: graph.tensors[t].shape for t in graph.inputs}
    wanted = {name: of(shape) for name, shape in shapes.items()}
    if wanted == shapes or any(min(shape, default=1) < 1 for shape in wanted.values()):
        raise RefusedChangeError(f"no input is a map that can be so: {', '.join(map(str, shapes.values()))}")
    inferred = _inferred(subject.source.content, wanted, subject.source.path)
    _check_products(inferred)
    if [op.kind for op in inferred.ops] != [op.kind for op in graph.ops]:
        raise RefusedChangeError("other operators are folded into constants for these inputs")
    return replace(subject, graph=replace(inferred, name=graph.name), source=None, file="changed.onnx")


def _inferred(content: bytes, shapes: dict[str, tuple[int, ...]], name: str) -> Graph:
    """The graph of the model with these inputs."""
    from tempfile import TemporaryDirectory  # here, since a .tflite file needs none

    import onnx

    model = onnx.load_model_from_string(content)
    del model.graph.value_info[:]
    for value in model.graph.input:
        if value.name in shapes:
            value.type.tensor_type.ClearField("shape")
            for extent in shapes[value.name]:
                value.type.tensor_type.shape.dim.add().dim_value = extent
    for value in model.graph.output:
        value.type.tensor_type.ClearField("shape")
    with TemporaryDirectory() as folder:
        path = Path(folder) / Path(name).name
        path.write_bytes(model.SerializeToString())
        try:
            return load_model(path)
        except ModelError as problem:
            raise RefusedChangeError(str(problem).replace(f"{path}: ", "")) from None


def _check_products(graph: Graph) -> None:
    """Checks what shape inference takes on trust: as many values in a reshape, and factors that meet."""
    for index, op in enumerate(graph.ops):
        x, y = graph.tensors[op.inputs[0]].shape if op.inputs else (), graph.tensors[op.outputs[0]].shape
        if op.kind in _AS_MANY and prod(x) != prod(y):
            raise RefusedChangeError(f"op {index} {op.kind} makes {list(y)} by a constant; it would read {list(x)}")
        if op.kind in _PRODUCTS and len(op.inputs) > 1:
            w = graph.tensors[op.inputs[1]].shape
            inner = x[0 if op.attribute("transA") else -1], w[-1 if op.attribute("transB") else max(-2, -len(w))]
            if inner[0] != inner[1]:
                raise RefusedChangeError(f"op {index} {op.kind} has weights for {inner[1]} values, reads {inner[0]}")


Shape = tuple[int, ...]

#: Operators with windows that may cover the whole map.
_POOLS = frozenset({"AVERAGE_POOL_2D", "MAX_POOL_2D"})


class FixedShapeError(Exception):
    """A shape that cannot follow another input; the message says what fixes it."""


@dataclass(frozen=True, slots=True)
class Reshaped:
    """The shapes of tensors that differ; the windows (height, width) of pools that go on covering the whole map."""

    shapes: dict[int, Shape]
    windows: dict[int, tuple[int, int]]


def shapes_for(model: FileModel, inputs: Mapping[int, Shape]) -> Reshaped:
    """What changes in the one subgraph when inputs have these shapes.

    Raises:
        FixedShapeError: an operator whose shape a constant fixes, or that has no formula; names the operator.
    """
    main, calls = model.subgraphs[0], calls_of(model)
    shapes = Reshaped(dict(inputs), {})
    known: dict[tuple[int, tuple[Shape | None, ...]], _Results] = {}  # operators alike with shapes alike
    for number, (op, alike) in enumerate(zip(main.ops, calls.numbers[0], strict=True)):
        fed = tuple([shapes.shapes.get(t) for t in op.inputs])
        if fed.count(None) == len(fed):
            continue
        if (alike, fed) not in known:
            known[alike, fed] = _results_for(calls.distinct[alike], fed, f"op {number} {op.kind}")
        results = known[alike, fed]
        if results.window is not None:
            shapes.windows[number] = results.window
        shapes.shapes.update({t: s for t, s in zip(op.writes, results.shapes, strict=True) if s is not None})
    return shapes


@dataclass(frozen=True, slots=True)
class _Results:
    """The shapes of an operator's results, None for those that stay; the window of a pool that covers the whole map."""

    shapes: tuple[Shape | None, ...]
    window: tuple[int, int] | None = None


def _results_for(call: Call, fed: Sequence[Shape | None], place: str) -> _Results:
    """What an operator of the file makes of operands of these shapes; None: the operand keeps its own."""
    before = [operand.shape for operand in call.outputs if operand is not None]
    if _results(call, place) != before:
        raise FixedShapeError(f"{place} has other shapes in the file than its formula gives")
    x = fed[0]
    if call.kind in _SIZED and x is not None and x[1:3] != _operand(call).shape[1:3]:
        raise FixedShapeError(f"{place} makes height and width by a constant")
    window = _whole_map(call, x)
    if window is not None and x is not None:
        after: list[Shape] = [(x[0], 1, 1, x[3])]
    else:
        operands = [
            old if old is None or shape is None else replace(old, shape=shape)
            for old, shape in zip(call.inputs, fed, strict=True)
        ]
        after = _results(replace(call, inputs=tuple(operands)), place)
    return _Results(tuple(new if new != old else None for new, old in zip(after, before, strict=True)), window)


def _whole_map(call: Call, fed: Shape | None) -> tuple[int, int] | None:
    """The height and width of the map that a pool is fed, where its window covers the whole map in the file."""
    if call.kind not in _POOLS or fed is None:
        return None
    window = call.number("filter_height"), call.number("filter_width")
    whole = call.text("padding") == "VALID" and window == call.input(0).shape[1:3]
    _, height, width, _ = fed
    return (height, width) if whole else None


def _results(call: Call, place: str) -> list[Shape]:
    """The shapes of the results of an operator by its formula."""
    if any(operand.variable for operand in call.inputs if operand is not None):
        raise FixedShapeError(f"{place} works on state, whose shape is fixed")
    alike = facts("tflite", call.kind).access in _AT_EACH_PLACE
    formula = _broadcast if alike else _FORMULAS.get(call.kind)
    if formula is None:
        raise FixedShapeError(f"{place} has no formula for its shape")
    try:
        shapes = formula(call)
    except FixedShapeError as problem:
        raise FixedShapeError(f"{place} {problem}") from None
    except (ValueError, IndexError):
        raise FixedShapeError(f"{place} has operands that its formula does not take") from None
    writes = sum(operand is not None for operand in call.outputs)
    results = shapes if isinstance(shapes, list) else [shapes] * writes
    if len(results) != writes or any(extent < 1 for shape in results for extent in shape):
        raise FixedShapeError(f"{place} would make {' and '.join(str(list(shape)) for shape in results)}")
    return results


def _integers(call: Call, index: int, what: str) -> tuple[int, ...]:
    """The values of a constant operand."""
    operand = call.inputs[index] if index < len(call.inputs) else None
    values = operand.integers() if operand is not None and operand.constant else None
    if values is None:
        raise FixedShapeError(f"takes {what} from a tensor that is computed or has no known values")
    return values


def _operand(call: Call, index: int = 0) -> Operand:
    """An operand that has to be there."""
    operand = call.inputs[index] if index < len(call.inputs) else None
    if operand is None:
        raise FixedShapeError(f"has no operand {index}")
    return operand


def _axis(value: int, rank: int) -> int:
    if not -rank <= value < rank:
        raise FixedShapeError(f"names axis {value} of {rank}")
    return value % rank


def _broadcast(call: Call) -> Shape:
    """The shape of element-wise operators of several operands."""
    shapes = [operand.shape for operand in call.inputs if operand is not None]
    rank = max(map(len, shapes))
    columns = zip(*((1,) * (rank - len(shape)) + shape for shape in shapes), strict=True)
    common_shape = []
    for column in columns:
        extents = set(column) - {1}
        if len(extents) > 1:
            raise FixedShapeError(f"takes operands of shapes {' and '.join(str(list(shape)) for shape in shapes)}")
        common_shape.append(extents.pop() if extents else 1)
    return tuple(common_shape)


def _windows(call: Call, taps: tuple[int, int], channels: int) -> Shape:
    batch, *extents, _ = _rank(call, 4)
    window_counts = []
    for extent, tap, letter in zip(extents, taps, "hw", strict=True):
        stride, dilation = call.number(f"stride_{letter}", 1), call.number(f"dilation_{letter}_factor", 1)
        reach = (tap - 1) * dilation + 1
        same = call.text("padding") == "SAME"
        if not same and extent < reach:
            raise FixedShapeError(f"has a window of {reach}, and {extent} to read without padding")
        window_counts.append(-(-extent // stride) if same else (extent - reach) // stride + 1)
    return (batch, *window_counts, channels)


def _rank(call: Call, rank: int) -> Shape:
    shape = _operand(call).shape
    if len(shape) != rank:
        raise FixedShapeError(f"reads {list(shape)}, expected {rank} axes")
    return shape


def _convolved(call: Call, channels: int) -> Shape:
    """A convolution whose weights have the channels of its result along the axis `channels`."""
    weights = _operand(call, 1).shape
    return _windows(call, (weights[1], weights[2]), weights[channels])


def _pooled(call: Call) -> Shape:
    return _windows(call, (call.number("filter_height"), call.number("filter_width")), _rank(call, 4)[3])


def _connected(call: Call) -> Shape:
    """A matrix product: the weights fix how many values make a row."""
    x, (units, depth) = _operand(call), _operand(call, 1).shape
    kept = len(call.output().shape) == len(x.shape) and x.shape[-1] == depth
    if kept:
        return (*x.shape[:-1], units)
    if x.elements % depth or (len(x.shape) == 2 and x.shape[1] != depth):
        raise FixedShapeError(f"has weights for {depth} values; it would read {list(x.shape)}")
    return (x.elements // depth, units)


def _reshaped(call: Call) -> Shape:
    x = _operand(call)
    named = len(call.inputs) > 1 and call.inputs[1] is not None
    wanted = _integers(call, 1, "its shape") if named else call.output().shape
    rest = prod(extent for extent in wanted if extent != -1)
    if wanted.count(-1) == 1 and rest and x.elements % rest == 0:
        wanted = tuple(x.elements // rest if extent == -1 else extent for extent in wanted)
    if prod(wanted) != x.elements or -1 in wanted:
        raise FixedShapeError(f"makes {list(wanted)} by a constant; it would read {list(x.shape)}")
    return wanted


def _as_many(call: Call) -> Shape:
    """The result of operators that only add or drop axes of extent 1: the file's, if the new operand fits."""
    x, y = _operand(call), call.output()
    if prod(y.shape) != x.elements:
        raise FixedShapeError(f"makes {list(y.shape)} by its options; it would read {list(x.shape)}")
    return y.shape


def _reduced(call: Call) -> Shape:
    x = _operand(call)
    axes = {_axis(value, len(x.shape)) for value in _integers(call, 1, "its axes")}
    if len(call.output().shape) == len(x.shape):
        return tuple(1 if axis in axes else extent for axis, extent in enumerate(x.shape))
    return tuple(extent for axis, extent in enumerate(x.shape) if axis not in axes)


def _found_along(call: Call) -> Shape:
    """The result shape of ARG_MAX and ARG_MIN."""
    x = _operand(call)
    (value,) = _integers(call, 1, "its axis")
    axis = _axis(value, len(x.shape))
    return (*x.shape[:axis], *x.shape[axis + 1 :])


def _joined(call: Call) -> Shape:
    shapes = [operand.shape for operand in call.inputs if operand is not None]
    axis = _axis(call.number("axis"), len(shapes[0]))
    rests = {(*shape[:axis], *shape[axis + 1 :]) for shape in shapes}
    if len(rests) != 1:
        raise FixedShapeError(f"joins {' and '.join(str(list(shape)) for shape in shapes)}")
    return (*shapes[0][:axis], sum(shape[axis] for shape in shapes), *shapes[0][axis + 1 :])


def _padded(call: Call) -> Shape:
    shape, amounts = _operand(call).shape, _integers(call, 1, "its padding")
    if len(amounts) != 2 * len(shape):
        raise FixedShapeError(f"has {len(amounts)} amounts of padding for {len(shape)} axes")
    return tuple(extent + amounts[2 * axis] + amounts[2 * axis + 1] for axis, extent in enumerate(shape))


def _transposed(call: Call) -> Shape:
    shape, order = _operand(call).shape, _integers(call, 1, "its permutation")
    if sorted(order) != list(range(len(shape))):
        raise FixedShapeError(f"has the permutation {list(order)} for {len(shape)} axes")
    return tuple(shape[axis] for axis in order)


def _resized(call: Call) -> Shape:
    """The result shape of RESIZE_BILINEAR and its like, whose height and width are a constant."""
    (batch, *_, channels), size = _rank(call, 4), _integers(call, 1, "its size")
    return (batch, *size, channels)


def _sliced(call: Call) -> Shape:
    """SLICE: a count of -1 takes the rest; others are constants that must fit."""
    shape = _operand(call).shape
    begins, counts = _integers(call, 1, "its begin"), _integers(call, 2, "its size")
    new_shape = []
    for extent, begin, count in zip(shape, begins, counts, strict=True):
        taken = extent - begin if count == -1 else count
        if taken < 1 or begin + taken > extent:
            raise FixedShapeError(f"takes {list(counts)} from {list(begins)} by constants; it would read {list(shape)}")
        new_shape.append(taken)
    return tuple(new_shape)


def _slid(call: Call) -> Shape:
    """STRIDED_SLICE with constants, as its kernel counts: places beyond an end are moved to it."""
    shape = _operand(call).shape
    begins, ends, strides = (_integers(call, index, "its bounds") for index in (1, 2, 3))
    new_shape = []
    for axis, (extent, begin, end, stride) in enumerate(zip(shape, begins, ends, strides, strict=True)):
        if stride < 1:
            raise FixedShapeError(f"has a stride of {stride}")
        from_first, to_last = (call.number(mask) >> axis & 1 for mask in ("begin_mask", "end_mask"))
        start, stop, _ = slice(None if from_first else begin, None if to_last else end, stride).indices(extent)
        if not call.number("shrink_axis_mask") >> axis & 1:
            new_shape.append(-(-(stop - start) // stride))
    return tuple(new_shape)


def _multiplied(call: Call) -> Shape:
    """BATCH_MATMUL: rows of the first by columns of the second, batches broadcast."""
    x, y = _operand(call).shape, _operand(call, 1).shape
    rows, inner = (x[-1], x[-2]) if call.number("adj_x") else (x[-2], x[-1])
    depth, columns = (y[-1], y[-2]) if call.number("adj_y") else (y[-2], y[-1])
    if inner != depth or (x[:-2] != y[:-2]):
        raise FixedShapeError(f"multiplies {list(x)} by {list(y)}")
    return (*x[:-2], rows, columns)


def _transpose_convolved(call: Call) -> Shape:
    """TRANSPOSE_CONV: its shape is a constant, right for the map that it was made for."""
    wanted = _integers(call, 0, "its shape")
    strides = call.number("stride_h", 1), call.number("stride_w", 1)
    extents = _operand(call, 2).shape[1:3]
    taps = _operand(call, 1).shape[1:3]
    same = call.text("padding") == "SAME"
    shape = [
        -(-size // step) if same else (size - tap) // step + 1
        for size, tap, step in zip(wanted[1:3], taps, strides, strict=True)
    ]
    if tuple(shape) != extents or _operand(call, 2).shape[0] != wanted[0]:
        raise FixedShapeError(f"makes {list(wanted)} by a constant")
    return wanted


#: Operators with a constant that holds the height and width of their result.
_SIZED = frozenset({"RESIZE_BILINEAR", "RESIZE_NEAREST_NEIGHBOR"})

#: Access maps of operators whose results have the shape of their operands.
_AT_EACH_PLACE = (builders.pointwise, builders.first_pointwise, builders.converted, along_channels)
#: The shape of the results of each other operator; one shape stands for all results.
_FORMULAS: dict[str, Callable[[Call], Shape | list[Shape]]] = {
    "CONV_2D": partial(_convolved, channels=0),
    "DEPTHWISE_CONV_2D": partial(_convolved, channels=3),
    **dict.fromkeys(_POOLS, _pooled),
    "FULLY_CONNECTED": _connected,
    "RESHAPE": _reshaped,
    "SQUEEZE": _as_many,
    "EXPAND_DIMS": _as_many,
    **dict.fromkeys(("MEAN", "SUM", "REDUCE_MAX", "REDUCE_MIN", "REDUCE_PROD"), _reduced),
    **dict.fromkeys(("ARG_MAX", "ARG_MIN"), _found_along),
    "CONCATENATION": _joined,
    **dict.fromkeys(("PAD", "PADV2", "MIRROR_PAD"), _padded),
    "TRANSPOSE": _transposed,
    "SLICE": _sliced,
    "STRIDED_SLICE": _slid,
    "BATCH_MATMUL": _multiplied,
    "TRANSPOSE_CONV": _transpose_convolved,
    **dict.fromkeys(_SIZED, _resized),
}


def resized_inputs(model: FileModel) -> dict[int, Shape]:
    """The inputs that are maps of four axes, with height and width halved and rounded down.

    Raises:
        FixedShapeError: there is none that can be halved.
    """
    main = model.subgraphs[0]
    shapes = {t: main.tensors[t].shape for t in main.inputs}
    maps = {t: shape for t, shape in shapes.items() if len(shape) == 4 and min(shape[1:3]) > 1}
    if not maps:
        raise FixedShapeError(f"no input is a map of height and width: {', '.join(map(_shape_text, shapes.values()))}")
    return {t: (n, h // 2, w // 2, c) for t, (n, h, w, c) in maps.items()}


def single_inputs(model: FileModel) -> dict[int, Shape]:
    """The inputs with batch 1.

    Raises:
        FixedShapeError: they have not one batch in common.
    """
    main = model.subgraphs[0]
    shapes = {t: main.tensors[t].shape for t in main.inputs}
    if len({shape[:1] for shape in shapes.values()}) != 1:
        raise FixedShapeError(f"the inputs have no batch in common: {', '.join(map(_shape_text, shapes.values()))}")
    return {t: (1, *shape[1:]) for t, shape in shapes.items()}


def _shape_text(shape: Shape) -> str:
    return str(list(shape))

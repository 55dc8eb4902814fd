"""Tests of single operators: is the output a view, may it overwrite an operand, does it read ahead of its writes."""

from modelplan.model import Graph, Op, Tensor

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


def same_width(graph: Graph, op: Op) -> bool:
    """A reinterpretation of the same bytes."""
    x, y = source(graph, op), result(graph, op)
    return x is not None and y is not None and x.nbytes == y.nbytes


def inference(graph: Graph, op: Op) -> bool:
    """A Dropout in inference mode or with ratio 0."""
    if not both(graph, op):
        return False
    if op.version < 7:
        return bool(number(op, "is_test", 0))
    if op.version < 12 or len(op.inputs) < 3 or op.inputs[2] < 0:
        return True
    mode = numbers(op, "operand 2")
    return mode is not None and not any(mode)


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


def _pair(op: Op, first: str, second: str) -> Numbers | None:
    a, b = numbers(op, first), numbers(op, second)
    return (*a, *b) if a and b else None

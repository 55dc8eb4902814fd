"""What one run of a program is expected to take on TFLM's reference kernels, from what its operators compute and move.

The terms were fitted to int8 kernels of the tflite-micro wheel on x86-64 by `benchmarks/durations.py`, which says how
far off they are. They compare programs of one model; other devices and kernels give operators other shares.
"""

from functools import cache
from math import prod

from modelplan.model import Graph
from modelplan.ops import facts
from modelplan.ops.access.spans import same_padding
from modelplan.ops.conditions import number
from modelplan.ops.op_facts import Amounts, Terms
from modelplan.ops.run_costs import op_macs
from modelplan.rewriting.striped_tflite.layers import window_along
from modelplan.rewriting.striped_tflite.steps import JOIN, TfliteProgram, TfliteStep, step_op

#: Terms of kinds that were not fitted, and nanoseconds of an iteration of a loop beside its operators.
OTHERS, ITERATION = Terms(150, 3.0), 300.0
_COPIES = frozenset({"SLICE", "STRIDED_SLICE", "DYNAMIC_UPDATE_SLICE", "RESIZE_BILINEAR", "RESIZE_NEAREST_NEIGHBOR"})


def program_time(program: TfliteProgram, known: dict[object, float] | None = None) -> float:
    """Nanoseconds that one run of a program is expected to take; `known` is kept for programs of the same graph."""
    known = {} if known is None else known
    return sum(_known_time(program, step, known) for step in program.steps)


def _known_time(program: TfliteProgram, step: TfliteStep, known: dict[object, float]) -> float:
    """The time of a step; steps of the same kind, changes and shapes are looked up once."""
    if step.loop is not None:
        return step_time(program, step)
    shapes = tuple(program.shape(t) for t in (*step.inputs[:2], *step.outputs[:1]) if t >= 0)
    key = step.kind, step.source, step.changes, len(step.inputs), shapes
    if key not in known:
        known[key] = step_time(program, step)
    return known[key]


def step_time(program: TfliteProgram, step: TfliteStep) -> float:
    """Nanoseconds of a step, of a loop those of all its iterations."""
    if step.loop is not None:
        body = sum(step_time(program, inner) for inner in (step.loop.condition, *step.loop.body))
        return step.loop.iterations * (ITERATION + body)
    return terms_of(step.kind).time(amounts_of(program, step)) if step.outputs else 0.0


def op_time(graph: Graph, index: int) -> float:
    """Nanoseconds of an unmodified operator of a graph."""
    op = graph.ops[index]
    return step_time(TfliteProgram(graph), TfliteStep(op.kind, op.inputs, op.outputs, index))


def terms_of(kind: str) -> Terms:
    """What an operator of a kind takes in one run."""
    return facts("tflite", kind).time or OTHERS


def amounts_of(program: TfliteProgram, step: TfliteStep) -> Amounts:
    """What a step with an output does in one run."""
    y = program.shape(step.outputs[0])
    outputs = prod(y)
    if facts("tflite", step.kind).rows == "window" and len(y) == 4:
        return _of_window(program, step, y)
    if step.kind == "PAD":
        return Amounts(outputs, prod(program.shape(step.inputs[0])))
    if step.kind == JOIN:
        axis = number(step_op(program, step), "axis", 0)
        return Amounts(outputs, runs=len(step.inputs) * prod(y[: axis % max(len(y), 1)]))
    if step.kind == "GATHER":
        return Amounts(outputs, runs=prod(y[: number(step_op(program, step), "axis", 0) + 1]))
    if step.kind in _COPIES:
        part = program.shape(step.inputs[1]) if step.kind == "DYNAMIC_UPDATE_SLICE" else y
        return Amounts(prod(part), runs=prod(part[:-1]))
    macs = op_macs(program.graph, program.graph.ops[step.source]) if step.source >= 0 else 0
    return Amounts(outputs, macs=macs)


def _of_window(program: TfliteProgram, step: TfliteStep, y: tuple[int, ...]) -> Amounts:
    """Positions outside of the operand are skipped by the kernels and take no time."""
    op, x = program.graph.ops[step.source], program.shape(step.inputs[0])
    own = dict(step.changes).get("padding", op.attribute("padding")) == "SAME"
    taps = y[0] * y[3]
    for axis in (1, 2):
        window = window_along(program.graph, op, axis)
        taps *= _inside(x[axis], y[axis], window.hi - window.lo + 1, window.mul, window.step, own=own)
    return Amounts(prod(y), taps, taps * (x[3] if step.kind == "CONV_2D" else 1))


@cache
def _inside(rows: int, computed: int, reach: int, stride: int, dilation: int, *, own: bool) -> int:
    """Positions of all windows along an axis that lie inside of the operand."""
    before = same_padding(rows, computed, reach, stride) // 2 if own else 0
    taps = range(-before, reach - before, dilation)
    if len(taps) > computed:  # for each window the taps inside of it, else for each tap the windows
        return sum(_between(-at * stride, rows - at * stride, taps) for at in range(computed))
    return sum(_between(-tap, rows - tap, range(0, computed * stride, stride)) for tap in taps)


def _between(low: int, high: int, values: range) -> int:
    """How many of the values, which ascend, are at least `low` and below `high`."""
    ends = (-(-(end - values.start) // values.step) for end in (low, high))
    first, last = (min(max(end, 0), len(values)) for end in ends)
    return last - first

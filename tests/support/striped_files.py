"""Small models of a few convolutions, rewritten in stripes, and faults made in such rewrites on purpose."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from program_replay import replay_steps
from random_cnns import Network

from modelplan import BrokenPlanError, runtimes
from modelplan.formats import load
from modelplan.formats.tflite.flatbuffer_tables import OPTIONS
from modelplan.model import Graph
from modelplan.rewriting.striped_tflite import placing
from modelplan.rewriting.striped_tflite.building import striped_program
from modelplan.rewriting.striped_tflite.ladder import Ladder
from modelplan.rewriting.striped_tflite.rungs import Goal, ModelOnTarget
from modelplan.rewriting.striped_tflite.steps import TfliteProgram, TfliteStep
from modelplan.rewriting.striped_tflite.writing import write_striped
from modelplan.rewriting.stripes.group_packing import GroupPacking, pack
from modelplan.rewriting.stripes.stretches import KeptHalo, LoopedStripes, StripedStretch, as_strategy
from modelplan.runtimes.tflm import planner
from modelplan.runtimes.tflm.file import FileModel, read_tflite
from modelplan.runtimes.tflm.metadata import write_made_for, write_plan

_INT32 = 2
_SAME, _RELU = 0, 1
ROWS = 24


def three_convolutions(*entry: Any) -> bytes:
    """CONV 3x3, DEPTHWISE 3x3 with stride 2, CONV 1x1; every map has a zero point of its own.

    With the type and the quantisation of another input a QUANTIZE stands before them.
    """
    net = Network(np.random.default_rng(7))
    x = first = net.tensor((1, ROWS, 10, 3), *entry) if entry else net.tensor((1, ROWS, 10, 3), scale=(0.05, -7))
    if entry:
        x = net.operator("QUANTIZE", [first], net.tensor((1, ROWS, 10, 3), scale=(0.05, -7)))
    a = _convolution(net, x, "CONV_2D", 3, 1, 6, 4)
    b = _convolution(net, a, "DEPTHWISE_CONV_2D", 3, 2, 6, 9)
    c = _convolution(net, b, "CONV_2D", 1, 1, 5, -3)
    return net.file(first, c)


def _convolution(net: Network, x: int, kind: str, kernel: int, stride: int, deep: int, zero: int) -> int:
    _, height, width, channels = net.shapes[x]
    shape = (deep, kernel, kernel, channels) if kind == "CONV_2D" else (1, kernel, kernel, deep)
    weights = net.tensor(shape, scale=(0.02, 0), data=net.rng.integers(-90, 90, shape, dtype=np.int8).tobytes())
    bias = net.rng.integers(-900, 900, deep, dtype=np.int32).tobytes()
    offset = net.tensor((deep,), _INT32, (0.001, 0), bias)
    y = net.tensor((1, -(-height // stride), -(-width // stride), deep), scale=(0.05, zero))
    steps = (_SAME, stride, stride)
    options = (*steps, _RELU, 1, 1) if kind == "CONV_2D" else (*steps, 1, _RELU, 1, 1)
    return net.operator(kind, [x, weights, offset], y, OPTIONS[kind], options)


@dataclass(frozen=True)
class Striped:
    """A model, its rewrite before it is written, and where the packer puts each value."""

    data: bytes
    program: TfliteProgram
    place: dict[int, int]

    def file(self, fault: Callable[[TfliteProgram], None] | None = None) -> bytes:
        """The rewritten file with its plan, the program changed by `fault` after it was placed."""
        if fault is not None:
            fault(self.program)
        model, values = write_striped(self.data, self.program)
        offsets = [self.place.get(value, planner.ONLINE) for value in values]
        return write_made_for(write_plan(read_tflite(model, "striped"), offsets), "reference", "32")


def striped(data: bytes, folder: Path, strategy: type[StripedStretch] = KeptHalo, **ways: object) -> Striped:
    """The model of `data` with all of its operators in stripes, unless `ways` say which."""
    graph = graph_of(data, folder)
    whole = StripedStretch(0, len(graph.ops) - 1, 1, (0, 4, 7, ROWS // 2))
    stretch = as_strategy(whole, strategy, **ways)
    program = striped_program(graph, range(len(graph.ops)), [stretch])
    overlaps = placing.proved_overlaps(runtimes.runtime("tflm", "tflite"))
    packing = pack(placing.problem_of(program, overlaps, planner.ALIGNMENT), 300)
    return Striped(data, program, placing.value_addresses(program, packing))


#: What the ladder says of the loop.
_STRETCH = "ops 0 to 2: one loop over 3 stripes of rows"


def striped_ladder(folder: Path) -> Ladder:
    """The three convolutions in `folder` as they stand, and all of them in one loop over stripes, which is chosen."""
    data = three_convolutions()
    subject = ModelOnTarget(data, graph_of(data, folder), "three", Goal(objective="head"))
    rewrite = striped(data, folder, strategy=LoopedStripes, cuts=(0, 4, 8, 12))
    before = subject.rung("as is", data, 3, subject.macs)
    after = subject.rung("split", rewrite.file(), len(rewrite.program.steps), subject.macs)
    after = replace(after, stretches=(_STRETCH,))
    return Ladder((before, after), after, after.head, kernels="reference")


def largest_distance(made: Striped, *, used: bool = True) -> int:
    """Bytes above the input at which the output may start, as the planner sees it, with all else out of the way.

    Without `used` all that a loop takes counts as read. The addresses stay as they are at that distance.
    """
    program = made.program if used else _all_used(made.program)
    overlaps = placing.proved_overlaps(runtimes.runtime("tflm", "tflite"))

    def holds(distance: int) -> bool:
        packing = set_apart(made, distance)
        try:
            replay_steps(program, packing, overlaps)
        except BrokenPlanError:
            return False
        return True

    low, high = -program.nbytes(program.graph.outputs[0]), program.nbytes(program.graph.inputs[0]) - 1
    assert holds(low)
    assert not holds(high)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if holds(middle) else (low, middle)
    set_apart(made, low)
    return low


def set_apart(made: Striped, distance: int) -> GroupPacking:
    """Puts the output `distance` bytes above the input and everything else beyond both."""
    program = made.program
    sizes: dict[int, int] = {}
    for value, place in program.group_offsets.items():
        sizes[place.group] = max(sizes.get(place.group, 0), place.delta + program.nbytes(value))
    x, y = (program.group_offsets[t].group for t in (program.graph.inputs[0], program.graph.outputs[0]))
    bases = [planner.padded(sizes[y])] * program.groups
    bases[y] += distance
    at = planner.padded(bases[x] + sizes[x] + sizes[y])
    for group in sorted(sizes.keys() - {x, y}):
        bases[group], at = at, planner.padded(at + sizes[group])
    packing = GroupPacking(tuple(bases), at, 0)
    made.place.update(placing.value_addresses(program, packing))
    return packing


def _all_used(program: TfliteProgram) -> TfliteProgram:
    steps = []
    for step in program.steps:
        body = tuple(replace(inner, used=()) for inner in step.loop.body) if step.loop else ()
        steps.append(replace(step, loop=replace(step.loop, body=body)) if step.loop else step)
    return replace(program, steps=steps)


def graph_of(data: bytes, folder: Path) -> Graph:
    """The graph of a model that has no file yet."""
    path = folder / "model.tflite"
    path.write_bytes(data)
    graph = load(path)
    assert isinstance(graph, Graph)
    return graph


def step_at(program: TfliteProgram, kind: str, number: int = 0) -> int:
    """The place of the `number`-th step of a kind."""
    return [i for i, step in enumerate(program.steps) if step.kind == kind][number]


def constant(program: TfliteProgram, value: int) -> tuple[int, ...]:
    """The numbers of a constant that the rewrite added."""
    found = program.added[value - len(program.graph.tensors)].numbers
    assert found is not None
    return found


def with_operand(program: TfliteProgram, at: int, position: int, value: int) -> None:
    """Puts another operand into a step."""
    step = program.steps[at]
    program.steps[at] = replace(step, inputs=(*step.inputs[:position], value, *step.inputs[position + 1 :]))


def shift_slice(program: TfliteProgram, at: int, rows: int) -> None:
    """Lets a SLICE begin `rows` rows later."""
    begin = list(constant(program, program.steps[at].inputs[1]))
    begin[1] += rows
    with_operand(program, at, 1, program.constant(begin))


def loop_of(program: TfliteProgram) -> TfliteStep:
    """The first WHILE."""
    return program.steps[step_at(program, "WHILE")]


def table_named(program: TfliteProgram, word: str) -> int:
    """The place among the added values of the table whose name ends with `word`."""
    return next(i for i, value in enumerate(program.added) if value.name.endswith(word))


def change_table(program: TfliteProgram, word: str, entry: int, number: int) -> None:
    """Puts another number into a table of a loop."""
    at = table_named(program, word)
    numbers = list(program.added[at].numbers or ())
    numbers[entry] = number
    program.added[at] = replace(program.added[at], numbers=tuple(numbers))


def with_offset(data: bytes, tensor: int, offset: int) -> bytes:
    """A planned file with another offset for one tensor."""
    model: FileModel = read_tflite(data, "striped")
    offsets = list(planner.read_plan(model) or ())
    offsets[tensor] = offset
    return write_plan(model, offsets)


def number_of(data: bytes, word: str) -> int:
    """The number, over all subgraphs, of the first tensor whose name ends with `word`."""
    return next(i for i, t in enumerate(read_tflite(data, "striped").tensors) if t.name.endswith(word))


def padded_convolution(zero: int = -3) -> bytes:
    """PAD by one row and column around a map, then CONV 3x3 without padding; `zero` is the padded map's zero point."""
    net = Network(np.random.default_rng(5))
    x = net.tensor((1, 12, 10, 3), scale=(0.05, -3))
    pads = np.array([[0, 0], [1, 1], [1, 1], [0, 0]], dtype=np.int32).tobytes()
    y = net.tensor((1, 14, 12, 3), scale=(0.05, zero))
    net.operator("PAD", [x, net.tensor((4, 2), _INT32, None, pads)], y)
    shape = (4, 3, 3, 3)
    weights = net.tensor(shape, scale=(0.02, 0), data=net.rng.integers(-90, 90, shape, dtype=np.int8).tobytes())
    offset = net.tensor((4,), _INT32, (0.001, 0), net.rng.integers(-900, 900, 4, dtype=np.int32).tobytes())
    made = net.tensor((1, 12, 10, 4), scale=(0.05, 1))
    valid = 1
    return net.file(
        x, net.operator("CONV_2D", [y, weights, offset], made, OPTIONS["CONV_2D"], (valid, 1, 1, _RELU, 1, 1))
    )

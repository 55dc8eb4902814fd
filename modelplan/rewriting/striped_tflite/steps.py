"""The program of stripes that becomes a .tflite file: its steps, its loops, and where its values lie in memory.

Some values share the bytes of a *group*: a whole map and its slices, or a window and the rows it is put together from.
The values of a group keep their distances; where a group lies in memory is the packer's question.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import field, replace
from math import prod
from typing import NamedTuple

import numpy as np

from modelplan.model import Graph, Kind, Op, Tensor
from modelplan.model import Value as Attribute
from modelplan.ops.op_facts import TFLITE_RESHAPES
from modelplan.primitives.lazy_records import dataclass
from modelplan.primitives.number_types import nbytes
from modelplan.rewriting.stripes.group_packing import MemoryAccess
from modelplan.rewriting.stripes.stripe_program import AddedValue, StripedProgram, StripedStep

#: The operator that puts rows together, others that put their operands one behind the other, and the most operands of
#: TFLM's kernel.
JOIN = "CONCATENATION"
JOINS = frozenset({JOIN, "PACK"})
MOST_JOINED = 10
#: The place of a block in a tensor, and its extents.
Block = tuple[tuple[int, ...], tuple[int, ...]]


class GroupOffset(NamedTuple):
    """The group that a value lies in, and its byte there."""

    group: int
    delta: int


@dataclass(frozen=True, slots=True)
class TfliteStep(StripedStep):
    """One operator of the program.

    `changes` are attributes that replace those of the source. In a loop `starts` are the places from which a SLICE
    reads or a DYNAMIC_UPDATE_SLICE writes, along all axes, one for each iteration. Of what such a SLICE reads, `used`
    is the block that any result depends on in each iteration; empty where that is all. A WHILE runs `loop`.
    """

    changes: tuple[tuple[str, Attribute], ...] = ()
    starts: tuple[tuple[int, ...], ...] = ()
    used: tuple[Block, ...] = ()
    loop: TfliteLoop | None = None


@dataclass(frozen=True, slots=True)
class TfliteLoop:
    """What a WHILE runs: the condition before each iteration and once behind the last, and the body.

    `inputs` are the values of condition and body, `outputs` those of the body, each where its input lies. Those of
    `carried` hold rows that an iteration leaves to the next; at first they hold anything.
    """

    iterations: int
    condition: TfliteStep
    body: tuple[TfliteStep, ...]
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    carried: tuple[int, ...] = ()

    @property
    def ends(self) -> frozenset[int]:
        """The maps that the loop reads and the one that it makes."""
        return frozenset(self.inputs[1:]) - frozenset(self.carried)

    def telling_iterations(self) -> frozenset[int]:
        """The iterations that decide where the values of the body may lie.

        Where slices begin at the same rows the same bytes of the body are alive together. Of such iterations the first
        one has the most of what the loop reads, the last one the most of what it makes; what is carried crosses from
        the first to the second.
        """
        starts = [step.starts for step in self.body if step.starts and step.inputs[0] not in self.ends]
        alike = [tuple(begins[k] for begins in starts) for k in range(self.iterations)]
        first = {pattern: k for k, pattern in reversed(list(enumerate(alike)))}
        last = {pattern: k for k, pattern in enumerate(alike)}
        return frozenset({*first.values(), *last.values(), *((1,) if self.carried else ())})


def joined(operands: Sequence[int], result: int, axis: int) -> TfliteStep:
    """The step that puts values one behind the other along an axis."""
    return TfliteStep(JOIN, tuple(operands), (result,), changes=(("axis", axis),))


@dataclass
class TfliteProgram(StripedProgram[TfliteStep]):
    """A program whose values lie in groups: those that need memory have an offset in one of so many `groups`.

    `file_ops` are the operators of the file behind those of the graph.
    """

    group_offsets: dict[int, GroupOffset] = field(default_factory=dict)
    groups: int = 0
    constants: dict[tuple[int, ...], int] = field(default_factory=dict)
    file_ops: tuple[int, ...] = ()
    _tensors: dict[int, Tensor] = field(default_factory=dict, repr=False)
    _nbytes: dict[int, int] = field(default_factory=dict, repr=False)

    def new_group(self) -> GroupOffset:
        """The first byte of one more group."""
        self.groups += 1
        return GroupOffset(self.groups - 1, 0)

    def place(self, value: int) -> GroupOffset:
        """Where a value lies: in a group of its own unless it has a place."""
        if value not in self.group_offsets:
            self.group_offsets[value] = self.new_group()
        return self.group_offsets[value]

    def add_at(self, value: AddedValue, place: GroupOffset) -> int:
        """Adds a value that lies in a group and returns its number."""
        number = self.add(value)
        self.group_offsets[number] = place
        return number

    def constant(self, numbers: Sequence[int], shape: tuple[int, ...] | None = None) -> int:
        """A vector of 32-bit numbers; equal ones are one value."""
        key = (*(shape or (len(numbers),)), -1, *numbers)
        if key not in self.constants:
            text = "_".join(map(str, numbers))
            added = AddedValue(f"fit/{text}", -1, shape or (len(numbers),), numbers=tuple(numbers))
            self.constants[key] = self.add(added)
        return self.constants[key]

    def tensor(self, value: int) -> Tensor:
        """A value as a tensor of a graph."""
        count = len(self.graph.tensors)
        if value < count:
            return self.graph.tensors[value]
        if value not in self._tensors:
            name = self.added[value - count].name
            self._tensors[value] = Tensor(name, self.shape(value), self.dtype(value), self.kind(value))
        return self._tensors[value]

    def numbers(self, value: int) -> tuple[int, ...] | None:
        """The numbers of a constant that the rewrite adds; None for other values."""
        first = len(self.graph.tensors)
        return self.added[value - first].numbers if value >= first else None

    def nbytes(self, value: int) -> int:
        """Bytes of a value."""
        if value not in self._nbytes:
            self._nbytes[value] = nbytes(self.dtype(value), self.shape(value))
        return self._nbytes[value]

    def dtype(self, value: int) -> str:
        """The type of a value's elements."""
        count = len(self.graph.tensors)
        if value < count:
            return self.graph.tensors[value].dtype
        added = self.added[value - count]
        return added.dtype if added.numbers is not None or added.tensor < 0 else self.graph.tensors[added.tensor].dtype

    def kind(self, value: int) -> Kind:
        """Whether a value is made when the program runs."""
        count = len(self.graph.tensors)
        if value < count:
            return self.graph.tensors[value].kind
        added = self.added[value - count]
        return Kind.ACTIVATION if added.numbers is None and added.part is None else Kind.CONSTANT


def executed_steps(program: TfliteProgram) -> Iterator[tuple[int, TfliteStep, int]]:
    """(tick, step, iteration) of every operator that runs, those of loops as often as they run."""
    for tick, step, iteration, _ in _executed(program):
        yield tick, step, iteration


def count_executed(program: TfliteProgram) -> int:
    """How many operators run, those of loops as often as they run."""
    return sum(2 + s.loop.iterations * (1 + len(s.loop.body)) if s.loop else 1 for s in program.steps)


def placed_steps(program: TfliteProgram) -> Iterator[tuple[int, TfliteStep]]:
    """(tick, step) of the operators that decide where values may lie: those of loops in the iterations that count."""
    for tick, step, _, passed in _executed(program):
        if passed is None:
            yield tick, step


def _executed(program: TfliteProgram) -> Iterator[tuple[int, TfliteStep, int, TfliteLoop | None]]:
    """Every operator that runs, with its tick and its iteration, and its loop where that iteration tells nothing."""
    tick = 0
    for step in program.steps:
        loop = step.loop
        if loop is None:
            yield tick, step, 0, None
            tick += 1
            continue
        telling, begun = loop.telling_iterations(), (loop.inputs[0], *loop.carried)  # the counter gets its first value
        yield tick, TfliteStep("WHILE", (), begun), 0, None
        tick += 1
        for iteration in range(loop.iterations):
            passed = None if iteration in telling else loop
            for inner in (loop.condition, *loop.body):
                yield tick, inner, iteration, passed
                tick += 1
        yield tick, loop.condition, loop.iterations, None
        tick += 1


def step_graph(program: TfliteProgram, step: TfliteStep) -> Graph:
    """A graph of one step alone, with its operands as inputs."""
    values = list(dict.fromkeys(t for t in (*step.inputs, *step.outputs) if t >= 0))
    index = {t: i for i, t in enumerate(values)} | {-1: -1}
    tensors = tuple(program.tensor(t) for t in values)
    op = replace(
        step_op(program, step),
        inputs=tuple(index[t] for t in step.inputs),
        outputs=tuple(index[t] for t in step.outputs),
    )
    fed = tuple(index[t] for t in step.reads if tensors[index[t]].kind is Kind.ACTIVATION)
    return Graph(program.graph.name, program.graph.format, tensors, (op,), fed, op.outputs)


def step_op(program: TfliteProgram, step: TfliteStep) -> Op:
    """A step as an operator, with the attributes that it has on its stripe."""
    attributes: dict[str, Attribute] = {}
    name, version = step.kind, 1
    if step.source >= 0:
        op = program.graph.ops[step.source]
        attributes, name, version = dict(op.attributes), op.name, op.version
    attributes |= dict(step.changes)
    for position, value in enumerate(step.inputs):
        if (numbers := program.numbers(value)) is not None:
            attributes[f"operand {position}"] = numbers
    return Op(name, step.kind, step.inputs, step.outputs, tuple(attributes.items()), version)


def accesses(program: TfliteProgram) -> Iterator[MemoryAccess]:
    """Every real access in order: reads before writes in each step, none where a copy would be onto itself.

    The caller writes the inputs before step 0 (step -1) and reads the outputs behind the last one.
    """
    yield from caller_accesses(program, -1, writes=True)
    yield from step_accesses(program)
    yield from caller_accesses(program, count_executed(program), writes=False)


def caller_accesses(program: TfliteProgram, tick: int, *, writes: bool) -> Iterator[MemoryAccess]:
    """The caller's: it writes the inputs, or reads the outputs."""
    for t in program.graph.inputs if writes else program.graph.outputs:
        yield from _whole(program, t, tick, writes=writes)


def step_accesses(program: TfliteProgram, *, telling: bool = False) -> Iterator[MemoryAccess]:
    """Every access of the steps in order.

    With `telling` those to values of a loop's body are left out in iterations that tell nothing more of where these may
    lie.
    """
    known: dict[int, list[MemoryAccess]] = {}  # of steps that access the same bytes whenever they run
    ends: dict[int, set[int]] = {}  # of steps the groups that they access otherwise in each iteration
    for tick, step, iteration, passed in _executed(program):
        if telling and passed is not None:
            if id(step) not in ends:
                ends[id(step)] = _changing_groups(program, step, passed)
            if mine := ends[id(step)]:
                yield from (a for a in _of_step(program, tick, step, iteration) if a.group in mine)
            continue
        if step.starts or step.kind == "WHILE":
            yield from _of_step(program, tick, step, iteration)
            continue
        if id(step) not in known:
            known[id(step)] = list(_of_step(program, tick, step, iteration))
        for group, lo, hi, _, writes, value in known[id(step)]:
            yield MemoryAccess(group, lo, hi, tick, writes, value)


def _changing_groups(program: TfliteProgram, step: TfliteStep, loop: TfliteLoop) -> set[int]:
    """The groups of maps that a loop reads and makes of which a step takes another block in each iteration."""
    ends = {program.group_offsets[t].group for t in loop.ends} if step.starts else set()
    return ends & {program.group_offsets[t].group for t in (*step.reads, *step.outputs) if t in program.group_offsets}


def _whole(program: TfliteProgram, value: int, step: int, *, writes: bool) -> Iterator[MemoryAccess]:
    place = program.group_offsets.get(value)
    if place is not None:
        yield MemoryAccess(place.group, place.delta, place.delta + program.nbytes(value), step, writes, value)


def _of_step(program: TfliteProgram, number: int, step: TfliteStep, iteration: int) -> Iterator[MemoryAccess]:
    if step.starts:
        yield from _from_place(program, number, step, iteration)
        return
    place = program.group_offsets.get
    if step.kind in TFLITE_RESHAPES and place(step.inputs[0]) == place(step.outputs[0]):
        return
    if joins_in_place(program, step):
        yield from _joined(program, number, step)
    elif step.kind == "SLICE" and takes_rows(program, step):
        yield from _sliced(program, number, step)
    else:
        for value in step.reads:
            yield from _whole(program, value, number, writes=False)
        for value in step.outputs:
            yield from _whole(program, value, number, writes=True)


def joins_in_place(program: TfliteProgram, step: TfliteStep) -> bool:
    """Whether a step joins runs of bytes that may lie in their places."""
    if step.kind not in JOINS:
        return False
    y = program.group_offsets.get(step.outputs[0])
    places = (program.group_offsets.get(t) for t in step.inputs)
    return step.source < 0 or (y is not None and any(x is not None and x.group == y.group for x in places))


def takes_rows(program: TfliteProgram, step: TfliteStep) -> bool:
    """Whether a SLICE that the rewrite adds takes a run of whole rows of a map."""
    if step.source >= 0 or program.kind(step.inputs[0]) is Kind.CONSTANT:
        return False
    shape, part = program.shape(step.inputs[0]), program.shape(step.outputs[0])
    axis = next((i for i, n in enumerate(shape) if n != part[i]), 0)
    return prod(shape[:axis]) == 1 and shape[axis + 1 :] == part[axis + 1 :]


def is_followed(program: TfliteProgram, step: TfliteStep) -> bool:
    """Whether a SLICE that the rewrite adds takes rows of a map, or a block in a loop."""
    return bool(step.starts) or takes_rows(program, step)


def block_runs(shape: Sequence[int], part: Sequence[int], begin: Sequence[int], width: int) -> list[tuple[int, int]]:
    """Bytes [lo, hi) of each contiguous run of a block of a tensor, whose elements have `width` bytes, in order.

    >>> block_runs((1, 4, 6, 2), (1, 2, 3, 2), (0, 1, 0, 0), 1)
    [(12, 18), (24, 30)]
    """
    axis = max((i for i, n in enumerate(shape) if n != part[i]), default=0)  # behind it the block is as wide as all
    inner = width * prod(shape[axis + 1 :])
    if prod(part[:axis]) == 1:
        low = first_byte(shape[: axis + 1], begin[: axis + 1], inner)
        return [(low, low + part[axis] * inner)]
    at = np.zeros(1, np.int64)
    for extent, first, count in zip(shape[:axis], begin, part, strict=False):
        at = (at[:, None] * extent + np.arange(first, first + count)).ravel()
    lows = (at * shape[axis] + begin[axis]) * inner
    return list(zip(lows.tolist(), (lows + part[axis] * inner).tolist(), strict=True))


def first_byte(shape: Sequence[int], begin: Sequence[int], width: int) -> int:
    """Where in a tensor, whose elements have `width` bytes, the element at `begin` starts."""
    at = 0
    for extent, place in zip(shape, begin, strict=True):
        at = at * extent + place
    return at * width


def _from_place(program: TfliteProgram, number: int, step: TfliteStep, iteration: int) -> Iterator[MemoryAccess]:
    """A SLICE or DYNAMIC_UPDATE_SLICE of a block given by its begin vector.

    Only what a result depends on counts as read. Between the runs of that block other bytes are kept alive too, which
    keeps lives few.
    """
    updates = step.kind == "DYNAMIC_UPDATE_SLICE"
    vector, part = (step.inputs[2], step.inputs[1]) if updates else (step.inputs[1], step.outputs[0])
    group, start = program.group_offsets[step.inputs[0]]
    shape, extents = program.shape(step.inputs[0]), program.shape(part)
    width = program.nbytes(part) // prod(extents)
    begin, extents = step.used[iteration] if step.used else (step.starts[iteration], extents)
    yield from _whole(program, vector, number, writes=False)
    if updates:
        yield from _whole(program, part, number, writes=False)
        for lo, hi in block_runs(shape, extents, begin, width):
            yield MemoryAccess(group, start + lo, start + hi, number, True, step.outputs[0])
    else:
        last = [b + n - 1 for b, n in zip(begin, extents, strict=True)]
        lo, hi = first_byte(shape, begin, width), first_byte(shape, last, width) + width
        yield MemoryAccess(group, start + lo, start + hi, number, False, step.inputs[0])
        yield from _whole(program, part, number, writes=True)


def _joined(program: TfliteProgram, number: int, step: TfliteStep) -> Iterator[MemoryAccess]:
    """Each part is copied to its place in the output, but for those that stand there already."""
    group, at = program.group_offsets[step.outputs[0]]
    copied = []
    for value in step.inputs:
        size = program.nbytes(value)
        if program.group_offsets[value] != (group, at):
            yield from _whole(program, value, number, writes=False)
            copied.append(MemoryAccess(group, at, at + size, number, True, step.outputs[0]))
        at += size
    yield from copied


def _sliced(program: TfliteProgram, number: int, step: TfliteStep) -> Iterator[MemoryAccess]:
    """A run of rows of operand 0, copied unless it stands there already."""
    source, target = program.group_offsets[step.inputs[0]], program.group_offsets[step.outputs[0]]
    begin = program.numbers(step.inputs[1]) or ()
    shape = program.shape(step.inputs[0])
    axis = next((i for i, b in enumerate(begin) if b), 0)
    size = program.nbytes(step.outputs[0])
    start = source.delta + begin[axis] * (program.nbytes(step.inputs[0]) // prod(shape[: axis + 1]))
    if target != (source.group, start):
        yield MemoryAccess(source.group, start, start + size, number, False, step.inputs[0])
        yield MemoryAccess(target.group, target.delta, target.delta + size, number, True, step.outputs[0])

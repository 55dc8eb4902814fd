"""A model computed stripe by stripe, as steps over values with a home in memory; free of file formats.

The values of a program are the tensors of its graph and, behind them, those that the rewrite adds. Some share the bytes
of a *group*: a whole map and its slices, or a window and the rows it is put together from. The values of a group keep
their distances; where a group stands in memory is the packer's question.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import product
from math import prod
from typing import NamedTuple

from modelplan.model import Graph, Kind, Op, Tensor
from modelplan.model import Value as Attribute

#: Operators that leave the bytes of operand 0 as they are.
VIEWS = frozenset({"RESHAPE", "SQUEEZE", "EXPAND_DIMS"})
#: The most operands of TFLM's CONCATENATION.
MOST_JOINED = 10


#: The place of a block in a tensor, and its extents.
Block = tuple[tuple[int, ...], tuple[int, ...]]


class Home(NamedTuple):
    """The group that a value lies in, and its byte there."""

    group: int
    delta: int


@dataclass(frozen=True, slots=True)
class Step:
    """One operator of the program.

    `source` is the operator of the graph that it carries out on a stripe, -1 where the rewrite adds it. `changes` are
    attributes that replace those of the source. In a loop `starts` are the places from which a SLICE reads or a
    DYNAMIC_UPDATE_SLICE writes, along all axes, one for each iteration. Of what such a SLICE reads, `used` is the block
    that any result depends on, as (place, extents) for each iteration; empty where that is all. A WHILE runs `loop`.
    """

    kind: str
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    source: int = -1
    changes: tuple[tuple[str, Attribute], ...] = ()
    starts: tuple[tuple[int, ...], ...] = ()
    used: tuple[Block, ...] = ()
    loop: Loop | None = None

    @property
    def reads(self) -> tuple[int, ...]:
        """Distinct values read, absent ones left out."""
        return tuple(dict.fromkeys(t for t in self.inputs if t >= 0))


@dataclass(frozen=True, slots=True)
class Loop:
    """What a WHILE runs: the condition before each iteration and once behind the last, and the body.

    `inputs` are the values of condition and body, `outputs` those of the body, each at the home of its input.
    """

    iterations: int
    condition: Step
    body: tuple[Step, ...]
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Added:
    """A value that the rewrite adds: the tensor of the graph whose type and quantisation it has, and its shape.

    `rows` are the rows of that tensor that it holds. A constant holds `numbers` instead; it and what is no map have a
    `dtype` of their own. A `variable` has memory without being written.
    """

    name: str
    tensor: int
    shape: tuple[int, ...]
    rows: tuple[int, int] | None = None
    numbers: tuple[int, ...] | None = None
    dtype: str = "int32"
    variable: bool = False


@dataclass
class Program:
    """Steps in the order in which they run, the values that were added, and the homes of all that need memory.

    `file_ops` are the operators of the file behind those of the graph.
    """

    graph: Graph
    added: list[Added] = field(default_factory=list)
    steps: list[Step] = field(default_factory=list)
    homes: dict[int, Home] = field(default_factory=dict)
    groups: int = 0
    constants: dict[tuple[int, ...], int] = field(default_factory=dict)
    file_ops: tuple[int, ...] = ()
    _tensors: dict[int, Tensor] = field(default_factory=dict, repr=False)

    def new_group(self) -> int:
        """The number of one more group."""
        self.groups += 1
        return self.groups - 1

    def add(self, value: Added, home: Home | None = None) -> int:
        """The number of one more value."""
        self.added.append(value)
        number = len(self.graph.tensors) + len(self.added) - 1
        if home is not None:
            self.homes[number] = home
        return number

    def constant(self, numbers: Sequence[int], shape: tuple[int, ...] | None = None) -> int:
        """A vector of 32-bit numbers; equal ones are one value."""
        key = (*(shape or (len(numbers),)), -1, *numbers)
        if key not in self.constants:
            text = "_".join(map(str, numbers))
            added = Added(f"fit/{text}", -1, shape or (len(numbers),), numbers=tuple(numbers))
            self.constants[key] = self.add(added)
        return self.constants[key]

    def shape(self, value: int) -> tuple[int, ...]:
        """The extents of a value."""
        count = len(self.graph.tensors)
        return self.graph.tensors[value].shape if value < count else self.added[value - count].shape

    def tensor(self, value: int) -> Tensor:
        """A value as a tensor of a graph."""
        count = len(self.graph.tensors)
        if value < count:
            return self.graph.tensors[value]
        if value not in self._tensors:
            added = self.added[value - count]
            kind = Kind.ACTIVATION if added.numbers is None else Kind.CONSTANT
            own = added.numbers is not None or added.tensor < 0
            dtype = added.dtype if own else self.graph.tensors[added.tensor].dtype
            self._tensors[value] = Tensor(added.name, added.shape, dtype, kind)
        return self._tensors[value]

    def nbytes(self, value: int) -> int:
        """Bytes of a value."""
        return self.tensor(value).nbytes


def clocked(program: Program) -> Iterator[tuple[int, Step, int]]:
    """(tick, step, iteration) of every operator that runs, those of loops as often as they run."""
    tick = 0
    for step in program.steps:
        if step.loop is None:
            yield tick, step, 0
            tick += 1
            continue
        yield tick, Step("WHILE", (), step.loop.inputs[:1]), 0  # the counter gets its first value
        tick += 1
        for iteration in range(step.loop.iterations):
            for inner in (step.loop.condition, *step.loop.body):
                yield tick, inner, iteration
                tick += 1
        yield tick, step.loop.condition, step.loop.iterations
        tick += 1


def step_graph(program: Program, step: Step) -> Graph:
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


def step_op(program: Program, step: Step) -> Op:
    """A step as an operator, with the attributes that it has on its stripe."""
    attributes: dict[str, Attribute] = {}
    name, version = step.kind, 1
    if step.source >= 0:
        op = program.graph.ops[step.source]
        attributes, name, version = dict(op.attributes), op.name, op.version
    attributes |= dict(step.changes)
    first = len(program.graph.tensors)
    for position, value in enumerate(step.inputs):
        numbers = program.added[value - first].numbers if value >= first else None
        if numbers is not None:
            attributes[f"operand {position}"] = numbers
    return Op(name, step.kind, step.inputs, step.outputs, tuple(attributes.items()), version)


class Access(NamedTuple):
    """Bytes [lo, hi) of a group, read or written at a step through a value."""

    group: int
    lo: int
    hi: int
    step: int
    writes: bool
    value: int


def accesses(program: Program) -> Iterator[Access]:
    """Every real access in order: reads before writes in each step, none where a copy would be onto itself.

    The caller writes the inputs before step 0 (step -1) and reads the outputs behind the last one.
    """
    for t in program.graph.inputs:
        yield from _whole(program, t, -1, writes=True)
    tick = -1
    known: dict[int, list[Access]] = {}  # of steps that access the same bytes whenever they run
    for tick, step, iteration in clocked(program):
        if step.starts or step.kind == "WHILE":
            yield from _of_step(program, tick, step, iteration)
            continue
        if id(step) not in known:
            known[id(step)] = list(_of_step(program, tick, step, iteration))
        for group, lo, hi, _, writes, value in known[id(step)]:
            yield Access(group, lo, hi, tick, writes, value)
    for t in program.graph.outputs:
        yield from _whole(program, t, tick + 1, writes=False)


def _whole(program: Program, value: int, step: int, *, writes: bool) -> Iterator[Access]:
    home = program.homes.get(value)
    if home is not None:
        yield Access(home.group, home.delta, home.delta + program.nbytes(value), step, writes, value)


def _of_step(program: Program, number: int, step: Step, iteration: int) -> Iterator[Access]:
    if step.starts:
        yield from _from_place(program, number, step, iteration)
        return
    if step.kind in VIEWS and program.homes.get(step.inputs[0]) == program.homes.get(step.outputs[0]):
        return
    if step.kind == "CONCATENATION" and step.source < 0:
        yield from _joined(program, number, step)
    elif step.kind == "SLICE" and takes_rows(program, step):
        yield from _sliced(program, number, step)
    else:
        for value in step.reads:
            yield from _whole(program, value, number, writes=False)
        for value in step.outputs:
            yield from _whole(program, value, number, writes=True)


def takes_rows(program: Program, step: Step) -> bool:
    """Whether a SLICE that the rewrite adds takes a run of whole rows of a map."""
    if step.source >= 0 or program.tensor(step.inputs[0]).kind is Kind.CONSTANT:
        return False
    shape, part = program.shape(step.inputs[0]), program.shape(step.outputs[0])
    axis = next((i for i, n in enumerate(shape) if n != part[i]), 0)
    return prod(shape[:axis]) == 1 and shape[axis + 1 :] == part[axis + 1 :]


def block_runs(
    shape: Sequence[int], part: Sequence[int], begin: Sequence[int], width: int
) -> Iterator[tuple[int, int]]:
    """Bytes [lo, hi) of each contiguous run of a block of a tensor, whose elements have `width` bytes, in order.

    >>> list(block_runs((1, 4, 6, 2), (1, 2, 3, 2), (0, 1, 0, 0), 1))
    [(12, 18), (24, 30)]
    """
    axis = max((i for i, n in enumerate(shape) if n != part[i]), default=0)  # behind it the block is as wide as all
    inner = width * prod(shape[axis + 1 :])
    for place in product(*(range(b, b + n) for b, n in zip(begin[:axis], part[:axis], strict=True))):
        at = 0
        for i, extent in zip((*place, begin[axis]), shape, strict=False):
            at = at * extent + i
        yield at * inner, (at + part[axis]) * inner


def _from_place(program: Program, number: int, step: Step, iteration: int) -> Iterator[Access]:
    """A SLICE or DYNAMIC_UPDATE_SLICE of a block, with its begin vector.

    Only what a result depends on counts as read. Between the runs of that block other bytes are kept alive too, which
    keeps lives few.
    """
    updates = step.kind == "DYNAMIC_UPDATE_SLICE"
    vector, part = (step.inputs[2], step.inputs[1]) if updates else (step.inputs[1], step.outputs[0])
    group, start = program.homes[step.inputs[0]]
    shape, extents = program.shape(step.inputs[0]), program.shape(part)
    width = program.nbytes(part) // prod(extents)
    begin, extents = step.used[iteration] if step.used else (step.starts[iteration], extents)
    runs = list(block_runs(shape, extents, begin, width))
    yield from _whole(program, vector, number, writes=False)
    if updates:
        yield from _whole(program, part, number, writes=False)
        for lo, hi in runs:
            yield Access(group, start + lo, start + hi, number, True, step.outputs[0])
    else:
        yield Access(group, start + runs[0][0], start + runs[-1][1], number, False, step.inputs[0])
        yield from _whole(program, part, number, writes=True)


def _joined(program: Program, number: int, step: Step) -> Iterator[Access]:
    """Each part is copied to its place in the output, but for those that stand there already."""
    group, at = program.homes[step.outputs[0]]
    copied = []
    for value in step.inputs:
        size = program.nbytes(value)
        if program.homes[value] != (group, at):
            yield from _whole(program, value, number, writes=False)
            copied.append(Access(group, at, at + size, number, True, step.outputs[0]))
        at += size
    yield from copied


def _sliced(program: Program, number: int, step: Step) -> Iterator[Access]:
    """A run of rows of operand 0, copied unless it stands there already."""
    source, target = program.homes[step.inputs[0]], program.homes[step.outputs[0]]
    begin = program.added[step.inputs[1] - len(program.graph.tensors)].numbers or ()
    shape = program.shape(step.inputs[0])
    axis = next((i for i, b in enumerate(begin) if b), 0)
    size = program.nbytes(step.outputs[0])
    from_row = begin[axis] * (program.nbytes(step.inputs[0]) // prod(shape[: axis + 1]))
    start = source.delta + from_row
    if target != (source.group, start):
        yield Access(source.group, start, start + size, number, False, step.inputs[0])
        yield Access(target.group, target.delta, target.delta + size, number, True, step.outputs[0])


class Segment(NamedTuple):
    """Bytes [lo, hi) of a group that hold a value from step `start` to before step `end`."""

    group: int
    lo: int
    hi: int
    start: int
    end: int


def segments(found: Sequence[Access]) -> list[Segment]:
    """The lives of all bytes, runs with the same life as one segment. Steps count from -1: the caller's writing.

    A byte lives from a write until its last read before the next one, or for its writer's step alone.
    """
    by_group: dict[int, list[Access]] = {}
    for access in found:
        by_group.setdefault(access.group, []).append(access)
    return [segment for group in sorted(by_group) for segment in _lives(group, by_group[group])]


def _lives(group: int, found: Sequence[Access]) -> Iterator[Segment]:
    cuts = sorted({at for access in found for at in (access.lo, access.hi)})
    index = {at: i for i, at in enumerate(cuts)}
    lives: list[list[tuple[int, int]]] = [[] for _ in cuts[1:]]
    for access in found:
        for i in range(index[access.lo], index[access.hi]):
            if access.writes:
                lives[i].append((access.step, access.step + 1))
            else:
                start = lives[i][-1][0] if lives[i] else -1
                lives[i][-1:] = [(start, access.step + 1)]
    run = 0
    for i, life in enumerate(lives):
        if i + 1 == len(lives) or lives[i + 1] != life:
            for start, end in life:
                yield Segment(group, cuts[run], cuts[i + 1], start, end)
            run = i + 1

"""The memory of a program of stripes on TFLM: its packing problem, and what kernels may write over while they read."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property, partial
from math import prod
from typing import NamedTuple

import numpy as np

from modelplan.model import Graph, IntArray, Kind, Problem, Runtime
from modelplan.planning.aliasing.legality import unlike
from modelplan.planning.aliasing.overlapping import kernel_overlaps
from modelplan.planning.aliasing.rules import overwrites
from modelplan.primitives import _core
from modelplan.rewriting.striped_tflite.steps import (
    GroupOffset,
    TfliteProgram,
    TfliteStep,
    accesses,
    count_executed,
    executed_steps,
    first_byte,
    is_followed,
    placed_steps,
    step_accesses,
    step_graph,
    step_op,
)
from modelplan.rewriting.stripes.group_packing import (
    AllowedOverlap,
    GroupPacking,
    LiveBytes,
    as_problem,
    byte_lives,
    group_problem,
)


class KernelOverlap(NamedTuple):
    """The output may start `lead` bytes before the operand at this position or more; where it is `exact` just there."""

    position: int
    lead: int
    exact: bool


KernelOverlaps = Callable[[TfliteProgram, TfliteStep], Iterable[KernelOverlap]]
#: (tick, bytes) of the working buffers of a program.
ScratchOf = Callable[[TfliteProgram], Sequence[tuple[int, int]]]
#: Before the first step of any program.
_EVER = -(2**40)


class PackingRows:
    """What the steps of a program bring to a packing problem: rows of numbers, made when they are first asked for.

    Ticks count from the first step. `scratch` answers (tick, bytes) of the working buffers of a program.
    """

    def __init__(self, program: TfliteProgram, overlaps: KernelOverlaps, scratch: ScratchOf) -> None:
        self._program, self._overlaps, self._scratch = program, overlaps, scratch
        self.ticks = count_executed(program)

    @cached_property
    def accesses(self) -> IntArray:
        """Rows as `MemoryAccess`, without the value."""
        return _rows((access[:5] for access in step_accesses(self._program, telling=True)), 5)

    @cached_property
    def overlaps(self) -> IntArray:
        """Rows as `AllowedOverlap`."""
        return _rows(allowed_overlaps(self._program, self._overlaps), 5)

    @cached_property
    def scratch(self) -> IntArray:
        """Rows of ticks and bytes of working buffers."""
        return _rows(self._scratch(self._program), 2)

    @cached_property
    def tensors(self) -> dict[int, tuple[int, int]]:
        """The first and the last step of each tensor of the graph that lies in memory."""
        count = len(self._program.graph.tensors)
        return {t: life for t, life in self._lives.items() if t < count}

    @cached_property
    def values(self) -> IntArray:
        """Every other value as a whole, as `LiveBytes`, from its first to its last step.

        Those in loops live as long as the loop. The variables with which loops begin live from the start.
        """
        count = len(self._program.graph.tensors)
        rows = list[LiveBytes]()
        for value, (first, last) in self._lives.items():
            if value >= count:
                start = _EVER if self._program.added[value - count].variable else first
                group, lo = self._program.group_offsets[value]
                rows.append(LiveBytes(group, lo, lo + self._program.nbytes(value), start, last + 1))
        return _rows(rows, 5)

    @cached_property
    def _lives(self) -> dict[int, tuple[int, int]]:
        lives, tick = dict[int, tuple[int, int]](), 0
        for step in self._program.steps:
            inner = (step, step.loop.condition, *step.loop.body) if step.loop else (step,)
            last = tick + (step.loop.iterations * (len(step.loop.body) + 1) + 1 if step.loop else 0)
            for value in {t for tflite_step in inner for t in (*tflite_step.inputs, *tflite_step.outputs)}:
                if value in self._program.group_offsets:
                    lives[value] = lives.get(value, (tick, 0))[0], last
            tick = last + 1
        return lives


class PlacedRows(NamedTuple):
    """Rows in a longer program: the tick of their first step there, and by their groups those of the program."""

    rows: PackingRows
    tick: int
    groups: IntArray


class PartedProgram(NamedTuple):
    """A program as the rows of its parts, with the places of tensors of the graph and the number of groups."""

    graph: Graph
    places: Mapping[int, GroupOffset]
    groups: int
    parts: Sequence[PlacedRows]

    def problem(self, alignment: int, worth: Callable[[int], bool] = lambda _: True) -> _core.GroupProblem:
        """The packing problem.

        Where the bytes that are alive at once are not `worth` it, what `group_problem` leaves out is left out.
        """
        allowed = partial(self._joined, lambda rows: rows.overlaps, 5, groups=2, ticks=(2, 3))
        scratch = self._joined(lambda rows: rows.scratch, 2, groups=0, ticks=(0, 1))
        lives = byte_lives(self._accesses())
        return group_problem(lives, self.groups, alignment, allowed, scratch, self._whole_values, worth)

    @property
    def ticks(self) -> int:
        """How many operators run."""
        return sum(part.rows.ticks for part in self.parts)

    def _joined(
        self, rows: Callable[[PackingRows], IntArray], width: int, groups: int, ticks: tuple[int, int]
    ) -> IntArray:
        """Rows of all parts whose first columns are `groups` and some others ticks, with those of the program."""
        parts = [(rows(part.rows), part.groups, part.tick) for part in self.parts]
        return _core.joined_rows(parts, groups, *ticks).reshape(-1, width)

    def _accesses(self) -> IntArray:
        inside = self._joined(lambda rows: rows.accesses, 5, groups=1, ticks=(3, 4))
        return np.concatenate([self._callers(-1, writes=True), inside, self._callers(self.ticks, writes=False)])

    def _callers(self, tick: int, *, writes: bool) -> IntArray:
        """The accesses of the caller, who writes the inputs or reads the outputs."""
        tensors = (t for t in (self.graph.inputs if writes else self.graph.outputs) if t in self.places)
        whole = ((*self.places[t], self.graph.tensors[t].nbytes) for t in tensors)
        return _rows([(group, lo, lo + size, tick, writes) for group, lo, size in whole], 5)

    def _whole_values(self) -> IntArray:
        """Every value as a whole; inputs live from the start, outputs to the end."""
        lives = {t: (-1, -1) for t in self.graph.inputs if t in self.places}
        for part in self.parts:
            for t, (first, last) in part.rows.tensors.items():
                lives[t] = lives.get(t, (part.tick + first, 0))[0], part.tick + last
        lives |= {t: (lives[t][0], self.ticks) for t in self.graph.outputs if t in lives}
        tensors = ((*self.places[t], self.graph.tensors[t].nbytes, *life) for t, life in lives.items())
        whole = [(group, lo, lo + size, first, last + 1) for group, lo, size, first, last in tensors]
        return np.concatenate([_rows(whole, 5), self._joined(lambda rows: rows.values, 5, groups=1, ticks=(3, 5))])


def _rows(rows: Iterable[Sequence[int]], width: int) -> IntArray:
    return np.array(list(rows), dtype=np.int64).reshape(-1, width)


def whole_program(program: TfliteProgram, overlaps: KernelOverlaps, scratch: ScratchOf) -> PartedProgram:
    """A program as one part."""
    part = PlacedRows(PackingRows(program, overlaps, scratch), 0, np.arange(program.groups))
    return PartedProgram(program.graph, program.group_offsets, program.groups, (part,))


def problem_of(
    program: TfliteProgram, overlaps: KernelOverlaps, alignment: int, scratch: Sequence[tuple[int, int]] = ()
) -> Problem:
    """The packing problem of a program whose kernels allow `overlaps`; `scratch` as in `group_problem`."""
    return as_problem(whole_program(program, overlaps, lambda _: scratch).problem(alignment))


def no_overlaps(program: TfliteProgram, step: TfliteStep) -> Iterable[KernelOverlap]:  # noqa: ARG001
    """The overlaps of unknown kernels: none."""
    return ()


def proved_overlaps(runtime: Runtime) -> KernelOverlaps:
    """The overlaps of outputs and operands that a runtime's kernels are proved to allow.

    Steps of the same kind, attributes and shapes are looked up once.
    """
    known: dict[object, tuple[KernelOverlap, ...]] = {}
    if not runtime.library.sequential:
        return no_overlaps

    def found_overlaps(program: TfliteProgram, step: TfliteStep) -> tuple[KernelOverlap, ...]:
        op = program.graph.ops[step.source] if step.source >= 0 else step_op(program, step)
        key = step.kind, op.attributes, step.changes, step.starts, _operands_of(program, step)
        if key not in known:
            if step.kind == "GATHER" and step.source < 0:  # no row comes before its place
                known[key] = (KernelOverlap(0, 0, exact=True),)
            elif step.kind == "SLICE" and is_followed(program, step):
                known[key] = tuple(_of_rows(program, step))
            else:
                known[key] = tuple(_known_overlaps(step_graph(program, step), runtime))
        return known[key]

    return found_overlaps


def _operands_of(program: TfliteProgram, step: TfliteStep) -> tuple[object, ...]:
    """What kernels see of the values of a step, but for what these hold."""
    tensors, count = program.graph.tensors, len(program.graph.tensors)
    return tuple((program.shape(t), program.dtype(t), program.kind(t), t < count and tensors[t].compressed)
                 if t >= 0 else None for t in (*step.inputs, *step.outputs))  # fmt: skip


def _of_rows(program: TfliteProgram, step: TfliteStep) -> Iterator[KernelOverlap]:
    """The lead of a copy of a block, which the kernel copies front to back in runs of the last axis or less.

    Byte j of the output is read `begin` + j bytes into the operand or further on, so the output may start up to `begin`
    bytes behind the operand's start, less one run.
    """
    operand = program.tensor(step.inputs[0])
    if operand.kind is Kind.CONSTANT or not operand.shape:
        return
    numbers = program.numbers(step.inputs[1]) or (0,) * len(operand.shape)
    width = operand.nbytes // prod(operand.shape)
    first = min(first_byte(operand.shape, at, width) for at in step.starts or (numbers,))
    yield KernelOverlap(0, operand.nbytes // prod(operand.shape[:-1]) - first, exact=False)


def _known_overlaps(graph: Graph, runtime: Runtime) -> Iterator[KernelOverlap]:
    for operand, overlap in kernel_overlaps(graph, 0, "safe", runtime):
        yield KernelOverlap(operand, overlap.lead, exact=False)
    op = graph.ops[0]
    for operand, _ in overwrites(graph, 0, "safe", runtime):
        if not unlike(graph, op.inputs[operand], op.outputs[0]):  # an operand that is broadcast is read again
            yield KernelOverlap(operand, 0, exact=True)


def allowed_overlaps(program: TfliteProgram, overlaps: KernelOverlaps) -> Iterator[AllowedOverlap]:
    """What each step of the program lets its output write over."""
    known: dict[int, list[AllowedOverlap]] = {}  # by step: a loop runs the same one again and again
    for number, step in placed_steps(program):
        if id(step) not in known:
            known[id(step)] = list(_step_overlaps(program, step, overlaps)) if step.kind != "WHILE" else []
        for over, by, _, bound, exact in known[id(step)]:
            yield AllowedOverlap(over, by, number, bound, exact)


def _step_overlaps(program: TfliteProgram, step: TfliteStep, overlaps: KernelOverlaps) -> Iterator[AllowedOverlap]:
    """The overlaps that a step allows in every run."""
    output = program.group_offsets.get(step.outputs[0]) if len(step.outputs) == 1 else None
    if output is None or (step.source < 0 and _moves_nothing(program, step)):
        return
    for position, lead, exact in overlaps(program, step):
        operand = program.group_offsets.get(step.inputs[position])
        if operand and operand.group != output.group and reads_group_once(program, step, position):
            yield AllowedOverlap(operand.group, output.group, 0, operand.delta - output.delta - lead, exact)


def _moves_nothing(program: TfliteProgram, step: TfliteStep) -> bool:
    """Whether a slice or a concatenation is in place and copies nothing."""
    groups = {program.group_offsets[t].group for t in (*step.reads, *step.outputs) if t in program.group_offsets}
    return len(groups) == 1


def reads_group_once(program: TfliteProgram, step: TfliteStep, position: int) -> bool:
    """Whether the step reads the group of an operand through that operand only."""
    group = program.group_offsets[step.inputs[position]].group
    return all(
        i == position or t not in program.group_offsets or program.group_offsets[t].group != group
        for i, t in enumerate(step.inputs)
    )


def value_addresses(program: TfliteProgram, packing: GroupPacking) -> dict[int, int]:
    """The address of every value that needs memory."""
    return {value: packing.bases[place.group] + place.delta for value, place in program.group_offsets.items()}


def scratch_of(program: TfliteProgram, runtime: Runtime, known: dict[object, tuple[int, ...]]) -> list[tuple[int, int]]:
    """(tick, bytes) of every working buffer that the kernels of a runtime ask for; `known` remembers the kernels."""
    buffers: list[tuple[int, int]] = []
    if runtime.scratch is None:
        return buffers
    sizes: dict[int, tuple[int, ...]] = {}  # by step: a loop runs the same one again and again
    for tick, step in placed_steps(program):
        if id(step) not in sizes:
            sizes[id(step)] = _scratch_of_step(program, step, runtime, known) if step.kind != "WHILE" else ()
        buffers += [(tick, size) for size in sizes[id(step)]]
    return buffers


def _scratch_of_step(
    program: TfliteProgram, step: TfliteStep, runtime: Runtime, known: dict[object, tuple[int, ...]]
) -> tuple[int, ...]:
    """Bytes of the working buffers of a step, none of them empty."""
    attributes = program.graph.ops[step.source].attributes if step.source >= 0 else ()
    key = step.kind, attributes, step.changes, _operands_of(program, step)
    if key not in known:
        graph = step_graph(program, step)
        sizes = runtime.scratch(graph, graph.ops[0], runtime.kernels) if runtime.scratch else ()
        known[key] = tuple(-(-size // runtime.alignment) * runtime.alignment for size in sizes if size)
    return known[key]


def is_aligned(program: TfliteProgram, runtime: Runtime) -> bool:
    """Whether the maps of kernels that need it lie at multiples of the runtime's alignment in their groups."""
    steps = (s for step in program.steps for s in (step.loop.body if step.loop else (step,)))
    kinds = runtime.library.aligned
    maps = {t for s in steps if s.kind in kinds for t in (*s.reads, *s.outputs)}
    return not any(program.group_offsets[t].delta % runtime.alignment for t in maps & program.group_offsets.keys())


def moves_front_to_back(program: TfliteProgram, overlaps: KernelOverlaps) -> bool:
    """Whether the kernels allow every move of carried rows to the front of their window, over rows that it moves."""
    bodies = (step.loop.body for step in program.steps if step.loop)
    moves = (s for body in bodies for s in body if s.kind == "SLICE" and s.source < 0 and not s.starts)
    for move in moves:
        where, begin = program.group_offsets.get(move.inputs[0]), program.numbers(move.inputs[1])
        if begin is None or where != program.group_offsets[move.outputs[0]]:
            continue
        width = program.nbytes(move.inputs[0]) // prod(program.shape(move.inputs[0]))
        apart = first_byte(program.shape(move.inputs[0]), begin, width)
        if apart < program.nbytes(move.outputs[0]) and not list(overlaps(program, move)):
            return False
    return True


def copied_bytes(program: TfliteProgram) -> int:
    """Bytes that the operators which the rewrite adds copy in one run; slices and joins in place copy none."""
    moving = {tick for tick, step, _ in executed_steps(program) if step.source < 0}
    return sum(access.hi - access.lo for access in accesses(program) if access.writes and access.step in moving)

"""Where the groups of a program stand: packing of rigid groups, with what kernels may write over while they read.

A group keeps the distances between its values, but its bytes live and die one row at a time: the rows of a map that has
been read make room for the rows of the next one. The packing is a `Problem` with groups, placed and refereed like any
other; `replay_steps` proves besides that the lives are those of the steps.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from math import prod
from typing import NamedTuple

import numpy as np

from modelplan.model import Budget, Graph, IntArray, Kind, Problem, Runtime, bounds
from modelplan.planning.aliasing.overlapping import kernel_overlaps
from modelplan.planning.aliasing.rules import overwrites
from modelplan.planning.allocators import place
from modelplan.primitives.errors import BrokenPlanError
from modelplan.rewriting.stripes.program import (
    VIEWS,
    Access,
    Program,
    Segment,
    Step,
    accesses,
    block_runs,
    clocked,
    segments,
    step_graph,
    step_op,
    takes_rows,
)

#: (operand, bytes, exact): the output may start so many bytes before the operand or more; `exact`: just there.
Lead = tuple[int, int, bool]
Leads = Callable[[Program, Step], Iterable[Lead]]


class Stand(NamedTuple):
    """In `step`, group `by` may be written over group `over` while that is read.

    base(by) - base(over) must be at most `bound`, or equal to it where it is exact.
    """

    over: int
    by: int
    step: int
    bound: int
    exact: bool


@dataclass(frozen=True)
class Packing:
    """A base for each group, the height in bytes, and what no packing of the same groups goes below."""

    bases: tuple[int, ...]
    height: int
    load: int


def problem_of(program: Program, leads: Leads, alignment: int, scratch: Sequence[tuple[int, int]] = ()) -> Problem:
    """The packing problem of a program whose kernels stand `leads`: a buffer for each run of bytes with one life.

    `scratch` are working buffers of kernels, (step, bytes); each is a group behind those of the program, and apart from
    all that the runtime takes for alive, which places it by itself and knows of whole values only. The first buffers
    are empty, one at the base of each group, with its alignment. A step of the program is the next of the
    problem, since the caller writes the inputs at step 0.
    """
    found = segments(list(accesses(program)))
    for i, (step, size) in enumerate(scratch):
        found.append(Segment(program.groups + i, 0, size, step, step + 1))
    groups = program.groups + len(scratch)
    apart = list(_apart_from_scratch(program, found, groups, scratch))
    rows = np.array([(g, 0, 0, -1, 0) for g in range(groups)] + [tuple(s) for s in found], dtype=np.int64)
    group, lo, hi, start, end = rows.reshape(-1, 5).T
    aligned = np.ones(len(rows), dtype=np.int64)
    aligned[:groups] = alignment
    names = [f"group {g}" for g in range(groups)]
    return Problem(
        tuple(names[g] for g in group.tolist()),
        hi - lo,
        start + 1,
        end + 1,
        aligned,
        conflicts=np.array(apart, dtype=np.int64).reshape(-1, 2),
        groups=np.column_stack((np.arange(len(rows)), group, lo)),
        meetings=np.array(list(_meetings(found, groups, stands(program, leads))), dtype=np.int64).reshape(-1, 4),
    )


def _apart_from_scratch(
    program: Program, found: Sequence[Segment], groups: int, scratch: Sequence[tuple[int, int]]
) -> Iterator[tuple[int, int]]:
    """Pairs of a working buffer and a run of dead bytes of a value that has been made and will be read."""
    if not scratch:
        return
    lives = _value_lives(program)
    runs: dict[int, list[int]] = {}
    for number, s in enumerate(found):
        runs.setdefault(s.group, []).append(number)
    for i, (step, _) in enumerate(scratch):
        own = groups + len(found) - len(scratch) + i
        pairs = set()
        for value, (start, end) in lives.items():
            group, lo = program.homes[value]
            if not start <= step <= end:
                continue
            hi = lo + program.nbytes(value)
            pairs |= {
                groups + number
                for number in runs.get(group, ())
                if found[number].lo < hi and lo < found[number].hi
                if not found[number].start <= step < found[number].end
            }
        yield from ((own, other) for other in sorted(pairs))


def _value_lives(program: Program) -> dict[int, tuple[int, int]]:
    """The first and the last step of every value as a whole; those in loops live as long as the loop."""
    lives: dict[int, tuple[int, int]] = {t: (-1, -1) for t in program.graph.inputs if t in program.homes}
    tick = 0
    for step in program.steps:
        inner = (step, step.loop.condition, *step.loop.body) if step.loop else (step,)
        last = tick + (step.loop.iterations * (len(step.loop.body) + 1) + 1 if step.loop else 0)
        for value in {t for one in inner for t in (*one.inputs, *one.outputs)}:
            if value in program.homes:
                lives[value] = min(lives.get(value, (tick, 0))[0], tick), last
        tick = last + 1
    return lives | {t: (lives[t][0], tick) for t in program.graph.outputs if t in lives}


def _meetings(found: Sequence[Segment], groups: int, granted: Iterable[Stand]) -> Iterator[tuple[int, int, int, int]]:
    """Runs that may share bytes in the step in which one is read for the last time and the other is written.

    Those of one group are values that a step changes in place, those of two groups are what the kernels stand.
    """
    born: dict[tuple[int, int], list[int]] = {}
    dying: dict[tuple[int, int], list[int]] = {}
    for number, s in enumerate(found):
        born.setdefault((s.group, s.start), []).append(number)
        if s.end - s.start > 1:
            dying.setdefault((s.group, s.end - 1), []).append(number)
    for (group, step), new_runs in born.items():
        for new, old in product(new_runs, dying.get((group, step), ())):
            a, b = found[new], found[old]
            if max(a.lo, b.lo) < min(a.hi, b.hi):
                yield groups + new, groups + old, a.lo - b.lo, a.lo - b.lo
    for stand in granted:
        for new, old in product(born.get((stand.by, stand.step), ()), dying.get((stand.over, stand.step), ())):
            a, b = found[new], found[old]
            most = stand.bound + a.lo - b.lo
            if a.lo - a.hi < most:
                yield groups + new, groups + old, most if stand.exact else a.lo - a.hi, most


def pack(problem: Problem, tries: int = 2000, seed: int = 0, enough: int | None = None) -> Packing:
    """The lowest packing found in so many tries; `enough` is a height that ends the search.

    Raises:
        KeyboardInterrupt: Ctrl-C during the search.
    """
    found = place(problem, "modelplan", Budget(steps=tries, seed=seed, enough=enough))
    if found.ended == "cancelled":
        raise KeyboardInterrupt
    groups = int(problem.groups[:, 1].max(initial=-1)) + 1
    return Packing(tuple(found.offsets[:groups].tolist()), bounds.height(problem, found), found.lower_bound)


def no_leads(program: Program, step: Step) -> Iterable[Lead]:  # noqa: ARG001
    """Kernels of which nothing is known: no output over an operand."""
    return ()


def kernel_leads(runtime: Runtime) -> Leads:
    """What the kernels of a runtime were proved to stand: outputs ahead of or in place of an operand.

    Steps of the same kind, attributes and shapes are looked up once.
    """
    known: dict[object, tuple[Lead, ...]] = {}

    def leads(program: Program, step: Step) -> tuple[Lead, ...]:
        operands = tuple((tensor.shape, tensor.dtype, tensor.kind) if t >= 0 else None
                         for t in (*step.inputs, *step.outputs) for tensor in [program.tensor(t)])  # fmt: skip
        op = program.graph.ops[step.source] if step.source >= 0 else step_op(program, step)
        key = step.kind, op.attributes, step.changes, step.starts, operands
        if key not in known:
            found = _known_leads(step_graph(program, step), runtime)
            rows = step.kind == "SLICE" and _is_followed(program, step)
            known[key] = tuple(_of_rows(program, step) if rows else found)
        if not runtime.library.sequential:
            return ()
        return known[key]

    return leads


def _of_rows(program: Program, step: Step) -> Iterator[Lead]:
    """The lead of a copy of a block, which the kernel copies front to back in runs of the last axis or less.

    Byte j of the output is read `begin` + j bytes into the operand or further on, so the output may start up to `begin`
    bytes behind the operand's start, less one run.
    """
    operand = program.tensor(step.inputs[0])
    if operand.kind is Kind.CONSTANT or not operand.shape:
        return
    part = program.tensor(step.outputs[0])
    numbers = program.added[step.inputs[1] - len(program.graph.tensors)].numbers or (0,) * len(operand.shape)
    width = operand.nbytes // prod(operand.shape)
    first = min(next(block_runs(operand.shape, part.shape, at, width))[0] for at in step.starts or (numbers,))
    yield 0, operand.nbytes // prod(operand.shape[:-1]) - first, False


def _known_leads(graph: Graph, runtime: Runtime) -> Iterator[Lead]:
    for operand, overlap in kernel_overlaps(graph, 0, "safe", runtime):
        yield operand, overlap.lead, False
    for operand, _ in overwrites(graph, 0, "safe", runtime):
        yield operand, 0, True


def stands(program: Program, leads: Leads) -> Iterator[Stand]:
    """What each step of the program lets its output write over."""
    known: dict[int, list[tuple[int, int, int, bool]]] = {}  # by step: a loop runs the same one again and again
    for number, step, _ in clocked(program):
        if id(step) not in known:
            known[id(step)] = list(_step_stands(program, step, leads)) if step.kind != "WHILE" else []
        for over, by, bound, exact in known[id(step)]:
            yield Stand(over, by, number, bound, exact)


def _step_stands(program: Program, step: Step, leads: Leads) -> Iterator[tuple[int, int, int, bool]]:
    """Operand's group, output's group, bound, whether it is exact: for one step, whenever it runs."""
    output = program.homes.get(step.outputs[0]) if len(step.outputs) == 1 else None
    if output is None or (step.source < 0 and _moves_nothing(program, step)):
        return
    for position, lead, exact in leads(program, step):
        operand = program.homes.get(step.inputs[position])
        if operand and operand.group != output.group and _alone(program, step, position):
            yield operand.group, output.group, operand.delta - output.delta - lead, exact


def _moves_nothing(program: Program, step: Step) -> bool:
    """Whether a slice or a join leaves all bytes where they are."""
    groups = {program.homes[t].group for t in (*step.reads, *step.outputs) if t in program.homes}
    return len(groups) == 1


def _alone(program: Program, step: Step, position: int) -> bool:
    """Whether the step reads the group of an operand through that operand only."""
    group = program.homes[step.inputs[position]].group
    return all(
        i == position or t not in program.homes or program.homes[t].group != group for i, t in enumerate(step.inputs)
    )


def value_addresses(program: Program, packing: Packing) -> dict[int, int]:
    """The address of every value that needs memory."""
    return {value: packing.bases[home.group] + home.delta for value, home in program.homes.items()}


def replay_steps(program: Program, packing: Packing, leads: Leads) -> None:
    """Returns only if every byte that is read is the one that was put there for its reader, and nothing runs ahead.

    A second opinion on lives and stands: it runs the steps over a memory in which each byte knows who made it.

    Raises:
        BrokenPlanError: names the step and the bytes.
    """
    machine = _Machine(program, packing)
    by_tick: dict[int, list[Access]] = {}
    for access in accesses(program):
        by_tick.setdefault(access.step, []).append(access)
    steps = {tick: (step, iteration) for tick, step, iteration in clocked(program)}
    place = value_addresses(program, packing)
    for tick in sorted({*by_tick, *steps}):
        step, iteration = steps.get(tick, (None, 0))
        machine.perform(by_tick.get(tick, []), step, iteration)
        if step is not None:
            _check_overlap(program, packing, step, place, by_tick.get(tick, []), leads)


class _Machine:
    """The memory, and for each value the marks of the bytes that it is made of."""

    def __init__(self, program: Program, packing: Packing) -> None:
        self.program, self.packing = program, packing
        self.memory = np.full(packing.height + 1, -2, dtype=np.int64)
        self.content: dict[int, IntArray] = {}
        self.marks = 0
        loops = [step.loop for step in program.steps if step.loop is not None]
        self.follows = {out: into for loop in loops for out, into in zip(loop.outputs, loop.inputs, strict=True)}
        for t in program.graph.inputs:
            self._fresh(t)

    def perform(self, mine: Sequence[Access], step: Step | None, iteration: int) -> None:
        """One step: what it reads must be what its operands are made of; then it writes."""
        for access in (a for a in mine if not a.writes):
            self._read(access, step)
        if step is not None:
            for value in step.outputs:
                self._make(step, value, iteration)
        for access in (a for a in mine if a.writes):
            lo, hi = self._place(access)
            self.memory[lo:hi] = self._marks(access)
        if step is not None:
            for value in step.outputs:
                if value in self.follows:
                    self.content[self.follows[value]] = self.content[value]

    def _place(self, access: Access) -> tuple[int, int]:
        start = self.packing.bases[access.group]
        lo, hi = start + access.lo, start + access.hi
        if lo < 0 or hi > self.packing.height:
            raise BrokenPlanError(f"step {access.step}: bytes {lo}-{hi - 1} of {self.packing.height}")
        return lo, hi

    def _marks(self, access: Access) -> IntArray:
        delta = self.program.homes[access.value].delta
        return self.content[access.value][access.lo - delta : access.hi - delta]

    def _read(self, access: Access, step: Step | None) -> None:
        lo, hi = self._place(access)
        name, reader = self.program.tensor(access.value).name, step.kind if step else "the caller"
        if access.value not in self.content:
            raise BrokenPlanError(f"step {access.step} {reader} reads {name!r} before anything writes it")
        different = np.flatnonzero(self.memory[lo:hi] != self._marks(access))
        if len(different):
            raise BrokenPlanError(
                f"step {access.step} {reader} reads byte {int(different[0])} of {name!r}, which was overwritten"
            )

    def _fresh(self, value: int) -> None:
        size = self.program.nbytes(value)
        self.content[value] = np.arange(self.marks, self.marks + size, dtype=np.int64)
        self.marks += size

    def _make(self, step: Step, value: int, iteration: int) -> None:
        """What a value is made of: the bytes of operands where the step only moves them, else new ones."""
        added = step.source < 0
        if step.kind in VIEWS and step.inputs[0] in self.content:
            self.content[value] = self.content[step.inputs[0]]
        elif added and step.kind == "CONCATENATION":
            self.content[value] = np.concatenate([self.content[t] for t in step.inputs])
        elif added and step.kind == "SLICE" and _is_followed(self.program, step) and step.inputs[0] in self.content:
            whole = self.content[step.inputs[0]]
            runs = self._runs(step, step.outputs[0], iteration)
            self.content[value] = np.concatenate([whole[lo:hi] for lo, hi in runs])
        elif step.kind == "DYNAMIC_UPDATE_SLICE" and added:
            old = self.content.get(step.inputs[0], np.full(self.program.nbytes(value), -3, dtype=np.int64)).copy()
            new, at = self.content[step.inputs[1]], 0
            for lo, hi in self._runs(step, step.inputs[1], iteration):
                old[lo:hi] = new[at : at + hi - lo]
                at += hi - lo
            self.content[value] = old
        else:
            self._fresh(value)

    def _runs(self, step: Step, part: int, iteration: int) -> Iterator[tuple[int, int]]:
        """The bytes of operand 0 that are those of `part`."""
        shape, extents = self.program.shape(step.inputs[0]), self.program.shape(part)
        begin = self.program.added[step.inputs[1] - len(self.program.graph.tensors)].numbers or (0,) * len(shape)
        place = step.starts[iteration] if step.starts else begin
        return block_runs(shape, extents, place, self.program.nbytes(part) // prod(extents))


def _is_followed(program: Program, step: Step) -> bool:
    """Whether a SLICE that the rewrite adds takes rows of a map, or a block in a loop."""
    return bool(step.starts) or takes_rows(program, step)


def _check_overlap(
    program: Program, packing: Packing, step: Step, place: dict[int, int], mine: Sequence[Access], leads: Leads
) -> None:
    """What a step writes does not meet what it reads, but where its kernel stands it."""
    for written in (a for a in mine if a.writes):
        for read in (a for a in mine if not a.writes):
            w, r = packing.bases[written.group], packing.bases[read.group]
            if max(w + written.lo, r + read.lo) >= min(w + written.hi, r + read.hi):
                continue
            distance = place[step.outputs[0]] - place[read.value]
            granted = [
                lead for lead in leads(program, step)
                if step.inputs[lead[0]] == read.value and (distance == 0 if lead[2] else distance <= -lead[1])
            ]  # fmt: skip
            if step.kind == "SLICE" and read.value == step.inputs[1] and distance == 0:
                continue  # the kernel takes the begin vector over before it writes
            if not granted or not _sole(program, step, read.value):
                name = program.tensor(read.value).name
                raise BrokenPlanError(f"step {written.step} {step.kind} writes over {name!r} while it reads it")


def _sole(program: Program, step: Step, value: int) -> bool:
    return all(_alone(program, step, i) for i, t in enumerate(step.inputs) if t == value)


def scratch_of(program: Program, runtime: Runtime, known: dict[object, tuple[int, ...]]) -> list[tuple[int, int]]:
    """(tick, bytes) of every working buffer that the kernels of a runtime ask for; `known` remembers the kernels."""
    found: list[tuple[int, int]] = []
    if runtime.scratch is None:
        return found
    for tick, step, _ in clocked(program):
        key = step.source, step.kind, step.changes, tuple(program.shape(t) if t >= 0 else () for t in step.inputs)
        if key not in known:
            known[key] = _kernel_scratch(program, step, runtime)
        found += [(tick, -(-size // runtime.alignment) * runtime.alignment) for size in known[key] if size]
    return found


def _kernel_scratch(program: Program, step: Step, runtime: Runtime) -> tuple[int, ...]:
    if runtime.scratch is None or step.kind == "WHILE":
        return ()
    graph = step_graph(program, step)
    return runtime.scratch(graph, graph.ops[0], runtime.kernels)


def copied_bytes(program: Program) -> int:
    """Bytes that the operators which the rewrite adds copy in one run; slices and joins in place copy none."""
    moving = {tick for tick, step, _ in clocked(program) if step.source < 0}
    return sum(access.hi - access.lo for access in accesses(program) if access.writes and access.step in moving)

"""The replay of a packed program over a memory in which each byte knows who made it: a second opinion on its lives."""

from collections.abc import Iterator, Sequence
from math import prod

import numpy as np

from modelplan.model import IntArray
from modelplan.ops.op_facts import TFLITE_RESHAPES
from modelplan.primitives.errors import BrokenPlanError
from modelplan.rewriting.striped_tflite.placing import KernelOverlaps, reads_group_once, value_addresses
from modelplan.rewriting.striped_tflite.steps import (
    TfliteProgram,
    TfliteStep,
    accesses,
    executed_steps,
    is_followed,
    joins_in_place,
)
from modelplan.rewriting.stripes.group_packing import GroupPacking, MemoryAccess


def replay_steps(program: TfliteProgram, packing: GroupPacking, overlaps: KernelOverlaps) -> None:
    """Returns only if every byte that is read is the one that was put there for its reader, and nothing runs ahead.

    A second opinion on lives and stands: it runs the steps over a memory in which each byte knows who made it.

    Raises:
        BrokenPlanError: names the step and the bytes.
    """
    machine = _Machine(program, packing)
    by_tick: dict[int, list[MemoryAccess]] = {}
    for access in accesses(program):
        by_tick.setdefault(access.step, []).append(access)
    steps = {tick: (step, iteration) for tick, step, iteration in executed_steps(program)}
    place = value_addresses(program, packing)
    ticks = sorted({*by_tick, *steps})
    last = {value: tick for tick in ticks for value in _values_of(by_tick.get(tick, []), steps.get(tick, (None, 0))[0])}
    dying: dict[int, list[int]] = {}
    for value, tick in last.items():
        dying.setdefault(tick, []).append(value)
    for tick in ticks:
        step, iteration = steps.get(tick, (None, 0))
        machine.perform(by_tick.get(tick, []), step, iteration)
        for value in dying.get(tick, ()):
            machine.content.pop(value, None)
        if step is not None:
            _check_overlap(program, packing, step, place, by_tick.get(tick, []), overlaps)


def _values_of(mine: Sequence[MemoryAccess], step: TfliteStep | None) -> Iterator[int]:
    """The values that a step touches."""
    yield from (access.value for access in mine)
    if step is not None:
        yield from step.inputs
        yield from step.outputs


class _Machine:
    """A shadow memory, with the expected origin of each byte of each value."""

    def __init__(self, program: TfliteProgram, packing: GroupPacking) -> None:
        self.program, self.packing = program, packing
        self.memory = np.full(packing.height + 1, -2, dtype=np.int64)
        self.content: dict[int, IntArray] = {}
        self.marks = 0
        loops = [step.loop for step in program.steps if step.loop is not None]
        self.follows = {out: into for loop in loops for out, into in zip(loop.outputs, loop.inputs, strict=True)}
        for t in program.graph.inputs:
            self._fresh(t)

    def perform(self, mine: Sequence[MemoryAccess], step: TfliteStep | None, iteration: int) -> None:
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

    def _place(self, access: MemoryAccess) -> tuple[int, int]:
        start = self.packing.bases[access.group]
        lo, hi = start + access.lo, start + access.hi
        if lo < 0 or hi > self.packing.height:
            raise BrokenPlanError(f"step {access.step}: bytes {lo}-{hi - 1} of {self.packing.height}")
        return lo, hi

    def _marks(self, access: MemoryAccess) -> IntArray:
        delta = self.program.group_offsets[access.value].delta
        return self.content[access.value][access.lo - delta : access.hi - delta]

    def _read(self, access: MemoryAccess, step: TfliteStep | None) -> None:
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

    def _make(self, step: TfliteStep, value: int, iteration: int) -> None:
        """The origins of a value's bytes: those of operands where the step only copies, else new ones."""
        added = step.source < 0
        if step.kind in TFLITE_RESHAPES and step.inputs[0] in self.content:
            self.content[value] = self.content[step.inputs[0]]
        elif joins_in_place(self.program, step):
            self.content[value] = np.concatenate([self.content[t] for t in step.inputs])
        elif added and step.kind == "SLICE" and is_followed(self.program, step) and step.inputs[0] in self.content:
            self.content[value] = self._block(step, step.outputs[0], self.content[step.inputs[0]], iteration).ravel()
        elif step.kind == "DYNAMIC_UPDATE_SLICE" and added:
            old = self.content.get(step.inputs[0], np.full(self.program.nbytes(value), -3, dtype=np.int64)).copy()
            block = self._block(step, step.inputs[1], old, iteration)
            block[...] = self.content[step.inputs[1]].reshape(block.shape)
            self.content[value] = old
        else:
            self._fresh(value)

    def _block(self, step: TfliteStep, part: int, whole: IntArray, iteration: int) -> IntArray:
        """A view of those bytes of operand 0, `whole`, that are those of `part`."""
        shape, extents = self.program.shape(step.inputs[0]), self.program.shape(part)
        begin = self.program.numbers(step.inputs[1]) or (0,) * len(shape)
        place = step.starts[iteration] if step.starts else begin
        width = self.program.nbytes(part) // prod(extents)
        return whole.reshape(*shape, width)[tuple(slice(b, b + n) for b, n in zip(place, extents, strict=True))]


def _check_overlap(
    program: TfliteProgram,
    packing: GroupPacking,
    step: TfliteStep,
    place: dict[int, int],
    mine: Sequence[MemoryAccess],
    overlaps: KernelOverlaps,
) -> None:
    """What a step writes does not meet what it reads, but where its kernel allows it."""
    for written in (a for a in mine if a.writes):
        for read in (a for a in mine if not a.writes):
            w, r = packing.bases[written.group], packing.bases[read.group]
            if max(w + written.lo, r + read.lo) >= min(w + written.hi, r + read.hi):
                continue
            distance = place[step.outputs[0]] - place[read.value]
            granted = [
                lead for lead in overlaps(program, step)
                if step.inputs[lead[0]] == read.value and (distance == 0 if lead[2] else distance <= -lead[1])
            ]  # fmt: skip
            if step.kind == "SLICE" and read.value == step.inputs[1] and distance == 0:
                continue  # the kernel takes the begin vector over before it writes
            places = [i for i, t in enumerate(step.inputs) if t == read.value]
            if not granted or not all(reads_group_once(program, step, i) for i in places):
                name = program.tensor(read.value).name
                raise BrokenPlanError(f"step {written.step} {step.kind} writes over {name!r} while it reads it")

"""Level *fingerprint replay*: a shadow of the arena says which value each byte holds; each read must find its own.

The shadow is a sorted map from address to (value, offset in it). A write gives its bytes a fresh value; moves pass
values on; scratch leaves junk. Two runs in a row show what one run does to the next. No kernels are needed.

Source: the shadow memory of Nethercote and Seward, How to shadow every byte of memory used by a program, VEE 2007,
here with versions in place of validity bits.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from typing import NamedTuple

from modelplan.errors import BrokenPlanError
from modelplan.verifier.addresses import Layout
from modelplan.verifier.program import Program, Step
from modelplan.verifier.safe_overlap import may_overlap
from modelplan.verifier.semantics import Move, is_opaque, moves_of

_RUNS = 2


class Piece(NamedTuple):
    """`length` bytes of value `value`, from its byte `start` on."""

    value: int
    start: int
    length: int


def replay(program: Program, layout: Layout) -> int:
    """Runs the program twice over the layout and returns the number of checked steps.

    Raises:
        BrokenPlanError: the first read that finds other bytes than its own, or a write over what is still needed.

    Cost: O((steps + pieces) log pieces).
    """
    machine = _Machine(program, layout)
    for run in range(_RUNS):
        machine.begin(run)
        for index, step in enumerate(program.steps):
            machine.perform(index, step)
        machine.finish()
    return _RUNS * len(program.steps)


class _Shadow:
    """A sorted map of disjoint intervals of the arena to the values in them."""

    def __init__(self) -> None:
        self.starts: list[int] = []
        self.pieces: list[Piece] = []

    def write(self, at: int, piece: Piece) -> None:
        """Puts `piece` at `at`, cutting what was there."""
        low, high = self._span(at, at + piece.length)
        starts, pieces = [at], [piece]
        if low < high:
            first, last = self.pieces[low], self.pieces[high - 1]
            before, end = at - self.starts[low], self.starts[high - 1] + last.length
            if before > 0:
                starts.insert(0, self.starts[low])
                pieces.insert(0, Piece(first.value, first.start, before))
            if (after := end - at - piece.length) > 0:
                starts.append(at + piece.length)
                pieces.append(Piece(last.value, last.start + last.length - after, after))
        self.starts[low:high], self.pieces[low:high] = starts, pieces

    def _span(self, start: int, end: int) -> tuple[int, int]:
        """The positions of the intervals that overlap [start, end)."""
        low = bisect_right(self.starts, start) - 1
        if low < 0 or self.starts[low] + self.pieces[low].length <= start:
            low += 1
        return low, bisect_left(self.starts, end)

    def holds(self, at: int, piece: Piece) -> bool:
        """Whether one interval begins at `at` and holds `piece`: then `read` gives nothing else."""
        i = bisect_left(self.starts, at)
        return i < len(self.starts) and self.starts[i] == at and self.pieces[i] == piece

    def read(self, start: int, end: int) -> Iterator[tuple[int, Piece | None]]:
        """The content of [start, end): addresses with pieces, None for bytes that nothing ever wrote."""
        low, high = self._span(start, end)
        at = start
        for i in range(low, high):
            if self.starts[i] > at:
                yield at, None
            at = max(at, self.starts[i])
            cut, piece = at - self.starts[i], self.pieces[i]
            length = min(piece.length - cut, end - at)
            yield at, Piece(piece.value, piece.start + cut, length)
            at += length
        if at < end:
            yield at, None


class _Machine:
    def __init__(self, program: Program, layout: Layout) -> None:
        self.program = program
        self.layout = layout
        self.shadow = _Shadow()
        self.writers: list[tuple[str, int]] = []
        self.content: dict[int, list[Piece]] = {}
        self.scratch: dict[int, list[tuple[int, int]]] = {}
        for use in layout.scratch:
            self.scratch.setdefault(use.step, []).append((use.start, use.end))

    def begin(self, run: int) -> None:
        """The caller writes the inputs; before the first run state gets its initial value."""
        if run == 0:
            for t, value in enumerate(self.program.values):
                if value.role == "state":
                    self._write_fresh(t, "the start")
        for t in self.program.inputs:
            if self.program.values[t].role == "activation":
                self._write_fresh(t, "the caller")

    def finish(self) -> None:
        """The caller reads the outputs; state must have survived."""
        for t in self.program.outputs:
            self._check(t, "the caller")
        for t, value in enumerate(self.program.values):
            if value.role == "state":
                self._check(t, "the next run")

    def perform(self, index: int, step: Step) -> None:
        """Runs one step: checks its reads and the places of its outputs, then writes its scratch and its outputs."""
        for t in step.reads:
            self._check(t, step.label)
        moves = moves_of(self.program, step)
        self._check_outputs(step, moves)
        results = {y: self._result(y, number, step, moves) for number, y in enumerate(step.outputs) if y >= 0}
        for start, end in self.scratch.get(index, ()):
            self._check_scratch(step, start, end)
            self.shadow.write(start, Piece(self._value(f"{step.label}'s scratch", -1), 0, end - start))
        for y, pieces in results.items():
            self._store(y, pieces)

    def _range(self, t: int) -> tuple[int, int] | None:
        """The planned bytes of a tensor, None where it is not in the arena."""
        at, size = self.layout.address.get(t), self.program.values[t].nbytes
        return None if at is None or not size else (at, at + size)

    def _value(self, writer: str, t: int) -> int:
        self.writers.append((writer, t))
        return len(self.writers) - 1

    def _write_fresh(self, t: int, writer: str) -> None:
        self._store(t, [Piece(self._value(writer, t), 0, self.program.values[t].nbytes)])

    def _store(self, t: int, pieces: list[Piece]) -> None:
        self.content[t] = pieces
        if place := self._range(t):
            at = place[0]
            for piece in pieces:
                self.shadow.write(at, piece)
                at += piece.length

    def _result(self, y: int, output: int, step: Step, moves: list[Move]) -> list[Piece]:
        """The content of `y` after the step: the pieces that moves bring, or a fresh value."""
        mine = sorted((m for m in moves if m.output == output), key=lambda m: m.to)
        size = self.program.values[y].nbytes
        if sum(m.length for m in mine) != size or any(step.inputs[m.input] not in self.content for m in mine):
            return [Piece(self._value(step.label, y), 0, size)]
        return [p for m in mine for p in _cut(self.content[step.inputs[m.input]], m.start, m.length)]

    def _check(self, t: int, reader: str) -> None:
        """Checks that every byte of `t` is what was last written to `t`."""
        if self.program.values[t].role == "constant" or not self.program.values[t].nbytes:
            return
        if t not in self.content:
            raise BrokenPlanError(f"{reader} reads {self.program.tensor(t)} before anything writes it")
        place = self._range(t)
        if place is None:
            return
        at = place[0]
        for piece in self.content[t]:
            whole = self.shadow.holds(at, piece)
            for start, found in () if whole else self.shadow.read(at, at + piece.length):
                wanted = piece.start + start - at
                if found is None or (found.value, found.start) != (piece.value, wanted):
                    self._refuse_read(t, reader, start, found, place[1])
            at += piece.length

    def _refuse_read(self, t: int, reader: str, start: int, found: Piece | None, end: int) -> None:
        last = min(start + found.length if found else end, end) - 1
        what = f"{reader} reads {self.program.tensor(t)} bytes {start}-{last}"
        if found is None:
            raise BrokenPlanError(f"{what}, which nothing wrote")
        writer, other = self.writers[found.value]
        by = f" by {self.program.tensor(other)}" if other >= 0 else ""
        raise BrokenPlanError(f"{what}, overwritten at {_short(writer)}{by}")

    def _check_outputs(self, step: Step, moves: list[Move]) -> None:
        for output, y in enumerate(() if is_opaque(step) else step.outputs):
            place = self._range(y) if y >= 0 else None
            if not place:
                continue
            for other in step.outputs[:output]:
                if other >= 0 and other != y and (shared := _shared(place, self._range(other))):
                    raise BrokenPlanError(
                        f"{step.label} writes {self.program.tensor(y)} and {self.program.tensor(other)}"
                        f" to the same bytes {shared[0]}-{shared[1] - 1}"
                    )
            for operand, x in enumerate(step.inputs):
                if x >= 0 and (shared := _shared(place, self._range(x))):
                    self._check_overlap(step, operand, output, shared, moves)

    def _check_overlap(self, step: Step, operand: int, output: int, shared: tuple[int, int], moves: list[Move]) -> None:
        """Checks that an output over an input keeps its bytes, or that the kernel may overwrite them."""
        x, y = step.inputs[operand], step.outputs[output]
        target = self.layout.address[y]
        for m in moves:
            home = self.layout.address.get(step.inputs[m.input])
            kept = m.output == output and home is not None and home + m.start == target + m.to
            if kept and target + m.to <= shared[0] and shared[1] <= target + m.to + m.length:
                return
        if may_overlap(self.program, self.layout, step, operand, output):
            return
        raise BrokenPlanError(
            f"{step.label} reads {self.program.tensor(x)} bytes {shared[0]}-{shared[1] - 1},"
            f" overwritten at {_short(step.label)} by {self.program.tensor(y)}: {step.kind} cannot work in place there"
        )

    def _check_scratch(self, step: Step, start: int, end: int) -> None:
        for t in (*step.reads, *step.writes):
            if shared := _shared((start, end), self._range(t)):
                raise BrokenPlanError(
                    f"{step.label} uses bytes {shared[0]}-{shared[1] - 1} as scratch,"
                    f" which hold its {self.program.tensor(t)}"
                )


def _short(writer: str) -> str:
    """The label without the operator's kind: `op 15` of `op 15 ADD`."""
    words = writer.split()
    return " ".join(words[:2]) if words[0] == "op" and "scratch" not in writer else writer


def _shared(a: tuple[int, int], b: tuple[int, int] | None) -> tuple[int, int] | None:
    """The bytes that two ranges have in common."""
    if b is None or min(a[1], b[1]) <= max(a[0], b[0]):
        return None
    return max(a[0], b[0]), min(a[1], b[1])


def _cut(pieces: list[Piece], start: int, length: int) -> Iterator[Piece]:
    """Bytes [start, start + length) of what `pieces` hold."""
    at = 0
    for piece in pieces:
        low, high = max(start, at), min(start + length, at + piece.length)
        if low < high:
            yield Piece(piece.value, piece.start + low - at, high - low)
        at += piece.length

"""Level *fingerprint replay*: a shadow of the arena says which value each byte holds; each read must find its own.

The shadow is a sorted map from address to (value, offset in it). A write gives its bytes a fresh value; moves pass
values on; scratch leaves junk. Two runs in a row show what one run does to the next. No kernels are needed.

Source: the shadow memory of Nethercote and Seward, How to shadow every byte of memory used by a program, VEE 2007,
here with versions in place of validity bits.
"""

from collections.abc import Mapping

import numpy as np

from modelplan.checking.verifier.addresses import AddressLayout, Places, places_of
from modelplan.checking.verifier.moves import Move, all_moves
from modelplan.checking.verifier.program import Program, Step
from modelplan.checking.verifier.safe_overlap import may_overlap, operands_under_results
from modelplan.checking.verifier.semantics import is_opaque
from modelplan.model import IntArray
from modelplan.primitives import _core
from modelplan.primitives.errors import BrokenPlanError
from modelplan.primitives.lazy_records import dataclass

_RUNS = 2
#: Pieces of other values from which a tensor counts as one of its own, until it is compared.
_MOST_PIECES = 64
#: Whose steps those below 0 are, and what is wrong with a read, as `core/verifier/shadow.hpp` numbers them.
_OTHERS = {-1: "the start", -2: "the caller", -3: "the next run"}
_NO_TENSOR, _NO_BYTES, _OTHER_VALUE = range(3)

Moves = Mapping[int, list[Move]]


def replay(program: Program, layout: AddressLayout) -> int:
    """Runs the program twice over the layout and returns the number of checked steps.

    Raises:
        BrokenPlanError: the first read that finds other bytes than its own, or a write over what is still needed.

    Cost: O((steps + pieces) log pieces).
    """
    places, moves = places_of(program, layout), all_moves(program)
    fault = _first_wrong_read(program, layout, places, moves)
    steps = len(program.steps)
    last = steps if fault is None or fault.run or fault.step < 0 else fault.step
    _check_steps(program, layout, places, moves, last)
    if fault is not None:
        raise BrokenPlanError(_sentence(program, fault))
    return _RUNS * steps


@dataclass(frozen=True, slots=True)
class _Fault:
    """Step `step` of run `run` reads bytes [start, end) of `tensor`, which are not its own but those of `by_tensor`."""

    kind: int
    run: int
    step: int
    tensor: int
    start: int
    end: int
    by_step: int
    by_tensor: int


def _first_wrong_read(program: Program, layout: AddressLayout, places: Places, moves: Moves) -> _Fault | None:
    """The first read of the two runs that does not find what was last written to its tensor."""
    columns, reads, written = program.columns, program.columns.reads, program.columns.written
    checked = (columns.nbytes > 0) & ~columns.constant
    seen = checked[reads.tensor]
    inputs, outputs = np.array(program.inputs, np.int64), np.array(program.outputs, np.int64)
    fault_row = _core.replay(
        len(program.steps),
        np.stack([columns.nbytes, places.start, places.planned], axis=1),
        inputs[~(columns.constant | columns.state)[inputs]],
        outputs[checked[outputs]],
        np.flatnonzero(columns.state),
        np.stack([reads.step, reads.tensor], axis=1)[seen],
        np.stack([written.step, written.tensor], axis=1),
        _scratch_rows(layout, len(program.steps)),
        _move_rows(program, moves),
        _RUNS,
        _MOST_PIECES,
    )
    return _Fault(*fault_row.tolist()) if len(fault_row) else None


def _scratch_rows(layout: AddressLayout, steps: int) -> IntArray:
    """Rows (step, start, end) in order of the steps."""
    rows = [(use.step, use.start, use.end) for use in layout.scratch if 0 <= use.step < steps]
    return np.array(sorted(rows, key=lambda row: row[0]), np.int64).reshape(-1, 3)


def _move_rows(program: Program, moves: Moves) -> IntArray:
    """Rows (row of what is written, source, start, length) of moves that fill the whole of an output, in its order."""
    written, rows = program.columns.written, []
    for index, of_step in moves.items():
        inputs = program.steps[index].inputs
        for row in range(*np.searchsorted(written.step, (index, index + 1)).tolist()):
            mine = sorted((m for m in of_step if m.output == written.operand[row]), key=lambda m: m.to)
            size = program.values[written.tensor[row]].nbytes
            if sum(m.length for m in mine) == size and all(inputs[m.input] >= 0 for m in mine):
                rows += [(row, inputs[m.input], m.start, m.length) for m in mine]
    return np.array(rows, np.int64).reshape(-1, 4)


def _sentence(program: Program, fault: _Fault) -> str:
    what = f"{_label(program, fault.step)} reads {program.tensor(fault.tensor)}"
    if fault.kind == _NO_TENSOR:
        return f"{what} before anything writes it"
    what += f" bytes {fault.start}-{fault.end - 1}"
    if fault.kind == _NO_BYTES:
        return f"{what}, which nothing wrote"
    if fault.by_tensor < 0:
        return f"{what}, overwritten at {_label(program, fault.by_step)}'s scratch"
    writer = f"op {program.steps[fault.by_step].op}" if fault.by_step >= 0 else _OTHERS[fault.by_step]
    return f"{what}, overwritten at {writer} by {program.tensor(fault.by_tensor)}"


def _label(program: Program, step: int) -> str:
    return program.steps[step].label if step >= 0 else _OTHERS[step]


def _check_steps(program: Program, layout: AddressLayout, places: Places, moves: Moves, last: int) -> None:
    """Checks what the steps before `last` write over what they read, write besides, or use as scratch."""
    scratch: dict[int, list[tuple[int, int]]] = {}
    for use in layout.scratch:
        scratch.setdefault(use.step, []).append((use.start, use.end))
    overlaps = _Overlaps(program, layout)
    for index in _suspects(program, places, scratch):
        if index >= last:
            break
        step = program.steps[index]
        overlaps.check_outputs(step, moves.get(index, []))
        for start, end in scratch.get(index, ()):
            overlaps.check_scratch(step, start, end)


def _suspects(program: Program, places: Places, scratch: Mapping[int, list[tuple[int, int]]]) -> list[int]:
    """The steps whose outputs or scratch may share bytes as they must not: of all others it is known at a glance."""
    columns = program.columns
    reads, writes = columns.reads, columns.writes
    rows, allowed = operands_under_results(program, places)
    steps = len(program.steps)
    suspect = np.zeros(steps, np.bool_)
    suspect[reads.step[rows[~allowed]]] = True
    suspect[writes.step[writes.operand > 0]] = True
    low, high = np.zeros((2, steps), np.int64)
    for index, ranges in scratch.items():
        if 0 <= index < steps:
            low[index], high[index] = min(start for start, _ in ranges), max(end for _, end in ranges)
    for uses in (reads, writes):
        t, step = uses.tensor, uses.step
        near = places.planned[t] & (low[step] < places.end[t]) & (places.start[t] < high[step])
        suspect[step[near]] = True
    return np.flatnonzero(suspect).tolist()


class _Overlaps:
    """Checks of single steps."""

    def __init__(self, program: Program, layout: AddressLayout) -> None:
        self.program = program
        self.layout = layout

    def _range(self, t: int) -> tuple[int, int] | None:
        """The planned bytes of a tensor, None where it is not in the arena."""
        at, size = self.layout.address.get(t), self.program.values[t].nbytes
        return None if at is None or not size else (at, at + size)

    def check_outputs(self, step: Step, moves: list[Move]) -> None:
        """Checks that outputs lie apart, and over no operand but where the kernel may write there."""
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
            f" overwritten at op {step.op} by {self.program.tensor(y)}: {step.kind} cannot work in place there"
        )

    def check_scratch(self, step: Step, start: int, end: int) -> None:
        """Checks that working memory lies apart from what its step reads and writes."""
        for t in (*step.reads, *step.writes):
            if shared := _shared((start, end), self._range(t)):
                raise BrokenPlanError(
                    f"{step.label} uses bytes {shared[0]}-{shared[1] - 1} as scratch,"
                    f" which hold its {self.program.tensor(t)}"
                )


def _shared(a: tuple[int, int], b: tuple[int, int] | None) -> tuple[int, int] | None:
    """The bytes that two ranges have in common."""
    if b is None or min(a[1], b[1]) <= max(a[0], b[0]):
        return None
    return max(a[0], b[0]), min(a[1], b[1])

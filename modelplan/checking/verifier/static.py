"""Level *static*: liveness from the program, then a sweep over time: tensors alive together must not share bytes.

Shares nothing with the planner but the file: lifetimes come from the program's own reads and writes.
"""

from __future__ import annotations

import numpy as np

from modelplan.checking.verifier.addresses import AddressLayout, Places, places_of
from modelplan.checking.verifier.moves import all_moves
from modelplan.checking.verifier.program import Program, Step
from modelplan.checking.verifier.safe_overlap import may_overlap, operands_under_results
from modelplan.checking.verifier.semantics import OPAQUE, is_opaque
from modelplan.model import BoolArray, IntArray
from modelplan.primitives import _core
from modelplan.primitives.errors import BrokenPlanError
from modelplan.primitives.lazy_records import dataclass

#: The bytes that a plan reserves for a tensor where it does not say so: enough for any.
_UNKNOWN = 2**62


@dataclass(frozen=True, slots=True)
class Life:
    """A tensor's bytes [start, end) and the steps, both included, between which it holds a value."""

    tensor: int
    start: int
    end: int
    first: int
    last: int


def check_static(program: Program, layout: AddressLayout) -> int:
    """Checks every address, then every pair of tensors alive together; returns the number of lifetimes checked.

    Raises:
        BrokenPlanError: a tensor without an address, outside the arena, off its alignment, with too few bytes
            reserved, or sharing bytes with another that is alive at the same time and no alias of it; or
            operators that use the same state in another order than the file.

    Cost: O(n log n) time for n lifetimes, besides pairs that really share bytes.
    """
    _check_state_order(program)
    spans = _planned_spans(program, layout)
    places = places_of(program, layout)
    _check_places(program, layout, places, spans)
    classes, overwrites = _sharing(program, layout, places)
    start, end = places.start[spans.tensor], places.end[spans.tensor]
    earlier, later = _core.find_shared_bytes(start, end, spans.first, spans.last, classes[spans.tensor], overwrites)
    if earlier >= 0:
        raise BrokenPlanError(_sentence(program, *(spans.life(number, places) for number in (earlier, later))))
    return len(spans.tensor)


def _check_state_order(program: Program) -> None:
    """Checks that operators with the same state run in file order: each reads what the one before wrote."""
    columns = program.columns
    uses: list[tuple[int, int]] = []
    for rows in (columns.reads, columns.writes):
        of_state = columns.state[rows.tensor]
        uses += zip(rows.step[of_state].tolist(), rows.tensor[of_state].tolist(), strict=True)
    latest: dict[int, Step] = {}
    for index, t in sorted(uses, key=lambda use: use[0]):
        step = program.steps[index]
        if t in latest and latest[t].op > step.op:
            raise BrokenPlanError(
                f"{step.label} runs after {latest[t].label}, against the order of the file:"
                f" both use {program.tensor(t)}, which keeps its value between them"
            )
        latest[t] = step


@dataclass(frozen=True, slots=True)
class _Spans:
    """One row for each value of a tensor: the steps, both included, over which it must last."""

    tensor: IntArray
    first: IntArray
    last: IntArray

    def of(self, rows: IntArray) -> _Spans:
        """The spans with these row numbers."""
        return _Spans(self.tensor[rows], self.first[rows], self.last[rows])

    def life(self, row: int, places: Places) -> Life:
        t = int(self.tensor[row])
        return Life(t, int(places.start[t]), int(places.end[t]), int(self.first[row]), int(self.last[row]))


def value_spans(program: Program) -> dict[int, list[tuple[int, int]]]:
    """For each tensor the steps, both included, over which each of its values must last.

    Inputs and state exist before step 0, which counts as step -1; an input that nothing reads is of no use later.
    Outputs and state last to the end. Writing a tensor again starts a new value.
    """
    by_tensor: dict[int, list[tuple[int, int]]] = {}
    spans = _spans(program)
    for t, first, last in zip(spans.tensor.tolist(), spans.first.tolist(), spans.last.tolist(), strict=True):
        by_tensor.setdefault(t, []).append((first, last))
    return by_tensor


def _spans(program: Program) -> _Spans:
    """The rows of `value_spans`, tensors in the order in which they are first used.

    All uses are sorted by tensor and time: odd times are writes, each of which begins a value, even times are reads.
    """
    columns, steps = program.columns, len(program.steps)
    inputs, outputs = (np.array(list(dict.fromkeys(t)), np.int64) for t in (program.inputs, program.outputs))
    tensor = np.concatenate([inputs, columns.reads.tensor, columns.written.tensor, outputs])
    before, after = np.full(len(inputs), -1), np.full(len(outputs), 2 * steps)
    time = np.concatenate([before, 2 * columns.reads.step, 2 * columns.written.step + 1, after])
    uses = np.lexsort((time, tensor))
    place = np.empty_like(uses)
    place[np.argsort(time, kind="stable")] = np.arange(len(uses))
    tensor, time, place = tensor[uses], time[uses], place[uses]
    new = np.ones(len(uses), np.bool_)
    new[1:] = tensor[1:] != tensor[:-1]
    begins = np.flatnonzero(new | (time % 2 == 1))
    ends = np.append(begins[1:], len(uses))[: len(begins)] - 1
    first = np.where(time[begins] < 2 * steps, time[begins] // 2, 0)  # what only the caller reads is there at once
    last = np.minimum(time[ends] // 2, max(steps - 1, 0))
    earliest = place[new][np.cumsum(new)[begins] - 1]
    spans = _Spans(tensor[begins], first, last).of(np.argsort(earliest, kind="stable"))
    return _with_state(spans, columns.state, max(steps - 1, 0))


def _with_state(spans: _Spans, state: BoolArray, end: int) -> _Spans:
    """The spans with one from before the first step to step `end` for each tensor that is state."""
    if not state.any():
        return spans
    kept = ~state[spans.tensor]
    _, firsts = np.unique(spans.tensor, return_index=True)
    kept[firsts] = True
    spans = spans.of(np.flatnonzero(kept))
    unused = np.setdiff1d(np.flatnonzero(state), spans.tensor)
    tensor = np.append(spans.tensor, unused)
    first, last = (np.append(column, np.zeros_like(unused)) for column in (spans.first, spans.last))
    return _Spans(tensor, np.where(state[tensor], -1, first), np.where(state[tensor], end, last))


def _planned_spans(program: Program, layout: AddressLayout) -> _Spans:
    """The values that need bytes of the plan."""
    columns, spans = program.columns, _spans(program)
    needed = (columns.nbytes > 0) & ~columns.constant
    without = [t for t in spans.tensor[needed[spans.tensor]].tolist() if t not in layout.address]
    for t in without:
        if not columns.state[t]:
            need = program.values[t].nbytes
            raise BrokenPlanError(f"{program.tensor(t)} needs {need} bytes, but the plan has no address for it")
    needed[without] = False
    return spans.of(np.flatnonzero(needed[spans.tensor]))


def _check_places(program: Program, layout: AddressLayout, places: Places, spans: _Spans) -> None:
    start, end = places.start[spans.tensor], places.end[spans.tensor]
    tensors = spans.tensor.tolist()
    inside = np.array([layout.inside.get(t, 0) for t in tensors], np.int64)
    reserved = np.array([layout.reserved.get(t, _UNKNOWN) for t in tensors], np.int64)
    bad = (start < 0) | ((start - inside) % layout.alignment != 0) | (reserved < end - start)
    if layout.arena is not None:
        bad |= end > layout.arena
    if bad.any():
        _check_place(program, layout, spans.life(int(np.argmax(bad)), places))


def _check_place(program: Program, layout: AddressLayout, life: Life) -> None:
    where = f"{program.tensor(life.tensor)} at bytes {life.start}-{life.end - 1}"
    if life.start < 0:
        raise BrokenPlanError(f"{where}: offset {life.start}, expected at least 0")
    if (offset := life.start - layout.inside.get(life.tensor, 0)) % layout.alignment:
        raise BrokenPlanError(f"{where}: offset {offset} is not a multiple of {layout.alignment}")
    if layout.arena is not None and life.end > layout.arena:
        raise BrokenPlanError(f"{where}: ends behind the arena of {layout.arena} bytes")
    reserved = layout.reserved.get(life.tensor)
    if reserved is not None and reserved < life.end - life.start:
        raise BrokenPlanError(f"{where}: the plan reserves {reserved} bytes, it needs {life.end - life.start}")


def _sharing(program: Program, layout: AddressLayout, places: Places) -> tuple[IntArray, IntArray]:
    """Which tensors may share bytes under a layout, by what the operators of the program do.

    The first column is the class of each tensor: those whose moves leave the bytes where they are. Beyond that a step
    may overwrite an operand with an output: rows (class of the operand, class of the output, step), where the
    operand's last step is the output's first.
    """
    classes = _classes(program, layout)
    columns, steps = program.columns, program.steps
    rows, allowed = operands_under_results(program, places)
    reads, index = columns.reads, columns.reads.step[rows]
    x, y = reads.tensor[rows], columns.result[index]
    undecided = np.flatnonzero(~allowed & (classes[x] != classes[y]))
    for row in undecided.tolist():
        step = steps[index[row]]
        allowed[row] = may_overlap(program, layout, step, int(reads.operand[rows[row]]), 0)
    table = [np.stack([classes[x], classes[y], index], axis=1)[allowed]]
    if OPAQUE in columns.kinds:
        each = ((i, step) for i, step in enumerate(steps) if is_opaque(step))
        free = [(classes[x], classes[y], i) for i, step in each for x in step.reads for y in step.writes]
        table.append(np.array(free, np.int64).reshape(-1, 3))
    return classes, np.concatenate(table)


def _classes(program: Program, layout: AddressLayout) -> IntArray:
    """The class of each tensor, by the number of one tensor in it."""
    root: dict[int, int] = {}

    def find(t: int) -> int:
        while root.get(t, t) != t:
            t = root[t]
        return t

    for index, moves in all_moves(program).items():
        step = program.steps[index]
        for m in moves:
            x, y = step.inputs[m.input], step.outputs[m.output]
            if layout.address.get(x, -1) + m.start == layout.address.get(y, -2) + m.to:
                root[find(y)] = find(x)
    classes = np.arange(len(program.values))
    for t in root:
        classes[t] = find(t)
    return classes


def _sentence(program: Program, earlier: Life, later: Life) -> str:
    low, high = max(earlier.start, later.start), min(earlier.end, later.end) - 1
    step = max(earlier.first, later.first)
    at = program.steps[step].label if program.steps and step >= 0 else "the start"
    return (
        f"{at} needs {program.tensor(later.tensor)} at bytes {low}-{high},"
        f" where {program.tensor(earlier.tensor)} is alive until {_last_use(program, earlier)}"
    )


def _last_use(program: Program, life: Life) -> str:
    if life.tensor in program.outputs or program.values[life.tensor].role == "state":
        return "the end"
    return program.steps[life.last].label if program.steps and life.last >= 0 else "the start"

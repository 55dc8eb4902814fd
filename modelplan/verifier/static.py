"""Level *static*: liveness from the program, then a sweep over time: tensors alive together must not share bytes.

Shares nothing with the planner but the file: lifetimes come from the program's own reads and writes.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Iterator
from dataclasses import dataclass

from modelplan.errors import BrokenPlanError
from modelplan.verifier.addresses import Layout
from modelplan.verifier.program import Program, Step
from modelplan.verifier.safe_overlap import may_overlap
from modelplan.verifier.semantics import is_opaque, moves_of


@dataclass(frozen=True, slots=True)
class Life:
    """A tensor's bytes [start, end) and the steps, both included, between which it holds a value."""

    tensor: int
    start: int
    end: int
    first: int
    last: int


def check_static(program: Program, layout: Layout) -> int:
    """Checks every address, then every pair of tensors alive together; returns the number of lifetimes checked.

    Raises:
        BrokenPlanError: a tensor without an address, outside the arena, off its alignment, with too few bytes
            reserved, or sharing bytes with another that is alive at the same time and no alias of it; or
            operators that use the same state in another order than the file.

    Cost: O(n log n) time for n lifetimes, besides pairs that really share bytes.
    """
    _check_state_order(program)
    lives = list(_lives(program, layout))
    for life in lives:
        _check_place(program, layout, life)
    sharing = _Sharing(program, layout)
    for earlier, later in _overlapping_pairs(lives):
        if not sharing.allows(earlier, later):
            raise BrokenPlanError(_sentence(program, earlier, later))
    return len(lives)


def _check_state_order(program: Program) -> None:
    """Checks that operators with the same state run in file order: each reads what the one before wrote."""
    latest: dict[int, Step] = {}
    for step in program.steps:
        for t in (*step.reads, *step.writes):
            if program.values[t].role != "state":
                continue
            if t in latest and latest[t].op > step.op:
                raise BrokenPlanError(
                    f"{step.label} runs after {latest[t].label}, against the order of the file:"
                    f" both use {program.tensor(t)}, which keeps its value between them"
                )
            latest[t] = step


def _lives(program: Program, layout: Layout) -> Iterator[Life]:
    for t, spans in value_spans(program).items():
        value = program.values[t]
        if not value.nbytes or value.role == "constant":
            continue
        at = layout.address.get(t)
        if at is None and value.role == "state":
            continue
        if at is None:
            raise BrokenPlanError(f"{program.tensor(t)} needs {value.nbytes} bytes, but the plan has no address for it")
        for first, last in spans:
            yield Life(t, at, at + value.nbytes, first, last)


def value_spans(program: Program) -> dict[int, list[tuple[int, int]]]:
    """For each tensor the steps, both included, over which each of its values must last.

    Inputs and state exist before step 0, which counts as step -1; an input that nothing reads is of no use later.
    Outputs and state last to the end. Writing a tensor again starts a new value.
    """
    end = max(len(program.steps) - 1, 0)
    spans: dict[int, list[tuple[int, int]]] = {t: [(-1, -1)] for t in program.inputs}
    for index, step in enumerate(program.steps):
        for t in step.reads:
            first = spans.setdefault(t, [(index, index)]).pop()[0]
            spans[t].append((first, index))
        for t in step.writes:
            spans.setdefault(t, []).append((index, index))
    for t in program.outputs:
        first = spans.setdefault(t, [(0, 0)]).pop()[0]
        spans[t].append((first, end))
    for t, value in enumerate(program.values):
        if value.role == "state":
            spans[t] = [(-1, end)]
    return spans


def _check_place(program: Program, layout: Layout, life: Life) -> None:
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


def _overlapping_pairs(lives: list[Life]) -> Iterator[tuple[Life, Life]]:
    """Pairs that share bytes while both are alive, the one that began earlier first."""
    alive: list[tuple[int, int, Life]] = []
    ending = sorted(enumerate(lives), key=lambda row: row[1].last)
    widest = gone = 0
    for number, life in sorted(enumerate(lives), key=lambda row: row[1].first):
        while ending[gone][1].last < life.first:
            old, expired = ending[gone]
            del alive[bisect_left(alive, (expired.start, old))]
            gone += 1
        low = bisect_left(alive, (life.start - widest, -1))
        for _, _, other in alive[low : bisect_left(alive, (life.end, -1))]:
            if other.end > life.start:
                yield other, life
        insort(alive, (life.start, number, life))
        widest = max(widest, life.end - life.start)


class _Sharing:
    """Which tensors may share bytes under a layout, by what the operators of the program do.

    Tensors whose moves leave the bytes where they are form a class. Beyond that a step may overwrite an operand with
    an output: then the operand's last step is the output's first.
    """

    def __init__(self, program: Program, layout: Layout) -> None:
        self.root: dict[int, int] = {}
        self.overwrites: set[tuple[int, int, int]] = set()
        for step in program.steps:
            for m in moves_of(program, step):
                x, y = step.inputs[m.input], step.outputs[m.output]
                if layout.address.get(x, -1) + m.start == layout.address.get(y, -2) + m.to:
                    self.root[self._class(y)] = self._class(x)
        for index, step in enumerate(program.steps):
            self._note_overwrites(program, layout, index, step)

    def _note_overwrites(self, program: Program, layout: Layout, index: int, step: Step) -> None:
        if is_opaque(step):
            self.overwrites |= {(self._class(x), self._class(y), index) for x in step.reads for y in step.writes}
            return
        if not step.outputs or step.outputs[0] < 0:
            return
        y = step.outputs[0]
        for operand, x in enumerate(step.inputs):
            if x >= 0 and _share_bytes(program, layout, x, y) and may_overlap(program, layout, step, operand, 0):
                self.overwrites.add((self._class(x), self._class(y), index))

    def _class(self, t: int) -> int:
        while self.root.get(t, t) != t:
            t = self.root[t]
        return t

    def allows(self, earlier: Life, later: Life) -> bool:
        """Whether the two may share bytes."""
        a, b = self._class(earlier.tensor), self._class(later.tensor)
        if a == b:
            return True
        return self._may_follow(a, earlier, b, later) or self._may_follow(b, later, a, earlier)

    def _may_follow(self, a: int, dying: Life, b: int, born: Life) -> bool:
        """Whether the step that ends one lifetime may write the other tensor over the first."""
        return dying.last == born.first and (a, b, born.first) in self.overwrites


def _share_bytes(program: Program, layout: Layout, a: int, b: int) -> bool:
    low, high = layout.address.get(a), layout.address.get(b)
    if low is None or high is None:
        return False
    return low < high + program.values[b].nbytes and high < low + program.values[a].nbytes


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

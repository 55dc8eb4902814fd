"""The steps of a stage as tables: few forms of steps, and the order in which they follow each other.

Row after row a stage does the same: most addresses stay as they are, since values slide, and those of values that are
held as a whole move on by the same distance. So a step is a form, an order is a list of forms, and what repeats in it
is written once.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import field
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from modelplan.model.c_program import KernelCall, RowsArrival, Step, ValueShift
from modelplan.primitives.lazy_records import dataclass

#: What `operator` is of a form that moves a value, or takes in what the caller hands over.
SHIFT, ARRIVAL = -1, -2
#: Addresses of an operand from which on they are counted on and not listed.
_LISTED = 4
_LONGEST_PERIOD = 1024
#: Tables that are kept.
_KEPT = 128


class StepForm(NamedTuple):
    """A kind of step: an operator, or SHIFT or ARRIVAL, with the rows that it reads and makes.

    `places` are the addresses of operands and results; those of counted places are distances from the step before. A
    shift has places to, from and the bytes; an arrival has those of the bytes in the buffer, in the row, and their
    number. `columns` are the first computed column and their number; none where a row is computed at once. `held` are
    the first column of the operand that is there and their number, where it is a tile.
    """

    operator: int
    rows: int
    above: int
    computed: int
    places: tuple[int, ...]
    columns: tuple[int, int] | None = None
    held: tuple[int, int] | None = None

    @property
    def call(self) -> tuple[int, bool, bool]:
        """What a call is told from others by: its operator, whether it names columns, and those of a tile."""
        return self.operator, self.columns is not None, self.held is not None

    def at(self, places: Iterable[int]) -> StepForm:
        """The same form with other places."""
        return StepForm(*self[:4], tuple(places), self.columns, self.held)


@dataclass(frozen=True, slots=True)
class OrderRun:
    """Forms [first, first + count) of the list of an order, so many `times` in a row."""

    first: int
    count: int
    times: int


@dataclass
class StepTable:
    """The `plain` steps of a stage: `order` holds numbers of forms, of which `runs` are performed one after the other.

    `counted` are the places (operator, position) whose addresses are counted on, with those from which they count.
    Where the caller hands over rows, `pushes` has the number of a run for each of them, and the runs `times` 1.
    """

    plain: tuple[StepForm, ...]
    forms: list[StepForm] = field(default_factory=list)
    order: list[int] = field(default_factory=list)
    runs: list[OrderRun] = field(default_factory=list)
    counted: dict[tuple[int, int], int] = field(default_factory=dict)
    pushes: list[int] = field(default_factory=list)
    _is_checked: bool = field(default=False, init=False)

    def check(self) -> None:
        """Checks that the tables give the steps.

        Raises:
            ValueError: they do not; never to be seen.
        """
        if not self._is_checked and tuple(self.steps()) != self.plain:
            raise ValueError("the tables of a stage do not give its steps")
        self._is_checked = True

    def steps(self) -> Iterator[StepForm]:
        """The forms in the order in which they are performed, with all addresses; what C does, in Python."""
        at, positions = dict(self.counted), _positions(self.counted)
        runs = [self.runs[push] for push in self.pushes] or self.runs
        for run in runs:
            for _ in range(run.times):
                for number in self.order[run.first : run.first + run.count]:
                    form = self.forms[number]
                    if form.operator not in positions:
                        yield form
                        continue
                    places = list(form.places)
                    for position in positions[form.operator]:
                        places[position] = at[form.operator, position] = at[form.operator, position] + places[position]
                    yield form.at(places)


def _positions(counted: Iterable[tuple[int, int]]) -> dict[int, list[int]]:
    """The places that are counted on, by operator."""
    positions: dict[int, list[int]] = {}
    for operator, position in counted:
        positions.setdefault(operator, []).append(position)
    return positions


def plain_forms(steps: Sequence[Step], row_bytes: int = 0) -> list[StepForm]:
    """Steps as forms with all addresses; rows of `row_bytes` arrive from the caller."""
    forms, arrived = [], 0
    for step in steps:
        if isinstance(step, ValueShift):
            forms.append(StepForm(SHIFT, 0, 0, 0, (step.to, step.address, step.nbytes)))
        elif isinstance(step, RowsArrival):
            forms.append(StepForm(ARRIVAL, 0, 0, 0, (step.address, arrived % row_bytes, step.nbytes)))
            arrived += step.nbytes
        else:
            forms.append(_call_form(step))
    return forms


def _call_form(step: KernelCall) -> StepForm:
    reads, writes, columns = step.reads, step.writes, step.columns
    rows, above, left, width = (reads[0].rows, reads[0].above, reads[0].left, reads[0].width) if reads else (0, 0, 0, 0)
    return StepForm(
        step.operator,
        rows,
        above,
        writes[0].rows if writes else 1,
        tuple([read.address for read in reads] + [write.address for write in writes]),
        (columns[0], columns[1] - columns[0]) if columns else None,
        (left, width) if width else None,
    )


def step_table(steps: Sequence[Step], row_bytes: int = 0) -> StepTable:
    """The steps of a stage as tables; where rows of `row_bytes` arrive, in a run for each row.

    Those of the last stages are kept: a text is sized, written, and written again for its proof.
    """
    return _table_of(tuple(plain_forms(steps, row_bytes)), by_push=bool(row_bytes))


@lru_cache(_KEPT)
def _table_of(plain: tuple[StepForm, ...], *, by_push: bool) -> StepTable:
    table = StepTable(plain, counted=_counted(plain))
    numbers: dict[StepForm, int] = {}
    at, positions, order = dict(table.counted), _positions(table.counted), list[int]()
    for form in plain:
        if form.operator in positions:
            places = list(form.places)
            for position in positions[form.operator]:
                place = form.places[position]
                places[position], at[form.operator, position] = place - at[form.operator, position], place
            form = form.at(places)
        order.append(numbers.setdefault(form, len(numbers)))
    table.forms = list(numbers)
    if by_push:
        _by_push(table, order, plain)
    else:
        _by_repetition(table, order)
    return table


def _counted(plain: Sequence[StepForm]) -> dict[tuple[int, int], int]:
    """The places of operators that have many addresses, with the first of them."""
    of_operator: dict[int, list[tuple[int, ...]]] = {}
    for form in plain:
        if form.operator != SHIFT:
            of_operator.setdefault(form.operator, []).append(form.places)
    counted = {}
    for operator, places in of_operator.items():
        for position, listed in enumerate(zip(*places, strict=True)):
            if len(set(listed)) > _LISTED and not (operator == ARRIVAL and position):
                counted[operator, position] = listed[0]
    return counted


def _by_push(table: StepTable, order: Sequence[int], plain: Sequence[StepForm]) -> None:
    """A run for each row that the caller hands over: all steps up to the next row."""
    starts = [i for i, form in enumerate(plain) if form.operator == ARRIVAL and not form.places[1]]
    known: dict[tuple[int, ...], int] = {}
    for first, end in zip([0, *starts[1:]], [*starts[1:], len(order)], strict=True):
        part = tuple(order[first:end])
        if part not in known:
            known[part] = len(table.runs)
            table.runs.append(OrderRun(len(table.order), len(part), 1))
            table.order += part
        table.pushes.append(known[part])


def _by_repetition(table: StepTable, order: Sequence[int]) -> None:
    """Runs of what is repeated: at each place the period that goes on for longest."""
    forms = np.array(order, dtype=np.int64)
    best, period_of = np.zeros((2, len(order) + 1), dtype=np.int64)  # steps that are saved, and by which period
    for period in range(1, min(_LONGEST_PERIOD, len(order) // 2) + 1):
        same = forms[period:] == forms[:-period]
        if np.count_nonzero(same) < max(period, _WORTH):
            continue
        ends = np.append(np.flatnonzero(~same), len(same))
        reach = np.repeat(ends, np.diff(ends, prepend=-1))[: len(same)] - np.arange(len(same))
        saved = reach // period * period
        better = np.flatnonzero(saved > best[: len(same)])  # the shortest of those that save most stays
        best[better], period_of[better] = saved[better], period
    at = plain = 0
    while at < len(order):
        period, gain = int(period_of[at]), int(best[at])
        if gain < _WORTH:
            at += 1
            continue
        _append(table, order[plain:at], 1)
        _append(table, order[at : at + period], gain // period + 1)
        at = plain = at + period + gain
    _append(table, order[plain:], 1)


#: Steps that a loop has to spare.
_WORTH = 6


def _append(table: StepTable, part: Sequence[int], times: int) -> None:
    if part:
        table.runs.append(OrderRun(len(table.order), len(part), times))
        table.order += part

"""In which order the rows of a stage are computed: what the last operators need next is made first, and no sooner."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property

from modelplan.plain_c.rows.row_graph import MapShape, MapWindow, RowGraph

_NO_RESULT = MapShape(1, 1, 0)
#: The operator that stands for the caller, who hands over rows of the input.
CALLER = -1


@dataclass(frozen=True, slots=True)
class Granule:
    """An operator computes columns [left, right) of a row; rows and columns are those of its first result.

    An operator that reads all of an operand computes all of its result at once: `row` is then 0 and `rows` all.
    """

    operator: int
    row: int
    rows: int
    left: int
    right: int


@dataclass(frozen=True, slots=True)
class OperandUse:
    """How an operator of a stage reads a value: its rows there, and the window of a row of the result."""

    value: int
    tensor: int
    shape: MapShape
    window: MapWindow | None

    def bytes_for(self, granule: Granule) -> int:
        """How many bytes of the value, from its front, a granule waits for."""
        shape, window = self.shape, self.window
        if window is None:
            return shape.nbytes
        end = min(window.rows.read(granule.row, granule.row + granule.rows)[1], shape.rows)
        if end <= 0:
            return 0
        if window.columns is None:
            return end * shape.row_bytes
        right = min(window.columns.read(granule.left, granule.right)[1], shape.columns)
        return (end - 1) * shape.row_bytes + max(right, 0) * shape.column_bytes

    def kept_from(self, row: int, left: int) -> int:
        """The first byte that is still read when column `left` of a row of the result comes next."""
        shape, window = self.shape, self.window
        if window is None:
            return 0
        first = window.rows
        top = row * first.stride - first.before
        here = max(top, 0) * shape.row_bytes
        if window.columns is None or not left:
            return min(here, shape.nbytes)
        column = max(left * window.columns.stride - window.columns.before, 0)
        below = max(top + first.stride, 0) * shape.row_bytes
        return min(here + min(column, shape.columns) * shape.column_bytes, below, shape.nbytes)


@dataclass(frozen=True)
class StageOperator:
    """An operator of a stage: what it reads, what it makes, and the columns that it computes at a time."""

    number: int
    uses: tuple[OperandUse, ...]
    results: tuple[tuple[int, int, MapShape], ...]
    by_rows: bool
    width: int

    @cached_property
    def shape(self) -> MapShape:
        """The rows of the first result."""
        return self.results[0][2] if self.results else _NO_RESULT

    def next_granule(self, row: int, left: int) -> Granule:
        """What is computed when column `left` of a row is next."""
        if not self.by_rows:
            return Granule(self.number, 0, self.shape.rows, 0, self.shape.columns)
        right = min(left + self.width, self.shape.columns)
        return Granule(self.number, row, 1, left, right)


@dataclass
class StagePace:
    """How far each operator of a stage has come, and each of its values, while its granules are put in order."""

    operators: Mapping[int, StageOperator]
    producers: Mapping[int, int]
    available: dict[int, int]
    at: dict[int, tuple[int, int]]

    def done(self, number: int) -> bool:
        """Whether an operator has computed all of its rows."""
        return self.at[number][0] >= self.operators[number].shape.rows

    def advance(self, number: int) -> Iterator[Granule]:
        """The next granule of an operator, and before it those that make what it reads."""
        pending = [self._awaited(number)]
        while pending:
            operator, granule, missing = pending[-1]
            while missing and self.available[missing[-1][0]] >= missing[-1][1]:
                missing.pop()
            if missing:
                pending.append(self._awaited(self.producers[missing[-1][0]]))
                continue
            yield granule
            pending.pop()
            wraps = granule.right == operator.shape.columns
            row, left = (granule.row + granule.rows, 0) if wraps else (granule.row, granule.right)
            self.at[operator.number] = row, left
            for value, _, shape in operator.results:
                self.available[value] = row * shape.row_bytes + left * shape.column_bytes

    def _awaited(self, number: int) -> tuple[StageOperator, Granule, list[tuple[int, int]]]:
        """An operator, its next granule, and how many bytes of which values that waits for, the last first."""
        operator = self.operators[number]
        granule = operator.next_granule(*self.at[number])
        return operator, granule, [(use.value, use.bytes_for(granule)) for use in reversed(operator.uses)]


def stage_operators(rows: RowGraph, numbers: Iterable[int], parts: int, *, backward: bool) -> dict[int, StageOperator]:
    """The operators of a stage; each row is computed in `parts` parts at most, where an operator's kernel can.

    With no parts an operator computes all of its rows at a time. The number CALLER is an operator too, which makes the
    first input of the graph. A stage that runs `backward` counts rows, columns and bytes from the end.
    """
    operators = {}
    for number in numbers:
        if number == CALLER:
            tensor = rows.graph.inputs[0]
            shape = rows.shape(tensor)
            width = -(-shape.columns // max(parts, 1))
            operators[number] = StageOperator(number, (), ((rows.value_of[tensor], tensor, shape),), True, width)
            continue
        facts, op = rows.operators[number], rows.graph.ops[number]
        results = tuple((rows.value_of[t], t, _made_rows(rows, number, t)) for t in op.writes)
        shape = results[0][2] if results else _NO_RESULT
        uses = tuple(
            OperandUse(rows.value_of[t], t, rows.shape(t), w.mirrored(rows.shape(t), shape) if w and backward else w)
            for t, w in zip(facts.operands, facts.windows, strict=True)
        )
        narrow = facts.by_rows and facts.one_kernel and all(w is not None and w.columns for w in facts.windows)
        width = -(-shape.columns // parts) if parts > 1 and narrow and len(results) == 1 else shape.columns
        operators[number] = StageOperator(number, uses, results, facts.by_rows and parts > 0, facts.width or width)
    return operators


def _made_rows(rows: RowGraph, number: int, tensor: int) -> MapShape:
    """What an operator makes of a result at a time: all where it runs whole, whole rows of several results."""
    shape = rows.made_shape(number, tensor)
    if not rows.operators[number].by_rows:
        return MapShape(1, 1, shape.nbytes)
    return shape if len(rows.graph.ops[number].writes) == 1 else MapShape(shape.rows, 1, shape.row_bytes)


def stage_granules(rows: RowGraph, operators: Mapping[int, StageOperator], held: Collection[int]) -> Iterator[Granule]:
    """All granules of a stage in order: of the results that nobody in the stage reads, the least complete is next.

    Rows of the caller that nobody reads are left out, but for values that are `held` for later stages.
    """
    producers = {value: n for n, operator in operators.items() for value, _, _ in operator.results}
    read = {use.value for operator in operators.values() for use in operator.uses}
    available = {value: rows.values[value].nbytes for value in read} | dict.fromkeys(producers, 0)
    pace = StagePace(operators, producers, available, dict.fromkeys(operators, (0, 0)))
    last = [n for n, o in operators.items() if n != CALLER and not any(v in read for v, _, _ in o.results)]
    while waiting := [n for n in last if not pace.done(n)]:
        yield from pace.advance(min(waiting, key=lambda n: pace.at[n][0] / operators[n].shape.rows))
    for number in operators:
        wanted = number != CALLER or operators[number].results[0][0] in held
        while wanted and not pace.done(number):
            yield from pace.advance(number)

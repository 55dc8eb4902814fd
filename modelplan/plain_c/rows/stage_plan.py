"""A graph in stages, as ticks: each computes some of a row or moves what is kept of a value that slides."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from modelplan.model.c_program import StageChoice
from modelplan.plain_c.rows.row_graph import RowGraph
from modelplan.plain_c.rows.scheduling import (
    CALLER,
    Granule,
    OperandUse,
    StageOperator,
    stage_granules,
    stage_operators,
)
from modelplan.rewriting.stripes.ladder import never_interrupt


@dataclass(frozen=True)
class StageGranules:
    """A stage, whose granules come in an order. `dying` are values from before that only this stage still reads.

    `inner` are values that it makes and nobody else reads, `held` those that it makes for later, `passing` the bytes
    of all others that live through it.
    """

    choice: StageChoice
    rows: RowGraph
    operators: Mapping[int, StageOperator]
    inner: frozenset[int]
    held: frozenset[int]
    dying: frozenset[int]
    passing: int

    @property
    def granules(self) -> Iterator[Granule]:
        """The granules in order."""
        return stage_granules(self.rows, self.operators, self.held)

    @cached_property
    def readers(self) -> dict[int, list[tuple[int, OperandUse]]]:
        """Who reads each value, and how."""
        readers: dict[int, list[tuple[int, OperandUse]]] = {}
        for number, operator in self.operators.items():
            for use in operator.uses:
                readers.setdefault(use.value, []).append((number, use))
        return readers

    def touched(self, number: int) -> frozenset[int]:
        """The values of which an operator may end the use of bytes, with each of its granules."""
        operator = self.operators[number]
        unread = {value for value, _, _ in operator.results if value in self.inner and value not in self.readers}
        return (self.inner | self.dying) & {use.value for use in operator.uses} | unread


@dataclass
class StageProgress:
    """Which bytes of each value of a stage are there and are still read, granule by granule."""

    stage: StageGranules
    nbytes: Sequence[int]
    at: dict[int, tuple[int, int]] = field(default_factory=dict)
    end: dict[int, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.at = dict.fromkeys(self.stage.operators, (0, 0))
        self.end = dict.fromkeys(self.stage.inner | self.stage.held, 0)
        self.end.update((value, self.nbytes[value]) for value in self.stage.dying)

    def finish(self, granule: Granule) -> None:
        """A granule has been computed."""
        operator = self.stage.operators[granule.operator]
        wraps = granule.right == operator.shape.columns
        self.at[granule.operator] = (granule.row + granule.rows, 0) if wraps else (granule.row, granule.right)

    def written(self, granule: Granule) -> Iterator[tuple[int, int, int, int]]:
        """(value, tensor, first byte, end) of what a granule makes, for each result."""
        for value, tensor, shape in self.stage.operators[granule.operator].results:
            first = granule.row * shape.row_bytes + granule.left * shape.column_bytes
            last = (granule.row + granule.rows - 1) * shape.row_bytes + granule.right * shape.column_bytes
            yield value, tensor, first, last

    def kept_from(self, value: int) -> int:
        """The first byte of a value that somebody in the stage still reads; its end where nobody does."""
        first = self.end[value]
        for number, use in self.stage.readers.get(value, ()):
            row, left = self.at[number]
            if row < self.stage.operators[number].shape.rows:
                first = min(first, use.kept_from(row, left))
        return first


@dataclass(frozen=True)
class StagedGraph:
    """What stages of a graph cost: asks for any run of operators, and remembers the answers.

    `pushed`: the caller hands over the rows of the only input, which is never held as a whole unless need be. `check`
    is called for each stage that is looked at, and raises to end a search.
    """

    rows: RowGraph
    pushed: bool = False
    check: Callable[[], None] = never_interrupt
    _loads: dict[StageChoice, tuple[int, bool]] = field(default_factory=dict, init=False)

    @cached_property
    def position(self) -> dict[int, int]:
        """Where each operator stands in the order; the caller stands before all."""
        places = {number: i for i, number in enumerate(self.rows.order)}
        inner = {number: places[last] for last in places for number in self.rows.members(last)}
        return {CALLER: -1, -2: -1} | places | inner

    @cached_property
    def births(self) -> tuple[int, ...]:
        """For each value the position of the operator that makes it."""
        return tuple(self.position[value.producer] for value in self.rows.values)

    @cached_property
    def deaths(self) -> tuple[int, ...]:
        """For each value the position of the last operator that reads it; of results and state that behind all."""
        kept, after = self.rows.kept, len(self.rows.order)
        return tuple(
            after
            if v in kept or value.producer == -2
            else max([self.position[reader] for reader in value.readers], default=self.births[v])
            for v, value in enumerate(self.rows.values)
        )

    @cached_property
    def nbytes(self) -> tuple[int, ...]:
        """The bytes of each value."""
        return tuple(value.nbytes for value in self.rows.values)

    def stage(self, choice: StageChoice) -> StageGranules:
        """A stage with its values."""
        self.check()
        numbers = list(self.rows.order[choice.first : choice.end])
        if self.pushed and not choice.first:
            numbers.insert(0, CALLER)
        operators = stage_operators(self.rows, numbers, choice.parts, backward=choice.backward)
        results = {value for operator in operators.values() for value, _, _ in operator.results}
        later = {v for v in results if self.deaths[v] >= choice.end}
        others = [v for v in range(len(self.nbytes)) if v not in results and self.births[v] < choice.first]
        others = [v for v in others if self.deaths[v] >= choice.first]
        dying = {v for v in others if self.deaths[v] < choice.end}
        return StageGranules(
            choice,
            self.rows,
            operators,
            frozenset(results - later),
            frozenset(later),
            frozenset(dying),
            sum(self.nbytes[v] for v in others if v not in dying),
        )

    @property
    def measured(self) -> int:
        """Of how many stages the load was asked for."""
        return len(self._loads)

    def load(self, choice: StageChoice, most: int) -> int:
        """The most bytes that are alive at a time in a stage; anything above `most` where it is more."""
        known, exact = self._loads.get(choice, (0, False))
        if not exact and known <= most:
            known, exact = self._measured(self.stage(choice), most)
            self._loads[choice] = known, exact
        return known

    def _more(self, number: int) -> int:
        """The bytes of an operator's scratch, less those of operands that may lie in its result."""
        if number == CALLER:
            return 0
        operator = self.rows.operators[number]
        shared = {self.rows.value_of[operator.operands[position]] for position, _ in operator.parts}
        return operator.scratch - sum(self.nbytes[value] for value in shared)

    def _tiles(self, number: int) -> tuple[int, int]:
        """The bytes of an operator's tiles, before its result is there and while it is computed."""
        return self.rows.operators[number].tiles if number != CALLER else (0, 0)

    def _measured(self, stage: StageGranules, most: int) -> tuple[int, bool]:
        progress = StageProgress(stage, self.nbytes)
        kept = dict.fromkeys(progress.end, 0)
        facts = {n: (*self._tiles(n), self._more(n), stage.touched(n)) for n in stage.operators}
        total = peak = stage.passing + sum(progress.end.values())
        for granule in stage.granules:
            before, during, more, touched = facts[granule.operator]
            peak = max(peak, total + before)
            for value, _, _, end in progress.written(granule):
                total += end - progress.end[value]
                progress.end[value] = end
            peak = max(peak, total + more + during)
            if peak > most:
                return peak, False
            progress.finish(granule)
            for value in touched:
                first = progress.kept_from(value)
                total -= max(first - kept[value], 0)
                kept[value] = max(first, kept[value])
        return peak, True

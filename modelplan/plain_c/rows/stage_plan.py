"""A graph whose operators run together in stages, as the core knows it: what a stage needs, and the steps of a plan."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import field
from functools import cached_property

import numpy as np

from modelplan.model import IntArray
from modelplan.model.c_program import StageChoice
from modelplan.plain_c.kernel_records import AxisWindow
from modelplan.plain_c.rows.row_graph import MapShape, MapWindow, OperatorRows, RowGraph
from modelplan.primitives import _core
from modelplan.primitives.lazy_records import dataclass
from modelplan.rewriting.stripes.ladder import never_interrupt

#: The operator that stands for the caller, who hands over rows of the input.
CALLER = -1


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
    def core(self) -> _core.RowGraph:
        """The graph in columns."""
        return row_tables(self)

    @property
    def measured(self) -> int:
        """Of how many stages the load was asked for."""
        return len(self._loads)

    def load(self, choice: StageChoice, most: int) -> int:
        """The most bytes that are alive at a time in a stage; anything above `most` where it is more."""
        known, exact = self._loads.get(choice, (0, False))
        if not exact and known <= most:
            self.check()
            known, exact = self.core.load(choice.first, choice.end, choice.parts, choice.backward, most)
            self._loads[choice] = known, exact
        return known

    def height(self, choice: StageChoice, tries: int, seed: int = 0, enough: int | None = None) -> int:
        """What a stage needs by itself: its values packed in so many tries, and the bytes of those that pass through.

        `enough` are bytes that end the search.

        Raises:
            KeyboardInterrupt: Ctrl-C during the search.
        """
        self.check()
        bounds = choice.first, choice.end, choice.parts, choice.backward
        height, ended = self.core.height(*bounds, tries, enough or 0, seed)
        if ended == "cancelled":
            raise KeyboardInterrupt
        return height

    def plan(self, choices: Sequence[StageChoice]) -> _core.RowPlan:
        """The steps of these stages, with addresses that count from the base of each value."""
        self.check()
        return self.core.plan(_table([(c.first, c.end, c.parts, c.backward) for c in choices], 4))


def row_tables(graph: StagedGraph) -> _core.RowGraph:
    """The tables by which the core knows a graph."""
    rows = graph.rows
    operators, operands, results, parts, in_place, members = (list[tuple[int, ...]]() for _ in range(6))
    for i, number in enumerate(rows.order):
        facts = rows.operators[number]
        own_results = [_result(rows, number, tensor) for tensor in rows.graph.ops[number].writes]
        narrow = facts.by_rows and facts.one_kernel and len(own_results) == 1
        narrow = narrow and all(window is not None and window.columns for window in facts.windows)
        bits = facts.by_rows, narrow, False, facts.one_kernel, facts.in_order
        operators.append((number, facts.width, *bits, facts.scratch, *facts.tiles))
        operands += [(i, -1, *row) for row in _operands(rows, facts)]
        results += [(i, -1, *row) for row in own_results]
        parts += [(i, position, offset) for position, offset in facts.parts]
        in_place += [(i, position) for position in facts.in_place]
        for k, (member, own) in enumerate(rows.chains.get(number, ())):
            members.append((i, member))
            operands += [(i, k, *row) for row in _operands(rows, own)]
            results += [(i, k, *_result(rows, member, tensor)) for tensor in rows.graph.ops[member].writes]
    if graph.pushed:
        tensor, place = rows.graph.inputs[0], len(rows.order)
        operators.append((CALLER, 0, True, False, True, True, True, 0, 0, 0))
        shape = _numbers(rows.shape(tensor))
        results.append((place, -1, tensor, rows.value_of[tensor], *shape, *shape))
    return _core.RowGraph(
        _values(graph),
        _table(operators, 10),
        _table(operands, 15),
        _table(results, 10),
        _table(parts, 3),
        _table(in_place, 2),
        _table(members, 2),
        len(rows.order),
        graph.pushed,
    )


def _values(graph: StagedGraph) -> IntArray:
    """Of each value bytes, alignment, the operators that make it and read it last, and whose it is."""
    rows, position, after = graph.rows, graph.position, len(graph.rows.order)
    table = []
    for v, value in enumerate(rows.values):
        fed, state, kept = value.producer == -1, value.producer == -2, v in rows.kept
        birth = position[value.producer]
        death = max([position[reader] for reader in value.readers], default=birth)
        table.append((value.nbytes, value.alignment, birth, after if kept or state else death, fed, state, kept))
    return _table(table, 7)


def _operands(rows: RowGraph, facts: OperatorRows) -> Iterable[tuple[int, ...]]:
    for tensor, window in zip(facts.operands, facts.windows, strict=True):
        yield tensor, rows.value_of[tensor], *_numbers(rows.shape(tensor)), window is None, *_window(window)


def _window(window: MapWindow | None) -> tuple[int, ...]:
    """Whether it has columns, then its rows and columns."""
    high = window.rows if window else AxisWindow()
    wide = window.columns if window and window.columns else AxisWindow()
    by_columns = bool(window and window.columns)
    return by_columns, high.reach, high.stride, high.before, wide.reach, wide.stride, wide.before


def _result(rows: RowGraph, number: int, tensor: int) -> tuple[int, ...]:
    """A result and what an operator makes of it at a time: all where it runs whole, whole rows of several results."""
    shape = whole = rows.made_shape(number, tensor)
    if not rows.operators[number].by_rows:
        shape = MapShape(1, 1, whole.nbytes)
    elif len(rows.graph.ops[number].writes) != 1:
        shape = MapShape(whole.rows, 1, whole.row_bytes)
    return tensor, rows.value_of[tensor], *_numbers(shape), *_numbers(whole)


def _numbers(shape: MapShape) -> tuple[int, int, int]:
    return shape.rows, shape.columns, shape.column_bytes


def _table(rows: Sequence[tuple[int, ...]], width: int) -> IntArray:
    return np.array(rows, dtype=np.int64).reshape(-1, width)

"""Another order of the operators where branches meet: each branch as a whole, those with small results first."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from modelplan.plain_c.rows.row_graph import RowGraph


def branch_by_branch(rows: RowGraph) -> RowGraph:
    """The graph in an order in which no branch begins before another one is through, and the smallest result waits.

    It is the same graph where that order is its own, or where variables are read and assigned.
    """
    makers = {number: _makers(rows, number) for number in rows.order}
    place = {number: i for i, number in enumerate(rows.order)}
    read, order = set[int]().union(*makers.values()), dict[int, None]()

    def last_first(numbers: Iterable[int]) -> list[int]:
        return sorted(numbers, key=lambda n: (_result_bytes(rows, n), place[n]), reverse=True)

    waiting = last_first(number for number in rows.order if number not in read)
    while waiting:
        if before := last_first(makers[waiting[-1]] - order.keys()):
            waiting += before
        else:
            order[waiting.pop()] = None
    same = tuple(order) == rows.order or not can_run_in(rows, tuple(order))
    return rows if same else rows_in_order(rows, tuple(order))


def can_run_in(rows: RowGraph, order: Sequence[int]) -> bool:
    """Whether an order has every operator, behind those that make what it reads, and no variable sees it."""
    if sorted(order) != sorted(rows.order) or any(value.producer == -2 for value in rows.values):
        return False
    if any(rows.operators[n].alone or not rows.graph.ops[n].writes for n in order):
        return False
    place = {number: i for i, number in enumerate(order)}
    return all(place[maker] < place[number] for number in order for maker in _makers(rows, number))


def rows_in_order(rows: RowGraph, order: Sequence[int]) -> RowGraph:
    """The graph whose operators run in another order."""
    place = {number: i for i, number in enumerate(order)}
    values = (replace(v, readers=tuple(sorted(v.readers, key=place.__getitem__))) for v in rows.values)
    return replace(rows, order=tuple(order), values=tuple(values), other_order=tuple(order))


def _makers(rows: RowGraph, number: int) -> set[int]:
    """The operators that make what an operator reads."""
    values = (rows.values[rows.value_of[tensor]] for tensor in rows.operators[number].operands)
    return {value.producer for value in values if value.producer in rows.operators}


def _result_bytes(rows: RowGraph, number: int) -> int:
    return sum(rows.graph.tensors[tensor].nbytes for tensor in rows.graph.ops[number].writes)

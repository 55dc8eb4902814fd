"""Layers that all formats have, and the choice of the rule by which the rows of an operator are taken."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeVar

from modelplan.model import Op
from modelplan.ops.op_facts import OpFacts, RowRule
from modelplan.rewriting.stripes.windows import Layer

#: What a format's rules read: a graph, or a graph with more of its file.
Source = TypeVar("Source")


def layer_by_facts(
    rules: Mapping[RowRule, Callable[[Source, Op, int], Layer | str]], row: OpFacts, source: Source, op: Op, axis: int
) -> Layer | str:
    """How the rows of an operator depend on those of its operands by the rule of its facts, or why it is not split."""
    return rules[row.rows](source, op, axis) if row.rows else row.unsplit.format(kind=op.kind)


def pointwise(rows: int, operands: tuple[int, ...], axes: tuple[int, ...] = (), macs: int = 0) -> Layer:
    """Each row of the output from the same row of each of these operands."""
    return Layer("pointwise", operands, rows, rows, macs, axes=axes)


def enlarged(rows_in: int, rows_out: int, *, linear: bool, axes: tuple[int, ...] = ()) -> Layer | str:
    """A map that is resized by nearest neighbours or linearly, or why that is not done in stripes.

    Where it grows by a power of two, positions between rows are exact numbers, so those of a stripe are the same.
    """
    factor, rest = divmod(rows_out, rows_in)
    if rest or factor < 1 or factor & (factor - 1):
        return f"{rows_out} rows are not {rows_in} times a power of two"
    if linear:
        return Layer("grow", (0,), rows_in, rows_out, 0, 3 * factor, factor, factor, own=True, axes=axes)
    return Layer("grow", (0,), rows_in, rows_out, 0, factor, factor, own=True, axes=axes)


def same_padding(rows: int, computed: int, reach: int, stride: int) -> int:
    """Rows that the padding SAME adds on both sides together, where windows make `computed` rows of so many."""
    return max((computed - 1) * stride + reach - rows, 0)

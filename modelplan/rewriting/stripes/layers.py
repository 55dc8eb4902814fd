"""The facts that stripes need of each operator, and layers that all formats have."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Generic, TypeVar

from modelplan.model import Op
from modelplan.rewriting.stripes.windows import Layer

#: What a format's rules read: a graph, or a graph with more of its file.
Source = TypeVar("Source")


@dataclass(frozen=True, slots=True)
class RowFacts(Generic[Source]):
    """What stripes need to know of an operator.

    `rule` says how its rows along an axis depend on those of its operands, or why they do not; without a rule `reason`
    says why it is not split. `any_values`: its kernel runs alike whatever rows hold that no result depends on, since it
    does not divide, take a root or round a float. `fused`: the runtime may compute it inside of a neighbour's kernel.
    """

    rule: Callable[[Source, Op, int], Layer | str] | None = None
    any_values: bool = False
    fused: bool = False
    reason: str = ""


def layer_by_facts(rows: Mapping[str, RowFacts[Source]], source: Source, op: Op, axis: int) -> Layer | str:
    """How the rows of an operator depend on those of its operands by a table of facts, or why it is not split."""
    facts = rows.get(op.kind)
    if facts is None or facts.rule is None:
        return (facts and facts.reason) or f"{op.kind} is not computed row by row"
    return facts.rule(source, op, axis)


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


def same_padding(rows: int, made: int, reach: int, stride: int) -> int:
    """Rows that the padding SAME adds on both sides together, where windows make `made` rows of so many."""
    return max((made - 1) * stride + reach - rows, 0)

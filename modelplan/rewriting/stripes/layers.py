"""Layers that all formats have: what the rows of an operator read, by its access map.

A format's own rules say which of them its writer takes, and why not the others.
"""

from collections.abc import Callable, Mapping
from typing import TypeVar

from modelplan.model import Graph, Kind, Op
from modelplan.ops import access_of
from modelplan.ops.access.rows import ALIKE, RowSpan, row_span
from modelplan.ops.access.spans import Span
from modelplan.ops.op_facts import OpFacts, RowRule
from modelplan.ops.run_costs import op_macs
from modelplan.rewriting.stripes.row_windows import Layer

#: What a format's rules read: a graph, or a graph with more of its file.
Source = TypeVar("Source")


def layer_by_facts(
    rules: Mapping[RowRule, Callable[[Source, Op, int], Layer | str]], row: OpFacts, source: Source, op: Op, axis: int
) -> Layer | str:
    """How the rows of an operator depend on those of its operands by the rule of its facts, or why it is not split."""
    return rules[row.rows](source, op, axis) if row.rows else row.unsplit.format(kind=op.kind)


def row_spans(graph: Graph, op: Op, axis: int) -> dict[int, RowSpan] | None:
    """What rows of the result along an axis read of each operand that the access map names, by its position.

    None where there is no map, or rows of an operand are not read run after run.
    """
    return graph.memoised_of(op, ("row spans", axis), lambda: _row_spans(graph, op, axis))


def _row_spans(graph: Graph, op: Op, axis: int) -> dict[int, RowSpan] | None:
    access = access_of(graph, op)
    if access is None:
        return None
    result, spans = graph.tensors[op.outputs[0]].shape, dict[int, RowSpan]()
    for reads in access.reads:
        span = row_span(reads, result, graph.tensors[op.inputs[reads.operand]].shape, axis)
        if span is None:
            return None
        spans[reads.operand] = span
    return spans


def window_margins(graph: Graph, op: Op, axis: int) -> tuple[int, int]:
    """How many places windows along an axis of a map, operand 0, read before it and behind it."""
    span = (row_spans(graph, op, axis) or {}).get(0, ALIKE).span
    extent, results = (graph.tensors[t].shape[axis] for t in (op.inputs[0], op.outputs[0]))
    return -span.lo, max((results - 1) * span.mul + span.hi + 1 - extent, 0)


def layer_by_map(graph: Graph, op: Op, axis: int) -> Layer | None:
    """How rows of the result along an axis depend on those of the operands of which not all rows read the same.

    None where the access map does not tell, or operands are not read alike.
    """
    spans = row_spans(graph, op, axis)
    extent = graph.tensors[op.outputs[0]].shape[axis]
    alike = {at for at in spans or {} if extent == 1 and graph.tensors[op.inputs[at]].kind is Kind.CONSTANT}
    rowed = {at: span for at, span in (spans or {}).items() if span != ALIKE and at not in alike}
    if spans is None or len({span.span for span in rowed.values()}) > 1:
        return None
    macs = op_macs(graph, op) // extent
    if not rowed:
        return Layer("pointwise", (), extent, extent, macs)
    (first, where), *_ = rowed.items()
    rows, span = graph.tensors[op.inputs[first]].shape[where.axis], where.span
    given = tuple(rowed), rows, extent, macs
    axes = tuple(place.axis for place in rowed.values())
    if span == Span(0) and rows == extent:
        return Layer("pointwise", *given, axes=axes)
    if span.table or span.clamp or span.mul < 1:
        return None
    if span.div == 1:
        return Layer("window", *given, span.hi - span.lo + 1, span.mul, -span.lo, axes=axes)
    reach = span.hi - span.lo + span.div
    return Layer("grow", *given, reach, span.div, span.hi, own=extent == rows * span.div, axes=axes)


def pointwise(rows: int, operands: tuple[int, ...], axes: tuple[int, ...] = ()) -> Layer:
    """Each row of the output from the same row of each of these operands."""
    return Layer("pointwise", operands, rows, rows, axes=axes)


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

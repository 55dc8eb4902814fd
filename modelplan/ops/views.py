"""Where the result of an operator stands in the bytes of an operand, by its access map."""

from modelplan.model import Graph, Op
from modelplan.ops import access_of, facts
from modelplan.ops.access import other_extents
from modelplan.ops.conditions import both, unchanged
from modelplan.primitives.number_types import BITS


def view_start(graph: Graph, op: Op) -> int | None:
    """The byte of an operand, which the row names as `view` or else is operand 0, at which output 0 stands in it.

    None where the result is not there as it is: its elements are others or stand apart, its type or its scale changes.
    """
    row = facts(graph.format, op.kind)
    if row.view is not None:
        return 0 if row.view_if is None or row.view_if(graph, op) else None
    pair = both(graph, op)
    if not row.may_be_view or pair is None or not unchanged(op) or (row.group == "join" and len(op.inputs) != 1):
        return None
    access = access_of(graph, op)
    start = other_extents.view_start(access, 0) if access else None
    if start is None:
        return None
    whole, rest = divmod(start * BITS.get(pair[0].dtype, 0), 8)
    return whole if not rest else None

"""Multiply-accumulates of convolutions and matrix products."""

from __future__ import annotations

from math import prod

from modelplan.model import Graph, Op
from modelplan.ops import access_of, facts
from modelplan.ops.access.counting import element_products


def element_macs(graph: Graph, op: Op) -> int:
    """Multiply-accumulates of one element of output 0; 0 for what is not a convolution or matrix product."""
    count = facts(graph.format, op.kind).macs
    if count is not None:
        return count(graph, op)
    access = access_of(graph, op)
    return element_products(access) if access else 0


def op_macs(graph: Graph, op: Op) -> int:
    """Multiply-accumulates of an operator; 0 for those that are not convolutions or matrix products."""
    if not op.writes:
        return 0
    return graph.memoised_of(op, "macs", lambda: prod(graph.tensors[op.outputs[0]].shape) * element_macs(graph, op))


def graph_macs(graph: Graph) -> int:
    """Multiply-accumulates of the convolutions and matrix products of one run of a graph.

    Recurrent cells that are one operator and the bodies of control operators count none.
    """
    return sum(op_macs(graph, op) for op in graph.ops)

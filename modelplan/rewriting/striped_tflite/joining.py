"""Joins whose parts are made where they belong in the result: no copy, and nothing is there twice.

conv -> RESHAPE -> |            |0..........|1152...|        rows of the result, one part behind the other
conv -> RESHAPE -> | joined     |conv       |conv   |        and where each convolution writes
"""

from dataclasses import replace
from math import prod
from typing import NamedTuple

from modelplan.model import Graph, Kind, Op
from modelplan.ops.conditions import number
from modelplan.ops.op_facts import TFLITE_RESHAPES
from modelplan.rewriting.striped_tflite.folded_convolutions import Folded
from modelplan.rewriting.striped_tflite.steps import JOINS

#: The attribute of a join whose parts lie in their places.
_IN_PLACE = "parts in place"


class JoinedPart(NamedTuple):
    """The tensor that a part lies in, its byte there, and the operator that joins it."""

    whole: int
    byte: int
    op: int


def with_joins(whole: Folded) -> Folded:
    """The graph in which parts of joins lie in their places, where these are runs of bytes; the same if there are none.

    The kernels of TFLM then copy each part onto itself, with one memcpy, or PACK element by element.
    Source: concatenation.h and pack.cc of tflite-micro.
    """
    ops = tuple(replace(op, attributes=(*op.attributes, (_IN_PLACE, 1))) if _joins_runs(whole.graph, op) else op
                for op in whole.graph.ops)  # fmt: skip
    graph = replace(whole.graph, ops=ops)
    return replace(whole, graph=graph) if joined_parts(graph) else whole


def _joins_runs(graph: Graph, op: Op) -> bool:
    """Whether a join puts the bytes of its parts one behind the other, unchanged."""
    if op.kind not in JOINS or op.attribute("fused_activation_function") or op.attribute("requantises"):
        return False
    shape = graph.tensors[op.outputs[0]].shape
    outer = prod(shape[: number(op, "axis", 0) % len(shape)]) if shape else 0
    return outer == 1 and all(graph.tensors[t].kind is Kind.ACTIVATION for t in op.inputs)


def joined_parts(graph: Graph) -> dict[int, JoinedPart]:
    """The tensors that are made where they belong in another one."""
    places: dict[int, JoinedPart] = {}
    for index in reversed(range(len(graph.ops))):
        op = graph.ops[index]
        if not op.attribute(_IN_PLACE):
            continue
        whole, at, _ = places.get(op.outputs[0], JoinedPart(op.outputs[0], 0, index))
        for t in op.inputs:
            part = source_of(graph, t)
            if graph.producers[part] >= 0 and part not in places and part != whole:
                places[part] = JoinedPart(whole, at, index)
            at += graph.tensors[t].nbytes
    return places


def source_of(graph: Graph, t: int) -> int:
    """The tensor that a tensor is a view of, or itself."""
    return graph.memoised("sources of views", lambda: _sources(graph))[t]


def _sources(graph: Graph) -> list[int]:
    sources = list(range(len(graph.tensors)))
    for op in graph.ops:
        if op.kind in TFLITE_RESHAPES and op.outputs:
            sources[op.outputs[0]] = sources[op.inputs[0]]
    return sources

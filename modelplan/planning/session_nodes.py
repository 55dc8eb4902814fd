"""The nodes that a session of ONNX Runtime runs at optimization level off, and their order.

Source: onnxruntime, core/graph/graph.cc ReverseDFSFrom, and, which sessions carry out at every level,
core/optimizer/qdq_transformer/ensure_unique_dq_for_node_unit.cc.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType

from modelplan.model import Graph

#: Tensors of which a session does not know the graph's numbers: extents with symbols, or () where some are unknown.
Extents = Mapping[int, tuple[int | str, ...]]
#: It knows all as numbers.
NUMBERS: Extents = MappingProxyType({})


def depth_first(sources: Sequence[Sequence[int]]) -> list[int]:
    """ONNX Runtime's default order of nodes, given by what each reads: from the last back, the latest first."""
    read = {source for node_sources in sources for source in node_sources}
    pending = [(place, False) for place in range(len(sources)) if place not in read]
    seen: set[int] = set()
    order = []
    while pending:
        place, left = pending.pop()
        if left:
            order.append(place)
        elif place not in seen:
            seen.add(place)
            pending.append((place, True))
            pending += [(source, False) for source in sorted(set(sources[place])) if source not in seen]
    return order


def session_order(graph: Graph) -> list[int]:
    """The order in which a session runs the operators."""
    producers = graph.producers
    return depth_first([[producers[t] for t in op.reads if producers[t] >= 0] for op in graph.ops])


def with_own_dequantised(graph: Graph, extents: Extents = NUMBERS) -> tuple[Graph, Extents]:
    """The graph as a session has it, where each operand reads a DequantizeLinear of its own, and its `extents`.

    The first operand that reads one keeps it, unless it makes an output of the model; copies stand behind all others.
    """
    ops, tensors, known = list(graph.ops), list(graph.tensors), dict(extents)
    for index in session_order(graph):
        op = ops[index]
        if not op.kind.endswith("DequantizeLinear"):
            continue
        [floats] = op.outputs
        edges = [
            (reader, place)
            for reader in graph.readers[floats]
            for place, t in enumerate(ops[reader].inputs)
            if t == floats
        ]
        for copy, (reader, place) in enumerate(edges[floats not in graph.outputs :], 1):
            tensors.append(replace(tensors[floats], name=f"{tensors[floats].name}/{copy}"))
            if floats in known:
                known[len(tensors) - 1] = known[floats]
            inputs = list(ops[reader].inputs)
            inputs[place] = len(tensors) - 1
            ops[reader] = replace(ops[reader], inputs=tuple(inputs))
            ops.append(replace(op, name=f"{op.name}/{copy}", outputs=(len(tensors) - 1,)))
    return replace(graph, tensors=tuple(tensors), ops=tuple(ops)), known

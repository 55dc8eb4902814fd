"""Which tensors may share memory: storage classes from the graph and the rules that are asked for."""

from __future__ import annotations

from modelplan.errors import RequestError
from modelplan.ops import facts
from modelplan.types import Aliases, Graph, Kind, Member, Merge

MODES = {
    "none": "every tensor has bytes of its own",
    "views": "operators that leave the bytes as they are share their input's memory",
}


def storages(graph: Graph, mode: str = "views") -> Aliases:
    """The storage classes of every tensor that needs memory, and the merges that made them.

    Raises:
        RequestError: unknown mode; the message lists the modes.

    Cost: O(tensors + ops).
    """
    if mode not in MODES:
        raise RequestError(f"no alias mode {mode!r}; there are: {', '.join(MODES)}")
    root = list(range(len(graph.tensors)))
    merges = tuple(_views(graph, root)) if mode == "views" else ()
    classes: dict[int, list[Member]] = {}
    for t in planned(graph):
        classes.setdefault(root[t], []).append(Member(t))
    return Aliases(tuple(map(tuple, classes.values())), merges)


def planned(graph: Graph) -> list[int]:
    """The tensors that need memory at run time: inputs, state, and whatever an op writes or is lent to work in."""
    state = {t for t, tensor in enumerate(graph.tensors) if tensor.kind is Kind.STATE}
    written = {t for op in graph.ops for t in op.writes}
    read = {t for op in graph.ops for t in op.reads}
    fed = {t for t in {*graph.inputs, *read} if graph.tensors[t].kind is not Kind.CONSTANT}
    return sorted(state | written | fed)


def _views(graph: Graph, root: list[int]) -> list[Merge]:
    """Points `root` of each view at the class of its source; walks producers before readers."""
    merges = []
    for index in _topological(graph):
        op = graph.ops[index]
        operand = facts(graph.format, op.kind).view
        if operand is None or not op.outputs or op.outputs[0] < 0 or op.inputs[operand] < 0:
            continue
        source, view = op.inputs[operand], op.outputs[0]
        kinds = {graph.tensors[source].kind, graph.tensors[view].kind}
        saved = graph.tensors[view].nbytes
        if kinds == {Kind.ACTIVATION} and graph.tensors[source].nbytes == saved:
            root[view] = root[source]
            merges.append(Merge(view, source, index, f"view: {op.kind} leaves the bytes as they are", saved))
    return merges


def _topological(graph: Graph) -> list[int]:
    import networkx as nx

    return list(nx.lexicographical_topological_sort(graph.dag))

"""Writes the operators of a model file in another order; nothing else of the file changes."""

import heapq
from collections.abc import Sequence

from modelplan.formats.onnx import protobuf
from modelplan.formats.tflite import flatbuffer
from modelplan.formats.tflite.tflite_tables import get_metadata
from modelplan.model import Graph, Op
from modelplan.planning.matching.matching import rising
from modelplan.primitives.errors import BrokenPlanError, RequestError
from modelplan.runtimes.tflm.planner import METADATA


def reordered(model: bytes, graph: Graph, order: Sequence[int]) -> bytes:
    """The file `model`, from which `graph` was loaded, with its operators in `order`.

    A .tflite keeps all its bytes but the offsets of the operator vector, which trade places; in an .onnx the
    nodes do. Nodes that the graph folded into constants come as early as they can.

    Raises:
        RequestError: the model carries an offline memory plan, which holds for its present order only; or it calls
            subgraphs; or nothing here writes its format.
        ValueError: `order` is not a permutation of the graph's ops, or breaks `file_precedences`.
    """
    if sorted(order) != list(range(len(graph.ops))):
        raise ValueError(f"an order of {len(order)} ops, expected a permutation of {len(graph.ops)}")
    if list(order) == sorted(order):
        return model
    if graph.format == "onnx":
        return protobuf.reorder_nodes(model, _node_order(protobuf.nodes(model), graph, order))
    if graph.format != "tflite":
        raise RequestError(f"{graph.name}: models of the format {graph.format!r} are not written in another order")
    if flatbuffer.operator_count(model) != len(order):
        raise RequestError(f"{graph.name}: subgraphs stand in place of CALL, so their operators are not in one list")
    if get_metadata(model, METADATA) is not None:
        raise RequestError(
            f"{graph.name} carries a memory plan ({METADATA}) made for its present order;"
            " reorder the model without it, then `modelplan fit --only plan` the result"
        )
    return flatbuffer.reorder_operators(model, order)


def check_same(before: Graph, after: Graph, order: Sequence[int]) -> None:
    """Checks that `after` is `before` with its ops in `order`."""
    for step, index in enumerate(order):
        old, new = before.ops[index], after.ops[step] if step < len(after.ops) else None
        if new is None or _described(before, old) != _described(after, new):
            raise BrokenPlanError(f"step {step} of the reordered model is not {before.label(index)}")
    for where in ("inputs", "outputs"):
        if _named(before, getattr(before, where)) != _named(after, getattr(after, where)):
            raise BrokenPlanError(f"the {where} of the reordered model are not those of the model")
    if len(before.ops) != len(after.ops) or sorted(map(repr, before.tensors)) != sorted(map(repr, after.tensors)):
        raise BrokenPlanError("the reordered model has other tensors or operators than the model")


def moved(order: Sequence[int]) -> tuple[int, ...]:
    """A smallest set of ops whose moves turn file order into `order`, ascending.

    Cost: O(n log n), by the longest rising subsequence.
    """
    return tuple(sorted(set(order) - {order[place] for place in rising(order)}))


def _named(graph: Graph, tensors: Sequence[int]) -> list[str]:
    return [repr(graph.tensors[t]) if t >= 0 else "" for t in tensors]


def _described(graph: Graph, op: Op) -> tuple[object, ...]:
    return (op.name, op.kind, op.version, op.attributes, _named(graph, op.inputs), _named(graph, op.outputs))


def file_precedences(model: bytes, graph: Graph) -> tuple[tuple[int, int], ...]:
    """Pairs (before, after) of ops that the file orders although the graph does not.

    An ONNX node that was folded into a constant may still read another node's result, such as for its shape. The
    readers of the constant must then come after that other node.
    """
    if graph.format != "onnx":
        return ()
    nodes = protobuf.nodes(model)
    op_of, producer = _ops_of_nodes(nodes, graph), _producers(nodes)
    behind: dict[int, set[int]] = {}  # the ops that a folded node leads back to
    pairs = set()
    for number, node in enumerate(nodes):
        sources = {producer[name] for name in node.reads if name in producer}
        through = set().union(*(behind[s] for s in sources if s in behind))
        if number in op_of:
            pairs |= {(before, op_of[number]) for before in through}
        else:
            behind[number] = through | {op_of[s] for s in sources if s in op_of}
    return tuple(sorted(pairs))


def _producers(nodes: Sequence[protobuf.Node]) -> dict[str, int]:
    return {name: number for number, node in enumerate(nodes) for name in node.writes if name}


def _ops_of_nodes(nodes: Sequence[protobuf.Node], graph: Graph) -> dict[int, int]:
    """The op behind each node that was not folded away."""
    producer, op_of = _producers(nodes), dict[int, int]()
    for index, op in enumerate(graph.ops):
        names = {graph.tensors[t].name for t in op.writes}
        numbers = {producer[name] for name in names if name in producer}
        if len(numbers) != 1 or not op_of.keys().isdisjoint(numbers):
            raise RequestError(f"{graph.label(index)} is not one node of the file, so it cannot be moved alone")
        op_of[numbers.pop()] = index
    return op_of


def _node_order(nodes: Sequence[protobuf.Node], graph: Graph, order: Sequence[int]) -> list[int]:
    """The order of an ONNX file's nodes in which the graph's ops follow `order`, folded nodes as early as they can."""
    op_of, producer = _ops_of_nodes(nodes, graph), _producers(nodes)
    step_of = {op: step for step, op in enumerate(order)}
    rank = [step_of[op_of[number]] if number in op_of else -1 for number in range(len(nodes))]
    waiting: list[int] = []
    readers: list[list[int]] = [[] for _ in nodes]
    for number, node in enumerate(nodes):
        sources = {producer[name] for name in node.reads if name in producer}
        waiting.append(len(sources))
        for source in sources:
            readers[source].append(number)
    ready = [(rank[number], number) for number, count in enumerate(waiting) if not count]
    heapq.heapify(ready)
    computed = []
    while ready:
        _, number = heapq.heappop(ready)
        computed.append(number)
        for reader in readers[number]:
            waiting[reader] -= 1
            if not waiting[reader]:
                heapq.heappush(ready, (rank[reader], reader))
    if [op_of[number] for number in computed if number in op_of] != list(order):
        raise ValueError("the order breaks precedences of the file")
    return computed

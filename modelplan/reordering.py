"""A model file in another order of its operators: the same bytes elsewhere, the same graph up to the order."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence

from modelplan import flatbuffer, protobuf
from modelplan.errors import BrokenPlanError, RequestError
from modelplan.types import Graph, Op

_OFFLINE_PLAN = "OfflineMemoryAllocation"


def reordered(model: bytes, graph: Graph, order: Sequence[int]) -> bytes:
    """The file `model`, from which `graph` was loaded, with its operators in `order`.

    A .tflite keeps all its bytes but the offsets of the operator vector, which trade places; in an .onnx the
    nodes do. Nodes that the graph folded into constants come first.

    Raises:
        RequestError: the model carries an offline memory plan, which holds for its present order only.
        ValueError: `order` is not a permutation of the graph's ops.
    """
    if sorted(order) != list(range(len(graph.ops))):
        raise ValueError(f"an order of {len(order)} ops, expected a permutation of {len(graph.ops)}")
    if list(order) == sorted(order):
        return model
    if graph.format == "onnx":
        return protobuf.reorder_nodes(model, _node_order(protobuf.node_outputs(model), graph, order))
    if flatbuffer.get_metadata(model, _OFFLINE_PLAN) is not None:
        raise RequestError(
            f"{graph.name} carries a memory plan ({_OFFLINE_PLAN}) made for its present order;"
            " reorder the model without it, then `modelplan pack` the result"
        )
    return flatbuffer.reorder_operators(model, order)


def check_same(before: Graph, after: Graph, order: Sequence[int]) -> None:
    """Returns only if `after` is `before` with its ops in `order`.

    Raises:
        BrokenPlanError: names the first difference.
    """
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
    """The fewest ops that must move to turn file order into `order`, ascending.

    Cost: O(n log n), by the longest rising subsequence.
    """
    tails: list[int] = []  # the least last op of a rising subsequence of each length
    lengths = []
    for op in order:
        length = bisect_left(tails, op)
        tails[length : length + 1] = [op]
        lengths.append(length)
    kept: list[int] = []
    wanted = len(tails) - 1
    for op, length in zip(reversed(order), reversed(lengths), strict=True):
        if length == wanted and (not kept or op < kept[-1]):
            kept.append(op)
            wanted -= 1
    return tuple(sorted(set(order) - set(kept)))


def _named(graph: Graph, tensors: Sequence[int]) -> list[str]:
    return [repr(graph.tensors[t]) if t >= 0 else "" for t in tensors]


def _described(graph: Graph, op: Op) -> tuple[object, ...]:
    return (op.name, op.kind, op.version, op.attributes, _named(graph, op.inputs), _named(graph, op.outputs))


def _node_order(outputs: Sequence[tuple[str, ...]], graph: Graph, order: Sequence[int]) -> list[int]:
    """The order of an ONNX file's nodes in which the graph's ops follow `order`."""
    producer = {name: node for node, names in enumerate(outputs) for name in names if name}
    step_of: dict[int, int] = {}
    for step, index in enumerate(order):
        names = [graph.tensors[t].name for t in graph.ops[index].writes]
        nodes = {producer[name] for name in names if name in producer}
        if len(nodes) != 1 or not step_of.keys().isdisjoint(nodes):
            raise RequestError(f"{graph.label(index)} is not one node of the file, so it cannot be moved alone")
        step_of[nodes.pop()] = step
    # What the loader folded depends on constants alone, so it may run before everything else.
    folded = [node for node in range(len(outputs)) if node not in step_of]
    return folded + sorted(step_of, key=step_of.__getitem__)

"""The .onnx file of a graph with repeated operators: nodes once more under names of their own, in the plan's order."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from modelplan.model import Graph
from modelplan.primitives.errors import RequestError

if TYPE_CHECKING:
    from onnx import NodeProto


def write_repeated(content: bytes, model: Graph, again: Graph, origins: Sequence[int]) -> bytes:
    """The file whose nodes run as the operators of `again`; weights and all else stay as they are.

    Args:
        content: the model file.
        model: its graph.
        again: the graph with repeated operators.
        origins: for each operator of it that of `model`.

    Raises:
        RequestError: the file is no ONNX file, has bodies, or an operator is no node of the main graph.
    """
    if model.format != "onnx":
        raise RequestError("only .onnx files are written with repeated operators")
    import onnx

    file = onnx.load_model_from_string(content)
    nodes = {tuple(name for name in node.output if name): node for node in file.graph.node}
    if any(op.subgraphs for op in model.ops) or any(a.HasField("g") for n in file.graph.node for a in n.attribute):
        raise RequestError("a file with bodies is not written with repeated operators")
    new_nodes: list[NodeProto] = []
    there = {tensor.name for tensor in file.graph.input} | {tensor.name for tensor in file.graph.initializer} | {""}
    there |= {tensor.values.name for tensor in file.graph.sparse_initializer}
    producers = {name: node for outputs, node in nodes.items() for name in outputs}
    own = {model.tensors[t].name for op in model.ops for t in op.writes}
    for number, (op, origin) in enumerate(zip(again.ops, origins, strict=True)):
        writes = tuple(model.tensors[t].name for t in model.ops[origin].writes)
        if writes not in nodes:
            raise RequestError(f"{model.label(origin)} is no node of the file's main graph, so it is not written again")
        node = onnx.NodeProto()
        node.CopyFrom(nodes[writes])
        renamed = _names(model, model.ops[origin].inputs, again, op.inputs)
        for name in (name for name in node.input if name not in own):
            _add_folded(name, producers, there, new_nodes)
        node.input[:] = [renamed.get(name, name) for name in node.input]
        renamed = _names(model, model.ops[origin].outputs, again, op.outputs)
        if any(name != other for name, other in renamed.items()):
            node.name = f"{node.name or node.op_type}/again{number}"
        node.output[:] = [renamed.get(name, name) for name in node.output]
        there |= set(node.output)
        new_nodes.append(node)
    for name in [output.name for output in file.graph.output]:
        _add_folded(name, producers, there, new_nodes)
    del file.graph.node[:]
    file.graph.node.extend(new_nodes)
    if all(node.domain or onnx.defs.has(node.op_type) for node in file.graph.node):  # else the checker refuses the kind
        onnx.checker.check_model(file)
    written: bytes = file.SerializeToString()
    return written


def _names(model: Graph, tensors: Sequence[int], again: Graph, others: Sequence[int]) -> dict[str, str]:
    """For each name that an operator has in the model the one that it has in the graph with repetitions."""
    pairs = zip(tensors, others, strict=True)
    return {model.tensors[a].name: again.tensors[b].name for a, b in pairs if a >= 0}


def _add_folded(name: str, producers: dict[str, NodeProto], there: set[str], nodes: list[NodeProto]) -> None:
    """Adds the nodes before `name` that the plan does not run, because their results are known before."""
    pending = [name]
    while pending:
        top = pending[-1]
        node = producers.get(top)
        missing = [] if top in there or node is None else [operand for operand in node.input if operand not in there]
        if missing:
            pending += missing
            continue
        pending.pop()
        if top not in there and node is not None:
            nodes.append(node)
            there |= set(node.output)

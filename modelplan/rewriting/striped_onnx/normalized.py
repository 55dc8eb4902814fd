"""Convolutions that ONNX Runtime multiplies with what stands behind them, written so that stripes share the weights.

From level basic on a session folds a BatchNormalization, and a product or a sum with constants, into the weights of the
convolution before it: for each node, so that each stripe would keep weights of its own. The folded weights are taken
from what a session writes, so that outputs stay the same bit by bit.
"""

from __future__ import annotations

from math import prod
from pathlib import Path
from typing import Any

from modelplan.rewriting.striped_onnx.writing import node_reads

#: Operators that a session folds into the convolution before them.
_FOLDED = frozenset({"BatchNormalization", "Mul", "Add"})
#: Bytes of folded weights beyond which the file might become larger than a protobuf can be.
_MOST_BYTES = 1 << 30


def with_folded(proto: Any, optimized: Any, folder: Path) -> Any | None:
    """The file with these convolutions folded as in `optimized`, what a session wrote of it into a folder.

    None where nothing is folded, or where the weights are too large for one file.
    """
    maker = {name: node for node in proto.graph.node for name in node.output if name}
    made = {node.output[0]: node for node in optimized.graph.node if node.op_type == "Conv" and not node.domain}
    chains = {y: chain for y in made if (chain := _chain(maker, y)) is not None}
    own = {tensor.name for tensor in proto.graph.initializer}
    weights = {tensor.name: tensor for tensor in optimized.graph.initializer}
    wanted = {name for y in chains for name in made[y].input[1:]} - own
    if not chains or not wanted <= weights.keys() or sum(map(_size, map(weights.get, wanted))) > _MOST_BYTES:
        return None
    return _replaced(proto, chains, made, [_loaded(weights[name], folder) for name in sorted(wanted)])


def _size(tensor: Any) -> int:
    return 8 * prod(map(int, tensor.dims))


def _loaded(tensor: Any, folder: Path) -> Any:
    """The tensor with its numbers, which may stand in a file of their own."""
    import onnx

    if onnx.external_data_helper.uses_external_data(tensor):
        onnx.external_data_helper.load_external_data_for_tensor(tensor, str(folder))
        tensor.ClearField("data_location")
        del tensor.external_data[:]
    return tensor


def _chain(maker: dict[str, Any], y: str) -> list[Any] | None:
    """The nodes that became the convolution that makes `y`, that convolution first; None where it was one before."""
    chain: list[Any] = []
    node = maker.get(y)
    while node is not None and node.op_type in _FOLDED:
        chain.insert(0, node)
        node = next((maker[x] for x in node.input if x in maker and maker[x].op_type in _FOLDED | {"Conv"}), None)
    return [node, *chain] if chain and node is not None and node.op_type == "Conv" else None


def _replaced(proto: Any, chains: dict[str, list[Any]], made: dict[str, Any], weights: list[Any]) -> Any:
    model = type(proto)()
    model.CopyFrom(proto)
    gone = {id(node) for chain in chains.values() for node in chain[:-1]}
    last = {id(chain[-1]): y for y, chain in chains.items()}
    del model.graph.node[:]
    for node in proto.graph.node:
        if id(node) in last:
            y = last[id(node)]
            folded = model.graph.node.add()
            folded.CopyFrom(chains[y][0])
            folded.input[:] = [chains[y][0].input[0], *made[y].input[1:]]
            folded.output[:] = [y]
        elif id(node) not in gone:
            model.graph.node.add().CopyFrom(node)
    model.graph.initializer.extend(weights)
    read = {name for node in model.graph.node for name in node_reads(node)}
    read |= {value.name for value in model.graph.output}
    inputs = {value.name for value in model.graph.input}
    kept = [tensor for tensor in model.graph.initializer if tensor.name in read or tensor.name in inputs]
    fresh = [type(tensor).FromString(tensor.SerializeToString()) for tensor in kept]
    del model.graph.initializer[:]
    model.graph.initializer.extend(fresh)
    return model

"""Nodes that say the same and go in stripes: splits as Slices, and convolutions as ONNX Runtime fuses them.

An operator of several outputs goes in stripes once each output is made by a node of its own.

From level basic on a session folds a BatchNormalization, and a product or a sum with constants, into the weights of the
convolution before it: for each node, so that each stripe would keep weights of its own. From level extended on it makes
a QLinearConv of a convolution between DequantizeLinear and QuantizeLinear. Nodes and weights are taken from what a
session writes, so that outputs stay the same bit by bit.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import prod
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from modelplan.rewriting.striped_onnx.layers import SLICE_OPERANDS, Reading
from modelplan.rewriting.striped_onnx.unrolled_nodes import free_name
from modelplan.rewriting.striped_onnx.writing import node_reads, with_nodes

if TYPE_CHECKING:
    from onnx import ModelProto, NodeProto, TensorProto


def with_slices(proto: ModelProto, reading: Reading) -> ModelProto | None:
    """The file with a Slice for each output of its Splits, of the same name; None where it has no Split.

    A Slice copies the bytes that the Split copies, so outputs are the same. Splits inside of bodies and functions stay.
    """
    shapes = {tensor.name: tensor.shape for tensor in reading.graph.tensors}
    taken = set(reading.names)
    nodes: list[NodeProto] = []
    for node in proto.graph.node:
        split = node.op_type == "Split" and node.domain in ("", "ai.onnx")
        if split and all(name in shapes for name in node.output):
            nodes += _slices(node, shapes, reading.opset, taken)
        else:
            nodes.append(node)
    return None if len(nodes) == len(proto.graph.node) else with_nodes(proto, nodes)


def _slices(node: NodeProto, shapes: dict[str, tuple[int, ...]], opset: int, taken: set[str]) -> list[NodeProto]:
    """The nodes in place of one Split."""
    from onnx import numpy_helper
    from onnx.helper import make_node as make

    given = next((attribute.i for attribute in node.attribute if attribute.name == "axis"), 0)
    axis, start, slices = given % len(shapes[node.input[0]]), 0, []
    for number, name in enumerate(node.output):
        place = [start, start + shapes[name][axis], axis]
        start = place[1]
        own = free_name(f"{node.name or node.output[0]}/slice_{number}", taken)
        if opset < SLICE_OPERANDS:
            how: dict[str, Any] = dict(zip(("starts", "ends", "axes"), ([n] for n in place), strict=True))
            slices.append(make("Slice", [node.input[0]], [name], own, **how))
            continue
        words = [free_name(f"{own}/{word}", taken) for word in ("start", "end", "axis")]
        values = [numpy_helper.from_array(np.array([n], np.int64)) for n in place]
        slices += [make("Constant", [], [w], f"{w}_node", value=n) for w, n in zip(words, values, strict=True)]
        slices.append(make("Slice", [node.input[0], *words], [name], own))
    return slices


#: Operators that a session folds into the convolution before them.
_FOLDED = frozenset({"BatchNormalization", "Mul", "Add"})
#: Bytes of new weights beyond which the file might become larger than a protobuf can be.
_MOST_BYTES = 1 << 30
#: Bytes of an element at most.
_ELEMENT = 8


def with_fused(proto: ModelProto, optimized: ModelProto, folder: Path) -> ModelProto | None:
    """The file with such convolutions as in `optimized`, what a session wrote of it into a folder.

    None where there are none, or where the weights are too large for one file.
    """
    maker = {name: node for node in proto.graph.node for name in node.output if name}
    own = {tensor.name for tensor in proto.graph.initializer}
    weights = {tensor.name: tensor for tensor in optimized.graph.initializer}
    there = own | weights.keys() | maker.keys() | {value.name for value in proto.graph.input} | {""}
    fused = {
        node.output[0]: node
        for node in optimized.graph.node
        if not node.domain and _replaces(maker, node) and there.issuperset(node.input)
    }
    wanted = {name for node in fused.values() for name in node.input if name in weights} - own - maker.keys()
    if not fused or sum(_ELEMENT * prod(map(int, weights[name].dims)) for name in wanted) > _MOST_BYTES:
        return None
    return _replaced(proto, fused, [_loaded(weights[name], folder) for name in sorted(wanted)])


def _replaces(maker: Mapping[str, NodeProto], fused: NodeProto) -> bool:
    """Whether a node of a session stands for several nodes of the file that end in a convolution."""
    node = maker.get(fused.output[0])
    if node is None:
        return False
    if fused.op_type == "QLinearConv":
        return node.op_type == "QuantizeLinear"
    if fused.op_type != "Conv" or node.op_type not in _FOLDED:
        return False
    while node is not None and node.op_type in _FOLDED:
        node = next((maker[x] for x in node.input if x in maker and maker[x].op_type in _FOLDED | {"Conv"}), None)
    return node is not None


def _loaded(tensor: TensorProto, folder: Path) -> TensorProto:
    """The tensor with its numbers, which may stand in a file of their own."""
    import onnx

    if onnx.external_data_helper.uses_external_data(tensor):
        onnx.external_data_helper.load_external_data_for_tensor(tensor, str(folder))
        tensor.ClearField("data_location")
        del tensor.external_data[:]
    return tensor


def _replaced(proto: ModelProto, fused: Mapping[str, NodeProto], weights: list[TensorProto]) -> ModelProto:
    """The file with these nodes in place of those that make the same values, without what nothing reads any more."""
    nodes = [fused.get(node.output[0], node) if node.output else node for node in proto.graph.node]
    read = {value.name for value in proto.graph.output}
    kept: list[NodeProto] = []
    for node in reversed(nodes):
        if not read.isdisjoint(node.output):
            kept.insert(0, node)
            read.update(node_reads(node))
    inputs = {value.name for value in proto.graph.input}
    tensors = [t for t in (*proto.graph.initializer, *weights) if t.name in read or t.name in inputs]
    model = with_nodes(proto, kept)
    del model.graph.initializer[:]
    model.graph.initializer.extend(tensors)
    return model

"""Splits as Slices: an operator of several outputs goes in stripes once each output is made by a node of its own."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from modelplan.rewriting.striped_onnx.layers import SLICE_OPERANDS, Reading
from modelplan.rewriting.striped_onnx.unrolled_nodes import free_name
from modelplan.rewriting.striped_onnx.writing import with_nodes

if TYPE_CHECKING:
    from onnx import ModelProto, NodeProto


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

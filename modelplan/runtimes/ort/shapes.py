"""Which shapes a session of ONNX Runtime knows: it gives a dead value to another only where both are known."""

from __future__ import annotations

from typing import TYPE_CHECKING

from modelplan.model import Graph

if TYPE_CHECKING:
    from onnx import GraphProto, ValueInfoProto


def unknown_tensors(path: str, graph: Graph) -> frozenset[int]:
    """The tensors of which the session does not know all extents, though the graph was read with bound ones.

    An extent that has a symbol is known: a session compares symbols. Numbers follow from the values of shapes, symbols
    do not. Cost: onnx's shape inference, twice.
    """
    import onnx

    proto = onnx.load(path, load_external_data=False)
    symbols = {dim.dim_param for value in proto.graph.input for dim in value.type.tensor_type.shape.dim}
    if all(_is_known(value, symbols) for value in proto.graph.input) and not _is_computed(proto.graph):
        return frozenset()
    known = _known(onnx.shape_inference.infer_shapes(proto).graph, symbols)
    known |= _known(onnx.shape_inference.infer_shapes(proto, data_prop=True).graph, set())
    return frozenset(
        t for t, tensor in enumerate(graph.tensors) if graph.producers[t] >= 0 and tensor.name not in known
    )


def has_bodies(path: str) -> bool:
    """Whether nodes of the model, or of its functions, run bodies such as the branches of an If."""
    import onnx

    proto = onnx.load(path, load_external_data=False)
    nodes = [node for owner in (proto.graph, *proto.functions) for node in owner.node]
    return any(attribute.HasField("g") or attribute.graphs for node in nodes for attribute in node.attribute)


def _is_computed(graph: GraphProto) -> bool:
    """Whether a Slice takes numbers that the model computes, as those of kept rows do."""
    constants = {tensor.name for tensor in graph.initializer}
    constants.update(name for node in graph.node if node.op_type == "Constant" for name in node.output)
    return any(x and x not in constants for node in graph.node if node.op_type == "Slice" for x in node.input[1:])


def _known(graph: GraphProto, symbols: set[str]) -> set[str]:
    return {value.name for value in (*graph.input, *graph.output, *graph.value_info) if _is_known(value, symbols)}


def _is_known(value: ValueInfoProto, symbols: set[str]) -> bool:
    """Whether each extent has a number or a symbol of the inputs; the inference makes up others."""
    kind = value.type.tensor_type
    known = all(dim.HasField("dim_value") or (dim.dim_param in symbols - {""}) for dim in kind.shape.dim)
    return known and bool(kind.HasField("shape"))

"""The shapes as a session of ONNX Runtime knows them: a dead value makes way for another where these are the same."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from modelplan.formats.dims import is_symbol
from modelplan.formats.onnx.onnx_contrib import contributed, has_row
from modelplan.formats.onnx.onnx_corrections import normalised_types
from modelplan.formats.onnx.onnx_fold import Array
from modelplan.formats.onnx.onnx_graph import read_proto
from modelplan.formats.onnx.onnx_shapes import TypedNode
from modelplan.formats.onnx.onnx_types import is_known, read_type, refusals
from modelplan.model import Graph

if TYPE_CHECKING:
    from onnx import GraphProto, ModelProto, NodeProto, TensorProto, TypeProto, ValueInfoProto


#: Bytes of a constant whose values may settle shapes, as it is stored.
_SMALL = 1 << 12


def session_extents(path: str, graph: Graph) -> dict[int, tuple[int | str, ...]]:
    """The extents of computed tensors of which the session knows some by a symbol, though the graph has numbers.

    Empty where it does not know all. It compares symbols by their names: one that is bound to 16 is no 16. Numbers
    follow from the values of shapes, symbols do not. Cost: onnx's shape inference, twice.
    """
    import onnx

    proto = read_proto(Path(path))
    symbols = {dim.dim_param for value in proto.graph.input for dim in value.type.tensor_type.shape.dim} - {""}
    if all(_extents(value, set()) is not None for value in proto.graph.input) and not _is_computed(proto.graph):
        return {}
    known = _known(_with_added(onnx.shape_inference.infer_shapes(proto)), symbols)
    known |= _known(onnx.shape_inference.infer_shapes(proto, data_prop=True).graph, set())
    computed = (t for t in range(len(graph.tensors)) if graph.producers[t] >= 0)
    extents = {t: known.get(graph.tensors[t].name, ()) for t in computed}
    return {t: of_session for t, of_session in extents.items() if of_session != graph.tensors[t].shape}


def has_bodies(path: str) -> bool:
    """Whether nodes of the model, or of its functions, run bodies such as the branches of an If."""
    proto = read_proto(Path(path))
    nodes = [node for owner in (proto.graph, *proto.functions) for node in owner.node]
    return any(attribute.HasField("g") or attribute.graphs for node in nodes for attribute in node.attribute)


def _is_computed(graph: GraphProto) -> bool:
    """Whether a Slice takes numbers that the model computes, as those of kept rows do."""
    constants = {tensor.name for tensor in graph.initializer}
    constants.update(name for node in graph.node if node.op_type == "Constant" for name in node.output)
    return any(x and x not in constants for node in graph.node if node.op_type == "Slice" for x in node.input[1:])


def _with_added(model: ModelProto) -> GraphProto:
    """The graph with the types of operators that ONNX Runtime adds to the standard, and of what follows from these."""
    import onnx

    graph, opsets = model.graph, {entry.domain: entry.version for entry in model.opset_import}
    if all(is_known(node, opsets) for node in graph.node):
        return graph
    values = (*graph.input, *graph.value_info, *graph.output)
    types = {value.name: value.type for value in values if value.type.WhichOneof("value")}
    types |= {t.name: onnx.helper.make_tensor_type_proto(t.data_type, t.dims) for t in graph.initializer}
    data = {t.name: t for t in graph.initializer if not t.external_data and t.ByteSize() <= _SMALL}
    for node in graph.node:
        if not all(name in types and _is_settled(types[name]) for name in node.output if name):
            try:
                inferred = _outputs(node, types, data, opsets)
            except refusals():  # as the inference of whole graphs: what one node refuses is not known
                continue
            types |= inferred
            graph.value_info.extend(onnx.ValueInfoProto(name=name, type=known) for name, known in inferred.items())
    return graph


def _is_settled(known: TypeProto) -> bool:
    """Whether each extent of a tensor is a number or has a name that the inference did not make up."""
    kind = known.tensor_type
    return kind.HasField("shape") and all(d.HasField("dim_value") or is_symbol(d.dim_param) for d in kind.shape.dim)


def _outputs(
    node: NodeProto, types: dict[str, TypeProto], data: dict[str, TensorProto], opsets: dict[str, int]
) -> dict[str, TypeProto]:
    """The types of the outputs of a node by name, as far as those of its inputs and constants settle them."""
    import onnx

    version = opsets.get(node.domain)
    given = [types.get(name) for name in node.input]
    read = tuple(None if known is None else read_type(known) for known in given)
    if normalised := normalised_types(node, read, version):
        return {name: known.proto for name, known in normalised.items()}
    if has_row(node, version):
        typed = TypedNode(node, read, lambda operand: _constant(data.get(node.input[operand])), None)
        return {name: known.proto for name, known in contributed(typed).items()}
    if not is_known(node, opsets) or any(known is None for known, name in zip(given, node.input, strict=True) if name):
        return {}
    schema = onnx.defs.get_schema(node.op_type, opsets[node.domain], node.domain)
    there = {name: types[name] for name in node.input if name}
    constants = {name: data[name] for name in there if name in data}
    imports = [onnx.helper.make_opsetid(*entry) for entry in opsets.items()]
    inferred = onnx.shape_inference.infer_node_outputs(schema, node, there, constants, None, imports)
    return {name: known for name, known in inferred.items() if known.WhichOneof("value")}


def _constant(tensor: TensorProto | None) -> Array | None:
    from onnx import numpy_helper

    return None if tensor is None else numpy_helper.to_array(tensor)


def _known(graph: GraphProto, symbols: set[str]) -> dict[str, tuple[int | str, ...]]:
    values = (*graph.input, *graph.output, *graph.value_info)
    each = {value.name: _extents(value, symbols) for value in values}
    return {name: extents for name, extents in each.items() if extents is not None}


def _extents(value: ValueInfoProto, symbols: set[str]) -> tuple[int | str, ...] | None:
    """The extents, if each is a number or one of the inputs' symbols; the inference makes up others."""
    kind = value.type.tensor_type
    extents = tuple(dim.dim_value if dim.HasField("dim_value") else str(dim.dim_param) for dim in kind.shape.dim)
    known = kind.HasField("shape") and all(isinstance(extent, int) or extent in symbols for extent in extents)
    return extents if known else None

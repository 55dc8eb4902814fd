"""What a Graph leaves out of an .onnx file: digests of constants, also of folded ones, and all attributes of nodes."""

from __future__ import annotations

from collections.abc import Iterator
from hashlib import sha256
from typing import TYPE_CHECKING, Any

from modelplan.formats.limits import FileLimits
from modelplan.formats.model_contents import Contents, known_contents, known_options
from modelplan.formats.onnx.onnx_functions import bodies_of, graphs_of, inlined
from modelplan.model import Graph, Kind, Op, Value

if TYPE_CHECKING:
    from onnx import GraphProto, NodeProto, SparseTensorProto, TensorProto

#: The bodies of an If in the order in which a graph has them.
_BRANCHES = ("then_branch", "else_branch")
#: Longest list of numbers that an attribute shows; of longer ones a digest stands for them.
_MOST_SHOWN = 64


def read_contents_of(data: bytes, graph: Graph) -> Contents:
    """The contents of an .onnx file. Values in other files are told apart by where they lie, not by what they are.

    Raises:
        ValueError, TypeError: a part of the file is damaged.
    """
    import onnx
    from google.protobuf.message import DecodeError

    try:
        model = onnx.load_model_from_string(data)
    except DecodeError:
        raise ValueError("the protobuf ends or breaks off early") from None
    if model.functions:
        model = inlined(model, FileLimits.of(len(data)).operators)
    return _Scope(model.graph).contents(graph)


class _Scope:
    """The values and nodes that a graph and what lies in it name; where two share a name the outer one counts."""

    def __init__(self, proto: GraphProto) -> None:
        self.stored: dict[str, TensorProto | SparseTensorProto] = {}
        self.nodes: dict[str, NodeProto] = {}
        self.digests: dict[str, str] = {}
        for part in graphs_of(proto):
            for tensor in part.initializer:
                self.stored.setdefault(tensor.name, tensor)
            for sparse in part.sparse_initializer:
                self.stored.setdefault(sparse.values.name, sparse)
            for node in part.node:
                for name in filter(None, node.output):
                    self.nodes.setdefault(name, node)

    def contents(self, graph: Graph) -> Contents:
        """What the file says beside the graph."""
        nodes = [self._node(graph, op) for op in graph.ops]
        options = [
            known_options(op.attributes) if node is None else tuple(sorted(_attributes(node)))
            for op, node in zip(graph.ops, nodes, strict=True)
        ]
        return Contents(
            tuple(self._digest(t.name) if t.kind is Kind.CONSTANT else "" for t in graph.tensors),
            (None,) * len(graph.tensors),
            tuple(options),
            tuple(_bodies(op, node) for op, node in zip(graph.ops, nodes, strict=True)),
        )

    def _node(self, graph: Graph, op: Op) -> NodeProto | None:
        """The node that became an operator; None where its results have other names in the file."""
        node = next((self.nodes.get(graph.tensors[t].name) for t in op.writes), None)
        return node if node is not None and op.kind.endswith(node.op_type) else None

    def _digest(self, name: str) -> str:
        """The digest of a constant: of its values, or of the node that computes it and of what that reads."""
        pending = [name]
        while pending:
            top = pending[-1]
            if top in self.digests:
                pending.pop()
            elif top in self.stored:
                self.digests[top] = _hashed(_content(self.stored[top]))
            elif top not in self.nodes:
                self.digests[top] = ""
            elif missing := [i for i in self.nodes[top].input if i and i not in self.digests]:
                pending += missing
            else:
                self.digests[top] = self._computed(top)
        return self.digests[name]

    def _computed(self, name: str) -> str:
        node = self.nodes[name]
        position = list(node.output).index(name)
        inputs = [self.digests[i] if i else "absent" for i in node.input]
        return _hashed(repr((node.domain, node.op_type, position, list(_attributes(node)), inputs)).encode())


def _hashed(content: bytes) -> str:
    return sha256(content).hexdigest()[:16]


def _content(tensor: TensorProto | SparseTensorProto) -> bytes:
    """The values of a TensorProto or SparseTensorProto as bytes; of values in another file their place in it."""
    import onnx

    if isinstance(tensor, onnx.SparseTensorProto):
        return _content(tensor.values) + _content(tensor.indices)
    if tensor.data_location == onnx.TensorProto.EXTERNAL:
        return repr(sorted((e.key, e.value) for e in tensor.external_data)).encode()
    if tensor.data_type == onnx.TensorProto.STRING:
        return repr(list(tensor.string_data)).encode()
    return tensor.raw_data or bytes(onnx.numpy_helper.to_array(tensor).tobytes())


def _attributes(node: NodeProto) -> Iterator[tuple[str, Value]]:
    """The attributes of a node that are no bodies."""
    import onnx

    for attribute in node.attribute:
        value = onnx.helper.get_attribute_value(attribute)
        if attribute.HasField("g") or attribute.graphs:
            continue
        if attribute.HasField("t") or attribute.HasField("sparse_tensor"):
            yield attribute.name, _hashed(_content(value))
        elif isinstance(value, bytes):
            yield attribute.name, value[:200].decode("utf-8", "replace")
        elif isinstance(value, int | float):
            yield attribute.name, value
        else:
            yield attribute.name, _listed(list(value))


def _listed(values: list[Any]) -> Value:
    plain = tuple(v.decode("utf-8", "replace") if isinstance(v, bytes) else v for v in values)
    if len(plain) <= _MOST_SHOWN and all(isinstance(v, int | float | str) for v in plain):
        return plain
    return _hashed(repr(plain).encode())


def _bodies(op: Op, node: NodeProto | None) -> tuple[Contents, ...]:
    """The contents of the bodies that an operator runs."""
    parts = [] if node is None else bodies_of(node)
    if node is not None and node.op_type == "If":
        named = {a.name: a.g for a in node.attribute if a.HasField("g")}
        parts = [named[name] for name in _BRANCHES if name in named]
    if len(parts) != len(op.subgraphs):
        return tuple(map(known_contents, op.subgraphs))
    return tuple(_Scope(part).contents(body) for part, body in zip(parts, op.subgraphs, strict=True))

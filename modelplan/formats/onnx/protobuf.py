"""Works on a serialized .onnx protobuf as bytes: its nodes in another order, and what is left without its weights.

A repeated field is written as one record (tag, length, payload) for each element, in order. The records of the nodes
are permuted among their own places; every other byte of the file, known to the schema or not, stays where it is.
"""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from modelplan.primitives.errors import ModelError

#: Field numbers of onnx.proto.
_MODEL_GRAPH, _GRAPH_NODE, _GRAPH_INITIALIZER = 7, 1, 5
_TENSOR_DATA, _TENSOR_OUTSIDE, _TENSOR_LOCATION, _EXTERNAL = 9, 13, 14, 1
_NODE_INPUT, _NODE_OUTPUT, _NODE_ATTRIBUTE = 1, 2, 5
_ATTRIBUTE_GRAPHS = (6, 11)
_LENGTH_DELIMITED = 2
#: Bytes of the payload of the wire types of fixed size.
_FIXED = {1: 8, 5: 4}


class _Record(NamedTuple):
    """One field in the file: its number and wire type, where the record starts, where its payload starts and ends."""

    number: int
    wire: int
    start: int
    payload: int
    end: int


class Node(NamedTuple):
    """A node by the names it reads, those that its bodies read among them, and writes."""

    reads: frozenset[str]
    writes: tuple[str, ...]


def nodes(model: bytes) -> list[Node]:
    """The nodes of the main graph, in file order.

    Raises:
        ModelError: `model` is not an ONNX protobuf.
    """
    return [
        Node(frozenset(_reads(model, node)), tuple(_texts(model, node, _NODE_OUTPUT)))
        for node in _graph(model)
        if node.number == _GRAPH_NODE
    ]


def reorder_nodes(model: bytes, order: Sequence[int]) -> bytes:
    """The model whose main graph lists its nodes in `order` (indices into the old order); no other byte moves.

    Raises:
        ModelError: `model` is not an ONNX protobuf.
        ValueError: `order` is not a permutation of the nodes.
    """
    slots = [r for r in _graph(model) if r.number == _GRAPH_NODE]
    if sorted(order) != list(range(len(slots))):
        raise ValueError(f"an order of {len(order)} nodes, expected a permutation of {len(slots)}")
    pieces, at = [], 0
    for slot, node in zip(slots, order, strict=True):
        pieces += [model[at : slot.start], model[slots[node].start : slots[node].end]]
        at = slot.end
    return b"".join([*pieces, model[at:]])


def weightless(model: bytes, most: int) -> bytes:
    """The model whose initialisers with more than `most` bytes lie outside of it, of as many bytes, but nowhere.

    As it is where it is no .onnx protobuf: whoever parses it says so.
    """
    whole = memoryview(model)
    try:
        (graph,) = _graphs(model)
        pieces, at = list[bytes | memoryview](), graph.payload
        for record in _records(model, graph.payload, graph.end):
            if record.number == _GRAPH_INITIALIZER and record.end - record.payload > most:
                pieces += [whole[at : record.start], _without_data(model, record, most)]
                at = record.end
    except (ValueError, ModelError):
        return model
    pieces.append(whole[at : graph.end])
    head = _head(_MODEL_GRAPH, sum(map(len, pieces)))
    return b"".join([whole[: graph.start], head, *pieces, whole[graph.end :]]) if at > graph.payload else model


def _without_data(model: bytes, tensor: _Record, most: int) -> bytes:
    """The record of an initialiser, with the number of its bytes in place of more than `most` of them."""
    fields = list(_records(model, tensor.payload, tensor.end))
    data = [field for field in fields if field.number == _TENSOR_DATA]
    if len(data) != 1 or data[0].end - data[0].payload <= most:
        return model[tensor.start : tensor.end]
    length = _field(1, b"length") + _field(2, str(data[0].end - data[0].payload).encode())
    kept = [model[field.start : field.end] for field in fields if field.number != _TENSOR_DATA]
    outside = bytes([_TENSOR_LOCATION << 3, _EXTERNAL])
    return _field(_GRAPH_INITIALIZER, b"".join([*kept, _field(_TENSOR_OUTSIDE, length), outside]))


def _field(number: int, payload: bytes) -> bytes:
    return _head(number, len(payload)) + payload


def _head(number: int, size: int) -> bytes:
    """What stands before a payload of so many bytes."""
    length = bytearray()
    while size > 0x7F:
        length.append(size & 0x7F | 0x80)
        size >>= 7
    return bytes([number << 3 | _LENGTH_DELIMITED, *length, size])


def _texts(model: bytes, node: _Record, number: int) -> Iterator[str]:
    for record in _records(model, node.payload, node.end):
        if record.number == number:
            yield model[record.payload : record.end].decode("utf-8", "replace")


def _reads(model: bytes, node: _Record) -> Iterator[str]:
    """The inputs of a node and of all nodes in its bodies, however deep."""
    stack = [node]
    while stack:
        node = stack.pop()
        yield from _texts(model, node, _NODE_INPUT)
        for attribute in _records(model, node.payload, node.end):
            if attribute.number == _NODE_ATTRIBUTE:
                stack += _body_nodes(model, attribute)


def _body_nodes(model: bytes, attribute: _Record) -> Iterator[_Record]:
    for body in _records(model, attribute.payload, attribute.end):
        if body.number in _ATTRIBUTE_GRAPHS and body.wire == _LENGTH_DELIMITED:
            yield from (r for r in _records(model, body.payload, body.end) if r.number == _GRAPH_NODE)


def _graphs(model: bytes) -> list[_Record]:
    return [r for r in _records(model, 0, len(model)) if r.number == _MODEL_GRAPH and r.wire == _LENGTH_DELIMITED]


def _graph(model: bytes) -> list[_Record]:
    graphs = _graphs(model)
    if len(graphs) != 1:
        raise ModelError(f"found {len(graphs)} graphs in the protobuf, expected 1")
    return list(_records(model, graphs[0].payload, graphs[0].end))


def _records(data: bytes, at: int, end: int) -> Iterator[_Record]:
    while at < end:
        start = at
        tag, at = _varint(data, at, end)
        wire = tag & 7
        if wire == 0:
            payload, at = at, _varint(data, at, end)[1]
        elif wire == _LENGTH_DELIMITED:
            size, payload = _varint(data, at, end)
            at = payload + size
        elif wire in _FIXED:
            payload, at = at, at + _FIXED[wire]
        else:
            raise ModelError(f"not an ONNX protobuf: wire type {wire} at byte {start}")
        if at > end:
            raise ModelError(f"not an ONNX protobuf: the field at byte {start} ends at {at}, expected {end} at most")
        yield _Record(tag >> 3, wire, start, payload, at)


def _varint(data: bytes, at: int, end: int) -> tuple[int, int]:
    """The number at `at` and where it ends."""
    value = shift = 0
    for here in range(at, min(at + 10, end)):
        value |= (data[here] & 0x7F) << shift
        shift += 7
        if data[here] < 0x80:
            return value, here + 1
    raise ModelError(f"not an ONNX protobuf: the number at byte {at} does not end")

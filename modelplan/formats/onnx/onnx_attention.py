"""Shapes of what ONNX Runtime's operators for attention give: results, states of keys and values, and their products.

Source: onnxruntime, core/graph/contrib_ops/bert_defs.cc.
"""

from __future__ import annotations

from modelplan.formats.onnx.onnx_shapes import Shape, ShapeRule, TypedNode, at, divided, plus, times
from modelplan.formats.onnx.onnx_types import Extent

_RANK_PACKED, _RANK_STATE, _RANK_ROWS = 5, 4, 3


def projected(weights: int) -> ShapeRule:
    """Of Attention and QAttention, whose weights make queries, keys and values: a row of values for each token."""

    def shape(call: TypedNode) -> Shape:
        batch, length, _ = call.of_rank(0, _RANK_ROWS)
        return batch, length, _values(call, weights)

    return shape


def _values(call: TypedNode, weights: int) -> Extent:
    sizes = call.numbers("qkv_hidden_sizes")
    return sizes[2] if len(sizes) == 3 else divided(at(call, weights, 1), 3)


def projected_state(weights: int, past: int) -> ShapeRule:
    """Keys and values of all tokens so far, beside each other."""

    def shape(call: TypedNode) -> Shape:
        batch, length, _ = call.of_rank(0, _RANK_ROWS)
        before = at(call, past, 3) if call.has(past) else 0
        heads = call.number("num_heads") or None
        return 2, batch, heads, plus(before, length), divided(_values(call, weights), heads)

    return shape


def attended(call: TypedNode) -> Shape | None:
    """Of MultiHeadAttention: a row of values for each query."""
    query = call.shape(0)
    if query is None or len(query) not in (_RANK_ROWS, _RANK_PACKED):
        return None
    if len(query) == _RANK_PACKED:
        return query[0], query[1], times(query[2], query[4])
    value = call.shape(2)
    if not call.has(2):
        return query
    if value is None:
        return *query[:2], None
    return *query[:2], value[2] if len(value) == _RANK_ROWS else times(at(call, 2, 1), at(call, 2, 3))


def attended_state(operand: int, past: int) -> ShapeRule:
    """Of MultiHeadAttention: the keys or values, which `operand` adds to those before."""

    def shape(call: TypedNode) -> Shape | None:
        if call.has(8) and call.has(past):  # written into the same memory, which is as long as it may become
            return call.shape(past)
        heads, length, size = _heads(call, operand)
        before = at(call, past, 2) if call.has(past) else 0
        return at(call, 0, 0), heads, plus(before, length), size

    return shape


def _heads(call: TypedNode, operand: int) -> tuple[Extent, Extent, Extent]:
    """How many heads there are, and how many rows of which length an operand or what is packed adds to each."""
    heads = call.number("num_heads") or None
    query, key = call.shape(0) or (), call.shape(1) or ()
    if len(query) == _RANK_PACKED:
        return query[2], query[1], query[4]
    if len(key) == _RANK_PACKED:
        return key[2], key[1], key[4]
    rows = call.shape(operand) or ()
    if len(rows) == _RANK_STATE:
        return rows[1], rows[2], rows[3]
    return (heads, rows[1], divided(rows[2], heads)) if len(rows) == _RANK_ROWS else (heads, None, None)


def products(call: TypedNode) -> Shape | None:
    """Of MultiHeadAttention: a number for each query and key of each head."""
    query = call.shape(0)
    if query is None or len(query) < 2:
        return None
    heads, length, _ = _heads(call, 1)
    before = at(call, 6, 2) if call.has(6) else 0
    return query[0], heads, query[1], plus(before, length)


def _size(call: TypedNode) -> Extent:
    """The length of a head's rows where several heads of queries share one of keys."""
    query, heads = call.of_rank(0, _RANK_ROWS), call.number("num_heads")
    packed = 0 if call.has(1) else 2 * call.number("kv_num_heads")
    return divided(query[2], heads + packed)


def grouped(call: TypedNode) -> Shape:
    """Of GroupQueryAttention and SparseAttention: a row for each query."""
    query = call.of_rank(0, _RANK_ROWS)
    return query if call.has(1) else (query[0], query[1], times(_size(call), call.number("num_heads") or None))


def grouped_state(past: int) -> ShapeRule:
    """Of GroupQueryAttention: keys or values, as many as there were or as there are now in all, whichever is more."""

    def shape(call: TypedNode) -> Shape | None:
        before = call.shape(past)
        if call.has(past) and (before is None or len(before) != _RANK_STATE):
            return None
        if before is not None and call.number("sliding_window_cache"):
            return before
        total = call.wholes(6)
        length: Extent = None
        if total is not None and len(total) == 1:
            known = 0 if before is None else before[2]
            length = max(known, total[0]) if isinstance(known, int) else None
        size = _size(call) if before is None else before[3]
        return call.of_rank(0, _RANK_ROWS)[0], call.number("kv_num_heads") or None, length, size

    return shape


def grouped_products(call: TypedNode) -> Shape:
    """Of GroupQueryAttention: a number for each query and key of each head."""
    batch, length, _ = call.of_rank(0, _RANK_ROWS)
    total = call.wholes(6) or (None,)
    return batch, call.number("num_heads") or None, length, total[0]


def linear(call: TypedNode) -> Shape:
    """Of LinearAttention: a row of values for each token, of as many heads as there are of queries or of keys."""
    batch, length, _ = call.of_rank(0, _RANK_ROWS)
    queries, keys = call.number("q_num_heads"), call.number("kv_num_heads")
    return batch, length, times(divided(at(call, 2, 2), keys), max(queries, keys))


def linear_state(call: TypedNode) -> Shape | None:
    """Of LinearAttention: a matrix for each head; for each of the last tokens too where a window is asked for."""
    if call.has(3) or call.number("state_window"):
        return call.shape(3)
    heads = call.number("kv_num_heads")
    key, value = divided(at(call, 0, 2), call.number("q_num_heads")), divided(at(call, 2, 2), heads)
    return at(call, 0, 0), heads, key, value


def delta(call: TypedNode) -> Shape | None:
    """Of GatedDeltaNet: a row of values for each token and head; packed operands have the heads of the state."""
    query, value = call.shape(0), call.shape(2)
    if query is not None and value is not None and len(query) == len(value) >= _RANK_ROWS:
        queries, values = query[-2], value[-2]
        most = max(queries, values) if isinstance(queries, int) and isinstance(values, int) else None
        return *query[:-2], most, value[-1]
    state = call.of_rank(6, _RANK_STATE)
    return (*query[:-1], state[1], state[2]) if query is not None and not call.has(2) else None


def delta_state(call: TypedNode) -> Shape | None:
    """Of GatedDeltaNet: a matrix for each request and head."""
    if call.has(6):
        return call.shape(6)
    ends = at(call, 3, 0)  # where the tokens of each request begin, and where the last ones end
    return ends - 1 if isinstance(ends, int) else None, at(call, 2, -2), at(call, 2, -1), at(call, 0, -1)

"""Shapes of what ONNX Runtime's operators for attention give: results, states of keys and values, and their products.

Source: onnxruntime, core/graph/contrib_ops/bert_defs.cc.
"""

from modelplan.formats.onnx.onnx_shapes import Shape, ShapeRule, TypedNode, at, divided, plus, times
from modelplan.formats.onnx.onnx_types import Extent

_RANK_PACKED, _RANK_STATE, _RANK_ROWS = 5, 4, 3


def projected(typed: TypedNode) -> Shape:
    """Of Attention and QAttention, whose weights make queries, keys and values: a row of values for each token."""
    batch, length, _ = typed.of_rank(0, _RANK_ROWS)
    return batch, length, _values(typed)


def _values(typed: TypedNode) -> Extent:
    sizes = typed.numbers("qkv_hidden_sizes")
    return sizes[2] if len(sizes) == 3 else divided(at(typed, 1, 1), 3)


def projected_state(past: int) -> ShapeRule:
    """Keys and values of all tokens so far, beside each other."""

    def shape(typed: TypedNode) -> Shape:
        batch, length, _ = typed.of_rank(0, _RANK_ROWS)
        before = at(typed, past, 3) if typed.has(past) else 0
        heads = typed.number("num_heads") or None
        return 2, batch, heads, plus(before, length), divided(_values(typed), heads)

    return shape


def attended(typed: TypedNode) -> Shape | None:
    """Of MultiHeadAttention: a row of values for each query."""
    query = typed.shape(0)
    if query is None or len(query) not in (_RANK_ROWS, _RANK_PACKED):
        return None
    if len(query) == _RANK_PACKED:
        return query[0], query[1], times(query[2], query[4])
    value = typed.shape(2)
    if not typed.has(2):
        return query
    if value is None:
        return *query[:2], None
    return *query[:2], value[2] if len(value) == _RANK_ROWS else times(at(typed, 2, 1), at(typed, 2, 3))


def attended_state(operand: int, past: int) -> ShapeRule:
    """Of MultiHeadAttention: the keys or values, which `operand` adds to those before."""

    def shape(typed: TypedNode) -> Shape | None:
        if typed.has(8) and typed.has(past):  # written into the same memory, which is as long as it may become
            return typed.shape(past)
        heads, length, size = _heads(typed, operand)
        before = at(typed, past, 2) if typed.has(past) else 0
        return at(typed, 0, 0), heads, plus(before, length), size

    return shape


def _heads(typed: TypedNode, operand: int) -> tuple[Extent, Extent, Extent]:
    """How many heads there are, and how many rows of which length an operand or what is packed adds to each."""
    heads = typed.number("num_heads") or None
    query, key = typed.shape(0) or (), typed.shape(1) or ()
    if len(query) == _RANK_PACKED:
        return query[2], query[1], query[4]
    if len(key) == _RANK_PACKED:
        return key[2], key[1], key[4]
    rows = typed.shape(operand) or ()
    if len(rows) == _RANK_STATE:
        return rows[1], rows[2], rows[3]
    return (heads, rows[1], divided(rows[2], heads)) if len(rows) == _RANK_ROWS else (heads, None, None)


def products(typed: TypedNode) -> Shape | None:
    """Of MultiHeadAttention: a number for each query and key of each head."""
    query = typed.shape(0)
    if query is None or len(query) < 2:
        return None
    heads, length, _ = _heads(typed, 1)
    before = at(typed, 6, 2) if typed.has(6) else 0
    return query[0], heads, query[1], plus(before, length)


def _size(typed: TypedNode) -> Extent:
    """The length of a head's rows where several heads of queries share one of keys."""
    query, heads = typed.of_rank(0, _RANK_ROWS), typed.number("num_heads")
    packed = 0 if typed.has(1) else 2 * typed.number("kv_num_heads")
    return divided(query[2], heads + packed)


def grouped(typed: TypedNode) -> Shape:
    """Of GroupQueryAttention and SparseAttention: a row for each query."""
    query = typed.of_rank(0, _RANK_ROWS)
    return query if typed.has(1) else (query[0], query[1], times(_size(typed), typed.number("num_heads") or None))


def grouped_state(past: int) -> ShapeRule:
    """Of GroupQueryAttention: keys or values, as many as there were or as there are now in all, whichever is more."""

    def shape(typed: TypedNode) -> Shape | None:
        before = typed.shape(past)
        if typed.has(past) and (before is None or len(before) != _RANK_STATE):
            return None
        if before is not None and typed.number("sliding_window_cache"):
            return before
        total = typed.wholes(6)
        length: Extent = None
        if total is not None and len(total) == 1:
            known = 0 if before is None else before[2]
            length = max(known, total[0]) if isinstance(known, int) else None
        size = _size(typed) if before is None else before[3]
        return typed.of_rank(0, _RANK_ROWS)[0], typed.number("kv_num_heads") or None, length, size

    return shape


def grouped_products(typed: TypedNode) -> Shape:
    """Of GroupQueryAttention: a number for each query and key of each head."""
    batch, length, _ = typed.of_rank(0, _RANK_ROWS)
    total = typed.wholes(6) or (None,)
    return batch, typed.number("num_heads") or None, length, total[0]


def linear(typed: TypedNode) -> Shape:
    """Of LinearAttention: a row of values for each token, of as many heads as there are of queries or of keys."""
    batch, length, _ = typed.of_rank(0, _RANK_ROWS)
    queries, keys = typed.number("q_num_heads"), typed.number("kv_num_heads")
    return batch, length, times(divided(at(typed, 2, 2), keys), max(queries, keys))


def linear_state(typed: TypedNode) -> Shape | None:
    """Of LinearAttention: a matrix for each head; for each of the last tokens too where a window is asked for."""
    if typed.has(3) or typed.number("state_window"):
        return typed.shape(3)
    heads = typed.number("kv_num_heads")
    key, value = divided(at(typed, 0, 2), typed.number("q_num_heads")), divided(at(typed, 2, 2), heads)
    return at(typed, 0, 0), heads, key, value


def delta(typed: TypedNode) -> Shape | None:
    """Of GatedDeltaNet: a row of values for each token and head; packed operands have the heads of the state."""
    query, value = typed.shape(0), typed.shape(2)
    if query is not None and value is not None and len(query) == len(value) >= _RANK_ROWS:
        queries, values = query[-2], value[-2]
        most = max(queries, values) if isinstance(queries, int) and isinstance(values, int) else None
        return *query[:-2], most, value[-1]
    state = typed.of_rank(6, _RANK_STATE)
    return (*query[:-1], state[1], state[2]) if query is not None and not typed.has(2) else None


def delta_state(typed: TypedNode) -> Shape | None:
    """Of GatedDeltaNet: a matrix for each request and head."""
    if typed.has(6):
        return typed.shape(6)
    ends = at(typed, 3, 0)  # where the tokens of each request begin, and where the last ones end
    return ends - 1 if isinstance(ends, int) else None, at(typed, 2, -2), at(typed, 2, -1), at(typed, 0, -1)

"""Nodes of the operators that ONNX Runtime adds to the standard, drawn with operands that its CPU provider runs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import onnx
import searching
from onnx import helper, numpy_helper

#: Of a domain: what the CPU provider runs of it that is not drawn, with the reason.
NOT_DRAWN = {
    ".MemcpyFromHost": "a session adds it between providers",
    ".MemcpyToHost": "a session adds it between providers",
}
#: Operators whose outputs are as long as their values say.
BY_VALUES = ("BifurcationDetector", "DynamicTimeWarping", "Tokenizer", "Unique")
#: Operands of searches that are constants.
_NUMBERS = frozenset({1, 2, 3, 4, 5, 6})
#: Versions of onnx's own operators that ONNX Runtime has beside those.
OPSET = 17

Array = Any


@dataclass(frozen=True)
class Drawn:
    """A node with its operands, of which those named in `fixed` are constants; None is an operand that is absent.

    `absent` outputs have no name, `floats` say that they are; `shared` ones lie in the memory of operands. Of a
    `sparse` one operand 0 holds few numbers.
    """

    kind: str
    operands: list[Array]
    attributes: dict[str, Any] = field(default_factory=dict)
    outputs: int = 1
    fixed: frozenset[int] = frozenset()
    domain: str = "com.microsoft"
    opset: int = OPSET
    absent: frozenset[int] = frozenset()
    sparse: bool = False
    shared: dict[int, int] = field(default_factory=dict)
    floats: frozenset[int] = frozenset()

    @property
    def name(self) -> str:
        """The operator with its domain."""
        return f"{self.domain}.{self.kind}"


def model(drawn: Drawn, *, symbols: bool = False) -> Any:
    """A model of the one node; with `symbols` each extent of an input is called by its number and place."""
    inputs, weights, names = [], [], []
    for place, array in enumerate(drawn.operands):
        names.append("" if array is None else f"x{place}")
        if array is None:
            continue
        if drawn.sparse and place == 0:
            inputs.append(helper.make_sparse_tensor_value_info("x0", 1, array.shape))
        elif place in drawn.fixed:
            weights.append(numpy_helper.from_array(np.asarray(array), f"x{place}"))
        else:
            element = helper.np_dtype_to_tensor_dtype(np.asarray(array).dtype)
            shape = [f"x{place}_{axis}" if symbols else extent for axis, extent in enumerate(np.shape(array))]
            inputs.append(helper.make_tensor_value_info(f"x{place}", element, shape))
    made = ["" if place in drawn.absent else f"y{place}" for place in range(drawn.outputs)]
    node = helper.make_node(drawn.kind, names, made, "one", domain=drawn.domain, **drawn.attributes)
    outputs = [
        helper.make_tensor_value_info(name, 1, None)
        if place in drawn.floats
        else helper.make_empty_tensor_value_info(name)
        for place, name in enumerate(made)
        if name
    ]
    opsets = [helper.make_opsetid("", drawn.opset), *(helper.make_opsetid(d, 1) for d in DOMAINS)]
    graph = helper.make_graph([node], "g", inputs, outputs, weights)
    return helper.make_model(graph, ir_version=9, opset_imports=opsets)


def session_types(drawn: Drawn) -> dict[str, tuple[str, tuple[int, ...]]]:
    """The element type and the shape of each output of a session that runs the model of a node."""
    import onnxruntime as rt

    options = rt.SessionOptions()
    options.graph_optimization_level = rt.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.log_severity_level, options.intra_op_num_threads = 4, 1
    session = rt.InferenceSession(model(drawn).SerializeToString(), options, providers=["CPUExecutionProvider"])
    values = {name: _value(rt, drawn, int(name[1:])) for name in (value.name for value in session.get_inputs())}
    if drawn.shared:
        binding = session.io_binding()
        for name, value in values.items():
            binding.bind_ortvalue_input(name, value)
        for output in (value.name for value in session.get_outputs()):
            place = drawn.shared.get(int(output[1:]))
            binding.bind_output(output) if place is None else binding.bind_ortvalue_output(output, values[f"x{place}"])
        session.run_with_iobinding(binding)
        found = binding.get_outputs()
    else:
        found = session.run_with_ort_values(None, values)
    names = [value.name for value in session.get_outputs()]
    return {name: (_element(v.data_type()), tuple(v.shape())) for name, v in zip(names, found, strict=True)}


def _element(text: str) -> str:
    inner = text.removeprefix("tensor(").removesuffix(")")
    return {"float": "float32", "double": "float64"}.get(inner, inner)


def _value(rt: Any, drawn: Drawn, place: int) -> Any:
    array = np.asarray(drawn.operands[place])
    if not (drawn.sparse and place == 0):
        return rt.OrtValue.ortvalue_from_numpy(array)
    values, places = array[array != 0], np.argwhere(array).astype(np.int64)
    cpu = rt.OrtDevice.make("cpu", 0)
    thin = rt.SparseTensor.sparse_coo_from_numpy(np.array(array.shape, np.int64), values, places.reshape(-1), cpu)
    return rt.OrtValue.ort_value_from_sparse_tensor(thin)


#: The release of ONNX Runtime that the drawn nodes fit.
_RELEASE = (1, 32)
DOMAINS = ("com.microsoft", "com.microsoft.nchwc")


class Draw:
    """Random numbers of the types that operators take."""

    def __init__(self, seed: int) -> None:
        self.rng = np.random.default_rng(seed)

    def n(self, least: int, most: int) -> int:
        """A whole number within two, which are among them."""
        return int(self.rng.integers(least, most + 1))

    def one(self, *choices: Any) -> Any:
        """One of several."""
        return choices[self.n(0, len(choices) - 1)]

    def shape(self, rank: int = 0) -> list[int]:
        """A few small extents."""
        return [self.n(1, 6) for _ in range(rank or self.n(2, 4))]

    def f(self, *shape: int) -> Array:
        """Floats from 0 to 1."""
        return self.rng.random(shape, np.float32)

    def q(self, *shape: int, dtype: Any = np.uint8) -> Array:
        """Whole numbers of 8 bits."""
        return self.rng.integers(0, 100, shape).astype(dtype)

    def ids(self, most: int, *shape: int, dtype: Any = np.int32) -> Array:
        """Whole numbers below one."""
        return self.rng.integers(0, most, shape).astype(dtype)


class LargeDraw(Draw):
    """The same with larger maps, so that what kernels ask for is more than the grain of blocks."""

    def n(self, least: int, most: int) -> int:
        """A whole number; the sides and channels of maps are larger."""
        return super().n(*{(5, 9): (30, 50), (1, 5): (8, 24)}.get((least, most), (least, most)))

    def shape(self, rank: int = 0) -> list[int]:
        """Some larger extents."""
        return [super(LargeDraw, self).n(12, 24) for _ in range(rank or super().n(3, 4))]


#: Element-wise operators by element type, which make what a chain's operator reads.
_MAKERS = {1: "Exp", 2: "BitwiseNot", 3: "BitwiseNot", 4: "BitwiseNot", 5: "BitwiseNot"}
_CHAIN_OPSET = 18


def chained(drawn: Drawn, types: dict[str, int]) -> Any:
    """The model of a node whose operands are computed, and of whose outputs only the largest number goes out.

    `types` are the element types of the outputs.
    """
    made = model(drawn)
    graph, node = made.graph, onnx.NodeProto()
    node.CopyFrom(graph.node[0])
    elements = {value.name: value.type.tensor_type.elem_type for value in graph.input}
    before = [name for name in dict.fromkeys(node.input) if elements.get(name) in _MAKERS]
    node.input[:] = [f"{name}_made" if name in before else name for name in node.input]
    nodes = [helper.make_node(_MAKERS[elements[name]], [name], [f"{name}_made"]) for name in before] + [node]
    ends = [value.name for value in graph.output if types[value.name] in (1, 2, 3)]
    nodes += [helper.make_node("ReduceMax", [name], [f"{name}_most"], keepdims=0) for name in ends]
    outputs = [f"{value.name}_most" if value.name in ends else value.name for value in graph.output]
    del graph.node[:], graph.output[:]
    graph.node.extend(nodes)
    graph.output.extend(helper.make_empty_tensor_value_info(name) for name in outputs)
    made.opset_import[0].version = max(drawn.opset, _CHAIN_OPSET) if drawn.opset >= OPSET else drawn.opset
    return made


SCALE = np.float32(0.1)
_byte, _signed = np.uint8, np.int8


def _q(draw: Draw) -> Any:
    return draw.one(_byte, _signed)


def _like(kind: str, **attributes: Any) -> Callable[[Draw], Drawn]:
    return lambda draw: Drawn(kind, [draw.f(*draw.shape())], attributes)


def _bias_gelu(draw: Draw) -> Drawn:
    shape = draw.shape(3)
    return Drawn("BiasGelu", [draw.f(*shape), draw.f(shape[-1])])


def _fast_gelu(draw: Draw) -> Drawn:
    shape = draw.shape(3)
    return Drawn("FastGelu", [draw.f(*shape), *draw.one([], [draw.f(shape[-1])])])


def _binary(kind: str) -> Callable[[Draw], Drawn]:
    def made(draw: Draw) -> Drawn:
        shape, dtype = draw.shape(), _q(draw)
        other = [draw.one(1, extent) for extent in shape][draw.n(0, len(shape) - 1) :]
        first = [
            draw.one(1, extent) if place >= len(shape) - len(other) else extent for place, extent in enumerate(shape)
        ]
        a, b = draw.q(*first, dtype=dtype), draw.q(*other, dtype=dtype)
        if draw.n(0, 1):
            a, b = b, a
        zero = dtype(3)
        return Drawn(kind, [a, SCALE, zero, b, SCALE, zero, SCALE, zero])

    return made


def _quantised(kind: str, **attributes: Any) -> Callable[[Draw], Drawn]:
    def made(draw: Draw) -> Drawn:
        dtype = _q(draw)
        fixed = frozenset(range(1, 5))
        return Drawn(
            kind, [draw.q(*draw.shape(), dtype=dtype), SCALE, dtype(1), SCALE, dtype(1)], attributes, fixed=fixed
        )

    return made


def _pool(draw: Draw, rank: int = 2) -> dict[str, Any]:
    kernel = [draw.n(1, 3) for _ in range(rank)]
    return {
        "kernel_shape": kernel,
        "strides": [draw.n(1, 2) for _ in range(rank)],
        **draw.one({}, {"pads": [draw.n(0, size - 1) for size in kernel] * 2}, {"auto_pad": "SAME_UPPER"}),
    }


def _map(draw: Draw, *, last: bool, channels: int = 0, batch: int = 0) -> list[int]:
    sides, deep = [draw.n(5, 9), draw.n(5, 9)], channels or draw.n(1, 5)
    first = batch or draw.n(1, 2)
    return [first, *sides, deep] if last else [first, deep, *sides]


def _average_pool(draw: Draw) -> Drawn:
    last, dtype = bool(draw.n(0, 1)), _q(draw)
    attributes = {**_pool(draw), "channels_last": int(last), "ceil_mode": draw.n(0, 1)}
    operands = [draw.q(*_map(draw, last=last), dtype=dtype), SCALE, dtype(1), SCALE, dtype(1)]
    return Drawn("QLinearAveragePool", operands, attributes, fixed=frozenset(range(1, 5)))


def _global_pool(draw: Draw) -> Drawn:
    last, dtype = draw.n(0, 1), _q(draw)
    x = draw.q(*_map(draw, last=bool(last)), dtype=dtype)
    return Drawn("QLinearGlobalAveragePool", [x, SCALE, dtype(1), SCALE, dtype(1)], {"channels_last": last},
                 fixed=frozenset(range(1, 5)))  # fmt: skip


def _nhwc_max_pool(draw: Draw) -> Drawn:
    return Drawn("NhwcMaxPool", [draw.q(*_map(draw, last=True), dtype=_q(draw))], _pool(draw))


def _conv_attributes(draw: Draw) -> dict[str, Any]:
    made = _pool(draw)
    return {**made, "dilations": [1, 1] if "auto_pad" in made else [draw.n(1, 2), draw.n(1, 2)]}


def _quantised_conv(draw: Draw) -> Drawn:
    last, dtype, groups = bool(draw.n(0, 1)), _q(draw), draw.one(1, 2)
    attributes = {**_conv_attributes(draw), "channels_last": int(last), "group": groups}
    x = draw.q(*_map(draw, last=last, channels=4), dtype=dtype)
    w = draw.q(6, 4 // groups, *attributes["kernel_shape"], dtype=_signed)
    operands = [x, SCALE, dtype(1), w, SCALE, _signed(0), SCALE, dtype(2), *draw.one([], [draw.ids(9, 6)])]
    return Drawn("QLinearConv", operands, attributes, fixed=frozenset(range(1, len(operands))))


def _concat(draw: Draw) -> Drawn:
    shape, dtype = draw.shape(3), _q(draw)
    axis = draw.n(-3, 2)
    operands: list[Array] = [SCALE, dtype(1)]
    for _ in range(draw.n(1, 3)):
        part = list(shape)
        part[axis] = draw.n(1, 4)
        operands += [draw.q(*part, dtype=dtype), SCALE, dtype(1)]
    fixed = frozenset(place for place in range(len(operands)) if place < 2 or place % 3 != 2)
    return Drawn("QLinearConcat", operands, {"axis": axis}, fixed=fixed)


def _where(draw: Draw) -> Drawn:
    shape, dtype = draw.shape(3), _q(draw)
    parts = [[draw.one(1, extent) for extent in shape] for _ in range(2)]
    operands = [draw.f(*shape) > 0.5, draw.q(*parts[0], dtype=dtype), SCALE, dtype(1),
                draw.q(*parts[1], dtype=dtype), SCALE, dtype(1), SCALE, dtype(1)]  # fmt: skip
    return Drawn("QLinearWhere", operands, fixed=frozenset({2, 3, 5, 6, 7, 8}))


def _gemm(draw: Draw) -> Drawn:
    m, k, n = draw.shape(3)
    left, right = draw.n(0, 1), draw.n(0, 1)
    a, b = draw.q(*((k, m) if left else (m, k))), draw.q(*((n, k) if right else (k, n)))
    made = draw.one([SCALE, _byte(1)], [])
    operands = [a, SCALE, _byte(1), b, SCALE, _byte(1), draw.ids(9, n), *made]
    fixed = frozenset(range(1, len(operands)))
    return Drawn("QGemm", operands, {"transA": left, "transB": right}, fixed=fixed)


def _matrices(draw: Draw) -> tuple[list[int], list[int]]:
    m, k, n = draw.shape(3)
    return [*draw.shape(draw.n(1, 2)), m, k], [k, n]


def _dynamic_product(draw: Draw) -> Drawn:
    a, b = _matrices(draw)
    dtype = _q(draw)
    operands = [draw.f(*a), draw.q(*b, dtype=dtype), SCALE, dtype(1), *draw.one([], [draw.f(b[-1])])]
    return Drawn("DynamicQuantizeMatMul", operands)


def _integers_to_float(draw: Draw) -> Drawn:
    a, b = _matrices(draw)
    operands = [draw.q(*a), draw.q(*b), SCALE, SCALE, *draw.one([], [_byte(1), _byte(1)])]
    return Drawn("MatMulIntegerToFloat", operands)


def _integers(draw: Draw) -> Drawn:
    a, b = _matrices(draw)
    return Drawn("MatMulInteger16", [draw.q(*a, dtype=np.int16), draw.q(*b, dtype=np.int16)])


def _fused_product(kind: str) -> Callable[[Draw], Drawn]:
    def made(draw: Draw) -> Drawn:
        whole, left, right = draw.n(0, 1) if kind == "FusedMatMul" else 0, draw.n(0, 1), draw.n(0, 1)
        m, k, n = draw.shape(3)
        batch = draw.shape(2)
        rows, columns = ([k, m] if left else [m, k]), ([n, k] if right else [k, n])
        a, b = ([x[0], *batch, x[1]] if whole else [*batch, *x] for x in (rows, columns))
        attributes = {"transA": left, "transB": right}
        if kind == "FusedMatMul":
            attributes |= {"transBatchA": whole, "transBatchB": whole}
        return Drawn(kind, [draw.f(*a), draw.f(*b)], attributes)

    return made


def _fused_conv(draw: Draw) -> Drawn:
    attributes = {**_conv_attributes(draw), "activation": "Relu"}
    x, w = draw.f(*_map(draw, last=False, channels=3)), draw.f(4, 3, *attributes["kernel_shape"])
    return Drawn("FusedConv", [x, w, *draw.one([], [draw.f(4)])], attributes)


def _fused_gemm(draw: Draw) -> Drawn:
    m, k, n = draw.shape(3)
    left, right = draw.n(0, 1), draw.n(0, 1)
    a, b = draw.f(*((k, m) if left else (m, k))), draw.f(*((n, k) if right else (k, n)))
    return Drawn("FusedGemm", [a, b, draw.f(n)], {"transA": left, "transB": right, "activation": "Relu"})


def _product_of_bits(draw: Draw) -> Drawn:
    k, n, block = draw.one(32, 48), draw.n(1, 9), draw.one(16, 32)
    blocks = -(-k // block)
    b, scales = draw.ids(256, n, blocks, block // 2).astype(_byte), draw.f(n * blocks)
    attributes = {"K": k, "N": n, "bits": 4, "block_size": block}
    return Drawn("MatMulNBits", [draw.f(*draw.shape(2), k), b, scales], attributes, fixed=frozenset({1, 2}))


def _product_bnb(draw: Draw) -> Drawn:
    k, n = 32, draw.n(1, 9)
    b, scales = draw.ids(256, n * k // 2).astype(_byte), draw.f(n * k // 16)
    attributes = {"K": k, "N": n, "block_size": 16, "quant_type": 1}
    return Drawn("MatMulBnb4", [draw.f(*draw.shape(2), k), b, scales], attributes, fixed=frozenset({1, 2}))


def _product_fp(draw: Draw) -> Drawn:
    n = draw.n(1, 4)
    b = draw.ids(256, n * 20).astype(_byte)  # a block of 32 takes 4 bytes for its scale and 16 for its numbers
    operands = [draw.f(draw.n(1, 5), 32), b, np.array([32, n], np.int64)]
    return Drawn("MatMulFpQ4", operands, {"blk_quant_type": 0}, fixed=frozenset({1, 2}))


def _sparse_rows(draw: Draw) -> Drawn:
    rows, columns = draw.n(2, 5), draw.n(2, 5)
    return Drawn("SparseToDenseMatMul", [draw.f(rows, columns), draw.f(columns, draw.n(1, 5))], sparse=True)


def _quantise(draw: Draw) -> Drawn:
    element = draw.one(_byte, _signed, np.uint16, np.int16)
    return Drawn("QuantizeLinear", [draw.f(*draw.shape()), SCALE, *draw.one([element(1)], [])])


def _dequantise(draw: Draw) -> Drawn:
    element = draw.one(_byte, _signed, np.uint16, np.int16)
    return Drawn("DequantizeLinear", [draw.q(*draw.shape(), dtype=element), SCALE, element(1)])


def _normalised(kind: str) -> Callable[[Draw], Drawn]:
    def made(draw: Draw) -> Drawn:
        shape, plain = draw.shape(3), kind.startswith("SkipSimplified")
        operands = [draw.f(*shape), draw.f(*shape), draw.f(shape[-1]), *([] if plain else [draw.f(shape[-1])])]
        return Drawn(kind, operands, outputs=4, absent=frozenset({1, 2}))

    return made


def _simplified(draw: Draw) -> Drawn:
    shape = draw.shape(3)
    return Drawn("SimplifiedLayerNormalization", [draw.f(*shape), draw.f(shape[-1])], {"axis": -1, "stash_type": 1},
                 outputs=draw.n(1, 2), domain="")  # fmt: skip


def _embedded(draw: Draw) -> Drawn:
    batch, length, hidden = draw.shape(3)
    ids, hidden = draw.ids(5, batch, length), 4 * hidden
    tables = [draw.f(5, hidden), draw.f(8, hidden), draw.f(5, hidden)]
    outputs = draw.n(2, 3)
    operands = [ids, draw.ids(5, batch, length), *tables, draw.f(hidden), draw.f(hidden), draw.ids(2, batch, length)]
    return Drawn("EmbedLayerNormalization", operands, outputs=outputs)


def _embedded_quantised(draw: Draw) -> Drawn:
    batch, length, hidden = draw.shape(3)
    rows = [draw.q(5, hidden), draw.q(8, hidden), draw.q(5, hidden), draw.q(hidden), draw.q(hidden)]
    ids = [draw.ids(5, batch, length), draw.ids(5, batch, length)]
    operands = [*ids, *rows, draw.ids(2, batch, length), *[SCALE] * 5, *[_byte(1)] * 5]
    return Drawn("QEmbedLayerNormalization", operands, outputs=2, fixed=frozenset({2, 3, 4, 5, 6, *range(8, 18)}))


def _attention(draw: Draw) -> Drawn:
    batch, length, heads, size = draw.shape(4)
    size *= 2
    width, hidden, past = draw.n(2, 6), heads * size, draw.one(0, 3)
    before = draw.f(2, batch, heads, past, size) if past else None
    operands = [draw.f(batch, length, width), draw.f(width, 3 * hidden), draw.f(3 * hidden), None, before]
    return Drawn("Attention", operands, {"num_heads": heads}, outputs=2)


def _attention_of_sizes(draw: Draw) -> Drawn:
    batch, length, heads, size = draw.shape(4)
    width, keys, values = draw.n(2, 6), heads * size, heads * (size + draw.n(0, 2))
    w = draw.f(width, 2 * keys + values)
    attributes = {"num_heads": heads, "qkv_hidden_sizes": [keys, keys, values]}
    return Drawn("Attention", [draw.f(batch, length, width), w, draw.f(2 * keys + values)], attributes)


def _quantised_attention(draw: Draw) -> Drawn:
    batch, length, heads, size = draw.shape(4)
    width, hidden, past = draw.n(2, 6), heads * size, draw.one(0, 3)
    before = [draw.f(2, batch, heads, past, size)] if past else []
    operands = [draw.q(batch, length, width), draw.q(width, 3 * hidden), draw.f(3 * hidden), SCALE, SCALE, None,
                _byte(1), _byte(1), *before]  # fmt: skip
    return Drawn("QAttention", operands, {"num_heads": heads, "unidirectional": 1}, outputs=2)


def _several_heads(draw: Draw) -> Drawn:
    batch, length, heads, size = draw.shape(4)
    hidden, keys = heads * size, draw.n(1, 6)
    way = draw.n(0, 2)
    attributes = {"num_heads": heads}
    query, key = draw.f(batch, length, hidden), draw.f(batch, keys, hidden)
    if way == 0:
        value = draw.f(batch, keys, heads * (size + draw.n(0, 2)))
        return Drawn("MultiHeadAttention", [query, key, value], attributes, outputs=4, absent=frozenset({1, 2}),
                     floats=frozenset({3}))  # fmt: skip
    past = [draw.f(batch, heads, draw.n(1, 4), size)] * 2 if way == 2 else []
    operands = [query, draw.f(batch, length, hidden), draw.f(batch, length, hidden), None, None, None, *past]
    return Drawn("MultiHeadAttention", operands[: 8 if past else 3], attributes, outputs=4, floats=frozenset({3}))


def _masked_heads(draw: Draw) -> Drawn:
    batch, heads, size, most = *draw.shape(3), 9
    size, hidden = 8 * size, 8 * size * heads
    row, past = draw.f(batch, 1, hidden), draw.f(batch, heads, most, size)
    operands = [row, row, row, None, None, past, past, np.array([3], np.int32)]
    attributes = {"num_heads": heads, "past_present_share_buffer": 1}
    return Drawn("DecoderMaskedMultiHeadAttention", operands, attributes, outputs=3)


def _grouped(draw: Draw) -> Drawn:
    length, kv, size, past = draw.n(1, 4), draw.n(1, 2), 8, draw.one(0, 5)
    batch, heads = 1 if past and length > 1 else draw.n(1, 2), kv * draw.n(1, 3)
    packed = draw.n(0, 1)
    query = draw.f(batch, length, (heads + 2 * kv) * size if packed else heads * size)
    key = None if packed else draw.f(batch, length, kv * size)
    before = draw.f(batch, kv, past, size) if past else None
    total, lengths = np.array(past + length, np.int32), np.full(batch, past + length - 1, np.int32)
    attributes = {"num_heads": heads, "kv_num_heads": kv}
    return Drawn("GroupQueryAttention", [query, key, key, before, before, lengths, total], attributes, outputs=3,
                 fixed=frozenset({6}))  # fmt: skip


def _sparse_attention(draw: Draw) -> Drawn:
    kv, size, most, block = draw.n(1, 2), 8, 32, 16
    heads, length = kv * draw.n(1, 2), draw.n(1, 9)
    packed = draw.n(0, 1)
    query = draw.f(1, length, (heads + 2 * kv) * size if packed else heads * size)
    key = None if packed else draw.f(1, length, kv * size)
    past = draw.f(1, kv, most, size)
    rows, columns = np.array([[0, 1, 3]], np.int32), np.array([[0, 0, 1]], np.int32)
    operands = [query, key, key, past, past, rows, columns, np.array([length], np.int32), np.array([length], np.int32)]
    attributes = {"num_heads": heads, "kv_num_heads": kv, "sparse_block_size": block}
    return Drawn("SparseAttention", operands, attributes, outputs=3, shared={1: 3, 2: 4})


def _rotary(draw: Draw) -> Drawn:
    batch, length, heads, size = draw.shape(4)
    size *= 2
    tables = [draw.f(9, size // 2), draw.f(9, size // 2)]
    x = draw.one(draw.f(batch, heads, length, size), draw.f(batch, length, heads * size))
    attributes = {"num_heads": heads} if x.ndim == 3 else {}
    if x.ndim == 3:
        tables = [draw.f(9, size // 2)] * 2
    positions = draw.ids(9, batch, length, dtype=np.int64)
    if x.ndim == 3:
        attributes = {"num_heads": heads, "rotary_embedding_dim": size}
    return Drawn("RotaryEmbedding", [x, positions, *tables], attributes)


def _rotary_of_three(draw: Draw) -> Drawn:
    batch, length, heads, size = draw.n(1, 2), draw.n(1, 4), draw.n(1, 3), 12
    x, positions = draw.f(batch, heads, length, size), draw.ids(9, 3, batch, length, dtype=np.int64)
    tables = [draw.f(9, size // 2), draw.f(9, size // 2)]
    return Drawn("MRotaryEmbedding", [x, positions, *tables], {"mrope_section": [2, 2, 2]})


def _recurrent(draw: Draw) -> Drawn:
    steps, batch, width, hidden = draw.shape(4)
    both = draw.n(0, 1)
    ways = 1 + both
    dtype = _q(draw)
    scales, zeros = np.full((ways,), SCALE), np.zeros((ways,), dtype)
    operands = [draw.f(steps, batch, width), draw.q(ways, width, 4 * hidden, dtype=dtype),
                draw.q(ways, hidden, 4 * hidden, dtype=dtype), None, None, None, None, None, scales, zeros, scales,
                zeros]  # fmt: skip
    attributes = {"hidden_size": hidden, "direction": "bidirectional" if both else "forward"}
    return Drawn("DynamicQuantizeLSTM", operands, attributes, outputs=3, fixed=frozenset({1, 2, 8, 9, 10, 11}))


def _attending(draw: Draw) -> Drawn:
    steps, batch, width, hidden = draw.shape(4)
    depth, size, memory = draw.n(1, 4), draw.n(1, 4), draw.n(1, 4)
    ways = 1 + draw.n(0, 1)
    layer = draw.n(1, 4)
    gates = 4 * hidden
    operands = [draw.f(steps, batch, width), draw.f(ways, gates, width + layer), draw.f(ways, gates, hidden),
                draw.f(ways, 8 * hidden), None, None, None, None, draw.f(ways, hidden, size),
                draw.f(ways, depth, size), draw.f(ways, size), draw.f(batch, memory, depth), None,
                draw.f(ways, depth + hidden, layer)]  # fmt: skip
    attributes = {"hidden_size": hidden, "direction": "bidirectional" if ways == 2 else "forward"}
    return Drawn("AttnLSTM", operands, attributes, outputs=3)


def _conv_state(draw: Draw) -> Drawn:
    batch, channels, length, taps = draw.n(1, 2), draw.n(1, 5), draw.n(1, 5), draw.n(2, 4)
    last = draw.n(0, 1)
    x = draw.f(batch, length, channels) if last else draw.f(batch, channels, length)
    dilation = draw.n(1, 2)
    state = (taps - 1) * dilation
    past = draw.one(None, draw.f(*([batch, state, channels] if last else [batch, channels, state])))
    operands = [x, draw.f(channels, 1, taps), draw.one(None, draw.f(channels)), past]
    attributes = {"channels_last": last, "dilation": dilation}
    return Drawn("CausalConvWithState", operands, attributes, outputs=2)


def _packed_conv(draw: Draw) -> Drawn:
    channels, taps, capacity = draw.n(1, 5), draw.n(2, 4), draw.one(0, 2)
    ends = np.array([0, 2, 5], np.int32)
    operands = [draw.f(5, channels), draw.f(channels, 1, taps), ends, None, draw.f(2, channels, taps - 1)]
    if capacity:
        operands.append(np.array([1, 1], np.int32))
    attributes = {"state_update_capacity": capacity} if capacity else {}
    return Drawn("VarlenCausalConvWithState", operands, attributes, outputs=3 if capacity else 2)


def _linear(draw: Draw) -> Drawn:
    batch, length, size, values = draw.shape(4)
    queries, keys = draw.one((1, 1), (2, 2), (4, 2), (1, 2))
    past = draw.one(None, draw.f(batch, keys, size, values))
    operands = [draw.f(batch, length, queries * size), draw.f(batch, length, keys * size),
                draw.f(batch, length, keys * values), past]  # fmt: skip
    attributes = {"q_num_heads": queries, "kv_num_heads": keys, "update_rule": "linear"}
    return Drawn("LinearAttention", operands, attributes, outputs=2)


def _delta(draw: Draw) -> Drawn:
    tokens, size, values, heads = draw.n(2, 5), 4 * draw.n(1, 2), 4 * draw.n(1, 2), draw.n(1, 2)
    more = heads * draw.n(1, 2)
    lead = draw.one([tokens], [2, tokens])
    state, ends = draw.f(len(lead), more, values, size), None
    if len(lead) == 1 and draw.n(0, 1):
        ends, state = np.array([0, 1, tokens], np.int32), draw.one(None, draw.f(2, more, values, size))
    operands = [draw.f(*lead, heads, size), draw.f(*lead, heads, size), draw.f(*lead, more, values), ends, None, None,
                state]  # fmt: skip
    return Drawn("GatedDeltaNet", operands, {"update_rule": "linear"}, outputs=2)


def _delta_gate(draw: Draw) -> Drawn:
    shape = draw.shape(3)
    heads = shape[-1]
    return Drawn("LinearAttentionGate", [draw.f(*shape), draw.f(heads), draw.f(heads), draw.f(*shape)], outputs=2)


def _gated_norm(draw: Draw) -> Drawn:
    shape = draw.shape(3)
    return Drawn("GatedRMSNorm", [draw.f(*shape), draw.f(shape[-1]), draw.f(*shape)])


def _gated_sum(draw: Draw) -> Drawn:
    shape = draw.shape(3)
    return Drawn("GatedAdd", [draw.f(*shape), draw.f(*shape), draw.f(*shape[:-1], 1)])


def _router(draw: Draw) -> Drawn:
    experts, lead = 4 * draw.n(1, 2), draw.shape(draw.n(1, 2))
    attributes = {"top_k": 2, "n_group": 1, "topk_group": 1, "group_topk": 1}
    apart = draw.n(0, 1)
    return Drawn("MoEGroupRouter", [draw.f(*lead, experts), draw.f(experts)], attributes, outputs=3 if apart else 1,
                 absent=frozenset({0} if apart else ()))  # fmt: skip


def _experts(draw: Draw) -> Drawn:
    experts, hidden, inner = draw.n(1, 4), draw.n(1, 6), draw.n(1, 6)
    lead = draw.shape(draw.n(1, 2))
    operands = [draw.f(*lead, hidden), draw.f(int(np.prod(lead)), experts), draw.f(experts, inner, hidden), None,
                draw.f(experts, hidden, inner)]  # fmt: skip
    return Drawn("MoE", operands, {"k": 1, "activation_type": "relu"})


def _quantised_experts(draw: Draw) -> Drawn:
    experts, hidden, inner, tokens = 2, 16, 32, draw.n(1, 5)
    operands = [draw.f(tokens, hidden), draw.f(tokens, experts), draw.q(experts, 2 * inner, hidden // 2),
                draw.f(experts, 2 * inner), None, draw.q(experts, hidden, inner // 2),
                draw.f(experts, hidden)]  # fmt: skip
    attributes = {"k": 1, "activation_type": "swiglu", "swiglu_fusion": 1, "expert_weight_bits": 4}
    return Drawn("QMoE", operands, attributes, fixed=frozenset({2, 3, 5, 6}))


def _engram(draw: Draw) -> Drawn:
    batch, length, many, hidden = draw.shape(4)
    rows = draw.f(batch, length, many, hidden)
    scales = [draw.f(many, hidden)] * 3
    return Drawn("EngramGate", [rows, rows, draw.f(batch, length, hidden), *scales], outputs=2)


def _after_mix(draw: Draw) -> Drawn:
    batch, many, hidden = draw.shape(3)
    return Drawn("HyperConnectionPostMix", [draw.f(batch, many, hidden), draw.f(batch, hidden), draw.f(batch, many)])


def _before_mix(draw: Draw) -> Drawn:
    batch, many, hidden = draw.shape(3)
    if draw.n(0, 1):
        x, attributes = draw.f(batch, many * hidden), {"num_branches": many}
    else:
        x, attributes = draw.f(batch, many, hidden), {}
    return Drawn("HyperConnectionPreMix", [x, draw.f(batch, many)], attributes)


def _by_branch(draw: Draw) -> Drawn:
    shape = draw.shape(3)
    return Drawn("BranchwiseRMSNorm", [draw.f(*shape), draw.f(shape[-1])])


def _hashes(draw: Draw) -> Drawn:
    batch, length, grams, heads = draw.n(1, 2), draw.n(1, 6), draw.n(2, 3), draw.n(1, 3)
    many = (grams - 1) * heads
    dtype = draw.one(np.int32, np.int64)
    past = draw.one(None, draw.ids(9, batch, grams - 1, dtype=dtype))
    operands = [draw.ids(9, batch, length, dtype=dtype), draw.ids(9, grams, dtype=dtype) + dtype(1),
                np.full(many, 7, dtype), past]  # fmt: skip
    attributes = {"pad_id": 0, "max_ngram_size": grams, "n_head_per_ngram": heads}
    return Drawn("NGramHashMapping", operands, attributes, outputs=2)


def _packed_hashes(draw: Draw) -> Drawn:
    grams, heads = draw.n(2, 3), draw.n(1, 3)
    many = (grams - 1) * heads
    dtype = draw.one(np.int32, np.int64)
    past = draw.ids(9, 2, grams - 1, dtype=dtype)
    operands = [draw.ids(9, 5, dtype=dtype), draw.ids(9, grams, dtype=dtype) + dtype(1), np.full(many, 7, dtype),
                np.array([0, 2, 5], np.int32), past]  # fmt: skip
    attributes = {"pad_id": 0, "max_ngram_size": grams, "n_head_per_ngram": heads}
    return Drawn("VarlenNGramHashMapping", operands, attributes, outputs=2)


def _gathered(draw: Draw) -> Drawn:
    rows, width, block = draw.n(2, 6), 32, 16
    bits = draw.one(4, 8)
    data, scales = draw.ids(256, rows, width * bits // 8).astype(_byte), draw.f(rows, width // block)
    indices = draw.ids(rows, *draw.shape(draw.n(1, 2)), dtype=draw.one(np.int32, np.int64))
    attributes = {"bits": bits, "block_size": block, "gather_axis": 0, "quantize_axis": 1}
    return Drawn("GatherBlockQuantized", [data, indices, scales], attributes, fixed=frozenset({0, 2}))


def _gathered_packed(draw: Draw) -> Drawn:
    indices, width = draw.ids(3, *draw.shape(draw.n(1, 2)), dtype=np.int64), 4 * draw.n(1, 3)
    attributes = {"packed_type": 0, "K": width, "output_dtype": draw.one(1, 10)}  # rows of floats
    return Drawn("GatherPacked", [draw.q(3, 4 * width), indices], attributes)


def _gathered_places(draw: Draw) -> Drawn:
    shape = draw.shape(3)
    indices = np.zeros([*draw.shape(draw.n(1, 2)), draw.n(1, 3)], np.int64)
    return Drawn("GatherND", [draw.f(*shape), indices])


def _sampled_grid(draw: Draw) -> Drawn:
    x = draw.f(*_map(draw, last=False))
    return Drawn("GridSample", [x, draw.f(x.shape[0], draw.n(1, 5), draw.n(1, 5), 2)])


def _cropped(draw: Draw) -> Drawn:
    x, regions = draw.f(*_map(draw, last=False)), draw.n(1, 4)
    rois = np.tile(np.array([0, 0, 1, 1], np.float32), (regions, 1))
    operands = [x, rois, np.zeros(regions, np.int32), np.array([draw.n(1, 5), draw.n(1, 5)], np.int32)]
    return Drawn("CropAndResize", operands, fixed=frozenset({3}))


def _padded(draw: Draw) -> Drawn:
    shape = draw.shape(3)
    return Drawn("Pad", [draw.f(*shape), draw.ids(3, 6, dtype=np.int64), np.float32(1)], fixed=frozenset({1}))


def _expanded(draw: Draw) -> Drawn:
    return Drawn("ExpandDims", [draw.f(*draw.shape(3)), np.array(draw.n(-4, 3), np.int32)], fixed=frozenset({1}))


def _range(draw: Draw) -> Drawn:
    dtype = draw.one(np.float32, np.int32, np.int64)
    operands = [dtype(draw.n(0, 3)), dtype(draw.n(4, 20)), *draw.one([], [dtype(draw.n(1, 3))])]
    return Drawn("Range", operands, fixed=frozenset(range(len(operands))))


def _unfolded(draw: Draw) -> Drawn:
    shape, axis = [extent + 3 for extent in draw.shape(3)], draw.n(-3, 2)
    return Drawn("UnfoldTensor", [draw.f(*shape)], {"dim": axis, "size": draw.n(1, 4), "step": draw.n(1, 3)})


def _transposed(draw: Draw) -> Drawn:
    attributes = {"kernel_shape": [3, 3], "strides": [draw.n(1, 2)] * 2}
    x, w = draw.f(*_map(draw, last=False, channels=3)), draw.f(3, draw.n(1, 4), 3, 3)
    pads = draw.ids(2, 4, dtype=np.int64)
    return Drawn("ConvTransposeWithDynamicPads", [x, w, pads], attributes, fixed=frozenset({1, 2}))


def _masked_pool(draw: Draw) -> Drawn:
    x = draw.f(*_map(draw, last=False))
    attributes = {key: value for key, value in _pool(draw).items() if key != "auto_pad"}
    return Drawn("MaxpoolWithMask", [x, np.ones(x.shape, np.int32)], attributes)


def _word_filters(draw: Draw) -> Drawn:
    words, length, window, size, filters = draw.n(1, 4), draw.n(3, 6), 2, 3, draw.n(1, 5)
    operands = [draw.ids(5, words, length), draw.f(filters, 1, window, size), draw.f(filters),
                draw.f(5, size)]  # fmt: skip
    attributes = {"embedding_size": filters, "conv_window_size": window, "char_embedding_size": size}
    return Drawn("WordConvEmbedding", operands, attributes)


def _distances(draw: Draw) -> Drawn:
    width = draw.n(1, 4)
    return Drawn("CDist", [draw.f(draw.n(1, 5), width), draw.f(draw.n(1, 5), width)], {"metric": "euclidean"})


def _hashed(draw: Draw) -> Drawn:
    x = draw.ids(9, *draw.shape(), dtype=draw.one(np.int32, np.int64))
    return Drawn("MurmurHash3", [x], draw.one({}, {"positive": 0}, {"positive": 1}))


def _square(draw: Draw) -> Drawn:
    side = draw.n(1, 4)
    return Drawn("Inverse", [draw.f(*draw.shape(draw.n(1, 2)), side, side) + 3 * np.eye(side, dtype=np.float32)])


def _triangle(draw: Draw) -> Drawn:
    return Drawn("Trilu", [draw.f(*draw.shape(3)), np.array(draw.n(-2, 2), np.int64)], {"upper": draw.n(0, 1)})


def _repeated(draw: Draw) -> Drawn:
    batch, length, words = draw.n(1, 2), draw.n(3, 6), draw.n(5, 9)
    return Drawn(
        "NGramRepeatBlock", [draw.ids(5, batch, length, dtype=np.int64), draw.f(batch, words)], {"ngram_size": 2}
    )


def _warped(draw: Draw) -> Drawn:
    return Drawn("DynamicTimeWarping", [draw.f(*draw.one([], [1]), *draw.shape(2))])


def _unique(draw: Draw) -> Drawn:
    return Drawn("Unique", [draw.ids(4, draw.n(1, 9)).astype(np.float32)], outputs=3)


def _bifurcated(draw: Draw) -> Drawn:
    tokens = draw.ids(9, 5, dtype=np.int64)
    return Drawn("BifurcationDetector", [tokens, draw.ids(9, 3, dtype=np.int64), np.array(0, np.int64)], outputs=2)


def _words(draw: Draw) -> Drawn:
    texts = np.array(["a bc", "d", "e f g"][: draw.n(1, 3)], object)
    attributes = {"mark": draw.n(0, 1), "mincharnum": 1, "pad_value": "#", "separators": [" "]}
    return Drawn("Tokenizer", [texts], attributes, fixed=frozenset({0}))


# -- searches, which run bodies --------------------------------------------------------------------------------


def _sizes(draw: Draw) -> dict[str, int]:
    return {"words": draw.n(6, 12), "heads": draw.n(1, 3), "size": draw.n(1, 4), "layers": draw.n(1, 2)}


def _numbers(draw: Draw, prompt: int) -> list[Array]:
    """The operands of a search by beams behind its first: lengths, beams, penalties."""
    beams, one = draw.n(1, 4), np.ones(1, np.float32)
    counts = prompt + draw.n(1, 6), 0, beams, draw.n(1, beams)
    return [*(np.array([count], np.int32) for count in counts), one, one]


def _of_tokens(sizes: dict[str, int], **attributes: Any) -> dict[str, Any]:
    return {"eos_token_id": sizes["words"] - 1, "pad_token_id": 0, **attributes}


def _beams(draw: Draw) -> Drawn:
    sizes, prompt = _sizes(draw), draw.n(1, 5)
    attributes = _of_tokens(sizes, decoder=searching.decoder_alone(**sizes), **draw.one({}, {"vocab_size": 5}))
    operands = [draw.ids(5, draw.n(1, 3), prompt), *_numbers(draw, prompt)]
    return Drawn("BeamSearch", operands, attributes, draw.n(1, 3), _NUMBERS, floats=frozenset({1, 2}))


def _beams_behind_encoder(draw: Draw) -> Drawn:
    sizes, begins = _sizes(draw), bool(draw.n(0, 1))
    bodies = {
        "encoder": searching.encoder(**sizes, begins=begins, sound=False),
        "decoder": searching.decoder_behind_encoder(**sizes, masked=True, hidden=begins and bool(draw.n(0, 1))),
    }
    attributes = _of_tokens(sizes, model_type=1, decoder_start_token_id=0, **bodies)
    operands = [draw.ids(5, draw.n(1, 3), draw.n(1, 5)), *_numbers(draw, 2)]
    return Drawn("BeamSearch", operands, attributes, draw.n(1, 3), _NUMBERS, floats=frozenset({1, 2}))


def _beams_of_sound(draw: Draw) -> Drawn:
    sizes, batch, start = _sizes(draw), draw.n(1, 3), draw.n(0, 3)
    bodies = {
        "encoder": searching.encoder(**sizes, begins=True, sound=True),
        "decoder": searching.decoder_behind_encoder(**sizes, masked=False, hidden=bool(draw.n(0, 1))),
    }
    attributes = _of_tokens(sizes, decoder_start_token_id=0, no_speech_token_id=1, **bodies)
    begun = [None] * 3 + [draw.ids(5, batch, start)] if start else []
    operands = [draw.f(batch, sizes["heads"] * sizes["size"], draw.n(1, 5)), *_numbers(draw, start + 1), *begun]
    return Drawn(
        "WhisperBeamSearch", operands, attributes, draw.one(1, 3, 5), _NUMBERS, absent=frozenset({3}),
        floats=frozenset({1, 2, 4}),
    )  # fmt: skip


def _greedy(kind: str, **attributes: Any) -> Callable[[Draw], Drawn]:
    def made(draw: Draw) -> Drawn:
        sizes, prompt = _sizes(draw), draw.n(1, 5)
        own = _of_tokens(sizes, decoder=searching.decoder_alone(**sizes), **attributes)
        length, least, *_, one = _numbers(draw, prompt)
        return Drawn(kind, [draw.ids(5, draw.n(1, 3), prompt), length, least, one], own, fixed=_NUMBERS)

    return made


# -- in blocks of channels -------------------------------------------------------------------------------------


def _blocked(kind: str, **attributes: Any) -> Callable[[Draw], Drawn]:
    def made(draw: Draw) -> Drawn:
        own = {**_pool(draw), **attributes} if "Global" not in kind else attributes
        return Drawn(kind, [draw.f(*_map(draw, last=False, channels=16))], own, domain="com.microsoft.nchwc")

    return made


def _blocked_conv(draw: Draw) -> Drawn:
    attributes = _conv_attributes(draw)
    channels = draw.one(3, 16)
    x, w = draw.f(*_map(draw, last=False, channels=channels)), draw.f(32, channels, *attributes["kernel_shape"])
    return Drawn("Conv", [x, w, *draw.one([], [draw.f(32)])], attributes, domain="com.microsoft.nchwc",
                 fixed=frozenset({1}))  # fmt: skip


def _reorder_in(draw: Draw) -> Drawn:
    last = draw.n(0, 1)
    x = draw.f(*_map(draw, last=bool(last), channels=16 * draw.n(1, 2)))
    return Drawn("ReorderInput", [x], {"channels_last": last}, domain="com.microsoft.nchwc")


def _reorder_out(draw: Draw) -> Drawn:
    attributes = {"channels": draw.n(1, 16), "channels_last": draw.n(0, 1)}
    return Drawn(
        "ReorderOutput", [draw.f(*_map(draw, last=False, channels=16))], attributes, domain="com.microsoft.nchwc"
    )


def _enlarged(draw: Draw) -> Drawn:
    attributes = {"scales": [1, 1, draw.n(1, 3), draw.n(1, 3)]}
    return Drawn("Upsample", [draw.f(*_map(draw, last=False, channels=16))], attributes, domain="com.microsoft.nchwc")


# -- in the standard domain ------------------------------------------------------------------------------------


def _dropped(kind: str, **attributes: Any) -> Callable[[Draw], Drawn]:
    return lambda draw: Drawn(kind, [draw.f(*draw.shape())], attributes, domain="", opset=9)


def _scaled_image(draw: Draw) -> Drawn:
    x = draw.f(*_map(draw, last=False))
    return Drawn("ImageScaler", [x], {"scale": 2.0, "bias": [0.5] * x.shape[1]}, domain="", opset=9)


def _image_without_border(draw: Draw) -> Drawn:
    attributes: dict[str, Any] = {"border": [draw.n(0, 2) for _ in range(4)]}
    attributes |= draw.one({}, {"scale": [2, 3]})
    return Drawn("Crop", [draw.f(*_map(draw, last=False))], attributes, domain="", opset=9)


def _dynamic_slice(draw: Draw) -> Drawn:
    starts, ends = np.array([0, 1], np.int64), np.array([draw.n(1, 3), 9], np.int64)
    operands = [draw.f(*draw.shape(3)), starts, ends, *draw.one([], [np.array([0, 2], np.int64)])]
    return Drawn("DynamicSlice", operands, domain="", opset=9, fixed=frozenset({1, 2, 3}))


#: A way to draw a node of each operator that the CPU provider runs, several for some.
DRAWS: list[Callable[[Draw], Drawn]] = [
    _like("Gelu"), _like("QuickGelu"), _like("ScaledSiLU"), _like("SampleOp"), _bias_gelu, _fast_gelu,
    _binary("QLinearAdd"), _binary("QLinearMul"), _quantised("QLinearLeakyRelu"), _quantised("QLinearSigmoid"),
    _quantised("QLinearSoftmax", axis=-1, opset=13), _average_pool, _global_pool, _nhwc_max_pool, _quantised_conv,
    _concat, _where, _gemm, _dynamic_product, _integers_to_float, _integers, _fused_product("FusedMatMul"),
    _fused_product("TransposeMatMul"), _fused_conv, _fused_gemm, _product_of_bits, _product_bnb, _product_fp,
    _sparse_rows, _quantise, _dequantise, _normalised("SkipLayerNormalization"),
    _normalised("SkipSimplifiedLayerNormalization"), _simplified, _embedded, _embedded_quantised, _attention,
    _attention_of_sizes, _quantised_attention, _several_heads, _masked_heads, _grouped, _sparse_attention, _rotary,
    _rotary_of_three, _recurrent, _attending, _conv_state, _packed_conv, _linear, _delta, _delta_gate, _gated_norm,
    _gated_sum, _router, _experts, _quantised_experts, _engram, _after_mix, _before_mix, _by_branch, _hashes,
    _packed_hashes, _gathered, _gathered_packed, _gathered_places, _sampled_grid, _cropped, _padded, _expanded, _range,
    _unfolded, _transposed, _masked_pool, _word_filters, _distances, _hashed, _square, _triangle, _repeated, _warped,
    _unique, _bifurcated, _words, _blocked("AveragePool"), _blocked("MaxPool"), _blocked("GlobalAveragePool"),
    _blocked("GlobalMaxPool"), _blocked_conv, _reorder_in, _reorder_out, _enlarged, _dropped("Affine", alpha=1.0),
    _dropped("ParametricSoftplus", alpha=1.0, beta=1.0), _dropped("Scale"), _dropped("ScaledTanh", alpha=1.0, beta=1.0),
    _scaled_image, _image_without_border, _dynamic_slice, _beams, _beams_behind_encoder, _beams_of_sound,
    _greedy("GreedySearch"), _greedy("Sampling", top_p=0.9, filter_value=-1e4, min_tokens_to_keep=1),
]  # fmt: skip


def is_older() -> bool:
    """Whether this ONNX Runtime is older than the one whose kernels the drawn nodes fit; some crash older ones."""
    import onnxruntime as rt

    return tuple(map(int, rt.__version__.split(".")[:2])) < _RELEASE


def registered() -> set[str]:
    """The operators that this ONNX Runtime's CPU provider runs and onnx does not know, each with its domain."""
    import onnxruntime.capi.onnxruntime_pybind11_state as state

    found = {(k.domain, k.op_name) for k in state.get_all_opkernel_def() if k.provider == "CPUExecutionProvider"}
    return {f"{domain}.{kind}" for domain, kind in found if domain in DOMAINS or not (domain or onnx.defs.has(kind))}

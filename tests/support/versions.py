"""A small network as layers, written as a .tflite file; other versions of it are other layers. And renamed files."""

from __future__ import annotations

import random
import struct
from dataclasses import dataclass
from typing import Any

import onnx
from tflm_models import BYTES, Op, S, T, build, ints

from modelplan.formats.onnx.onnx_functions import graphs_of

_TABLES = {
    "CONV_2D": "Conv2DOptions", "DEPTHWISE_CONV_2D": "DepthwiseConv2DOptions", "MAX_POOL_2D": "Pool2DOptions",
    "AVERAGE_POOL_2D": "Pool2DOptions", "ADD": "AddOptions", "FULLY_CONNECTED": "FullyConnectedOptions",
    "SOFTMAX": "SoftmaxOptions", "RESHAPE": "ReshapeOptions", "PAD": "PadOptions",
    "CONCATENATION": "ConcatenationOptions", "MUL": "MulOptions",
}  # fmt: skip
Shape = tuple[int, ...]


@dataclass(frozen=True)
class Layer:
    """One operator: what it reads by name, and its figures; the same `seed` means the same weights."""

    kind: str
    reads: tuple[str, ...]
    filters: int = 0
    size: int = 3
    stride: int = 1
    padding: str = "SAME"
    activation: int = 0
    seed: int = 0
    scale: float = 0.05
    zero: int = 3
    dtype: str = "int8"


Layers = dict[str, Layer]

NETWORK: Layers = {
    "stem": Layer("CONV_2D", ("in",), 8, stride=2, activation=3, seed=1),
    "dw1": Layer("DEPTHWISE_CONV_2D", ("stem",), seed=2),
    "pw1": Layer("CONV_2D", ("dw1",), 16, size=1, seed=3),
    "dw2": Layer("DEPTHWISE_CONV_2D", ("pw1",), seed=4),
    "pw2": Layer("CONV_2D", ("dw2",), 16, size=1, seed=5),
    "sum": Layer("ADD", ("pw1", "pw2")),
    "act": Layer("RELU", ("sum",)),
    "pool": Layer("MAX_POOL_2D", ("act",), size=2, stride=2),
    "pw3": Layer("CONV_2D", ("pool",), 24, size=1, seed=6),
    "flat": Layer("RESHAPE", ("pw3",)),
    "fc": Layer("FULLY_CONNECTED", ("flat",), 10, seed=7),
    "soft": Layer("SOFTMAX", ("fc",), scale=1 / 256, zero=-128),
}


class _Net:
    """Tensors and operators written so far, and the tensor of each name."""

    def __init__(self, shape: Shape, dtype: str) -> None:
        self.tensors = [T(dtype, shape)]
        self.ops: list[Op] = []
        self.made = {"in": 0}

    def add(self, tensor: T) -> int:
        self.tensors.append(tensor)
        return len(self.tensors) - 1

    def random(self, dtype: str, shape: Shape, seed: int, scale: float | None = None) -> int:
        count = 1
        for extent in shape:
            count *= extent
        values = random.Random(f"{seed} {dtype} {shape}").randbytes(count * BYTES[dtype])
        return self.add(T(dtype, shape, values, None if scale is None else (scale,), 0))


def written(layers: Layers, shape: Shape = (1, 16, 16, 3), dtype: str = "int8") -> bytes:
    """The file; its operators stand in the order of `layers`, what no layer reads is an output."""
    net = _Net(shape, dtype)
    for name, layer in layers.items():
        _write(net, name, layer)
    read = {source for layer in layers.values() for source in layer.reads}
    outputs = tuple(net.made[name] for name in layers if name not in read)
    return build(S(tuple(net.tensors), tuple(net.ops), (0,), outputs))


def _write(net: _Net, name: str, layer: Layer) -> None:
    reads = [net.made[source] for source in layer.reads]
    shape = net.tensors[reads[0]].shape
    bias = net.tensors[reads[0]].quantisation[0][0] * 0.05  # input by weights, as kernels want it
    options: dict[str, Any] = {}
    result = shape
    if layer.kind in ("CONV_2D", "DEPTHWISE_CONV_2D", "MAX_POOL_2D", "AVERAGE_POOL_2D"):
        options = {"StrideW": layer.stride, "StrideH": layer.stride, "Padding": int(layer.padding == "VALID")}
        options["FusedActivationFunction"] = layer.activation
        rows = [_extent(layer, extent) for extent in shape[1:3]]
        result = (shape[0], *rows, layer.filters or shape[3])
    if layer.kind == "CONV_2D":
        reads.append(net.random("int8", (layer.filters, layer.size, layer.size, shape[3]), layer.seed))
        reads.append(net.random("int32", (layer.filters,), layer.seed, bias))
    elif layer.kind == "DEPTHWISE_CONV_2D":
        options["DepthMultiplier"] = 1
        reads.append(net.random("int8", (1, layer.size, layer.size, shape[3]), layer.seed))
        reads.append(net.random("int32", (shape[3],), layer.seed, bias))
    elif layer.kind.endswith("POOL_2D"):
        options |= {"FilterWidth": layer.size, "FilterHeight": layer.size}
    elif layer.kind == "RESHAPE":
        result = (shape[0], shape[1] * shape[2] * shape[3])
        reads.append(net.add(ints(*result)))
    elif layer.kind == "FULLY_CONNECTED":
        result = (shape[0], layer.filters)
        reads.append(net.random("int8", (layer.filters, shape[1]), layer.seed))
        reads.append(net.random("int32", (layer.filters,), layer.seed, bias))
    elif layer.kind == "PAD":
        result = (shape[0], shape[1] + 2, shape[2] + 2, shape[3])
        reads.append(net.add(T("int32", (4, 2), struct.pack("<8i", 0, 0, 1, 1, 1, 1, 0, 0))))
    elif layer.kind == "CONCATENATION":
        options["Axis"] = 3
        result = (*shape[:3], sum(net.tensors[t].shape[3] for t in reads))
    elif layer.kind == "SOFTMAX":
        options["Beta"] = 1.0
    net.made[name] = net.add(T(layer.dtype, result, scales=(layer.scale,), zero=layer.zero))
    net.ops.append(Op(layer.kind, tuple(reads), (net.made[name],), options, _TABLES.get(layer.kind, "")))


def _extent(layer: Layer, extent: int) -> int:
    return -(-extent // layer.stride) if layer.padding == "SAME" else (extent - layer.size) // layer.stride + 1


# Renaming -------------------------------------------------------------------------------------------------------------


def renamed_tflite(content: bytes) -> bytes:
    """The file with every name of a tensor and of a subgraph written over; names keep their length."""
    from tflite.Model import Model

    data = bytearray(content)
    model = Model.GetRootAs(content, 0)
    seen = set[int]()
    for number in range(model.SubgraphsLength()):
        subgraph = model.Subgraphs(number)
        _rename(data, subgraph, 4 + 2 * 4, seen)
        for t in range(subgraph.TensorsLength()):
            _rename(data, subgraph.Tensors(t), 4 + 2 * 3, seen)
    return bytes(data)


def _rename(data: bytearray, table: Any, field: int, seen: set[int]) -> None:
    inner = table._tab
    if not (slot := inner.Offset(field)):
        return
    start = inner.Indirect(inner.Pos + slot)
    (length,) = struct.unpack_from("<I", data, start)
    if start in seen:
        return
    seen.add(start)
    other = f"n{len(seen)}_".encode() * length
    data[start + 4 : start + 4 + length] = other[:length]


def renamed_onnx(model: onnx.ModelProto) -> onnx.ModelProto:
    """The model with other names for every value, node and graph."""
    made = onnx.ModelProto()
    made.CopyFrom(model)
    names: dict[str, str] = {"": ""}

    def other(name: str) -> str:
        return names.setdefault(name, f"value {len(names)}")

    for part in graphs_of(made.graph):
        part.name = "another"
        for value in (*part.input, *part.output, *part.value_info, *part.initializer):
            value.name = other(value.name)
        for sparse in part.sparse_initializer:
            sparse.values.name = other(sparse.values.name)
        for number, node in enumerate(part.node):
            node.name = f"node {number}"
            node.input[:] = [other(name) for name in node.input]
            node.output[:] = [other(name) for name in node.output]
    return made

"""MobileNetV2 as a .tflite file of 8 bits and an .onnx file of float32: the shapes of the paper, drawn weights, scales
by which sums neither vanish nor saturate. What it answers means nothing; what it needs is that of the network.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass, field
from math import sqrt
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import helper, numpy_helper

sys.path.append(str(Path(__file__).resolve().parents[1] / "tests" / "sweeps"))
from tflm_models import Op, S, T, build

#: Expansion, channels, repeats and the first stride of each group of blocks.
_GROUPS = (
    (1, 16, 1, 1), (6, 24, 2, 2), (6, 32, 3, 2), (6, 64, 4, 2), (6, 96, 3, 1), (6, 160, 3, 2), (6, 320, 1, 1),
)  # fmt: skip
_RELU6, _NONE = 3, 0
_CLASSES = 1000
_SPREAD = 40.0


def _channels(count: float) -> int:
    """A multiple of 8, and no less than nine tenths of what is asked for."""
    rounded = max(8, int(count + 4) // 8 * 8)
    return rounded + 8 if rounded < 0.9 * count else rounded


@dataclass
class _Network:
    """A file in the making; tensors are known by their number."""

    seed: int
    tensors: list[T] = field(default_factory=list)
    ops: list[Op] = field(default_factory=list)

    def add(self, tensor: T) -> int:
        self.tensors.append(tensor)
        return len(self.tensors) - 1

    def result(self, shape: tuple[int, ...], activation: int) -> int:
        scale, zero = (6 / 255, -128) if activation == _RELU6 else (0.05, 0)
        return self.add(T("int8", shape, scales=(float(np.float32(scale)),), zero=zero))

    def weights(self, x: int, y: int, shape: tuple[int, ...], axis: int, terms: int) -> tuple[int, int]:
        """Drawn weights with a scale for each channel, and biases."""
        draw = np.random.default_rng([self.seed, len(self.tensors)])
        values = draw.integers(-127, 128, shape).astype(np.int8)
        source, result = self.tensors[x].quantisation[0][0], self.tensors[y].quantisation[0][0]
        usual = result / (source * sqrt(terms) * values.std())
        scales = (usual * draw.uniform(0.5, 1.5, shape[axis])).astype(np.float32)
        w = self.add(T("int8", shape, values.tobytes(), tuple(scales.tolist()), 0, axis))
        biases = (draw.normal(0, _SPREAD, shape[axis]) * result / (source * scales)).astype(np.int64).tolist()
        products = tuple(float(np.float32(source) * s) for s in scales)
        return w, self.add(T("int32", (shape[axis],), biases, products, 0))

    def convolution(self, x: int, channels: int, kernel: int, stride: int, activation: int) -> int:
        _, height, width, depth = self.tensors[x].shape
        y = self.result((1, -(-height // stride), -(-width // stride), channels), activation)
        w = self.weights(x, y, (channels, kernel, kernel, depth), 0, kernel * kernel * depth)
        return self.operator("CONV_2D", (x, *w), y, stride, activation, "Conv2DOptions")

    def depthwise(self, x: int, stride: int) -> int:
        _, height, width, depth = self.tensors[x].shape
        y = self.result((1, -(-height // stride), -(-width // stride), depth), _RELU6)
        w = self.weights(x, y, (1, 3, 3, depth), 3, 9)
        return self.operator("DEPTHWISE_CONV_2D", (x, *w), y, stride, _RELU6, "DepthwiseConv2DOptions")

    def operator(self, kind: str, reads: tuple[int, ...], y: int, stride: int, activation: int, table: str) -> int:
        options = {"Padding": 0, "StrideH": stride, "StrideW": stride, "FusedActivationFunction": activation}
        options |= {"DilationHFactor": 1, "DilationWFactor": 1}
        options |= {"DepthMultiplier": 1} if "Depthwise" in table else {}
        self.ops.append(Op(kind, reads, (y,), options, table))
        return y

    def block(self, x: int, expansion: int, channels: int, stride: int) -> int:
        """An inverted residual."""
        depth = self.tensors[x].shape[3]
        wide = self.convolution(x, depth * expansion, 1, 1, _RELU6) if expansion > 1 else x
        narrow = self.convolution(self.depthwise(wide, stride), channels, 1, 1, _NONE)
        if stride > 1 or depth != channels:
            return narrow
        y = self.result(self.tensors[x].shape, _NONE)
        self.ops.append(Op("ADD", (x, narrow), (y,), {"FusedActivationFunction": _NONE}, "AddOptions"))
        return y

    def classified(self, x: int) -> int:
        """The mean of each channel, and the share of each class."""
        _, height, width, depth = self.tensors[x].shape
        mean = self.add(T("int8", (1, 1, 1, depth), None, *self.tensors[x].quantisation))
        window = {"FilterHeight": height, "FilterWidth": width, "StrideH": height, "StrideW": width, "Padding": 1}
        self.ops.append(Op("AVERAGE_POOL_2D", (x,), (mean,), window, "Pool2DOptions"))
        logits = self.result((1, _CLASSES), _NONE)
        w, bias = self.weights(mean, logits, (_CLASSES, depth), 0, depth)
        self.ops.append(Op("FULLY_CONNECTED", (mean, w, bias), (logits,), {}, "FullyConnectedOptions"))
        shares = self.add(T("int8", (1, _CLASSES), None, (1 / 256,), -128))
        self.ops.append(Op("SOFTMAX", (logits,), (shares,), {"Beta": 1.0}, "SoftmaxOptions"))
        return shares


def mobilenet_v2(width: float, size: int, seed: int = 0) -> bytes:
    """The file of a network so many times as wide, for pictures of so many pixels to a side."""
    net = _Network(seed)
    picture = net.add(T("int8", (1, size, size, 3), None, (float(np.float32(1 / 128)),), 0))
    x = net.convolution(picture, _channels(32 * width), 3, 2, _RELU6)
    for expansion, channels, repeats, stride in _GROUPS:
        for number in range(repeats):
            x = net.block(x, expansion, _channels(channels * width), 1 if number else stride)
    x = net.convolution(x, max(1280, _channels(1280 * width)), 1, 1, _RELU6)
    shares = net.classified(x)
    return build(S(tuple(net.tensors), tuple(net.ops), (picture,), (shares,)))


@dataclass
class _OnnxNetwork:
    """Nodes and weights in the making, of which each reads the last value."""

    draw: np.random.Generator
    nodes: list[onnx.NodeProto] = field(default_factory=list)
    tables: list[onnx.TensorProto] = field(default_factory=list)
    last: str = "picture"

    def node(self, kind: str, *operands: str, **attributes: Any) -> str:
        self.last = f"value {len(self.nodes)}"
        self.nodes.append(helper.make_node(kind, operands, [self.last], **attributes))
        return self.last

    def table(self, values: np.ndarray) -> str:
        self.tables.append(numpy_helper.from_array(values.astype(np.float32), f"table {len(self.tables)}"))
        return self.tables[-1].name

    def weights(self, *shape: int) -> tuple[str, str]:
        """Drawn weights and biases."""
        values = self.draw.normal(0, sqrt(2 / np.prod(shape[1:])), shape)
        return self.table(values), self.table(self.draw.normal(0, 0.1, shape[0]))

    def convolution(self, depth: int, channels: int, kernel: int, stride: int = 1, *, apart: bool = False) -> None:
        """A convolution of so many channels; `apart`: of each channel by itself."""
        weights = self.weights(channels, 1 if apart else depth, kernel, kernel)
        pads, group = [kernel // 2] * 4, depth if apart else 1
        self.node("Conv", self.last, *weights, pads=pads, strides=[stride] * 2, group=group)

    def bounded(self) -> None:
        """ReLU6."""
        self.node("Clip", self.last, self.table(np.array(0)), self.table(np.array(6)))

    def block(self, depth: int, expansion: int, channels: int, stride: int) -> int:
        """An inverted residual."""
        before, wide = self.last, depth * expansion
        if expansion > 1:
            self.convolution(depth, wide, 1)
            self.bounded()
        self.convolution(wide, wide, 3, stride, apart=True)
        self.bounded()
        self.convolution(wide, channels, 1)
        if stride == 1 and depth == channels:
            self.node("Add", before, self.last)
        return channels


def mobilenet_v2_onnx(width: float, size: int, seed: int = 0) -> onnx.ModelProto:
    """The same network in float32, as torch writes it: channels first."""
    net, depth = _OnnxNetwork(np.random.default_rng(seed)), _channels(32 * width)
    net.convolution(3, depth, 3, 2)
    net.bounded()
    for expansion, channels, repeats, stride in _GROUPS:
        for number in range(repeats):
            depth = net.block(depth, expansion, _channels(channels * width), 1 if number else stride)
    wide = max(1280, _channels(1280 * width))
    net.convolution(depth, wide, 1)
    net.bounded()
    net.node("Flatten", net.node("GlobalAveragePool", net.last))
    net.node("Gemm", net.last, *net.weights(_CLASSES, wide), transB=1)
    ends = [("picture", [1, 3, size, size]), (net.last, [1, _CLASSES])]
    picture, scores = (helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, shape) for name, shape in ends)
    graph = helper.make_graph(net.nodes, "mobilenet_v2", [picture], [scores], net.tables)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)

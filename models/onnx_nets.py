"""Networks as ONNX files with random weights, made without a framework, at the sizes at which they are used.

python models/onnx_nets.py --out DIR [--only NAME]
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import helper, numpy_helper

OPSET = 17
_IR = 8


class Net:
    """Builds a graph node by node; each method returns the name of the value it makes."""

    def __init__(self, name: str, shape: Sequence[int], *, seed: int = 0, opset: int = OPSET, dtype: int = 1) -> None:
        self.name, self.opset = name, opset
        self.random = np.random.default_rng(seed)
        self.nodes: list[Any] = []
        self.weights: list[Any] = []
        self.channels: dict[str, int] = {"x": shape[1]}
        self.inputs = [helper.make_tensor_value_info("x", dtype, list(shape))]

    def node(self, kind: str, inputs: Sequence[str], channels: int | None = None, **attributes: Any) -> str:
        """A node with one output; `channels` are its output's, where they are not its first input's."""
        name = f"v{len(self.nodes)}"
        self.nodes.append(helper.make_node(kind, list(inputs), [name], f"n{len(self.nodes)}", **attributes))
        self.channels[name] = self.channels.get(inputs[0], 0) if channels is None else channels
        return name

    def weight(self, array: Any) -> str:
        """A constant."""
        name = f"w{len(self.weights)}"
        self.weights.append(numpy_helper.from_array(np.asarray(array), name))
        return name

    def normal(self, *shape: int) -> Any:
        """Random weights that keep the scale of what they are applied to."""
        fan = int(np.prod(shape[1:])) or 1
        return (self.random.standard_normal(shape) * np.sqrt(1.5 / fan)).astype(np.float32)

    def conv(self, x: str, channels: int, k: int = 3, stride: int = 1, group: int = 1, *, bias: bool = True) -> str:
        """A convolution of maps with odd windows, padded so that the stride alone decides the extent."""
        weights = self.weight(self.normal(channels, self.channels[x] // group, k, k))
        operands = [x, weights, *([self.weight(self.normal(channels))] if bias else [])]
        pads = [k // 2] * 4
        return self.node("Conv", operands, channels, kernel_shape=[k, k], strides=[stride] * 2, pads=pads, group=group)

    def norm(self, x: str) -> str:
        """Batch normalization."""
        n = self.channels[x]
        one = np.ones(n, np.float32)
        values = (one * 0.9, one * 0.1, one * 0.05, one * 1.1)
        return self.node("BatchNormalization", [x, *map(self.weight, values)])

    def clip(self, x: str) -> str:
        """ReLU6."""
        return self.node("Clip", [x, self.weight(np.float32(0)), self.weight(np.float32(6))])

    def relu(self, x: str) -> str:
        """ReLU."""
        return self.node("Relu", [x])

    def classifier(self, x: str, classes: int = 1000) -> str:
        """Mean over the map and a dense layer."""
        pooled = self.node("Flatten", [self.node("GlobalAveragePool", [x])], self.channels[x])
        weights = [self.weight(self.normal(classes, self.channels[x])), self.weight(self.normal(classes))]
        return self.node("Gemm", [pooled, *weights], classes, transB=1)

    def model(self, *outputs: str) -> Any:
        """The model, its outputs with the types that onnx infers."""
        values = [helper.make_empty_tensor_value_info(name) for name in outputs]
        graph = helper.make_graph(self.nodes, self.name, self.inputs, values, self.weights)
        opsets = [helper.make_opsetid("", self.opset)]
        return onnx.shape_inference.infer_shapes(
            helper.make_model(graph, producer_name="modelplan", ir_version=_IR, opset_imports=opsets), strict_mode=True
        )


def mobilenet_v2(size: int = 224) -> Any:
    """MobileNetV2, its batch normalizations folded."""
    net = Net("mobilenet_v2", (1, 3, size, size))
    x = net.clip(net.conv("x", 32, 3, 2))
    for expand, channels, repeats, stride in (
        (1, 16, 1, 1), (6, 24, 2, 2), (6, 32, 3, 2), (6, 64, 4, 2), (6, 96, 3, 1), (6, 160, 3, 2), (6, 320, 1, 1)
    ):  # fmt: skip
        for place in range(repeats):
            wide, y = net.channels[x] * expand, x
            if expand > 1:
                y = net.clip(net.conv(y, wide, 1))
            y = net.clip(net.conv(y, wide, 3, stride if place == 0 else 1, wide))
            y = net.conv(y, channels, 1)
            x = net.node("Add", [x, y]) if place else y
    return net.model(net.classifier(net.clip(net.conv(x, 1280, 1))))


def _bottleneck(net: Net, x: str, width: int, stride: int) -> str:
    y = net.relu(net.conv(x, width, 1))
    y = net.relu(net.norm(net.conv(y, width, 3, stride, bias=False)))
    y = net.conv(y, 4 * width, 1)
    if net.channels[x] != 4 * width:
        x = net.conv(x, 4 * width, 1, stride)
    return net.relu(net.node("Add", [y, x]))


def _resnet(net: Net, depths: Sequence[int], width: int) -> list[str]:
    """The stages of a ResNet with bottlenecks."""
    x = net.relu(net.conv("x", width, 7, 2))
    x = net.node("MaxPool", [x], kernel_shape=[3, 3], strides=[2, 2], pads=[1, 1, 1, 1])
    found = []
    for stage, depth in enumerate(depths):
        for place in range(depth):
            x = _bottleneck(net, x, width << stage, 2 if stage and not place else 1)
        found.append(x)
    return found


def resnet50(size: int = 224) -> Any:
    """ResNet-50, some of its batch normalizations left in."""
    net = Net("resnet50", (1, 3, size, size))
    return net.model(net.classifier(_resnet(net, (3, 4, 6, 3), 64)[-1]))


def unet(size: int = 256, width: int = 32, *, resize: bool = False) -> Any:
    """A U-Net of four levels, enlarged by transposed convolutions or by bilinear interpolation."""
    net = Net("unet", (1, 3, size, size))

    def block(x: str, channels: int) -> str:
        return net.relu(net.conv(net.relu(net.conv(x, channels)), channels))

    x, skips = "x", []
    for level in range(4):
        x = block(x, width << level)
        skips.append(x)
        x = net.node("MaxPool", [x], kernel_shape=[2, 2], strides=[2, 2])
    x = block(x, width << 4)
    for level in reversed(range(4)):
        channels = width << level
        if resize:
            scales = net.weight(np.array([1, 1, 2, 2], np.float32))
            mode: dict[str, Any] = {"mode": "linear", "coordinate_transformation_mode": "half_pixel"}
            x = net.conv(net.node("Resize", [x, "", scales], **mode), channels, 1)
        else:
            weights = net.weight(net.normal(net.channels[x], channels, 2, 2))
            x = net.node("ConvTranspose", [x, weights], channels, kernel_shape=[2, 2], strides=[2, 2])
        x = block(net.node("Concat", [skips[level], x], 2 * channels, axis=1), channels)
    return net.model(net.node("Sigmoid", [net.conv(x, 1, 1)]))


def fpn(size: int = 512) -> Any:
    """A detector: a small ResNet, a feature pyramid, and two heads on each of three levels."""
    net = Net("fpn", (1, 3, size, size))
    levels = [net.conv(x, 64, 1) for x in _resnet(net, (1, 1, 1, 1), 32)]
    scales = net.weight(np.array([1, 1, 2, 2], np.float32))
    mode: dict[str, Any] = {"mode": "nearest", "coordinate_transformation_mode": "asymmetric", "nearest_mode": "floor"}
    merged = [levels[-1]]
    for x in reversed(levels[:-1]):
        merged.append(net.node("Add", [x, net.node("Resize", [merged[-1], "", scales], **mode)]))
    outputs = []
    for x in merged:
        y = net.relu(net.conv(net.relu(net.conv(x, 64)), 64))
        outputs += [net.node("Sigmoid", [net.conv(y, 4, 3)]), net.conv(y, 4, 3)]
    return net.model(*outputs)


def yolo(size: int = 320, width: int = 16) -> Any:
    """A detector like YOLO: Focus slices, SiLU, cross-stage blocks, joins up and down again, a head on three levels."""
    net = Net("yolo", (1, 3, size, size))

    def conv(x: str, channels: int, k: int = 1, stride: int = 1) -> str:
        y = net.conv(x, channels, k, stride)
        return net.node("Mul", [y, net.node("Sigmoid", [y])])

    def block(x: str, channels: int, depth: int, *, residual: bool = True) -> str:
        y, aside = conv(x, channels // 2), conv(x, channels // 2)
        for _ in range(depth):
            made = conv(conv(y, channels // 2), channels // 2, 3)
            y = net.node("Add", [y, made]) if residual else made
        return conv(net.node("Concat", [y, aside], channels, axis=1), channels)

    def every_second(row: int, column: int) -> str:
        numbers = ([row, column], [2**31 - 1] * 2, [2, 3], [2, 2])
        return net.node("Slice", ["x", *(net.weight(np.array(n, np.int64)) for n in numbers)])

    corners = [every_second(row, column) for column in range(2) for row in range(2)]
    x, levels = conv(net.node("Concat", corners, 12, axis=1), width, 3), []
    for stage, depth in enumerate((1, 2, 2, 1)):
        x = block(conv(x, width << stage + 1, 3, 2), width << stage + 1, depth)
        levels.append(x)
    pools = [levels[-1]]
    for _ in range(3):
        pools.append(net.node("MaxPool", [pools[-1]], kernel_shape=[5, 5], strides=[1, 1], pads=[2] * 4))
    x = conv(net.node("Concat", pools, 4 * (width << 4), axis=1), width << 4)
    mode: dict[str, Any] = {"mode": "nearest", "coordinate_transformation_mode": "asymmetric", "nearest_mode": "floor"}
    scales, passed = net.weight(np.array([1, 1, 2, 2], np.float32)), []
    for level, channels in ((2, width << 3), (1, width << 2)):
        passed.append(conv(x, channels))
        sides = [net.node("Resize", [passed[-1], "", scales], **mode), levels[level]]
        x = block(net.node("Concat", sides, 2 * channels, axis=1), channels, 1, residual=False)
    heads = [x]
    for before, channels in zip(reversed(passed), (width << 3, width << 4), strict=True):
        down = conv(x, net.channels[x], 3, 2)
        joined = net.node("Concat", [down, before], net.channels[down] + net.channels[before], axis=1)
        x = block(joined, channels, 1, residual=False)
        heads.append(x)
    return net.model(*(net.node("Sigmoid", [net.conv(head, 3 * 15, 1)]) for head in heads))


class _Quantised(Net):
    """A net of 8 bits; every value has one scale."""

    def __init__(self, name: str, shape: Sequence[int], *, fused: bool, zero: int) -> None:
        super().__init__(name, shape)
        self.fused = fused
        self.scale = self.weight(np.float32(0.05))
        self.zero = self.weight(np.uint8(zero))
        self.fine = self.weight(np.float32(0.01))
        self.none = self.weight(np.int8(0))

    def quantised(self, x: str) -> str:
        """Floats to 8 bits."""
        return self.node("QuantizeLinear", [x, self.scale, self.zero])

    def floats(self, x: str) -> str:
        """8 bits to floats."""
        return self.node("DequantizeLinear", [x, self.scale, self.zero])

    def layer(self, x: str, channels: int, k: int = 3, stride: int = 1, group: int = 1) -> str:
        """A convolution with ReLU of 8 bits, fused or between a dequantisation and a quantisation."""
        weights = self.weight(self.random.integers(-127, 127, (channels, self.channels[x] // group, k, k), np.int8))
        how: dict[str, Any] = {
            "kernel_shape": [k, k], "strides": [stride] * 2, "pads": [k // 2] * 4, "group": group
        }  # fmt: skip
        if self.fused:
            operands = [x, self.scale, self.zero, weights, self.fine, self.none, self.scale, self.zero]
            return self.node("QLinearConv", operands, channels, **how)
        wide = self.node("DequantizeLinear", [weights, self.fine, self.none], 0)
        y = self.relu(self.node("Conv", [self.floats(x), wide], channels, **how))
        return self.quantised(y)


def quantised(size: int = 224, *, fused: bool = False, zero: int = 0) -> Any:
    """A CNN of 8 bits with depthwise layers and residuals, as QDQ or with QLinearConv.

    As QDQ with a zero point of 0, as behind a ReLU, ONNX Runtime makes a QLinearConv of each convolution. With another
    one the ReLU is not part of the quantisation, and convolutions stay such of floats.
    """
    net = _Quantised("quantised", (1, 3, size, size), fused=fused, zero=zero)
    x = net.layer(net.quantised("x"), 32, 3, 2)
    for channels, stride in ((64, 1), (96, 2), (128, 1), (192, 2), (192, 1), (256, 2), (256, 1)):
        y = net.layer(x, net.channels[x], 3, stride, net.channels[x] if stride == 2 else 1)
        y = net.layer(y, channels, 1)
        if stride == 1 and net.channels[x] == channels:
            y = net.quantised(net.node("Add", [net.floats(x), net.floats(y)]))
        x = y
    return net.model(net.classifier(net.floats(x), 100))


def transformer(tokens: int = 4096, width: int = 192, heads: int = 3, layers: int = 2) -> Any:
    """A transformer encoder in standard operators, its sequence long beside its width."""
    net = Net("transformer", (1, tokens, width))
    each = width // heads

    def norm(x: str) -> str:
        one = np.ones(width, np.float32)
        return net.node("LayerNormalization", [x, net.weight(one), net.weight(one * 0)], axis=-1)

    def dense(x: str, rows: int, columns: int) -> str:
        y = net.node("MatMul", [x, net.weight(net.normal(columns, rows).T.copy())])
        return net.node("Add", [y, net.weight(net.normal(columns))])

    def split(x: str, order: list[int]) -> str:
        shape = net.weight(np.array([1, tokens, heads, each], np.int64))
        return net.node("Transpose", [net.node("Reshape", [dense(x, width, width), shape])], perm=order)

    x = "x"
    for _ in range(layers):
        y = norm(x)
        q, k, v = split(y, [0, 2, 1, 3]), split(y, [0, 2, 3, 1]), split(y, [0, 2, 1, 3])
        scaled = net.node("Mul", [net.node("MatMul", [q, k]), net.weight(np.float32(each**-0.5))])
        y = net.node("MatMul", [net.node("Softmax", [scaled], axis=-1), v])
        y = net.node("Transpose", [y], perm=[0, 2, 1, 3])
        y = net.node("Reshape", [y, net.weight(np.array([1, tokens, width], np.int64))])
        x = net.node("Add", [x, dense(y, width, width)])
        y = dense(norm(x), width, 4 * width)
        half = net.node("Mul", [y, net.weight(np.float32(0.5))])
        y = net.node("Erf", [net.node("Div", [y, net.weight(np.float32(2**0.5))])])
        y = net.node("Mul", [half, net.node("Add", [y, net.weight(np.float32(1))])])
        x = net.node("Add", [x, dense(y, 4 * width, width)])
    return net.model(dense(net.node("ReduceMean", [norm(x)], axes=[1], keepdims=0), width, 10))


def audio(samples: int = 65536) -> Any:
    """A one-dimensional CNN over a waveform."""
    net = Net("audio", (1, 1, samples))
    x = "x"
    for channels, k, stride in ((32, 9, 2), (32, 9, 2), (64, 5, 2), (64, 5, 4), (128, 5, 4), (128, 3, 4)):
        weights = [net.weight(net.normal(channels, net.channels[x], k)), net.weight(net.normal(channels))]
        pads = [k // 2, k // 2]
        x = net.relu(net.node("Conv", [x, *weights], channels, kernel_shape=[k], strides=[stride], pads=pads))
    return net.model(net.classifier(x, 10))


def super_resolution(size: int = 128, width: int = 32, blocks: int = 4) -> Any:
    """Residual blocks between a first convolution and a sum with its result, then an image of twice the size."""
    net = Net("super_resolution", (1, 3, size, size))
    first = x = net.conv("x", width)
    for _ in range(blocks):
        x = net.node("Add", [x, net.conv(net.relu(net.conv(x, width)), width)])
    x = net.node("Add", [first, net.conv(x, width)])
    return net.model(net.node("DepthToSpace", [net.conv(x, 12)], 3, blocksize=2))


NETS: dict[str, Callable[[], Any]] = {
    "mobilenet_v2": mobilenet_v2,
    "resnet50": resnet50,
    "unet": unet,
    "unet_resize": lambda: unet(resize=True),
    "fpn": fpn,
    "yolo": yolo,
    "quantised_qdq": quantised,
    "quantised_qdq_apart": lambda: quantised(zero=128),
    "quantised_qlinear": lambda: quantised(fused=True, zero=128),
    "transformer": transformer,
    "audio": audio,
    "super_resolution": super_resolution,
}


def main() -> None:
    """Writes the files."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, required=True, help="the folder to write to")
    parser.add_argument("--only", choices=NETS, help="one of them")
    arguments = parser.parse_args()
    for name, make in NETS.items():
        if arguments.only in (None, name):
            onnx.save(make(), arguments.out / f"{name}.onnx")


if __name__ == "__main__":
    main()

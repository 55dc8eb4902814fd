"""Training steps of small networks as ONNX files: forward, loss and gradients, with random weights; needs onnx only.

python models/onnx_training.py --out DIR [--only NAME]
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
_FLOAT = 1


class Tape:
    """Builds the forward pass node by node and remembers how each gradient follows; weights are inputs of the step."""

    def __init__(self, name: str, shape: Sequence[int], seed: int = 0) -> None:
        self.name = name
        self.random = np.random.default_rng(seed)
        self.nodes: list[Any] = []
        self.constants: list[Any] = []
        self.shapes: dict[str, tuple[int, ...]] = {"x": tuple(shape)}
        self.weights: dict[str, Any] = {}
        self.backward: list[Callable[[dict[str, str]], None]] = []
        self.gradients: dict[str, str] = {}

    def node(self, kind: str, inputs: Sequence[str], shape: Sequence[int], **attributes: Any) -> str:
        """A node with one output of this shape."""
        name = f"v{len(self.nodes)}"
        self.nodes.append(helper.make_node(kind, list(inputs), [name], f"n{len(self.nodes)}", **attributes))
        self.shapes[name] = tuple(shape)
        return name

    def constant(self, value: Any) -> str:
        """A constant of the graph."""
        name = f"c{len(self.constants)}"
        self.constants.append(numpy_helper.from_array(np.asarray(value), name))
        return name

    def weight(self, *shape: int) -> str:
        """A weight, stored in the file."""
        name = f"w{len(self.weights)}"
        fan = int(np.prod(shape[1:])) or 1
        self.weights[name] = (self.random.standard_normal(shape) * np.sqrt(1.5 / fan)).astype(np.float32)
        self.shapes[name] = shape
        return name

    def dense(self, x: str, width: int) -> str:
        """x [n, k] times a weight [width, k], transposed."""
        n, k = self.shapes[x]
        w = self.weight(width, k)
        y = self.node("Gemm", [x, w], (n, width), transB=1)

        def back(grads: dict[str, str]) -> None:
            self.gradients[w] = self.node("Gemm", [grads[y], x], (width, k), transA=1)
            if x != "x":
                grads[x] = self.node("Gemm", [grads[y], w], (n, k))

        self.backward.append(back)
        return y

    def conv(self, x: str, channels: int) -> str:
        """A convolution with windows of 3 by 3 that keeps height and width."""
        n, c, h, w = self.shapes[x]
        kernel = self.weight(channels, c, 3, 3)
        y = self.node("Conv", [x, kernel], (n, channels, h, w), kernel_shape=[3, 3], pads=[1] * 4)

        def back(grads: dict[str, str]) -> None:
            data = self.node("Transpose", [x], (c, n, h, w), perm=[1, 0, 2, 3])
            filters = self.node("Transpose", [grads[y]], (channels, n, h, w), perm=[1, 0, 2, 3])
            found = self.node("Conv", [data, filters], (c, channels, 3, 3), kernel_shape=[h, w], pads=[1] * 4)
            self.gradients[kernel] = self.node("Transpose", [found], (channels, c, 3, 3), perm=[1, 0, 2, 3])
            if x != "x":
                grads[x] = self.node(
                    "ConvTranspose", [grads[y], kernel], (n, c, h, w), kernel_shape=[3, 3], pads=[1] * 4
                )

        self.backward.append(back)
        return y

    def tanh(self, x: str) -> str:
        """The hyperbolic tangent; its gradient needs its result only."""
        shape = self.shapes[x]
        y = self.node("Tanh", [x], shape)

        def back(grads: dict[str, str]) -> None:
            square = self.node("Mul", [y, y], shape)
            slope = self.node("Sub", [self.constant(np.float32(1)), square], shape)
            grads[x] = self.node("Mul", [grads[y], slope], shape)

        self.backward.append(back)
        return y

    def flat(self, x: str) -> str:
        """The mean over height and width, as a row for each sample."""
        n, c, h, w = self.shapes[x]
        y = self.node("ReduceMean", [x], (n, c), axes=[2, 3], keepdims=0)

        def back(grads: dict[str, str]) -> None:
            share = self.node("Mul", [grads[y], self.constant(np.float32(1 / (h * w)))], (n, c))
            column = self.node("Reshape", [share, self.constant(np.array([n, c, 1, 1]))], (n, c, 1, 1))
            grads[x] = self.node("Expand", [column, self.constant(np.array([n, c, h, w]))], (n, c, h, w))

        self.backward.append(back)
        return y

    def finish(self, y: str) -> Any:
        """The step with half the squared distance to a target as loss; outputs are the loss and all gradients."""
        shape = self.shapes[y]
        apart = self.node("Sub", [y, "target"], shape)
        square = self.node("Mul", [apart, apart], shape)
        total = self.node("ReduceSum", [square], (), keepdims=0)
        loss = self.node("Mul", [total, self.constant(np.float32(0.5))], ())
        grads = {y: apart}
        for back in reversed(self.backward):
            back(grads)
        inputs = [helper.make_tensor_value_info(t, _FLOAT, s) for t, s in (("x", self.shapes["x"]), ("target", shape))]
        outputs = [helper.make_tensor_value_info(t, _FLOAT, self.shapes[t]) for t in (loss, *self.gradients.values())]
        stored = [numpy_helper.from_array(array, name) for name, array in self.weights.items()]
        graph = helper.make_graph(self.nodes, self.name, inputs, outputs, [*stored, *self.constants])
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=_IR)
        onnx.checker.check_model(model, full_check=True)
        return model


def mlp_step(layers: int = 6, width: int = 64, batch: int = 256) -> Any:
    """A step of a perceptron with equal layers."""
    tape = Tape("mlp_step", (batch, width))
    y = "x"
    for _ in range(layers):
        y = tape.tanh(tape.dense(y, width))
    return tape.finish(tape.dense(y, 10))


def cnn_step(layers: int = 4, channels: int = 16, side: int = 32, batch: int = 4) -> Any:
    """A step of a network of convolutions over maps of one size."""
    tape = Tape("cnn_step", (batch, 3, side, side))
    y = "x"
    for _ in range(layers):
        y = tape.tanh(tape.conv(y, channels))
    return tape.finish(tape.dense(tape.flat(y), 10))


NETS: dict[str, Callable[[], Any]] = {"mlp_step": mlp_step, "cnn_step": cnn_step}


def main() -> None:
    """Writes the files."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, required=True, metavar="DIR")
    parser.add_argument("--only", choices=NETS, action="append")
    arguments = parser.parse_args()
    arguments.out.mkdir(parents=True, exist_ok=True)
    for name in arguments.only or NETS:
        path = arguments.out / f"{name}.onnx"
        path.write_bytes(NETS[name]().SerializeToString())
        print(f"{path}  {path.stat().st_size:,} bytes")


if __name__ == "__main__":
    main()

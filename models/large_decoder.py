"""A decoder as large as is wanted, as an ONNX file that has shapes and no weights: its data would be in another file.

python models/large_decoder.py --out FILE.onnx [--layers 32 --width 4096 --heads 32 --inner 11008 --words 32000]

One token is computed with a cache of keys and values. The weights are 16 bits wide; with the defaults they are the
13.5 GB of a model of 6.7 billion parameters.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import onnx
from onnx import TensorProto, helper

_TYPE = TensorProto.FLOAT16
_BYTES = 2


class Decoder:
    """The nodes and weights of a decoder; a weight is a name, a shape and a place in a file that nobody reads."""

    def __init__(self, width: int, heads: int, inner: int, words: int, past: int) -> None:
        self.width, self.heads, self.inner, self.words, self.past = width, heads, inner, words, past
        self.nodes: list[Any] = []
        self.weights: list[Any] = []
        self.inputs = [helper.make_tensor_value_info("token", TensorProto.INT64, [1, 1])]
        self.outputs: list[Any] = []
        self.offset = 0

    def node(self, kind: str, inputs: list[str], **attributes: Any) -> str:
        """A node with one output, which has its name."""
        name = f"{kind.lower()}_{len(self.nodes)}"
        self.nodes.append(helper.make_node(kind, inputs, [name], name, **attributes))
        return name

    def weight(self, name: str, *shape: int) -> str:
        """A weight of this shape in the external file."""
        tensor = TensorProto(name=name, dims=shape, data_type=_TYPE, data_location=TensorProto.EXTERNAL)
        length = _BYTES
        for extent in shape:
            length *= extent
        for key, value in (("location", "weights.bin"), ("offset", self.offset), ("length", length)):
            tensor.external_data.add(key=key, value=str(value))
        self.offset += length
        self.weights.append(tensor)
        return name

    def constant(self, name: str, *values: int) -> str:
        """A small tensor of integers, such as a shape, in the file itself."""
        self.weights.append(helper.make_tensor(name, TensorProto.INT64, [len(values)], list(values)))
        return name

    def norm(self, x: str, name: str) -> str:
        """A layer normalization."""
        scale = self.weight(f"{name}.scale", self.width)
        return self.node("LayerNormalization", [x, scale], axis=-1)

    def product(self, x: str, name: str, columns: int, rows: int | None = None) -> str:
        """A matrix product with a weight."""
        return self.node("MatMul", [x, self.weight(name, rows or self.width, columns)])

    def split(self, x: str) -> str:
        """One token as heads: (1, heads, 1, width of a head)."""
        return self.node("Transpose", [self.node("Reshape", [x, "heads"])], perm=[0, 2, 1, 3])

    def cached(self, x: str, name: str) -> str:
        """What the cache holds, and the new token behind it."""
        shape = [1, self.heads, self.past, self.width // self.heads]
        self.inputs.append(helper.make_tensor_value_info(f"past.{name}", _TYPE, shape))
        return self.node("Concat", [f"past.{name}", x], axis=2)

    def layer(self, x: str, name: str) -> str:
        """Attention over the cache, then a gated network."""
        h = self.norm(x, f"{name}.attention")
        q = self.split(self.product(h, f"{name}.q", self.width))
        k = self.cached(self.split(self.product(h, f"{name}.k", self.width)), f"{name}.keys")
        v = self.cached(self.split(self.product(h, f"{name}.v", self.width)), f"{name}.values")
        scores = self.node("MatMul", [q, self.node("Transpose", [k], perm=[0, 1, 3, 2])])
        mixed = self.node("MatMul", [self.node("Softmax", [scores], axis=-1), v])
        joined = self.node("Reshape", [self.node("Transpose", [mixed], perm=[0, 2, 1, 3]), "joined"])
        x = self.node("Add", [x, self.product(joined, f"{name}.o", self.width)])
        h = self.norm(x, f"{name}.network")
        gate, up = (self.product(h, f"{name}.{part}", self.inner) for part in ("gate", "up"))
        inner = self.node("Mul", [self.node("Mul", [gate, self.node("Sigmoid", [gate])]), up])
        return self.node("Add", [x, self.product(inner, f"{name}.down", self.width, self.inner)])

    def model(self, layers: int) -> onnx.ModelProto:
        """The whole decoder: embedding, layers, logits."""
        self.constant("heads", 1, 1, self.heads, self.width // self.heads)
        self.constant("joined", 1, 1, self.width)
        x = self.node("Gather", [self.weight("embedding", self.words, self.width), "token"])
        for number in range(layers):
            x = self.layer(x, f"layer{number}")
        logits = self.product(self.norm(x, "last"), "logits", self.words)
        self.outputs.append(helper.make_tensor_value_info(logits, _TYPE, [1, 1, self.words]))
        graph = helper.make_graph(self.nodes, "large_decoder", self.inputs, self.outputs, self.weights)
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def main() -> None:
    """Writes the file."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, required=True, metavar="FILE.onnx")
    for name, value in (
        ("layers", 32),
        ("width", 4096),
        ("heads", 32),
        ("inner", 11008),
        ("words", 32000),
        ("past", 512),
    ):
        parser.add_argument(f"--{name}", type=int, default=value, metavar="N")
    given = parser.parse_args()
    decoder = Decoder(given.width, given.heads, given.inner, given.words, given.past)
    given.out.write_bytes(decoder.model(given.layers).SerializeToString())
    print(f"{given.out}: {decoder.offset:,} bytes of weights in a file that does not exist")


if __name__ == "__main__":
    main()

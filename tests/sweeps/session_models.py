"""Models for sessions of ONNX Runtime: the project's own, the zoo of the onnx package, and generated ones."""

from __future__ import annotations

import random
import sys
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "models"))
sys.path.insert(0, str(Path(__file__).parent))

import onnx_nets
import onnx_stripes

ROOT = Path(__file__).resolve().parents[2]
LIGHT = Path(onnx.__file__).parent / "backend" / "test" / "data" / "light"
#: What binds the open extents of the project's own models.
DIMS = {
    "bert_like": ("batch=1", "sequence=64"), "bert_like_dynamo": ("batch=1", "sequence=64"),
    "decoder_kv": ("batch=1", "sequence=8", "past_sequence=24"),
    "decoder_kv_dynamo": ("batch=1", "sequence=8", "past_sequence=24"),
}  # fmt: skip
_IR = 9


def session_models(folder: Path) -> Iterator[tuple[str, str, Path, tuple[str, ...]]]:
    """Kind, name, file and bound extents of each model; what is generated is written to `folder`."""
    for path in sorted((ROOT / "models").glob("*.onnx")):
        yield "own", path.stem, path, DIMS.get(path.stem, ())
    for path in sorted(LIGHT.glob("*.onnx")):
        yield "light zoo", path.stem, _saved(folder, path.stem, with_weights(onnx.load(path))), ()
    for kind, makers in MAKERS.items():
        for name, make in makers.items():
            yield kind, name, _saved(folder, f"{kind}-{name}".replace(" ", "_"), make()), ()


def _saved(folder: Path, name: str, model: Any) -> Path:
    path = folder / f"{name}.onnx"
    onnx.save(model, path)
    return path


def with_weights(model: Any) -> Any:
    """The model with made-up weights in place of the nodes that fill its weights with one value."""
    graph = model.graph
    values = {tensor.name: numpy_helper.to_array(tensor) for tensor in graph.initializer}
    kept: list[Any] = []
    for node in graph.node:
        if node.op_type == "ConstantOfShape" and node.input[0] in values:
            random_values = np.random.default_rng(len(kept)).standard_normal(tuple(values[node.input[0]]), np.float32)
            graph.initializer.append(numpy_helper.from_array(random_values * np.float32(0.05), node.output[0]))
        else:
            kept.append(node)
    del graph.node[:]
    graph.node.extend(kept)
    return model


def dag(nodes: int, seed: int, extent: int = 64) -> Any:
    """Element-wise operators over values of a few shapes, each reading one or two earlier ones."""
    draw = random.Random(seed)
    shapes = [[1, extent * (1 << k)] for k in range(3)]
    inputs = [helper.make_tensor_value_info(f"x{k}", TensorProto.FLOAT, shape) for k, shape in enumerate(shapes)]
    made: list[list[str]] = [[f"x{k}"] for k in range(3)]
    unread: set[str] = set()
    rows = []
    for number in range(nodes):
        names, out = made[number % 3], f"v{number}"
        kind = draw.choice(("Add", "Mul", "Relu", "Sigmoid", "Abs"))
        read = [draw.choice(names[-12:]) for _ in range(2 if kind in ("Add", "Mul") else 1)]
        rows.append(helper.make_node(kind, read, [out]))
        unread -= set(read)
        unread.add(out)
        names.append(out)
    outputs = [helper.make_empty_tensor_value_info(name) for name in sorted(unread)]
    graph = helper.make_graph(rows, "dag", inputs, outputs)
    return _model(graph)


def chain(kind: str, nodes: int, values: int) -> Any:
    """One operator behind the other."""
    rows = [helper.make_node(kind, [f"v{k}"], [f"v{k + 1}"]) for k in range(nodes)]
    ends = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [values]) for name in ("v0", f"v{nodes}")]
    return _model(helper.make_graph(rows, "chain", ends[:1], ends[1:]))


def recurrent(kind: str, steps: int, hidden: int, layers: int, both: object) -> Any:
    """Layers of LSTM, GRU or RNN over a sequence."""
    draw, gates, ways = np.random.default_rng(0), {"LSTM": 4, "GRU": 3, "RNN": 1}[kind], 2 if both else 1
    rows: list[Any] = []
    weights: list[Any] = []
    x, width = "x", 16

    def weight(*shape: int) -> str:
        name = f"w{len(weights)}"
        weights.append(numpy_helper.from_array(draw.standard_normal(shape).astype(np.float32) * np.float32(0.1), name))
        return name

    for layer in range(layers):
        operands = [x, weight(ways, gates * hidden, width), weight(ways, gates * hidden, hidden)]
        how: dict[str, Any] = {"hidden_size": hidden, "direction": "bidirectional" if both else "forward"}
        rows.append(helper.make_node(kind, operands, [f"y{layer}"], **how))
        rows.append(helper.make_node("Transpose", [f"y{layer}"], [f"t{layer}"], perm=[0, 2, 1, 3]))
        weights.append(numpy_helper.from_array(np.array([steps, 1, ways * hidden], np.int64), f"shape{layer}"))
        rows.append(helper.make_node("Reshape", [f"t{layer}", f"shape{layer}"], [f"z{layer}"]))
        x, width = f"z{layer}", ways * hidden
    given = [helper.make_tensor_value_info("x", TensorProto.FLOAT, [steps, 1, 16])]
    return _model(helper.make_graph(rows, kind, given, [helper.make_empty_tensor_value_info(x)], weights))


def quantised(size: int, fused: object, zero: int) -> Any:
    """A CNN of 8 bits."""
    return onnx_nets.quantised(size, fused=bool(fused), zero=zero)


def _model(graph: Any) -> Any:
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=_IR)
    return onnx.shape_inference.infer_shapes(model)


Maker = Callable[[], Any]
MAKERS: dict[str, dict[str, Maker]] = {
    "CNN": {
        **{f"random {seed}": partial(onnx_stripes.random_net, seed) for seed in range(12)},
        "mobilenet_v2 96": partial(onnx_nets.mobilenet_v2, 96),
        "resnet50 64": partial(onnx_nets.resnet50, 64),
        "unet 64": partial(onnx_nets.unet, 64, 16),
        "unet resize 64": partial(onnx_nets.unet, 64, 16, resize=True),
        "fpn 128": partial(onnx_nets.fpn, 128),
        "audio 16384": partial(onnx_nets.audio, 16384),
        "super resolution 64": partial(onnx_nets.super_resolution, 64),
    },
    "transformer": {
        f"{tokens} tokens of {width}": partial(onnx_nets.transformer, tokens, width, 3, 2)
        for tokens, width in ((32, 48), (64, 96), (128, 96), (256, 192), (512, 192), (100, 60))
    },
    "DAG": {
        **{
            f"{nodes} nodes": partial(dag, nodes, seed)
            for seed, nodes in enumerate((20, 50, 100, 300, 1000, 3000))
        },
        **{
            f"{nodes} nodes of {extent}": partial(dag, nodes, 7, extent)
            for nodes, extent in ((60, 4096), (200, 2048), (500, 20000))
        },
    },
    "chain": {
        f"{kind} {nodes} of {values}": partial(chain, kind, nodes, values)
        for kind, nodes, values in (
            ("Relu", 10, 1000), ("Exp", 10, 100000), ("Exp", 100, 30000), ("Sin", 1000, 1000), ("Sin", 30, 1000000))
    },
    "RNN": {
        f"{kind} {steps} x {hidden} x {layers}{' both' * both}": partial(recurrent, kind, steps, hidden, layers, both)
        for kind, steps, hidden, layers, both in (
            ("LSTM", 20, 32, 1, False), ("LSTM", 50, 64, 2, True), ("GRU", 20, 32, 1, False),
            ("GRU", 40, 48, 2, True), ("RNN", 20, 32, 2, False), ("RNN", 30, 64, 1, True))
    },
    "QDQ": {
        f"{size}{' fused' * fused}{f' zero {zero}' * bool(zero)}": partial(quantised, size, fused, zero)
        for size, fused, zero in (
            (32, False, 0), (64, False, 128), (96, False, 0), (128, False, 128), (32, True, 128), (96, True, 128))
    },
}  # fmt: skip

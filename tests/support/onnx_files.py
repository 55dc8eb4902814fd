"""Small .onnx files of one input and one output."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import helper, numpy_helper

from modelplan import Graph, load


def saved(path: Path, nodes: Sequence[Any], shapes: Mapping[str, Sequence[int]], weights: Mapping[str, Any]) -> Path:
    """Writes a model; `shapes` are those of its input and its output by name, both of floats."""
    x, y = (helper.make_tensor_value_info(name, 1, shape) for name, shape in shapes.items())
    tensors = [numpy_helper.from_array(np.asarray(value), name) for name, value in weights.items()]
    graph = helper.make_graph(list(nodes), "g", [x], [y], tensors)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    onnx.save(onnx.shape_inference.infer_shapes(model), path)
    return path


def graph_of(path: Path) -> Graph:
    """The graph of a model file."""
    graph = load(path)
    assert isinstance(graph, Graph)
    return graph

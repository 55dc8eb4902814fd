"""Pools with drawn windows, and the shapes that sessions of ONNX Runtime make with them."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
from onnx import helper

OPSETS = (10, 11, 12, 13, 17, 18, 19, 20, 21, 22)
#: The first opset in which windows may have gaps, and in which a last one may be cut off.
_GAPS, _CUT = {"MaxPool": 10, "AveragePool": 19, "LpPool": 18}, {"MaxPool": 10, "AveragePool": 10, "LpPool": 18}


def drawn_pool(seed: int) -> Any:
    """A model of one pool and of an Exp that reads what it makes."""
    draw = random.Random(seed)
    rank, kind, opset = draw.choice((1, 2, 2, 3)), draw.choice(sorted(_GAPS)), draw.choice(OPSETS)
    kernel = [draw.randint(1, 4) for _ in range(rank)]
    how: dict[str, Any] = {"kernel_shape": kernel}
    if draw.random() < 0.7:
        how["strides"] = [draw.randint(1, 5) for _ in range(rank)]
    if draw.random() < 0.4 and opset >= _GAPS[kind]:
        how["dilations"] = [draw.randint(1, 3) for _ in range(rank)]
    if opset >= _CUT[kind]:
        how["ceil_mode"] = draw.randint(0, 1)
    auto = draw.choice(("NOTSET", "NOTSET", "NOTSET", "SAME_UPPER", "SAME_LOWER", "VALID"))
    if auto != "NOTSET":
        how["auto_pad"] = auto
    elif draw.random() < 0.7:
        how["pads"] = [draw.randint(0, kernel[axis % rank] - 1) for axis in range(2 * rank)]
    shape = [1, 2, *(draw.randint(3, 14) for _ in range(rank))]
    nodes = [helper.make_node(kind, ["x"], ["y"], "pool", **how), helper.make_node("Exp", ["y"], ["z"])]
    outputs = [helper.make_empty_tensor_value_info(name) for name in "yz"]
    graph = helper.make_graph(nodes, "g", [helper.make_tensor_value_info("x", 1, shape)], outputs)
    return helper.make_model(graph, ir_version=8, opset_imports=[helper.make_opsetid("", opset)])


def session_shape(model: Any) -> tuple[int, ...] | None:
    """The shape that a session makes, None where it refuses the pool."""
    import onnxruntime as rt

    options = rt.SessionOptions()
    options.graph_optimization_level, options.log_severity_level = rt.GraphOptimizationLevel.ORT_DISABLE_ALL, 4
    shape = [dim.dim_value for dim in model.graph.input[0].type.tensor_type.shape.dim]
    try:
        session = rt.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
        return tuple(session.run(["z"], {"x": np.zeros(shape, np.float32)})[0].shape)
    except Exception:  # noqa: BLE001 - ONNX Runtime's own, one of many kinds
        return None

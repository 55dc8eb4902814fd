"""Multiply-accumulates of operators: convolutions and matrix products, as data for each file format."""

from __future__ import annotations

from collections.abc import Callable
from math import prod

from modelplan.model import Graph, Op
from modelplan.ops.conditions import number

#: Multiply-accumulates of one element of output 0.
Count = Callable[[Graph, Op], int]


def _filter(graph: Graph, op: Op) -> int:
    """Weights [out, rows, columns, in]: all that one output channel reads."""
    return prod(graph.tensors[op.inputs[1]].shape[1:])


def _depthwise(graph: Graph, op: Op) -> int:
    return prod(graph.tensors[op.inputs[1]].shape[1:3])


def _last(operand: int) -> Count:
    """The extent of an operand along its last axis, over which a matrix product sums."""
    return lambda graph, op: graph.tensors[op.inputs[operand]].shape[-1]


def _batched(graph: Graph, op: Op) -> int:
    return graph.tensors[op.inputs[0]].shape[-2 if op.attribute("adj_x") else -1]


def _gemm(graph: Graph, op: Op) -> int:
    return graph.tensors[op.inputs[0]].shape[0 if number(op, "transA", 0) else 1]


def _onnx_filter(operand: int) -> Count:
    """Weights [out, in / group, ...]: all that one output channel reads."""
    return lambda graph, op: prod(graph.tensors[op.inputs[operand]].shape[1:])


def _onnx_transposed(graph: Graph, op: Op) -> int:
    """Weights [in, out / group, ...] meet every input element; as a share of one output element, rounded up."""
    work = prod(graph.tensors[op.inputs[0]].shape) * prod(graph.tensors[op.inputs[1]].shape[1:])
    return -(-work // max(prod(graph.tensors[op.outputs[0]].shape), 1))


_TFLITE: dict[str, Count] = {
    "CONV_2D": _filter,
    "DEPTHWISE_CONV_2D": _depthwise,
    "TRANSPOSE_CONV": _filter,
    "FULLY_CONNECTED": _last(1),
    "BATCH_MATMUL": _batched,
}
_ONNX: dict[str, Count] = {
    "Conv": _onnx_filter(1),
    "ConvInteger": _onnx_filter(1),
    "QLinearConv": _onnx_filter(3),
    "ConvTranspose": _onnx_transposed,
    "Gemm": _gemm,
    "MatMul": _last(0),
    "MatMulInteger": _last(0),
    "QLinearMatMul": _last(0),
}
_TABLES = {"tflite": _TFLITE, "onnx": _ONNX}


def element_macs(graph: Graph, op: Op) -> int:
    """Multiply-accumulates of one element of output 0; 0 for what is not a convolution or matrix product."""
    count = _TABLES[graph.format].get(op.kind)
    return count(graph, op) if count else 0


def op_macs(graph: Graph, op: Op) -> int:
    """Multiply-accumulates of an operator; 0 for those that are not convolutions or matrix products."""
    return prod(graph.tensors[op.outputs[0]].shape) * element_macs(graph, op) if op.writes else 0


def graph_macs(graph: Graph) -> int:
    """Multiply-accumulates of the convolutions and matrix products of one run of a graph.

    Recurrent cells that are one operator and the bodies of control operators count none.
    """
    return sum(op_macs(graph, op) for op in graph.ops)

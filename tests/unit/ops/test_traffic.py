"""What operators read and write, against loops that count every access one by one."""

from __future__ import annotations

from itertools import product
from typing import Any

import pytest

from modelplan.model import Graph, Kind, Op, Tensor
from modelplan.ops.run_costs import Amount, traffic_of


def graph_of(kind: str, shapes: list[tuple[int, ...]], y: tuple[int, ...], dtype: str = "int8", **facts: Any) -> Graph:
    tensors = [Tensor(f"t{i}", shape, dtype) for i, shape in enumerate((*shapes, y))]
    op = Op("", kind, tuple(range(len(shapes))), (len(shapes),), tuple(facts.items()))
    return Graph("g", "tflite", tuple(tensors), (op,), tuple(range(len(shapes))), (len(shapes),))


def reads(graph: Graph) -> tuple[int, ...]:
    return tuple(amount.read for amount in traffic_of(graph, graph.ops[0]).inputs)


@pytest.mark.parametrize(("rows", "reach", "stride", "dilation", "padding"),
                         list(product((5, 8), (1, 3), (1, 2), (1, 2), ("SAME", "VALID"))))  # fmt: skip
def test_a_convolution_reads_a_window_for_each_output_element(
    rows: int, reach: int, stride: int, dilation: int, padding: str
) -> None:
    covered = (reach - 1) * dilation + 1
    made = -(-rows // stride) if padding == "SAME" else (rows - covered) // stride + 1
    before = max((made - 1) * stride + covered - rows, 0) // 2 if padding == "SAME" else 0
    facts: dict[str, Any] = (
        {"padding": padding} | {f"stride_{a}": stride for a in "hw"} | {f"dilation_{a}_factor": dilation for a in "hw"}
    )
    inside = 0
    for oy, ox, ky, kx in product(range(made), range(made), range(reach), range(reach)):
        y, x = oy * stride - before + ky * dilation, ox * stride - before + kx * dilation
        inside += 0 <= y < rows and 0 <= x < rows
    graph = graph_of("CONV_2D", [(1, rows, rows, 3), (4, reach, reach, 3), (4,)], (1, made, made, 4), **facts)
    assert reads(graph) == (inside * 3 * 4, inside * 3 * 4, made * made * 4)
    graph = graph_of("DEPTHWISE_CONV_2D", [(1, rows, rows, 3), (1, reach, reach, 6), (6,)], (1, made, made, 6), **facts)
    assert reads(graph) == (inside * 6, inside * 6, made * made * 6)


def test_a_matrix_is_read_for_each_row_and_weights_count_in_their_own_width() -> None:
    graph = graph_of("FULLY_CONNECTED", [(2, 7), (5, 7), (5,)], (2, 5), "int16")
    assert reads(graph) == (2 * 2 * 5 * 7, 2 * 2 * 5 * 7, 2 * 2 * 5)
    assert traffic_of(graph, graph.ops[0]).outputs == (Amount(0, 20),)


def test_what_is_broadcast_is_read_for_each_output_element() -> None:
    assert reads(graph_of("ADD", [(4, 6), (6,)], (4, 6))) == (24, 24)
    assert reads(graph_of("SLICE", [(4, 6), (2,), (2,)], (2, 3))) == (6, 2, 2)
    assert reads(graph_of("SOFTMAX", [(4, 6)], (4, 6))) == (72,)
    assert reads(graph_of("CUSTOM", [(4, 6)], (4, 6))) == (24,)


def test_an_operator_without_a_rule_reads_and_writes_once_and_scratch_too() -> None:
    tensors = Tensor("x", (8,), "float32"), Tensor("s", (3,), "int8", Kind.STATE), Tensor("y", (2,), "float32")
    op = Op("", "Einsum", (0, -1, 1), (2,), scratch=(12,))
    traffic = traffic_of(Graph("g", "onnx", tensors, (op,), (0,), (2,)), op)
    assert traffic.inputs == (Amount(32, 0), Amount(0, 0), Amount(3, 3))
    assert traffic.outputs == (Amount(0, 8),)
    assert traffic.scratch == (Amount(12, 12),)

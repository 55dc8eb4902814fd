"""Maps that a global pool reads are recomputed behind it, beside what reads them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper
from onnx_files import graph_of

from modelplan.rewriting.striped_onnx.recomputed_skips import late_skips, pooled_skips, with_copies
from modelplan.rewriting.striped_onnx.stretch_ordering import clustered_order
from modelplan.rewriting.striped_onnx.unrolled_nodes import striped_onnx_program
from modelplan.rewriting.striped_onnx.writing import parsed, reading_of, write_striped_onnx
from modelplan.rewriting.stripes.stretches import RecomputedHalo

onnxruntime = pytest.importorskip("onnxruntime")


def excited(path: Path) -> None:
    """A wide map, scaled by numbers that come from its means, and reduced once more."""
    random = np.random.default_rng(0)
    shapes = {"wide": (24, 2, 1, 1), "scale": (24, 24, 1, 1), "small": (2, 24, 3, 3)}
    weights = [numpy_helper.from_array(random.standard_normal(s).astype(np.float32), n) for n, s in shapes.items()]
    nodes = [
        helper.make_node("Relu", ["x"], ["a"], "first"),
        helper.make_node("Conv", ["a", "wide"], ["b"], "widen"),
        helper.make_node("GlobalAveragePool", ["b"], ["c"], "pool"),
        helper.make_node("Conv", ["c", "scale"], ["d"], "mix"),
        helper.make_node("HardSigmoid", ["d"], ["e"], "squash"),
        helper.make_node("Mul", ["b", "e"], ["f"], "scaled"),
        helper.make_node("Conv", ["f", "small"], ["y"], "reduce", pads=[1, 1, 1, 1]),
    ]
    x, y = (helper.make_tensor_value_info(name, 1, [1, 2, 64, 64]) for name in "xy")
    graph = helper.make_graph(nodes, "g", [x], [y], weights)
    onnx.save(helper.make_model(graph, ir_version=9, opset_imports=[helper.make_opsetid("", 17)]), path)


def outputs(path: Path) -> Any:
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_EXTENDED
    x = np.random.default_rng(1).standard_normal((1, 2, 64, 64)).astype(np.float32)
    return onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"]).run(None, {"x": x})[0]


def test_a_map_is_made_again_behind_its_pool(tmp_path: Path) -> None:
    path, out = tmp_path / "m.onnx", tmp_path / "out.onnx"
    excited(path)
    graph, proto = graph_of(path), parsed(path)
    reading = reading_of(proto, graph)
    assert late_skips(reading, 0.5) == []
    assert pooled_skips(reading, 0.5, 1 << 30) == []
    (skip,) = pooled_skips(reading, 0.5, 0)
    assert graph.tensors[skip.t].name == "b"
    assert [graph.ops[index].name for index in (*skip.ops, *skip.late)] == ["widen", "scaled"]

    copied, _ = with_copies(proto, reading, [skip])
    onnx.save(copied, out)
    again = reading_of(copied, graph_of(out))
    order = clustered_order(again)
    assert sorted(order) == list(range(len(again.graph.ops)))
    step = {op: place for place, op in enumerate(order)}
    assert all(step[again.graph.producers[t]] < step[i] for i, op in enumerate(again.graph.ops) for t in op.reads
               if again.graph.producers[t] >= 0)  # fmt: skip
    ordered = replace(again.graph, ops=tuple(again.graph.ops[index] for index in order))
    assert [op.name for op in ordered.ops[-3:]] == ["b/node_again_0", "scaled", "reduce"]

    reading = reading_of(copied, ordered)
    count = len(ordered.ops)
    stretch = RecomputedHalo(count - 3, count - 1, 2, (0, 16, 32, 64), pad=frozenset(range(count)))
    out.write_bytes(write_striped_onnx(copied, reading, striped_onnx_program(reading, [stretch], 1)))
    onnx.checker.check_model(str(out), full_check=True)
    assert outputs(path).tobytes() == outputs(out).tobytes()

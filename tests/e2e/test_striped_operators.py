"""Each operator is computed in stripes bit for bit as before at three optimization levels, or refused by name."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper
from striped_operators import CASES, Case, model

from modelplan import Graph, load
from modelplan.ops.onnx import OPERATORS
from modelplan.ops.op_facts import OpFacts
from modelplan.rewriting.striped_onnx.equal_nodes import with_slices
from modelplan.rewriting.striped_onnx.unrolled_nodes import striped_onnx_program
from modelplan.rewriting.striped_onnx.writing import parsed, reading_of, write_striped_onnx
from modelplan.rewriting.stripes.row_windows import IllegalStripeError
from modelplan.rewriting.stripes.stretches import RecomputedHalo

onnxruntime = pytest.importorskip("onnxruntime")
_LEVELS = ("ORT_DISABLE_ALL", "ORT_ENABLE_BASIC", "ORT_ENABLE_EXTENDED")


def outputs(path: Path, level: str, feeds: list[Any]) -> list[Any]:
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = getattr(onnxruntime.GraphOptimizationLevel, level)
    options.intra_op_num_threads = 1
    options.log_severity_level = 4
    session = onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    return [session.run(None, {"x": x})[0] for x in feeds]


def fed(case: Case) -> list[Any]:
    random = np.random.default_rng(0)
    if case.dtype == 2:
        return [random.integers(0, 256, case.shape, np.uint8), np.full(case.shape, 255, np.uint8)]
    return [random.standard_normal(case.shape).astype(np.float32), np.full(case.shape, 100, np.float32)]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_striped_or_refused(tmp_path: Path, case: Case) -> None:
    path, out = tmp_path / "m.onnx", tmp_path / "out.onnx"
    onnx.save(model(case), path)
    graph = load(path)
    assert isinstance(graph, Graph)
    proto = parsed(path)
    reading = reading_of(proto, graph)
    rows = graph.tensors[graph.ops[-1].outputs[0]].shape[case.axis]
    cuts = tuple(dict.fromkeys((0, rows // 3, rows // 3 + 2, rows)))
    stretch = RecomputedHalo(0, len(graph.ops) - 1, case.axis, cuts, pad=frozenset(range(len(graph.ops))))
    if case.refused:
        with pytest.raises(IllegalStripeError, match=re.escape(case.refused)) as refused:
            striped_onnx_program(reading, [stretch], threads=1)
        assert case.kind in str(refused.value)
        return
    out.write_bytes(write_striped_onnx(proto, reading, striped_onnx_program(reading, [stretch], threads=1)))
    if case.domain or onnx.defs.has(case.kind):  # ONNX Runtime has operators in the standard domain that onnx refuses
        onnx.checker.check_model(str(out), full_check=True)
    for level in _LEVELS:
        for expected, found in zip(outputs(path, level, fed(case)), outputs(out, level, fed(case)), strict=True):
            assert expected.dtype == found.dtype
            assert expected.shape == found.shape
            assert expected.tobytes() == found.tobytes(), f"{level}: {np.abs(expected - found).max()}"


def test_each_operator_has_a_case() -> None:
    there = {f"{case.domain}.{case.kind}".strip(".") for case in CASES}
    known = {kind for kind, row in OPERATORS.items() if row.rows or row.unsplit != OpFacts().unsplit}
    assert known - there == set()


@pytest.mark.parametrize("opset", [9, 13, 18])
def test_a_split_goes_in_stripes_as_slices(tmp_path: Path, opset: int) -> None:
    path, out = tmp_path / "m.onnx", tmp_path / "out.onnx"
    sizes = [numpy_helper.from_array(np.array([1, 3, 2], np.int64), "sizes")] * (opset >= 13)
    how = {"axis": 1} if sizes else {"axis": 1, "split": [1, 3, 2]}
    nodes = [
        helper.make_node("Relu", ["x"], ["a"], "first"),
        helper.make_node("Split", ["a", *["sizes"] * len(sizes)], ["b", "c", "d"], "split", **how),
        helper.make_node("Concat", ["d", "c", "b"], ["y"], "last", axis=1),
    ]
    x, y = (helper.make_tensor_value_info(name, 1, [1, 6, 24, 18]) for name in "xy")
    proto = helper.make_model(
        helper.make_graph(nodes, "g", [x], [y], sizes), ir_version=9, opset_imports=[helper.make_opsetid("", opset)]
    )
    onnx.save(proto, path)
    graph = load(path)
    assert isinstance(graph, Graph)
    with pytest.raises(IllegalStripeError, match="Split 'split': it has not exactly one output"):
        striped_onnx_program(reading_of(proto, graph), [RecomputedHalo(0, 2, 2, (0, 9, 24))], threads=1)
    sliced = with_slices(proto, reading_of(proto, graph))
    assert sliced is not None
    onnx.save(sliced, out)
    again = load(out)
    assert isinstance(again, Graph)
    assert with_slices(sliced, reading_of(sliced, again)) is None
    reading = reading_of(sliced, again)
    stretch = RecomputedHalo(0, len(again.ops) - 1, 2, (0, 9, 24))
    out.write_bytes(write_striped_onnx(sliced, reading, striped_onnx_program(reading, [stretch], threads=1)))
    onnx.checker.check_model(str(out), full_check=True)
    feeds = [np.random.default_rng(0).standard_normal((1, 6, 24, 18)).astype(np.float32)]
    for level in _LEVELS:
        assert outputs(path, level, feeds)[0].tobytes() == outputs(out, level, feeds)[0].tobytes()

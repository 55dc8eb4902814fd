"""The second reading of .onnx files: equal where the network is right, broken where anything in it is not."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper
from onnx_c_nodes import CODED, DRAWS, Drawn, compare_formulas, quantised
from shares import share

from modelplan import FitCRequest, fit_c
from modelplan.checking.verifier import formula_numbers as f
from modelplan.checking.verifier.network_formulas import formulas_verdict
from modelplan.plain_c import C_RUNGS
from modelplan.plain_c.onnx_networks import emitting, map_nodes, value_nodes
from modelplan.plain_c.onnx_networks.network_reading import NetworkRequest, network_of
from modelplan.primitives.errors import BrokenPlanError, ModelError, ModelPlanError
from modelplan.questions import c_fitting
from modelplan.runtimes.tflm.file import FileOp
from modelplan.runtimes.tflm.stated_network import StatedNetwork, StatedOptions

MODELS = Path(__file__).resolve().parents[3] / "models"


def _drawn(kind: str, seed: int, folder: Path, *, coded: bool = False) -> Path:
    d, path = Drawn(f"{kind} {seed}"), folder / f"{kind}.onnx"
    DRAWS[kind](d)
    onnx.save(d.model(), path)
    if coded:
        pytest.importorskip("onnxruntime")
        quantised(path, folder / "coded.onnx", seed)
        path = folder / "coded.onnx"
    return path


@pytest.mark.parametrize("kind", DRAWS)
def test_drawn_nodes_are_the_same_formulas(kind: str, tmp_path: Path) -> None:
    answers = [compare_formulas(kind, seed, tmp_path) for seed in range(share(30))]
    assert answers == ["equal"] * len(answers)


@pytest.mark.parametrize("interface", ["as-is", "int8", "uint8"])
@pytest.mark.parametrize("kind", CODED)
def test_drawn_codes_are_the_same_formulas(kind: str, interface: str, tmp_path: Path) -> None:
    for seed in range(share(8)):
        path = _drawn(kind, seed, tmp_path, coded=True)
        try:
            network = network_of(str(path), NetworkRequest(interface=interface))
        except ModelPlanError:
            assert interface != "as-is"
            continue
        verdict = formulas_verdict(str(path), network)
        assert verdict.outcome == "ok", (seed, verdict.details)


def _with_op(network: StatedNetwork, number: int, op: FileOp) -> StatedNetwork:
    (main,) = network.subgraphs
    ops = (*main.ops[:number], op, *main.ops[number + 1 :])
    return replace(network, subgraphs=(replace(main, ops=ops),))


#: Options of operators, and another value of each.
_OTHER: dict[str, Callable[[Any], Any]] = {
    "StrideH": lambda v: v + 1,
    "StrideW": lambda v: v + 1,
    "Pads": lambda v: (v[0] + 1, *v[1:]),
    "FilterHeight": lambda v: v + 1,
    "Limits": lambda v: (v[0] + 0.25, v[1]),
    "Alpha": lambda v: v * 2,
    "BlockSize": lambda v: 1,
}


def _faults(network: StatedNetwork) -> Iterator[tuple[str, StatedNetwork]]:
    """The network with one fault each: another option, operands, a number of a constant, or a scale."""
    main, draw = network.subgraphs[0], random.Random(5)
    for number, op in enumerate(main.ops):
        values = op.options.values
        for name in values.keys() & _OTHER.keys():
            changed = StatedOptions({**values, name: _OTHER[name](values[name])})
            yield f"{op.kind} {number} {name}", _with_op(network, number, replace(op, options=changed))
        if op.kind in ("SUB", "DIV", "CONCATENATION") and op.inputs[0] != op.inputs[1]:
            turned = (op.inputs[1], op.inputs[0], *op.inputs[2:])
            yield f"{op.kind} {number} operands", _with_op(network, number, replace(op, inputs=turned))
    for tensor in main.tensors:
        at, length = tensor.content
        size = length // max(tensor.elements, 1)
        if not tensor.constant or tensor.elements < 2 or tensor.name.startswith(("axes", "shape")):
            continue
        one, two = draw.sample(range(tensor.elements), 2)
        data = bytearray(network.data)
        first, second = (slice(at + k * size, at + (k + 1) * size) for k in (one, two))
        data[first], data[second] = data[second], data[first]
        if data != network.data:
            yield f"constant {tensor.name}", replace(network, data=bytes(data))
    for number, scales in network.scales.items():
        other = replace(scales, scales=tuple(s * 1.001 for s in scales.scales))
        yield f"scale {main.tensors[number].name}", replace(network, scales={**network.scales, number: other})


def test_every_fault_in_a_network_is_found(tmp_path: Path) -> None:
    pytest.importorskip("onnxruntime")
    paths = [MODELS / "transformer_encoder.onnx", tmp_path / "resnet8.onnx"]
    quantised(MODELS / "resnet8.onnx", paths[1], 2, "input")
    tried, draw = 0, random.Random(3)
    for path in (*paths, *(_drawn("network", seed, tmp_path, coded=seed > 1) for seed in range(4))):
        faults = list(_faults(network_of(str(path))))
        for what, wrong in draw.sample(faults, min(len(faults), share(30))):
            assert formulas_verdict(str(path), wrong).outcome == "broken", (path.name, what)
            tried += 1
    assert tried > 30


#: Functions of the first reader, what they are made to do, and the drawn nodes that tell.
_READERS: dict[str, tuple[Any, Callable[[Any], Any], str]] = {
    "_windows": (map_nodes, lambda was: lambda *a: was(*a) | {"Pads": (0, 0, 0, 0)}, "convolution"),
    "bias_codes": (map_nodes, lambda was: lambda *a: was(*a)[::-1], "coded_convolution"),
    "signed": (value_nodes, lambda was: lambda codes: codes[::-1], "coded_product"),
    "_row_by_row": (map_nodes, lambda was: lambda *a: (was(*a)[0], {"Summed": 2}), "coded_network"),
    "last_order": (emitting, lambda was: lambda rank: (0, 3, 2, 1) if rank == 4 else (0, 2, 1), "element_wise"),
    "last_axis": (value_nodes, lambda was: lambda axis, rank: axis, "moved"),
}


@pytest.mark.parametrize("name", _READERS)
def test_a_fault_in_the_first_reader_is_found(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    module, wrong, kind = _READERS[name]
    monkeypatch.setattr(module, name, wrong(getattr(module, name)))
    for seed in range(40):
        path = _drawn(kind.removeprefix("coded_"), seed, tmp_path, coded=kind.startswith("coded_"))
        if formulas_verdict(str(path), network_of(str(path))).outcome == "broken":
            return
    pytest.fail("not found")


def test_fit_writes_nothing_of_a_network_that_was_misread(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each fault is told with the node and the tensor that are the first to differ."""
    path = str(MODELS / "resnet8.onnx")
    assert fit_c(FitCRequest(path, without=frozenset(C_RUNGS) - {"maps"})).proof[-1].outcome == "ok"
    network = network_of(path)
    for number, (kind, tensor, node) in {3: ("ADD", "relu_2", "Relu"), 6: ("CONV_2D", "getitem_15", "Conv")}.items():
        op = network.subgraphs[0].ops[number]
        options = StatedOptions({**op.options.values, "Limits": (0.0, 7.0)})
        wrong = _with_op(network, number, replace(op, options=options))
        monkeypatch.setattr(c_fitting, "_network", lambda *_, wrong=wrong, **__: wrong)
        with pytest.raises(BrokenPlanError, match=f"misread: .* tensor '{tensor}' of node {node} '.*' \\({kind}\\)$"):
            fit_c(FitCRequest(path))


def test_places_of_nearest_that_are_floored_at_their_middle_are_refused(tmp_path: Path) -> None:
    words = {"mode": "nearest", "coordinate_transformation_mode": "half_pixel", "nearest_mode": "floor"}
    node = helper.make_node("Resize", ["x", "", "", "s"], ["y"], **words)
    given = helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 1, 1, 4])
    size = numpy_helper.from_array(np.array([1, 1, 1, 8], np.int64), "s")
    graph = helper.make_graph(
        [node], "g", [given], [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)], [size]
    )
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9), tmp_path / "m.onnx")
    with pytest.raises(ModelError, match="places by half_pixel and floor"):
        network_of(str(tmp_path / "m.onnx"))


def test_windows_that_are_not_those_of_the_weights_are_refused(tmp_path: Path) -> None:
    node = helper.make_node("Conv", ["x", "w"], ["y"], kernel_shape=[1, 1])
    given = helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 1, 4, 4])
    weights = numpy_helper.from_array(np.ones((1, 1, 2, 2), np.float32), "w")
    ends = helper.make_tensor_value_info("y", TensorProto.FLOAT, [1, 1, 4, 4])
    graph = helper.make_graph([node], "g", [given], [ends], [weights])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9), tmp_path / "m.onnx")
    with pytest.raises(ModelError, match="a kernel_shape that its weights do not have"):
        network_of(str(tmp_path / "m.onnx"))


def test_codes_that_were_dequantised_are_quantised_back() -> None:
    codes = f.drawn((7,), 3, codes=True)
    assert (f.quantised(f.dequantised(codes, 0.125, -3), 0.125, -3) == codes).all()
    assert (f.quantised(f.dequantised(codes, 0.125, -3), 0.25, -3) != codes).all()


def test_a_part_of_a_part_is_one_of_their_product() -> None:
    assert f.share(6).reshape(1) * f.share(35) == f.share(210)
    assert f.share(2) != f.share(3)

"""The shapes of operators of scikit-learn's converters and of simplified normalizations are those of a session."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper
from shares import share

from modelplan.formats import load_model

ort = pytest.importorskip("onnxruntime")
FLOAT, INT64, STRING = TensorProto.FLOAT, TensorProto.INT64, TensorProto.STRING


def labels(draw: random.Random, classes: int) -> dict[str, Any]:
    if draw.random() < 0.5:
        return {"classlabels_strings": [f"c{k}" for k in range(classes)]}
    return {"classlabels_ints": list(range(classes))}


def named(labels: dict[str, Any]) -> dict[str, Any]:
    """The labels under the names of TreeEnsembleClassifier."""
    return {"classlabels_int64s" if name == "classlabels_ints" else name: value for name, value in labels.items()}


def trees(count: int, what: str) -> dict[str, Any]:
    """A tree for each target or class, of one split."""
    nodes = [(tree, node) for tree in range(count) for node in range(3)]
    leaves = [(tree, node) for tree in range(count) for node in (1, 2)]
    return {
        "nodes_treeids": [tree for tree, _ in nodes], "nodes_nodeids": [node for _, node in nodes],
        "nodes_featureids": [0] * len(nodes), "nodes_values": [0.5] * len(nodes),
        "nodes_modes": ["BRANCH_LEQ", "LEAF", "LEAF"] * count, "nodes_truenodeids": [1, 0, 0] * count,
        "nodes_falsenodeids": [2, 0, 0] * count, "nodes_hitrates": [1.0] * len(nodes),
        "nodes_missing_value_tracks_true": [0] * len(nodes), f"{what}_treeids": [tree for tree, _ in leaves],
        f"{what}_nodeids": [node for _, node in leaves], f"{what}_ids": [tree for tree, _ in leaves],
        f"{what}_weights": [1.0] * len(leaves),
    }  # fmt: skip


def drawn(draw: random.Random, kind: str) -> tuple[dict[str, Any], int]:
    """Attributes of an operator over four columns, and how many outputs it has."""
    count = draw.randrange(1, 5)
    given = labels(draw, max(count, 2))
    if kind == "Scaler":
        return {"offset": [0.0] * 4, "scale": [1.0] * 4}, 1
    if kind == "Normalizer":
        return {"norm": draw.choice(("MAX", "L1", "L2"))}, 1
    if kind == "Imputer":
        return {"imputed_value_floats": [0.0] * 4, "replaced_value_float": 1.0}, 1
    if kind == "Binarizer":
        return {"threshold": 0.5}, 1
    if kind == "TreeEnsembleRegressor":
        return {"n_targets": count, **trees(count, "target")}, 1
    if kind == "TreeEnsembleClassifier":
        return {**named(given), **trees(max(count, 2), "class")}, 2
    if kind == "LinearRegressor":
        return {"targets": count, "coefficients": [1.0] * 4 * count, "intercepts": [0.0] * count}, 1
    if kind == "LinearClassifier":
        planes = draw.choice((1, 2)) if max(count, 2) == 2 else count
        return {"coefficients": [1.0] * 4 * planes, "intercepts": [0.0] * planes, **given}, 2
    if kind == "SVMRegressor":
        return {"coefficients": [1.0] * 2, "support_vectors": [1.0] * 8, "n_supports": 2, "rho": [0.0],
                "kernel_type": "LINEAR", "kernel_params": [1.0, 0.0, 1.0]}, 1  # fmt: skip
    return _vectors(draw, max(count, 2), given), 2


def _vectors(draw: random.Random, classes: int, given: dict[str, Any]) -> dict[str, Any]:
    """A classifier of support vectors, two of each class."""
    pairs = classes * (classes - 1) // 2
    vectors = {
        "coefficients": [1.0] * (2 * classes * (classes - 1)), "support_vectors": [1.0] * (2 * classes * 4),
        "vectors_per_class": [2] * classes, "rho": [0.0] * pairs, "kernel_type": "LINEAR",
        "kernel_params": [1.0, 0.0, 1.0], **given,
    }  # fmt: skip
    likely = {"prob_a": [-1.0] * pairs, "prob_b": [0.0] * pairs} if draw.random() < 0.5 else {}
    return vectors | likely


KINDS = (
    "Scaler", "Normalizer", "Imputer", "Binarizer", "TreeEnsembleRegressor", "TreeEnsembleClassifier",
    "LinearRegressor", "LinearClassifier", "SVMRegressor", "SVMClassifier",
)  # fmt: skip


def saved(path: Path, nodes: list[Any], rows: int | str, outs: list[str], weights: list[Any], **opsets: int) -> Path:
    given = [helper.make_tensor_value_info("x", FLOAT, [rows, 4])]
    ends = [helper.make_empty_tensor_value_info(name) for name in outs]
    graph = helper.make_graph(nodes, "m", given, ends, weights)
    imports = [helper.make_opsetid("", opsets.get("main", 17)), helper.make_opsetid("ai.onnx.ml", 3)]
    onnx.save(helper.make_model(graph, opset_imports=imports, ir_version=9), path)
    return path


def check(path: Path, rows: int, dims: tuple[str, ...] = ()) -> None:
    """The outputs of the model have the types and shapes that they have in a session."""
    session = ort.InferenceSession(str(path), providers=["CPUExecutionProvider"])
    found = session.run(None, {"x": np.ones((rows, 4), np.float32)})
    graph = load_model(path, dims)
    for t, array in zip(graph.outputs, found, strict=True):
        tensor, actual = graph.tensors[t], np.asarray(array)
        kind = "string" if actual.dtype.kind in "OU" else actual.dtype.name
        assert (tensor.dtype, kind == "string" or tensor.shape) == (kind, kind == "string" or actual.shape)


@pytest.mark.parametrize("kind", KINDS)
def test_drawn_operators(kind: str, tmp_path: Path) -> None:
    for seed in range(share(40)):
        draw = random.Random(seed)
        attributes, count = drawn(draw, kind)
        outs = [f"y{k}" for k in range(count)]
        node = helper.make_node(kind, ["x"], outs, domain="ai.onnx.ml", **attributes)
        rows = draw.randrange(1, 6)
        check(saved(tmp_path / "m.onnx", [node], "n", outs, []), rows, (f"n={rows}",))


def test_encoders_and_features(tmp_path: Path) -> None:
    nodes = [
        helper.make_node("Cast", ["x"], ["whole"], to=INT64),
        helper.make_node("OneHotEncoder", ["whole"], ["hot"], domain="ai.onnx.ml", cats_int64s=[0, 1, 2], zeros=1),
        helper.make_node("FeatureVectorizer", ["x", "x"], ["wide"], domain="ai.onnx.ml", inputdimensions=[4, 4]),
        helper.make_node("ArrayFeatureExtractor", ["x", "columns"], ["two"], domain="ai.onnx.ml"),
    ]
    weights = [numpy_helper.from_array(np.array([0, 2], np.int64), "columns")]
    check(saved(tmp_path / "m.onnx", nodes, "n", ["hot", "wide", "two"], weights), 3, ("n=3",))


@pytest.mark.parametrize(("kind", "opset"), [("SimplifiedLayerNormalization", 17), ("LayerNormalization", 16)])
@pytest.mark.parametrize("axis", [-1, 1, 0])
def test_normalizations_that_onnx_does_not_have(kind: str, opset: int, axis: int, tmp_path: Path) -> None:
    extents = (3, 4)[axis:] if axis >= 0 else (4,)
    outs = ["y", "mean"] + ["deviation"] * (kind == "LayerNormalization")
    node = helper.make_node(kind, ["x", "scale"], outs, axis=axis)
    weights = [numpy_helper.from_array(np.ones(extents, np.float32), "scale")]
    check(saved(tmp_path / "m.onnx", [node], 3, outs, weights, main=opset), 3)

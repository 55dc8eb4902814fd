"""Output types of operators of the domain ai.onnx.ml, which scikit-learn's converters write, where onnx infers none."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from modelplan.formats.onnx.onnx_types import Extent, Type, tensor_type

if TYPE_CHECKING:
    from onnx import NodeProto

DOMAIN = "ai.onnx.ml"
_FLOAT, _INT64, _STRING = 1, 7, 8
#: Operators whose output is of floats in the shape of their input, and those whose output has its type too.
_FLOATS_LIKE, _LIKE = {"Scaler", "Normalizer"}, {"Imputer", "Binarizer"}

Shape = Sequence[Extent]


def learned(node: NodeProto, types: Sequence[Type | None]) -> dict[str, Type]:
    """The types of outputs by name, as far as attributes settle them; `types` are those of the inputs.

    Source: onnxruntime, core/providers/cpu/ml.
    """
    first = types[0] if types else None
    if first is None or first.shape is None or not node.output:
        return {}
    if node.op_type in _LIKE:
        return {node.output[0]: first}
    if node.op_type in _FLOATS_LIKE:
        return {node.output[0]: tensor_type(_FLOAT, tuple(first.shape))}
    row = _ROWS.get(node.op_type)
    given = {attribute.name: attribute for attribute in node.attribute}
    outputs = row(given, [known.shape if known else None for known in types]) if row else []
    return {name: known for name, known in zip(node.output, outputs, strict=False) if name and known is not None}


def _rows(shape: Shape) -> Extent:
    """How many samples there are: a vector is one."""
    return shape[0] if len(shape) > 1 else 1


def _labels(given: dict[str, Any]) -> tuple[int, int]:
    """The element type of labels, and how many there are."""
    for name in given:
        if name.startswith("classlabels_") and len(given[name].strings):
            return _STRING, len(given[name].strings)
    return _INT64, max((len(given[name].ints) for name in given if name.startswith("classlabels_")), default=0)


def _classified(given: dict[str, Any], shapes: Sequence[Shape | None], scores: int) -> list[Type | None]:
    rows = _rows(shapes[0] or ())
    return [tensor_type(_labels(given)[0], (rows,)), tensor_type(_FLOAT, (rows, scores)) if scores else None]


def _trees(given: dict[str, Any], shapes: Sequence[Shape | None]) -> list[Type | None]:
    return _classified(given, shapes, _labels(given)[1])


def _linear_classes(given: dict[str, Any], shapes: Sequence[Shape | None]) -> list[Type | None]:
    planes = len(given["intercepts"].floats) if "intercepts" in given else 0
    both = planes == 1 and _labels(given)[1] == 2
    return _classified(given, shapes, 2 if both else planes)


def _vector_classes(given: dict[str, Any], shapes: Sequence[Shape | None]) -> list[Type | None]:
    """Of support vectors: a score for each class, or for each pair of classes where there are no probabilities."""
    classes, vectors = _labels(given)[1], "vectors_per_class" in given and len(given["vectors_per_class"].ints)
    pairs = vectors and not ("prob_a" in given and len(given["prob_a"].floats))
    scores = (classes * (classes - 1) // 2 if classes > 2 else 2) if pairs else classes
    return _classified(given, shapes, scores)


def _targets(name: str, usual: int) -> Callable[[dict[str, Any], Sequence[Shape | None]], list[Type | None]]:
    """A row of so many numbers for each sample as an attribute says."""

    def targets(given: dict[str, Any], shapes: Sequence[Shape | None]) -> list[Type | None]:
        count = given[name].i if name in given else usual
        return [tensor_type(_FLOAT, (_rows(shapes[0] or ()), count))]

    return targets


def _one_hot(given: dict[str, Any], shapes: Sequence[Shape | None]) -> list[Type | None]:
    counts = [len(given[name].ints) or len(given[name].strings) for name in given if name.startswith("cats_")]
    return [tensor_type(_FLOAT, (*(shapes[0] or ()), max(counts, default=0)))]


def _features(given: dict[str, Any], shapes: Sequence[Shape | None]) -> list[Type | None]:
    """The columns of all inputs side by side."""
    if "inputdimensions" not in given:
        return []
    return [tensor_type(_FLOAT, (_rows(shapes[0] or ()), sum(given["inputdimensions"].ints)))]


_ROWS: dict[str, Callable[[dict[str, Any], Sequence[Shape | None]], list[Type | None]]] = {
    "TreeEnsembleClassifier": _trees,
    "TreeEnsembleRegressor": _targets("n_targets", 1),
    "LinearRegressor": _targets("targets", 1),
    "SVMRegressor": _targets("", 1),
    "LinearClassifier": _linear_classes,
    "SVMClassifier": _vector_classes,
    "OneHotEncoder": _one_hot,
    "FeatureVectorizer": _features,
}

"""Values of small constants, computed only when a shape depends on them."""

from __future__ import annotations

from math import ceil
from typing import TYPE_CHECKING, Any
from warnings import catch_warnings, simplefilter

import numpy as np

if TYPE_CHECKING:
    from onnx import NodeProto, TensorProto

#: A value with more elements than this decides no shape.
MOST_ELEMENTS = 1024
#: Evaluations in one model: a bound on the time that a damaged or hostile file can take.
MOST_EVALUATIONS = 8192

#: Operators whose output shape depends on values; the bound on their elements from those of their inputs.
_NO_LARGER = {"NonZero", "Unique", "Compress"}

Array = np.ndarray[Any, Any]


def stored(tensor: TensorProto) -> Array | None:
    """The value of a TensorProto, None where it is too large, external, or text."""
    from onnx import TensorProto, numpy_helper

    if tensor.data_location == TensorProto.EXTERNAL or tensor.data_type in (TensorProto.STRING, TensorProto.UNDEFINED):
        return None
    if any(extent < 0 for extent in tensor.dims) or int(np.prod(tensor.dims, dtype=np.float64)) > MOST_ELEMENTS:
        return None
    return np.asarray(numpy_helper.to_array(tensor))


def attribute_value(node: NodeProto) -> Array | None:
    """The value of a Constant node."""
    for attribute in node.attribute:
        if attribute.name == "value":
            return stored(attribute.t)
        if attribute.name in ("value_int", "value_ints"):
            return np.array(attribute.i if attribute.name == "value_int" else list(attribute.ints), np.int64)
        if attribute.name in ("value_float", "value_floats"):
            return np.array(attribute.f if attribute.name == "value_float" else list(attribute.floats), np.float32)
    return None


def shape_value(node: NodeProto, shape: tuple[int, ...]) -> Array:
    """The result of Shape or Size for an input of `shape`."""
    if node.op_type == "Size":
        return np.array(int(np.prod(shape, dtype=object)) if shape else 1, np.int64)
    given = {a.name: a.i for a in node.attribute}
    return np.array(shape[slice(given.get("start"), given.get("end"))], np.int64)


def is_small(node: NodeProto, inputs: list[Array | None], shape: tuple[int, ...] | None) -> bool:
    """Whether the result is known to be small before it is computed. `shape` is the output's where that is known."""
    if shape is not None:
        return all(0 <= extent <= MOST_ELEMENTS for extent in shape) and int(np.prod(shape)) <= MOST_ELEMENTS
    if node.op_type in _NO_LARGER:
        return True
    if node.op_type != "Range" or len(inputs) != 3 or any(v is None or v.size != 1 for v in inputs):
        return False
    start, limit, delta = (float(v.reshape(())) for v in inputs if v is not None)
    return delta != 0 and np.isfinite((limit - start) / delta) and ceil((limit - start) / delta) <= MOST_ELEMENTS


def evaluated(node: NodeProto, inputs: list[Array | None], opsets: dict[str, int]) -> list[Array | None] | None:
    """The outputs of one node by onnx's reference implementation, None where it has none or fails."""
    from onnx import helper
    from onnx.reference import ReferenceEvaluator

    feeds = {name: value for name, value in zip(node.input, inputs, strict=True) if name}
    imports = [helper.make_opsetid(domain, version) for domain, version in opsets.items()]
    written = [name for name in node.output if name]
    try:
        # A function, since the evaluator takes the newest version of an operator for a node alone.
        function = helper.make_function("", "fold", list(feeds), written, [node], imports)
        with np.errstate(all="ignore"), catch_warnings():
            simplefilter("ignore")
            outputs = dict(zip(written, ReferenceEvaluator(function).run(None, feeds, {}), strict=True))
    except Exception:  # noqa: BLE001  # whatever it raises, the value stays unknown, and an open shape is reported
        return None
    return [_array(outputs.get(name)) for name in node.output]


def _array(value: object) -> Array | None:
    return np.asarray(value) if isinstance(value, np.ndarray | np.generic | int | float) else None

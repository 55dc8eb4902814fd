"""Output types of normalizations that ONNX Runtime runs in the standard domain, where onnx has no such operator."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from modelplan.formats.onnx.onnx_types import Type, tensor_type

if TYPE_CHECKING:
    from onnx import NodeProto

_FLOAT = 1
#: Operators that ONNX Runtime has in the domain ai.onnx, each with the first opset in which onnx has it, if any.
_FIRST_OPSET = {"SimplifiedLayerNormalization": None, "LayerNormalization": 17}


def normalised_types(node: NodeProto, types: Sequence[Type | None], version: int | None) -> dict[str, Type]:
    """The types of outputs by name: that of the input; mean and inverse deviation have extents of 1 from an axis on.

    Nothing of an operator that onnx itself knows. Source: onnxruntime, core/graph/contrib_ops/contrib_defs.cc.
    """
    first = types[0] if types else None
    if node.domain or node.op_type not in _FIRST_OPSET or first is None or first.shape is None:
        return {}
    since = _FIRST_OPSET[node.op_type]
    if since is not None and version is not None and version >= since:
        return {}
    axis = next((attribute.i for attribute in node.attribute if attribute.name == "axis"), -1) % max(
        len(first.shape), 1
    )
    kept = tensor_type(_FLOAT, (*first.shape[:axis], *[1] * (len(first.shape) - axis)))
    return {name: known for name, known in zip(node.output, (first, kept, kept), strict=False) if name}

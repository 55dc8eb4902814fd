"""Output types of operators that ONNX Runtime adds to the standard, where a quantized or optimised model has them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from modelplan.formats.onnx.onnx_types import Extent, Type, with_shape

if TYPE_CHECKING:
    from onnx import NodeProto

DOMAIN = "com.microsoft"
#: Operators whose first output has the type of their first input.
_LIKE_INPUT = {
    "BiasGelu", "FastGelu", "Gelu", "QuickGelu", "SkipLayerNormalization", "SkipSimplifiedLayerNormalization",
}  # fmt: skip


def contributed(node: NodeProto, types: Sequence[Type | None]) -> dict[str, Type]:
    """The types of outputs by name, as far as the operator's text settles them; `types` are those of the inputs."""
    first = types[0] if types else None
    if first is None or first.shape is None:
        return {}
    if node.op_type in _LIKE_INPUT:
        return {node.output[0]: first}
    return _lstm(node, first, first.shape) if node.op_type == "DynamicQuantizeLSTM" and len(first.shape) == 3 else {}


def _lstm(node: NodeProto, first: Type, shape: Sequence[Extent]) -> dict[str, Type]:
    """All hidden states, the last hidden state and the last cell state, as LSTM gives them."""
    given = {attribute.name: attribute for attribute in node.attribute}
    if "hidden_size" not in given:
        return {}
    directions = 2 if "direction" in given and given["direction"].s == b"bidirectional" else 1
    last = (directions, shape[1], given["hidden_size"].i)
    shapes = ((shape[0], *last), last, last)
    return {
        name: with_shape(first, output_shape) for name, output_shape in zip(node.output, shapes, strict=False) if name
    }

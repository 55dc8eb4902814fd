"""ONNX operators: what each does to memory."""

from __future__ import annotations

from modelplan.ops.op_facts import OpFacts

OPERATORS: dict[str, OpFacts] = dict.fromkeys(
    ("Reshape", "Flatten", "Squeeze", "Unsqueeze", "Identity"), OpFacts(view=0)
)

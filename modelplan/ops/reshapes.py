"""The operators whose result is operand 0 with other extents, whatever their options: views in most runtimes."""

from __future__ import annotations

TFLITE_RESHAPES = frozenset({"RESHAPE", "SQUEEZE", "EXPAND_DIMS"})
ONNX_RESHAPES = frozenset({"Reshape", "Flatten", "Squeeze", "Unsqueeze"})

"""ONNX models computed stripe by stripe, in standard operators, for an unmodified ONNX Runtime."""

"""Reading and editing .onnx files."""

"""An .onnx model as operators of plain C: nodes read, layouts chosen, operators stated."""

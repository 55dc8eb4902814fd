"""Files of other tools that people pass: what they are, and the conversion that leads to a model that can be read."""

from __future__ import annotations

from pathlib import Path

_KERAS = (
    "a Keras model; tf.lite.TFLiteConverter.from_keras_model(tf.keras.models.load_model({0!r})).convert() makes a"
    " .tflite"
)
_TORCH = "a PyTorch model; torch.onnx.export(model, example_inputs, 'model.onnx') writes an .onnx"
_SAVED = "a TensorFlow SavedModel; tf.lite.TFLiteConverter.from_saved_model({0!r}).convert() makes a .tflite"
_WEIGHTS = "weights without a graph; export the model itself as .onnx or .tflite"

#: What a file of each suffix is, and the way to a .tflite or .onnx file.
_KINDS = {
    ".h5": _KERAS,
    ".hdf5": _KERAS,
    ".keras": _KERAS,
    ".pb": "a TensorFlow graph; python -m tf2onnx.convert --graphdef {0} --inputs NAME:0 --outputs NAME:0 --output"
    " model.onnx writes an .onnx; of a SavedModel pass the folder to tf.lite.TFLiteConverter.from_saved_model",
    ".pt": _TORCH,
    ".pth": _TORCH,
    ".pt2": _TORCH,
    ".ckpt": _WEIGHTS,
    ".safetensors": _WEIGHTS,
    ".npz": _WEIGHTS,
    ".task": "a MediaPipe bundle; `unzip {0}` takes the .tflite files out of it",
    ".zip": "an archive; `unzip {0}` takes the files out of it",
    ".gguf": "a file of llama.cpp; export the model it was made of as .onnx",
    ".mlmodel": "a Core ML model; export the model it was made of as .onnx",
    ".mlpackage": "a Core ML model; export the model it was made of as .onnx",
    ".engine": "an engine of TensorRT; pass the .onnx that it was built from",
    ".trt": "an engine of TensorRT; pass the .onnx that it was built from",
    ".ort": "a model in ONNX Runtime's own format; pass the .onnx that it was made from",
}


def way_out(path: str | Path) -> str:
    """What a file or place of another kind is, and what leads to a model that can be read; empty where not known."""
    name = str(path)
    if "://" in name or name.startswith(("http:/", "https:/", "s3:/", "gs:/")):
        return "a URL; download it first, for example by `curl -LO`"
    suffix = Path(name).suffix.lower()
    if (Path(name) / "saved_model.pb").is_file():
        return _SAVED.format(name)
    return _KINDS.get(suffix, "").format(name)

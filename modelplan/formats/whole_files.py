"""Reads whole files; a file that cannot be read is a ModelError that names it.

Files of other tools are told what they are, and the conversion that leads to a model that can be read.
"""

from __future__ import annotations

from functools import lru_cache
from hashlib import sha256
from pathlib import Path
from stat import S_ISDIR, S_ISREG
from typing import TYPE_CHECKING, Any

from modelplan.formats.unpacking import STANDARD_INPUT, standard_input, unwrapped
from modelplan.primitives.errors import ModelError

if TYPE_CHECKING:
    from mmap import mmap


#: Files of so many bytes are read once: the last one is kept until another is read.
LARGE = 1 << 24


def read_bytes(path: str | Path) -> bytes:
    """The content of the file.

    Raises:
        ModelError: there is none, it cannot be read, or it is a device or pipe, which need not end.
    """
    try:
        status = Path(path).stat()
        if not S_ISREG(status.st_mode) and not S_ISDIR(status.st_mode):
            raise ModelError(f"{path}: found a device or pipe, expected a file")
        if status.st_size >= LARGE:
            return _large(Path(path).resolve(), status.st_size, status.st_mtime_ns, status.st_ino)
        return Path(path).read_bytes()
    except OSError as problem:
        raise ModelError(f"{path}: {problem.strerror}") from None


@lru_cache(maxsize=1)
def _large(path: Path, *_state: int) -> bytes:
    """The content of a large file, in the state that it is in."""
    return path.read_bytes()


def read_model(path: str | Path) -> bytes:
    """The bytes of the model in the file, also of one inside of a gzip file, C source or standard input."""
    if str(path) == STANDARD_INPUT:
        return standard_input()
    return unwrapped(path, read_bytes(path))


def read_text(path: str | Path) -> str:
    """The content of the file, decoded as UTF-8."""
    try:
        return read_bytes(path).decode("utf-8")
    except UnicodeDecodeError as problem:
        raise ModelError(f"{path}: not text: {problem.reason}") from None


def read_toml_table(path: str | Path) -> dict[str, Any]:
    """The document in a TOML file.

    Raises:
        ModelError: names the file and what is wrong with it.
    """
    import tomllib

    text = read_text(path)
    try:
        return tomllib.loads(text)
    except RecursionError:
        raise ModelError(f"{path}: not TOML: brackets too deep inside each other") from None
    except tomllib.TOMLDecodeError as problem:
        raise ModelError(f"{path}: not TOML: {problem}") from None
    except ValueError:
        raise ModelError(f"{path}: not TOML: a number has too many digits") from None


def fingerprint(content: bytes | mmap) -> str:
    """The SHA-256 of a file's bytes in hexadecimal, which a plan keeps of the model that it was made for."""
    return sha256(content).hexdigest()


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

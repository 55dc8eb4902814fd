"""Models inside of something else: compressed by gzip, as an array in C source, or on standard input."""

import gzip
import io
import re
import sys
import zlib
from functools import cache
from pathlib import Path
from typing import BinaryIO

from modelplan.primitives.errors import ModelError

#: The path that means standard input.
STANDARD_INPUT = "-"
_C_SUFFIXES = (".c", ".cc", ".cpp", ".cxx", ".h", ".hpp", ".inc")
#: No model for a small device is larger; what would be is not unpacked.
_LARGEST = 1 << 30
#: Bytes that are read at once.
_PART = 1 << 20
#: An array of bytes in C: its name, then numbers with commas between.
_ARRAY = re.compile(r"\b(\w+)\s*\[[^\[\]]{0,200}\][^={;\[]{0,200}=\s*\{([^{}]*)\}")
_NUMBER = re.compile(r"0[xX][0-9a-fA-F]{1,2}|\d{1,3}")
_COMMENT = re.compile(r"//[^\n]*|/\*.*?(?:\*/|\Z)", re.DOTALL)
#: At these places a flatbuffer and a message of ONNX tell what they are.
_TFLITE, _ONNX_FIRST = b"TFL3", b"\x08"


def is_wrapped(path: str | Path) -> bool:
    """Whether `path` names something that a model is taken out of."""
    name = str(path)
    return name == STANDARD_INPUT or name.lower().endswith(".gz") or Path(name).suffix.lower() in _C_SUFFIXES


def inner_stem(path: str | Path) -> str:
    """The name of the model that `path` names, without folders and suffix, whatever it is wrapped in.

    >>> inner_stem("nets/kws.tflite.gz"), inner_stem("-")
    ('kws', 'model')
    """
    if str(path) == STANDARD_INPUT:
        return "model"
    name = Path(path)
    return Path(name.stem).stem if name.suffix.lower() == ".gz" else name.stem


def inner_suffix(path: str | Path) -> str:
    """The suffix of the model that `path` names, in lower case, whatever it is wrapped in.

    Raises:
        ModelError: what is wrapped is no model.
    """
    name = str(path)
    if name == STANDARD_INPUT:
        head = standard_input()[:8]
        if head[4:] != _TFLITE and head[:1] != _ONNX_FIRST:
            raise ModelError("standard input: expected a TFLite flatbuffer or an ONNX protobuf")
        return ".tflite" if head[4:] == _TFLITE else ".onnx"
    if name.lower().endswith(".gz"):
        return Path(name[: -len(".gz")]).suffix.lower()
    return ".tflite" if is_wrapped(path) else Path(name).suffix.lower()


def unwrapped(path: str | Path, content: bytes) -> bytes:
    """The bytes of the model in the file `path`, which holds `content`.

    Raises:
        ModelError: it is damaged, or holds no model or several.
    """
    name = str(path)
    if name.lower().endswith(".gz"):
        return _unpacked(name, content)
    return _array(name, content) if Path(name).suffix.lower() in _C_SUFFIXES else content


@cache
def standard_input() -> bytes:
    """All of standard input, which can be read once.

    Raises:
        ModelError: it is empty, or too large for a model.
    """
    content = _read(sys.stdin.buffer)
    if not content or len(content) > _LARGEST:
        raise ModelError(f"standard input: {'more than 1 GiB' if content else 'it is empty'}")
    return content


def _read(file: BinaryIO | gzip.GzipFile) -> bytes:
    """What is left in a file, and no more of it than shows that it is too large; memory is taken as it comes."""
    data = bytearray()
    while len(data) <= _LARGEST and (part := file.read(_PART)):
        data += part
    return bytes(data)


def _unpacked(name: str, content: bytes) -> bytes:
    try:
        with gzip.open(io.BytesIO(content)) as file:
            data = _read(file)
    except (OSError, EOFError, zlib.error) as problem:
        raise ModelError(f"{name}: no gzip file, or damaged: {problem}") from None
    if len(data) > _LARGEST:
        raise ModelError(f"{name}: more than 1 GiB once it is unpacked")
    return data


def _array(name: str, content: bytes) -> bytes:
    """The one array in C source that holds a TFLite flatbuffer."""
    source = _COMMENT.sub(" ", content.decode("latin-1"))
    arrays = {array: _bytes_of(values) for array, values in _ARRAY.findall(source)}
    models = {array: data for array, data in arrays.items() if data[4:8] == _TFLITE}
    if len(models) != 1:
        several = f"several models ({', '.join(models)}), expected one"
        raise ModelError(f"{name}: {several if models else 'no array of a TFLite model in it'}")
    return next(iter(models.values()))


def _bytes_of(values: str) -> bytes:
    """The numbers of an initialiser as bytes; nothing where one of them is none of a byte."""
    numbers = [int(number, 0) if number[:2] in ("0x", "0X") else int(number) for number in _NUMBER.findall(values)]
    return bytes(numbers) if all(number < 256 for number in numbers) else b""

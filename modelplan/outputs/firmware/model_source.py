"""A .tflite model as C++ source: an aligned constant array, with the header that says how much memory it needs."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from modelplan.outputs.firmware.tflm_headers import arena_header, comment
from modelplan.runtimes.tflm.arena import Arena
from modelplan.runtimes.tflm.file import FileModel
from modelplan.runtimes.tflm.planner import ALIGNMENT

_BYTES_OF_A_LINE = 16
#: Words that are no name of a namespace.
_RESERVED = frozenset(("main", "model", "std", "tflite", "int", "float", "double", "new", "default", "class", "auto"))


def namespace_of(path: str) -> str:
    """The C++ namespace for the file `path`: its stem with every other character replaced.

    >>> namespace_of("out/person-detect.cc"), namespace_of("8bit.cc"), namespace_of("model.cc")
    ('person_detect', 'model_8bit', 'model_model')
    """
    name = re.sub(r"\W", "_", Path(path).stem, flags=re.ASCII).strip("_").lower() or "model"
    return name if not name[0].isdigit() and name not in _RESERVED else f"model_{name}"


def model_header(
    path: str, model: FileModel, parts: Arena, kernels: str, added: Sequence[str] = (), abi: str = ""
) -> str:
    """The header beside the source `path`: the arena, the operators, and the array's declaration."""
    declared = """
// The model; it may stay in flash.
extern const unsigned char kModel[];
extern const std::size_t kModelBytes;
"""
    return arena_header(model, parts, kernels, added, namespace_of(path), declared, abi)


def model_source(path: str, model: FileModel) -> str:
    """The source `path`, which holds the bytes of the model; its header is the file of the same name with .h."""
    data, name = model.data, namespace_of(path)
    lines = (data[at : at + _BYTES_OF_A_LINE] for at in range(0, len(data), _BYTES_OF_A_LINE))
    numbers = "\n".join("    " + " ".join(f"0x{byte:02x}," for byte in line) for line in lines)
    return f"""\
// Made by modelplan: {comment(model.name)}, {len(data)} bytes.
#include "{Path(path).with_suffix(".h").name}"

namespace {name} {{

alignas({ALIGNMENT}) const unsigned char kModel[] = {{
{numbers}
}};
const std::size_t kModelBytes = sizeof(kModel);

}}  // namespace {name}
"""

"""Entries of a .tflite file's metadata: its offline plan, what that was made for, types that a rewrite changed.

TFLM takes the offsets of tensors from the plan. Of inputs and outputs with another type the program converts the
values.
"""

import json
import struct
from collections.abc import Sequence
from dataclasses import asdict

from modelplan.formats.tflite.flatbuffer import set_metadata
from modelplan.formats.tflite.tflite_tables import get_metadata
from modelplan.primitives.errors import ModelError
from modelplan.primitives.lazy_records import dataclass
from modelplan.primitives.version import __version__
from modelplan.runtimes.tflm.arena import RELEASE
from modelplan.runtimes.tflm.file import FileModel
from modelplan.runtimes.tflm.kernels import KERNELS, find_library, is_group
from modelplan.runtimes.tflm.kernels.own_kernels import library_of
from modelplan.runtimes.tflm.planner import METADATA

#: The entry of the metadata that lists what the program converts, as JSON.
INTERFACE = "modelplan_interface"


@dataclass(frozen=True, slots=True)
class ConvertedTensor:
    """An input or an output (`side` and `position`) whose type changed from `before` to `after`.

    A code q of the new type stands for (q - zero_point) * scale.
    """

    side: str
    position: int
    name: str
    before: str
    after: str
    scale: float
    zero_point: int


def write_interface(model: bytes, converted: Sequence[ConvertedTensor]) -> bytes:
    """The file with this list.

    Raises:
        ModelError: the file's layout does not allow the edit.
    """
    listed = [asdict(tensor) for tensor in converted]
    return set_metadata(model, INTERFACE, json.dumps(listed, separators=(",", ":")).encode())


def read_interface(model: bytes) -> tuple[ConvertedTensor, ...]:
    """What the file's program converts; nothing where the file does not say it.

    Raises:
        ModelError: the entry cannot be read.
    """
    content = get_metadata(model, INTERFACE)
    try:
        return tuple(ConvertedTensor(**row) for row in json.loads(content or b"[]"))
    except (ValueError, TypeError, RecursionError):
        raise ModelError(f"its metadata {INTERFACE!r} cannot be read") from None


#: The entry of the metadata that says for which kernels, ABI and TFLM a plan was made, as JSON.
MADE_FOR = "modelplan"


def write_plan(model: FileModel, offsets: Sequence[int]) -> bytes:
    """The file with `offsets` (one for each tensor over all subgraphs) as its offline plan, all else unchanged.

    Raises:
        ModelError: the file's layout does not allow the edit, or an offset does not fit in 31 bits.
    """
    words = (0, len(model.subgraphs), len(model.tensors), *offsets)
    if max(words) >= 2**31:
        raise ModelError(f"{model.name}: an offset of {max(words)} bytes, the metadata holds less than 2^31")
    return set_metadata(model.data, METADATA, struct.pack(f"<{len(words)}i", *words))


def write_made_for(model: bytes, kernels: str, abi: str) -> bytes:
    """The file with the kernels, the ABI and the TFLM that its plan was made for.

    Raises:
        ModelError: the file's layout does not allow the edit.
    """
    known = {"kernels": kernels, "abi": abi, "tflm": RELEASE, "modelplan": __version__}
    if not is_group(kernels):
        known["release"] = find_library(kernels).release
    return set_metadata(model, MADE_FOR, json.dumps(known, separators=(",", ":")).encode())


def kernels_made_for(model: bytes, name: str) -> str | None:
    """The kernels that the plan in the .tflite file `name` was made for; None where the file does not say it.

    Raises:
        ModelError: the entry cannot be read, or names kernels that are not known.
    """
    kernels = _made_for(model, name).get("kernels")
    if kernels is not None and library_of(kernels) not in KERNELS:
        raise ModelError(f"{name}: its plan was made for kernels {str(kernels)[:60]!r}, which are not known")
    return kernels


def abi_made_for(model: bytes, name: str) -> str | None:
    """The ABI that the plan in the .tflite file `name` was made for; None where the file does not say it.

    Raises:
        ModelError: the entry cannot be read.
    """
    return _made_for(model, name).get("abi")


def _made_for(model: bytes, name: str) -> dict[str, str]:
    """What the entry says; nothing where there is none."""
    try:
        content = get_metadata(model, MADE_FOR)
    except ModelError as problem:
        raise ModelError(f"{name}: {problem}") from None
    if content is None:
        return {}
    try:
        known = json.loads(content)
        return {"kernels": str(known["kernels"]), **{key: str(value) for key, value in known.items()}}
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        raise ModelError(f"{name}: its metadata {MADE_FOR!r} cannot be read") from None

"""What a .tflite file says of inputs and outputs whose type a rewrite changed, so that the program converts instead."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass

from modelplan.formats.tflite.flatbuffer import set_metadata
from modelplan.formats.tflite.tflite_tables import get_metadata
from modelplan.primitives.errors import ModelError

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

"""Writes the offline plan of a .tflite file, from which TFLM takes the offsets of the tensors."""

from __future__ import annotations

import struct
from collections.abc import Sequence

from modelplan.formats.tflite.flatbuffer import set_metadata
from modelplan.primitives.errors import ModelError
from modelplan.runtimes.tflm.file import FileModel
from modelplan.runtimes.tflm.planner import METADATA


def write_plan(model: FileModel, offsets: Sequence[int]) -> bytes:
    """The file with `offsets` (one for each tensor over all subgraphs) as its offline plan, all else unchanged.

    Raises:
        ModelError: the file's layout does not allow the edit, or an offset does not fit in 31 bits.
    """
    words = (0, len(model.subgraphs), len(model.tensors), *offsets)
    if max(words) >= 2**31:
        raise ModelError(f"{model.name}: an offset of {max(words)} bytes, the metadata holds less than 2^31")
    return set_metadata(model.data, METADATA, struct.pack(f"<{len(words)}i", *words))

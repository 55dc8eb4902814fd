"""Models whose weights are compressed by TFLM's metadata of lookup tables, written by hand."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import flatbuffers
import numpy as np

from modelplan.formats.tflite.flatbuffer import set_metadata
from modelplan.runtimes.tflm.file import FileModel, read_tflite

#: (tensor, buffer of its values, bits of an index) of each compressed tensor.
Rows = Sequence[tuple[int, int, int]]


def metadata(subgraphs: Sequence[Rows], version: int = 1) -> bytes:
    """The payload of COMPRESSION_METADATA for the tensors of each subgraph."""
    builder = flatbuffers.Builder()
    lists = []
    for rows in subgraphs:
        tables = []
        for tensor, values, bits in rows:
            builder.StartObject(3)
            builder.PrependInt32Slot(0, tensor, 0)
            builder.PrependUint32Slot(1, values, 0)
            builder.PrependUint8Slot(2, bits, 0)
            tables.append(builder.EndObject())
        lists.append(_object(builder, 1, 0, _vector(builder, tables)))
    found = _vector(builder, lists)
    builder.StartObject(2)
    builder.PrependUint32Slot(0, version, 1)
    builder.PrependUOffsetTRelativeSlot(1, found, 0)
    builder.Finish(builder.EndObject())
    return bytes(builder.Output())


def _object(builder: flatbuffers.Builder, fields: int, slot: int, offset: int) -> int:
    builder.StartObject(fields)
    builder.PrependUOffsetTRelativeSlot(slot, offset, 0)
    end: int = builder.EndObject()
    return end


def _vector(builder: flatbuffers.Builder, offsets: Sequence[int]) -> int:
    builder.StartVector(4, len(offsets), 4)
    for offset in reversed(offsets):
        builder.PrependUOffsetTRelative(offset)
    end: int = builder.EndVector()
    return end


def compressed_model(data: bytes, bits: Mapping[int, int]) -> FileModel:
    """The file with these tensors of its first subgraph as indices, of so many bits each.

    A tensor's own buffer stands for its table of values, and there are enough of those for its indices.
    """
    model = read_tflite(data, "plain")
    content = bytearray(data)
    for tensor in bits:
        start, length = model.subgraphs[0].tensors[tensor].content
        content[start : start + length] = np.random.default_rng(tensor).bytes(length)
    buffers = buffers_of(data)
    rows = [(tensor, buffers[tensor], width) for tensor, width in bits.items()]
    return read_tflite(set_metadata(bytes(content), "COMPRESSION_METADATA", metadata([rows])), "compressed")


def buffers_of(data: bytes) -> list[int]:
    """The buffer of each tensor of the first subgraph."""
    from modelplan.formats.tflite import tflite_schema as schema
    from modelplan.formats.tflite.tflite_file import TfliteFile

    file = TfliteFile(data)
    slots = file.slots(file.subgraph(0), schema.SUBGRAPH_TENSORS)
    return [row.buffer for row in file.tensors(slots)]

"""Which tensors of a .tflite file hold indices into a table of values, as TFLM's metadata of compressed weights say."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from modelplan.formats.tflite.flatbuffer_columns import DAMAGE, FlatBuffer, TableColumns
from modelplan.formats.tflite.tflite_tables import guarded, metadata_entries, metadata_payload

if TYPE_CHECKING:
    from mmap import mmap

_NAME = "COMPRESSION_METADATA"
#: Fields of the metadata's tables, and the one version of them.
_VERSION, _SUBGRAPHS, _TENSORS = 0, 1, 0
_TENSOR, _VALUES, _BITS = range(3)
_KNOWN_VERSION = 1


class LutTensor(NamedTuple):
    """A tensor of indices, each of so many bits, into the values that a buffer of the file holds."""

    tensor: int
    values: int
    bits: int


class LutMetadata(NamedTuple):
    """The compressed tensors of each subgraph that the metadata name; `damage` says why they cannot be read."""

    subgraphs: tuple[tuple[LutTensor, ...], ...] = ()
    damage: str = ""


@guarded
def lut_metadata(model: bytes | mmap) -> LutMetadata | None:
    """The metadata of compressed weights that TFLM obeys; None where the file has none.

    Raises:
        ModelError: `model` is not a TFLite flatbuffer.
    """
    entries = metadata_entries(model, _NAME)
    if not entries:
        return None
    start, size = metadata_payload(model, entries[0])
    try:
        root = FlatBuffer(model[start : start + size]).root()
        (version,) = root.scalars(_VERSION, "<u4", _KNOWN_VERSION)
        if version > _KNOWN_VERSION:
            return LutMetadata(damage=f"of version {version}, which TFLM does not read")
        subgraphs = _elements(root, _SUBGRAPHS)
        tables = [TableColumns(subgraphs.file, subgraphs.at[i : i + 1]) for i in range(len(subgraphs.at))]
        lists = tuple(map(_lut_tensors, tables))
    except DAMAGE as problem:
        return LutMetadata(damage=f"damaged: {problem}")
    return LutMetadata(lists) if lists and all(lists) else LutMetadata(damage="without a tensor")


def _lut_tensors(subgraph: TableColumns) -> tuple[LutTensor, ...]:
    rows = _elements(subgraph, _TENSORS)
    columns = rows.scalars(_TENSOR, "<i4"), rows.scalars(_VALUES, "<u4"), rows.scalars(_BITS, "<u1")
    return tuple(map(LutTensor, *columns))


def _elements(table: TableColumns, field: int) -> TableColumns:
    """The tables of the vector in a field of one table."""
    starts, counts = table.complete_vectors(field, 4)
    return TableColumns(table.file, table.file.follow(starts[0] + 4 * np.arange(int(counts[0]))))

"""Edits of a .tflite change what they name and nothing else."""

import struct
from collections.abc import Callable, Sequence
from typing import Any

import flatbuffers
import pytest
import tflite
from newer_schema import with_newer_fields

from modelplan.formats.tflite import flatbuffer
from modelplan.formats.tflite.tflite_tables import get_metadata
from modelplan.primitives.errors import ModelError

NAME = "OfflineMemoryAllocation"


def model(entries: Sequence[tuple[str, bytes]] = (), operators: int = 0) -> bytes:
    """A model with one buffer of weights for each entry, named metadata entries, and numbered operators."""
    b = flatbuffers.Builder(64)
    data = [b.CreateByteVector(payload) for _, payload in entries]
    buffers = []
    for vector in data:
        tflite.BufferStart(b)
        tflite.BufferAddData(b, vector)
        buffers.append(tflite.BufferEnd(b))
    tables = []
    for i, (name, _) in enumerate(entries):
        text = b.CreateString(name)
        tflite.MetadataStart(b)
        tflite.MetadataAddName(b, text)
        tflite.MetadataAddBuffer(b, i)
        tables.append(tflite.MetadataEnd(b))
    ops = []
    for i in range(operators):
        tflite.OperatorStart(b)
        tflite.OperatorAddOpcodeIndex(b, i)
        ops.append(tflite.OperatorEnd(b))
    ops_vector = vector_of(b, tflite.SubGraphStartOperatorsVector, ops)
    tflite.SubGraphStart(b)
    tflite.SubGraphAddOperators(b, ops_vector)
    subgraphs = vector_of(b, tflite.ModelStartSubgraphsVector, [tflite.SubGraphEnd(b)])
    buffer_vector = vector_of(b, tflite.ModelStartBuffersVector, buffers)
    metadata = vector_of(b, tflite.ModelStartMetadataVector, tables) if tables else None
    text = b.CreateString("a description")
    tflite.ModelStart(b)
    tflite.ModelAddVersion(b, 3)
    tflite.ModelAddDescription(b, text)
    tflite.ModelAddSubgraphs(b, subgraphs)
    tflite.ModelAddBuffers(b, buffer_vector)
    if metadata:
        tflite.ModelAddMetadata(b, metadata)
    b.Finish(tflite.ModelEnd(b), b"TFL3")
    return bytes(b.Output())


def vector_of(b: flatbuffers.Builder, start: Callable[[flatbuffers.Builder, int], object], tables: list[int]) -> int:
    start(b, len(tables))
    for table in reversed(tables):
        b.PrependUOffsetTRelative(table)
    return int(b.EndVector())


def read(data: bytes) -> Any:
    return tflite.Model.GetRootAs(data, 0)


def test_adds_an_entry_in_front_of_the_untouched_file() -> None:
    before = model([("other", b"weights")])
    after = flatbuffer.set_metadata(before, NAME, b"\x01\x00\x00\x00" * 5)
    assert after.endswith(before)
    assert (len(after) - len(before)) % 64 == 0
    seen = read(after)
    assert (seen.Version(), seen.Description(), seen.SubgraphsLength()) == (3, b"a description", 1)
    assert seen.Buffers(0).DataAsNumpy().tobytes() == b"weights"
    assert [seen.Metadata(i).Name() for i in range(seen.MetadataLength())] == [b"other", NAME.encode()]
    payload = seen.Buffers(seen.Metadata(1).Buffer()).DataAsNumpy()
    assert payload.tobytes() == b"\x01\x00\x00\x00" * 5
    assert after.index(payload.tobytes()) % 16 == 0


def test_adds_metadata_to_a_model_without_any() -> None:
    after = flatbuffer.set_metadata(model(), NAME, b"1234")
    assert get_metadata(after, NAME) == b"1234"
    assert get_metadata(model(), NAME) is None


def test_overwrites_a_payload_of_the_same_length_in_place() -> None:
    before = model([(NAME, b"aaaa"), ("other", b"bbbb")])
    after = flatbuffer.set_metadata(before, NAME, b"cccc")
    assert len(after) == len(before)
    assert get_metadata(after, NAME) == b"cccc"
    assert get_metadata(after, "other") == b"bbbb"


def test_replaces_a_payload_of_another_length() -> None:
    after = flatbuffer.set_metadata(model([(NAME, b"aaaa"), ("other", b"bbbb")]), NAME, b"longer")
    assert get_metadata(after, NAME) == b"longer"
    assert read(after).MetadataLength() == 2


def test_raises_absolute_positions() -> None:
    b = flatbuffers.Builder(64)
    tflite.BufferStart(b)
    tflite.BufferAddOffset(b, 4096)
    tflite.BufferAddSize(b, 8)
    buffers = vector_of(b, tflite.ModelStartBuffersVector, [tflite.BufferEnd(b)])
    tflite.ModelStart(b)
    tflite.ModelAddBuffers(b, buffers)
    b.Finish(tflite.ModelEnd(b), b"TFL3")
    before = bytes(b.Output())
    after = flatbuffer.set_metadata(before, NAME, b"1234")
    assert read(after).Buffers(0).Offset() == 4096 + len(after) - len(before)


def many_buffers() -> bytes:
    """A model of so many buffers that a new vector of them is longer than a vtable reaches."""
    return model([(str(i), b"x") for i in range(16400)], operators=2)


@pytest.mark.slow
def test_copies_the_fields_of_a_root_that_is_out_of_reach() -> None:
    before = many_buffers()
    after = flatbuffer.set_metadata(before, NAME, b"1234")
    old, new = read(before), read(after)
    assert after.endswith(before)
    assert (len(after) - len(before)) % 64 == 0
    assert get_metadata(after, NAME) == b"1234"
    assert get_metadata(after, "16399") == b"x"
    assert (new.Version(), new.Description()) == (old.Version(), old.Description())
    assert [new.Subgraphs(0).Operators(i).OpcodeIndex() for i in range(2)] == [0, 1]
    assert (new.OperatorCodesLength(), new.SignatureDefsLength()) == (0, 0)
    assert new.BuffersLength() == old.BuffersLength() + 1
    longer = flatbuffer.set_metadata(after, NAME, b"12345678")
    assert get_metadata(longer, NAME) == b"12345678"
    assert read(longer).Description() == old.Description()


@pytest.mark.slow
def test_refuses_unknown_fields_of_a_root_that_is_out_of_reach() -> None:
    with pytest.raises(ModelError, match="fields of the model that modelplan does not know lie too far"):
        flatbuffer.set_metadata(with_newer_fields(many_buffers()), NAME, b"1234")


def test_reorders_operators_and_back() -> None:
    before = model(operators=5)
    after = flatbuffer.reorder_operators(before, [3, 1, 4, 0, 2])
    graph = read(after).Subgraphs(0)
    assert [graph.Operators(i).OpcodeIndex() for i in range(5)] == [3, 1, 4, 0, 2]
    assert len(after) == len(before)
    assert flatbuffer.reorder_operators(after, [[3, 1, 4, 0, 2].index(i) for i in range(5)]) == before


def test_refuses_an_order_that_is_no_permutation() -> None:
    with pytest.raises(ValueError, match="permutation of 3"):
        flatbuffer.reorder_operators(model(operators=3), [0, 0, 1])


@pytest.mark.parametrize("cut", range(8, 140, 7))
def test_refuses_a_truncated_file(cut: int) -> None:
    with pytest.raises(ModelError):
        flatbuffer.set_metadata(model([("other", b"weights")])[:cut], NAME, b"1234")


def test_refuses_another_format() -> None:
    with pytest.raises(ModelError, match="file identifier"):
        get_metadata(struct.pack("<I", 8) + b"ABCD", NAME)

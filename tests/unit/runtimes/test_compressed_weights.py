"""Models with TFLM's metadata of compressed weights: what kernels request for them, and who refuses them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from commands import run
from lut_models import compressed_model, metadata
from tflm_models import MAKERS, Draw, Op, S, T, build, zeros
from tflm_sweep import ask_wheel, differences

from modelplan import AnalyzeRequest, analyze
from modelplan.formats.tflite.flatbuffer import set_metadata
from modelplan.formats.tflite.lut_metadata import lut_metadata
from modelplan.runtimes.tflm.arena import COMPRESSED, arena, refusals
from modelplan.runtimes.tflm.declaration import requirement_of
from modelplan.runtimes.tflm.decoding import unpacking_region
from modelplan.runtimes.tflm.file import FileModel, load_tflite, read_tflite
from modelplan.runtimes.tflm.kernels import LIBRARIES
from modelplan.runtimes.tflm.runner import INSTALL, installed

UNPACKING = LIBRARIES["reference"].operators
wheel = pytest.mark.skipif(not installed(), reason=f"tflite-micro is not installed: {INSTALL}")


def compressed(path: Path) -> FileModel:
    """The model with two of three operators compressed, with 1 to 7 bits."""
    plain = load_tflite(path)
    return compressed_model(plain.data, dict(few_bits(plain)))


def few_bits(model: FileModel) -> Iterator[tuple[int, int]]:
    main = model.subgraphs[0]
    for number, op in enumerate(main.ops):
        unpacked = (op.inputs[i] for i in UNPACKING[op.kind].unpacks if i < len(op.inputs))
        for t in unpacked if number % 3 != 1 else ():
            if t >= 0 and main.tensors[t].constant and main.tensors[t].shape:
                yield t, 1 + number % 7


@pytest.mark.slow
@wheel
@pytest.mark.parametrize("name", ["resnet8", "ds_cnn_kws", "unet_small", "autoencoder", "inception_like"])
def test_the_wheel_needs_what_is_predicted(models: Path, name: str) -> None:
    model = compressed(models / f"{name}.tflite")
    needed, answer = arena(model, "wheel"), ask_wheel(model.data)
    assert (needed.head, needed.tail, needed.refusals) == (answer.head, answer.tail, ())
    assert answer.enough(needed.least)
    assert not answer.enough(needed.least - 16)


@wheel
def test_drawn_operators_need_on_the_wheel_what_is_predicted() -> None:
    count = 0
    for number, (kind, maker, dtypes) in enumerate(MAKERS):
        if kind not in ("CONV_2D", "DEPTHWISE_CONV_2D", "TRANSPOSE_CONV", "FULLY_CONNECTED"):
            continue
        for dtype in dtypes:
            for index in range(3):
                plain = read_tflite(maker(Draw(1000 * number + index), dtype), kind)
                bits = dict(few_bits(plain))
                if bits and not refusals(plain, "wheel"):
                    model = compressed_model(plain.data, bits)
                    where = f"{kind} {dtype} {index}"
                    whole, asked = arena(model, "wheel"), ask_wheel(model.data)
                    assert list(differences(where, whole, asked)) == [], where
                    count += bool(asked.head)
    assert count > 10


def concatenation() -> bytes:
    part = zeros("int8", (1, 40))
    whole = S(
        (T("int8", (1, 24)), part, T("int8", (1, 64))),
        (Op("CONCATENATION", (0, 1), (2,), {"Axis": 1}, "ConcatenationOptions"),),
        (0,),
        (2,),
    )
    return build(whole)


def assignment() -> bytes:
    name = {"Container": "", "SharedName": "state"}
    ops = (
        Op("VAR_HANDLE", (), (0,), name, "VarHandleOptions"),
        Op("ASSIGN_VARIABLE", (0, 1), (), {}, "AssignVariableOptions"),
        Op("READ_VARIABLE", (0,), (2,), {}, "ReadVariableOptions"),
    )
    return build(S((T("resource", ()), zeros("float32", (50,)), T("float32", (50,))), ops, (), (2,)))


@wheel
@pytest.mark.parametrize("make", [concatenation, assignment])
def test_constants_that_are_no_weights(make: object) -> None:
    plain = read_tflite(make(), "m")  # type: ignore[operator]
    model = compressed_model(plain.data, {1: 3})
    whole, asked = arena(model, "wheel"), ask_wheel(model.data)
    assert (whole.head, whole.tail) == (asked.head, asked.tail)
    assert whole.scratch > arena(plain, "wheel").scratch


def test_only_tflm_s_own_kernels_unpack(models: Path) -> None:
    model = compressed(models / "resnet8.tflite")
    assert not refusals(model, "32", "reference")
    for name in ("cmsis-c", "cmsis-mve", "esp-nn", "esp-nn-generic"):
        (*_, last) = refusals(model, "32", name)
        assert last.reason.startswith("input "), name
        assert f"its kernel of {name} reads the indices as weights" in last.reason
    other = compressed_model(concatenation(), {1: 3})
    assert not any(refusals(other, "32", name) for name in LIBRARIES)
    for name, library in LIBRARIES.items():
        left = {kind for kind, one in library.operators.items() if one.unpacks}
        assert {"CONCATENATION", "ASSIGN_VARIABLE"} <= left
        assert ("CONV_2D" in left) == library.plain, name


def test_an_operator_that_unpacks_nothing_is_refused() -> None:
    constant = zeros("int8", (1, 8))
    t = T("int8", (1, 8))
    data = build(S((t, constant, replace(t)), (Op("ADD", (0, 1), (2,), {}, "AddOptions"),), (0,), (2,)))
    (refused,) = refusals(compressed_model(data, {1: 2}), "32", "reference")
    assert refused.label == "op 0 ADD"


@pytest.mark.parametrize(
    ("payload", "why"),
    [
        (b"1234", "damaged"),
        (b"", "damaged"),
        (metadata([[(3, 1, 3)]], version=2), "of version 2"),
        (metadata([]), "without a tensor"),
        (metadata([[]]), "without a tensor"),
        (metadata([[(999, 1, 3)]]), "name tensor 999"),
        (metadata([[(-1, 1, 3)]]), "name tensor -1"),
        (metadata([[(3, 1, 8)]]), "with 8 bits"),
        (metadata([[(3, 1, 0)]]), "with 0 bits"),
        (metadata([[(0, 1, 3)]]), "with 0 bytes for tensor 0"),
        (metadata([[(3, 1, 1)], [(3, 1, 1)]]), "for 2 subgraphs of 1"),
    ],
)
def test_metadata_that_tflm_does_not_obey_are_refused(models: Path, payload: bytes, why: str) -> None:
    data = set_metadata((models / "resnet8.tflite").read_bytes(), "COMPRESSION_METADATA", payload)
    found = refusals(read_tflite(data, "m"), "32", "reference")
    assert found[0].label == "metadata COMPRESSION_METADATA"
    assert why in found[0].reason


def test_a_tensor_that_metadata_name_twice_is_refused(models: Path) -> None:
    data = (models / "resnet8.tflite").read_bytes()
    weights = read_tflite(data, "m").subgraphs[0].ops[0].inputs[1]
    twice = set_metadata(data, "COMPRESSION_METADATA", metadata([[(weights, 1, 2), (weights, 1, 2)]]))
    assert "twice" in refusals(read_tflite(twice, "m"))[0].reason
    once = lut_metadata(set_metadata(data, "COMPRESSION_METADATA", metadata([[(weights, 7, 2)]])))
    assert once is not None
    assert once.subgraphs == (((weights, 7, 2),),)
    assert lut_metadata(data) is None


def test_what_is_planned_holds_the_unpacked_weights(models: Path, tmp_path: Path) -> None:
    model = compressed(models / "resnet8.tflite")
    path = tmp_path / "model.tflite"
    path.write_bytes(model.data)
    found = analyze(AnalyzeRequest(str(path), kernels="reference"))
    weights, bias = (model.tensors[t] for t in model.subgraphs[0].ops[0].inputs[1:])
    assert found.plan.graph.ops[0].scratch == (weights.nbytes, bias.nbytes)
    assert found.requirement.arena == arena(model, "32").size()
    plain = analyze(AnalyzeRequest(str(models / "resnet8.tflite"), kernels="reference")).requirement
    assert found.requirement.head > plain.head
    row = next(part for part in found.requirement.parts if part.name == f"tail: {COMPRESSED}")
    assert row.count == 1 + 2 * len(dict(few_bits(load_tflite(models / "resnet8.tflite"))))


def test_words_say_for_which_builds_the_number_is(models: Path, tmp_path: Path) -> None:
    path = tmp_path / "model.tflite"
    model = compressed(models / "resnet8.tflite")
    path.write_bytes(model.data)
    said = " ".join(run("analyze", path).stdout.split())
    assert "sized for TFLM built with USE_TFLM_COMPRESSION" in said
    assert "other builds ignore the metadata and compute with the indices" in said
    assert f"with SetDecompressionMemory into {unpacking_region(model)} bytes elsewhere" in said
    remark = requirement_of(model, "32", "all").remarks[-1]
    beside = int(remark.rsplit(" ", 1)[1])
    assert beside < requirement_of(model, "32", "reference").arena
    assert beside > requirement_of(load_tflite(models / "resnet8.tflite"), "32", "reference").arena
    refused = run("check", path, "--budget", "1MiB", "--kernels", "cmsis-dsp")
    assert refused.returncode == 1
    assert "remedy: compress with TFLM of August 2026 or later" in " ".join(refused.stdout.split())

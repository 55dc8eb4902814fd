"""Without a kernel library a file is sized and planned for each that is known; a planned file says for which."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from commands import run

from modelplan import ModelError, PackRequest, pack
from modelplan.checking.verifier import proof
from modelplan.checking.verifier.subject import offline_subject
from modelplan.formats.tflite.flatbuffer import set_metadata
from modelplan.model import Requirement
from modelplan.questions.alternatives import load_file
from modelplan.questions.model_request import ModelRequest, on_target
from modelplan.runtimes.tflm import TFLM
from modelplan.runtimes.tflm.kernels import ALL, LIBRARIES, Call, Operand, find_libraries, scratch_sizes
from modelplan.runtimes.tflm.plan_metadata import MADE_FOR, kernels_made_for

NAMES = ["ds_cnn_kws", "resnet8", "autoencoder"]


def needs(path: Path, abi: str, kernels: str) -> Requirement:
    assert TFLM.requires
    return TFLM.requires(path.read_bytes(), str(path), abi, kernels)


@pytest.mark.parametrize("name", NAMES)
def test_the_arena_is_the_largest_and_each_library_needs_what_it_needs_alone(models: Path, name: str) -> None:
    path = models / f"{name}.tflite"
    whole = needs(path, "32", ALL)
    assert whole.arena == max(one.arena for one in whole.libraries)
    assert [one.library for one in whole.libraries] == [library.name for library in find_libraries(ALL)]
    for one in whole.libraries:
        alone = needs(path, "32", one.library)
        assert (one.arena, one.head, one.refusals) == (alone.arena, alone.head, alone.refusals)
        assert alone.libraries == ()
    least = min(one.arena for one in whole.libraries)
    assert whole.libraries_that_fit(least - 1) == ()
    assert whole.kernels not in whole.libraries_that_fit(whole.arena - 1)
    assert len(whole.libraries_that_fit(whole.arena)) == len(whole.libraries)


def test_an_abi_names_the_libraries_that_are_built_for_it(models: Path) -> None:
    path = models / "ds_cnn_kws.tflite"
    of = {abi: {one.library for one in needs(path, abi, ALL).libraries} for abi in ("cortex-m", "riscv32", "x86-64")}
    assert of["cortex-m"] == {"reference", "cmsis-c", "cmsis-dsp", "cmsis-mve"}
    assert of["riscv32"] == {"reference", "esp-nn", "esp-nn@1.1.0", "esp-nn-generic"}
    assert of["x86-64"] == {"reference"}
    assert needs(path, "x86-64", "cmsis-c").arena  # one that is named is sized for the ABI that is named


def test_scratch_of_all_libraries_holds_that_of_each() -> None:
    image, weights = Operand("int8", (1, 12, 12, 16)), Operand("int8", (8, 3, 3, 16), constant=True)
    call = Call("CONV_2D", (image, weights, None), (Operand("int8", (1, 10, 10, 8)),), {"padding": "VALID"})
    room = scratch_sizes(call, ALL)
    assert room == tuple(sorted(room, reverse=True))
    for library in LIBRARIES:
        own = sorted(scratch_sizes(call, library), reverse=True)
        assert len(own) <= len(room)
        assert all(size <= most for size, most in zip(own, room, strict=False))


@pytest.mark.parametrize("alias", ["views", "safe"])
@pytest.mark.parametrize("name", NAMES)
def test_a_plan_without_a_library_is_right_with_each(models: Path, name: str, alias: str) -> None:
    packed = pack(PackRequest(str(models / f"{name}.tflite"), alias))
    assert packed.kernels == ALL
    for library in LIBRARIES:
        proof.prove(offline_subject(packed.packed, library))


def test_a_planned_file_says_for_which_kernels_and_every_command_reads_it(models: Path, tmp_path: Path) -> None:
    packed = tmp_path / "packed.tflite"
    words = ("--alias", "safe", "--kernels", "cmsis-dsp")
    assert run("pack", models / "resnet8.tflite", "-o", packed, *words).returncode == 0
    assert kernels_made_for(packed.read_bytes(), "x") == "cmsis-dsp"
    assert on_target(ModelRequest(str(packed)), load_file(str(packed))).kernels == "cmsis-dsp"
    shown = run("analyze", packed)
    assert "cmsis-dsp kernels" in shown.stdout
    assert "any kernels" not in shown.stdout
    number = shown.stdout.split("TENSOR_ARENA_SIZE ")[1].split()[0]
    assert run("check", packed, "--budget", number).returncode == 0
    assert run("check", packed, "--budget", int(number) - 1).returncode == 1
    for command in (["verify", "--quick"], ["explain", "--seconds", "0"], ["diff", models / "resnet8.tflite"]):
        done = run(*command, packed)
        assert done.returncode == 0, (command, done.stderr)


@pytest.mark.parametrize(
    ("entry", "reason"),
    [
        (b"{", "cannot be read"),
        (b"[]", "cannot be read"),
        (b"[" * 100_000, "cannot be read"),
        (b'{"kernels": "neon"}', "'neon', which are not known"),
        (b'{"kernels": ["reference"]}', "which are not known"),
    ],
)
def test_what_a_file_says_of_its_plan_is_refused_where_it_means_nothing(
    models: Path, entry: bytes, reason: str
) -> None:
    data = set_metadata((models / "ds_cnn_kws.tflite").read_bytes(), MADE_FOR, entry)
    with pytest.raises(ModelError, match=reason):
        kernels_made_for(data, "x")


def test_text_json_and_check_name_the_libraries(models: Path) -> None:
    model = models / "ds_cnn_kws.tflite"
    shown, document = run("analyze", model).stdout, json.loads(run("analyze", model, "--json", "-").stdout)
    whole = needs(model, "32", ALL)
    assert f"  #define TENSOR_ARENA_SIZE {whole.arena}  // any kernels; less with --kernels or --target\n" in shown
    for one in whole.libraries:
        assert f"{one.library} " in shown
        assert f"{one.arena:,}" in shown
    assert [one["arena"] for one in document["requirement"]["libraries"]] == [one.arena for one in whole.libraries]
    least = min(whole.libraries, key=lambda one: one.arena)
    judged = run("check", model, "--budget", least.arena)
    assert judged.returncode == 1
    assert f"fits with {least.library}" in judged.stdout
    assert "fits with none of the kernel libraries" in run("check", model, "--budget", 1024).stdout

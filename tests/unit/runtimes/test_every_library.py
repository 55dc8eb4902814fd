"""Without a kernel library a file is sized and planned for each that is known; a planned file says for which."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from itertools import product
from pathlib import Path

import pytest
from commands import run
from shares import few_first
from tflm_models import T, single, zeros

from modelplan import ModelError, PackRequest, RequestError, ShareRequest, pack, share_memory
from modelplan.checking.verifier import proof
from modelplan.checking.verifier.subject import offline_subject
from modelplan.formats.tflite.flatbuffer import set_metadata
from modelplan.model import Requirement
from modelplan.questions.alternatives import load_file
from modelplan.questions.model_request import ModelRequest, model_plan, on_target
from modelplan.questions.sweeps.measured_runs import Memo, measured
from modelplan.questions.sweeps.run_table import RunBlock, RunTable, runs_of
from modelplan.questions.together.shared_memory import tflm_arenas
from modelplan.rewriting.shared_plan_files import planned_files
from modelplan.runtimes.tflm import TFLM
from modelplan.runtimes.tflm.arena import arena as arena_of
from modelplan.runtimes.tflm.file import load_tflite
from modelplan.runtimes.tflm.kernels import ALL, LIBRARIES, LIBRARY_GROUPS, Call, Operand, find_libraries, scratch_sizes
from modelplan.runtimes.tflm.metadata import MADE_FOR, kernels_made_for
from modelplan.runtimes.tflm.other_arenas import shared_arena_of

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
    assert of["riscv32"] == {"reference", *LIBRARY_GROUPS["esp-nn@all"], "esp-nn-generic"}
    assert of["x86-64"] == {"reference"}
    assert needs(path, "x86-64", "cmsis-c").arena  # one that is named is sized for the ABI that is named


@pytest.mark.parametrize("name", few_first(NAMES))
@pytest.mark.parametrize("board", few_first(["esp32s3", "esp32s3-n16r8#psram"]))
def test_a_board_is_sized_for_every_release_of_its_kernels(models: Path, name: str, board: str) -> None:
    path = models / f"{name}.tflite"
    each = {release: needs(path, "xtensa", release).arena for release in LIBRARY_GROUPS["esp-nn@all"]}
    shown = run("analyze", path, "--target", board).stdout
    assert f"#define TENSOR_ARENA_SIZE {max(each.values())}  // any kernels below" in shown
    assert all(release in shown for release in each)
    for budget, status in ((max(each.values()), 0), (max(each.values()) - 16, 1)):
        assert run("check", path, "--target", board, "--budget", budget).returncode == status
    for release, arena in each.items():
        one = run("analyze", path, "--target", board, "--kernels", release).stdout
        assert f"#define TENSOR_ARENA_SIZE {arena}\n" in one


def test_some_model_needs_most_with_each_release(models: Path) -> None:
    """So that none of the tables is left out without a difference."""
    wide = single("DEPTHWISE_CONV_2D", [T("int8", (1, 20, 20, 24)), zeros("int8", (1, 3, 3, 24), scales=(0.1,) * 24,
                  zero=0, axis=3), zeros("int32", (24,), scales=(0.01,) * 24, zero=0)], [T("int8", (1, 20, 20, 24))],
                  "DepthwiseConv2DOptions", Padding=0, StrideH=1, StrideW=1, DepthMultiplier=1)  # fmt: skip
    data = [path.read_bytes() for path in sorted(models.glob("*.tflite"))] + [wide]
    most = {LIBRARY_GROUPS["esp-nn@all"][0]}
    assert TFLM.requires
    for content in data:
        sizes = {one: TFLM.requires(content, "x", "xtensa", one).arena for one in LIBRARY_GROUPS["esp-nn@all"]}
        most |= {release for release, size in sizes.items() if size == max(sizes.values())}
    assert {"esp-nn@1.2.3", "esp-nn@1.2.0", "esp-nn@1.1.0"} <= most


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


def arenas(path: Path, kernels: str) -> dict[str, tuple[int, int]]:
    return {one.library: (one.arena, one.head) for one in needs(path, "32", kernels).libraries}


@pytest.mark.parametrize("kernels", [ALL, "cmsis-nn", "esp-nn@all"])
@pytest.mark.parametrize("name", ["person_detect", "vww_96_int8", "str_ww_ref_model"])
def test_a_plan_for_several_libraries_raises_none(corpus: Path, tmp_path: Path, name: str, kernels: str) -> None:
    path, out = corpus / "tflite" / f"{name}.tflite", tmp_path / "packed.tflite"
    done = run("pack", path, "-o", out, "--force", "--kernels", kernels)
    assert done.returncode == 0, done.stderr
    before, after = arenas(path, kernels), arenas(out, kernels)
    assert all(now <= then for library in before for now, then in zip(after[library], before[library], strict=True))
    found = pack(PackRequest(str(path), kernels=kernels)).plan.helped
    assert ("so it is not made for all" in done.stdout) == (found is not None)
    if found:
        alone = pack(PackRequest(str(path), kernels=found.name))
        assert alone.plan.head <= found.after < found.before == alone.plan.before


def test_a_plan_that_would_help_one_library_is_named(corpus: Path, tmp_path: Path) -> None:
    done = run("pack", corpus / "tflite" / "person_detect.tflite", "-o", tmp_path / "packed.tflite")
    said = " ".join(done.stdout.split())
    assert (
        "a plan for --kernels esp-nn@1.2.3 has 9,216 bytes less of head; that of reference would go from 55,296" in said
    )


@pytest.mark.slow
@pytest.mark.parametrize("name", ["person_detect", "kws_ref_model"])
def test_fit_for_all_libraries_raises_none(corpus: Path, tmp_path: Path, name: str) -> None:
    path, out = corpus / "tflite" / f"{name}.tflite", tmp_path / "fitted.tflite"
    done = run("fit", path, "--least", "-o", out)
    assert done.returncode == 0, done.stderr
    before, after = arenas(path, ALL), arenas(out, ALL)
    assert all(after[library][0] <= before[library][0] for library in before)


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
    assert f"  #define TENSOR_ARENA_SIZE {whole.arena}  // any kernels below; less with --kernels\n" in shown
    for one in whole.libraries:
        assert one.library in shown
        assert f"{one.arena:,}" in shown
    assert [one["arena"] for one in document["requirement"]["libraries"]] == [one.arena for one in whole.libraries]
    least = min(whole.libraries, key=lambda one: one.arena)
    judged = run("check", model, "--budget", least.arena)
    assert judged.returncode == 1
    assert f"fits with {least.library}" in judged.stdout
    assert "fits with none of the kernel libraries" in run("check", model, "--budget", 1024).stdout


TURNS = [["ds_cnn_kws", "resnet8"]]


@pytest.mark.slow
@pytest.mark.parametrize("turns", [TURNS, [["all"]]])
def test_one_memory_without_a_library_is_enough_for_each(models: Path, turns: list[list[str]]) -> None:
    plan = share_memory(ShareRequest(dict(plan_paths(models)), in_turn=turns))
    arenas = tflm_arenas(plan)
    assert [one.kernels for one in arenas.libraries] == [library.name for library in find_libraries(ALL)]
    assert arenas.pinned.least == max(one.pinned.least for one in arenas.libraries)
    for library in find_libraries(ALL):
        own = share_memory(ShareRequest(dict(plan_paths(models)), in_turn=turns, kernels=library.name))
        assert tflm_arenas(own).pinned.least <= arenas.pinned.least
        assert tflm_arenas(own).libraries == ()
    if arenas.written:
        for file, kernels in product(planned_files(plan).models, LIBRARIES):
            proof.prove(offline_subject(file, kernels))
            assert kernels_made_for(file.data, file.name) == ALL


@pytest.mark.parametrize(
    ("first", "second", "turns", "written"),
    [
        ("person_detect", "kws_ref_model", [["all"]], True),
        ("kws_ref_model", "hello_world_int8", [["all"]], True),
        ("person_detect", "pretrainedResnet_quant", [["all"]], False),
        ("person_detect", "ad01_int8", [], False),
    ],
)
def test_files_of_several_models_are_worse_with_no_library(
    corpus: Path, first: str, second: str, turns: list[list[str]], written: bool
) -> None:
    """Each library needs no more than with the files as they came; where that cannot be, none are written."""
    paths = {name: corpus / "tflite" / f"{name}.tflite" for name in (first, second)}
    plan = share_memory(ShareRequest(paths, in_turn=turns))
    arenas = tflm_arenas(plan)
    assert (arenas.written is not None, bool(arenas.reason)) == (written, not written)
    before = [load_tflite(path) for path in paths.values()]
    for library in find_libraries(ALL):
        apart = sum(arena_of(file, "32", library.name).least for file in before)
        own = min(apart, shared_arena_of(before, "32", library.name).least) if turns else apart
        assert not written or shared_arena_of(arenas.files, "32", library.name).least <= own, library.name
    if arenas.helped:
        assert arenas.helped.after < arenas.helped.before
        assert arenas.helped.raised_after > arenas.helped.raised_before


def plan_paths(models: Path) -> Iterator[tuple[str, Path]]:
    return ((name, models / f"{name}.tflite") for name in NAMES)


def test_scratch_of_any_library_over_another_model_is_refused(corpus: Path, models: Path) -> None:
    paths = {"person": corpus / "tflite" / "person_detect.tflite", "kws": models / "ds_cnn_kws.tflite"}
    for kernels in (None, "cmsis-dsp", "reference"):  # they may be active at the same time
        arenas = tflm_arenas(share_memory(ShareRequest(paths, kernels=kernels)))
        assert arenas.written is None
        assert "scratch of op" in arenas.reason


def test_plans_for_different_libraries_do_not_share_a_memory(models: Path, tmp_path: Path) -> None:
    paths = {}
    for name, kernels in (("resnet8", "cmsis-dsp"), ("autoencoder", "esp-nn")):
        paths[name] = tmp_path / f"{name}.tflite"
        paths[name].write_bytes(pack(PackRequest(str(models / f"{name}.tflite"), kernels=kernels)).packed.data)
    with pytest.raises(RequestError, match=r"resnet8 for cmsis-dsp, autoencoder for esp-nn\); name the library"):
        share_memory(ShareRequest(paths, in_turn=[["all"]]))
    del paths["autoencoder"]
    paths["kws"] = models / "ds_cnn_kws.tflite"
    plan = share_memory(ShareRequest(paths, in_turn=[["all"]]))
    assert {part.runtime.kernels for part in plan.parts} == {"cmsis-dsp"}


@pytest.mark.slow
def test_a_capacity_names_the_libraries_with_which_models_fit_together(models: Path, tmp_path: Path) -> None:
    words = ["together", *(str(path) for _, path in plan_paths(models)), "--in-turn", "all"]
    each = json.loads(run(*words, "--json", "-").stdout)["arenas"]["libraries"]
    sizes = sorted({one["pinned"] for one in each})
    done = run(*words, "--capacity", str(sizes[0]))
    fitting = [one["kernels"] for one in each if one["pinned"] == sizes[0]]
    assert done.returncode == 1
    assert f"too much; fits with {', '.join(fitting)}" in " ".join(done.stdout.split())
    header = run(*words, "--header", tmp_path / "all.h")
    assert (header.returncode, "name the kernel library by --kernels" in header.stderr) == (2, True)
    named = run(*words, "--header", tmp_path / "all.h", "--kernels", "esp-nn")
    assert named.returncode == 0
    assert "#ifdef CMSIS_NN\n#error" in (tmp_path / "all.h").read_text()


def test_a_run_of_a_sweep_without_a_library_is_judged_by_all(models: Path) -> None:
    path = models / "ds_cnn_kws.tflite"
    whole = needs(path, "32", ALL)
    budget = min(one.arena for one in whole.libraries)
    table = RunTable((str(path),), (RunBlock("board", budget),), kernels=("default", "reference"))
    digests = {str(path): hashlib.sha256(path.read_bytes()).hexdigest()}
    default, reference = (measured(one, Memo()) for one in runs_of(table, digests))
    assert (default.used_kernels, default.arena, default.fits) == (ALL, whole.arena, False)
    assert default.fits_with.split() == list(whole.libraries_that_fit(budget))
    assert (reference.used_kernels, reference.fits_with) == ("reference", "")
    assert reference.arena == needs(path, "32", "reference").arena


def test_memories_without_a_library_hold_the_scratch_of_each(models: Path) -> None:
    sizes: dict[str | None, int] = {}
    for library in (None, *LIBRARIES):
        problem = model_plan(ModelRequest(str(models / "ds_cnn_kws.tflite"), kernels=library)).problem
        sizes[library] = int(problem.size[problem.is_scratch].sum())
    assert all(sizes[None] >= size for size in sizes.values())
    assert sizes[None] > sizes["reference"]


def test_the_least_that_was_found_names_its_libraries(corpus: Path, tmp_path: Path) -> None:
    """Rungs that raise one library do not count for all of them; the lowest with one library alone is told too."""
    model = corpus / "tflite" / "person_detect.tflite"
    words = ("--budget", "60KiB", "--without", "split", "-o", tmp_path / "out.tflite")
    done = run("fit", model, *words)
    said = " ".join(done.stdout.split())
    assert done.returncode == 1
    assert "the least arena that was found is 116.66 KiB (119,456 B) for all kernel libraries" in said
    assert "and 80.38 KiB (82,304 B) for --kernels reference (rung as is)" in said
    alone = " ".join(run("fit", model, *words, "--kernels", "reference").stdout.split())
    assert "for all kernel libraries" not in alone


def test_the_abi_is_called_as_it_was_asked_for(corpus: Path, tmp_path: Path) -> None:
    paths = [corpus / "tflite" / f"{name}.tflite" for name in ("hello_world_int8", "micro_speech_quantized")]
    header = tmp_path / "shared.h"
    said = run("together", *paths, "--in-turn", "all", "--kernels", "cmsis-dsp", "--header", header).stdout
    assert "ABI 32, cmsis-dsp kernels" in said
    assert "ABI 32, " in header.read_text()
    fitted = run("fit", paths[0], "--least", "-o", tmp_path / "out.tflite", "--header", header, "--force").stdout
    assert "ABI 32" in fitted
    assert "ABI 32, " in header.read_text()

"""A program with other kernels than a file is sized for does not build or start, for each pair of libraries."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Callable
from functools import cache
from pathlib import Path

import pytest
from resolvers import resolver
from shares import few_first

from modelplan.outputs.firmware.kernels_guard import guard_of
from modelplan.outputs.firmware.tflm_sources import model_header, model_source
from modelplan.runtimes.tflm.arena import arena
from modelplan.runtimes.tflm.file import FileModel, read_tflite
from modelplan.runtimes.tflm.kernels import ALL, KERNELS

#: As much of TFLM's resolver as the header uses.
RESOLVER = resolver(("Conv2D", "DepthwiseConv2D", "FullyConnected", "Mean", "Softmax"))
CMSIS_NN = (
    "namespace tflite {\n"
    + "".join(
        f"void Register_{kind}_INT8() {{}}\n" for kind in ("CONV_2D", "DEPTHWISE_CONV_2D", "FULLY_CONNECTED", "SOFTMAX")
    )
    + "}\n"
)
ESP_NN = "".join(f"long long {name}_total_time = 0;\n" for name in ("conv", "dc", "fc", "softmax"))
S3 = "".join(
    f'extern "C" int esp_nn_get_{kind}_scratch_size_esp32s3() {{ return 0; }}\n' for kind in ("conv", "depthwise_conv")
)
#: As much of each library as a linker sees.
LIBRARIES = {"reference": "", "cmsis-nn": CMSIS_NN, "esp-nn": ESP_NN + S3, "esp-nn-generic": ESP_NN}
#: What the compiler says of a processor for each path of CMSIS-NN.
PROCESSORS = {"cmsis-c": (), "cmsis-dsp": ("-D__ARM_FEATURE_DSP=1",), "cmsis-mve": ("-D__ARM_FEATURE_MVE=3",)}
#: Names that a file is written for.
GUARDED = ("reference", "cmsis-nn", *PROCESSORS, "esp-nn", "esp-nn@all", "esp-nn-generic")
#: What leaves out of a program what nothing calls.
DISCARDING = ("-ffunction-sections", "-fdata-sections", "-Wl,--gc-sections")
MAIN = '#include "net.h"\nint main() { net::OpResolver all; return net::AddOps(all) + (net::kModel[0] == 0) * 0; }\n'

pytestmark = pytest.mark.skipif(shutil.which("g++") is None, reason="no g++")


def library_of(kernels: str) -> str:
    """The stand-in with which a file for `kernels` is right."""
    if kernels.startswith("cmsis"):
        return "cmsis-nn"
    return "esp-nn" if kernels == "esp-nn" or "@" in kernels else kernels


@pytest.fixture(scope="module")
def kws(models: Path) -> FileModel:
    return read_tflite((models / "ds_cnn_kws.tflite").read_bytes(), "ds_cnn_kws")


def written(folder: Path, model: FileModel, kernels: str) -> None:
    """The source and the header of a model for `kernels`, for this host, with TFLM's resolver and a program."""
    micro = folder / "tensorflow" / "lite" / "micro"
    micro.mkdir(parents=True, exist_ok=True)
    (micro / "micro_mutable_op_resolver.h").write_text(RESOLVER)
    (folder / "net.cc").write_text(model_source("net.cc", model))
    (folder / "net.h").write_text(model_header("net.cc", model, arena(model, "x86-64", kernels), kernels))
    (folder / "main.cc").write_text(MAIN)


def compiled(folder: Path, source: str, *words: str) -> subprocess.CompletedProcess[str]:
    """What the compiler says of a source, whose object lies beside it then."""
    flags = ["-std=c++17", "-Wall", "-Wextra", "-Werror", "-I", str(folder), *words]
    path = folder / source
    command = ["g++", *flags, "-c", str(path), "-o", str(path.with_suffix(".o"))]
    return subprocess.run(command, capture_output=True, text=True, check=False)


@pytest.fixture(scope="module")
def parts(kws: FileModel, tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Path]:
    """The folder of what programs have in common, compiled once with some words: the model and each stand-in."""

    @cache
    def folder_of(*words: str) -> Path:
        folder = tmp_path_factory.mktemp("parts")
        written(folder, kws, "reference")
        for name, text in LIBRARIES.items():
            (folder / f"{name}.cc").write_text(text)
        for source in ("net.cc", *(f"{name}.cc" for name in LIBRARIES)):
            assert compiled(folder, source, *words).returncode == 0
        return folder

    return folder_of


def built(folder: Path, parts: Path, library: str, *words: str) -> subprocess.CompletedProcess[str]:
    """What the linker says of the compiled program, with the model and one of the stand-ins."""
    objects = [str(folder / "main.o"), *(str(parts / f"{name}.o") for name in ("net", library))]
    program = str(folder / "program")
    return subprocess.run(["g++", *words, *objects, "-o", program], capture_output=True, text=True, check=False)


def starts(folder: Path, parts: Path, library: str, *words: str) -> bool:
    """Whether the program links and its AddOps is content."""
    done = built(folder, parts, library, *words)
    return done.returncode == 0 and subprocess.run([str(folder / "program")], check=False).returncode == 0


@pytest.mark.parametrize("discarding", few_first([(), ("-O2", *DISCARDING)]))
@pytest.mark.parametrize("kernels", GUARDED)
def test_only_the_library_that_a_file_is_for_starts(
    kernels: str, discarding: tuple[str, ...], kws: FileModel, parts: Callable[..., Path], tmp_path: Path
) -> None:
    written(tmp_path, kws, kernels)
    assert compiled(tmp_path, "main.cc", *discarding, *PROCESSORS.get(kernels, ())).returncode == 0
    found = {name for name in LIBRARIES if starts(tmp_path, parts(*discarding), name, *discarding)}
    assert found == {library_of(kernels)}


@pytest.mark.slow
@pytest.mark.parametrize("kernels", GUARDED)
def test_who_says_that_the_kernels_were_checked_is_believed(
    kernels: str, kws: FileModel, parts: Callable[..., Path], tmp_path: Path
) -> None:
    written(tmp_path, kws, kernels)
    wrong = next(name for name in LIBRARIES if name != library_of(kernels))
    words = (*PROCESSORS.get(kernels, ()), "-DMODELPLAN_KERNELS_CHECKED")
    assert compiled(tmp_path, "main.cc", *words).returncode == 0
    assert starts(tmp_path, parts(), wrong)


def test_a_file_for_all_libraries_starts_with_each(kws: FileModel, parts: Callable[..., Path], tmp_path: Path) -> None:
    written(tmp_path, kws, ALL)
    assert compiled(tmp_path, "main.cc").returncode == 0
    assert all(starts(tmp_path, parts(), name) for name in LIBRARIES)


@pytest.mark.parametrize("kernels", PROCESSORS)
def test_the_compiler_tells_the_path_of_cmsis_nn(kernels: str, kws: FileModel, tmp_path: Path) -> None:
    written(tmp_path, kws, kernels)
    for other, words in PROCESSORS.items():
        done = compiled(tmp_path, "main.cc", *words)
        assert (done.returncode == 0) == (other == kernels), done.stderr
        assert (f"sized for {kernels} kernels: for a processor that has" in done.stderr) == (other != kernels)


def test_a_macro_of_another_library_and_a_missing_symbol_are_named(
    kws: FileModel, parts: Callable[..., Path], tmp_path: Path
) -> None:
    written(tmp_path, kws, "cmsis-c")
    assert "#error sized for cmsis-c kernels; name those" in compiled(tmp_path, "main.cc", "-DESP_NN").stderr
    assert compiled(tmp_path, "main.cc").returncode == 0
    assert "kSizedFor_cmsis_c_0" in built(tmp_path, parts(), "reference").stderr


def test_where_the_linker_cannot_be_asked_the_error_says_what_to_add(
    kws: FileModel, parts: Callable[..., Path], tmp_path: Path
) -> None:
    written(tmp_path, kws, "cmsis-c")
    done = compiled(tmp_path, "main.cc", "-U__ELF__")
    assert done.returncode != 0
    for words in ("CMake, Zephyr: target_compile_definitions", "ESP-IDF", "Arduino", "STM32Cube", "CHECKED"):
        assert words in done.stderr
    assert compiled(tmp_path, "main.cc", "-U__ELF__", "-DCMSIS_NN").returncode == 0
    assert starts(tmp_path, parts(), "reference")


@pytest.mark.parametrize("kernels", sorted(KERNELS))
def test_a_model_without_kernels_of_a_library_needs_no_symbol(kernels: str) -> None:
    guard = guard_of(kernels, {"RESHAPE", "TANH"})
    assert (guard.needed, guard.forbidden, guard.symbols(), guard.check("return 1;")) == ((), (), "", "")

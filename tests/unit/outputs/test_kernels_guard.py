"""A program with other kernels than a file is sized for does not build or start, for each pair of libraries."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest
from resolvers import resolver

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


def built(folder: Path, library: str, *words: str) -> subprocess.CompletedProcess[str]:
    """What the compiler says of the program, with one of the stand-ins as an archive."""
    (folder / "kernels.cc").write_text(LIBRARIES[library])
    flags = ["-std=c++17", "-Wall", "-Wextra", "-Werror", "-I", str(folder), *words]
    sources = [str(folder / name) for name in ("main.cc", "net.cc", "kernels.cc")]
    return subprocess.run(
        ["g++", *flags, *sources, "-o", str(folder / "program")], capture_output=True, text=True, check=False
    )


def starts(folder: Path, library: str, *words: str) -> bool:
    """Whether the program builds and its AddOps is content."""
    done = built(folder, library, *words)
    return done.returncode == 0 and subprocess.run([str(folder / "program")], check=False).returncode == 0


@pytest.mark.parametrize("discarding", [(), ("-O2", "-ffunction-sections", "-fdata-sections", "-Wl,--gc-sections")])
@pytest.mark.parametrize("kernels", ["reference", "cmsis-nn", *PROCESSORS, "esp-nn", "esp-nn@all", "esp-nn-generic"])
def test_only_the_library_that_a_file_is_for_starts(
    kernels: str, discarding: tuple[str, ...], kws: FileModel, tmp_path: Path
) -> None:
    written(tmp_path, kws, kernels)
    right = library_of(kernels)
    found = {name for name in LIBRARIES if starts(tmp_path, name, *discarding, *PROCESSORS.get(kernels, ()))}
    assert found == {right}
    wrong = next(name for name in LIBRARIES if name != right)
    assert starts(tmp_path, wrong, *PROCESSORS.get(kernels, ()), "-DMODELPLAN_KERNELS_CHECKED")


def test_a_file_for_all_libraries_starts_with_each(kws: FileModel, tmp_path: Path) -> None:
    written(tmp_path, kws, ALL)
    assert all(starts(tmp_path, name) for name in LIBRARIES)


@pytest.mark.parametrize("kernels", PROCESSORS)
def test_the_compiler_tells_the_path_of_cmsis_nn(kernels: str, kws: FileModel, tmp_path: Path) -> None:
    written(tmp_path, kws, kernels)
    for other, words in PROCESSORS.items():
        done = built(tmp_path, "cmsis-nn", *words)
        assert (done.returncode == 0) == (other == kernels), done.stderr
        assert (f"sized for {kernels} kernels: for a processor that has" in done.stderr) == (other != kernels)


def test_a_macro_of_another_library_and_a_missing_symbol_are_named(kws: FileModel, tmp_path: Path) -> None:
    written(tmp_path, kws, "cmsis-c")
    assert "#error sized for cmsis-c kernels; name those" in built(tmp_path, "cmsis-nn", "-DESP_NN").stderr
    assert "kSizedFor_cmsis_c_0" in built(tmp_path, "reference").stderr


def test_where_the_linker_cannot_be_asked_the_error_says_what_to_add(kws: FileModel, tmp_path: Path) -> None:
    written(tmp_path, kws, "cmsis-c")
    done = built(tmp_path, "reference", "-U__ELF__")
    assert done.returncode != 0
    for words in ("CMake, Zephyr: target_compile_definitions", "ESP-IDF", "Arduino", "STM32Cube", "CHECKED"):
        assert words in done.stderr
    assert starts(tmp_path, "reference", "-U__ELF__", "-DCMSIS_NN")


@pytest.mark.parametrize("kernels", sorted(KERNELS))
def test_a_model_without_kernels_of_a_library_needs_no_symbol(kernels: str) -> None:
    guard = guard_of(kernels, {"RESHAPE", "TANH"})
    assert (guard.needed, guard.forbidden, guard.symbols(), guard.check("return 1;")) == ((), (), "", "")

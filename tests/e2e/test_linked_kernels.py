"""The kernel library of a program: of small ones built here, of those in the measuring kit, and what commands say."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest
from commands import run
from linking import GCC, required
from shared_memory import BUILDS, missing
from tflm_sweep import kit_folder

from modelplan import ModelError
from modelplan.targets.linked_kernels import library_of, linked_kernels

REFERENCE = "_ZN6tflite12_GLOBAL__N_18ConvEvalEP13TfLiteContextP10TfLiteNode"
CONVOLVE, PACKED, KERNEL = "arm_convolve_s8", "arm_s8_to_s16_unordered_with_offset", "arm_nn_mat_mult_kernel_s8_s16"
M3, M4, M23, M33, M55 = (
    {"TAG_CPU_ARCH_PROFILE": ord("M"), "TAG_CPU_ARCH": arch, **more}
    for arch, more in ((10, {}), (13, {}), (16, {}), (17, {"TAG_DSP_EXTENSION": 1}), (21, {"TAG_DSP_EXTENSION": 1}))
)
HELIUM = {**M55, "TAG_MVE_ARCH": 2}
A7 = {"TAG_CPU_ARCH_PROFILE": ord("A"), "TAG_CPU_ARCH": 10}

TOLD = [
    ((), M4, "", "no symbols"),
    (("main",), M4, "", "no function of CMSIS-NN, of ESP-NN or of TFLM's own"),
    (("arm_copy_q7", "arm_fir_f32", "xesp_nn_x"), M4, "", "no function of CMSIS-NN"),
    ((REFERENCE,), M4, "reference", "TFLM's own kernels (ConvEval)"),
    ((REFERENCE, "arm_softmax_s8"), M3, "cmsis-c", "arm_softmax_s8"),
    ((CONVOLVE, KERNEL), M3, "cmsis-c", "without DSP"),
    ((CONVOLVE, KERNEL), M23, "cmsis-c", "without DSP"),
    ((CONVOLVE, KERNEL, PACKED), M3, "all", "not the functions that go with a core without DSP"),
    ((CONVOLVE, KERNEL, PACKED), M4, "cmsis-dsp", "DSP instructions"),
    ((CONVOLVE, KERNEL), M4, "all", "not the functions that go with DSP"),
    (("arm_fully_connected_s8",), M4, "cmsis-dsp", "DSP instructions"),
    ((CONVOLVE, KERNEL, PACKED), M33, "cmsis-dsp", "DSP instructions"),
    ((CONVOLVE, KERNEL), {**M33, "TAG_DSP_EXTENSION": 0}, "cmsis-c", "without DSP"),
    ((CONVOLVE,), HELIUM, "cmsis-mve", "Helium"),
    ((CONVOLVE, KERNEL), HELIUM, "all", "not the functions that go with Helium"),
    ((CONVOLVE, KERNEL, PACKED), M55, "cmsis-dsp", "DSP instructions"),
    (("arm_fully_connected_s8",), M55, "all", "not the functions that go with DSP"),
    ((CONVOLVE, KERNEL, PACKED), A7, "all", "no Cortex-M"),
    ((CONVOLVE, "esp_nn_conv_s8_ansi"), M4, "all", "CMSIS-NN (arm_convolve_s8) and ESP-NN (esp_nn_conv_s8_ansi)"),
    (("esp_nn_conv_s8_ansi", "esp_nn_conv_s8_opt"), {}, "esp-nn-generic", "without functions of a chip"),
    (("esp_nn_conv_s8_ansi", "esp_nn_conv_s8_esp32s3"), {}, "esp-nn@all", "of a version that it does not tell"),
    (("esp_nn_conv_s8_esp32p4", "esp_nn_conv_s8_ansi"), {}, "esp-nn-p4", "of the ESP32-P4"),
    ((REFERENCE, "xa_nn_conv2d_std_8"), {}, "all", "Cadence's library"),
]  # fmt: skip


@pytest.mark.parametrize(("functions", "attributes", "kernels", "said"), TOLD)
def test_functions_and_attributes_tell_the_library(
    functions: tuple[str, ...], attributes: dict[str, int], kernels: str, said: str
) -> None:
    found, reason = library_of(set(functions), attributes)
    assert (found, said in reason) == (kernels, True), reason


def program(folder: Path, functions: tuple[str, ...], *cpu: str) -> Path:
    """A program for Arm that has these functions, in 96 KiB of RAM, of which the arena is 64 KiB."""
    bodies = "".join(f"int {name}(void) {{ return {i}; }}\n" for i, name in enumerate(functions))
    arena = "__attribute__((aligned(16))) char tensor_arena[65536]; char other[4096];"
    calls = " + ".join(["tensor_arena[1]", "other[2]", *(f"{name}()" for name in functions)])
    (folder / "app.c").write_text(f"{bodies}{arena} int _start(void) {{ return {calls}; }}\n")
    (folder / "app.ld").write_text(
        "MEMORY { FLASH (rx) : ORIGIN = 0, LENGTH = 64K  RAM (rwx) : ORIGIN = 0x20000000, LENGTH = 96K }\n"
        "SECTIONS { .text : { *(.text*) } > FLASH  .bss : { *(.bss*) *(COMMON) } > RAM }\n"
    )
    words = (
        *cpu,
        "-mthumb",
        "-nostdlib",
        "-fdata-sections",
        "-T",
        "app.ld",
        f"-Wl,-Map={folder / 'app.map'}",
        "app.c",
        "-o",
        "app.elf",
    )
    subprocess.run((required(GCC), *words), check=True, capture_output=True, cwd=folder)
    return folder / "app.elf"


def test_commands_size_for_the_library_of_the_program(models: Path, tmp_path: Path) -> None:
    model, script = models / "ds_cnn_kws.tflite", f"from:{tmp_path / 'app.ld'}"

    def checked(*functions: str) -> tuple[str, str]:
        program(tmp_path, functions, "-mcpu=cortex-m4")
        said = run("check", model, "--target", script, "--used", tmp_path / "app.elf").stdout
        lines = said.splitlines()
        kernels = next(line for line in lines if line.strip().startswith("kernels   "))
        return kernels.strip(), said

    line, said = checked(CONVOLVE, KERNEL, PACKED)
    assert line == "kernels   cmsis-dsp: it has CMSIS-NN (arm_convolve_s8), and is built for DSP instructions"
    assert "ABI cortex-m, cmsis-dsp kernels" in said
    line, said = checked(REFERENCE)
    assert line.startswith("kernels   reference: ")
    assert "ABI cortex-m, reference kernels" in said
    line, said = checked("not_of_tflm")
    assert line.startswith("kernels   all: no function of CMSIS-NN")
    assert "ABI cortex-m, all kernels" in said
    options = ("--target", script, "--used", tmp_path / "app.elf", "--kernels", "cmsis-c")
    assert "cmsis-c kernels" in run("check", model, *options).stdout
    document = json.loads(run("check", model, *options[:4], "--json", "-").stdout)
    assert (document["target"]["kernels"], document["target"]["abi"]) == ("", "cortex-m")


def test_a_stripped_program_and_a_map_leave_all_libraries(models: Path, tmp_path: Path) -> None:
    elf = program(tmp_path, (CONVOLVE, KERNEL, PACKED), "-mcpu=cortex-m4")
    told = linked_kernels(str(elf))
    assert told is not None
    assert (told.kernels, told.abi) == ("cmsis-dsp", "cortex-m")
    assert linked_kernels(str(tmp_path / "app.map")) is None
    subprocess.run((required("arm-none-eabi-strip"), str(elf)), check=True)
    told = linked_kernels(str(elf))
    assert told is not None
    assert (told.kernels, told.reason) == ("", "it has no symbols that name its functions")
    for used in ("app.elf", "app.map"):
        said = run("check", models / "ds_cnn_kws.tflite", "--target", f"from:{tmp_path / 'app.ld'}", "--used", used,
                   cwd=tmp_path).stdout  # fmt: skip
        assert "all kernels" in said
    (tmp_path / "cut.elf").write_bytes(elf.read_bytes()[:600])
    with pytest.raises(ModelError, match="not a whole ELF file"):
        linked_kernels(str(tmp_path / "cut.elf"))


@pytest.mark.parametrize(("cpu", "kernels"), [
    (("-mcpu=cortex-m0",), "cmsis-c"), (("-mcpu=cortex-m7",), "cmsis-dsp"), (("-mcpu=cortex-m23",), "cmsis-c"),
    (("-mcpu=cortex-m33",), "cmsis-dsp"), (("-mcpu=cortex-m33+nodsp",), "cmsis-c"),
    (("-mcpu=cortex-m55", "-mfloat-abi=hard"), "cmsis-mve"),
    (("-mcpu=cortex-m55+nomve", "-mfloat-abi=hard"), "cmsis-dsp"),
])  # fmt: skip
def test_attributes_are_those_that_compilers_write(tmp_path: Path, cpu: tuple[str, ...], kernels: str) -> None:
    functions = {"cmsis-c": (CONVOLVE, KERNEL), "cmsis-dsp": (CONVOLVE, KERNEL, PACKED), "cmsis-mve": (CONVOLVE,)}
    told = linked_kernels(str(program(tmp_path, functions[kernels], *cpu)))
    assert told is not None
    assert (told.kernels, told.abi) == (kernels, "cortex-m"), told.reason


@pytest.mark.slow
@pytest.mark.parametrize(("cpu", "kernels"), [
    (("-mcpu=cortex-m3",), "cmsis-c"), (("-mcpu=cortex-m4",), "cmsis-dsp"),
    (("-mcpu=cortex-m55", "-mfloat-abi=hard"), "cmsis-mve"),
])  # fmt: skip
def test_the_sources_of_cmsis_nn_link_to_these_functions(tmp_path: Path, cpu: tuple[str, ...], kernels: str) -> None:
    folder = kit_folder()
    source = None if folder is None else folder / "src" / "cmsis-nn"
    if source is None or not source.is_dir():
        pytest.skip("no sources of CMSIS-NN; set MODELPLAN_TFLM_KIT to the folder of the measuring programs")
    files = [source / "Source" / "ConvolutionFunctions" / "arm_convolve_s8.c"]
    files += sorted(files[0].parent.glob("arm_nn_mat_mult_kernel_*.c"))
    support = sorted((source / "Source" / "NNSupportFunctions").glob("*.c"))
    files += [file for file in support if not file.stem.endswith(("_f16", "_f32", "_flt"))]
    (tmp_path / "main.c").write_text("int arm_convolve_s8(void); int _start(void) { return arm_convolve_s8(); }\n")
    words = (
        *cpu,
        "-mthumb",
        "-O1",
        "-w",
        "-ffunction-sections",
        "-Wl,--gc-sections",
        "-nostartfiles",
        "-specs=nosys.specs",
        "-DARM_NN_ENABLE_F16=0",
        "-DARM_NN_ENABLE_F32=0",
        f"-I{source}",
        f"-I{source / 'Include'}",
        "main.c",
        *map(str, files),
        "-o",
        "app",
    )
    subprocess.run((required(GCC), *words), check=True, capture_output=True, cwd=tmp_path)
    told = linked_kernels(str(tmp_path / "app"))
    assert told is not None
    assert (told.kernels, told.abi) == (kernels, "cortex-m"), told.reason


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "kernels"), [("tflm-reference", "reference"), ("tflm-espnn", "esp-nn@all"), ("tflm-cmsis", "all")]
)
def test_programs_with_tflm_tell_their_library(tmp_path: Path, name: str, kernels: str) -> None:
    """Those of the kit, linked with their symbols; what it has of CMSIS-NN is for a Cortex-A."""
    if why := missing(name):
        pytest.skip(why)
    build, folder = BUILDS[name], kit_folder()
    assert folder is not None
    libraries = [str(folder / "lib" / library) for library in build.libraries]
    objects = (str(folder / "obj" / name / "probe.o"), "-Wl,--start-group")
    words = (*build.compiler, "-static", "-Wl,--gc-sections", *objects, *libraries,
             "-Wl,--end-group", "-lm", "-o", str(tmp_path / "app"))  # fmt: skip
    subprocess.run(words, check=True, capture_output=True)
    told = linked_kernels(str(tmp_path / "app"))
    assert told is not None
    assert told.kernels == kernels, told.reason

"""Kernel libraries by the names that people use, and CMSIS-NN as a whole."""

from __future__ import annotations

import pickle
from pathlib import Path

import pytest
from commands import run

from modelplan.model.model_file import Target
from modelplan.questions.alternatives import load_file, unmodified_requirement
from modelplan.runtimes import RUNTIMES, with_kernels
from modelplan.runtimes.tflm import TFLM
from modelplan.runtimes.tflm.kernels import KERNELS, LIBRARY_GROUPS, spoken_kernels


@pytest.mark.parametrize(
    ("spoken", "name"),
    [
        ("cmsis", "cmsis-nn"), ("CMSIS-NN", "cmsis-nn"), ("cmsis_nn", "cmsis-nn"), ("CMSIS-DSP", "cmsis-dsp"),
        ("helium", "cmsis-mve"), ("espnn", "esp-nn"), ("ESP-NN", "esp-nn"), ("esp_nn_generic", "esp-nn-generic"),
        ("Reference", "reference"), ("ALL", "all"), ("esp-nn@1.1.0", "esp-nn@1.1.0"),
        ("ESP-NN@1.1.2", "esp-nn@1.1.0"), ("espnn@1.2.2", "esp-nn@1.2.1"), ("esp-nn@1.2.0", "esp-nn@1.2.0"),
        ("xnnpack", "xnnpack"),
    ],
)  # fmt: skip
def test_kernels_have_the_names_that_people_use(spoken: str, name: str) -> None:
    assert spoken_kernels(spoken) == name


def test_every_name_is_its_own() -> None:
    assert [spoken_kernels(name) for name in KERNELS] == list(KERNELS)


def test_cmsis_nn_as_a_whole_is_enough_for_each_of_its_paths(models: Path) -> None:
    for path in sorted(models.glob("*.tflite")):
        file = load_file(str(path))
        whole = unmodified_requirement(file, Target(with_kernels(TFLM, "cmsis-nn"), "cortex-m"))
        each = [
            unmodified_requirement(file, Target(with_kernels(TFLM, name), "cortex-m"))
            for name in LIBRARY_GROUPS["cmsis-nn"]
        ]
        assert whole.arena == max(one.arena for one in each)
        assert tuple(one.library for one in whole.libraries) == LIBRARY_GROUPS["cmsis-nn"]


def test_files_for_cmsis_nn_say_so(models: Path, tmp_path: Path) -> None:
    packed, header = tmp_path / "packed.tflite", tmp_path / "arena.h"
    words = ("fit", models / "resnet8.tflite", "--only", "plan", "--kernels", "cmsis", "--force")
    assert run(*words, "-o", packed, "--header", header).returncode == 0
    assert "#ifdef ESP_NN\n#error sized for cmsis-nn kernels" in header.read_text()
    assert "CMSIS_NN\n#error" not in header.read_text()
    said = run("analyze", packed).stdout
    assert "cmsis-nn kernels" in said
    assert "esp-nn" not in said.replace("modelplan", "")
    assert run("verify", packed).returncode == 0


@pytest.mark.parametrize("name", sorted(KERNELS))
def test_a_runtime_of_any_kernels_goes_to_other_processes(name: str) -> None:
    runtime = with_kernels(TFLM, name)
    assert pickle.loads(pickle.dumps(runtime)).name == runtime.name


def test_every_runtime_goes_to_other_processes() -> None:
    for runtime in RUNTIMES.values():
        assert pickle.loads(pickle.dumps(runtime)).name == runtime.name


@pytest.mark.parametrize("command", ["analyze", "fit", "verify", "sweep"])
def test_a_device_as_kernels_points_to_the_target(command: str, models: Path, tmp_path: Path) -> None:
    rest = ["--least", "-o", str(tmp_path / "out.tflite")] if command == "fit" else []
    done = run(command, models / "ds_cnn_kws.tflite", *rest, "--kernels", "esp32s3")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "modelplan: --kernels esp32s3: that is a device; --target esp32s3 knows its kernels\n"


@pytest.mark.parametrize("name", ["esp-nn", "CMSIS"])
def test_a_kernel_library_as_target_points_to_the_kernels(name: str, models: Path) -> None:
    done = run("analyze", models / "ds_cnn_kws.tflite", "--target", name)
    assert (done.returncode, done.stdout) == (2, "")
    said = f"modelplan: --target {name}: that is a kernel library; --kernels {name} takes it, --target a board\n"
    assert done.stderr == said

"""Plain C that calls CMSIS-NN: every path of the library computes what TFLM's reference kernels do."""

from __future__ import annotations

import os
import random
import shutil
import subprocess
from pathlib import Path

import pytest
from c_operators import Drawn, Single, batch, drawn_single
from standalone_c import SANITIZERS, WARNINGS, apart, c_operators

from modelplan.cli import main
from modelplan.plain_c.libraries.cmsis_calls import faster_operators
from modelplan.plain_c.writing.c_self_test import c_self_test, expected_c_runs
from modelplan.plain_c.writing.c_source import CNames, c_files
from modelplan.runtimes.tflm.file import read_tflite
from modelplan.runtimes.tflm.runner import installed

MODELS = Path(__file__).resolve().parents[2] / "models"
KIT = Path(os.environ.get("MODELPLAN_TFLM_KIT", "none"))
CMSIS_NN = KIT / "src" / "cmsis-nn"
HELIUM = ["-mcpu=cortex-m55", "-mthumb", "-mfloat-abi=hard", "-O2"]
ARM = ["-march=armv7-a+fp", "-mthumb", "-mfloat-abi=hard", "-fshort-enums", "-static", "-Wl,--no-enum-size-warning"]


pytestmark = [
    pytest.mark.skipif(not installed(), reason="needs tflite-micro"),
    pytest.mark.skipif(not shutil.which("cc"), reason="needs a C compiler"),
]


def runs_with_cmsis_nn(folder: Path, program: str) -> str:
    """What a self-test prints that is compiled with a library of the measuring kit."""
    include, library = f"-I{CMSIS_NN / 'Include'}", str(KIT / "lib" / f"{program}.a")
    needed = {"host": "cc", "tflm": "arm-linux-gnueabihf-gcc"}[program.split("-")[0]]
    needed = "arm-none-eabi-g++" if program.endswith("mve") else needed
    emulator = {"cc": "cc", "arm-linux-gnueabihf-gcc": "qemu-arm-static"}.get(needed, "qemu-system-arm")
    if not Path(library).is_file() or not shutil.which(needed) or not shutil.which(emulator):
        pytest.skip(f"needs {needed}, {emulator} and the measuring programs; set MODELPLAN_TFLM_KIT to their folder")
    if needed == "cc":
        commands = [["cc", *WARNINGS, *SANITIZERS, include, "net_test.c", library, "-o", "net", "-lm"], ["./net"]]
    elif needed == "arm-linux-gnueabihf-gcc":
        plain = ["-U__ARM_FEATURE_DSP"] if program.endswith("-c") else []
        commands = [[needed, *WARNINGS, *ARM, *plain, "-O2", include, "net_test.c", library, "-o", "net", "-lm"]]
        commands.append(["qemu-arm-static", "./net"])
    else:
        start = ["-nostartfiles", "-T", str(KIT.parent / "driver/m55/link.ld"), str(KIT / "obj/m55/start.o")]
        commands = [["arm-none-eabi-gcc", *WARNINGS, *HELIUM, include, "-c", "net_test.c"]]
        commands.append([needed, *HELIUM, "--specs=rdimon.specs", *start, "net_test.o", library, "-lm", "-o", "net"])
        semihosting = ["-semihosting-config", "enable=on,target=native", "-kernel", "net"]
        commands.append(["qemu-system-arm", "-M", "mps3-an547", "-nographic", *semihosting])
    for command in commands:
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr[:2000] + done.stdout[:2000]
    return done.stdout


CMSIS_PROGRAMS = [
    ("cmsis-c", "host-cmsis-c"), ("cmsis-nn", "host-cmsis-c"), ("cmsis-nn", "tflm-cmsis-c"),
    ("cmsis-dsp", "tflm-cmsis"), ("cmsis-nn", "tflm-cmsis"),
    ("cmsis-mve", "tflm-cmsis-mve"), ("cmsis-nn", "tflm-cmsis-mve"),
]  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize(("kernels", "program"), CMSIS_PROGRAMS)
def test_cmsis_nn_computes_what_tflm_computes(kernels: str, program: str, tmp_path: Path) -> None:
    kinds = ["CONV_2D", "DEPTHWISE_CONV_2D", "FULLY_CONNECTED", "AVERAGE_POOL_2D", "MAX_POOL_2D"]
    kinds += ["ADD", "MUL", "SOFTMAX"]
    drawn, singles = Drawn(21), list[Single]()
    while len(singles) < 200:
        one = drawn_single(drawn, kinds[len(singles) % len(kinds)])
        singles += [one] if one.sources[0] and one.sources[0].dtype == "int8" else []
    model, names = read_tflite(batch(singles), "net.tflite"), CNames("net", "net.h")
    operators, faster = c_operators(model, kernels), faster_operators(model, c_operators(model), kernels)
    operators |= {index: operator for index, operator in faster.items() if index % 2}
    called = [kernel.source for operator in operators.values() for kernel in operator.kernels]
    assert len({source for source in called if source.startswith("cmsis_")}) == 10
    plan = apart(model, operators, random.Random(2), kernels)
    text = c_self_test(model, operators, plan, names, expected_c_runs(model, operators, plan))
    (tmp_path / "net_test.c").write_text(text)
    (tmp_path / "net.h").write_text(c_files(model, operators, plan, names).header)
    assert runs_with_cmsis_nn(tmp_path, program) == "PASS: 3 runs\n"


@pytest.mark.slow
@pytest.mark.parametrize("rows", [False, True])
def test_a_network_that_is_fitted_for_cmsis_nn_runs_on_arm(rows: bool, tmp_path: Path) -> None:
    model, options = str(MODELS / "ds_cnn_kws.tflite"), ["--input", "rows"] if rows else []
    files = ["-o", str(tmp_path / "net.c"), "--self-test", str(tmp_path / "net_test.c")]
    assert main(["fit", model, "--runtime", "c", "--kernels", "cmsis-dsp", *options, *files]) == 0
    assert runs_with_cmsis_nn(tmp_path, "tflm-cmsis") == "PASS: 3 runs\n"


def test_verify_runs_cmsis_nn_where_its_folder_is_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    model, output = str(MODELS / "ds_cnn_kws.tflite"), str(tmp_path / "net.c")
    assert main(["fit", model, "--runtime", "c", "--kernels", "cmsis-c", "-o", output]) == 0
    monkeypatch.delenv("MODELPLAN_CMSIS_NN", raising=False)
    assert main(["verify", model, "--against", output]) == 0
    assert "MODELPLAN_CMSIS_NN=FOLDER" in " ".join(capsys.readouterr().out.split())
    if not CMSIS_NN.is_dir():
        pytest.skip("needs the sources of CMSIS-NN; set MODELPLAN_TFLM_KIT to the folder of the measuring programs")
    monkeypatch.setenv("MODELPLAN_CMSIS_NN", str(CMSIS_NN))
    assert main(["verify", model, "--against", output]) == 0
    assert "runs are equal" in " ".join(capsys.readouterr().out.split())


def test_kernels_that_plain_c_does_not_have_are_refused(capsys: pytest.CaptureFixture[str]) -> None:
    model = str(MODELS / "ds_cnn_kws.tflite")
    assert main(["fit", model, "--runtime", "c", "--kernels", "reference", "-o", "net.c"]) == 2
    assert "plain C has portable, cmsis-nn" in capsys.readouterr().err

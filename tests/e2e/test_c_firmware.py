"""The firmware of docs/firmware_c: it links for a Cortex-M4, runs under qemu and finds the class that TFLM finds."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from modelplan.checking.verifier.c_compiling import compiled_network
from modelplan.questions.c_fitting import FitCRequest, compiled_rung, fit_c
from modelplan.runtimes.tflm.file import load_tflite
from modelplan.runtimes.tflm.runner import installed, tflm_values

ROOT = Path(__file__).resolve().parents[2]
MODEL = ROOT / "models" / "mobilenet_v2_like.tflite"
PROGRAMS = ("make", "arm-none-eabi-gcc", "qemu-system-arm")


@pytest.mark.slow
@pytest.mark.skipif(not installed(), reason="needs tflite-micro")
def test_a_camera_finds_its_class_on_a_cortex_m4(tmp_path: Path) -> None:
    missing = [name for name in PROGRAMS if not shutil.which(name)]
    if missing:
        pytest.skip(f"needs {', '.join(missing)}")
    shutil.copytree(ROOT / "docs" / "firmware_c", tmp_path, dirs_exist_ok=True)
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    command = ["make", f"MODEL={MODEL}", "CFLAGS=-std=c99 -O2 -mcpu=cortex-m4 -mthumb -Wall -Wextra -Werror"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, env=os.environ | {"PATH": path})
    assert done.returncode == 0, done.stderr[-2000:]
    said = {
        word: int(n) for word, n in re.findall(r"^(class|RAM|stack)\s+(\d+)", done.stdout + done.stderr, re.MULTILINE)
    }
    rows, line = np.arange(96).reshape(-1, 1), np.arange(96 * 3).reshape(1, -1)
    picture = ((7 * rows + 3 * line) % 256 - 128).astype(np.int8)
    outputs, _ = next(iter(tflm_values(load_tflite(MODEL).data, [[picture.tobytes()]])))
    assert said["class"] == int(np.argmax(outputs[0]))
    request = FitCRequest(str(MODEL), output="net.c", pushed=True)
    ladder = fit_c(request)
    assert ladder.chosen is not None
    assert ladder.chosen.ram + line.size <= said["RAM"] <= ladder.chosen.ram + line.size + 8
    compiled = compiled_rung(request, ladder)
    assert compiled is not None
    # Not all calls of the deepest chain need be made by this network, whose stack is that of `main` and `printf` too.
    assert compiled.stack - 100 <= said["stack"] <= compiled.stack + 400


def test_what_does_not_compile_has_no_code_and_no_stack() -> None:
    assert compiled_network('#include "missing.h"\n', "", "net.h") is None


def test_large_tables_count_whole_and_apart_where_only_their_last_numbers_differ() -> None:
    tables = "".join(
        f"static const signed char {name}[4000] = {{\n    {'0, ' * 3999}{last}\n}};\n"
        for name, last in (("a", 1), ("b", 2))
    )
    compiled = compiled_network(f"{tables}int sum(int i) {{ return a[i] + b[i]; }}\n", "", "net.h")
    if compiled is None:
        pytest.skip("needs a compiler that says what calls what")
    assert 8000 <= compiled.tables < 8100

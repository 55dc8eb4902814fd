"""Several memories where they are obeyed: TFLM with two arenas, C arrays through a linker, and the command itself."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest
from shared_memory import BUILDS, compiled, missing

from modelplan.runtimes.tflm.arena import arena
from modelplan.runtimes.tflm.file import load_tflite
from modelplan.runtimes.tflm.two_arenas import two_arenas

MODELS = Path(__file__).resolve().parents[2] / "models"
PROGRAM = Path(__file__).resolve().parents[1] / "two_arenas.cc"
#: Where two memories begin: those of a Cortex-M's SRAM and of an ESP32-S3's PSRAM.
SRAM, PSRAM = 0x20000000, 0x3C000000


def ran(program: str, model: Path, *words: str | int) -> dict[str, object]:
    """What the program says; nothing where TFLM stops in an assertion."""
    command = [*BUILDS[program].starter, str(compiled(program, "", PROGRAM)), str(model), *map(str, words)]
    said = subprocess.run(command, capture_output=True, text=True, check=False, timeout=300).stdout
    found: dict[str, object] = json.loads(said or '{"built": false}')
    return found


def check_two_arenas(program: str, model: Path) -> None:
    """Both arenas are just large enough in two memories, and the outputs are those of one arena."""
    build, file = BUILDS[program], load_tflite(model)
    found = two_arenas(file, build.abi, build.kernels)
    alone = ran(program, model, "one", SRAM, arena(file, build.abi, build.kernels).size())
    kept, free = found.persistent, found.non_persistent
    apart = ran(program, model, "two", PSRAM, kept, SRAM, free)
    assert alone["ok"]
    assert (apart["built"], apart["ok"], apart["overrun"]) == (True, True, False)
    assert apart["digest"] == alone["digest"]
    assert SRAM <= int(str(apart["input"])) < SRAM + free
    assert SRAM <= int(str(apart["output"])) < SRAM + free
    assert not ran(program, model, "two", PSRAM, kept - 16, SRAM, free)["built"]
    assert not ran(program, model, "two", PSRAM, kept, SRAM, free - 16)["built"]


@pytest.mark.parametrize("name", ["ds_cnn_kws", "resnet8", "unet_small"])
def test_tflm_runs_in_two_arenas_of_the_predicted_bytes(name: str) -> None:
    program = "host-reference"
    if reason := missing(program):
        pytest.skip(reason)
    check_two_arenas(program, MODELS / f"{name}.tflite")


@pytest.mark.parametrize("program", ["host-reference", "tflm-reference", "tflm-cmsis"])
def test_person_detect_has_its_two_arenas_in_two_memories(program: str, corpus: Path) -> None:
    if reason := missing(program):
        pytest.skip(reason)
    check_two_arenas(program, corpus / "tflite" / "person_detect.tflite")

"""Compares several models in one arena of TFLM with what is predicted, and runs plans for them on TFLM.

    python tests/sweeps/shared_memory.py [--count 200] [--seed 1] [--program host-reference] MODEL...

draws pairs and triples of the models, and prints where head, tail or the least arena of one MicroAllocator differ. The
kit, in MODELPLAN_TFLM_KIT, is a folder as `tflm_sweep.py` describes it, with the sources of TFLM in `src` and the
objects of its programs in `lib`; `shared_memory.cc` is compiled and linked with them.
"""

from __future__ import annotations

import argparse
import json
import random
import shutil
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

from tflm_sweep import kit_folder

from modelplan.runtimes.tflm.arena import arena
from modelplan.runtimes.tflm.file import load_tflite
from modelplan.runtimes.tflm.other_arenas import shared_arena_of

SOURCE = Path(__file__).with_name("shared_memory.cc")


@dataclass(frozen=True)
class Build:
    """A program of the kit: how it is compiled, which objects it takes, how it is started, its ABI and its kernels."""

    compiler: tuple[str, ...]
    libraries: tuple[str, str]
    starter: tuple[str, ...]
    abi: str
    kernels: str = "reference"


_ARM = ("arm-linux-gnueabihf-g++", "-march=armv7-a+fp", "-mthumb", "-mfloat-abi=hard")
_EMULATOR = ("qemu-arm-static", "-cpu", "cortex-a7")
BUILDS = {
    "host-reference": Build(("g++",), ("host-reference.a", "host-core.a"), (), "x86-64"),
    "host-cmsis-c": Build(("g++",), ("host-cmsis-c.a", "host-core.a"), (), "x86-64", "cmsis-c"),
    "tflm-reference": Build(_ARM, ("tflm-reference.a", "arm-core.a"), _EMULATOR, "xtensa"),
    "tflm-cmsis": Build(
        (*_ARM, "-fshort-enums", "-Wl,--no-enum-size-warning"),
        ("tflm-cmsis.a", "armm-core.a"),
        _EMULATOR,
        "cortex-m",
        "cmsis-dsp",
    ),
    "tflm-espnn": Build(_ARM, ("tflm-espnn.a", "arm-core.a"), _EMULATOR, "xtensa", "esp-nn@1.2.3"),
}
_FLAGS = [
    "-std=c++17",
    "-fno-rtti",
    "-fno-exceptions",
    "-fno-threadsafe-statics",
    "-O1",
    "-w",
    "-static",
    "-Wl,--gc-sections",
    "-DTF_LITE_STATIC_MEMORY",
    "-DTF_LITE_DISABLE_X86_NEON",
    "-DKERNELS_OPTIMIZED_FOR_SPEED",
]


def missing(program: str) -> str:
    """Why the program cannot be built and started here; empty if it can."""
    build, kit = BUILDS[program], kit_folder()
    if kit is None or not all((kit / "lib" / name).exists() for name in build.libraries) or not (kit / "src").is_dir():
        return f"no sources and objects of {program}; set MODELPLAN_TFLM_KIT to the folder of the measuring programs"
    tools = [tool for tool in (build.compiler[0], *build.starter[:1]) if not shutil.which(tool)]
    return f"no {', '.join(tools)}" if tools else ""


@cache
def compiled(program: str, header: str = "", source_file: Path = SOURCE, more: Sequence[str] = ()) -> Path:
    """The program, with the planner of a header where one is given; `more` are words for the compiler."""
    build, kit, folder = BUILDS[program], kit_folder(), Path(mkdtemp(prefix="modelplan-"))
    assert kit is not None
    defined: tuple[str, ...] = ()
    if header:
        (folder / "planned.h").write_text(header)
        defined = (f'-DPLAN_HEADER="{folder / "planned.h"}"',)
    source = kit / "src"
    folders = [
        source / "tflm",
        source / "gemmlowp",
        source / "flatbuffers" / "include",
        source / "kissfft",
        source / "ruy",
    ]
    libraries = ["-Wl,--start-group", *(str(kit / "lib" / name) for name in build.libraries), "-Wl,--end-group", "-lm"]
    words = [*build.compiler, *_FLAGS, *defined, *(f"-I{one}" for one in folders), str(source_file), *more, *libraries]
    subprocess.run([*words, "-s", "-o", str(folder / "program")], check=True, timeout=600)
    return folder / "program"


def started(program: str, size: int, models: Sequence[Path], *words: str, header: str = "") -> str:
    """What the program prints for models in an arena of `size` bytes; nothing where TFLM stops in an assertion."""
    command = [*BUILDS[program].starter, str(compiled(program, header)), str(size), *words, *map(str, models)]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=300).stdout


def ran(program: str, size: int, models: Sequence[Path], *words: str, header: str = "") -> dict[str, Any]:
    """Bytes used, and the digests of all outputs, of models that were run."""
    said: dict[str, Any] = json.loads(started(program, size, models, *words, header=header) or '{"built": false}')
    assert said["built"], (size, models)
    assert said["ok"]
    assert not said["overrun"]
    return said


def enough(program: str, size: int, models: Sequence[Path], header: str = "") -> bool:
    """Whether all models can be allocated and run in an arena of `size` bytes."""
    return started(program, size, models, "--probe", header=header).strip() == "yes"


def differences(program: str, models: Sequence[Path]) -> list[str]:
    """Where one MicroAllocator with these models, in this order, needs another arena than predicted."""
    build = BUILDS[program]
    predicted = shared_arena_of([load_tflite(path) for path in models], build.abi, build.kernels)
    said = ran(program, 2 * predicted.least + (1 << 20), models)
    found = []
    if (said["head"], said["used"]) != (predicted.head, predicted.total):
        found.append(f"head {predicted.head} for {said['head']}, in all {predicted.total} for {said['used']}")
    if not enough(program, predicted.least, models):
        found.append(f"TFLM fails with the least arena, {predicted.least}")
    if enough(program, predicted.least - 16, models):
        found.append(f"less than the least arena is enough, {predicted.least}")
    return found


def runnable(paths: Sequence[Path]) -> list[Path]:
    """The models that TFLM runs."""
    return [path for path in paths if not arena(load_tflite(path), "x86-64").refusals]


def drawn(paths: Sequence[Path], count: int, seed: int) -> list[tuple[Path, ...]]:
    """Pairs and triples of the models, some with one model twice."""
    r = random.Random(seed)
    return [tuple(r.choices(paths, k=r.choice([2, 2, 3]))) for _ in range(count)]


def main() -> int:
    """The command."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="+", type=Path)
    parser.add_argument("--count", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--program", choices=BUILDS, default="host-reference")
    arguments = parser.parse_args()
    if reason := missing(arguments.program):
        parser.error(reason)
    different = 0
    for models in drawn(runnable(arguments.models), arguments.count, arguments.seed):
        for line in differences(arguments.program, models):
            different += 1
            print(f"{', '.join(path.stem for path in models)}: {line}")
    print(f"{arguments.program}: {arguments.count} sets of models, {different} predicted otherwise")
    return int(different > 0)


if __name__ == "__main__":
    sys.exit(main())

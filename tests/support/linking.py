"""Programs linked by the GNU linker for Arm, where it is installed, and what it makes of a script."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

GCC, LD = "arm-none-eabi-gcc", "arm-none-eabi-ld"
CPU = ("-mcpu=cortex-m4", "-mthumb", "-nostdlib", "-fdata-sections")


def required(program: str) -> str:
    """The program's path; a test without it skips visibly."""
    found = shutil.which(program)
    if found is None:
        pytest.skip(f"{program} is not installed")
    return found


def object_file(folder: Path, source: str = "int main(void) { return 0; }") -> Path:
    """The source, compiled."""
    (folder / "program.c").write_text(source)
    words = (required(GCC), *CPU, "-c", str(folder / "program.c"), "-o", str(folder / "program.o"))
    subprocess.run(words, check=True, capture_output=True)
    return folder / "program.o"


def link(folder: Path, script: str, source: str) -> str:
    """Links the source with a script into app.elf and app.map of the folder; what the linker says against it."""
    (folder / "app.ld").write_text(script)
    words = (
        required(GCC), *CPU, str(object_file(folder, source)), "-T", str(folder / "app.ld"),
        f"-Wl,-Map={folder / 'app.map'}", "-o", str(folder / "app.elf"),
    )  # fmt: skip
    return subprocess.run(words, capture_output=True, text=True, check=False).stderr


def memory_of(script: Path, program: Path, folders: tuple[Path, ...] = ()) -> Path | str:
    """The map that the linker writes for a script, or what it says against the script."""
    written = script.with_suffix(".ld.map")
    places = [f"-L{folder}" for folder in folders]
    words = [required(LD), *places, str(program), "-T", str(script), f"-Map={written}", "-o", str(script) + ".elf"]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    return written if written.exists() and "Memory Configuration" in written.read_text() else done.stderr

"""The copies of a plan whose contents move, compiled and carried out: each operator finds what it reads."""

from __future__ import annotations

import ctypes
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest
from commands import run

from modelplan import SpillRequest, render, spill
from modelplan.answers.moving_layout import MovingPlan
from modelplan.targets.device import Dma, Region

compiler = pytest.mark.skipif(shutil.which("cc") is None, reason="no C compiler")
SMALL = (Region("sram", 36 << 10, read_bandwidth=400_000_000, write_bandwidth=400_000_000),
         Region("psram", 8 << 20, kind="psram", read_bandwidth=80_000_000, write_bandwidth=80_000_000))  # fmt: skip


def compiled(source: str, folder: Path, *options: str) -> ctypes.CDLL:
    """The functions of a C source."""
    (folder / "copies.c").write_text(source)
    strict = ("-std=c99", "-Wall", "-Wextra", "-Wconversion", "-Werror", "-shared", "-fPIC")
    words = ["cc", *strict, *options, str(folder / "copies.c"), "-o", str(folder / "copies.so")]
    subprocess.run(words, check=True)
    return ctypes.CDLL(str(folder / "copies.so"))


class Machine:
    """The memories of a plan, and what operators find and leave in them: each buffer's bytes tell their version."""

    def __init__(self, plan: MovingPlan, library: ctypes.CDLL) -> None:
        self.plan, self.library, self.sizes = plan, library, plan.problem.problem.size.tolist()
        self.regions = [np.zeros(region.size, dtype=np.uint8) for region in plan.problem.regions]
        away = [copy for copy in plan.layout.copies if min(copy.source, copy.target) < 0]
        stays = plan.layout.stays
        self.homes: dict[int, np.ndarray] = {}
        for copy in away:
            buffer = stays[copy.source if copy.source >= 0 else copy.target].buffer
            self.homes.setdefault(buffer, np.full(self.sizes[buffer], self.mark(buffer, 0), dtype=np.uint8))
        self.version = [0] * len(self.sizes)

    def mark(self, buffer: int, version: int) -> int:
        return (buffer * 31 + version * 7) % 251 + 1

    def content(self, stay: object) -> np.ndarray:
        at = stay.offset  # type: ignore[attr-defined]
        return self.regions[stay.region][at : at + self.sizes[stay.buffer]]  # type: ignore[attr-defined]

    def copy_before(self, step: int) -> None:
        def pointers(arrays: list[np.ndarray]) -> ctypes.Array[ctypes.c_void_p]:
            return (ctypes.c_void_p * max(len(arrays), 1))(*(array.ctypes.data for array in arrays))

        self.library.plan_before(ctypes.c_uint32(step), pointers(self.regions), pointers([*self.homes.values()]))

    def operate(self, step: int) -> int:
        """Reads and writes of a step; returns how many reads found their content in a stay."""
        seen, problem = 0, self.plan.problem
        for stay in self.plan.layout.stays:  # inputs, and weights that were loaded before the run
            loaded = problem.home[stay.buffer] < 0 or (stay.start, stay.end) == (0, len(self.plan.ops))
            if loaded and stay.start == step == int(problem.problem.start[stay.buffer]):
                self.content(stay)[:] = self.mark(stay.buffer, 0)
        for access in (one for one in self.plan.problem.accesses if one.step == step):
            here = [s for s in self.plan.layout.stays if s.buffer == access.buffer and s.start <= step < s.end]
            if access.read and here and not access.written:
                expected = self.mark(access.buffer, self.version[access.buffer])
                assert any((self.content(stay) == expected).all() for stay in here), (step, access)
                seen += 1
            if access.written:
                self.version[access.buffer] += 1
                for stay in here:
                    self.content(stay)[:] = self.mark(access.buffer, self.version[access.buffer])
        return seen


@compiler
@pytest.mark.parametrize("dma", [Dma(), Dma(channels=1, depth=4)])
@pytest.mark.parametrize("name", ["resnet8", "ds_cnn_kws"])
def test_the_program_copies_what_the_plan_says(models: Path, tmp_path: Path, name: str, dma: Dma) -> None:
    size = 36 << 10 if name == "resnet8" else 12 << 10
    regions = (Region("sram", size, read_bandwidth=400_000_000, write_bandwidth=400_000_000), SMALL[1])
    plan = spill(SpillRequest(str(models / f"{name}.tflite"), kernels="reference", regions=regions, dma=dma))
    assert plan.layout.copies
    machine = Machine(plan, compiled(str(render(plan, "copies")), tmp_path))
    assert whole_run(machine) > len(plan.ops)


def whole_run(machine: Machine) -> int:
    """Copies and operators of a run; returns how many reads were looked at."""
    seen = 0
    for step in range(len(machine.plan.ops)):
        machine.copy_before(step)
        seen += machine.operate(step)
    return seen


#: An engine that copies as late as it may.
LATE = """#include <stdint.h>
#include <string.h>
static struct { void *to; const void *from; uint32_t bytes; } waiting[1000];
static void begin(uint32_t i, void *to, const void *from, uint32_t bytes) {
  waiting[i].to = to, waiting[i].from = from, waiting[i].bytes = bytes;
}
#define PLAN_COPY begin
#define PLAN_WAIT(i) memmove(waiting[i].to, waiting[i].from, waiting[i].bytes)
"""


@pytest.mark.slow
@compiler
@pytest.mark.parametrize("name", ["resnet8", "ds_cnn_kws", "unet_small"])
def test_an_engine_may_copy_as_late_as_it_is_waited_for(models: Path, tmp_path: Path, name: str) -> None:
    size = {"resnet8": 36, "ds_cnn_kws": 12, "unet_small": 80}[name] << 10
    regions = (Region("sram", size, read_bandwidth=400_000_000, write_bandwidth=400_000_000), SMALL[1])
    dma = Dma(channels=1, depth=4)
    plan = spill(SpillRequest(str(models / f"{name}.tflite"), kernels="reference", regions=regions, dma=dma))
    assert any(copy.issued < copy.due for copy in plan.layout.copies)
    machine = Machine(plan, compiled(LATE + str(render(plan, "copies")), tmp_path))
    assert whole_run(machine) > len(plan.ops)


@compiler
def test_a_wrong_copy_is_noticed(models: Path, tmp_path: Path) -> None:
    plan = spill(SpillRequest(str(models / "resnet8.tflite"), kernels="reference", regions=SMALL))
    source = str(render(plan, "copies")).replace("copy->bytes)", "copy->bytes - 1)")
    machine = Machine(plan, compiled(source, tmp_path))
    with pytest.raises(AssertionError):
        whole_run(machine)


def test_the_command_says_who_copies_and_writes_it(models: Path, tmp_path: Path) -> None:
    out = tmp_path / "copies.c"
    words = ("--region", "sram:36KiB,rate=400MB/s", "--region", "psram:8MiB,rate=80MB/s", "--kernels", "reference")
    said = run("memories", "--spill", models / "resnet8.tflite", *words, "--copies", out).stdout
    assert "made by the program between operators, with its processor; TFLM makes none" in said
    assert "void plan_before(uint32_t step" in out.read_text()


def test_all_rates_that_are_missing_are_asked_for_at_once(models: Path) -> None:
    words = ("--region", "sram:64KiB", "--region", "psram:8MiB", "--region", "flash:1MiB,kind=nvm")
    done = run("memories", models / "resnet8.tflite", *words)
    assert done.returncode == 2
    assert "region psram (psram), region flash (nvm) state no rate" in done.stderr
    options = done.stderr.partition("flash: ")[2].split()
    again = run("memories", models / "resnet8.tflite", "--region", "sram:64KiB", *options, "--kernels", "reference")
    assert again.returncode == 0, again.stderr
    assert again.stdout.startswith("resnet8: what TFLM can run: two arenas")
    assert again.stdout.index("what TFLM can run") < again.stdout.index("The ideal, for firmware")

"""Models as plain C: the memory and code that a compiler gives them, beside TFLM's arena.

    python benchmarks/plain_c.py

For each model `fit --runtime c` writes a C file, held and by rows, which is compiled for this machine and run beside
TFLM's reference kernels on random and on extreme inputs, with sanitizers.
"""

from __future__ import annotations

import re
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import reporting
from mobilenet_v2 import mobilenet_v2

from modelplan import FitCRequest, fit_c
from modelplan.checking.verifier.c_execution import execute_c
from modelplan.primitives.errors import ModelPlanError
from modelplan.rewriting.standalone_c.ladder import C_RUNGS, CRung
from modelplan.runtimes.tflm.arena import arena
from modelplan.runtimes.tflm.file import FileModel, load_tflite

#: Models of the corpus; those with an input of rows also by rows.
MODELS = (
    "person_detect", "vww_96_int8", "pretrainedResnet_quant", "kws_ref_model", "str_ww_ref_model", "ad01_int8",
    "mcu/mcunet_vww0", "mcu/micronet_vww2", "mcu/micronet_vww3", "mcu/kws_cnn_l", "mcu/kws_micronet_l",
    "mcu/ad_micronet_large", "wakeword/okay_nabu", "wakeword/alexa", "wakeword/vad",
    "../camera/fomo_face_detection",
)  # fmt: skip
#: MobileNetV2 of this width, for pictures of this size, with drawn weights; and what may be added, by rows or held:
#: shares of multiply-accumulates and of time.
GENERATED = {
    (0.35, 144): ((True, 0.0, 0.3), (True, 0.0, 1.5)),
    (1.0, 224): ((False, 0.1, 0.0), (True, 0.0, 0.5)),
}
_REPEATS = 7
_TIMED = """
#include <stdio.h>
#include <time.h>
#include "net.h"
int main(void)
{
    for (int i = 0; i < %d; i++) {
        const clock_t start = clock();
%s
        printf("%%ld\\n", (long)(clock() - start));
    }
}
"""
_RUNS = {
    False: "        net_invoke();",
    True: "        static int8_t row[NET_ROW_BYTES];\n        net_start();\n        while (!net_push_row(row)) { }",
}
BY_ROWS = ("person_detect", "vww_96_int8", "mcu/mcunet_vww0", "mcu/micronet_vww3", "../camera/fomo_face_detection")
_FLAGS = ("-std=c99", "-Os", "-fno-pic", "-Wall", "-Wextra", "-Wconversion", "-Werror")
_HEAD = (
    "Bytes. `TFLM` is the arena on a Cortex-M with CMSIS-NN's DSP kernels; `RAM` is .data and .bss of the object, code",
    "and tables are its .text and .rodata on x86-64 at -Os. The bound is that of all choices of what runs together.",
    "`cmsis-dsp` is the RAM with kernels of CMSIS-NN, their working memory included. MobileNetV2 has drawn weights.",
    "Where values may be computed again the bound is that of the rows and tiles that are planned. MACs are shares of",
    "the model's; time is measured on this machine at -O2, beside whole maps of the same model.",
    "",
)

PARSER = reporting.command_line(__file__, __doc__, "plain_c.md")


@dataclass(frozen=True)
class Compiled:
    """A model as plain C: the chosen rung, the sections of the object, and whether it computes what TFLM does."""

    rung: CRung
    ram: int
    flash: int
    equal: str


def compiled(path: Path, model: FileModel, *, pushed: bool, macs: float = 0.0, time: float = 0.0) -> Compiled:
    """The C of a model, compiled and run; with work added no rung but tiles is tried."""
    without = frozenset(C_RUNGS) - {"tiles"} if macs or time else frozenset()
    ladder = fit_c(FitCRequest(str(path), pushed=pushed, max_macs=macs, max_time=time, without=without))
    if ladder.chosen is None:
        raise TypeError("a ladder without a budget chose nothing")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "net.c").write_text(ladder.chosen.files.source)
        (folder / "net.h").write_text(ladder.chosen.files.header)
        subprocess.run(["cc", *_FLAGS, "-c", "net.c", "-o", "net.o"], cwd=folder, check=True)
        listed = subprocess.run(["size", "-A", "net.o"], cwd=folder, check=True, capture_output=True, text=True).stdout
        try:
            execute_c(model, folder / "net.c")
            equal = "bit-equal"
        except ModelPlanError as problem:
            equal = f"DIFFERS: {problem}"
    sizes = {name: int(size) for name, size in re.findall(r"^(\.\S+)\s+(\d+)", listed, re.MULTILINE)}
    ram = sum(size for name, size in sizes.items() if name.startswith((".data", ".bss")))
    flash = sum(size for name, size in sizes.items() if name.startswith((".text", ".rodata")))
    return Compiled(ladder.chosen, ram, flash, equal)


def rows(corpus: Path) -> Iterator[tuple[str, ...]]:
    """A line of the table for each model, held and by rows."""
    for name in MODELS:
        yield from _rows(corpus / "tflite" / f"{name}.tflite", by_rows=name in BY_ROWS)
    with tempfile.TemporaryDirectory() as folder:
        for width, size in GENERATED:
            path = Path(folder) / f"mobilenet_v2_{width}_{size}.tflite"
            path.write_bytes(mobilenet_v2(width, size))
            yield from _again(path, GENERATED[width, size])


def _rows(path: Path, *, by_rows: bool) -> Iterator[tuple[str, ...]]:
    model = load_tflite(path)
    tflm = arena(model, "cortex-m", "cmsis-dsp").size()
    for pushed in (False, True) if by_rows else (False,):
        reporting.progress(f"{path.stem}{' by rows' if pushed else ''}")
        one = compiled(path, model, pushed=pushed)
        least = one.rung.ram - one.rung.program.nbytes + (one.rung.bound or one.rung.program.bound)
        cmsis = fit_c(FitCRequest(str(path), pushed=pushed, kernels="cmsis-dsp")).chosen
        sizes = map("{:,}".format, (tflm, one.ram, least, one.rung.ram - least))
        what = "by rows" if pushed else "held"
        yield path.stem, what, *sizes, f"{cmsis.ram:,}" if cmsis else "", f"{one.flash:,}", "1", "", one.equal


def _again(path: Path, goals: Sequence[tuple[bool, float, float]]) -> Iterator[tuple[str, ...]]:
    """A line for each goal of a model whose values may be computed again."""
    model = load_tflite(path)
    tflm = arena(model, "cortex-m", "cmsis-dsp").size()
    whole = fit_c(FitCRequest(str(path), without=frozenset(C_RUNGS) - {"maps"})).chosen
    if whole is None:
        raise TypeError("a ladder without a budget chose nothing")
    usual = seconds(whole, pushed=False)
    for pushed, macs, time in goals:
        what = f"{'by rows' if pushed else 'held'}, +{macs:.0%} MACs" if macs else f"by rows, +{time:.0%} time"
        reporting.progress(f"{path.stem} {what}")
        one = compiled(path, model, pushed=pushed, macs=macs, time=time)
        bound = one.rung.ram - one.rung.program.nbytes + one.rung.program.bound
        sizes = map("{:,}".format, (tflm, one.ram, bound, one.ram - bound))
        slower = f"{seconds(one.rung, pushed=pushed) / usual:.2f}"
        yield path.stem, what, *sizes, "", f"{one.flash:,}", f"{1 + one.rung.macs:.3f}", slower, one.equal


def seconds(rung: CRung, *, pushed: bool) -> float:
    """The time of the fastest of some runs."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "net.c").write_text(rung.files.source)
        (folder / "net.h").write_text(rung.files.header)
        (folder / "main.c").write_text(_TIMED % (_REPEATS, _RUNS[pushed]))
        command = ["cc", "-O2", "main.c", "net.c", "-lm", "-o", "net"]
        subprocess.run(command, cwd=folder, check=True)
        done = subprocess.run(["./net"], cwd=folder, check=True, capture_output=True, text=True)
    return min(float(line) for line in done.stdout.split())


def main() -> None:
    """Writes the page."""
    arguments = reporting.parse(PARSER)
    headings = ("model", "input", "TFLM", "RAM", "bound", "above", "cmsis-dsp", "code and tables")
    table = reporting.table((*headings, "MACs", "time", "outputs"), rows(arguments.corpus), "<<>>>>>>>><")
    first = reporting.made_by(PARSER, arguments)
    reporting.save(arguments.output, first, "Models as plain C", [*_HEAD, *table])


if __name__ == "__main__":
    main()

"""Models as plain C: the memory, flash and time that a compiler gives them, beside goals and beside TFLM.

    python benchmarks/plain_c.py [--only NAME]

For each model `fit --runtime c` writes a C file, which is compiled and run beside TFLM's reference kernels on random
and on extreme inputs, with sanitizers.
"""

from __future__ import annotations

import re
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from math import inf
from pathlib import Path

import reporting
from mobilenet_v2 import mobilenet_v2

from modelplan import FitCRequest, fit_c
from modelplan.checking.verifier.c_compiling import compiled_network
from modelplan.checking.verifier.c_execution import execute_c
from modelplan.plain_c import C_RUNGS
from modelplan.plain_c.ladder import CRung
from modelplan.primitives.errors import ModelPlanError
from modelplan.runtimes.tflm.arena import arena
from modelplan.runtimes.tflm.file import FileModel, load_tflite


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """A model, held or by rows, with work added or not; `goal` are bytes of RAM, 0: a third of TFLM's arena.

    `flash` is what is to be reached of code and tables, where there is a figure.
    """

    name: str = field(kw_only=False)
    goal: int | None = field(kw_only=False, default=None)
    pushed: bool = False
    flash: int | None = None
    macs: float = 0.0
    time: float = 0.0

    @property
    def input(self) -> str:
        """How the input comes, and what may be added."""
        more = f", +{self.macs:.0%} MACs" if self.macs else f", +{self.time:.0%} time" if self.time else ""
        return f"{'by rows' if self.pushed else 'held'}{more}"


#: MobileNetV2 of this width, for pictures of this size, with drawn weights.
GENERATED = {"mobilenet_v2 0.35 144": (0.35, 144), "mobilenet_v2 1.0 224": (1.0, 224)}
CASES = (
    Case("person_detect", 13_900, flash=262_620), Case("person_detect", 10_500, pushed=True, flash=262_620),
    Case("vww_96_int8", 28_100, flash=266_076), Case("vww_96_int8", 11_500, pushed=True, flash=266_076),
    Case("pretrainedResnet_quant", 13_660, flash=100_260), Case("pretrainedResnet_quant", 13_660, pushed=True),
    Case("kws_ref_model", 9_640, flash=50_920), Case("kws_ref_model", 9_640, pushed=True),
    Case("mcu/mcunet_vww0", 21_800), Case("mcu/mcunet_vww0", 13_500, pushed=True),
    Case("mcu/micronet_vww2", 9_640), Case("mcu/micronet_vww2", 9_640, pushed=True),
    Case("mcu/micronet_vww3", 30_000), Case("mcu/micronet_vww3", 30_000, pushed=True),
    Case("mcu/kws_cnn_l", 9_100), Case("mcu/kws_micronet_l", 40_700), Case("mcu/ad_micronet_large", 77_500),
    Case("../camera/fomo_face_detection", 29_000, flash=50_344),
    Case("../camera/fomo_face_detection", 12_500, pushed=True, flash=50_344),
    Case("wakeword/okay_nabu", 0), Case("wakeword/alexa", 0), Case("str_ww_ref_model", 0),
    Case("wakeword/vad"), Case("ad01_int8"),
    Case("mobilenet_v2 0.35 144", 66_000), Case("mobilenet_v2 0.35 144", 21_290, pushed=True, time=0.3),
    Case("mobilenet_v2 0.35 144", 8_560, pushed=True, time=1.5),
    Case("mobilenet_v2 1.0 224", 195_000), Case("mobilenet_v2 1.0 224", 172_000, macs=0.1),
    Case("mobilenet_v2 1.0 224", 123_000, pushed=True), Case("mobilenet_v2 1.0 224", 80_000, pushed=True, time=0.5),
)  # fmt: skip
REPEATS, INVOCATIONS = 7, 10
_TIMED = """
#include <stdio.h>
#include <time.h>
#include "net.h"
int main(void)
{
    for (int i = 0; i < %d; i++) {
        const clock_t start = clock();
        for (int k = 0; k < %d; k++) {
%s
        }
        printf("%%ld\\n", (long)(clock() - start));
    }
}
"""
_RUNS = {
    False: "net_invoke();",
    True: "static int8_t row[NET_ROW_BYTES];\nnet_start();\nwhile (!net_push_row(row)) { }",
}
_FLAGS = ("-std=c99", "-Os", "-fno-pic", "-Wall", "-Wextra", "-Wconversion", "-Werror")
_COLUMNS = (
    "model", "input", "TFLM", "RAM", "goal", "", "bound", "above", "cmsis-dsp", "more", "flash", "goal", "stack",
    "MACs", "time", "outputs",
)  # fmt: skip
_HEAD = (
    "Bytes. `TFLM` is the arena on a Cortex-M with CMSIS-NN's DSP kernels; `RAM` is .data and .bss of the object;",
    "`flash` is code and tables by arm-none-eabi-gcc -Os for a Cortex-M4, `stack` the deepest of its calls. The",
    "goal of a wake word is a third of TFLM's arena. The bound is that of all choices of what runs together;",
    "where values may be computed again it is that of the rows and tiles that are planned. `cmsis-dsp` is what",
    "kernels of CMSIS-NN need, working memory included, `more` what that is beyond portable ones; the goal is at",
    "most 3,000 bytes. MobileNetV2 has drawn weights. MACs are shares of the model's; time is measured on this",
    "machine at -O2, beside whole maps of the same model.",
    "",
)
PARSER = reporting.command_line(__file__, __doc__, "plain_c.md")
PARSER.add_argument("--only", metavar="NAME", help="models that have this in their name")


@dataclass(frozen=True)
class Bench:
    """A file that is measured: what TFLM needs, and the rungs of plain C."""

    path: Path

    @cached_property
    def model(self) -> FileModel:
        """The file."""
        return load_tflite(self.path)

    @cached_property
    def tflm(self) -> int:
        """The arena."""
        return arena(self.model, "cortex-m", "cmsis-dsp").size()

    def rung(self, *rungs: str, **asked: object) -> CRung:
        """What `fit --least` chooses among some rungs."""
        only = frozenset(C_RUNGS) - {*rungs}
        ladder = fit_c(FitCRequest(str(self.path), without=only, time_per_ram=inf, **asked))  # type: ignore[arg-type]
        if ladder.chosen is None:
            raise TypeError("a ladder without a budget chose nothing")
        return ladder.chosen

    @cached_property
    def whole_seconds(self) -> float:
        """The time of whole maps."""
        return seconds(self.rung("maps"), pushed=False)


def line(bench: Bench, case: Case) -> Iterator[str]:
    """The cells of a case."""
    added = case.macs or case.time
    asked = {"pushed": case.pushed, "max_macs": case.macs, "max_time": case.time}
    one = bench.rung(*(("tiles",) if added else ("overlaps", "rows", "parts")), **asked)
    ram, equal = compiled(bench, one)
    least = one.ram - one.program.nbytes + (one.bound or one.program.bound)
    goal = bench.tflm // 3 if case.goal == 0 else case.goal
    yield from (case.name.rpartition("/")[2], case.input, f"{bench.tflm:,}", f"{ram:,}")
    yield from (f"{goal:,}", "met" if ram <= goal else "missed") if goal else ("", "")
    yield from (f"{least:,}", f"{ram - least:,}")
    if added:
        yield from ("", "")
    else:
        cmsis = bench.rung("overlaps", "rows", "parts", pushed=case.pushed, kernels="cmsis-dsp").ram
        yield from (f"{cmsis:,}", f"{cmsis - one.ram:,}")
    on_arm = compiled_network(one.files.source, one.files.header, "net.h")
    yield from (f"{on_arm.code + on_arm.tables:,}" if on_arm else "", f"{case.flash:,}" if case.flash else "")
    yield f"{on_arm.stack:,}" if on_arm else ""
    slower = f"{seconds(one, pushed=case.pushed) / bench.whole_seconds:.2f}" if added else ""
    yield from (f"{1 + one.macs:.3f}", slower, equal)


def compiled(bench: Bench, rung: CRung) -> tuple[int, str]:
    """The bytes of .data and .bss, and whether the outputs are those of TFLM."""
    with tempfile.TemporaryDirectory() as name:
        folder = written(rung, Path(name))
        subprocess.run(["cc", *_FLAGS, "-c", "net.c", "-o", "net.o"], cwd=folder, check=True)
        listed = subprocess.run(["size", "-A", "net.o"], cwd=folder, check=True, capture_output=True, text=True).stdout
        try:
            execute_c(bench.model, folder / "net.c")
            equal = "bit-equal"
        except ModelPlanError as problem:
            equal = f"DIFFERS: {problem}"
    return sum(int(size) for size in re.findall(r"^\.(?:data|bss)\S*\s+(\d+)", listed, re.MULTILINE)), equal


def written(rung: CRung, folder: Path) -> Path:
    """The folder, with a network in it."""
    (folder / "net.c").write_text(rung.files.source)
    (folder / "net.h").write_text(rung.files.header)
    return folder


def seconds(rung: CRung, *, pushed: bool, library: Sequence[str] = ()) -> float:
    """The time of the fastest of some runs."""
    with tempfile.TemporaryDirectory() as name:
        folder = written(rung, Path(name))
        (folder / "main.c").write_text(_TIMED % (REPEATS, INVOCATIONS, _RUNS[pushed]))
        subprocess.run(["cc", "-O2", "main.c", "net.c", *library, "-lm", "-o", "net"], cwd=folder, check=True)
        done = subprocess.run(["./net"], cwd=folder, check=True, capture_output=True, text=True)
    return min(float(line) for line in done.stdout.split()) / 1e6 / INVOCATIONS


def lines(corpus: Path, only: str) -> Iterator[tuple[str, ...]]:
    """A line of the table for each case."""
    with tempfile.TemporaryDirectory() as folder:
        benches: dict[str, Bench] = {}
        for case in (case for case in CASES if only in case.name):
            reporting.progress(f"{case.name} {case.input}")
            path = corpus / "tflite" / f"{case.name}.tflite"
            if case.name in GENERATED:
                path = Path(folder) / f"{case.name}.tflite"
                path.write_bytes(mobilenet_v2(*GENERATED[case.name]))
            yield tuple(line(benches.setdefault(case.name, Bench(path)), case))


def main() -> None:
    """Writes the page."""
    arguments = reporting.parse(PARSER)
    page = [*_HEAD, *reporting.table(_COLUMNS, lines(arguments.corpus, arguments.only or ""), "<<>>><>>>>>>>>><")]
    reporting.save(arguments.output, reporting.made_by(PARSER, arguments), "Models as plain C", page)


if __name__ == "__main__":
    main()

"""Instructions that plain C executes on cores of Arm, beside those that TFLM executes there.

    python benchmarks/instructions.py [--library PATH] [--only NAME]

Each network is planned whole and as `fit` chooses, compiled by arm-none-eabi-gcc at -O2, and run once under qemu on
drawn inputs. Counts of TFLM are recorded: release builds (NDEBUG, KERNELS_OPTIMIZED_FOR_SPEED) of June 2026 by the same
compiler 12.2, with CMSIS-NN for the core. With the sources of CMSIS-NN its kernels are counted too.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import reporting

from modelplan import FitCRequest, fit_c
from modelplan.plain_c import C_RUNGS
from modelplan.plain_c.ladder import CRung

sys.path.append(str(reporting.ROOT / "tests" / "support"))
from instruction_counting import CORES, Count, compiler_version, counted, missing_programs

MODELS = {
    "person_detect": "tflite/person_detect", "vww_96_int8": "tflite/vww_96_int8",
    "kws_ref_model": "tflite/kws_ref_model",
    "ResNet-8": "tflite/pretrainedResnet_quant", "okay_nabu": "tflite/wakeword/okay_nabu",
}  # fmt: skip
#: Millions of instructions of TFLM, in the order of MODELS: with CMSIS-NN for each core, and with reference kernels.
#: Those for the Cortex-M3 and M0+ follow from ratios of three digits.
TFLM = {
    "cortex-m4": (22.9, 24.1, 7.70, 29.9, 0.199),
    "cortex-m55": (6.51, 6.56, 1.82, 4.91, 0.081),
    "cortex-m3": (30.4, 32.1, 10.5, 41.8, 0.344),
    "cortex-m0plus": (78.4, 81.3, 27.2, 96.8, 0.562),
}
REFERENCE = (95.9, 100.5, 43.1, 107.5, 0.378)
#: The library on each core, and what is to be reached: portable whole and as chosen, the library whole and as chosen.
LIBRARIES = {"cortex-m4": "cmsis-dsp", "cortex-m55": "cmsis-mve"}
GOALS = {
    "cortex-m4": (1.25, 1.35, 1.02, 1.15), "cortex-m55": (2.5, 2.5, 1.05, 1.3),
    "cortex-m3": (1.1, 1.1, None, None), "cortex-m0plus": (1.1, 1.1, None, None),
}  # fmt: skip
WAKE_WORD, WAKE_WORD_GOAL, REFERENCE_GOAL = "okay_nabu", 0.7, 0.35
_WHOLE = frozenset(C_RUNGS) - {"maps"}
_PARTS = ("ConvolutionFunctions", "FullyConnectedFunctions", "NNSupportFunctions", "PoolingFunctions",
          "BasicMathFunctions", "SoftmaxFunctions")  # fmt: skip
_MOST_FUNCTIONS = 6


@dataclass(frozen=True, slots=True)
class Row:
    """A network on a core: a rung, its count, and the share of TFLM's that it is."""

    model: str
    core: str
    kernels: str
    way: str
    rung: CRung
    count: Count
    share: float
    goal: float | None


def library(folder: Path, sources: Path, core: str) -> list[str]:
    """The options that link CMSIS-NN, compiled for a core; files that its release does not compile are left out."""
    archive = folder / f"{core}.a"
    if not archive.exists():
        (folder / core).mkdir()
        for part in _PARTS:
            for file in sorted((sources / "Source" / part).glob("*.c")):
                to = folder / core / f"{file.stem}.o"
                flags = (*CORES[core].flags, "-O2", "-ffunction-sections", "-w", f"-I{sources / 'Include'}")
                subprocess.run(["arm-none-eabi-gcc", *flags, "-c", str(file), "-o", str(to)], capture_output=True)
        objects = [str(path) for path in sorted((folder / core).glob("*.o"))]
        subprocess.run(["arm-none-eabi-ar", "rcs", str(archive), *objects], check=True)
    return [f"-I{sources / 'Include'}", str(archive)]


def rows(corpus: Path, sources: Path | None, only: str) -> Iterator[Row]:
    """The counts of all networks, cores and kernels."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for at, (model, file) in enumerate(MODELS.items()):
            if only not in model:
                continue
            for kernels in ("portable", *(LIBRARIES.values() if sources else ())):
                cores = [core for core in CORES if kernels == "portable" or LIBRARIES.get(core) == kernels]
                for way, without in (("whole", _WHOLE), ("as chosen", frozenset())):
                    request = FitCRequest(str(corpus / f"{file}.tflite"), kernels=kernels, without=frozenset(without))
                    rung = fit_c(request).chosen
                    if rung is None:
                        raise SystemExit(f"{model}: nothing was chosen")
                    for core in cores:
                        more = library(folder, sources, core) if sources and kernels != "portable" else []
                        count = counted(folder, rung.files.source, rung.files.header, core, "-O2", more)
                        share = count.total / 1e6 / TFLM[core][at]
                        place = 2 * (kernels != "portable") + (way != "whole")
                        goal = WAKE_WORD_GOAL if model == WAKE_WORD and place < 2 else GOALS[core][place]
                        print(f"{model} {core} {kernels} {way}: {count.total:,}", file=sys.stderr)
                        yield Row(model, core, kernels, way, rung, count, share, goal)


def lines(found: list[Row]) -> Iterator[str]:
    """The page."""
    yield from (
        "Millions of instructions of one invocation, counted under qemu by a plugin: exact, the same each time; at -O2",
        f"by arm-none-eabi-gcc {compiler_version()}; beside them the share of what TFLM with CMSIS-NN for that core",
        "takes, whose counts are recorded (June 2026, release build, compiler 12.2). `expected` is what `fit` prints,",
        "of portable kernels for a Cortex-M4, `off` how far from the count that is. Nothing was measured on a chip.",
        "ESP32-S3 (Xtensa), TFLM on RISC-V, flash wait states and pairs of instructions of a Cortex-M7 are not known.",
    )
    for core in CORES:
        yield ""
        yield f"## {core}"
        yield ""
        yield "| network | kernels | plan | RAM | instructions | expected | off | of TFLM | goal |  |"
        yield "|---|---|---|---:|---:|---:|---:|---:|---:|---|"
        for row in found:
            if row.core == core:
                yield _line(row)
    yield ""
    yield "## Beside TFLM's reference kernels on a Cortex-M4"
    yield ""
    yield f"Release build; the goal is {REFERENCE_GOAL}."
    yield ""
    yield "| network | plain C | reference kernels | share |"
    yield "|---|---:|---:|---:|"
    for row in found:
        if (row.core, row.kernels, row.way) == ("cortex-m4", "portable", "as chosen"):
            reference = REFERENCE[list(MODELS).index(row.model)]
            share = row.count.total / 1e6 / reference
            yield f"| {row.model} | {_millions(row.count.total)} | {reference} | {share:.2f} |"
    yield ""
    yield "## By function"
    yield ""
    yield "Millions of instructions on a Cortex-M4 and an M55, as chosen."
    for row in found:
        if row.core in LIBRARIES and row.way == "as chosen":
            most = list(row.count.functions.items())[:_MOST_FUNCTIONS]
            told = ", ".join(f"{name.partition('.')[0]} {_millions(count)}" for name, count in most)
            yield f"* {row.model}, {row.core}, {row.kernels}: {told}"


def _line(row: Row) -> str:
    expected = row.rung.instructions
    share, goal = f"{row.share:.2f}", "" if row.goal is None else f"{row.goal}"
    met = "" if row.goal is None else "met" if row.share <= row.goal else "missed"
    wanted = _millions(expected) if expected and row.core != "cortex-m3" and row.core != "cortex-m0plus" else ""
    wanted = wanted if row.kernels != "portable" or row.core == "cortex-m4" else ""
    off = f"{expected / row.count.total - 1:+.0%}" if wanted and expected else ""
    plan = f"{row.way}: {row.rung.name}" if row.way != "whole" else row.way
    numbers = f"{row.rung.ram:,} | {_millions(row.count.total)} | {wanted} | {off} | {share} | {goal} | {met}"
    return f"| {row.model} | {row.kernels} | {plan} | {numbers} |"


def _millions(count: int) -> str:
    return f"{count / 1e6:.3f}" if count < 1e6 else f"{count / 1e6:.2f}"


PARSER = reporting.command_line(__file__, __doc__, "instructions.md")
PARSER.add_argument("--library", type=Path, metavar="PATH", help="the sources of CMSIS-NN")
PARSER.add_argument("--only", metavar="NAME", default="", help="networks whose name holds this")


def main() -> None:
    arguments = reporting.parse(PARSER)
    if missing := missing_programs():
        PARSER.error(f"needs {', '.join(missing)}")
    found = list(rows(arguments.corpus, arguments.library, arguments.only))
    first = reporting.made_by(PARSER, arguments)
    reporting.save(arguments.output, first, "Instructions of plain C on cores of Arm", lines(found))


if __name__ == "__main__":
    main()

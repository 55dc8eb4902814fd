"""Models as plain C: the time of an invocation beside TFLM, with and without assertions, and beside CMSIS-NN.

    python benchmarks/plain_c_time.py [--kit PATH] [--only NAME]

For each model `fit --runtime c` writes C files of whole maps, of rows and of parts of rows. They run beside programs
of the measuring kit for this machine, and beside the wheel of TFLM.
"""

from __future__ import annotations

import os
import resource
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import reporting
from plain_c import INVOCATIONS, REPEATS, Bench, seconds

#: Models whose time is taken beside TFLM's.
TIMED = ("person_detect", "vww_96_int8", "pretrainedResnet_quant", "kws_ref_model", "mcu/mcunet_vww0")
#: The kit's programs for this machine, both with assertions, and its library of CMSIS-NN.
_REFERENCE, _CMSIS, _CMSIS_LIBRARY = "host-reference", "host-cmsis-c", "lib/host-cmsis-c.a"
#: What times TFLM as its wheel has it, which is a build without assertions.
_WHEEL = """
import sys, time
from tflite_micro.python.tflite_micro import runtime
interpreter = runtime.Interpreter.from_file(sys.argv[1], arena_size=int(sys.argv[2]))
for _ in range(int(sys.argv[3])):
    start = time.process_time()
    for _ in range(int(sys.argv[4])):
        interpreter.invoke()
    print(time.process_time() - start)
"""
_ARENA = 1 << 26  # more than any of these models needs
_HEAD = (
    "On this machine at -O2, as a share of the time that TFLM takes. Portable kernels stand beside TFLM's",
    "reference kernels in a build with assertions, TFLM's usual one; beside the same kernels in a release build,",
    "which is that of its wheel; and beside TFLM with CMSIS-NN's kernels in C. These, called from plain C, stand",
    "beside themselves in TFLM. The build with CMSIS-NN has assertions. How long kernels take on a chip is another",
    "question.",
    "",
)
_COLUMNS = (
    "model", "plan", "portable : reference, assertions", "portable : reference, release (wheel)",
    "portable : CMSIS-NN in C", "CMSIS-NN in C : the same in TFLM",
)  # fmt: skip

PARSER = reporting.command_line(__file__, __doc__, "plain_c_time.md")
PARSER.add_argument("--kit", type=Path, metavar="PATH", help="the folder of the measuring kit's programs")
PARSER.add_argument("--only", metavar="NAME", help="models that have this in their name")


def tflm_seconds(program: Path, path: Path) -> float:
    """The time of an invocation by TFLM: what so many more take, each the fastest of some runs."""
    once, often = (min(spent(program, path, 1 + more) for _ in range(REPEATS)) for more in (0, INVOCATIONS))
    return (often - once) / INVOCATIONS


def spent(program: Path, path: Path, runs: int) -> float:
    """The processor's time of a program that invokes a model so often."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime
    command = [str(program.resolve()), str(path), "--arena", str(_ARENA), "--runs", str(runs)]
    subprocess.run(command, check=True, capture_output=True)
    return resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime - before


def wheel_seconds(path: Path) -> float:
    """The time of an invocation by TFLM's wheel: that of the fastest of some runs."""
    words = [sys.executable, "-c", _WHEEL, str(path), str(_ARENA), str(REPEATS), str(INVOCATIONS)]
    done = subprocess.run(words, check=True, capture_output=True, text=True)
    return min(map(float, done.stdout.split())) / INVOCATIONS


def times(corpus: Path, kit: Path, only: str) -> Iterator[tuple[str, ...]]:
    """Lines for each model whose time is taken: whole maps, rows, and parts of them."""
    library = [f"-I{kit / 'src/cmsis-nn/Include'}", str(kit / _CMSIS_LIBRARY)]
    for name in (name for name in TIMED if only in name):
        path = corpus / "tflite" / f"{name}.tflite"
        reporting.progress(f"{name}: time of TFLM")
        reference, cmsis = (tflm_seconds(kit / program, path) for program in (_REFERENCE, _CMSIS))
        wheel = wheel_seconds(path)
        for rung in ("maps", "rows", "parts"):
            reporting.progress(f"{name}: time of {rung}")
            bench = Bench(path)
            portable = seconds(bench.rung(rung), pushed=False)
            called = seconds(bench.rung(rung, kernels="cmsis-c"), pushed=False, library=library)
            shares = portable / reference, portable / wheel, portable / cmsis, called / cmsis
            yield path.stem, {"maps": "whole maps"}.get(rung, rung), *(f"{one:.2f}" for one in shares)


def main() -> None:
    """Writes the page."""
    arguments = reporting.parse(PARSER)
    kit = arguments.kit or os.environ.get("MODELPLAN_TFLM_KIT")
    if not kit:
        PARSER.error("no TFLM to time: name the measuring kit's folder with --kit or $MODELPLAN_TFLM_KIT")
    rows = list(times(arguments.corpus, Path(kit), arguments.only or ""))
    page = [*_HEAD, *reporting.table(_COLUMNS, rows, "<<>>>>")]
    reporting.save(arguments.output, reporting.made_by(PARSER, arguments), "Time of models as plain C", page)


if __name__ == "__main__":
    main()

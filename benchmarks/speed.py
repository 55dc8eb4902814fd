"""Processor seconds of the commands that people come back for, beside another installation in the same run.

    python benchmarks/speed.py [--other PROGRAM] [--runs 1] [--only WORD]

Each command is a process of its own. `--other` is the `modelplan` of another environment, whose modules are compiled
as pip does when it installs; both are asked in turn, the fewest seconds of the runs count. A ladder of `fit` is
compared by its arena, or its RAM, as the command states it. This program's modules are compiled before.
"""

from __future__ import annotations

import argparse
import compileall
import os
import re
import resource
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import reporting

#: Networks of the corpus that are fitted and explained.
NETWORKS = (
    "tflite/kws_ref_model", "tflite/person_detect", "tflite/vww_96_int8", "tflite/pretrainedResnet_quant",
    "tflite/ad01_int8", "tflite/wakeword/okay_nabu", "camera/fomo_face_detection", "camera/yolo_lc_192",
    "camera/blazeface_front_128", "camera/yolov8n_192", "camera/palm_detection_full_192",
)  # fmt: skip
#: What a command states that it came to, in bytes.
_FIGURES = (r"TENSOR_ARENA_SIZE\D+([\d,]+)", r"^\s*RAM .*?\(([\d,]+) B\)")


@dataclass(frozen=True)
class Case:
    """A command: its name in the table, its words, and the files that it writes."""

    name: str
    words: tuple[str, ...]
    written: tuple[str, ...] = ()


@dataclass(frozen=True)
class Run:
    """Processor seconds of a command, its exit code, and the bytes that it states."""

    seconds: float
    code: int
    stated: str


def cases(corpus: Path) -> Iterator[Case]:
    """Every command on every network, then those of a moment."""
    for network in NETWORKS:
        path, name = str(corpus / f"{network}.tflite"), network.rpartition("/")[2]
        kernels = ("--kernels", "cmsis-dsp")
        fitted = ("fit", path, "--least", *kernels, "-o", "fitted.tflite")
        yield Case(f"fit --least {name}", fitted, ("fitted.tflite",))
        yield Case(f"fit --runtime c {name}", ("fit", path, "--runtime", "c", "-o", "net.c"), ("net.c", "net.h"))
        yield Case(f"explain {name}", ("explain", path, *kernels))
        yield Case(f"analyze {name}", (path,))
    yield Case("--version", ("--version",))
    yield Case("solve A", ("solve", str(corpus / "problems" / "minimalloc" / "A.1048576.csv")))


def asked(program: Path, case: Case, folder: Path) -> Run:
    """One process of a command."""
    for name in case.written:
        (folder / name).unlink(missing_ok=True)
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run([str(program), *case.words], capture_output=True, text=True, cwd=folder, check=False)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    found = (re.search(figure, done.stdout, re.MULTILINE) for figure in _FIGURES)
    stated = next((match[1] for match in found if match), "")
    seconds = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return Run(seconds, done.returncode, stated.replace(",", ""))


def row(case: Case, programs: Sequence[Path], runs: int) -> Sequence[object]:
    """The fewest seconds of each program, with two of them the share, and the bytes that each states."""
    with tempfile.TemporaryDirectory() as folder:
        rounds = [[asked(program, case, Path(folder)) for program in programs] for _ in range(runs)]
    least = [min(one[i].seconds for one in rounds) for i in range(len(programs))]
    seconds = [
        f"{figure:.2f}" + (f" (exit {last.code})" if last.code else "")
        for figure, last in zip(least, rounds[-1], strict=True)
    ]
    stated = [f"{int(run.stated):,}" if run.stated else "" for run in rounds[-1]]
    reporting.progress(f"{case.name}: {' '.join(seconds)} {' '.join(stated)}")
    share = [f"{least[0] / max(least[1], 0.01):.2f}"] if len(programs) > 1 else []
    return case.name, *seconds, *share, *stated


def report(arguments: argparse.Namespace) -> Iterator[str]:
    programs = [arguments.program, *([arguments.other] if arguments.other else [])]
    compileall.compile_dir(reporting.ROOT / "modelplan", quiet=1)
    yield "Processor seconds of a command from the start of its process to its end, and the bytes that it states:"
    yield "TFLM's arena or plain C's RAM. `other` is the program of `--other`, `share` is of its seconds."
    yield ""
    two = bool(arguments.other)
    headings = [
        "command",
        "CPU s",
        *(["other, CPU s", "share"] if two else []),
        "bytes",
        *(["other, bytes"] if two else []),
    ]
    asked_cases = [case for case in cases(arguments.corpus.resolve()) if arguments.only in case.name]
    yield from reporting.table(headings, [row(case, programs, arguments.runs) for case in asked_cases])


PARSER = reporting.command_line(__file__, __doc__, "speed.md")
PARSER.add_argument(
    "--other", type=Path, metavar="PROGRAM", help="the modelplan of another environment, such as an older one"
)
PARSER.add_argument("--program", type=Path, metavar="PROGRAM", default=Path(sys.executable).parent / "modelplan",
                    help="the modelplan that is measured (default: of this environment)")  # fmt: skip
PARSER.add_argument("--runs", type=int, default=1, metavar="N", help="processes of each program for a command")
PARSER.add_argument("--only", default="", metavar="WORD", help="only commands of the table that contain this")


def main() -> None:
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    arguments = reporting.parse(PARSER)
    reporting.save(arguments.output, reporting.made_by(PARSER, arguments), "Speed of commands", list(report(arguments)))


if __name__ == "__main__":
    main()

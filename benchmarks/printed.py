"""Shows how much `analyze` and `explain` print, and that `explain` prints the same on a busy machine.

    python benchmarks/printed.py [--load 4]

`analyze` is asked for each model of models/ and the corpus at 80 columns, `explain` for networks of a camera's size,
alone and while so many other processes compute.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import resource
import statistics
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import reporting
from first_answer import COMMAND

from modelplan.outputs.report import terminal_width

_COLUMNS = "80"
#: Networks of a camera's size, below the corpus.
_CAMERA = (
    "camera/blazeface_front_128", "camera/fomo_face_detection", "camera/palm_detection_full_192", "camera/yolo_lc_192",
    "camera/yolov8n_192", "camera/yolox_nano_int8", "tflite/mcu/mcunet_vww0", "tflite/mcu/micronet_vww3",
    "tflite/person_detect", "tflite/vww_96_int8",
)  # fmt: skip


def printed(command: str, model: Path) -> tuple[str, float]:
    """What a command prints at 80 columns where standard output is a pipe, and its processor seconds."""
    environment = os.environ | {"PYTHONPATH": str(reporting.ROOT), "COLUMNS": _COLUMNS}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)  # an installed program has been compiled before
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    words = [sys.executable, "-P", "-c", COMMAND, str(reporting.ROOT), command, str(model)]
    done = subprocess.run(words, env=environment, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=False)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return done.stdout.decode(), after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


@contextlib.contextmanager
def load_of(processes: int) -> Iterator[None]:
    """So many processes that compute meanwhile."""
    busy = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(processes)]
    try:
        yield
    finally:
        for process in busy:
            process.kill()
            process.wait()


def answer_lines(corpus: Path) -> Iterator[str]:
    """Lines of `analyze` for each model: the most, the median, and the longest line that is not there to be pasted."""
    files = [file for suffix in ("tflite", "onnx") for file in sorted(corpus.rglob(f"*.{suffix}"))]
    answers = [
        (file, printed("analyze", file)[0].splitlines()) for file in [*reporting.own_models(".tflite", ".onnx"), *files]
    ]
    counts = [len(lines) for _, lines in answers if lines]
    widest = max(terminal_width(line) for _, lines in answers for line in lines if "modelplan " not in line)
    refused = [file.name for file, lines in answers if not lines]
    yield f"`analyze` of {len(counts)} models prints at most {max(counts)} lines at {_COLUMNS} columns, in the median"
    yield f"{statistics.median(counts):g}. The widest line without a command to paste has {widest} columns."
    yield f"One line of an error and no answer: {', '.join(refused) or 'none'}."


def explained(corpus: Path, processes: int) -> Iterator[Sequence[object]]:
    """A row for each network: processor seconds of `explain` alone and under load, and whether it prints the same."""
    for name in _CAMERA:
        (said, seconds), under = printed("explain", corpus / f"{name}.tflite"), ("", 0.0)
        with load_of(processes):
            under = printed("explain", corpus / f"{name}.tflite")
        reporting.progress(f"{name}: {seconds:.1f} {under[1]:.1f}")
        same = "yes" if said == under[0] else "**no**"
        yield Path(name).name, len(said.splitlines()), f"{seconds:.1f}", f"{under[1]:.1f}", same


def report(arguments: argparse.Namespace) -> Iterator[str]:
    yield from answer_lines(arguments.corpus)
    yield ""
    yield f"`explain`, alone and while {arguments.load} other processes compute:"
    yield ""
    headings = ["network", "lines", "CPU s", "CPU s under load", "same answer"]
    yield from reporting.table(headings, explained(arguments.corpus, arguments.load))


PARSER = reporting.command_line(__file__, __doc__, "printed.md")
PARSER.add_argument("--load", type=int, default=4, metavar="N", help="processes that compute beside explain")


def main() -> None:
    arguments = reporting.parse(PARSER)
    if not list((reporting.ROOT / "modelplan").glob("primitives/_core.*.so")):
        PARSER.error("no compiled core in modelplan/primitives/: copy it there from the installed package")
    reporting.save(arguments.output, reporting.made_by(PARSER, arguments), "What is printed", list(report(arguments)))


if __name__ == "__main__":
    main()

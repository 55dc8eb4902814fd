"""Processor time of `modelplan analyze`, from the start of its process to its end, and when its first line is there.

    python benchmarks/first_answer.py [--against FOLDER] [--runs 5]

Each model is asked in processes of their own; with --against, a checkout with its compiled core inside, both checkouts
are asked in turn, and the page has the median of the pairs' ratios and whether they print the same. Modules are
compiled before, as pip does when it installs. Chains and residual networks are made by this script.

`--printed` writes another page, printed.md: the lines that `analyze` prints at 80 columns for each model of models/ and
the corpus, the processor time of `explain` for networks of a camera's size, and whether it prints the same while so
many other processes compute.
"""

from __future__ import annotations

import argparse
import compileall
import contextlib
import hashlib
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from operator import attrgetter
from pathlib import Path

import reporting
from onnx import TensorProto, helper

from modelplan.outputs.report import terminal_width

sys.path.append(str(reporting.ROOT / "tests" / "support"))
import tflite_models

#: What a user installs: `main` with its own words. An editable installation would find its own checkout first.
_COMMAND = """
import sys
sys.meta_path[:] = [one for one in sys.meta_path if "editable" not in type(one).__module__]
import modelplan
assert modelplan.__file__.startswith(sys.argv.pop(1)), modelplan.__file__
from modelplan.cli import main
sys.argv[0] = "modelplan"
sys.exit(main())
"""
_LENGTHS = (1000, 11520)
_COLUMNS = "80"
#: Networks of a camera's size, below the corpus.
_CAMERA = (
    "camera/blazeface_front_128", "camera/fomo_face_detection", "camera/palm_detection_full_192", "camera/yolo_lc_192",
    "camera/yolov8n_192", "camera/yolox_nano_int8", "tflite/mcu/mcunet_vww0", "tflite/mcu/micronet_vww3",
    "tflite/person_detect", "tflite/vww_96_int8",
)  # fmt: skip


@dataclass(frozen=True)
class Case:
    """What is asked: its name, the model, further words."""

    name: str
    model: Path
    words: tuple[str, ...] = ()


@dataclass(frozen=True)
class Run:
    """Processor seconds of a process, seconds by the clock until its first line and its end, digest of its output."""

    seconds: float
    first_line: float
    whole: float
    printed: str


def chain_onnx(length: int, *, residual: bool) -> bytes:
    """Relu and Sigmoid in turn; `residual`: every third operator adds the value before the last."""
    nodes = []
    for i in range(length):
        if residual and i % 3 == 2:
            nodes.append(helper.make_node("Add", [f"t{i}", f"t{i - 1}"], [f"t{i + 1}"]))
        else:
            nodes.append(helper.make_node(("Relu", "Sigmoid")[i % 2], [f"t{i}"], [f"t{i + 1}"]))
    ends = [helper.make_tensor_value_info(f"t{i}", TensorProto.FLOAT, [1, 8, 16, 16]) for i in (0, length)]
    graph = helper.make_graph(nodes, "chain", ends[:1], ends[1:])
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)
    return bytes(made.SerializeToString())


def chain_tflite(length: int, *, residual: bool) -> bytes:
    """ADD and MUL of a value with itself in turn; `residual`: every third operator reads the value before it too."""
    tensors: list[tflite_models.TensorRow] = [
        (f"t{i}", tflite_models.FLOAT32, (1, 16, 16, 8), None) for i in range(length + 1)
    ]
    ops: list[tflite_models.OpRow] = [
        (("ADD", "MUL")[i % 2], (i, i - 1 if residual and i % 3 == 2 else i), (i + 1,), ()) for i in range(length)
    ]
    return tflite_models.model(tflite_models.Sub(tensors, ops, (0,), (length,)))


def cases(corpus: Path, folder: Path, longest: int) -> Iterator[Case]:
    person = corpus / "tflite" / "person_detect.tflite"
    yield Case("person_detect", person)
    yield Case("person_detect --out", person, ("--out", str(folder / "out")))
    for make, suffix in ((chain_onnx, "onnx"), (chain_tflite, "tflite")):
        for length in (one for one in _LENGTHS if one <= longest):
            for residual in (False, True):
                name = f"{'residual' if residual else 'chain'}, {length:,} operators, .{suffix}"
                path = folder / f"{name.split(',')[0]}_{length}.{suffix}"
                path.write_bytes(make(length, residual=residual))
                yield Case(name, path)


def asked(checkout: Path, case: Case) -> Run:
    """One process of a checkout."""
    environment = os.environ | {"PYTHONPATH": str(checkout)}
    before, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
    words = [sys.executable, "-P", "-c", _COMMAND, str(checkout), "analyze", str(case.model), *case.words]
    with subprocess.Popen(words, env=environment, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        line = process.stdout.readline()
        first_line = time.monotonic() - start
        printed = line + process.stdout.read()
    if process.returncode:
        raise subprocess.CalledProcessError(process.returncode, words)
    whole, after = time.monotonic() - start, resource.getrusage(resource.RUSAGE_CHILDREN)
    seconds = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return Run(seconds, first_line, whole, hashlib.sha256(printed).hexdigest())


def row(case: Case, checkouts: Sequence[Path], runs: int) -> Sequence[object]:
    """Medians of each checkout; with two of them the ratio of pairs and whether they print the same."""
    rounds = [[asked(checkout, case) for checkout in checkouts] for _ in range(runs)]
    medians = [
        f"{statistics.median(figure(one[i]) for one in rounds):.2f}"
        for figure in (attrgetter("seconds"), attrgetter("first_line"), attrgetter("whole"))
        for i in range(len(checkouts))
    ]
    reporting.progress(f"{case.name}: {' '.join(medians)}")
    if len(checkouts) == 1:
        return case.name, *medians
    ratio = statistics.median(one[0].seconds / one[1].seconds for one in rounds)
    same = "yes" if len({found.printed for one in rounds for found in one}) == 1 else "**no**"
    return case.name, *medians, f"{ratio:.2f}", same


def printed(command: str, model: Path) -> tuple[str, float]:
    """What a command prints at 80 columns where standard output is a pipe, and its processor seconds."""
    environment = os.environ | {"PYTHONPATH": str(reporting.ROOT), "COLUMNS": _COLUMNS}
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    words = [sys.executable, "-P", "-c", _COMMAND, str(reporting.ROOT), command, str(model)]
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


def printed_report(arguments: argparse.Namespace) -> Iterator[str]:
    yield from answer_lines(arguments.corpus)
    yield ""
    yield f"`explain`, alone and while {arguments.load} other processes compute:"
    yield ""
    headings = ["network", "lines", "CPU s", "CPU s under load", "same answer"]
    yield from reporting.table(headings, explained(arguments.corpus, arguments.load))


def report(arguments: argparse.Namespace) -> Iterator[str]:
    checkouts = [reporting.ROOT, *([arguments.against] if arguments.against else [])]
    for checkout in checkouts:
        compileall.compile_dir(checkout / "modelplan", quiet=1)
    yield "Medians: processor seconds of the whole, and seconds by the clock until the first line can be read and until"
    yield "the end. `earlier` is the checkout of `--against`, `ratio` that of processor seconds."
    yield ""
    headings = ["case", "CPU s", "first line, s", "whole, s"]
    if arguments.against:
        pairs = [f"{name}{which}" for name in headings[1:] for which in (", now", ", earlier")]
        headings = [*headings[:1], *pairs, "ratio", "same answer"]
    with tempfile.TemporaryDirectory() as folder:
        rows = [
            row(case, checkouts, arguments.runs) for case in cases(arguments.corpus, Path(folder), arguments.longest)
        ]
    yield from reporting.table(headings, rows)


PARSER = reporting.command_line(__file__, __doc__, "first_answer.md")
PARSER.add_argument("--against", type=Path, metavar="FOLDER", help="an earlier checkout with its compiled core")
PARSER.add_argument("--runs", type=int, default=5, metavar="N", help="processes of each checkout for a case")
PARSER.add_argument("--printed", action="store_true", help="write printed.md")
PARSER.add_argument("--load", type=int, default=4, metavar="N", help="processes that compute beside explain")
PARSER.add_argument("--longest", type=int, default=_LENGTHS[-1], metavar="N", help="leave longer networks out")


def main() -> None:
    arguments = reporting.parse(PARSER)
    if not list((reporting.ROOT / "modelplan").glob("_core.*.so")):
        PARSER.error("no compiled core in modelplan/: copy it there from the installed package")
    title, made = ("What is printed", printed_report) if arguments.printed else ("The first answer", report)
    output = arguments.output
    if arguments.printed and output == PARSER.get_default("output"):
        output = output.with_name("printed.md")
    reporting.save(output, reporting.made_by(PARSER, arguments), title, list(made(arguments)))


if __name__ == "__main__":
    main()

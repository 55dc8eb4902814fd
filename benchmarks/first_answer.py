"""Processor time of `modelplan analyze`, from the start of its process to its end, and when its first line is there.

    python benchmarks/first_answer.py [--against FOLDER] [--runs 5]

Each model is asked in processes of their own; with --against, a checkout with its compiled core inside, both checkouts
are asked in turn, and the page has the median of the pairs' ratios and whether they print the same. Modules are
compiled before, as pip does when it installs. Chains and residual networks are made by this script.
"""

from __future__ import annotations

import argparse
import compileall
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

sys.path.append(str(reporting.ROOT / "tests" / "support"))
import tflite_models

#: What a user installs: `main` with its own words. An editable installation would find its own checkout first.
COMMAND = """
import sys
sys.meta_path[:] = [one for one in sys.meta_path if "editable" not in type(one).__module__]
import modelplan
assert modelplan.__file__.startswith(sys.argv.pop(1)), modelplan.__file__
from modelplan.cli import main
sys.argv[0] = "modelplan"
sys.exit(main())
"""
_LENGTHS = (1000, 11520)


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
    words = [sys.executable, "-P", "-c", COMMAND, str(checkout), "analyze", str(case.model), *case.words]
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
PARSER.add_argument("--longest", type=int, default=_LENGTHS[-1], metavar="N", help="leave longer networks out")


def main() -> None:
    arguments = reporting.parse(PARSER)
    if not list((reporting.ROOT / "modelplan").glob("primitives/_core.*.so")):
        PARSER.error("no compiled core in modelplan/primitives/: copy it there from the installed package")
    reporting.save(arguments.output, reporting.made_by(PARSER, arguments), "The first answer", list(report(arguments)))


if __name__ == "__main__":
    main()

"""What all benchmarks share: the command line, the files they measure, the page they write.

Each script is called as `python benchmarks/NAME.py [--corpus FOLDER] [--output FILE]`, with options of its own behind
these, and writes one page into reports/. Progress goes to the standard error.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import sys
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import onnx

from modelplan import Graph, Problem, load
from modelplan.planning.allocators import ALLOCATORS

ROOT = Path(__file__).resolve().parent.parent
MEASURED = ROOT / "reports" / "measured.csv"
SUBJECTS = {"models": ("own_models(", '"models").glob('), "allocators": ("ALLOCATORS",)}
LIGHT = Path(onnx.__file__).parent / "backend" / "test" / "data" / "light"


def command_line(script: str, text: str | None, report: str, *, corpus: bool = True) -> argparse.ArgumentParser:
    """The parser of a script: `--output`, by default `report` in reports/, and `--corpus` where it needs one."""
    style = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(prog=Path(script).name, description=text, formatter_class=style)
    if corpus:
        folder = Path(os.environ.get("MODELPLAN_CORPUS", ROOT.parent / "shared" / "corpus"))
        parser.add_argument("--corpus", type=Path, metavar="FOLDER", default=folder, help="real models and problems")
    parser.add_argument("--output", type=Path, metavar="FILE", default=ROOT / "reports" / report, help="the page")
    return parser


def parse(parser: argparse.ArgumentParser) -> argparse.Namespace:
    """The arguments of this process; ends it with exit code 2 where there is no corpus."""
    arguments = parser.parse_args()
    if "corpus" in arguments and not arguments.corpus.is_dir():
        parser.error(f"no corpus at {arguments.corpus}: name its folder with --corpus or $MODELPLAN_CORPUS")
    return arguments


def made_by(parser: argparse.ArgumentParser, arguments: argparse.Namespace, more: str = "") -> str:
    """The first line of a page: the command that makes it again, without options that have their default."""
    words = [f"python benchmarks/{parser.prog}"]
    for name, value in vars(arguments).items():
        if name in ("corpus", "output") or value == parser.get_default(name):
            continue
        words.append(f"--{name}" if value is True else f"--{name} {'PATH' if isinstance(value, Path) else value}")
    return f"Made by `{' '.join(words)}`{more}."


def save(path: Path, first: str, title: str, lines: Iterable[str]) -> None:
    """Writes a page: the line of `made_by`, a title, the rest. Of a report it is noted what it has measured."""
    path.write_text("\n".join([first, "", f"# {title}", "", *lines]) + "\n")
    if path.parent == MEASURED.parent:
        script = ROOT / first.split()[3].strip("`.;")
        kept = [row for row in measured() if row[0] != path.name]
        rows = sorted([*kept, *((path.name, subject, digest(subject)) for subject in subjects(script))])
        MEASURED.write_text("".join(f"{','.join(row)}\n" for row in [("report", "subject", "digest"), *rows]))


def measured() -> list[tuple[str, str, str]]:
    """What each report has measured as a whole, with its digest by then."""
    rows = [line.split(",") for line in MEASURED.read_text().splitlines()[1:]]
    return [(report, subject, found) for report, subject, found in rows]


def subjects(script: Path) -> list[str]:
    """What a script measures as a whole, told by the words in it: a new model or allocator is one more row there."""
    text = script.read_text()
    return [subject for subject, words in SUBJECTS.items() if any(word in text for word in words)]


def digest(subject: str) -> str:
    """Of the contents of the project's own models, or of the names of all allocators."""
    found = hashlib.sha256()
    if subject == "models":
        for path in own_models(".onnx", ".tflite"):
            found.update(f"{path.name} {hashlib.sha256(path.read_bytes()).hexdigest()}\n".encode())
    else:
        found.update(" ".join(sorted(ALLOCATORS)).encode())
    return found.hexdigest()[:16]


def table(headings: Sequence[str], rows: Iterable[Sequence[object]], align: str = "") -> Iterator[str]:
    """The lines of a Markdown table; `align` has `<` or `>` for each column, by default all but the first are `>`."""
    sides = align or "<" + ">" * (len(headings) - 1)
    yield row_line(headings)
    yield "|" + "".join("---|" if side == "<" else "---:|" for side in sides)
    yield from map(row_line, rows)


def row_line(cells: Sequence[object]) -> str:
    """One line of a Markdown table."""
    return f"| {' | '.join(map(str, cells))} |"


def progress(text: str) -> None:
    """Tells whoever waits how far the benchmark is."""
    print(text, file=sys.stderr, flush=True)


def problems(corpus: Path, part: str = "") -> Iterator[tuple[str, Problem]]:
    """The problems of the corpus whose name contains `part`; a name is the path below problems/ without its suffix."""
    folder = corpus / "problems"
    for path in sorted(folder.rglob("*.csv")):
        name = path.relative_to(folder).with_suffix("").as_posix()
        if part in name and isinstance(found := load(path), Problem):
            yield name, found


def graph_of(path: Path, dims: Sequence[str] = ()) -> Graph:
    """The graph of a model file, with extents bound as `--dim` binds them."""
    graph = load(path, dims)
    if not isinstance(graph, Graph):
        raise TypeError(f"{path} is a placement problem, expected a model")
    return graph


def tflite_files(corpus: Path) -> list[tuple[str, Path]]:
    """Name and file of the corpus's TFLite models, then of the project's own, which are named `models/...`."""
    folder = corpus / "tflite"
    found = [(path.relative_to(folder).as_posix(), path) for path in sorted(folder.rglob("*.tflite"))]
    return found + [(f"models/{path.name}", path) for path in own_models(".tflite")]


def own_models(*suffixes: str) -> list[Path]:
    """The project's own models in these formats."""
    return sorted(path for path in (ROOT / "models").iterdir() if path.suffix in suffixes)


def light_models() -> list[Path]:
    """The model zoo's structures that come with the onnx package."""
    return sorted(LIGHT.glob("*.onnx"))

"""The solver from C++ without Python: the example of docs/cpp_library beside `modelplan.place` and omnimalloc.

    python -m venv peers && peers/bin/pip install omnimalloc
    python benchmarks/cpp.py --python peers/bin/python

Builds and installs the library and the example with CMake in a temporary folder. All place the same buffers, a chain as
the example draws it. Processor seconds: of the solver's call in C++, of the call in Python with its checks of columns
and answer, and of omnimalloc's call.
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import reporting

import modelplan
from modelplan import Problem, height, load_bound

#: Numbers of buffers, and the seconds by the clock that the other allocator has.
COUNTS, PATIENCE = (10_000, 100_000, 1_000_000), 600


def drawn(count: int) -> Problem:
    """The buffers of `place_buffers COUNT`."""
    size, life, state = np.empty(count, np.int64), np.empty(count, np.int64), 1

    def below(limit: int) -> int:
        nonlocal state
        state = (state * 6364136223846793005 + 1442695040888963407) % 2**64
        return (state >> 33) % limit

    for step in range(count):
        life[step] = 40 if below(50) == 0 else 2
        size[step] = 64 * (1 + below(256))
    start = np.arange(count)
    names, ones = tuple(map(str, range(count))), np.ones(count, np.int64)
    return Problem(names, size, start, start + life, ones, -ones)


def built(folder: Path) -> Path:
    """The example's program, made in a folder."""

    def cmake(*words: object) -> None:
        subprocess.run(["cmake", *map(str, words)], check=True, stdout=subprocess.DEVNULL)

    for source, name, more in (
        (reporting.ROOT / "core", "library", f"-DCMAKE_INSTALL_PREFIX={folder / 'installed'}"),
        (reporting.ROOT / "docs" / "cpp_library", "example", f"-DCMAKE_PREFIX_PATH={folder / 'installed'}"),
    ):
        cmake("-S", source, "-B", folder / name, "-DCMAKE_BUILD_TYPE=Release", more)
        cmake("--build", folder / name, "--parallel")
        if name == "library":
            cmake("--install", folder / name)
    return folder / "example" / "place_buffers"


def from_cpp(program: Path, count: int) -> tuple[int, str, float]:
    """Height, how the search ended, and processor seconds of the call, which runs in one thread."""
    said = subprocess.run([program, str(count)], capture_output=True, text=True, check=True).stdout
    found = re.search(r"in (\d+) bytes.*: (\w+)\n([\d.]+) s", said)
    assert found is not None, said
    return int(found[1]), found[2], float(found[3])


def from_python(problem: Problem) -> tuple[int, float]:
    """Height and processor seconds of the call."""
    before = time.process_time()
    placement = modelplan.place(problem)
    return height(problem, placement), time.process_time() - before


def of_omnimalloc(python: Path, problem: Problem) -> tuple[str, str]:
    """Height over the bound and processor seconds of its default allocator, or why there are none."""
    rows = np.stack([problem.size, problem.start, problem.end], axis=1).tolist()
    script = Path(__file__).with_name("peer_process.py")
    words = [str(python), "-P", str(script), "omnimalloc:omni"]
    try:
        run = subprocess.run(words, input=json.dumps(rows), capture_output=True, text=True, timeout=PATIENCE)
    except subprocess.TimeoutExpired:
        return "no answer", f"over {PATIENCE}"
    if run.returncode:
        return "no answer", (run.stderr.strip().splitlines() or ["?"])[-1][:60]
    answer = json.loads(run.stdout)
    tall = max(offset + size for offset, size in zip(answer["offsets"], problem.size.tolist(), strict=True))
    return f"{tall / load_bound(problem):.4f}", f"{answer['seconds']:.2f}"


def page(python: Path) -> Iterator[str]:
    """The lines of the report."""
    yield "Processor seconds of the call that places; heights over the load bound, below which no placement is."
    yield ""
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        program = built(Path(folder))
        for count in COUNTS:
            problem = drawn(count)
            tall, ended, seconds = from_cpp(program, count)
            ours, own = from_python(problem)
            assert ours == tall, "C++ and Python place alike"
            peer = of_omnimalloc(python, problem)
            rows.append(
                (f"{count:,}", f"{tall / load_bound(problem):.4f}", ended, f"{seconds:.2f}", f"{own:.2f}", *peer)
            )
            reporting.progress(reporting.row_line(rows[-1]))
    headings = ("buffers", "height / bound", "ended", "C++ s", "Python s", "omnimalloc omni / bound", "s")
    yield from reporting.table(headings, rows, ">><>>>>")


PARSER = reporting.command_line(__file__, __doc__, "cpp.md", corpus=False)
PARSER.add_argument(
    "--python", type=Path, metavar="PATH", default=Path(sys.executable), help="the Python with omnimalloc"
)


def main() -> None:
    """Writes the page."""
    arguments: argparse.Namespace = reporting.parse(PARSER)
    if not arguments.python.exists():
        PARSER.error(f"no program at {arguments.python}: --python names the Python that has omnimalloc")
    version = subprocess.run(
        [arguments.python, "-P", "-c", "import importlib.metadata as m; print(m.version('omnimalloc'))"],
        capture_output=True, text=True, check=False,
    ).stdout.strip()  # fmt: skip
    first = reporting.made_by(PARSER, arguments, f" with omnimalloc {version or '(not installed)'}")
    reporting.save(arguments.output, first, "The solver from C++", page(arguments.python.absolute()))


if __name__ == "__main__":
    main()

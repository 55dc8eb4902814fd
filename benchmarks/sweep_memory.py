"""Memory and time of `modelplan sweep` and `modelplan report` on very many runs, whose answers are made up.

    python benchmarks/sweep_memory.py [--rows 25000 100000]

The processes that measure answer each run at once, from a table: what is left is the work of the sweep itself. Memory
is the most that the process that was started held (VmHWM), not that of its workers. Linux.
"""

from __future__ import annotations

import os
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import reporting

from modelplan.questions.sweeps.store import read_rows
from modelplan.questions.sweeps.sweep_file import table_of

sys.path.append(str(reporting.ROOT / "tests" / "support"))
from commands import COMMAND

#: Read by every Python that starts: the processes that measure answer at once.
_INSTANT = """
import sys

if "modelplan.questions.sweeps.runner" in sys.orig_argv:
    from modelplan.questions.sweeps import running
    from modelplan.questions.sweeps.rows import row_of

    def instant(run, memo):
        size = sum(map(ord, run.model + run.target)) * (7 + len(run.alias) + len(run.allocator))
        figures = {"height": size, "bound": size, "arena": 2 * size, "head": size, "runtime_height": size,
                   "plan_seconds": 0.01, "fits": True, "plan_fits": True, "operators": 30, "used_alias": run.alias,
                   "used_runtime": "tflm", "used_kernels": "reference", "abi": "64", "format": "tflite"}
        return row_of(run, "done", facts=figures)

    running.measured = instant
"""
_ALLOCATORS = ("modelplan", "glow", "first-fit-size", "tflm-greedy")
_ALIASES = ("runtime", "none", "views", "safe", "max")


@dataclass(frozen=True)
class Cost:
    """Most bytes that the started process held, its seconds by the clock, and processor seconds with its children."""

    memory: int
    clock: float
    processor: float


def watched(words: Sequence[str], folder: Path) -> Cost:
    """Runs a command and looks at its memory until it ends."""
    begin, before = time.monotonic(), resource.getrusage(resource.RUSAGE_CHILDREN)
    environment = os.environ | {"PYTHONPATH": str(folder / "site")}
    process = subprocess.Popen([COMMAND, *words], env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    most = 0
    while process.poll() is None:
        most = max(most, most_memory(process.pid))
        time.sleep(0.1)
    assert process.stderr is not None
    complaints = process.stderr.read().decode()
    if process.returncode:
        raise SystemExit(f"{words[0]} ended with {process.returncode}: {complaints[-500:]}")
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    spent = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return Cost(most, time.monotonic() - begin, spent)


def most_memory(pid: int) -> int:
    """The most bytes that a process has held so far; 0 once it has ended."""
    try:
        lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    except OSError:
        return 0
    return next((1024 * int(line.split()[1]) for line in lines if line.startswith("VmHWM")), 0)


def words_for(folder: Path, rows: int) -> list[str]:
    """A table of at least so many runs: all targets, several settings, as many models as it takes."""
    names = [block.name for block in table_of({"models": ("x",), "targets": ("all",)}).targets]
    each = len(names) * len(_ALIASES) * len(_ALLOCATORS)
    model = reporting.ROOT / "models" / "ds_cnn_kws.tflite"
    models = [str(shutil.copy(model, folder / f"model{i:04}.tflite")) for i in range(-(-rows // each))]
    settings = ["--targets", *names, "--alias", *_ALIASES, "--allocators", *_ALLOCATORS]
    return ["sweep", *models, *settings, "--workers", "2", "-o"]


def report(counts: Sequence[int]) -> Iterator[str]:
    yield "Most memory of the process that was started, and processor seconds of all its processes. `again` starts the"
    yield "finished sweep a second time; `report` compares the result with itself."
    yield ""
    table = []
    for count in counts:
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            (folder / "site").mkdir()
            (folder / "site" / "sitecustomize.py").write_text(_INSTANT)
            result = folder / "result.parquet"
            sweep = [*words_for(folder, count), str(result)]
            again = ["report", str(result), "--against", str(result), "--json", str(folder / "report.json")]
            for what, words in (("sweep", sweep), ("again", sweep), ("report", again)):
                cost = watched(words, folder)
                reporting.progress(f"{what} of {count:,}: {cost}")
                size = f"{cost.memory / 1e6:.0f} MB"
                rows = sum(1 for _ in read_rows(result))
                table.append((what, f"{rows:,}", size, f"{cost.processor:.0f}", f"{cost.clock:.0f}"))
            wrong = [row for row in read_rows(result) if row.status != "done"]
            if wrong:
                raise SystemExit(f"{len(wrong)} rows without an answer, such as {wrong[0]}")
    yield from reporting.table(("what", "rows", "memory", "processor s", "clock s"), table)


PARSER = reporting.command_line(__file__, __doc__, "sweep_memory.md", corpus=False)
PARSER.add_argument("--rows", type=int, nargs="+", default=[25_000, 100_000], metavar="N", help="about how many runs")


def main() -> None:
    arguments = reporting.parse(PARSER)
    lines = list(report(arguments.rows))
    reporting.save(arguments.output, reporting.made_by(PARSER, arguments), "Memory of a large sweep", lines)


if __name__ == "__main__":
    main()

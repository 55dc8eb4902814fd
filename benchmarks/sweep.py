"""What `modelplan sweep` keeps when it is killed, and what very many runs take.

    python benchmarks/sweep.py [--models 40] [--targets 25] [--rows 25000 100000]

First a sweep of 5,000 runs on two workers in one go, and the same killed and started again three times. One model's
process crashes in one of the five modes, another one hangs. Each time first a worker is killed, then the sweep itself,
all by SIGKILL. Both results must hold the same rows, times aside.

Then sweeps whose answers are made up: the processes that measure answer each run at once, from a table, and what is
left is the work of the sweep itself. Memory is the most that the process that was started held (VmHWM), not that of its
workers. Linux.
"""

from __future__ import annotations

import argparse
import os
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import reporting

sys.path.append(str(reporting.ROOT / "tests" / "support"))
import killed_sweeps
from commands import COMMAND

from modelplan.questions.sweeps.store import read_rows, read_table, same_rows
from modelplan.questions.sweeps.sweep_file import table_of
from modelplan.questions.sweeps.sweep_rows import IDENTITY

MODES = ("runtime", "none", "views", "safe", "max")
KILLS = 3

#: Read by every Python that starts: the processes that measure answer at once.
_INSTANT = """
import sys

if "modelplan.questions.sweeps.isolation" in sys.orig_argv:
    from modelplan.questions.sweeps import measured_runs
    from modelplan.questions.sweeps.sweep_rows import row_of

    def instant(run, memo):
        size = sum(map(ord, run.model + run.target)) * (7 + len(run.alias) + len(run.allocator))
        figures = {"height": size, "bound": size, "arena": 2 * size, "head": size, "runtime_height": size,
                   "plan_seconds": 0.01, "fits": True, "plan_fits": True, "operators": 30, "used_alias": run.alias,
                   "used_runtime": "tflm", "used_kernels": "reference", "abi": "64", "format": "tflite"}
        return row_of(run, "done", facts=figures)

    measured_runs.measured = instant
"""
_ALLOCATORS = ("modelplan", "glow", "first-fit-size", "tflm-greedy")


@dataclass(frozen=True)
class Cost:
    """Most bytes that the started process held, its seconds by the clock, and processor seconds with its children."""

    memory: int
    clock: float
    processor: float


def target_names() -> list[str]:
    """The names of all targets of the table."""
    return [block.name for block in table_of({"models": ("x",), "targets": ("all",)}).targets]


def words_for(folder: Path, corpus: Path, models: int, targets: int) -> list[str]:
    """The options of the sweep: models of the corpus and the two that break, the first targets of the table."""
    paths = [str(path) for _, path in reporting.tflite_files(corpus)]
    broken = killed_sweeps.broken_models(folder, reporting.ROOT / "models" / "ds_cnn_kws.tflite")
    chosen = [*paths[: models - 2], *broken]
    return [
        *chosen,
        "--targets",
        *target_names()[:targets],
        "--alias",
        *MODES,
        "--workers",
        "2",
        "--timeout",
        "20",
        "-o",
    ]


def rows_in(output: Path) -> int:
    """How many rows a sweep has written by now, in parts and in its result; one that moved counts 0."""
    files = [output, *output.with_name(f"{output.name}.parts").glob("*.parquet")]
    try:
        return sum(read_table(file, ("key",)).num_rows for file in files if file.exists())
    except Exception:  # noqa: BLE001  the sweep gathers its parts at this moment
        return 0


def kill_at(words: Sequence[str], output: Path, folder: Path, rows: int) -> int:
    """Starts the sweep, kills a worker and then all of it once so many rows are there; returns the rows kept."""
    process, killed = killed_sweeps.start([*words, str(output)], folder), False
    while process.poll() is None and rows_in(output) < rows:
        if not killed and killed_sweeps.measures(process):
            killed = killed_sweeps.kill_worker(process)
        time.sleep(0.5)
    if not killed:
        raise SystemExit("the sweep ended before a worker could be killed")
    killed_sweeps.kill(process)
    return rows_in(output)


def finish(words: Sequence[str], output: Path, folder: Path) -> float:
    """Starts the sweep and waits until it is done; returns seconds by the clock."""
    begin = time.monotonic()
    process = killed_sweeps.start([*words, str(output)], folder)
    _, complaints = process.communicate()
    if process.returncode:
        raise SystemExit(f"the sweep ended with {process.returncode}: {complaints[-500:]}")
    return time.monotonic() - begin


def killed_page(whole: Path, killed: Path, kept: Sequence[int], seconds: float) -> Iterator[str]:
    rows, others = list(read_rows(whole)), list(read_rows(killed))
    names = [tuple(getattr(row, name) for name in IDENTITY) for row in others]
    statuses = Counter(row.status for row in rows)
    yield f"{len(rows):,} runs: {len({row.model for row in rows})} models, {len({row.target for row in rows})} targets,"
    yield f"{len(MODES)} modes, on two workers of one machine."
    yield ""
    yield from reporting.table(("ended as", "rows"), sorted((name, f"{n:,}") for name, n in statuses.items()))
    yield ""
    told = ", ".join(f"{count:,}" for count in kept)
    yield f"* Killed {len(kept)} times, with {told} rows written; a worker was killed before each time."
    yield f"* Rows after the last start: {len(others):,}; of one run more than once: {len(names) - len(set(names))}."
    yield "* The same rows as in one go, times aside: yes."
    cpu = sum({(r.model, r.used_kernels, r.alias): r.plan_seconds or 0.0 for r in rows}.values())
    yield f"* In one go {seconds:.0f} s by the clock; the plans take {cpu:.0f} s of processor time, and the hanging"
    yield f"  model keeps workers waiting for {20 * statuses['timeout']} s."


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


def table_words(folder: Path, rows: int) -> list[str]:
    """A table of at least so many runs: all targets, several settings, as many models as it takes."""
    names = target_names()
    each = len(names) * len(MODES) * len(_ALLOCATORS)
    model = reporting.ROOT / "models" / "ds_cnn_kws.tflite"
    models = [str(shutil.copy(model, folder / f"model{i:04}.tflite")) for i in range(-(-rows // each))]
    settings = ["--targets", *names, "--alias", *MODES, "--allocators", *_ALLOCATORS]
    return ["sweep", *models, *settings, "--workers", "2", "-o"]


def memory_page(counts: Sequence[int]) -> Iterator[str]:
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
            sweep = [*table_words(folder, count), str(result)]
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


def killed_sweep(arguments: argparse.Namespace) -> list[str]:
    """The lines about a sweep in one go and the same one killed; ends this process where their rows differ."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        whole, killed = folder / "whole.parquet", folder / "killed.parquet"
        words = words_for(folder, arguments.corpus, arguments.models, arguments.targets)
        every = arguments.models * arguments.targets * len(MODES)
        seconds = finish(words, whole, folder)
        reporting.progress(f"in one go: {seconds:.0f} s")
        kept = []
        for part in range(1, KILLS + 1):
            kept.append(kill_at(words, killed, folder, every * part // (KILLS + 1)))
            reporting.progress(f"killed with {kept[-1]:,} rows")
        finish(words, killed, folder)
        if not same_rows(whole, killed):
            raise SystemExit("the results differ")
        return list(killed_page(whole, killed, kept, seconds))


PARSER = reporting.command_line(__file__, __doc__, "sweep.md")
PARSER.add_argument("--models", type=int, default=40, metavar="N", help="how many, two of them broken")
PARSER.add_argument("--targets", type=int, default=25, metavar="N", help="how many of the table")
PARSER.add_argument("--rows", type=int, nargs="+", default=[25_000, 100_000], metavar="N", help="about how many runs")


def main() -> None:
    arguments = reporting.parse(PARSER)
    lines = ["## Killed", "", *killed_sweep(arguments), "", "## Memory", "", *memory_page(arguments.rows)]
    reporting.save(arguments.output, reporting.made_by(PARSER, arguments), "Large sweeps", lines)


if __name__ == "__main__":
    main()

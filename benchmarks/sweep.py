"""A sweep of 5,000 runs on two workers in one go, and the same sweep killed and started again three times.

    python benchmarks/sweep.py [--models 40] [--targets 25]

One model's process crashes in one of the five modes, another one hangs. Each time first a worker is killed, then the
sweep itself, all by SIGKILL. Both results must hold the same rows, times aside.
"""

from __future__ import annotations

import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

import reporting

sys.path.append(str(reporting.ROOT / "tests" / "support"))
import killed_sweeps

from modelplan.questions.sweeps.rows import IDENTITY
from modelplan.questions.sweeps.store import read_rows, read_table, same_rows
from modelplan.questions.sweeps.sweep_file import table_of

MODES = ("runtime", "none", "views", "safe", "max")
KILLS = 3


def words_for(folder: Path, corpus: Path, models: int, targets: int) -> list[str]:
    """The options of the sweep: models of the corpus and the two that break, the first targets of the table."""
    paths = [str(path) for _, path in reporting.tflite_files(corpus)]
    broken = killed_sweeps.broken_models(folder, reporting.ROOT / "models" / "ds_cnn_kws.tflite")
    names = [block.name for block in table_of({"models": ("x",), "targets": ("all",)}).targets][:targets]
    chosen = [*paths[: models - 2], *broken]
    return [*chosen, "--targets", *names, "--alias", *MODES, "--workers", "2", "--timeout", "20", "-o"]


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


def report(whole: Path, killed: Path, kept: Sequence[int], seconds: Sequence[float]) -> Iterator[str]:
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
    yield f"* The same rows as in one go, times aside: {'yes' if same_rows(whole, killed) else 'NO'}."
    cpu = sum({(r.model, r.used_kernels, r.alias): r.plan_seconds or 0.0 for r in rows}.values())
    yield f"* In one go {seconds[0]:.0f} s by the clock; the plans take {cpu:.0f} s of processor time, and the hanging"
    yield f"  model keeps workers waiting for {20 * statuses['timeout']} s."


PARSER = reporting.command_line(__file__, __doc__, "sweep.md")
PARSER.add_argument("--models", type=int, default=40, metavar="N", help="how many, two of them broken")
PARSER.add_argument("--targets", type=int, default=25, metavar="N", help="how many of the table")


def main() -> None:
    arguments = reporting.parse(PARSER)
    first = reporting.made_by(PARSER, arguments)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        whole, killed = folder / "whole.parquet", folder / "killed.parquet"
        words = words_for(folder, arguments.corpus, arguments.models, arguments.targets)
        every = arguments.models * arguments.targets * len(MODES)
        seconds = [finish(words, whole, folder)]
        reporting.progress(f"in one go: {seconds[0]:.0f} s")
        kept = []
        for part in range(1, KILLS + 1):
            kept.append(kill_at(words, killed, folder, every * part // (KILLS + 1)))
            reporting.progress(f"killed with {kept[-1]:,} rows")
        seconds.append(finish(words, killed, folder))
        reporting.save(arguments.output, first, "A sweep that is killed", report(whole, killed, kept, seconds))
        if not same_rows(whole, killed):
            raise SystemExit("the results differ")


if __name__ == "__main__":
    main()

"""Runs every combination of models, targets and settings on a cluster, and writes one row for each as Parquet.

MODEL is a .tflite or .onnx file, or a .toml file with the table itself. What is there already is not run again, so a
sweep that was ended in any way goes on where it was. A model that is refused, crashes or takes too long is a row too.
"""

from __future__ import annotations

import hashlib
import sys
import time
from argparse import ArgumentParser, Namespace
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from modelplan.cli import files, terminal
from modelplan.outputs.report import Section
from modelplan.primitives.errors import RequestError
from modelplan.primitives.units import counted
from modelplan.questions.sweeps.run_table import Table, runs_of
from modelplan.questions.sweeps.sweep_file import KEYS, read_sweep, table_of

if TYPE_CHECKING:
    from modelplan.questions.sweeps.store import Results

#: A part is written after so many rows or seconds, whichever is first.
_ROWS, _SECONDS = 1000, 5.0
#: Seconds between two lines of progress on a terminal, and elsewhere.
_PACE, _SLOW_PACE = 0.2, 10.0
#: How runs ended that --retry makes again.
_RETRIED = ("failed", "crashed", "timeout", "lost")


def configure(parser: ArgumentParser) -> None:
    """Declares the arguments."""
    parser.usage = "modelplan sweep MODEL ... -o RESULTS.parquet [--targets NAME ...] [option ...]"
    parser.add_argument("models", metavar="MODEL", nargs="+", help="a .tflite or .onnx file, or a table as .toml")
    parser.add_argument("-o", "--output", metavar="RESULTS.parquet", required=True, help="the file of rows")
    table = parser.add_argument_group("table", f"every combination is a run; `all` for all names; in TOML: {_keys()}")
    table.add_argument("--targets", metavar="NAME", nargs="+", help="as --target of other commands takes them")
    table.add_argument("--runtimes", metavar="NAME", nargs="+", help="default: by the file's format")
    table.add_argument("--kernels", metavar="NAME", nargs="+", help="default: the target's, else the runtime's first")
    table.add_argument("--schedules", metavar="NAME", nargs="+", help="default: best")
    table.add_argument("--alias", metavar="MODE", nargs="+", help="default: the runtime's usual one")
    table.add_argument("--allocators", metavar="NAME", nargs="+", help="default: modelplan")
    table.add_argument("--dim", metavar="SYMBOL=N", nargs="+", help="extents that every model leaves open")
    table.add_argument("--shape", metavar="TENSOR=N,N,...", nargs="+", help="shapes that every model leaves open")
    how = parser.add_argument_group("cluster")
    where = how.add_mutually_exclusive_group()
    where.add_argument("--workers", type=int, metavar="N", default=2, help="processes of this machine (default: 2)")
    where.add_argument(
        "--scheduler", metavar="ADDRESS", help="a Dask scheduler, such as tcp://host:8786, whose workers see the models"
    )
    how.add_argument(
        "--timeout", type=float, metavar="S", default=300.0, help="seconds by the clock for one run (default: 300)"
    )
    how.add_argument("--retry", action="store_true", help=f"run again what ended as {', '.join(_RETRIED)}")


def _keys() -> str:
    return ", ".join(KEYS)


def run(arguments: Namespace) -> int:
    """Runs the command."""
    output = Path(arguments.output)
    if output.suffix != ".parquet":
        raise RequestError(f"-o {output}: a result's name must end in .parquet")
    if not 0 < arguments.timeout < float("inf"):
        raise RequestError(f"--timeout is {arguments.timeout:g}, expected more than 0 seconds")
    if arguments.workers < 1:
        raise RequestError(f"--workers is {arguments.workers}, expected at least 1")
    files.check_outputs([arguments.output], arguments.models)
    table = table_of(words_of(arguments))
    from modelplan.questions.sweeps.store import Results

    results = Results(output)
    results.open()
    try:
        counts, known = swept(arguments, table, results)
        results.close()
    finally:
        results.release()
    terminal.show([Section(f"{output}: {counted(len(table), 'run')}", tuple(_ended(counts, known, output)))])
    return 0


def words_of(arguments: Namespace) -> dict[str, tuple[str, ...]]:
    """The table in words: that of the .toml file where one is named, with what the options say in its place.

    Raises:
        RequestError: more than one file beside a .toml file, or a table that cannot be read.
    """
    tables = [path for path in arguments.models if path.endswith(".toml")]
    if tables and len(arguments.models) > 1:
        raise RequestError(f"{tables[0]} is a table; it names its models itself, expected no other MODEL")
    words = read_sweep(Path(tables[0])) if tables else {"models": tuple(arguments.models)}
    for key in KEYS[1:]:
        if getattr(arguments, key):
            words[key] = tuple(getattr(arguments, key))
    if arguments.scheduler:
        words["models"] = tuple(str(Path(path).absolute()) for path in words.get("models", ()))
    return words


def swept(arguments: Namespace, table: Table, results: Results) -> tuple[Counter[str], int]:
    """Runs what is missing; returns how many of these runs ended in which way, and how many rows were there."""
    known = results.keys(_RETRIED if arguments.retry else ())
    digests = {path: digest(Path(path)) for path in table.models}
    missing = sum(run.key not in known for run in runs_of(table, digests))
    there = len(table) - missing
    if not missing:
        return Counter(), there
    from modelplan.questions.sweeps.engine import Cluster, records

    cluster = Cluster(min(arguments.workers, missing), arguments.scheduler or "")
    runs = (run for run in runs_of(table, digests) if run.key not in known)
    writing = _Writing(results, missing, there)
    try:
        for found in records(runs, cluster, arguments.timeout):
            writing.add(found)
    finally:
        writing.end()
    return writing.counts, there


def digest(path: Path) -> str:
    """The SHA-256 of a regular file that can be read, in hexadecimal; else nothing, and its runs say why."""
    try:
        if not path.is_file():
            return ""
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except (OSError, ValueError):
        return ""


@dataclass(slots=True)
class _Writing:
    """Rows on their way into the results, and the line that tells how far the sweep is."""

    results: Results
    missing: int
    there: int
    counts: Counter[str] = field(default_factory=Counter)
    waiting: list[dict[str, Any]] = field(default_factory=list)
    start: float = field(default_factory=time.monotonic)
    written: float = field(default_factory=time.monotonic)
    told: float = 0.0

    def add(self, found: list[dict[str, Any]]) -> None:
        """Takes rows; writes a part when there are many or it was long ago."""
        self.waiting += found
        self.counts.update(record["status"] for record in found)
        now = time.monotonic()
        if len(self.waiting) >= _ROWS or now - self.written >= _SECONDS:
            self.flush()
        live = sys.stderr.isatty()
        if now - self.told >= (_PACE if live else _SLOW_PACE):
            self.told = now
            text = self.progress(now)
            sys.stderr.write(f"\r\033[K{text}" if live else f"{text}\n")
            sys.stderr.flush()

    def flush(self) -> None:
        """Writes the rows that wait."""
        if self.waiting:
            self.results.append(self.waiting)
        self.waiting, self.written = [], time.monotonic()

    def end(self) -> None:
        """Writes the rest and takes the line of progress away."""
        self.flush()
        if sys.stderr.isatty():
            sys.stderr.write("\r\033[K")

    def progress(self, now: float) -> str:
        """How far it is, how fast, how long it will take."""
        made = self.counts.total()
        rate = made / max(now - self.start, 1e-9)
        done, every = self.there + made, self.there + self.missing
        bar = ("#" * (20 * done // every)).ljust(20, ".")
        others = made - self.counts["done"]
        rest = f"{done:,} of {counted(every, 'run')}, {rate:.1f} a second, {_time((self.missing - made) / rate)} left"
        return f"[{bar}] {rest}" + (f", {others:,} without an answer" if others else "")


def _time(seconds: float) -> str:
    """Seconds as people read them.

    >>> _time(40.2), _time(130), _time(7300)
    ('40 s', '2 min', '2 h 2 min')
    """
    minutes = round(seconds) // 60
    if minutes < 2:
        return f"{seconds:.0f} s"
    return f"{minutes // 60} h {minutes % 60} min" if minutes >= 60 else f"{minutes} min"


def _ended(counts: Counter[str], known: int, output: Path) -> Iterator[str]:
    if known:
        yield f"there already   {known:,}"
    yield from (f"{status:15} {count:,}" for status, count in sorted(counts.items()))
    yield f"`modelplan report {output}` shows them"

"""`sweep`: every combination of models, targets and settings, run on a cluster, a row of a table for each."""

from __future__ import annotations

import hashlib
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from modelplan.answers.sweep_summary import SweepProgress
from modelplan.primitives.lazy_records import dataclass
from modelplan.questions.sweeps.run_table import RunTable, runs_of

if TYPE_CHECKING:
    from modelplan.questions.sweeps.store import Results

#: A part is written after so many rows or seconds, whichever is first.
_ROWS, _SECONDS = 1000, 5.0
#: How runs ended that `retry` makes again.
RETRIED = ("failed", "crashed", "timeout", "lost")


@dataclass(frozen=True, slots=True, eq=False)
class SweepRequest:
    """Asks for a row for every run of a table.

    Args:
        table: the models, targets and settings whose combinations are run.
        output: the .parquet file of rows; what is in it is not run again.
        workers: processes of this machine.
        scheduler: the address of a Dask scheduler whose workers see the models; empty: this machine.
        timeout: seconds by the clock for one run.
        retry: whether runs that failed, crashed, took too long or were lost are made again.
    """

    table: RunTable
    output: Path
    workers: int = 2
    scheduler: str = ""
    timeout: float = 300.0
    retry: bool = False


def sweep(request: SweepRequest, progress: Callable[[SweepProgress], None] = lambda _: None) -> SweepProgress:
    """Runs what is missing in a file of rows.

    Args:
        request: the runs, the file, and the cluster.
        progress: is called whenever rows arrive.

    Returns:
        How many runs ended in which way, and how many rows were there already.

    Raises:
        RequestError: the file holds other rows, or the cluster cannot be reached.
    """
    from modelplan.questions.sweeps.store import Results

    results = Results(request.output)
    results.open()
    try:
        return _swept(request, results, progress)
    finally:
        results.release()


def _swept(request: SweepRequest, results: Results, progress: Callable[[SweepProgress], None]) -> SweepProgress:
    """Runs what is missing in results that are open, and closes them."""
    known = results.keys(RETRIED if request.retry else ())
    digests = {path: digest(Path(path)) for path in request.table.models}
    missing = sum(run.key not in known for run in runs_of(request.table, digests))
    writing = _Writing(results, missing, len(request.table) - missing)
    if missing:
        from modelplan.questions.sweeps.engine import Cluster, records

        cluster = Cluster(min(request.workers, missing), request.scheduler)
        runs = (run for run in runs_of(request.table, digests) if run.key not in known)
        try:
            for rows in records(runs, cluster, request.timeout):
                writing.add(rows)
                progress(writing.progress)
        finally:
            writing.flush()
    results.close()
    return writing.progress


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
    """Rows that wait to be written to the results."""

    results: Results
    missing: int
    there: int
    counts: Counter[str] = field(default_factory=Counter)
    waiting: list[dict[str, Any]] = field(default_factory=list)
    start: float = field(default_factory=time.monotonic)
    written: float = field(default_factory=time.monotonic)

    def add(self, rows: list[dict[str, Any]]) -> None:
        """Takes rows; writes a part when there are many or it was long ago."""
        self.waiting += rows
        self.counts.update(record["status"] for record in rows)
        if len(self.waiting) >= _ROWS or time.monotonic() - self.written >= _SECONDS:
            self.flush()

    def flush(self) -> None:
        if self.waiting:
            self.results.append(self.waiting)
        self.waiting, self.written = [], time.monotonic()

    @property
    def progress(self) -> SweepProgress:
        return SweepProgress(dict(self.counts), self.missing, self.there, time.monotonic() - self.start)

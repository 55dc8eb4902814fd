"""Runs on a Dask cluster: batches in a window that moves along the table, rows as they come.

Dask gives a batch whose worker died to another one. One that keeps killing workers is cut into single runs, and a
single run that does so becomes a row.
"""

import asyncio
import logging
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import asdict
from itertools import groupby, islice

from modelplan.primitives.errors import RequestError
from modelplan.primitives.lazy_records import dataclass
from modelplan.primitives.version import __version__
from modelplan.questions.sweeps.isolation import rows_of
from modelplan.questions.sweeps.run_table import SweepRun
from modelplan.questions.sweeps.sweep_rows import row_of

try:
    import dask
    from distributed import Client, Future, KilledWorker, LocalCluster, as_completed
    from distributed.comm import connect
    from distributed.security import Security
except ImportError:
    raise RequestError("a sweep runs on Dask: pip install 'modelplan[fleet]'") from None

#: Runs of one task, and tasks under way for each thread of the cluster.
_BATCH, _AHEAD = 25, 3
#: Workers that a task may lose before it is given up.
_DEATHS = 2
#: How often the processes of this machine are started where one is killed meanwhile.
_STARTS = 3
#: Seconds to wait for a scheduler that exists, and for its first worker.
_WAIT = 10


@dataclass(frozen=True, slots=True)
class Cluster:
    """Where runs are measured: `workers` processes of this machine, or a scheduler that exists, by its address."""

    workers: int = 1
    scheduler: str = ""


def records(runs: Iterable[SweepRun], cluster: Cluster, timeout: float) -> Iterator[list[dict[str, object]]]:
    """The rows of all runs as records, a batch at a time in whatever order they are done.

    Memory holds the runs of one window, however long the table is.

    Raises:
        RequestError: the scheduler cannot be reached, has no workers or workers with another modelplan, or went away.
    """
    logging.getLogger("distributed").setLevel(logging.CRITICAL)
    dask.config.set({"distributed.scheduler.allowed-failures": _DEATHS})
    try:
        with _client(cluster) as client:
            _require_workers(client, cluster)
            yield from _rows(client, runs, timeout)
    except (OSError, TimeoutError) as problem:
        raise RequestError(f"{_name(cluster)}: {' '.join(str(problem).split()) or type(problem).__name__}") from None


@contextmanager
def _client(cluster: Cluster) -> Iterator[Client]:
    """A client of the cluster; processes of this machine end with it."""
    if cluster.scheduler:
        _require_scheduler(cluster)
        with Client(cluster.scheduler, timeout=_WAIT, set_as_default=False) as client:
            yield client
    else:
        with closing(_local_cluster(cluster)) as local, closing(Client(local, set_as_default=False)) as client:
            yield client


def _local_cluster(cluster: Cluster) -> LocalCluster:
    """Processes of this machine; they are started anew where one of them is killed while it starts."""
    for left in reversed(range(_STARTS)):
        try:
            return LocalCluster(
                n_workers=cluster.workers,
                threads_per_worker=1,
                processes=True,
                memory_limit=0,
                host="127.0.0.1",
                dashboard_address=None,
                silence_logs=logging.CRITICAL,
            )
        except RuntimeError as problem:
            if not left:
                reason = f"{_name(cluster)} did not start in {_STARTS} tries: {problem}"
                raise RequestError(f"{reason} Start again to go on.") from None
    raise AssertionError("the last try returns or raises")


def _require_scheduler(cluster: Cluster) -> None:
    """Checks that the scheduler answers. A `Client` that could not connect leaves threads behind that print errors."""

    async def ask() -> None:
        connection = await connect(cluster.scheduler, timeout=_WAIT, **Security().get_connection_args("client"))
        await connection.close()

    try:
        asyncio.run(ask())
    except (TypeError, ValueError) as problem:  # an address that cannot be read, or TLS that is not configured
        text = f"{_name(cluster)}: expected an address such as tcp://host:8786: {problem}"
        raise RequestError(text) from None


def _name(cluster: Cluster) -> str:
    return f"--scheduler {cluster.scheduler}" if cluster.scheduler else "the local cluster"


def _require_workers(client: Client, cluster: Cluster) -> None:
    """Checks that there are workers, all with this version of modelplan."""
    client.wait_for_workers(1, timeout=_WAIT)
    for worker, version in client.run(version_here, on_error="return").items():
        if isinstance(version, OSError):
            continue  # it was killed meanwhile, and its place is taken by a new one
        if isinstance(version, Exception):  # whatever the worker raised, such as a missing module
            raise RequestError(f"{_name(cluster)}: a worker cannot run modelplan: {version}")
        if version != __version__:
            raise RequestError(f"{worker} has modelplan {version}, expected {__version__}, which asks it")


def version_here() -> str:
    """The version of modelplan of the process that calls it."""
    return __version__


def _rows(client: Client, runs: Iterable[SweepRun], timeout: float) -> Iterator[list[dict[str, object]]]:
    """Keeps the window full and yields what is done."""
    waiting = _batches(runs)
    most = _AHEAD * max(sum(client.nthreads().values()), 1)
    under_way: dict[str, list[SweepRun]] = {}
    done = as_completed(loop=client.loop)
    again: list[list[SweepRun]] = []
    while True:
        while len(under_way) < most and (batch := again.pop() if again else next(waiting, None)):
            future = client.submit(rows_of, list(map(asdict, batch)), timeout, pure=False)
            under_way[future.key] = batch
            done.add(future)
        if not under_way:
            return
        future = next(done)
        batch = under_way.pop(future.key)
        rows = _outcome(future, batch)
        if rows is None:
            again += [[run] for run in batch]
        else:
            yield rows


def _batches(runs: Iterable[SweepRun]) -> Iterator[list[SweepRun]]:
    """Runs of one model together, so that few workers load it."""
    for _, group in groupby(runs, key=lambda run: run.model):
        while batch := list(islice(group, _BATCH)):
            yield batch


def _outcome(future: Future, batch: Sequence[SweepRun]) -> list[dict[str, object]] | None:
    """The rows of a task that ended; None where its runs have to be asked one by one."""
    if future.status == "finished":
        rows: list[dict[str, object]] = future.result()
        return rows
    problem = future.exception() if future.status == "error" else None
    if isinstance(problem, KilledWorker):
        if len(batch) > 1:
            return None
        return [asdict(row_of(batch[0], "lost", f"{_DEATHS + 1} workers died while they had it"))]
    if problem is not None:
        return [asdict(row_of(run, "failed", f"{type(problem).__name__}: {problem}")) for run in batch]
    raise RequestError(f"the scheduler gave up a task ({future.status}); start again to go on")

"""Results as Parquet: new rows go into part files beside the result, which are made one file at the end.

RESULTS.parquet         one row for each run, sorted
RESULTS.parquet.parts/  0000000001.parquet, ...: rows not yet in it, each file written whole or not at all
                        lock: held by the process that writes

Every step is a renaming, and of two rows of one run the later counts: wherever the process is killed, a second start
finds each row that was written once.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from modelplan.errors import ModelError, RequestError
from modelplan.fleets.rows import COLUMNS, IDENTITY, TIMES, Row

try:
    import pyarrow as pa
    import pyarrow.parquet as pq
except ImportError:
    raise RequestError("results are Parquet files: pip install 'modelplan[fleet]'") from None

_KINDS = {str: pa.string(), int: pa.int64(), float: pa.float64(), bool: pa.bool_()}
SCHEMA = pa.schema([(name, _KINDS[kind]) for name, kind in COLUMNS.items()])
#: Parts after which they are put into the result although the sweep goes on.
_MOST_PARTS = 100


class Results:
    """The results at `path` while one process adds to them."""

    def __init__(self, path: Path) -> None:
        self.path, self.parts = path, path.with_name(f"{path.name}.parts")
        self._lock: BinaryIO | None = None
        self._next = 1

    def open(self) -> None:
        """Takes the results for this process and gathers what an earlier one left.

        Raises:
            RequestError: another process has them, or they cannot be written.
            ModelError: the file there is no result of a sweep.
        """
        try:
            self.parts.mkdir(exist_ok=True)
            self._lock = (self.parts / "lock").open("wb")
        except OSError as problem:
            raise RequestError(f"cannot write {self.parts}: {problem.strerror}") from None
        try:
            _hold(self._lock, self.path)
        except RequestError:
            self._lock.close()
            raise
        for draft in (*self.parts.glob(".*.draft"), self.path.with_name(f".{self.path.name}.draft")):
            draft.unlink(missing_ok=True)
        self.gather()

    def close(self) -> None:
        """Gathers the parts and gives the results free."""
        self.gather()
        (self.parts / "lock").unlink()
        self.parts.rmdir()
        if self._lock is not None:
            self._lock.close()

    def keys(self, without: Sequence[str] = ()) -> set[str]:
        """The keys of the rows that are there, but for those whose status is one of `without`."""
        if not self.path.exists():
            return set()
        table = read_table(self.path, ("key", "status"))
        pairs = zip(table["key"].to_pylist(), table["status"].to_pylist(), strict=True)
        return {key for key, status in pairs if status not in without}

    def append(self, records: Iterable[dict[str, Any]]) -> None:
        """Writes rows, so that no kill can take them away."""
        _write(pa.Table.from_pylist(list(records), SCHEMA), self.parts / f"{self._next:010}.parquet")
        self._next += 1
        if len(self._found()) >= _MOST_PARTS:
            self.gather()

    def gather(self) -> None:
        """Puts the parts into the result: the last row of each run, sorted by what names a run."""
        found = self._found()
        if found:
            files = [self.path, *found] if self.path.exists() else found
            _write(_newest(pa.concat_tables(read_table(file) for file in files)), self.path)
        for part in found:
            part.unlink()
        self._next = 1

    def _found(self) -> list[Path]:
        return sorted(self.parts.glob("*.parquet"))


def read_table(path: Path, columns: Sequence[str] | None = None) -> pa.Table:
    """The rows in a file, or some of their columns.

    Raises:
        ModelError: it is missing, no Parquet file, or has other columns.
    """
    try:
        with path.open("rb") as file:
            table = pq.read_table(file, columns=None if columns is None else list(columns))
    except OSError as problem:
        raise ModelError(f"{path}: {problem.strerror or _one_line(problem)}") from None
    except (pa.ArrowException, ValueError) as problem:
        raise ModelError(f"{path}: no Parquet file: {_one_line(problem)}") from None
    wanted = SCHEMA if columns is None else pa.schema([SCHEMA.field(name) for name in columns])
    missing = [name for name in wanted.names if name not in table.column_names]
    if missing:
        raise ModelError(f"{path}: no column {missing[0]!r}, which every result of `modelplan sweep` has")
    try:
        return table.select(wanted.names).cast(wanted)
    except (pa.ArrowException, ValueError) as problem:
        raise ModelError(f"{path}: a column of another type: {_one_line(problem)}") from None


def read_rows(path: Path) -> list[Row]:
    """The rows in a file; raises as `read_table`."""
    table = read_table(path)
    return [Row(*values) for values in zip(*(_values(table[name]) for name in COLUMNS), strict=True)]


def _values(column: pa.ChunkedArray) -> list[Any]:
    """The values of a column; equal texts are one object, since a column of many rows holds few different ones."""
    if column.type != pa.string():
        found: list[Any] = column.to_pylist()
        return found
    encoded = column.combine_chunks().dictionary_encode()
    texts = encoded.dictionary.to_pylist()
    return [None if i is None else texts[i] for i in encoded.indices.to_pylist()]


def same_rows(one: Path, other: Path) -> bool:
    """Whether two results hold the same rows, times aside."""
    return bool(read_table(one).drop_columns(list(TIMES)).equals(read_table(other).drop_columns(list(TIMES))))


def _newest(table: pa.Table) -> pa.Table:
    """The last row of each run, in order of the words that name runs."""
    numbered = table.select(list(IDENTITY)).append_column("at", pa.array(np.arange(len(table))))
    last = numbered.group_by(list(IDENTITY)).aggregate([("at", "max")])
    return table.take(last.sort_by([(name, "ascending") for name in IDENTITY])["at_max"])


def _write(table: pa.Table, path: Path) -> None:
    """The table as a file that is there whole or not at all, also after a crash of the system."""
    draft = path.with_name(f".{path.name}.draft")
    try:
        with draft.open("wb") as file:
            pq.write_table(table, file, compression="zstd")
            file.flush()
            os.fsync(file.fileno())
        draft.replace(path)
    except OSError as problem:
        raise RequestError(f"cannot write {path}: {problem.strerror or _one_line(problem)}") from None


def _hold(file: BinaryIO, path: Path) -> None:
    """Locks a file until the process ends, however it does.

    Raises:
        RequestError: another process holds it.
    """
    try:
        import fcntl
    except ImportError:  # Windows
        return
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        raise RequestError(f"{path}: another sweep is writing it") from None


def _one_line(problem: Exception) -> str:
    return " ".join(str(problem).split())[:300]

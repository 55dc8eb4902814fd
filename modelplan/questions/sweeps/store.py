"""Results as Parquet: new rows go into part files beside the result, which are made one file at the end.

RESULTS.parquet         one row for each run, sorted
RESULTS.parquet.parts/  0000000001.parquet, ...: rows not yet in it, each file written whole or not at all
                        lock: held by the process that writes

Every step is a renaming, and of two rows of one run the later counts: wherever the process is killed, a second start
finds each row that was written once. Parts are merged into the result a batch at a time, and rows are read so: memory
holds no more than some thousand rows, however many there are.
"""

from __future__ import annotations

import os
import re
import sys
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from modelplan.primitives.errors import ModelError, RequestError
from modelplan.questions.sweeps.sweep_rows import COLUMNS, IDENTITY, TIMES, SweepRow

try:
    import pyarrow as pa
    import pyarrow.parquet as pq
except ImportError:
    raise RequestError("results are Parquet files: pip install 'modelplan[fleet]'") from None

#: Stands for a text that lacks.
_LAST = chr(sys.maxunicode)
_ORDER = [(name, "ascending") for name in IDENTITY]
_KINDS = {str: pa.string(), int: pa.int64(), float: pa.float64(), bool: pa.bool_()}
SCHEMA = pa.schema([(name, _KINDS[kind]) for name, kind in COLUMNS.items()])
#: Parts after which they are put into the result although the sweep goes on.
_MOST_PARTS = 10
#: Rows that are read or written at once.
_BATCH = 5_000
#: A key, which is written in hexadecimal, as bytes.
_KEY = np.dtype("S16")
_IS_KEY = re.compile("[0-9a-f]{32}").fullmatch


class Results:
    """The results at `path` while one process adds to them."""

    def __init__(self, path: Path) -> None:
        self.path, self.parts = path, parts_of(path)
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
        self.release()

    def release(self) -> None:
        """Gives the results free, and leaves the parts for the next process that opens them."""
        if self._lock is not None:
            self._lock.close()

    def keys(self, without: Sequence[str] = ()) -> Keys:
        """The keys of the rows that are there, but for those whose status is one of `without`."""
        if not self.path.exists():
            return Keys(())
        batches = read_batches(self.path, ("key", "status"))
        pairs = (zip(batch["key"].to_pylist(), batch["status"].to_pylist(), strict=True) for batch in batches)
        return Keys(key for batch in pairs for key, status in batch if key and status not in without)

    def append(self, records: Iterable[dict[str, object]]) -> None:
        """Writes rows, so that no kill can take them away."""
        _write(pa.Table.from_pylist(list(records), SCHEMA), self.parts / f"{self._next:010}.parquet")
        self._next += 1
        if len(self._part_files()) >= _MOST_PARTS:
            self.gather()

    def gather(self) -> None:
        """Puts the parts into the result: the last row of each run, sorted by what names a run."""
        paths = self._part_files()
        if paths:
            new = _newest(pa.concat_tables(read_table(file) for file in paths))
            _write(_merged(self.path, new) if self.path.exists() else new, self.path)
        for part in paths:
            part.unlink()
        self._next = 1

    def _part_files(self) -> list[Path]:
        return sorted(self.parts.glob("*.parquet"))


class Keys:
    """A set of keys of runs, 16 bytes for each; what is no key of a run is not in it."""

    def __init__(self, keys: Iterable[str]) -> None:
        joined = b"".join(bytes.fromhex(key) for key in keys if _IS_KEY(key))
        self._sorted = np.sort(np.frombuffer(joined, dtype=_KEY))

    def __len__(self) -> int:
        return len(self._sorted)

    def __contains__(self, key: str) -> bool:
        wanted = np.frombuffer(bytes.fromhex(key), dtype=_KEY)
        at = int(np.searchsorted(self._sorted, wanted)[0])
        return bool((self._sorted[at : at + 1] == wanted).any())


def parts_of(path: Path) -> Path:
    """The folder of the rows that are not yet in the result `path`."""
    return path.with_name(f"{path.name}.parts")


def read_table(path: Path, columns: Sequence[str] | None = None) -> pa.Table:
    """The rows in a file, or some of their columns; raises as `read_batches`."""
    wanted = _schema_of(columns)
    return pa.concat_tables([wanted.empty_table(), *read_batches(path, columns)])


def read_batches(path: Path, columns: Sequence[str] | None = None) -> Iterator[pa.Table]:
    """The rows in a file, some thousands at a time, or some of their columns.

    Raises:
        ModelError: it is missing, no Parquet file, or has other columns.
    """
    wanted = _schema_of(columns)
    try:
        with path.open("rb") as file:
            parquet = pq.ParquetFile(file, pre_buffer=False)
            missing = [name for name in wanted.names if name not in parquet.schema_arrow.names]
            if missing:
                raise ModelError(f"{path}: no column {missing[0]!r}, which every result of `modelplan sweep` has")
            for batch in parquet.iter_batches(_BATCH, columns=wanted.names, use_threads=False):
                yield _cast(path, pa.Table.from_batches([batch]), wanted)
    except OSError as problem:
        left = ", but the rows of a sweep that did not end; start it again" if parts_of(path).is_dir() else ""
        raise ModelError(f"{path}: {problem.strerror or _one_line(problem)}{left}") from None
    except (pa.ArrowException, ValueError) as problem:
        raise ModelError(f"{path}: no Parquet file: {_one_line(problem)}") from None


def _schema_of(columns: Sequence[str] | None) -> pa.Schema:
    return SCHEMA if columns is None else pa.schema([SCHEMA.field(name) for name in columns])


def _cast(path: Path, table: pa.Table, wanted: pa.Schema) -> pa.Table:
    try:
        return table.select(wanted.names).cast(wanted)
    except (pa.ArrowException, ValueError) as problem:
        raise ModelError(f"{path}: a column of another type: {_one_line(problem)}") from None


def read_rows(path: Path) -> Iterator[SweepRow]:
    """The rows in a file by what names runs, as a sweep writes them; raises as `read_batches`.

    A file that something else wrote in another order is read whole and sorted first.
    """
    tables = read_batches(path) if _is_sorted(path) else [read_table(path).sort_by(_ORDER)]
    for table in tables:
        yield from (SweepRow(*values) for values in zip(*(_values(table[name]) for name in COLUMNS), strict=True))


def distinct(path: Path, columns: Sequence[str]) -> set[tuple[Any, ...]]:
    """The different values of some columns; raises as `read_batches`."""
    combinations: set[tuple[Any, ...]] = set()
    for table in read_batches(path, columns):
        unique = table.group_by(list(columns)).aggregate([])
        combinations.update(zip(*(unique[name].to_pylist() for name in columns), strict=True))
    return combinations


def _values(column: pa.ChunkedArray) -> list[Any]:
    """The values of a column; equal texts are one object, since a column of many rows holds few different ones."""
    if column.type != pa.string():
        values: list[Any] = column.to_pylist()
        return values
    encoded = column.combine_chunks().dictionary_encode()
    texts = encoded.dictionary.to_pylist()
    return [None if i is None else texts[i] for i in encoded.indices.to_pylist()]


def same_rows(path: Path, other: Path) -> bool:
    """Whether two results hold the same rows, times aside."""
    return bool(read_table(path).drop_columns(list(TIMES)).equals(read_table(other).drop_columns(list(TIMES))))


def _newest(table: pa.Table) -> pa.Table:
    """The last row of each run, sorted by the run's name."""
    numbered = table.select(list(IDENTITY)).append_column("at", pa.array(np.arange(len(table))))
    last = numbered.group_by(list(IDENTITY), use_threads=False).aggregate([("at", "max")])
    return table.take(last.sort_by(_ORDER)["at_max"])


def _merged(path: Path, new: pa.Table) -> Iterable[pa.Table]:
    """The rows of a result and those of `new`, which take the place of older ones: all in order."""
    if not _is_sorted(path):
        return [_newest(pa.concat_tables([read_table(path), new]))]
    return _merged_batches(read_batches(path), new)


def _merged_batches(old: Iterable[pa.Table], new: pa.Table) -> Iterator[pa.Table]:
    names = list(_names(new))
    taken = 0
    for batch in filter(len, old):
        upto = bisect_right(names, next(_names(batch.slice(len(batch) - 1))), taken)
        yield _newest(pa.concat_tables([batch, new.slice(taken, upto - taken)]))
        taken = upto
    yield new.slice(taken)


def _is_sorted(path: Path) -> bool:
    """Whether each run of a file has one row, and the rows stand in order."""
    before: str | None = None
    for batch in read_batches(path, IDENTITY):
        for name in _names(batch):
            if before is not None and name <= before:
                return False
            before = name
    return True


def _names(table: pa.Table) -> Iterator[str]:
    """One text for each row that names its run and sorts the rows; missing texts come last.

    No text of a table of runs holds a zero character, which comes before all others.
    """
    columns = (_values(table[name]) for name in IDENTITY)
    texts = zip(*columns, strict=True)
    return ("\0".join([_LAST if text is None else text for text in row]) for row in texts)


def _write(tables: pa.Table | Iterable[pa.Table], path: Path) -> None:
    """The rows as a file that is there whole or not at all, also after a crash of the system.

    How many rows stand together in the file depends on their number alone.
    """
    draft = path.with_name(f".{path.name}.draft")
    try:
        with draft.open("wb") as file:
            with pq.ParquetWriter(file, SCHEMA, compression="zstd") as writer:
                for group in _groups([tables] if isinstance(tables, pa.Table) else tables):
                    writer.write_table(group, row_group_size=_BATCH)
            file.flush()
            os.fsync(file.fileno())
        draft.replace(path)
    except OSError as problem:
        raise RequestError(f"cannot write {path}: {problem.strerror or _one_line(problem)}") from None


def _groups(tables: Iterable[pa.Table]) -> Iterator[pa.Table]:
    """The same rows as tables of `_BATCH` rows, the last one of those that are left."""
    waiting = SCHEMA.empty_table()
    for table in tables:
        waiting = pa.concat_tables([waiting, table])
        while len(waiting) >= _BATCH:
            yield waiting.slice(0, _BATCH).combine_chunks()
            waiting = waiting.slice(_BATCH)
    if len(waiting):
        yield waiting.combine_chunks()


def _hold(file: BinaryIO, path: Path) -> None:
    """Locks a file until the process ends."""
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

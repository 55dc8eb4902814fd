"""MiniMalloc CSV (`id,lower,upper,size[,offset][,alignment][,pin][,kind]`, bytes) as a Problem.

Columns `group,delta` and `list,position` may follow. Steps are half-open. The kind is `tensor` or `scratch`; without
the column, or in an empty cell, a row is a tensor.
Buffers of one group stand at fixed distances: each `delta` bytes above the group's base; an empty group is none.
Buffers of one list stand side by side in the order of their positions; an empty list is none.
Other spellings of the columns that the peers write are understood: buffer, buffer_id; start, begin; end, which is
the last step itself. Source: google/minimalloc, src/converter.cc.
"""

from __future__ import annotations

import csv
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

import numpy as np

from modelplan.formats.dims import Dims
from modelplan.model import BufferKind, IntArray, Placement, Problem
from modelplan.primitives.errors import ModelError

#: The column that each heading names. `end` is inclusive, `upper` is not. MiniMalloc itself ignores `hint`.
HEADINGS = {
    "id": "id", "buffer": "id", "buffer_id": "id",
    "lower": "lower", "start": "lower", "begin": "lower",
    "upper": "upper", "end": "end",
    "size": "size", "offset": "offset", "alignment": "alignment", "pin": "pin", "hint": "hint", "gaps": "gaps",
    "kind": "kind", "group": "group", "delta": "delta", "list": "list", "position": "position",
}  # fmt: skip

#: What a spreadsheet takes for a formula when a cell begins with it.
_FORMULA = ("=", "+", "-", "@", "\t", "\r")

#: Rows that are text at any one time.
_ROWS_AT_ONCE = 1 << 14


def read(path: Path, dims: Dims) -> Problem:
    """The buffers of the file; an `offset` column is left to `read_solution`.

    Raises:
        ModelError: a missing, unknown or doubled column, a short row, a cell that is not an integer, two rows
            with the same id, a buffer that makes no sense.

    Cost: O(rows) time; no more memory than the problem itself and a set of its ids.
    """
    dims.check_used(())
    return _problem(path, _columns(path, {"offset"}))


def read_solution(path: Path) -> tuple[Problem, Placement | None]:
    """The buffers of the file and, where it has an `offset` column, the offsets."""
    table = _columns(path, set())
    offsets = table.numbers.pop("offset", None)
    return _problem(path, table), None if offsets is None else Placement(offsets)


@dataclass(frozen=True, slots=True)
class _Table:
    """The columns of a file: ids, kinds (empty without such a column), and the others by name."""

    names: tuple[str, ...]
    kinds: tuple[BufferKind, ...]
    numbers: dict[str, IntArray]


def _problem(path: Path, table: _Table) -> Problem:
    names, numbers = table.names, table.numbers
    if len(set(names)) != len(names):
        firsts = {name: i for i, name in reversed(list(enumerate(names)))}
        row, name = next((i, n) for i, n in enumerate(names) if firsts[n] != i)
        raise ModelError(f"{path}: line {row + 2}: a second buffer with id {name!r}")
    none = np.zeros(0, np.int64)
    end = numbers["end" if "end" in numbers else "upper"]
    alignment, pin = numbers.get("alignment", none), numbers.get("pin", none)
    groups, lists = _groups(path, numbers, len(names)), _lists(path, numbers, len(names))
    columns = names, numbers["size"], numbers["lower"], end, alignment, pin
    try:
        return Problem(*columns, groups=groups, kinds=table.kinds, contiguous=lists)
    except ValueError as problem:
        raise ModelError(f"{path}: {problem}") from None


def _groups(path: Path, numbers: dict[str, IntArray], count: int) -> IntArray:
    """The rows of buffers in groups: buffer, group, delta."""
    group = numbers.get("group", np.full(count, -1, np.int64))
    delta = numbers.get("delta", np.zeros(count, np.int64))
    bad = (group < -1) | ((group == -1) & (delta != 0))
    if bad.any():
        row = int(np.argmax(bad))
        raise ModelError(f"{path}: row {row + 1}: found group {group[row]}, delta {delta[row]}, expected a group >= 0")
    members = np.flatnonzero(group >= 0)
    return np.column_stack((members, group[members], delta[members]))


def _lists(path: Path, numbers: dict[str, IntArray], count: int) -> tuple[tuple[int, ...], ...]:
    """The contiguous lists, in the order of their numbers."""
    number = numbers.get("list", np.full(count, -1, np.int64))
    position = numbers.get("position", np.zeros(count, np.int64))
    lists: dict[int, dict[int, int]] = {}
    for b in np.flatnonzero((number != -1) | (position != 0)).tolist():
        there = lists.setdefault(int(number[b]), {})
        if number[b] < 0 or position[b] < 0 or int(position[b]) in there:
            what = f"list {number[b]}, position {position[b]}"
            raise ModelError(f"{path}: row {b + 1}: found {what}, expected a list >= 0 and a position of its own")
        there[int(position[b])] = b
    return tuple(tuple(lists[n][k] for k in sorted(lists[n])) for n in sorted(lists))


def _columns(path: Path, unread: set[str]) -> _Table:
    """Every column but hints and those `unread`, blank lines left out."""
    names: list[str] = []
    kinds: list[BufferKind] = []
    pieces: dict[str, list[IntArray]] = {}
    try:
        with path.open(newline="", encoding="utf-8-sig") as file:
            rows = csv.reader(file, strict=True)
            headings = _headings(path, next(rows, []))
            wanted = [
                (i, name) for i, name in enumerate(headings) if name not in unread | {"id", "hint", "gaps", "kind"}
            ]
            pieces = {name: [np.zeros(0, np.int64)] for _, name in wanted}
            while piece := list(islice(filter(None, rows), _ROWS_AT_ONCE)):
                _check_widths(path, piece, len(headings), len(names))
                cells = list(zip(*piece, strict=True))
                if "gaps" in headings:
                    _refuse_gaps(path, cells[headings.index("gaps")], len(names))
                for column, name in wanted:
                    pieces[name].append(_integers(path, cells[column], name, len(names)))
                if "kind" in headings:
                    kinds += _kinds(path, cells[headings.index("kind")], len(names))
                names += map(_id, cells[headings.index("id")])
    except (UnicodeDecodeError, csv.Error) as problem:
        raise ModelError(f"{path}: not a CSV table: {problem}") from None
    return _Table(tuple(names), tuple(kinds), {name: np.concatenate(found) for name, found in pieces.items()})


def _id(cell: str) -> str:
    """The id in a cell; an apostrophe that keeps a spreadsheet from reading a formula is no part of it."""
    return cell[1:] if cell.startswith("'") and cell.lstrip("'").startswith(_FORMULA) else cell


def _check_widths(path: Path, rows: list[list[str]], width: int, before: int) -> None:
    for number, row in enumerate(rows, before + 1):
        if len(row) != width:
            raise ModelError(f"{path}: row {number}: found {len(row)} cells, expected {width}")


def _headings(path: Path, cells: Sequence[str]) -> list[str]:
    names = [name.strip().lower() for name in cells]
    unknown = [name for name in names if name not in HEADINGS]
    if unknown or not names:
        raise ModelError(
            f"{path}: line 1: found columns {', '.join(names)[:200] or 'none'}, expected id,lower,upper,size"
        )
    ours = [HEADINGS[name] for name in names]
    if len(set(ours)) != len(ours):
        raise ModelError(f"{path}: line 1: two columns mean the same in {', '.join(names)}")
    missing = [name for name in ("id", "lower", "size") if name not in ours]
    if ("upper" in ours) == ("end" in ours):
        missing.append("one of upper, end")
    if missing:
        raise ModelError(f"{path}: line 1: found columns {', '.join(names)}, expected {' and '.join(missing)}")
    return ours


def _integers(path: Path, cells: Sequence[str], name: str, before: int) -> IntArray:
    """Cells of a column as int64: a last step as the one after it, an empty optional cell as its default."""
    default = {"alignment": "1", "pin": "-1", "group": "-1", "delta": "0", "list": "-1", "position": "0"}.get(name)
    if default is not None:
        cells = [cell.strip() or default for cell in cells]
    more = 1 if name == "end" else 0
    try:
        return np.fromiter((int(cell) + more for cell in cells), dtype=np.int64, count=len(cells))
    except (ValueError, OverflowError):
        number, cell = next((i, c) for i, c in enumerate(cells, before + 1) if not _is_int64(c, more))
        raise ModelError(
            f"{path}: row {number}, column {name}: found {cell[:40]!r}, expected a 64-bit integer"
        ) from None


def _is_int64(cell: str, more: int) -> bool:
    try:
        return -(2**63) <= int(cell) + more < 2**63
    except ValueError:
        return False


def _kinds(path: Path, cells: Sequence[str], before: int) -> Iterator[BufferKind]:
    for number, cell in enumerate(cells, before + 1):
        try:
            yield BufferKind(cell.strip() or BufferKind.TENSOR)
        except ValueError:
            expected = " or ".join(BufferKind)
            raise ModelError(f"{path}: row {number}, column kind: found {cell[:40]!r}, expected {expected}") from None


def _refuse_gaps(path: Path, cells: Sequence[str], before: int) -> None:
    for number, cell in enumerate(cells, before + 1):
        if cell.strip():
            raise ModelError(
                f"{path}: row {number}, column gaps: found {cell[:40]!r}, expected none: "
                "a buffer that is absent for part of its lifetime is not supported"
            )

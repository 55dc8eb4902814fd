"""MiniMalloc CSV (`id,lower,upper,size[,offset][,alignment][,pin][,kind]`, bytes) as a Problem.

Columns `group,delta` and `list,position` may follow. Steps are half-open. The kind is `tensor` or `scratch`; without
the column, or in an empty cell, a row is a tensor.
Buffers of one group stand at fixed distances: each `delta` bytes above the group's base; an empty group is none.
Buffers of one list stand side by side in the order of their positions; an empty list is none.
Cells of `meets` and `apart` are lists about other rows, the first of which is 1. `3@-16:0 5@8:8` in `meets`: the buffer
may share bytes with that of row 3 where its offset less the other's is -16 to 0, with that of row 5 where it is 8.
`7 9` in `apart`: it shares no bytes with those of rows 7 and 9 although they are not alive together.
A row with `gaps` is not there all the time: `3-5 8-9@16:48` says that in steps 3 to 5 nothing of it is alive, in steps
8 to 9 its bytes 16 to 48 alone. It becomes a rigid group of pieces, one for each span of time.
Other spellings of the columns that the peers write are understood: buffer, buffer_id, name; start, begin; bytes; end,
which is the last step itself. Cells are divided by commas, semicolons or tabs. Where steps begin below 0, all are
counted from the first. Source: google/minimalloc, src/converter.cc and src/minimalloc.h.
"""

import csv
import io
import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from pathlib import Path

import numpy as np

from modelplan.formats.buffer_table import BufferTable
from modelplan.model import BufferKind, IntArray, Placement, Problem
from modelplan.primitives.errors import ModelError, RequestError
from modelplan.primitives.lazy_records import dataclass
from modelplan.primitives.number_types import rows_of

_GAP = re.compile(r"(-?\d+)-(-?\d+)(?:@(\d+):(\d+))?")


@dataclass(frozen=True, slots=True)
class Gap:
    """Steps [start, end) in which only the bytes [low, high) of a buffer are alive; none where both are 0."""

    start: int
    end: int
    low: int = 0
    high: int = 0


@dataclass(frozen=True, slots=True)
class Piece:
    """Bytes of a buffer, `delta` above its start, in steps [start, end)."""

    start: int
    end: int
    delta: int
    size: int


def gaps_of(cell: str, more: int) -> tuple[Gap, ...]:
    """The gaps in a cell; `more` is 1 where ends are the last step itself.

    Raises:
        ValueError: the cell is no list of gaps.
    """
    gaps = []
    for word in cell.split():
        match = _GAP.fullmatch(word)
        if match is None:
            raise ValueError(f"{word[:40]!r} is no gap such as 3-5 or 3-5@16:48")
        start, end, low, high = (int(part or 0) for part in match.groups())
        if match[3] is not None and low >= high:
            raise ValueError(f"{word!r} leaves no bytes alive: write it without @")
        gaps.append(Gap(start, end + more, low, high))
    return tuple(gaps)


def pieces(start: int, end: int, size: int, gaps: tuple[Gap, ...]) -> Iterator[Piece]:
    """What is alive of a buffer, by time.

    Raises:
        ValueError: a gap is empty, leaves the buffer, or overlaps another one.
    """
    now = start
    for gap in sorted(gaps, key=lambda gap: gap.start):
        if not now <= gap.start < gap.end <= end or gap.high > size:
            raise ValueError(
                f"the gap {gap.start}-{gap.end} does not lie in steps {now} to {end}, or its bytes not in {size}"
            )
        if gap.start > now:
            yield Piece(now, gap.start, 0, size)
        if gap.high:
            yield Piece(gap.start, gap.end, gap.low, gap.high - gap.low)
        now = gap.end
    if now < end:
        yield Piece(now, end, 0, size)


#: The column that each heading names. `end` is inclusive, `upper` is not.
HEADINGS = {
    "id": "id", "buffer": "id", "buffer_id": "id", "name": "id",
    "lower": "lower", "start": "lower", "begin": "lower",
    "upper": "upper", "end": "end",
    "size": "size", "bytes": "size",
    "offset": "offset", "alignment": "alignment", "pin": "pin", "hint": "hint", "gaps": "gaps",
    "kind": "kind", "group": "group", "delta": "delta", "list": "list", "position": "position",
    "meets": "meets", "apart": "apart",
}  # fmt: skip

#: Columns of lists about other rows: what one entry is, and an example of it.
_LISTS = {
    "meets": (re.compile(r"(\d{1,18})@(-?\d{1,18}):(-?\d{1,18})"), "3@-16:0"),
    "apart": (re.compile(r"(\d{1,18})"), "7"),
}

#: What a spreadsheet takes for a formula when a cell begins with it.
_FORMULA = ("=", "+", "-", "@", "\t", "\r")

#: Rows that are text at any one time.
_ROWS_AT_ONCE = 1 << 14


def read_solution(path: Path) -> tuple[Problem, Placement | None]:
    """The buffers of the file and, where it has an `offset` column, the offsets."""
    table = read_table(path)
    offsets = table.offsets("offset")
    return table.problem, None if offsets is None else Placement(offsets)


def with_offsets(table: BufferTable, placement: Placement) -> str:
    """The rows of the table's file with their offsets in the column `offset`, the last one where it is new."""
    _, pieces_of = np.unique(table.rows, return_index=True)
    offsets = (placement.offsets - table.deltas)[pieces_of].tolist()
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    with table.path.open(newline="", encoding="utf-8-sig") as file:
        rows = filter(None, _cells(file))
        titles = next(rows)
        headings = _headings(table.path, titles)
        at = headings.index("offset") if "offset" in headings else len(titles)
        writer.writerow([*titles[:at], "offset", *titles[at + 1 :]])
        writer.writerows([*row[:at], offset, *row[at + 1 :]] for row, offset in zip(rows, offsets, strict=True))
    return text.getvalue()


def read_table(path: Path, part: str = "") -> BufferTable:
    """The buffers of the file with their columns `offset` and `hint`.

    Raises:
        ModelError: a missing, unknown or doubled column, a short row, a cell that is not an integer, two rows
            with the same id, a buffer that makes no sense.
        RequestError: a part is named, and a table has none.

    Cost: O(rows) time; no more memory than the problem itself and a set of its ids.
    """
    if part:
        raise RequestError(f"--part {part}: {path} is one table of buffers, without parts")
    table = _columns(path)
    _check_ids(path, table.names)
    columns: dict[str, IntArray] = {
        name: table.numbers.pop(name) for name in ("offset", "hint") if name in table.numbers
    }
    gapless, rows, deltas = _without_gaps(path, table)
    first = min(0, int(gapless.numbers["lower"].min(initial=0)))
    for name in ("lower", _end(table)):
        gapless.numbers[name] = gapless.numbers[name] - first
    as_it_stands = not first and not table.gaps
    return BufferTable(path, _problem(path, gapless), rows, deltas, columns, as_it_stands)


@dataclass(frozen=True, slots=True)
class _Table:
    """The columns of a file: ids, kinds (empty without such a column), gaps by row, and the others by name.

    `lists` are the entries of columns of lists, each behind the number of its buffer.
    """

    names: tuple[str, ...]
    kinds: tuple[BufferKind, ...]
    gaps: dict[int, tuple[Gap, ...]]
    numbers: dict[str, IntArray]
    lists: dict[str, list[tuple[int, ...]]]


def _end(table: _Table) -> str:
    """The column that says where lifetimes end."""
    return "end" if "end" in table.numbers else "upper"


def _without_gaps(path: Path, table: _Table) -> tuple[_Table, IntArray, IntArray]:
    """The table with a row for each piece of a row with gaps, the row that each comes from, and its distance to it."""
    if not table.gaps:
        count = len(table.names)
        return table, np.arange(count), np.zeros(count, np.int64)
    rows, parts, names = list[int](), list[tuple[int, int, int, int]](), list[str]()
    whole = zip(*(table.numbers[name].tolist() for name in ("lower", _end(table), "size")), strict=True)
    for row, (start, stop, size) in enumerate(whole):
        gaps = table.gaps.get(row, ())
        try:
            row_parts = [(p.start, p.end, p.delta, p.size) for p in pieces(start, stop, size, gaps)] if gaps else None
        except ValueError as problem:
            raise ModelError(f"{path}: row {row + 1}, column gaps: {problem}") from None
        if row_parts == []:
            raise ModelError(f"{path}: row {row + 1}, column gaps: nothing of the buffer is ever alive")
        row_parts = row_parts or [(start, stop, 0, size)]
        parts += row_parts
        rows += [row] * len(row_parts)
        names += [table.names[row], *(f"{table.names[row]} ({k})" for k in range(2, len(row_parts) + 1))]
    if any(table.lists.values()):
        raise ModelError(f"{path}: columns gaps and {', '.join(table.lists)}: a row with gaps has several buffers")
    at, cells = np.array(rows), np.array(parts, np.int64).reshape(-1, 4).T
    numbers = {name: column[at] for name, column in table.numbers.items()}
    numbers |= {"lower": cells[0], _end(table): cells[1], "size": cells[3]}
    group = numbers.setdefault("group", np.full(len(rows), -1, np.int64))
    gapped = np.isin(at, list(table.gaps))
    if ((group >= 0) | (numbers.get("list", group) >= 0))[gapped].any():
        raise ModelError(f"{path}: column gaps: a row with gaps is in a group or list, where its pieces would be more")
    numbers["group"] = np.where(gapped, group.max(initial=-1) + 1 + at, group)
    numbers["delta"] = np.where(gapped, cells[2], numbers.get("delta", 0))
    if "alignment" in numbers:
        numbers["alignment"] = np.where(cells[2] > 0, 1, numbers["alignment"])
    if "pin" in numbers:
        numbers["pin"] = np.where(numbers["pin"] >= 0, numbers["pin"] + cells[2], -1)
    kinds = tuple(table.kinds[row] for row in rows) if table.kinds else ()
    return _Table(tuple(names), kinds, {}, numbers, {}), at, cells[2]


def _check_ids(path: Path, names: Sequence[str]) -> None:
    """Raises where two rows have one id."""
    if len(set(names)) != len(names):
        firsts = {name: i for i, name in reversed(list(enumerate(names)))}
        row, name = next((i, n) for i, n in enumerate(names) if firsts[n] != i)
        raise ModelError(f"{path}: line {row + 2}: a second buffer with id {name!r}")


def _problem(path: Path, table: _Table) -> Problem:
    names, numbers = table.names, table.numbers
    none = np.zeros(0, np.int64)
    end = numbers[_end(table)]
    alignment, pin = numbers.get("alignment", none), numbers.get("pin", none)
    groups, lists = _groups(path, numbers, len(names)), _lists(path, numbers, len(names))
    columns = names, numbers["size"], numbers["lower"], end, alignment, pin
    meetings, conflicts = (rows_of(table.lists.get(name, ()), width) for name, width in (("meets", 4), ("apart", 2)))
    try:
        return Problem(
            *columns, conflicts=conflicts, groups=groups, meetings=meetings, kinds=table.kinds, contiguous=lists
        )
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


def _columns(path: Path) -> _Table:
    """Every column, blank lines left out."""
    names: list[str] = []
    kinds: list[BufferKind] = []
    gaps: dict[int, tuple[Gap, ...]] = {}
    chunks: dict[str, list[IntArray]] = {}
    lists: dict[str, list[tuple[int, ...]]] = {}
    try:
        with path.open(newline="", encoding="utf-8-sig") as file:
            rows = _cells(file)
            headings = _headings(path, next(rows, []))
            wanted = [(i, name) for i, name in enumerate(headings) if name not in ("id", "gaps", "kind", *_LISTS)]
            lists = {name: [] for name in headings if name in _LISTS}
            chunks = {name: [np.zeros(0, np.int64)] for _, name in wanted}
            while some := list(islice(filter(None, rows), _ROWS_AT_ONCE)):
                _check_widths(path, some, len(headings), len(names))
                cells = list(zip(*some, strict=True))
                if "gaps" in headings:
                    gaps |= _gaps(path, cells[headings.index("gaps")], len(names), int("end" in headings))
                for name, entries in lists.items():
                    entries += _entries(path, cells[headings.index(name)], name, len(names))
                for column, name in wanted:
                    chunks[name].append(_integers(path, cells[column], name, len(names)))
                if "kind" in headings:
                    kinds += _kinds(path, cells[headings.index("kind")], len(names))
                names += map(_id, cells[headings.index("id")])
    except (UnicodeDecodeError, csv.Error) as problem:
        raise ModelError(f"{path}: not a CSV table: {problem}") from None
    for name, entries in lists.items():
        _check_entries(path, name, entries, len(names))
    numbers = {name: np.concatenate(parts) for name, parts in chunks.items()}
    return _Table(tuple(names), tuple(kinds), gaps, numbers, lists)


def _entries(path: Path, cells: Sequence[str], name: str, before: int) -> Iterator[tuple[int, ...]]:
    """The entries of a column of lists: the buffer, the other one, and what else there is."""
    pattern, example = _LISTS[name]
    for row, cell in enumerate(cells, before):
        for word in cell.split():
            match = pattern.fullmatch(word)
            if match is None:
                raise ModelError(f"{path}: row {row + 1}, column {name}: {word[:40]!r} is no entry such as {example}")
            other, *rest = map(int, match.groups())
            yield row, other - 1, *rest


def _check_entries(path: Path, name: str, entries: Iterable[tuple[int, ...]], rows: int) -> None:
    """Raises where an entry names its own row or one that is not there, or distances the wrong way round."""
    for row, other, *distances in entries:
        if row == other or not 0 <= other < rows:
            raise ModelError(f"{path}: row {row + 1}, column {name}: found row {other + 1}, expected another of {rows}")
        if distances != sorted(distances):
            interval = ":".join(map(str, distances))
            raise ModelError(f"{path}: row {row + 1}, column {name}: found {interval}, expected least:most")


def _cells(lines: Iterable[str]) -> Iterator[list[str]]:
    """The rows of a table, whose first line shows what divides its cells: commas, semicolons or tabs."""
    lines = iter(lines)
    title = next(lines, "")
    divider = max(",;\t", key=title.count)
    yield from csv.reader([title], strict=True, delimiter=divider)
    yield from csv.reader(lines, strict=True, delimiter=divider)


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


#: What an empty cell stands for, in columns that may have such.
_DEFAULTS = {
    "alignment": "1", "pin": "-1", "offset": "-1", "hint": "-1", "group": "-1", "delta": "0", "list": "-1",
    "position": "0",
}  # fmt: skip


def _integers(path: Path, cells: Sequence[str], name: str, before: int) -> IntArray:
    """Cells of a column as int64: a last step as the one after it, an empty optional cell as its default."""
    default = _DEFAULTS.get(name)
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


def _gaps(path: Path, cells: Sequence[str], before: int, more: int) -> dict[int, tuple[Gap, ...]]:
    """The gaps of the rows that have some."""
    by_row = {}
    for row, cell in enumerate(cells, before):
        try:
            if gaps := gaps_of(cell, more):
                by_row[row] = gaps
        except ValueError as problem:
            raise ModelError(f"{path}: row {row + 1}, column gaps: {problem}") from None
    return by_row

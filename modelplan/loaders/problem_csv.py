"""MiniMalloc CSV (`id,lower,upper,size[,offset][,alignment][,pin]`, half-open steps, bytes) as a Problem.

Other spellings of the columns that the peers write are understood: buffer, buffer_id; start, begin; end, which is
the last step itself. Source: google/minimalloc, src/converter.cc.
"""

from __future__ import annotations

import csv
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from modelplan.errors import ModelError
from modelplan.loaders.dims import Dims
from modelplan.types import IntArray, Placement, Problem

#: Our name for each heading. `end` is inclusive, `upper` is not. A hint is a wish that MiniMalloc itself ignores.
HEADINGS = {
    "id": "id", "buffer": "id", "buffer_id": "id",
    "lower": "lower", "start": "lower", "begin": "lower",
    "upper": "upper", "end": "end",
    "size": "size", "offset": "offset", "alignment": "alignment", "pin": "pin", "hint": "hint", "gaps": "gaps",
}  # fmt: skip


def read(path: Path, dims: Dims) -> Problem:
    """The buffers of the file; an `offset` column is an answer, not part of the question: see `read_solution`.

    Raises:
        ModelError: a missing, unknown or doubled column, a short row, a cell that is not an integer, two rows
            with the same id, a buffer that makes no sense.
    """
    dims.check_used(())
    return _problem(path, _columns(path))


def read_solution(path: Path) -> tuple[Problem, Placement | None]:
    """The buffers of the file and, where it has an `offset` column, the offsets."""
    columns = _columns(path)
    problem = _problem(path, columns)
    if "offset" not in columns:
        return problem, None
    return problem, Placement(_integers(path, columns, "offset"))


def _problem(path: Path, columns: dict[str, Sequence[str]]) -> Problem:
    _refuse_gaps(path, columns)
    names = tuple(columns["id"])
    if len(set(names)) != len(names):
        seen: set[str] = set()
        row, name = next((i, n) for i, n in enumerate(names) if n in seen or seen.add(n))  # type: ignore[func-returns-value]
        raise ModelError(f"{path}: line {row + 2}: a second buffer with id {name!r}")
    inclusive = "end" in columns
    end = _integers(path, columns, "end") + 1 if inclusive else _integers(path, columns, "upper")
    none = np.zeros(0, np.int64)
    alignment = _integers(path, columns, "alignment") if "alignment" in columns else none
    pin = _integers(path, columns, "pin") if "pin" in columns else none
    size, lower = _integers(path, columns, "size"), _integers(path, columns, "lower")
    try:
        return Problem(names, size, lower, end, alignment, pin)
    except ValueError as problem:
        raise ModelError(f"{path}: {problem}") from None


def _columns(path: Path) -> dict[str, Sequence[str]]:
    """Our column names with their cells, blank lines left out."""
    try:
        with path.open(newline="", encoding="utf-8-sig") as file:
            rows = csv.reader(file, strict=True)
            headings = _headings(path, next(rows, []))
            body = [row for row in rows if row]
    except (UnicodeDecodeError, csv.Error) as problem:
        raise ModelError(f"{path}: not a CSV table: {problem}") from None
    width = len(headings)
    for number, row in enumerate(body):
        if len(row) != width:
            raise ModelError(f"{path}: row {number + 1}: found {len(row)} cells, expected {width}")
    cells: list[Sequence[str]] = list(zip(*body, strict=True)) if body else [()] * width
    return dict(zip(headings, cells, strict=True))


def _headings(path: Path, found: Sequence[str]) -> list[str]:
    names = [name.strip().lower() for name in found]
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


def _integers(path: Path, columns: dict[str, Sequence[str]], name: str) -> IntArray:
    """A column as int64; an empty cell of an optional column is its default."""
    default = {"alignment": "1", "pin": "-1"}.get(name)
    cells = columns[name]
    if default is not None:
        cells = [cell.strip() or default for cell in cells]
    try:
        return np.fromiter(map(int, cells), dtype=np.int64, count=len(cells))
    except (ValueError, OverflowError):
        number, cell = next((i, c) for i, c in enumerate(cells) if not _is_int64(c))
        raise ModelError(
            f"{path}: row {number + 1}, column {name}: found {cell[:40]!r}, expected a 64-bit integer"
        ) from None


def _is_int64(cell: str) -> bool:
    try:
        return -(2**63) <= int(cell) < 2**63
    except ValueError:
        return False


def _refuse_gaps(path: Path, columns: dict[str, Sequence[str]]) -> None:
    for number, cell in enumerate(columns.get("gaps", ())):
        if cell.strip():
            raise ModelError(
                f"{path}: row {number + 1}, column gaps: found {cell[:40]!r}, expected none: "
                "a buffer that is absent for part of its lifetime is not supported"
            )

"""A file of buffers: the problem in it, and the offsets that the file states; also C headers with a BufferPlan."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np

from modelplan.formats.whole_files import read_text
from modelplan.model import IntArray, Problem
from modelplan.primitives.errors import BrokenPlanError, ModelError, RequestError, did_you_mean
from modelplan.primitives.lazy_records import dataclass

#: A comment ends with its line; it may hold the name of a tensor, and that any character.
_COMMENT = re.compile(r"//[^\n]*")
#: An int32 with its sign.
_MOST_DIGITS = 11
_PLAN = re.compile(r"modelplan_buffer_plan\s*=\s*\{\s*([0-9]{1,9})\s*,\s*\{([^}]*)\}")


def read_buffer_plan(path: str | Path) -> list[int]:
    """The offsets of the BufferPlan in the header `path`.

    Raises:
        ModelError: the file cannot be read or holds no BufferPlan.
        BrokenPlanError: the plan counts another number of buffers than it has offsets.
    """
    match = _PLAN.search(_COMMENT.sub("", read_text(path)))
    if not match:
        raise ModelError(f"{path}: no modelplan_buffer_plan, expected a header of `modelplan fit --only plan --shim`")
    numbers = re.findall(r"-?[0-9]+", match[2])
    if any(len(number) > _MOST_DIGITS for number in numbers):
        raise ModelError(f"{path}: found an offset of more than {_MOST_DIGITS} digits")
    offsets = [int(number) for number in numbers]
    if len(offsets) != int(match[1]):
        raise BrokenPlanError(f"{path}: counts {match[1]} buffers and holds {len(offsets)} offsets")
    return offsets


#: When a buffer is alive: its number, a first step, and the step after the last.
Piece = tuple[int, int, int]
#: How many names of parts an error lists.
_MOST_NAMED = 12


@dataclass(frozen=True, slots=True)
class PlannedBuffer:
    """A block of memory that another tool placed: bytes, and the offset that the tool gave."""

    name: str
    size: int
    offset: int


@dataclass(frozen=True, eq=False)
class BufferTable:
    """A file of buffers: its problem, and where each buffer of that stands in the file.

    A buffer is a row, or where a row has gaps a piece of it: `rows` says of which, `deltas` how many bytes above the
    row's start. `columns` are `offset` and `hint`, by row, where the file has them. `as_it_stands` says that no row has
    gaps and that the problem counts steps as the file does. `planner` is the tool whose plan the offsets are, empty
    where the file does not say.
    """

    path: Path
    problem: Problem
    rows: IntArray
    deltas: IntArray
    columns: dict[str, IntArray]
    as_it_stands: bool
    planner: str = ""

    @classmethod
    def of_planner(
        cls, path: Path, planner: str, planned: Sequence[PlannedBuffer], pieces: Sequence[Piece], alignment: int
    ) -> BufferTable:
        """The buffers that another tool placed.

        Args:
            path: the file.
            planner: the tool.
            planned: each buffer with the tool's offset.
            pieces: when they are alive. A buffer with several pieces is a rigid group: between them its bytes are free.
            alignment: what the tool aligns offsets to.
        """
        owner, start, end = np.array(pieces, np.int64).reshape(-1, 3).T
        size, offset = (np.array([getattr(b, name) for b in planned], np.int64)[owner] for name in ("size", "offset"))
        several = np.flatnonzero(np.bincount(owner, minlength=1)[owner] > 1)
        problem = Problem(
            tuple(planned[i].name for i in owner.tolist()),
            size,
            start,
            end,
            np.full(len(owner), alignment),
            groups=np.column_stack((several, owner[several], np.zeros(len(several), np.int64))),
        )
        rows = np.arange(len(owner))
        return cls(path, problem, rows, np.zeros_like(rows), {"offset": offset}, as_it_stands=True, planner=planner)

    def offsets(self, column: str) -> IntArray | None:
        """The offsets in a column, for each buffer; negative where the file has none for its row."""
        by_row = self.columns.get(column)
        if by_row is None:
            return None
        offsets: IntArray = np.where(by_row[self.rows] < 0, by_row[self.rows], by_row[self.rows] + self.deltas)
        return offsets


def kept_alignment(offsets: Iterable[int], usual: int) -> int:
    """The alignment that a tool usually keeps, or 1 where one of its offsets breaks that."""
    return 1 if any(offset % usual for offset in offsets) else usual


def chosen_part(path: Path, parts: Sequence[str], part: str, what: str) -> str:
    """The part of the file that is asked for, or its only one.

    Raises:
        RequestError: no part is called so, the file has none, or several where none is asked for.
    """
    more = len(parts) - _MOST_NAMED
    names = ", ".join(parts[:_MOST_NAMED]) + (f" and {more} more" if more > 0 else "")
    if not parts:
        raise RequestError(f"{path}: found no {what}")
    if part and part not in parts:
        raise RequestError(f"--part {part}: {path} has {names}{did_you_mean(part, parts)}")
    if not part and len(parts) > 1:
        raise RequestError(f"{path}: found {len(parts)} {what}: {names}; choose one by --part")
    return part or parts[0]

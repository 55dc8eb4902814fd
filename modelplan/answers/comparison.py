"""The answers of several allocators to one problem."""

from __future__ import annotations

from dataclasses import dataclass

#: Rows that head the table whatever their height.
OURS = ("best", "modelplan")


@dataclass(frozen=True, slots=True)
class Row:
    """One allocator's answer; `height` is None where it refused, `why` says so.

    `objects` is what a planner of shared objects reports itself: their bytes, without padding between them.
    `lower_bound` is what it proved. `found_by` and `own_height` are those of its placement: where the first is a name,
    the height is that allocator's, and the second is the height of the search's own best, None without one.
    """

    allocator: str
    kind: str
    height: int | None
    microseconds: int
    objects: int | None = None
    why: str = ""
    lower_bound: int = 0
    found_by: str = ""
    own_height: int | None = None


@dataclass(frozen=True, slots=True)
class Comparison:
    """The answers to one problem of `buffers` buffers; `remarks` are lines about the problem."""

    title: str
    buffers: int
    rows: tuple[Row, ...]
    remarks: tuple[str, ...] = ()

    @property
    def lower_bound(self) -> int:
        """The greatest bound that one of the rows proved."""
        return max((row.lower_bound for row in self.rows), default=0)

    @property
    def ranked(self) -> list[Row]:
        """The rows with an answer: lowest first, of equal ones own answers first, then the fastest."""
        placed = [row for row in self.rows if row.height is not None]
        return sorted(placed, key=lambda row: (row.height, bool(row.found_by), row.microseconds))

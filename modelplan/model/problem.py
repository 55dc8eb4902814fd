"""The placement problem: which buffers need an address, in columns, with what else an answer has to keep."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import field, fields
from enum import StrEnum
from functools import cached_property
from typing import Any

import numpy as np

from modelplan.model.alias_classes import Member
from modelplan.primitives import _core
from modelplan.primitives.lazy_records import dataclass
from modelplan.primitives.number_types import BoolArray, IntArray, column, rows_of, same_fields


class BufferKind(StrEnum):
    """What a buffer is for."""

    TENSOR = "tensor"
    """Holds tensors, or whatever a row of a table without a graph stands for."""
    SCRATCH = "scratch"
    """Working memory of an operator: holds no tensor."""


@dataclass(frozen=True, slots=True)
class Buffer:
    """One block of memory, alive in steps [start, end). `pin` is the offset it must have, if any."""

    name: str
    size: int
    start: int
    end: int
    alignment: int = 1
    pin: int | None = None
    members: tuple[Member, ...] = ()
    kind: BufferKind = BufferKind.TENSOR

    def __post_init__(self) -> None:
        if self.size < 0 or self.start < 0 or self.end <= self.start:
            raise ValueError(
                f"buffer {self.name!r} needs size >= 0 and 0 <= start < end,"
                f" found size {self.size}, lifetime [{self.start}, {self.end})"
            )
        if self.alignment < 1:
            raise ValueError(f"buffer {self.name!r} needs an alignment of at least 1, found {self.alignment}")
        if self.pin is not None and (self.pin < 0 or self.pin % self.alignment):
            raise ValueError(
                f"buffer {self.name!r} is pinned at {self.pin}, expected a non-negative"
                f" multiple of its alignment {self.alignment}"
            )


@dataclass(frozen=True, eq=False, repr=False)
class Problem:
    """Which buffers need an address: one column per property, so that a million of them cost little.

    Args:
        names: one for each buffer.
        size: bytes.
        start: the first step at which it is alive.
        end: the step from which it is not.
        alignment: each offset is a multiple of its own; all 1 when left out.
        pin: the offset a buffer must have, -1 where it is free; all free when left out.
        capacity: bytes there are, or None to ask for the least.
        overlaps: rows (below, above, bytes): buffer `below` may reach up to `bytes` into the start of
            buffer `above` although both are alive; of several rows for a pair the largest counts.
        conflicts: rows (a, b) of buffers that must not share bytes although their lifetimes are apart.
        groups: rows (buffer, group, delta) of rigid groups: buffer `buffer` stands `delta` bytes above the base of its
            group, wherever that is; buffers without a row stand alone.
        meetings: rows (a, b, least, most) of buffers that may share bytes although both are alive, where the offset of
            `a` less that of `b` is at least `least` and at most `most`.
        contiguous: lists of buffers that stand side by side in this order: each begins where the one before ends,
            rounded up to their alignment, which all of a list have in common. Each keeps its own lifetime.
        members: the tensors inside each buffer; empty when the problem came without a graph.
        kinds: what each buffer is for; empty when all hold tensors.

    Raises:
        ValueError: columns of different length, a buffer that `Buffer` would refuse, a pair that may overlap and
            conflicts, a buffer in two groups or contiguous lists, or a contiguous list with an empty buffer or
            with different alignments.
    """

    names: tuple[str, ...]
    size: IntArray
    start: IntArray
    end: IntArray
    alignment: IntArray = field(default_factory=lambda: column(()))
    pin: IntArray = field(default_factory=lambda: column(()))
    capacity: int | None = None
    overlaps: IntArray = field(default_factory=lambda: rows_of((), 3))
    conflicts: IntArray = field(default_factory=lambda: rows_of((), 2))
    groups: IntArray = field(default_factory=lambda: rows_of((), 3))
    meetings: IntArray = field(default_factory=lambda: rows_of((), 4))
    members: tuple[tuple[Member, ...], ...] = ()
    kinds: tuple[BufferKind, ...] = ()
    contiguous: tuple[tuple[int, ...], ...] = ()

    def __post_init__(self) -> None:
        n = len(self.names)
        defaults = {"alignment": 1, "pin": -1}
        for name in ("size", "start", "end", "alignment", "pin"):
            given = getattr(self, name)
            if name in defaults and not len(given) and n:
                given = np.full(n, defaults[name], dtype=np.int64)
            object.__setattr__(self, name, column(given))
            if getattr(self, name).shape != (n,):
                raise ValueError(f"column {name} has {len(given)} rows, expected {n}")
        object.__setattr__(self, "overlaps", rows_of(self.overlaps, 3))
        object.__setattr__(self, "conflicts", rows_of(self.conflicts, 2))
        object.__setattr__(self, "groups", rows_of(self.groups, 3))
        object.__setattr__(self, "meetings", rows_of(self.meetings, 4))
        for name in ("members", "kinds"):
            if len(getattr(self, name)) not in (0, n):
                raise ValueError(f"{name} of {len(getattr(self, name))} buffers given, expected {n}")
        if set(self.kinds) == {BufferKind.TENSOR}:
            object.__setattr__(self, "kinds", ())
        if self.capacity is not None and self.capacity < 0:
            raise ValueError(f"capacity is {self.capacity}, expected at least 0")
        self._check_rows()

    def _check_rows(self) -> None:
        """Raises what `Buffer` raises for the first bad row; checks what only the columns show."""
        bad = (self.size < 0) | (self.start < 0) | (self.end <= self.start) | (self.alignment < 1)
        bad |= (self.pin < -1) | ((self.pin >= 0) & (self.pin % np.maximum(self.alignment, 1) != 0))
        if bad.any():
            _ = self[int(np.argmax(bad))]
            raise ValueError(f"buffer {self.names[int(np.argmax(bad))]!r} is malformed")
        total = self.size.sum(dtype=np.float64) + self.alignment.sum(dtype=np.float64) + self.pin.max(initial=0)
        if float(total) > 2**62:
            raise ValueError("the sizes and the highest pin add up to more than 2^62 bytes")
        n = len(self)
        pairs = ("overlap", self.overlaps[:, :2]), ("conflict", self.conflicts), ("meeting", self.meetings[:, :2])
        for what, rows in (*pairs, ("group", self.groups[:, :1])):
            if rows.size and (rows.min() < 0 or rows.max() >= n):
                raise ValueError(f"a row of {what}s names a buffer outside 0..{n - 1}")
        below, above, shared = self.overlaps.T
        if self.overlaps.size and (shared.min() < 0 or (shared > self.size[below]).any()):
            raise ValueError("an overlap of negative bytes, or of more bytes than its lower buffer has")
        self._check_groups()
        self._check_contiguous()
        if len(self.overlaps) and len(self.conflicts):
            apart = {frozenset(row) for row in self.conflicts.tolist()}
            for a, b, count in zip(below.tolist(), above.tolist(), shared.tolist(), strict=True):
                if count and frozenset((a, b)) in apart:
                    raise ValueError(
                        f"buffers {self.names[a]!r} and {self.names[b]!r} may overlap and must not share bytes"
                    )

    def _check_groups(self) -> None:
        """Raises where a buffer is in two groups, or a distance makes no sense."""
        buffers, numbers, deltas = self.groups.T
        if self.groups.size and (numbers.min() < 0 or deltas.min() < 0 or deltas.max() > 2**60):
            raise ValueError("a row of groups needs a group and a delta of at least 0, of at most 2^60")
        ordered = np.sort(buffers)  # np.unique would import masked arrays
        if (twice := ordered[1:] == ordered[:-1]).any():
            raise ValueError(f"buffer {self.names[int(ordered[np.argmax(twice)])]!r} is in two groups")
        first, second, least, most = self.meetings.T
        if self.meetings.size and ((first == second).any() or (least > most).any() or np.abs(least).max() > 2**60):
            raise ValueError("a meeting needs two buffers and distances with least <= most")

    def _check_contiguous(self) -> None:
        """Raises where a contiguous list cannot be one."""
        taken = set(self.groups[:, 0].tolist()) if self.contiguous else set()
        for members in self.contiguous:
            if len(members) < 2:
                raise ValueError("a contiguous list needs at least two buffers")
            for b in members:
                if not 0 <= b < len(self):
                    raise ValueError(f"a contiguous list names a buffer outside 0..{len(self) - 1}")
                if b in taken:
                    raise ValueError(f"buffer {self.names[b]!r} is in two contiguous lists, or in one and in a group")
                if not self.size[b]:
                    raise ValueError(f"buffer {self.names[b]!r} of a contiguous list is empty")
                if self.alignment[b] != self.alignment[members[0]]:
                    first = members[0]
                    raise ValueError(
                        f"buffers {self.names[first]!r} and {self.names[b]!r} of one contiguous list have alignments"
                        f" {self.alignment[first]} and {self.alignment[b]}, expected one for the list"
                    )
                taken.add(b)

    @classmethod
    def of(cls, buffers: Iterable[Buffer], capacity: int | None = None, **facts: Any) -> Problem:
        """The problem of placing these buffers; `facts` are columns of facts, such as `overlaps`."""
        rows = tuple(buffers)
        return cls(
            names=tuple(b.name for b in rows),
            size=column(b.size for b in rows),
            start=column(b.start for b in rows),
            end=column(b.end for b in rows),
            alignment=column(b.alignment for b in rows),
            pin=column(-1 if b.pin is None else b.pin for b in rows),
            capacity=capacity,
            members=tuple(b.members for b in rows) if any(b.members for b in rows) else (),
            kinds=tuple(b.kind for b in rows),
            **facts,
        )

    def part(self, rows: IntArray) -> Problem:
        """The buffers `rows` as a problem of their own, with the overlaps and conflicts that are among them."""
        number = np.full(len(self), -1, dtype=np.int64)
        number[rows] = np.arange(len(rows))
        overlaps = np.column_stack((number[self.overlaps[:, :2]], self.overlaps[:, 2]))
        conflicts = number[self.conflicts]
        return Problem(
            tuple(self.names[i] for i in rows.tolist()),
            self.size[rows],
            self.start[rows],
            self.end[rows],
            self.alignment[rows],
            overlaps=overlaps[(overlaps[:, :2] >= 0).all(axis=1)],
            conflicts=conflicts[(conflicts >= 0).all(axis=1)],
        )

    @cached_property
    def core(self) -> _core.Problem:
        """The columns as the core reads them, without a copy."""
        facts = self.overlaps, self.conflicts, self.rigid, self.meetings
        return _core.Problem(self.size, self.start, self.end, self.alignment, self.pin, *facts)

    @cached_property
    def rigid(self) -> IntArray:
        """The rows of `groups`, and those of contiguous lists: a list is a group whose distances are known."""
        if not self.contiguous:
            return self.groups
        rows = self.groups.tolist()
        number = int(self.groups[:, 1].max(initial=-1)) + 1
        for members in self.contiguous:
            at, step = 0, int(self.alignment[members[0]])
            for b in members:
                rows.append([b, number, at])
                at += -(-int(self.size[b]) // step) * step
            number += 1
        return rows_of(rows, 3)

    def __getstate__(self) -> dict[str, object]:
        return {f.name: getattr(self, f.name) for f in fields(self)}

    def __repr__(self) -> str:
        capacity = "" if self.capacity is None else f", capacity {self.capacity}"
        return f"<Problem: {len(self)} buffers, {int(self.size.sum())} bytes together{capacity}>"

    def __len__(self) -> int:
        return len(self.names)

    def __getitem__(self, i: int) -> Buffer:
        pin = int(self.pin[i])
        return Buffer(
            self.names[i],
            int(self.size[i]),
            int(self.start[i]),
            int(self.end[i]),
            int(self.alignment[i]),
            None if pin == -1 else pin,
            self.members[i] if self.members else (),
            self.kinds[i] if self.kinds else BufferKind.TENSOR,
        )

    def __iter__(self) -> Iterator[Buffer]:
        return map(self.__getitem__, range(len(self)))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Problem) and same_fields(self, other)

    __hash__ = None  # type: ignore[assignment]

    @property
    def is_scratch(self) -> BoolArray:
        """For each buffer whether it is working memory of an operator."""
        kinds = self.kinds or (BufferKind.TENSOR,) * len(self)
        return np.array([kind is BufferKind.SCRATCH for kind in kinds], dtype=np.bool_)

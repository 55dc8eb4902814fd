"""What a comparison of two models finds out, as frozen records: settings, memory by part, peaks, operators."""

from __future__ import annotations

from enum import StrEnum

from modelplan.primitives.lazy_records import dataclass
from modelplan.primitives.showing_answers import Shown


class Change(StrEnum):
    """What became of an operator or of an input."""

    ADDED = "added"
    """Only the new side has it."""
    GONE = "gone"
    """Only the old side has it."""
    CHANGED = "changed"
    """Both have it, and it differs by itself."""
    VALUES = "values"
    """Both have it; only the values of its constants or the quantisation differ, which no memory depends on."""
    FOLLOWS = "follows"
    """Both have it, and it differs because what it reads does."""


@dataclass(frozen=True, slots=True)
class Bytes:
    """A figure before and after; None where that side has no such thing."""

    before: int | None
    after: int | None

    @property
    def delta(self) -> int:
        """The bytes after less the bytes before; a missing figure counts as 0."""
        return (self.after or 0) - (self.before or 0)


@dataclass(frozen=True, slots=True)
class Named:
    """A named figure of both sides."""

    name: str
    bytes: Bytes


@dataclass(frozen=True, slots=True)
class Setting:
    """A choice in which the sides differ, such as the kernels."""

    name: str
    before: str
    after: str


@dataclass(frozen=True, slots=True)
class OpChange:
    """An operator or an input of the graph that differs.

    `before` and `after` are its numbers on both sides, -1 where a side does not have it; `label` is how messages call
    it on the new side, or on the old one where it is gone. `details` say what differs, each in one line.

    Args:
        outputs: bytes of the tensors that it writes.
        scratch: working memory while it runs.
        kept: bytes that the runtime keeps for it beside the planned ones, where it is known to.
        weights: bytes of the constants that it is the first to read.
        in_peak: what of the bytes alive at the peak it made: tensors and scratch, padded. Summed over all operators and
            inputs this is the peak.
        live: all bytes alive while it runs.
    """

    change: Change
    before: int
    after: int
    label: str
    details: tuple[str, ...]
    outputs: Bytes
    scratch: Bytes
    kept: Bytes
    weights: Bytes
    in_peak: Bytes
    live: Bytes

    @property
    def effect(self) -> int:
        """By how many bytes this operator raises the peak and what the runtime keeps for operators."""
        return self.in_peak.delta + self.kept.delta

    @property
    def line(self) -> str:
        """What became of it in one line.

        >>> none = Bytes(None, None)
        >>> OpChange(Change.GONE, 3, -1, "op 3 PAD", (), none, none, none, none, none, none).line
        'op 3 PAD: gone'
        """
        word = f"{self.change}" if self.change in (Change.ADDED, Change.GONE) else ""
        return f"{self.label}: {'; '.join(filter(None, (word, *self.details)))}"


@dataclass(frozen=True, slots=True)
class PeakStep:
    """The step at which most is alive on one side: its operator, the bytes alive, where the plan ends."""

    step: int
    operator: str
    nbytes: int
    height: int


@dataclass(frozen=True, slots=True)
class PeakPart:
    """A buffer that is alive at the peak of one side or of both: its tensors on the newest side that has it."""

    tensors: tuple[str, ...]
    made_by: str
    bytes: Bytes


@dataclass(frozen=True, slots=True)
class Column:
    """One operator in the order of both sides: its step on each, -1 where it does not run at this place.

    `change` says what became of it, None where it is the same; an operator that runs at another place has a column at
    either of them.
    """

    old: int
    new: int
    label: str
    change: Change | None
    moved: bool = False


@dataclass(frozen=True, slots=True, repr=False)
class Difference(Shown):
    """Two sides compared.

    Args:
        old: what the sides are called.
        new: likewise.
        basis: by which rules each side is sized.
        whole: whether the parts are all that the runtime needs, not only the planned activations.
        counted: what `arena` counts: "arena", "memory" of sessions, or "planned activations".
        settings: choices in which the sides differ.
        arena: the memory that there must be; None for a side that its runtime would not run.
        by_itself: of two sessions, what the runtime's own planner needs for the tensors alone; else None.
        parts: what adds up to the arena.
        flash: bytes of constants, and of the file.
        heads: the planned part of what each side needs.
        peaks: the peak of each side.
        peak_parts: what is alive at the peaks, in order of effect.
        changes: operators and inputs that differ, in order of effect.
        moved: how many operators stand elsewhere in the order, not counting those added or gone.
        refusals: why the runtime would not run a side.
        capacities: the memory that there is for each side, where known.
        live: the bytes alive at each step, for each side.
        columns: the steps of both sides in one order.
    """

    old: str
    new: str
    basis: tuple[str, str]
    whole: bool
    counted: str
    settings: tuple[Setting, ...]
    arena: Bytes
    by_itself: Bytes | None
    parts: tuple[Named, ...]
    flash: tuple[Named, ...]
    heads: tuple[int | None, int | None]
    peaks: tuple[PeakStep, PeakStep]
    peak_parts: tuple[PeakPart, ...]
    changes: tuple[OpChange, ...]
    moved: int
    refusals: tuple[tuple[str, ...], tuple[str, ...]]
    capacities: tuple[int | None, int | None]
    live: tuple[tuple[int, ...], tuple[int, ...]]
    columns: tuple[Column, ...]

    @property
    def empty(self) -> bool:
        """Whether both sides are equal apart from names."""
        same = self.arena.delta == 0 and all(part.bytes.before == part.bytes.after for part in self.parts)
        return same and not (self.settings or self.changes or self.moved or self.refusals[0] != self.refusals[1])

    def of(self, change: Change) -> tuple[OpChange, ...]:
        """The changed operators and inputs with this kind of change."""
        return tuple(operator for operator in self.changes if operator.change is change)

"""What a model needs for each of several extents that its file leaves open."""

from __future__ import annotations

from dataclasses import dataclass

from modelplan.model import Requirement


@dataclass(frozen=True, slots=True)
class ExtentRow:
    """What the model needs where the symbols of the table have these extents."""

    extents: tuple[int, ...]
    requirement: Requirement


@dataclass(frozen=True, slots=True)
class ExtentTable:
    """The rows of a model file, each for other extents of `symbols`; `capacity` are the bytes there are, if known."""

    path: str
    symbols: tuple[str, ...]
    rows: tuple[ExtentRow, ...]
    capacity: int | None

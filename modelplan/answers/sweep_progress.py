"""How far a sweep is."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class SweepProgress:
    """How many runs ended in which way, of how many that were missing, beside how many that were there already."""

    counts: Mapping[str, int]
    missing: int
    there: int
    seconds: float

    @property
    def ended(self) -> int:
        """The runs that have ended."""
        return sum(self.counts.values())

    @property
    def refused(self) -> int:
        """The runs that ended without an answer."""
        return self.ended - self.counts.get("done", 0)

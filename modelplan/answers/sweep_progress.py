"""How far a sweep is."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class SweepProgress:
    """Counts of a sweep's runs: missing at the start, ended by status, and already there before."""

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

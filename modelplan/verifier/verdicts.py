"""What a level of proof found, and how it says that it cannot run."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Outcome = Literal["ok", "skipped", "broken"]


@dataclass(frozen=True, slots=True)
class Verdict:
    """What one level found: "ok" or "skipped" with details, or "broken" with the sentence."""

    level: str
    outcome: Outcome
    details: str


class Skipped(Exception):  # noqa: N818
    """A level cannot run here; says why and what would change that."""

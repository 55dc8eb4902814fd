"""The verdict of a level of proof, and the exception of a level that cannot run."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Outcome = Literal["ok", "skipped", "unproved", "broken"]


@dataclass(frozen=True, slots=True)
class Verdict:
    """The result of one level: "ok" with details, "skipped" or "unproved" with the reason, "broken" with the fault."""

    level: str
    outcome: Outcome
    details: str


class Skipped(Exception):  # noqa: N818
    """A level cannot run here; the message says why and what to install or give."""

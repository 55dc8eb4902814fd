"""The verdict of a level of proof, and the exception of a level that cannot run."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Outcome = Literal["ok", "skipped", "broken"]


@dataclass(frozen=True, slots=True)
class Verdict:
    """The result of one level: "ok" or "skipped" with details, or "broken" with the fault in one sentence."""

    level: str
    outcome: Outcome
    details: str


class Skipped(Exception):  # noqa: N818
    """A level cannot run here; the message says why and what to install or give."""

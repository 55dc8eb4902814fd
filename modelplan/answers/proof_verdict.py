"""The verdict of one level of proof."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, slots=True)
class Verdict:
    """The result of one level: "ok" with details, "skipped" or "unproved" with the reason, "broken" with the fault."""

    level: str
    outcome: Literal["ok", "skipped", "unproved", "broken"]
    details: str

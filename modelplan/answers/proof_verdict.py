"""The verdict of one level of proof."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, slots=True)
class Verdict:
    """The result of one level: "ok" with details, "skipped" or "unproved" with the reason, "broken" with the fault.

    `executed` says what a level ran and on which kernels, `planned` whether it ran with the plan that is proved.
    """

    level: str
    outcome: Literal["ok", "skipped", "unproved", "broken"]
    details: str
    executed: str = ""
    planned: bool = False

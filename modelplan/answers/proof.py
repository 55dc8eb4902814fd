"""What `verify` finds out: the verdict of each level of proof."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from modelplan.answers.moving_layout import MovingPlan
    from modelplan.answers.region_plan import RegionPlan


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


@dataclass(frozen=True, slots=True)
class Proof:
    """The verdict of each level that was tried, and why the file is refused; `fault` is empty where it is proved.

    `kernels` is the library that a plan for TFLM has to be right with, empty where the plan is for another runtime.
    `against` is the rewritten file where two were compared, `head` the bytes that TFLM plans by the plan in a file, and
    `layout` what was read from a layout in several memories.
    """

    path: str
    verdicts: tuple[Verdict, ...]
    fault: str = ""
    against: str = ""
    head: int | None = None
    layout: RegionPlan | MovingPlan | None = None
    kernels: str = ""

"""Whether a model fits each of several targets: what their kernels need, and what would make it fit."""

from __future__ import annotations

from typing import TYPE_CHECKING

from modelplan.model import Requirement
from modelplan.primitives.lazy_records import dataclass
from modelplan.primitives.showing_answers import Shown

if TYPE_CHECKING:
    from modelplan.targets.choosing import Chosen


@dataclass(frozen=True, slots=True)
class LeastChange:
    """A change of the file with what it needs then: its name, and bytes of memory."""

    name: str
    arena: int


@dataclass(frozen=True, slots=True)
class TargetVerdict:
    """A target and what a model needs there with its kernels; `file_bytes` are what the model takes of its flash.

    `change` is the least change of the file that fits there, `plain_c` the memory of the model as C without an
    interpreter, each None where it was not asked for, or where there is none.
    """

    target: Chosen
    requirement: Requirement
    file_bytes: int
    change: LeastChange | None = None
    plain_c: int | None = None

    @property
    def headroom(self) -> int | None:
        """Bytes that are left, below 0 where some are missing; None where the memory is not known."""
        budget = self.target.known_budget
        return None if budget is None or self.requirement.refusals else budget - self.requirement.arena

    @property
    def fits(self) -> bool | None:
        """Whether the arena fits, and the file its flash; None where it is not known."""
        if self.requirement.refusals or (self.flash and self.file_bytes > self.flash):
            return False
        budget = self.target.known_budget
        return None if budget is None or self.requirement.guessed else self.requirement.fits(budget)

    @property
    def flash(self) -> int | None:
        """The bytes of flash of the target; None where no source states them."""
        return sum(r.size for r in self.target.device.regions if r.kind == "nvm") or None


@dataclass(frozen=True, slots=True, repr=False)
class TargetVerdicts(Shown):
    """The verdict of each target about one model; those where it fits first, the smallest memory before."""

    model: str
    runtime: str
    rows: tuple[TargetVerdict, ...]
    tried: bool = False

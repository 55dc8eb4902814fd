"""What `check` asks of models and what it finds out, as frozen records."""

from __future__ import annotations

from fractions import Fraction
from typing import Literal

from modelplan.answers.analysis import Search
from modelplan.answers.explanation import Suggestion
from modelplan.model import Alternative, Requirement, SessionNeed
from modelplan.primitives.lazy_records import dataclass
from modelplan.primitives.showing_answers import Shown

#: What a limit is about: `growth` is that of the arena against the baseline.
Quantity = Literal["arena", "head", "flash", "growth"]


@dataclass(frozen=True, slots=True)
class Growth:
    """By how much an arena may grow: a number of bytes, or a share of what it was; `text` is as somebody wrote it."""

    text: str
    nbytes: int = 0
    share: Fraction = Fraction(0)

    def allowed(self, before: int) -> int:
        """The bytes by which an arena of `before` bytes may grow.

        >>> Growth("5%", share=Fraction(5, 100)).allowed(1030)
        51
        """
        return self.nbytes + int(before * self.share)


@dataclass(frozen=True, slots=True)
class Limits:
    """The most bytes that a model may need: of the whole arena, of its planned part, of the model file in flash."""

    arena: int | None = None
    head: int | None = None
    flash: int | None = None
    growth: Growth | None = None


@dataclass(frozen=True, slots=True)
class CheckSetting:
    """What a model is sized for; `dims` and `shapes` bind what the file leaves open."""

    runtime: str
    abi: str
    kernels: str
    dims: tuple[str, ...] = ()
    shapes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Check:
    """One model with the limits that it has to keep.

    `model` is the path to read; `key` is the path by which a baseline knows the model. `target` is the device as it
    was named, empty where there is none.
    """

    name: str
    model: str
    key: str
    limits: Limits
    target: str = ""


@dataclass(frozen=True, slots=True)
class Figures:
    """What a model needs, in bytes: the whole arena, its planned part, the model file in flash."""

    arena: int
    head: int
    flash: int


@dataclass(frozen=True, slots=True)
class Earlier:
    """What a model needed in the baseline called `source`; without figures `reason` says why there are none."""

    source: str
    figures: Figures | None = None
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Judgement:
    """One limit: what was measured, what is allowed, and whether that is kept.

    Without a size it could not be judged and counts as kept: `reason` says why.
    """

    quantity: Quantity
    size: int | None
    limit: int | None
    reason: str = ""

    @property
    def passed(self) -> bool:
        """Whether the limit is kept, or could not be judged."""
        return self.size is None or self.limit is None or self.size <= self.limit

    @property
    def excess(self) -> int:
        """The bytes above the limit; negative where some are left."""
        return 0 if self.size is None or self.limit is None else self.size - self.limit


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a check found out.

    `needed` is None for a model that could not be sized. `problem` says why, or why it is not known whether a model
    that was sized fits; `exit_code` is that of the problem. A model that its runtime refuses has a requirement with
    refusals. `others` are what else was planned for a model that needs too much, None where there was no time to plan
    it; `ways` are changes that fit, the least first, planned where the arena is too small, and `searches` may find
    lesser changes that fit, which takes longer. `causes` say in one line each what made the model need more or less
    than in the baseline. `build` are the options that named device, kernels and ABI.
    """

    check: Check
    needed: Requirement | None = None
    flash: int = 0
    setting: CheckSetting | None = None
    problem: str = ""
    exit_code: int = 0
    judgements: tuple[Judgement, ...] = ()
    others: tuple[Alternative, ...] | None = ()
    earlier: Earlier | None = None
    causes: tuple[str, ...] = ()
    ways: tuple[Suggestion, ...] = ()
    searches: tuple[Search, ...] = ()
    build: tuple[str, ...] = ()

    @property
    def refusals(self) -> tuple[str, ...]:
        """Why the model could not be judged; empty where it was."""
        return self.needed.refusals if self.needed and not self.problem else (self.problem,)

    @property
    def passed(self) -> bool:
        """Whether the model runs and keeps every limit."""
        return not self.refusals and all(judgement.passed for judgement in self.judgements)

    @property
    def figures(self) -> Figures | None:
        """What the model needs; None where there is no figure."""
        if self.needed is None or self.needed.refusals:
            return None
        return Figures(self.needed.arena, self.needed.head, self.flash)

    @property
    def change(self) -> int | None:
        """The bytes by which the arena grew since the baseline; None where one of the two is not known."""
        now, then = self.figures, self.earlier.figures if self.earlier else None
        return None if now is None or then is None else now.arena - then.arena

    @property
    def remedies(self) -> list[Alternative]:
        """The alternatives that run and keep every limit."""
        return [alternative for alternative in self.others or () if self._keeps(alternative)]

    @property
    def fitting_session(self) -> SessionNeed | None:
        """The session with other settings that keeps the limit of the arena with the fewest bytes; None for none."""
        session, limit = self.needed.session if self.needed else None, self.check.limits.arena
        return None if session is None or limit is None else session.fitting(limit)

    def _keeps(self, alternative: Alternative) -> bool:
        runs = alternative.requirement is not None and not alternative.requirement.refusals
        return runs and all(missing <= 0 for _, missing in self.shortfalls(alternative))

    def shortfalls(self, alternative: Alternative) -> list[tuple[Quantity, int]]:
        """By how many bytes another form of the model is above each limit; nothing for one that there is not."""
        if alternative.requirement is None:
            return []
        arena, head = alternative.requirement.arena, alternative.requirement.head
        sizes: dict[Quantity, int] = {"arena": arena, "head": head, "flash": alternative.file_bytes}
        if self.earlier and self.earlier.figures:
            sizes["growth"] = arena - self.earlier.figures.arena
        return [(j.quantity, sizes[j.quantity] - j.limit) for j in self.judgements if j.limit is not None]


@dataclass(frozen=True, slots=True, repr=False)
class Findings(Shown):
    """The outcomes of a run of `check`.

    `source` is the file with the budgets, empty for those of the command line; `folder` is the working directory,
    relative to the root of the repository where that is known.
    """

    source: str
    outcomes: tuple[Outcome, ...]
    folder: str = ""

    @property
    def failed(self) -> list[Outcome]:
        """The checks that are not passed."""
        return [outcome for outcome in self.outcomes if not outcome.passed]

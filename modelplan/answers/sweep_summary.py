"""How far a sweep is, and what its rows say: which target fits which model, what settings cost, what became worse."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from modelplan.primitives.lazy_records import dataclass

#: As it stands, only with the plan of a setting, not at all, not known, or the runtime would not run it.
Verdict = Literal["fits", "with a plan", "no", "unknown", "refused"]


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


@dataclass(frozen=True, slots=True)
class Fit:
    """The best that any setting gives for a model on a target; `arena` is the least as the file stands."""

    model: str
    target: str
    verdict: Verdict
    arena: int | None = None
    setting: str = ""


@dataclass(frozen=True, slots=True)
class SettingCost:
    """What one setting needs and takes over the models that every setting has an answer for.

    `height` is the sum of planned bytes, `seconds` that of processor time, `answered` and `asked` count its rows.
    """

    name: str
    allocator: str
    height: int
    seconds: float
    answered: int
    asked: int
    unbeaten: bool = False


@dataclass(frozen=True, slots=True)
class Settings:
    """The settings side by side, lowest first; `bound` is what none of them goes below, `plans` how many each made."""

    costs: tuple[SettingCost, ...]
    bound: int
    runtime_height: int
    plans: int


@dataclass(frozen=True, slots=True)
class SweepChange:
    """A run whose row says more or less than in an earlier result."""

    run: str
    what: str
    before: str
    after: str


@dataclass(frozen=True, slots=True)
class Changes:
    """Two results side by side; runs are joined by what names them."""

    worse: tuple[SweepChange, ...]
    better: int
    same: int
    only_old: int
    only_new: int


@dataclass(frozen=True, slots=True)
class SweepFindings:
    """All that a report shows; `targets` are names with bytes, `ended` counts rows by status, `errors` by message."""

    title: str
    rows: int
    ended: tuple[tuple[str, int], ...]
    errors: tuple[tuple[str, int], ...]
    models: tuple[str, ...]
    targets: tuple[tuple[str, int], ...]
    fits: tuple[Fit, ...]
    settings: Settings
    changes: Changes | None = None

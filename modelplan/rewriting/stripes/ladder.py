"""The ladder of every format: what a rewrite is asked for, and how far it climbs from rung to rung."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Protocol, TypeVar

from modelplan.primitives.lazy_records import dataclass
from modelplan.primitives.reporting import Report
from modelplan.rewriting.stripes.search_effort import SearchEffort


@dataclass(frozen=True, slots=True, kw_only=True)
class RewriteGoal:
    """What is asked for: a `budget` in bytes, None for the least, and what it may cost.

    `max_macs` is a share of the model's multiply-accumulates that may be added; `without` names rungs to skip. `effort`
    is what searches do at most.
    """

    budget: int | None = None
    max_macs: float = 0.0
    without: frozenset[str] = frozenset()
    effort: SearchEffort = SearchEffort()


class _Rung(Protocol):
    @property
    def name(self) -> str: ...


RungT = TypeVar("RungT", bound=_Rung)


def never_interrupt() -> None:
    """Never ends a search; others raise to end it."""


def climb_rungs(
    rungs: Iterable[RungT],
    tried: list[RungT],
    goal: RewriteGoal,
    fits: Callable[[RungT], bool],
    need: Callable[[RungT], int],
    report: Report,
) -> None:
    """Adds one rung after the other to `tried`, up to the first that fits a budget; with no budget all of them.

    Each is reported when it is reached, in a line that stays, with the bytes that it needs less than the first.
    """
    for rung in rungs:
        tried.append(rung)
        less = need(tried[0]) - need(rung)
        saving = f", {less:,} less" if less > 0 else f", {-less:,} more" if less else ""
        report(f"{rung.name}: {need(rung):,} bytes{saving}\n")
        if goal.budget is not None and fits(rung):
            return


def chosen_rung(
    tried: Sequence[RungT], goal: RewriteGoal, fits: Callable[[RungT], bool], need: Callable[[RungT], Any]
) -> RungT | None:
    """The first rung that fits a budget, with no budget the one of least need; None where none fits."""
    fitting = [rung for rung in tried if fits(rung)]
    return min(fitting, key=need, default=None) if goal.budget is None else next(iter(fitting), None)

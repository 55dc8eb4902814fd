"""The ladder of every format: what a rewrite is asked for, and how far it climbs from rung to rung."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar


@dataclass(frozen=True, slots=True, kw_only=True)
class RewriteGoal:
    """What is asked for: a `budget` in bytes, None for the least, and what it may cost.

    `max_macs` is a share of the model's multiply-accumulates that may be added; `without` names rungs to skip.
    """

    budget: int | None = None
    max_macs: float = 0.0
    without: frozenset[str] = frozenset()


RungT = TypeVar("RungT")


def never_interrupt() -> None:
    """Never ends a search; others raise to end it."""


def climb_rungs(rungs: Iterable[RungT], tried: list[RungT], goal: RewriteGoal, fits: Callable[[RungT], bool]) -> None:
    """Adds one rung after the other to `tried`, up to the first that fits a budget; with no budget all of them."""
    for rung in rungs:
        tried.append(rung)
        if goal.budget is not None and fits(rung):
            return


def chosen_rung(
    tried: Sequence[RungT], goal: RewriteGoal, fits: Callable[[RungT], bool], need: Callable[[RungT], Any]
) -> RungT | None:
    """The first rung that fits a budget, with no budget the one of least need; None where none fits."""
    fitting = [rung for rung in tried if fits(rung)]
    return min(fitting, key=need, default=None) if goal.budget is None else next(iter(fitting), None)

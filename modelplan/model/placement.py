"""An answer to a placement problem, and how long a search for one may run."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal, get_args

from modelplan.primitives.lazy_records import dataclass
from modelplan.primitives.number_types import IntArray, column, same_fields

#: Why a search came back; `Placement` says what each word means.
Ended = Literal["complete", "optimal", "fits", "infeasible", "budget", "deadline", "cancelled", "memory"]


@dataclass(frozen=True, eq=False)
class Placement:
    """An offset for each buffer of a problem, in the problem's order.

    `lower_bound` is a claim with a proof behind it: no placement is lower. `steps` is the work done, in a unit of the
    allocator's own. `ended` says why the allocator came back:

    - "complete": the method ran through; it claims no more than its bound.
    - "optimal": the height meets the bound, so no placement is lower.
    - "fits": the height meets what was asked for (the budget's `enough`), and lower ones were not looked for.
    - "infeasible": it is proved that nothing fits in what was asked for; the offsets are those of a higher placement.
    - "budget": out of steps.
    - "deadline": out of seconds.
    - "cancelled": Ctrl-C; the offsets are the best found until then.
    - "memory": out of memory for what it has to remember (the search for orders alone ends so).

    `found_by` names another allocator whose offsets these are, because a search had no lower ones of its own;
    `own_height` is then the height of its own best placement, None when it had none.
    """

    offsets: IntArray
    lower_bound: int = 0
    ended: Ended = "complete"
    steps: int = 0
    found_by: str = ""
    own_height: int | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "offsets", column(self.offsets))
        if self.ended not in get_args(Ended):
            raise ValueError(f"a placement that ended {self.ended!r}, expected one of {', '.join(get_args(Ended))}")

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Placement) and same_fields(self, other)

    __hash__ = None  # type: ignore[assignment]


@dataclass(frozen=True, slots=True)
class Progress:
    """What a running search reports: best height and bound so far, in bytes, and the steps it took."""

    height: int
    lower_bound: int
    steps: int


@dataclass(frozen=True, slots=True)
class Budget:
    """How long a search may run. Steps make it repeatable; seconds are an extra stop.

    `enough` is a height in bytes that ends the search: who asks whether a capacity suffices need not wait for the
    least. `progress`, when given, is called now and then with the best so far. `cancelled`, when given, is asked a
    hundred times a second by the allocator `modelplan`; where it says True the search ends and keeps its best.
    """

    steps: int | None = None
    seconds: float | None = None
    seed: int = 0
    threads: int = 1
    enough: int | None = None
    progress: Callable[[Progress], None] | None = None
    cancelled: Callable[[], bool] | None = None

    def __post_init__(self) -> None:
        if (self.steps is not None and self.steps < 0) or (self.seconds is not None and not self.seconds >= 0):
            raise ValueError("a budget cannot be negative, nor NaN")
        if self.threads < 1:
            raise ValueError(f"{self.threads} threads, expected at least 1")

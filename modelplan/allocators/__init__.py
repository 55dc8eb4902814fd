"""The table of allocators, and `place`, the only door to them."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace

from modelplan import bounds, referee
from modelplan.allocators import greedy
from modelplan.errors import RequestError
from modelplan.types import Budget, Placement, Problem

Run = Callable[[Problem, Budget], Placement]


@dataclass(frozen=True, slots=True)
class Allocator:
    """One row of the table.

    `run` returns offsets; it cannot report its own height. `honours` names the demands beyond size and lifetime
    that it respects: "alignment", "pins", "overlaps", "conflicts"; a problem with another demand is refused.
    """

    name: str
    run: Run
    source: str
    kind: str
    guarantees: str
    cost: str
    honours: frozenset[str] = frozenset({"alignment", "pins", "overlaps", "conflicts"})


def _best(problem: Problem, budget: Budget) -> Placement:
    """The lowest answer of all the allocators that can take the problem; of equal ones the first."""
    answers = [a.run(problem, budget) for a in ALLOCATORS.values() if a.name != "best" and not _refusal(a, problem)]
    return min(answers, key=lambda answer: bounds.height(problem, answer))


ALLOCATORS: dict[str, Allocator] = {
    a.name: a
    for a in (
        Allocator(
            "best",
            _best,
            "modelplan",
            "portfolio",
            "never higher than any other row",
            "the sum of the others",
        ),
        Allocator(
            "naive",
            greedy.naive,
            "the baseline: no reuse",
            "baseline",
            "none",
            "O(n)",
            frozenset({"alignment", "overlaps", "conflicts"}),
        ),
        Allocator(
            "tflite-greedy-by-size",
            greedy.tflite_greedy_by_size,
            "Pisarchyk and Lee 2020, arXiv 2001.03288; LiteRT GPU delegate, offsets",
            "greedy",
            "none",
            "O(n log n + n k log k)",
        ),
        Allocator(
            "tflm-greedy",
            greedy.tflm_greedy,
            "tflite-micro, GreedyMemoryPlanner",
            "greedy",
            "none",
            "O(n log n + n k log k)",
        ),
        Allocator(
            "first-fit",
            greedy.first_fit,
            "first fit by start",
            "greedy",
            "none",
            "O(n log n + n k log k)",
        ),
    )
}

DEFAULT = "best"


def allocator(name: str) -> Allocator:
    """The row called `name`.

    Raises:
        RequestError: there is none; the message lists the names.
    """
    if name not in ALLOCATORS:
        raise RequestError(f"no allocator {name!r}; there are: {', '.join(ALLOCATORS)}")
    return ALLOCATORS[name]


def place(problem: Problem, name: str = DEFAULT, budget: Budget | None = None) -> Placement:
    """A placement of `problem` by the allocator `name`, checked by the referee, its bound raised to the load bound.

    A capacity is a question, not a demand: whether the answer fits is `height(problem, placement) <= capacity`.

    Raises:
        RequestError: unknown name, or the allocator cannot honour a demand of the problem.
        BrokenPlanError: the allocator answered wrongly.
    """
    row = allocator(name)
    if reason := _refusal(row, problem):
        raise RequestError(reason)
    answer = row.run(problem, budget or Budget())
    bound = max(answer.lower_bound, bounds.load_bound(problem))
    referee.check(replace(problem, capacity=None), answer)
    return replace(answer, lower_bound=bound)


def _demands(problem: Problem) -> Iterable[str]:
    if (problem.alignment > 1).any():
        yield "alignment"
    if (problem.pin >= 0).any():
        yield "pins"
    if len(problem.overlaps):
        yield "overlaps"
    if len(problem.conflicts):
        yield "conflicts"


def _refusal(row: Allocator, problem: Problem) -> str:
    """Why `row` cannot take `problem`, or nothing."""
    unmet = [demand for demand in _demands(problem) if demand not in row.honours]
    return f"allocator {row.name!r} does not honour {' and '.join(unmet)}" if unmet else ""

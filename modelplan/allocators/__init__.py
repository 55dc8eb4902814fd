"""The table of allocators, and `place`, the only door to them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from modelplan import bounds, referee
from modelplan.allocators import (
    bfc,
    classic,
    cpsat,
    executorch,
    glow,
    gpu_delegate,
    idealloc,
    iree,
    micro,
    minimalloc,
    onnx2c,
    onnxruntime,
    openvino,
    solver,
    somas,
    telamalloc,
    tokens,
    triton,
    usmp,
    vela,
    xla,
)
from modelplan.allocators.table import Allocator, Demand
from modelplan.errors import RequestError
from modelplan.types import Budget, Placement, Problem


def _best(problem: Problem, budget: Budget) -> Placement:
    """The lowest answer of the fast allocators that can take the problem, then of the solver, with its bound.

    Each runs only while no answer has reached the load bound; of equal answers the first counts.
    """
    bound, answers = bounds.load_bound(problem), []
    for row in (*(a for a in ALLOCATORS.values() if a.fast), *solver.ROWS):
        if not _refusal(row, problem):
            answers.append(row.run(problem, budget))
            if bounds.height(problem, answers[-1]) <= bound:
                break
    lowest = min(answers, key=lambda answer: bounds.height(problem, answer))
    last = answers[-1]
    return replace(lowest, lower_bound=last.lower_bound, ended=last.ended, steps=last.steps)


BEST = Allocator(
    "best",
    _best,
    "modelplan",
    "portfolio",
    "never higher than any row it runs",
    "the sum of the fast rows and of modelplan",
)

#: One tuple of rows for each system; a repaired variant follows its faithful row.
ALLOCATORS: dict[str, Allocator] = {
    variant.name: variant
    for rows in (
        (BEST,),
        solver.ROWS,
        gpu_delegate.ROWS,
        micro.ROWS,
        bfc.ROWS,
        usmp.ROWS,
        tokens.ROWS,
        somas.ROWS,
        triton.ROWS,
        xla.ROWS,
        telamalloc.ROWS,
        minimalloc.ROWS,
        idealloc.ROWS,
        cpsat.ROWS,
        onnxruntime.ROWS,
        executorch.ROWS,
        vela.ROWS,
        iree.ROWS,
        openvino.ROWS,
        glow.ROWS,
        onnx2c.ROWS,
        classic.ROWS,
    )
    for row in rows
    for variant in row.variants
}

DEFAULT = "modelplan"


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


def _demands(problem: Problem) -> Iterable[Demand]:
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
    if unmet:
        return f"allocator {row.name!r} does not honour {' and '.join(unmet)}"
    if row.one_alignment and len(set(problem.alignment[problem.size > 0].tolist())) > 1:
        return f"allocator {row.name!r} needs one alignment for all buffers: {row.quirks}"
    return ""

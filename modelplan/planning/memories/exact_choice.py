"""The choice of regions as a mixed-integer program, solved by HiGHS (scipy, extra `memories`)."""

from typing import Any

import numpy as np

from modelplan.model import IntArray
from modelplan.planning.memories.choice_tables import FloatArray, Tables
from modelplan.primitives import highs
from modelplan.primitives.lazy_records import dataclass

#: Entries of the matrix beyond which no program is made by default: HiGHS would take minutes to begin.
MOST_ENTRIES = 2_000_000
#: HiGHS holds constraints and bounds to so much of the cost.
_TOLERANCE = 1e-7
#: Iterations of the simplex method, some ten times those that 10,000 buffers need.
_ITERATIONS = 500_000

#: Buffers with their regions that cannot all be chosen: no placement of them fits.
Cut = tuple[tuple[int, int], ...]


@dataclass(frozen=True, eq=False)
class ExactChoice:
    """What the program answered: a region for each buffer or None, a bound in seconds, whether it ran through."""

    choice: IntArray | None
    bound: float
    optimal: bool
    infeasible: bool = False


def entries(tables: Tables) -> int:
    """How many entries the matrix would have."""
    lives = int((tables.end - tables.start).sum())
    return lives * len(tables.room) + tables.cost.size


def exact_choice(
    tables: Tables,
    cuts: tuple[Cut, ...] = (),
    *,
    seconds: float | None = None,
    nodes: int | None = None,
    taken: IntArray | None = None,
) -> ExactChoice:
    """The cheapest choice, or the best within limits.

    Args:
        tables: costs and room.
        cuts: choices that are excluded.
        seconds: a limit of HiGHS; None: none.
        nodes: a limit of its search tree, which is the same on every machine.
        taken: units that others use, a row for each region, a column for each step.

    Raises:
        RequestError: SciPy is missing or too old.
    """
    if not len(tables.cost):
        return ExactChoice(np.zeros(0, dtype=np.int64), 0.0, optimal=True)
    optimize, matrix, lower, upper, allowed = _program(tables, cuts, 0 if taken is None else taken)
    scale = tables.scale
    cost = np.where(np.isfinite(tables.cost), tables.cost, 0.0).ravel() / scale
    limits = {"time_limit": seconds, "node_limit": nodes, "mip_rel_gap": 0.0}
    with highs.silent():
        answer = optimize.milp(
            cost,
            integrality=np.ones(cost.size),
            bounds=optimize.Bounds(0, allowed),
            constraints=optimize.LinearConstraint(matrix, lower, upper),
            options={key: value for key, value in limits.items() if value is not None},
        )
    if answer.status == highs.INFEASIBLE:
        return ExactChoice(None, float("inf"), optimal=True, infeasible=True)
    choice = None if answer.x is None else answer.x.reshape(tables.cost.shape).argmax(axis=1).astype(np.int64)
    dual = answer.mip_dual_bound if answer.mip_dual_bound is not None else 0.0
    bound = max(0.0, float(dual) * scale - _TOLERANCE * scale) if np.isfinite(dual) else 0.0
    if choice is not None and not (tables.fits(choice) and np.isfinite(tables.cost_of(choice))):
        choice = None
    return ExactChoice(choice, bound, answer.status == 0)


@dataclass(frozen=True, eq=False)
class LinearChoice:
    """What the program answers when buffers may be divided among regions.

    `share` is the part of each buffer in each region, `prices` what a unit of each region is worth at each step in
    seconds, `bound` the cost: no choice is cheaper. It is infinite where not even divided buffers fit.
    """

    share: FloatArray
    prices: FloatArray
    bound: float


def linear_choice(tables: Tables) -> LinearChoice | None:
    """The linear relaxation, which takes about two seconds for 10,000 buffers; None where HiGHS does not solve it.

    Raises:
        RequestError: SciPy is missing or too old.
    """
    optimize, matrix, right, upper = _balances(tables)
    count, scale = tables.cost.size, tables.scale
    shape = len(tables.room), tables.steps
    cost = np.zeros(len(upper))
    cost[:count] = np.where(np.isfinite(tables.cost), tables.cost, 0.0).ravel() / scale
    bounds = np.stack([np.zeros(len(upper)), upper], axis=1)
    answer = optimize.linprog(
        cost, A_eq=matrix, b_eq=right, bounds=bounds, method="highs-ds", options={"maxiter": _ITERATIONS}
    )
    if answer.status == highs.INFEASIBLE:
        return LinearChoice(np.zeros(tables.cost.shape), np.zeros(shape), float("inf"))
    if answer.status != 0:
        return None
    worth = -(answer.upper.marginals + answer.lower.marginals)[count:].reshape(shape)
    prices = np.maximum(worth * scale / np.maximum(tables.room, 1)[:, None], 0.0)
    bound = max(0.0, float(answer.fun) * scale - _TOLERANCE * scale)
    return LinearChoice(answer.x[:count].reshape(tables.cost.shape), prices, bound)


def _balances(tables: Tables) -> tuple[Any, Any, FloatArray, FloatArray]:
    """scipy.optimize, the matrix and right side of equations, and the upper bounds of columns.

    Behind the columns of `_program` there is one for each region and step: the share of its room that is in use. The
    rows: each buffer is somewhere; what is in use at a step is what was before, and what begins, less what ends. So a
    buffer has two entries for each region, however long it lives.
    """
    optimize, sparse = highs.modules()
    count, regions = tables.cost.shape
    steps, own = tables.steps, np.arange(count)
    rows, columns, values = [np.repeat(own, regions)], [np.arange(count * regions)], [np.ones(count * regions)]
    for r in range(regions):
        first, use = count + r * steps, count * regions + r * steps + np.arange(steps)
        weight = tables.weight[:, r] / max(int(tables.room[r]), 1)
        ends = tables.end < steps
        rows += [first + np.arange(steps), first + np.arange(1, steps), first + tables.start, first + tables.end[ends]]
        columns += [use, use[:-1], own * regions + r, own[ends] * regions + r]
        values += [np.ones(steps), -np.ones(max(steps - 1, 0)), -weight, weight[ends]]
    shape = count + regions * steps, (count + steps) * regions
    places = np.concatenate(rows), np.concatenate(columns)
    matrix = sparse.csr_matrix((np.concatenate(values), places), shape)
    right = np.concatenate([np.ones(count), np.zeros(regions * steps)])
    room = np.minimum(tables.room, 1).astype(np.float64)
    upper = np.concatenate([np.isfinite(tables.cost).astype(np.float64).ravel(), np.repeat(room, steps)])
    return optimize, matrix, right, upper


def _program(
    tables: Tables, cuts: tuple[Cut, ...], taken: IntArray | int
) -> tuple[Any, Any, FloatArray, FloatArray, FloatArray]:
    """scipy.optimize, the matrix, the bounds of its rows, and the upper bounds of its columns.

    Column buffer * regions + region is 1 where the buffer lies in the region. The rows: each buffer is somewhere; what
    lives at a step fits in each region; the cuts.
    """
    optimize, sparse = highs.modules()
    count, regions = tables.cost.shape
    allowed = np.isfinite(tables.cost).astype(np.float64).ravel()
    lengths = tables.end - tables.start
    buffer = np.repeat(np.arange(count), lengths)
    step = np.concatenate([np.arange(a, b) for a, b in zip(tables.start, tables.end, strict=True)] or [np.empty(0)])
    blocks = [sparse.csr_matrix((np.ones(count * regions), (np.repeat(np.arange(count), regions),
                                                            np.arange(count * regions))))]  # fmt: skip
    for r in range(regions):
        weight = tables.weight[buffer, r].astype(np.float64)
        columns = buffer * regions + r
        blocks.append(sparse.csr_matrix((weight, (step.astype(np.int64), columns)), (tables.steps, count * regions)))
    for cut in cuts:
        columns = [b * regions + r for b, r in cut]
        row = sparse.csr_matrix(
            (np.ones(len(cut)), (np.zeros(len(cut), dtype=np.int64), columns)), (1, count * regions)
        )
        blocks.append(row)
    room = (np.repeat(tables.room[:, None], tables.steps, axis=1) - taken).astype(np.float64).ravel()
    most = np.array([len(cut) - 1 for cut in cuts], dtype=np.float64)
    upper = np.concatenate([np.ones(count), room, most])
    lower = np.concatenate([np.ones(count), np.full(len(room) + len(cuts), -np.inf)])
    return optimize, sparse.vstack(blocks, format="csr"), lower, upper, allowed

"""Large-neighbourhood search: the mixed-integer program over a part of the buffers, the others staying where they are.

Needs SciPy (extra `memories`). All limits are counts, so that the answer is the same on every machine.
"""

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from modelplan.model import BoolArray, IntArray
from modelplan.planning.memories.choice_tables import FloatArray, Tables
from modelplan.planning.memories.exact_choice import exact_choice

#: Columns of the first part and of the others: buffers times regions. Nodes of HiGHS for each.
_FIRST, _NEXT, _NODES = 1_000, 300, (100, 20)
#: Parts that are solved at most, and how many one after the other may change nothing.
_MOST_PARTS, _PATIENCE = 24, 8


def chosen_in_parts(tables: Tables, choice: IntArray, reduced: FloatArray, value: float, goal: float) -> IntArray:
    """The choice after parts of it were chosen again by HiGHS.

    Args:
        tables: costs and room.
        choice: a choice that fits.
        reduced: costs with prices; where a region costs a buffer so much more than its best one that the bound comes
            to the cost of `choice`, no better choice has the buffer there, and the program has no column for it.
        value: the bound that these prices prove.
        goal: seconds at which the search ends.

    Cost: at most 25 programs, of 300 columns but the first with 1,000.
    """
    cost, idle = tables.cost_of(choice), 0
    extra = reduced - reduced.min(axis=1)[:, None]
    for number, free in enumerate(_parts(tables, extra)):
        if cost <= goal or idle == _PATIENCE:
            break
        kept = value + extra < cost * (1 - 1e-9)
        improved, optimal = _chosen_again(tables, choice, free, kept, _NODES[min(number, 1)])
        better = tables.cost_of(improved) < cost * (1 - 1e-9)
        idle = 0 if better else idle + 1
        if better:
            choice, cost = improved, tables.cost_of(improved)
        if optimal and len(free) == len(choice):
            break
    return choice


def _parts(tables: Tables, extra: FloatArray) -> Iterator[IntArray]:
    """Buffers to choose again together: first those whose prices differ least, then those that live around a step."""
    random, (count, regions) = np.random.default_rng(0), extra.shape
    second = np.sort(extra, axis=1)[:, 1] if regions > 1 else np.full(count, np.inf)
    yield np.sort(np.argsort(second, kind="stable")[: max(_FIRST // regions, 1)])
    several = max(min(_NEXT // regions, count // 2), 1)
    for _ in range(_MOST_PARTS):
        step = int(random.integers(max(tables.steps, 1)))
        away = np.maximum(np.maximum(tables.start - step, step + 1 - tables.end), 0)
        yield np.sort(np.lexsort((second * random.random(count), away))[:several])


def _chosen_again(
    tables: Tables, choice: IntArray, free: IntArray, kept: BoolArray, nodes: int
) -> tuple[IntArray, bool]:
    """The choice with the best regions for the buffers `free` among those in `kept`, and whether that is proved."""
    part = replace(
        tables,
        cost=np.where(kept[free], tables.cost[free], np.inf),
        weight=tables.weight[free],
        start=tables.start[free],
        end=tables.end[free],
    )
    taken = tables.use_of(choice)[:, : part.steps] - part.use_of(choice[free])
    answer = exact_choice(part, nodes=nodes, taken=taken)
    improved = choice.copy()
    if answer.choice is not None:
        improved[free] = answer.choice
    return (improved if tables.fits(improved) else choice), answer.optimal

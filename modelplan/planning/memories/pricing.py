"""A fast choice of regions by prices, with a bound that is proved by them; better with SciPy (extra `memories`).

Every region asks a price for a unit at each step (Lagrangian multipliers). At given prices each buffer takes the region
that is cheapest to it, alone, and what they pay in all, less the price of all room, bounds every choice from below.
The best prices are the dual solution of the linear relaxation; for large problems they are approached by subgradient
steps: they rise where too much is asked for and fall elsewhere. Choices are made from prices by giving room to those
buffers first that would pay most for it, then improved by moving buffers and making room for them. Parts of the choice
are then made again by HiGHS.
"""

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from modelplan.model import BoolArray, IntArray
from modelplan.planning.memories import exact_choice
from modelplan.planning.memories.choice_tables import FloatArray, Tables
from modelplan.primitives import highs

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
    answer = exact_choice.exact_choice(part, nodes=nodes, taken=taken)
    improved = choice.copy()
    if answer.choice is not None:
        improved[free] = answer.choice
    return (improved if tables.fits(improved) else choice), answer.optimal


#: Subgradient steps, steps without a better bound before they become shorter, and steps between two choices.
_ROUNDS, _PATIENCE, _TRIED_EACH = 400, 12, 20
#: Buffers that the local search looks at.
_MOST_WORK = 300_000
#: Columns of the linear program beyond which prices are found without it.
_MOST_COLUMNS = 50_000
#: How near to the bound of the linear relaxation a choice is left as it is; buffers times regions beyond which prices
#: of one kind have to do; nodes of HiGHS where no other way finds a choice that fits.
_CLOSE, _MOST_AGAIN, _NODES_OF_FIRST = 1.002, 6_000, 100


def priced_choice(tables: Tables) -> tuple[IntArray | None, float]:
    """A region for each buffer, None where none was found that fits, and a lower bound of every choice's seconds.

    Without SciPy the prices come from subgradient steps alone, and no part of the choice is made again.

    Cost: O(rounds * (buffers + steps) * regions), less than 10 seconds for 10,000 buffers.
    """
    if not len(tables.cost):
        return np.zeros(0, dtype=np.int64), 0.0
    best = _better(tables, _greedy_choice(tables, tables.cost), _greedy_choice(tables, tables.cost, by_size=True))
    large = (len(tables.cost) + tables.steps) * len(tables.room) > _MOST_COLUMNS
    linear = None if large or not highs.is_there() else exact_choice.linear_choice(tables)
    if linear is None:
        best, bound, reduced = _subgradient_choice(tables, best)
        if best is not None:
            best = _improve(tables, best)
            best = chosen_in_parts(tables, best, reduced, bound, bound * _CLOSE) if highs.is_there() else best
        return best, max(bound, 0.0)
    if linear.bound == np.inf:
        return None, linear.bound
    return _from_linear(tables, best, linear), max(linear.bound, 0.0)


def _from_linear(tables: Tables, best: IntArray | None, linear: exact_choice.LinearChoice) -> IntArray | None:
    """The choice from `best`, the linear relaxation and subgradient steps, improved by HiGHS in parts."""
    reduced, goal = _reduced_costs(tables, linear.prices), linear.bound * _CLOSE
    for share in (0.0, 1.0):
        best = _better(tables, best, _greedy_choice(tables, reduced - share * tables.scale * linear.share))
    best = None if best is None else _improve(tables, best)
    if tables.cost.size <= _MOST_AGAIN and (best is None or tables.cost_of(best) > goal):
        # Prices of another kind lead to other choices.
        other = _subgradient_choice(tables, None)[0]
        best = _better(tables, best, None if other is None else _improve(tables, other))
        best = exact_choice.exact_choice(tables, nodes=_NODES_OF_FIRST).choice if best is None else best
    if best is None:
        return None
    value = float(reduced.min(axis=1).sum() - (linear.prices * tables.room[:, None]).sum())
    return chosen_in_parts(tables, best, reduced, value, goal)


def _subgradient_choice(tables: Tables, best: IntArray | None) -> tuple[IntArray | None, float, FloatArray]:
    """The best choice, the bound and the reduced costs that subgradient steps find."""
    prices, scale = np.zeros((len(tables.room), tables.steps)), tables.scale
    pace, waited, bound, kept = 1.0, 0, -np.inf, tables.cost
    for number in range(_ROUNDS):
        reduced = _reduced_costs(tables, prices)
        taken = reduced.argmin(axis=1)
        value = float(reduced.min(axis=1).sum() - (prices * tables.room[:, None]).sum())
        waited = 0 if value > bound + 1e-9 * scale else waited + 1
        if value > bound:
            bound, kept = value, reduced
        if number % _TRIED_EACH == 0 or number == _ROUNDS - 1:
            best = _better(tables, best, _greedy_choice(tables, reduced))
        if best is not None and tables.cost_of(best) - bound <= 1e-9 * scale:
            break
        over = (tables.use_of(taken) - tables.room[:, None]).astype(np.float64)
        over[(prices == 0) & (over < 0)] = 0
        length = float((over**2).sum())
        if not length:
            break
        if waited >= _PATIENCE:
            pace, waited = pace / 2, 0
        target = tables.cost_of(best) if best is not None else max(2 * bound, scale)
        prices = np.maximum(prices + pace * max(target - value, 1e-6 * scale) / length * over, 0)
    return best, bound, kept


def _reduced_costs(tables: Tables, prices: FloatArray) -> FloatArray:
    """The reduced cost of each buffer in each region: its seconds, and the prices of the bytes it takes."""
    sums = np.concatenate([np.zeros((len(prices), 1)), np.cumsum(prices, axis=1)], axis=1)
    paid = (sums[:, tables.end] - sums[:, tables.start]).T * tables.weight
    reduced: FloatArray = tables.cost + paid
    return reduced


def _better(tables: Tables, choice: IntArray | None, other: IntArray | None) -> IntArray | None:
    if choice is None or other is None:
        return choice if other is None else other
    return choice if tables.cost_of(choice) <= tables.cost_of(other) else other


def _greedy_choice(tables: Tables, value: FloatArray, *, by_size: bool = False) -> IntArray | None:
    """A greedy choice: each buffer in its best region with room, those with the largest loss first.

    None where a buffer finds no room. `by_size`: what matters is counted for each unit and step.
    """
    count = len(value)
    ordered = np.sort(value, axis=1)
    best = ordered[:, 0]
    second = ordered[:, 1] if value.shape[1] > 1 else np.full(count, np.inf)
    regret = np.where(np.isfinite(second), second - best, np.inf)
    area = np.maximum(tables.weight.max(axis=1), 1) * np.maximum(tables.end - tables.start, 1)
    matters = regret / area if by_size else regret
    ranks = np.lexsort((-area, -np.nan_to_num(matters, posinf=np.finfo(float).max)))
    use = np.zeros((len(tables.room), tables.steps), dtype=np.int64)
    choice = np.empty(count, dtype=np.int64)
    preferred = np.argsort(value, axis=1, kind="stable")
    for b in ranks.tolist():
        first, last = int(tables.start[b]), int(tables.end[b])
        for r in preferred[b].tolist():
            weight = int(tables.weight[b, r])
            if np.isfinite(value[b, r]) and (
                not weight or use[r, first:last].max(initial=0) + weight <= tables.room[r]
            ):
                use[r, first:last] += weight
                choice[b] = r
                break
        else:
            return None
    return choice


class _Meter:
    """How many buffers the local search may still look at."""

    def __init__(self, left: int) -> None:
        self.left = left


def _improve(tables: Tables, choice: IntArray) -> IntArray:
    """The choice after moves that make it cheaper: a buffer to a region with room, or in the place of others."""
    choice, use, meter = choice.copy(), tables.use_of(choice), _Meter(_MOST_WORK)
    changed = True
    while changed and meter.left > 0:
        changed = False
        gain = tables.cost[np.arange(len(choice)), choice] - tables.cost.min(axis=1)
        for b in np.argsort(-gain, kind="stable").tolist():
            if gain[b] <= 0 or meter.left <= 0:
                break
            changed |= _move_cheaper(tables, choice, use, b, meter)
    return choice


def _move_cheaper(tables: Tables, choice: IntArray, use: IntArray, b: int, meter: _Meter) -> bool:
    """Moves buffer `b` to a cheaper region, evicting others if that pays; returns whether it did."""
    left = int(choice[b])
    first, last = int(tables.start[b]), int(tables.end[b])
    use[left, first:last] -= tables.weight[b, left]
    for r in np.argsort(tables.cost[b], kind="stable").tolist():
        saved = float(tables.cost[b, left] - tables.cost[b, r])
        if saved <= 0:
            break
        evicted = _evictions(tables, choice, use, b, r, saved, meter)
        if evicted is not None:
            for other, region in evicted:
                low, high = int(tables.start[other]), int(tables.end[other])
                use[r, low:high] -= tables.weight[other, r]
                use[region, low:high] += tables.weight[other, region]
                choice[other] = region
            choice[b] = r
            break
    use[choice[b], first:last] += tables.weight[b, choice[b]]
    return int(choice[b]) != left


def _evictions(
    tables: Tables, choice: IntArray, use: IntArray, b: int, region: int, saved: float, meter: _Meter
) -> list[tuple[int, int]] | None:
    """Buffers with new regions whose leaving gives `b` room in a region for less than it saves, None without any."""
    first, last = int(tables.start[b]), int(tables.end[b])
    lacking = use[region, first:last] + tables.weight[b, region] - tables.room[region]
    if lacking.max(initial=0) <= 0:
        return []
    inside = np.flatnonzero((choice == region) & (tables.start < last) & (tables.end > first))
    meter.left -= len(inside) + len(choice) // 64 + 1
    ways = []
    for other in inside.tolist():
        weight = int(tables.weight[other, region])
        low, high = max(first, int(tables.start[other])), min(last, int(tables.end[other]))
        eased = int(np.minimum(np.maximum(lacking[low - first : high - first], 0), weight).sum())
        for r in np.argsort(tables.cost[other], kind="stable").tolist() if eased else ():
            extra = float(tables.cost[other, r] - tables.cost[other, region])
            if r != region and extra < saved and _has_room(tables, use, other, r):
                ways.append((extra / eased if extra > 0 else extra, other, r, extra, low - first, high - first, weight))
                break
    left, spent, evicted = lacking.copy(), 0.0, []
    for _, other, r, extra, low, high, weight in sorted(ways):
        if (left[low:high] > 0).any():
            left[low:high] -= weight
            spent += extra
            evicted.append((other, r))
            if left.max() <= 0:
                break
    if left.max() > 0 or spent >= saved * (1 - 1e-12):
        return None
    return evicted if _all_fit(tables, use, evicted) else None


def _has_room(tables: Tables, use: IntArray, b: int, region: int) -> bool:
    first, last = int(tables.start[b]), int(tables.end[b])
    return bool(use[region, first:last].max(initial=0) + tables.weight[b, region] <= tables.room[region])


def _all_fit(tables: Tables, use: IntArray, evicted: list[tuple[int, int]]) -> bool:
    """Whether the evicted have room together."""
    added = np.zeros_like(use)
    for other, region in evicted:
        added[region, int(tables.start[other]) : int(tables.end[other])] += tables.weight[other, region]
    touched = [region for _, region in evicted]
    return all(bool((use[r] + added[r] <= tables.room[r]).all()) for r in set(touched))

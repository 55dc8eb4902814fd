"""Slow twins in plain Python of what the core does, straight from the definitions."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

from modelplan import Problem


def round_up(value: int, alignment: int) -> int:
    return -(-value // alignment) * alignment


def alive_together(problem: Problem, a: int, b: int) -> bool:
    p = problem
    return bool(p.start[a] < p.end[b] and p.start[b] < p.end[a])


def reach(problem: Problem, below: int, above: int) -> int:
    """How many bytes `below` may reach into the start of `above`."""
    return max((int(k) for a, b, k in problem.overlaps if (a, b) == (below, above)), default=0)


def clash(problem: Problem, offsets: Sequence[int], a: int, b: int) -> bool:
    """Whether buffers a and b break the problem at these offsets."""
    p = problem
    if p.size[a] == 0 or p.size[b] == 0:
        return False
    if alive_together(p, a, b):
        low = offsets[a] + p.size[a] - reach(p, a, b) <= offsets[b]
        return not (low or offsets[b] + p.size[b] - reach(p, b, a) <= offsets[a])
    apart = any({a, b} == {int(x), int(y)} for x, y in p.conflicts)
    return bool(apart and offsets[a] < offsets[b] + p.size[b] and offsets[b] < offsets[a] + p.size[a])


def valid(problem: Problem, offsets: Sequence[int]) -> bool:
    """Every pair, one by one."""
    n = len(problem)
    fine = all(offsets[i] >= 0 and offsets[i] % problem.alignment[i] == 0 for i in range(n))
    fine = fine and all(problem.pin[i] < 0 or offsets[i] == problem.pin[i] for i in range(n))
    return fine and not any(clash(problem, offsets, a, b) for a, b in itertools.combinations(range(n), 2))


def height(problem: Problem, offsets: Sequence[int]) -> int:
    return max((int(offsets[i] + problem.size[i]) for i in range(len(problem)) if problem.size[i]), default=0)


def load(problem: Problem) -> int:
    """The most raw bytes alive at one step."""
    steps = range(int(problem.end.max(initial=0)))
    return max((int(problem.size[(problem.start <= s) & (s < problem.end)].sum()) for s in steps), default=0)


def place_in_order(problem: Problem, order: Sequence[int], fit: str = "LOWEST") -> list[int]:
    """Pins first, then gap by gap by `fit`, on top when there is none."""
    offsets: dict[int, int] = {i: int(problem.pin[i]) for i in order if problem.pin[i] >= 0}
    for i in order:
        if i not in offsets:
            offsets[i] = _gap(problem, offsets, i, fit)
    return [offsets[i] for i in range(len(problem))]


def _gap(problem: Problem, offsets: dict[int, int], i: int, fit: str) -> int:
    if problem.size[i] == 0:
        return 0
    blocked = []
    for j, offset in offsets.items():
        extra = any({i, j} == {int(x), int(y)} for x, y in problem.conflicts)
        if problem.size[j] and (alive_together(problem, i, j) or extra):
            blocked.append((offset + reach(problem, i, j), offset + int(problem.size[j]) - reach(problem, j, i)))
    gaps, top = [], 0
    for low, high in sorted(blocked):
        candidate = round_up(top, int(problem.alignment[i]))
        if low - candidate >= problem.size[i]:
            gaps.append((candidate, low - candidate, low - top))
        top = max(top, high)
    if not gaps:
        return round_up(top, int(problem.alignment[i]))
    return _chosen(gaps, fit)


def _chosen(gaps: list[tuple[int, int, int]], fit: str) -> int:
    """Of (offset, usable bytes, bytes with padding), by rising offset, the one that `fit` takes."""
    if fit == "MIXED":
        best = gaps[0]
        for gap in gaps[1:]:
            best = gap if gap[1] < best[2] else best
        return best[0]
    key = {"LOWEST": lambda g: g[0], "TIGHTEST": lambda g: g[1], "WIDEST": lambda g: -g[1], "RAW": lambda g: g[2]}[fit]
    return min(gaps, key=key)[0]


def optimum(problem: Problem) -> int:
    """The least height, by trying every order at the lowest feasible offset; for a handful of buffers.

    Some optimal placement is bottom-justified, and placing its buffers by rising offset at their lowest
    feasible place rebuilds one no higher.
    """
    n = len(problem)
    best = None
    for order in itertools.permutations(range(n)):
        offsets: dict[int, int] = {}
        for i in order:
            offsets[i] = _lowest(problem, offsets, i)
        found = [offsets[i] for i in range(n)]
        if valid(problem, found):
            top = height(problem, found)
            best = top if best is None else min(best, top)
    assert best is not None
    return best


def _lowest(problem: Problem, offsets: dict[int, int], i: int) -> int:
    if problem.pin[i] >= 0:
        return int(problem.pin[i])
    step = int(problem.alignment[i])
    ends = [offsets[j] + int(problem.size[j]) - reach(problem, j, i) for j in offsets]
    for candidate in sorted({0, *(round_up(max(e, 0), step) for e in ends)}):
        trial = {**offsets, i: candidate}
        if not any(clash(problem, trial, i, j) for j in offsets):  # type: ignore[arg-type]
            return candidate
    raise AssertionError("the top is always free")


def packs_below(problem: Problem, limit: int) -> bool:
    """Whether some placement is lower than `limit`: every order by rising offset, each buffer as low as that allows."""
    n = len(problem)
    neighbours = [[j for j in range(n) if j != i and alive_together(problem, i, j)] for i in range(n)]
    offsets: dict[int, int] = {}

    def lowest(i: int) -> int:
        under = (offsets[j] + int(problem.size[j]) - reach(problem, j, i) for j in neighbours[i] if j in offsets)
        top = max(under, default=0)
        if problem.pin[i] >= 0:
            return int(problem.pin[i]) if top <= problem.pin[i] else limit
        return round_up(max(top, 0), int(problem.alignment[i]))

    def extend(last: int) -> bool:
        if len(offsets) == n:
            return True
        for i in range(n):
            if i in offsets:
                continue
            offset = lowest(i)
            if last <= offset and offset + problem.size[i] < limit:
                offsets[i] = offset
                if extend(offset):
                    return True
                del offsets[i]
        return False

    return extend(0)

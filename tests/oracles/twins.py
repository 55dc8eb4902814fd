"""Slow twins of the systems' planners, written from their descriptions, pair by pair."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from modelplan import Problem


def round_up(value: int, alignment: int) -> int:
    return -(-value // alignment) * alignment


def in_conflict(problem: Problem, a: int, b: int) -> bool:
    p = problem
    if a == b or p.size[a] == 0 or p.size[b] == 0:
        return False
    listed = any({a, b} == {int(x), int(y)} for x, y in p.conflicts)
    return listed or bool(p.start[a] < p.end[b] and p.start[b] < p.end[a])


def xla_best_fit(problem: Problem, order: Sequence[int]) -> list[int]:
    """Everybody alone: the smallest free chunk, the lowest of equal ones."""
    offsets: dict[int, int] = {}
    for b in order:
        used = sorted((offsets[c], offsets[c] + int(problem.size[c])) for c in offsets if in_conflict(problem, b, c))
        chunks, top = [], 0
        for low, high in used:
            chunks.append((low - top, top))
            top = max(top, round_up(high, int(problem.alignment[b])))
        chunks.append((2**63, top))
        offsets[b] = min(chunk for chunk in chunks if chunk[0] >= problem.size[b])[1]
    return [offsets[b] for b in range(len(problem))]


def triton(problem: Problem) -> list[int]:
    """Slots, then colours and bumps, with the loops of the description."""
    always = (0, 2**62)
    order = sorted(range(len(problem)), key=lambda b: -problem.size[b])
    life = {b: (int(problem.start[b]), int(problem.end[b])) for b in order}
    offsets = dict.fromkeys(order, 0)
    slots: list[tuple[int, int, tuple[int, int]]] = [(0, 0, always)]
    waiting, made, top = [b for b in order if problem.size[b]], 1, 0
    while waiting:
        if not slots:
            slots = [(top, made, always)]
        slots.sort()
        offset, _, span = slots.pop(0)
        fits = (b for b in waiting if _meet(life[b], span) and not any(_meet(life[b], s[2]) for s in slots))
        b = next(fits, None)
        if b is None:
            continue
        waiting.remove(b)
        offsets[b] = round_up(offset, int(problem.alignment[b]))
        top = max(top, offsets[b] + int(problem.size[b]))
        start, end = life[b]
        slots.append((offsets[b] + int(problem.size[b]), made, (max(span[0], start), min(span[1], end))))
        if span[0] < start:
            slots.append((offset, made + 1, (span[0], end)))
        if end < span[1]:
            slots.append((offset, made + 2, (start, span[1])))
        made += 3
    while True:
        _colour_and_bump(problem, order, offsets)
        if not _interference(problem, offsets):
            return [offsets[b] for b in range(len(problem))]


def _meet(a: tuple[int, int], b: tuple[int, int]) -> bool:
    return a[0] < b[1] and b[0] < a[1]


def _interference(problem: Problem, offsets: dict[int, int]) -> set[tuple[int, int]]:
    def bytes_of(b: int) -> tuple[int, int]:
        return offsets[b], offsets[b] + int(problem.size[b])

    return {(a, b) for a in offsets for b in offsets if in_conflict(problem, a, b) and _meet(bytes_of(a), bytes_of(b))}


def _colour_and_bump(problem: Problem, order: Sequence[int], offsets: dict[int, int]) -> None:
    edges = _interference(problem, offsets)
    colours: dict[int, int] = {}
    for b in order:
        taken = {colours[c] for c in colours if (b, c) in edges}
        colours[b] = next(k for k in range(len(order) + 1) if k not in taken)
    for b in order:
        if colours[b]:
            ends = [offsets[c] + int(problem.size[c]) for c in order if (b, c) in edges]
            offsets[b] = round_up(max(ends), int(problem.alignment[b]))


def somas(problem: Problem, order: Sequence[int], *, smallest: bool, single: bool, same_gap: bool) -> list[int]:
    """Single tensors into bands; sizes are rounded already."""
    bands: list[list[int]] = []
    base, offsets = [0], {}
    for b in order:
        size = int(problem.size[b])
        if size == 0:
            offsets[b] = 0
            continue
        for k, band in enumerate(bands):
            limit = 2**62 if single else base[k + 1]
            used = sorted((offsets[c], offsets[c] + int(problem.size[c])) for c in band if in_conflict(problem, b, c))
            gaps, top = [], base[k]
            for low, high in [*used, (limit, limit)]:
                if low - top >= size:
                    gaps.append((low - top - size, top))
                top = max(top, high)
            if gaps:
                lowest = smallest and (k == 0 or same_gap)
                offsets[b] = min(gaps, key=lambda g: (g[1], g[0]) if lowest else g)[1]
                base[k + 1] = max(base[k + 1], offsets[b] + size)
                band.append(b)
                break
        else:
            offsets[b] = base[-1]
            base.append(base[-1] + size)
            bands.append([b])
    return [offsets[b] for b in range(len(problem))]


def rand_r(seed: int) -> Callable[[], int]:
    """glibc's rand_r."""
    state = seed

    def step() -> int:
        nonlocal state
        state = (state * 1103515245 + 12345) % 2**32
        return state >> 16

    def draw() -> int:
        result = step() & 0x7FF
        for _ in range(2):
            result = (result << 10) ^ (step() & 0x3FF)
        return result

    return draw


def hill_climb(problem: Problem, order: Sequence[int], goal: int, attempts: int) -> tuple[list[int], int]:
    """One pool without limit; the plan accepted last, and how many were tried."""
    draw, now = rand_r(0), list(order)
    near = {b: [c for c in range(len(problem)) if in_conflict(problem, b, c)] for b in now}
    stored: int | None = None
    swapped, current, result, used = (0, 0), {}, {}, 0
    for attempt in range(attempts):
        if not now:
            break
        used += 1
        plan = _first_fit(problem, now, near)
        total = max((plan[b] + int(problem.size[b]) for b in now), default=0)
        accepted = stored is None or total < stored
        if not accepted and stored is not None:
            accepted = draw() % 100 < (50 * (total - stored) // total // attempt if total else 0)
        if accepted:
            current = result = plan
            stored = total
            if total <= goal:
                break
        else:
            now[swapped[0]], now[swapped[1]] = now[swapped[1]], now[swapped[0]]
            current = result
        swapped = _swap(problem, now, near, current, draw) or swapped
    return [result.get(b, 0) for b in range(len(problem))], used


def _first_fit(problem: Problem, order: Sequence[int], near: dict[int, list[int]]) -> dict[int, int]:
    plan: dict[int, int] = {}
    for b in order:
        start = 0
        for c in sorted((c for c in near[b] if c in plan), key=lambda c: plan[c]):
            end = round_up(plan[c] + int(problem.size[c]), int(problem.alignment[c]))
            if end > start and start + problem.size[b] > plan[c]:
                start = end
        plan[b] = start
    return plan


def _swap(
    problem: Problem, now: list[int], near: dict[int, list[int]], plan: dict[int, int], draw: Callable[[], int]
) -> tuple[int, int] | None:
    where = {b: i for i, b in enumerate(now)}
    total = max(plan[b] + int(problem.size[b]) for b in now)
    top = [b for b in now if problem.size[b] and plan[b] + problem.size[b] == total]
    if not top:
        return None
    bottleneck = top[draw() % len(top)]
    first = sorted((c for c in near[bottleneck] if where[c] < where[bottleneck]), key=where.__getitem__)
    second = [d for c in near[bottleneck] for d in near[c] if where[d] < where[c]]
    second.sort(key=where.__getitem__)
    if not first:
        return None
    a = b = first[draw() % len(first)]
    while a == b:
        pick = second if second and draw() % 100 > 25 else first
        b = pick[draw() % len(pick)]
        if a == b and len(first) < 2 and len(second) < 2:
            return None
    pair = where[a], where[b]
    now[pair[0]], now[pair[1]] = now[pair[1]], now[pair[0]]
    return pair


def telamalloc_heuristic(problem: Problem) -> list[int]:
    """Where most is left to place, the longest, then the largest, on top of whatever shares its lifetime."""
    n = len(problem)
    size, start, end = problem.size.tolist(), problem.start.tolist(), problem.end.tolist()
    placed: dict[int, int] = {b: max(int(problem.pin[b]), 0) for b in range(n) if problem.pin[b] >= 0 or size[b] == 0}
    while len(placed) < n:
        left = [b for b in range(n) if b not in placed]
        steps = sorted({start[b] for b in left})
        busiest = max(steps, key=lambda t: sum(size[b] for b in left if start[b] <= t < end[b]))
        alive = [b for b in left if start[b] <= busiest < end[b]]
        b = max(alive, key=lambda b: (end[b] - start[b], size[b], -b))
        below = [c for c in placed if in_conflict(problem, b, c)]
        top = max((placed[c] + size[c] for c in below), default=0)
        step = int(problem.alignment[b])
        placed[b] = -(-top // step) * step
    return [placed[b] for b in range(n)]

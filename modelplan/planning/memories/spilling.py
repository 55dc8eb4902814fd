"""Which contents leave a memory that is too small, when, and when they come back.

The unit is a segment: one access of a buffer, or a gap between two. Two methods decide where each content is held in
each segment: `greedy`, and the exact program of `exact_spilling.py`. Each stay is then a buffer of its own for the
allocator, so a content may come back to another address. Where the sizes fit and the offsets do not, less room is
given and all is decided anew.
"""

from collections.abc import Iterator, Sequence
from itertools import groupby

import numpy as np

from modelplan.answers.region_layout import Layout, RegionProblem, Stay
from modelplan.model import IntArray
from modelplan.planning.memories.exact_spilling import HoldingProgram
from modelplan.planning.memories.tracks import (
    HOME,
    Costs,
    Held,
    Track,
    fastest,
    moves_of,
    placed,
    room,
)
from modelplan.primitives.errors import RequestError
from modelplan.primitives.lazy_records import dataclass

METHODS = ("greedy", "exact")
#: How often less room is given to a region whose offsets do not fit.
_ROUNDS = 12
#: How many contents the greedy method tries to exchange for others, and that number times all contents.
_MOST_EXCHANGES, _EXCHANGE_WORK = 60, 12_000


@dataclass(frozen=True, eq=False)
class Spilled:
    """A layout with copies between steps, and what it costs.

    `cost` is the seconds of all accesses and copies, `relaxed` the value of the linear relaxation (0 where it was not
    asked for), `rounds` how often offsets did not fit and less room was given.
    """

    layout: Layout
    cost: float
    relaxed: float
    rounds: int


def spill(problem: RegionProblem, method: str = "greedy", seconds: float = 60.0) -> Spilled:
    """A layout in which contents leave a region and come back where that costs least.

    Args:
        problem: what is asked; contents spill from the fastest region.
        method: `greedy` or `exact`.
        seconds: how long each run of the exact program may take.

    Raises:
        RequestError: no such method; or a step whose operands do not fit at the same time, by name.
    """
    if method not in METHODS:
        raise RequestError(f"no method {method!r}; there are: {', '.join(METHODS)}")
    costs = Costs(problem)
    check_fits(costs)
    capacities = [room(problem, region) for region in range(len(problem.regions))]
    program = HoldingProgram(costs) if method == "exact" else None
    relaxed = program.relaxed(capacities) if program else 0.0
    bound, best, ended = relaxed, None, "complete"
    for rounds in range(_ROUNDS):
        held, proved, ended = _find_holdings(costs, program, capacities, seconds)
        if held is None:
            break
        bound = max(bound, proved) if not rounds else bound
        moves = moves_of(costs, held)
        stays, heights = placed(problem, moves)
        above = {r: high - room(problem, r) for r, high in heights.items() if high > room(problem, r)}
        if not above:
            best = Spilled(_layout(moves, stays, method, costs.of(held), bound, ended), costs.of(held), relaxed, rounds)
            break
        for region, excess in above.items():
            capacities[region] = max(
                0, _largest_load(costs, held, region) - max(1, min(excess, capacities[region] // 32))
            )
    if best is None:
        raise RequestError(
            f"sizes fit in the regions, but the allocator found no offsets that do, in {_ROUNDS} rounds with less room"
        )
    return best


def _layout(moves: Layout, stays: tuple[Stay, ...], method: str, cost: float, bound: float, ended: str) -> Layout:
    optimal = ended == "optimal" and cost <= bound * (1 + 1e-5) + 1e-12
    word = "optimal" if optimal else "deadline" if ended == "deadline" else "complete"
    return Layout(stays, moves.copies, min(bound, cost), method, word)


def _find_holdings(
    costs: Costs, program: HoldingProgram | None, capacities: Sequence[int], seconds: float
) -> tuple[tuple[Held, ...] | None, float, str]:
    """Where contents are held within these capacities (None: no way found), a proved bound, and how it ended."""
    if program is None:
        return _Greedy(costs, capacities).run(), 0.0, "complete"
    answer = program.solve(capacities, seconds)
    if answer.held is None and answer.ended == "deadline":
        return _Greedy(costs, capacities).run(), answer.bound, "deadline"
    return answer.held, answer.bound, answer.ended


def _largest_load(costs: Costs, held: Sequence[Held], region: int) -> int:
    """The most bytes that are held in a region at one step."""
    load = np.zeros(len(costs.problem.seconds) + 1, dtype=np.int64)
    for track, there in zip(costs.tracks, held, strict=True):
        for segment, places in zip(track.segments, there, strict=True):
            if region in places:
                load[segment.start : segment.end] += track.size
    return int(load.max(initial=0))


def check_fits(costs: Costs) -> None:
    """Raises where the operands of one step that need regions of their own do not fit in these at the same time.

    Raises:
        RequestError: the step, its operands, what they need and what there is; or a buffer that no region holds.
    """
    problem = costs.problem
    for number, region in enumerate(problem.regions):
        if room(problem, number) < 0:
            raise RequestError(
                f"{region.name} has {region.size:,} bytes, {-room(problem, number):,} too few for weights"
            )
    needed: dict[int, list[tuple[int, int, frozenset[int]]]] = {}
    for track in costs.tracks:
        name = problem.problem.names[track.buffer]
        free = [p for p in track.places if p == HOME or track.size <= room(problem, p)]
        if not free:
            regions = ", ".join(f"{problem.regions[p].name} ({room(problem, p):,})" for p in track.places)
            raise RequestError(
                f"buffer {name!r} of {track.size:,} bytes fits in none of its regions: {regions or 'none'}"
            )
        for q, segment in enumerate(track.segments):
            serving = [p for p in free if not segment.used or costs.serves(track, q, p)]
            if not serving:
                reasons = "; ".join(_obstacle(problem, track, q, region) for region in range(len(problem.regions)))
                raise RequestError(
                    f"no region lets step {segment.start} use buffer {name!r} of {track.size:,} bytes: {reasons}"
                )
            if HOME not in serving and segment.used:
                needed.setdefault(segment.start, []).append((track.buffer, track.size, frozenset(serving)))
    for step, operands in sorted(needed.items()):
        _check_step(problem, step, operands)


def _obstacle(problem: RegionProblem, track: Track, q: int, region: int) -> str:
    """Why an operator cannot use a buffer in a region at segment `q`."""
    name = problem.regions[region].name
    if region in problem.copied_only:
        return f"{name} is for copies, operators do not reach it"
    if track.segments[q].written and problem.regions[region].kind == "nvm":
        return f"{name} is not written during a run"
    if room(problem, region) < track.size:
        return f"{name} has {room(problem, region):,} bytes for it"
    return f"{name} may not hold it"


def _check_step(problem: RegionProblem, step: int, operands: list[tuple[int, int, frozenset[int]]]) -> None:
    """Raises where operands together exceed the regions that can serve them."""
    for group in {regions for _, _, regions in operands}:
        own = [(size, buffer) for buffer, size, regions in operands if regions <= group]
        there, needs = sum(room(problem, r) for r in group), sum(size for size, _ in own)
        if needs > there:
            names = ", ".join(f"{problem.problem.names[b]!r} {size:,}" for size, b in sorted(own, reverse=True)[:4])
            regions = " and ".join(problem.regions[r].name for r in sorted(group))
            raise RequestError(
                f"step {step} uses {needs:,} bytes at the same time, but {regions} has {there:,}: {names}; moving"
                " buffers cannot help, the operator would have to be split"
            )


class _Greedy:
    """Contents start in the fastest region; at the worst step the segment leaves that frees most bytes for its cost.

    A content that leaves goes to its home, or to the quickest other region that has room for it; what is saved there
    stays valid until the next write.
    """

    def __init__(self, costs: Costs, capacities: Sequence[int]) -> None:
        self.costs, self.capacities = costs, capacities
        self.quick = fastest(costs.problem)
        steps = max((s.end for t in costs.tracks for s in t.segments), default=0)
        self.load: IntArray = np.zeros(steps, dtype=np.int64)
        self.far = self._far_places()
        self.near: list[list[bool]] = []
        self.price: list[float] = []
        self.at: list[list[int]] = [[] for _ in range(steps)]
        self.kept = -1
        self.known: dict[tuple[int, int, tuple[bool, ...]], list[tuple[list[bool], float]]] = {}

    def run(self) -> tuple[Held, ...] | None:
        """Where contents are held; None where no choice fits."""
        for track in self.costs.tracks:
            if self.far[track.buffer] is None and self.quick not in track.places:
                return None
            pattern = self._first_pattern(track)
            self.near.append(pattern)
            self.price.append(self._price(track, pattern))
            for segment, near in zip(track.segments, pattern, strict=True):
                if near:
                    self.load[segment.start : segment.end] += track.size
                for step in range(segment.start, segment.end):
                    self.at[step].append(track.buffer)
        if not self._evict():
            return None
        self._bring_back()
        self._exchange()
        return tuple(self._places(track, near) for track, near in zip(self.costs.tracks, self.near, strict=True))

    def _far_places(self) -> list[int | None]:
        """For each buffer where an eviction puts it: its home, or the quickest other region with room."""
        problem = self.costs.problem
        loads = {r: np.zeros_like(self.load) for r in range(len(problem.regions))}
        far: list[int | None] = [None] * len(self.costs.tracks)
        for track in sorted(self.costs.tracks, key=lambda t: -t.size):
            if track.home != HOME:
                far[track.buffer] = HOME
                continue
            start, end = track.segments[0].start, track.segments[-1].end
            others = [p for p in track.places if p != self.quick]
            for place in sorted(others, key=lambda p: (problem.regions[p].seconds(track.size, track.size), p)):
                if loads[place][start:end].max(initial=0) + track.size <= self.capacities[place]:
                    loads[place][start:end] += track.size
                    far[track.buffer] = place
                    break
        return far

    def _may(self, track: Track, q: int, near: bool) -> bool:  # noqa: FBT001 -- a pattern is a list of these
        """Whether segment `q` may be held near (in the fastest region) or far (elsewhere)."""
        place = self.quick if near else self.far[track.buffer]
        if place is None or place not in track.places:
            return False
        segment = track.segments[q]
        if segment.start == segment.end:
            return not near
        if segment.used and not self.costs.serves(track, q, place):
            return False
        return not near or track.may_stay(q, place)

    def _tidy(self, track: Track, pattern: list[bool]) -> list[bool]:
        """The pattern; weights that are not near all the time are so only from the first use to the last."""
        if track.fixed and not (track.loadable and all(pattern)):
            return [inside and track.may_stay(q, self.quick) for q, inside in enumerate(pattern)]
        return pattern

    def _first_pattern(self, track: Track) -> list[bool]:
        """Near wherever possible, or far wherever possible where that costs less."""
        near = [
            (track.loadable and self.quick in track.places) or self._may(track, q, near=True)
            for q in range(len(track.segments))
        ]
        far = [not self._may(track, q, near=False) for q in range(len(track.segments))]
        if self.far[track.buffer] is None or self.quick not in track.places:
            return near
        return min((near, far), key=lambda pattern: (self._price(track, pattern), sum(pattern)))

    def _price(self, track: Track, near: list[bool]) -> float:
        return self.costs.of_track(track, self._places(track, near))

    def _places(self, track: Track, near: Sequence[bool]) -> Held:
        """The places that hold the content: a far copy stays valid until the next write."""
        far = self.far[track.buffer]
        if far is None:
            return tuple(frozenset({self.quick}) for _ in near)
        needed, kept = False, [False] * len(near)
        for q in reversed(range(len(near))):
            kept[q] = not near[q] or (needed and not track.segments[q].written)
            needed = kept[q]
        saved, places = track.home != HOME, []
        for q, inside in enumerate(near):
            saved = not inside or (saved and not track.segments[q].written)
            there = {self.quick} if inside else set()
            if saved and (kept[q] or (not track.written and far == HOME)):
                there.add(far)
            places.append(frozenset(there))
        return tuple(places)

    def _evict(self) -> bool:
        """Evicts until nothing exceeds the capacity; False where nothing more can leave."""
        most = self.capacities[self.quick]
        while len(self.load) and self.load.max() > most:
            step, excess = int(self.load.argmax()), np.maximum(self.load - most, 0)
            others = [buffer for buffer in self.at[step] if buffer != self.kept]
            choices = [choice for buffer in others for choice in self._evictions(buffer, step, excess)]
            if not choices:
                return False
            _, buffer, pattern = min(choices, key=lambda choice: choice[:2])
            self._set(buffer, pattern)
        return True

    def _evictions(self, buffer: int, step: int, excess: IntArray) -> list[tuple[float, int, list[bool]]]:
        """The ways to evict a buffer at a step with what each costs for the overload `excess` that it removes."""
        track, near = self.costs.tracks[buffer], self.near[buffer]
        here = next(q for q, s in enumerate(track.segments) if s.start <= step < s.end)
        if not near[here]:
            return []
        key = buffer, here, tuple(near)
        if key not in self.known:
            self.known[key] = list(self._patterns_without(track, near, here))
        ways = []
        for pattern, cost in self.known[key]:
            relieved, price = max(_relief(track, near, pattern, excess), 1), cost - self.price[buffer]
            ways.append((price / relieved if price > 0 else price * relieved, buffer, pattern))
        return ways

    def _patterns_without(self, track: Track, near: list[bool], here: int) -> Iterator[tuple[list[bool], float]]:
        """Patterns and prices without a segment: it alone, a neighbour with it, all up to or from it, or all."""
        last = len(near) - 1
        spans = {
            (here, here),
            (max(here - 1, 0), here),
            (here, min(here + 1, last)),
            (0, here),
            (here, last),
            (0, last),
        }
        for first, end in spans:
            pattern = [
                inside and not (first <= q <= end and self._may(track, q, near=False)) for q, inside in enumerate(near)
            ]
            pattern = self._tidy(track, pattern)
            if not pattern[here]:
                yield pattern, self._price(track, pattern)

    def _set(self, buffer: int, pattern: list[bool]) -> None:
        """Replaces a buffer's pattern and updates loads and cost."""
        track = self.costs.tracks[buffer]
        for segment, before, after in zip(track.segments, self.near[buffer], pattern, strict=True):
            self.load[segment.start : segment.end] += track.size * (int(after) - int(before))
        self.near[buffer], self.price[buffer] = pattern, self._price(track, pattern)

    def _bring_back(self) -> None:
        """Takes back what costs and is not needed any more, the largest saving first, until nothing is."""
        pending = True
        while pending:
            gains = []
            for track in self.costs.tracks:
                gains += [(gain, track.buffer, pattern) for gain, pattern in self._returns(track)]
            pending = False
            for _, buffer, pattern in sorted(gains, key=lambda g: (g[0], g[1])):
                track = self.costs.tracks[buffer]
                if self._has_room(track, pattern) and self._price(track, pattern) < self.price[buffer] - 1e-15:
                    self._set(buffer, pattern)
                    pending = True

    def _exchange(self) -> None:
        """Tries contents near again, for life or for a few uses, with others leaving for it; keeps the cheaper."""
        wanted = [(b, pattern) for b, track in enumerate(self.costs.tracks) for pattern in self._nearer(track)]
        gains = [self.price[b] - self._price(self.costs.tracks[b], pattern) for b, pattern in wanted]
        tries = min(_MOST_EXCHANGES, _EXCHANGE_WORK // max(len(self.near), 1))
        for number in sorted(range(len(wanted)), key=lambda n: (-gains[n], n))[:tries]:
            (buffer, pattern), total = wanted[number], sum(self.price)
            if self._price(self.costs.tracks[buffer], pattern) >= self.price[buffer]:
                continue
            before = list(self.near), list(self.price), self.load.copy()
            self._set(buffer, pattern)
            self.kept = buffer
            better = self._evict()
            self.kept = -1
            if better:
                self._bring_back()
            if not better or sum(self.price) >= total * (1 - 1e-9):
                self.near, self.price, self.load = before

    def _nearer(self, track: Track) -> list[list[bool]]:
        """Patterns with more of a content near: all of it, its uses without gaps, one run of uses without a gap."""
        near, segments = self.near[track.buffer], track.segments
        patterns = [self._first_pattern(track)]
        runs = _runs_of_false([not segment.used for segment in segments])
        for first, end in runs | ({(0, len(segments) - 1)} if len(runs) > 1 else set()):
            inside = [first <= q <= end and s.used and self._may(track, q, near=True) for q, s in enumerate(segments)]
            patterns.append(self._tidy(track, [a or b for a, b in zip(near, inside, strict=True)]))
        return [pattern for pattern in patterns if pattern != near]

    def _returns(self, track: Track) -> list[tuple[float, list[bool]]]:
        """Changes of one run of far segments, or of one segment, to near that save something, and how much."""
        near, returns = self.near[track.buffer], []
        runs = _runs_of_false(near)
        if track.loadable and not all(near) and self.quick in track.places:
            returns.append((self._price(track, [True] * len(near)) - self.price[track.buffer], [True] * len(near)))
        for first, end in runs | {(q, q) for q, inside in enumerate(near) if not inside}:
            pattern = [
                inside or (first <= q <= end and self._may(track, q, near=True)) for q, inside in enumerate(near)
            ]
            if pattern != near and (gain := self._price(track, pattern) - self.price[track.buffer]) < 0:
                returns.append((gain, pattern))
        return returns

    def _has_room(self, track: Track, pattern: list[bool]) -> bool:
        """Whether a pattern fits beside everything else."""
        most = self.capacities[self.quick]
        return all(
            self.load[segment.start : segment.end].max(initial=0) + track.size <= most
            for segment, before, after in zip(track.segments, self.near[track.buffer], pattern, strict=True)
            if after and not before
        )


def _relief(track: Track, near: list[bool], pattern: list[bool], excess: IntArray) -> int:
    """The overload that an eviction removes of what each step has in excess, in bytes times steps."""
    return sum(
        int(np.minimum(excess[segment.start : segment.end], track.size).sum())
        for segment, before, after in zip(track.segments, near, pattern, strict=True)
        if before and not after
    )


def _runs_of_false(values: Sequence[bool]) -> set[tuple[int, int]]:
    """The first and the last number of each run of values that are false."""
    runs = [list(run) for value, run in groupby(range(len(values)), values.__getitem__) if not value]
    return {(run[0], run[-1]) for run in runs}

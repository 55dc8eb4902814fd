"""The exact model, solved by OR-Tools' CP-SAT; needs the extra `cpsat`."""

import math
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from types import ModuleType
from typing import Any

import numpy as np

from modelplan.model import Budget, Ended, IntArray, Placement, Problem, bounds
from modelplan.planning.allocators import narrowing, tied_buffers
from modelplan.planning.allocators.allocator_rows import PAIRS_OF_SEARCH, USUAL_DEMANDS, Allocator
from modelplan.planning.allocators.tied_buffers import colliding_pins
from modelplan.primitives.errors import RequestError
from modelplan.primitives.lazy_records import dataclass

#: One step is a thousandth of CP-SAT's deterministic time, which is about a millisecond.
STEPS_PER_UNIT = 1000

#: Steps when the caller sets no budget: a few seconds, for at most so many buffers, as building the model takes longer.
STEPS, MOST_UNTIMED = 500, 1_000

#: Orders that `modelplan` tries for a first placement with contiguous lists.
TRIES = 50

#: Buffers and pairwise choices of order up to which a model is built.
MOST_BUFFERS, MOST_PAIRS = 5000, 200_000


@dataclass(frozen=True, slots=True)
class Pool:
    """A memory with a capacity in bytes (None: as much as needed) and a price for each byte of its height."""

    capacity: int | None = None
    price: int = 1


@dataclass(frozen=True, eq=False)
class Spread:
    """A pool and an offset inside it for each buffer; `cost` is the sum of height times price, `bound` its proof.

    Without buffers when no solution was found; `ended` says why: "infeasible", "budget" or "cancelled".
    """

    pool: IntArray
    offset: IntArray
    cost: int
    bound: int
    ended: Ended


def spread(problem: Problem, pools: Sequence[Pool], budget: Budget | None = None) -> Spread:
    """The cheapest choice of a pool and an offset for each buffer.

    Each buffer has one optional interval per pool, of which exactly one is present.

    Raises:
        RequestError: OR-Tools is missing, no pool, or more buffers than the model takes.
    """
    if not pools:
        raise RequestError("no pool given, expected at least one")
    return _Model(problem, pools).solve(budget or Budget(steps=STEPS), None)


def _ortools() -> ModuleType:
    try:
        from ortools.sat.python import cp_model
    except ImportError:
        raise RequestError("allocator 'cp-sat' needs OR-Tools: pip install 'modelplan[cpsat]'") from None
    return cp_model


class _Model:
    """Offsets in units of a common divisor; NoOverlap2D over time and bytes, pairs in order where facts say more.

    The sum of what is alive never exceeds a pool's height, so with fixed lifetimes the cumulative constraint comes
    down to the load bound, which is stated directly.
    """

    def __init__(self, problem: Problem, pools: Sequence[Pool]) -> None:
        self.cp = _ortools()
        self.problem = problem
        self.pools = pools
        self.ids = np.flatnonzero(problem.size > 0).tolist()
        if len(self.ids) > MOST_BUFFERS:
            raise RequestError(f"'cp-sat' takes at most {MOST_BUFFERS} buffers, found {len(self.ids)}")
        self.unit = _unit(problem)
        self.model = self.cp.CpModel()
        horizon = (int(problem.size.sum()) + int(problem.alignment.sum())) + int(problem.pin.max(initial=0))
        tops = [horizon if p.capacity is None else min(horizon, p.capacity) for p in pools]
        self.most = [top // self.unit for top in tops]
        self.height = [self.model.new_int_var(0, max(most, 0), f"height{k}") for k, most in enumerate(self.most)]
        self.present: dict[tuple[int, int], Any] = {}
        self.free: dict[int, tuple[Any, int]] = {}  # the variable behind an offset, and what it counts in
        self.offset = {b: self._offset(b) for b in self.ids}
        self.twisted = self._pairs_with_facts()
        self._choose_pools()
        self._join_lists()
        self._keep_apart()
        if len(pools) == 1:
            self.model.add(self.height[0] >= -(-bounds.load_bound(problem) // self.unit))
            self._break_symmetry()
        self.model.minimize(sum(p.price * h for p, h in zip(pools, self.height, strict=True)))

    def _scaled(self, b: int) -> int:
        return int(self.problem.size[b]) // self.unit

    def _offset(self, b: int) -> Any:
        """A multiple of the alignment by construction."""
        pin, step = int(self.problem.pin[b]), int(self.problem.alignment[b]) // self.unit
        if pin >= 0:
            return self.model.new_constant(pin // self.unit)
        room = max(max(self.most) - self._scaled(b), -1)
        if room < 0:
            self.model.add_bool_or([])  # fits nowhere
        self.free[b] = (self.model.new_int_var(0, max(room, 0) // step, f"offset{b}"), step)
        return step * self.free[b][0]

    def _choose_pools(self) -> None:
        for b in self.ids:
            chosen = [self.model.new_bool_var(f"in{b},{k}") for k in range(len(self.pools))]
            self.model.add_exactly_one(chosen)
            for k, present in enumerate(chosen):
                self.present[b, k] = present
                self.model.add(self.offset[b] + self._scaled(b) <= self.height[k]).only_enforce_if(present)

    def _join_lists(self) -> None:
        """The buffers of a contiguous list stand at their distances, in one pool."""
        at = {b: distance for b, _, distance in self.problem.rigid.tolist()}
        for first, *others in self.problem.contiguous:
            for b in others:
                self.model.add(self.offset[b] == self.offset[first] + at[b] // self.unit)
                for k in range(len(self.pools)):
                    self.model.add(self.present[b, k] == self.present[first, k])

    def _pairs_with_facts(self) -> list[tuple[int, int]]:
        """Pairs that NoOverlap2D cannot say: extra conflicts, and with overlaps all pairs alive together."""
        p, alive = self.problem, set(self.ids)
        pairs = {(min(a, b), max(a, b)) for a, b in p.conflicts.tolist() if a in alive and b in alive and a != b}
        if len(p.overlaps):
            for i, a in enumerate(self.ids):
                later = np.array(self.ids[i + 1 :], dtype=np.int64)
                together = (p.start[later] < p.end[a]) & (p.start[a] < p.end[later])
                pairs |= {(a, b) for b in later[together].tolist()}
        if len(pairs) > MOST_PAIRS:
            raise RequestError(f"'cp-sat' takes at most {MOST_PAIRS} pairs with facts, found {len(pairs)}")
        return sorted(pairs)

    def _keep_apart(self) -> None:
        allowed = {(a, b): k for a, b, k in self.problem.overlaps.tolist()}
        for a, b in self.twisted:
            together = self.problem.start[a] < self.problem.end[b] and self.problem.start[b] < self.problem.end[a]
            reach = (allowed.get((a, b), 0), allowed.get((b, a), 0)) if together else (0, 0)
            self._order(a, b, reach)
        if len(self.problem.overlaps):
            return
        for k in range(len(self.pools)):
            self._pack(k)

    def _order(self, a: int, b: int, reach: tuple[int, int]) -> None:
        """One of the two is below the other, or they are in different pools."""
        below = self.model.new_bool_var(f"below{a},{b}")
        shared = [self.model.new_bool_var(f"both{a},{b},{k}") for k in range(len(self.pools))]
        for k, both in enumerate(shared):
            here = [self.present[a, k], self.present[b, k]]
            self.model.add_bool_or([both, *(x.negated() for x in here)])
            low = self.offset[a] + self._scaled(a) - reach[0] // self.unit
            high = self.offset[b] + self._scaled(b) - reach[1] // self.unit
            self.model.add(low <= self.offset[b]).only_enforce_if([both, below])
            self.model.add(high <= self.offset[a]).only_enforce_if([both, below.negated()])

    def _pack(self, k: int) -> None:
        lives, bytes_ = [], []
        for b in self.ids:
            start, end = int(self.problem.start[b]), int(self.problem.end[b])
            present, size = self.present[b, k], self._scaled(b)
            lives.append(self.model.new_optional_fixed_size_interval_var(start, end - start, present, f"life{b},{k}"))
            bytes_.append(
                self.model.new_optional_fixed_size_interval_var(self.offset[b], size, present, f"bytes{b},{k}")
            )
        self.model.add_no_overlap_2d(lives, bytes_)

    def _break_symmetry(self) -> None:
        """Orders equal buffers by number, and keeps one buffer in the lower half where a plan may be flipped."""
        p = self.problem
        if len(p.overlaps) or len(p.conflicts) or p.contiguous or (p.pin >= 0).any():
            return
        last: dict[tuple[int, ...], int] = {}
        for b in self.ids:
            key = (int(p.size[b]), int(p.start[b]), int(p.end[b]), int(p.alignment[b]))
            if key in last:
                self.model.add(self.offset[last[key]] <= self.offset[b])
            last[key] = b
        if self.ids and (p.alignment[self.ids] <= self.unit).all():
            b = int(bounds.alive_at(p, bounds.peak_step(p))[0])
            self.model.add(2 * self.offset[b] + self._scaled(b) <= self.height[0])

    def solve(self, budget: Budget, hint: Placement | None) -> Spread:
        """The best solution within the budget, where the search may start from a placement in the first pool.

        `ended` is "optimal", "infeasible", "budget" or "cancelled".
        """
        if hint is not None:
            for b, (variable, step) in self.free.items():
                self.model.add_hint(variable, int(hint.offsets[b]) // self.unit // step)
        solver = self.cp.CpSolver()
        solver.parameters.num_workers = budget.threads
        solver.parameters.random_seed = budget.seed % 2**31
        if budget.steps is not None:
            solver.parameters.max_deterministic_time = budget.steps / STEPS_PER_UNIT
        if budget.seconds is not None:
            solver.parameters.max_time_in_seconds = budget.seconds
        status, cancelled = _interruptibly(solver, self.model)
        words: dict[Any, Ended] = {self.cp.OPTIMAL: "optimal", self.cp.INFEASIBLE: "infeasible"}
        ended: Ended = words.get(status, "cancelled" if cancelled else "budget")
        if status in (self.cp.OPTIMAL, self.cp.FEASIBLE):
            return self._read(solver, ended)
        return Spread(np.zeros(0, np.int64), np.zeros(0, np.int64), 0, 0, ended)

    def _read(self, solver: Any, ended: Ended) -> Spread:
        pool, offset = np.zeros(len(self.problem), dtype=np.int64), np.maximum(self.problem.pin, 0)
        for b in self.ids:
            offset[b] = solver.value(self.offset[b]) * self.unit
            pool[b] = next(k for k in range(len(self.pools)) if solver.value(self.present[b, k]))
        bound = math.ceil(solver.best_objective_bound - 1e-6) * self.unit
        return Spread(pool, offset, round(solver.objective_value) * self.unit, bound, ended)


def _interruptibly(solver: Any, model: Any) -> tuple[Any, bool]:
    """The status, and whether Ctrl-C ended the search, which then keeps its best.

    CP-SAT would take SIGINT over and leave it as "kill the process" behind; so it runs in a thread of its own.
    """
    solver.parameters.catch_sigint_signal = False
    with ThreadPoolExecutor(max_workers=1) as thread:
        search = thread.submit(solver.solve, model)
        try:
            return search.result(), False
        except KeyboardInterrupt:
            while not search.done():
                solver.stop_search()
                time.sleep(0.01)
            return search.result(), True


def _unit(problem: Problem) -> int:
    """What divides every size, alignment, pin and allowed overlap: nothing lies between its multiples."""
    columns = [problem.size, problem.alignment[problem.size > 0], np.maximum(problem.pin, 0), problem.overlaps[:, 2]]
    return int(np.gcd.reduce(np.concatenate(columns), initial=0)) or 1


def _first_placement(problem: Problem) -> Placement:
    """Where the search starts: first fit by size, with contiguous lists a short search of `modelplan`."""
    if not problem.contiguous:
        return narrowing.stand_in(problem)
    packed = tied_buffers.pack(problem, Budget(steps=TRIES))
    return Placement(packed.offsets, found_by="modelplan")


def _run(problem: Problem, budget: Budget) -> Placement:
    """Minimises, or decides at the problem's capacity, where "infeasible" is a proof."""
    if budget.steps is None and budget.seconds is None:
        if len(problem) > MOST_UNTIMED:
            raise RequestError(f"'cp-sat' takes at most {MOST_UNTIMED} buffers without seconds, found {len(problem)}")
        budget = replace(budget, steps=STEPS)
    start = _first_placement(problem)
    hint = None if problem.capacity is not None else start
    try:
        solution = _Model(problem, [Pool(problem.capacity)]).solve(budget, hint)
    except KeyboardInterrupt:  # while the model was built
        return replace(start, ended="cancelled")
    if solution.ended == "infeasible":
        if problem.capacity is None:
            raise RequestError(colliding_pins(problem) or "pins exclude every placement")
        return replace(start, ended="infeasible", lower_bound=problem.capacity + 1)
    if len(solution.offset) < len(problem):
        return replace(start, ended=solution.ended)
    answer = Placement(solution.offset, lower_bound=solution.bound, ended=solution.ended)
    own, top = bounds.height(problem, answer), bounds.height(problem, start)
    given_up = solution.ended != "optimal" and np.array_equal(answer.offsets, start.offsets)
    if own <= top and not given_up:
        return answer
    own_height = None if given_up else own  # of the same offsets: what it started from, not what it found
    return replace(start, lower_bound=solution.bound, ended=solution.ended, own_height=own_height)


ROWS = (
    Allocator(
        "cp-sat",
        _run,
        "NoOverlap2D over fixed lifetimes, OR-Tools CP-SAT (extra `cpsat`)",
        "exact",
        "optimal or infeasible when it ends so; otherwise the best packing met and a proved bound",
        "exponential; 5 units of deterministic time by default",
        honours=USUAL_DEMANDS | {"contiguous"},
        most_pairs=PAIRS_OF_SEARCH,
    ),
)

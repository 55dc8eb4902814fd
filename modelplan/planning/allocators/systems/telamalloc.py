"""A search in the style of TelaMalloc: heuristics propose, a propagation engine judges and names culprits.

The paper's program is not public. Ours keeps its parts: phases by contention, three candidates for the next block
(longest, largest, most area), the lowest address that the engine allows, minor backtracks, major backtracks to the
second-latest culprit, what failed first at the point returned to, longer jumps when stuck, and a step budget.

In `telamalloc-learned` gradient-boosted trees choose the point that a major backtrack returns to. They are trained by
imitation, as in the paper: on recorded searches of generated problems, whose first mistake is found by an exact search
(benchmarks/telamalloc_trees.py). The features are those that descriptions of the paper name (size, lifetime,
contention, phase, depth, returns to it) and what our engine knows of the failure. The trees get half of the budget;
what they leave open is asked again without them. reports/telamalloc.md shows what they gain: little.
"""

from functools import cache, partial
from pathlib import Path

import numpy as np

from modelplan.model import Budget, IntArray, Placement, Problem
from modelplan.planning.allocators import narrowing
from modelplan.planning.allocators.allocator_rows import PAIRS_OF_SEARCH, Allocator
from modelplan.planning.allocators.narrowing import Decision
from modelplan.primitives import _core
from modelplan.primitives.lazy_records import dataclass

#: Placements for a whole minimisation when the caller sets no budget.
STEPS = 20_000

#: Pairs in conflict that the engine holds at most; 8 Mi of them take about 500 MiB.
MOST_PAIRS = 2**23

#: The trees, a row for each node; benchmarks/telamalloc_trees.py writes it.
TREES = Path(__file__).with_name("telamalloc_trees.csv")

#: Major backtracks by the culprits alone before the trees are asked: easy problems end before.
LEARNED_AFTER = 10


@dataclass(frozen=True, slots=True)
class TelamallocOptions:
    """Parts of the search that can be switched off, and after how many returns to one depth it jumps further back.

    `learned`: trees choose the point that a major backtrack returns to.
    """

    phases: bool = True
    smart_backtracks: bool = True
    priorities: bool = True
    stuck_after: int = 8
    learned: bool = False


DEFAULTS = TelamallocOptions()
LEARNED = TelamallocOptions(learned=True)
NO_TREES: IntArray = np.zeros((0, 4), dtype=np.int64)


@cache
def trees() -> IntArray:
    """The table of `TREES`: tree, feature, threshold, row where values above the threshold go on."""
    return np.loadtxt(TREES, dtype=np.int64, delimiter=",", skiprows=1)


def core_options(options: TelamallocOptions) -> tuple[list[str], int, IntArray, int]:
    """The options as the core takes them."""
    without = [name for name in _core.TELAMALLOC_RULES if not getattr(options, name)]
    return without, options.stuck_after, trees() if options.learned else NO_TREES, LEARNED_AFTER


def decide(
    problem: Problem, capacity: int, budget: Budget | None = None, options: TelamallocOptions = DEFAULTS
) -> Decision:
    """A placement within `capacity`, or none: incomplete, so only the engine's verdict on the empty plan is a proof.

    A step is one placement tried. A problem of more than `MOST_PAIRS` pairs in conflict is out of budget at once.

    Cost: exponential at worst; every step propagates over the conflicts of what moved. Memory O(n + pairs).

    Source: Maas, Beaugnon, Chauhan and Ilbeyi, TelaMalloc: Efficient On-Chip Memory Allocation for Production Machine
    Learning Accelerators, ASPLOS 2023, doi 10.1145/3567955.3567961.
    """
    ask = partial(_core.telamalloc_decide, problem.core, capacity, *core_options(options))
    return narrowing.core_decision(problem, budget, MOST_PAIRS, ask)


def _run(problem: Problem, budget: Budget) -> Placement:
    """Places phase by phase, as propagated bounds allow, and returns to the placements behind a failure."""
    return narrowing.decided(problem, budget, decide, STEPS)


def _run_learned(problem: Problem, budget: Budget) -> Placement:
    """Like `telamalloc`, and trained trees choose the placement that a major backtrack returns to."""
    return narrowing.decided(problem, budget, partial(decide, options=LEARNED), STEPS)


def heuristic(problem: Problem, _budget: Budget) -> Placement:
    """Where most bytes are still to be placed the longest first, each on top of all placed in its lifetime.

    The paper's heuristic without its search: what lies below the skyline is never used, nothing is taken back.

    Cost: O(n^2).
    """
    return Placement(_Skyline(problem).placed())


class _Skyline:
    """The top of what is placed and the bytes still to be placed, for each section between two starts or ends.

    address ^     +----+
            |  +--+    +--+     a buffer of the middle section lies on the highest top of its lifetime
            +-----------------> sections
    """

    def __init__(self, problem: Problem) -> None:
        times = np.unique(np.concatenate([problem.start, problem.end]))
        self.problem = problem
        self.first, self.last = np.searchsorted(times, problem.start), np.searchsorted(times, problem.end)
        self.top = np.zeros(len(times), dtype=np.int64)
        self.contention = np.zeros(len(times), dtype=np.int64)
        self.offset = np.zeros(len(problem), dtype=np.int64)
        self.ends = np.zeros(len(problem), dtype=np.int64)
        self.apart: dict[int, list[int]] = {}
        for a, b in problem.conflicts.tolist():
            self.apart.setdefault(a, []).append(b)
            self.apart.setdefault(b, []).append(a)

    def placed(self) -> IntArray:
        """The offset of each buffer; what is pinned comes first."""
        p = self.problem
        for b in np.flatnonzero(p.pin >= 0).tolist():
            self._put(b, int(p.pin[b]))
        left = np.lexsort((-p.size, p.start - p.end))  # longest first, then largest, ties by number
        left = left[(p.size[left] > 0) & (p.pin[left] < 0)]
        np.add.at(self.contention, self.first[left], p.size[left])
        np.add.at(self.contention, self.last[left], -p.size[left])
        self.contention = np.cumsum(self.contention)
        while len(left):
            section = int(np.argmax(self.contention))
            at = int(np.argmax((self.first[left] <= section) & (section < self.last[left])))
            b, left = int(left[at]), np.delete(left, at)
            self._put(b, self._lowest(b))
            self.contention[self.first[b] : self.last[b]] -= p.size[b]
        return self.offset

    def _lowest(self, b: int) -> int:
        """The lowest offset above all that is placed in the lifetime of `b`, and above its extra conflicts."""
        top = int(self.top[self.first[b] : self.last[b]].max())
        top = max([top, *(int(self.ends[other]) for other in self.apart.get(b, ()))])
        step = int(self.problem.alignment[b])
        return -(-top // step) * step

    def _put(self, b: int, offset: int) -> None:
        self.offset[b] = offset
        if self.problem.size[b]:
            self.ends[b] = offset + self.problem.size[b]
            alive = slice(self.first[b], self.last[b])
            self.top[alive] = np.maximum(self.top[alive], self.ends[b])


ROWS = (
    Allocator(
        "telamalloc",
        _run,
        "in the style of Maas et al., ASPLOS 2023, doi 10.1145/3567955.3567961",
        "search",
        "none when it gives up",
        "exponential at worst; memory O(n + pairs in conflict); 20,000 placements by default",
        omits="the learned choice of the point to return to: `telamalloc-learned` has it",
        most_pairs=PAIRS_OF_SEARCH,
    ),
    Allocator(
        "telamalloc-learned",
        _run_learned,
        "in the style of Maas et al., ASPLOS 2023, with trees of our own training (benchmarks/telamalloc_trees.py)",
        "search",
        "none when it gives up",
        "exponential at worst; memory O(n + pairs in conflict); 20,000 placements by default",
        omits="the paper's own features, training problems and trees, which are not public",
        most_pairs=PAIRS_OF_SEARCH,
    ),
    Allocator(
        "telamalloc-heuristic",
        heuristic,
        "the heuristic alone, as in Maas et al., ASPLOS 2023, doi 10.1145/3567955.3567961",
        "offsets",
        "none",
        "O(n^2)",
        invariants=frozenset({"scaling"}),
    ),
)

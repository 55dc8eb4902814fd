"""MiniMalloc: an exact, canonical branch and bound for "does it fit in C?", and its minimisation by bisection."""

from functools import partial

from modelplan.model import Budget, Placement, Problem
from modelplan.planning.allocators import narrowing
from modelplan.planning.allocators.allocator_rows import PAIRS_OF_SEARCH, Allocator
from modelplan.planning.allocators.narrowing import Decision
from modelplan.primitives import _core
from modelplan.primitives.lazy_records import dataclass

#: Preorders that take turns. Keys, all descending: Area, seCtions, Lower, Overlaps, Total, Upper, Width, siZe.
ORDERS = ("WAT", "TAW", "TWA")

#: Nodes for a whole minimisation when the caller sets no budget.
STEPS = 200_000

#: What the question for the load bound gets of a budget: where that fits, nodes in plenty find it, and few never do.
FIRST_SHARE = 4 / 5

#: Overlapping pairs that the search lists at most; 32 Mi of them take 256 MiB.
MOST_PAIRS = 2**25


@dataclass(frozen=True, slots=True)
class Rules:
    """The nine inference rules; switching one off changes the number of nodes, never the answer."""

    canonical_only: bool = True
    section_inference: bool = True
    dynamic_ordering: bool = True
    check_dominance: bool = True
    unallocated_floor: bool = True
    static_preordering: bool = True
    dynamic_decomposition: bool = True
    monotonic_floor: bool = True
    hatless_pruning: bool = True


ALL_RULES = Rules()


def decide(
    problem: Problem,
    capacity: int,
    budget: Budget | None = None,
    *,
    orders: tuple[str, ...] = ORDERS,
    rules: Rules = ALL_RULES,
) -> Decision:
    """Whether `problem` fits in `capacity`: feasible, infeasible and out of budget are three different answers.

    With several `orders` they take turns with a limit of 2n nodes that doubles every round, each time from scratch;
    with one order only the budget limits it. A step is a node. A problem of more than `MOST_PAIRS` overlapping pairs
    is out of budget at once.

    Raises:
        ValueError: an unknown key in `orders`, or a problem with overlaps or extra conflicts.

    Cost: exponential at worst; memory O(n + sections + overlapping pairs).

    Source: Moffitt, MiniMalloc: A Lightweight Memory Allocator for Hardware-Accelerated Machine Learning, ASPLOS 2023,
    doi 10.1145/3623278.3624752; google/minimalloc, solver.cc, sweeper.cc.
    """
    without = [name for name in _core.MINIMALLOC_RULES if not getattr(rules, name)]
    ask = partial(_core.minimalloc_decide, problem.core, capacity, list(orders), without)
    return narrowing.core_decision(problem, budget, MOST_PAIRS, ask)


def _run(problem: Problem, budget: Budget) -> Placement:
    """A canonical branch and bound: decides a capacity, or the load bound first and then by bisection what is above."""
    return narrowing.decided(problem, budget, decide, STEPS, FIRST_SHARE)


ROWS = (
    Allocator(
        "minimalloc",
        _run,
        "Moffitt, ASPLOS 2023, doi 10.1145/3623278.3624752; google/minimalloc",
        "exact",
        "optimal or infeasible when it ends so; otherwise the best packing met",
        "exponential; memory O(n + overlapping pairs); 200,000 nodes by default",
        honours=frozenset({"alignment", "pins"}),
        most_pairs=PAIRS_OF_SEARCH,
    ),
)

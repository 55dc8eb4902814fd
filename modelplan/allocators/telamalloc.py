"""A search in the style of TelaMalloc: heuristics propose, a propagation engine judges and names culprits.

The paper's program is not public. Ours keeps its parts: phases by contention, three candidates for the next block
(longest, largest, most area), the lowest address that the engine allows, minor backtracks, major backtracks to the
second-latest culprit, what failed first at the point returned to, longer jumps when stuck, and a step budget. The
learned choice of the point to return to, which needs a trained model, is not part of it.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

from modelplan import _core
from modelplan.allocators import narrowing
from modelplan.allocators.narrowing import Decision
from modelplan.allocators.table import Allocator
from modelplan.bounds import columns
from modelplan.types import Budget, Placement, Problem

#: Placements for a whole minimisation when the caller sets no budget.
STEPS = 20_000

#: Pairs in conflict that the engine is ready to hold; 8 Mi of them take about 500 MiB.
MOST_PAIRS = 2**23


@dataclass(frozen=True, slots=True)
class Options:
    """Parts of the search that can be switched off, and after how many returns to one depth it jumps further back."""

    phases: bool = True
    smart_backtracks: bool = True
    priorities: bool = True
    stuck_after: int = 8


DEFAULTS = Options()


def decide(problem: Problem, capacity: int, budget: Budget | None = None, options: Options = DEFAULTS) -> Decision:
    """A placement within `capacity`, or none: incomplete, so only the engine's verdict on the empty plan is a proof.

    A step is one placement tried. A problem of more than `MOST_PAIRS` pairs in conflict is out of budget at once.

    Cost: exponential at worst; every step propagates over the conflicts of what moved. Memory O(n + pairs).

    Source: Maas, Beaugnon, Chauhan and Ilbeyi, TelaMalloc: Efficient On-Chip Memory Allocation for Production Machine
    Learning Accelerators, ASPLOS 2023, doi 10.1145/3567955.3567961.
    """
    flags = [options.phases, options.smart_backtracks, options.priorities]
    ask = partial(_core.telamalloc_decide, *columns(problem), capacity, flags, options.stuck_after)
    return narrowing.core_decision(problem, budget, MOST_PAIRS, ask)


def _run(problem: Problem, budget: Budget) -> Placement:
    """Places phase by phase, as propagated bounds allow, and returns to the placements behind a failure."""
    return narrowing.decided(problem, budget, decide, STEPS)


ROWS = (
    Allocator(
        "telamalloc",
        _run,
        "in the style of Maas et al., ASPLOS 2023, doi 10.1145/3567955.3567961",
        "search",
        "none when it gives up",
        "exponential at worst; memory O(n + pairs in conflict); 20,000 placements by default",
        omits="the learned choice of the point to return to, which needs a trained model",
    ),
)

"""IREE's layout of transient slices: in the order of their lifetimes, by the arena's gap rule.

Source: iree, compiler/src/iree/compiler/Dialect/Stream/Transforms/LayoutSlices.cpp. Only slices of known size:
those of dynamic size go to bins of their own there, and a problem has none.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from modelplan.model import Budget, Placement, Problem
from modelplan.planning.allocators.greedy import GapRule, in_order, sizes_rounded
from modelplan.planning.allocators.table import GAP_FIT_TO_LOAD, Allocator


def place_slices(problem: Problem, _budget: Budget) -> Placement:
    """By start, then end; sizes rounded up; the tightest gap by the arena's lopsided comparison."""
    return _place(problem, GapRule.MIXED)


def place_slices_fixed(problem: Problem, _budget: Budget) -> Placement:
    """Like the original, the tightest gap by usable bytes."""
    return _place(problem, GapRule.TIGHTEST)


def _place(problem: Problem, fit: GapRule) -> Placement:
    order = np.lexsort((problem.end, problem.start))
    return in_order(replace(problem, size=sizes_rounded(problem)), order, fit)


ROWS: tuple[Allocator, ...] = (
    GAP_FIT_TO_LOAD(
        "iree",
        place_slices,
        "IREE, Dialect/Stream/Transforms/LayoutSlices.cpp",
        alignment=64,
        quirks="gaps are compared lopsidedly when alignment leaves padding",
        fixed=place_slices_fixed,
        omits="bins for slices of dynamic size: a problem has none",
    ),
)

"""The types of the table of allocators: a row, and the answer of a planner of shared objects."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Literal

import numpy as np

from modelplan.model import Budget, Ended, IntArray, Placement, Problem
from modelplan.primitives.lazy_records import dataclass

Run = Callable[[Problem, Budget], Placement]
Demand = Literal["alignment", "pins", "overlaps", "conflicts", "groups", "meetings", "contiguous"]
Invariant = Literal["scaling", "reversal", "load"]
Kind = Literal["portfolio", "baseline", "offsets", "objects", "online", "search", "exact", "colouring"]

#: The pairs of a row that looks at each once or twice, of one that does so some ten times, and of a search.
EACH_PAIR, PAIRS_AGAIN, PAIRS_OF_SEARCH = 1_000_000, 300_000, 20_000
#: What most allocators can honour: demands on single buffers and on pairs of them.
USUAL_DEMANDS: frozenset[Demand] = frozenset({"alignment", "pins", "overlaps", "conflicts"})
#: Packing of rigid groups, which only rows that say so can do.
EVERY_DEMAND: frozenset[Demand] = USUAL_DEMANDS | {"groups", "meetings", "contiguous"}


@dataclass(frozen=True, eq=False)
class Objects:
    """Which shared object holds each buffer (-1: an empty buffer needs none), and how many bytes each object has.

    An object holds one buffer at a time, at its start: reuse without splitting.
    """

    holder: IntArray
    sizes: tuple[int, ...]
    ended: Ended = "complete"

    @property
    def total(self) -> int:
        """Bytes of all objects, the planner's own figure: no padding between them."""
        return sum(self.sizes)


@dataclass(frozen=True, slots=True)
class Records:
    """The buffers of at least one byte by rising start, ties by number, as planners of usage records want them."""

    buffers: IntArray
    size: IntArray
    start: IntArray
    end: IntArray

    @classmethod
    def of(cls, problem: Problem) -> Records:
        """The records of `problem`. Cost: O(n log n)."""
        order = np.argsort(problem.start, kind="stable")
        buffers = order[problem.size[order] > 0]
        return cls(buffers, problem.size[buffers], problem.start[buffers], problem.end[buffers])

    def spread(self, values: IntArray, count: int, missing: int) -> IntArray:
        """One value per buffer of the problem, `missing` for those without a record."""
        column = np.full(count, missing, dtype=np.int64)
        column[self.buffers] = values
        return column

    def objects(self, problem: Problem, holder: IntArray) -> Objects:
        """The objects of one number per record; each is as large as its largest buffer."""
        sizes = np.zeros(int(holder.max(initial=-1)) + 1, dtype=np.int64)
        np.maximum.at(sizes, holder, self.size)
        return Objects(self.spread(holder, len(problem), -1), tuple(sizes.tolist()))


Share = Callable[[Problem, Budget], Objects]


@dataclass(frozen=True, slots=True)
class Allocator:
    """One row of the table.

    Args:
        name: what users type.
        run: returns offsets; it cannot report its own height.
        source: the publication or program, with the place in it.
        kind: "offsets" plans addresses, "objects" shares whole blocks laid end to end, "online" goes by step.
        guarantees: what is proved about the height, in words; "none" where nothing is.
        cost: time, and memory where it is not linear.
        honours: the demands beyond size and lifetime that it respects; a problem with another demand is refused, but
            for contiguous lists, which a row without them gets as one buffer each (`tied_buffers.py`).
        one_alignment: whether it only takes problems in which all buffers have the same alignment.
        fast: whether the portfolio `best` runs it.
        alignment: what the original aligns every offset to; `run` keeps to the problem's alignments.
        share: of a planner of shared objects, the objects behind `run`'s offsets.
        quirks: the faults of the original that `run` reproduces.
        omits: the parts of the original that it leaves out, and why.
        also_called: other names of the method.
        fixed: the same method without these faults; becomes a row of its own, `NAME-fixed`.
        most_pairs: pairs of buffers in conflict up to which `compare` asks it about a model without seconds.
        invariants: what the tests may expect: "scaling" (sizes and alignments times k: offsets times k),
            "reversal" (time reversed: same height), "load" (meets the load bound when all sizes are equal).
    """

    name: str
    run: Run
    source: str
    kind: Kind
    guarantees: str
    cost: str
    honours: frozenset[Demand] = USUAL_DEMANDS
    one_alignment: bool = False
    fast: bool = False
    alignment: int = 1
    share: Share | None = None
    quirks: str = ""
    omits: str = ""
    also_called: str = ""
    fixed: Run | None = None
    most_pairs: float = EACH_PAIR
    invariants: frozenset[Invariant] = frozenset()

    @property
    def summary(self) -> str:
        """What it does, in a sentence: the promise of the function behind it."""
        behind = self.share or self.run
        while isinstance(behind, partial):
            behind = behind.func
        return (behind.__doc__ or "").partition("\n")[0]

    @property
    def variants(self) -> tuple[Allocator, ...]:
        """The row itself, and the repaired one where there is one."""
        if self.fixed is None:
            return (self,)
        repaired = replace(
            self, name=f"{self.name}-fixed", run=self.fixed, fixed=None, quirks="", fast=False, one_alignment=False
        )
        return (self, repaired)


def baseline(name: str, run: Run, source: str, alignment: int = 1) -> Allocator:
    """A row without reuse: whatever lies end to end is right for every relation of conflicts."""
    return Allocator(
        name,
        run,
        source,
        "baseline",
        "the sum of the sizes",
        "O(n)",
        honours=frozenset({"alignment", "overlaps", "conflicts"}),
        alignment=alignment,
        most_pairs=math.inf,
        invariants=frozenset({"scaling", "reversal"}),
    )


#: What a row guarantees that meets the load bound when all sizes are equal.
EQUAL_SIZES = "load for equal sizes"
#: A row that puts each buffer of an order into a gap between those placed before it.
GAP_FIT = partial(
    Allocator,
    kind="offsets",
    guarantees="none",
    cost="O(n log n + n k log k)",
    invariants=frozenset({"scaling"}),
)
#: Such a row that meets the load bound when all sizes are equal.
GAP_FIT_TO_LOAD = partial(GAP_FIT, guarantees=EQUAL_SIZES, invariants=frozenset({"scaling", "load"}))


def sharing(
    name: str,
    share: Share,
    source: str,
    cost: str,
    guarantees: str = "none",
    omits: str = "",
    most_pairs: float = EACH_PAIR,
) -> Allocator:
    """The row of a planner of shared objects, whose offsets are its objects end to end."""
    return Allocator(
        name,
        partial(_lay_objects, share),
        source,
        "objects",
        guarantees,
        cost,
        honours=frozenset({"alignment", "overlaps"}),
        share=share,
        invariants=frozenset({"scaling", "load"} if guarantees == EQUAL_SIZES else {"scaling"}),
        omits=omits,
        most_pairs=most_pairs,
    )


def _lay_objects(share: Share, problem: Problem, budget: Budget) -> Placement:
    objects = share(problem, budget)
    return Placement(laid_out(problem, objects), ended=objects.ended)


def laid_out(problem: Problem, objects: Objects) -> IntArray:
    """The offset of each buffer when the objects lie end to end in the order of their numbers.

    Each object starts at the next multiple of every alignment inside it.
    """
    alignment = np.ones(len(objects.sizes), dtype=np.int64)
    held = objects.holder >= 0
    np.lcm.at(alignment, objects.holder[held], problem.alignment[held])
    starts, top = [], 0
    for size, step in zip(objects.sizes, alignment.tolist(), strict=True):
        starts.append(-(-top // step) * step)
        top = starts[-1] + size
    return np.array([0 if h < 0 else starts[h] for h in objects.holder], dtype=np.int64)

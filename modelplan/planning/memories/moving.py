"""From a plan and memories that are too small to a layout that moves, replayed by the simulator."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace

from modelplan.answers.moving_layout import MovingPlan
from modelplan.answers.region_layout import PROCESSOR, RegionProblem
from modelplan.checking.moves_simulator import simulate
from modelplan.checking.region_referee import check_layout
from modelplan.model import Plan
from modelplan.planning.memories.asking import owners_of, region_problem
from modelplan.planning.memories.prefetching import plan_moves
from modelplan.targets.device import Dma, Region


def moving_plan(plan: Plan, asked: RegionProblem, method: str = "greedy", seconds: float = 60.0) -> MovingPlan:
    """The layout of a plan's buffers and weights in several memories whose contents move, with its replay.

    Args:
        plan: order and sharing; its placement is not used.
        asked: the `moving_problem` of the plan.
        method: `greedy` or `exact`.
        seconds: the limit of each run of the exact program.

    Raises:
        RequestError: a step whose operands do not fit; names it.
        BrokenPlanError: the referee or the replay found a fault.
    """
    moving = plan_moves(asked, method, seconds)
    check_layout(asked, replace(moving.layout, bound=0.0))  # the simulator checks the bound: it counts copies too
    return MovingPlan(
        plan, asked, moving.layout, simulate(asked, moving.layout), moving.blocking, moving.floor,
        moving.spilled.cost, moving.spilled.relaxed, method, plan.made_by, owners_of([plan]),
    )  # fmt: skip


def moving_problem(
    plan: Plan,
    regions: Sequence[Region],
    dma: Dma | None = None,
    copied_only: Collection[str] = (),
    reader: str = "",
    macs_per_second: float | None = None,
) -> RegionProblem:
    """The question of a layout whose contents move: they leave the fastest region.

    Args:
        plan: order and sharing; its placement is not used.
        regions: the memories.
        dma: what copies; None: the processor.
        copied_only: names of regions that operators do not reach.
        reader: what runs the operators, where regions say by whom they are reached.
        macs_per_second: how fast operators compute; None: they take the time of their accesses only.

    Raises:
        RequestError: a buffer fits in no region that may hold it; names it.
    """
    asked = region_problem([plan], regions, reader=reader, macs_per_second=macs_per_second)
    asked = _with_homes(asked, [purpose for _, purpose in owners_of([plan])])
    hidden = frozenset(number for number, region in enumerate(regions) if region.name in copied_only)
    return replace(asked, dma=dma or PROCESSOR, copied_only=hidden)


def _with_homes(asked: RegionProblem, purposes: Sequence[str]) -> RegionProblem:
    """The question in which weights and state are after the run where they were before: the next run needs them.

    What has no home in flash gets one in the largest memory that may hold it.
    """
    room = [region.size - region.reserved for region in asked.regions]
    homes = [
        max(allowed, key=lambda number: room[number]) if home < 0 and purpose in ("weights", "state") else home
        for home, allowed, purpose in zip(asked.home, asked.allowed, purposes, strict=True)
    ]
    return replace(asked, home=tuple(homes))

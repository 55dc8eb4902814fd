"""Plans models in several memories: asks, chooses, proves."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from modelplan.answers.region_layout import Layout, RegionProblem
from modelplan.answers.region_plan import RegionPlan
from modelplan.checking import region_referee as referee
from modelplan.checking.verifier import proof
from modelplan.checking.verifier.subject import plan_subject
from modelplan.model import Placement, Plan
from modelplan.planning.memories.asking import owners_of, region_problem
from modelplan.planning.memories.choosing import Choosing, chosen_layout
from modelplan.primitives.version import __version__
from modelplan.targets.device import Region


def plan_regions(
    plans: Sequence[Plan],
    regions: Sequence[Region],
    choosing: Choosing | None = None,
    *,
    reader: str = "",
    macs_per_second: float | None = None,
) -> RegionPlan:
    """Models in several memories: a region and an offset for every buffer and all weights.

    Args:
        plans: one for each model, as `plan` makes them; they run one after the other.
        regions: the memories, in the order of preference where costs are equal.
        choosing: how regions are chosen.
        reader: what runs the operators, where regions say by whom they are reached.
        macs_per_second: how fast it computes; None: no time beside memory accesses.

    Raises:
        ShortageError: the regions are too small.
        RequestError: a buffer fits in no region that may hold it.
        BrokenPlanError: a stage went wrong; never to be seen.
    """
    how = choosing or Choosing()
    problem = region_problem(plans, regions, reader=reader, macs_per_second=macs_per_second)
    layout = chosen_layout(problem, how)
    made_by = f"modelplan {__version__}"
    owners = owners_of(plans)
    region_plan = RegionPlan(tuple(plans), problem, layout, owners, how.both_ends, made_by)
    prove(region_plan)
    return region_plan


def prove(region_plan: RegionPlan) -> None:
    """Returns only if the layout is sound: the referee has seen it, and replaying each model finds nothing overwritten.

    Raises:
        BrokenPlanError: names the buffer, or the operator that reads what another has overwritten.
    """
    referee.check_layout(region_plan.problem, region_plan.layout)
    if region_plan.layout.copies or len(region_plan.layout.stays) != len(region_plan.problem.problem):
        return  # buffers that move have no one address to replay with; the referee has followed their contents
    addresses = _flat_addresses(region_plan.problem, region_plan.layout)
    for number, plan in enumerate(region_plan.plans):
        own = [i for i, (owner, _) in enumerate(region_plan.owners) if owner == number][: len(plan.problem)]
        placed = Placement(np.array([addresses[i] for i in own], dtype=np.int64))
        proof.prove(plan_subject(replace(plan, placement=placed, problem=replace(plan.problem, capacity=None))))


def _flat_addresses(problem: RegionProblem, layout: Layout) -> dict[int, int]:
    """The regions one behind the other as one memory: for each buffer where it lies there."""
    first, flat_addresses = 0, dict[int, int]()
    for number, region in enumerate(problem.regions):
        shift = (region.base or 0) % 4096 if region.base is not None else 0
        flat_addresses |= {stay.buffer: first + shift + stay.offset for stay in layout.stays if stay.region == number}
        first += -(-(shift + region.size) // 4096) * 4096
    return flat_addresses

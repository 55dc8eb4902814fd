"""TFLM in several memories: its two arenas and the model file, each whole in one region, or its one arena."""

from __future__ import annotations

from dataclasses import replace
from itertools import product

from modelplan.answers.region_layout import free_range
from modelplan.answers.region_plan import RegionPlan, TflmArena
from modelplan.runtimes.tflm.arena import arena
from modelplan.runtimes.tflm.file import FileModel
from modelplan.runtimes.tflm.planner import ALIGNMENT
from modelplan.runtimes.tflm.two_arenas import two_arenas

#: The part of the question that each of the three is made of; what is kept beside state is read too rarely to count.
_PARTS = (("state",), ("activation", "input", "output", "scratch"), ("weights",))


def with_arenas(region_plan: RegionPlan, model: FileModel, abi: str, kernels: str) -> RegionPlan:
    """The plan with TFLM's two arenas and the model file in the regions where operators wait least for them.

    TFLM places no single buffer in a memory of its own: tensors and scratch share the non-persistent arena, and weights
    stay in the file. Nothing but the file lies in memory that is not written; it may be copied to one that is.
    """
    arena_pair = two_arenas(model, abi, kernels)
    sizes = arena_pair.persistent, arena_pair.non_persistent, len(model.data)
    rest = arena_pair.non_persistent > arena_pair.head
    regions, costs = region_plan.problem.regions, _costs(region_plan)
    written = [r for r, region in enumerate(regions) if region.kind != "nvm"]
    choices = product(written, written, range(len(regions)))
    fitting = [where for where in choices if _fit(region_plan, sizes, where)]
    where = min(fitting, key=lambda w: sum(costs[part][r] for part, r in enumerate(w)), default=(-1, -1, -1))
    holds = (
        "what stays: eval tensors, quantisation, operators' data, variables",
        f"tensors and scratch {arena_pair.head:,}" + (", the rest until the plan stands" if rest else ""),
        "the model file with its weights",
    )
    names = "persistent", "non-persistent", "model file"
    rows = zip(names, sizes, holds, where, range(3), strict=True)
    arenas = (TflmArena(n, size, what, r, costs[part][r] if r >= 0 else 0.0) for n, size, what, r, part in rows)
    return replace(region_plan, arenas=(*arenas, _one_arena(region_plan, model, abi, kernels)))


def _one_arena(region_plan: RegionPlan, model: FileModel, abi: str, kernels: str) -> TflmArena:
    """The arena of TFLM as it usually is: the head from its lower end, the tail from its upper end, in one region."""
    whole = arena(model, abi, kernels)
    size = whole.size()
    for number, region in enumerate(region_plan.problem.regions):
        low, high = free_range(region, ALIGNMENT)
        if region.kind != "nvm" and size <= high - low:
            at = low + (region.base or 0)
            ends = "" if region.base is None else f" at {at:#x}..{at + whole.head:#x}"
            tail = "" if region.base is None else f" at {at + size - whole.tail:#x}..{at + size:#x}"
            free = f"{high - low - size:,} bytes of the region free behind it"
            holds = f"head {whole.head:,}{ends}, tail {whole.tail:,}{tail}; {free}"
            return TflmArena("one arena", size, holds, number)
    return TflmArena("one arena", size, f"head {whole.head:,}, tail {whole.tail:,}", -1)


def _costs(region_plan: RegionPlan) -> list[list[float]]:
    """For each of the three the seconds of a run in each region."""
    part_of = {kind: part for part, kinds in enumerate(_PARTS) for kind in kinds}
    costs = [[0.0] * len(region_plan.problem.regions) for _ in _PARTS]
    for access in region_plan.problem.accesses:
        part = part_of[region_plan.owners[access.buffer][1]]
        for r, region in enumerate(region_plan.problem.regions):
            costs[part][r] += region.seconds(access.read, access.written)
    return costs


def _fit(region_plan: RegionPlan, sizes: tuple[int, ...], where: tuple[int, ...]) -> bool:
    """Whether the parts assigned to a region fit in it, each aligned to 16 bytes."""
    for r, region in enumerate(region_plan.problem.regions):
        low, high = free_range(region, ALIGNMENT)
        given = sum(-(-size // ALIGNMENT) * ALIGNMENT for size, place in zip(sizes, where, strict=True) if place == r)
        if given > high - low:
            return False
    return True

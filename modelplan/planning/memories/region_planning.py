"""Plans models in several memories: asks, chooses, proves; contents that stay or move, and TFLM's arenas.

TFLM places no buffer by itself: its two arenas and the model file lie each in one region, or its one arena does.
"""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace
from itertools import product

import numpy as np

from modelplan.answers.moving_layout import MovingPlan
from modelplan.answers.region_layout import PROCESSOR, Access, Layout, RegionProblem, free_range
from modelplan.answers.region_plan import RegionPlan, TflmArena
from modelplan.checking.moves_simulator import simulate
from modelplan.checking.verifier import proof
from modelplan.checking.verifier.subject import plan_subject
from modelplan.model import Placement, Plan, Problem
from modelplan.planning.memories.asking import owners_of, region_problem
from modelplan.planning.memories.memory_choice import Choosing, ShortageError, chosen_layout
from modelplan.planning.memories.prefetching import plan_moves
from modelplan.primitives.errors import BrokenPlanError, RequestError
from modelplan.primitives.version import __version__
from modelplan.runtimes.tflm.arena import arena
from modelplan.runtimes.tflm.file import FileModel
from modelplan.runtimes.tflm.other_arenas import two_arenas
from modelplan.runtimes.tflm.planner import ALIGNMENT
from modelplan.targets.device import Dma, Region

#: Sums of the same seconds in another order may differ by so much of them.
_ROUNDING = 1e-9


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


def plan_table(problem: Problem, name: str, regions: Sequence[Region], choosing: Choosing | None = None) -> RegionPlan:
    """The buffers of a table in several memories; each counts as written once, in its first step, and read once.

    A buffer with a pin lies there in the first memory.

    Raises:
        ShortageError: the regions are too small.
        RequestError: the table ties addresses of buffers to each other, or pins one where nothing can lie.
        BrokenPlanError: a stage went wrong; never to be seen.
    """
    if len(problem.groups) or len(problem.meetings) or problem.contiguous:
        raise RequestError(
            f"{name} ties addresses of buffers (group, list, meets, gaps); `solve` places it in one memory"
        )
    how, first = choosing or Choosing(), int(problem.start.min(initial=0))
    moved = replace(problem, start=problem.start - first, end=problem.end - first, capacity=None)
    columns = (moved.start, np.maximum(moved.end - 1, moved.start), moved.size)
    rows = list(zip(*(column.tolist() for column in columns), strict=True))
    accesses = [Access(start, buffer, 0, size) for buffer, (start, _, size) in enumerate(rows)]
    accesses += [Access(last, buffer, size, 0) for buffer, (_, last, size) in enumerate(rows)]
    asked = RegionProblem(
        moved,
        tuple(regions),
        tuple(sorted(accesses, key=lambda access: access.step)),
        tuple(_places(moved, regions)),
        (-1,) * len(rows),
        (0.0,) * int(moved.end.max(initial=1)),
    )
    try:
        layout = chosen_layout(asked, how)
    except ValueError as problem_of_pin:
        raise RequestError(f"{name}: {problem_of_pin}; a pin is an address in {regions[0].name}") from None
    owners = ((0, "activation"),) * len(rows)
    return RegionPlan((), asked, layout, owners, how.both_ends, f"modelplan {__version__}", name=name)


def _places(problem: Problem, regions: Sequence[Region]) -> Iterator[tuple[int, ...]]:
    """For each buffer of a table the regions that are large enough; of one with a pin the first region alone."""
    most = max(region.size for region in regions)
    for name, size, pin in zip(problem.names, problem.size.tolist(), problem.pin.tolist(), strict=True):
        places = tuple(r for r, region in enumerate(regions[: 1 if pin >= 0 else None]) if size <= region.size)
        if not places:
            raise ShortageError(f"{name} of {size:,} bytes fits no memory: the largest has {most:,}")
        yield places


def prove(region_plan: RegionPlan) -> None:
    """Returns only if the layout is sound: the simulator has run it, and no replay of a model finds bytes overwritten.

    Raises:
        BrokenPlanError: names the buffer, or the operator that reads what another has overwritten.
    """
    simulate(region_plan.problem, replace(region_plan.layout, bound=0.0))
    bound, waited = region_plan.layout.bound, region_plan.seconds  # no home is read beside a stay, quick as it may be
    if bound > waited * (1 + _ROUNDING) + 1e-15:
        raise BrokenPlanError(f"the layout claims a bound of {bound} s, but takes {waited} s")
    if region_plan.layout.copies or len(region_plan.layout.stays) != len(region_plan.problem.problem):
        return  # buffers that move have no one address to replay with; the simulator has followed their contents
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


def moving_plan(plan: Plan, asked: RegionProblem, method: str = "greedy", seconds: float = 60.0) -> MovingPlan:
    """The layout of a plan's buffers and weights in several memories whose contents move, with its replay.

    Args:
        plan: order and sharing; its placement is not used.
        asked: the `moving_problem` of the plan.
        method: `greedy` or `exact`.
        seconds: the limit of each run of the exact program.

    Raises:
        RequestError: a step whose operands do not fit; names it.
        BrokenPlanError: the replay found a fault.
    """
    moving = plan_moves(asked, method, seconds)
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

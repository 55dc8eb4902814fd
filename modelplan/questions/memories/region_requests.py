"""`memories`, `spill` and `stream`: models whose contents lie in several memories, or move between them."""

from __future__ import annotations

from dataclasses import field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from modelplan.formats import load_table
from modelplan.model.model_file import USUAL_ABI
from modelplan.planning.memories.memory_choice import Choosing
from modelplan.primitives.errors import RequestError
from modelplan.primitives.lazy_records import dataclass
from modelplan.primitives.settled_requests import SettledRequest, answers_paths, as_request
from modelplan.questions.model_request import ModelRequest, model_plan
from modelplan.targets.stated_regions import parse_memories

if TYPE_CHECKING:
    from modelplan.answers.moving_layout import MovingPlan, StreamCurve
    from modelplan.answers.region_plan import RegionPlan
    from modelplan.planning.memories.streaming import Link
    from modelplan.targets.device import Dma, Region


@dataclass(frozen=True, slots=True)
class MemoriesRequest(SettledRequest):
    """Asks for a region and an offset for every buffer and all weights of models that run one after the other.

    Args:
        models: the models, each with how it is planned.
        regions: the memories, in the order of preference where costs are equal.
        choosing: how regions are chosen.
        reader: what runs the operators, where regions say by whom they are reached.
        macs_per_second: how fast it computes; None: no time beside memory accesses.
        table: in place of models the path of a table of buffers (.csv, .pte, a dump of XLA), each of which counts as
            written once and read once.
        part: which memory of a program, or which allocation of a dump, where there are several.
    """

    models: tuple[ModelRequest, ...]
    regions: tuple[Region, ...]
    choosing: Choosing = field(default_factory=Choosing)
    reader: str = ""
    macs_per_second: float | None = None
    table: str = ""
    part: str = ""

    def settled(self, name: str, kind: str, given: Any) -> Any:
        """A field as its type asks; models also by their paths, memories as "256KiB+8MiB"."""
        if name == "regions" and isinstance(given, str):
            return parse_memories(given)
        given = SettledRequest.settled(self, name, kind, given)
        return tuple(as_request(ModelRequest, model, "models") for model in given) if name == "models" else given


def place_in_memories(request: MemoriesRequest) -> RegionPlan:
    """Models in several memories: every buffer and all weights with a region and an offset, proved.

    Args:
        request: the models and the memories.

    Returns:
        The layout; for one model that TFLM runs also its two arenas.

    Raises:
        ModelError: a file cannot be read.
        RequestError: a buffer fits in no region that may hold it, or the regions are too small.
    """
    from modelplan.planning.memories.region_planning import plan_regions, plan_table

    if request.table:
        problem = load_table(request.table, request.part).problem
        return plan_table(problem, Path(request.table).stem, request.regions, request.choosing)
    plans = [model_plan(model) for model in request.models]
    reader, speed = request.reader, request.macs_per_second
    layout = plan_regions(plans, request.regions, request.choosing, reader=reader, macs_per_second=speed)
    first, runtime = request.models[0], plans[0].runtime
    if len(plans) > 1 or not runtime.offline_plans or not first.path.endswith(".tflite"):
        return layout
    from modelplan.planning.memories.region_planning import with_arenas
    from modelplan.runtimes.tflm.file import load_tflite

    return with_arenas(layout, load_tflite(first.path), first.abi or USUAL_ABI, runtime.kernels)


@dataclass(frozen=True, slots=True)
class SpillRequest(ModelRequest):
    """Asks which contents of a model leave a memory that is too small, when, and when they come back.

    Args:
        regions: the memories; contents leave the fastest.
        dma: what copies while operators run; None: the processor copies between two operators.
        copied_only: names of regions that copies reach and operators do not.
        reader: what runs the operators, where regions say by whom they are reached.
        method: greedy, or exact, a mixed-integer program with a bound.
        seconds: the limit of an exact run.
        macs_per_second: how fast operators compute; None: they take the time of their accesses only.
    """

    regions: tuple[Region, ...] = ()
    dma: Dma | None = None
    copied_only: tuple[str, ...] = ()
    reader: str = ""
    method: str = "greedy"
    seconds: float = 60.0
    macs_per_second: float | None = None


@answers_paths(SpillRequest)
def spill(request: SpillRequest) -> MovingPlan:
    """A layout of a model whose contents move between memories, replayed by a simulator with time.

    Args:
        request: the model, how it is planned, and the memories.

    Returns:
        Where every content stays from when to when, the copies, and what one run takes.

    Raises:
        ModelError: the file cannot be read.
        RequestError: a step whose operands do not fit; names it.
    """
    from modelplan.planning.memories.region_planning import moving_plan, moving_problem

    _check_copied_only(request)
    plan = model_plan(request)
    asked = moving_problem(
        plan, request.regions, request.dma, request.copied_only, request.reader, request.macs_per_second
    )
    return moving_plan(plan, asked, request.method, request.seconds)


def _check_copied_only(request: SpillRequest) -> None:
    """Returns only if every region of `copied_only` exists, and one is left that operators reach."""
    names = [region.name for region in request.regions]
    for name in request.copied_only:
        if name not in names:
            raise RequestError(f"--copied-only {name}: there is no such region; there are: {', '.join(names)}")
    if set(request.copied_only) == set(names):
        raise RequestError("--copied-only names all regions; operators have to reach one of them")


@dataclass(frozen=True, slots=True)
class StreamRequest(ModelRequest):
    """Asks what a run takes whose weights come from a host, in each of several memories and at each rate of the link.

    Args:
        links: what the device computes with and gets weights by; the first is that of the layout.
        memory: the bytes of the device, in which a layout gets addresses and is replayed; None: no layout.
        points: how many memories the curve has.
    """

    links: tuple[Link, ...] = ()
    memory: int | None = None
    points: int = 13


@answers_paths(StreamRequest)
def stream(request: StreamRequest) -> StreamCurve:
    """What a run of a model takes whose weights stream through a window of the device's memory.

    Args:
        request: the model, how it is planned, and the links.

    Returns:
        A curve for each link, and where the memory is stated the replay of one layout.

    Raises:
        ModelError: the file cannot be read.
        RequestError: no link, no weights, or too little memory for one operator.
    """
    from modelplan.planning.memories.streaming import stream_curve

    return stream_curve(model_plan(request), request.links, request.memory, request.points)

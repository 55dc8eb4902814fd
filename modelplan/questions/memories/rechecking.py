"""Plans a model again in the memories of a saved layout: does it still fit, did time or traffic get worse."""

from __future__ import annotations

from fractions import Fraction

from modelplan.answers.moving_layout import LayoutCheck, MovingPlan, Recheck
from modelplan.answers.region_layout import region_heights
from modelplan.answers.region_plan import RegionPlan
from modelplan.formats import load_model
from modelplan.formats.whole_files import read_text
from modelplan.model import Graph, Plan
from modelplan.planning import pipeline
from modelplan.planning.memories.memory_choice import Choosing
from modelplan.planning.memories.region_planning import moving_plan, moving_problem, plan_regions
from modelplan.planning.memories.tracks import fastest
from modelplan.planning.pipeline import Options
from modelplan.primitives.errors import RequestError
from modelplan.primitives.lazy_records import dataclass
from modelplan.primitives.settled_requests import SettledRequest
from modelplan.questions.budgets.project_budgets import parse_growth
from modelplan.questions.memories import moves_document, region_document
from modelplan.runtimes import RUNTIMES

#: Sums of the same seconds in another order differ by less.
_ROUNDING = 1e-9


@dataclass(frozen=True, slots=True)
class LayoutRequest(SettledRequest):
    """Asks whether models still fit in the memories of a saved layout, in no more time and traffic.

    Args:
        layout: a file of `memories --json`, with --spill too.
        models: .tflite or .onnx files.
        growth: by what share time and traffic may grow, such as 5%.
        dims: extents that the files leave open, as for `load`.
        shapes: shapes that the files leave open, as for `load`.
        values: values of inputs, as for `load`.
    """

    layout: str
    models: tuple[str, ...]
    growth: str = "0%"
    dims: tuple[str, ...] = ()
    shapes: tuple[str, ...] = ()
    values: tuple[str, ...] = ()


def check_layout(request: LayoutRequest) -> LayoutCheck:
    """Plans each model again in the memories of a saved layout, as the layout was planned.

    Args:
        request: the layout, the models, and what they may need more.

    Returns:
        Time, traffic and room of each model, and what is worse than allowed.

    Raises:
        ModelError: a file cannot be read.
        RequestError: the file holds no such layout, no model is named, or a growth is in bytes.
        BrokenPlanError: the saved layout is not sound.
    """
    if not request.models:
        raise RequestError("--layout compares a MODEL that is named")
    growth = parse_growth(request.growth)
    if growth.nbytes:
        raise RequestError(f"--growth {growth.text}: time and traffic grow by a share, such as 5%")
    saved = saved_layout(request.layout, read_text(request.layout))
    graphs = [(path, load_model(path, request.dims, request.shapes, request.values)) for path in request.models]
    return LayoutCheck(request.layout, tuple(recheck(path, graph, saved, growth.share) for path, graph in graphs))


def saved_layout(path: str, text: str) -> RegionPlan | MovingPlan:
    """The layout in the file `path`, which has the content `text`, proved anew.

    Raises:
        RequestError: it is no such layout, or one of several models or of streams, which cannot be planned again.
        ModelError: it cannot be read.
        BrokenPlanError: it is not sound.
    """
    kind = region_document.kind_of(text)
    if not kind:
        raise RequestError(
            f"--layout {path}: no layout in several memories; `memories --json` writes one, with --spill too"
        )
    layout = moves_document.read(text, path) if kind == "moves" else region_document.read(text, path)
    plans = (layout.plan,) if isinstance(layout, MovingPlan) else layout.plans
    if len(plans) > 1:
        raise RequestError(f"--layout {path}: holds {len(plans)} models, expected one")
    if plans[0].streams:
        raise RequestError(f"--layout {path}: is one for streams, which cannot be planned again")
    return layout


def recheck(model: str, graph: Graph, saved: RegionPlan | MovingPlan, growth: Fraction) -> Recheck:
    """The model `graph`, planned in the memories of `saved` as that was planned.

    Args:
        model: its path, for messages.
        graph: the model as it is now.
        saved: what to compare with.
        growth: by what share time and traffic may grow.
    """
    time, bytes_moved = _seconds(saved), _traffic(saved)
    try:
        present = _planned(graph, saved)
    except RequestError as problem:
        return Recheck(model, time, bytes_moved, None, None, (), (f"does not fit: {problem}",))
    seconds, traffic = _seconds(present), _traffic(present)
    allowed = 1 + float(growth)
    reasons = []
    if seconds > time * allowed * (1 + _ROUNDING):
        reasons.append(f"takes {seconds / time - 1:.2%} longer" if time else "has to wait for memory")
    if traffic > bytes_moved * allowed:
        more = f"{traffic / bytes_moved - 1:.2%}" if bytes_moved else f"{traffic:,} bytes"
        reasons.append(f"reads and writes {more} more outside of the fastest memory")
    return Recheck(
        model=model, seconds_before=time, traffic_before=bytes_moved, seconds=seconds, traffic=traffic,
        room=_room(present), reasons=tuple(reasons),
    )  # fmt: skip


def _planned(graph: Graph, saved: RegionPlan | MovingPlan) -> RegionPlan | MovingPlan:
    """A model's layout in the memories of a saved layout, made with the saved settings."""
    asked, reader, macs = saved.problem, saved.problem.reader, saved.problem.macs_per_second
    if isinstance(saved, MovingPlan):
        hidden = [asked.regions[number].name for number in asked.copied_only]
        plan = _plan(graph, saved.plan)
        return moving_plan(plan, moving_problem(plan, asked.regions, asked.dma, hidden, reader, macs), saved.method)
    how = Choosing("auto", saved.both_ends)
    return plan_regions([_plan(graph, saved.plans[0])], asked.regions, how, reader=reader, macs_per_second=macs)


def _plan(graph: Graph, before: Plan) -> Plan:
    """The plan of a model for the runtime of another plan, with its sharing; in the file's order where that was."""
    runtime = before.runtime
    order = "file" if before.schedule.method == "file" else "best"
    known = runtime.name if runtime.name in RUNTIMES else None
    return pipeline.plan(
        graph,
        Options(
            known, order, before.alias, alignment=runtime.alignment, pad=runtime.pad, kernels=runtime.kernels or None
        ),
    )


def _seconds(layout: RegionPlan | MovingPlan) -> float:
    """A run by the simulator where contents move, else what operators wait for their operands."""
    return layout.simulated.seconds if isinstance(layout, MovingPlan) else layout.seconds


def _traffic(layout: RegionPlan | MovingPlan) -> int:
    """Bytes read and written outside of the fastest memory, copies included."""
    if isinstance(layout, MovingPlan):
        each = [read + written for read, written in zip(layout.simulated.read, layout.simulated.written, strict=True)]
    else:
        each = [use.read + use.written for use in layout.uses]
    return sum(each) - each[fastest(layout.problem)]


def _room(layout: RegionPlan | MovingPlan) -> tuple[tuple[str, int, int], ...]:
    """For each region its name, the end of its highest stay, and its size."""
    tops = region_heights(layout.problem, layout.layout)
    return tuple((region.name, top, region.size) for region, top in zip(layout.problem.regions, tops, strict=True))

"""A layout that moves and was written as JSON becomes a `MovingPlan` again, asked anew and replayed."""

import json
from typing import Any

from modelplan.answers import saved_plan
from modelplan.answers.moving_layout import MovingPlan
from modelplan.answers.region_layout import Copy, Layout, Stay, Timetable
from modelplan.checking.moves_simulator import simulate
from modelplan.checking.verifier import proof
from modelplan.checking.verifier.subject import plan_subject
from modelplan.planning.memories.asking import owners_of
from modelplan.planning.memories.prefetching import floor_seconds
from modelplan.planning.memories.region_planning import moving_problem
from modelplan.planning.memories.timing import step_seconds
from modelplan.primitives.errors import BrokenPlanError, ModelError, RequestError
from modelplan.questions.memories.region_document import SETTINGS, parsed, records_of
from modelplan.targets.device import Dma, Region

#: The version that is read.
SCHEMA = 2
#: What a copy says of its time.
_TIMED = {"channel": int, "begin": float, "end": float}


def read(text: str, name: str) -> MovingPlan:
    """The layout in the document `text`, which messages call `name`, proved against the plan in it.

    The question is asked anew of the model's plan, the regions and the engine. Nothing but these, the stays, the
    copies, their times and the claimed bound is taken from the document. The simulator looks at room and overlaps, and
    replays it with time.

    Raises:
        ModelError: not such a document; names the place.
        BrokenPlanError: the layout does not answer its question, or takes longer than it says.
    """
    document = parsed(text, name, "moves", SCHEMA)
    try:
        plan = saved_plan.read(json.dumps(document.get("plan")), f"{name}: plan")
        regions = records_of(Region, document)
        dma = saved_plan.record_of(Dma, document.get("dma"), "dma")
        hidden = saved_plan.built(tuple[str, ...], document.get("copied_only"), "copied_only")
        given = {key: kind for key, kind in SETTINGS.items() if key != "both_ends"}
        settings = {key: saved_plan.built(kind, document.get(key), key) for key, kind in given.items()}
        layout = _layout(document, settings)
    except (ValueError, TypeError) as problem:
        raise ModelError(f"{name}: {problem}") from None
    unknown = [region_name for region_name in hidden if region_name not in {region.name for region in regions}]
    if unknown or not regions:
        raise ModelError(f"{name}: copied_only names {unknown[0]!r}, which is no region" if unknown else "no regions")
    reader, macs = settings["reader"], settings["macs_per_second"]
    proof.prove(plan_subject(plan))
    try:
        asked = moving_problem(plan, regions, dma, hidden, reader, macs)
    except RequestError as refused:
        raise BrokenPlanError(f"{name}: {refused}") from None
    run = simulate(asked, layout)
    cost = sum(step_seconds(asked, layout)) - sum(asked.seconds) + sum(end - begin for _, begin, end in run.copies)
    method, made_by = settings["method"], settings["made_by"]
    floor, owners = floor_seconds(asked), owners_of([plan])
    return MovingPlan(plan, asked, layout, run, 0.0, floor, cost, 0.0, method, made_by, owners)


def _layout(document: dict[str, object], settings: dict[str, Any]) -> Layout:
    """The stays, the copies and the times that they promise."""
    stays, copies, built = records_of(Stay, document), records_of(Copy, document), saved_plan.built
    rows = enumerate(built(list, document["copies"], "copies"))
    moved: Any = tuple(
        tuple(built(kind, row.get(key), f"copies[{i}].{key}") for key, kind in _TIMED.items()) for i, row in rows
    )
    times = built(dict, document.get("times"), "times")
    begins = built(tuple[float, ...], times.get("begins"), "times.begins")
    table = Timetable(begins, moved, built(float, times.get("seconds"), "times.seconds"))
    return Layout(stays, copies, settings["bound"], settings["method"], settings["ended"], table)

"""A layout for several memories that was written as JSON becomes a `RegionPlan` again, asked anew and replayed."""

import json
import re
from collections.abc import Mapping
from typing import Any, TypeVar

from modelplan.answers import saved_plan
from modelplan.answers.region_layout import Copy, Layout, Stay
from modelplan.answers.region_plan import RegionPlan
from modelplan.planning.memories.asking import owners_of, region_problem
from modelplan.planning.memories.region_planning import prove
from modelplan.primitives.errors import BrokenPlanError, ModelError, RequestError
from modelplan.targets.device import Region

#: The version that is read.
SCHEMA = 1

Record = TypeVar("Record", Region, Stay, Copy)


def kind_of(text: str) -> str:
    """What a JSON text is: `memories` or `moves` for a layout in several memories, empty for anything else."""
    match = re.search(r'"kind": "(memories|moves)"', text[:4096])
    return match[1] if match else ""


def parsed(text: str, name: str, kind: str, schema: int) -> dict[str, object]:
    """The JSON object in `text`.

    Raises:
        ModelError: not JSON, a number that is none, or a document of another kind or schema.
    """
    try:
        document = json.loads(text, parse_constant=_refused)
    except (ValueError, RecursionError) as problem:
        raise ModelError(f"{name}: not a JSON document: {problem}") from None
    if not isinstance(document, dict) or document.get("kind") != kind or document.get("schema") != schema:
        raise ModelError(f"{name}: expected a document of kind {kind!r} and schema {schema}")
    return document


def _refused(word: str) -> None:
    raise ValueError(f"{word} is no number")


def read(text: str, name: str) -> RegionPlan:
    """The layout in the document `text`, which messages call `name`, proved against the plans in it.

    The question is asked anew of the models' plans and the regions: nothing but those, the stays, the copies and the
    claimed bound is taken from the document.

    Raises:
        ModelError: not such a document; names the place.
        BrokenPlanError: the layout does not answer its question.
    """
    document = parsed(text, name, "memories", SCHEMA)
    try:
        plans = tuple(
            saved_plan.read(json.dumps(plan_document), f"{name}: plans[{i}]")
            for i, plan_document in enumerate(saved_plan.built(list, document.get("plans"), "plans"))
        )
        regions = records_of(Region, document)
        stays, copies = records_of(Stay, document), records_of(Copy, document)
        settings = {key: saved_plan.built(kind, document.get(key), key) for key, kind in SETTINGS.items()}
    except (ValueError, TypeError) as problem:
        raise ModelError(f"{name}: {problem}") from None
    if not plans or not regions:
        raise ModelError(f"{name}: has no plans or no regions")
    for i, plan in enumerate(plans):
        if (last := int(plan.problem.end.max(initial=0))) > _MOST_STEPS:
            raise ModelError(f"{name}: plans[{i}]: a buffer lives to step {last:,}, expected at most {_MOST_STEPS:,}")
    reader, macs = settings["reader"], settings["macs_per_second"]
    try:
        asked = region_problem(plans, regions, reader=reader, macs_per_second=macs)
    except (RequestError, ValueError, OverflowError) as refused:
        raise BrokenPlanError(f"{name}: {refused}") from None
    except IndexError:
        raise BrokenPlanError(f"{name}: an operator of the plan has fewer operands than its kind has") from None
    layout = Layout(stays, copies, settings["bound"], settings["method"], settings["ended"])
    both, made_by = settings["both_ends"], settings["made_by"]
    region_plan = RegionPlan(plans, asked, layout, owners_of(plans), both, made_by)
    prove(region_plan)
    return region_plan


#: No program that a plan is for has more steps.
_MOST_STEPS = 1 << 20
#: What a document says of how the layout was made, with the types of the values.
SETTINGS: dict[str, Any] = {
    "reader": str, "macs_per_second": float | None, "bound": float, "method": str, "ended": str, "both_ends": bool,
    "made_by": str,
}  # fmt: skip
#: The lists of records in a document.
_LISTS = {Region: "regions", Stay: "stays", Copy: "copies"}


def records_of(kind: type[Record], document: Mapping[str, object]) -> tuple[Record, ...]:
    """The records of a kind in a document.

    Raises:
        ValueError, TypeError: they are no list, or a field is missing or of another type; names the place.
    """
    key = _LISTS[kind]
    rows = enumerate(saved_plan.built(list, document.get(key), key))
    return tuple(saved_plan.record_of(kind, row, f"{key}[{i}]") for i, row in rows)

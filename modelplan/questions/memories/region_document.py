"""A layout for several memories that was written as JSON becomes a `RegionPlan` again, asked anew and replayed."""

import dataclasses
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
from modelplan.targets.device import Dma, Region

#: The version that is read.
SCHEMA = 1
#: Types of numbers in a document.
NUMBERS = (int, float)

Record = TypeVar("Record", Region, Dma, Stay, Copy)


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
            for i, plan_document in enumerate(list_of(document, "plans"))
        )
        rows = enumerate(list_of(document, "regions"))
        regions = tuple(record_of(Region, region, f"regions[{i}]") for i, region in rows)
        stays = tuple(record_of(Stay, stay, f"stays[{i}]") for i, stay in enumerate(list_of(document, "stays")))
        copies = tuple(record_of(Copy, copy, f"copies[{i}]") for i, copy in enumerate(list_of(document, "copies")))
        settings = {key: typed(document.get(key), kind, key) for key, kind in SETTINGS.items()}
    except ValueError as problem:
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
SETTINGS: dict[str, tuple[type, ...]] = {
    "reader": (str,), "macs_per_second": (*NUMBERS, type(None)), "bound": NUMBERS, "method": (str,), "ended": (str,),
    "both_ends": (bool,), "made_by": (str,),
}  # fmt: skip


def list_of(document: Mapping[str, object], key: str) -> list[Any]:
    """The list under a key.

    Raises:
        ValueError: there is none.
    """
    value = document.get(key)
    if not isinstance(value, list):
        raise ValueError(f"{key} is {type(value).__name__}, expected a list")
    return value


def typed(value: object, kinds: tuple[type, ...], where: str) -> Any:
    """The value, which is of one of the types.

    Raises:
        ValueError: it is not; names the place `where`.
    """
    if type(value) not in kinds:
        raise ValueError(f"{where} is {value!r}, expected {' or '.join(kind.__name__ for kind in kinds)}")
    return value


_KINDS: dict[str, tuple[type, ...]] = {
    "str": (str,), "int": (int,), "bool": (bool,), "int | None": (int, type(None)), "bool | None": (bool, type(None)),
    "float": NUMBERS, "float | None": (*NUMBERS, type(None)),
}  # fmt: skip


def record_of(kind: type[Record], value: object, where: str) -> Record:
    """The record whose fields an object holds; other keys are figures that follow from them.

    Raises:
        ValueError: a field is missing or of another type; names the place `where`.
    """
    if not isinstance(value, dict):
        raise ValueError(f"{where} is {type(value).__name__}, expected an object")
    facts: dict[str, Any] = {}
    for field in dataclasses.fields(kind):
        if field.name not in value:
            raise ValueError(f"{where} has no {field.name}")
        entry, words = value[field.name], str(field.type)
        if words.startswith("tuple"):
            if not isinstance(entry, list) or not all(isinstance(word, str) for word in entry):
                raise ValueError(f"{where}.{field.name} is {entry!r}, expected a list of texts")
            facts[field.name] = tuple(entry)
        else:
            facts[field.name] = typed(entry, _KINDS.get(words, (str,)), f"{where}.{field.name}")
    return kind(**facts)

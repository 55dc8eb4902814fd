"""The JSON Schemas of layouts in several memories, of those without copies and of those that move."""

from __future__ import annotations

from modelplan.answers.region_layout import Copy, Stay
from modelplan.answers.region_plan import TflmArena
from modelplan.outputs.reports import moves_report
from modelplan.outputs.reports.region_report import SCHEMA
from modelplan.outputs.schemas.plan_schema import Definitions, Schema, array_of, head, plan_schema, record
from modelplan.targets.device import Dma, Region

_UNITS = "Sizes are bytes, lifetimes are steps, times seconds."


def region_schema() -> Schema:
    """The schema of a layout in JSON; `$id` and the field `schema` carry the version of the document.

    The plans of the models stand in it as documents of their own, with the schema of plans under `$defs`.
    """
    definitions = Definitions()
    number, text, count = {"type": "number"}, {"type": "string"}, {"type": "integer"}
    properties: dict[str, Schema] = {
        "schema": {"const": SCHEMA, "description": "The version of the document."},
        "kind": {"const": "memories"},
        **dict.fromkeys(("made_by", "method", "ended", "reader"), text),
        "seconds": number | {"description": "What operators wait for their operands in one run of all models."},
        "bound": number | {"description": "No layout without copies takes less."},
        "both_ends": {"type": "boolean"},
        "macs_per_second": {"type": ["number", "null"]},
    }
    for name, kind in (("regions", Region), ("stays", Stay), ("copies", Copy), ("arenas", TflmArena)):
        properties[name] = array_of(definitions.of(kind))
    use = dict.fromkeys(("arena", "free", "buffers", "most", "read", "written"), count) | {"seconds": number}
    definitions.extend(Region, {"use": record(use)})
    definitions.extend(Stay, {"name": text, "size": count, "kind": text})
    properties["plans"] = array_of({"$ref": plan_schema()["$id"]}) | {"minItems": 1}
    what = f"What `modelplan memories --json` writes. {_UNITS}"
    title = head("memories", SCHEMA, what, "layout in several memories")
    return title | record(properties) | _with_plans(definitions)


def moves_schema() -> Schema:
    """The schema of a layout that moves in JSON, likewise; channel -1 of a copy is the processor."""
    definitions = Definitions()
    number, text, count = {"type": "number"}, {"type": "string"}, {"type": "integer"}
    figures = ("seconds", "waiting", "without_overlap", "floor", "memory", "relaxed")
    times: dict[str, Schema] = dict.fromkeys(figures, number) | {"begins": array_of(number)}
    properties: dict[str, Schema] = {
        "schema": {"const": moves_report.SCHEMA, "description": "The version of the document."},
        "kind": {"const": "moves"},
        **dict.fromkeys(("made_by", "model", "method", "ended", "reader"), text),
        "bound": number | {"description": "No choice of contents takes less for accesses and copies."},
        "macs_per_second": {"type": ["number", "null"]},
        "copied": count | {"description": "The bytes of all copies of a run."},
        "times": record(times),
        **dict.fromkeys(("steps", "copied_only"), array_of(text)),
        "dma": definitions.of(Dma),
        "regions": array_of(definitions.of(Region)),
        "stays": array_of(definitions.of(Stay)),
        "copies": array_of(definitions.of(Copy)),
        "plan": {"$ref": plan_schema()["$id"]},
    }
    definitions.extend(Region, {"use": record(dict.fromkeys(("arena", "read", "written"), count))})
    definitions.extend(Stay, {"name": text, "size": count, "in": text})
    ends = dict.fromkeys(("name", "from", "to"), text) | dict.fromkeys(("begin", "end"), number)
    definitions.extend(Copy, {**ends, "bytes": count, "channel": count})
    what = f"What `memories --spill --json` writes. {_UNITS}"
    title = head("moves", moves_report.SCHEMA, what, "layout that moves")
    return title | record(properties) | _with_plans(definitions)


def _with_plans(definitions: Definitions) -> Schema:
    """What the schemas of types refer to, and the schema of plans."""
    return {"$defs": dict(sorted(definitions.definitions.items())) | {"PlanDocument": plan_schema()}}

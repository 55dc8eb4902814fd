"""The JSON Schema of the document that `region_report.as_json` writes for models in several memories."""

from __future__ import annotations

from typing import Any

from modelplan.memories.region_layout import Copy, Stay
from modelplan.memories.region_plan import TflmArena
from modelplan.outputs.plan_schema import DIALECT, Definitions, plan_schema
from modelplan.outputs.region_report import SCHEMA
from modelplan.targets.device import Region


def region_schema() -> dict[str, Any]:
    """The schema of a layout in JSON; `$id` and the field `schema` carry the version of the document.

    The plans of the models stand in it as documents of their own, with the schema of plans under `$defs`.
    """
    made = Definitions()
    number, text = {"type": "number"}, {"type": "string"}
    properties: dict[str, Any] = {
        "schema": {"const": SCHEMA, "description": "The version of the document."},
        "kind": {"const": "memories"},
        "made_by": text,
        "seconds": number | {"description": "What operators wait for their operands in one run of all models."},
        "bound": number | {"description": "No layout without copies takes less."},
        "method": text,
        "ended": text,
        "both_ends": {"type": "boolean"},
        "reader": text,
        "macs_per_second": {"type": ["number", "null"]},
    }
    for name, kind in (("regions", Region), ("stays", Stay), ("copies", Copy), ("arenas", TflmArena)):
        properties[name] = {"type": "array", "items": made.of(kind)}
    properties["plans"] = {"type": "array", "items": {"$ref": plan_schema()["$id"]}, "minItems": 1}
    return {
        "$schema": DIALECT,
        "$id": f"urn:modelplan:memories:{SCHEMA}",
        "title": f"modelplan layout in several memories, schema {SCHEMA}",
        "description": "What `modelplan memories --json` writes. Sizes are bytes, lifetimes are steps, times seconds.",
        "type": "object",
        "required": list(properties),
        "properties": properties,
        "$defs": dict(sorted(made.definitions.items())) | {"PlanDocument": plan_schema()},
    }

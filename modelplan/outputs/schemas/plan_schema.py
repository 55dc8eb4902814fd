"""The JSON Schemas of plans and of layouts in several memories, made from the types that the documents hold."""

import dataclasses
import sys
import types
import typing
from collections.abc import Mapping
from enum import IntEnum, StrEnum
from typing import Any, Literal, get_args, get_origin

import numpy as np

from modelplan import model as nouns
from modelplan.answers import summary
from modelplan.answers.region_layout import Copy, Stay
from modelplan.answers.region_plan import TflmArena
from modelplan.answers.saved_plan import RUNTIME_FIELDS, SCHEMA
from modelplan.model import Graph, Op, Plan, Problem, Requirement, Runtime
from modelplan.outputs.exchange.json_plan import ELSEWHERE, SUMMARY_KEYS
from modelplan.outputs.reports import moves_report, region_report
from modelplan.targets.device import Dma, Region

DIALECT = "https://json-schema.org/draft/2020-12/schema"


#: A schema in JSON Schema.
Schema = dict[str, Any]


def array_of(items: Schema) -> Schema:
    """The schema of a list whose items have one schema."""
    return {"type": "array", "items": items}


#: Columns of a problem that are tables: integers in each row.
_TABLES = {"overlaps": 3, "conflicts": 2, "groups": 3, "meetings": 4}
_INTEGER = {"type": "integer"}
_SCALARS: dict[object, Schema] = {
    bool: {"type": "boolean"}, int: _INTEGER, float: {"type": "number"}, str: {"type": "string"},
    type(None): {"type": "null"},
}  # fmt: skip
#: Fields of an operator that stand otherwise in the document than in its type.
_OF_OPERATORS: dict[str, Schema] = {
    "attributes": array_of(
        {"type": "array", "prefixItems": [_SCALARS[str], {"$ref": "#/$defs/Value"}], "items": False, "minItems": 2}
    ),
    "subgraphs": array_of(_INTEGER) | {"description": "Numbers of `bodies`."},
}
#: Fields that a document leaves out where there is nothing in them.
_ABSENT = {(Requirement, "session")}


def plan_schema() -> Schema:
    """The schema of a plan in JSON; `$id` and the field `schema` carry the version of the document.

    Fields may be added without a new version, so that unknown ones are allowed; one that changes its meaning or goes
    raises the version.
    """
    definitions = Definitions()
    properties = {
        "schema": {"const": SCHEMA, "description": "The version of the document."},
        "summary": definitions.of(summary.Summary),
        "plan": definitions.of(Plan),
        "bodies": array_of(definitions.of(Graph))
        | {"description": "Graphs that operators run, by the numbers in their `subgraphs`; absent without any."},
        "requirement": definitions.of(Requirement)
        | {"description": "What the unmodified file needs; absent where it is not known."},
    }
    what = "A memory plan as `modelplan analyze --json` writes it. Sizes are bytes, lifetimes are steps."
    kept = {"required": ["schema", "summary", "plan"], "$defs": dict(sorted(definitions.definitions.items()))}
    return head("plan", SCHEMA, what) | record(properties) | kept


def head(name: str, version: int, what: str, title: str = "") -> Schema:
    """The first fields of the schema of a document: its dialect, its name with the version, and what it is."""
    return {
        "$schema": DIALECT,
        "$id": f"urn:modelplan:{name}:{version}",
        "title": f"modelplan {title or name}, schema {version}",
        "description": what,
    }


def record(properties: Mapping[str, Schema]) -> Schema:
    """The schema of an object that has all these fields."""
    return {"type": "object", "required": list(properties), "properties": dict(properties)}


class Definitions:
    """Schemas of types, by their names, as `dataclasses.asdict` writes them; each stands once and is referred to."""

    def __init__(self) -> None:
        self.definitions: dict[str, Schema] = {
            "Value": {
                "description": "The value of an attribute.",
                "type": ["boolean", "number", "string", "array"],
                "items": {"$ref": "#/$defs/Value"},
            }
        }

    def of(self, kind: Any) -> Schema:
        """The schema of a type, as a reference where it is a record."""
        if kind in _SCALARS:
            return _SCALARS[kind]
        if dataclasses.is_dataclass(kind):
            return self._reference(typing.cast("type", kind))
        if isinstance(kind, type) and issubclass(kind, StrEnum):
            return {"enum": [str(member) for member in kind]}
        if isinstance(kind, type) and issubclass(kind, IntEnum):
            return {"enum": [int(member) for member in kind]}
        if isinstance(kind, type) and issubclass(kind, tuple):
            return self._tuple(tuple(typing.get_type_hints(kind).values()))
        if get_origin(kind) is Mapping:
            return {"type": "object", "additionalProperties": self.of(get_args(kind)[1])}
        if kind is np.ndarray or get_origin(kind) is np.ndarray:
            return array_of(_INTEGER)
        if get_origin(kind) is tuple:
            return self._tuple(get_args(kind))
        if get_origin(kind) is Literal:
            return {"enum": list(get_args(kind))}
        assert get_origin(kind) in (types.UnionType, typing.Union), kind
        return {"anyOf": [self.of(alternative) for alternative in get_args(kind)]}

    def extend(self, kind: type, fields: Mapping[str, Schema]) -> None:
        """Gives the schema of a record further fields, which the document adds."""
        known = self.definitions[kind.__name__]
        known["properties"] |= fields
        known["required"] = list(known["properties"])

    def _tuple(self, arguments: tuple[Any, ...]) -> Schema:
        if arguments[-1] is Ellipsis:
            return array_of(self.of(arguments[0]))
        items = [self.of(argument) for argument in arguments]
        return {"type": "array", "prefixItems": items, "items": False, "minItems": len(items)}

    def _reference(self, kind: type) -> Schema:
        name = kind.__name__
        if name not in self.definitions:
            self.definitions[name] = {}  # so that a type that holds itself ends here
            fields = self._fields(kind)
            self.definitions[name] = {
                "description": (kind.__doc__ or "").strip().splitlines()[0],
                "type": "object",
                "required": [name for name in fields if (kind, name) not in _ABSENT],
                "properties": fields,
            }
        return {"$ref": f"#/$defs/{name}"}

    def _fields(self, kind: type) -> dict[str, Schema]:
        """The fields of a record as the document has them."""
        hints = typing.get_type_hints(kind, vars(nouns) | vars(summary) | vars(sys.modules[kind.__module__]))
        skipped = ELSEWHERE if kind in (Graph, Plan) else ()
        named = [f.name for f in dataclasses.fields(kind) if f.name not in skipped]
        if kind is Runtime:
            return {name: self.of(hints[name]) for name in RUNTIME_FIELDS if name != "scratch"} | {
                "scratch": {"type": "boolean", "description": "Whether working memory of kernels is planned."}
            }
        if kind is Op:
            named = [name for name in named if name not in _OF_OPERATORS]
        fields = {name: self.of(hints[name]) for name in named} | (_OF_OPERATORS if kind is Op else {})
        if kind is Problem:
            tables = {name: {"minItems": width, "maxItems": width} for name, width in _TABLES.items()}
            fields |= {name: array_of(array_of(_INTEGER) | width) for name, width in tables.items()}
        if kind is summary.Summary:
            fields |= {"gap": _SCALARS[float], "fits": {"type": ["boolean", "null"]}}
            fields = {SUMMARY_KEYS.get(name, name): schema for name, schema in fields.items()}
        return fields


_UNITS = "Sizes are bytes, lifetimes are steps, times seconds."


def region_schema() -> Schema:
    """The schema of a layout in JSON; `$id` and the field `schema` carry the version of the document.

    The plans of the models stand in it as documents of their own, with the schema of plans under `$defs`.
    """
    definitions = Definitions()
    number, text, count = {"type": "number"}, {"type": "string"}, {"type": "integer"}
    properties: dict[str, Schema] = {
        "schema": {"const": region_report.SCHEMA, "description": "The version of the document."},
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
    title = head("memories", region_report.SCHEMA, what, "layout in several memories")
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

"""The JSON Schema of the document that `json_plan.py` writes, made from the types that the document holds."""

from __future__ import annotations

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
from modelplan.answers.saved_plan import RUNTIME_FIELDS, SCHEMA
from modelplan.model import Graph, Op, Plan, Problem, Requirement, Runtime
from modelplan.outputs.exchange.json_plan import ELSEWHERE, SUMMARY_KEYS

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

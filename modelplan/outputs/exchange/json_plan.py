"""A plan as JSON with a schema version; `saved_plan.py` reads it back."""

import dataclasses
import json
from collections.abc import Mapping
from enum import StrEnum
from types import MappingProxyType
from typing import Any

import numpy as np

from modelplan.answers.saved_plan import RUNTIME_FIELDS, SCHEMA
from modelplan.answers.summary import summary
from modelplan.model import Graph, Op, Plan, Runtime

#: Keys of the summary that keep the name that readers know.
SUMMARY_KEYS = {"runtime_plan": "today"}
#: Fields of a graph that no document remembers, and of a plan that stand beside it.
ELSEWHERE = ("source", "requirement")
#: Types that JSON has too.
_LEAVES = {str, int, float, bool, type(None)}


def render(plan: Plan) -> str:
    """The plan, and a `summary` derived from it for readers that want figures only."""
    figures = summary(plan)
    derived = _plain(figures) | {"gap": figures.gap, "fits": figures.fits}
    derived = {SUMMARY_KEYS.get(name, name): value for name, value in derived.items()}
    bodies = plan.graph.bodies
    numbers = {id(body): number for number, body in enumerate(bodies)}
    document = {"schema": SCHEMA, "summary": derived, "plan": _plain(plan, numbers)}
    if bodies:
        document["bodies"] = [_plain(body, numbers) for body in bodies]
    if plan.requirement is not None:
        document["requirement"] = _plain(plan.requirement)
        if plan.requirement.session is None:
            del document["requirement"]["session"]
    return json.dumps(document, indent=1, ensure_ascii=True) + "\n"


def _plain(value: object, numbers: Mapping[int, int] = MappingProxyType({})) -> Any:
    """Dataclasses as objects, tuples and columns as lists; `numbers` stand for the bodies of operators, by their id."""
    if type(value) in _LEAVES:  # most values, and so before all else
        return value
    if isinstance(value, Op):
        fields = {f.name: _plain(getattr(value, f.name)) for f in dataclasses.fields(value) if f.name != "subgraphs"}
        return fields | {"subgraphs": [numbers[id(body)] for body in value.subgraphs]}
    if isinstance(value, (Graph, Plan)):
        kept = [f.name for f in dataclasses.fields(value) if f.name not in ELSEWHERE]
        return {name: _plain(getattr(value, name), numbers) for name in kept}
    if isinstance(value, Runtime):
        stored = {name: _plain(getattr(value, name)) for name in RUNTIME_FIELDS}
        return stored | {"scratch": value.scratch is not None}
    if dataclasses.is_dataclass(value):
        return {f.name: _plain(getattr(value, f.name), numbers) for f in dataclasses.fields(value)}
    if isinstance(value, np.ndarray):
        return value.tolist()
    if isinstance(value, (list, tuple)):
        return [_plain(item, numbers) for item in value]
    return str(value) if isinstance(value, StrEnum) else value

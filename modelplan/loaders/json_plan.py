"""Plans that modelplan wrote as JSON: `read(render(plan)) == plan`, with `render` from `outputs/json_plan.py`."""

from __future__ import annotations

import dataclasses
import json
import types
import typing
from enum import StrEnum
from typing import Any

import numpy as np

from modelplan import types as nouns
from modelplan.errors import ModelError
from modelplan.types import Plan

#: The version of the document; raised with each change of the plan's fields.
SCHEMA = 2


def read(text: str, name: str = "plan") -> Plan:
    """The plan in the JSON document `text`, which messages call `name`; its summary is ignored.

    Raises:
        ModelError: not JSON, another schema, or a value that the plan cannot hold; names the place.
    """
    try:
        document = json.loads(text)
    except (ValueError, RecursionError) as problem:
        raise ModelError(f"{name}: not a JSON document: {problem}") from None
    if not isinstance(document, dict) or document.get("schema") != SCHEMA:
        found = document.get("schema") if isinstance(document, dict) else type(document).__name__
        raise ModelError(f"{name}: schema is {found!r}, expected {SCHEMA}")
    try:
        plan = _build(Plan, document.get("plan"), "plan")
    except (ValueError, TypeError, OverflowError, RecursionError) as problem:
        raise ModelError(f"{name}: {problem}") from None
    assert isinstance(plan, Plan)
    return plan


def _build(kind: Any, value: Any, where: str) -> Any:
    """The object of type `kind` whose fields the JSON value holds."""
    if dataclasses.is_dataclass(kind):
        return _build_dataclass(typing.cast("type", kind), value, where)
    origin, arguments = typing.get_origin(kind), typing.get_args(kind)
    if origin is np.ndarray or kind is np.ndarray:
        return np.array(_expect(list, value, where), dtype=np.int64)
    if origin is tuple:
        return _build_tuple(arguments, _expect(list, value, where), where)
    if origin is typing.Literal:
        if value not in arguments:
            raise ValueError(f"{where} is {value!r}, expected one of {', '.join(map(repr, arguments))}")
        return value
    if origin in (types.UnionType, typing.Union):
        return _build_union(arguments, value, where)
    if isinstance(kind, type) and issubclass(kind, StrEnum):
        return kind(_expect(str, value, where))
    return _expect(kind, value, where)


def _build_dataclass(kind: type, value: Any, where: str) -> Any:
    hints = typing.get_type_hints(kind, vars(nouns))
    found = _expect(dict, value, where)
    expected = {f.name for f in dataclasses.fields(kind)}
    if found.keys() != expected:
        odd = ", ".join(sorted(found.keys() ^ expected))
        raise ValueError(f"{where} has missing or unknown fields: {odd}")
    return kind(**{name: _build(hints[name], found[name], f"{where}.{name}") for name in expected})


def _build_tuple(arguments: tuple[Any, ...], items: list[Any], where: str) -> tuple[Any, ...]:
    if len(arguments) == 2 and arguments[1] is Ellipsis:
        return tuple(_build(arguments[0], item, f"{where}[{i}]") for i, item in enumerate(items))
    if len(items) != len(arguments):
        raise ValueError(f"{where} has {len(items)} items, expected {len(arguments)}")
    pairs = enumerate(zip(arguments, items, strict=True))
    return tuple(_build(kind, item, f"{where}[{i}]") for i, (kind, item) in pairs)


def _build_union(arguments: tuple[Any, ...], value: Any, where: str) -> Any:
    """Unions hold None, scalars, and tuples of such: the value itself says which."""
    if value is None and type(None) in arguments:
        return None
    if isinstance(value, list):
        return tuple(_build_union(arguments, item, where) for item in value)
    scalars = tuple(a for a in arguments if a in (bool, int, float, str))
    if not isinstance(value, scalars):
        raise TypeError(f"{where} is {value!r}, expected {' or '.join(a.__name__ for a in scalars)}")
    return value


def _expect(kind: type, value: Any, where: str) -> Any:
    if not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
        raise TypeError(f"{where} is {value!r:.60}, expected {kind.__name__}")
    return value

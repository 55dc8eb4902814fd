"""Plans that modelplan wrote as JSON: `read(render(plan)) == plan`, with `render` from `outputs/json_plan.py`."""

from __future__ import annotations

import dataclasses
import json
import types
import typing
from collections.abc import Collection
from enum import StrEnum
from typing import Any

import numpy as np

from modelplan import types as nouns
from modelplan.errors import ModelError
from modelplan.runtimes import RUNTIMES
from modelplan.types import BufferKind, Plan, Runtime

#: The version of the document: raised when a field changes its meaning or goes, not when one is added.
SCHEMA = 2
#: What a document says of the plan's runtime; the rest is read from the table of runtimes.
RUNTIME_FIELDS = (
    "name", "alignment", "pad", "state", "allocator", "source", "inputs", "outputs", "scratch", "kernels", "unpacked",
)  # fmt: skip


def read(text: str, name: str = "plan") -> Plan:
    """The plan in the JSON document `text`, which messages call `name`; its summary is ignored.

    A document without kinds of buffers is an older one: in it buffers without tensors are scratch.

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
        plan = _build(Plan, _completed(document), "plan")
    except (ValueError, TypeError, OverflowError, RecursionError) as problem:
        raise ModelError(f"{name}: {problem}") from None
    assert isinstance(plan, Plan)
    return plan


def _completed(document: dict[str, Any]) -> Any:
    """The plan of a document, with what documents did not hold before these fields existed."""
    plan = document.get("plan")
    if not isinstance(plan, dict):
        return plan
    if "runtime_height" not in plan:
        figures = document.get("summary")
        own = figures.get("today") if isinstance(figures, dict) else None
        plan = plan | {"runtime_height": own.get("height") if isinstance(own, dict) else None}
    problem = plan.get("problem")
    if isinstance(problem, dict) and "kinds" not in problem:
        members = problem.get("members") or [()] * len(problem.get("names", ()))
        kinds = [str(BufferKind.TENSOR if tensors else BufferKind.SCRATCH) for tensors in members]
        plan = plan | {"problem": problem | {"kinds": kinds}}
    return plan


def _build(kind: Any, value: Any, where: str) -> Any:
    """The object of type `kind` whose fields the JSON value holds."""
    if kind is Runtime:
        return _build_runtime(value, where)
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
    return kind(**_build_fields(kind, [f.name for f in dataclasses.fields(kind)], value, where))


def _build_fields(kind: type, names: Collection[str], value: Any, where: str) -> dict[str, Any]:
    hints = typing.get_type_hints(kind, vars(nouns))
    found = _expect(dict, value, where)
    if found.keys() != set(names):
        odd = ", ".join(sorted(found.keys() ^ set(names)))
        raise ValueError(f"{where} has missing or unknown fields: {odd}")
    return {name: _build(hints[name], found[name], f"{where}.{name}") for name in names}


def _build_runtime(value: Any, where: str) -> Runtime:
    """The row of the table that has this name, with the alignment and all else that the plan was made for."""
    planned_scratch = _expect(dict, value, where).get("scratch")
    settings = _build_fields(Runtime, RUNTIME_FIELDS, value | {"scratch": None}, where)
    if settings["name"] not in RUNTIMES:
        raise ValueError(f"{where}.name is {settings['name']!r}, expected one of {', '.join(RUNTIMES)}")
    row = RUNTIMES[settings["name"]]
    return dataclasses.replace(row, **settings | {"scratch": row.scratch if planned_scratch else None})


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

"""Plans that modelplan wrote as JSON: `read(render(plan)) == plan`, with `render` from `json_plan.py`."""

from __future__ import annotations

import dataclasses
import json
import types
import typing
from collections.abc import Collection, Mapping
from enum import StrEnum
from typing import Any

import numpy as np

from modelplan import model as nouns
from modelplan.model import BufferKind, Graph, Plan, Runtime
from modelplan.primitives.errors import ModelError
from modelplan.runtimes import RUNTIMES

#: The version of the document: raised when a field changes its meaning or goes, not when one is added.
SCHEMA = 5
#: The versions before that are read too: in 2 operators hold their bodies themselves, once for each operator; until 3
#: `fits` of the summary counted the planned part alone.
_OLDER = (2, 3, 4)
#: Fields that were added to a type, and what they are in a document without them.
_ADDED: dict[type, dict[str, object]] = {
    nouns.Graph: {"fingerprint": "", "source": "", "folded": 0}, nouns.Placement: {"found_by": "", "own_height": None},
    nouns.Problem: {"groups": [], "meetings": [], "contiguous": []}, Plan: {"banks": [], "streams": []},
    nouns.Requirement: {"session": None},
}  # fmt: skip
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
    if not isinstance(document, dict) or document.get("schema") not in (SCHEMA, *_OLDER):
        schema = document.get("schema") if isinstance(document, dict) else type(document).__name__
        raise ModelError(f"{name}: schema is {schema!r}, expected {SCHEMA}")
    try:
        plan = _build(Plan, _completed(document), "plan", _bodies(document))
        _check(plan)
    except (ValueError, TypeError, OverflowError, RecursionError) as problem:
        raise ModelError(f"{name}: {problem}") from None
    assert isinstance(plan, Plan)
    return plan


def built(kind: Any, value: object, where: str) -> Any:
    """The value of type `kind` that a part of a JSON document holds.

    Raises:
        ValueError, TypeError: it holds none; names the place `where`.
    """
    return _build(kind, value, where, {})


def record_of(kind: type, value: object, where: str) -> Any:
    """The record whose fields an object holds; other keys are figures that follow from them. Raises as `built`."""
    given = _expect(dict, value, where)
    return built(kind, {f.name: given[f.name] for f in dataclasses.fields(kind) if f.name in given}, where)


def _completed(document: dict[str, Any]) -> Any:
    """The plan of a document, with what documents did not hold before these fields existed."""
    plan = document.get("plan")
    if not isinstance(plan, dict):
        return plan
    plan = plan | {"requirement": document.get("requirement")}
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


def _bodies(document: dict[str, Any]) -> dict[int, Graph]:
    """The bodies that operators name by number, those that are run first behind those that run them."""
    graphs: dict[int, Graph] = {}
    rows = _expect(list, document.get("bodies", []), "bodies")
    for number in reversed(range(len(rows))):
        graphs[number] = _build(Graph, rows[number], f"bodies[{number}]", graphs)
    return graphs


def _check(plan: Plan) -> None:
    """What no type can know alone: that the numbers of one part of the plan lead to something in another."""
    ops, tensors, buffers = len(plan.graph.ops), len(plan.graph.tensors), len(plan.problem)
    if sorted(plan.schedule.order) != list(range(ops)):
        raise ValueError(f"plan.schedule.order is no order of {ops} operators")
    if len(plan.placement.offsets) != buffers:
        raise ValueError(f"plan.placement.offsets has {len(plan.placement.offsets)} items, expected {buffers}")
    members = [m.tensor for members in plan.problem.members for m in members]
    shared = [t for row in (*plan.merges,) for t in (row.tensor, row.into)]
    overlapped = [t for row in plan.overlaps for t in (row.tensor, row.over)]
    for where, numbers in [("problem.members", members), ("merges", shared), ("overlaps", overlapped)]:
        if any(not 0 <= t < tensors for t in numbers):
            raise ValueError(f"plan.{where} names a tensor outside 0..{tensors - 1}")
    if len(set(members)) != len(members):
        raise ValueError("plan.problem.members holds a tensor twice")


def _build(kind: Any, value: object, where: str, bodies: Mapping[int, Graph]) -> Any:
    """The object of type `kind` whose fields the JSON value holds; `bodies` are the graphs that it may name."""
    if kind is Runtime:
        return _build_runtime(value, where)
    if dataclasses.is_dataclass(kind):
        return _build_dataclass(typing.cast("type", kind), value, where, bodies)
    origin, arguments = typing.get_origin(kind), typing.get_args(kind)
    if origin is np.ndarray or kind is np.ndarray:
        return np.array(_expect(list, value, where), dtype=np.int64)
    if origin is tuple:
        return _build_tuple(arguments, _expect(list, value, where), where, bodies)
    if origin is typing.Literal:
        if value not in arguments:
            raise ValueError(f"{where} is {value!r}, expected one of {', '.join(map(repr, arguments))}")
        return value
    if origin in (types.UnionType, typing.Union):
        return _build_union(arguments, value, where)
    if isinstance(kind, type) and issubclass(kind, StrEnum):
        return kind(_expect(str, value, where))
    return _expect(kind, value, where)


def _build_dataclass(kind: type, value: object, where: str, bodies: Mapping[int, Graph]) -> Any:
    if kind is Graph and isinstance(value, int):
        if value not in bodies:
            raise ValueError(f"{where} is {value}, expected a body behind the one that runs it")
        return bodies[value]
    completed = _ADDED.get(kind, {}) | _expect(dict, value, where)
    return kind(**_build_fields(kind, [f.name for f in dataclasses.fields(kind)], completed, where, bodies))


def _build_fields(
    kind: type, names: Collection[str], value: object, where: str, bodies: Mapping[int, Graph]
) -> dict[str, Any]:
    hints = typing.get_type_hints(kind)
    fields = _expect(dict, value, where)
    if fields.keys() != set(names):
        odd = ", ".join(sorted(fields.keys() ^ set(names)))
        raise ValueError(f"{where} has missing or unknown fields: {odd}")
    return {name: _build(hints[name], fields[name], f"{where}.{name}", bodies) for name in names}


#: No memory asks for more.
_MOST_ALIGNED = 1 << 30


def _build_runtime(value: Any, where: str) -> Runtime:
    """The row of the table that has this name, with the alignment and all else that the plan was made for."""
    planned_scratch = _expect(dict, value, where).get("scratch")
    settings = _build_fields(Runtime, RUNTIME_FIELDS, value | {"scratch": None}, where, {})
    if settings["name"] not in RUNTIMES:
        raise ValueError(f"{where}.name is {settings['name']!r}, expected one of {', '.join(RUNTIMES)}")
    if settings["alignment"] > _MOST_ALIGNED:
        raise ValueError(f"{where}.alignment is {settings['alignment']}, expected at most {_MOST_ALIGNED}")
    row = RUNTIMES[settings["name"]]
    return dataclasses.replace(row, **settings | {"scratch": row.scratch if planned_scratch else None})


def _build_tuple(
    arguments: tuple[Any, ...], items: list[object], where: str, bodies: Mapping[int, Graph]
) -> tuple[Any, ...]:
    if len(arguments) == 2 and arguments[1] is Ellipsis:
        return tuple(_build(arguments[0], item, f"{where}[{i}]", bodies) for i, item in enumerate(items))
    if len(items) != len(arguments):
        raise ValueError(f"{where} has {len(items)} items, expected {len(arguments)}")
    pairs = enumerate(zip(arguments, items, strict=True))
    return tuple(_build(kind, item, f"{where}[{i}]", bodies) for i, (kind, item) in pairs)


def _build_union(arguments: tuple[Any, ...], value: object, where: str) -> Any:
    """Unions hold None, scalars, tuples of such, or a record: the value itself says which."""
    if value is None and type(None) in arguments:
        return None
    records = [a for a in arguments if dataclasses.is_dataclass(a)]
    if records:
        return _build(records[0], value, where, {})
    if isinstance(value, list):
        return tuple(_build_union(arguments, item, where) for item in value)
    scalars = tuple(a for a in arguments if a in (bool, int, float, str))
    if type(value) not in (*scalars, *((int,) if float in scalars else ())):
        raise TypeError(f"{where} is {value!r}, expected {' or '.join(a.__name__ for a in scalars)}")
    return value


def _expect(kind: type, value: object, where: str) -> Any:
    kinds = (int, float) if kind is float else kind
    if not isinstance(value, kinds) or (kind in (int, float) and isinstance(value, bool)):
        raise TypeError(f"{where} is {value!r:.60}, expected {kind.__name__}")
    return value

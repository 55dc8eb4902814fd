"""Puts the local functions of an ONNX model in place of the nodes that call them, within a bound on the result."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, TypeVar

from modelplan.formats.onnx.onnx_types import refusals

if TYPE_CHECKING:
    from onnx import FunctionProto, GraphProto, ModelProto, NodeProto

_DEPTH = 100
#: Domain, name and overload of a function.
_Key = tuple[str, str, str]
_Owner = TypeVar("_Owner", bound="GraphProto | FunctionProto")


def inlined(model: ModelProto, most: int) -> ModelProto:
    """The model without local functions, of `most` operators at most.

    Raises:
        ValueError: a function that calls itself, or more nodes than a model may have.
    """
    from onnx import inliner

    _check_growth(model, most)
    try:
        return inliner.inline_local_functions(model)
    except refusals() as problem:
        raise ValueError(f"local functions: {problem}") from None


def graphs_of(graph: _Owner) -> list[_Owner | GraphProto]:
    """The graph or function and all bodies inside it, the outer before the inner."""
    graphs: list[_Owner | GraphProto] = [graph]
    for outer in graphs:  # which grows meanwhile
        for node in outer.node:
            graphs += bodies_of(node)
    return graphs


def nodes_of(graph: GraphProto | FunctionProto) -> Iterator[NodeProto]:
    """Every node of a graph or function and of the bodies inside it."""
    return (node for part in graphs_of(graph) for node in part.node)


def bodies_of(node: NodeProto) -> list[GraphProto]:
    """The graphs that a node carries as attributes."""
    return [g for a in node.attribute for g in ([a.g] if a.HasField("g") else list(a.graphs))]


def _check_growth(model: ModelProto, most: int) -> None:
    """Counts the operators before inlining: functions that call functions can multiply them without bound."""
    functions = {_key(f.domain, f.name, f.overload): f for f in model.functions}
    if len(functions) != len(model.functions):
        raise ValueError("two local functions have the same domain, name and overload")
    sizes: dict[_Key, int] = {}
    for key in functions:
        _measure(key, functions, sizes, most)
    total = sum(sizes.get(_called(node), 1) for node in nodes_of(model.graph))
    if total > most:
        raise ValueError(f"local functions grow to {total:,} operators, expected at most {most:,}")


def _key(domain: str, name: str, overload: str) -> _Key:
    return ("" if domain == "ai.onnx" else domain, name, overload)


def _called(node: NodeProto) -> _Key:
    return _key(node.domain, node.op_type, node.overload)


def _measure(start: _Key, functions: dict[_Key, FunctionProto], sizes: dict[_Key, int], most: int) -> None:
    """Puts into `sizes` how many nodes one call of `start` becomes, depth first."""
    path = [start]
    while path:
        key = path[-1]
        called = [_called(node) for node in nodes_of(functions[key])]
        missing = next((c for c in called if c in functions and c not in sizes), None)
        if missing is None:
            sizes[key] = min(1 + sum(sizes.get(c, 1) for c in called), 2 * most)
            path.pop()
        elif missing in path or len(path) > _DEPTH:
            raise ValueError(f"local function {missing[0]}.{missing[1]} calls itself or calls too deep")
        else:
            path.append(missing)

"""Local functions of an ONNX model put in place of the nodes that call them, within a bound on what comes out."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from modelplan.loaders.limits import MOST_OPS

_DEPTH = 100


def inlined(model: Any) -> Any:
    """The model without local functions; domains that only they used are gone.

    Raises:
        ValueError: a function that calls itself, or more nodes than a model may have.
    """
    if not model.functions:
        return model
    from onnx import inliner

    _check_growth(model)
    return inliner.inline_local_functions(model)


def nodes_of(graph: Any) -> Iterator[Any]:
    """Every node of a graph or function and of the bodies inside it."""
    pending = [graph.node]
    while pending:
        for node in pending.pop():
            yield node
            pending += [body.node for body in bodies_of(node)]


def bodies_of(node: Any) -> list[Any]:
    """The graphs that a node carries as attributes."""
    return [g for a in node.attribute for g in ([a.g] if a.HasField("g") else list(a.graphs))]


def _check_growth(model: Any) -> None:
    """Counts what inlining would make before it is made: functions that call functions grow without bound."""
    functions = {_key(f.domain, f.name, f.overload): f for f in model.functions}
    if len(functions) != len(model.functions):
        raise ValueError("two local functions have the same domain, name and overload")
    sizes: dict[tuple[str, str, str], int] = {}
    for key in functions:
        _measure(key, functions, sizes)
    total = sum(sizes.get(_called(node), 1) for node in nodes_of(model.graph))
    if total > MOST_OPS:
        raise ValueError(f"local functions grow to {total} nodes, expected at most {MOST_OPS}")


def _key(domain: str, name: str, overload: str) -> tuple[str, str, str]:
    return ("" if domain == "ai.onnx" else domain, name, overload)


def _called(node: Any) -> tuple[str, str, str]:
    return _key(node.domain, node.op_type, node.overload)


def _measure(start: tuple[str, str, str], functions: dict[Any, Any], sizes: dict[Any, int]) -> None:
    """Nodes that one call of `start` becomes, by depth first with the path at hand."""
    path = [start]
    while path:
        key = path[-1]
        called = [_called(node) for node in nodes_of(functions[key])]
        missing = next((c for c in called if c in functions and c not in sizes), None)
        if missing is None:
            sizes[key] = min(1 + sum(sizes.get(c, 1) for c in called), 2 * MOST_OPS)
            path.pop()
        elif missing in path or len(path) > _DEPTH:
            raise ValueError(f"local function {missing[0]}.{missing[1]} calls itself or calls too deep")
        else:
            path.append(missing)

"""Operators that do more than compute their outputs: among themselves they keep the order of the file."""

from __future__ import annotations

from collections.abc import Iterator

from modelplan.model import Graph
from modelplan.ops import facts
from modelplan.planning.schedulers.unpacking import UNPACKING


def has_side_effects(file_format: str, kind: str) -> bool:
    """Whether an operator of this kind may touch more than its outputs; what a custom one does is unknown."""
    if kind == UNPACKING:
        return False
    custom = kind.startswith(("CUSTOM", "DELEGATE", "PLACEHOLDER", "BUILTIN_")) or "." in kind or "::" in kind
    return custom or facts(file_format, kind).effects


def precedences(graph: Graph) -> Iterator[tuple[int, int]]:
    """Pairs (before, after) of ops that the data alone does not order.

    Ops with side effects follow each other as in the file; so do ops that touch the same state tensor.
    """
    last_effect, state = -1, set(graph.state)
    last_touch: dict[int, int] = {}
    with_effects = {kind for kind in graph.kinds if has_side_effects(graph.format, kind)}
    for index, op in enumerate(graph.ops if state or with_effects else ()):
        if op.kind in with_effects:
            if last_effect >= 0:
                yield last_effect, index
            last_effect = index
        for t in state & {*op.reads, *op.writes}:
            if t in last_touch:
                yield last_touch[t], index
            last_touch[t] = index

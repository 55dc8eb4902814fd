"""Plans of stripes of one graph in another one, which has most of its operators."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

from modelplan.model import Graph
from modelplan.rewriting.stripes.stretches import StripedStretch


@dataclass(frozen=True)
class MovedPlan:
    """Stretches of a graph in an order, apart and ascending."""

    graph: Graph
    order: tuple[int, ...]
    stretches: tuple[StripedStretch, ...]

    def moved_to(self, graph: Graph, order: Sequence[int]) -> tuple[StripedStretch, ...]:
        """Those of the stretches whose operators run one after the other in another graph too.

        Operators are told by the names of what they make.
        """
        ops = {name: op for op, name in enumerate(_names(graph))}
        step = {op: at for at, op in enumerate(order)}
        names = _names(self.graph)
        there = {op: ops[name] for op, name in enumerate(names) if name in ops}
        moved = []
        for stretch in self.stretches:
            old = self.order[stretch.first : stretch.last + 1]
            steps = [step[there[op]] for op in old if op in there]
            if len(steps) == len(old) and steps == list(range(steps[0], steps[0] + len(steps))):
                changes: dict[str, Any] = {"first": steps[0], "last": steps[-1]}
                for field in fields(stretch):
                    if isinstance(ops_of := getattr(stretch, field.name), frozenset):
                        changes[field.name] = frozenset(there[op] for op in ops_of)
                moved.append(replace(stretch, **changes))
        return tuple(sorted(moved, key=lambda stretch: stretch.first))


def _names(graph: Graph) -> list[str]:
    return [graph.tensors[op.outputs[0]].name if op.outputs else "" for op in graph.ops]

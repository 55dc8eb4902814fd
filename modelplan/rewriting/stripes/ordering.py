"""Orders in which values that wait take few bytes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from modelplan.model import Graph

#: The most operators between the first readers of a value that runs a late reader earlier.
_NEAR = 12


def hoisted(graph: Graph, order: Sequence[int] = ()) -> list[int]:
    """An order, the file's where none is given, with operators that shrink a value only they read at earlier steps.

    Such as the convolutions beside a backbone: their results wait instead of the maps that these are made of.
    """
    order = list(order or range(len(graph.ops)))
    for _ in range(len(order)):
        step = {op: place for place, op in enumerate(order)}
        found = next(_early(graph, step), None)
        if found is None:
            break
        op, place = found
        order.remove(op)
        order.insert(place, op)
    return order


def _early(graph: Graph, step: dict[int, int]) -> Iterator[tuple[int, int]]:
    """Operators that should run earlier, each with its new place."""
    for t, readers in enumerate(graph.readers):
        if len(readers) < 2 or graph.producers[t] < 0 or t in graph.outputs:
            continue
        *others, last = sorted(readers, key=step.__getitem__)
        place = step[others[0]]
        computed = [step[graph.producers[x]] for x in graph.ops[last].reads if graph.producers[x] >= 0]
        small = sum(graph.tensors[y].nbytes for y in graph.ops[last].writes) < graph.tensors[t].nbytes
        if small and max(computed) < place and step[last] > step[others[-1]] + 1 and step[others[-1]] - place < _NEAR:
            yield last, place

"""Orders without search: the file's own, and a greedy list order that looks one op ahead."""

from __future__ import annotations

import heapq

from modelplan.lifetimes import class_bytes, padded
from modelplan.types import Aliases, Graph, Runtime


def file_order(graph: Graph, aliases: Aliases, runtime: Runtime) -> tuple[int, ...]:  # noqa: ARG001
    """The order of the file; where that runs an op before its inputs exist, the nearest topological order."""
    import networkx as nx

    sequence = tuple(range(len(graph.ops)))
    if all(producer < reader for producer, reader in graph.dag.edges):
        return sequence
    return tuple(nx.lexicographical_topological_sort(graph.dag))


def list_order(graph: Graph, aliases: Aliases, runtime: Runtime) -> tuple[int, ...]:
    """Always the ready op with the most bytes freed less bytes allocated, ties to the file's order.

    Cost: O((ops + edges) log ops).
    """
    walk = _ListWalk(graph, aliases, runtime)
    return walk.run()


class _ListWalk:
    """Ready ops in a heap keyed by what they would cost now; stale keys are renewed when they surface."""

    def __init__(self, graph: Graph, aliases: Aliases, runtime: Runtime) -> None:
        self.graph = graph
        self.class_of = {m.tensor: c for c, members in enumerate(aliases.classes) for m in members}
        self.size = [padded(class_bytes(graph, members), runtime) for members in aliases.classes]
        self.alive = [False] * len(aliases.classes)
        self.readers_left = [0] * len(aliases.classes)
        for op in graph.ops:
            for c in self._classes(op.reads):
                self.readers_left[c] += 1
        for t in graph.outputs:
            if t in self.class_of:
                self.readers_left[self.class_of[t]] += 1
        for t in graph.inputs:
            if t in self.class_of:
                self.alive[self.class_of[t]] = True

    def run(self) -> tuple[int, ...]:
        missing = dict(self.graph.dag.in_degree())
        ready = [(self._cost(op), op) for op, degree in missing.items() if degree == 0]
        heapq.heapify(ready)
        sequence = []
        while ready:
            cost, op = heapq.heappop(ready)
            if (now := self._cost(op)) != cost:
                heapq.heappush(ready, (now, op))
                continue
            sequence.append(op)
            self._execute(op)
            for successor in self.graph.dag.successors(op):
                missing[successor] -= 1
                if missing[successor] == 0:
                    heapq.heappush(ready, (self._cost(successor), successor))
        return tuple(sequence)

    def _classes(self, tensors: tuple[int, ...]) -> set[int]:
        return {self.class_of[t] for t in tensors if t in self.class_of}

    def _cost(self, op: int) -> int:
        reads, writes = self._classes(self.graph.ops[op].reads), self._classes(self.graph.ops[op].writes)
        freed = sum(self.size[c] for c in reads - writes if self.readers_left[c] == 1)
        return sum(self.size[c] for c in writes if not self.alive[c]) - freed

    def _execute(self, op: int) -> None:
        for c in self._classes(self.graph.ops[op].writes):
            self.alive[c] = True
        for c in self._classes(self.graph.ops[op].reads):
            self.readers_left[c] -= 1

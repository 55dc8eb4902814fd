"""An allocator and a scheduler of one's own for modelplan."""

import networkx as nx

from modelplan import Budget, Graph, Problem


def shelves(problem: Problem, budget: Budget) -> list[int]:
    """Puts each buffer, longest-lived first, above all buffers that are alive with it."""
    offsets = [0] * len(problem)
    placed: list[int] = []
    lives = (problem.end - problem.start).tolist()
    for b in sorted(range(len(problem)), key=lambda b: -lives[b]):
        for other in placed:
            if problem.start[other] < problem.end[b] and problem.start[b] < problem.end[other]:
                offsets[b] = max(offsets[b], offsets[other] + int(problem.size[other]))
        step = int(problem.alignment[b])
        offsets[b] = -(-offsets[b] // step) * step
        placed.append(b)
    return offsets


#: What it knows of beyond sizes and lifetimes: a problem with pins, overlaps or conflicts is not given to it.
shelves.honours = ("alignment",)  # type: ignore[attr-defined]


def smallest_first(graph: Graph) -> list[int]:
    """Runs, of all operators that can run, the one that writes least."""
    return list(nx.lexicographical_topological_sort(graph.dag, key=lambda op: written(graph, op)))


def written(graph: Graph, op: int) -> int:
    """The bytes that an operator writes."""
    return sum(graph.tensors[tensor].nbytes for tensor in graph.ops[op].writes)

"""The graph in which operators run in a sequence that may name them several times."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from modelplan.model import Graph, Op, Tensor, present


def repeated(graph: Graph, sequence: Sequence[int]) -> tuple[Graph, tuple[int, ...]]:
    """The graph with the operators of `sequence` in this order, and for each of them the one that it is.

    The last run of an operator writes its own tensors; each run before writes tensors of its own, named after them.

    Raises:
        ValueError: an operator reads what none before it has written.
    """
    left = {op: sequence.count(op) for op in set(sequence)}
    tensors: list[Tensor] = list(graph.tensors)
    names = {tensor.name for tensor in tensors}
    latest: dict[int, int] = {}
    ops = []
    for number in sequence:
        op = graph.ops[number]
        left[number] -= 1
        for t in op.reads:
            if graph.producers[t] >= 0 and t not in latest:
                raise ValueError(f"{graph.label(number)} reads {graph.tensors[t].name!r}, which is not written yet")
        inputs = tuple(latest.get(t, t) for t in op.inputs)
        for t in present(op.outputs):
            latest[t] = t
            if left[number]:
                latest[t] = len(tensors)
                tensors.append(replace(graph.tensors[t], name=_free(graph.tensors[t].name, left[number], names)))
        outputs = tuple(latest.get(t, t) for t in op.outputs)
        name = f"{op.name} (run {left[number] + 1} from the end)" if left[number] else op.name
        ops.append(replace(op, name=name, inputs=inputs, outputs=outputs))
    new_ops: tuple[Op, ...] = tuple(ops)
    return replace(graph, tensors=tuple(tensors), ops=new_ops, fingerprint="", source=""), tuple(sequence)


def _free(name: str, runs: int, taken: set[str]) -> str:
    """An unused name for a result that is computed `runs` more times later."""
    free = f"{name}/run{runs}"
    while free in taken:
        free += "_"
    taken.add(free)
    return free

"""From an order and storage classes to buffers: when each is alive, how many bytes it takes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from modelplan.types import Aliases, Buffer, Graph, Kind, Member, Problem, Runtime


def buffers(
    graph: Graph, order: Sequence[int], aliases: Aliases, runtime: Runtime, capacity: int | None = None
) -> Problem:
    """One buffer for each storage class, alive in half-open steps of `order`.

    Graph inputs live from step 0 to their last reader, or to the end where the runtime keeps them; outputs from
    their producer to the end, state all the time, scratch while its operator runs; what an op reads and writes is
    alive together. Sizes are rounded up to the runtime's alignment where it pads tensors. State of a runtime that
    keeps it apart from the arena gets no buffer.

    Cost: O(tensors + ops).
    """
    first, last = _spans(graph, order, runtime)
    steps = max(len(order), 1)
    rows = []
    for members in aliases.classes:
        tensors = [graph.tensors[m.tensor] for m in members]
        is_state = any(t.kind is Kind.STATE for t in tensors)
        if is_state and runtime.state == "separate":
            continue
        start = 0 if is_state else min(first[m.tensor] for m in members)
        end = steps if is_state else max(last[m.tensor] for m in members) + 1
        size = padded(class_bytes(graph, members), runtime)
        rows.append(Buffer(tensors[0].name, size, start, end, runtime.alignment, members=members))
    rows += _scratch(graph, order, runtime)
    return Problem.of(rows, capacity)


def _scratch(graph: Graph, order: Sequence[int], runtime: Runtime) -> Iterator[Buffer]:
    """Working memory, alive while its operator runs."""
    for step, index in enumerate(order):
        for number, size in enumerate(graph.ops[index].scratch):
            name = f"scratch of {graph.label(index)}" + (f" ({number + 1})" if number else "")
            yield Buffer(name, padded(size, runtime), step, step + 1, runtime.alignment)


def class_bytes(graph: Graph, members: Sequence[Member]) -> int:
    """Bytes from the start of a class to the end of its last member, before padding."""
    return max(m.delta + graph.tensors[m.tensor].nbytes for m in members)


def padded(size: int, runtime: Runtime) -> int:
    """`size` as the runtime reserves it."""
    return -(-size // runtime.alignment) * runtime.alignment if runtime.pad == "tensor" else size


def _spans(graph: Graph, order: Sequence[int], runtime: Runtime) -> tuple[list[int], list[int]]:
    """For each tensor the first and the last step (inclusive) at which it must exist."""
    never = len(order)
    first = [never] * len(graph.tensors)
    last = [-1] * len(graph.tensors)
    for t in graph.inputs:
        first[t] = last[t] = 0
    for step, index in enumerate(order):
        op = graph.ops[index]
        for t in (*op.reads, *op.writes):
            first[t] = min(first[t], step)
            last[t] = max(last[t], step)
    kept = graph.inputs if runtime.inputs == "live" else ()
    for t in (*graph.outputs, *kept):
        last[t] = max(len(order) - 1, 0)
    for t, producer in enumerate(graph.producers):
        if producer < 0:
            first[t] = 0
    return first, last

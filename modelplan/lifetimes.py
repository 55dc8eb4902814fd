"""From an order and storage classes to buffers: when each is alive, how many bytes it takes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import numpy as np

from modelplan.errors import RequestError
from modelplan.types import Aliases, Buffer, BufferKind, Graph, Kind, Member, Problem, Runtime


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
    lives = _Lifetimes(graph, order, runtime)
    rows = [
        Buffer(graph.tensors[members[0].tensor].name, *block, runtime.alignment, members=members)
        for members in aliases.classes
        if (block := lives.block(members)) is not None
    ]
    return Problem.of([*rows, *_scratch(graph, order, runtime)], capacity)


def contiguous_buffers(graph: Graph, problem: Problem, lists: Sequence[Sequence[int]]) -> tuple[tuple[int, ...], ...]:
    """The buffers of `problem` that hold the tensors of `lists`, for `Problem.contiguous`.

    Raises:
        RequestError: a tensor without a buffer, or one that others of its buffer reach beyond; names the tensor.
    """
    home = {m.tensor: (b, m.delta) for b, members in enumerate(problem.members) for m in members}
    found = []
    for tensors in lists:
        row = []
        for t in tensors:
            name = graph.tensors[t].name
            if t not in home:
                raise RequestError(
                    f"contiguous: tensor {name!r} has no buffer here, it is a constant or lies elsewhere"
                )
            b, delta = home[t]
            if delta or class_bytes(graph, problem.members[b]) != graph.tensors[t].nbytes:
                raise RequestError(
                    f"contiguous: tensor {name!r} is a part of another's buffer; --alias none keeps it apart"
                )
            row.append(b)
        found.append(tuple(row))
    return tuple(found)


class Occupancy:
    """The bytes alive at each step of an order, kept up to date while storage classes are exchanged."""

    def __init__(self, graph: Graph, order: Sequence[int], runtime: Runtime) -> None:
        self._lives = _Lifetimes(graph, order, runtime)
        self._alive = np.zeros(self._lives.steps, dtype=np.int64)
        for scratch in _scratch(graph, order, runtime):
            self._alive[scratch.start] += scratch.size

    def swap(self, removed: Iterable[Sequence[Member]], added: Iterable[Sequence[Member]]) -> int:
        """Replaces the classes `removed` by those `added`, and returns the most bytes alive at once from then on.

        Cost: O(members + steps).
        """
        for sign, classes in ((-1, removed), (1, added)):
            for members in classes:
                if (block := self._lives.block(members)) is not None:
                    size, start, end = block
                    self._alive[start:end] += sign * size
        return int(self._alive.max())


class _Lifetimes:
    """The lifetimes of tensors in an order, and so of the classes that hold them."""

    def __init__(self, graph: Graph, order: Sequence[int], runtime: Runtime) -> None:
        self.graph, self.runtime = graph, runtime
        self.first, self.last = tensor_spans(graph, order, runtime)
        self.steps = max(len(order), 1)

    def block(self, members: Sequence[Member]) -> tuple[int, int, int] | None:
        """Size, start and end of a class's buffer; None for state that is kept apart from the arena."""
        is_state = any(self.graph.tensors[m.tensor].kind is Kind.STATE for m in members)
        if is_state and self.runtime.state == "separate":
            return None
        start = 0 if is_state else min(self.first[m.tensor] for m in members)
        end = self.steps if is_state else max(self.last[m.tensor] for m in members) + 1
        return padded(class_bytes(self.graph, members), self.runtime), start, end


def _scratch(graph: Graph, order: Sequence[int], runtime: Runtime) -> Iterator[Buffer]:
    """Working memory, alive while its operator runs."""
    for step, index in enumerate(order):
        for number, size in enumerate(graph.ops[index].scratch):
            name = f"scratch of {graph.label(index)}" + (f" ({number + 1})" if number else "")
            yield Buffer(name, padded(size, runtime), step, step + 1, runtime.alignment, kind=BufferKind.SCRATCH)


def class_bytes(graph: Graph, members: Sequence[Member]) -> int:
    """Bytes from the start of a class to the end of its last member, before padding."""
    return max(m.delta + graph.tensors[m.tensor].nbytes for m in members)


def padded(size: int, runtime: Runtime) -> int:
    """`size` as the runtime reserves it."""
    return -(-size // runtime.alignment) * runtime.alignment if runtime.pad == "tensor" else size


def tensor_spans(graph: Graph, order: Sequence[int], runtime: Runtime) -> tuple[list[int], list[int]]:
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

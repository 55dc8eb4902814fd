"""From an order and storage classes to buffers: when each is alive, how many bytes it takes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TypeVar

import numpy as np

from modelplan.model import Aliases, Buffer, BufferKind, Graph, IntArray, Member, Problem, Runtime, class_bytes, column
from modelplan.primitives.errors import RequestError


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
    classes, scratch = aliases.classes, list(_scratch(graph, order, runtime))
    if apart := _apart(graph, runtime):
        classes = tuple(members for members in classes if apart.isdisjoint(m.tensor for m in members))
    start, end = _class_spans(graph, order, classes, runtime)
    return Problem(
        names=(*(graph.tensors[members[0].tensor].name for members in classes), *(b.name for b in scratch)),
        size=np.concatenate([class_sizes(graph, classes, runtime), column(b.size for b in scratch)]),
        start=np.concatenate([start, column(b.start for b in scratch)]),
        end=np.concatenate([end, column(b.end for b in scratch)]),
        alignment=np.full(len(classes) + len(scratch), runtime.alignment),
        capacity=capacity,
        members=(*classes, *(b.members for b in scratch)) if classes else (),
        kinds=(BufferKind.TENSOR,) * len(classes) + (BufferKind.SCRATCH,) * len(scratch),
    )


def _apart(graph: Graph, runtime: Runtime) -> set[int]:
    """The state that the runtime keeps apart from the arena."""
    return set(graph.state) if runtime.state == "separate" else set()


def class_sizes(graph: Graph, classes: Sequence[Sequence[Member]], runtime: Runtime) -> IntArray:
    """The bytes of each class, to the end of its last member, as the runtime reserves them."""
    ends = column(m.delta + graph.sizes[m.tensor] for members in classes for m in members)
    return padded(np.maximum.reduceat(ends, _firsts(classes)), runtime)


def _class_spans(
    graph: Graph, order: Sequence[int], classes: Sequence[Sequence[Member]], runtime: Runtime
) -> tuple[IntArray, IntArray]:
    """The step from which each class is alive, and the one from which it is not."""
    first, last = _held_spans(graph, order, runtime)
    tensors, firsts = column(m.tensor for members in classes for m in members), _firsts(classes)
    return np.minimum.reduceat(first[tensors], firsts), np.maximum.reduceat(last[tensors], firsts) + 1


def _firsts(classes: Sequence[Sequence[Member]]) -> IntArray:
    """Where each class begins when the members of all stand in a row."""
    return np.cumsum([0, *map(len, classes)])[:-1]


def contiguous_buffers(graph: Graph, problem: Problem, lists: Sequence[Sequence[int]]) -> tuple[tuple[int, ...], ...]:
    """The buffers of `problem` that hold the tensors of `lists`, for `Problem.contiguous`.

    Raises:
        RequestError: a tensor without a buffer, or one that others of its buffer reach beyond; names the tensor.
    """
    home = {m.tensor: (b, m.delta) for b, members in enumerate(problem.members) for m in members}
    rows = []
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
        rows.append(tuple(row))
    return tuple(rows)


class Occupancy:
    """The bytes alive at each step of an order, kept up to date while storage classes are exchanged."""

    def __init__(self, graph: Graph, order: Sequence[int], runtime: Runtime) -> None:
        self._graph, self._runtime, self._apart = graph, runtime, _apart(graph, runtime)
        self._first, self._last = (span.tolist() for span in _held_spans(graph, order, runtime))
        self._alive = np.zeros(max(len(order), 1), dtype=np.int64)
        for scratch in _scratch(graph, order, runtime):
            self._alive[scratch.start] += scratch.size

    def swap(self, removed: Iterable[Sequence[Member]], added: Iterable[Sequence[Member]]) -> int:
        """Replaces the classes `removed` by those `added`, and returns the most bytes alive at once from then on.

        Cost: O(members + steps).
        """
        for sign, classes in ((-1, removed), (1, added)):
            for members in classes:
                if not self._apart.isdisjoint(m.tensor for m in members):
                    continue
                start = min(self._first[m.tensor] for m in members)
                end = max(self._last[m.tensor] for m in members) + 1
                self._alive[start:end] += sign * padded(class_bytes(self._graph, members), self._runtime)
        return int(self._alive.max())


def _scratch(graph: Graph, order: Sequence[int], runtime: Runtime) -> Iterator[Buffer]:
    """Working memory, alive while its operator runs."""
    for step, index in enumerate(order):
        for number, size in enumerate(graph.ops[index].scratch):
            name = f"scratch of {graph.label(index)}" + (f" ({number + 1})" if number else "")
            yield Buffer(name, padded(size, runtime), step, step + 1, runtime.alignment, kind=BufferKind.SCRATCH)


Bytes = TypeVar("Bytes", int, IntArray)


def padded(size: Bytes, runtime: Runtime) -> Bytes:
    """`size` as the runtime reserves it."""
    return -(-size // runtime.alignment) * runtime.alignment if runtime.pad == "tensor" else size


def tensor_spans(graph: Graph, order: Sequence[int], runtime: Runtime) -> tuple[IntArray, IntArray]:
    """For each tensor the first and the last step (inclusive) at which it must exist."""
    steps = len(order)
    position = np.empty(steps, dtype=np.int64)
    position[list(order)] = np.arange(steps)
    ops, tensors = graph.uses
    first, last = np.full(len(graph.tensors), steps), np.full(len(graph.tensors), -1)
    first[list(graph.inputs)] = last[list(graph.inputs)] = 0
    np.minimum.at(first, tensors, position[ops])
    np.maximum.at(last, tensors, position[ops])
    kept = graph.inputs if runtime.inputs == "live" else ()
    last[[*graph.outputs, *kept]] = max(steps - 1, 0)
    first[np.array(graph.producers, dtype=np.int64) < 0] = 0
    return first, last


def _held_spans(graph: Graph, order: Sequence[int], runtime: Runtime) -> tuple[IntArray, IntArray]:
    """The same with state, which is alive at every step."""
    first, last = tensor_spans(graph, order, runtime)
    first[list(graph.state)], last[list(graph.state)] = 0, max(len(order), 1) - 1
    return first, last

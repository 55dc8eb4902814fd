"""The map that TFLM logs when it is built with TF_LITE_SHOW_MEMORY_USE: a line for each buffer, then one for each step.

Source: tflite-micro, memory_planner/greedy_memory_planner.cc, PrintMemoryPlan.
"""

from collections.abc import Iterator, Sequence

import numpy as np

from modelplan.model import IntArray, Plan
from modelplan.planning.lifetimes import padded, tensor_spans
from modelplan.primitives.lazy_records import dataclass
from modelplan.runtimes.tflm.planner import Request

#: Columns of the map.
_WIDTH = 80
_FREE, _SHARED, _BRIEF = ".", "!", "*"
_MARKS = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"


@dataclass(frozen=True, slots=True)
class MapRow:
    """One buffer as TFLM counts: bytes, offset, and the scopes `first` to `last` in which it is alive, both included.

    Scope 0 is the start, in which the inputs are set; the operator of step s runs in scope s + 1.
    """

    size: int
    offset: int
    first: int
    last: int


def render(plan: Plan) -> str:
    """The map of `plan`: tensors in the order of their numbers, each with its own offset, then what is no tensor.

    Tensors that share bytes have a row each, as in a plan that TFLM reads from a file; the memory of an operator's
    bodies is one row.
    """
    return _text(rows_of(plan))


def planner_log(requests: Sequence[Request], offsets: Sequence[int]) -> str:
    """What TFLM logs for its own plan of a model file: `requests` in its order, at `offsets`."""
    return _text([MapRow(r.size, at, r.first, r.last) for r, at in zip(requests, offsets, strict=True)])


def _text(rows: Sequence[MapRow]) -> str:
    return "".join(f"{line}\n" for line in memory_plan(rows))


def rows_of(plan: Plan) -> list[MapRow]:
    """The buffers of `plan` as TFLM would list them if it obeyed the plan."""
    lives = _lives(plan)
    tensors, others = {}, []
    offsets = plan.placement.offsets.tolist()
    for buffer, offset in zip(plan.problem, offsets, strict=True):
        if not buffer.members:
            others.append(MapRow(buffer.size, offset, buffer.start + 1, buffer.end))
        for member in buffer.members:
            size = padded(plan.graph.tensors[member.tensor].nbytes, plan.runtime)
            tensors[member.tensor] = MapRow(size, offset + member.delta, *lives[member.tensor])
    return [*(row for _, row in sorted(tensors.items()) if row.size), *others]


def _lives(plan: Plan) -> list[tuple[int, int]]:
    """For each tensor its first and last scope: written, or set at the start, until last touched."""
    graph = plan.graph
    kept = {*graph.outputs, *(graph.inputs if plan.runtime.inputs == "live" else ())}
    lives = []
    spans = (span.tolist() for span in tensor_spans(graph, plan.schedule.order, plan.runtime))
    for t, (first, last) in enumerate(zip(*spans, strict=True)):
        if graph.producers[t] >= 0:
            lives.append((first + 1, last + 1))
        else:
            lives.append((0, last + 1 if graph.readers[t] or t in kept else 0))
    return lives


def memory_plan(rows: Sequence[MapRow]) -> Iterator[str]:
    """The lines that TFLM logs for these rows: `*` marks a row of one scope, `!` a column of two rows.

    Arithmetic is exact, where TFLM's 32-bit product overflows for offsets from 26 MiB up.

    Cost: O(rows x scopes).
    """
    for number, row in enumerate(rows):
        yield (
            f"{_mark(row, number)} (id={number}): size={row.size}, offset={row.offset},"
            f" first_used={row.first} last_used={row.last}"
        )
    for scope, (line, alive) in enumerate(zip(_picture(rows), _alive(rows), strict=True)):
        yield f"{scope:4d}: {line} ({-(-alive // 1024)}k)"


def _mark(row: MapRow, number: int) -> str:
    return _BRIEF if row.first == row.last else _MARKS[number % len(_MARKS)]


def _scopes(rows: Sequence[MapRow]) -> int:
    return max((row.last for row in rows), default=0) + 1


def _picture(rows: Sequence[MapRow]) -> Iterator[str]:
    """A line of columns for each scope."""
    extent = max([_WIDTH, *(row.offset + row.size for row in rows)])
    columns = np.full((_scopes(rows), _WIDTH), ord(_FREE), dtype=np.uint8)
    for number, row in enumerate(rows):
        left, right = (at * _WIDTH // extent for at in (row.offset, row.offset + row.size))
        cells = columns[max(row.first, 0) : row.last + 1, left:right]
        cells[:] = np.where(cells == ord(_FREE), ord(_mark(row, number)), ord(_SHARED))
    return (bytes(line).decode("ascii") for line in columns)


def _alive(rows: Sequence[MapRow]) -> list[int]:
    """The bytes of the rows alive in each scope."""
    change: IntArray = np.zeros(_scopes(rows) + 1, dtype=np.int64)
    for row in rows:
        change[max(row.first, 0)] += row.size
        change[row.last + 1] -= row.size
    alive: list[int] = np.cumsum(change)[:-1].tolist()
    return alive

"""Which buffers must not share bytes when ops run on several streams: those that no dependency keeps apart.

Streams run side by side; inside a stream ops run in the order of the schedule, and an op waits for the producers of
what it reads. Two buffers may share bytes only if all ops that touch one of them have ended before any op that touches
the other begins, whatever the streams' speed.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from modelplan.model import Buffer, Graph, IntArray, Problem
from modelplan.primitives.errors import RequestError
from modelplan.primitives.lazy_records import dataclass

#: Longest number in a file of streams.
_MOST_DIGITS = 9


def spread_ops(graph: Graph, order: Sequence[int], count: int) -> tuple[int, ...]:
    """A stream for each op: it follows a producer that is the last of its stream, or goes to the one idle longest.

    Raises:
        RequestError: fewer than one stream.
    """
    if count < 1:
        raise RequestError(f"{count} streams, expected at least 1")
    count = min(count, max(len(graph.ops), 1))
    last: list[int] = [-1] * count
    since: list[int] = [-1] * count
    stream = [0] * len(graph.ops)
    for step, op in enumerate(order):
        before = {graph.producers[t] for t in graph.ops[op].reads} - {-1}
        following = [s for s in range(count) if last[s] in before]
        chosen = min(following or range(count), key=lambda s: since[s])
        stream[op], last[chosen], since[chosen] = chosen, op, step
    return tuple(stream)


def parse_streams(text: str, graph: Graph, path: str) -> tuple[int, ...]:
    """A stream for each op from lines `op,stream`, ops by number; blank lines, `#` lines and a header are skipped.

    Raises:
        RequestError: names the line that cannot be read, an op that does not exist, or one without a stream.
    """
    stream = [-1] * len(graph.ops)
    for number, line in enumerate(text.splitlines(), 1):
        row = [cell.strip() for cell in line.split(",")]
        if not line.strip() or line.startswith("#") or row == ["op", "stream"]:
            continue
        if len(row) != 2 or not all(cell.isascii() and cell.isdecimal() and len(cell) <= _MOST_DIGITS for cell in row):
            raise RequestError(f"{path}, line {number}: found {line[:80]!r}, expected `op,stream` as two numbers")
        op = int(row[0])
        if op >= len(stream):
            raise RequestError(f"{path}, line {number}: op {op}, but there are {len(stream)} ops")
        stream[op] = int(row[1])
    if -1 in stream:
        raise RequestError(f"{path} gives no stream for {graph.label(stream.index(-1))}")
    return tuple(stream)


def ancestors(graph: Graph, order: Sequence[int], stream: Sequence[int]) -> list[int]:
    """For each op the set of ops certain to have ended before it begins, as the bits of an integer.

    Cost: O(ops x edges / 64) time, O(ops^2 / 64) memory.

    Source: MindSpore SOMAS, mindspore/ccsrc/backend/common/somas, which derives its conflicts the same way.
    """
    sets = [0] * len(graph.ops)
    last: dict[int, int] = {}
    for op in order:
        before = {graph.producers[t] for t in graph.ops[op].reads} - {-1}
        if stream[op] in last:
            before.add(last[stream[op]])
        for b in before:
            sets[op] |= sets[b] | 1 << b
        last[stream[op]] = op
    return sets


def stream_conflicts(graph: Graph, order: Sequence[int], stream: Sequence[int], problem: Problem) -> IntArray:
    """The pairs of buffers with lifetimes apart that streams may bring to life together.

    Args:
        graph: the model.
        order: the schedule.
        stream: one for each op.
        problem: the buffers of this graph in this order; one without members counts as touched by every op of its
            lifetime.

    Returns:
        Rows (a, b) with a < b, for `Problem.conflicts`.

    Raises:
        RequestError: not one stream for each op.

    Cost: O(buffers^2 x ops / 64) time.
    """
    if len(stream) != len(graph.ops):
        raise RequestError(f"{len(stream)} streams given, expected one for each of {len(graph.ops)} ops")
    before = ancestors(graph, order, stream)
    uses = [_use(graph, order, before, buffer) for buffer in problem]
    pairs = []
    for b in range(len(problem)):
        for a in range(b):
            alive_together = problem.start[a] < problem.end[b] and problem.start[b] < problem.end[a]
            apart = uses[a].is_over_before(uses[b]) or uses[b].is_over_before(uses[a])
            if not alive_together and not apart:
                pairs.append((a, b))
    return np.array(pairs, dtype=np.int64).reshape(-1, 2)


@dataclass(frozen=True, slots=True)
class _Use:
    """The ops that use a buffer, and those certain to have ended before any of them begins: bits of integers."""

    ops: int
    ended: int

    def is_over_before(self, other: _Use) -> bool:
        """Whether all ops that use this buffer end before any op that uses the other begins."""
        return not self.ops & ~other.ended


def _use(graph: Graph, order: Sequence[int], before: Sequence[int], buffer: Buffer) -> _Use:
    """Which ops use a buffer.

    One bit beyond the ops stands for the end of the run: a graph output is used until then, and nothing begins after
    it. No op has certainly ended before what exists at the start of the run.
    """
    end = 1 << len(graph.ops)
    tensors = [m.tensor for m in buffer.members]
    ops = {op for t in tensors for op in (graph.producers[t], *graph.readers[t])} - {-1}
    if not tensors:
        ops = set(order[buffer.start : buffer.end])
    used = sum(1 << op for op in ops)
    ended = end - 1
    for op in ops:
        ended &= before[op]
    if not ops or any(graph.producers[t] < 0 for t in tensors):
        ended = 0
    if not ops or set(tensors) & set(graph.outputs):
        used |= end
    return _Use(used, ended)

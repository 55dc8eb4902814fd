"""The peak of a session of ONNX Runtime without arena and memory patterns, from the blocks that modelplan predicts."""

from __future__ import annotations

from dataclasses import dataclass

from modelplan.model import Graph, Runtime
from modelplan.planning.session_blocks import ThreadBuffers, block_events, thread_bytes
from modelplan.planning.session_nodes import NUMBERS, Extents


@dataclass(frozen=True, slots=True)
class SessionPeak:
    """The most bytes that are allocated at once, and the operator (by its index) that runs then.

    Outputs are among them, inputs and constants are not. `workspace` is what the operator asks for beside its output.
    """

    bytes: int
    op: int
    workspace: int


def session_peak(graph: Graph, runtime: Runtime, threads: int = 1, extents: Extents = NUMBERS) -> SessionPeak:
    """What a session allocates at most while it runs, arena and memory patterns off.

    A tensor takes the place of another where the session knows that their `extents` are the same.
    """
    best, alive = SessionPeak(0, -1, 0), 0
    sizes: dict[int, int] = {}
    kept, running, own = ThreadBuffers(), -1, 0
    for event in block_events(graph, runtime, threads, extents):
        if event.op != running:
            running, own = event.op, kept.need(thread_bytes(graph, graph.ops[event.op], threads))
        alive += event.size or -sizes[event.block]
        sizes[event.block] = event.size
        if alive + own > best.bytes:
            best = SessionPeak(alive + own, event.op, event.workspace)
    return best

"""When operators run that unpack weights."""

from __future__ import annotations

from collections.abc import Sequence

from modelplan.model import Graph
from modelplan.runtimes.tflm.file import DECODE

#: The kind of operator that unpacks constants, which does nothing else.
UNPACKING = f"CUSTOM:{DECODE}"


def with_late_unpacking(graph: Graph, order: Sequence[int]) -> tuple[int, ...]:
    """The order with each operator that unpacks weights just before the first operator that reads them.

    Weights then live no longer than before, so that no step needs more. Memory that the application gives for them
    (SetDecompressionMemory) holds what one such operator unpacks at a time.
    """
    unpacking = {op for op in order if graph.ops[op].kind == UNPACKING}
    unpacked_by = {t: op for op in unpacking for t in graph.ops[op].writes}
    late: list[int] = []
    for op in order:
        if op in unpacking:
            continue
        ready = dict.fromkeys(unpacked_by[t] for t in graph.ops[op].reads if unpacked_by.get(t) in unpacking)
        unpacking -= ready.keys()
        late += [*ready, op]
    return (*late, *(op for op in order if op in unpacking))

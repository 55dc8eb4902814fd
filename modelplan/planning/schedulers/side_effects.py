"""What orders operators beside the data: side effects, which keep the order of the file, and weights to unpack late."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from modelplan.model import Graph
from modelplan.ops import facts
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


def has_side_effects(file_format: str, kind: str) -> bool:
    """Whether an operator of this kind may touch more than its outputs; what a custom one does is unknown."""
    if kind == UNPACKING:
        return False
    custom = kind.startswith(("CUSTOM", "DELEGATE", "PLACEHOLDER", "BUILTIN_")) or "." in kind or "::" in kind
    return custom or facts(file_format, kind).effects


def precedences(graph: Graph) -> Iterator[tuple[int, int]]:
    """Pairs (before, after) of ops that the data alone does not order.

    Ops with side effects follow each other as in the file; so do ops that touch the same state tensor.
    """
    last_effect, state = -1, set(graph.state)
    last_touch: dict[int, int] = {}
    with_effects = {kind for kind in graph.kinds if has_side_effects(graph.format, kind)}
    for index, op in enumerate(graph.ops if state or with_effects else ()):
        if op.kind in with_effects:
            if last_effect >= 0:
                yield last_effect, index
            last_effect = index
        for t in state & {*op.reads, *op.writes}:
            if t in last_touch:
                yield last_touch[t], index
            last_touch[t] = index

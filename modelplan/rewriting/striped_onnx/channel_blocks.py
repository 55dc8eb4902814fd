"""Which operators stripes may leave to other kernels, at the level at which sessions compute in blocks of channels.

Convolutions bring their operands into blocks by themselves, so in stripes they add up as before. Others compute in
blocks only where their operands are in blocks already: means, linear interpolation, normalization, and sums that become
a part of the convolution before them. With a Slice or a Concat in front of these a session runs other kernels, which
add up in another order.
"""

from collections.abc import Mapping

from modelplan.model import Graph

#: Operators whose kernels for blocks give other last places, beside those that need a condition.
_MEANS = frozenset({"AveragePool", "GlobalAveragePool"})
_ENLARGING = frozenset({"Resize", "Upsample"})
#: What a convolution adds to its result by itself.
_SUMS = frozenset({"Add", "Sum"})


def chains_in_blocks(graph: Graph, blocked: Mapping[str, str]) -> dict[int, frozenset[int]]:
    """For the result of each such operator the values that have to be in blocks: itself, back to the convolutions.

    `blocked` are the values that a session computes in blocks of channels, with the operator of each.
    """
    results = (op.outputs[0] for op in graph.ops if op.writes)
    return {t: _chain(graph, t) for t in results if _needs_blocks(graph, t, blocked)}


def _chain(graph: Graph, t: int) -> frozenset[int]:
    chain: set[int] = set()
    pending = [t]
    while pending:
        value = pending.pop()
        if value in chain or graph.producers[value] < 0:
            continue
        chain.add(value)
        op = graph.ops[graph.producers[value]]
        if op.kind != "Conv":
            pending += op.reads
    return frozenset(chain)


def _needs_blocks(graph: Graph, t: int, blocked: Mapping[str, str]) -> bool:
    """Whether a kernel for blocks computes the value, and another one would where operands are not in blocks."""
    op = graph.ops[graph.producers[t]]
    if op.kind in _SUMS:
        return any(blocked.get(graph.tensors[u].name) == "Conv+" for u in op.reads)
    if graph.tensors[t].name not in blocked:
        return False
    if op.kind == "BatchNormalization":  # behind a convolution it is folded into that one
        return all(graph.ops[graph.producers[u]].kind != "Conv" for u in op.reads if graph.producers[u] >= 0)
    return op.kind in _MEANS or (op.kind in _ENLARGING and op.attribute("mode", "nearest") == "linear")

"""Skips recomputed: a value that is read once more much later is computed a second time for that reader.

The map that a U-Net's decoder joins is then not alive while all between is computed, and the nodes that recompute it
go in stripes with those that read it. A part of the model's work is done twice.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING

from modelplan.ops import facts
from modelplan.primitives.lazy_records import dataclass
from modelplan.rewriting.striped_onnx.layers import Reading
from modelplan.rewriting.striped_onnx.unrolled_nodes import free_name
from modelplan.rewriting.striped_onnx.writing import with_nodes

if TYPE_CHECKING:
    from onnx import ModelProto, NodeProto

#: Operators between two readers of a value from which on the second one counts as late.
_FAR = 12
#: Operators that are recomputed for one value at most.
_MOST_OPS = 24


@dataclass(frozen=True, slots=True)
class Skip:
    """A value `t`, its late readers, and the operators that recompute it for them, in order."""

    t: int
    late: tuple[int, ...]
    ops: tuple[int, ...]


def late_skips(reading: Reading, share: float) -> list[Skip]:
    """The values that can be recomputed for late readers, the largest first.

    What such a value is made of is kept where it is at most this share of its bytes, else it is recomputed too.
    """
    return _skips(reading, share, lambda _, order: [k for k, (a, b) in enumerate(pairwise(order)) if b - a >= _FAR])


def pooled_skips(reading: Reading, share: float, least: int) -> list[Skip]:
    """As `late_skips`, the values of `least` bytes that are first read as a whole, such as by a global pool."""

    def whole(t: int, order: Sequence[int]) -> list[int]:
        large = reading.graph.tensors[t].nbytes >= least
        return [k for k, index in enumerate(order[:-1]) if large and not reading.goes_by_rows(index)]

    return _skips(reading, share, whole)


def _skips(reading: Reading, share: float, early: Callable[[int, Sequence[int]], list[int]]) -> list[Skip]:
    """The values with readers behind the last `early` place in the order of all of them."""
    graph, skips = reading.graph, []
    for t, readers in enumerate(graph.readers):
        order = sorted(set(readers))
        places = early(t, order) if graph.producers[t] >= 0 and not reading.apart.intersection(order) else []
        if places and (ops := _makers(reading, t, share)):
            skips.append(Skip(t, tuple(order[places[-1] + 1 :]), ops))
    return sorted(skips, key=lambda skip: -graph.tensors[skip.t].nbytes)


def _makers(reading: Reading, t: int, share: float) -> tuple[int, ...]:
    """The operators that recompute a value from smaller ones; empty where one cannot go by rows."""
    graph, size = reading.graph, reading.graph.tensors[t].nbytes
    pending, makers = [t], set[int]()
    while pending:
        index = graph.producers[pending.pop()]
        if index in makers:
            continue
        if index in reading.apart or not reading.goes_by_rows(index) or len(makers) == _MOST_OPS:
            return ()
        makers.add(index)
        pending += [
            u for u in graph.ops[index].reads if graph.producers[u] >= 0 and graph.tensors[u].nbytes > share * size
        ]
    return tuple(sorted(makers))


def with_copies(proto: ModelProto, reading: Reading, skips: Sequence[Skip]) -> tuple[ModelProto, dict[str, str]]:
    """The file with nodes that make these values again before their late readers, and the origin of each new value.

    ONNX Runtime makes one of two nodes that are the same, so copies of convolutions name the extent of their window
    where the model does not, and the other way round.
    """
    model = with_nodes(proto, proto.graph.node)
    names, taken, origin = [tensor.name for tensor in reading.graph.tensors], set(reading.names), dict[str, str]()
    for number, skip in enumerate(skips):
        maker = {name: node for node in model.graph.node for name in node.output if name}
        renamed: dict[str, str] = {}
        copies = []
        for index in skip.ops:
            y = names[reading.graph.ops[index].outputs[0]]
            renamed[y] = free_name(f"{y}/again_{number}", taken)
            origin[renamed[y]] = y
            copies.append(_copied(maker[y], renamed, free_name(f"{y}/node_again_{number}", taken), reading, index))
        readers = {id(maker[names[reading.graph.ops[index].writes[0]]]) for index in skip.late}
        place = next(k for k, node in enumerate(model.graph.node) if id(node) in readers)
        for node in model.graph.node:
            if id(node) in readers:
                node.input[:] = [renamed[x] if x == names[skip.t] else x for x in node.input]
        model = with_nodes(model, [*model.graph.node[:place], *copies, *model.graph.node[place:]])
    return model, origin


def _copied(node: NodeProto, renamed: dict[str, str], name: str, reading: Reading, index: int) -> NodeProto:
    """A copy of a node that reads and makes renamed values."""
    import onnx

    copy = type(node)()
    copy.CopyFrom(node)
    copy.name = name
    copy.input[:] = [renamed.get(x, x) for x in node.input]
    copy.output[:] = [renamed.get(y, y) for y in node.output]
    graph, op = reading.graph, reading.graph.ops[index]
    if operand := facts("onnx", op.kind).weights:
        others = [a for a in copy.attribute if a.name != "kernel_shape"]
        if len(others) == len(copy.attribute):
            weights = graph.tensors[op.inputs[operand]].shape
            others.append(onnx.helper.make_attribute("kernel_shape", list(weights[2:])))
        del copy.attribute[:]
        copy.attribute.extend(others)
    return copy

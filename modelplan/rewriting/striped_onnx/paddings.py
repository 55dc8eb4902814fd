"""What convolutions and pools pad, and Pads that ONNX Runtime puts into the pool behind them."""

from modelplan.model import Graph, Op
from modelplan.ops import facts
from modelplan.ops.conditions import number, numbers
from modelplan.rewriting.stripes.layers import window_margins

#: Pools into whose padding ONNX Runtime puts the Pad before them, where nothing else reads it.
_TAKING_PADS = frozenset({"MaxPool", "AveragePool"})
#: The first opset in which a Pad takes its numbers as operands.
PAD_OPERANDS = 11


def margins(graph: Graph, op: Op, places: int) -> list[tuple[int, int]]:
    """What a convolution or a pool pads before and behind each of its axes behind the channels."""
    word = op.attribute("auto_pad", "NOTSET")
    if word in ("NOTSET", ""):
        pads = numbers(op, "pads") or (0,) * (2 * places)
        return [(pads[k], pads[places + k]) for k in range(places)]
    return [(0, 0) if word == "VALID" else window_margins(graph, op, 2 + k) for k in range(places)]


def pool_behind(graph: Graph, op: Op) -> int | None:
    """A pool that reads what a Pad makes, or a Cast of it, and may take the Pad into its own padding.

    A session leaves pools alone that say VALID, and so do their stripes.
    """
    if op.attribute("mode", "constant") != "constant":
        return None
    readers = list(graph.readers[op.outputs[0]])
    for index in readers:
        reader = graph.ops[index]
        if reader.kind == "Cast":
            readers += graph.readers[reader.outputs[0]]
        elif reader.kind in _TAKING_PADS and not is_valid(reader):
            return index
    return None


def is_valid(op: Op) -> bool:
    """Whether a pool says that it pads nothing by the word VALID, and has no windows beyond its map."""
    pool = facts("onnx", op.kind).rows == "window" and not facts("onnx", op.kind).weights
    return pool and op.attribute("auto_pad") == "VALID" and not number(op, "ceil_mode", 0)


def same_inside(graph: Graph, op: Op, pool: int, value: float | None) -> bool:
    """Whether a Pad with this value, None where it is not known, has the same effect inside of a pool.

    A session leaves other values than 0 outside. The padding of a MaxPool is less than every number, which is the same
    as zeros behind a Relu; that of an AveragePool may not be counted.
    """
    if value:
        return True
    maker = graph.producers[op.inputs[0]]
    return value is not None and graph.ops[pool].kind == "MaxPool" and maker >= 0 and graph.ops[maker].kind == "Relu"

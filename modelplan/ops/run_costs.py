"""What one run of an operator takes: multiply-accumulates, and how many bytes of each operand are read and written.

Where an operator's row has no rule, it reads each operand once and writes each output once; of ONNX operators that is
all that is known, since the kernels of ONNX Runtime pack and block their operands in ways of their own.
"""

from collections.abc import Sequence
from math import prod
from typing import NamedTuple

from modelplan.model import Graph, Op, Tensor
from modelplan.ops import access_of, facts
from modelplan.ops.access.spans import AccessMap
from modelplan.primitives.lazy_records import dataclass
from modelplan.primitives.number_types import BITS


def element_macs(graph: Graph, op: Op) -> int:
    """Multiply-accumulates of one element of output 0; 0 for what is not a convolution or matrix product."""
    count = facts(graph.format, op.kind).macs
    if count is not None:
        return count(graph, op)
    access = access_of(graph, op)
    return element_products(access) if access else 0


def op_macs(graph: Graph, op: Op) -> int:
    """Multiply-accumulates of an operator; 0 for those that are not convolutions or matrix products."""
    if not op.writes:
        return 0
    return graph.memoised_of(op, "macs", lambda: prod(graph.tensors[op.outputs[0]].shape) * element_macs(graph, op))


def graph_macs(graph: Graph) -> int:
    """Multiply-accumulates of the convolutions and matrix products of one run of a graph.

    Recurrent cells that are one operator and the bodies of control operators count none.
    """
    return sum(op_macs(graph, op) for op in graph.ops)


class Amount(NamedTuple):
    """Bytes read and written."""

    read: int
    written: int


@dataclass(frozen=True, slots=True)
class Traffic:
    """What one run of an operator reads and writes: an amount for each input, each output and each scratch buffer."""

    inputs: tuple[Amount, ...]
    outputs: tuple[Amount, ...]
    scratch: tuple[Amount, ...]


def traffic_of(graph: Graph, op: Op) -> Traffic:
    """What a run of `op` reads and writes, in bytes of each operand; scratch is written and read once.

    A variable that an operator reads is written once too.
    """
    elements = _elements(graph, op)
    inputs = []
    for place, t in enumerate(op.inputs):
        if t < 0:
            inputs.append(Amount(0, 0))
            continue
        tensor = graph.tensors[t]
        count = elements[place] if place < len(elements) else None
        read = tensor.file_bytes if count is None else _bytes(tensor, count)
        inputs.append(Amount(read, tensor.nbytes if tensor.kind == "state" else 0))
    outputs = [graph.tensors[t].nbytes if t >= 0 else 0 for t in op.outputs]
    return Traffic(
        tuple(inputs), tuple(Amount(0, size) for size in outputs), tuple(Amount(size, size) for size in op.scratch)
    )


def _elements(graph: Graph, op: Op) -> Sequence[int | None]:
    """Elements read of each operand; None, and those beyond: each once."""
    rule = facts(graph.format, op.kind).reads
    if rule is None:
        return ()
    if rule.reads is not None:
        return rule.reads(graph, op) or ()
    access = access_of(graph, op)
    return [elements_read(access, operand) for operand in range(len(op.inputs))] if access else ()


def _bytes(tensor: Tensor, elements: int) -> int:
    """The bytes of so many elements; of types without a width the whole tensor."""
    bits = BITS.get(tensor.dtype, 0)
    return -(-elements * bits // 8) if bits else tensor.file_bytes


def element_products(access: AccessMap) -> int:
    """Multiply-accumulates of one element of the result, padding counted; 0 of what is no convolution or product."""
    reads = access.of(access.products)
    if reads is None:
        return 0
    return prod(span.hi - span.lo + 1 for span in reads.spans if span.axis < 0 and not span.table)


def elements_read(access: AccessMap, operand: int) -> int | None:
    """How often a kernel reads elements of an operand that it reads anew for each element of the result.

    Of weights it reads one for each element of the data that it multiplies. None where the map does not name it.
    """
    reads = access.of(operand)
    if reads is None:
        return None
    if operand == access.products:
        reads = next(data for data in access.reads if data.operand != operand)
    return reads.elements if reads.exact or not access.moves else prod(reads.result)

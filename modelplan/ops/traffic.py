"""How many bytes of each operand a kernel reads and writes.

Where an operator's row has no rule, it reads each operand once and writes each output once; of ONNX operators that is
all that is known, since the kernels of ONNX Runtime pack and block their operands in ways of their own.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from modelplan.model import Graph, Op, Tensor
from modelplan.ops import facts
from modelplan.primitives.dtypes import BITS


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
    rule = facts(graph.format, op.kind).reads
    elements = (rule.reads(graph, op) if rule else None) or ()
    inputs = []
    for place, t in enumerate(op.inputs):
        if t < 0:
            inputs.append(Amount(0, 0))
            continue
        tensor = graph.tensors[t]
        read = _bytes(tensor, elements[place]) if place < len(elements) else tensor.file_bytes
        inputs.append(Amount(read, tensor.nbytes if tensor.kind == "state" else 0))
    outputs = [graph.tensors[t].nbytes if t >= 0 else 0 for t in op.outputs]
    return Traffic(
        tuple(inputs), tuple(Amount(0, size) for size in outputs), tuple(Amount(size, size) for size in op.scratch)
    )


def _bytes(tensor: Tensor, elements: int) -> int:
    """The bytes of so many elements; of types without a width the whole tensor."""
    bits = BITS.get(tensor.dtype, 0)
    return -(-elements * bits // 8) if bits else tensor.file_bytes

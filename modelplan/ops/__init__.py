"""What each operator does to memory, as data: one table for each file format.

The words: a *view* leaves the bytes as they are; an *overwrite* may write its output over an operand; a *join* or
*split* may be done by placing its parts side by side; a *stream* may write ahead of what it still reads.
"""

from functools import lru_cache

from modelplan.model import Graph, Op
from modelplan.ops.access import AccessMap
from modelplan.ops.access.builders import ShapedOp
from modelplan.ops.op_facts import OpFacts

_UNKNOWN = OpFacts()


@lru_cache(maxsize=4096)
def facts(format: str, kind: str) -> OpFacts:  # noqa: A002
    """What is known about operators of `kind` in files of `format`; an unknown operator shares nothing."""
    if format == "tflite":
        from modelplan.ops.tflite import CUSTOM, OPERATORS

        return OPERATORS.get(kind) or CUSTOM.get(kind, _UNKNOWN)
    if format == "onnx":
        from modelplan.ops.onnx import OPERATORS

        return OPERATORS.get(kind, _UNKNOWN)
    return _UNKNOWN


def access_of(graph: Graph, op: Op, output: int = 0) -> AccessMap | None:
    """Which elements of its operands each element of a result of an operator is made of.

    None where that is not known or not said, and of a result that is absent: each operand may be read whole.
    """
    return graph.memoised_of(op, ("access", output), lambda: _built_access(graph, op, output))


def _built_access(graph: Graph, op: Op, output: int) -> AccessMap | None:
    build = facts(graph.format, op.kind).access
    there = output < len(op.outputs) and op.outputs[output] >= 0
    return build(ShapedOp.of(graph, op, output)) if build and there else None


def plain_lead(graph: Graph, op: Op, operand: int) -> int | None:
    """How many bytes output 0 must start before an operand that it overlaps, for the kernels of the facts themselves.

    None where they must not overlap.
    """
    lead = facts(graph.format, op.kind).lead
    return lead(graph, op, operand) if lead else None


__all__ = ["OpFacts", "access_of", "facts", "plain_lead"]

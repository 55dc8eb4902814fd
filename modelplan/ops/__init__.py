"""What each operator does to memory, as data: one table for each file format.

The words: a *view* leaves the bytes as they are; an *overwrite* may write its output over an operand; a *join* or
*split* may be done by placing its parts side by side; a *stream* may write ahead of what it still reads.
"""

from __future__ import annotations

from functools import lru_cache

from modelplan.ops.op_facts import OpFacts

_UNKNOWN = OpFacts()


@lru_cache(maxsize=4096)
def facts(format: str, kind: str) -> OpFacts:  # noqa: A002
    """What is known about operators of `kind` in files of `format`; an unknown operator shares nothing."""
    if format == "tflite":
        from modelplan.ops.tflite import CUSTOM, OPERATORS

        return OPERATORS.get(kind) or CUSTOM.get(kind, _UNKNOWN)
    from modelplan.ops.onnx import OPERATORS

    return OPERATORS.get(kind, _UNKNOWN)


__all__ = ["OpFacts", "facts"]

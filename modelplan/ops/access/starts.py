"""Where one tensor stands in the elements of another: views of operands, and parts of joins."""

from __future__ import annotations

from modelplan.ops.access.other_extents import strides
from modelplan.ops.access.spans import AccessMap


def view_start(access: AccessMap, operand: int) -> int | None:
    """The element of an operand at which the result stands in it, unchanged and in one piece; None: it does not.

    Each element of the result is then one of the operand, as much further as in the result.
    """
    reads = access.of(operand)
    if not access.moves or reads is None or not all(span.single for span in reads.spans):
        return None
    steps, start = [0] * len(reads.result), 0
    for span, stride, extent in zip(reads.spans, strides(reads.source), reads.source, strict=True):
        last = span.lo + span.mul * (reads.result[span.axis] - 1 if span.axis >= 0 else 0)
        if not 0 <= min(span.lo, last) <= max(span.lo, last) < extent:
            return None
        start += span.lo * stride
        if span.axis >= 0:
            steps[span.axis] += span.mul * stride
    wanted = zip(steps, strides(reads.result), reads.result, strict=True)
    return start if all(step == stride for step, stride, extent in wanted if extent > 1) else None


def part_start(access: AccessMap, operand: int) -> int | None:
    """The element of the result from which an operand stands in it, unchanged and in one piece; None: it does not."""
    reads = access.of(operand)
    if not access.moves or reads is None or not all(span.single and span.mul == 1 for span in reads.spans):
        return None
    start, result = 0, strides(reads.result)
    for span, stride, extent in zip(reads.spans, strides(reads.source), reads.source, strict=True):
        first = -span.lo
        if extent > 1 and (span.axis < 0 or stride != result[span.axis]):
            return None
        if span.axis >= 0 and not 0 <= first <= reads.result[span.axis] - extent:
            return None
        start += first * result[span.axis] if span.axis >= 0 else 0
    return start

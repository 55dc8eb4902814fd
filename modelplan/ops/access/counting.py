"""How often an operator multiplies and reads."""

from math import prod

from modelplan.ops.access.spans import AccessMap


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
